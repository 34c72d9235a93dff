"""Whatever happens while a file is written, under its name is the old file or the new one, and nothing else is left."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat

import pytest

from helpers import fork, needs_file_limits, needs_fork, needs_links, needs_rights
from hyperelm._files.writing import write_whole


def test_written(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"new")
    write_whole(str(path), b"newer")
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["file"]


@needs_rights
def test_the_rights_of_a_new_file_and_of_an_old_one(tmp_path):
    path = tmp_path / "file"
    mask = os.umask(0o027)
    try:
        write_whole(path, b"new")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    write_whole(path, b"newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@needs_links
@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_and_not_followed(tmp_path, there):
    (tmp_path / "folder").mkdir()
    other, link = tmp_path / "folder" / "file", tmp_path / "link"
    if there:
        other.write_bytes(b"of somebody else")
    link.symlink_to(other)
    write_whole(link, b"new")
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
    assert [path.read_bytes() for path in (tmp_path / "folder").iterdir()] == [b"of somebody else"] * there


@needs_links
def test_the_folder_may_be_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    write_whole(tmp_path / "link" / "file", b"new")
    assert (tmp_path / "folder" / "file").read_bytes() == b"new"


def test_a_name_in_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole("file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fails(*_):
        raise error

    monkeypatch.setattr(os, step, fails)
    with pytest.raises(type(error)) as raised:
        write_whole(path, b"new")
    if isinstance(error, OSError):
        assert str(raised.value) == f"[Errno {errno.ENOSPC}] No space left on device: '{path}'"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@needs_file_limits
def test_no_room(tmp_path):
    """The system itself refuses to write more than so many bytes."""
    import resource

    path = tmp_path / "file"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=re.escape(f"File too large: '{path}'")):
            write_whole(path, b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@needs_fork
def test_killed_before_the_file_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write():
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        write_whole(path, b"new")

    child = fork(write)
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


@needs_links
def test_where_no_file_can_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.+file'"):
        write_whole(tmp_path / "nowhere" / "file", b"")
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path, tmp_path / "link", os.devnull):
        with pytest.raises(ValueError, match="which is a folder or a device"):
            write_whole(path, b"")
