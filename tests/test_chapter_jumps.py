"""The chapter on jumps of boundaries: its figures against moved layers, searches and Monte Carlo; sabotages and students."""
import math

import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import boundaries, symbolic
from ntklib.book.claims import jumps as claimed
from ntklib.book.explorables import jumps as show
from ntklib.boundaries import rotation_bound
from ntklib.sphere import geodesic

f64 = torch.float64


# ---- the sympy twins ---------------------------------------------------------------------------------
def test_turns_and_bounds_are_their_twins():
    for ratio in (0.1, 0.5, 0.9, 1.5):
        for psi in (5, 60, 120, 175):
            exact = math.degrees(symbolic.jumps.turn(sp.Float(ratio), sp.rad(sp.Integer(psi))).evalf())
            assert show.turn(ratio, psi) == pytest.approx(exact, rel=1e-12)
        bound = float(symbolic.jumps.rotation_bound(sp.Float(ratio)))
        assert rotation_bound(torch.tensor([2.0, 0], dtype=f64), torch.tensor([0, 2 * ratio], dtype=f64)).item() == pytest.approx(bound)
    assert all(step.holds for step in symbolic.jumps.rotation_steps())


@pytest.mark.parametrize("n", [2, 3, 10, 30])
def test_mean_turns_are_their_twin(n):
    for ratio in (0.1, 0.5, 2):
        exact = math.degrees(symbolic.jumps.mean_turn(n, sp.Float(ratio)).evalf(10))
        assert show.random_turn(n, ratio)["mean"] == pytest.approx(exact, rel=1e-6)


def test_the_quadric_of_layer_norm():
    """Its eigenvalues for four units, as the page says, and its values against torch."""
    (*a, rho), quadric = symbolic.jumps.layer_norm_quadric(4)
    x = sp.Symbol("x")
    polynomial = (sp.hessian(quadric, a) / 2).charpoly(x).as_expr()
    assert sp.expand(polynomial - x * (x + rho**2 / 4) ** 2 * (x - (3 - rho**2) / 4)) == 0
    g = torch.Generator().manual_seed(0)
    values = torch.randn(4, dtype=f64, generator=g)
    centred = values - values.mean()
    expected = centred[0] ** 2 - 0.49 * centred.square().mean()
    assert float(quadric.subs(dict(zip(a, values.tolist(), strict=True))).subs(rho, 0.7)) == pytest.approx(expected.item())


# ---- the figures ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", show.INPUTS)
def test_random_steps_by_drawing_them(n):
    for ratio in (0.01, 0.1, 1, 5):
        w = torch.zeros(n, dtype=f64)
        w[0] = 1.0
        e = torch.randn(4000, n, dtype=f64, generator=torch.Generator().manual_seed(n))
        e = e / e.norm(dim=1, keepdim=True)
        turned = geodesic(w, w + ratio * e).rad2deg()
        out = show.random_step(n, ratio)
        assert out["mean"] == pytest.approx(turned.mean().item(), abs=4 * turned.std().item() / math.sqrt(4000))
        assert (turned < out["most"]).double().mean().item() == pytest.approx(0.95, abs=0.02)
        assert ((e[:, 0] < 0).double().mean().item()) == pytest.approx(out["back"], abs=0.04)
        assert turned.max().item() <= out["worst"] + 1e-9


def test_what_the_page_says_of_a_random_step():
    out = show.random_step(1000, 0.1)
    assert out["mean"] == pytest.approx(math.degrees(math.atan(0.1)), abs=0.01)
    assert out["back"] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.95, 1.05, 1.5])
def test_the_step_of_the_figure(ratio):
    turns = {}
    for psi in range(-180, 181, 5):
        out = show.worst_step(psi, ratio)
        w = torch.tensor([1.0, 0.0], dtype=f64)
        eps = ratio * torch.tensor([math.cos(math.radians(psi)), math.sin(math.radians(psi))], dtype=f64)
        after = boundaries.Boundary(w + eps, torch.tensor(-0.5, dtype=f64))
        turns[psi] = geodesic(w, w + eps).rad2deg().item()
        assert out["turned"] == pytest.approx(turns[psi], abs=1e-6)
        assert out["far"] == pytest.approx(after.location.norm().item())
        line = np.stack([out["lines"]["x"], out["lines"]["y"]], 1)[2:]
        np.testing.assert_allclose(after.distance(torch.from_numpy(line)).numpy(), 0, atol=1e-9)
    assert max(turns.values()) <= out["worst"] + 1e-9
    assert max(turns.values()) > out["worst"] - (2 if ratio < 1 else 1e-6)
    if ratio < 1:
        tangent = np.array([out["tangents"]["x"][0] + 1, out["tangents"]["y"][0]])
        distance = abs(tangent[1] / np.hypot(*tangent))              # of the tip (1, 0) from the tangent
        assert distance == pytest.approx(ratio)


