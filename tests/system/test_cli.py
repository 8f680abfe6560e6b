#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command lines of urnic and urnicd: wrong input is refused with a sentence that names the field and the
value, and with the status that the manual says; every manual page has its parts, and its options exist; --json
prints JSON.

usage: test_cli.py URNICD URNIC SOURCE_ROOT
"""
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import xml.etree.ElementTree as ET

URNICD, URNIC, ROOT = (os.path.abspath(p) for p in sys.argv[1:4])
CAPTURE = os.path.join(ROOT, "pcaps", "err-rnr.pcap")
SCENARIO = os.path.join(ROOT, "app", "urnic", "scenarios", "two-flows.sim")
SCRIPT = os.path.join(ROOT, "tests", "drill", "atm", "atm_02_byte_order.drill")
CPU = min(os.sched_getaffinity(0))
DATA = None  # a folder of the test's own
failures = []


def check(ok, text):
    if not ok:
        failures.append(text)
        print("FAIL:", text)


def run(program, args, timeout=30, **env):
    return subprocess.run([program, *args], cwd=DATA, timeout=timeout, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="backslashreplace", env=dict(os.environ, **env))


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
    ("rules --untested ACK-06", ""),
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


def doctor():
    """What doctor finds, where it can be known what is there."""
    def found(port, **env):
        lines = run(URNIC, ["doctor", "--json", port], **env).stdout.splitlines()
        return {(f["check"], f["level"]): f["found"] for f in map(json.loads, lines)}

    port = "dpdk:net_af_packet0,iface=lo"
    check("127.0.0.1" in found(port).get(("addresses", "note"), ""), "doctor: lo has an IPv4 address")
    check(("claim", "good") in found(port) or ("claim", "note") in found(port), "doctor: af_packet beside the kernel")
    check("65536" in found("dpdk:net_af_xdp0,iface=lo").get(("mtu", "missing"), ""), "doctor: lo's MTU, af_xdp")
    check(("driver", "missing") in found(port, URNIC_PLUGIN_DIR=DATA), "doctor: no driver in URNIC_PLUGIN_DIR")
    alone = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
    small = "mount -t sysfs sysfs /sys && ip link set lo mtu 300"
    if subprocess.call([*alone, small], stderr=subprocess.DEVNULL):
        print("doctor: no network namespace here: an MTU that is too small isn't tried")
    else:
        said = subprocess.run([*alone, small + ' && exec "$0" doctor --json "$1"', URNIC, port],
                              stdout=subprocess.PIPE, text=True, timeout=30, check=False).stdout
        check('"mtu","level":"missing","found":"MTU 300 ' in said, f"doctor: MTU 300: {said}")
    check("net99" in found("dpdk:net_af_packet0,iface=net99").get(("interface", "missing"), ""), "doctor: net99")
    check("0000:fe:1f.0" in found("dpdk:fe:1f.0").get(("device", "missing"), ""), "doctor: no such PCI device")
    check(not any("missing" in key for key in found("mem:l")), "doctor: mem ports need nothing")
    for spec, name in (("pcap:/none.pcap", "files"), ("pcap:,/none/o.pcapng", "files"), ("memif:/none/s,role=server", "link")):
        check("/none" in found(spec).get((name, "missing"), ""), f"doctor {spec}: what can't be opened")
    for spec in (f"pcap:{CAPTURE},{DATA}/o.pcapng", f"memif:{DATA}/s,role=server", "memif:@s,role=client"):
        check(not any("missing" in key for key in found(spec)), f"doctor {spec}: all is there")
    check(("link", "note") in found("memif:/none/s,role=client"), "doctor: a server may come later")
    check("/named/here, by URNIC_SOCKET" in found("mem:l", URNIC_SOCKET="/named/here").get(("socket", "good"), ""),
          "doctor: URNIC_SOCKET")
    for args in (["--socket", "/named/here", "doctor"], ["doctor", "--socket", "/named/here"]):
        check("the socket is /named/here, by --socket" in run(URNIC, [*args, "mem:l"]).stdout, f"{args}")
    where = "/run/urnic/urnicd.sock" if os.geteuid() == 0 else f"/tmp/urnic-{os.geteuid()}/urnicd.sock"
    check(where in found("mem:l", URNIC_SOCKET="", XDG_RUNTIME_DIR="").get(("socket", "good"), ""), "doctor: the socket")


def full_file():
    """... and of a file its name."""
    space, part = "No space left on device", "not all of it could be written"
    for text, status, why in (("lint --html /dev/full " + CAPTURE, 2, space),
                              ("drill --record /dev/full " + SCRIPT, 1, space),
                              ("sim --output /dev/full " + SCENARIO, 1, part),
                              ("sim --plot /dev/full " + SCENARIO, 1, space),
                              ("sim --chart rate/time=/dev/full " + SCENARIO, 1, space),
                              ("sim --capture host1=/dev/full " + SCENARIO, 1, space)):
        r = run(URNIC, text.split(), timeout=60)
        check(r.returncode == status and "/dev/full: " + why in r.stderr, f"{text}: {r.returncode} {r.stderr}")


def full_disk():
    """What can't be written is said, and not a success: neither on a full disk nor without a standard output, whose
    number the first file or socket would get."""
    for program, text in ((URNIC, "rules"), (URNIC, "rules --json"), (URNIC, "lint --rules"), (URNIC, "stat --help"),
                          (URNIC, "stat --json"), (URNIC, "lint " + CAPTURE), (URNICD, "--help"),
                          (URNICD, "--version"), (URNICD, "--check-config --port mem:l")):
        for name, prepare in (("/dev/full", lambda: None), ("&-", lambda: os.close(1))):
            with open("/dev/full", "w", encoding="ascii") as full:
                r = subprocess.run([program, *text.split()], cwd=DATA, stdin=subprocess.DEVNULL, stdout=full,
                                   stderr=subprocess.PIPE, text=True, timeout=30, preexec_fn=prepare)
            check(r.returncode == 1 and "standard output can't be written" in r.stderr,
                  f"{program} {text} >{name}: {r.returncode} {r.stderr}")


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
        # Options of the page exist. What comes behind is wrong, as an option or as an option's value.
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


def no_start():
    """A daemon that can't start says why, and what to do about it."""
    def start(*args):
        r = run(URNICD, ["--foreground", "--socket", os.path.join(DATA, "another"), *args])
        return r.returncode, r.stderr
    device = ["--addr", "10.0.0.1/24"]
    server = os.path.join(DATA, "m")
    for args, status, says in (
            ([], 2, "give --device"),
            (["--port", "mem:l", "--addr", "10.0.0.1/240"], 2, "an address like 10.0.0.1/24"),
            (["--port", "nosuch:1", *device], 2, "there are mem, pcap, memif, dpdk"),
            (["--config", os.path.join(DATA, "none")], 2, "none: No such file or directory\n"),
            (["--config", os.path.join(DATA, "file")], 2, "(line 1)"),
            (["--config", DATA], 2, "Is a directory"),
            (["--port", f"memif:{DATA}/none/m,role=server", *device], 1, "make its folder first"),
            (["--port", f"memif:{server},role=server", "--port", f"memif:{server},role=server", *device], 1,
             "role=client"),
            (["--port", "mem:l", *device, "--cpu", "1000"], 1, "choose cores of this machine"),
            (["--port", "mem:l", *device, "--socket", os.path.join(DATA, "no", "folder", "s")], 1, "with --socket"),
            (["--port", "mem:l", *device, "--socket", os.environ["URNIC_SOCKET"]], 1, "another urnicd serves there")):
        got, text = start(*args)
        check(got == status and says in text, f"urnicd {' '.join(args)}: status {got}: {text}, not «{says}»")


