"""The metric tensor: the explorables against a second method, and every number of the page that no claim checks."""
import itertools
import math

import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import sphere
from ntklib.book.claims import metric as claims
from ntklib.book.exercises import metric as exercises
from ntklib.book.explorables import metric as show
from ntklib.symbolic import metric as symbolic
from ntklib.symbolic import sphere as exact

METRIC, JACOBIAN = sphere.metric, sphere.jacobian
MEAN = symbolic.mean_metric


def too_far(n, i):
    return sp.Rational(n - i + 1, n)


SABOTAGE = {        # for test_claims.py: a falsehood that each check must notice
    "metric-diagonal": [(sphere, "metric", lambda t: t.sin().cumprod(-1).square())],
    "metric-tail": [(sphere, "metric", lambda t: METRIC(t) * (1 + 1e-9))],
    "metric-rebuttal": [(sphere, "jacobian", lambda t: JACOBIAN(t).abs())],
    "metric-mean": [(symbolic, "mean_metric", lambda n, j: sp.Rational(n - j, n))],
    "metric-half": [(sphere, "metric", lambda t: METRIC(t).sqrt())],
    "metric-weights": [(symbolic, "mean_squared_move", too_far)],
    "metric-descent": [(sphere, "metric", lambda t: METRIC(t).sqrt())],
    "metric-order": [(sphere, "to_angles", lambda u: (1, u)), (sphere, "from_angles", lambda w: w / w.norm())],
    "metric-dimension": [(symbolic, "mean_metric", lambda n, j: MEAN(n, 1))],
    "metric-location": [(sphere, "metric", lambda t: torch.ones_like(t))],
}


def by_loops(theta, eps):
    """Slow and plain: the product of the squared sines before each angle."""
    out = torch.zeros_like(theta[..., 0])
    for j in range(theta.shape[-1]):
        weight = torch.ones_like(out)
        for k in range(j):
            weight = weight * theta[..., k].sin() ** 2
        out = out + weight * eps[..., j] ** 2
    return out.sqrt()


def by_pseudoinverse(theta, g, lr):
    return -lr * (torch.linalg.pinv(JACOBIAN(theta)) @ g[..., None])[..., 0]


def shifted(theta):
    return torch.cat([torch.ones_like(theta[..., :1]), theta[..., :-1].sin()], -1)


STUDENTS = {        # for test_exercises.py: what students write, and what they must be told
    "metric.ex4": [
        (lambda theta, eps: eps.norm(dim=-1), "all weights equal to 1"),
        (lambda theta, eps: (theta.sin().cumprod(-1) * eps).norm(dim=-1), "runs to j"),
        (lambda theta, eps: (METRIC(theta) * eps.square()).sum(-1), "the root is missing"),
        (lambda theta, eps: (METRIC(theta) * eps).norm(dim=-1), "once too often"),
        (lambda theta, eps: (METRIC(theta).sqrt() * eps.abs()).sum(-1), "added up lengths"),
        (lambda theta, eps: (shifted(theta) * eps).norm(dim=-1), "cumprod"),
        (lambda theta, eps: (eps * theta.sin().cumprod(-1) / theta.sin()).norm(dim=-1), "Do you divide by a sine"),
        (lambda theta, eps: eps.sum(-1), "is right."),
    ],
    "metric.ex5": [
        (exercises._plain, "plain gradient descent"),
        (lambda t, g, lr: exercises._plain(t, g, lr, -0.5), "enters twice"),
        (lambda t, g, lr: exercises._plain(t, g, lr, 1.0), "slower still"),
        (lambda t, g, lr: exercises._plain(t, g, lr, -1.0, 1.0), "it climbs"),
        (lambda t, g, lr: (t * 0.0).sqrt() / 0.0, "never negative"),
    ],
}
CORRECT = {"metric.ex4": [exercises.turn, by_loops], "metric.ex5": [exercises.fair_step, by_pseudoinverse]}


# ---- the closed forms ----------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_both_proofs_hold_in_every_step(n):
    assert all(step.holds for step in symbolic.induction_steps(n))
    for a, b in itertools.combinations(range(1, n), 2):
        assert all(step.holds for step in symbolic.cancellation_steps(n, a, b))
        assert exact.pythagoras(sum(symbolic.summands(n, a, b))) == 0


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_means_are_the_integrals_over_the_law_of_the_angles(n):
    """By sympy's integrator, angle by angle: no symmetry and no telescoping."""
    theta, u = exact.angles(n), exact.from_angles(n)

    def mean(f):
        for k, t in enumerate(theta, 1):
            f = sp.integrate(f * exact.density(n, k), (t, 0, 2 * sp.pi if k == n - 1 else sp.pi))
        return sp.nsimplify(sp.simplify(f))

    for j in range(1, n):
        assert mean(sum(x**2 for x in u[j - 1:])) == symbolic.mean_metric(n, j)
        for i in range(1, n + 1):
            assert mean(exact.jacobian(n)[i - 1, j - 1] ** 2) == symbolic.mean_squared_derivative(n, i, j)


