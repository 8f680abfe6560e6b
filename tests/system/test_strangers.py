#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What answers at the control socket is not always our daemon: for each kind of stranger urnic says what it is and
where, and liburnic's error is the one of the header.

usage: test_strangers.py URNIC
"""
import os
import socket
import subprocess
import sys
import tempfile
import threading

URNIC = os.path.abspath(sys.argv[1])
MAJOR = 20  # where it stands in the hello
failures = []


def other_version(hello):
    return hello[:MAJOR] + bytes([hello[MAJOR] + 1]) + hello[MAJOR + 1:]


# What it answers to a hello, and what urnic makes of it.
STRANGERS = {
    "another version": (other_version, ["Protocol not supported", "another version than urnic"]),
    "rubbish": (lambda hello: b"\x5a" * 300, ["Protocol error", "is no urnicd"]),
    "a short answer": (lambda hello: b"no", ["Protocol error", "is no urnicd"]),
    "hangs up": (lambda hello: b"", ["No such device", "is no urnicd"]),
}


def serve(listening, answer):
    while True:
        try:
            conn, _ = listening.accept()
        except OSError:
            return  # closed: the end
        with conn:
            hello = conn.recv(4096)
            if hello and answer(hello):
                conn.send(answer(hello))


def ask(what, path, expected):
    r = subprocess.run([URNIC, "--socket", path, "info"], capture_output=True, text=True, timeout=30)
    if r.returncode == 0 or any(text not in r.stderr for text in expected):
        failures.append(what)
        print(f"FAIL: {what}: status {r.returncode}\n{r.stderr}lacks one of {expected}")


with tempfile.TemporaryDirectory(prefix="urnic-test-") as folder:
    for number, (what, (answer, expected)) in enumerate(STRANGERS.items()):
        path = f"{folder}/{number}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(path)
            listening.listen(8)
            threading.Thread(target=serve, args=(listening, answer), daemon=True).start()
            ask(what, path, expected + [path])
            listening.shutdown(socket.SHUT_RDWR)
    ask("nobody", f"{folder}/nobody", ["No such device", f"No urnicd serves at {folder}/nobody"])
    ask("a long path", f"{folder}/{'x' * 120}", ["File name too long", "at most 107 octets"])
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
