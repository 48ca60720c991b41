"""Chapter "The tangent kernel three ways": its figures, its prose, and what its claims and exercises must notice."""
from math import pi, sqrt

import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import MLP, dynamics, empirical_ntk, gradient_angle, kernels, network, nngp_gram, ntk_gram
from ntklib.book.claims import tangent as claimed
from ntklib.book.exercises.tangent import _part, one_layer
from ntklib.book.explorables import tangent
from ntklib.symbolic import tangent as twin

f64 = torch.float64
GRAM, NNGP, NTK, PREDICT, WEIGHTS = kernels.ntk_gram, kernels.nngp_gram, network.empirical_ntk, dynamics.predict_gd, claimed.weights


def scaled(f, factor):
    return lambda *args, **kw: factor * f(*args, **kw)


def too_good(*args):
    found = PREDICT(*args)
    return found._replace(loss=0.9 * found.loss)


SABOTAGE = {
    "tangent-step": [(network, "empirical_ntk", scaled(NTK, 1.01))],
    "tangent-layers": [(network, "empirical_ntk", scaled(NTK, 1 + 1e-9))],
    "tangent-limit": [(kernels, "ntk_gram", scaled(GRAM, 1.3))],
    "tangent-spread": [(claimed, "GAIN", 1.0)],
    "tangent-depth-spread": [(claimed, "weights", lambda d, width, depth, generator: WEIGHTS(d, width, 2, generator))],
    "tangent-width": [(claimed, "unit_kernels", lambda *args: (torch.ones(2),) * 3)],
    "tangent-no-flip": [(claimed, "pi", 4.0)],
    "tangent-spaces": [(dynamics, "predict_gd", too_good)],
    "tangent-movement": [(dynamics, "train", lambda *args, **kw: None)],
    "tangent-nngp": [(kernels, "nngp_gram", lambda X, *, depth: NNGP(X, depth=depth + 1))],
}
STUDENTS = {
    "tangent.ex5": [
        (lambda W, a, X: _part(W, a, X, first=False), "`W` is trained as well".replace("`", "")),
        (lambda W, a, X: _part(W, a, X, last=False), "`a` is trained as well".replace("`", "")),
        (lambda W, a, X: _part(W, a, X, gain=1.0), "squared it is"),
        (lambda W, a, X: _part(W, a, X, gain=2.0 * len(W)), "missing its width"),
        (lambda W, a, X: _part(W, a, X, square=False), "it enters squared"),
        (lambda W, a, X: _part(W, a, X) * (a.sum() / a.sum()), "division by a norm"),
    ],
}


def by_autograd(W, a, X):
    W, a = W.clone().requires_grad_(), a.clone().requires_grad_()
    rows = []
    for x in X:
        f = sqrt(2 / len(W)) * (a * (W @ x).relu()).sum()
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(f, (W, a))]))
    J = torch.stack(rows)
    return J @ J.T


CORRECT = {"tangent.ex5": [one_layer, by_autograd]}


# ---- the figures -------------------------------------------------------------------------------------------------
def test_the_share_that_separates_is_that_of_real_networks():
    theta, m, generator = 0.2, 30, torch.Generator().manual_seed(5)
    X = torch.tensor([[1.0, 0], [np.cos(theta), np.sin(theta)]], dtype=f64)
    found = []
    for _ in range(400):
        K = empirical_ntk(MLP(2, m, 1, generator=generator), X)
        found.append(float(K[0, 1] / (K[0, 0] * K[1, 1]).sqrt()) < np.cos(theta))
    share = tangent.separating_share(theta, [7, m], 4000, generator)[1].item()
    assert abs(np.mean(found) - share) < 4 * sqrt(share * (1 - share) / 400)


def test_the_needed_width_goes_like_one_over_the_angle():
    needed = {t: tangent.width_needed(t)["needed"] for t in tangent.PAIRS}
    for t in (0.5, 1, 2):
        assert needed[t] * np.radians(t) / pi == pytest.approx(2.7, abs=0.5)
    assert tangent.width_needed(1)["paper"] == pytest.approx(3283, abs=0.5)


def test_a_real_networks_kernel_and_its_limit():
    out = tangent.one_network(2, 256, 1)
    t = torch.tensor(tangent.TURN, dtype=f64).deg2rad()
    Z = torch.stack([t.cos(), t.sin()], 1)
    assert np.allclose(out["curve"]["limit"], (ntk_gram(Z[:1], Z, depth=2) / 3)[0].numpy(), atol=1e-12)
    assert out["off"] < 0.5


