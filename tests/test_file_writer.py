"""Files are replaced whole or stay as they were: on a full disk, by Ctrl-C, whatever the writer does."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cstormpy.errors import FileFormatError, FileWriteError, InvalidType, InvalidValue
from cstormpy.file_writer import atomic_file, file_path, write_bytes, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")

#: Each writer of the package beside a file that it wrote before, under a limit on the size of files: what a child
#: process prints is the error of each, and whether the old file is still there and nothing else.
CHILD = """
import json, resource, sys
from pathlib import Path

import bd_files
import numpy as np
import cstormpy as cs
from cstormpy import diagrams, report
from cstormpy.optimal import solution_cache
from cstormpy.simulation.sweep.files import Log, header

base = Path(sys.argv[1])
sim = cs.Simulation(engine="interpreted", live=False)
bd = sim.blockdiagram("decay")
x, rate, scope = bd.INTEGRATOR(x0=[1.0] * 9, name="x"), bd.GAIN(-1.0, name="rate"), bd.LIVESCOPE(nin=1, name="scope")
bd.connect(x, rate, scope)
bd.connect(rate, x)
out = sim.run(bd, T=1.0, log_dt=0.002)

def decay(sim):
    bd = sim.blockdiagram()
    x, rate = bd.INTEGRATOR(x0=1.0, name="x"), bd.GAIN(-1.0, name="rate")
    bd.connect(x, rate)
    bd.connect(rate, x)
    return bd

grid = {"rate.K": np.linspace(-2.0, -1.0, 40)}
last = lambda out: out.x[-1, 0]
swept = sim.sweep(decay, grid, last, T=0.1, workers=1, progress=False)

def resumed(path):
    sim.sweep(decay, grid, last, T=0.1, workers=1, progress=False, resume=path)

def begun(path):
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    if not lines:
        swept.save(path)
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:9]))
    else:
        resumed(path)

def bd_file(path):
    bd_files.path = lambda name: str(path) if name == "acrobot" else str(base / "other.bd")
    bd_files.FILES = {"acrobot": bd_files.FILES["acrobot"]}
    bd_files._main()

def kept(path):
    solution_cache._cache = lambda: path.parent
    solution_cache.file_name = lambda made_by: path.name
    made = solution_cache.asked("swing", goal=np.arange(200.0))
    solution_cache._keep(made, ())

writers = {
    "state.json": out.state.save,
    "run.npz": out.save,
    "run.csv": out.save,
    "run.mat": out.save,
    "run.html": lambda path: report.write(path, bd, out),
    "1-scope.png": lambda path: report.figures(out, path.parent),
    "arm.json": cs.library.puma560().save,
    "curve.json": cs.BSpline.clamped(np.zeros((20, 9)), 1.0).save,
    "sweep.jsonl": swept.save,
    "log.jsonl": begun,
    "acrobot.bd": bd_file,
    "motion.json": kept,
}
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for name, write in writers.items():
    folder = base / name.replace(".", "_")
    folder.mkdir()
    path = folder / name
    write(path)
    before, there = path.read_bytes(), sorted(folder.iterdir())
    limit = 256 if name != "log.jsonl" else len(before) + 20
    assert len(before) > 256, name
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    found = {"name": name, "path": str(path), "error": None}
    try:
        write(path)
    except Exception as error:
        found.update(error=type(error).__name__, text=str(error), write=isinstance(error, cs.FileWriteError))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    found["intact"], found["alone"] = path.read_bytes() == before, sorted(folder.iterdir()) == there
    print(json.dumps(found), flush=True)
"""
WRITERS = (
    *("state.json", "run.npz", "run.csv", "run.mat", "run.html", "1-scope.png"),
    *("arm.json", "curve.json", "sweep.jsonl", "log.jsonl", "acrobot.bd", "motion.json"),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    pytest.importorskip("resource")
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (here.parent, here)))}
    command = [sys.executable, "-c", CHILD, str(tmp_path_factory.mktemp("disk"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_what_was_there(written, name):
    """The good state of yesterday was emptied before the disk was found to be full."""
    found, said = written[0][name], written[1]
    assert found["intact"], found
    assert found["alone"]
    if name == "motion.json":  # an answer that cannot be kept is no reason to lose it
        assert found["error"] is None
        assert f"the answer cannot be kept: {found['path']}: cannot be written: File too large" in said
        return
    assert found["write"], found
    assert found["text"] == f"{found['path']}: cannot be written: File too large"


def test_a_writer_that_trips_over_its_own_file_is_told_of_the_first_error(tmp_path):
    """A zip file that is left half written raises a ValueError about itself in place of the disk's error."""
    pytest.importorskip("resource")
    target = tmp_path / "file"
    with pytest.raises(FileWriteError, match=r"file: cannot be written: No space left on device") as caught:
        with atomic_file(target) as file:
            file.raw.error = OSError(28, "No space left on device")
            raise ValueError("there is an open writing handle")
    assert caught.value.errno == 28
    assert isinstance(caught.value, (OSError, FileFormatError))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [ValueError("other"), OSError("of something else"), KeyboardInterrupt()])
def test_errors_of_the_content_pass_and_leave_no_draft(tmp_path, error):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(type(error)) as caught:
        with atomic_file(target) as file:
            file.write(b"half")
            raise error
    assert caught.value is error
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_permissions_stay(tmp_path, mode):
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(mode)
    with atomic_file(target) as file:
        (draft,) = set(tmp_path.iterdir()) - {target}
        assert not stat.S_IMODE(draft.stat().st_mode) & 0o077, "nobody else reads the draft of a private file"
        file.write(b"new")
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == mode


@posix
def test_a_new_file_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@posix
def test_symbolic_links_stay(tmp_path):
    (tmp_path / "runs").mkdir()
    target, link, dangling = tmp_path / "runs" / "1.json", tmp_path / "last.json", tmp_path / "next.json"
    target.write_text("old")
    link.symlink_to(Path("runs") / "1.json")
    dangling.symlink_to(Path("runs") / "2.json")
    write_text(link, "new")
    write_text(dangling, "newer")
    assert link.is_symlink() and target.read_text() == "new"
    assert dangling.is_symlink() and (tmp_path / "runs" / "2.json").read_text() == "newer"
    assert len(list(tmp_path.iterdir())) == 3


@posix
def test_what_cannot_be_replaced_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to(Path("gone") / "file")
    for name, told in (
        ("folder", "cannot be written: it is a folder"),
        ("pipe", "is no file, and will not be replaced by one"),
        ("loop", "cannot be written: "),
        ("missing/file", f"cannot be written: there is no folder {str(tmp_path / 'missing')!r}"),
        ("link", f"cannot be written: there is no folder {str(tmp_path.resolve() / 'gone')!r}"),
        ("x" * 300, "cannot be written: File name too long"),
    ):
        with pytest.raises(FileWriteError) as caught:
            write_bytes(tmp_path / name, b"new")
        assert str(caught.value).startswith(f"{tmp_path / name}: {told}")
    assert (tmp_path / "folder").is_dir() and (tmp_path / "pipe").is_fifo()


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_protected_file_stays(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(0o444)
    with pytest.raises(FileWriteError, match="write-protected"):
        write_text(target, "new")


def test_paths():
    assert file_path(b"run.npz") == file_path(Path("run.npz")) == Path("run.npz")
    for path in (None, 3, ["run"]):
        with pytest.raises(InvalidType, match=r"^report: expected the path of a file, got (None|an int|a list)$"):
            file_path(path, "report")
    for path in ("", "a\0b"):
        with pytest.raises(InvalidValue, match="is not the name of a file"):
            file_path(path)
