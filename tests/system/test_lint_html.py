#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page of `urnic lint --html`: whole, self-contained, says what --json says; with --browser, its
script draws the plots and the ladder without an error in headless Chromium. Exit status 77: Chromium
is wanted and not installed (apt-get install chromium).

usage: test_lint_html.py URNIC PCAPS [--browser]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

URNIC, PCAPS = sys.argv[1:3]
BROWSER = shutil.which("chromium") if "--browser" in sys.argv[3:] else None
CAPTURES = ("fault-loss-5pct.pcap", "cm-rping-ipv6.pcap", "err-no-qp.pcap")


def check(good, what):
    if not good:
        sys.exit(f"test_lint_html: {what}")


def data_of(page):
    m = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    check(m, "the page has no data")
    check("<" not in m.group(1), "a '<' in the data could end the script")
    return json.loads(m.group(1))


def rendered(path, folder):
    """The page as a browser has it after its script ran."""
    r = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                        "--no-first-run", "--disable-background-networking",
                        "--disable-component-update", "--disable-sync",
                        f"--user-data-dir={folder}/browser", "--virtual-time-budget=5000",
                        "--dump-dom", f"file://{path}"],
                       capture_output=True, text=True, timeout=120, check=False)
    check(r.returncode == 0, f"chromium: exit status {r.returncode}: {r.stderr[-500:]}")
    return r.stdout


def one_connection(folder):
    """--connection: the text, the JSON and the page say nothing of others."""
    capture, path = os.path.join(PCAPS, "fault-lose-responses.pcap"), os.path.join(folder, "one.html")

    def lint(*options):
        return subprocess.run([URNIC, "lint", *options, capture], capture_output=True, text=True, timeout=60,
                              check=False)

    whole = [json.loads(line) for line in lint("--json").stdout.splitlines()]
    wanted = next(x for x in whole if x.get("connection") == 3)
    r = lint("--connection", "3", "--json", "--html", path)
    lines = [json.loads(line) for line in r.stdout.splitlines()]
    check(r.returncode == 1, f"--connection 3: exit status {r.returncode}: {r.stderr}")
    check(wanted in lines and {x["connection"] for x in lines if "connection" in x} == {3},
          "--connection 3: the JSON has others")
    with open(path, encoding="utf-8") as f:
        d = data_of(f.read())
    check([c["number"] for c in d["connections"]] == [3], "--connection 3: the page has others")
    check(d["findings"] and all(f["connection"] == 3 for f in d["findings"]), "--connection 3: findings of others")
    check(all(p[2] == 3 for p in d["packets"]), "--connection 3: packets of others")
    check(len(d["packets"]) == sum(f["packets"] for f in wanted["flows"]), "--connection 3: packets are missing")
    text = lint("--connection", "3").stdout
    check(re.findall(r"^connection (\d+):", text, re.M) == ["3"], "--connection 3: the text has others")
    r = lint("--connection", "99")
    check(r.returncode == 2 and "--connection: 99" in r.stderr and r.stdout == "", f"--connection 99: {r.stderr}")


def main():
    if "--browser" in sys.argv[3:] and not BROWSER:
        print("skipped: chromium is not installed (apt-get install chromium)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="urnic-lint-html-") as folder:
        for name in CAPTURES:
            # A name that is HTML itself must stay text.
            capture = os.path.join(folder, f"<b>{name}")
            shutil.copy(os.path.join(PCAPS, name), capture)
            path = os.path.join(folder, name + ".html")
            r = subprocess.run([URNIC, "lint", "--json", "--html", path, capture],
                               capture_output=True, text=True, timeout=60, check=False)
            check(r.returncode in (0, 1), f"{name}: exit status {r.returncode}: {r.stderr}")
            lines = [json.loads(line) for line in r.stdout.splitlines()]
            with open(path, encoding="utf-8") as f:
                page = f.read()
            d = data_of(page)
            check(not re.search(r'(src|href)=', page), f"{name}: the page wants other files")
            check(d["file"] == capture, f"{name}: the file's name is {d['file']}")
            found = [x for x in lines if "expected" in x]
            check(len(found) == len(d["findings"]),
                  f"{name}: {len(d['findings'])} findings in the page, {len(found)} in the JSON")
            flows = [f for x in lines if x.get("type") == "connection" for f in x["flows"]]
            stats = [s["stats"] for c in d["connections"] for s in c["side"] if s["known"]]
            for column, field, unit in (("goodput, Mb/s", "goodput_bps", 1e6), ("RTT, us", "rtt_ns", 1e3)):
                want = sorted(f.get(field, 0) / unit for f in flows)
                check(all(abs(a - b) < 0.01 for a, b in zip(sorted(s[column] for s in stats), want, strict=True)),
                      f"{name}: the column {column} is not what --json says")
            check(len(d["packets"]) == d["totals"]["roce"], f"{name}: packets are missing")
            check(d["connections"] and all(len(c["side"]) == 2 for c in d["connections"]),
                  f"{name}: connections")
            if BROWSER:
                dom = rendered(path, folder)
                check(dom.count("<canvas") >= len(d["connections"]) - (name[:2] == "cm"),
                      f"{name}: a connection has no plot")
                check("<svg" in dom and dom.count("<path d=") > 1, f"{name}: the ladder is empty")
                check("&lt;b&gt;" in dom, f"{name}: the file's name became markup")
        one_connection(folder)
        r = subprocess.run([URNIC, "lint", "--html", folder + "/no/such.html", capture],
                           capture_output=True, text=True, timeout=60, check=False)
        check(r.returncode == 2 and "no/such.html" in r.stderr, "a page that can't be written")
    print("ok, in Chromium" if BROWSER else "ok")


main()
