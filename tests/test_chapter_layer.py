"""The GmP layer: the explorables against a second method, and every number of the page that no claim checks."""
import itertools
import math

import numpy as np
import pytest
import sympy as sp
import torch
from torch import nn

from ntklib import boundaries, gmp, sphere
from ntklib.book.claims import layer as claims
from ntklib.book.exercises import layer as exercises
from ntklib.book.explorables import layer as show
from ntklib.gmp import layers
from ntklib.gmp import unit as unit_function
from ntklib.symbolic import layer as symbolic

f64 = torch.float64
GMP, AFFINE, OF = gmp.GmPLinear, layers.GmPConv._affine, boundaries.of
unit_module = __import__("sys").modules["ntklib.gmp.unit"]
PULL, PLACES, FROM, JACOBIAN = unit_module._pull, boundaries.Boundary.from_angles, sphere.from_angles, sphere.jacobian


class Wasteful(GMP):
    """A unit with one number too many."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.scale = nn.Parameter(torch.ones(self.out_features, dtype=self.r.dtype))

    def forward(self, x):
        return self.scale * super().forward(x)


class Leaky(GMP):
    """Never quite silent."""

    def __init__(self, *args, **kw):
        super().__init__(*args, activation=nn.LeakyReLU(1e-3), **kw)


class Restless(GMP):
    """Computes its directions once more for every input."""

    def forward(self, x):
        return torch.stack([super(Restless, self).forward(row[None]) for row in x])[:, 0]


class Scaled(gmp.InputMeanNorm):
    """Divides by the standard deviation as well."""

    def forward(self, x):
        return super().forward(x) / x.std()


def moved_by_radius(layer, **kw):
    edge = OF(layer, **kw)
    return boundaries.Boundary(edge.direction, edge.lam * layer.r.abs())


def far_location(theta, lam):
    return PLACES(1.1 * theta, lam)


SABOTAGE = {        # for test_claims.py: a falsehood that each check must notice
    "layer-definition": [(layers.GmPLinear, "_per_unit", lambda self, x: x.abs())],
    "layer-boundary": [(boundaries, "of", moved_by_radius)],
    "layer-numbers": [(gmp, "GmPLinear", Wasteful)],
    "layer-gradients": [(unit_module, "_pull", lambda *a, out=None: PULL(*a, out=out).mul(1 + 1e-5) if out is None else out.copy_(PULL(*a) * (1 + 1e-5)))],
    "layer-turn": [(sphere, "jacobian", lambda theta: (1 + 1e-4) * JACOBIAN(theta))],
    "layer-location": [(boundaries.Boundary, "from_angles", staticmethod(far_location))],
    "layer-dead": [(gmp, "GmPLinear", Leaky)],
    "layer-mean-only": [(gmp, "InputMeanNorm", Scaled)],
    "layer-missed": [(show, "cosine_before", lambda layer, true=show.cosine_before: true(layer) ** 2)],
    "layer-radius": [(symbolic, "mean_norm_radius", lambda: sp.sqrt(2))],
    "layer-conv": [(layers.GmPConv, "_affine", lambda self, x, u: AFFINE(self, x.transpose(-1, -2), u))],
    "layer-cost": [(gmp, "GmPLinear", Restless)],
    "layer-weight-norm": [(claims, "weight_norm", lambda module: torch.nn.utils.parametrizations.weight_norm(module.apply(tilt)))],
}


def tilt(module):
    """A loss of length: |v| shrinks in every step."""
    module.register_forward_hook(lambda m, inputs, out: out + 1e-2 * m.parametrizations.weight.original1.square().sum())


def rows(f):
    """A GmP layer, unit by unit."""
    def layer(x, r, lam, theta):
        return torch.stack([f(x, *unit) for unit in zip(r, lam, theta, strict=True)], -1)
    return layer


STUDENTS = {        # for test_exercises.py: what students write, and what they must be told
    "layer.ex5": [
        (rows(lambda x, r, lam, t: torch.relu(r * (x @ FROM(t) + lam))), "inside the ReLU"),
        (rows(lambda x, r, lam, t: torch.relu(x @ (r * FROM(t)) + lam)), "kept"),
        (rows(lambda x, r, lam, t: r * (torch.relu(x @ FROM(t)) + lam)), "after the ReLU"),
        (rows(lambda x, r, lam, t: r * (x @ FROM(t) + lam)), "Where is the ReLU"),
        (rows(lambda x, r, lam, t: torch.relu(x @ FROM(t) + lam)), "radius is missing"),
        (lambda x, r, lam, theta: exercises.answers(x, r, lam, theta).T, "returned shape"),
    ],
    "layer.ex6": [
        (lambda x, delta, r, lam, t: exercises._project(x, delta, r, lam, t, lambda r: r), "projected"),
        (lambda x, delta, r, lam, t: exercises._project(x, delta, r, lam, t, lambda r: 1 / r), "when the *weights* follow".replace("*", "")),
        (lambda x, delta, r, lam, t: exercises.velocity(x, delta, torch.ones_like(r), lam, t) * 1, "radius is missing"),
        (lambda x, delta, r, lam, t: exercises.velocity(x, delta, r, lam.abs() + 100, t), "Silent inputs"),
        (lambda x, delta, r, lam, t: -exercises.velocity(x, delta, r, lam, t), "The sign"),
        (lambda x, delta, r, lam, t: 2 * exercises.velocity(x, delta, r, lam, t), "is right."),
    ],
}


def by_autograd(x, delta, r, lam, theta):
    """The velocity from the layer's own gradients and a difference quotient of u."""
    t = theta.clone().requires_grad_()
    z = r * torch.relu(x @ FROM(t) + lam)
    step = -torch.autograd.grad((z * delta).sum(), t)[0]
    return torch.func.jvp(FROM, (theta,), (step,))[1]


