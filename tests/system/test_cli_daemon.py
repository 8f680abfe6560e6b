#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicd's own command line: reasons not to start, ways to stop, and the files that it leaves."""
import atexit
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time

from cli_rig import DATA, SOCKET, URNIC, URNICD, check, run, test_all


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
            (["--port", "nosuch:1", *device], 2, "there are mem, pcap, memif, udp, dpdk"),
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


def daemon_stops():
    r = run(URNICD, ["--stop", "--socket", SOCKET])
    check(r.returncode == 0, f"--stop: {r.stderr}")
    check(not os.path.exists(SOCKET), "--stop: the socket is left behind")
    r = run(URNICD, ["--stop", "--socket", SOCKET])
    check(r.returncode == 1 and f"socket={SOCKET}: no urnicd serves there" in r.stderr, f"--stop: {r.stderr}")
    r = run(URNICD, ["--foreground", "--socket", os.path.join(DATA, "kept"), "--port", "mem:l", "--addr", "10.0.0.1"])
    check(r.returncode == 1 and "a file of another kind" in r.stderr, f"a file at the socket's path: {r.stderr}")
    check(os.path.exists(os.path.join(DATA, "kept")), "urnicd removed a file")


def stale_socket():
    """The files of a killed daemon are no obstacle for the next one."""
    path = os.path.join(DATA, "stale")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(path)
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 1 and f"socket={path}: no urnicd serves there" in r.stderr, f"--stop, a stale socket: {r.stderr}")
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


def serve(path):
    """A daemon in the foreground; it may not serve yet."""
    d = subprocess.Popen([URNICD, "--foreground", "--socket", path, "--log-level", "error", "--port", "mem:l", "--addr",
                          "10.0.0.1/24"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    atexit.register(d.kill)
    return d


def await_socket(path):
    for _ in range(300):
        if os.path.exists(path):
            return
        time.sleep(0.05)


def others_socket():
    """Another program's socket is left alone."""
    path = os.path.join(DATA, "others")
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.bind(path)
            if kind == socket.SOCK_STREAM:
                s.listen()
            before = os.stat(path).st_ino
            d = serve(path)
            text = d.communicate(timeout=30)[1]
            check(d.returncode == 1 and "another program serves there" in text,
                  f"another program's socket: {d.returncode}: {text}")
            check(os.stat(path).st_ino == before, "another program's socket was replaced")
            r = run(URNICD, ["--stop", "--socket", path])
            check(r.returncode == 1 and "no urnicd serves there" in r.stderr, f"--stop, another program: {r.stderr}")
        os.unlink(path)


def own_socket():
    """A daemon removes its own socket, not that of a successor."""
    path = os.path.join(DATA, "own")
    first = serve(path)
    await_socket(path)
    os.unlink(path)
    second = serve(path)
    await_socket(path)
    first.terminate()
    check(first.wait(timeout=20) == 0 and os.path.exists(path), "a daemon removed another one's socket")
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 0 and second.wait(timeout=20) == 0, f"--stop, in the place of another: {r.stderr}")
    check(not os.path.exists(path), "a daemon left its socket behind")


def at_once():
    """Of several that are started at the same moment one serves, and the others say that it does."""
    path = os.path.join(DATA, "at-once")
    for _ in range(8):
        daemons = [serve(path) for _ in range(4)]
        until = time.monotonic() + 20
        while sum(d.poll() is None for d in daemons) > 1 and time.monotonic() < until:
            time.sleep(0.01)
        alive = [d for d in daemons if d.poll() is None]
        check(len(alive) == 1, f"{len(alive)} daemons serve at one path")
        await_socket(path)
        check(os.path.exists(path) and served_by(path) == alive[0].pid, "the daemon is not the one at its path")
        for d in daemons:
            d.terminate()
            text = d.communicate(timeout=20)[1]
            check(d in alive or "another urnicd serves there" in text, f"started at once: {text}")


def halted():
    """A halted daemon, with the maximal number of waiting clients, is noticed; and no client waits for ever."""
    path = os.path.join(DATA, "halted")
    d = serve(path)
    await_socket(path)
    d.send_signal(signal.SIGSTOP)
    waiting = []
    try:
        while len(waiting) < 1000:
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            waiting[-1].setblocking(False)
            waiting[-1].connect(path)
    except BlockingIOError:
        pass
    r = run(URNICD, ["--foreground", "--socket", path, "--port", "mem:l", "--addr", "10.0.0.1/24"])
    check(r.returncode == 1 and "another urnicd serves there" in r.stderr, f"beside one that was halted: {r.stderr}")
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 1 and "takes no connection" in r.stderr, f"--stop, of one that was halted: {r.stderr}")
    for s in waiting:
        s.close()
    d.send_signal(signal.SIGCONT)
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 0 and d.wait(timeout=20) == 0, f"--stop, of one that goes on: {r.stderr}")


