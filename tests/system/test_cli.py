#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command lines of urnic and urnicd: wrong input is refused with a sentence that names the field and the
value, and with the status that the manual says; every manual page has its parts, and its options exist; --json
prints JSON.
"""
import json
import os
import re
import sys

from cli_rig import CAPTURE, DATA, SCENARIO, SCRIPT, URNIC, URNICD, check, run, test_all

CPU = min(os.sched_getaffinity(0))

# What is asked, and what the answer must have in it: what is wrong, by field and value. Status 2 each.
WRONG = {
    "": [
        ("--frobnicate", "'--frobnicate' is not a command"),
        ("inof", "'inof' is not a command"),
        ("--socket", "--socket: a path is missing"),
        ("", "usage:"),
        ("help inof", "'inof' is not a command"),
        ("help info stat", "'stat' is one argument too many"),
    ],
    # For every subcommand: an option that is none, and an option without its value.
    "info": [
        ("urn0 urn1", "'urn1' is one argument too many"),
        ("--verbose=1", "'--verbose' doesn't allow an argument"),
        ("-x", "'x'"),
        ("--socket", "'--socket' requires an argument"),
    ],
    "stat": [
        ("urn0 urn1", "'urn1' is one argument too many"),
        ("--qp 0", "--qp: '0'"),
        ("--qp 0x1000000", "--qp: '0x1000000'"),
        ("--qp -1", "--qp: '-1'"),
        ("--qp 12z", "--qp: '12z'"),
        ("--qp=", "--qp: ''"),
        ("--qp", "'--qp' requires an argument"),
        ("--json=yes", "'--json' doesn't allow an argument"),
    ],
    "top": [
        ("urn0", "'urn0' is one argument too many"),
        ("--interval 0", "--interval: '0'"),
        ("--interval -1", "--interval: '-1'"),
        ("--interval 1s", "--interval: '1s'"),
        ("--interval nan", "--interval: 'nan'"),
        ("--interval inf", "--interval: 'inf'"),
        ("--interval 1e-9", "--interval: '1e-9'"),
        ("--interval=", "--interval: ''"),
        ("--json", "--json needs --once"),
    ],
    "doctor": [
        ("eth0", "port 'eth0'"),
        ("infiniband:mlx5_0", "no driver 'infiniband'"),
        ("dpdk:", "dpdk:"),
        ("dpdk:net_af_packet0", "say which interface"),
        ("dpdk:0000:01:00.0,urnic_mtu=7", "urnic_mtu=7"),
        ("dpdk:0000:01:00.0,urnic_huge=maybe", "urnic_huge=maybe"),
        ("mem:", "mem:LINK"),
        ("mem:l,loss=2", "loss=2"),
        ("mem:l,speed=1G", "'speed'"),
        ("memif:/run/a.sock", "role="),
        ("memif:/run/a.sock,role=boss", "role=boss"),
        ("mem:l mem:m", "'mem:m' is one argument too many"),
    ],
    "perf": [
        ("", "the server's address, or --server, is missing"),
        ("--server 10.0.0.2", "'10.0.0.2' is one argument too many"),
        ("10.0.0.2 10.0.0.3", "'10.0.0.3' is one argument too many"),
        ("ten", "'ten' is not an IP address"),
        ("localhost", "'localhost' is the kernel's"),
        ("fe80::1%v0", "leave %v0 out"),
        ("[fe80::1%v0]:7471", "leave %v0 out"),
        ("10.0.0.256", "'10.0.0.256' is not an IP address"),
        ("10.0.0.2:0", "port: 0"),
        ("10.0.0.2:99999", "port: 99999"),
        ("[fd00::1", "'[fd00::1'"),
        ("224.0.0.5", "'224.0.0.5' is the address of a group"),
        ("[ff02::1]:7", "'ff02::1' is the address of a group"),
        ("10.0.0.2 --op wirte", "--op: 'wirte' is none of write, read, send"),
        ("10.0.0.2 --size 3G", "--size: 3G"),
        ("10.0.0.2 --size 8,x", "--size: 'x'"),
        ("10.0.0.2 --size=", "--size: ''"),
        ("10.0.0.2 --time 0", "--time: '0'"),
        ("10.0.0.2 --qps 0", "--qps: 0"),
        ("10.0.0.2 --depth 5000", "--depth: 5000"),
        ("10.0.0.2 --batch 65", "--batch: 65"),
        ("10.0.0.2 --wait forever", "--wait: 'forever'"),
        ("10.0.0.2 --inline --size 65", "--inline"),
        ("10.0.0.2 --op atomic --size 4", "atomics have 8 octets, not 4"),
        ("10.0.0.2 --lat --qps 2", "--lat"),
        ("10.0.0.2 --both --op send", "--both"),
    ],
    "copy": [
        ("", "is missing"),
        ("README", "is missing"),
        ("a 10.0.0.2:b c", "'c' is one argument too many"),
        ("a b", "neither 'a' nor 'b'"),
        ("nofile 10.0.0.2:x", "nofile: No such file"),
        (". 10.0.0.2:x", ".: not a regular file"),
        ("file ten:x", "'ten' is not an IP address"),
        ("file 10.0.0.2:0:x", "port: 0"),
        ("file 10.0.0.2:", "'10.0.0.2:' has not the form"),
        ("10.0.0.2:x nofolder/x", "nofolder/x: No such file"),
        ("file 10.0.0.2:" + 400 * "x", "remote path is longer"),
    ],
    "serve": [
        ("extra", "'extra' is one argument too many"),
        ("--dir nofolder", "--dir: nofolder: No such file"),
        ("--dir file", "--dir: file: Not a directory"),
        ("--dir=", "--dir: : No such file"),
        ("--port 0", "--port: 0"),
        ("--port 65536", "--port: 65536"),
        ("--port http", "--port: 'http'"),
        ("--once 0", "--once: 0"),
        ("--once -3", "--once: '-3'"),
        ("--once", "'--once' requires an argument"),
    ],
    "capture": [
        ("", "a file to write is missing"),
        ("a b", "'b' is one argument too many"),
        ("--qp 0 a", "--qp: '0'"),
        ("--qp x a", "--qp: 'x'"),
        ("--snaplen 10 a", "--snaplen: 10"),
        ("--snaplen 1K a", "--snaplen: '1K'"),
        ("--limit 1 a", "--limit: 1"),
        ("--limit 1T a", "--limit: '1T'"),
        ("--for 0 a", "--for: '0'"),
        ("--for soon a", "--for: 'soon'"),
        ("nofolder/a", "nofolder/a: No such file"),
    ],
    "link": [
        ("", "a device is missing"),
        ("urn0", "a change is missing"),
        ("urn0 urn1 --up", "'urn1' is one argument too many"),
        ("urn0 --rules nofile", "nofile: No such file"),
        ("urn0 --rules=", "--rules: a file's name is missing"),
        ("urn0 --rules file", "file:1:1: expected an action"),
        ("urn0 --rules empty --up urn1", "'urn1' is one argument too many"),
        ("urn0 --loss 1.5", "--loss: '1.5'"),
        ("urn0 --loss -0.1", "--loss: '-0.1'"),
        ("urn0 --loss 101%", "--loss: '101%'"),
        ("urn0 --loss 1e-7", "--loss: '1e-7' is too small"),
        ("urn0 --duplicate x", "--duplicate: 'x'"),
        ("urn0 --reorder nan", "--reorder: 'nan'"),
        ("urn0 --corrupt=", "--corrupt: ''"),
        ("urn0 --delay -1", "--delay: '-1'"),
        ("urn0 --delay 5min", "--delay: '5min'"),
        ("urn0 --rate 10P", "--rate: '10P'"),
        ("urn0 --rate -1", "--rate: '-1'"),
        ("urn0 --addr-add 10.0.0.1/33", "--addr-add: 33"),
        ("urn0 --addr-add ten/8", "--addr-add: 'ten/8'"),
        ("urn0 --addr-del fd00:::1", "--addr-del: 'fd00:::1'"),
        ("urn0 --addr-del 10.0.0.1 --addr-add 10.0.0.9/24", "--addr-add: one change"),
    ],
    "cc": [
        ("urn0 dcqcn x", "'x' is one argument too many"),
        ("--list urn0", "'urn0' is one argument too many"),
        ("urn0 dcqnc", "dcqnc"),
        ("urn0 dcqcn:moon", "moon"),
        ("urn0 dcqcn,speed=1", "speed"),
        ("urn0 dcqcn,g=7", "g=7"),
        ("urn0 dcqcn,timer=5", "timer=5"),
        ("urn0 fixed,rate=fast", "rate=fast"),
        ("urn0 none,recovery=magic", "recovery=magic"),
        ("urn0 --qp 0", "--qp: '0'"),
        ("urn0 --qp 0x1000000", "--qp: '0x1000000'"),
        ("--qp 3 none", None),
    ],
    "lint": [
        ("", "a capture is missing"),
        ("a b", "'b' is one argument too many"),
        ("nofile", "nofile: No such file"),
        (".", "."),
        ("file", "file: "),
        ("empty", "empty: "),
        ("--connection 0 file", "--connection: 0"),
        ("--connection one file", "--connection: 'one'"),
        ("--rule XYZ-99 file", "'XYZ-99'"),
        ("--rule= file", "--rule: ''"),
        ("--max -1 file", "--max: '-1'"),
        ("--html nofolder/x.html " + CAPTURE, "--html nofolder/x.html: No such file"),
        ("--html kept nofile", "nofile: No such file"),
        ("--html kept file", "file: "),
        ("--html ./file file", "--html ./file: that is the capture itself"),
    ],
    "replay": [
        ("", "a capture is missing"),
        ("a b", "'b' is one argument too many"),
        ("nofile", "nofile: No such file"),
        (".", "."),
        ("file", "file: "),
        ("empty", "empty: "),
        ("--as judge file", "--as: 'judge'"),
        ("--as= file", "--as: ''"),
        ("--memory 1K file", "--memory: 1K is outside"),
        ("--memory x file", "--memory: 'x'"),
        ("--max x file", "--max: 'x'"),
        ("--max -1 file", "--max: '-1'"),
        ("--max", "'--max' requires an argument"),
    ],
    "rules": [
        ("XYZ", "'XYZ' is neither"),
        ("ACK-99", "'ACK-99' is neither"),
        ("ACK-6x", "'ACK-6x' is neither"),
        ("ACK XYZ", "'XYZ' is neither"),
        ("-", "'-' is neither"),
        ("ACK-", "'ACK-' is neither"),
        ("A", "'A' is neither"),
        ("ACK_06", "'ACK_06' is neither"),
        ("--json=1", "'--json' doesn't allow an argument"),
        ("--untested=1", "'--untested' doesn't allow an argument"),
    ],
    "rping": [
        ("10.0.0.2 10.0.0.3", "'10.0.0.3' is one argument too many"),
        ("ten", "'ten' is not an IP address"),
        ("10.0.0.2:0", "port: 0"),
        ("--count 0 10.0.0.2", "--count: 0"),
        ("--count x 10.0.0.2", "--count: 'x'"),
        ("--size 31 10.0.0.2", "--size: 31"),
        ("--size 64K 10.0.0.2", "--size: 64K"),
        ("--size=", "--size: ''"),
        ("--port 0", "--port: 0"),
        ("--port 70000", "--port: 70000"),
    ],
    "ucmatose": [
        ("10.0.0.2 10.0.0.3", "'10.0.0.3' is one argument too many"),
        ("ten", "'ten' is not an IP address"),
        ("[fd00::1]x", "'[fd00::1]x'"),
        ("--connections 0", "--connections: 0"),
        ("--connections 65", "--connections: 65"),
        ("--count 1001", "--count: 1001"),
        ("--count -1", "--count: '-1'"),
        ("--size 2M", "--size: 2M"),
        ("--size big", "--size: 'big'"),
        ("--port 0", "--port: 0"),
    ],
    "sim": [
        ("", "a scenario is missing"),
        ("a b", "'b' is one argument too many"),
        ("nofile", "nofile: No such file"),
        (".", ".: "),
        ("file", "file:1: "),
        ("zero", "zero:1: a zero octet"),
        ("--set x " + SCENARIO, "--set: 'x'"),
        ("--set colour=red " + SCENARIO, "'colour'"),
        ("--shard 0/2 " + SCENARIO, "--shard: '0/2'"),
        ("--shard 3/2 " + SCENARIO, "--shard: '3/2'"),
        ("--capture host0 " + SCENARIO, "--capture: 'host0'"),
        ("--capture moon=x.pcapng " + SCENARIO, "--capture: 'moon'"),
        ("--chart x " + SCENARIO, "--chart: 'x'"),
        ("--rules nofile " + SCENARIO, "nofile: No such file"),
        ("--rules . " + SCENARIO, ".: Is a directory"),
        ("--rules file " + SCENARIO, "file:1:1: expected an action"),
    ],
    "trace": [
        ("", "want a process id, or '--' and a command"),
        ("x", "PID: 'x'"),
        ("0", "PID: 0"),
        ("1 2", "want a process id"),
        ("--private", "want a process id"),
        ("--private 7", "want a process id"),
        ("--private --", "a command is missing"),
        ("--private --devices 17 -- true", "--devices: 17"),
        ("--output", "'--output' requires an argument"),
        ("--frobnicate -- true", "'--frobnicate'"),
    ],
    "run": [
        ("", "a command is missing"),
        ("--devices 2 true", "--devices: only with --private"),
        ("--port mem:a true", "--port: only with --private"),
        ("--private --devices 0 true", "--devices: 0"),
        ("--private --devices 17 true", "--devices: 17"),
        ("--private --devices two true", "--devices: 'two'"),
        ("--private --addr 10.0.0.1/24 true", "give --port before --addr"),
        ("--private --devices 2 --port mem:a true", "--devices and --port"),
        ("--private --socket /nowhere true", "--socket and --private"),
        ("--frobnicate true", "'--frobnicate'"),
    ],
    "drill": [
        ("", "a script is missing"),
        ("nofile", "nofile: No such file"),
        ("file", None),
        ("--psn 0x1000000 file", "--psn: "),
        ("--psn x file", "--psn: 'x'"),
        ("--record nofolder/x " + SCRIPT, "nofolder/x"),
        ("--record ./file file", "--record ./file: that is a script"),
        ("--port mem:a " + SCRIPT, "belong together"),
        ("--port eth0 --addr 10.0.0.1/24 --peer 10.0.0.2 " + SCRIPT, "eth0"),
        ("--port mem:a --addr ten --peer 10.0.0.2 " + SCRIPT, "ten"),
        ("--port mem:a --addr 10.0.0.1/24 --peer ten " + SCRIPT, "ten"),
        ("--server", "'--server' requires an argument"),
        ("--server bing " + SCRIPT, "--server: 'bing'"),
    ],
    "wire": [
        ("", "two ports are needed"),
        ("mem:a", "two ports are needed"),
        ("mem:a mem:b mem:c", "two ports are needed"),
        ("eth0 eth1", "port 'eth0'"),
        ("memif:/x mem:b", "role="),
        ("--mtu 1 mem:a mem:b", "--mtu: 1"),
        ("--queue 0 mem:a mem:b", "--queue: 0"),
        ("--for 0 mem:a mem:b", "--for: '0'"),
        ("--seed x mem:a mem:b", "--seed: 'x'"),
        ("--rules nofile mem:a mem:b", "nofile: No such file"),
        ("--rules file mem:a mem:b", "file:1:1: "),
        ("--rule drop --rules file mem:a mem:b", "--rules and --rule"),
        ("--rule frob --check", "--rule 1, column "),
        ("--suite mem:a mem:b", "--suite: something must make traffic"),
        ("--suite --for 1 mem:a mem:b", "without --rules, --rule and --for"),
        ("--suite --retry 8 mem:a mem:b", "--retry: 8"),
        ("--suite --end-a /a.sock,10.0.0.1 mem:a mem:b", "--end-a"),
    ],
}

DAEMON = [
    ("--frobnicate", "--frobnicate: unknown flag"),
    ("--s", "--s: unknown flag"),
    ("-xy", "-x: unknown flag"),
    ("--foreground=yes", "--foreground=yes: the flag takes no value"),
    ("extra", "extra: not a flag"),
    ("--port", "--port: needs a value"),
    ("--addr 10.0.0.1/24", "give --port before --addr"),
    ("--port eth0 --addr 10.0.0.1/24", "port=eth0"),
    ("--port mem:a --addr 10.0.0.1/33", "addr=10.0.0.1/33"),
    ("--port mem:a --addr 224.0.0.1/24", "multicast"),
    ("--port mem:a,speed=1G --addr 10.0.0.1/24", "'speed'"),
    ("--port mem:a,loss=2 --addr 10.0.0.1/24", "loss=2"),
    ("--port memif:/run/a.sock --addr 10.0.0.1/24", "role="),
    ("--port dpdk:net_af_packet0 --addr 10.0.0.1/24", "say which interface"),
    ("--device colour=red", "colour=red"),
    ("--device name=a,port=mem:a,addr=10.0.0.1/24,mtu=100", "mtu=100"),
    ("--device name=a,port=mem:a,addr=10.0.0.1/24,cc=dcqnc", "dcqnc"),
    ("--device name=a,port=mem:a,addr=10.0.0.1/24 --device name=a,port=mem:b,addr=10.0.0.2/24", "a"),
    ("--workers 99 --port mem:a --addr 10.0.0.1/24", "workers=99"),
    ("--cpu x --port mem:a --addr 10.0.0.1/24", "cpu=x"),
    ("--cpu 1023 --port mem:a --addr 10.0.0.1/24", "worker 0: cpu=1023: "),
    (f"--workers 2 --cpu {CPU},1023 --port mem:a --addr 10.0.0.1/24", "worker 1: cpu=1023: "),
    ("--idle never --port mem:a --addr 10.0.0.1/24", "idle=never"),
    ("--log-level loud --port mem:a --addr 10.0.0.1/24", "log-level=loud"),
    ("--seed x --port mem:a --addr 10.0.0.1/24", "seed=x"),
    ("--socket " + 120 * "s" + " --port mem:a --addr 10.0.0.1/24", "socket="),
    ("--config nofile", "nofile"),
    ("--config file", "file"),
]

# Correct, but it can't be done: status 1.
FAILS = [
    ("info urn9", "urn9"),
    ("stat urn9", "urn9"),
    ("stat --qp 0x123456", "0x123456"),
    ("stat --qp 012", "0x00000c"),  # decimal
    ("top", "standard output is no terminal"),
    ("cc urn9", "urn9"),
    ("cc urn0 --qp 0x123456", "0x123456"),
    ("link urn9 --up", "urn9"),
    ("link urn9 --show", "urn9"),
    ("link urn9 --no-rules", "urn9"),
    ("capture --device urn9 kept", "urn9"),
    ("serve --device urn9", "urn9"),
    ("perf --server --device urn9", "urn9"),
    ("rping --device urn9", "urn9"),
    ("ucmatose --device urn9", "urn9"),
    ("copy --device urn9 file 10.0.0.2:x", "urn9"),
    ("perf --device urn0 10.0.0.2:9", "10.0.0.2 port 9: Connection refused"),
    ("copy --device urn0 10.0.0.2:9:x kept", "10.0.0.2 port 9: Connection refused"),
    ("copy --device urn0 10.0.0.2:9:x never", "10.0.0.2 port 9: Connection refused"),
    ("rping --device urn0 10.0.0.2:9", "10.0.0.2 port 9: Connection refused"),
    ("ucmatose --device urn0 10.0.0.2:9", "10.0.0.2 port 9: Connection refused"),
    ("rules --untested ACK-06", "each of these rules has a test"),
    ("wire dpdk:0000:fe:1f.0 mem:b", "dpdk"),
    ("wire memif:nofolder/m,role=server mem:b", "nofolder/m"),
    ("drill --port memif:nofolder/m,role=server --addr 10.0.0.1/24 --peer 10.0.0.2 " + SCRIPT, "nofolder/m"),
    ("sim --quiet -o nofolder/x " + SCENARIO, "nofolder/x: No such file"),
]

# What prints data prints JSON, one value a line, when asked; a field that must be in one of them.
JSON = [
    ("info", "gids"), ("stat", "counters"), ("stat --qps --all", "qps"), ("top --once -i 0.01", "tx_packets"),
    ("doctor mem:l", "level"), ("cc", "cc"), ("cc --list", "parameter"), ("lint --max 1 " + CAPTURE, "rule"),
    ("lint --rules", "rule"), ("replay --max 1 " + CAPTURE, "type"), ("replay --freedoms", "sentence"),
    ("rules ACK", "sentence"), ("capture --for 0.01 json.pcapng", "not_written"),
    ("sim -q " + SCENARIO, "type"),
]


def named(command):
    return f"urnic {command}".strip()


def rule_table():
    """What stands in the rule table of lint, replay's captures and the tests, one rule of each kind."""
    def row(rule):
        return json.loads(run(URNIC, ["rules", "--json", rule]).stdout)

    linted = {json.loads(line)["rule"] for line in run(URNIC, ["lint", "--rules", "--json"]).stdout.splitlines()}
    table = [json.loads(line) for line in run(URNIC, ["rules", "--json"]).stdout.splitlines()]
    check(linted and {r["rule"] for r in table if r["lint"]} == linted, "rules: other rules than lint checks")
    check(all(r["sentence"] and not r["sentence"].endswith(":") for r in table), "rules: half a sentence")
    r = row("RNR-02")
    check("err-rnr.pcap" in r["captures"] and set(r["tested_by"]) >= {"capture", "drill", "unit"},
          f"rules RNR-02: {r}")
    check(any(not r["tests"] and r["untested"] for r in table), "rules: no reason for what isn't tested")
    text = run(URNIC, ["rules", "RNR-02"]).stdout
    for line in ("lint: checks it", "capture: pcaps/err-rnr.pcap", "test: tests/drill/rnr/rnr_02_quiet.drill"):
        check(line in text, f"rules RNR-02: no «{line}»")


