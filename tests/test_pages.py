"""The code on the pages of the guide runs, block after block."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [path for path in sorted(DOCS.glob("*.md")) if "```python" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_python_runs(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    if any("import torch" in block for block in blocks):
        pytest.importorskip("torch", reason="the page needs the extra 'torch', which is too large to be asked for")
    # In a process of its own, since pages change settings of the process.
    environment = os.environ | {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_opens_with_a_task(page):
    """The first sentence speaks to somebody who wants something."""
    text = page.read_text(encoding="utf-8")
    if "{include}" not in text:
        head, opening, *_ = text.split("\n\n")
        assert head.startswith("# ")
        assert re.search(r"\byour?\b", opening[:120], flags=re.IGNORECASE), opening


def test_figures_on_real_data_are_those_of_the_results(tmp_path):
    """The pages are those that `python benchmarks/real_data.py --page` writes."""
    benchmarks = DOCS.parent / "benchmarks"
    spec = importlib.util.spec_from_file_location("real_page", benchmarks / "real_page.py")
    real_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(real_page)
    pages = [Path(shutil.copy(DOCS / name, tmp_path)) for name in ("real-data.md", "when.md")]
    real_page.write_pages(json.loads((benchmarks / "real_data.json").read_text(encoding="utf-8")), tmp_path)
    for page in pages:
        assert page.read_text(encoding="utf-8") == (DOCS / page.name).read_text(encoding="utf-8")
