"""The derivations of the angle map: every step, every sign, and lambdify(symbolic) == numeric."""
import math
from functools import cache

import mpmath as mp
import pytest
import sympy as sp
import torch

from ntklib import angles, symbolic
from ntklib.symbolic._step import equation

Z, A = sp.Symbol("z"), sp.Symbol("a")
SLOPES = [sp.Integer(0), sp.Rational(1, 10), sp.Rational(-1, 2), sp.Integer(1), sp.Integer(-1), sp.Integer(2)]
INSIDE = [k * math.pi / 60 for k in range(1, 60)]


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


# ---- the derivations

relu_steps = cache(lambda: symbolic.relu_kernel_steps(Z))
leaky_steps = cache(lambda: symbolic.leaky_kernel_steps(Z, A))


@pytest.mark.parametrize("derivation", [relu_steps, leaky_steps, lambda: symbolic.contraction_steps(Z),
                                        lambda: symbolic.monotonicity_steps(Z, A),
                                        lambda: symbolic.antipode_steps(Z)],
                         ids=["relu", "leaky", "contraction", "monotonicity", "antipode"])
def test_every_step_holds_and_says_why(derivation):
    steps = derivation()
    for step in steps:
        assert step.holds, step.title
        assert step.reason.endswith((".", "!"))
    assert len({step.title for step in steps}) == len(steps)


def test_a_false_step_does_not_hold():
    for step in relu_steps():
        left, right = step.equation.args
        assert not step._replace(equation=equation(left, right * (1 + sp.Rational(1, 10**9)))).holds
        assert not step._replace(equation=equation(left, right + A)).holds


def test_the_integral_is_left_for_the_page_to_show():
    titles = {step.title: step.equation for step in relu_steps()}
    assert titles["Radius"].lhs.has(sp.Integral)
    assert titles["Angle"].lhs.has(sp.Integral)
    assert titles["Kernel"].lhs.has(sp.Integral)
    assert not any(equation.rhs.has(sp.Integral) for equation in titles.values())


def test_the_kernels_are_the_known_ones():
    known = {symbolic.relu_kernel(Z): (sp.sin(Z) + (sp.pi - Z) * sp.cos(Z)) / (2 * sp.pi),
             symbolic.step_kernel(Z): (sp.pi - Z) / (2 * sp.pi),
             sp.cos(symbolic.angle_map(Z)): (sp.sin(Z) + (sp.pi - Z) * sp.cos(Z)) / sp.pi,
             symbolic.leaky_kernel(Z, 1): sp.cos(Z), symbolic.leaky_kernel(Z, 1, degree=0): 1,
             symbolic.leaky_kernel(Z, 0): symbolic.relu_kernel(Z),
             symbolic.leaky_kernel(Z, -1): (2 * sp.sin(Z) + (sp.pi - 2 * Z) * sp.cos(Z)) / sp.pi}
    for derived, expected in known.items():
        assert sp.simplify(derived - expected) == 0


def test_leaky_relu_is_a_mixture_for_every_slope():
    for step in leaky_steps()[1:]:                 # the first holds by quadrature
        assert sp.simplify(step.equation.lhs - step.equation.rhs) == 0


def test_kernels_by_quadrature_over_the_weights():
    # the Gaussian integral without polar coordinates: v = cos(z) u + sin(z) w with u and w independent, hence
    # E[relu(v) | u] = m P(w > -m/s) + s density(m/s) with m = cos(z) u, s = sin(z)
    with mp.workdps(20):
        for z in (0.4, 2.5):
            c, s = mp.cos(z), mp.sin(z)

            def relu(u, c=c, s=s):
                return u * mp.npdf(u) * (c * u * mp.ncdf(c * u / s) + s * mp.npdf(c * u / s))

            def step(u, c=c, s=s):
                return mp.npdf(u) * mp.ncdf(c * u / s)

            for integrand, kernel in ((relu, symbolic.relu_kernel), (step, symbolic.step_kernel)):
                assert float(mp.quad(integrand, [0, mp.inf])) == pytest.approx(float(kernel(z)), rel=1e-12)


