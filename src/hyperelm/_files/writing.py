"""Files that are written whole or not at all, and texts from files that are shown.

The content goes to a temporary file in the same folder, to the disk, and only then takes the name: whatever happens
on the way, under that name is the old file or the new one. A symbolic link of that name is replaced, too, so that
nothing is written where it points to.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to the file `path`, which keeps its permissions if it is there already."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"`path` must be a file, got {os.fspath(path)!r}, which is a folder or a device.")
    folder = os.path.realpath(os.path.dirname(path))
    target = os.path.join(folder, os.path.basename(path))
    there = os.path.exists(target) and not os.path.islink(target)
    temporary = os.path.join(folder, f".hyperelm-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if there:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        _remove(temporary)
        raise
    _to_disk(folder)


def printable(text: str, keep: str = "") -> str:
    """Text from a file without what steers a terminal: control characters, but for those in `keep`, are replaced."""
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _to_disk(folder: str) -> None:
    """The new name, too, survives a power cut; where folders cannot be opened (Windows), the system sees to it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
