"""Chapter "The condition number of n points": its figures, its prose, and what its claims and exercises must notice."""
from math import pi

import numpy as np
import pytest
import torch

from ntklib import (
    angle_between,
    angle_map,
    empirical_ntk,
    gradient_angle,
    kernels,
    ntk_condition_number,
    ntk_gram,
    spectrum,
)
from ntklib.book.claims import points as claimed
from ntklib.book.exercises.points import _product
from ntklib.book.explorables import points
from ntklib.network import MLP
from ntklib.symbolic import points as twin

f64 = torch.float64
GRAM, KAPPA, KAPPA_OF = kernels.ntk_gram, spectrum.ntk_condition_number, claimed.kappa_of
FIRST = (spectrum, "ntk_condition_number", lambda X, *, depth: KAPPA(X, depth=depth, trained="first"))


def halved(X, *, depth):
    found = KAPPA(X, depth=depth)
    return found._replace(kappa=found.kappa / 2)


SABOTAGE = {
    "points-pair-floor": [(spectrum, "ntk_condition_number", halved)],
    "points-first-layer": [(kernels, "ntk_gram", lambda X, *, depth, trained: GRAM(X, depth=depth))],
    "points-not-strict": [(claimed, "LONG", 1.0)],
    "points-strict-when": [(kernels, "ntk_gram", lambda X, *, depth, trained: X @ X.T)],
    "points-all-layers": [FIRST],
    "points-effective": [(claimed, "kappa_of", lambda K: KAPPA_OF(K[:3, :3]))],
    "points-equicorrelated": [FIRST],
    "points-limit": [(claimed, "kappa_of", lambda K: KAPPA_OF(K) + 1 / 3)],
    "points-opposites": [(kernels, "ntk_gram", lambda X, Y=None, *, depth: GRAM(X, Y, depth=2))],
}


def angles(X):
    return angle_between(X[:, None], X[None])


STUDENTS = {
    "points.ex5": [
        (lambda X, depth: (X @ X.T) * (1 - angles(X) / pi), "whatever `depth` is".replace("`", "")),
        (lambda X, depth: (X @ X.T) * (1 - angles(X) / pi) ** depth, "input angle in every factor"),
        (lambda X, depth: (X @ X.T) * _product(X, 1, depth + 1), "starts at"),
        (lambda X, depth: angles(X).cos() * _product(X, 0, depth), "forgets the lengths"),
        (lambda X, depth: ntk_gram(X, depth=depth), "kernel of all layers"),
        (lambda X, depth: (X @ X.T / X.norm(dim=1) / X.norm(dim=1)[:, None] * 1.01).arccos(), "NaN"),
    ],
}
CORRECT = {"points.ex5": [lambda X, depth: ntk_gram(X, depth=depth, trained="first"),
                          lambda X, depth: (X @ X.T) * _product(X, 0, depth)]}


# ---- the figures -------------------------------------------------------------------------------------------------
def circle(*degrees):
    t = torch.tensor(degrees, dtype=f64).deg2rad()
    return torch.stack([t.cos(), t.sin()], 1)


def test_dragged_points_have_the_librarys_condition_numbers():
    rng = np.random.default_rng(0)
    for _ in range(5):
        turns = rng.choice(360, 6, replace=False).tolist()
        out = points.circle_points(*turns, depth=3)
        assert out["kappa"] == pytest.approx(ntk_condition_number(circle(*turns), depth=3).kappa, rel=1e-7)
        phi = min(gradient_angle(angle_between(*circle(a, b)), 3).item() for i, a in enumerate(turns) for b in turns[:i])
        assert out["floor"] == pytest.approx(1 / np.tan(phi / 2) ** 2, rel=1e-9)
        lon, lat = np.radians(rng.integers(-90, 91, (2, 3)))
        X = torch.tensor(np.stack([np.cos(lat) * np.sin(lon), np.sin(lat), np.cos(lat) * np.cos(lon)], 1))
        out = points.sphere_points(*np.degrees(np.stack([lon, lat], 1)).ravel(), depth=5)
        for name, options in (("linear", {"depth": 0}), ("all", {"depth": 5}), ("first", {"depth": 5, "trained": "first"})):
            assert out[name] == pytest.approx(ntk_condition_number(X, **options).kappa, rel=1e-6)


def test_coinciding_and_dependent_points_are_infinite():
    assert points.circle_points(5, 5, 90, 180, 200, 300, depth=2)["kappa"] == np.inf
    out = points.sphere_points(-60, 0, 0, 0, 60, 0, depth=1)
    assert out["linear"] == np.inf
    assert out["says"] == "ReLU is better"
    assert points.sphere_points(1, 2, 1, 2, 50, 3, depth=1)["says"] == "two points coincide"


