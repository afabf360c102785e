"""Root finder of zero crossings, for the interpreted and the compiled engine alike: nothing here needs the compiler.

Chandrupatla's method (Advances in Engineering Software 28, 1997): inverse quadratic interpolation where three points
say that it will do, else halving. It is asked and told, as what is to be evaluated differs: the state is an array,
`begin` puts the first question into it, `tell` takes the answer and puts the next one.
"""

#: Parts of the first step after an event at which its detector is looked at again, to see on which side it is.
LOOKS = (2.0**-12, 2.0**-9, 2.0**-6, 2.0**-3, 0.5, 1.0)
#: A detector that comes so near to zero within a step, in parts of its changes from step to step, is looked at there,
#: at most so often.
NEAR, TURNS = 0.25, 3
#: Two crossings closer than this part of time are one.
TOGETHER = 1e-12
#: The first guess, by the dense output, is trusted to this part of the step.
GUESS = 1e-4
#: For so long (as TOGETHER) a detector that has fired is not looked at: its value is rounding there.
SETTLING = 1e-13
#: So soon (as TOGETHER) behind the beginning of a step crosses what is found beyond zero there.
AT_ONCE = 2e-13
#: Stands for a value of zero where it must have a sign.
TINY = 1e-300
#: No search takes more questions.
MOST = 300

#: Two ends of different signs, the newest first, and a third point: each with its value.
_X1, _F1, _X2, _F2, _X3, _F3 = range(6)
#: Where the state says how near the ends may come, what is to be evaluated next, and the ends with values below zero
#: and above; how long it is.
_WIDTH, QUESTION, BEFORE, BEYOND, ROOT = range(6, 11)


def begin(s, a, fa, b, fb, width):
    """Take two points with values of different signs, and how near to one another is enough."""
    s[_X1], s[_F1], s[_X2], s[_F2], s[_X3], s[_F3] = b, fb, a, fa, a, fa
    s[_WIDTH] = width
    s[BEFORE], s[BEYOND] = (a, b) if fb > 0.0 else (b, a)
    s[QUESTION] = a + 0.5 * (b - a)


def tell(s, value):
    """Take the value at the question, and put the next; return whether the ends are near enough."""
    x = s[QUESTION]
    if (value > 0.0) == (s[_F1] > 0.0):
        s[_X3], s[_F3] = s[_X1], s[_F1]
    else:
        s[_X3], s[_F3] = s[_X2], s[_F2]
        s[_X2], s[_F2] = s[_X1], s[_F1]
    s[_X1], s[_F1] = x, value
    if value > 0.0:
        s[BEYOND] = x
    else:
        s[BEFORE] = x
    x1, f1, x2, f2, x3, f3 = s[_X1], s[_F1], s[_X2], s[_F2], s[_X3], s[_F3]
    span = abs(x2 - x1)
    if span <= s[_WIDTH]:
        return True
    nearest = 0.5 * s[_WIDTH] / span
    part = 0.5
    place, height = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
    if height * height < place and (1.0 - height) * (1.0 - height) < 1.0 - place:
        part = f1 / (f2 - f1) * f3 / (f2 - f3)
        part += (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    if not part > nearest:  # also where it is no number
        part = nearest
    if part > 1.0 - nearest:
        part = 1.0 - nearest
    s[QUESTION] = x1 + part * (x2 - x1)
    return s[QUESTION] == x1 or s[QUESTION] == x2