def test_four_ways_against_layers_that_were_moved():
    for theta in (0, 105, 195, 315):
        for length in (0.001, 0.03, 1.0):
            for delta in (1e-4, 1e-2, 0.3):
                out = show.four_ways(length, delta, theta)
                for way, turn, shift in (("standard", "turn_sp", "sp"), ("weight norm", "turn_sp", "wn"),
                                         ("batch norm", "turn_sp", "bn"), ("GmP", "turn_gmp", "gmp")):
                    layer = claimed.unit_in(way, theta, length, show.OFFSET)
                    before, after = (claimed.boundary_of(m) for m in (layer, boundaries.perturb(layer, delta)))
                    assert math.degrees(claimed.angle(before.normal, after.normal)) == pytest.approx(out[turn], abs=1e-8)
                    assert abs(after.lam.item() - before.lam.item()) == pytest.approx(out[shift], rel=1e-8, abs=1e-11)


def test_the_line_of_each_way_is_its_boundary():
    out = show.four_ways(0.1, 0.01, 105)["lines"]
    for i, way in enumerate(show.WAYS):
        layer = boundaries.perturb(claimed.unit_in(way, 105, 0.1, show.OFFSET), 0.01)
        ends = torch.tensor([[out["x0"][i], out["y0"][i]], [out["x1"][i], out["y1"][i]]], dtype=f64)
        assert claimed.boundary_of(layer).distance(ends).abs().max().item() < 1e-9


def test_what_the_page_says_of_the_four_ways():
    small, large = show.four_ways(0.001, 0.01, 195), [show.four_ways(1.0, 0.01, t) for t in range(0, 360, 15)]
    assert math.sqrt(2) * 0.01 / 0.001 == pytest.approx(14, abs=0.2)
    assert small["turn_sp"] > 90
    assert small["turn_gmp"] == pytest.approx(0.573, abs=1e-3)
    assert max(x["turn_sp"] for x in large) < 1
    assert small["sp"] > 0.5 > 0.1 > small["bn"]
    for theta in range(0, 360, 15):                                  # the normal now points along (1, 1), the step
        after = show.moved(theta, 0.001, 0.1)["standard"][0]
        assert show._apart(after, 45) < 1


@pytest.mark.parametrize("draw", [1, 2, 3, 4])
@pytest.mark.parametrize("biased", ["no", "yes"])
def test_the_bend_of_layer_norm_by_torch(draw, biased):
    for ratio in (-1.5, -0.5, 0.25, 0.75):
        layer = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.LayerNorm(5, eps=0)).double()
        W, b = show._normalised(draw, biased == "yes")
        with torch.no_grad():
            layer[0].weight.copy_(W)
            layer[0].bias.copy_(b)
            layer[1].bias.fill_(ratio)
        out = show.layer_norm_bend(ratio, biased, draw)
        x = torch.from_numpy(np.stack([out["bend"]["x"], out["bend"]["y"]], 1))
        x = x[~x[:, 0].isnan()]
        # rounded to 1/512 for drawing: a little more with the gradient's length
        size = (W - W.mean(0)).norm()
        a = layer[0](x)
        a = a - a.mean(1, keepdim=True)                              # z = LayerNorm's output times the deviation
        z = a[:, 0] + ratio * a.square().mean(1).sqrt()
        assert (z.abs() < 3 * size / 512).all()
        on = layer(torch.from_numpy(show.SIGNS))[:, 0] > 0
        assert torch.equal(torch.from_numpy(out["signs"]["on"]), on)


def test_without_a_shift_the_bend_is_a_line():
    for draw in (1, 2, 3, 4):
        assert show.layer_norm_bend(0, "no", draw)["word"] == "a straight line"
        assert show.layer_norm_bend(0, "yes", draw)["word"] == "a straight line"
        assert show.layer_norm_bend(0.5, "no", draw)["flat"] > 0.05


def test_a_shift_can_close_the_boundary_or_leave_the_origin():
    bend = show.layer_norm_bend(1.0, "yes", 3)
    points = np.stack([bend["bend"]["x"], bend["bend"]["y"]], 1)
    assert np.nanmax(np.abs(points)) < 1.9
    assert bend["word"] == "no straight line"
    assert show.layer_norm_bend(1.5, "no", 1)["word"] == "the origin alone"
    assert show.layer_norm_bend(-1.5, "yes", 1)["word"] == "out of the picture"


