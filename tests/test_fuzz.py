"""Some mutated files of every kind; `make fuzz` reads many more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from helpers import needs_proc

SCRIPT = Path(__file__).parents[1] / "tools" / "fuzz.py"
KINDS = ["model", "series", "settings", "cifar", "results", "report"]
CASES = 40


@needs_proc  # by which the fuzzer limits its memory
def test_mutated_files():
    done = subprocess.run([sys.executable, SCRIPT, *KINDS, "--count", str(CASES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{kind}: {CASES} cases" in done.stdout for kind in KINDS)
