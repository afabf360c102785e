"""MATLAB's files: read as scipy reads sound ones, and damaged ones refused without a crash."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from cstormpy.errors import FileFormatError
from cstormpy.simulation.mat_files import read_mat
from cstormpy.simulation.results import Recorded, read

FOREIGN = Path(scipy.io.matlab.__file__).parent / "tests" / "data"
RUN = {"t": np.linspace(0.0, 1.0, 9), "x[0]": np.arange(9.0) ** 2, "größe π": -np.ones(9)}


def saved(path, columns=RUN, **options):
    """Write a run as `Result.save` does."""
    names, data = np.array(list(columns), dtype=object), np.column_stack(list(columns.values()))
    scipy.io.savemat(path, {"t": columns["t"], "names": names, "data": data}, oned_as="column", **options)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_a_run_comes_back(tmp_path, compressed):
    found = read(saved(tmp_path / "run.mat", do_compression=compressed))
    assert list(found.columns()) == ["x[0]", "größe π"]
    np.testing.assert_array_equal(found.t, RUN["t"])
    np.testing.assert_array_equal(found.columns()["x[0]"], RUN["x[0]"])


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8", "i8"])
def test_numbers_of_all_kinds_are_those_that_scipy_reads(tmp_path, dtype):
    data = np.arange(12).reshape(4, 3).astype(dtype)
    scipy.io.savemat(tmp_path / "a.mat", {"other": {"a": 1.0}, "data": data, "late": 1j})
    found = read_mat(tmp_path / "a.mat", ["data"])
    assert list(found) == ["data"] and found["data"].dtype == np.float64
    np.testing.assert_array_equal(found["data"], scipy.io.loadmat(tmp_path / "a.mat")["data"])


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="scipy is installed without the data of its tests")
@pytest.mark.parametrize("kind", ["double", "matrix", "minus", "3dmatrix"])
@pytest.mark.parametrize("version", ["6.1_SOL2", "6.5.1_GLNX86", "7.1_GLNX86", "7.4_GLNX86"])
def test_files_of_matlab_are_read_as_scipy_reads_them(kind, version):
    """The first were written on a machine of the other byte order."""
    path, name = FOREIGN / f"test{kind}_{version}.mat", f"test{kind}"
    np.testing.assert_array_equal(read_mat(path, [name])[name], scipy.io.loadmat(path)[name])


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="scipy is installed without the data of its tests")
@pytest.mark.parametrize("version", ["6.1_SOL2", "7.4_GLNX86"])
def test_texts_of_matlab(version):
    assert read_mat(FOREIGN / f"teststringarray_{version}.mat", ["teststringarray"]) == {
        "teststringarray": ["one", "two", "three"]
    }
    cells = read_mat(FOREIGN / f"testcell_{version}.mat", ["testcell"])["testcell"]
    assert cells[0].startswith("This cell contains") and cells[3].tolist() == [[1.0, 2.0, 3.0]]


#: Bytes of a saved run that, set so, take the interpreter down within scipy's loadmat (1.17 on x86-64).
CRASHES = ((145, 255), (176, 255), (177, 14), (272, 14), (338, 1), (340, 1), (340, 14), (360, 14))
CHILD = """
import json, sys
from cstormpy.simulation.results import read
for path in sys.argv[1:]:
    try:
        print(json.dumps("read" if read(path) else ""), flush=True)
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]), flush=True)
"""


def test_a_damaged_file_does_not_take_the_interpreter_with_it(tmp_path):
    names = {"t": RUN["t"], "x[0]": RUN["x[0]"], "plant.q[1]": RUN["t"]}
    sound = saved(tmp_path / "sound.mat", names).read_bytes()
    paths = []
    for place, value in CRASHES:
        damaged = bytearray(sound)
        damaged[place] = value
        paths.append(tmp_path / f"{place}-{value}.mat")
        paths[-1].write_bytes(damaged)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for path, line in zip(paths, done.stdout.splitlines(), strict=True):
        found = json.loads(line)
        assert found == "read" or (found[0] == "FileFormatError" and found[1].startswith(f"{path}: ")), found


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
def test_any_damage_is_survived(tmp_path, compressed):
    """Every byte is changed, and the file cut at every place."""
    sound = saved(tmp_path / "sound.mat", do_compression=compressed).read_bytes()
    path, rng, refused = tmp_path / "damaged.mat", np.random.default_rng(1), 0
    for place in range(len(sound)):
        for content in (
            sound[:place],
            *(sound[:place] + bytes([value]) + sound[place + 1 :] for value in (0, 14, rng.integers(256))),
        ):
            path.write_bytes(content)
            try:
                assert isinstance(read(path), Recorded)
            except FileFormatError as error:
                assert str(error).startswith(str(path))
                refused += 1
    assert refused > len(sound)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not a .mat file of level 5"),
        (b"t,x\n0,1\n" * 30, "is not a .mat file of level 5"),
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(100), "is of MATLAB 7.3; save it there with the option"),
        (bytes(124) + b"\x00\x01IM", "has no variable 'names'"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, content, told):
    path = tmp_path / "run.mat"
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {told}")


def test_variables_of_other_kinds_are_refused_by_name(tmp_path):
    path = tmp_path / "run.mat"
    for content, told in (
        ({"names": "t", "data": {"a": 1.0}}, "'data' is neither numbers, nor text, nor cells of these"),
        ({"names": "t", "data": "text"}, "has no variable 'data'"),
        ({"names": np.arange(3.0), "data": np.zeros((3, 3))}, "has no variable 'names'"),
    ):
        scipy.io.savemat(path, content)
        with pytest.raises(FileFormatError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: {told}")
