"""Emitters of the blocks that ask a mechanism for poses, masses and sensitivities, and of the loads on its links."""

from __future__ import annotations

from typing import Any

import numpy as np

from cstormpy.dynamics.tracing import LARGEST
from cstormpy.simulation.compiled.emitter import Emitter, Untranslatable, named
from cstormpy.simulation.compiled.emitters_mechanisms import Asked, driven, held, loads, vector
from cstormpy.simulation.compiled.load_signals import keep_loads
from cstormpy.simulation.compiled.registry import Value, emits, emits_rate

__all__ = ["mass_matrix"]

Values = list[Value]
#: Blocks with fewer joints are traced.
_MOST, _MOST_WITH_SENSITIVITIES = LARGEST["one", False], LARGEST["one", True]
_FRAMES = ("body", "base", "aligned")


def mass_matrix(asked: Asked, q: Value) -> Value:
    """Return the mass matrix, (n, n)."""
    e, n = asked.e, asked.n
    first = e.scratch(n + n * n)
    e.store([q], first)
    e.line(f"{e.call('inertia')}({asked.tables(asked.wide_room)}, w[{first}:{first + n + n * n}])")
    return held(first + n, n * n).reshape(n, n)


def _placed(asked: Asked, q: Value, link: int, tool: str, frame: int) -> tuple[Value, Value]:
    """Return the pose (4, 4) of a tool on a link, and its Jacobian (6, n)."""
    e, n = asked.e, asked.n
    count = n + 16 + 6 * n
    first = e.scratch(count)
    e.store([q], first)
    e.line(
        f"{e.call('kinematics')}({asked.tables(asked.wide_room)}, w[{first}:{first + count}], {tool}, {link}, {frame})"
    )
    return held(first + n, 16).reshape(4, 4), held(first + n + 16, 6 * n).reshape(6, n)


