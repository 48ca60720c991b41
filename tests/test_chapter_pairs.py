"""Two points: the explorables against a second method, and every number of the page that no claim checks."""
import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import (
    MLP,
    angles,
    embedding_angle,
    empirical_ntk,
    gradient_angle,
    gradient_deficit,
    ntk_condition_number,
    ntk_gram,
    spectrum,
)
from ntklib.book.claims import pairs as claims
from ntklib.book.exercises import pairs as exercises
from ntklib.book.explorables import pairs as show
from ntklib.symbolic import pairs as symbolic

PHI, DEFICIT, KAPPA, COSINE = angles.gradient_angle, angles.gradient_deficit, spectrum.ntk_condition_number, claims.cosine


def wrong_kappa(X, **kw):
    found = KAPPA(X, **kw)
    return found._replace(kappa=found.kappa * (1 + 1e-3))


def low_kappa(X, **kw):
    found = KAPPA(X, **kw)
    return found._replace(kappa=found.kappa * 0.99)


SABOTAGE = {        # for test_claims.py: a falsehood that each check must notice
    "pairs-formula": [(spectrum, "ntk_condition_number", wrong_kappa)],
    "pairs-linear": [(spectrum, "ntk_condition_number", wrong_kappa)],
    "pairs-relu-rate": [(spectrum, "ntk_condition_number", wrong_kappa)],
    "pairs-gain": [(angles, "gradient_deficit", lambda t, L: DEFICIT(t, L + (L > 0)))],
    "pairs-theorem-f1": [(angles, "gradient_angle", lambda t, L: PHI(t, L) * (1 - 1e-6))],
    "pairs-window": [(angles, "gradient_angle", lambda t, L: t / 2 + PHI(t, L) / 2 + 0.3 * torch.sin(20 * t))],
    "pairs-lengths": [(spectrum, "ntk_condition_number", low_kappa)],
    "pairs-deep": [(angles, "gradient_angle", lambda t, L: torch.arccos(PHI(t, L).cos() + 1 / 12))],       # kappa -> 2
    "pairs-width": [(claims, "MLP", lambda d, m, L, generator: MLP(d, 2 * m, L, generator=generator))],
}


def from_cosine(theta, ratio, depth):
    c = gradient_angle(theta, depth).cos()
    half = (ratio + 1 / ratio) ** 2 / (2 * (1 - c**2)) - 1
    return half + ((half - 1) * (half + 1)).sqrt()


def by_eigenvalues(theta, ratio, depth):
    c = ratio * gradient_angle(theta, depth).cos()
    K = torch.stack([torch.ones_like(c), c, c, torch.full_like(c, ratio**2)], -1).reshape(*c.shape, 2, 2)
    values = torch.linalg.eigvalsh(K)
    return values[..., 1] / values[..., 0]


def by_trace(theta, ratio, depth):
    """Another right way: the smaller eigenvalue from the determinant."""
    d = gradient_deficit(theta, depth)
    trace, det = 1 + ratio**2, ratio**2 * d * (2 - d)
    high = (trace + ((1 - ratio**2) ** 2 + 4 * ratio**2 * (1 - d) ** 2) ** 0.5) / 2
    return high**2 / det


STUDENTS = {        # for test_exercises.py: what students write, and what they must be told
    "pairs.ex5": [
        (lambda theta, ratio, depth: exercises.pair_kappa(theta, 1.0, depth), "lengths do not enter"),
        (lambda theta, ratio, depth: exercises.pair_kappa(theta, ratio, 0), "That is the linear network"),
        (lambda theta, ratio, depth: 1 / exercises.pair_kappa(theta, ratio, depth), "the other way round"),
        (lambda theta, ratio, depth: exercises.pair_kappa(theta, ratio, depth).sqrt(), "the root of it"),
        (from_cosine, "right for moderate angles"),
        (by_eigenvalues, "right for moderate angles"),
        (lambda theta, ratio, depth: theta, "is right."),
    ],
}
CORRECT = {"pairs.ex5": [exercises.pair_kappa, by_trace]}


def points(degrees, ratio=1.0):
    t = math.radians(degrees)
    return torch.tensor([[1.0, 0.0], [ratio * math.cos(t), ratio * math.sin(t)]], dtype=torch.float64)


def library(degrees, depth, ratio=1.0):
    """The condition number of the two points themselves; depth = 0 is the linear network."""
    return ntk_condition_number(points(degrees, ratio), depth=depth).kappa


# ---- the explorables ---------------------------------------------------------------------------------
@pytest.mark.parametrize("theta", [1e-6, 0.1, 20, 60, 90, 135, 179])
@pytest.mark.parametrize(("depth", "ratio"), [(0, 1.0), (1, 1.0), (10, 0.5), (3, 1.6)])
def test_kappa_is_that_of_the_points(theta, depth, ratio):
    assert show.kappa(show._deficit(theta, depth), ratio) == pytest.approx(library(theta, depth, ratio), rel=1e-8)


