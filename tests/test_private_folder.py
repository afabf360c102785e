"""What runs when it is read is read only where nobody else can have written it: kept kernels in shared folders."""

import hashlib
import os
import pickle
import stat
from pathlib import Path

import numba
import pytest

from cstormpy import cache_folder as cache_folder_module
from cstormpy import doctor
from cstormpy.kernels import compiling
from cstormpy.kernels.compiling import Entry, cache_folder
from cstormpy.private_folder import NotPrivateError, check_private, make_private, read_private

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and permissions of POSIX")
compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled where the JIT is off")

SHARED = {"group": 0o770, "all": 0o777, "all, sticky": 0o1777}


def double(x):
    return 2.0 * x


def fresh():
    return Entry(double, "f8(f8)", False, compiling._OPTIONS).load()


@pytest.fixture
def disown(monkeypatch):
    """Return a function that makes paths somebody else's: with root's power, or by being somebody else oneself."""

    def disowned(*paths):
        if os.geteuid() != 0:
            monkeypatch.setattr(os, "geteuid", lambda: 1 + os.getuid())
            return
        for path in paths:
            os.chown(path, 54321, -1)

    return disowned


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(compiling, "notice_once", lines.append)
    monkeypatch.setattr(cache_folder_module, "notice_once", lines.append)
    return lines


class Planted:
    """What does something when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def plant(folder, tmp_path, monkeypatch):
    """Put a file that runs code where a kernel would be read, and return what it leaves when it has run."""
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "own"))
    fresh()
    (kept,) = cache_folder().glob("*.kernel")
    content = pickle.dumps(Planted(tmp_path / "has run"))
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(folder))
    cache_folder().mkdir(parents=True, mode=0o755)
    planted = cache_folder() / kept.name
    planted.write_bytes(hashlib.sha256(content).digest() + content)
    return planted, tmp_path / "has run"


@compiled_only
@pytest.mark.parametrize("who", SHARED)
def test_a_file_planted_in_a_shared_folder_is_not_run(tmp_path, monkeypatch, said, who):
    """The checksum of a kernel's file has no key: whoever could write there had his code run by all others."""
    folder = tmp_path / "shared"
    planted, marker = plant(folder, tmp_path, monkeypatch)
    folder.chmod(SHARED[who])
    before = planted.read_bytes()
    said.clear()
    assert fresh()(4.0) == 8.0
    assert not marker.exists()
    assert said == [
        f"compiling kernels (some seconds each) that cannot be kept: {folder}: others may write to it; have "
        "'chmod go-w' take that away; or set CSTORMPY_CACHE_DIR to a folder of your own"
    ]
    assert planted.read_bytes() == before and list(cache_folder().iterdir()) == [planted]
    assert not compiling.is_kept("double") and not compiling.can_keep()


@compiled_only
def test_a_file_in_a_folder_of_somebody_else_is_not_run(tmp_path, monkeypatch, said, disown):
    planted, marker = plant(tmp_path / "theirs", tmp_path, monkeypatch)
    disown(tmp_path / "theirs", cache_folder(), planted)
    said.clear()
    assert fresh()(4.0) == 8.0
    assert not marker.exists()
    (line,) = said
    assert f"{tmp_path / 'theirs'}" in line and "belongs to another user (" in line


@compiled_only
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_in_our_folder_is_replaced(tmp_path, monkeypatch, said):
    """The folder was open once, and has been closed since."""
    planted, marker = plant(tmp_path / "ours", tmp_path, monkeypatch)
    os.chown(planted, 54321, -1)
    assert fresh()(4.0) == 8.0
    assert not marker.exists()
    assert planted.stat().st_uid == os.geteuid()
    assert not stat.S_IMODE(planted.stat().st_mode) & 0o022


def test_files_that_others_can_have_written_are_not_read(tmp_path, disown):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"content")
    path.chmod(0o644)
    link.symlink_to(path)
    assert read_private(path) == b"content"
    assert read_private(link) is None
    assert read_private(tmp_path) is None
    assert read_private(tmp_path / "none") is None
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert read_private(path) is None
    path.chmod(0o644)
    disown(path)
    assert read_private(path) is None


@compiled_only
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022])
def test_folders_that_we_make_are_ours_alone(tmp_path, monkeypatch, said, umask):
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "new" / "cache"))
    before = os.umask(umask)
    try:
        assert fresh()(4.0) == 8.0
    finally:
        os.umask(before)
    for folder in (tmp_path / "new", tmp_path / "new" / "cache", cache_folder()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (kept,) = cache_folder().glob("*.kernel")
    assert not stat.S_IMODE(kept.stat().st_mode) & 0o022
    said.clear()
    assert fresh()(4.0) == 8.0
    assert said == []


def test_parents(tmp_path):
    """Below /tmp nobody replaces what is ours; below a folder that all may write to, all may."""
    open_folder, folder = tmp_path / "open", tmp_path / "open" / "mine"
    make_private(folder)
    open_folder.chmod(0o1777)
    assert check_private(folder) == folder.resolve()
    assert check_private(folder / "not" / "yet") == folder.resolve() / "not" / "yet"
    open_folder.chmod(0o777)
    with pytest.raises(NotPrivateError, match="open: all may write to it, and so replace what is in it"):
        check_private(folder)
    with pytest.raises(NotPrivateError, match="open: "):
        check_private(open_folder / "not yet")


def test_where_no_folder_can_be_made(tmp_path, monkeypatch):
    """A home that cannot hold a folder, as /proc, or a drive that is not there, was asked for it without end."""

    def refuse(self, mode=0o777):
        raise FileNotFoundError(2, "No such file or directory", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    for folder in (tmp_path / "home" / "cstormpy", Path("/")):
        with pytest.raises(FileNotFoundError):
            make_private(folder)


def test_links_are_followed_to_where_the_folder_is(tmp_path):
    make_private(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    assert check_private(tmp_path / "link") == (tmp_path / "real").resolve()
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(NotPrivateError, match="real: others may write to it"):
        check_private(tmp_path / "link")


def test_the_doctor_says_it(tmp_path, monkeypatch):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(folder))
    finding = doctor._kept()
    assert not finding.well and finding.state.startswith(f"no: {folder}: others may write to it")
    assert "export CSTORMPY_CACHE_DIR=FOLDER, of one of your own" in str(finding)
