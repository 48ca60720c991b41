"""A step of a derivation: what a page shows with its reason, and asserts."""
from typing import NamedTuple

import sympy as sp

_POINTS = sp.Rational(2, 7), sp.Integer(1), sp.Rational(5, 2)


class Step(NamedTuple):
    """A title, the reason why the step is taken, and an equation with its left side unevaluated."""

    title: str
    reason: str
    equation: sp.Eq

    @property
    def holds(self) -> bool:
        """Both sides agree in 12 digits at three values of each symbol.

        Integrals are computed by quadrature: a second method, where the derivation used sympy's integrator.

        >>> x = sp.Symbol("x")
        >>> area = sp.Integral(x, (x, 0, 1))
        >>> Step("Area", "half a square", equation(area, sp.Rational(1, 2))).holds
        True
        >>> Step("Area", "a whole square", equation(area, 1)).holds
        False
        """
        left, right = (side.doit(integrals=False) for side in self.equation.args)
        symbols = sorted(left.free_symbols | right.free_symbols, key=str)
        for shift in range(len(_POINTS)):
            at = {s: _POINTS[(i + shift) % len(_POINTS)] for i, s in enumerate(symbols)}
            if abs(sp.N(left.subs(at), 15) - sp.N(right.subs(at), 15)) > 1e-12:
                return False
        return True


def equation(left, right) -> sp.Eq:
    """left = right, as it stands."""
    return sp.Eq(left, right, evaluate=False)
