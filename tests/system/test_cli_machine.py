#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicd on a machine that gives it little: what clients ask for fails, and the daemon goes on."""
import atexit
import os
import resource
import subprocess
import sys
import time

from cli_rig import DATA, URNIC, URNICD, check, run, test_all

PORTS = ["--port", "mem:l", "--addr", "10.0.0.1/24", "--port", "mem:l", "--addr", "10.0.0.2/24"]


class Daemon:
    """One that is started with these limits, a dictionary, and serves; `path` is its socket."""
    def __init__(self, limits, **how):
        self.path = os.path.join(DATA, "machine")

        def limit():
            for kind, most in limits.items():
                resource.setrlimit(kind, (most, most))
        self.process = subprocess.Popen([URNICD, "--foreground", "--socket", self.path, "--log-level", "info", *PORTS],
                                        preexec_fn=limit, stdin=subprocess.DEVNULL, **how)
        atexit.register(self.process.kill)
        for _ in range(300):
            if os.path.exists(self.path):
                break
            time.sleep(0.05)

    def client(self, *args):
        return run(URNIC, [*args, "--socket", self.path])

    def ends(self, what):
        """It does when it is told to, and as it should."""
        self.process.terminate()
        try:
            status = self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            status = "it doesn't"
            self.process.kill()
            self.process.wait()
        check(status == 0, f"{what}: the daemon's end: {status}")


def small_files():
    """Files may only be so large, and memory for clients is files: no process dies of that."""
    d = Daemon({resource.RLIMIT_FSIZE: 8 << 20}, stderr=subprocess.DEVNULL)
    r = d.client("perf", "--server", "--buffer", "64M")
    check(r.returncode == 1 and "File too large" in r.stderr, f"memory beyond the limit: {r.returncode}: {r.stderr}")
    file = os.path.join(DATA, "large.pcapng")
    server = subprocess.Popen([URNIC, "perf", "--server", "--buffer", "1M", "--device", "urn1", "--socket", d.path],
                              stdout=subprocess.DEVNULL)
    capture = subprocess.Popen([URNIC, "capture", file, "--socket", d.path], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    for _ in range(100):
        if os.path.exists(file) and os.path.getsize(file) > 0:
            break
        time.sleep(0.05)
    r = d.client("perf", "10.0.0.2", "--device", "urn0", "--count", "400")
    check(r.returncode == 0, f"traffic into a capture beyond the limit: {r.stderr}")
    capture.terminate()
    text = capture.communicate(timeout=20)[1]
    check(capture.returncode == 1, f"a capture beyond the limit: {capture.returncode}: {text}")
    server.terminate()
    server.wait(timeout=20)
    d.ends("files of 8 MiB")


def unread_log():
    """The daemon does not wait for a log without a reader; the next reader sees how many lines are missing."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    full = 0
    try:
        while True:
            full += os.write(theirs, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(theirs, True)
    d = Daemon({}, stderr=theirs)
    os.close(theirs)
    r = d.client("info")
    check(r.returncode == 0, f"while its log is full: {r.stderr}")
    left = full
    while left > 0:
        left -= len(os.read(ours, left))
    d.ends("its log is full")
    with os.fdopen(ours) as f:
        text = f.read()
    check("lines lost" in text and "stopping" in text, f"a log that is read again: {text}")


def few_descriptors():
    """A daemon without enough descriptors at the start reports it, and how to get more, for any use of them."""
    starts = 0
    for n in range(4, 64):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
        path = os.path.join(DATA, "few")
        with subprocess.Popen([URNICD, "--foreground", "--socket", path, "--log-level", "warn", *PORTS], text=True,
                              preexec_fn=limit, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as d:
            while d.poll() is None and not os.path.exists(path):
                time.sleep(0.005)
            if d.poll() is None:
                d.terminate()
                starts += 1
            text = d.communicate(timeout=20)[1]
            if d.returncode == 127:  # not even the libraries
                continue
            check(d.returncode == (1 if starts == 0 else 0), f"{n} descriptors: {d.returncode}: {text}")
            check(starts > 0 or ("Too many open files" in text and "ulimit -n" in text and "--socket" not in text
                                 and "memory" not in text), f"{n} descriptors: {text}")
    check(starts > 0, "63 descriptors are not enough")


if __name__ == "__main__":
    sys.exit(test_all(small_files, unread_log, few_descriptors))
