"""The description of a functional mock-up unit in XML, as FMI 2.0 and 3.0 have it."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from cstormpy.simulation.fmi.model import Model, Variable


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
