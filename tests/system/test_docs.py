#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The documents are true where a program can tell: links lead somewhere, files, scripts and subcommands that are
named exist, with or without their folders, a file has the contents that a document names, and the allowed includes are those
of the build, in the table of CONTRIBUTING.md, in doc/architecture.md and in its picture.

usage: test_docs.py SOURCE_ROOT URNIC
"""
import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

from doc_text import says

ROOT, URNIC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FOLDERS = "lib|app|drivers|tests|scripts|doc|pcaps"
failures = 0
loader = importlib.machinery.SourceFileLoader("draw_includes", os.path.join(ROOT, "scripts", "draw-includes"))
draw = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
sys.dont_write_bytecode = True
loader.exec_module(draw)


def check(ok, text):
    global failures
    if not ok:
        failures += 1
        print("FAIL:", text)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def exists(path):
    """A file, a pattern of files, or a file without its ending."""
    path = os.path.join(ROOT, path.rstrip("/"))
    return bool(glob.glob(path) or glob.glob(path + ".*"))


def anchors(document):
    """What its headings are called in links."""
    headings = re.findall(r"^#+ (.*)$", read(document), re.M) if exists(document) else []
    return {re.sub(r"[^\w -]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def names(document, commands):
    text = read(document)
    here = os.path.dirname(document)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)|(?:src|href)=\"([^\"#]+)\"", text):
        target = target[0] or target[1]
        if "://" not in target:
            check(exists(os.path.normpath(os.path.join(here, target))), f"{document}: link to {target}")
    for path, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
        page = os.path.normpath(os.path.join(here, path)) if path else document
        check("://" in path or anchor in anchors(page), f"{document}: {path}#{anchor} is no heading")
    for path in re.findall(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./*-]*\w)", text):
        check(exists(path) or "infiniband" in path or path == "lib/verbs", f"{document}: there is no {path}")
    for word in re.findall(r"^ {4}(?:[$#] )?(?:sudo )?urnic (?:--socket \S+ )?([a-z]\w*)", text, re.M):
        check(word in commands, f"{document}: urnic {word} is no subcommand")


def sources(documents):
    """Files of ours that are named without their folders exist, and have in them what is said to be there: «`NAME`
    (`FILE`)». The catalogue of rules names Linux's files."""
    homes = {}
    for path in glob.glob(os.path.join(ROOT, "*", "**", "*.*"), recursive=True):
        if re.match(rf"(?:{FOLDERS})/", os.path.relpath(path, ROOT)):
            homes.setdefault(os.path.basename(path), []).append(path)
    named = placed = 0
    for document in set(documents) - {"doc/conformance.md"}:
        text = read(document)
        for name in re.findall(r"`(?:[\w-]+/)*([a-z0-9_-]+\.(?:c|h|py|sh|drill|sim))`", text):
            named += 1
            check(name in homes or name == "dpdk-devbind.py", f"{document}: there is no {name}")
        for word, name in re.findall(r"`(?:const )?(?:struct )?(\w+)`\s+\(`(?:[\w-]+/)*([\w-]+\.[ch])`", text):
            placed += 1
            there = any(re.search(rf"\b{word}\b", read(path)) for path in homes.get(name, []))
            check(there, f"{document}: there is no {word} in {name}")
    check(named > 80 and placed > 3, f"{named} files named, {placed} with what is in them")


def outputs(document, least):
    """What tools that need no daemon print is what the document says."""
    blocks = re.findall(r"^ {4}\$ urnic ((?:lint|replay|rules|sim) .*)\n((?: {4}[^$\n].*\n|\n(?= {4}))+)",
                        read(document), re.M)
    check(len(blocks) >= least, f"{document}: {len(blocks)} outputs")
    for command, text in blocks:
        command = re.sub(r" --chart \S+", "", command)
        r = subprocess.run([URNIC, *command.split()], cwd=ROOT, capture_output=True, text=True, check=False)
        want = [line[4:].rstrip() for line in text.rstrip("\n").split("\n")]
        got = [line.rstrip() for line in (r.stdout or r.stderr).rstrip("\n").split("\n")]
        check(says(want, got), f"{document}: urnic {command} prints:\n" + "\n".join(got))


def captures():
    """Each capture has its line in the manifest, and is there."""
    rows = set(re.findall(r"^\| ([\w-]+\.pcap(?:ng)?) \|", read("pcaps/MANIFEST.md"), re.M))
    there = {os.path.basename(p) for p in glob.glob(os.path.join(ROOT, "pcaps", "*.pcap*"))}
    check(rows == there, f"pcaps/MANIFEST.md: not there {rows - there}, no line for {there - rows}")


