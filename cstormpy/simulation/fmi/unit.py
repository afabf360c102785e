"""The file of a functional mock-up unit: its description, its sources, and a binary where there is a compiler."""

from __future__ import annotations

import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from cstormpy.arguments import one_of
from cstormpy.errors import DiagramError, InvalidValue
from cstormpy.file_writer import file_path, write_bytes
from cstormpy.reporting import notice
from cstormpy.simulation.fmi.model import Model, Variable, model_of

#: The compilers that are tried, and what they are told.
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O2", "-fPIC", "-fvisibility=hidden", "-shared")
#: When files in the archive were made: the same diagram gives the same bytes.
_MADE = (1980, 1, 1, 0, 0, 0)


def write_fmu(
    sim: Any,
    bd: Any,
    path: Any,
    inputs: Any,
    outputs: Any,
    parameters: Any,
    *,
    version: Any,
    solver: Any,
    step: float,
    rtol: float,
    atol: float,
    binary: bool | None,
) -> Path:
    """Write a unit; `Simulation.to_fmu` tells of it."""
    version = one_of(version, "to_fmu: version", (2, 3))
    place = file_path(path)
    if place.suffix.lower() != ".fmu":
        raise InvalidValue(f"to_fmu: path: expected a name that ends in .fmu, got {place.name!r}")
    model = model_of(sim, bd, inputs, outputs, parameters, solver, step, rtol, atol)
    files = _sources(model, version)
    identifier = _identifier(place.stem)
    files["modelDescription.xml"] = described(model, version, identifier, _token(model))
    if version == 3:
        files["sources/buildDescription.xml"] = _build_description(identifier)
    if binary is not False:
        made = _binary(files, version)
        if made is not None:
            files[f"binaries/{_platform(version)}/{identifier}{_suffix()}"] = made
        elif binary:
            raise DiagramError(f"to_fmu: there is no compiler of C: tried {', '.join(_COMPILERS)}; binary=False")
        else:
            notice("to_fmu: there is no compiler of C; the unit holds its sources only, to be compiled elsewhere")
    write_bytes(place, _archive(files))
    return place


def _token(model: Model) -> str:
    """Return what tells the model from others: a name made of its equations."""
    digest = hashlib.sha256((model.header + repr(model.variables)).encode()).hexdigest()
    return f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"


def _sources(model: Model, version: int) -> dict[str, str | bytes]:
    folder = resources.files("cstormpy.simulation.fmi")
    header = model.header + f'#define GUID "{_token(model)}"\n'
    found: dict[str, str | bytes] = {"sources/model.h": header}
    for name in ("core.h", f"fmi{version}.c"):
        found[f"sources/{name}"] = (folder / name).read_text(encoding="utf-8")
    return found