def limits():
    """What info --json calls limits stands in the text, too; all that a device has a limit of is among them."""
    row = json.loads(run(URNIC, ["info", "urn0", "--json"]).stdout)["limits"]
    text = run(URNIC, ["info", "urn0", "--verbose"]).stdout
    for name, value in row.items():
        check(re.search(rf"^ +{name} +{value}$", text, re.M), f"info --verbose: no {name} {value}")
    with open(os.path.join(ROOT, "lib/client/include/urnic/types.h"), encoding="ascii") as f:
        attr = re.search(r"struct urnic_device_attr \{.*?\n\};", f.read(), re.S).group(0)
    missing = {"num_comp_vectors", "max_msg_sz", *re.findall(r"\bmax_\w+", attr)} - set(row)
    check(not missing, f"info: without {missing}")


def prometheus():
    """The text format: a metric's type once, before its samples; its samples together; none twice. A counter's name
    ends in _total, and no other's does."""
    r = run(URNIC, ["stat", "--prometheus", "--qps"])
    check(r.returncode == 0, f"stat --prometheus: {r.stderr}")
    metric, types, samples = None, {}, set()
    for line in r.stdout.splitlines():
        m = re.fullmatch(r"# TYPE (urnic_[a-z0-9_]+) (counter|gauge)", line)
        if m:
            metric = m.group(1)
            check(metric not in types, f"stat --prometheus: {metric} comes twice")
            types[metric] = m.group(2)
            check(metric.endswith("_total") == (m.group(2) == "counter"), f"stat --prometheus: {line}")
            continue
        m = re.fullmatch(r'(urnic_[a-z0-9_]+)(\{device="[a-z0-9]+"(?:,qpn="[0-9]+")?\}) [0-9]+', line)
        check(m and m.group(1) == metric, f"stat --prometheus: {line} stands under {metric}")
        check(line.split()[0] not in samples, f"stat --prometheus: {line} comes twice")
        samples.add(line.split()[0])
    for device in ("urn0", "urn1"):
        check(f'urnic_tx_packets_total{{device="{device}"}}' in samples, f"stat --prometheus: nothing of {device}")
    check((types.get("urnic_tx_packets_total"), types.get("urnic_qps")) == ("counter", "gauge"),
          "stat --prometheus: types")