@pytest.mark.parametrize("trained", ["all", "first"])
def test_the_tabulated_kernels_are_those_of_the_library(trained):
    theta = torch.linspace(0, pi, 301, dtype=f64).clamp(max=pi)
    pair = torch.stack([theta.cos(), theta.sin()], 1)
    for L, terms in enumerate(points._tabulated(trained), 1):
        K = ntk_gram(torch.tensor([[1.0, 0.0]], dtype=f64), pair, depth=L, trained=trained)[0] / (L + 1 if trained == "all" else 1)
        series = 1 - np.polynomial.chebyshev.chebval(2 * theta.numpy() / pi - 1, terms)
        assert np.abs(series - K.numpy()).max() < 1e-13  # lambda_min keeps 4 digits up to kappa = 10^9


def test_the_spectra_are_those_of_real_wide_networks():
    X = points.data_set("lengths")
    generator = torch.Generator().manual_seed(1)
    K = sum(empirical_ntk(MLP(16, 4000, 2, generator=generator), X) for _ in range(4)) / 12
    found = torch.linalg.eigvalsh(K).numpy()
    shown = points.spectra("lengths", "all", 2)
    assert found[-1] == pytest.approx(shown["high"], rel=0.05)
    assert found[0] == pytest.approx(shown["low"], rel=0.05)
    assert shown["kappa"] == pytest.approx(ntk_condition_number(X, depth=2).kappa, rel=1e-9)


def test_the_closest_pair_decides_and_the_linear_network_pays_its_square():
    at = {t: points.closest_pair(t) for t in points.NEAR}
    for t in (0.25, 0.5, 1.0):
        X = points._with_pair(t)
        assert np.degrees(angles(X)[angles(X) > 0].min().item()) == pytest.approx(t, rel=1e-9)
        assert at[t]["linear"] == pytest.approx(np.divide(*torch.linalg.svdvals(X)[[0, -1]].numpy()) ** 2, rel=1e-6)
        assert at[t / 2]["linear"] / at[t]["linear"] == pytest.approx(4, rel=0.01)
        assert at[t / 2]["relu"] / at[t]["relu"] == pytest.approx(2, rel=0.06)
    assert at[1]["relu"] / at[2]["relu"] == pytest.approx(2.1, abs=0.05)


# ---- the algebra -------------------------------------------------------------------------------------------------
def test_the_steps_hold():
    import sympy as sp
    a, b, z = sp.symbols("a b z", positive=True)
    assert all(s.holds for s in twin.pair_steps(a, b, z) + twin.odd_part_steps(z))
    n, c = 7, 0.3
    K = (1 - c) * np.eye(n) + c
    values = np.linalg.eigvalsh(K)
    assert float(twin.equicorrelated_kappa(n, c)) == pytest.approx(values[-1] / values[0], rel=1e-12)


# ---- numbers of the prose that no claim checks -------------------------------------------------------------------
def test_a_close_pair_stays_near_its_floor_and_a_cluster_does_not():
    default, cluster = (points.circle_points(*at, depth=1)["curve"] for at in ((10, 22, 80, 138, 205, 283), (0, 12, 23, 36, 47, 60)))
    assert 1.3 < (default["kappa"] / default["floor"]).min() < (default["kappa"] / default["floor"]).max() < 2.1
    assert (cluster["kappa"] / cluster["floor"]).min() > 3


def test_numbers_of_the_prose():
    for angle in (66.7, 66.9):
        t = torch.tensor(angle, dtype=f64).deg2rad()
        assert (gradient_angle(t, 1) > t).item() == (angle < 66.78)
    hexagon = circle(0, 60, 120, 180, 240, 300)
    assert ntk_condition_number(hexagon, depth=1).kappa == np.inf
    assert ntk_condition_number(hexagon, depth=2).kappa == pytest.approx(10.1, abs=0.05)
    assert points.circle_points(0, 60, 120, 180, 240, 300, depth=1)["floor"] == pytest.approx(2.8, abs=0.05)
    ninety = [gradient_angle(torch.tensor(pi / 2, dtype=f64), L).cos().item() for L in range(1, 30)]
    assert int(np.argmax(ninety)) + 1 == 11
    assert max(ninety) == pytest.approx(0.316, abs=5e-4)
    assert ninety[0] == pytest.approx(1 / (2 * pi), rel=1e-12)
    theta = torch.linspace(0, pi, 18_001, dtype=f64).clamp(max=pi)
    for L, turn in ((1, 142.6), (2, 148), (10, 167)):
        assert np.degrees(theta[gradient_angle(theta, L).argmax()].item()) == pytest.approx(turn, abs=0.5)
    assert np.degrees(angle_map(torch.tensor(pi, dtype=f64)).item()) == pytest.approx(90)
