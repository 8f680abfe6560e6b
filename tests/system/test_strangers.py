#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What answers at the control socket is not always our daemon: for each kind of stranger urnic says what it is and
where, and liburnic's error is the one of the header. Our daemon's socket isn't there before a program answers at it.
And of a daemon that can't open one of its devices `urnic info` shows the others, and fails.

usage: test_strangers.py URNIC URNICD
"""
import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

URNIC, URNICD = map(os.path.abspath, sys.argv[1:3])
MAJOR = 20  # where it stands in the hello
HDR = "<HHIiI"  # type, flags, id, status, 0
CTX_OPEN, CAPTURE_START = 20, 115  # types
failures = []


def other_version(hello):
    return hello[:MAJOR] + bytes([hello[MAJOR] + 1]) + hello[MAJOR + 1:]


def full(_hello):
    """Our daemon, which has no room: it says so and closes, without waiting for a hello."""
    return struct.pack(HDR, 1, 1, 0, -errno.EDQUOT, 0)


# What it answers to a hello, and what urnic makes of it.
STRANGERS = {
    "another version": (other_version, ["Protocol not supported", "another version than urnic"]),
    "rubbish": (lambda hello: b"\x5a" * 300, ["Protocol error", "is no urnicd"]),
    "a short answer": (lambda hello: b"no", ["Protocol error", "is no urnicd"]),
    "hangs up": (lambda hello: b"", ["No such device", "is no urnicd"]),
    "full": (full, ["Disk quota exceeded", "no more connections"]),
}


def serve(listening, answer):
    while True:
        try:
            conn, _ = listening.accept()
        except OSError:
            return  # closed: the end
        with conn:
            hello = conn.recv(4096) if answer is not full else b"none"
            if hello and answer(hello):
                conn.send(answer(hello))


def ask(what, path, expected, command="info"):
    try:
        r = subprocess.run([URNIC, "--socket", path, command], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        failures.append(what)
        print(f"FAIL: {what}: {command} doesn't end")
        return
    if r.returncode == 0 or any(text not in r.stderr for text in expected):
        failures.append(what)
        print(f"FAIL: {what}: {command}: status {r.returncode}\n{r.stderr}lacks one of {expected}")


def refusals(path):
    """Counts refused connections while a daemon starts: the socket exists before the daemon listens."""
    daemon = subprocess.Popen([URNICD, "--foreground", "--log-level", "error", "--socket", path, "--port", "mem:l",
                               "--addr", "10.0.0.1/24"])
    refused, end = 0, time.monotonic() + 20
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            error = s.connect_ex(path)
        if error == 0:
            break
        refused += error == errno.ECONNREFUSED
    else:
        failures.append("start")
        print(f"FAIL: start: nobody answers at {path}")
    daemon.terminate()
    if daemon.wait(20) != 0 or os.listdir(os.path.dirname(path)):
        failures.append("stop")
        print(f"FAIL: stop: status {daemon.returncode}, left {os.listdir(os.path.dirname(path))}")
    return refused


def relay(client, path, device):
    """Between a client and the daemon, one message at a time; `device` is out of memory when it is opened, and the
    start of a capture isn't answered, or late."""
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
        daemon.connect(path)
        while True:
            request, fds, _, _ = socket.recv_fds(client, 16384, 4)
            if not request:
                return
            kind, _, number, _, _ = struct.unpack_from(HDR, request)
            if kind == CTX_OPEN and request[16:].startswith(device.encode() + b"\0"):
                client.send(struct.pack(HDR, kind, 1, number, -errno.ENOMEM, 0))
                continue
            if kind != CAPTURE_START or device == "late":
                socket.send_fds(daemon, [request], fds)
            for fd in fds:
                os.close(fd)
            if kind == CAPTURE_START and device != "late":
                continue
            answer, fds, _, _ = socket.recv_fds(daemon, 16384, 4)
            if kind == CAPTURE_START:
                time.sleep(0.3)
            socket.send_fds(client, [answer], fds)
            for fd in fds:
                os.close(fd)


def relays(listening, path, device):
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return  # closed: the end
        threading.Thread(target=relay, args=(client, path, device), daemon=True).start()


@contextlib.contextmanager
def relayed(path, daemon, device):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(path)
        listening.listen(8)
        threading.Thread(target=relays, args=(listening, daemon, device), daemon=True).start()
        yield
        listening.shutdown(socket.SHUT_RDWR)
    os.unlink(path)


@contextlib.contextmanager
def three_devices(own):
    devices = [a for n in (1, 2, 3) for a in ("--port", f"mem:l{n}", "--addr", f"10.0.{n}.1/24")]
    with subprocess.Popen([URNICD, "--foreground", "--log-level", "error", "--socket", own, *devices]) as daemon:
        end = time.monotonic() + 20
        while not os.path.exists(own) and time.monotonic() < end:
            time.sleep(0.02)
        try:
            yield
        finally:
            daemon.terminate()


def one_of_three(folder):
    """What could be shown is shown, what couldn't is named, and the status is that of a failure."""
    path, own = f"{folder}/relay", f"{folder}/three"
    with three_devices(own):
        for broken in ("urn0", "urn1", "urn2"):
            with relayed(path, own, broken):
                for option in ([], ["--json"]):
                    r = subprocess.run([URNIC, "--socket", path, "info", *option], capture_output=True, text=True,
                                       timeout=30)
                    shown = [d for d in ("urn0", "urn1", "urn2") if d in r.stdout]
                    if (r.returncode != 1 or shown != [d for d in ("urn0", "urn1", "urn2") if d != broken]
                            or f"urnic info: {broken}: Cannot allocate memory" not in r.stderr):
                        failures.append(broken)
                        print(f"FAIL: {broken} can't be opened: status {r.returncode}, shown {shown}\n{r.stderr}")