@pytest.mark.parametrize("n", [2, 3, 7, 30])
def test_rows_and_columns_of_the_mean_squares_add_up(n):
    square = [[symbolic.mean_squared_derivative(n, i, j) for j in range(1, n)] for i in range(1, n + 1)]
    assert [sum(c) for c in zip(*square, strict=True)] == [symbolic.mean_metric(n, j) for j in range(1, n)]
    assert [sum(r) for r in square] == [symbolic.mean_squared_move(n, i) for i in range(1, n + 1)]
    moves = [sum(r) for r in square]
    assert moves == sorted(moves, reverse=True)
    assert moves[-1] == moves[-2] == sp.harmonic(n - 1) / n
    assert moves[0] == sp.Rational(n - 1, n)
    assert sum(moves) == sp.Rational((n + 2) * (n - 1), 2 * n)
    assert np.allclose(show.moves(n) ** 2, [float(m) for m in moves], rtol=1e-14)


@pytest.mark.parametrize(("call", "says"), [
    (lambda: symbolic.mean_metric(4, 4), "n - 1 = 3 angles"), (lambda: symbolic.mean_squared_move(4, 5), "n = 4 weights"),
    (lambda: symbolic.mean_squared_derivative(4, 5, 1), "n = 4 weights"), (lambda: symbolic.cancellation_steps(4, 2, 2), "a < b"),
    (lambda: symbolic.summands(4, 1, 7), "n - 1 = 3 angles")])
def test_what_does_not_exist_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


# ---- the explorables -----------------------------------------------------------------------------------
def test_one_angle_is_the_mean_over_drawn_units():
    """Real steps of 0.01 degrees in one angle, for both ways to draw a unit."""
    g = torch.Generator().manual_seed(5)
    small = math.radians(0.01)
    for law, theta in (("direction", sphere.uniform_angles(2000, 784, generator=g)), ("angles", math.pi * torch.rand(2000, 783, generator=g, dtype=torch.float64))):
        for place in (1, 24, 392, 783) if law == "direction" else (1, 2, 5):
            moved = theta.clone()
            moved[:, place - 1] += small
            turns = sphere.geodesic(sphere.from_angles(theta), sphere.from_angles(moved)) / small
            got = float(show._rms(place, law))
            assert turns.square().mean().sqrt().item() == pytest.approx(got, rel=0.08), (law, place)
    got = show.one_angle(392, "direction")
    assert got["middle"] == pytest.approx(math.sqrt(393 / 784))
    assert f"{got['middle']:.3f}" == "0.708"                              # said on the page: more than two thirds
    assert show.one_angle(24, "angles")["said"] == "0.000345"
    assert got["drawn"]["one"].shape == got["drawn"]["j"].shape
    assert np.abs(np.array(got["drawn"]["one"]).reshape(3, -1) - got["curve"]["rms"])[:, :-1].max() < 0.1    # they hug the curve


def test_a_step_is_what_the_sphere_does():
    """Against the turn of a real, hundred times shorter step."""
    for first, heading in itertools.product((0, 30, 90, 150), (0, 60, 90, 180)):
        got = show.step(first, heading)
        h, small = math.radians(heading), math.radians(show.RADIUS) / 100
        theta = torch.tensor([math.radians(first), 0.0], dtype=torch.float64)
        eps = small * torch.tensor([math.cos(h), math.sin(h)], dtype=torch.float64)
        real = sphere.geodesic(sphere.from_angles(theta - eps / 2), sphere.from_angles(theta + eps / 2)).rad2deg().item() * 100
        assert got["turn"] == pytest.approx(real, abs=2e-3)
        assert got["along"] == pytest.approx(show.RADIUS * math.sin(math.radians(first)))
        ring = np.stack([got["disc"]["x"], got["disc"]["y"]], 1)
        assert not np.isnan(ring).any()                                   # the slider stops where the disc would leave the near side
        spot = np.array([got["globe"]["x2"][0], got["globe"]["y2"][0]])
        assert np.linalg.norm(ring - spot, axis=1).min() < 0.03           # the arrow ends on the ellipse


def test_derivatives_by_differences_give_the_metric():
    """The derivatives that they are drawn from, by differences: their lengths and scalar products are M."""
    for first in (30, 90):
        theta = torch.tensor([math.radians(first), 0.4], dtype=torch.float64)
        J = torch.stack([(sphere.from_angles(theta + d) - sphere.from_angles(theta - d)) / 2e-6 for d in 1e-6 * torch.eye(2, dtype=torch.float64)], 1)
        assert torch.allclose(J.T @ J, torch.diag(METRIC(theta)), atol=1e-9)
        assert torch.allclose(J, JACOBIAN(theta), atol=1e-9)


