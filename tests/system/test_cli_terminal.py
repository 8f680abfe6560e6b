#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the commands draw on a terminal: the screen of top, and bars that show how far something is."""
import fcntl
import os
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from cli_rig import DATA, ROOT, URNIC, check, test_all


def no_keys():
    """`urnic top` keeps its interval, and ends, where no key can be pressed."""
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
    # At 60 columns every column is there, with short units; and a key tells the keys.
    with subprocess.Popen([URNIC, "perf", "--device", "urn1", "--server"], stdout=subprocess.DEVNULL) as server, \
            subprocess.Popen([URNIC, "perf", "--device", "urn0", "--time", "30", "10.0.0.2"],
                             stdout=subprocess.DEVNULL) as client:
        text, status = on_terminal(["top", "--interval", "0.5"], 4, columns=60)
        for process in (client, server):
            process.terminate()
    for head in (b"DEVICE     TX/s RX/s   TX   RX DROP RETR  QPS", b"QP     DEV  TY ST  PEER     TX   RX RETR FLT   CC ALP PROC"):
        check(head in text and status == 0, f"top at 60 columns: no {head}: {status} {text}")
    check(re.search(rb"[0-9a-f]{6} urn0 RC RTS .* urnic", text), f"top at 60 columns, a queue pair: {text}")
    text, status = on_terminal(["top", "--interval", "0.5"], 4, columns=60, key=b"h")
    check(b"by receiving" in text and b"h: help" in text and status == 0, f"top, the help key: {status} {text}")
    for term in ("dumb", "none-such"):
        text, status = on_terminal(["top"], 10, term=term)
        check(f"the terminal '{term}' has no screen".encode() in text and status == 1, f"top on {term}: {status} {text}")


def failing_bar():
    """The message of a copy that fails in the middle is on a line of its own, not after its progress bar."""
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


if __name__ == "__main__":
    sys.exit(test_all(no_keys, screens, failing_bar, stopped_bar))
