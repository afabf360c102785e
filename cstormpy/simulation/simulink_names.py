"""Blocks by the names that they have in Simulink or in the Robotics Toolbox, and what each of them is here.

The names of blocks are looked up here before the nearest spelling is offered. ``docs/simulink.md`` is these tables:
``python tests/test_simulink_names.py`` writes it.
"""

from __future__ import annotations

import re

#: Name in Simulink, and what it is here; the kinds of blocks stand after "bd.".
NAMES: dict[str, str] = {
    "Abs": "bd.FUNCTION(abs)",
    "Add": 'bd.SUM("++")',
    "Algebraic Constraint": "bd.HYBRIDDYNAMICS(...) solves those of a mechanism; else close the loop by a state",
    "Backlash": "bd.BACKLASH(clock, width)",
    "Band-Limited White Noise": "bd.NOISE(clock, power=...)",
    "Bias": 'bd.SUM("++") and bd.CONSTANT(...)',
    "Bus Creator": "bd.DICT(...), or bd.MUX(n) for numbers",
    "Bus Selector": "bd.ITEM(...), or bd.INDEX(...) for numbers",
    "Chirp Signal": "bd.CHIRP(f0, f1, duration)",
    "Clock": "bd.TIME(); for sampled blocks bd.clock(100, 'Hz')",
    "Compare To Constant": 'bd.COMPARE(">", 1.0)',
    "Compare To Zero": 'bd.COMPARE(">")',
    "Constant": "bd.CONSTANT(value)",
    "Coulomb and Viscous Friction": "Revolute(axis, damping=..., friction=...) of a mechanism; else bd.FUNCTION(...)",
    "Counter": "bd.COUNTER(...)",
    "Counter Free-Running": "bd.COUNTER(...)",
    "Counter Limited": "bd.COUNTER(modulo=n)",
    "Cross Product": "bd.FUNCTION(numpy.cross, nin=2)",
    "Dead Zone": "bd.DEADZONE(low, high)",
    "Delay": "bd.DELAY(clock, samples=n)",
    "Demux": "bd.DEMUX(n)",
    "Derivative": "bd.DERIV(...), filtered; sampled bd.DERIV_S(...)",
    "Detect Change": 'bd.EDGE(clock, "both")',
    "Detect Fall Negative": 'bd.EDGE(clock, "falling")',
    "Detect Rise Positive": "bd.EDGE(clock)",
    "Difference": "bd.DISCRETETF(clock, [1, -1], [1, 0])",
    "Digital Clock": "bd.TIME() and bd.ZOH(clock)",
    "Discrete Derivative": "bd.DERIV_S(clock)",
    "Discrete Filter": "bd.DISCRETETF(clock, num, den)",
    "Discrete PID Controller": "bd.DISCRETEPID(clock, ...)",
    "Discrete State-Space": "bd.DISCRETESS(clock, A, B, C, D)",
    "Discrete Transfer Fcn": "bd.DISCRETETF(clock, num, den)",
    "Discrete Zero-Pole": "bd.DISCRETETF(clock, numpy.poly(zeros), numpy.poly(poles))",
    "Discrete-Time Integrator": "bd.INTEGRATOR_S(clock)",
    "Display": "bd.PRINT(), bd.LIVESCOPE()",
    "Divide": 'bd.PROD("*/") of numbers; of vectors bd.FUNCTION(numpy.divide, nin=2)',
    "Dot Product": "bd.FUNCTION(numpy.dot, nin=2)",
    "Edge": "bd.EDGE(clock)",
    "Enabled Subsystem": "bd.INTEGRATOR_S(clock, enable=...), bd.SWITCH() behind it",
    "Fcn": "bd.FUNCTION(lambda u: ...)",
    "First-Order Hold": "bd.DELAY(clock, time=clock.T, order=1)",
    "Forward Dynamics": "bd.HYBRIDDYNAMICS(mech), a plant; its accelerations alone bd.JOINTEFFORT(mech)",
    "From": "a wire: bd.connect(block, ...) as often as it is wanted",
    "From File": 'bd.FROMDATA("run.npz", "plant.q")',
    "From Workspace": "bd.FROMDATA(t=..., y=...)",
    "Gain": "bd.GAIN(K); of a matrix bd.GAIN(K, premul=True), else u K; each by its own bd.GAIN(numpy.diag(K))",
    "Get Jacobian": 'bd.KINEMATICS(mech, link, frame="aligned"), its port jacobian',
    "Get Transform": "bd.KINEMATICS(mech, link), its port pose",
    "Goto": "a wire: bd.connect(block, ...) as often as it is wanted",
    "Gravity Torque": "bd.GRAVITYLOAD(mech)",
    "Ground": "bd.CONSTANT(0.0)",
    "Hit Crossing": "bd.EVENT(...), bd.COMPARE(...)",
    "Hit Scheduler": "bd.clock(100, 'Hz')",
    "In1": "bd.INPORT(n)",
    "Inport": "bd.INPORT(n)",
    "Integrator": "bd.INTEGRATOR(x0)",
    "Integrator Limited": "bd.INTEGRATOR(x0, min=..., max=...)",
    "Interpreted MATLAB Function": "bd.FUNCTION(...)",
    "Inverse Dynamics": "bd.INVERSEDYNAMICS(mech)",
    "Inverse Kinematics": "bd.IKINE(mech, link)",
    "Joint Space Mass Matrix": "bd.MASSMATRIX(mech)",
    "Joint Space Motion Model": "bd.HYBRIDDYNAMICS(mech), with a bd.CONTROLLER(mech, law)",
    "Kalman Filter": "bd.KALMAN(clock, A, B, C, Q, R), its P and innovation with diagnostics=True",
    "Extended Kalman Filter": "bd.EKF(clock, mech), of a mechanism",
    "Level-2 S-Function": "a class of your own: MyBlock(..., bd=bd)",
    "Logical Operator": 'bd.LOGIC("and")',
    "LTI System": "bd.STATESPACE(A, B, C, D), bd.TRANSFERFN(num, den)",
    "Manual Switch": "controller.select(...) of a bd.CONTROLLER; else bd.SWITCH() by a bd.CONSTANT(...) that is set",
    "Math Function": "bd.FUNCTION(numpy.exp)",
    "MATLAB Function": "bd.FUNCTION(...)",
    "Matrix Multiply": 'bd.PROD("**")',
    "Memory": "bd.DELAY(clock)",
    "Minimum Jerk Polynomial Trajectory": "bd.SPLINETRAJECTORY(cs.minimum_jerk(...))",
    "MinMax": "bd.FUNCTION(numpy.maximum, nin=2)",
    "MPC Controller": "bd.MPC(clock, model, low=..., high=...)",
    "Multiport Switch": "bd.MULTISWITCH(n), counted from 0",
    "Mux": "bd.MUX(n)",
    "n-D Lookup Table": "bd.LOOKUP1D(...), bd.LOOKUP2D(...)",
    "1-D Lookup Table": "bd.LOOKUP1D(points, values); with steps or splines bd.INTERPOLATE(...)",
    "2-D Lookup Table": "bd.LOOKUP2D(rows, columns, values)",
    "Lookup Table": "bd.LOOKUP1D(points, values)",
    "Out1": "bd.OUTPORT(n)",
    "Outport": "bd.OUTPORT(n)",
    "PID Controller": "bd.PIDCONTROLLER(P=..., I=..., D=...)",
    "Polynomial Trajectory": "bd.SPLINETRAJECTORY(cs.quintic(...)), cs.cubic or cs.minimum_jerk",
    "Product": 'bd.PROD("**") of numbers; of vectors, element by element, bd.FUNCTION(numpy.multiply, nin=2)',
    "Pulse Generator": "bd.PULSE(amplitude, period, width)",
    "Quantizer": "bd.QUANTIZER(interval)",
    "Ramp": "bd.RAMP(...)",
    "Random Number": "bd.NOISE(clock, std=...)",
    "Rate Limiter": "bd.RATELIMITER(clock, rising, falling)",
    "Rate Transition": "bd.ZOH(clock)",
    "Relational Operator": 'bd.COMPARE(">", None)',
    "Relay": "bd.RELAY(switch_on, switch_off, on, off)",
    "Repeating Sequence": 'bd.FROMDATA(t=..., y=..., ends="repeat")',
    "Reshape": "bd.FLATTEN()",
    "Rounding Function": "bd.FUNCTION(numpy.floor)",
    "Sample and Hold": "bd.SAMPLEHOLD(); by a clock bd.ZOH(clock)",
    "Saturation": "bd.SATURATION(low, high)",
    "Scope": "bd.LIVESCOPE(...), bd.SCOPE(...)",
    "Selector": "bd.INDEX(...)",
    "S-Function": "a class of your own: MyBlock(..., bd=bd)",
    "Sign": "bd.FUNCTION(numpy.sign); located bd.RELAY(0, 0, 1, -1)",
    "Signal Builder": "bd.FROMDATA(t=..., y=...), bd.PIECEWISE(...)",
    "Signal Generator": "bd.WAVEFORM(...)",
    "Sine Wave": 'bd.WAVEFORM("sine", freq=...)',
    "Slider Gain": "bd.GAIN(K) with a slider in the live window",
    "Sqrt": "bd.FUNCTION(numpy.sqrt)",
    "Squeeze": "bd.FLATTEN()",
    "State-Space": "bd.STATESPACE(A, B, C, D)",
    "Step": "bd.STEP(T)",
    "Stop Simulation": "bd.STOP()",
    "Subsystem": "bd.SUBSYSTEM(...)",
    "Subtract": 'bd.SUM("+-")',
    "Sum": 'bd.SUM("+-")',
    "Switch": "bd.SWITCH(threshold)",
    "Switch Case": "bd.MULTISWITCH(n)",
    "Tapped Delay": "bd.DELAY(clock, samples=n) for each",
    "Terminator": "bd.NULL()",
    "To File": 'out.save("run.mat")',
    "To Workspace": "sim.run(bd, watch=[...]) and out.signal(...)",
    "Transfer Fcn": "bd.TRANSFERFN(num, den)",
    "Transport Delay": "bd.DELAY(clock, time=...)",
    "Trapezoidal Velocity Profile Trajectory": "bd.SPLINETRAJECTORY(cs.BSpline(..., degree=2)), docs/textbooks.md",
    "Trigger": "bd.EDGE(clock)",
    "Triggered Subsystem": "bd.SAMPLEHOLD(), bd.COUNTER()",
    "Trigonometric Function": "bd.FUNCTION(numpy.sin)",
    "Uniform Random Number": 'bd.NOISE(clock, kind="uniform")',
    "Unit Delay": "bd.DELAY(clock)",
    "Variable Transport Delay": "bd.DELAY(clock, time=...), of a constant time",
    "Vector Concatenate": "bd.MUX(n)",
    "Velocity Product Torque": "bd.INVERSEDYNAMICS(mech) of no acceleration, less bd.GRAVITYLOAD(mech)",
    "Weighted Sample Time": "clock.T of a bd.clock(...)",
    "Wrap To Zero": "bd.FUNCTION(...); of an angle bd.ANGLEWRAP()",
    "XY Graph": "bd.LIVEXY(...)",
    "Zero-Order Hold": "bd.ZOH(clock)",
    "Zero-Pole": "bd.TRANSFERFN(numpy.poly(zeros), numpy.poly(poles))",
}