def suite_cases():
    """`wire --list` says the same with and without --json."""
    text = run(URNIC, ["wire", "--list"]).stdout.splitlines()
    rows = [json.loads(line) for line in run(URNIC, ["wire", "--list", "--json"]).stdout.splitlines()]
    check(rows and [line.split() for line in text] ==
          [[r["case"], r["rule"], *r["what"].split()] for r in rows], "wire --list: not what --json says")


def wrong_input():
    for command, cases in WRONG.items():
        for text, says in cases:
            args = ([command] if command else []) + text.split()
            # Without a daemon, so that nothing but the command line can be at fault; a file is not
            # made before there is a device to fill it from.
            daemon = {} if args == ["capture", "nofolder/a"] else {"URNIC_SOCKET": os.path.join(DATA, "nowhere")}
            r = run(URNIC, args, **daemon)
            where = f"urnic {' '.join(args)[:100]}"
            if says is None:  # in words of its own
                check(r.returncode != 0 and r.stderr + r.stdout, f"{where}: was accepted")
                continue
            check(r.returncode == 2, f"{where}: status {r.returncode}, not 2: {r.stderr[:200]}")
            check(says in r.stderr, f"{where}: does not say «{says}», but: {r.stderr[:300]}")
            check(r.stdout == "" or command == "drill", f"{where}: prints on standard output: {r.stdout[:100]}")
        if command:
            for option, says in (("--frobnicate", "'--frobnicate'"), ("-?", "'?'")):
                r = run(URNIC, [command, option])
                check(r.returncode == 2 and says in r.stderr and named(command) in r.stderr
                      and f"Try '{named(command)} --help'" in r.stderr,
                      f"urnic {command} {option}: {r.returncode} {r.stderr}")
    for args, status in (([], 2), (["--socket", "/short"], 0)):
        r = run(URNICD, ["--check-config", "--port", "mem:l", "--addr", "10.0.0.1", *args], URNIC_SOCKET="/" + 107 * "x")
        check(r.returncode == status and ("URNIC_SOCKET: want a path of at most 107 octets" in r.stderr) == (status == 2),
              f"urnicd, a long URNIC_SOCKET, {args}: {r.returncode} {r.stderr}")
    good = ["--check-config", "--cpu", f"{CPU},1023", "--port", "mem:a"]  # no worker's core is the second
    check(run(URNICD, good).returncode == 0, f"urnicd {' '.join(good)}")
    for text, says in DAEMON:
        r = run(URNICD, ["--check-config", *text.split()])
        check(r.returncode == 2, f"urnicd {text[:100]}: status {r.returncode}, not 2: {r.stderr[:200]}")
        check(r.stderr.startswith("urnicd: ") and says in r.stderr,
              f"urnicd {text[:100]}: does not say «{says}», but: {r.stderr[:300]}")


