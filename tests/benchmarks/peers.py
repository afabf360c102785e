"""The "teaching" acrobot in other simulators: the passive one, and the one that swings itself up and balances.

Each function takes a start x0 = (q1, q2, q̇1, q̇2), q1 from the horizontal, and returns ``run(T)``, which simulates
anew and returns the final state. `acceleration` and `Law` are written down here by hand, for those who want Python.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import cstormpy as cs

L1, LC1, LC2, M1, M2, I1, I2, DAMPING, G = 1.0, 0.5, 1.0, 1.0, 1.0, 0.083, 0.33, 0.1, 9.81
GOAL = (math.pi / 2, 0.0)
RTOL, ATOL, LONGEST = 1e-6, 1e-9, 0.1
#: The law "energy": gains, V at which the regulator takes over and lets go, and the largest torque.
KP, KD, KE, CATCH, RELEASE, LIMIT = 5.0, 1.4, 2.7, 1650.0, 1.01 * 1650.0, 25.0

Run = Callable[[float], np.ndarray]


def acceleration(q1: float, q2: float, w1: float, w2: float, tau: float) -> tuple[float, float]:
    """Solve D q̈ + b = (0, τ) of the two links."""
    c2, h = math.cos(q2), M2 * L1 * LC2 * math.sin(q2)
    d22 = I2 + M2 * LC2**2
    d12 = d22 + M2 * L1 * LC2 * c2
    d11 = I1 + M1 * LC1**2 + M2 * L1**2 + d12 + M2 * L1 * LC2 * c2
    far = G * M2 * LC2 * math.cos(q1 + q2)
    r1 = h * w2 * (2.0 * w1 + w2) - G * (M1 * LC1 + M2 * L1) * math.cos(q1) - far - DAMPING * w1
    r2 = tau - h * w1 * w1 - far - DAMPING * w2
    det = d11 * d22 - d12 * d12
    return (d22 * r1 - d12 * r2) / det, (d11 * r2 - d12 * r1) / det


def energy(q1: float, q2: float, w1: float, w2: float) -> float:
    """Return the energy of the two links [J]."""
    c2 = math.cos(q2)
    d22 = I2 + M2 * LC2**2
    d12 = d22 + M2 * L1 * LC2 * c2
    d11 = I1 + M1 * LC1**2 + M2 * L1**2 + d12 + M2 * L1 * LC2 * c2
    height = (M1 * LC1 + M2 * L1) * math.sin(q1) + M2 * LC2 * math.sin(q1 + q2)
    return 0.5 * (d11 * w1 * w1 + 2.0 * d12 * w1 * w2 + d22 * w2 * w2) + G * height


class Law:
    """The law "energy" of `cstormpy.control`: a pump and PD, and a linear-quadratic regulator near the goal."""

    def __init__(self) -> None:
        balance = cs.control.LQR(cs.library.acrobot(), goal=GOAL)
        self.K, self.S = balance.K[0].tolist(), balance.S
        self.goal_energy = energy(*GOAL, 0.0, 0.0)

    @staticmethod
    def error(x: Any) -> tuple[float, float, float, float]:
        e1, e2 = x[0] - GOAL[0], x[1] - GOAL[1]
        turn = 2.0 * math.pi
        return e1 - turn * round(e1 / turn), e2 - turn * round(e2 / turn), x[2], x[3]

    def margin(self, x: Any, balancing: bool) -> float:
        """Return what crosses zero where the phase changes."""
        e = np.array(self.error(x))
        v = float(e @ self.S @ e)
        return RELEASE - v if balancing else v - CATCH

    def torque(self, x: Any, balancing: bool) -> float:
        e = self.error(x)
        if balancing:
            tau = -(self.K[0] * e[0] + self.K[1] * e[1] + self.K[2] * e[2] + self.K[3] * e[3])
        else:
            tau = KE * (self.goal_energy - energy(*x)) * x[3] - KP * e[1] - KD * x[3]
        return min(max(tau, -LIMIT), LIMIT)


# ---------------------------------------------------------------- cstormpy


def ours(x0: Any, law: str) -> Run:
    """Return a run of the diagram as shipped."""
    sim = cs.Simulation(engine="compiled", progress=False, live=False)
    bd = cs.diagrams.load("acrobot").build(sim, controller=law, q0=x0[:2], qd0=x0[2:])
    return lambda T: np.array(sim.run(bd, T=T, rtol=RTOL, atol=ATOL).x[-1, :4])


# ---------------------------------------------------------------- Drake


def drake_mechanism() -> Any:
    """Return the mechanism as Drake's MultibodyPlant."""
    from pydrake import math as transforms
    from pydrake.multibody import plant as multibody
    from pydrake.multibody import tree

    plant = multibody.MultibodyPlant(0.0)
    bodies = []
    for name, mass, com, inertia in (("upper", M1, LC1, I1), ("fore", M2, LC2, I2)):
        about_com = tree.RotationalInertia(inertia, inertia, inertia)
        whole = tree.SpatialInertia.MakeFromCentralInertia(mass, [com, 0.0, 0.0], about_com)
        bodies.append(plant.AddRigidBody(name, whole))
    upper, fore = bodies
    end = plant.AddFrame(tree.FixedOffsetFrame("end", upper.body_frame(), transforms.RigidTransform([L1, 0.0, 0.0])))
    axis = [0.0, 0.0, 1.0]
    plant.AddJoint(tree.RevoluteJoint("shoulder", plant.world_frame(), upper.body_frame(), axis, damping=DAMPING))
    elbow = plant.AddJoint(tree.RevoluteJoint("elbow", end, fore.body_frame(), axis, damping=DAMPING))
    plant.AddJointActuator("motor", elbow)
    plant.mutable_gravity_field().set_gravity_vector([0.0, -G, 0.0])
    plant.Finalize()
    return plant


