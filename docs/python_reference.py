#!/usr/bin/env python3
"""Writes the page of the Python package's reference, from its docstrings in NumPy's style. Nothing is imported.

  docs/python_reference.py PAGE        PAGE: the Markdown file to be written
"""
import ast
import inspect
import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python" / "ucxio"
MODULES = ["ucxio", "ucxio.aio", "ucxio.calls", "ucxio.ucp", "ucxio.ucp.exceptions", "ucxio.ucp.early",
           "ucxio.ucp._libs.ucx_api", "ucxio.fsspec", "ucxio.safetensors"]
SPECIAL = {"__getitem__", "__call__", "__iter__", "__len__"}
TITLE = """# Python API

The public names of the package, from their docstrings. [The guide](python.md) explains how they belong together.
"""


def file_of(module):
    """Returns the source of a module; None where there is none."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return next((each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file()), None)


class Module:
    """The names of a module: what it defines, and from where it has the others."""

    known = {}

    def __init__(self, name):
        self.name = name
        file = file_of(name)
        is_package = file.name == "__init__.py"
        self.tree = ast.parse(file.read_text())
        self.defined, self.imported, self.public = {}, {}, []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                parts = name.split(".")[: None if is_package else -1]
                parts = parts[: len(parts) - node.level + 1]
                source = ".".join(parts + ([node.module] if node.module else []))
                for each in node.names:
                    if not node.module and file_of(f"{source}.{each.name}"):
                        continue  # a module is no class, and no function
                    self.imported[each.asname or each.name] = (source, each.name)
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.defined[node.name] = node  # the last one: of overloads, the one that does it
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                self.public = ast.literal_eval(node.value)

    @classmethod
    def of(cls, name):
        if name not in cls.known:
            cls.known[name] = cls(name)
        return cls.known[name]

    def find(self, name):
        """Returns the module and the definition of a name; None where that is not in the package, or no function."""
        if name in self.defined:
            return self, self.defined[name]
        source, original = self.imported.get(name, (None, None))
        if source is None or file_of(source) is None:
            return None
        return Module.of(source).find(original)


def members_of(module, node):
    """Returns the public members of a class by name, those of its bases in the package first."""
    found = {}
    for base in reversed(node.bases):
        name = getattr(base, "id", None)
        where = module.find(name) if name else None
        if where:
            found.update(members_of(*where))
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and is_public(each):
            found[each.name] = each
    return found


def is_public(function):
    is_named = not function.name.startswith("_") or function.name in SPECIAL
    is_setter = any(isinstance(each, ast.Attribute) for each in function.decorator_list)
    return is_named and not is_setter and ast.get_docstring(function) is not None


def is_property(function):
    return any(getattr(each, "id", "") == "property" for each in function.decorator_list)


def signature(function, name, is_method):
    """Returns a definition without types, which the docstring tells."""
    arguments = function.args
    listed = [each.arg for each in arguments.posonlyargs]
    defaults = [None] * (len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    shown = []
    for each, default in zip(arguments.posonlyargs + arguments.args, defaults):
        shown.append(each.arg if default is None else f"{each.arg}={ast.unparse(default)}")
    if is_method and not any(getattr(each, "id", "") == "staticmethod" for each in function.decorator_list):
        shown = shown[1:]
        listed = listed[1:]
    if listed:
        shown.insert(len(listed), "/")
    if arguments.vararg:
        shown.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        shown.append("*")
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        shown.append(each.arg if default is None else f"{each.arg}={ast.unparse(default)}")
    if arguments.kwarg:
        shown.append("**" + arguments.kwarg.arg)
    is_awaited = isinstance(function, ast.AsyncFunctionDef)
    return f"{'await ' if is_awaited else ''}{name}({', '.join(shown)})"


def prose(lines):
    """Returns text as Markdown. A table of reStructuredText is shown as it is."""
    text, table = [], []
    for line in [*lines, ""]:
        if line.startswith("===") or (table and line):
            table.append(line)
            continue
        if table:
            text += ["```text", *table, "```"]
            table = []
        text.append(line if line.startswith("    ") else re.sub(r"``([^`]+)``", r"`\1`", line))
    return "\n".join(text).strip("\n")


def entries(lines):
    """Returns the entries of a section of names, types and descriptions as a list."""
    shown, name, about = [], None, []

    def end():
        if name is None:
            return
        head, _, kind = (part.strip() for part in name.partition(" : "))
        kind = f" (`{kind}`)" if kind else ""
        body = prose(inspect.cleandoc("\n".join(about)).split("\n"))
        nested = body.replace("\n", "\n    ")
        shown.append(f"- **{head.replace('*', chr(92) + '*')}**{kind}" + (f": {nested}" if body else ""))

    for line in lines:
        if line and not line.startswith(" "):
            end()
            name, about = line, []
        else:
            about.append(line)
    end()
    return "\n".join(shown)


def described(node):
    """Returns a docstring as Markdown."""
    lines = (ast.get_docstring(node) or "").split("\n")
    sections, heading, begun = [], None, []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if below.startswith("---") and len(below) == len(line):
            sections.append((heading, begun))
            heading, begun = line, []
        elif not (line.startswith("---") and not begun and heading):
            begun.append(line)
    sections.append((heading, begun))
    shown = []
    for heading, body in sections:
        if heading is None:
            shown.append(prose(body))
        elif heading in {"Parameters", "Attributes", "Returns", "Raises", "Yields"}:
            shown.append(f"**{heading}**\n\n{entries(body)}")
        else:
            shown.append(f"**{heading}**\n\n{prose(body)}")
    return "\n\n".join(each for each in shown if each) + "\n"


def class_page(module, shown_as, name, node):
    made = [f"### {shown_as}\n"]
    constructor = next((each for each in node.body if getattr(each, "name", "") == "__init__"), None)
    if constructor and not ast.get_docstring(constructor):  # others are made by functions
        made.append(f"```text\n{signature(constructor, name, True)}\n```\n")
    made.append(described(node))
    for member, function in members_of(module, node).items():
        made.append(f"#### {name}.{member}\n".replace("__", r"\_\_"))
        if not is_property(function):
            made.append(f"```text\n{signature(function, member, True)}\n```\n")
        made.append(described(function))
    return made


def module_page(module):
    made = [f"## {module.name}\n", described(module.tree)]
    for name in module.public:
        found = module.find(name)
        if found is None:
            continue  # a value, such as __version__
        where, node = found
        if isinstance(node, ast.ClassDef):
            made += class_page(where, f"{module.name}.{name}", name, node)
        else:
            made += [f"### {module.name}.{name}\n", f"```text\n{signature(node, name, False)}\n```\n", described(node)]
    return made


def page():
    """Returns the whole page."""
    found = [module_page(Module.of(each)) for each in MODULES if file_of(each)]
    return "\n".join([TITLE, *(line for each in found for line in each)])


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page())