def test_diagonals_are_those_of_whole_networks():
    generator = torch.Generator().manual_seed(2)
    quick = tangent.diagonals(24, 3, 3000, generator)
    x = torch.ones(1, 1, dtype=f64)
    for L in (1, 3):
        whole = torch.tensor([empirical_ntk(MLP(1, 24, L, generator=generator), x).item() / (L + 1) for _ in range(600)])
        assert abs(quick[L - 1].mean().item() - 1) < 4.5 * quick[L - 1].std().item() / sqrt(3000)
        assert whole.std().item() == pytest.approx(quick[L - 1].std().item(), rel=0.2)
    assert quick[0].std().item() == pytest.approx(sqrt(3 / 24), rel=0.06)


@pytest.mark.parametrize(("theta", "depth"), [(20, 8), (90, 1), (180, 3), (1, 16)])
def test_the_terms_add_up_to_the_gradient_angle(theta, depth):
    out = tangent.layer_terms(theta, depth)
    t = torch.tensor(np.radians(theta), dtype=f64).clamp(max=pi)
    assert out["cosine"] == pytest.approx(gradient_angle(t, depth).cos().item(), abs=1e-12)
    pair = torch.stack([torch.stack([torch.ones((), dtype=f64), torch.zeros((), dtype=f64)]), torch.stack([t.cos(), t.sin()])])
    assert out["embedding"] == pytest.approx(nngp_gram(pair, depth=depth)[0, 1].item(), abs=1e-12)
    assert np.isfinite(out["terms"]["term"]).sum() == depth + 1


def test_training_begins_as_its_first_kernel_says():
    for width in (16, 512):
        run = tangent.run(width, 1, steps=20)
        assert run["real"][0] == pytest.approx(run["predicted"][0], rel=1e-12)
    assert run["real"][:5] == pytest.approx(run["predicted"][:5], rel=0.1)
    assert run["moved"][0] == 0


def test_off_the_diagonal_narrow_networks_are_biased():
    """Two hidden layers of 4 units, 60 degrees: 20 000 networks at once; the excess over the limit is 5 standard errors."""
    generator, m, n = torch.Generator().manual_seed(1), 4, 20_000
    X = torch.tensor([[1.0, 0], [0.5, sqrt(0.75)]], dtype=f64)
    W1, W2, v = (torch.randn(n, *s, generator=generator, dtype=f64) for s in ((m, 2), (m, m), (1, m)))
    z1 = W1 @ X.T
    a1 = sqrt(2 / m) * z1.relu()
    z2 = W2 @ a1
    a2 = sqrt(2 / m) * z2.relu()
    d2 = sqrt(2 / m) * v.mT * (z2 > 0)
    d1 = sqrt(2 / m) * (W2.mT @ d2) * (z1 > 0)

    def inner(a):
        return (a[..., 0] * a[..., 1]).sum(1)

    K = (inner(a2) + inner(a1) * inner(d2) + 0.5 * inner(d1)) / 3
    off = K.mean().item() - gradient_angle(torch.tensor(pi / 3, dtype=f64), 2).cos().item()
    assert 0 < off < 0.2 / m
    assert off > 3 * K.std().item() / sqrt(n)


# ---- numbers of the prose that no claim checks -------------------------------------------------------------------
def test_numbers_of_the_prose():
    p = 784 * 1024 + 2 * 1024**2 + 1024
    assert 512 * p * 8 / 1e9 == pytest.approx(12, abs=0.2)
    mean, variance = twin.unit_moments()
    assert (mean, variance) == (1, 3)
    assert sp.sqrt(variance / sp.Integer(30_000)) / mean == sp.Rational(1, 100)
    assert round(3 * pi / 0.01) == 942
    moved = tangent.kernel_movement()
    assert moved["middle"][0] > 1 / 3
    assert moved["middle"][-1] == pytest.approx(0.03, abs=0.005)
    spread = tangent.diagonals(1000, 3, 40, torch.Generator().manual_seed(0))[-1].std().item()     # exercise 2
    assert spread == pytest.approx(0.1, abs=0.03)
    z = sp.Symbol("z", positive=True)
    assert all(s.holds for s in twin.one_layer_steps(z))
