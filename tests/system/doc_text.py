# SPDX-License-Identifier: BSD-3-Clause
"""What the documents show, and what programs print."""
import re


def says(want, got):
    """Is `got` what the document shows? "..." stands for any lines, " ..." at the end of a line for its rest; numbers
    of such a line are those of another machine."""
    if not want or want == ["..."]:
        return not got or bool(want)
    if want[0] == "...":
        return any(says(want[1:], got[i:]) for i in range(len(got)))
    if not got:
        return False
    line, have = want[0], got[0]
    if line.endswith(" ..."):
        line, have = (re.sub(r"\d[\d.]*", "N", text) for text in (line[:-4], have))
        have = have[:len(line)]
    return line == have and says(want[1:], got[1:])


def transcripts(text):
    """The indented blocks of a document that begin with "$ ": pairs of a command and the lines that follow it."""
    pairs = []
    for command, shown in re.findall(r"^ {4}\$ (.*)\n((?: {4}[^$\n].*\n|\n(?= {4}[^$\n]))*)", text, re.M):
        pairs.append((command, [line[4:].rstrip() for line in shown.rstrip("\n").split("\n")] if shown else []))
    return pairs
