#!/usr/bin/env python3
"""Fails where an enumeration of a public header has no names, no row in docs/conventions.md, or no line in the test of names.

  check_enumerations.py [PROJECT_DIR]

The values of each row are those of the header, in its order. docs/reference/errors.md has those of `errc`: each row has the
message of src/api/error.cpp, or its first clause, so that a search for the text of an error finds the row.
"""
import pathlib
import re
import sys

ENUMERATION = re.compile(r"^enum class (\w+)(?: : [\w:]+)? \{(.*?)\};", re.DOTALL | re.MULTILINE)
OLD_NAMES = re.compile(r"^#if UCXIO_OLD_NAMES$.*?^#endif *$\n", re.DOTALL | re.MULTILINE)
MEANING = re.compile(r'\{\s*errc::(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
CLAUSE = re.compile(r"[:;]| \(")
TEST = "tests/unit/api/to_string_test.cpp"
ROWS, ERRORS, MESSAGES = "docs/conventions.md", "docs/reference/errors.md", "src/api/error.cpp"


def enumerations(root):
    """Yields (header, its code, name, values) for each enumeration of the public headers."""
    for header in sorted((root / "include/ucx").rglob("*.hpp")):
        code = OLD_NAMES.sub("", re.sub(r"//.*", "", header.read_text()))
        for name, body in ENUMERATION.findall(code):
            yield header.relative_to(root), code, name, [value.split()[0] for value in body.split(",") if value.strip()]


def rows(root):
    """Returns the values of each enumeration that the table of the conventions has; None where it refers to another page."""
    text = (root / ROWS).read_text().partition("\n## Enumerations\n")[2].partition("\n## ")[0]
    found = {}
    for name, values in re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE):
        found[name] = None if "](" in values else re.findall(r"`(\w+)`", values.partition(";")[0])
    return found


def messages(root):
    """Returns the message of each value of `errc`."""
    return {name: "".join(re.findall(r'"([^"]*)"', texts)) for name, texts in MEANING.findall((root / MESSAGES).read_text())}


def complaints_about_messages(root, errors):
    table, found = errors.partition("\n## All values\n")[2].partition("\n## ")[0], messages(root)
    described = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE))
    for name in sorted(described.keys() - found.keys()):
        yield f"{MESSAGES}: no message of {name}, which {ERRORS} describes"
    for name, message in found.items():
        clause = CLAUSE.split(message)[0]
        if name in described and not re.match(re.escape(clause) + r"(?!\w)", described[name]):
            yield f'{ERRORS}: the row of {name} does not begin with "{clause}"'


def complaints(root):
    told, errors, test = rows(root), (root / ERRORS).read_text(), (root / TEST).read_text()
    names = set()
    for header, code, name, values in enumerations(root):
        names.add(name)
        if not re.search(rf"\b(enum_name|to_string)\({name} value\)", code):
            yield f"{header}: {name} has no names: declare detail::enum_name({name} value) beside it"
        if name not in told:
            yield f"{ROWS}: no row of {name}, of {header}"
        elif told[name] is None:
            yield from (f"{ERRORS}: no row of {value}" for value in values if f"\n| `{value}`" not in errors)
        elif told[name] != values:
            yield f"{ROWS}: {name} has {', '.join(told[name])}; {header} has {', '.join(values)}"
        yield from (f"{TEST}: {name}::{value} is missing" for value in values if not re.search(rf"\b{name}::{value}\b", test))
    yield from complaints_about_messages(root, errors)
    yield from (f"{ROWS}: {name} is in no header" for name in sorted(told.keys() - names))


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[3]
    found = list(complaints(root))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