CORRECT = {"layer.ex5": [exercises.answers, rows(lambda x, r, lam, t: r * (x @ FROM(t) + lam).clamp(min=0))],
           "layer.ex6": [exercises.velocity, by_autograd]}


# ---- the explorables ---------------------------------------------------------------------------------
@pytest.mark.parametrize("optimiser", ["gd", "adam"])
@pytest.mark.parametrize("length", [0.125, 1.0, 4.0])
def test_one_step_is_that_of_real_layers_under_real_optimisers(length, optimiser):
    """A unit with u = (0, 1), lam = 0 and one active input whose error makes G = (1, 0); the bias is held."""
    lr, x = 0.35, torch.tensor([[1.0, 1e-9]], dtype=f64)
    got = show.one_step(length, lr, optimiser)
    linear, unit = nn.Linear(2, 1, bias=False, dtype=f64), gmp.GmPLinear(2, 1, dtype=f64)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.0, length]]))
        unit.theta = torch.tensor([[math.pi / 2]], dtype=f64)
        unit.r.fill_(length)
    unit.lam.requires_grad_(False)
    make = {"gd": torch.optim.SGD, "adam": torch.optim.Adam}[optimiser]
    for module, name in ((linear, "sp"), (unit, "gmp")):
        parameters = [module.weight] if name == "sp" else [module.latitude]
        opt = make(parameters, lr=lr)
        module(x).sum().backward()
        if name == "sp":
            module.weight.grad[:, 1] = 0                                 # G is at a right angle to u
        opt.step()
        u = module.weight[0] / module.weight.norm() if name == "sp" else module.direction()[0]
        turn = torch.atan2(u[0].abs(), u[1]).rad2deg().item()
        assert got[name] == pytest.approx(turn, rel=1e-6), name
    lines, t = got["lines"], math.radians(got["gmp"])
    assert [abs(lines["gx"][0]), abs(lines["gy"][0])] == pytest.approx([1.15 * abs(math.cos(t)), 1.15 * abs(math.sin(t))], abs=1e-9)


def test_the_prediction_and_its_numbers():
    got = show.one_step(4, 0.35, "gd")
    assert got["sp"] == pytest.approx(5, abs=0.05)
    assert got["gmp"] == pytest.approx(80.2, abs=0.05)
    at_one = show.one_step(1, 0.35, "gd")
    assert [at_one["sp"], at_one["gmp"]] == pytest.approx([19.3, 20.1], abs=0.05)
    adam = [show.one_step(r, 0.35, "adam")["gmp"] for r in show.RADII]
    assert max(adam) - min(adam) < 1e-12


