#!/usr/bin/env python3
"""Prints a public header as Doxygen is to read it: docs/Doxyfile.in filters each header through this.

  docs/filter_header.py HEADER

- Options that stay for one version are left out, and the values that they give. So are the names of enumerators, which are
  specialisations of a function of ucx::detail.
- The comments' own terms (docs/conventions.md) start a line each.
- A document that a comment names, with a section or without, becomes a link to the site's page.
- A number in code loses its separators: Doxygen takes one for the beginning of a character, and no longer sees whole comments.

A line stays at its number, for Doxygen's warnings.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENT_LINE = r"[ \t]*\n[ \t]*///?[ \t]*"
OLD_OPTIONS = re.compile(r"^ *///? For one version: .*\n(?: *///? .*\n)*(?: *detail::old_(?:option|handler)<[^;]*;\n)+", re.MULTILINE)
OLD_INCLUDE = re.compile(r'^#include "ucx/old_option\.hpp"$', re.MULTILINE)
OLD_VALUE = re.compile(r"= \w+\.value_or\((.*)\);$", re.MULTILINE)
ENUM_NAME = re.compile(r"^template <>\n.*enum_name.*$", re.MULTILINE)
SEPARATOR = re.compile(r"^((?:(?!//).)*?\d)'(?=\d)", re.MULTILINE)
COMMENT = re.compile(r"///.*")
TERM = re.compile(r"\b(Completes|Cost|Errors|Lifetime|REQUIRES|Threads):")
DOCUMENT = re.compile(rf"`?docs/([\w/-]+)\.md`?(?:,(?: |{COMMENT_LINE})\"([^\"]+)\")?")


def slug(title):
    """Returns the name that the site gives to a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def link(found):
    page, section = found.groups()
    section = section and re.sub(rf"\s*(?:{COMMENT_LINE})", " ", section)
    shown = pathlib.PurePath(page).name + ".md" + (f', "{section}"' if section else "")
    target = f"../docs/{page}.html" + (f"#{slug(section)}" if section else "")
    rest = re.search(COMMENT_LINE, found.group(0))
    return f'<a href="{target}">{shown}</a>' + (rest.group(0) if rest else "")


def without_text(found):
    return "\n" * found.group(0).count("\n")


def filtered(text):
    for leaves in (OLD_OPTIONS, OLD_INCLUDE, ENUM_NAME):
        text = leaves.sub(without_text, text)
    text = OLD_VALUE.sub(r"= \1;", text)
    while SEPARATOR.search(text):
        text = SEPARATOR.sub(r"\1", text)
    text = COMMENT.sub(lambda found: TERM.sub(r"<br><b>\1:</b>", found.group(0)), text)
    return DOCUMENT.sub(link, text)


if __name__ == "__main__":
    print(filtered(pathlib.Path(sys.argv[1]).read_text()), end="")
