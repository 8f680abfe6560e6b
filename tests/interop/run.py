#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Boots the guest, starts urnicd, runs the tests. Called by scripts/interop inside a namespace of its own."""
import argparse
import fnmatch
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import bench
import guest as guests
from bench import PORTS, Bench, Daemon, Failure, Skip
from cable import Cable
from ends import EndError
from speed import speed


def load_tests():
    here = Path(__file__).parent
    for path in sorted(here.glob("t_*.py")):
        __import__(path.stem)


def network(mtu):
    try:  # the kernel keeps quiet on interfaces that tests make
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    except OSError:
        pass
    for command in ("link set lo up", "tuntap add tap0 mode tap",
                    f"link set tap0 address 02:77:00:00:00:01 mtu {mtu} up"):
        subprocess.run(["ip", *command.split()], check=True)


def select(args):
    tests = [x for x in bench.TESTS if x.short or not args.short]
    if args.tests:
        unknown = [w for w in args.tests if not any(fnmatch.fnmatch(x.name, w) for x in bench.TESTS)]
        if unknown:
            print(f"interop: no test '{unknown[0]}'; --list names them", file=sys.stderr)
            sys.exit(2)
        tests = [x for x in bench.TESTS if any(fnmatch.fnmatch(x.name, w) for w in args.tests)]
    return tests


class Report:
    def __init__(self, as_json):
        self.as_json, self.rows, self.deviations = as_json, [], []

    def add(self, name, verdict, text, seconds):
        self.rows.append({"test": name, "verdict": verdict, "text": text, "seconds": round(seconds, 2)})
        if not self.as_json:
            print(f"{verdict} {name}: {text} ({seconds:.1f} s)", flush=True)

    def count(self, verdict):
        return sum(r["verdict"] == verdict for r in self.rows)


def label(name, port):
    """How reports and captures call a test: by its name, after the port's unless that is the first kind."""
    return name if port == next(iter(PORTS)) else f"{port}-{name}"


def keep(path, seen):
    """The evidence of a test that has failed, which a repetition does not overwrite."""
    n = len(list(path.parent.glob(f"{path.stem}-failed-*.pcapng"))) + 1
    kept = path.with_name(f"{path.stem}-failed-{n}.pcapng")
    if path.exists():
        shutil.copy(path, kept)
    kept.with_suffix(".txt").write_text(seen)


def run_test(b, entry, record, report):
    name, what = label(entry.name, b.daemon.port), entry.what
    began = time.monotonic()
    judged = "*" not in entry.provokes
    path, verdict = Path(record) / f"{name}.pcapng", "FAIL"
    b.cable.record(path)
    b.seen = ""
    bad_before, counters = b.cable.bad_icrc, b.counters()
    try:
        text = f"{what}: {entry.function(b)}"
        if judged and b.cable.bad_icrc > bad_before:
            raise Failure(f"{b.cable.bad_icrc - bad_before} packets with a wrong iCRC")
        verdict = "PASS"
    except Skip as e:
        text, verdict = f"{what}: {e}", "SKIP"
    except (Failure, EndError, guests.GuestError, OSError) as e:
        text = f"{what}: {e}"
    except Exception:  # a mistake of the test's own
        text = f"{what}: {traceback.format_exc()}"
    finally:
        if verdict == "FAIL":
            b.look()
            text += f"; ours counted {b.counted(counters)}"
        b.tidy()
        b.cable.record(None)
        if verdict == "FAIL":
            keep(path, b.seen)
        if not judged:
            b.cable.bad_icrc = bad_before
    report.add(name, verdict, text, time.monotonic() - began)


