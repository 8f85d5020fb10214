"""help_walk.py PROGRAM: everything that --help of mango-ctl and of each of its words names, a line each:
WORDS, KIND, NAME and EXPLANATION, with tabs between them. Kinds are usage, command, argument, option and example;
a usage and an example explain themselves."""
import re
import subprocess
import sys

KINDS = {"Commands:": "command", "Arguments:": "argument", "Options:": "option", "Examples:": "example"}


def show(*fields):
    print(*fields, sep="\t")


def walk(words):
    text = subprocess.run([sys.argv[1], *words, "--help"], check=True, capture_output=True, encoding="utf-8").stdout
    path = " ".join(words)
    rows, kind = [], None
    for line in text.splitlines():
        if line.startswith("Usage: mango-ctl "):
            show(path, "usage", line.removeprefix("Usage: mango-ctl "), "")
        elif not line.startswith(" "):
            kind = KINDS.get(line)
        elif kind == "example":
            show(path, kind, line.strip().removeprefix("mango-ctl "), "")
        elif kind and re.match("  [^ ]", line):
            name, _, explanation = line.strip().partition("  ")
            rows.append([path, kind, name, explanation.strip()])
        elif kind:
            rows[-1][3] = (rows[-1][3] + " " + line.strip()).strip()
    for row in rows:
        show(*row)
    for row in rows:
        if row[1] == "command":
            walk([*words, row[2]])


walk([])
