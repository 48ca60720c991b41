"""The linear network: the explorables against a second method, and every number of the page that no claim checks."""
import itertools
import math

import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import MLP, angles, dynamics, embedding_angle, empirical_ntk, gradient_angle, kernels, spectrum
from ntklib.book.claims import linear as claims
from ntklib.book.exercises import linear as exercises
from ntklib.book.explorables import linear as show
from ntklib.symbolic import linear as symbolic

GRAM, KAPPA, PHI = kernels.ntk_gram, spectrum.ntk_condition_number, angles.gradient_angle


def wrong_kappa(X, **kw):
    found = KAPPA(X, **kw)
    return found._replace(kappa=found.kappa * (1 + 1e-9))


SABOTAGE = {        # for test_claims.py: a falsehood that each check must notice
    "linear-angle": [(angles, "gradient_angle", lambda t, L, slope: PHI(t, L, 0.9))],
    "linear-norm": [(kernels, "ntk_gram", lambda X, depth: (depth + 1) * GRAM(X, depth=depth))],
    "linear-kernel": [(kernels, "ntk_gram", lambda X, depth, activation: (depth + 1) * GRAM(X, depth=depth, activation="linear"))],
    "linear-kappa": [(spectrum, "ntk_condition_number", wrong_kappa)],
    "linear-any-width": [(claims, "gradients", lambda W, x, relu, true=claims.gradients: true(W, x, relu) + x.norm())],
    "linear-mean": [(symbolic, "gaussian_mean", lambda p, W, true=symbolic.gaussian_mean: 2 * true(p, W))],
    "linear-fluctuation": [(symbolic, "second_moment", lambda L, m: (L + 1) ** 2 * (1 + 2 / sp.sympify(m)) ** L)],
    "linear-time": [(dynamics, "predict_gd", lambda K, y, lr, steps, true=dynamics.predict_gd: true(K / 8, y, lr, steps))],
}


def root(W):
    return W.shape[-1] ** 0.5


def by_gradients(W, v, X, scale=True):
    """The kernel of a linear network from autograd, one input after the other."""
    parts = [*W.clone().unbind(), v.clone()]
    for p in parts:
        p.requires_grad_(True)
    rows = []
    for x in X:
        for layer in parts[:-1]:
            x = layer @ x / (root(W) if scale else 1)
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(parts[-1] @ x, parts)]))
    J = torch.stack(rows)
    return J @ J.T


STUDENTS = {        # for test_exercises.py: what students write, and what they must be told
    "linear.ex5": [
        (lambda W, v, X: (len(W) + 1) * X @ X.T, "limit"),
        (exercises._last_only, "the output layer alone"),
        (exercises._first_only, "the first layer alone"),
        (exercises._without_output, "The output layer v is trained"),
        (lambda W, v, X: by_gradients(W, v, X, scale=False), "hidden layer is missing"),
        (lambda W, v, X: X @ X.T, "is right."),
    ],
}
CORRECT = {"linear.ex5": [by_gradients, exercises.network_kernel]}


# ---- the explorables ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("depth", "width", "draw"), [(0, 8, 1), (1, 8, 2), (8, 8, 3), (5, 32, 1)])
def test_the_gradient_plane_holds_the_gradients(depth, width, draw):
    """Lengths and angle of two gradients by plain autograd, on the network that the figure draws."""
    model = show._network(depth, width, draw)
    t = math.radians(70)
    grads = []
    for x in ([1.0, 0.0], [math.cos(t), math.sin(t)]):
        f = model(torch.tensor([x], dtype=torch.float64)).sum()
        grads.append(torch.cat([g.flatten() for g in torch.autograd.grad(f, list(model.parameters()))]))
    got = show.gradient_plane(70, depth, width, draw)
    assert got["length"] == pytest.approx(grads[0].norm().item(), rel=1e-10)
    assert math.cos(math.radians(got["phi"])) == pytest.approx(torch.cosine_similarity(*grads, dim=0).item(), abs=1e-10)
    s = {k: float(np.ravel(v)[0]) for k, v in got["map"].items()}
    image = np.array([[s["s11"], s["s12"]], [s["s12"], s["s22"]]]) @ [math.cos(t), math.sin(t)]
    assert np.hypot(*image) == pytest.approx(grads[1].norm().item(), rel=1e-10)
    if depth == 0:
        assert got["ratio"] == pytest.approx(1)
        assert got["phi"] == pytest.approx(70)


