#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ports by DPDK's virtual drivers, in a network namespace: which specifications urnicd serves, what it says of the
others, that urnic doctor agrees, a gateway outside of the host's prefix, VLANs, the driver's log, and a plugin of
another build.

    test_dpdk_ports.py URNICD URNIC          (as root, with DPDK; else skipped)
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

URNICD, URNIC = sys.argv[1], sys.argv[2]
DIR = tempfile.mkdtemp(prefix="urnic-ports-")
NS = f"urnic-po{os.getpid()}"
failed = []
started = []  # every process: none outlives the test


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def call(*command, timeout=60):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)


def ip(*words):
    return call("ip", "-n", NS, *words).returncode == 0


def in_ns(*command):
    return ["ip", "netns", "exec", NS, *command]


def log(name):
    with open(f"{DIR}/{name}.log", encoding="utf-8") as f:
        return f.read()


def daemon(name, *args, seconds=10):
    """urnicd at the socket DIR/name. Returns it once it serves or has ended."""
    path = f"{DIR}/{name}"
    with open(f"{DIR}/{name}.log", "w", encoding="utf-8") as out:
        p = subprocess.Popen(in_ns(URNICD, "--foreground", "--socket", path, *args), stdin=subprocess.DEVNULL,
                             stdout=out, stderr=out)
    started.append(p)
    end = time.monotonic() + seconds
    while not os.path.exists(path) and p.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    return p


def stop(p):
    p.terminate()
    try:
        return p.wait(20)
    except subprocess.TimeoutExpired:
        p.kill()
        return p.wait()


def doctor(spec):
    """Its exit status, and all that it says."""
    r = call(*in_ns(URNIC, "--socket", f"{DIR}/none", "doctor", "dpdk:" + spec))
    return r.returncode, r.stdout + r.stderr


def down_interface():
    """An interface that is down is brought up by urnicd, and left alone by doctor."""
    ip("link", "set", "v0", "down")
    said = doctor("net_af_packet0,iface=v0")
    check(said[0] == 0 and "urnicd brings it up" in said[1], f"doctor and an interface that is down {said}")
    flags = call(*in_ns("cat", "/sys/class/net/v0/flags")).stdout
    check(int(flags, 16) & 1 == 0, f"which is still down {flags}")
    p = daemon("down", "--port", "dpdk:net_af_packet0,iface=v0", "--addr", "10.9.9.1/24")
    check(p.poll() is None and stop(p) == 0, "urnicd serves it")