def test_the_running_sum_ends_where_the_caption_says():
    for a, b, draw in itertools.product(range(1, 8), range(1, 8), range(1, 5)):
        got = show.running_sum(a, b, draw)
        terms = np.array(got["terms"]["end"]) - np.array(got["terms"]["start"])
        late = max(a, b)
        assert got["cosine"] == pytest.approx(float(a == b), abs=1e-12)
        assert np.abs(terms[:late - 1]).sum() < 1e-12
        assert np.abs(got["terms"]["end"]).max() < 1.05
        if a != b:
            assert (np.sign(terms[late:]) != np.sign(terms[late - 1])).all()
            assert got["M"] == 0
        else:
            assert (terms[late - 1:] >= 0).all()
            theta = sphere.uniform_angles(1, 8, generator=torch.Generator().manual_seed(show.UNITS[draw - 1]))[0]
            assert got["M"] == pytest.approx(METRIC(theta)[a - 1].item())
    assert show.running_sum(2, 4, 1)["largest"] > 0.3                     # the default shows it


def test_every_order_numbers_every_pixel_once():
    for order in show.ORDERS:
        assert sorted(show._pixels(order)) == list(range(256))
        got = show.weights(order, "mean", 1)
        image = np.array(got["image"]["move"])
        assert image.max() == image[show._pixels(order)[0]]
        place = got["now"]["row"][0] * 16 + got["now"]["column"][0]
        assert place == show._pixels(order)[0]
    centre = show.weights("centre", "mean", 1)["now"]
    assert {centre["row"][0], centre["column"][0]} <= {7, 8}
    rows = np.array(show.weights("rows", "mean", 1)["image"]["move"]).reshape(16, 16)
    assert (np.diff(rows.ravel()) <= 0).all()


def test_moves_are_those_of_real_steps():
    g = torch.Generator().manual_seed(2)
    theta = sphere.uniform_angles(3000, 256, generator=g)
    signs = torch.randint(0, 2, theta.shape, generator=g, dtype=torch.float64) * 2 - 1
    eta = 1e-5
    moved = ((sphere.from_angles(theta + eta * signs) - sphere.from_angles(theta)) / eta).square().mean(0).sqrt().numpy()
    assert np.abs(moved / show.moves(256) - 1).max() < 0.12
    one = sphere.uniform_angles(1, 256, generator=torch.Generator().manual_seed(1))[0]
    J = torch.func.jacfwd(sphere.from_angles)(one)
    assert np.allclose(J.square().sum(1).sqrt().numpy(), show._one_unit(), atol=1e-12)


# ---- the page ------------------------------------------------------------------------------------------
def test_numbers_in_the_text():
    first, last = (math.sqrt(symbolic.mean_squared_move(784, i)) for i in (1, 784))
    assert 9.5 < first / last < 10.5                                      # "ten times as far"
    assert show.weights("rows", "mean", 1)["ratio"] == pytest.approx(6.5, abs=0.05)
    assert last == pytest.approx(math.sqrt(math.log(784) / 784), rel=0.05)
    assert show.moves(256)[-1] == pytest.approx(0.15, abs=0.01)           # said in the alt text
    means = [float(MEAN(784, j)) for j in range(1, 784)]
    assert np.mean(means) == pytest.approx(786 / 1568)
    assert max(m * (1 - m) / 393 for m in means) <= 1 / (2 * 784 + 4) + 1e-15   # variance of the Beta law; its parameters add up to 392
    assert means[-1] * (1 - means[-1]) / 393 == pytest.approx(means[-1] ** 2, rel=0.01)   # scatter as large as the mean


def test_step_lengths_of_the_referees_table():
    assert 0.1 * math.sqrt(28 / 2) * 180 / math.pi == pytest.approx(21.4, abs=0.1)
    assert math.degrees(0.1 * math.sqrt(1151 * 1154 / 2304)) > 90
    g = torch.Generator().manual_seed(1)
    assert claims.mean_turn(28, 0.1, 4000, g).mean().item() == pytest.approx(0.37, abs=0.01)
    assert claims.mean_turn(1152, 0.1, 1000, g).mean().item() == pytest.approx(1.40, abs=0.02)


def test_slopes_of_a_ray_have_a_metric_that_is_not_diagonal():
    p, q = sp.symbols("p q", real=True)
    ray = sp.Matrix([1, p, q]) / sp.sqrt(1 + p**2 + q**2)
    J = ray.jacobian([p, q])
    assert sp.simplify((J.T * J)[0, 1] + p * q / (1 + p**2 + q**2) ** 2) == 0


def test_the_natural_step_turns_the_unit_as_the_sphere_does():
    """du is minus lr times the tangent part of g, to first order: for the cure on the page and exercise 5."""
    g = torch.Generator().manual_seed(4)
    theta = 0.5 + 2 * torch.rand(5, dtype=torch.float64, generator=g)
    gradient = torch.randn(6, dtype=torch.float64, generator=g)
    u = sphere.from_angles(theta)
    du = (sphere.from_angles(theta + exercises.fair_step(theta, gradient, 1e-6)) - u) / 1e-6
    assert torch.allclose(du, -(gradient - (gradient @ u) * u), atol=1e-4)


def test_true_or_not_holds_for_many_units():
    for n, seed in itertools.product((3, 4, 9), range(5)):
        assert exercises._settles(exercises._random(n, seed)) == exercises._HOLDS