def test_the_gradient_plane_fits_its_view_and_shows_both_cases():
    """What is drawn stays inside the view, of radius 3.4; wide is round, narrow is not."""
    for depth, width, draw in itertools.product(range(7), (16, 64, 512), (1, 2, 3)):
        assert np.linalg.norm(show.gradient_map(depth, width, draw), 2) < 3.4, (depth, width, draw)
    assert max(show.gradient_plane(40, 3, 512, d)["ratio"] for d in (1, 2, 3)) < 1.15
    assert show.gradient_plane(40, 6, 16, 1)["ratio"] > 1.5


@pytest.mark.parametrize("depth", [0, 1, 5, 8])
@pytest.mark.parametrize("theta", [1, 20, 90])
def test_the_layers_add_up(theta, depth):
    linear, relu = show.layer_shares(theta, depth)
    t = torch.tensor(math.radians(theta), dtype=torch.float64)
    assert linear == pytest.approx(math.cos(t))
    assert relu.mean() == pytest.approx(gradient_angle(t, depth).cos().item(), abs=1e-13)
    last, first = embedding_angle(t, depth).cos().item(), GRAM(torch.tensor([[1.0, 0.0], [math.cos(t), math.sin(t)]], dtype=torch.float64), depth=depth, trained="first")[0, 1].item()
    assert relu[-1] == pytest.approx(last, abs=1e-12)
    assert relu[0] == pytest.approx(first, abs=1e-12)
    got = show.layer_sum(theta, depth)
    assert got["phi_linear"] == pytest.approx(theta, abs=1e-5)
    assert got["phi_relu"] == pytest.approx(gradient_angle(t, depth).rad2deg().item(), abs=1e-5)


def test_measured_layers_are_near_their_limit():
    """Cosines of one network of width 512, and one of them by autograd."""
    for depth in (0, 2, 8):
        got = show.layer_sum(20, depth)["layers"]
        for net in ("linear", "relu"):
            assert np.nanmax(np.abs(got[f"{net}_real"] - got[net])) < 0.15
    model, t = show._network(2, 512, 1, "relu"), math.radians(20)
    grads = [torch.autograd.grad(model(torch.tensor([x], dtype=torch.float64)).sum(), model.layers[1].weight)[0].flatten()
             for x in ([1.0, 0.0], [math.cos(t), math.sin(t)])]
    assert show.layer_sum(20, 2)["layers"]["relu_real"][1] == pytest.approx(torch.cosine_similarity(*grads, dim=0).item(), abs=1e-12)


def test_on_the_page_the_first_layers_lose_and_the_last_ones_gain():
    _, relu = show.layer_shares(20, 5)
    assert relu[0] < math.cos(math.radians(20)) < relu[-1]
    assert (np.diff(relu) > 0).all()
    assert show.layer_sum(20, 5)["phi_relu"] > 20           # the first effect wins at a small angle
    assert show.layer_sum(90, 8)["phi_relu"] < 90           # and not at a right one


def test_lengths_of_real_networks_lie_on_the_curve_and_not_on_the_printed_one():
    got = show.gradient_length(15)
    assert got["length"] == 4
    assert got["printed"] == 16
    for net in ("linear", "relu"):
        L, real = np.array(got["real"]["L"]), np.array(got["real"][net])
        assert np.abs(real / np.sqrt(L + 1) - 1).max() < 0.35
        assert (real[1:] < 0.65 * (L[1:] + 1)).all() or L[1] < 3
    x = torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    model = MLP(2, 512, 2, "relu", generator=torch.Generator().manual_seed(1_002_512))
    model(x).sum().backward()
    length = torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item()
    assert show._lengths()["relu"][1] == pytest.approx(length, rel=1e-10)