@pytest.mark.parametrize(("lam", "theta"), [(0, 30), (-1.5, 135), (3, 300), (-3, 30)])
def test_the_far_unit_by_autograd(lam, theta):
    x, unit = show.cloud(), gmp.GmPLinear(2, 1, dtype=f64)
    with torch.no_grad():
        unit.theta = torch.tensor([[math.radians(theta)]], dtype=f64)
        unit.r.fill_(1)
        unit.lam.fill_(lam)
    each = [torch.autograd.grad(z, [unit.r, unit.lam, unit.latitude], retain_graph=True) for z in unit(x)[:, 0]]
    rms = torch.tensor([[float(g.sum()) for g in row] for row in each], dtype=f64).square().mean(0).sqrt()
    got = show.far_unit(lam, theta)
    assert [got["dr"], got["dlam"], got["dtheta"]] == pytest.approx(rms.tolist(), abs=1e-12)
    assert got["active"] == int((unit(x) > 0).sum())
    moved = PLACES(torch.tensor([[math.radians(theta)], [math.radians(theta + 15)]], dtype=f64), torch.tensor([lam, lam], dtype=f64)).location
    assert got["swing"] == pytest.approx((moved[1] - moved[0]).norm().item(), abs=1e-12)
    assert [got["lines"][k][0] for k in ("qx", "qy")] == pytest.approx(moved[1].tolist(), abs=1e-12)


def test_the_default_unit_is_dead_and_the_always_on_one_is_linear():
    got = show.far_unit(-3, 30)
    assert got["active"] == got["dr"] == got["dlam"] == got["dtheta"] == 0
    assert show.far_unit(3, 30)["dlam"] == 1
    assert show.cloud().norm(dim=1).max() < 4


def test_shares_are_those_of_a_network_of_weights():
    """Layer by layer with plain matrices; the directions of the layers themselves, the rest by hand."""
    g = torch.Generator().manual_seed(2)
    x, plain, centred = torch.randn(256, 256, dtype=f64, generator=g), [], []
    a = b = x
    for layer in range(4):
        u = gmp.GmPLinear(256, 256, generator=g, dtype=f64).direction().detach()
        b = b - b.mean(0) if layer else b
        a, b = torch.relu(a @ u.T), torch.relu(b @ u.T)
        plain.append((a > 0).double().mean(0).numpy())
        centred.append((b > 0).double().mean(0).numpy())
    assert np.array_equal(show.active_shares(False, 2)[:4], np.stack(plain))
    assert np.array_equal(show.active_shares(True, 2)[:4], np.stack(centred))


@pytest.mark.parametrize("cosine", [0.2, 0.6, 0.9])
def test_the_law_of_missed_batches_by_monte_carlo(cosine):
    """40 000 units with a common part A and 64 parts of their own; four standard errors."""
    g, n = torch.Generator().manual_seed(5), 40_000
    s = math.sqrt(cosine) * torch.randn(n, 1, generator=g) + math.sqrt(1 - cosine) * torch.randn(n, 64, generator=g)
    seen = ((s > 0).all(1) | (s < 0).all(1)).double().mean().item()
    assert show.missed(cosine, 64) == pytest.approx(seen, abs=4 * math.sqrt(seen * (1 - seen) / n) + 1e-4)
    assert show.missed(0, 10) == 2**-9


def test_bars_hold_every_unit_and_the_numbers_of_the_page():
    for layer in (1, 8, 16):
        got = show.mean_norm(layer, 1)
        for way in ("plain", "centred"):
            assert sum(got["bars"][way]) == pytest.approx(100)
    assert show.mean_norm(8, 1)["limit"] == pytest.approx(17.7, abs=0.05)
    assert show.mean_norm(16, 1)["limit"] == pytest.approx(41.7, abs=0.05)
    assert all(show.mean_norm(k, d)["centred"] == 0 for k in (1, 8, 16) for d in (1, 2, 3))
    assert show.mean_norm(8, 1)["plain"] == pytest.approx(17.6, abs=3)


def test_the_recorded_cost_is_complete_and_falls_with_the_batch():
    found = show.cost()
    assert all(set(c) == {"weight_norm", "geometric", "GmPLinear"} for c in found.values())
    small, large = min(found), max(found)
    assert found[large]["GmPLinear"] < found[small]["GmPLinear"]


