"""An arm of seven joints follows splines: three laws compared in one table and one figure.

`cs.compare` runs a ready diagram, by its name, under each of several options.
"""

import cstormpy as cs


def main(T=5.0):
    laws = ["computed torque", "pd with gravity", "pd"]
    comparison = cs.compare("seven_joint_arm", {"controller": laws}, T=T)
    print(comparison)
    comparison.plot().savefig("seven_joint_arm.png")
    return comparison


if __name__ == "__main__":
    main()
