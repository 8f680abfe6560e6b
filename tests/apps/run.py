#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Debian's RDMA programs, unmodified, on urnic: client and server on one device, on two devices of a daemon, on
two hosts joined by memif, on two hosts joined by veth. Prints a line for each row, then a table; the last line is
"N passed, N failed[, N skipped]". Exit status 0 only if nothing failed.
"""
import argparse
import fnmatch
import os
import sys
import time

import rows_cm
import rows_kill
import rows_libraries
import rows_machines
import rows_storage
import rows_suites
import rows_tools
from rig import TOPOLOGIES, Rig, RigError
from row import run_row

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GROUPS = {"tools": rows_tools.rows, "cm": rows_cm.rows, "libraries": rows_libraries.rows, "storage": rows_storage.rows,
          "machines": rows_machines.rows, "suites": rows_suites.rows,
          "kill": rows_kill.rows}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.path.join(ROOT, "build"), help="the build directory (default: build)")
    p.add_argument("--quick", action="store_true", help="the quick subset: minutes")
    p.add_argument("--topology", action="append", choices=TOPOLOGIES, help="only these; may be repeated")
    p.add_argument("--group", action="append", choices=GROUPS, help="only these; may be repeated")
    p.add_argument("--row", action="append", default=[], help="only rows whose names match this pattern (* and ?)")
    p.add_argument("--list", action="store_true", help="the names of the rows")
    p.add_argument("--verbose", action="store_true", help="each program's output, also where all is well")
    return p.parse_args()


def wanted(args, topology):
    for group in args.group or GROUPS:
        for row in GROUPS[group]():
            if topology not in row.topologies or (args.quick and not (row.quick and topology in row.quick_on)):
                continue
            if args.row and not any(fnmatch.fnmatch(row.name, pattern) for pattern in args.row):
                continue
            yield row


def show(result, verbose):
    state = "FAIL" if result.wrong else "PASS"
    print(f"{state} {result.topology:6}{result.row.name} ({result.seconds:.1f} s)", flush=True)
    for text in result.wrong:
        print("     " + text.replace("\n", "\n     "))
    if result.wrong or verbose:
        for side, text in (("client", result.output), ("server", result.server_output)):
            for line in text.splitlines()[-25:]:
                print(f"       {side}: {line}")
    sys.stdout.flush()


def main():
    args = arguments()
    urnicd = os.path.join(args.build, "app", "urnicd", "urnicd")
    urnic = os.path.join(args.build, "app", "urnic", "urnic")
    results, skipped, began = [], 0, time.monotonic()
    for topology in args.topology or TOPOLOGIES:
        rows = list(wanted(args, topology))
        if args.list:
            print("\n".join(f"{topology:6}{row.name}" for row in rows))
            continue
        if not rows:
            continue
        if topology in ("memif", "veth") and os.getuid() != 0:
            print(f"SKIP {topology}: only as root")
            skipped += len(rows)
            continue
        try:
            rig = Rig(topology, os.path.abspath(urnicd), os.path.abspath(urnic))
        except RigError as e:
            print(f"FAIL {topology}: {e}")
            return 1
        try:
            for row in rows:
                results.append(run_row(rig, row))
                show(results[-1], args.verbose)
        finally:
            rig.close()
    if args.list:
        return 0
    table(results)
    failed = sum(1 for r in results if r.wrong)
    print(f"{time.monotonic() - began:.0f} s")
    print(f"{len(results) - failed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not results else 0


def table(results):
    """Rows by topologies."""
    names = list(dict.fromkeys(r.row.name for r in results))
    cell = {(r.row.name, r.topology): ("FAIL" if r.wrong else f"{r.seconds:.1f} s") for r in results}
    print(f"\n{'':44}" + "".join(f"{t:>9}" for t in TOPOLOGIES))
    for name in names:
        print(f"{name:44}" + "".join(f"{cell.get((name, t), ''):>9}" for t in TOPOLOGIES))
    print()


raise SystemExit(main())