def by_hand(way, lr, seed, steps, units):
    """Adam on the same problem with gradients written out, in the numbers (w, b) or (r, lam) of the first layer."""
    net, _ = show.start(units, seed)
    w, b, a, c = (p.detach().numpy().ravel().copy() for p in net.parameters())
    x = np.linspace(-1, 1, 65)
    y = show.curve(torch.from_numpy(x)).numpy()
    sign = np.sign(w)
    first = [w, b] if way == "sp" else [np.abs(w), b / np.abs(w)]
    p, m, v, places = [*first, a, c], [0.0] * 4, [0.0] * 4, []
    for t in range(steps + 1):
        one, two, a, c = p
        slope, shift, scale = (one, two, 1.0) if way == "sp" else (sign, two, one)
        s = np.outer(x, slope) + shift
        on = s > 0
        error = 2 / 65 * ((scale * s * on) @ a + c - y)
        places.append(-two / one if way == "sp" else -two * sign)
        dz = np.outer(error, a) * on
        grads = ([(dz * x[:, None]).sum(0), dz.sum(0)] if way == "sp" else [(dz * s).sum(0), (dz * scale).sum(0)]) + [
            ((scale * s * on).T @ error), np.array([error.sum()])]
        for k, g in enumerate(grads):
            m[k], v[k] = 0.9 * m[k] + 0.1 * g, 0.999 * v[k] + 0.001 * g * g
            p[k] = p[k] - lr * (m[k] / (1 - 0.9 ** (t + 1))) / (np.sqrt(v[k] / (1 - 0.999 ** (t + 1))) + 1e-8)
    return np.array(places)


@pytest.mark.parametrize("way", ["sp", "gmp"])
def test_the_lab_trains_as_gradients_written_out_do(way):
    (*_, (done, found)) = show.training(0.01, 2, steps=80, units=5)
    assert done == 1
    places = by_hand(way, 0.01, 2, 80, 5)
    at = np.unique(found["bends"]["step"])
    drawn = np.array(found["bends"][way]).reshape(5, -1).T
    expected = np.where(np.abs(places[at]) <= 2, places[at], np.nan)
    assert np.allclose(drawn, expected, atol=1e-8, equal_nan=True)
    assert found[f"jump_{way}"] == pytest.approx(np.abs(np.diff(places, axis=0)).max(), rel=1e-6)


def test_the_record_is_what_the_lab_computes():
    """The first tenth of two recorded runs, again."""
    for lr, seed in ((0.01, 1), (0.1, 3)):
        kept = show.bends_in_training(lr, seed)
        found = next(found for done, found in show.training(lr, seed) if done >= 0.1)
        for way in ("sp", "gmp"):
            now, then = (np.array(t["bends"][way]).reshape(show.UNITS, -1)[:, :4] for t in (found, kept))
            assert np.allclose(now, then, atol=1e-4, equal_nan=True)
        assert kept["source"] == "Recorded"
        assert found["source"].startswith("Step ")


def test_both_networks_start_as_one_function():
    x = torch.linspace(-3, 3, 50, dtype=f64)[:, None]
    weights, angles = show.start(16, 3)
    assert torch.allclose(weights(x), angles(x), atol=1e-14)
    outside = np.mean([(-n[0].bias / n[0].weight[:, 0]).abs().gt(1).double().mean().item() for n in (show.start(2000, 1)[0],)])
    assert outside == pytest.approx(0.5, abs=0.05)              # half of the bends, as the page says


def adam_bound(b1=0.9, b2=0.999):
    """The most that Adam moves a number, in learning rates: |sum b1^i g_i| <= sqrt(sum (b1^2/b2)^i) sqrt(sum b2^i g_i^2)."""
    return (1 - b1) / math.sqrt(1 - b2) / math.sqrt(1 - b1**2 / b2)


def test_adam_reaches_its_bound_and_no_more():
    """Gradients that grow by b2/b1 a step make the inequality an equality; random ones stay below it."""
    assert adam_bound() == pytest.approx(7.27, abs=0.005)
    worst, g = 0.0, torch.Generator().manual_seed(0)
    for gradients in ([(0.999 / 0.9) ** k for k in range(-300, 1)], torch.randn(300, generator=g).mul(5).exp().tolist()):
        p = torch.zeros(1, dtype=f64, requires_grad=True)
        optimiser = torch.optim.Adam([p], lr=1.0, eps=1e-300)
        for gradient in [*[0.0] * 9000, *gradients]:            # late, so that its bias corrections have died out
            before, p.grad = p.item(), torch.tensor([gradient], dtype=f64)
            optimiser.step()
            worst = max(worst, abs(p.item() - before))
        assert worst <= adam_bound() * (1 + 1e-9)
    assert worst == pytest.approx(adam_bound(), rel=1e-3)


