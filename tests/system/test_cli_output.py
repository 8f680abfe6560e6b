#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the commands print and write: that it is right and whole, and what they say where it can't be."""
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

from cli_rig import CAPTURE, DATA, ROOT, SCENARIO, SCRIPT, URNIC, URNICD, check, run, test_all


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
    udp = found("udp:lo")
    check("address" in udp.get(("addresses", "good"), ""), f"doctor udp:lo: its addresses: {udp}")
    check(any(key[0] == "port" for key in udp) and any(key[0] == "buffer" for key in udp)
          and any(key[0] == "firewall" for key in udp), f"doctor udp:lo: port, buffer, firewall: {udp}")
    check("net99" in found("udp:net99").get(("interface", "missing"), ""), "doctor udp:net99")
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
    space = "No space left on device"
    part = "(" + space + "|not all of it could be written)"  # it depends on what is left to write at the end
    for text, status, why in (("lint --html /dev/full " + CAPTURE, 2, space),
                              ("drill --record /dev/full " + SCRIPT, 1, space),
                              ("sim --output /dev/full " + SCENARIO, 1, part),
                              ("sim --plot /dev/full " + SCENARIO, 1, space),
                              ("sim --chart rate/time=/dev/full " + SCENARIO, 1, space),
                              ("sim --capture host1=/dev/full " + SCENARIO, 1, space)):
        r = run(URNIC, text.split(), timeout=60)
        check(r.returncode == status and re.search("/dev/full: " + why, r.stderr), f"{text}: {r.returncode} {r.stderr}")


def full_disk():
    """When output can't be written, the tool says so and fails: on a full disk, and without a standard
    output. (The first file or socket would get its number.)"""
    for program, text in ((URNIC, "rules"), (URNIC, "rules --json"), (URNIC, "lint --rules"), (URNIC, "stat --help"),
                          (URNIC, "stat --json"), (URNIC, "lint " + CAPTURE), (URNICD, "--help"),
                          (URNICD, "--version"), (URNICD, "--check-config --port mem:l")):
        for name, prepare in (("/dev/full", lambda: None), ("&-", lambda: os.close(1))):
            with open("/dev/full", "w", encoding="ascii") as full:
                r = subprocess.run([program, *text.split()], cwd=DATA, stdin=subprocess.DEVNULL, stdout=full,
                                   stderr=subprocess.PIPE, text=True, timeout=30, preexec_fn=prepare)
            check(r.returncode == 1 and "standard output can't be written" in r.stderr,
                  f"{program} {text} >{name}: {r.returncode} {r.stderr}")


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


def traffic_class():
    """A device shows its default DSCP for queue pairs without a traffic class; in the text, if it has one."""
    for option, dscp in (",dscp=26", 26), ("", 0):
        own = {"URNIC_SOCKET": os.path.join(DATA, f"dscp{dscp}")}
        status = subprocess.call([URNICD, "--device", "port=mem:dscp,addr=10.0.0.1/24" + option], cwd=DATA,
                                 env=dict(os.environ, **own), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, timeout=30)
        check(status == 0, f"a device with a DSCP: status {status}")
        row = json.loads(run(URNIC, ["info", "--json"], **own).stdout)
        text = run(URNIC, ["info"], **own).stdout
        run(URNICD, ["--stop"], **own)
        check(row.get("dscp") == dscp, f"info --json, dscp {dscp}: {row}")
        check(re.findall(r"^    dscp        (\d+)$", text, re.M) == ([str(dscp)] if dscp else []),
              f"info, dscp {dscp}: {text}")


def scrape(*options):
    """What Prometheus gets: a metric's meaning and type once, before its samples; its samples together; none twice. A
    counter's name ends in _total, and no other's does. And what its own checker says. Types and samples."""
    r = run(URNIC, ["stat", "--prometheus", *options])
    check(r.returncode == 0, f"stat --prometheus: {r.stderr}")
    metric, told, types, samples = None, None, {}, set()
    for line in r.stdout.splitlines():
        m = re.fullmatch(r"# HELP (urnic_[a-z0-9_]+) [A-Z0-9].*\.", line)
        if m:
            told = m.group(1)
            continue
        m = re.fullmatch(r"# TYPE (urnic_[a-z0-9_]+) (counter|gauge)", line)
        if m:
            metric = m.group(1)
            check(metric not in types, f"stat --prometheus: {metric} comes twice")
            check(metric == told, f"stat --prometheus: {metric} has no HELP before it")
            types[metric] = m.group(2)
            check(metric.endswith("_total") == (m.group(2) == "counter"), f"stat --prometheus: {line}")
            continue
        m = re.fullmatch(r'(urnic_[a-z0-9_]+)(\{device="[a-z0-9]+"(?:,[a-z]+="[^"]*")*\}) [0-9.e+-]+', line)
        check(m and m.group(1) == metric, f"stat --prometheus: {line} stands under {metric}")
        check(line.rsplit(" ", 1)[0] not in samples, f"stat --prometheus: {line} comes twice")
        samples.add(line.rsplit(" ", 1)[0])
    lint = subprocess.run(["promtool", "check", "metrics"], input=r.stdout, capture_output=True, text=True, check=False)
    check(lint.returncode == 0, f"promtool check metrics, {options}: {lint.stdout}{lint.stderr}")
    return types, samples


def prometheus():
    types, samples = scrape()
    for device in ("urn0", "urn1"):
        check(f'urnic_tx_packets_total{{device="{device}"}}' in samples, f"stat --prometheus: nothing of {device}")
    check((types.get("urnic_tx_packets_total"), types.get("urnic_qps")) == ("counter", "gauge"),
          "stat --prometheus: types")
    check(not [name for name in types if name.startswith("urnic_qp_info")], "stat --prometheus: queue pairs unasked")
    # With queue pairs all that the text shows of each.
    with subprocess.Popen([URNIC, "perf", "--device", "urn1", "--server"], stdout=subprocess.DEVNULL) as server, \
            subprocess.Popen([URNIC, "perf", "--device", "urn0", "--time", "30", "10.0.0.2"],
                             stdout=subprocess.DEVNULL) as client:
        for _ in range(200):
            if "RTS" in run(URNIC, ["stat", "--qps"]).stdout:
                break
            time.sleep(0.05)
        types, samples = scrape("--qps")
        own = set(types) - set(scrape()[0])
        for process in (client, server):
            process.terminate()
    for name in ("tx_packets_total", "rx_bytes_total", "retransmits_total", "timeouts_total", "rnr_naks_total", "sq_used",
                 "inflight_packets", "cc_alpha", "info"):
        check("urnic_qp_" + name in own, f"stat --prometheus --qps: no {name} in {sorted(own)}")
    check(any(re.match(r'urnic_qp_info\{device="urn0",qpn="\d+",type="RC",state="RTS",.*comm="urnic"\}', line)
              for line in samples), "stat --prometheus --qps: no info of the queue pair")


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
    check("no server listens at 10.0.0.2 port 7472 yet" in said, f"perf without a server: {said}")
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


if __name__ == "__main__":
    sys.exit(test_all(doctor, full_disk, full_file, limits, traffic_class, prometheus, ends, short_file, foreign_names, link_units,
                      measuring))
