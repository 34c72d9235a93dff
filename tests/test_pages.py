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


BENCHMARKS = DOCS.parent / "benchmarks"


@pytest.fixture(scope="module")
def real_page():
    """The module that writes the figures of the pages on real data."""
    spec = importlib.util.spec_from_file_location("real_page", BENCHMARKS / "real_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_on_real_data_are_those_of_the_results(real_page, tmp_path):
    """The pages are those that `python benchmarks/real_data.py --page` writes."""
    pages = [Path(shutil.copy(DOCS / name, tmp_path)) for name in ("real-data.md", "when.md")]
    real_page.write_pages(json.loads((BENCHMARKS / "real_data.json").read_text(encoding="utf-8")), tmp_path)
    for page in pages:
        assert page.read_text(encoding="utf-8") == (DOCS / page.name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rival", "verdict", "said"),
    [
        ([1.1, 1.2, 1.32, 1.4], "ours", "It is first among all rivals, or within the noise"),
        ([1.0, 0.9, 1.1, 0.98], "level", "It is first among all rivals, or within the noise"),
        ([0.7, 0.71, 0.72, 0.69], "the rival", "Not always: on wind-60 a rival is better"),
    ],
)
def test_page_says_who_is_better(real_page, rival, verdict, said):
    measured = {"fit": 1.0, "predict": 1.0, "parameters": 1, "bytes": 1}
    models = {
        "network": {"ours": True, "errors": [1.0, 1.01, 0.99, 1.0]} | measured,
        "forest": {"ours": False, "errors": rival} | measured,
    }
    result = {"models": models, "labels": False, "of_tables": False, "ratio": 0.0, "splits": 4, "failures": {}}
    assert real_page.verdict(result) == verdict
    assert said in real_page.few_rows({"wind-60": result})
    loss = "Better than ours by more than chance: forest"
    assert (loss in real_page.measured_line(result)) == (verdict == "the rival")