def _identifier(stem: str) -> str:
    """Return a name as C allows it."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in stem)
    return plain if plain[:1].isalpha() else f"m{plain}"


def _build_description(identifier: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<fmiBuildDescription fmiVersion="3.0">\n'
        f'  <BuildConfiguration modelIdentifier="{identifier}">\n'
        '    <SourceFileSet language="C99"><SourceFile name="fmi3.c"/></SourceFileSet>\n'
        "  </BuildConfiguration>\n"
        "</fmiBuildDescription>\n"
    )


def _platform(version: int) -> str:
    """Return the folder of binaries for this machine."""
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows" if version == 3 else "win"}[sys.platform]
    machine = platform.machine().lower()
    if version == 2:
        return f"{system}{'64' if sys.maxsize > 2**32 else '32'}"
    return f"{'aarch64' if machine in ('arm64', 'aarch64') else 'x86_64' if '64' in machine else 'x86'}-{system}"


def _suffix() -> str:
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def _binary(files: dict[str, str | bytes], version: int) -> bytes | None:
    """Return the shared library of the sources; None without a compiler."""
    compiler = next((found for found in map(shutil.which, _COMPILERS) if found), None)
    if compiler is None or sys.platform not in ("linux", "darwin", "win32"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if name.startswith("sources/"):
                Path(folder, Path(name).name).write_text(str(content), encoding="utf-8")
        made = Path(folder, f"unit{_suffix()}")
        command = [compiler, *_FLAGS, "-o", str(made), str(Path(folder, f"fmi{version}.c")), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["no message"])[0]
            raise DiagramError(f"to_fmu: the compiler {compiler} fails: {said}; binary=False writes the sources only")
        return made.read_bytes()


def _archive(files: dict[str, str | bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _MADE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            archive.writestr(entry, files[name])
    return held.getvalue()


def described(model: Model, version: int, identifier: str, token: str) -> str:
    """Return ``modelDescription.xml``."""
    return (_second if version == 2 else _third)(model, identifier, token)


def _attributes(**given: object) -> str:
    return "".join(f" {name}={quoteattr(str(value))}" for name, value in given.items() if value not in (None, ""))


def _units(model: Model) -> list[str]:
    names = sorted({v.unit for v in model.variables if v.unit})
    return ["  <UnitDefinitions>", *(f"    <Unit{_attributes(name=name)}/>" for name in names), "  </UnitDefinitions>"]


def _kind(v: Variable) -> dict[str, str]:
    """Return causality, variability and how the start is to be understood."""
    return {
        "independent": {"causality": "independent", "variability": "continuous"},
        "input": {"causality": "input", "variability": "continuous"},
        "output": {"causality": "output", "variability": "continuous", "initial": "calculated"},
        "parameter": {"causality": "parameter", "variability": "tunable", "initial": "exact"},
        "local": {"causality": "local", "variability": "continuous", "initial": "exact"},
        "solver": {"causality": "parameter", "variability": "fixed", "initial": "exact"},
    }[v.causality]


def _start(v: Variable) -> str | None:
    return None if v.start is None else repr(float(v.start))


def _second(model: Model, identifier: str, token: str) -> str:
    head = _attributes(
        fmiVersion="2.0", modelName=model.name, guid=token, generationTool="cstormpy", variableNamingConvention="flat"
    )
    can = _attributes(
        modelIdentifier=identifier,
        canHandleVariableCommunicationStepSize="true",
        canBeInstantiatedOnlyOncePerProcess="false",
        canNotUseMemoryManagementFunctions="true",
        canGetAndSetFMUstate="true",
        canSerializeFMUstate="true",
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<fmiModelDescription{head}>", f"  <CoSimulation{can}>"]
    lines += ['    <SourceFiles><File name="fmi2.c"/></SourceFiles>', "  </CoSimulation>", *_units(model)]
    lines.append("  <ModelVariables>")
    for k, v in enumerate(model.variables):
        named = _attributes(name=v.name, valueReference=k, description=v.description, **_kind(v))
        value = _attributes(start=_start(v), unit=v.unit)
        lines.append(f"    <ScalarVariable{named}><Real{value}/></ScalarVariable>")
    outputs = [f'<Unknown index="{k + 1}"/>' for k, v in enumerate(model.variables) if v.causality == "output"]
    lines.append("  </ModelVariables>")
    lines.append("  <ModelStructure>")
    for name in ("Outputs", "InitialUnknowns") if outputs else ():
        lines += [f"    <{name}>", *(f"      {unknown}" for unknown in outputs), f"    </{name}>"]
    return "\n".join([*lines, "  </ModelStructure>", "</fmiModelDescription>"]) + "\n"


def _third(model: Model, identifier: str, token: str) -> str:
    head = _attributes(
        fmiVersion="3.0", modelName=model.name, instantiationToken=token, generationTool="cstormpy"
    ) + _attributes(variableNamingConvention="flat")
    can = _attributes(
        modelIdentifier=identifier,
        canHandleVariableCommunicationStepSize="true",
        canGetAndSetFMUState="true",
        canSerializeFMUState="true",
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<fmiModelDescription{head}>", f"  <CoSimulation{can}/>"]
    lines += [*_units(model), "  <ModelVariables>"]
    for k, v in enumerate(model.variables):
        named = _attributes(name=v.name, valueReference=k, description=v.description, **_kind(v))
        lines.append(f"    <Float64{named}{_attributes(start=_start(v), unit=v.unit)}/>")
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for name in ("Output", "InitialUnknown"):
        lines += [
            f'    <{name} valueReference="{k}"/>' for k, v in enumerate(model.variables) if v.causality == "output"
        ]
    return "\n".join([*lines, "  </ModelStructure>", "</fmiModelDescription>"]) + "\n"