#: Blocks of bdsim diagrams that Corke's Robotics Toolbox has, and what they are here.
TOOLBOX: dict[str, str] = {
    "ARMPLOT": "bd.MECHANISMVIEW(mech)",
    "FDYN": "bd.HYBRIDDYNAMICS(mech, q0=...)",
    "FKINE": "bd.KINEMATICS(mech, link), its port pose",
    "GRAVLOAD": "bd.GRAVITYLOAD(mech)",
    "IDYN": "bd.INVERSEDYNAMICS(mech)",
    "INERTIA": "bd.MASSMATRIX(mech)",
    "JACOBIAN": 'bd.KINEMATICS(mech, link, frame="aligned"), its port jacobian, whose first rows are those of rotation',
    "JTRAJ": "bd.SPLINETRAJECTORY(cs.quintic(...))",
    "TRAJ": "bd.SPLINETRAJECTORY(cs.quintic(...))",
    "TRAPEZOIDAL": "bd.SPLINETRAJECTORY(cs.BSpline(..., degree=2)), docs/textbooks.md",
}


def _plain(name: str) -> str:
    """Return a name without what one may leave out: spaces, hyphens, capitals.

    >>> _plain("Zero-Order Hold"), _plain("TRANSFER_FCN")
    ('zeroorderhold', 'transferfcn')
    """
    return re.sub(r"[^a-z0-9]", "", name.lower())


_BY_PLAIN = {_plain(name): name for name in NAMES}


def here(name: str) -> str | None:
    """Return what is said of a block that is asked for by its name in Simulink; None for one that has none there.

    >>> here("TRANSPORT_DELAY")
    "Simulink's Transport Delay is here bd.DELAY(clock, time=...)"
    """
    found = _BY_PLAIN.get(_plain(name))
    return None if found is None else f"Simulink's {found} is here {NAMES[found]}"
