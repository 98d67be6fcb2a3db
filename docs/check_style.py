#!/usr/bin/env python3
"""Counts what makes readers of the documents and comments stumble, and holds the counts.

  docs/check_style.py             compares with docs/style_counts.json: no count may have grown
  docs/check_style.py --list [FILE...]   prints each place, as FILE:LINE: KIND: TEXT
  docs/check_style.py --files     prints the counts of each file
  docs/check_style.py --record    writes the counts, of which none may have grown

A group of files has a count of each kind: sentences that begin with a word that needs what comes behind it ("Who", "What",
"The same", "As above"), words that name no subject ("nobody", "whoever", "of its", "of ours"), sentences of more than 25 words,
sentences with two semicolons, lines of a document above 160 characters, and names of tests above 60 letters.
"""
import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "style_counts.json"
LONGEST_LINE, LONGEST_SENTENCE, LONGEST_TEST_NAME = 160, 25, 60

GROUPS = {
    "documents": ["README.md", "docs/**/*.md"],
    "public headers": ["include/**/*.hpp"],
    "sources": ["src/**/*.[ch]pp", "streams/**/*.[ch]pp", "tools/**/*.[ch]pp"],
    "tests": ["tests/**/*.cpp"],
}

OPENING = re.compile(r"(Who|Whoever|Whose|What|The same|As above)\b")
VAGUE = re.compile(r"\b(nobody|whoever|of its|of ours)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<![ (]e\.g)(?<![ (]i\.e)(?<!\betc)(?<!\bcf)[.!?](?=[)\"'*_]*(?:\s+[A-Z`\"'(*\[]|\s*$))")
TEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def blocks_of_markdown(text):
    """Yields (line, text) for each paragraph, list item and cell of a table; code and comments are left out."""
    start, words, fenced, hidden = 0, [], False, False

    def flush():
        nonlocal words
        if words:
            yield start, " ".join(words)
        words = []

    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            yield from flush()
            fenced = not fenced
            continue
        if not fenced and (hidden or line.startswith("<!--")):
            yield from flush()
            hidden = "-->" not in line
            continue
        if fenced or line.startswith("    ") and not words:
            continue
        bare = line.strip()
        if not bare or bare.startswith(("#", "<", "![")):
            yield from flush()
        elif bare.startswith("|"):
            yield from flush()
            for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                if cell.strip(" -:"):
                    yield number, cell.strip()
        else:
            if re.match(r"([-*+]|\d+\.)\s", bare):
                yield from flush()
                bare = re.sub(r"^([-*+]|\d+\.)\s+", "", bare)
            if not words:
                start = number
            words.append(bare)
    yield from flush()


def blocks_of_comments(text):
    """Yields (line, text) for each run of comment lines. Indented lines are tables or code."""
    start, words = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        found = re.match(r"\s*///?<?\s?(.*)", line) or re.search(r"\S\s+///?<?\s(.*)", line)
        if found and found.group(1).startswith("   "):
            continue
        if found and '"' not in line.split("//")[0]:
            if not words:
                start = number
            words.append(found.group(1).strip())
        elif words:
            yield start, re.sub(r"\s{2,}", " ", " ".join(words))
            words = []


def sentences(text):
    text = re.sub(r"``[^`]+``|`[^`]*`", "`code`", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    begin = 0
    for end in SENTENCE_END.finditer(text):
        yield text[begin:end.end()].strip(" )*_\"'")
        begin = end.end()
    if text[begin:].strip():
        yield text[begin:].strip(" )*_\"'")


def findings_of(path, group):
    """Yields (line, kind, text) for each place of a file that a reader stumbles over."""
    text = path.read_text(encoding="utf-8")
    if group == "tests":
        for found in TEST.finditer(text):
            name = ".".join(found.groups())
            if len(name) > LONGEST_TEST_NAME:
                yield text.count("\n", 0, found.start()) + 1, "long test name", name
        return
    markdown = path.suffix == ".md"
    if markdown:
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > LONGEST_LINE:
                yield number, "long line", line[:80]
    for number, block in blocks_of_markdown(text) if markdown else blocks_of_comments(text):
        for found in VAGUE.finditer(re.sub(r"`[^`]*`", "", block)):
            yield number, "vague subject", block[max(0, found.start() - 30):found.end() + 30]
        for sentence in sentences(block):
            if OPENING.match(sentence) and not sentence.endswith("?"):
                yield number, "opening", sentence[:80]
            if sentence.startswith("Errors:"):
                continue
            if len(sentence.split()) > LONGEST_SENTENCE:
                yield number, "long sentence", sentence[:80]
            if sentence.count(";") > 1:
                yield number, "two semicolons", sentence[:80]


def files_of(group):
    return sorted({path for pattern in GROUPS[group] for path in ROOT.glob(pattern)})


def count():
    counts = {}
    for group in GROUPS:
        kinds = counts[group] = {}
        for path in files_of(group):
            for _, kind, _ in findings_of(path, group):
                kinds[kind] = kinds.get(kind, 0) + 1
    return counts


def print_places(names):
    chosen = {(ROOT / name).resolve() if not pathlib.Path(name).is_absolute() else pathlib.Path(name) for name in names}
    for group in GROUPS:
        for path in files_of(group):
            if not chosen or path in chosen:
                for line, kind, text in findings_of(path, group):
                    print(f"{path.relative_to(ROOT)}:{line}: {kind}: {text}")


def print_files():
    for group in GROUPS:
        for path in files_of(group):
            kinds = [kind for _, kind, _ in findings_of(path, group)]
            if kinds:
                told = ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))
                print(f"{len(kinds):5} {path.relative_to(ROOT)}: {told}")


def grown(now, before):
    return [
        f"{group}: {kind}: {number}, {before.get(group, {}).get(kind, 0)} allowed"
        for group, kinds in now.items()
        for kind, number in kinds.items()
        if number > before.get(group, {}).get(kind, 0)
    ]


def main():
    reads = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("--list", action="store_true")
    reads.add_argument("--files", action="store_true")
    reads.add_argument("--record", action="store_true")
    reads.add_argument("names", nargs="*", metavar="FILE")
    asked = reads.parse_args()
    if asked.list:
        return print_places(asked.names)
    if asked.files:
        return print_files()
    now = count()
    before = json.loads(RECORD.read_text()) if RECORD.exists() else None
    worse = grown(now, before) if before is not None else []
    for each in worse:
        print(each, file=sys.stderr)
    if worse:
        sys.exit("Write it plainer: docs/check_style.py --list names the places.")
    if asked.record or before is None:
        RECORD.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n")
    for group, kinds in now.items():
        print(f"{group}: " + ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items())))
    if before is not None and now != before and not asked.record:
        print("Fewer than are allowed: docs/check_style.py --record keeps it so.")


if __name__ == "__main__":
    main()
