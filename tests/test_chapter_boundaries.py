"""The chapter on activation boundaries: its figures against second methods, its counts, its claims' sabotages, its students."""
import itertools
import math

import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import boundaries, symbolic
from ntklib.book.claims import boundaries as claimed
from ntklib.book.explorables import boundaries as show
from ntklib.boundaries import Boundary

f64 = torch.float64
BOUNDARY, OF = boundaries.Boundary, boundaries.of


# ---- the sympy twins ---------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_location_is_its_twin(n):
    w, b, phi = symbolic.boundaries.location(n)
    g = torch.Generator().manual_seed(n)
    W, c = torch.randn(5, n, dtype=f64, generator=g), torch.randn(5, dtype=f64, generator=g)
    f = sp.lambdify([*w, b], list(phi), "numpy")
    expected = np.stack([f(*row.tolist(), x.item()) for row, x in zip(W, c, strict=True)])
    np.testing.assert_allclose(Boundary(W, c).location.numpy(), expected, rtol=1e-13, atol=1e-14)
    if n > 1:
        assert all(step.holds for step in symbolic.boundaries.location_steps(n))


def test_shares_are_their_twins():
    for reach, ratio in itertools.product((0.5, 1, 10), ("0.25", "1", "4")):
        exact = float(symbolic.boundaries.bend_share(reach, sp.Rational(ratio)))
        assert show.bend_share(reach, ratio)["share"] == pytest.approx(100 * exact, rel=1e-13)
    for n in (2, 3, 5, 8):
        for degrees in (10, 30, 60):
            exact = float(symbolic.boundaries.cap_share(n, sp.rad(degrees)))
            assert 10 ** show.log_cap_share(n, math.radians(degrees)) == pytest.approx(exact, rel=1e-10)
        assert 10 ** show.log_ball_share(n) == pytest.approx(float(symbolic.boundaries.ball_share(n)), rel=1e-12)


def test_the_cap_is_below_its_bound():
    """1/2 sin^(n-1), for every state of the figure."""
    for n, degrees in itertools.product(show.DIMS, (10, 15, 20, 30, 45, 60)):
        assert show.log_cap_share(n, math.radians(degrees)) < math.log10(0.5) + (n - 1) * math.log10(math.sin(math.radians(degrees)))


# ---- the figures ---------------------------------------------------------------------------------------
def test_units_with_one_input_by_counting():
    g = torch.Generator().manual_seed(7)
    w, b = torch.randn(2, 1_000_000, dtype=f64, generator=g)
    for reach, ratio in ((1, "1"), (10, "1"), (1, "0.25")):
        inside = ((float(ratio) * b / w).abs() <= reach).double().mean().item()
        assert show.bend_share(reach, ratio)["share"] == pytest.approx(100 * inside, abs=4 * 100 / 2 / 1000)


@pytest.mark.parametrize(("theta", "length", "bias"), [(30, 1, -1.5), (135, 2, -3), (345, 0.25, 0.5), (0, 1, 0)])
def test_the_unit_of_the_figure_is_a_relu(theta, length, bias):
    out = show.one_unit(theta, length, bias)
    w = length * np.array([math.cos(math.radians(theta)), math.sin(math.radians(theta))])
    np.testing.assert_allclose([out["w1"], out["w2"]], w, atol=1e-15)
    z = np.maximum(show.FIELD @ w + bias, 0)
    np.testing.assert_allclose(out["field"]["z"], z, atol=1 / 32)
    ends = np.stack([out["line"]["x"], out["line"]["y"]], 1)
    np.testing.assert_allclose(ends @ w + bias, 0, atol=1e-12)
    assert np.hypot(out["p1"], out["p2"]) == pytest.approx(abs(bias) / length)
    assert (out["p1"], out["p2"]) == pytest.approx((out["q1"], out["q2"]))


def test_a_boundary_leaves_with_shrinking_weights_and_stays_with_common_factors():
    far = [show.one_unit(30, length, -1.5)["far"] for length in (0.25, 0.5, 1, 2)]
    assert far == pytest.approx([6, 3, 1.5, 0.75])
    assert show.one_unit(30, 2, -3)["far"] == pytest.approx(1.5)


@pytest.mark.parametrize("draw", [1, 2, 3, 4])
@pytest.mark.parametrize("spread", ["0", "1", "4"])
def test_pieces_are_patterns(draw, spread):
    """By points near each corner and along the rim, for layers of 4 to 24 units."""
    W, b = show._layer(draw)
    for units in (4, 12, 24):
        out = show.layer_lines(units, spread, draw)
        assert out["pieces"] == claimed.patterns(W[:units], float(spread) * b[:units], show.DISC)
        assert out["lines_in"] + out["out"] == units


def test_chords_end_on_the_rim_and_on_the_line():
    W, b = show._layer(2)
    edge = Boundary(W, b)
    ends = show.chords(edge, show.DISC)
    seen = ~ends[:, 0, 0].isnan()
    torch.testing.assert_close(seen, edge.lam.abs() < show.DISC)
    torch.testing.assert_close(ends[seen].norm(dim=-1), torch.full_like(ends[seen][..., 0], show.DISC))
    at = (ends[seen] * edge.direction[seen][:, None]).sum(-1) + edge.lam[seen][:, None]
    torch.testing.assert_close(at, torch.zeros_like(at), rtol=0, atol=1e-12)


def test_a_default_layer_passes_near_the_origin():
    """The page's numbers: half of the boundaries lie within 0.66, 0.19 and 0.06 for n = 2, 20 and 200."""
    for n, expected in ((2, 0.66), (20, 0.19), (200, 0.06)):
        g = torch.Generator().manual_seed(n)
        W, b = ((2 * torch.rand(200_000, k, generator=g) - 1) / n**0.5 for k in (n, 1))
        assert (b[:, 0].abs() / W.norm(dim=1)).median().item() == pytest.approx(expected, abs=0.01)


