"""Compiled kernels are kept on disk, never stale, and what can go wrong with files and processes does no harm."""

import ast
import shutil
import threading
import time

import numba
import numpy as np
import pytest
from kernel_processes import PACKAGE, TINY, compiled_only, drafts, fresh, start, triple

from cstormpy.kernels import compiling
from cstormpy.kernels.compiling import Entry, cache_folder
from cstormpy.kernels.steps import step

KERNELS = PACKAGE / "kernels"


def last(x):
    return x[-1]


#: What kernels may call outside of their folder: where code is kept, and how that is said; and what makes machine code
#: of steps without numba, which is kept under a digest of its own sources.
OUTSIDE = ("cstormpy.cache_folder", "cstormpy.file_writer", "cstormpy.private_folder", "cstormpy.reporting")
OUTSIDE += ("cstormpy.graph.addressed", "cstormpy.graph.code_cache", "cstormpy.graph.loops", "cstormpy.graph.machine")


@compiled_only
def test_a_kernel_is_compiled_once_and_then_read(folder, said):
    first = fresh().load()
    assert first(4.0) == 8.0
    (line,) = said
    assert line == f"compiling kernels (some seconds each), to be kept in {folder}"
    (kept,) = cache_folder().glob("*.kernel")
    assert kept.name.startswith("kernel_processes.double-")
    assert fresh().load()(5.0) == 10.0
    assert fresh(triple).load()(5.0) == 15.0
    assert len(said) == 2  # of double and of triple, once each
    assert not drafts()


@compiled_only
def test_only_the_signatures_types_are_taken(folder):
    kernel = Entry(last, "f8(f8[::1])", False, compiling._OPTIONS).load()
    assert kernel(np.array([1.0, 2.0])) == 2.0
    for other in (np.ones(2, dtype=int), np.ones((2, 2)), np.ones(4)[::2], [1.0, 2.0], "text"):
        with pytest.raises(TypeError):
            kernel(other)


@step
def sum_of(x, k):
    return x + k


def sum_of_three(x):
    return sum_of(sum_of(x, 1), 2)


@compiled_only
def test_a_step_is_compiled_once_for_all_literals(folder):
    assert fresh(sum_of_three).load()(4.0) == 7.0
    assert len(compiling.machine_form(sum_of).signatures) == 1


@compiled_only
def test_load_gives_the_same_every_time_and_from_every_thread(folder, monkeypatch):
    entry = fresh()
    compiles, begin, found = [], threading.Barrier(6), []
    original = compiling.compiled_entry
    monkeypatch.setattr(compiling, "compiled_entry", lambda made: compiles.append(made) or original(made))

    def load():
        begin.wait()
        found.append(entry.load())

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiles) == 1
    assert len(found) == 6
    assert set(map(id, found)) == {id(entry.load())}


@compiled_only
def test_a_compile_that_fails_can_be_tried_again(folder):
    def broken(x):
        return x.no_such_thing

    entry = fresh(broken)
    for _ in range(2):
        with pytest.raises(numba.core.errors.TypingError):
            entry.load()
    assert not list(cache_folder().glob("*.kernel"))
    begin = time.monotonic()
    compiling._Lock(next(cache_folder().glob("*.lock"))).release()  # nobody holds it
    assert time.monotonic() - begin < 5.0


@compiled_only
def test_settings_of_numba_that_change_machine_code_are_told_apart(folder, monkeypatch):
    fresh().load()
    monkeypatch.setattr(numba.config, "OPT", 0 if numba.config.OPT else 3)
    fresh().load()
    assert len(list(cache_folder().glob("*.kernel"))) == 2


def test_the_digest_covers_all_that_kernels_are_made_of():
    """A kernel may call what lives in the folder of the kernels and nothing else of this package."""
    for source in KERNELS.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                modules = [node.module]
            for module in modules:
                if module.split(".")[0] == "cstormpy":
                    inside = f"{module}.".startswith("cstormpy.kernels.")
                    assert inside or module in OUTSIDE, source.name