def test_the_gain_of_the_prediction():
    got = show.pair_gain(1)
    assert got["gain"] == pytest.approx(library(1, 0) / library(1, 10), rel=1e-9)
    assert 180 < got["gain"] < 182
    curve = got["curve"]
    i = np.searchsorted(curve["theta"], 5)
    assert curve["gain"][i] == pytest.approx(library(curve["theta"][i], 0) / library(curve["theta"][i], 10), rel=1e-8)


@pytest.mark.parametrize(("theta", "depth", "ratio"), [(15, 5, 1.0), (90, 5, 1.0), (165, 1, 1.0), (15, 5, 0.5), (40, 2, 1.6), (120, 3, 0.8)])
def test_the_ellipses_are_those_of_the_kernels(theta, depth, ratio):
    got = show.pair_ellipses(theta, depth, ratio)
    for i, L in enumerate((0, depth)):
        K = ntk_gram(points(theta, ratio), depth=L).numpy() / (L + 1)
        values = np.linalg.eigvalsh(K)
        v = np.array([got["low"]["x"][i], got["low"]["y"][i]])
        assert np.hypot(*v) == pytest.approx(math.sqrt(values[0]), rel=1e-7)
        assert K @ v == pytest.approx(values[0] * v, abs=1e-7)
        name = ("linear", "relu")[i]
        assert got[f"kappa_{name}"] == pytest.approx(values[1] / values[0], rel=1e-7)
        left = 1.0                                          # of an error along that eigenvector, step by step
        for _ in range(50):
            left -= values[0] / values[1] * left
        assert got[f"left_{name}"] == pytest.approx(left, rel=1e-6, abs=1e-12)
        # a point of the drawn ellipse, r (cos phi cos u + sin phi sin u) over cos u, lies on v^T K^-1 v = 1
        phi = got["pair"][f"{name}_phi"][0]
        u = 1.1
        p = np.array([math.cos(u), ratio * (math.cos(phi) * math.cos(u) + math.sin(phi) * math.sin(u))])
        assert p @ np.linalg.solve(K, p) == pytest.approx(1, rel=1e-7)


def test_the_rates_are_those_of_the_points_and_leave_their_laws_at_large_angles():
    for depth in (1, 10, 100):
        c = show._rates(depth)
        for i in (0, 60, 110):
            assert c["relu"][i] == pytest.approx(library(c["theta"][i], depth), rel=1e-7)
            assert c["linear"][i] == pytest.approx(library(c["theta"][i], 0), rel=1e-7)
        assert c["inverse"][0] == pytest.approx(c["relu"][0], rel=1e-3)
        assert c["square"][0] == pytest.approx(c["linear"][0], rel=1e-6)
    got = show.pair_rates(0.1, 10)
    assert got["gain"] == pytest.approx(got["law"], rel=0.01)
    t = np.radians(1e-5)
    assert np.log10(library(1e-5, 0) / library(1e-4, 0)) == pytest.approx(2, abs=1e-4)      # the two exponents
    assert np.log10(library(1e-5, 10) / library(1e-4, 10)) == pytest.approx(1, abs=1e-3)
    assert library(1e-5, 10) * 10 * t == pytest.approx(4 * math.pi, rel=1e-4)


def test_the_window_is_where_the_curves_cross():
    """By bisection on condition numbers of points, where the page uses the secant method on cosines."""
    for depth in (1, 3, 10, 100):
        for edge, side in zip(show.window(depth), (-1, 1), strict=True):
            inside, outside = 90.0, 90.0 + side * 40
            for _ in range(45):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if library(middle, depth) > library(middle, 0) else (inside, middle)
            assert edge == pytest.approx(middle, abs=1e-7)
    got = show.pair_window(90, 3)
    assert got["linear"] == pytest.approx(1)
    assert got["relu"] == pytest.approx(library(90, 3), rel=1e-9)
    assert got["verdict"] == "larger"
    assert show.pair_window(170, 1)["verdict"] == "smaller"


def test_real_networks_by_autograd():
    """The layerwise differences against gradients, for the same weights."""
    t = torch.tensor([0.003, 0.4, 2.0], dtype=torch.float64)
    got = show.real_kappas(t, 8, 3, 2, torch.Generator().manual_seed(9))
    generator = torch.Generator().manual_seed(9)
    W = [torch.randn(2, b, a, dtype=torch.float64, generator=generator) for a, b in pairwise([2, 8, 8, 8, 1])]
    for n in range(2):
        model = MLP(2, 8, 3)
        for layer, w in zip(model.layers, W, strict=True):
            layer.weight = torch.nn.Parameter(w[n].clone())
        for j, angle in enumerate(t.tolist()):
            X = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
            rows = [torch.cat([g.flatten() for g in torch.autograd.grad(model(x[None]).sum(), list(model.parameters()))]) for x in X]
            assert got[n, j].item() == pytest.approx(np.linalg.cond(torch.stack(rows).numpy()) ** 2, rel=1e-6)


