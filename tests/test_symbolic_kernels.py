"""lambdify(symbolic) == numeric for every closed form of the kernels, and Price's theorem by sympy."""

import math

import mpmath as mp
import pytest
import sympy as sp
import torch

from ntklib import duals, nngp_gram, ntk_gram, smooth
from ntklib.symbolic import kernels

X, Y, S, Z = *sp.symbols("q_x q_y s", real=True), sp.Symbol("z")
ANGLES = [0.01, 1.0, 2.5]


def number(expression, **at) -> float:
    with mp.workdps(40):
        return float(sp.lambdify(list(at), expression, "mpmath")(*(mp.mpf(v) for v in at.values())))


def pair(theta: float) -> torch.Tensor:
    return torch.tensor([[1.0, 0.0], [math.cos(theta), math.sin(theta)]], dtype=torch.float64)


@pytest.mark.parametrize("slope", [0, sp.Rational(3, 10), -1], ids=str)
@pytest.mark.parametrize("depth", [1, 2])
def test_leaky_kernels(slope, depth):
    activation = ("leaky_relu", float(slope))
    for theta in ANGLES:
        x = pair(theta)
        pairs = [(kernels.nngp(Z, depth, slope), nngp_gram(x, depth=depth, activation=activation))]
        for trained in ("all", "first"):
            pairs.append(
                (
                    kernels.ntk(Z, depth, slope, trained),
                    ntk_gram(x, depth=depth, activation=activation, trained=trained),
                )
            )
        for expression, gram in pairs:
            assert float(gram[0, 1]) == pytest.approx(number(expression, z=theta), abs=1e-14 * (depth + 1))


def test_squared_relu():
    for theta in ANGLES:
        exact = number(kernels.squared_relu_kernel(Z), z=theta)
        assert float(nngp_gram(pair(theta), depth=1, activation="relu2")[0, 1]) == pytest.approx(
            exact, abs=1e-14
        )
        chain = math.cos(theta) * 4 / 3 * number(kernels.normalised_kernel(Z), z=theta)
        first = ntk_gram(pair(theta), depth=1, activation="relu2", trained="first")
        assert float(first[0, 1]) == pytest.approx(chain, abs=1e-14)


@pytest.mark.parametrize("name", ["erf", "sin", "gelu"])
def test_smooth_duals_and_prices_theorem(name):
    expression = getattr(kernels, f"{name}_kernel")(X, Y, S)
    slopes = sp.diff(expression, S)
    closed = smooth.SMOOTH[name].closed
    for qx, qy, s in [(1, 1, 0.9), (0.3, 2, -0.5), (4, 0.1, 0.6), (1, 1, 0)]:
        value, slope = closed(*(torch.tensor(v, dtype=torch.float64) for v in (qx, qy, s)))
        assert float(value) == pytest.approx(number(expression, q_x=qx, q_y=qy, s=s), rel=1e-13, abs=1e-15)
        assert float(slope) == pytest.approx(number(slopes, q_x=qx, q_y=qy, s=s), rel=1e-13)


def test_erf_slopes_are_the_gaussian_integral():
    u, v = sp.symbols("u v", real=True)
    q, s = sp.Rational(1, 2), sp.Rational(1, 4)
    inverse = sp.Matrix([[q, s], [s, q]]).inv()
    w = sp.Matrix([u, v])
    density = sp.exp(-(w.T * inverse * w)[0] / 2) * sp.sqrt(inverse.det()) / (2 * sp.pi)
    inner = sp.integrate(sp.simplify(density * 4 / sp.pi * sp.exp(-(u**2) - v**2)), (u, -sp.oo, sp.oo))
    assert sp.simplify(sp.integrate(inner, (v, -sp.oo, sp.oo)) - kernels.erf_slopes(q, q, s)) == 0


def test_normalisers():
    z = sp.Symbol("z", real=True)
    for name, function in [("relu2", sp.Max(0, z) ** 2), ("erf", sp.erf(z)), ("sin", sp.sin(z))]:
        density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
        square = mp.quad(sp.lambdify(z, function**2 * density, "mpmath"), [-mp.inf, 0, mp.inf])
        assert duals.dual(name).c == pytest.approx(1 / float(square), rel=1e-12)
