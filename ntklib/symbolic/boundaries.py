"""Characteristic activation boundaries, exactly: the sympy twin of what `ntklib.boundaries` computes, and counts.

The boundary of a unit act(w . x + b) at a breakpoint t of its activation is {x : w . x + b = t}; `location` is its
point nearest to the origin. `bend_share`, `cap_share` and `ball_share` are shares of random units, `regions` counts
the pieces that lines cut a disc into.
"""
import sympy as sp

from ntklib import _check
from ntklib.symbolic import sphere
from ntklib.symbolic._step import Step, equation


def location(n: int) -> tuple[tuple[sp.Symbol, ...], sp.Symbol, sp.Matrix]:
    """Symbols w and b, and phi = -b w/|w|^2 as a column (Chen & Ge, Definition 2.1).

    >>> location(2)[2].T
    Matrix([[-b*w_1/(w_1**2 + w_2**2), -b*w_2/(w_1**2 + w_2**2)]])
    """
    w = sp.symbols(f"w_1:{_check.count(n, 'n', least=1) + 1}", real=True)
    b = sp.Symbol("b", real=True)
    return w, b, -b * sp.Matrix(w) / sum(x**2 for x in w)


def location_steps(n: int = 2) -> list[Step]:
    """Why phi is the nearest point: Lagrange's condition, its multiplier, and the same in angles, for w in R^n.

    >>> all(step.holds for step in location_steps(3))
    True
    """
    w, b, phi = location(n)
    squares = sum(x**2 for x in w)
    mu = b / squares                                    # x = -mu w is stationary for |x|^2/2 + mu (w.x + b)
    r, lam = sp.symbols("r lambda", positive=True)
    u = sphere.from_angles(n)
    polar = phi.subs(b, r * lam).subs(dict(zip(w, r * u, strict=True)), simultaneous=True)
    return [
        Step("On the boundary", "the multiplier mu = b/|w|^2 puts x = -mu w onto it",
             equation(sum(a * x for a, x in zip(w, -mu * sp.Matrix(w), strict=True)) + b, 0)),
        Step("The distance", "its length is that of the point of the boundary closest to the origin",
             equation(sum(x**2 for x in phi), b**2 / squares)),
        Step("In angles", "w = r u(theta) and b = r lambda give phi = -lambda u(theta): r drops out",
             equation(polar[0], -lam * u[0])),
    ]


def bend_share(reach, ratio) -> sp.Expr:
    """Share of units with one input that bend within `reach` of 0, for normal w and b, ratio = sd(b)/sd(w).

    The quotient of two independent centred normal numbers has a Cauchy law.

    >>> bend_share(1, 1)
    1/2
    """
    return 2 * sp.atan(sp.sympify(reach) / ratio) / sp.pi


def cap_share(n: int, angle) -> sp.Expr:
    """Share of uniform directions of R^n within `angle` of a given one: a quotient of integrals of sin^(n-2).

    >>> cap_share(2, sp.pi / 6), cap_share(3, sp.pi / 3)
    (1/6, 1/4)
    """
    n = _check.count(n, "n", least=2)
    t = sp.Symbol("t", real=True)
    density = sp.sin(t) ** (n - 2)
    return sp.simplify(sp.integrate(density, (t, 0, angle)) / sp.integrate(density, (t, 0, sp.pi)))


def ball_share(n: int) -> sp.Expr:
    """Share of the cube [-1, 1]^n that the unit ball fills: what rejection sampling of directions keeps.

    >>> [ball_share(n) for n in (1, 2, 3)]
    [1, pi/4, pi/6]
    """
    n = _check.count(n, "n", least=1)
    return sp.pi ** sp.Rational(n, 2) / (2**n * sp.gamma(sp.Rational(n, 2) + 1))


def regions(lines: int, meetings: int) -> int:
    """Pieces of a disc cut by `lines` chords that cross at `meetings` points inside, no three of them at one.

    One chord more cuts one piece more for itself and one for each chord that it crosses: 1 + lines + meetings.

    >>> regions(3, 3)
    7
    """
    return 1 + _check.count(lines, "lines") + _check.count(meetings, "meetings")