@pytest.mark.slow
@compiled_only
def test_a_change_in_a_function_of_another_file_is_noticed(tmp_path):
    """numba's own cache=True gives the old result here."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "cstormpy", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "site" / "cstormpy" / "kernels"
    (kernels / "entries_tiny.py").write_text(
        "from cstormpy.kernels.compiling import entry\nfrom cstormpy.kernels.piece import piece\n\n"
        '@entry("f8(f8)")\ndef whole(x):\n    return piece(x) + 1.0\n'
    )
    script = "from cstormpy.kernels.entries_tiny import whole; print(whole.load()(3.0))"

    def run(factor):
        (kernels / "piece.py").write_text(
            f"from cstormpy.kernels.steps import step\n\n@step\ndef piece(x):\n    return {factor} * x\n"
        )
        return start(script, tmp_path / "cache", python=tmp_path / "site")

    answers = [run(factor) for factor in (2, 5, 2)]
    assert [out for out, _ in answers] == ["7.0\n", "16.0\n", "7.0\n"]
    assert ["compiling" in err for _, err in answers] == [True, True, False]  # the old folder is still there
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.slow
@compiled_only
def test_sources_that_change_while_a_process_runs_spoil_nothing(tmp_path):
    """What was imported before the change must not be kept under the name of what stands there after it."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "cstormpy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tiny.py").write_text(TINY)
    script = f"""
import tiny
from pathlib import Path
with Path({str(tmp_path / "site" / "cstormpy" / "kernels" / "layout.py")!r}).open("a") as file:
    file.write("# edited")
print(tiny.double.load()(3.0))
"""
    out, err = start(script, tmp_path / "cache", python=tmp_path / "site")
    assert out == "6.0\n"
    assert "cannot be kept: their sources have changed since they were imported" in err
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
@pytest.mark.parametrize("edited", ["kernels/layout.py", "mechanism/symbolic.py", "control/prepared.py"])
def test_a_line_of_other_sources_is_another(tmp_path, edited):
    """Changed while a process runs, or in a package that was not looked at, they were answered by code of before."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "cstormpy", ignore=shutil.ignore_patterns("__pycache__"))
    begin = (
        "from pathlib import Path; from cstormpy.control.prepared import inertia_line; import cstormpy.mechanism as m\n"
    )
    edit = f"with Path({str(tmp_path / 'site' / 'cstormpy' / edited)!r}).open('a') as file: file.write('# edited')\n"
    for script in (begin + edit, begin, begin):
        start(script + "inertia_line(m.library.acrobot())", tmp_path / "cache", python=tmp_path / "site")
    assert len([*(tmp_path / "cache").rglob("inertia-*.object")]) == 2


@pytest.mark.nojit
def test_uncompiled_kernels_are_as_choosy_as_compiled_ones():
    def total(x, k):
        return x.sum() + k

    kernel = compiling._strict(total, "f8(f8[:,::1], i8)")
    assert kernel(np.ones((2, 2)), 1) == 5.0
    read_only = np.ones((2, 2))
    read_only.flags.writeable = False
    for other in (np.ones(4), np.ones((2, 2), int), np.ones((4, 4)).T[:2], [[1.0]], np.ma.ones((2, 2)), read_only):
        with pytest.raises(TypeError, match="total: argument 0"):
            kernel(other, 1)
    big = np.full((1, 2), 1e308)
    with np.errstate(all="raise"):
        assert kernel(big, 1) == np.inf  # as machine code does it


def entries_in_the_sources():
    found = []
    for source in sorted(KERNELS.glob("entries_*.py")):
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                calls = [d.func.id for d in node.decorator_list if isinstance(d, ast.Call)]
                found += [node.name] * bool({"entry", "entry_of_c"} & set(calls))
    return found


@pytest.mark.slow
@compiled_only
def test_warmup_makes_every_kernel_ready():
    script = "from cstormpy.kernels.compiling import warmup; seconds = warmup(print); print(seconds)"
    folder = cache_folder()

    def run():
        *names, seconds = start(script, folder.parent, timeout=900)[0].split()
        return names, float(seconds)

    names, _ = run()  # compiles what no test has asked for so far
    assert sorted(names) == sorted(entries_in_the_sources())
    names, seconds = run()
    assert seconds < 10.0
    kept = {f.name.partition("-")[0].partition(".")[2] for f in folder.glob("*.kernel")}
    assert kept >= set(names)
