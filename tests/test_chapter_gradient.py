"""The chapter on the gradient angle: its figures' numbers by a second method, the numbers in its prose, its derivations."""

import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import MLP, angle_map, angles, empirical_ntk, gradient_angle, symbolic
from ntklib.book.claims import gradient as claims
from ntklib.book.explorables import gradient as show

# ---- for the tests of all chapters -------------------------------------------------------------------------------
PHI, DEFICIT = angles.gradient_angle, angles.gradient_deficit


def scaled(f, factor):
    return lambda *args, **kw: factor * f(*args, **kw)


def printed(theta, depth, slope=0.0):
    """The arccosine of the sum: small angles have lost their digits."""
    return PHI(theta, depth, slope).cos().arccos()


SABOTAGE = {
    "gradient-formula": [(angles, "gradient_angle", scaled(PHI, 1 + 1e-8))],
    "gradient-autograd": [(claims, "acos", lambda c: math.acos(c) * 1.1)],
    "gradient-separation": [(angles, "gradient_angle", printed)],
    "gradient-first-order": [(angles, "gradient_angle", scaled(PHI, 1.01))],
    "gradient-law": [(claims, "pi", 3.2)],
    "gradient-limit": [(claims, "QUARTER", 75.0)],
    "gradient-crossover": [(angles, "gradient_angle", lambda theta, depth: PHI(theta, depth + 1))],
    "gradient-depth": [(angles, "gradient_angle", scaled(PHI, 1.001))],
    "gradient-closest": [(angles, "gradient_angle", lambda theta, depth: (2 * theta).sin())],
    "gradient-leaky": [(angles, "gradient_angle", lambda theta, depth, slope=0.0: PHI(theta, depth))],
    "gradient-kappa": [(angles, "gradient_deficit", lambda theta, depth: 1 - (1 - DEFICIT(theta, depth)))],
}


def listed(theta, depth):
    path = [theta]
    for _ in range(depth):
        path.append(angle_map(path[-1]))
    return path


def mean_of(terms):
    return (sum(terms) / len(terms)).clamp(-1, 1).arccos()


def share(path, l, rates):
    out = path[l].cos()
    for k in rates:
        out = out * (1 - path[k] / math.pi)
    return out


def by_terms(theta, depth, rates=lambda l, depth: range(l, depth)):
    path = listed(theta, depth)
    return mean_of([share(path, l, rates(l, depth)) for l in range(depth + 1)])


def over_L(theta, depth):
    path = listed(theta, depth)
    total = sum(share(path, l, range(l, depth)) for l in range(depth + 1))
    return (total / max(depth, 1)).clamp(-1, 1).arccos()


def split_by_input(theta, depth):
    path = listed(theta, depth)
    return mean_of([path[l].cos() * (1 - theta / math.pi) ** (depth - l) for l in range(depth + 1)])


def upward(theta, depth):
    N = theta.cos()
    for _ in range(depth):
        rate, theta = 1 - theta / math.pi, angle_map(theta)
        N = theta.cos() + rate * N
    return (N / (depth + 1)).clamp(-1, 1).arccos()


def as_printed(s):
    return 1 - ((1 + s) ** 4 - 1) / (4 * s * (1 + s) ** 3)


STUDENTS = {
    "gradient.ex5": [
        (lambda theta, depth: listed(theta, depth)[-1], "between the embeddings"),
        (lambda theta, depth: by_terms(theta, depth, lambda l, depth: ()), "forward factors alone"),
        (lambda theta, depth: by_terms(theta, depth, lambda l, depth: range(l + 1, depth)), "one layer too late"),
        (lambda theta, depth: by_terms(theta, depth, lambda l, depth: range(l)), "from above"),
        (over_L, "the output's included"),
        (split_by_input, "the angle that they see"),
        (lambda theta, depth: theta, "is right."),
    ],
    "gradient.ex6": [
        (as_printed, "the formula as printed"),
        (lambda s: 1.5 * s, "it must hold for large"),
        (lambda s: torch.as_tensor(show.law(s)).to(s.dtype), "the question asks for 1"),
        (lambda s: s / 0 - s / 0, "cancel the factor"),
    ],
}
CORRECT = {
    "gradient.ex5": [gradient_angle, by_terms, upward],
    "gradient.ex6": [lambda s: (1.5 * s + 2 * s**2 + 0.75 * s**3) / (1 + s) ** 3],
}


