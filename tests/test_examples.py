from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# `make docs` runs all examples; those that take a quarter of a minute are left to it and to `make test-slow`.
LONG = ("plot_digits", "plot_compression")
EXAMPLES = [
    pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [], id=path.stem)
    for path in sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_example_runs(path, tmp_path):
    environment = os.environ | {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