def gateway_outside():
    """Some clouds give a host a /32 address, and a gateway that is outside of it: it is on the link."""
    device = "port=dpdk:net_af_packet0,iface=v0,addr=10.128.0.2/32,gw=10.128.0.1"
    host = daemon("host", "--device", device)
    far = daemon("far", "--port", "dpdk:net_af_packet0,iface=v1", "--addr", "10.128.0.1/16", "--addr", "10.128.0.9/16")
    server = subprocess.Popen(in_ns(URNIC, "--socket", f"{DIR}/far", "perf", "--server"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    started.append(server)
    time.sleep(0.3)
    r = call(*in_ns(URNIC, "--socket", f"{DIR}/host", "perf", "10.128.0.9", "--time", "1"))
    check(r.returncode == 0, f"WRITEs by a gateway outside of the prefix {r.stderr}")
    stop(server)
    check(stop(host) == 0 and stop(far) == 0, "both daemons end with status 0")


def specifications():
    """What each driver is told, and what is said of what it can't be told."""
    serves = (f"net_vhost0,iface={DIR}/a-path-longer-than-the-name-of-an-interface",
              "net_failsafe0,dev(net_af_packet0,iface=v0),dev(net_af_packet1,iface=v1)",
              "net_failsafe1,dev(net_ring0)",  # its interrupts fail late, half started
              "net_ring1", "net_null0")
    for i, spec in enumerate(serves):
        p = daemon(f"s{i}", "--port", "dpdk:" + spec, "--addr", "10.9.9.1/24")
        alive = p.poll() is None
        said = [line for line in log(f"s{i}").splitlines() if re.search(r"\b(error|warn)\b", line)]
        check(alive and not said, f"{spec} is served without a complaint {said}")
        check(stop(p) == 0, "and its daemon ends with status 0")
        check(doctor(spec)[0] == 0, f"doctor is content with {spec} {doctor(spec)[1]}")
    refused = (("v0", 1, "udp:v0 uses the addresses that it has, dpdk:net_af_packet0,iface=v0 others"), ("net_afpacket0,iface=v0", 1, "DPDK has no driver of that name"),
               ("net_bonding0,mode=1,slave=net_af_packet0", 1, "Invalid slave port"), ("0000:fe:1f.0", 1, "no PCI device"),
               ("net_af_packet0,iface=v0,framez=2048", 2, "did you mean framesz?"),
               ("net_af_packet0,iface=t0", 1, "carries no Ethernet frames"),
               ("net_af_packet0,iface=nowhere", 1, "no interface"))
    for i, (spec, status, why) in enumerate(refused):
        p = daemon(f"r{i}", "--port", "dpdk:" + spec, "--addr", "10.9.9.1/24")
        check(stop(p) == status and why in log(f"r{i}"), f"{spec}: {why} {log(f'r{i}')}")
        said = doctor(spec)
        check(said[0] == status and why in said[1], f"doctor says so, too {said}")


TAGS = """
import socket, struct, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("v1", 0))
s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA: the kernel takes the tag out of the frame
s.settimeout(0.2)
print("ready", flush=True)
end, tags = time.monotonic() + 60, {}
while time.monotonic() < end and sum(tags.values()) < 100:
    try:
        data, more, _, at = s.recvmsg(128, 128)
    except TimeoutError:
        continue
    if at[2] == 4 or data[23:24] != bytes([17]) or data[36:38] != (4791).to_bytes(2, "big"):
        continue
    tci = [struct.unpack("3I4H", d[:20])[5] & 0xFFF for level, kind, d in more if (level, kind) == (263, 8)]
    tags[tci[0]] = tags.get(tci[0], 0) + 1
print(tags)
"""


def vlan():
    """Tagged frames over veth, for which the kernel needs no VLAN of its own."""
    device = "port=dpdk:net_af_packet0,iface={},addr={}/24{}"
    near = daemon("vlan-a", "--device", device.format("v0", "10.7.0.1", ",vlan=7"))
    far = daemon("vlan-b", "--device", device.format("v1", "10.7.0.2", ",vlan=7"))
    server = subprocess.Popen(in_ns(URNIC, "--socket", f"{DIR}/vlan-b", "perf", "--server"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    seen = subprocess.Popen(in_ns(sys.executable, "-c", TAGS), stdout=subprocess.PIPE, text=True)
    started.extend((server, seen))
    seen.stdout.readline()
    time.sleep(0.3)
    r = call(*in_ns(URNIC, "--socket", f"{DIR}/vlan-a", "perf", "10.7.0.2", "--time", "1"))
    check(r.returncode == 0, f"WRITEs in a VLAN {r.stderr}")
    try:
        tags = seen.communicate(timeout=30)[0].strip()
    except subprocess.TimeoutExpired:
        tags = "too few packets"
    check(tags == "{7: 100}", f"each packet has the tag: {tags}")
    stop(server)
    stop(far)
    far = daemon("vlan-c", "--device", device.format("v1", "10.7.0.2", ""))
    r = call(*in_ns(URNIC, "--socket", f"{DIR}/vlan-a", "perf", "10.7.0.2", "--time", "1"))
    check(r.returncode != 0, "a device without the VLAN is not reached")
    check(stop(near) == 0 and stop(far) == 0, "both daemons end with status 0")


LINE = r"\d{4}-\d\d-\d\dT[\d:.]{12}Z "


def background(name, prepare, *args):
    """urnicd in the background on an interface that is then removed, after `prepare`, words of a shell."""
    ip("link", "add", "v2", "type", "veth", "peer", "name", "v3")
    ip("link", "set", "v2", "up")
    ip("link", "set", "v3", "up")
    r = call(*in_ns("sh", "-c", prepare + 'exec "$@"', "sh", URNICD, "--socket", f"{DIR}/{name}", "--port",
                    "dpdk:net_af_packet0,iface=v2", "--addr", "10.9.9.1/24", *args))
    check(r.returncode == 0 and r.stdout == "" and r.stderr == "", f"urnicd in the background {r}")
    ip("link", "del", "v2")


def logs():
    """What the driver says while the port is open is in the daemon's own log, wherever that is."""
    said = []

    def heard(more):
        end = time.monotonic() + 10
        while not any("interface v2 is gone" in line for line in said) and time.monotonic() < end:
            time.sleep(0.05)
            said.extend(more())
        return [line for line in said if "interface v2 is gone" in line][:1]

    background("file", "", "--log", f"{DIR}/file.log")
    lines = heard(lambda: log("file").splitlines())
    check(lines and re.match(LINE + "warn dpdk: net_af_packet0: interface v2 is gone", lines[0]), f"in a file: {lines}")
    call(*in_ns(URNICD, "--stop", "--socket", f"{DIR}/file"))

    said.clear()
    os.makedirs(f"{DIR}/dev")
    for name in ("null", "zero", "urandom", "random"):
        with open(f"{DIR}/dev/{name}", "w", encoding="utf-8"):
            pass
    syslog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    syslog.bind(f"{DIR}/dev/log")

    def received():
        try:
            return [syslog.recv(2048).decode()]
        except BlockingIOError:
            return []

    background("syslog", f"for i in null zero urandom random; do mount --bind /dev/$i {DIR}/dev/$i || exit 9; done; "
                         f"mount --rbind {DIR}/dev /dev || exit 9; ")
    lines = heard(received)
    check(lines and re.search(r"^<28>.*urnicd\[\d+\]: warn dpdk: ", lines[0]), f"in syslog: {lines}")
    call(*in_ns(URNICD, "--stop", "--socket", f"{DIR}/syslog"))
    syslog.close()


def other_plugin():
    """A plugin that was built with another driver interface is refused, and so is a library that is none of ours."""
    plugin = os.path.join(os.path.dirname(URNICD), "../../drivers/dpdk/liburnic-dpdk.so")
    with open(plugin, "rb") as f:
        code = f.read()
    abi = re.findall(rb"\0(io-[0-9a-f]{16})\0", code)
    check(len(abi) == 1, f"the plugin says which interface it has {abi}")
    os.makedirs(f"{DIR}/other-build")
    os.environ["URNIC_PLUGIN_DIR"] = f"{DIR}/other-build"
    for what, other in (("io-0000000000000000", code.replace(abi[0], b"io-0000000000000000")),
                        ("an older one", code.replace(b"io_dpdk_abi", b"io_dpdk_xyz"))):
        with open(f"{DIR}/other-build/liburnic-dpdk.so", "wb") as f:
            f.write(other)
        p = daemon("plugin", "--port", "dpdk:net_af_packet0,iface=v0", "--addr", "10.9.9.1/24")
        why = ("another version of urnic than this program", what, "URNIC_PLUGIN_DIR")
        check(stop(p) == 1 and all(w in log("plugin") for w in why), f"a plugin that does not fit: {log('plugin')}")
        said = doctor("net_af_packet0,iface=v0")
        check(said[0] == 1 and why[0] in said[1], f"doctor says so, too {said}")
    del os.environ["URNIC_PLUGIN_DIR"]


def main():
    if os.geteuid() or call("ip", "netns", "add", NS).returncode:
        print("needs root and network namespaces: skipped")
        return 77
    if not (ip("link", "set", "lo", "up") and ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
            and ip("link", "set", "v0", "up") and ip("link", "set", "v1", "up")):
        print("no veth here: skipped")
        return 77
    ip("tuntap", "add", "t0", "mode", "tun")
    ip("link", "set", "t0", "up")
    gateway_outside()
    vlan()
    logs()
    other_plugin()
    specifications()
    down_interface()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        status = main()
    finally:
        for process in started:
            process.kill()
        call("ip", "netns", "del", NS)
        shutil.rmtree(DIR, ignore_errors=True)
    sys.exit(status)
