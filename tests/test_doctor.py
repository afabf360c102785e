"""The doctor: what it finds of a machine, and what it says to do."""

import sys
from importlib import metadata

import pytest
from command_lines import ROOT, posix

import cstormpy
from cstormpy import doctor, live

pytestmark = pytest.mark.usefixtures("somewhere_else")


def test_the_doctor_finds_this_machine_well(cstorm):
    status, said, errors = cstorm("doctor")
    assert (status, errors) == (0, [])
    assert [line for line in said if line.startswith("!!")] == []
    found = " ".join(said)
    assert all(name in found for name in ("Python", "numba", "bdsim", "kernels", "Qt", "live windows"))


def test_the_doctor_asks_for_what_the_package_asks_for():
    from packaging.requirements import Requirement

    if not (ROOT / "pyproject.toml").exists():
        wanted = [Requirement(text) for text in metadata.requires("cstormpy")]
    else:
        from test_package import SETTINGS

        project = SETTINGS["project"]
        wanted = [Requirement(text) for text in project["dependencies"] + project["optional-dependencies"]["live"]]
    wanted = [w for w in wanted if w.marker is None or w.marker.evaluate({"extra": "live"})]
    needed = {w.name: str(w.specifier) for w in wanted}
    assert {name: f">={lowest}" for name, lowest in doctor.NEEDED.items()}.items() <= needed.items()
    live_wants = {w.name: w.specifier for w in wanted}
    assert all(live_wants[r.name] == r.specifier for r in map(Requirement, doctor.LIVE))
    assert {r.name for r in map(Requirement, doctor.LIVE)}.isdisjoint(doctor.NEEDED)


def test_the_doctor_says_what_mends_what_is_missing(monkeypatch):
    version = metadata.version

    def old(name):
        if name == "bdsim" or name.startswith("PySide6"):
            raise metadata.PackageNotFoundError(name)
        return "1.9.1" if name == "numpy" else version(name)

    monkeypatch.setattr(metadata, "version", old)
    monkeypatch.setattr(sys, "executable", "/opt/my python/bin/python")
    found = {finding.what: finding for finding in doctor.look()}
    assert str(found["bdsim"]) == (
        "!! bdsim               is not installed\n"
        "                       '/opt/my python/bin/python' -m pip install --upgrade 'bdsim>=1.4'"
    )
    assert found["numpy"].state == "1.9.1 is too old" and found["numpy"].mend.endswith("'numpy>=2.0'")
    assert found["Qt"].optional and found["Qt"].mend.endswith(f"-m pip install '{doctor.LIVE[0]}' '{doctor.LIVE[1]}'")
    assert found["scipy"].well and str(found["scipy"]).startswith("ok scipy")


@pytest.mark.parametrize(
    ("reason", "state", "mend"),
    [
        ("there is no display (DISPLAY is not set); log in with a desktop", "no: there is no display", "log in with"),
        ("Qt needs libEGL.so.1; apt install libegl1", "no: Qt needs libEGL.so.1", "apt install libegl1"),
        ("PySide6 is not installed; pip install 'cstormpy[live]'", "no: PySide6 is not", "PySide6-Essentials>=6"),
        ("pyqtgraph is not installed; pip install 'cstormpy[live]'", "no: pyqtgraph is not", "'pyqtgraph>=0.13.7'"),
    ],
)
def test_the_doctor_on_live_windows(monkeypatch, reason, state, mend):
    monkeypatch.setattr(live, "available", lambda: reason)
    finding = doctor.look()[-1]
    assert finding.what == "live windows" and not finding.well and finding.optional
    assert finding.state.startswith(state) and mend in finding.mend
    monkeypatch.setattr(live, "available", lambda: None)
    assert doctor.look()[-1].well


def test_the_doctor_never_fails(cstorm, monkeypatch):
    """Whatever breaks is a finding, and the exit status says that there is one."""

    def broken(*_, **__):
        raise OSError("everything\nis broken")

    monkeypatch.setattr(metadata, "version", broken)
    monkeypatch.setattr(live, "available", broken)
    monkeypatch.setattr(cstormpy.library, "pendulum", broken)
    status, said, errors = cstorm("doctor")
    assert (status, errors) == (1, [])
    assert sum("fails: OSError: everything is broken" in line for line in said) == len(doctor.NEEDED) + 3


def test_the_doctor_on_a_folder_of_kernels_that_is_not_made_yet(monkeypatch, tmp_path):
    """On a new machine the doctor said that nothing can be kept."""
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "new" / "folder"))
    assert doctor._kept().well and not list(tmp_path.iterdir())


@posix
def test_the_doctor_on_kernels_that_can_not_be_kept(monkeypatch, tmp_path):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("CSTORMPY_CACHE_DIR", str(tmp_path / "a file"))
    finding = doctor._kept()
    assert not finding.well and finding.optional and "CSTORMPY_CACHE_DIR" in finding.mend
