"""The code on the pages of the guide runs, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [path for path in sorted(DOCS.glob("*.md")) if "```python" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(code, page.name, "exec"), names)
