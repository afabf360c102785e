"""The ready diagrams as .bd files, for bdedit and bdrun: ``python tests/bd_files.py`` writes them anew.

A .bd file is JSON: blocks with their parameters, places and sockets, and wires between sockets. Here stands for each
diagram what its blocks are made with and where they are drawn; the wires, ports and names come from the diagram that
`build` returns. Parameters are such as JSON can hold: mechanisms by name, arrays as lists. The seven-joint arm and the
two-link arms with a motion that is searched have no file, since their laws are objects.
"""

from __future__ import annotations

import json
import os
from typing import Any

from cstormpy import control, diagrams
from cstormpy.diagrams import acrobot, acrobot_elbow, branched_acrobot, two_link_arm
from cstormpy.diagrams._swinging_up import LASTS
from cstormpy.errors import DiagramError
from cstormpy.file_writer import write_text
from cstormpy.simulation import Simulation
from cstormpy.simulation.wiring import port_numbers

__all__ = ["FILES", "path", "text"]

HANGING = -1.5707963267948966
#: Distance between places on the drawing, from column to column and from row to row.
COLUMN, ROW = 220, 160
#: Size of a block, and how much of it a socket needs.
SIZE, SOCKET, EDGE = 100, 20, 60
#: bdedit's codes: left and right side of a block, input and output, a wire of straight pieces at right angles.
LEFT, RIGHT, INPUT, OUTPUT, STEP = 1, 3, 1, 2, 3
LEGS = ["left_hip", "right_hip"]


JOINTS = ["shoulder", "elbow"]
STATES = [f"{joint}.{kind}" for kind in ("q", "qd") for joint in JOINTS]


def _scope(labels: list[str], title: str, units: str = "", **others: Any) -> dict[str, Any]:
    unit = {"units": units} if units else {}  # bdsim cannot read an empty text
    return {**others, "labels": labels, **unit, "title": title}


def _view(mech: str, title: str) -> dict[str, Any]:
    return {"mech": mech, "title": title}


EFFORT = _scope(["effort"], "Effort", "N²m²s")

#: Of each diagram, and of each of its blocks: what it is made with, and its column and row on the drawing.
FILES: dict[str, dict[str, tuple[dict[str, Any], float, float]]] = {
    "pendulum": {
        "plant": ({"mech": "pendulum", "actuated": []}, 0, 0),
        "energy": ({"mech": "pendulum"}, 1, 1),
        "scope_q": (_scope(["joint1"], "Angle", "rad"), 1, 0),
        "scope_energy": (_scope(["kinetic", "potential", "total"], "Energy", "J", nin=3), 2, 1),
        "view": (_view("pendulum", "Pendulum"), 1, -1),
    },
    "acrobot": {
        "plant": ({"mech": "acrobot", "q0": [HANGING, 0.0]}, 0, 0),
        "controller": ({"mech": "acrobot", "laws": list(control.names()), "law": "energy"}, 1, 0),
        "kick": ({"seq": [[0.0, acrobot.KICK], [LASTS, 0.0]]}, 1, 2),
        "torque": ({"signs": "++"}, 2, 1),
        "effort": ({}, 3, 2),
        "view": (_view("acrobot", "Acrobot"), 1, -2),
        "scope_q": (_scope(JOINTS, "Angles", "rad"), 1, -1),
        "scope_tau": (_scope(["elbow"], "Torque", "N m"), 3, 1),
        "scope_law": (_scope(["law"], "Law", stairs=True), 2, -1),
        "scope_phase": (_scope(["phase"], "Phase", stairs=True), 2, 0),
        "scope_effort": (EFFORT, 4, 2),
    },
    "acrobot_elbow": {
        "motion": ({"curve": list(acrobot_elbow.SWING_UP), "duration": 4.0}, 0, 0),
        "plant": ({"mech": "acrobot", "active": ["elbow"], "q0": [HANGING, 0.0]}, 1, 0),
        "torques": ({"mech": "acrobot", "active": ["elbow"]}, 2, 1),
        "effort": ({}, 3, 2),
        "view": (_view("acrobot", "Acrobot"), 2, -1),
        "scope_q": (_scope(JOINTS, "Angles", "rad"), 2, 0),
        "scope_tau": (_scope(JOINTS, "Torques", "N m"), 3, 1),
        "scope_effort": (EFFORT, 4, 2),
    },
    "branched_acrobot": {
        "motion": ({"curve": branched_acrobot.legs().tolist(), "duration": branched_acrobot.DURATION}, 0, 0),
        "plant": ({"mech": "branched_acrobot", "active": LEGS, "q0": [branched_acrobot.BODY, 0.0, 0.0]}, 1, 0),
        "torques": ({"mech": "branched_acrobot", "active": LEGS}, 2, 1),
        "effort": ({}, 3, 2),
        "view": (_view("branched_acrobot", "Branched acrobot"), 2, -1),
        "scope_q": (_scope(["base", *LEGS], "Angles", "rad"), 2, 0),
        "scope_tau": (_scope(["base", *LEGS], "Torques", "N m"), 3, 1),
        "scope_effort": (EFFORT, 4, 2),
    },
    "two_link_arm": {
        "motion": ({"curve": [list(p) for p in two_link_arm.REACH], "duration": 2.0}, 0, 1),
        "error_q": ({"signs": "+-"}, 1, 0),
        "error_qd": ({"signs": "+-"}, 1, 1),
        "kp": ({"K": 100.0}, 2, 0),
        "kd": ({"K": 20.0}, 2, 1),
        "command": ({"signs": "+++"}, 3, 1),
        "inverse": ({"mech": "planar_2r"}, 4, 1),
        "plant": ({"mech": "planar_2r", "q0": [-1.0, 0.1]}, 5, 1),
        "view": (_view("planar_2r", "Arm"), 6, 0),
        "scope_q": (_scope(JOINTS, "Angles", "rad"), 6, 1),
        "scope_error": (_scope(JOINTS, "Error of the angles", "rad"), 2, -1),
        "scope_tau": (_scope(JOINTS, "Torques", "N m"), 5, 0),
    },
    "swing_sensitivity": {
        "plant": ({"mech": "acrobot", "actuated": [], "q0": [0.3, 0.5]}, 0, 1),
        "variation": ({"mech": "acrobot", "actuated": []}, 1, 1),
        "sensitivity": ({"mech": "acrobot", "actuated": []}, 1, 2),
        "entries": ({}, 2, 0),
        "size": ({}, 2, 1),
        "stiffness": ({}, 2, 2),
        "column": ({"index": [0, 4, 8, 12]}, 3, 0),
        "view": (_view("acrobot", "Acrobot"), 1, -1),
        "scope_q": (_scope(JOINTS, "Angles", "rad"), 1, 0),
        "scope_column": (_scope(STATES, "dx / d shoulder.q(0)"), 4, 0),
        "scope_size": (_scope(["norm"], "Size of dx/dx0"), 3, 1),
        "scope_stiffness": (
            _scope(["norm"], "Size of dqdd/dq", "1/s²"),
            3,
            2,
        ),
    },
}


