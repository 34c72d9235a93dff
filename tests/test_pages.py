"""The code on the pages of the guide runs, block after block."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from runpy import run_path

import pytest

from runs import ready

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [path for path in sorted(DOCS.glob("*.md")) if "```python" in path.read_text(encoding="utf-8")]
ELSEWHERE = {"accelerators"}  # whose code tests/_estimators/test_checks.py runs, where SciPy is asked from the start


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_python_runs(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    if any("import torch" in block for block in blocks):
        pytest.importorskip("torch", reason="the page needs the extra 'torch', which is too large to be asked for")
    # In a process of its own, since pages change settings of the process.
    start = f"""import os, sys
os.chdir({str(tmp_path)!r})
os.environ["MPLBACKEND"] = "Agg"
sys.stdout = sys.stderr = open("output", "w", encoding="utf-8")
"""
    (tmp_path / "page.py").write_text("\n".join([start, *blocks]), encoding="utf-8")
    process = ready().Process(target=run_path, args=(str(tmp_path / "page.py"), None, "__main__"))
    process.start()
    process.join(300)
    assert process.exitcode == 0, (tmp_path / "output").read_text(encoding="utf-8")


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
