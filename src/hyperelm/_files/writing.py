"""Files that are written whole or not at all, and texts from files that are shown.

The content goes to a temporary file in the same folder. When it has reached the disk, the temporary file takes the
name. So under this name there is the old file or the new one, whatever happens on the way. A symbolic link of this name
is replaced, too: nothing is written to the file that it points to.
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
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    if hasattr(os, "O_DIRECTORY"):  # The new name must survive a power cut, too. Windows has another way for that.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def printable(text: str, keep: str = "") -> str:
    """Text from a file that a terminal can show: control characters are replaced, except those in `keep`."""
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)
