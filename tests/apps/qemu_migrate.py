#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One end of a live migration of QEMU by RDMA.

    qemu_migrate.py incoming|outgoing ADDRESS PORT GUEST CONSOLE [pin-all]

Both ends start a QEMU without any image: GUEST (qemu_guest.c, built) is its kernel, and its serial console is the file
CONSOLE. The outgoing one lets it run for a while and migrates it; the incoming one waits for it and lets it go on for
a while. Exit status 0 when the migration has completed and the guest runs, 1 otherwise.
"""
import json
import re
import socket
import subprocess
import sys
import time

ROUNDS = 20
SECONDS = 40


class Qemu:
    def __init__(self, guest, console, *words):
        ours, its = socket.socketpair()  # its standard output has what its RDMA code says
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-machine",
                   "pc", "-accel", "tcg", "-m", "64", "-kernel", guest, "-serial", f"file:{console}", "-chardev",
                   f"socket,id=qmp,fd={its.fileno()}", "-mon", "chardev=qmp,mode=control", *words]
        self.console = console
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
        its.close()
        self.qmp = ours.makefile("rw", encoding="utf-8")
        self.read()  # its greeting
        self.ask("qmp_capabilities")

    def read(self):
        line = self.qmp.readline()
        if not line:
            sys.exit(f"qemu_migrate: QEMU has ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, command, **arguments):
        self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while True:
            reply = self.read()
            if "error" in reply:
                sys.exit(f"qemu_migrate: {command}: {reply['error']['desc']}")
            if "return" in reply:
                return reply["return"]

    def rounds(self):
        """Of the guest, as its console tells them."""
        with open(self.console, encoding="ascii", errors="replace") as f:
            text = f.read()
        if "WRONG" in text:
            sys.exit("qemu_migrate: the guest says: " + text[-100:])
        return [int(n) for n in re.findall(r"^round (\d+) right\n", text, re.M)]

    def wait(self, what, condition):
        end = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > end:
                sys.exit(f"qemu_migrate: {what}: not within {SECONDS} s")
            time.sleep(0.1)

    def migrated(self):
        """Has it all been sent? What fails ends this program."""
        info = self.ask("query-migrate")
        if info.get("status") in ("failed", "cancelled"):
            sys.exit(f"qemu_migrate: migration {info['status']}: {info.get('error-desc', '')}")
        return info.get("status") == "completed"

    def close(self):
        self.ask("quit")
        self.process.wait()


def main():
    if len(sys.argv) not in (6, 7) or sys.argv[1] not in ("incoming", "outgoing"):
        print(__doc__, file=sys.stderr)
        return 2
    role, address, port, guest, console = sys.argv[1:6]
    uri = f"rdma:{address}:{port}"
    qemu = Qemu(guest, console, *(["-incoming", "defer"] if role == "incoming" else []))
    try:
        if sys.argv[6:] == ["pin-all"]:
            qemu.ask("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": True}])
        if role == "incoming":
            qemu.ask("migrate-incoming", uri=uri)
            print("incoming: ready", flush=True)
            qemu.wait("the guest goes on", lambda: len(qemu.rounds()) >= ROUNDS)
        else:
            qemu.wait("the guest runs", lambda: len(qemu.rounds()) >= ROUNDS)
            qemu.ask("migrate", uri=uri)
            qemu.wait("migration", qemu.migrated)
        status = qemu.ask("query-status")["status"]
        rounds = qemu.rounds()
        print(f"{role}: {status}, rounds {rounds[0]} to {rounds[-1]}", flush=True)
        qemu.close()
        return 0 if status == ("running" if role == "incoming" else "postmigrate") else 1
    finally:
        if qemu.process.poll() is None:
            qemu.process.kill()


sys.exit(main())