def two_signals():
    """Signals at once, as timeout(1) sends two, mean one; a later one ends a program that still waits for the daemon."""
    path = os.path.join(DATA, "signals")
    d = serve(path)
    await_socket(path)

    def capture():
        c = subprocess.Popen([URNIC, "--socket", path, "capture", os.path.join(DATA, "signals.pcapng")],
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        atexit.register(c.kill)
        c.stderr.readline()
        return c

    for _ in range(10):
        c = capture()
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            c.send_signal(number)
        text = c.communicate(timeout=20)[1]
        check(c.returncode == 0 and "frames" in text, f"a capture, after three signals at once: {c.returncode}: {text}")
    c = capture()
    d.send_signal(signal.SIGSTOP)
    c.send_signal(signal.SIGINT)
    time.sleep(0.5)
    check(c.poll() is None, "a capture doesn't wait for its daemon")
    c.send_signal(signal.SIGINT)
    check(c.wait(timeout=5) == -signal.SIGINT, f"a capture, after a second signal: {c.returncode}")
    d.send_signal(signal.SIGCONT)
    r = run(URNICD, ["--stop", "--socket", path])
    check(r.returncode == 0 and d.wait(timeout=20) == 0, f"--stop, after captures were stopped: {r.stderr}")


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


LINE = r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (error|warn|info|debug) [a-z]+: .+$"


def lets_go():
    """A daemon in the background ends every pipe of the program that started it; before, it says there why it can't
    start. Its log is in a file, with the time in each line, or goes to syslog."""
    path, log = os.path.join(DATA, "free"), os.path.join(DATA, "free.log")
    ports = ["--port", "mem:l", "--addr", "10.0.0.1/24"]

    def start(*args):
        reads, writes = os.pipe()
        try:
            r = subprocess.run([URNICD, "--socket", path, *args], cwd=DATA, capture_output=True, text=True, timeout=20,
                               pass_fds=(writes,), check=False)
        except subprocess.TimeoutExpired:
            check(False, f"urnicd {' '.join(args)}: keeps its starter's output")
            return None
        finally:
            os.close(writes)
        ends = bool(select.select([reads], [], [], 5)[0])
        os.close(reads)
        check(ends, f"urnicd {' '.join(args)}: keeps a descriptor of its starter")
        return r

    def stop():
        r = run(URNICD, ["--stop", "--socket", path])
        check(r.returncode == 0, f"--stop: {r.stderr}")

    # No log is asked for: it goes to syslog. If there is none, that is said.
    r = start(*ports)
    said = "nothing listens at /dev/log" in r.stderr and "--log FILE" in r.stderr if r else True
    check(r is None or (r.returncode == 0 and r.stdout == "" and said != os.path.exists("/dev/log")),
          f"in the background: {r}")
    stop()

    # A relative path stays what it was.
    r = start(*ports, "--log", "free.log")
    check(r is None or (r.returncode == 0 and r.stdout + r.stderr == ""), f"--log: {r}")
    with open(log, encoding="utf-8") as f:
        text = f.read()
    check(text and len(re.findall(LINE, text)) == len(text.splitlines()), f"--log: lines without time: {text}")
    check("serving at" in text, f"--log: the start is not there: {text}")
    check(" cc: " not in text and len(max(text.splitlines(), key=len)) < 200, f"no congestion control is on: {text}")
    os.rename(log, log + ".1")
    os.kill(served_by(path), signal.SIGHUP)
    for _ in range(200):
        if os.path.exists(log):
            break
        time.sleep(0.05)
    stop()
    with open(log, encoding="utf-8") as f:
        text = f.read()
    check("daemon: stopping" in text and "serving" not in text, f"SIGHUP does not open the log anew: {text}")

    # Why it doesn't start is said to its starter, and in the log.
    for args, status, says in ((["--log", log, "--port", f"memif:{DATA}/none/m,role=server", *ports[2:]], 1,
                                "make its folder first"),
                               (["--foreground", "--log", log, "--port", f"memif:{DATA}/none/m,role=server", *ports[2:]],
                                1, "make its folder first"),
                               (["--log", os.path.join(DATA, "no", "log"), *ports], 2, "no/log: No such file"),
                               (["--log", "", *ports], 2, "log=: ")):
        r = start(*args)
        check(r is None or (r.returncode == status and says in r.stderr), f"urnicd {args}: {r}")
    with open(log, encoding="utf-8") as f:
        check("make its folder first" in f.read(), "why it did not start is not in the log")

    r = start("--device", "port=mem:l,addr=10.0.0.1/24,cc=dcqcn", "--log", log)
    with open(log, encoding="utf-8") as f:
        check(" cc: urn0: dcqcn:" in f.read(), "the parameters of dcqcn are not in the log")
    stop()
    # CC-31: a preset fits the link; the daemon says where it cannot.
    for rate, cc, want, warning in (
            (",rate=1G", "dcqcn:paper", "ai=1M,", None), (",rate=40G", "dcqcn:paper", "ai=40M,", None),
            (",rate=1G", "dcqcn:paper,ai=40M", "ai=40M,", "ai=1000000,hai="),
            (",rate=100M", "dcqcn:paper", "cnp_interval=10ms,", "cnp_interval=10ms is the bound"),
            ("", "dcqcn:paper", "ai=100M,", "does not tell its line rate")):
        os.unlink(log)
        start("--device", f"port=mem:l{rate},addr=10.0.0.1/24,cc={cc}", "--log", log)
        with open(log, encoding="utf-8") as f:
            text = f.read()
        warned = [line for line in text.splitlines() if "WARN" in line.upper() and " cc: " in line]
        check(want in text, f"{cc} with '{rate}' lacks {want}: {text}")
        check(bool(warned) == bool(warning) and (warning or "") in "".join(warned),
              f"{cc} with '{rate}' should warn of {warning}: {text}")
        stop()


if __name__ == "__main__":
    sys.exit(test_all(no_start, daemon_stops, stale_socket, others_socket, own_socket, at_once, halted, two_signals,
                      background, lets_go))