# ---- the figures' numbers by other means -------------------------------------------------------------------------
@pytest.mark.parametrize("theta", [1, 90, 180])
def test_the_path_is_the_sum_with_many_digits(theta):
    with mp.workdps(30):
        want = [float(mp.degrees(mp.acos(claims.cosine(mp.mpf(theta) * mp.pi / 180, depth)))) for depth in (0, 1, 5, 20)]
    got = [show.depth_path(theta, depth)["after"] for depth in (0, 1, 5, 20)]
    assert got == pytest.approx(want, rel=1e-12)
    assert show.depth_path(90, 10)["moves"] == "closer than"
    assert show.depth_path(5, 10)["moves"] == "further apart than"
    assert show.depth_path(90, 0)["moves"] == "as far apart as"


@pytest.mark.parametrize(("theta", "depth"), [(5, 0), (5, 1), (90, 4), (75, 12)])
def test_the_factors_multiply_to_the_formula(theta, depth):
    forward, backward = show.factors(theta, depth)
    want = math.cos(math.radians(show.phi((theta,), (depth,))[0, 0]))
    assert (forward * backward).mean() == pytest.approx(want, abs=1e-14)
    state = show.two_factors(theta, depth)
    assert state["cosine"] == pytest.approx(want, abs=1e-14)
    assert state["phi"] == pytest.approx(show.phi((theta,), (depth,))[0, 0])
    assert np.isfinite(state["layers"]["product"]).sum() == depth + 1


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_the_measured_network_by_autograd(depth):
    """The same weights in the library's MLP: the tangent kernel, and the gradients of each matrix by autograd."""
    inner, last = show._weights()
    model = MLP(2, width=show.WIDTH, depth=depth)
    with torch.no_grad():
        weights = [*inner[:depth], last[None] if depth else last[None, :2]]
        for layer, W in zip(model.layers, weights, strict=True):
            layer.weight.copy_(W)
    i = show.PAIR.index(30)
    t = math.radians(30)
    X = torch.tensor([[1.0, 0], [math.cos(t), math.sin(t)]], dtype=torch.float64)
    forward, backward, angle = (m[..., i] for m in show.measured(depth))
    K = empirical_ntk(model, X)
    assert math.cos(math.radians(angle)) == pytest.approx(float(K[0, 1] / (K[0, 0] * K[1, 1]).sqrt()), abs=1e-12)
    grads = [torch.autograd.grad(model(x[None]).sum(), list(model.parameters())) for x in X]
    for l, (p, q) in enumerate(zip(*grads, strict=True)):
        share = float((p * q).sum() / (p.norm() * q.norm()))
        assert forward[l] * backward[l] == pytest.approx(share, abs=1e-12)


def test_the_measured_network_is_near_the_limit():
    for depth in (1, 6, 12):
        *_, angle = show.measured(depth)
        assert np.abs(angle - show.phi(show.PAIR, (depth,))[0])[3:].max() < 12          # degrees; 512 units, from 5 degrees up
        assert np.abs(angle / show.phi(show.PAIR, (depth,))[0] - 1)[1:].max() < 0.6


def test_the_crossings_are_where_the_two_angles_are_equal():
    where = show.crossings()
    assert (np.diff(where) > 0).all()
    for depth in (1, 10, 100):
        at = where[show.DEPTHS.index(depth)]
        assert show.phi((float(at),), (depth,))[0, 0] == pytest.approx(at, abs=1e-4)
        assert at == pytest.approx(claims.crossing(depth), abs=1e-3)
    assert where[-1] < math.degrees(math.acos(0.25))