def interrupted(folder):
    """A client that waits for a capture's start may stop waiting."""
    path, own = f"{folder}/relay", f"{folder}/three"
    with three_devices(own), relayed(path, own, "none"):
        with subprocess.Popen([URNIC, "--socket", path, "capture", f"{folder}/frames"], stderr=subprocess.PIPE,
                              text=True) as capture:
            end = time.monotonic() + 5
            while not os.path.exists(f"{folder}/frames") and time.monotonic() < end:
                time.sleep(0.02)
            time.sleep(0.2)
            capture.send_signal(signal.SIGINT)
            start = time.monotonic()
            text = capture.communicate(timeout=30)[1]
            if (capture.returncode != 1 or time.monotonic() - start > 5
                    or f"capturing urn0 into {folder}/frames: Interrupted" not in text):
                failures.append("interrupted")
                print(f"FAIL: a capture interrupted: status {capture.returncode}\n{text}")


def started(folder):
    """A client that ends a capture just as it starts gets the file, though the report of the start is late."""
    path, own = f"{folder}/relay", f"{folder}/three"
    with three_devices(own), relayed(path, own, "late"):
        with subprocess.Popen([URNIC, "--socket", path, "capture", f"{folder}/few"], stderr=subprocess.PIPE,
                              text=True) as capture:
            end = time.monotonic() + 5
            while not os.path.exists(f"{folder}/few") and time.monotonic() < end:
                time.sleep(0.001)
            time.sleep(0.1)
            capture.send_signal(signal.SIGTERM)
            text = capture.communicate(timeout=30)[1]
            if capture.returncode != 0 or "0 frames, 0 B, 0 not written" not in text:
                failures.append("started")
                print(f"FAIL: a capture ended as it began: status {capture.returncode}\n{text}")


def hanging(folder):
    """A file that takes nothing isn't waited for without end, and delays no other client."""
    path, own = f"{folder}/relay", f"{folder}/three"
    with three_devices(own), relayed(path, own, "none"):
        r = subprocess.run([URNIC, "--socket", path, "capture", f"{folder}/hangs"], capture_output=True, text=True,
                           timeout=60)
        expected = f"urnic capture: capturing urn0 into {folder}/hangs: the file takes nothing\n"
        if r.returncode != 1 or r.stderr != expected:
            failures.append("hanging")
            print(f"FAIL: a file that hangs: status {r.returncode}\n{r.stderr}")


def silent(folder):
    """One that is too busy, or hangs, is not waited for without end: also when it doesn't even take connections."""
    asking = []
    with contextlib.ExitStack() as sockets:
        for room in (8, 0):  # for callers other than the one that waits
            path = f"{folder}/silent{room}"
            listening, waiting = (sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                                  for _ in range(2))
            listening.bind(path)
            listening.listen(room)
            waiting.connect(path)
            expected = [f"Connection timed out\n  The urnicd at {path} doesn't answer."]
            asking.append(threading.Thread(target=ask, args=("silent", path, expected, "stat")))
            asking[-1].start()
        start = time.monotonic()
        for thread in asking:
            thread.join()
        if time.monotonic() - start > 15:  # ten seconds, and a moment to say so
            failures.append("silent")
            print(f"FAIL: silent: {time.monotonic() - start:.1f} s")


def ending(folder):
    """A daemon that ends while it is asked: it is gone, not a stranger, and its path is what is said."""
    for command in ("info", "stat"):
        path = f"{folder}/urnicd.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(path)
            listening.listen(8)

            def end(listening, path):
                listening.accept()[0].close()
                again = listening.accept()[0]  # why did that go wrong?
                os.unlink(path)
                again.close()

            threading.Thread(target=end, args=(listening, path), daemon=True).start()
            ask("ending", path, [f"No urnicd serves at {path}"], command)


with tempfile.TemporaryDirectory(prefix="urnic-test-") as folder:
    for length in (4, 103, 104, 107):  # the longest one that has room for another name beside it; and the longest
        name = "/s".ljust(length - len(folder), "x") if length > len(folder) else "/s"
        starts = [refusals(folder + name) for _ in range(10)] if length < 104 else [refusals(folder + name)]
        if length < 104 and any(starts):
            failures.append("early")
            print(f"FAIL: {sum(n > 0 for n in starts)} of 10 starts refused a connection")
    for number, (what, (answer, expected)) in enumerate(STRANGERS.items()):
        path = f"{folder}/{number}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(path)
            listening.listen(8)
            threading.Thread(target=serve, args=(listening, answer), daemon=True).start()
            ask(what, path, expected + [path])
            ask(what, path, expected[1:] + [path], "stat")  # which speaks without liburnic
            listening.shutdown(socket.SHUT_RDWR)
    ending(folder)
    one_of_three(folder)
    interrupted(folder)
    started(folder)
    hung = threading.Thread(target=hanging, args=(folder,))
    hung.start()
    silent(folder)
    hung.join()
    ask("nobody", f"{folder}/nobody", ["no daemon runs", f"No urnicd serves at {folder}/nobody"])
    ask("a long path", f"{folder}/{'x' * 120}", ["File name too long", "at most 107 octets"])
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