def ends():
    """Client and server print JSON, too."""
    for server, client in (("rping", "rping --count 3 10.0.0.2"), ("ucmatose", "ucmatose 10.0.0.2"),
                           ("serve --once 1", "copy file 10.0.0.2:copied")):
        listening = subprocess.Popen([URNIC, *server.split(), "--device", "urn1", "--json"], cwd=DATA,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True)
        listening.stderr.readline()
        name, *rest = client.split()
        r = run(URNIC, [name, "--device", "urn0", "--json", *rest])
        check(r.returncode == 0 and isinstance(json.loads(r.stdout), dict), f"{client}: {r.stdout} {r.stderr}")
        out, err = listening.communicate(timeout=30)
        check(listening.returncode == 0 and isinstance(json.loads(out), dict), f"{server}: {out} {err}")


def short_file():
    """A file that ends before its size, as those of sysfs do, is not a failure of the connection."""
    folder, name = "/sys/devices/system/cpu", "online"
    for served, paths in (DATA, [os.path.join(folder, name), "10.0.0.2:short"]), (folder, ["10.0.0.2:" + name, "short"]):
        with subprocess.Popen([URNIC, "serve", "--device", "urn1", "--dir", served], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            server.stdout.readline()
            r = run(URNIC, ["copy", "--quiet", "--device", "urn0", *paths])
            check(r.returncode == 1 and "No data available" in r.stderr, f"copy {paths}: {r.returncode} {r.stderr}")
            server.terminate()


def prints_json(what, r):
    """An object on each line, and one at least."""
    try:
        good = all(isinstance(json.loads(line), dict) for line in r.stdout.splitlines() or [""])
    except ValueError:
        good = False
    check(good, f"{what}: {r.stdout} {r.stderr}")


def foreign_names():
    """What isn't UTF-8 is no reason to print no JSON, and what another host says can't steer the terminal."""
    r = run(URNIC, ["doctor", "--json", b"dpdk:net_af_packet0,iface=\xff"])
    prints_json("doctor", r)
    with open(SCENARIO, "rb") as f, open(os.path.join(os.fsencode(DATA), b"\xff.sim"), "wb") as copy:
        copy.write(re.sub(rb"(?m)^title .*", b"title \xff < & \x01", f.read()))
    prints_json("sim", run(URNIC, ["sim", "-q", "--json", b"\xff.sim"]))
    r = run(URNIC, ["sim", "-q", "--plot", "title.svg", b"\xff.sim"])
    try:
        good = r.returncode == 0 and ET.parse(os.path.join(DATA, "title.svg"))
    except (ET.ParseError, OSError) as e:
        good = print(e)
    check(good, f"sim --plot, a title that is not UTF-8: {r.stderr}")
    prints_json("wire --suite", run(URNIC, ["wire", "--suite", "-q", "--json", "--only", "lost-request", "--client-a",
                                            "true", b"mem:\xff", b"mem:\xff"]))
    other = {"URNIC_SOCKET": os.path.join(DATA, "foreign")}
    status = subprocess.call([URNICD, "--port", b"memif:\xff,role=client", "--addr", "10.0.0.1/24"], cwd=DATA,
                             env=dict(os.environ, **other), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, timeout=30)
    check(status == 0, f"a port with a foreign name: status {status}")
    prints_json("info", run(URNIC, ["info", "--json"], **other))
    run(URNICD, ["--stop"], **other)
    for options, name, says in (["--json"], b"\xff", None), ([], b"a\x1b[2Jb", "received a?[2Jb"):
        listening = subprocess.Popen([URNIC, "serve", "--once", "1", "--device", "urn1", *options], cwd=DATA,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        listening.stdout.readline()
        r = run(URNIC, ["copy", "--device", "urn0", "--quiet", "file", b"10.0.0.2:" + name])
        out, _ = listening.communicate(timeout=30)
        check(r.returncode == 0 and listening.returncode == 0, f"copy to {name}: {r.stderr} {out}")
        check(says in out if says else isinstance(json.loads(out.strip() or "0"), dict), f"serve, {name}: {out!r}")


def link_units():
    """The words of a port's specification are those of link, too."""
    for option in ("--loss 0.5%", "--loss 0", "--delay 20us", "--delay 2e-5", "--delay 0", "--rate 2.5G", "--rate 0"):
        r = run(URNIC, ["link", "urn0", *option.split()])
        check(r.returncode == 0, f"link {option}: {r.stderr}")


def measuring():
    """perf waits for a server that is being started, and says why a server refuses."""
    client = subprocess.Popen([URNIC, "perf", "--device", "urn0", "--size", "64", "--working-set", "64K", "--count",
                               "64", "10.0.0.2"],
                              cwd=DATA, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    said = client.stderr.readline()
    check("nobody listens at 10.0.0.2 port 7472 yet" in said, f"perf without a server: {said}")
    with subprocess.Popen([URNIC, "perf", "--server", "--device", "urn1", "--buffer", "64K"], cwd=DATA,
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        out, err = client.communicate(timeout=30)
        check(client.returncode == 0 and len(out.splitlines()) == 2, f"perf before its server: {client.returncode} {out} {err}")
        for args in (["--qps", "4"], ["--qps", "4", "--batch", "1"]):  # 10 are not a multiple of 4, 3 are less
            for count in (3, 10):
                r = run(URNIC, ["perf", "--device", "urn0", "--size", "64", "--working-set", "64", "--json", "--count",
                                str(count), *args, "10.0.0.2"])
                check(r.returncode == 0 and count <= json.loads(r.stdout)["messages"] < count + 4 * 16,
                      f"perf --count {count} {args}: {r.stdout} {r.stderr}")
        for op in ("write", "read", "send", "atomic"):
            r = run(URNIC, ["perf", "--device", "urn0", "--lat", "--op", op, "--size", "8", "--working-set", "8", "--depth",
                            "1", "--count", "50", "--json", "10.0.0.2"])
            check(r.returncode == 0 and json.loads(r.stdout)["messages"] == 50, f"perf --lat --depth 1, {op}: {r.returncode} {r.stderr}")
        r = run(URNIC, ["perf", "--device", "urn0", "--working-set", "1M", "--count", "1", "10.0.0.2"])
        check(r.returncode == 1 and "offers 65536 octets, the working set has 1048576" in r.stderr,
              f"perf, more than the server's buffer: {r.returncode} {r.stderr}")
        server.terminate()
        check(server.wait(timeout=20) == 0, "perf --server, ended by a signal")


def daemon_stops(path):
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 0, f"--stop: {r.stderr}")
    check(not os.path.exists(path), "--stop: the socket is left behind")
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 1 and f"socket={path}: no urnicd serves there" in r.stderr, f"--stop: {r.stderr}")
    r = run(URNICD, ["--foreground", "--socket", os.path.join(DATA, "kept"), "--port", "mem:l", "--addr", "10.0.0.1"])
    check(r.returncode == 1 and "a file of another kind" in r.stderr, f"a file at the socket's path: {r.stderr}")
    check(os.path.exists(os.path.join(DATA, "kept")), "urnicd removed a file")


def stale_socket():
    """What a daemon that was killed has left behind is no obstacle for the next one."""
    path = os.path.join(DATA, "stale")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 1 and f"socket={path}: no urnicd serves there" in r.stderr, f"--stop, a stale socket: {r.stderr}")
    # In the background it keeps its standard error.
    status = subprocess.call([URNICD, "--socket", path, "--port", "mem:l", "--addr", "10.0.0.1/24"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
    check(status == 0, f"a stale socket: status {status}")
    r = run(URNIC, ["--socket", path, "info"])
    check(r.returncode == 0, f"behind a stale socket: {r.stderr}")
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 0 and not os.path.exists(path), f"--stop, behind a stale socket: {r.stderr}")


def served_by(path):
    """The process that listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(path)
        return struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def background():
    """A daemon in the background keeps no folder busy, and still knows its relative paths: the client's side of
    memif finds the server that comes later, and what a server made is gone when it ends."""
    ends = {name: os.path.join(DATA, name) for name in ("late", "early")}
    for name, role, address in (("early", "client", "10.0.1.1"), ("late", "server", "10.0.1.2")):
        status = subprocess.call([URNICD, "--socket", name, "--port", f"memif:m,role={role}", "--addr", address + "/24"],
                                 cwd=DATA, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, timeout=30)
        check(status == 0, f"urnicd --socket {name}: status {status}")
        where = ""
        for _ in range(100):  # it is told that it may leave, and leaves
            where = os.readlink(f"/proc/{served_by(ends[name])}/cwd")
            if where == "/":
                break
            time.sleep(0.05)
        check(where == "/", f"urnicd in the background, from {DATA}: works in {where}")
    for _ in range(200):
        if '"state":"active"' in run(URNIC, ["--socket", ends["early"], "info", "--json"]).stdout:
            break
        time.sleep(0.05)
    else:
        check(False, "memif: a client with a relative path does not find its server")
    for path in ends.values():
        r = run(URNICD, ["--stop", "--socket", path])
        check(r.returncode == 0 and not os.path.exists(path), f"--stop, a relative path: {r.stderr}")
    check(not os.path.exists(os.path.join(DATA, "m")), "memif: a relative path is left behind")


def no_keys():
    """`urnic top` keeps its interval, and ends, where nobody can press a key."""
    for interval, drawn in (("0.1", True), ("60", False)):
        ours, its = os.openpty()
        with subprocess.Popen([URNIC, "top", "--interval", interval], stdin=subprocess.DEVNULL, stdout=its,
                              env=dict(os.environ, TERM="xterm")) as top:
            os.close(its)
            text, until = b"", time.monotonic() + 20
            while b"DEVICE" not in text and time.monotonic() < until:
                if select.select([ours], [], [], 0.1)[0]:
                    if not text and not drawn:  # the screen is cleared: what comes next?
                        until = time.monotonic() + 1
                    text += os.read(ours, 65536)
            top.terminate()
            check(top.wait(timeout=20) == 0, f"top -i {interval}: status {top.returncode}")
        os.close(ours)
        check(text and (b"DEVICE" in text) == drawn, f"top -i {interval}, standard input ended: {text}")


def on_terminal(args, seconds, rows=24, columns=200, term="xterm", key=b""):
    """What a command draws, and its status; `key` is pressed five times a second."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen([URNIC, *args], stdin=its, stdout=its, stderr=its, env=dict(os.environ, TERM=term)) as p:
        os.close(its)
        text, until = b"", time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                text += os.read(ours, 65536) if select.select([ours], [], [], 0.2)[0] else b""
            except OSError:  # it has ended
                break
            os.write(ours, key)
        p.terminate()
        status = p.wait(timeout=20)
    os.close(ours)
    return text, status


def screens():
    """`urnic top` draws nothing below the last row; keys don't keep it from looking; a terminal that can't say where
    to write is refused with a sentence."""
    text, status = on_terminal(["top", "--interval", "0.2"], 3, rows=3)
    check(b"urn1" in text and b"PEER" not in text and status == 0, f"top, three rows: {status} {text}")
    text, status = on_terminal(["top", "--interval", "0.5"], 5, key=b"t")
    check(b"PEER" in text and status == 0, f"top, while keys are pressed: {status} {text}")
    for term in ("dumb", "none-such"):
        text, status = on_terminal(["top"], 10, term=term)
        check(f"the terminal '{term}' has no screen".encode() in text and status == 1, f"top on {term}: {status} {text}")


def failing_bar():
    """What a copy says that fails in the middle doesn't stand behind its progress bar."""
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1100 << 10, 1100 << 10))

    with open(os.path.join(DATA, "big"), "wb") as big:
        big.truncate(5000000)
    with subprocess.Popen([URNIC, "serve", "--device", "urn1", "--dir", DATA, "--once", "1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=small_files,
                          restore_signals=False) as server:
        server.stdout.readline()
        text, status = on_terminal(["copy", "--device", "urn0", os.path.join(DATA, "big"), "10.0.0.2:cut"], 20)
        server.communicate(timeout=20)
    check(b"WRITE [" in text and b"\nurnic copy: the other side says: writing the file" in text and status == 1,
          f"copy, the server's file is too large: {status} {text}")


def stopped_bar():
    """The bar of a replay that Ctrl-C stops stays where it is; a line says why there is no more."""
    path = os.path.join(DATA, "long.pcap")
    with open(os.path.join(ROOT, "pcaps", "atomic-lat.pcap"), "rb") as f:
        once = f.read()
    with open(path, "wb") as f:
        f.write(once + once[24:] * ((40 << 20) // len(once)))
    ours, its = os.openpty()
    with subprocess.Popen([URNIC, "replay", path], stdin=its, stdout=its, stderr=its) as p:
        os.close(its)
        text, until, stopped = b"", time.monotonic() + 60, False
        while time.monotonic() < until:
            try:
                text += os.read(ours, 65536) if select.select([ours], [], [], 0.2)[0] else b""
            except OSError:  # it has ended
                break
            if b"comparing [" in text and not stopped:
                p.send_signal(signal.SIGINT)
                stopped = True
        status = p.wait(timeout=20)
    os.close(ours)
    check(status == 0 or (b"100%  " not in text.partition(b"comparing [")[2]
                          and b"long.pcap: stopped before its end" in text and status == 2),
          f"a replay that is stopped: {status} {text[-300:]}")


def main():
    global DATA
    with tempfile.TemporaryDirectory(prefix="urnic-cli-") as DATA:
        for name, text in (("file", "no capture, no scenario\n"), ("empty", ""), ("kept", "kept"), ("zero", "\0")):
            with open(os.path.join(DATA, name), "w", encoding="ascii") as f:
                f.write(text)
        path = os.path.join(DATA, "sock")
        os.environ["URNIC_SOCKET"] = path
        with subprocess.Popen([URNICD, "--foreground", "--socket", path, "--log-level", "warn", "--port", "mem:l",
                               "--addr", "10.0.0.1/24", "--port", "mem:l", "--addr", "10.0.0.2/24"]) as daemon:
            try:
                for _ in range(300):
                    if run(URNIC, ["info"]).returncode == 0:
                        break
                    time.sleep(0.05)
                rule_table()
                suite_cases()
                wrong_input()
                doctor()
                full_disk()
                full_file()
                manuals()
                with_daemon()
                no_start()
                limits()
                prometheus()
                ends()
                short_file()
                foreign_names()
                link_units()
                measuring()
                no_keys()
                screens()
                failing_bar()
                stopped_bar()
                daemon_stops(path)
                stale_socket()
                background()
                check(daemon.wait(timeout=20) == 0, "the daemon's status")
            finally:
                if daemon.poll() is None:
                    daemon.kill()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
