# SPDX-License-Identifier: BSD-3-Clause
"""For tests of udp: ports: hosts, which are network namespaces without names that end with the processes in them, and
daemons of an ordinary user in them. Needs root, which makes the hosts.

usage of such a test: test_NAME.py URNICD URNIC [WORKERS]

With WORKERS each device has so many.
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

URNICD, URNIC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WORKERS = sys.argv[3] if len(sys.argv) > 3 else None
DIR = tempfile.mkdtemp(prefix="urnic-udp-")
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all",
          "--inh-caps=-all", "--no-new-privs"]
LIBC = ctypes.CDLL(None, use_errno=True)  # os.setns is newer than Debian's Python
failed = []
hosts = {}   # name -> process that holds the namespace
started = []  # all that must end with the test


def check(ok, what):
    print(("ok   " if ok else "FAIL ") + what, flush=True)
    if not ok:
        failed.append(what)


def host(n, *command):
    return ["nsenter", "-t", str(hosts[n].pid), "-n", *command]


def call(n, *command, timeout=30, **env):
    return subprocess.run(host(n, *command), capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **env))


def ip(n, *args):
    r = call(n, "ip", *args)
    if r.returncode:
        raise RuntimeError(f"ip {' '.join(args)}: {r.stderr}")


def start(n, *command, log="/dev/null"):
    with open(log, "ab") as out:
        p = subprocess.Popen(host(n, *command), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    started.append(p)
    return p


def soon(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def urnic(n, name, *args, **kwargs):
    return call(n, *NOBODY, URNIC, *args, URNIC_SOCKET=f"{DIR}/{name}.sock", **kwargs)


def daemon(n, name, *flags):
    """An ordinary user's daemon, or what it says when it does not start."""
    log = f"{DIR}/{name}.log"
    if WORKERS and flags[0] in ("--port", "--device"):
        key = "port=" if flags[0] == "--port" else ""
        flags = ("--device", f"{key}{flags[1]},workers={WORKERS}", *flags[2:])
    before = log_of(name).count("serving at") if os.path.exists(log) else 0
    p = start(n, *NOBODY, URNICD, "--foreground", "--socket", f"{DIR}/{name}.sock", *flags, log=log)
    soon(lambda: p.poll() is not None or log_of(name).count("serving at") > before)
    return p


def log_of(name):
    with open(f"{DIR}/{name}.log", encoding="utf-8") as f:
        return f.read()


def end(p):
    p.terminate()
    p.wait()


def make_hosts(*names):
    """False: this user may not."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return False
    os.chmod(DIR, 0o777)
    for n in names:
        hosts[n] = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        started.append(hosts[n])
    own = os.readlink("/proc/self/ns/net")
    if not soon(lambda: all(os.readlink(f"/proc/{h.pid}/ns/net") != own for h in hosts.values())):
        return False
    for n in hosts:
        ip(n, "link", "set", "lo", "up")
    return True


def cable(a, at_a, b, at_b):
    """A veth pair between two hosts, with interfaces of these names."""
    ip(a, "link", "add", at_a, "mtu", "9000", "type", "veth", "peer", "name", at_b, "mtu", "9000", "netns",
       str(hosts[b].pid))


def give(n, i):
    """Host n has the addresses of number i on v0."""
    ip(n, "addr", "add", f"10.30.0.{i}/24", "dev", "v0")
    ip(n, "addr", "add", f"fd30::{i}/64", "dev", "v0", "nodad")
    ip(n, "link", "set", "v0", "up")


def serves(n, name, port):
    p = start(n, *NOBODY, "env", f"URNIC_SOCKET={DIR}/{name}.sock", URNIC, "perf", "--server", "-p", port)
    return p


def counters(n, name):
    r = urnic(n, name, "stat", "--json")
    return {k: v for line in r.stdout.splitlines() if line.strip() for k, v in flat(json.loads(line))}


def flat(o, key=""):
    if isinstance(o, dict):
        for k, v in o.items():
            yield from flat(v, k)
    elif isinstance(o, list):
        for v in o:
            yield from flat(v, key)
    else:
        yield key, o


class Sniffer(threading.Thread):
    """AF_PACKET on an interface, into a pcap file: a capture as anybody would take it."""

    def __init__(self, n, interface, path):
        super().__init__()
        self.path, self.stop, self.frames = path, False, 0
        with open(f"/proc/{hosts[n].pid}/ns/net", "rb") as theirs, open("/proc/self/ns/net", "rb") as ours:
            LIBC.setns(theirs.fileno(), 0)
            self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.s.bind((interface, 3))
            LIBC.setns(ours.fileno(), 0)
        self.s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.s.settimeout(0.2)

    def run(self):
        with open(self.path, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
            while True:
                try:
                    d = self.s.recv(1 << 18)
                except TimeoutError:
                    if self.stop:
                        break
                    continue
                t = time.time_ns()
                f.write(struct.pack("<IIII", t // 10**9, t % 10**9, len(d), len(d)) + d)
                self.frames += 1

    def done(self):
        self.stop = True
        self.join()
        self.s.close()


def run(main, logs):
    """Run main, end all started processes, print these daemons' logs if a check failed, and exit."""
    try:
        code = main()
    finally:
        for proc in reversed(started):
            if proc.poll() is None:
                proc.send_signal(signal.SIGTERM)
        for proc in reversed(started):
            try:
                proc.wait(5)
            except subprocess.TimeoutExpired:
                proc.kill()
        for name in logs if failed else ():
            if os.path.exists(f"{DIR}/{name}.log"):
                print(f"---- {name}\n" + log_of(name)[-2500:])
        shutil.rmtree(DIR, ignore_errors=True)
    print("failed: " + "; ".join(failed) if failed else "skipped" if code == 77 else "all good")
    sys.exit(code or (1 if failed else 0))