def test_the_share_of_networks_that_gain_is_the_chance_of_a_flip():
    """200 networks: four standard errors of a share are at most 0.15. Deep networks are not independent layers: 0.2."""
    for width in (16, 64, 256):
        for depth, slack in ((1, 0.15), (3, 0.2)):
            f = show._finite(width, depth)
            for theta, share in zip(f["theta"], f["share"], strict=True):
                if theta <= 1:                              # beyond, the two laws are close, and chance decides between them
                    assert abs(share - show.flip_chance(theta, width, depth)) < slack, (width, depth, theta)
    assert min(show._finite(256, 1)["share"][-2:]) > 0.9
    t = math.radians(0.5)
    both = 1 - (1 - t / math.pi) ** 64
    assert show.flip_chance(0.5, 64, 1) == pytest.approx(both, rel=1e-9)
    g = embedding_angle(torch.tensor(t, dtype=torch.float64), 1).item()
    assert show.flip_chance(0.5, 64, 2) == pytest.approx(1 - (1 - both) * (1 - g / math.pi) ** 64, rel=1e-9)


def test_the_default_state_shows_the_return_to_the_linear_law():
    got = show.pair_width(0.1, 64, 1)
    assert got["middle"] == pytest.approx(got["linear"], rel=0.3)
    assert got["relu"] < got["linear"] / 100
    wide = show.pair_width(10, 256, 1)
    assert wide["middle"] == pytest.approx(wide["relu"], rel=0.3)


# ---- the page ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", [0.3, 1.2])
@pytest.mark.parametrize("ratio", [1, 0.4, 3])
def test_the_symbols_are_the_eigenvalues(phi, ratio):
    values = np.linalg.eigvalsh(np.array(symbolic.kernel(phi, ratio).tolist(), float))
    assert float(symbolic.condition_number(phi, ratio)) == pytest.approx(values[1] / values[0], rel=1e-9)
    assert float(symbolic.spread(phi, ratio)) == pytest.approx(values.sum() ** 2 / values.prod(), rel=1e-9)
    assert sp.simplify(symbolic.condition_number(sp.pi / 4) - sp.cot(sp.pi / 8) ** 2) == 0


@pytest.mark.parametrize("depth", [1, 2, 7, 40])
def test_the_deficit_is_linear_with_the_coefficient_of_the_page(depth):
    t = 1e-9
    with mp.workdps(40):
        deficit = 1 - COSINE(t, depth)
        assert float(deficit / t) == pytest.approx(depth / (2 * math.pi), rel=1e-6)


def test_numbers_in_the_prose():
    assert show.window(1) == pytest.approx((66.78, 96.20), abs=0.005)
    assert library(60, 0) / library(60, 10) == pytest.approx(1.4, abs=0.05)
    assert 1e4 < library(0.01, 0) / library(0.01, 10) < 1e5
    # just above the threshold the first layer loses and later ones win back
    assert library(67, 1) > library(67, 0) > library(67, 5)
    # nearly opposite inputs: more gain than close ones, one layer is best, the next ones raise kappa
    for e in (1, 5, 10):
        assert library(180 - e, 0) / library(180 - e, 1) > library(e, 0) / library(e, 1)
        kappas = [library(180 - e, L) for L in range(1, 12)]
        assert all(a < b for a, b in pairwise(kappas))
    assert library(180 - 1e-3, 1) == pytest.approx(1, abs=1e-4)
    # orthogonal inputs only lose
    assert all(library(90, L) > 1.3 for L in (1, 2, 5, 20, 100))
    # x and -x share no active unit: their hidden layers are orthogonal
    assert embedding_angle(torch.tensor(math.pi, dtype=torch.float64), 1).item() == pytest.approx(math.pi / 2)


def test_one_hidden_layer_is_unbiased_at_any_width():
    """The second method of the page: 4000 networks of three units against the closed form, within four standard errors."""
    generator, X = torch.Generator().manual_seed(3), points(20)
    K = torch.stack([empirical_ntk(MLP(2, 3, 1, generator=generator), X) for _ in range(4000)])
    half = (K[:, 0, 0] + K[:, 1, 1] - 2 * K[:, 0, 1]) / 4
    exact = gradient_deficit(torch.tensor(math.radians(20), dtype=torch.float64), 1)
    assert abs(half.mean() - exact) < 4 * half.std() / math.sqrt(4000)
