"""The blocks of the documents run as they are, each in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Process

top = Path(__file__).parent.parent.parent
fence = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
blocks = [
    (page.relative_to(top), number, block)
    for page in sorted({top / "README.md", *(top / "docs").rglob("*.md")})
    for number, block in enumerate(fence.findall(page.read_text()))
]


@pytest.mark.parametrize("block", blocks, ids=lambda block: f"{block[0]}.{block[1]}")
def test_block_runs(block: tuple[Path, int, str]) -> None:
    with Process(block[2]) as running:
        assert running.end() == (0, "", "")


def test_page_has_blocks() -> None:
    assert any(page.name == "python.md" for page, _, _ in blocks)
