from __future__ import annotations

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