def drake_two_links() -> Any:
    """Return Drake's own closed form of the acrobot, in C++; its q1 is 0 where it hangs."""
    from pydrake import examples

    return examples.AcrobotPlant()


def _drake_law() -> Any:
    """Return the law as a system of Drake, whose phase changes at a witness function."""
    from pydrake.systems import framework

    class DrakeLaw(framework.LeafSystem):
        def __init__(self) -> None:
            super().__init__()
            self.law = Law()
            self.DeclareVectorInputPort("x", 4)
            self.phase = self.DeclareDiscreteState(1)
            self.DeclareVectorOutputPort("tau", 1, self.torque)
            self.witness = self.MakeWitnessFunction(
                "margin",
                framework.WitnessFunctionDirection.kPositiveThenNonPositive,
                self.margin,
                framework.UnrestrictedUpdateEvent(self.switch),
            )

        def balancing(self, context: Any) -> bool:
            return context.get_discrete_state_vector().GetAtIndex(0) > 0.5

        def torque(self, context: Any, output: Any) -> None:
            x = self.get_input_port(0).Eval(context).tolist()
            output.SetAtIndex(0, self.law.torque(x, self.balancing(context)))

        def margin(self, context: Any) -> float:
            return self.law.margin(self.get_input_port(0).Eval(context).tolist(), self.balancing(context))

        def switch(self, context: Any, event: Any, state: Any) -> None:
            phase = state.get_mutable_discrete_state().get_mutable_vector(0)
            phase.SetAtIndex(0, 1.0 - phase.GetAtIndex(0))

        def DoGetWitnessFunctions(self, context: Any) -> list[Any]:
            return [self.witness]

    return DrakeLaw()


def drake(x0: Any, law: str, scheme: str, closed_form: bool = False) -> Run:
    """Return a run in Drake, state and torque recorded; the law is in Python.

    Parameters
    ----------
    scheme : str
        Drake's integrator, as "runge_kutta3".
    closed_form : bool
        Whether the mechanism is Drake's own acrobot instead of a MultibodyPlant.
    """
    from pydrake.systems import analysis, framework, primitives

    builder = framework.DiagramBuilder()
    plant = builder.AddSystem(drake_two_links() if closed_form else drake_mechanism())
    state = plant.get_output_port(0) if closed_form else plant.get_state_output_port()
    torque = plant.GetInputPort("elbow_torque") if closed_form else plant.get_actuation_input_port()
    logs = [primitives.LogVectorOutput(state, builder)]
    if law == "none":
        control = builder.AddSystem(primitives.ConstantVectorSource([0.0]))
    else:
        control = builder.AddSystem(_drake_law())
        if closed_form:
            turned = builder.AddSystem(primitives.AffineSystem(D=np.eye(4), y0=[-math.pi / 2, 0.0, 0.0, 0.0]))
            builder.Connect(state, turned.get_input_port())
            state = turned.get_output_port()
        builder.Connect(state, control.get_input_port(0))
        logs.append(primitives.LogVectorOutput(control.get_output_port(0), builder))
    builder.Connect(control.get_output_port(0), torque)
    diagram = builder.Build()
    simulator = analysis.Simulator(diagram)
    context = simulator.get_mutable_context()
    shift = math.pi / 2 if closed_form else 0.0
    if closed_form:
        _two_links_numbers(plant.get_mutable_parameters(plant.GetMyMutableContextFromRoot(context)))
    analysis.ResetIntegratorFromFlags(simulator, scheme, LONGEST)
    context.SetAccuracy(RTOL)  # of the times of events
    integrator = simulator.get_mutable_integrator()
    integrator.set_target_accuracy(RTOL)
    integrator.set_maximum_step_size(LONGEST)

    def run(T: float) -> np.ndarray:
        context.SetTime(0.0)
        context.SetContinuousState([x0[0] + shift, *x0[1:]])
        if law != "none":
            phase = float(control.law.margin(x0, False) < 0.0)
            control.GetMyMutableContextFromRoot(context).SetDiscreteState([phase])
        for log in logs:
            log.FindMutableLog(context).Clear()
        simulator.Initialize()
        simulator.AdvanceTo(T)
        x = context.get_continuous_state_vector().CopyToVector()
        x[0] -= shift
        return x

    return run