@pytest.mark.parametrize("kind", show.SETS)
def test_the_spectrum_is_that_of_the_recursion(kind):
    """By Gauss-Hermite-free means: eigenvalues by numpy of the kernel built from the angles, entry by entry."""
    X = show.points(kind)
    assert X.norm(dim=1).numpy() == pytest.approx(1)
    angle = torch.arccos((X @ X.T).clamp(-1, 1))
    for depth in (0, 2, 6):
        K = {"linear": (depth + 1) * (X @ X.T), "relu": (depth + 1) * gradient_angle(angle, depth).cos()}
        K["relu"].fill_diagonal_(depth + 1)
        got = show.spectrum(kind, depth)
        for net, matrix in K.items():
            values = np.linalg.eigvalsh(matrix.numpy())
            assert got["now"][f"{net}_low"][0] == pytest.approx(values[0], rel=1e-5)
            assert got["now"][f"{net}_high"][0] == pytest.approx(values[-1], rel=1e-9)
            assert got[f"kappa_{net}"] == pytest.approx(values[-1] / values[0], rel=1e-5)
            lines = np.array(got["lines"][net]).reshape(13, 6)[depth]
            assert lines == pytest.approx(values, rel=1e-5)


def test_the_default_spectrum_shows_what_the_caption_says():
    pair = [show.spectrum("pair", L) for L in range(13)]
    assert all(p["kappa_linear"] == pytest.approx(pair[0]["kappa_linear"]) for p in pair)
    assert all(a["kappa_relu"] > b["kappa_relu"] for a, b in itertools.pairwise(pair))
    assert show.spectrum("orthonormal", 2)["kappa_relu"] > 1.5 * show.spectrum("orthonormal", 0)["kappa_relu"]
    X = show.points("pair")
    assert torch.arccos(X[0] @ X[-1]).rad2deg().item() == pytest.approx(2)


# ---- the page ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("depth", "width"), [(0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)])
def test_the_second_moment_is_that_of_the_polynomial(depth, width):
    """Term by term, without any of the reasoning in its docstring."""
    W = symbolic.weights(depth, width, 1)
    exact = symbolic.gaussian_mean(sp.expand(symbolic.kernel(W, [1], [1]) ** 2), W)
    assert exact == symbolic.second_moment(depth, width)


def test_the_symbolic_kernel_is_that_of_a_network():
    model = MLP(2, 2, 2, "linear", generator=torch.Generator().manual_seed(5))
    X = torch.tensor([[0.4, -1.0], [0.7, 0.2]], dtype=torch.float64)
    W = symbolic.weights(2, 2, 2)
    at = {w: v for S, layer in zip(W, model.layers, strict=True) for w, v in zip(S, layer.weight.flatten().tolist(), strict=True)}
    x, z = ([sp.Float(v, 17) for v in row.tolist()] for row in X)
    assert float(symbolic.kernel(W, x, z).subs(at)) == pytest.approx(empirical_ntk(model, X)[0, 1].item(), rel=1e-12)
    assert float(symbolic.network(W, x).subs(at)) == pytest.approx(model(X)[0].item(), rel=1e-12)


def test_deep_networks_scatter_by_four_thirds_of_depth_over_width():
    L, m = 400, 10**7
    variance = float(symbolic.second_moment(L, m)) / (L + 1) ** 2 - 1
    assert variance == pytest.approx(4 * L / (3 * m), rel=0.01)
    wide, wider = (float(symbolic.second_moment(k * 10, k * 20)) / (k * 10 + 1) ** 2 - 1 for k in (10, 20))
    assert wide > 0.5                                        # at one ratio L / m it does not vanish
    assert wider == pytest.approx(wide, rel=0.1)


def test_a_small_kink_already_moves_a_pair():
    t = torch.tensor(math.radians(1), dtype=torch.float64)
    phi = [gradient_angle(t, 10, slope=a).rad2deg().item() for a in (1, 0.99, 0.9, 0.7, 0.3, 0)]
    assert phi[0] == pytest.approx(1)
    assert phi[2] == pytest.approx(1.4, abs=0.05)
    assert all(a < b for a, b in itertools.pairwise(phi))
