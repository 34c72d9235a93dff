from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_python_runs(code):
    exec(compile(re.sub(r"(n_hidden\W+)\d+", r"\g<1>50", code), "README.md", "exec"), {})


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_short_enough_to_be_read():
    assert len(README.splitlines()) <= 130


def test_claims_lead_to_their_rows():
    """A link to a section of a page names a heading of it."""
    for target, anchor in re.findall(r"\]\((docs/[\w-]+\.md)#([\w-]+)\)", README):
        heads = re.findall(r"^#+ (.*)$", (ROOT / target).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}, anchor


def test_results_are_those_of_the_page():
    """Those that `python tools/readme_table.py` writes, which leaves out no task."""
    spec = importlib.util.spec_from_file_location("readme_table", ROOT / "tools" / "readme_table.py")
    readme_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme_table)
    page = (ROOT / "docs" / "real-data.md").read_text(encoding="utf-8")
    assert readme_table.updated(README, page) == README
    first = "| [wind-60](#wind-60) |"
    more = page.replace(first, f"| [new](#new) | 1 | us | 2 | 0.1 | 3 of 4 | **level** | 0 / 1 / 2 |\n{first}", 1)
    assert "| [new](docs/real-data.md#new) | 1 | us | 2 | level |\n" in readme_table.updated(README, more)


def test_contributors_find_the_files():
    named = re.findall(r"`((?:src|tests|docs|examples|tools|benchmarks)/[\w./-]*)", CONTRIBUTING)
    assert len(named) > 30
    for path in named:
        if "NAME" not in path and "_build" not in path:
            assert (ROOT / path).exists(), path


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^(?:\| `)?make ([\w-]+)", README + CONTRIBUTING, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
