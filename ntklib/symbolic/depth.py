"""The angle map applied layer after layer, with the number of layers as a symbol.

A layer is nearly a translation of the reciprocal angle, 1/g(z) = 1/z + 1/(3 pi) + z/(6 pi^2) + ..., and what
it lacks to one is what the true rate of the collapse is made of.
"""
import sympy as sp

from ntklib.symbolic._step import Step, equation
from ntklib.symbolic.angles import angle_map, angle_map_series

__all__ = ["embedding_angle_series", "reciprocal_series", "reciprocal_steps"]

_Z, _L = sp.Symbol("z", positive=True), sp.Symbol("l", integer=True, nonnegative=True)


def reciprocal_series(z, order: int = 1, slope=0) -> sp.Expr:
    """1/g(z) up to and with z^order.

    >>> reciprocal_series(sp.Symbol("z"))
    z/(6*pi**2) + 1/(3*pi) + 1/z
    """
    share = sp.expand(angle_map_series(_Z, order + 2, slope) / _Z)                        # g / z
    return sp.expand(sp.series(1 / share, _Z, 0, order + 2).removeO() / _Z).subs(_Z, z)


def embedding_angle_series(z, depth, order: int = 3, slope=0) -> sp.Expr:
    """theta^(depth) up to and with z^order; `depth` may be a symbol, whose powers are what depth does.

    >>> embedding_angle_series(sp.Symbol("z"), sp.Symbol("L"), order=2)
    -L*z**2/(3*pi) + z
    """
    g = sp.Poly(angle_map_series(_Z, order, slope), _Z)
    power, total = [1], _Z                          # coefficients of z^1, z^2, ... as polynomials in l
    for k in range(2, order + 1):
        # one more layer adds to the coefficient of z^k what the lower ones make of it: sum that over the layers
        gain = sp.Poly(sum(g.coeff_monomial(_Z**j) * total**j for j in range(2, k + 1)), _Z).coeff_monomial(_Z**k)
        power.append(sp.factor(sp.summation(gain, (_L, 0, _L - 1))))
        total += power[-1] * _Z**k
    return total.subs({_Z: z, _L: depth}, simultaneous=True)


def reciprocal_steps(z: sp.Symbol) -> list[Step]:
    """Why the angle falls like 3 pi / L: one layer as a translation of the reciprocal angle."""
    lead = 1 / angle_map(z) - 1 / z
    return [
        Step("Reciprocals", "The loss z - g, about z^2/(3 pi), is divided by z g, which is about z^2, too.",
             equation(lead, (z - angle_map(z)) / (z * angle_map(z)))),
        Step("A small angle", "For small angles the quotient is a constant: each layer adds the same.",
             equation(sp.Limit(reciprocal_series(z, 1) - 1 / z, z, 0), 1 / (3 * sp.pi))),
        Step("The next term", "What a layer adds beyond that is proportional to the angle.",
             equation(sp.Limit((reciprocal_series(z, 2) - 1 / z - 1 / (3 * sp.pi)) / z, z, 0),
                      1 / (6 * sp.pi**2))),
        Step("The largest angle", "Opposite inputs are halved: the most that a layer can add.",
             equation(sp.Subs(lead, z, sp.pi), 1 / sp.pi)),
    ]