def test_larger_weights_with_other_seeds_and_an_independent_step():
    """The page's sentences hold for the recorded runs; the first typical turn is Adam's step over |w|."""
    kept, plain = show.scaled_runs(True), show.scaled_runs(False)
    one, three, ten = (show.SCALES.index(s) for s in (1.0, 3.0, 10.0))
    assert kept["largest"][0] > 90
    assert kept["largest"][one] / kept["largest"][three] > 2.5
    assert kept["error"][three] / kept["error"][one] < 1.2
    assert plain["error"][ten] / plain["error"][one] > 2
    assert max(kept["error"][1:3]) < 1.1 * kept["error"][one]
    assert min(kept["largest"][1:3]) > 60
    assert kept["error"][three] < kept["error"][one]
    ratio = kept["first"][one] / kept["first"][ten]
    assert ratio == pytest.approx(10, rel=0.05)                      # Adam's first step has the size of its learning rate


def test_default_units_under_adam():
    """Exercise 2: |w| = sqrt 2 under He's law, and a step of 0.01 sqrt n."""
    n = 1000
    w = torch.randn(2000, n, dtype=f64, generator=torch.Generator().manual_seed(0)) * math.sqrt(2 / n)
    assert w.norm(dim=1).mean().item() == pytest.approx(math.sqrt(2), rel=0.01)
    assert math.degrees(math.asin(0.01 * math.sqrt(n) / math.sqrt(2))) == pytest.approx(13, abs=0.5)


# ---- claims and exercises: what must be noticed -------------------------------------------------------------
BOUND, PERTURB, OF, MOVED = boundaries.rotation_bound, boundaries.perturb, boundaries.of, show.moved
CONE, STEP, TURN, RUNS = boundaries.layer_norm_cone, show.random_step, show.random_turn, show.scaled_runs


def turned_by(degrees):
    return lambda theta, length, delta: {k: (a + degrees, lam) for k, (a, lam) in MOVED(theta, length, delta).items()}


def shifted_by(part):
    return lambda theta, length, delta: {k: (a, lam * (1 + part)) for k, (a, lam) in MOVED(theta, length, delta).items()}


class Wrapped:
    """A cone whose ratio is off by a little."""

    def __init__(self, cone):
        self.cone = cone

    def value(self, x):
        return self.cone.value(x) + 1e-6


def harmful(kept):
    runs = RUNS(kept)
    return runs | {"error": runs["error"] * np.array([1, 1, 1, 1, 1, 2, 3])}


SABOTAGE = {
    "jumps-exact-bound": [(boundaries, "rotation_bound", lambda w, eps: BOUND(w, eps).tan().atan() * 1.0001)],
    "jumps-cartesian": [(show, "moved", turned_by(1e-6))],
    "jumps-batch-norm-offset": [(show, "moved", shifted_by(1e-8))],
    "jumps-gmp": [(boundaries, "perturb", lambda layer, eps: PERTURB(layer, {k: 1.1 * v for k, v in eps.items()}))],
    "jumps-fifty-percent": [(show, "random_step", lambda n, ratio: STEP(n, ratio) | {"mean": 5.8})],
    "jumps-random-mean": [(show, "random_turn", lambda n, ratio: {k: 1.05 * v for k, v in TURN(n, ratio).items()})],
    "jumps-layer-norm": [(boundaries, "layer_norm_cone", lambda net: Wrapped(CONE(net)))],
    "jumps-larger-scale": [(boundaries, "rotation_bound", lambda w, eps: BOUND(w, eps) + 0.01)],
    "jumps-larger-variance": [(show, "scaled_runs", harmful)],
    "jumps-one-input": [(boundaries, "perturb", lambda layer, eps: PERTURB(layer, {"lam": 1.001 * eps["lam"]}))],
}


def right_turn(w, eps):
    u, v = w / w.norm(dim=-1, keepdim=True), (w + eps) / (w + eps).norm(dim=-1, keepdim=True)
    return 2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1))


def cosine(w, eps):
    return torch.cosine_similarity(w, w + eps, dim=-1)


STUDENTS = {
    "jumps.ex5": [
        (lambda w, eps: cosine(w, eps).clamp(-1, 1).arccos(), "arccosine of a cosine"),
        (lambda w, eps: (3 * cosine(w, eps)).arccos(), "cosine above 1"),
        (lambda w, eps: geodesic(w, eps), "between w and the step"),
        (lambda w, eps: rotation_bound(w, eps), "largest turn of any step"),
        (lambda w, eps: eps.norm(dim=-1) / w.norm(dim=-1), "ratio of the lengths"),
        (lambda w, eps: (w + eps).norm(dim=-1), "is right."),
    ],
    "jumps.ex6": [
        (lambda w, length: torch.atan(length / w.norm(dim=-1)), "backwards a little"),
        (lambda w, length: length / w.norm(dim=-1), "ratio itself"),
        (lambda w, length: torch.full_like(w[:, 0], math.pi), "longer than w"),
        (lambda w, length: torch.asin(length / w.norm(dim=-1)).rad2deg(), "is right."),
    ],
}
CORRECT = {
    "jumps.ex5": [right_turn, lambda w, eps: geodesic(w + eps, w)],
    "jumps.ex6": [lambda w, length: torch.asin(length / w.norm(dim=-1))],
}