def test_what_the_page_says_of_the_recorded_runs():
    runs = {(lr, s): show.bends_in_training(lr, s) for lr in show.RATES for s in show.SEEDS}
    assert max(r["jump_gmp"] / lr for (lr, _), r in runs.items()) < adam_bound()
    assert runs[0.01, 1]["jump_sp"] > 1e4                       # the default: a weight passes zero
    assert 3 <= sum(r["error_sp"] < r["error_gmp"] for r in runs.values()) <= 9


# ---- the derivations ---------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 3, 4])
def test_symbolic_gradients_are_those_of_the_layer(n):
    unit, x = gmp.GmPLinear(n, 1, generator=torch.Generator().manual_seed(n), dtype=f64), torch.randn(1, n, dtype=f64, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        unit.r.fill_(-1.7)
        unit.lam.copy_(1 - x @ unit.direction()[0])
    found = torch.autograd.grad(unit(x).sum(), [unit.r, unit.lam, unit.latitude])
    r, lam, theta, xs, _ = symbolic.unit(n)
    at = {r: -1.7, lam: unit.lam.item(), **dict(zip(theta, unit.theta[0].tolist(), strict=True)), **dict(zip(xs, x[0].tolist(), strict=True))}
    dr, dlam, dtheta = symbolic.gradients(n)
    assert float(sp.sympify(dr).subs(at)) == pytest.approx(found[0].item(), rel=1e-12)
    assert float(sp.sympify(dlam).subs(at)) == pytest.approx(found[1].item(), rel=1e-12)
    assert [-float(d.subs(at)) for d in dtheta] == pytest.approx(found[2][0].tolist(), rel=1e-10)      # latitude = pi/2 - theta


@pytest.mark.parametrize("n", [2, 3, 4])
def test_symbolic_turns_are_the_stated_sums(n):
    r, a, theta = sp.Symbol("r", real=True), sp.symbols(f"a_0:{n}", real=True), sp.symbols(f"theta_1:{n}", real=True)
    M = [sp.prod(sp.sin(t) ** 2 for t in theta[:j]) for j in range(n - 1)]
    assert sp.simplify(symbolic.turn_by_weights(n) - sum(x**2 for x in a[1:]) / r**2) == 0
    assert sp.simplify(symbolic.turn_by_angles(n) - r**2 * sum(m**2 * x**2 for m, x in zip(M, a[1:], strict=True))) == 0


def test_symbolic_steps_hold():
    assert all(s.holds for s in symbolic.location_steps())
    assert float(symbolic.mean_norm_radius()) == pytest.approx(1.7129, abs=5e-5)


# ---- the page ----------------------------------------------------------------------------------------
def test_a_direction_by_rotations_is_that_of_the_layer():
    for n in (1, 2, 5):
        theta = torch.randn(n - 1, dtype=f64, generator=torch.Generator().manual_seed(n))
        assert torch.allclose(claims.direction(theta), unit_function(math.pi / 2 - theta[None])[0], atol=1e-14)


def test_signal_with_mean_normalisation_needs_the_larger_radius():
    """Mean squares through eight real layers of width 512: they fall by 1 - 1/pi a layer at sqrt(2), and stay at 1.7129."""
    kept = {}
    for radius in (math.sqrt(2), float(symbolic.mean_norm_radius())):
        g = torch.Generator().manual_seed(1)
        x = torch.randn(512, 512, dtype=f64, generator=g)
        for _ in range(8):
            layer = gmp.GmPLinear(512, 512, generator=g, dtype=f64).requires_grad_(False)
            layer.r.fill_(radius)
            x = gmp.InputMeanNorm(512, dtype=f64)(layer(x) / 1)
        kept[radius] = x.square().mean().item()
    assert kept[math.sqrt(2)] == pytest.approx((1 - 1 / math.pi) ** 8 , rel=0.1)
    assert kept[max(kept)] == pytest.approx(1, rel=0.1)


def test_every_length_of_the_figure_is_a_power_of_root_two():
    assert all(math.log2(b / a) == pytest.approx(0.5, abs=1e-3) for a, b in itertools.pairwise(show.RADII))