@pytest.mark.parametrize("z", [0.1, 1.5, 2.9])
def test_kernels_by_monte_carlo(z):
    n = 1_000_000
    u, w = torch.randn(2, n, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    v = math.cos(z) * u + math.sin(z) * w
    for slope in (0., 0.25, -1.):
        for degree in (0, 1):
            def half(t, a=slope, p=degree):
                return torch.where(t > 0, 1., a) * t**p
            sample = half(u) * half(v)
            error = sample.std() / n**0.5
            exact = float(symbolic.leaky_kernel(z, sp.Rational(slope), degree))
            assert abs(sample.mean() - exact) <= 4.5 * error
            assert error < 0.002                          # so that a wrong constant cannot hide


# ---- symbolic = numeric

def lambdified(expression):
    """The expression as a function on 60 digits."""
    f = sp.lambdify(Z, expression, "mpmath", cse=True)
    return lambda theta: [f(mp.mpf(t)) for t in theta]


def agree(got: torch.Tensor, want, rel=2e-14):
    assert max(float(abs(g - w) / (abs(w) if abs(w) > 1e-25 else 1))
               for g, w in zip(map(mp.mpf, got.tolist()), want, strict=True)) <= rel


GRID = [1e-9, 1e-6, 1e-3, *INSIDE, math.pi - 1e-3, math.pi - 1e-6]


@pytest.mark.parametrize("slope", SLOPES)
def test_lambdify_equals_the_library(slope):
    theta = torch.tensor(GRID, dtype=torch.float64)
    for name, depths in (("angle_map", [()]), ("angle_deficit", [()]), ("embedding_angle", [(0,), (3,)]),
                         ("gradient_angle", [(0,), (1,), (2,)]), ("gradient_deficit", [(1,), (2,)])):
        for depth in depths:
            agree(getattr(angles, name)(theta, *depth, slope=float(slope)),
                  lambdified(getattr(symbolic, name)(Z, *depth, slope=slope))(GRID))


@pytest.mark.parametrize("slope", SLOPES)
def test_derivative_equals_autograd(slope):
    theta = torch.tensor(GRID, dtype=torch.float64, requires_grad=True)
    got, = torch.autograd.grad(angles.angle_map(theta, float(slope)).sum(), theta)
    want = lambdified(symbolic.angle_map_derivative(Z, slope))(GRID)
    assert max(abs(g - float(w)) for g, w in zip(got.tolist(), want, strict=True)) <= 2e-15
    assert sp.diff(symbolic.angle_map(Z, slope), Z).equals(symbolic.angle_map_derivative(Z, slope))


# ---- the series at 0

def test_series_has_the_published_coefficients():
    g, pi = sp.Poly(symbolic.angle_map_series(Z, order=5), Z), sp.pi
    for power, want in enumerate([0, 1, -1 / (3 * pi), -1 / (18 * pi**2), -(5 + 6 * pi**2) / (270 * pi**3)]):
        assert sp.simplify(g.coeff_monomial(Z**power) - want) == 0
    assert g.degree() == 5


@pytest.mark.parametrize("slope", SLOPES)
def test_what_the_series_leaves_out_is_of_the_next_order(slope):
    order = 5
    left = lambdified(symbolic.angle_map(Z, slope) - symbolic.angle_map_series(Z, order, slope))
    far, near = left([2e-4, 1e-4])
    if slope == 1:
        assert abs(near) < mp.mpf(10) ** -50              # g is z, and so is its series
    else:
        assert float(mp.log(abs(far / near), 2)) == pytest.approx(order + 1, abs=0.01)
    second = sp.diff(symbolic.angle_map_series(Z, 2, A), Z, 2)
    assert sp.simplify(second + 2 * symbolic.relu_share(A) / (3 * sp.pi)) == 0


# ---- the signs that the proofs end on

def values(step, slope=0):
    return sp.lambdify(Z, step.equation.rhs.subs(A, slope), "mpmath")


def test_contraction():
    gap, start, growth = symbolic.contraction_steps(Z)
    assert start.equation.rhs == 0
    assert all(values(growth)(t) > 0 for t in INSIDE)
    assert all(values(gap)(t) > 0 for t in INSIDE)        # as the proof says
    assert start.equation.lhs.expr == growth.equation.lhs.expr == gap.equation.rhs     # one and the same gap


@pytest.mark.parametrize("slope", [sp.Integer(0), sp.Rational(1, 2), sp.Rational(-1, 2), sp.Integer(-1)])
def test_monotonicity(slope):
    step, = symbolic.monotonicity_steps(Z, A)
    turn = math.pi / float(symbolic.relu_share(slope))
    falls = values(step, slope)
    assert all((falls(t) < 0) == (t < turn) for t in INSIDE if abs(t - turn) > 1e-9)


def test_the_antipode():
    value, slope, curvature, third = symbolic.antipode_steps(Z)
    assert (value.equation.rhs, slope.equation.rhs, curvature.equation.rhs) == (sp.pi / 2, 0, 0)
    eps = 1e-3
    numeric = math.pi / 2 - angles.angle_map(math.pi - eps).item()
    assert numeric / eps**3 == pytest.approx(float(third.equation.rhs), rel=1e-5)
