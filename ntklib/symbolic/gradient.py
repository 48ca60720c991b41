"""The gradient angle phi_L: its sum over the layers, its series with the depth as a symbol, and its limits.

Layer l (0 to L) adds cos theta^(l) prod_{k=l..L-1} (1 - theta^(k)/pi): what the layer below passes forward times
what the layers above pass back. As theta -> 0 with s = L theta/(3 pi) fixed the sum is an integral.
"""
import sympy as sp

from ntklib.symbolic._step import Step, equation
from ntklib.symbolic.angles import relu_share, step_kernel
from ntklib.symbolic.depth import embedding_angle_series

__all__ = ["crossover", "crossover_steps", "gradient_cosine_series"]

_Z, _S, _X = sp.symbols("z s x", positive=True)
_L = sp.Symbol("l", integer=True, nonnegative=True)


def gradient_cosine_series(z, depth, order: int = 2, slope=0) -> sp.Expr:
    """cos phi up to and with theta^order; `depth` may be a symbol.

    >>> gradient_cosine_series(sp.Symbol("z"), sp.Symbol("L"), order=1)
    -L*z/(2*pi) + 1
    """
    theta = embedding_angle_series(_Z, _L, max(order, 1), slope)
    next_cosine = sp.series(sp.cos(_Z), _Z, 0, order + 1).removeO().subs(_Z, theta.subs(_L, _L + 1))
    total = _L + 1                                  # N_l = (l + 1) cos phi_l, as a polynomial in z
    for k in range(1, order + 1):
        # N_{l+1} - N_l = cos theta^(l+1) - beta theta^(l)/pi N_l: sum the coefficient of z^k over the layers
        gain = sp.expand(next_cosine - relu_share(slope) * theta / sp.pi * total).coeff(_Z, k)
        start = sp.expand(sp.series(sp.cos(_Z), _Z, 0, k + 1).removeO()).coeff(_Z, k)
        total += (start + sp.summation(gain, (_L, 0, _L - 1))) * _Z**k
    cosine = sum(sp.factor(sp.expand(total).coeff(_Z, k) / (_L + 1)) * _Z**k for k in range(order + 1))
    return cosine.subs({_Z: z, _L: depth}, simultaneous=True)


def crossover(s) -> sp.Expr:
    """The limit of cos phi_L as theta -> 0 with s = L theta/(3 pi) fixed, ((1 + s)^4 - 1) / (4 s (1 + s)^3).

    >>> crossover(sp.Integer(1))
    15/32
    """
    return ((1 + s) ** 4 - 1) / (4 * s * (1 + s) ** 3)


def crossover_steps(z: sp.Symbol, s: sp.Symbol) -> list[Step]:
    """From the sum over the layers to one rational function of s; x = l/L is the place of a layer."""
    def f(x):
        return (1 + s * x) ** 3 / (1 + s) ** 3

    return [
        Step("One layer back", "A unit passes both inputs' gradients back if it is active for both: a share of the "
             "active ones.",
             equation(2 * step_kernel(z), 1 - z / sp.pi)),
        Step("All layers back", "In layer l = x L the angle is theta/(1 + s x): a sum of logarithms, of which an "
             "integral is left.",
             equation(sp.exp(-sp.Integral(3 * s / (1 + s * _X), (_X, _X, 1))), f(_X))),
        Step("The mean over the layers", "All angles are small, so that every cosine is 1; the rest is a mean.",
             equation(sp.Integral(f(_X), (_X, 0, 1)), crossover(s))),
        Step("Shallow", "At s = 0 nothing has happened yet; then the cosine falls at the rate 3/2, which is "
             "L theta/(2 pi).",
             equation(sp.Limit((1 - crossover(s)) / s, s, 0), sp.Rational(3, 2))),
        Step("Deep", "The mean of x^3: one quarter.",
             equation(sp.Limit(crossover(s), s, sp.oo), sp.Integral(_X**3, (_X, 0, 1)))),
    ]
