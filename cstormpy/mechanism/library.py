"""Ready mechanisms, to be called or to be had by name.

>>> acrobot("spong").names
('shoulder', 'elbow')
>>> get("pendulum", n=3).n
3
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cstormpy.errors import unknown_name
from cstormpy.mechanism.arms import arm7, chain, puma560, tree
from cstormpy.mechanism.loop_library import five_bar, four_bar, slider_crank, stewart_platform, three_rrr, two_arms
from cstormpy.mechanism.mechanism import Mechanism
from cstormpy.mechanism.planar import acrobot, branched_acrobot, pendulum, planar_2r, xiang_two_link
from cstormpy.mechanism.underactuated import cart_pole, furuta, pendubot

__all__ = [
    "acrobot",
    "arm7",
    "branched_acrobot",
    "cart_pole",
    "chain",
    "five_bar",
    "four_bar",
    "furuta",
    "get",
    "names",
    "pendubot",
    "pendulum",
    "planar_2r",
    "puma560",
    "slider_crank",
    "stewart_platform",
    "three_rrr",
    "tree",
    "two_arms",
    "xiang_two_link",
]

_MAKERS: tuple[Callable[..., Mechanism], ...] = (
    pendulum,
    planar_2r,
    acrobot,
    branched_acrobot,
    cart_pole,
    pendubot,
    furuta,
    xiang_two_link,
    four_bar,
    five_bar,
    slider_crank,
    three_rrr,
    two_arms,
    stewart_platform,
    puma560,
    arm7,
    chain,
    tree,
)


def __dir__() -> list[str]:
    return __all__


def names() -> tuple[str, ...]:
    """Return the names of the ready mechanisms, from simple to large.

    >>> names()[:3]
    ('pendulum', 'planar_2r', 'acrobot')
    """
    return tuple(maker.__name__ for maker in _MAKERS)


def get(name: str, **options: Any) -> Mechanism:
    """Return a ready mechanism by name.

    Parameters
    ----------
    name : str
        One of `names()`.
    **options
        Arguments of the function of that name.

    Raises
    ------
    UnknownName
        If there is no such mechanism or option, with the nearest spelling.

    Examples
    --------
    >>> get("acrobot", parameters="gym").n
    2
    """
    for maker in _MAKERS:
        if isinstance(name, str) and maker.__name__ == name:
            known = inspect.signature(maker).parameters
            for option in options:
                if option not in known:
                    raise unknown_name(f"option of {name}", option, known)
            return maker(**options)
    raise unknown_name("mechanism", name, names())