@emits("cstormpy.blocks.inertia.MassMatrix", above=_MOST)
def _mass(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return [mass_matrix(Asked.of_block(e, block), vector(u[0], block._n))]


@emits("cstormpy.blocks.kinematics.Kinematics", above=_MOST)
def _kinematics(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    q, qd = (vector(value, block._n) for value in u)
    link, frame = e.depends(lambda: (block._link, block._frame))
    tool = e.numbers(lambda: np.eye(4) if block._tool is None else block._tool[0])
    pose, J = _placed(Asked.of_block(e, block), q, link, tool, _FRAMES.index(frame))
    J = e.let(J)
    return [pose, e.product(J, qd), J, pose[:3, 3]]


@emits("cstormpy.blocks.kinematics.IKine")
def _search(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return e.by_python(block, u)  # it searches, from answers that it remembers


# loads ------------------------------------------------------------------------------------------------------


def _on_link(e: Emitter, block: Any, u: Values, load: Value) -> Values:
    """Return the wrenches on all links from a load (moment, force) on one, in its axes or in those of the base."""
    asked, link = Asked.of_block(e, block), e.depends(lambda: block._link)
    moment, force = load[:3], load[3:]
    if block._q_port is not None:
        q, tool = vector(u[block._q_port], asked.n), e.numbers(np.eye(4))
        turned = _placed(asked, q, link, tool, 0)[0][:3, :3].T
        moment, force = e.let(e.product(turned, moment)), e.let(e.product(turned, force))
    p = e.number(lambda: block._point)
    arm = [f"{p[(k + 1) % 3]} * {force[(k + 2) % 3]} - {p[(k + 2) % 3]} * {force[(k + 1) % 3]}" for k in range(3)]
    rows = np.full((asked.links, 6), "0.0", dtype=object)
    rows[link, :3] = e.each("{0} + {1}", moment, named(arm))
    rows[link, 3:] = force
    if block._q_port is not None:
        known = np.full((asked.links, 21), "0.0", dtype=object)
        arms = [f"{p[a]} * {load[3 + b]}" for a in range(3) for b in range(3)]
        known[link, 6:] = [*load, *arms]
        keep_loads(e, block, known)
    return [rows]


@emits("cstormpy.blocks.loads.Wrench", above=_MOST)
def _wrench(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    if block._kind == "wrench":
        return _on_link(e, block, u, e.let(vector(u[0], 6)))
    moment = vector(u[1], 3) if block._kind == "force and moment" else np.full(3, "0.0", dtype=object)
    return _on_link(e, block, u, e.let(np.concatenate([moment, vector(u[0], 3)])))


#: Pulses of one PUSH; each is an expression of its own.
_MOST_PULSES = 64


@emits("cstormpy.blocks.loads.Push", above=_MOST)
def _push(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    count = e.depends(lambda: len(block._pulses))
    if count > _MOST_PULSES:
        raise Untranslatable(f"has more than {_MOST_PULSES} pulses")
    load = e.number(lambda: block._held)
    for k in range(count):
        load = e.each("{0} + {1} * {2}", load, *_pulse(e, block, k))
    return _on_link(e, block, u, e.let(load))


def _pulse(e: Emitter, block: Any, k: int) -> tuple[Value, Value]:
    """Return the height of a pulse of PUSH now, and its load."""
    begin, end = e.number(lambda: block._pulses[k][0]), e.number(lambda: block._pulses[k][1])
    within = f"{begin} <= {e.time} < {end}"
    height = f"1.0 if {within} else 0.0"
    if block._smooth:
        e.call("math")
        height = f"math.sin(math.pi * ({e.time} - {begin}) / ({end} - {begin})) ** 2 if {within} else 0.0"
    return e.let(height), e.number(lambda: block._pulses[k][2])


# sensitivities ----------------------------------------------------------------------------------------------


def _sensitivities(e: Emitter, block: Any, u: Values) -> Value:
    """Return the derivatives of the hybrid dynamics to q, q̇ and u, (3, n, n)."""
    asked, n = Asked.of_block(e, block), block._n
    q, qd = (vector(value, n) for value in u[:2])
    count = 5 * n + 3 * n * n
    first = e.scratch(count)
    e.store([q, qd, driven(block, u)], first)
    wrench = loads(e, block, asked.links, u)
    e.fail_if(
        f"{e.call('sensitivities')}({asked.tables(asked.matrix_room)}, w[{first}:{first + count}], {wrench}) != 0"
    )
    return held(first + 5 * n, 3 * n * n).reshape(3, n, n)


@emits("cstormpy.blocks.sensitivities.Sensitivity", above=_MOST_WITH_SENSITIVITIES)
def _sensitivity(e: Emitter, block: Any, u: Values, x: Any) -> Values:
    return list(_sensitivities(e, block, u))


@emits("cstormpy.blocks.sensitivities.Variation", above=_MOST_WITH_SENSITIVITIES)
def _variation(e: Emitter, block: Any, u: Values, x: Value) -> Values:
    X, m = x.reshape(2 * block._n, -1), block._followed
    return [X[:, :m], X[:, m:]] if block._p else [X]


@emits_rate("cstormpy.blocks.sensitivities.Variation", above=_MOST_WITH_SENSITIVITIES)
def _variation_rate(e: Emitter, block: Any, u: Values, x: Value) -> Value:
    n, drive = block._n, block._drive
    X, change = x.reshape(2 * n, -1), _drive_change(e, block, u, x.reshape(2 * n, -1))
    D = _sensitivities(e, block, u)
    rows = np.full((n, X.shape[1]), "0.0", dtype=object)
    passive = np.flatnonzero(~drive.active)
    if len(passive):
        rows[passive] = e.product(np.hstack([D[0], D[1]])[passive], X)
    if change is not None:
        unit = np.where(np.eye(n) == 1.0, "1.0", "0.0").astype(object)
        to_u = np.where(drive.active[:, None], unit, D[2])[:, drive.driven]
        rows = e.each("{0} + {1}", rows, e.product(to_u, change))
    return np.concatenate([X[n:].ravel(), rows.ravel()])


def _drive_change(e: Emitter, block: Any, u: Values, X: Value) -> Value | None:
    """Return how the drive signals change with each column of X, or None where they do not."""
    if not block._shapes:
        return None
    port, change = 2 + len(block._drive.names), np.full((len(block._drive.driven), X.shape[1]), "0.0", dtype=object)
    if "du_dx" in block._shapes:
        change = e.let(e.product(_shaped(u[port], block._shapes["du_dx"]), X))
        port += 1
    if "du_dp" in block._shapes:
        given = _shaped(u[port], block._shapes["du_dp"])
        change[:, block._followed :] = e.each("{0} + {1}", change[:, block._followed :], given)
    return change


def _shaped(value: Value, shape: tuple[int, int]) -> Value:
    if value.size != shape[0] * shape[1]:
        raise Untranslatable(f"is given an array of the shape {value.shape} where it takes {shape}")
    return value.reshape(shape)
