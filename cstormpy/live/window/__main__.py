"""The process of a live window: ``python -m cstormpy.live.window``, started by `cstormpy.live.LiveFeed`."""

from __future__ import annotations

import os
import sys

from cstormpy.live.availability import missing_library
from cstormpy.live.window.channel import Channel


def main() -> int:
    """Run the window until its user closes it or the simulation is gone."""
    channel = Channel.of_process()
    os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"  # whatever else is installed
    try:
        # Qt before pyqtgraph, which hides which library it is that Qt does not find
        import PySide6.QtGui  # noqa: F401

        from cstormpy.live.window.application import run
    except ImportError as error:
        channel.send(say="failed", reason=missing_library(str(error)) or f"Qt cannot be loaded: {error}")
        channel.flush()
        return 3
    return run(channel, *sys.argv[1:])


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # at once: a thread still waits for input, which an orderly end of Python would wait for too
