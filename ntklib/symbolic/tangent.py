"""The tangent kernel of one hidden layer, as an average over units (used with `ntklib.network`)."""
from functools import cache

import sympy as sp

from ntklib.symbolic import kernels
from ntklib.symbolic._step import Step, equation
from ntklib.symbolic.angles import relu_kernel, step_kernel

_X = sp.Symbol("x", positive=True)
_U, _A = sp.symbols("u a", real=True)


@cache
def _moment(k: int) -> sp.Expr:
    """E[x^k; x > 0] of a standard Gaussian, by integration."""
    return sp.integrate(_X**k * sp.exp(-(_X**2) / 2) / sp.sqrt(2 * sp.pi), (_X, 0, sp.oo))


def one_layer_steps(z) -> list[Step]:
    """c E[relu(u) relu(v) + a^2 relu'(u) relu'(v) cos z], the tangent kernel of one hidden layer at angle z."""
    return [
        Step("Last weights", "The gradient with respect to the output weights is the embedding.",
             equation(2 * relu_kernel(z), kernels.nngp(z, 1))),
        Step("First weights", "A unit that is active for both inputs adds its squared output weight, 1 on average, "
             "times the scalar product of the inputs.",
             equation(2 * step_kernel(z) * sp.cos(z), kernels.ntk(z, 1, trained="first"))),
        Step("Sum", "Both together.",
             equation(2 * relu_kernel(z) + 2 * step_kernel(z) * sp.cos(z), kernels.ntk(z, 1))),
    ]


def unit_moments() -> tuple[sp.Expr, sp.Expr]:
    """Mean and variance of what one unit adds to K(x, x) m / 2 at a unit input: (u^2 + a^2) if u > 0, else 0.

    >>> unit_moments()
    (1, 3)
    """
    def mean(power):
        terms = sp.Poly((_U**2 + _A**2) ** power, _U, _A).terms()
        return sum(c * _moment(i) * 2 * _moment(j) for (i, j), c in terms)     # every power of a is even

    return mean(1), mean(2) - mean(1) ** 2