def _two_links_numbers(p: Any) -> None:
    numbers = {"m1": M1, "m2": M2, "l1": L1, "lc1": LC1, "lc2": LC2, "Ic1": I1, "Ic2": I2, "b1": DAMPING, "b2": DAMPING}
    for name, value in {**numbers, "gravity": G}.items():
        getattr(p, f"set_{name}")(value)


# ---------------------------------------------------------------- PathSim, exudyn, MuJoCo


def pathsim(x0: Any, law: str) -> Run:
    """Return a run in PathSim, state and torque recorded: the links are an ODE, the law a function; RKDP54."""
    from pathsim import Connection, Simulation
    from pathsim.blocks import ODE, Function, Scope
    from pathsim.events import ZeroCrossingDown
    from pathsim.solvers import RKDP54

    def rate(x: Any, u: Any, t: float) -> np.ndarray:
        q1, q2, w1, w2 = x.tolist()
        return np.array([w1, w2, *acceleration(q1, q2, w1, w2, float(u[0]) if len(u) else 0.0)])

    how = {
        "Solver": RKDP54,
        "tolerance_lte_rel": RTOL,
        "tolerance_lte_abs": ATOL,
        "dt": 1e-3,
        "dt_max": LONGEST,
        "log": False,
    }
    plant = ODE(rate, np.array(x0, dtype=float))
    seen = Scope()
    wires = [Connection(plant[k], seen[k]) for k in range(4)]
    if law == "none":
        sim = Simulation([plant, seen], wires, **how)

        def passive(T: float) -> np.ndarray:
            sim.run(T, reset=True)
            return np.array(plant.engine.state)

        return passive
    made, phase = Law(), [False]
    control = Function(lambda *x: made.torque([float(v) for v in x], phase[0]))
    events = [
        ZeroCrossingDown(
            func_evt=lambda t: made.margin(plant.engine.state.tolist(), phase[0]),
            func_act=lambda t: phase.__setitem__(0, not phase[0]),
            tolerance=1e-6,
        )
    ]
    wires += [*(Connection(plant[k], control[k]) for k in range(4)), Connection(control, plant, seen[4])]
    sim = Simulation([plant, control, seen], wires, events, **how)

    def run(T: float) -> np.ndarray:
        phase[0] = made.margin(x0, False) < 0.0
        sim.run(T, reset=True)
        return np.array(plant.engine.state)

    return run


def exudyn(x0: Any) -> Run:
    """Return a run of the passive acrobot in exudyn: a kinematic tree, DOPRI5."""
    import exudyn as exu
    from exudyn import itemInterface as items

    container = exu.SystemContainer()
    system = container.AddSystem()
    node = system.AddNode(
        items.NodeGenericODE2(
            referenceCoordinates=[0.0, 0.0],
            initialCoordinates=list(x0[:2]),
            initialCoordinates_t=list(x0[2:]),
            numberOfODE2Coordinates=2,
        )
    )
    tree = items.ObjectKinematicTree(
        nodeNumber=node,
        jointTypes=[exu.JointType.RevoluteZ] * 2,
        linkParents=[-1, 0],
        jointTransformations=exu.Matrix3DList([np.eye(3), np.eye(3)]),
        jointOffsets=exu.Vector3DList([[0.0, 0.0, 0.0], [L1, 0.0, 0.0]]),
        linkInertiasCOM=exu.Matrix3DList([np.diag([one, one, one]) for one in (I1, I2)]),
        linkCOMs=exu.Vector3DList([[LC1, 0.0, 0.0], [LC2, 0.0, 0.0]]),
        linkMasses=[M1, M2],
        baseOffset=[0.0, 0.0, 0.0],
        gravity=[0.0, -G, 0.0],
        jointPControlVector=[0.0, 0.0],
        jointDControlVector=[DAMPING, DAMPING],
        jointPositionOffsetVector=[0.0, 0.0],
        jointVelocityOffsetVector=[0.0, 0.0],
    )
    system.AddObject(tree)
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    settings.show.computationTime = False
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime = 100, 10.0
    integration.explicit.computeEndOfStepAccelerations = False
    integration.automaticStepSize = True
    integration.relativeTolerance, integration.absoluteTolerance = RTOL, ATOL

    def run(T: float) -> np.ndarray:
        integration.endTime, integration.numberOfSteps = T, round(T / LONGEST)
        system.SolveDynamic(settings, solverType=exu.DynamicSolverType.DOPRI5, showHints=False, showCausingItems=False)
        q = system.GetNodeOutput(node, exu.OutputVariableType.Coordinates)
        w = system.GetNodeOutput(node, exu.OutputVariableType.Coordinates_t)
        return np.array([*q, *w])

    return run


