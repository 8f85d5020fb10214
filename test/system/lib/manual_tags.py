"""manual_tags.py PAGE: the tags of a manual page, a line each: SECTION, SUBSECTION and TAG, with tabs between them.
A tag is the line behind .TP or .TQ, as it is printed; an example is the text between .EX and .EE, with the tag EX."""
import re
import sys


def printed(text):
    text = re.sub(r"\\f.", "", text)
    return text.replace("\\ ", " ").replace("\\-", "-").replace("\\|", "").replace("\\&", "").replace("\\c", "")


def arguments(line):
    words = re.findall(r'"([^"]*)"|((?:\\.|[^\s"\\])+)', line)
    return [quoted or bare for quoted, bare in words]


section = subsection = ""
tag_follows = example = False
for line in open(sys.argv[1], encoding="utf-8"):
    line = line.rstrip("\n")
    macro, _, rest = line.partition(" ")
    if macro in (".EX", ".EE"):
        example = macro == ".EX"
    elif example:
        print(section, subsection, "EX", printed(line), sep="\t")
    elif macro == ".SH":
        section, subsection = printed(rest), ""
    elif macro == ".SS":
        subsection = printed(rest)
        print(section, subsection, "", sep="\t")
    elif macro in (".TP", ".TQ"):
        tag_follows = True
    elif tag_follows:
        tag_follows = False
        plain = macro in (".B", ".I") or not macro.startswith(".")
        text = (line if not macro.startswith(".") else rest) if plain else "".join(arguments(rest))
        print(section, subsection, printed(text), sep="\t")
