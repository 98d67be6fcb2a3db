#!/usr/bin/env python3
"""Counts what the public headers declare. No count may grow: docs/public_counts.json holds what is allowed.

  docs/check_public.py XML [--record]     XML: the folder that Doxygen writes; --record allows what is there now

functions: public ones of namespace ucx with their overloads, constructors and operators; without destructors and deleted ones
headers: files of include/ucx and include/ucx/experimental; old paths are forwarders in include/compatibility
options: members of structures whose names end in _options
Names that stay for one version, deprecated, are not counted: Doxygen does not see them (filter_header.py).

No description begins in the middle of a sentence. Doxygen cuts there where it took a part of the code for a character.

A header has 300 lines at most. One that declares something of namespace ucx has 40 or more: what is shorter
belongs to the subject's header.
"""
import argparse
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs/public_counts.json"


HEADERS = [path for place in ("include/ucx", "include/ucx/experimental") for path in sorted((ROOT / place).glob("*.hpp"))
           if not path.read_text().startswith("// For one version")]
LEAST_LINES, MOST_LINES = 40, 300


def misshapen():
    """Yields a complaint for each header that is too long or too short."""
    for path in HEADERS:
        text = path.read_text()
        lines = text.count("\n")
        declares = re.search(r"^namespace ucx\b", text, re.MULTILINE)
        if lines > MOST_LINES or declares and lines < LEAST_LINES:
            yield f"{path.relative_to(ROOT)} has {lines} lines"


def cut_sentences(folder):
    """Yields a complaint for each description whose first sentence has its beginning elsewhere."""
    for path in sorted(folder.glob("*.xml")):
        for described in xml.etree.ElementTree.parse(path).getroot().iter():
            paragraph = described.find("detaileddescription/para")
            if paragraph is not None and re.match(r"\s*[a-z]", paragraph.text or ""):
                name = described.findtext("qualifiedname") or described.findtext("name") or described.findtext("compoundname")
                yield f"{name}: a sentence is cut before \"{paragraph.text.strip()[:60]}\""


def members_of(folder):
    """Returns each public member once, though a file and its namespace list it: kind, scope, name, arguments."""
    members = {}
    for path in folder.glob("*.xml"):
        for scope in xml.etree.ElementTree.parse(path).getroot().iter("compounddef"):
            for member in scope.iter("memberdef"):
                if member.get("prot") == "public":
                    arguments = (member.findtext("argsstring") or "").replace(" ", "")
                    members[member.get("id")] = (member.get("kind"), scope.findtext("compoundname"), member.findtext("name"), arguments)
    return members.values()


def count(folder):
    members = members_of(folder)
    return {
        "functions": sum(kind == "function" and not name.startswith("~") and "=delete" not in arguments
                         for kind, _, name, arguments in members),
        "headers": len(HEADERS),
        "options": sum(kind == "variable" and scope.endswith("_options") for kind, scope, _, _ in members),
    }


def main():
    reads = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("xml", type=pathlib.Path)
    reads.add_argument("--record", action="store_true")
    asked = reads.parse_args()
    now = count(asked.xml)
    if not now["functions"] or not now["options"]:
        sys.exit(f"{asked.xml} has no members: no XML of Doxygen's, or none of these headers")
    if asked.record:
        RECORD.write_text(json.dumps(now, indent=2) + "\n")
    allowed = json.loads(RECORD.read_text())
    print("public: " + ", ".join(f"{kind} {number} of {allowed[kind]}" for kind, number in now.items()))
    wrong = [*misshapen(), *cut_sentences(asked.xml)]
    if wrong:
        sys.exit("\n".join(wrong))
    grown = [kind for kind in now if now[kind] > allowed[kind]]
    if grown:
        sys.exit(f"More {' and '.join(grown)} than are allowed. Merge, or say in the change why the interface grows, and --record it.")


if __name__ == "__main__":
    main()