def test_the_law_of_the_figure():
    s = sp.Symbol("s", positive=True)
    f = sp.lambdify(s, symbolic.gradient.crossover(s), "mpmath")
    with mp.workdps(40):
        for x in (1e-8, 0.3, 1.0, 50.0):
            assert float(show.law(x)) == pytest.approx(float(f(mp.mpf(x))), rel=1e-14)
            assert float(1 - f(mp.mpf(x))) == pytest.approx(x * (1.5 + 2 * x + 0.75 * x * x) / (1 + x) ** 3, rel=1e-13)   # exercise 6
    state = show.small_angles(10, 0.1)
    assert state["cosine"] == pytest.approx(state["by_law"], abs=2e-3)
    assert state["times"] == pytest.approx(state["after"] / 0.1)
    near = show._lines()
    deep = (near["theta"] <= 0.1) & (near["depth"] >= 10)
    assert near["cosine"][deep] == pytest.approx(show.law(near["s"][deep]), abs=1e-3)


# ---- the numbers in the prose ------------------------------------------------------------------------------------
def test_the_table_of_the_fact_sheet():
    """Six rows of angles, recomputed by the claims' own recursion and by the library."""
    want = {1: [4.387, 6.115, 7.446, 9.553, 13.386], 5: [10.767, 14.300, 17.050, 21.368, 28.913],
            30: [36.749, 41.576, 45.272, 50.632, 58.236], 60: [61.890, 63.225, 64.249, 65.765, 68.069],
            90: [80.842, 76.787, 74.627, 72.621, 71.560]}
    for theta, row in want.items():
        path = np.degrees(claims.angles_by_depth(math.radians(theta), 10))
        assert [path[L] for L in (1, 2, 3, 5, 10)] == pytest.approx(row, abs=6e-4)
        assert show.phi((theta,), (1, 2, 3, 5, 10))[:, 0] == pytest.approx(row, abs=6e-4)


def test_the_closest_pair_is_separated_by_the_largest_factor():
    theta = np.radians(np.arange(0.5, 180, 0.5))
    factor = claims.angles_by_depth(theta, 10) / theta
    assert (np.diff(factor[1:], axis=1) < 0).all()


# ---- the derivations ---------------------------------------------------------------------------------------------
Z, S, A, L = sp.Symbol("z"), sp.Symbol("s", positive=True), sp.Symbol("a"), sp.Symbol("L")


def test_every_step_holds_and_says_why():
    for step in symbolic.gradient.crossover_steps(Z, S):
        assert step.holds, step.title
        assert step.reason.endswith(".")


@pytest.mark.parametrize("slope", [0, sp.Rational(1, 2), -1, 1])
def test_the_series_leaves_out_the_next_order(slope):
    beta = symbolic.relu_share(slope)
    with mp.workdps(60):
        for depth in (0, 1, 3):
            series = sp.lambdify(Z, symbolic.gradient.gradient_cosine_series(Z, depth, 3, slope), "mpmath")
            far, near = (abs(claims.cosine(z, depth, mp.mpf(beta.p) / beta.q) - series(z)) for z in (mp.mpf("2e-4"), mp.mpf("1e-4")))
            assert float(mp.log(far / near, 2)) == pytest.approx(4, abs=0.01)


def test_the_series_with_a_symbolic_depth():
    quotient = sp.series(symbolic.gradient.gradient_cosine_series(Z, L, 2) / sp.cos(Z), Z, 0, 3).removeO()
    for power, want in ((0, 1), (1, -L / (2 * sp.pi)), (2, 5 * L * (L - 1) / (18 * sp.pi**2))):
        assert sp.simplify(sp.expand(quotient).coeff(Z, power) - want) == 0
    leaky = symbolic.gradient.gradient_cosine_series(Z, L, 1, A)
    assert sp.simplify(leaky - (1 - symbolic.relu_share(A) * L * Z / (2 * sp.pi))) == 0


def test_the_coefficient_of_the_logarithm():
    """The mean of (l/L)^3 times 9/2 (ln l/l - ln L/L), as the page derives it, is 3/8 ln L/L to leading order."""
    l, n = sp.symbols("l n", positive=True)
    mean = sp.integrate((l / n) ** 3 * sp.Rational(9, 2) * (sp.log(l) / l - sp.log(n) / n), (l, 1, n)) / n
    assert sp.limit(mean * n / sp.log(n), n, sp.oo) == sp.Rational(3, 8)
