"""Advance a state by one accepted step at a time: explicit Runge-Kutta methods, and the stiff ones of scipy.

A stepper stands at (t, x) with the derivative f there, and knows where its last step began (t_old, x_old, f_old). It
is stopped at a time of the caller's choice, restarted at another state, and gives the state inside its last step: by
its dense output, or to full order by a step of its own (`partial`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import integrate

from cstormpy.arrays import Array
from cstormpy.errors import InvalidValue, UnknownName, unknown_name
from cstormpy.simulation.settings import Settings
from cstormpy.simulation.step_control import first_step, scaled_size, shortest_step, shrink, stretch
from cstormpy.simulation.tableaus import EXPLICIT, Tableau, explicit_method

Derivative = Callable[[float, Array], Array]

#: The implicit methods, which scipy has by these names.
IMPLICIT = ("Radau", "BDF", "LSODA")
SOLVERS = (*EXPLICIT, *IMPLICIT)
#: What Simulink's solvers are called here; ode4 and ode1 have steps of one length.
SIMULINK = {
    "ode45": "'RK45'",
    "ode23": "'RK23'",
    "ode113": "'LSODA'",
    "ode15s": "'BDF'",
    "ode23s": "'Radau'",
    "ode23t": "'Radau'",
    "ode4": "'RK4' with dt=",
    "ode1": "'Euler' with dt=",
}

#: From so many states on, of which a rate depends on at most this part, an implicit method gains by knowing on which
#: (measured: with 80 states of a heated bar nothing, with 400 five times and more).
_MANY, _FEW = 100, 0.1
#: What a user may say of the Jacobian himself.
_JACOBIAN = {"jac", "jac_sparsity", "lband", "uband"}


class StepFailed(Exception):
    """No step, however short, meets the tolerances; or the derivative is not a number."""


class Stepper(Protocol):
    """An integration method as the runner uses it."""

    t: float
    x: Array
    t_old: float
    x_old: Array
    h: float

    def restart(self, t: float, x: Array) -> None:
        """Begin anew at another state or after the derivative has changed."""

    def compute_by(self, f: Derivative) -> None:
        """Take the derivative from another function from now on."""

    def limit(self, longest: float) -> None:
        """Let no step be longer than this from now on."""

    def step(self, bound: float) -> None:
        """Take one accepted step, not past a time."""

    def dense(self) -> Callable[[float], Array]:
        """Return the state as a function of time within the last step."""

    def partial(self, t: float) -> Array:
        """Return the state at a time within the last step, to the order of the method."""


#: Fills the stages K of a step from (t, x), where the derivative is fx, of length h; returns the state at its end, or
#: None where the derivative must be asked stage by stage.
Trial = Callable[[float, Array, Array, float], Array | None]


class ExplicitStepper:
    """An explicit Runge-Kutta method with scipy's control of the step, or with steps of one length.

    Attributes
    ----------
    trial : function or None
        What fills the stages of a step at once, into the first rows of the array K that came with it.
    """

    trial: Trial | None = None

    def __init__(
        self, f: Derivative, method: Tableau, rtol: float, atol: float, max_step: float, step: float | None = None
    ) -> None:
        self.f = f
        self.method = method
        self.rtol, self.atol, self.max_step = rtol, atol, max_step
        self.fixed = step if not method.adaptive else None
        self.h = self.fixed or 0.0
        self.exponent = -1.0 / (method.error_order + 1)
        self.K: Array = np.zeros((method.stages + 1, 0))
        self.t = self.t_old = 0.0
        self.x = self.x_old = self.fx = np.zeros(0)

    def restart(self, t: float, x: Array) -> None:
        """Begin anew at (t, x); the length of the step is kept from before."""
        self.t, self.x = t, x
        self.t_old, self.x_old = t, x
        self.fx = self.f(t, x)
        if not math.isfinite(np.add.reduce(self.fx)) and not np.isfinite(self.fx).all():
            raise StepFailed("the derivative is not finite")
        if self.K.shape[1] != x.size:
            self.K = np.zeros((self.method.stages + 1, x.size))

    def compute_by(self, f: Derivative, trial: Trial | None = None, K: Array | None = None) -> None:
        """Take the derivative, and perhaps the stages of whole steps, from other functions from now on."""
        self.f, self.trial = f, trial
        self.K = np.zeros((self.method.stages + 1, self.x.size)) if K is None else K

    def _attempt(self, t: float, x: Array, fx: Array, h: float) -> tuple[Array, Array]:
        """Return the state after a step of length h and the derivative there; K keeps the stages."""
        K, m = self.K, self.method
        if self.trial is not None:
            end = self.trial(t, x, fx, h)
            if end is not None:
                return end, K[-1]
        K[0] = fx
        for s in range(1, m.stages):
            K[s] = self.f(t + m.c[s] * h, x + _sum(K[:s], m.A[s, :s, None]) * h)
        x_new = x + h * _sum(K[:-1], m.b[:, None])
        f_new = K[-1] = self.f(t + h, x_new)
        return x_new, f_new

    def limit(self, longest: float) -> None:
        """Let no step be longer than this from now on."""
        self.max_step = longest

    def step(self, bound: float) -> None:
        """Take one accepted step."""
        if not self.method.adaptive:
            self._fixed_step(bound)
            return
        t, x = self.t, self.x
        shortest = shortest_step(t)
        if self.h <= 0.0:
            longest = min(self.max_step, bound - t)
            self.h = first_step(self.f, t, x, self.fx, longest, self.exponent, self.rtol, self.atol)
        h_abs = min(max(self.h, shortest), self.max_step)
        rejected = False
        while True:
            if h_abs < shortest:
                raise StepFailed("no step is short enough for the tolerances")
            wanted, t_new = h_abs, t + h_abs
            cut = t_new > bound
            if cut:
                t_new = bound
            h = t_new - t
            h_abs = abs(h)
            x_new, f_new = self._attempt(t, x, self.fx, h)
            error = self._error(h, x, x_new)
            if error < 1.0:
                grown = h_abs * stretch(error, self.exponent, rejected)
                # a step cut short by a boundary says nothing against the longer one that was meant
                self.h = max(grown, wanted) if cut else grown
                break
            h_abs *= shrink(error, self.exponent)
            rejected = True
        self._accept(t_new, x_new, f_new)

    def _fixed_step(self, bound: float) -> None:
        h = self.fixed or self.max_step
        t_new = self.t + h
        if t_new > bound - 1e-9 * h:  # no crumb of a step before a boundary
            t_new = bound
        self._accept(t_new, *self._attempt(self.t, self.x, self.fx, t_new - self.t))
        if not np.isfinite(self.x).all():
            self.t, self.x = self.t_old, self.x_old
            raise StepFailed("the state is not finite")

    def _accept(self, t: float, x: Array, fx: Array) -> None:
        self.t_old, self.x_old, self.f_old = self.t, self.x, self.fx
        # K is used again by a partial step; its last row is the derivative here
        self.t, self.x, self.fx = t, x, np.array(fx)
        self._dense: Callable[[float], Array] | None = None

    def _error(self, h: float, x: Array, x_new: Array) -> float:
        if x.size == 0:
            return 0.0
        m, K = self.method, self.K
        scale = (self.atol + np.maximum(np.abs(x), np.abs(x_new)) * self.rtol).tolist()
        assert m.E is not None
        if m.E3 is None:
            return scaled_size((_sum(K, m.E[:, None]) * h).tolist(), scale) / math.sqrt(x.size)
        n5, n3 = (scaled_size(_sum(K, weights[:, None]).tolist(), scale) ** 2 for weights in (m.E, m.E3))
        if n5 == 0.0 and n3 == 0.0:
            return 0.0
        return abs(h) * n5 / math.sqrt((n5 + 0.01 * n3) * x.size)

    def dense(self) -> Callable[[float], Array]:
        """Return the state as a function of time within the last step."""
        if self._dense is None:
            m = self.method
            if m.P is not None:
                self._dense = self._polynomial(_sum(self.K[:, None], m.P[:, :, None]))
            elif m.extra:
                self._dense = self._dop853()
            else:
                self._dense = self._cubic()
        return self._dense

    def _polynomial(self, Q: Array) -> Callable[[float], Array]:
        t0, x0, h = self.t_old, self.x_old, self.t - self.t_old

        def value(t: float) -> Array:
            theta, power, total = (t - t0) / h, 1.0, np.zeros_like(x0)
            for part in Q:
                power *= theta
                total += part * power
            return x0 + h * total

        return value

    def _cubic(self) -> Callable[[float], Array]:
        """Return the cubic through both ends and their derivatives."""
        t0, x0, f0, h = self.t_old, self.x_old, self.f_old, self.t - self.t_old
        x1, f1 = self.x, self.fx

        def value(t: float) -> Array:
            s = (t - t0) / h
            r = 1.0 - s
            return r * r * ((1 + 2 * s) * x0 + s * h * f0) + s * s * ((1 + 2 * r) * x1 - r * h * f1)

        return value

    def _dop853(self) -> Callable[[float], Array]:
        """Return the interpolant of order 7, which takes three more derivatives (Hairer et al., II.6)."""
        extra, s = self.method.extra, self.method.stages
        t0, x0, h = self.t_old, self.x_old, self.t - self.t_old
        K = np.zeros((s + 1 + len(extra["c"]), x0.size))
        K[: s + 1] = self.K
        for i, (a, c) in enumerate(zip(extra["A"], extra["c"], strict=True), start=s + 1):
            K[i] = self.f(t0 + c * h, x0 + _sum(K[:i], a[:i, None]) * h)
        step = self.x - x0
        F = np.vstack(
            [step, h * K[0] - step, 2 * step - h * (self.fx + K[0]), h * _sum(K[:, None], extra["D"].T[:, :, None])]
        )

        def value(t: float) -> Array:
            theta = (t - t0) / h
            y = np.zeros_like(x0)
            for i, row in enumerate(F[::-1]):
                y = (y + row) * (theta if i % 2 == 0 else 1.0 - theta)
            return x0 + y

        return value

    def partial(self, t: float) -> Array:
        """Return the state at a time within the last step by a shorter step from where it began."""
        self.dense()  # made of the stages that are about to be overwritten
        return self._attempt(self.t_old, self.x_old, self.f_old, t - self.t_old)[0]


def _sum(K: Array, weights: Array) -> Array:
    """Return the sum of the parts of K times weights, one for each part, added one after the other.

    NumPy's own product adds in an order that depends on the machine, and costs compiled steps more than the sum.
    """
    return np.add.accumulate(K * weights)[-1]


class ScipyStepper:
    """A solver of scipy, begun anew wherever the derivative changes."""

    def __init__(
        self,
        f: Derivative,
        solver: type[integrate.OdeSolver],
        rtol: float,
        atol: float,
        max_step: float,
        **options: Any,
    ) -> None:
        self.f, self.solver = f, solver
        self.options = {"rtol": rtol, "atol": atol, "max_step": max_step, **options}
        self.h = 0.0
        self.t = self.t_old = 0.0
        self.x = self.x_old = np.zeros(0)
        self._running: Any = None
        self._dense: Any = None
        self._structure: Callable[[], Any] | None = None
        self._of_jacobian: dict[str, Any] | None = None

    def restart(self, t: float, x: Array) -> None:
        """Begin anew at (t, x)."""
        self.t = self.t_old = t
        self.x = self.x_old = x
        self._running = None

    def compute_by(self, f: Derivative, structure: Callable[[], Any] | None = None) -> None:
        """Take the derivative from another function, from the next beginning on.

        Parameters
        ----------
        f : function
        structure : function, optional
            Returns which rates (rows) depend on which states, a sparse matrix; asked where there are many.
        """
        self.f, self._structure, self._of_jacobian = f, structure, None

    def _begun(self, t: float, x: Array, bound: float, **options: Any) -> Any:
        """Return the solver at the beginning of its way to a time."""
        if self._of_jacobian is None:
            left_to_us = x.size >= _MANY and not _JACOBIAN & self.options.keys()
            structure = self._structure if left_to_us else None
            self._of_jacobian = {} if structure is None else _of_structure(self.solver, structure())
        return self.solver(self.f, t, x.copy(), bound, **{**self.options, **self._of_jacobian, **options})

    def limit(self, longest: float) -> None:
        """Let no step be longer than this from the next beginning on."""
        self.options["max_step"] = longest

    def step(self, bound: float) -> None:
        """Take one accepted step."""
        if self._running is None or self._running.t_bound != bound:
            try:
                first = {"first_step": min(self.h, bound - self.t)} if self.h > 0.0 else {}
                self._running = self._begun(self.t, self.x, bound, **first)
            except (ValueError, TypeError) as error:
                raise InvalidValue(f"solver {self.solver.__name__!r}: {error}") from error
        message = self._running.step()
        if self._running.status == "failed":
            raise StepFailed(str(message or "the solver failed"))
        t = float(self._running.t)
        if t - self.t < 0.1 * shortest_step(self.t) and t < bound:  # LSODA goes on like that for ever
            raise StepFailed("no step is short enough for the tolerances")
        self.t_old, self.x_old = self.t, self.x
        self.t, self.x = t, np.array(self._running.y)
        self.h = max(self.h, self._running.step_size) if self.t == bound else float(self._running.step_size)
        self._dense = self._running.dense_output()

    def dense(self) -> Callable[[float], Array]:
        """Return the state as a function of time within the last step."""
        return self._dense

    def partial(self, t: float) -> Array:
        """Return the state at a time within the last step, integrated from where it began."""
        if t <= self.t_old:
            return self.x_old
        solver = self._begun(self.t_old, self.x_old, t, first_step=t - self.t_old)
        while solver.status == "running":
            solver.step()
        return np.array(solver.y)


def _of_structure(solver: type[integrate.OdeSolver], depends: Any) -> dict[str, Any]:
    """Return the options by which a solver uses which rates depend on which states, a sparse matrix (n, n)."""
    known = inspect.signature(solver).parameters
    if depends.nnz > _FEW * depends.shape[0] ** 2:
        return {}
    if "jac_sparsity" in known:
        return {"jac_sparsity": depends}
    rows, columns = depends.nonzero()
    below = [0, *(rows - columns).tolist()]
    return {"lband": max(below), "uband": -min(below)} if "lband" in known else {}


def check_solver(settings: Settings) -> None:
    """Refuse a solver that does not exist, or that does not take its options."""
    s = settings
    make_stepper(lambda t, x: x, s.solver, s.rtol, s.atol, s.max_step, s.step, s.solver_args)


def make_stepper(
    f: Derivative, solver: Any, rtol: float, atol: float, max_step: float, step: float | None, options: dict[str, Any]
) -> Stepper:
    """Return the stepper for a solver: a name, a `Tableau`, or a subclass of scipy's OdeSolver."""
    if isinstance(solver, type) and issubclass(solver, integrate.OdeSolver):
        return _of_scipy(f, solver, rtol, atol, max_step, options)
    method = explicit_method(solver)
    if method is None:
        name = next((known for known in IMPLICIT if known.lower() == str(solver).lower()), None)
        if name is None and (ours := SIMULINK.get(str(solver).lower())):
            raise UnknownName(f"solver {solver!r} is {ours} here")
        if name is None:
            raise unknown_name("solver", solver, SOLVERS)
        return _of_scipy(f, getattr(integrate, name), rtol, atol, max_step, options)
    if options:
        raise InvalidValue(f"solver {method.name!r}: takes no further options, got {', '.join(map(repr, options))}")
    return ExplicitStepper(f, method, rtol, atol, max_step, step)


def _of_scipy(
    f: Derivative, solver: type[integrate.OdeSolver], rtol: float, atol: float, max_step: float, options: dict[str, Any]
) -> Stepper:
    known = [name for name in inspect.signature(solver).parameters if name not in ("fun", "t0", "y0", "t_bound")]
    for option in options:  # scipy itself would only warn, at every new beginning
        if option not in known:
            raise unknown_name(f"solver {solver.__name__!r}: option", option, known)
    return ScipyStepper(f, solver, rtol, atol, max_step, **options)