def worked_example():
    """The capture is what the script makes, and has the octets that the text shows."""
    with tempfile.TemporaryDirectory() as folder, \
            open(os.path.join(ROOT, "pcaps", "worked-example.pcapng"), "rb") as f:
        capture, made = f.read(), os.path.join(folder, "made.pcapng")
        subprocess.run([URNIC, "drill", "--psn", "0x123456", "--record", made, "tests/drill/cm/worked_example.drill"],
                       cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        with open(made, "rb") as f:
            check(f.read() == capture, "pcaps/worked-example.pcapng is not what its script makes")
    rows = re.findall(r"^ {4}00\d0 {2}([0-9a-f|. ]+?)(?: {3}.*)?$", read("doc/worked-example.md"), re.M)
    check(len(rows) >= 9, f"doc/worked-example.md: {len(rows)} rows of octets")
    for row in rows:
        for octets in re.split(r"\.\.+", row.replace("|", " ")):
            check(bytes.fromhex(octets) in capture, f"doc/worked-example.md: the capture has no {octets}")


def mutations():
    """As many mutations of congestion control and recovery are listed as doc/experiments.md tells the fate of."""
    listed = re.findall(r"^(?:CC|LR)-\d+ ", read("tests/mutations.txt"), re.M)
    said = re.search(r"`scripts/mutate --suite sim CC LR` breaks .* in (\d+) ways", read("doc/experiments.md"))[1]
    check(len(listed) == int(said), f"doc/experiments.md: {said} mutations, {len(listed)} are listed")
    section = {f"{rule} {path}: {old}" for rule, path, old in
               re.findall(r"^(RNR-\d+) (\S+)\n- (.*)", read("tests/mutations.txt"), re.M)}
    shown = re.findall(r"^ {4}\[\d/(\d) \d+s\] noticed by \w+: (.*?) ?\.\.\.$", read("doc/tour.md"), re.M)
    check(len(shown) == len(section), f"doc/tour.md: {len(shown)} mutations of RNR, {len(section)} are listed")
    for count, text in shown:
        check(int(count) == len(section) and any(m.startswith(text) for m in section), f"doc/tour.md: no mutation {text}")


def faults():
    """Each rule that doc/faults.md shows is one."""
    verbs = "drop|delay|duplicate|reorder|corrupt|mark|trim|inject|set"
    text = read("doc/faults.md")
    block = re.search(r"A rule is a line.*?\n\n(.*?)\n\n", text, re.S)[1]
    rules = re.findall(rf"^ {{4}}((?:{verbs}) .*)$", block, re.M)
    for cell in re.findall(r"^\|.*\| ([^|]*(?:\\\|[^|]*)*) \|$", text, re.M):
        rules += re.findall(rf"`((?:{verbs}) [^`]*)`", cell.replace("\\|", "|"))
    check(len(rules) > 40, f"doc/faults.md: {len(rules)} rules")
    for rule in rules:
        r = subprocess.run([URNIC, "wire", "--check", "--rule", rule], capture_output=True, text=True, check=False)
        check(r.returncode == 0, f"doc/faults.md: {rule}: {r.stderr.strip()}")


def options(commands):
    """A manual page has the options that the code takes, and no other; the short ones, too."""
    long_of = {"CLI_HELP": {"help"}, "CLI_OPTIONS": {"help", "socket"}}
    entry = r'\{"([a-z0-9-]+)", \w+_argument, NULL, '
    shared = {"wire": ("wire_cmd.c", "suite.h"), "rping": ("rping.c", "talk.h"), "ucmatose": ("ucmatose.c", "talk.h")}
    homes = {os.path.basename(path): path for path in glob.glob(os.path.join(ROOT, "app/urnic/**/*.[ch]"), recursive=True)}
    for command in sorted(commands):
        code = "".join(read(homes[name]) for name in shared.get(command, (f"{command}.c",)))
        takes = set(re.findall(entry, code)).union(*(long_of[m] for m in re.findall(r"\bCLI_(?:HELP|OPTIONS)\b", code)))
        letters = set(re.search(r'(?:getopt_long|cli_options)\(argc, argv,\s+(?:&cmd_\w+,\s+)?"([^"]*)"', code)[1]) - {":", "+"}
        page = subprocess.run([URNIC, command, "--help"], capture_output=True, text=True, check=True).stdout
        listed = [line for line in page.splitlines() if re.match(r" +(?:-\w, )?--\w", line)]
        says = {o for line in listed for o in re.findall(r"(?:^ +|, )--([a-z0-9-]+)", line)}
        check(takes == says, f"urnic {command} --help: not there {takes - says}, not taken {says - takes}")
        short = set(re.findall(r"^ +-(\w), --", page, re.M))
        check(letters == short, f"urnic {command} --help: -{letters ^ short}")
    takes = set(re.findall(entry, read("app/urnicd/options.c")))
    for path in ("app/urnicd/help.txt", "doc/urnicd.8"):
        says = set(re.findall(r"^(?: +|\.B[IR]? )--([a-z-]+)|, \" --([a-z-]+)", read(path).replace("\\-", "-"), re.M))
        says = {a or b for a, b in says}
        check(takes == says, f"{path}: not there {takes - says}, not taken {says - takes}")


def included(arrows):
    """The includes themselves keep to the arrows."""
    whole = draw.closure(arrows)
    home = {}
    files = {folder: glob.glob(os.path.join(ROOT, draw.folder_of(folder), "*.[ch]" if folder in ("core", "urnic") else "**/*.[ch]"),
                               recursive=True) for folder in arrows}
    for folder, paths in files.items():
        for path in paths:
            home.setdefault(os.path.basename(path), set()).add(folder)
    count = 0
    for folder, paths in files.items():
        for source in paths:
            for header in re.findall(r'^#include "(?:[\w.]+/)*([\w.]+)"', read(source), re.M):
                beside = os.path.join(os.path.dirname(source), header)
                to = {folder} if os.path.exists(beside) else home.get(header, {folder})
                count += 1
                check(to & ({folder} | whole[folder]), f"{os.path.relpath(source, ROOT)} includes {header} of {to}")
    check(count > 1000, f"{count} includes")


def refused(build, arrows):
    """The compiler, told what the build tells it, finds no header against the arrows: it looks into no folder that
    they do not lead to. And a file that includes a header of a room above does not compile, one that includes a
    header of a room below does."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    whole = draw.closure(arrows)
    homes = sorted(((os.path.join(ROOT, draw.folder_of(a)), a) for a in arrows), reverse=True)

    def home(path):
        if path.endswith("app/urnic/help"): # pages of text, which all rooms include
            return None
        return next((a for folder, a in homes if (path + "/").startswith(folder + "/")), None)

    words = {}
    for command in commands:
        here, split = command["directory"], shlex.split(command["command"])
        folder = home(os.path.abspath(os.path.join(here, command["file"])))
        looks = {os.path.abspath(os.path.join(here, w[2:])) for w in split if w.startswith("-I")}
        if not folder or not command["output"].startswith(draw.folder_of(folder)): # a test that compiles it, too
            continue
        against = {home(path) for path in looks} - {None, folder} - whole.get(folder, set())
        check(not against, f"{command['file']}: the compiler looks into {against}")
        words[folder] = (here, [w for w in split if w.startswith(("-I", "-D", "-std"))])
    headers_only = {"ib"}
    check(set(words) | headers_only == set(arrows), f"built: {set(words) ^ set(arrows)}")
    probe = {"nic/base": "share.h", "nic/device": "device.h", "nic/client": "context.h", "nic/cm": "cmgr.h",
             "nic/request": "request.h", "nic/program": "program.h", "urnicd": "control.h", "urnic/cli": "cli.h", "urnic/stat": "stat.h", "urnic/copy": "copy_proto.h",
             "urnic/lint": "lint_writer.h", "core/base": "engine.h", "core/queue": "send_queue.h",
             "core/requester": "requester.h", "core/responder": "responder.h", "core": "step.h", "capture": "capread.h"}
    for room in probe:
        here, flags = words[room]
        for other, header in probe.items():
            r = subprocess.run([os.environ.get("CC", "cc"), *flags, "-fsyntax-only", "-x", "c", "-"],
                               input=f'#include "{header}"\n', cwd=here, capture_output=True, text=True, check=False)
            may = other == room or other in whole[room]
            check((r.returncode == 0) == may, f"{room}: {header} of {other} is "
                  + ("refused" if may else "found") + f": {r.stderr[:300]}")


def function_homes():
    """In lib/nic and lib/core a function that a header declares is defined in the source file of the same name.
    engine.h, the engine's contract, is that of all of lib/core."""
    signature = r"^(?!static|#|\s|typedef|extern)[\w *]+?\b(\w+)\([^;{}]*\)"
    contract = {"core/base/engine"}
    core = ("core/base", "core/queue", "core/requester", "core/responder", "core")
    count = 0
    for room in ("nic/base", "nic/device", "nic/client", "nic/cm", "nic/request", "nic/program", *core):
        homes = {}
        for path in glob.glob(os.path.join(ROOT, "lib", room, "*.[ch]")):
            with open(path, encoding="utf-8") as f:
                text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
            name, ending = os.path.basename(path).split(".")
            for function in re.findall(signature + (r"\s*\{" if ending == "c" else r"[^;{}]*;"), text, re.M):
                homes.setdefault(function, {}).setdefault(ending, set()).add(f"{room}/{name}")
        for function, home in homes.items():
            declared = {h for h in home.get("h", ()) if h not in contract}
            count += bool(declared)
            check(not declared or home.get("c") == declared,
                  f"lib/{room}: {function} is declared in {home.get('h')}, defined in {home.get('c')}")
    check(count > 300, f"{count} functions in the headers of lib/nic and lib/core")


def room_sizes():
    """A folder that a reader can take in: at most 20 C files directly in app/urnicd and app/urnic, 30 in any other."""
    rooms = [os.path.dirname(d) for top in ("lib", "app", "drivers")
             for d in glob.glob(os.path.join(ROOT, top, "**", "meson.build"), recursive=True)
             if glob.glob(os.path.join(os.path.dirname(d), "*.c"))]
    check(len(rooms) > 50, f"{len(rooms)} rooms")
    for folder, most in (("app/urnicd", 20), ("app/urnic", 20), *((os.path.relpath(r, ROOT), 30) for r in rooms)):
        n = len(glob.glob(os.path.join(ROOT, folder, "*.c")))
        check(0 < n <= most, f"{folder}: {n} C files, at most {most} there")


def tables(arrows):
    whole = draw.closure(arrows)
    rows = re.findall(r"^\| `(?:lib/|app/)?([\w/]+)` \|.*\| ([\w/*, ]+) \|$", read("CONTRIBUTING.md"), re.M)

    def listed(names):
        rooms = {a for a in arrows if a.startswith("urnic/")} if "urnic/*" in names else set()
        return (set(names) | rooms) - {"nothing", "urnic/*"}

    said = {a: listed(to.split(", ")) for a, to in rows if a in arrows}
    check(set(said) == set(arrows), f"CONTRIBUTING.md: folders that differ: {set(said) ^ set(arrows)}")
    plan = {}
    layout = read("doc/architecture.md").split("## 3. ")[1].split("## 4. ")[0]
    for item in re.split(r"\n(?=    (?:   )?\w)", layout):
        line = re.match(r" +(?:lib/|app/)?([\w/]*\w).* -> ([\w/*, ()]+)$", item.strip("\n").split("\n\n")[0], re.S)
        if line and line[1] in arrows:
            plan[line[1]] = listed(re.findall(r"[\w/*]+", line[2]))
    check(set(plan) == set(arrows), f"doc/architecture.md: folders that differ: {set(plan) ^ set(arrows)}")
    for what, table in (("CONTRIBUTING.md", said), ("doc/architecture.md", plan)):
        for a, to in table.items():
            check(draw.closure({**arrows, a: to})[a] == whole[a] and to <= whole[a],
                  f"{what}: {a} may include {sorted(to)}, says the table; {sorted(arrows[a])}, says the build")
    r = subprocess.run([os.path.join(ROOT, "scripts", "draw-includes"), "--check"], capture_output=True, text=True,
                       check=False)
    check(r.returncode == 0, r.stderr)
    drawn = set(re.findall(r"<title>([\w/]+) -> ([\w/]+)</title>", read(draw.PICTURE)))
    check(draw.closure({a: {b for x, b in drawn if x == a} for a in arrows}) == whole, f"{draw.PICTURE}: {drawn}")


def main():
    top = subprocess.run([URNIC, "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  (\w+)  +\S", top.split("Commands:")[1].split("\n\n")[0], re.M))
    documents = ["README.md", "CONTRIBUTING.md", "pcaps/MANIFEST.md"] + [os.path.relpath(p, ROOT) for p in
                                                    glob.glob(os.path.join(ROOT, "doc", "*.md"))]
    check(len(documents) > 10, "documents")
    for document in documents:
        names(document, commands)
    sources(documents)
    for document, least in (("README.md", 3), ("doc/tour.md", 1), ("doc/lint.md", 1), ("doc/replay.md", 1),
                            ("doc/faults.md", 1), ("doc/worked-example.md", 2)):
        outputs(document, least)
    address = re.search(r"Host N has (10[.\d]+\.N)", read("scripts/lab")).group(1)
    for document in ("README.md", "doc/tour.md"):
        check(address in read(document), f"{document}: which addresses scripts/lab gives its hosts, {address}")
    mutations()
    faults()
    captures()
    worked_example()
    options(commands)
    arrows = draw.arrows(ROOT)
    check(arrows["core"] == {"core/requester", "core/responder"}, f"the arrows are not read: {arrows}")
    check(arrows["nic/client"] == {"nic/device"}, f"the arrows of the rooms are not read: {arrows}")
    check(not [a for a, to in draw.closure(arrows).items() if a in to], "the arrows make a ring")
    included(arrows)
    tables(arrows)
    refused(os.path.dirname(os.path.dirname(os.path.dirname(URNIC))), arrows)
    function_homes()
    room_sizes()
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
