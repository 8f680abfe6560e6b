#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""README.md, doc/exercise.md and doc/scenarios.md, command by command in the order of the page: a file that is shown by
`cat` is made, each other command prints what stands below it.

usage: test_transcripts.py SOURCE_ROOT URNIC
"""
import os
import subprocess
import sys
import tempfile

from doc_text import says, transcripts

ROOT, URNIC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def run(page, least):
    """Returns how many commands print something else."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        pairs = transcripts(f.read())
    wrong, ran = 0, 0
    env = dict(os.environ, PATH=os.path.dirname(URNIC) + ":" + os.environ["PATH"], LC_ALL="C.UTF-8")
    with tempfile.TemporaryDirectory(prefix="urnic-page-") as folder:
        for name in ("app", "pcaps"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        for command, shown in pairs:
            if command.startswith("cat "):
                with open(os.path.join(folder, command[4:]), "w", encoding="utf-8") as f:
                    f.write("\n".join(shown) + "\n")
                continue
            ran += 1
            r = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False)
            got = [line.rstrip() for line in (r.stdout or r.stderr).rstrip("\n").split("\n")]
            if not says(shown, got):
                wrong += 1
                print(f"FAIL: {page}: {command} prints:\n" + "\n".join(got))
    if ran < least:
        wrong += 1
        print(f"FAIL: {page}: only {ran} commands")
    return wrong


def main():
    wrong = run("README.md", 4) + run("doc/exercise.md", 6) + run("doc/scenarios.md", 2)
    print(f"{wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
