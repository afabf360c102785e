"""Figures of the guides: the code of a page is run, and what it has made is drawn.

Run as

    python tests/pictures/guides.py
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)

#: Of each page the figures: file, and what returns it from the names that the page's code has made.
FIGURES = {
    "diagrams": {"run": 'out.plot("plant.q", "controller.tau")'},
    "laws": {
        "laws": 'cs.compare(lambda sim, law: build(sim, law), {"law": ["energy", "pfl", "pd"]}, T=8, '
        "goal=[math.pi / 2, 0]).plot()"
    },
    "analysis": {"bode": "model.plot()", "portrait": "portrait"},
    "optimal": {"swing": "up.plot()"},
}


def main() -> None:
    """Write all of them."""
    folder = DOCS / "pictures"
    folder.mkdir(exist_ok=True)
    for page, figures in FIGURES.items():
        space: dict[str, object] = {"__name__": "__main__"}
        for code in CODE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, page, "exec"), space)
        for name, made in figures.items():
            eval(made, space).savefig(folder / f"{name}.png", dpi=80)
            print(folder / f"{name}.png")


if __name__ == "__main__":
    main()
