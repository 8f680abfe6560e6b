#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our libibverbs has the functions of the system's, each in its node; and nothing of its insides shows.

    test_verbs_abi.py OURS [THEIRS]

Left out are the functions of libibverbs' first ABI, of 2006, which no program uses (`name@IBVERBS_1.0` beside
`name@@IBVERBS_1.1`), and what comes with a version above that of the headers.
"""
import re
import subprocess
import sys

# Functions of libc that the library stands before have no version, or programs would not find them.
NO_VERSION = re.compile(r"^(?!ibv_|urnic_|uv_|verbs_|client_|ipc_)[a-z_0-9]+$")


def symbols(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def soname(path):
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"SONAME.*\[(.*)\]", out)[1], set(re.findall(r"NEEDED.*\[(.*)\]", out))


def main():
    ours = symbols(sys.argv[1])
    system = sys.argv[2] if len(sys.argv) > 2 else find()
    theirs = {s for s in symbols(system) if "@@" in s or s.startswith("IBVERBS_")}
    bad = [f"missing: {s}" for s in sorted(theirs - ours)]
    bad += [f"too many: {s}" for s in sorted(ours - theirs) if "@" in s]
    bad += [f"shows: {s}" for s in sorted(ours - theirs) if "@" not in s and not NO_VERSION.match(s)]
    name, needed = soname(sys.argv[1])
    if name != soname(system)[0]:
        bad.append(f"SONAME {name}, theirs {soname(system)[0]}")
    if needed - {"libc.so.6"}:
        bad.append(f"needs {needed}: it can't be mounted into a container by itself")
    print("\n".join(bad) or f"{len(theirs)} symbols as in {system}")
    return 1 if bad else 0


def find():
    out = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return re.search(r"libibverbs\.so\.1 .*=> (\S+)", out)[1]


if __name__ == "__main__":
    sys.exit(main())
