"""The blocks of README.md and docs/: run.py's docstring says how they are written."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {"cpp", "sh", "json", "text", "cmake", "python"}
WORDS = {"file", "run", "global", "needs", "terminal", "says", "serves", "not-run"}


class malformed(Exception):
    """A page that does not say what its blocks are."""


class Block:
    def __init__(self, page, line, info, text, hidden=False):
        self.page, self.line, self.text, self.hidden = page, line, text, hidden
        words = re.findall(r'[^\s"]+="[^"]*"|\S+', info)
        self.language = words[0] if words else ""
        split = [word.split("=", 1) if "=" in word else (word, "") for word in words[1:]]
        self.words = {word: value.strip('"') for word, value in split}

    @property
    def place(self):
        return f"{shown(self.page)}:{self.line}"

    @property
    def reason(self):
        """Returns why it is not run, or None."""
        return self.words.get("not-run")

    @property
    def is_whole(self):
        """Returns whether it is a source by itself: a fragment has neither includes nor a main()."""
        return "#include" in self.text or "int main(" in self.text


def shown(page):
    return page.relative_to(ROOT) if page.is_relative_to(ROOT) else page


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page):
    """Returns the blocks of a page in order, hidden ones among them."""
    found, lines = [], page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = re.match(r"(\s*)```(.*)", line)
        hidden = re.match(r"<!-- ((?:code|sh)\b.*)$", line)
        if fence or hidden:
            closing = "```" if fence else "-->"
            end = next((i for i in range(number + 1, len(lines)) if lines[i].strip() == closing), None)
            if end is None:
                raise malformed(f"{shown(page)}:{number + 1}: a block without an end")
            indent = len(fence.group(1)) if fence else 0
            text = "\n".join(each[indent:] for each in lines[number + 1:end]) + "\n"
            found.append(Block(page, number + 2, fence.group(2) if fence else hidden.group(1), text, not fence))
            number = end
        elif re.match(r"    \S", line) and number and not lines[number - 1].strip() and not in_list(lines, number):
            raise malformed(f"{shown(page)}:{number + 1}: an indented block does not say what it is: use a fence")
        number += 1
    for block in found:
        check(block)
    return found


def check(block):
    for word in block.words.keys() - WORDS:
        raise malformed(f"{block.place}: a fence with the unknown word \"{word}\"")
    if block.hidden:
        return
    if block.language not in LANGUAGES:
        raise malformed(f"{block.place}: a fence of the unknown language \"{block.language}\"")
    if block.language == "cmake" and block.reason is None and "file" not in block.words:
        raise malformed(f"{block.place}: a part of a CMakeLists.txt needs file=NAME, and commands that include it")
    if block.reason == "":
        raise malformed(f"{block.place}: not-run without a reason")


def in_list(lines, number):
    """Returns whether a line goes on with an item of a list."""
    for line in reversed(lines[:number]):
        if line.strip() and not line.startswith(" "):
            return bool(re.match(r"([-*+]|\d+\.)\s", line))
    return False
