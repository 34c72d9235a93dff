"""Some mutated files of every kind; `make fuzz` reads many more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers import needs_proc

SCRIPT = Path(__file__).parents[1] / "tools" / "fuzz.py"
CASES = 60


@needs_proc  # by which the fuzzer limits its memory
@pytest.mark.parametrize("kind", ["model", "series", "settings", "cifar", "results", "report"])
def test_mutated_files(kind):
    done = subprocess.run([sys.executable, SCRIPT, kind, "--count", str(CASES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: {CASES} cases" in done.stdout