def mujoco(x0: Any, step: float) -> Run:
    """Return a run of the passive acrobot in MuJoCo: RK4 with steps of one length, as it has no control of errors."""
    import mujoco as mj

    first, second = f"{I1} {I1} {I1}", f"{I2} {I2} {I2}"
    model = mj.MjModel.from_xml_string(f"""
    <mujoco><compiler angle="radian"/>
      <option timestep="{step}" integrator="RK4" gravity="0 {-G} 0"><flag contact="disable"/></option>
      <worldbody><body><joint type="hinge" axis="0 0 1" damping="{DAMPING}"/>
        <inertial pos="{LC1} 0 0" mass="{M1}" diaginertia="{first}"/>
        <body pos="{L1} 0 0"><joint type="hinge" axis="0 0 1" damping="{DAMPING}"/>
          <inertial pos="{LC2} 0 0" mass="{M2}" diaginertia="{second}"/></body></body></worldbody></mujoco>""")
    data = mj.MjData(model)

    def run(T: float) -> np.ndarray:
        mj.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = x0[:2], x0[2:]
        mj.mj_step(model, data, round(T / step))
        return np.concatenate([data.qpos, data.qvel])

    return run


# ---------------------------------------------------------------- an expert's own

#: Coefficients of Dormand and Prince (1980), 5(4): times, stages, the result less that of the fourth order.
_C = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_A = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0),
    (3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0),
    (44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_E = (-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40)


def expert(x0: Any) -> Run:
    """Return a run of the passive acrobot as one who knows numba writes it: the closed form, steps kept in arrays."""
    import numba

    accelerate = numba.njit(acceleration)
    A, E = np.array(_A), np.array(_E)

    @numba.njit
    def rate(x: Any, out: Any) -> None:
        out[0], out[1] = x[2], x[3]
        out[2], out[3] = accelerate(x[0], x[1], x[2], x[3], 0.0)

    @numba.njit
    def integrate(start: Any, T: float, A: Any, E: Any) -> Any:
        times, states = np.empty(4096), np.empty((4096, 4))
        x, new, K, t, h, count, rejected = start.copy(), np.empty(4), np.empty((7, 4)), 0.0, 1e-3, 1, False
        times[0], states[0] = 0.0, x
        rate(x, K[0])
        while t < T and count < 4096:
            h = min(h, LONGEST, T - t)
            for s in range(1, 7):
                for i in range(4):
                    total = 0.0
                    for j in range(s):
                        total += A[s, j] * K[j, i]
                    new[i] = x[i] + h * total
                rate(new, K[s])
            error = 0.0
            for i in range(4):
                total = 0.0
                for s in range(7):
                    total += E[s] * K[s, i]
                error += (h * total / (ATOL + RTOL * max(abs(x[i]), abs(new[i])))) ** 2
            error = math.sqrt(error / 4.0)
            factor = min(10.0, max(0.2, 0.9 * error**-0.2)) if error > 0.0 else 10.0
            if error < 1.0:
                t = t + h
                x[:], K[0] = new, K[6]
                times[count], states[count] = t, x
                count += 1
            h *= min(1.0, factor) if rejected or error >= 1.0 else factor
            rejected = error >= 1.0
        return times[:count], states[:count]

    given = np.array(x0, dtype=float)
    return lambda T: integrate(given, T, A, E)[1][-1]


@functools.cache
def reference(x0: tuple[float, ...], law: str, T: float) -> tuple[float, ...]:
    """Return the final state by scipy at rtol 1e-11, as long as the law does not change its phase."""
    from scipy.integrate import solve_ivp

    made = Law()
    balancing = law != "none" and made.margin(x0, False) < 0.0

    def rate(t: float, x: np.ndarray) -> list[float]:
        tau = 0.0 if law == "none" else made.torque(x.tolist(), balancing)
        return [x[2], x[3], *acceleration(*x.tolist(), tau)]

    found = solve_ivp(rate, (0.0, T), x0, rtol=1e-11, atol=1e-13, method="DOP853")
    return tuple(found.y[:, -1].tolist())