def manuals():
    r = run(URNIC, ["--help"])
    commands = re.findall(r"^  (\w+)  +\S", r.stdout.split("Commands:")[1].split("\n\n")[0], re.M)
    check(len(commands) >= 16 and r.returncode == 0, "urnic --help lists the commands")
    for command in commands:
        page = run(URNIC, [command, "--help"])
        check(page.returncode == 0 and page.stderr == "" and run(URNIC, [command, "-h"]).stdout == page.stdout,
              f"{command} --help")
        check(run(URNIC, ["help", command]).stdout == page.stdout, f"help {command}: not what --help prints")
        check(command in WRONG, f"{command}: nothing wrong is tried")
        for part in ("usage: " + named(command), "\nExit status:\n", "\nExamples:\n", "\nSee also: "):
            check(part in page.stdout, f"{command} --help: lacks «{part.strip()}»")
        check(max(len(line) for line in page.stdout.splitlines()) <= 100, f"{command} --help: a long line")
        # Options of the page exist: only the argument after each, which is wrong everywhere, is refused.
        for option in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)[ ,]", page.stdout, re.M):
            r = run(URNIC, [command, option, "--frobnicate"])
            check(f"unrecognized option '{option}" not in r.stderr, f"{command} --help: {option} does not exist")
    # An example that brings its input along does what it shows.
    example = re.search(r"^ +(printf .*\n.*)", run(URNIC, ["drill", "--help"]).stdout, re.M)[1]
    r = run("sh", ["-c", example], PATH=os.path.dirname(URNIC) + ":" + os.environ["PATH"])
    check(r.returncode == 0 and r.stdout.startswith("1 passed, 0 failed"), f"{example}: {r.stdout}{r.stderr}")
    page = run(URNICD, ["--help"])
    check(page.returncode == 0 and page.stdout.startswith("usage: urnicd"), "urnicd --help")
    for part in ("\nExit status:\n", "\nExamples:\n", "\nSee also: "):
        check(part in page.stdout, f"urnicd --help: lacks «{part.strip()}»")


def with_daemon():
    for text, says in FAILS:
        r = run(URNIC, text.split())
        check(r.returncode == 1, f"urnic {text}: status {r.returncode}, not 1: {r.stderr[:200]}")
        check(says in r.stderr, f"urnic {text}: does not say «{says}», but: {r.stderr[:200]}")
        check("No urnicd serves" not in r.stderr, f"urnic {text}: there is a daemon")
    with open(os.path.join(DATA, "kept"), encoding="ascii") as f:
        check(f.read() == "kept", "a file was overwritten for nothing")
    check(not os.path.exists(os.path.join(DATA, "never")), "a copy that failed left an empty file")
    for text, field in JSON:
        r = run(URNIC, [*text.split(), "--json"])
        check(r.returncode in (0, 1), f"urnic {text} --json: status {r.returncode} {r.stderr}")
        try:
            values = [json.loads(line) for line in r.stdout.splitlines()]
            check(any(field in v for v in values), f"urnic {text} --json: no «{field}»")
        except ValueError as e:
            check(False, f"urnic {text} --json: {e}: {r.stdout[:200]}")


if __name__ == "__main__":
    sys.exit(test_all(rule_table, suite_cases, wrong_input, manuals, with_daemon))
