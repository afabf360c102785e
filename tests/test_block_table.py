"""What bdsim knows of blocks is read from disk, and from the sources as soon as one of them has changed."""

from __future__ import annotations

import pytest
from bdsim import BDSim

from cstormpy.simulation.palette import kept_table

SOURCE = '''
from bdsim.components import FunctionBlock

class Doubled(FunctionBlock):
    """Twice."""

    nin, nout = 1, 1

    def __init__(self, factor=2.0, **blockargs):
        """Create.

        :param factor: the factor
        :type factor: float
        """
'''


class Reader(BDSim):
    """A bdsim that counts how often it reads sources."""

    def __init__(self, folder):
        self.packages, self.count = str(folder), 0

    def read(self, verbose, toolboxes):
        self.count += 1
        return BDSim.load_blocks(self, verbose, toolboxes=toolboxes)

    def load_blocks(self):
        return kept_table(self, self.read, False, False)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A reader of a folder with one block, with nothing kept yet."""
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(BDSim, "_moduledicts", None)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "own.py").write_text(SOURCE)
    return Reader(folder), folder


def test_what_is_kept_is_what_was_read(reader):
    reader, _ = reader
    first, modules = reader.load_blocks(), BDSim._moduledicts
    again = reader.load_blocks()
    assert reader.count == 1 and BDSim._moduledicts == modules
    assert again["DOUBLED"]["params"] == {"factor": (" float", " the factor")}
    assert [*again] == [*first]
    for name, info in first.items():  # the classes too, which are imported when one is made
        assert {key: repr(value) for key, value in again[name].items()} == {key: repr(v) for key, v in info.items()}


@pytest.mark.slow
def test_a_source_that_changes_or_comes_is_read(reader):
    reader, folder = reader
    reader.load_blocks()
    (folder / "own.py").write_text(SOURCE.replace("Twice", "Three times"))
    assert reader.load_blocks()["DOUBLED"]["doc"].startswith("Three")
    (folder / "more.py").write_text(SOURCE.replace("Doubled", "Tripled"))
    assert "TRIPLED" in reader.load_blocks() and reader.count == 3
    reader.load_blocks()
    assert reader.count == 3


@pytest.mark.slow
def test_what_is_damaged_is_read(reader, tmp_path):
    reader, _ = reader
    reader.load_blocks()
    (kept,) = (tmp_path / "cache" / "blocks").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b"Twice", b"Thrice"))
    assert reader.load_blocks()["DOUBLED"]["doc"].startswith("Twice") and reader.count == 2


def test_a_source_that_is_no_python_is_complained_of_each_time(reader):
    reader, folder = reader
    (folder / "own.py").write_text("class Doubled(")
    for k in (1, 2):
        assert "DOUBLED" not in reader.load_blocks() and reader.count == k