def path(name: str) -> str:
    """Return where the file of a diagram is."""
    return os.path.join(os.path.dirname(diagrams.__file__), f"{name}.bd")


def text(name: str) -> str:
    """Return the content of the file of a diagram, a line for each block and each wire.

    Raises
    ------
    DiagramError
        If the blocks above are not those of the diagram.
    """
    bd = diagrams.load(name).build(Simulation(graphics=False))
    drawn, built = set(FILES[name]), {block.name for block in bd.blocklist}
    if drawn != built:
        raise DiagramError(f"{name}: in the diagram or on the drawing, not in both: {', '.join(sorted(drawn ^ built))}")
    blocks, sockets = [], {}
    for number, block in enumerate(bd.blocklist, start=1):
        made, column, row = FILES[name][block.name]
        blocks.append(_block(1000 * number, block, made, column, row))
        for kind, count in ((INPUT, block.nin), (OUTPUT, block.nout)):
            sockets.update({(block, kind, port): _socket_id(1000 * number, kind, port) for port in range(count)})
    wires: list[dict[str, Any]] = []
    for wire in bd.wirelist:
        for source, target in zip(port_numbers(wire.start), port_numbers(wire.end), strict=True):
            ends = sockets[wire.start.block, OUTPUT, source], sockets[wire.end.block, INPUT, target]
            wires.append(_wire(100_000 + len(wires), *ends))
    lines = ",\n".join(json.dumps(block) for block in blocks)
    joined = ",\n".join(json.dumps(wire) for wire in wires)
    about = {"id": 1, "created_by": "cstormpy", "creation_time": 0, "simulation_time": 10.0}
    head = json.dumps({**about, "scene_width": 2000, "scene_height": 1200}).removesuffix("}")
    return f'{head},\n"blocks": [\n{lines}\n],\n"wires": [\n{joined}\n],\n"labels": [], "grouping_boxes": []}}\n'


def _block(number: int, block: Any, made: dict[str, Any], column: float, row: float) -> dict[str, Any]:
    return {
        "id": number,
        "block_type": block.type.upper(),
        "title": block.name,
        "pos_x": COLUMN * column,
        "pos_y": ROW * row,
        "width": SIZE,
        "height": max(SIZE, EDGE + SOCKET * max(block.nin, block.nout)),
        "flipped": False,
        "inputsNum": block.nin,
        "outputsNum": block.nout,
        "inputs": [_socket(number, INPUT, LEFT, port) for port in range(block.nin)],
        "outputs": [_socket(number, OUTPUT, RIGHT, port) for port in range(block.nout)],
        "parameters": [[name, value] for name, value in made.items()],
    }


def _socket_id(block: int, kind: int, port: int) -> int:
    return block + 100 * kind + port


def _socket(block: int, kind: int, side: int, port: int) -> dict[str, Any]:
    return {
        "id": _socket_id(block, kind, port),
        "index": port,
        "multi_wire": True,
        "position": side,
        "socket_type": kind,
    }


def _wire(number: int, start: int, end: int) -> dict[str, Any]:
    ends = {"start_socket": start, "end_socket": end}
    return {"id": number, **ends, "wire_type": STEP, "custom_routing": False, "wire_coordinates": []}


def _main() -> None:
    for name in FILES:
        write_text(path(name), text(name))


if __name__ == "__main__":
    _main()