# ---- the network that the reader fits ------------------------------------------------------------------
def test_the_best_output_weights_are_best():
    """Against gradient descent's fixed point: the residual is orthogonal to every hinge."""
    for name in show.TARGETS:
        for bends in (show.EVEN, (-2.8, -2.6, -2.4, -2.2, -2.0), (0.0, 0.0, 1.0, 1.0, 3.0)):
            residual = show.target(name) - show.best_output(name, bends)
            assert np.abs(show.hinges(bends).T @ residual).max() < 1e-9


def test_changes_of_slope_are_the_output_weights():
    bends = (-1.5, -0.2, 0.3, 0.9, 2.1)
    out = show.fit_by_hand("bump", *bends)
    weights = np.linalg.lstsq(show.hinges(bends), show.target("bump"), rcond=None)[0][2:]
    np.testing.assert_allclose(out["bends"]["change"], weights, atol=1e-9)
    on = np.interp(bends, out["curve"]["x"], out["curve"]["fit"])
    np.testing.assert_allclose(out["bends"]["y"], on, atol=1e-12)


@pytest.mark.parametrize("name", show.TARGETS)
def test_no_move_of_one_bend_improves_the_best(name):
    best, places = show.best_bends(name), show.PLACES
    error = show.misfit(name, best)
    for j in range(5):
        for place in places[1:-1]:
            tried = [place if i == j else b for i, b in enumerate(best)]
            assert show.misfit(name, tried) >= error - 1e-9
    assert error < show.misfit(name, show.EVEN) / 1.5


def test_what_the_page_says_of_the_bump():
    best, even = show.misfit("bump", show.best_bends("bump")), show.misfit("bump", show.EVEN)
    assert even > 10 * best
    assert show.misfit("bump", (-2.8, -2.6, -2.4, -2.2, -2.0)) > even


# ---- claims and exercises: what must be noticed -------------------------------------------------------------
class Shifted(BOUNDARY):
    @property
    def location(self):
        return super().location * (1 + 1e-9) + 1e-9


class Unscaled(BOUNDARY):
    """The offset is not divided by |w|."""

    @property
    def lam(self):
        return self.offset


class Turned(BOUNDARY):
    @property
    def direction(self):
        return super().direction.roll(1, -1)


def shares(factor):
    exact = show.bend_share
    return lambda *state: {k: v * factor if k == "share" else v for k, v in exact(*state).items()}


def miscounted(*state):
    out = LAYER_LINES(*state)
    return out | {"pieces": out["pieces"] + 1}


LAYER_LINES, CAP, BOUND = show.layer_lines, show.log_cap_share, boundaries.rotation_bound
SABOTAGE = {
    "boundaries-location": [(boundaries, "Boundary", Shifted)],
    "boundaries-two-coordinates": [(boundaries, "Boundary", Unscaled)],
    "boundaries-scale": [(boundaries, "Boundary", Unscaled)],
    "boundaries-spline": [(boundaries, "Boundary", Unscaled)],
    "boundaries-breakpoints": [(boundaries, "of", lambda layer, at: OF(layer, at=1.01 * at + 0.02))],
    "boundaries-half-inside": [(show, "bend_share", shares(1 + 1e-8))],
    "boundaries-pieces": [(show, "layer_lines", miscounted)],
    "boundaries-by-location": [(boundaries, "rotation_bound", lambda w, eps: 1.001 * BOUND(w, eps))],
    "boundaries-sampling": [(show, "log_cap_share", lambda n, angle: CAP(n, angle) + 0.05)],
}


def right_pieces(w, b, radius):
    lines = (b.abs() < radius * w.norm(dim=-1)).sum()
    i, j = torch.triu_indices(len(b), len(b), 1)
    meet = torch.linalg.solve(torch.stack([w[i], w[j]], 1), -torch.stack([b[i], b[j]], -1))
    return (1 + lines + (meet.norm(dim=-1) < radius).sum()).to(w.dtype)


def square(w):
    return w.square().sum(-1, keepdim=True)


STUDENTS = {
    "boundaries.ex5": [
        (lambda w, b: b[:, None] * w / square(w), "sign is missing"),
        (lambda w, b: -b[:, None] * w / square(w).sqrt(), "once more"),
        (lambda w, b: w / square(w).sqrt(), "directions u"),
        (lambda w, b: -b[:, None] * w / w.square().sum(), "its own"),
        (lambda w, b: -b / w.norm(dim=-1), "is wanted"),
        (lambda w, b: -b[:, None] / w, "is right."),
    ],
    "boundaries.ex6": [
        (lambda w, b, radius: w.new_tensor(1 + len(b) * (len(b) + 1) // 2), "the whole plane"),
        (lambda w, b, radius: (1 + (b.abs() < radius * w.norm(dim=-1)).sum()).to(w.dtype), "lines that never meet"),
        (lambda w, b, radius: right_pieces(w, b, radius) - 1, "One is missing"),
        (lambda w, b, radius: 1 + len(b), "return a torch.Tensor"),
        (lambda w, b, radius: 2.0 ** w.new_tensor(len(b)), "is right."),
    ],
}
CORRECT = {
    "boundaries.ex5": [lambda w, b: Boundary(w, b).location, lambda w, b: -(b / w.norm(dim=1)).unsqueeze(1) * w / w.norm(dim=1, keepdim=True)],
    "boundaries.ex6": [right_pieces],
}
