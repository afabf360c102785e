"""A diagram as the numbers and the function that the C of a functional mock-up unit steps."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from cstormpy.arguments import positive
from cstormpy.arrays import Array
from cstormpy.errors import DiagramError, InvalidValue, unknown_name
from cstormpy.graph.printing import number_text, unwritten_in_c
from cstormpy.simulation.analysis.analysis_start import started
from cstormpy.simulation.analysis.model import AssemblyWithInputs, inputs_of, labels, named_once, places_of
from cstormpy.simulation.analysis.parameters import Parameters
from cstormpy.simulation.analysis.ports import feed_open_inputs, find_ports
from cstormpy.simulation.analysis.stepped_by_others import (
    AssemblySteppedByOthers,
    declared_events,
    jumping_sources,
    needed_part,
    refuse_more_than_samples,
    refuse_other_ticks,
)
from cstormpy.simulation.compiled.program import Program
from cstormpy.simulation.compiled.slices import fill_samples
from cstormpy.simulation.compiled.untranslated import NotTranslated
from cstormpy.simulation.edges import Edges
from cstormpy.simulation.recording import find_signals
from cstormpy.simulation.step_control import JUMP_WIDTH, MAX_FACTOR, MIN_FACTOR, SAFETY, SAME_TIME
from cstormpy.simulation.tableaus import EXPLICIT, Tableau, explicit_method
from cstormpy.simulation.units import mechanisms_of, units_of
from cstormpy.simulation.wiring import compile_diagram, refuse_no_diagram

#: Part of its period by which a clock ticks early, as where the other tool adds up its steps; so is what jumps there.
_SOON = 1e-9
#: Relative difference up to which a number of the equations follows parameters linearly: rounding of differences.
_LINEAR = 1e-9
#: Most steps by which loops are closed; each squares what is left open.
_CLOSINGS = 5


@dataclass(frozen=True)
class Variable:
    """A number that can be asked for, or set, by its name; its value reference is its place among them all."""

    name: str
    causality: str
    start: float | None
    unit: str = ""
    description: str = ""


@dataclass(frozen=True)
class Model:
    """Contents of the files of a unit.

    Attributes
    ----------
    name : str
    variables : list of Variable
        The time, inputs, outputs, parameters, states, and the solver's numbers.
    header : str
        The C of ``model.h``.
    """

    name: str
    variables: list[Variable]
    header: str


class _WithoutPython(AssemblySteppedByOthers):
    """A walk through a diagram that is to run where no Python can be asked."""

    @staticmethod
    def projected(b: Any, t: Any, u: Any, x: Any) -> Any:
        """Return the state of a block as it is to be, also where a long step has opened its loops wide."""
        return b.settled(x, _CLOSINGS)


def model_of(
    sim: Any, bd: Any, inputs: Any, outputs: Any, parameters: Any, solver: Any, step: float, rtol: float, atol: float
) -> Model:
    """Return the model of a diagram, with what cannot be exported refused by its name."""
    what, method = "to_fmu", _method(solver)
    numbers = [positive(rtol, f"{what}: rtol"), positive(atol, f"{what}: atol")]
    numbers = numbers if method.adaptive else [positive(step, f"{what}: step")]
    refuse_no_diagram(bd, what)
    feed_open_inputs(bd, inputs, f"{what}: inputs")
    compile_diagram(bd)
    tuned = Parameters(bd, parameters) if not isinstance(parameters, (list, tuple)) or parameters else None
    with started(sim, bd, None, 0.0, what) as (diagram, simstate, _, state):
        moved = inputs_of(named_once(find_ports(bd, inputs, f"{what}: inputs"), f"{what}: inputs"), True, what)
        watched = named_once(find_signals(bd, outputs, f"{what}: outputs"), f"{what}: outputs")
        given = {i.signal.key for i in moved}
        if outputs == "all":
            watched = [s for s in watched if s.key not in given]
        for signal in watched:
            if signal.key in given:
                raise InvalidValue(f"{what}: outputs: {signal.name} is an input of the unit; leave it out")
        kept = np.arange(state.size)
        if watched:
            diagram, kept = needed_part(diagram, simstate, moved, watched)
        jumps = refuse_more_than_samples(diagram, simstate, declared_events(simstate), moved, what)
        sources = jumping_sources(diagram, moved)
        edges = Edges.of(sources)
        try:
            # what the equations take for granted of the values of parameters would not hold for others
            with contextlib.nullcontext() if tuned is None else tuned.moved():
                assembly = _WithoutPython(diagram, moved)
                program = assembly.program()
        except NotTranslated as why:
            raise DiagramError(f"{what}: {why}") from why
        sampled = np.zeros(program.sampled_size)
        fill_samples(sampled, program, diagram)
        refuse_other_ticks(program, diagram, what, "cannot be written in C")
    _refuse_unwritten(program, what)
    if diagram.settling and not program.closes:
        block, _ = (diagram.closed or diagram.settling)[0]
        raise DiagramError(f"{what}: block {block.name!r} cannot be written in C: what keeps its loops closed cannot")
    if not program.refresh():
        raise DiagramError(f"{what}: the equations do not hold for the values that the parameters have")
    slopes = _slopes(program, tuned, sources, what)
    widths = [np.size(s.slot.value) if np.shape(s.slot.value) else 0 for s in watched]
    units = units_of(mechanisms_of(bd.blocklist), watched, [], widths)
    u0 = [(name, float(v)) for i in moved for name, v in zip(labels(i.signal), i.value, strict=True)]
    y = [name for s in watched for name in labels(s)]
    values = [] if tuned is None else list(zip(tuned.names, tuned.get().tolist(), strict=True))
    start = np.array(bd.getstate0(), dtype=float)
    x0 = [(str(bd.statenames[k]), float(start[k])) for k in kept]
    names = ["solver.rtol", "solver.atol"] if method.adaptive else ["solver.step"]
    told = ["relative tolerance", "absolute tolerance"] if method.adaptive else ["longest step of the method"]
    variables = [
        Variable("time", "independent", None, "s"),
        *(Variable(name, "input", value) for name, value in u0),
        *(Variable(name, "output", None, units.get(name, "")) for name in y),
        *(Variable(name, "parameter", value) for name, value in values),
        *(Variable(f"state {name}", "local", value, units.get(name, "")) for name, value in x0),
        *(Variable(n, "solver", v, "", f"{d} of {method.name}") for n, v, d in zip(names, numbers, told, strict=True)),
    ]
    header = _header(program, method, variables, places_of(program, watched), assembly, moved, slopes)
    header += _clocks(program, sampled, jumps) + _edges(program, edges)
    return Model(str(bd.name), variables, header)


def _method(solver: Any) -> Tableau:
    method = explicit_method(solver)
    if method is None:
        raise unknown_name("to_fmu: solver", solver, EXPLICIT)
    if method.E3 is not None:
        raise InvalidValue(
            f"to_fmu: solver: {method.name} has two estimates of its error; take RK45, RK23, RK4 or Euler"
        )
    return method


def _refuse_unwritten(program: Program, what: str) -> None:
    """Refuse what is not written in C, with the block."""
    calling = program.calling_block()
    if calling is not None:
        raise DiagramError(f"{what}: block {calling[0]!r} cannot be written in C: {calling[1]}")
    node = unwritten_in_c(program.routine) or (unwritten_in_c(program.closing) if program.closing else None)
    if node is not None:
        name = program.owner_of.get(node.index, "a block")
        raise DiagramError(f"{what}: block {name!r} cannot be written in C: it calls {node.primitive.name!r}")


def _slopes(program: Program, tuned: Parameters | None, sources: list[Any], what: str) -> list[tuple[int, int, float]]:
    """Return how the numbers of the equations follow parameters: the place of each, the parameter, and the factor.

    Only what follows in proportion is taken: a parameter by which masses are divided before, say, is refused.
    """
    if tuned is None:
        return []
    base, edges = program.p.copy(), Edges.of(sources)
    with tuned.kept() as values:
        moves = 2.0 ** np.ceil(np.log2(np.maximum(np.abs(values), 1e-3))) / 4.0

        def read(moved: Array) -> Array:
            tuned.set(moved)
            if not program.refresh():
                raise InvalidValue(f"{what}: parameters: {', '.join(tuned.names)} change the form of the equations")
            if any(np.any(u != v) for u, v in zip(vars(edges).values(), vars(Edges.of(sources)).values(), strict=True)):
                raise InvalidValue(
                    f"{what}: parameters: of {', '.join(tuned.names)} one says when a source jumps, which is fixed "
                    "in a unit; leave it out, or put what the source gives in by inputs="
                )
            return program.p.copy()

        found = np.zeros((len(values), base.size))
        for k, move in enumerate(moves):
            step = np.where(np.arange(len(values)) == k, move, 0.0)
            found[k] = (read(values + step) - base) / move
            _refuse_curved(
                read(values + 2.0 * step), base + 2.0 * move * found[k], f"{what}: parameters: {tuned.names[k]}"
            )
            if not found[k].any():
                raise InvalidValue(
                    f"{what}: parameters: {tuned.names[k]} has no say in what the outputs need; where a state starts "
                    "is set by its own name"
                )
        _refuse_curved(read(values + moves), base + moves @ found, f"{what}: parameters: {', '.join(tuned.names)}")
    program.refresh()
    return [(int(at), k, float(row[at])) for k, row in enumerate(found) for at in np.flatnonzero(row)]


def _refuse_curved(found: Array, wanted: Array, what: str) -> None:
    if not np.allclose(found, wanted, rtol=_LINEAR, atol=_LINEAR * max(1.0, float(np.abs(wanted).max(initial=0.0)))):
        raise InvalidValue(
            f"{what}: the numbers of the equations do not follow in proportion, and cannot be tuned in a unit; build "
            "the diagram with other values instead"
        )


# C --------------------------------------------------------------------------------------------------------


def _header(
    program: Program,
    method: Tableau,
    variables: list[Variable],
    seen: Any,
    assembly: AssemblyWithInputs,
    moved: list[Any],
    slopes: list[tuple[int, int, float]],
) -> str:
    def starts(causality: str) -> list[float]:
        return [0.0 if v.start is None else v.start for v in variables if v.causality == causality]

    places = [k for i in moved for k in assembly.places_of[i.signal.key]]
    counts = {
        "NX": program.nstates, "NU": len(places), "NY": len(seen), "NPAR": len(starts("parameter")),
        "NSOLVER": len(starts("solver")), "NP": program.p.size, "NOUT": program.width, "NSLOPES": len(slopes),
        "NBLOCKS": len(program.blocks), "STAGES": method.stages, "ADAPTIVE": int(method.adaptive),
        "CLOSES": int(program.closes),
    }  # fmt: skip
    weights = np.zeros(method.stages + 1) if method.E is None else method.E
    stages = ", ".join("{" + ", ".join(map(number_text, row)) + "}" for row in method.A)
    blocks = ", ".join(_text(f"block {name!r} fails") for name in program.blocks) or '""'
    lines = [
        "/* The equations of a diagram, and the numbers in them. */",
        program.in_c().replace("\nint ", "\nstatic int "),
        *(f"#define {name} {count}" for name, count in counts.items()),
        f"#define SAFETY {SAFETY!r}",
        f"#define MAX_FACTOR {MAX_FACTOR!r}",
        f"#define MIN_FACTOR {MIN_FACTOR!r}",
        f"#define EXPONENT ({-1.0 / (method.error_order + 1)!r})",
        _doubles("P", program.p),
        _doubles("INPUTS_AT_START", starts("input")),
        _doubles("PARAMETERS_AT_START", starts("parameter")),
        _doubles("STATES_AT_START", starts("local")),
        _doubles("SOLVER_AT_START", starts("solver")),
        _whole("INPUT_AT", places),
        _whole("OUTPUT_AT", seen.tolist()),
        _whole("SLOPE_AT", [at for at, _, _ in slopes]),
        _whole("SLOPE_OF", [k for _, k, _ in slopes]),
        _doubles("SLOPES", [slope for _, _, slope in slopes]),
        f"static const double A[STAGES][STAGES] = {{{stages}}};",
        _doubles("B", method.b),
        _doubles("C", method.c),
        _doubles("E", weights) if method.adaptive else "",
        f"static const char *const BLOCKS[] = {{{blocks}}};",
    ]
    return "\n".join(lines) + "\n"


def _clocks(program: Program, sampled: Array, jumps: list[tuple[float, Any]]) -> str:
    """Return the C of what is sampled: where it stands, when, and what it begins with."""
    clocks = program.clocks
    numbers = {clock: k for k, (clock, _, _) in enumerate(clocks)}
    own = [sum(part.stop - part.start for b, part in program.sampled if b._clock is clock) for clock, _, _ in clocks]
    lines = [
        *(f"#define {k} {n}" for k, n in (("NZ", sampled.size), ("NCLOCKS", len(clocks)), ("NJUMPS", len(jumps)))),
        f"#define SOON {_SOON!r}",
        f"#define JUMP_WIDTH {float(JUMP_WIDTH)!r}",
        _doubles("SAMPLED_AT_START", sampled),
        _doubles("PERIOD", [clock.T for clock, _, _ in clocks]),
        _doubles("OFFSET", [clock.offset for clock, _, _ in clocks]),
        _doubles("JUMPS", [t for t, _ in jumps]),
        _whole("JUMPS_BY", [numbers[clock] for _, clock in jumps]),
        _whole("Z_AT", [part.start for _, part, _ in clocks]),
        _whole("COUNT", [part.stop - part.start for _, part, _ in clocks]),
        _whole("OWN", own),
        _whole("NEW_AT", [first for _, _, first in clocks]),
        _whole("FLAG_AT", [program.flags[clock] for clock, _, _ in clocks]),
    ]
    return "\n".join(lines) + "\n"


def _edges(program: Program, edges: Edges) -> str:
    """Return the C of when sources jump, and how close to a jump a time is that of it."""
    given = np.concatenate([[clock.T for clock, _, _ in program.clocks], edges.every, edges.first])
    lengths = given[np.isfinite(given) & (given > 0.0)]
    lines = [
        f"#define NEDGES {edges.first.size}",
        f"#define SAME_TIME {SAME_TIME!r}",
        f"#define AT_JUMP {_SOON * float(lengths.min(initial=1.0))!r}",
        _doubles("EDGES", edges.first),
        _doubles("EVERY", np.where(np.isfinite(edges.every), edges.every, 0.0)),
    ]
    return "\n".join(lines) + "\n"


def _doubles(name: str, values: Any) -> str:
    listed = ", ".join(map(number_text, values)) or "0.0"
    return f"static const double {name}[] = {{{listed}}};"


def _whole(name: str, values: list[int]) -> str:
    return f"static const int {name}[] = {{{', '.join(map(str, values)) or '0'}}};"


def _text(text: str) -> str:
    """Return a text as C writes it, in UTF-8."""
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return '"' + "".join(plain) + '"'
