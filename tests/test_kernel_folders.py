"""The folder in which kernels are kept: damaged, full, locked or missing, and when it is emptied."""

import os
import time
from pathlib import Path

import pytest
from kernel_processes import compiled_only, drafts, fresh, posix_only, triple

from cstormpy import cache_folder as cache_folder_module
from cstormpy import file_writer
from cstormpy.kernels import compiling
from cstormpy.kernels.compiling import cache_folder


@compiled_only
def test_without_source_files_nothing_is_kept(folder, said, monkeypatch):
    monkeypatch.setattr(compiling, "_IMPORTED", None)
    assert fresh().load()(1.0) == 2.0
    assert "their source files are not there" in said[0]
    assert not folder.exists()


@compiled_only
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: b"garbage" * 500,
        lambda content: content[:32] + bytes(len(content) - 32),
        lambda content: content[: len(content) // 2] + b"\xff\x00\xff" + content[len(content) // 2 + 3 :],
    ],
    ids=["empty", "head", "half", "one short", "one long", "garbage", "zeros", "bits"],
)
def test_a_damaged_file_is_compiled_anew(folder, said, damage):
    fresh().load()
    (kept,) = cache_folder().glob("*.kernel")
    sound = kept.read_bytes()
    kept.write_bytes(damage(sound))
    assert fresh().load()(21.0) == 42.0
    assert len(said) == 2
    assert kept.read_bytes() != damage(sound)
    assert fresh().load()(21.0) == 42.0
    assert len(said) == 2  # mended


@compiled_only
def test_a_folder_in_place_of_the_file_is_survived(folder, said):
    fresh().load()
    (kept,) = cache_folder().glob("*.kernel")
    kept.unlink()
    kept.mkdir()
    assert fresh().load()(2.0) == 4.0
    assert "cannot be kept" in said[-1]
    assert not drafts()


@compiled_only
@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_where_the_folder_should_be(tmp_path, monkeypatch, said, below):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "file" / below))
    assert fresh().load()(2.0) == 4.0
    assert fresh(triple).load()(2.0) == 6.0
    assert said[0] == said[1]  # so that it is said once
    assert "cannot be kept" in said[0]
    assert "set CSTORMPY_CACHE_DIR to a folder that can be written" in said[0]
    assert str(tmp_path / "file") in said[0]
    assert (tmp_path / "file").read_text() == "mine"


@compiled_only
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_can_not_be_written(folder, said):
    folder.mkdir()
    folder.chmod(0o500)
    assert fresh().load()(2.0) == 4.0
    assert "Permission denied" in said[0]
    folder.chmod(0o700)


@compiled_only
def test_a_warm_folder_needs_no_permission_to_write(folder, said, monkeypatch):
    """Kernels compiled when an image was made are read by whoever runs it."""
    fresh().load()
    said.clear()

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    for name in ("_make_folder", "_Lock"):
        monkeypatch.setattr(compiling, name, refuse)
    monkeypatch.setattr(compiling.os, "utime", refuse)
    assert fresh().load()(2.0) == 4.0
    assert said == []


@compiled_only
def test_a_disk_that_is_full(folder, said, monkeypatch):
    def full(self, content):
        self.error = OSError(28, "No space left on device")
        raise self.error

    monkeypatch.setattr(file_writer._Draft, "write", full)
    assert fresh().load()(2.0) == 4.0
    assert "No space left on device" in said[-1]
    assert not drafts()
    assert not list(cache_folder().glob("*.kernel"))


@compiled_only
def test_a_user_without_a_home(said, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("CSTORMPY_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert fresh().load()(2.0) == 4.0
    assert "Could not determine home directory" in said[0]


@pytest.mark.nojit
@pytest.mark.parametrize(
    "platform, variables, expected",
    [
        ("linux", {"XDG_CACHE_HOME": "/cache"}, "/cache/cstormpy"),
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache/cstormpy"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches/cstormpy"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/cstormpy"),
        ("linux", {"CSTORMPY_CACHE_DIR": "/mine", "XDG_CACHE_HOME": "/cache"}, "/mine"),
        ("linux", {"CSTORMPY_CACHE_DIR": "~/mine", "HOME": "/home/me"}, "/home/me/mine"),
    ],
)
@posix_only
def test_where_kernels_are_kept(monkeypatch, platform, variables, expected):
    for name in ("CSTORMPY_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cache_folder_module.sys, "platform", platform)
    assert cache_folder().parent == Path(expected)


@pytest.mark.nojit
def test_old_folders_go_and_nothing_else(tmp_path):
    day = 24 * 3600.0
    ages = [1, 2, 8, 9, 10, 30, 400]  # days
    for k, age in enumerate(ages):
        old = tmp_path / f"kernels-{k:020x}"
        old.mkdir()
        (old / "a.kernel").write_bytes(b"x")
        os.utime(old, (time.time() - age * day,) * 2)
    foreign = ["photographs-of-my-cat", "kernels-mine", "kernels-" + "g" * 20, "a" * 28]
    for name in foreign:
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    current = tmp_path / f"kernels-{99:020x}"
    compiling._make_folder(current)
    left = {f.name for f in tmp_path.iterdir()}
    # with the current one four are kept
    assert left == {current.name, *foreign, *(f"kernels-{k:020x}" for k in range(3))}


@pytest.mark.nojit
def test_no_folder_goes_that_was_used_lately(tmp_path):
    for k in range(9):
        (tmp_path / f"kernels-{k:020x}").mkdir()
    compiling._make_folder(tmp_path / f"kernels-{99:020x}")
    assert len(list(tmp_path.iterdir())) == 10


@compiled_only
def test_reading_counts_as_use(folder):
    fresh().load()
    os.utime(cache_folder(), (0, 0))
    fresh().load()
    assert cache_folder().stat().st_mtime > time.time() - 100