def malformed(files):
    """tshark's opinion of all captures: packets that it calls malformed. Not counting datagrams without data:
    it takes the iCRC after their DETH for data."""
    wanted = "_ws.malformed && !(infiniband.deth && udp.length <= 36)"
    said = subprocess.run(
        ["sh", "-c", f'mergecap -a -w - "$@" | tshark -r - --disable-protocol rpcordma -Y "{wanted}"', "sh", *files],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if said.returncode:
        raise Failure("tshark: " + said.stderr.strip()[-300:])
    return said.stdout.splitlines()


OURS = (bench.OUR4, bench.OUR6)


def lint(program, file, provokes, deviates):
    """`urnic lint` judges a capture: what ours did against a rule is returned, what rxe did is noted."""
    said = subprocess.run([program, "lint", "--json", "--max", "0", file], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if said.returncode == 2 and '"roce":0,' in said.stdout:
        return []  # nothing to judge
    if said.returncode not in (0, 1):
        raise Failure(f"urnic lint {Path(file).name}: exit {said.returncode}: {said.stderr.strip()[-300:]}")
    ours = []
    for line in said.stdout.splitlines():
        found = json.loads(line)
        if found["type"] != "finding" or found["verdict"] != "violation":
            continue
        if found["dump"].split(" ")[0] in OURS:
            if found["rule"] in provokes:
                continue
            ours.append(f"{Path(file).stem} packet {found['packet']}: {found['rule']}: {found['dump']}: expected "
                        f"{found['expected']}, seen {found['seen']}")
        else:
            text = f"lint: expected {found['expected']}, seen {found['seen']}"
            deviates(found["rule"], re.sub(r"0x[0-9a-f]+", "N", text))
    return ours


def judge_captures(b, record, ran, report):
    """What independent programs say of what was on the wire. `ran`: port and test."""
    captures = {str(Path(record) / f"{label(x.name, port)}.pcapng"): x for port, x in ran if "*" not in x.provokes}
    files = list(captures)
    began = time.monotonic()
    verdict = "FAIL" if b.cable.bad_icrc else "PASS"
    report.add("wire-icrc", verdict, f"{b.cable.frames} RoCEv2 packets, {b.cable.bad_icrc} with a wrong iCRC", 0)
    if files and shutil.which("tshark") and shutil.which("mergecap"):
        bad = malformed(files)
        report.add("wire-tshark", "FAIL" if bad else "PASS",
                   f"{len(files)} captures, {len(bad)} malformed packets" + "".join("; " + x for x in bad[:3]),
                   time.monotonic() - began)
    began = time.monotonic()
    try:
        ours = [x for f in files for x in lint(b.build / "app/urnic/urnic", f, captures[f].provokes, b.deviates)]
        report.add("wire-lint", "FAIL" if ours else "PASS",
                   f"{len(files)} captures, {len(ours)} violations of ours" + "".join("; " + x for x in ours[:5]),
                   time.monotonic() - began)
    except Failure as e:
        report.add("wire-lint", "FAIL", str(e), time.monotonic() - began)


def run_bench(args):
    """Figures in place of tests. Exit status 0 also where a goal is missed."""
    got = []

    def record(name, met, text, figures):
        got.append({"name": name, "met": met, **figures})
        if not args.json:
            print(f"{name}: {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="urnic-interop-") as work:
        network(9000)
        cable = Cable(work, [guests.MAC, guests.VIRTIO_MAC, guests.E1000_MAC])
        guest = None
        try:
            guest = guests.Guest(args.build, work, cable.nics)
            guest.wait()
            if not args.json:
                print(f"Linux {guest.release}, emulated on {os.cpu_count()} processors", flush=True)
            speed(guest, record)
        except (guests.GuestError, Failure, OSError) as e:
            print(f"interop: {e}", file=sys.stderr)
            return 1
        finally:
            if guest:
                guest.stop()
            cable.close()
    if args.json:
        print(json.dumps(got, indent=1))
    return 0


def main():
    p = argparse.ArgumentParser(prog="scripts/interop", add_help=False)
    p.add_argument("--port", choices=PORTS)
    p.add_argument("--bench", action="store_true")
    p.add_argument("--short", action="store_true")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--record")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--json", action="store_true")
    p.add_argument("--list", action="store_true")
    p.add_argument("--build")
    p.add_argument("--pid", help="of a process in the namespace, as seen outside")
    p.add_argument("tests", nargs="*")
    args = p.parse_args()
    load_tests()
    if args.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the reader may end it
        for x in bench.TESTS:
            print(f"{x.name:24}{'short  ' if x.short else '       '}{x.what}")
        return 0
    chosen = select(args)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # tidy up on the way out
    if args.bench:
        return run_bench(args)

    report = Report(args.json)
    with tempfile.TemporaryDirectory(prefix="urnic-interop-") as work:
        record = Path(args.record or work + "/pcaps")
        record.mkdir(parents=True, exist_ok=True)
        network(9000)
        cable = Cable(work, [guests.MAC, guests.VIRTIO_MAC, guests.E1000_MAC])
        guest = daemon = None
        ports, ran = [args.port] if args.port else list(PORTS), []
        began = time.monotonic()
        try:
            guest = guests.Guest(args.build, work, cable.nics)
            daemon = Daemon(args.build, work, ports[0])
            guest.wait()
            report.add("boot", "PASS", f"Linux {guest.release} with rdma_rxe is up", time.monotonic() - began)
            b = Bench(guest, cable, daemon, args.build)
            for port in ports:
                if port != daemon.port:
                    daemon.stop()
                    daemon = b.daemon = Daemon(args.build, work, port)
                for entry in (chosen if port == ports[0] else [x for x in chosen if x.tap]) * args.repeat:
                    run_test(b, entry, record, report)
                    ran.append((port, entry))
            judge_captures(b, record, ran, report)
            report.deviations = sorted(b.notes.items())
            if args.keep:
                print(f"kept until Enter: nsenter -t {args.pid} -n, URNIC_SOCKET={daemon.socket}", flush=True)
                sys.stdin.readline()
        except (guests.GuestError, Failure) as e:
            report.add("boot", "FAIL", str(e), time.monotonic() - began)
        finally:
            if daemon:
                daemon.stop()
            if guest:
                guest.stop()
            cable.close()
    passed, failed, skipped = (report.count(v) for v in ("PASS", "FAIL", "SKIP"))
    if args.json:
        deviations = [{"rule": rule, "what": what, "times": n} for (rule, what), n in report.deviations]
        print(json.dumps({"tests": report.rows, "passed": passed, "failed": failed, "skipped": skipped,
                          "deviations": deviations}, indent=1))
    else:
        if report.deviations:
            print("\nwhere rxe leaves the rules:")
        for (rule, what), times in report.deviations:
            print(f"  {rule:8}{what}" + (f" ({times} times)" if times > 1 else ""))
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
