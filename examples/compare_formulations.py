"""Compare how the papers compute the same dynamics: agreement, operations, time, growth.

The same arm, by the equations of Uicker and Kahn, by Hollerbach's recursions with 4 x 4 and 3 x 3 matrices, and by that
of Luh, Walker and Paul, each run on numbers that count their own multiplications and additions. What the papers say of
each other's cost can be read off: 15, 5, 2 and 2½ times. `cstorm compare-formulations` does the same for all of them.
"""

import matplotlib.pyplot as plt

from cstormpy.comparison.formulations import METHODS, compare_formulations

NAMES = ("Luh, Walker, Paul", "Hollerbach 3x3", "Hollerbach 4x4", "Uicker, Kahn (1.2)")


def main(last=8):
    found = compare_formulations((1, last), [method for method in METHODS if method.name in NAMES])
    print(found)
    figure = found.plot()
    figure.savefig("formulations.png", dpi=120)
    plt.close(figure)
    return found


if __name__ == "__main__":
    main()
