"""Grams: closed form = mpmath = Monte Carlo = autograd, on one grid of kernels."""

import itertools
import json
import math
import threading
from pathlib import Path

import mpmath as mp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ntklib import duals, homogeneous, interpolant, kernels, nngp_gram, ntk_gram, smooth, tiles
from ntklib.empirical import empirical_ntk
from ntklib.network import MLP

CASES = json.loads((Path(__file__).parent / "cases" / "grams.json").read_text())["cases"]
RELU_LIKE = ["relu", "abs", ("leaky_relu", 0.3), ("leaky_relu", -0.5), "relu2"]
SMOOTH = list(smooth.SMOOTH)
KERNELS = [(a, kind) for a in [*RELU_LIKE, *SMOOTH] for kind in duals.KINDS]


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def gram(X, Y=None, *, kind, **options):
    if kind == "nngp":
        return nngp_gram(X, Y, **options)
    return ntk_gram(X, Y, trained=kind, **options)


def relu_in_mpmath(x, y, depth, kind, slope=0.0):
    """One entry of a leaky kernel, in 40 digits."""
    with mp.workdps(40):
        x, y = [mp.mpf(float(v)) for v in x], [mp.mpf(float(v)) for v in y]
        beta = (1 - mp.mpf(slope)) ** 2 / (1 + mp.mpf(slope) ** 2)
        size = mp.sqrt(mp.fdot(x, x) * mp.fdot(y, y))
        rho = total = mp.fdot(x, y) / size
        for _ in range(depth):
            angle = mp.acos(min(rho, mp.mpf(1)))
            rho = rho + beta * (mp.sin(angle) - angle * rho) / mp.pi
            total = total * (1 - beta * angle / mp.pi) + (rho if kind == "all" else 0)
        return size * (rho if kind == "nngp" else total), size * (depth + 1 if kind == "all" else 1)


# ---- every kernel


@pytest.mark.parametrize(("activation", "kind"), KERNELS, ids=str)
def test_symmetric_positive_blocks_and_gradients(activation, kind):
    X, Y = 0.6 * random(5, 3), 0.6 * random(3, 3, seed=1)
    both = gram(torch.cat([X, Y]), kind=kind, depth=2, activation=activation)
    K, cross = both[:5, :5], both[:5, 5:]
    assert torch.equal(both, both.T)
    assert float(torch.linalg.eigvalsh(both)[0]) > -1e-13
    assert torch.allclose(gram(X, kind=kind, depth=2, activation=activation), K, rtol=1e-13, atol=1e-14)
    assert torch.allclose(
        gram(X, Y, kind=kind, depth=2, activation=activation), cross, rtol=1e-13, atol=1e-14
    )
    weights = random(5, 3, seed=2)
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    (weights * gram(x, y, kind=kind, depth=2, activation=activation)).sum().backward()
    h, direction = 1e-6, random(5, 3, seed=3)
    change = [
        (weights * gram(X + t * direction, Y, kind=kind, depth=2, activation=activation)).sum()
        for t in (h, -h)
    ]
    assert float((x.grad * direction).sum()) == pytest.approx(
        float(change[0] - change[1]) / (2 * h), rel=1e-7
    )
    z = torch.cat([X, Y]).requires_grad_()
    gram(z, kind=kind, depth=2, activation=activation)[:5, 5:].mul(weights).sum().backward()
    assert torch.allclose(z.grad, torch.cat([x.grad, y.grad]), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("activation", [*RELU_LIKE, "tanh", "gelu"], ids=str)
def test_one_layer_is_its_monte_carlo_mean(activation):
    """With one hidden layer the mean of the empirical kernel is exact at any width."""
    X = torch.tensor([[1.0, 0.0], [0.6, 0.8], [-0.5, 0.4]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    draws, first = [], []
    for _ in range(120):
        model = MLP(2, 40, 1, activation, generator=generator)
        draws.append(empirical_ntk(model, X))
        model.layers[1].weight.requires_grad_(False)
        first.append(empirical_ntk(model, X))
    for kind, sample in (
        ("all", draws),
        ("first", first),
        ("nngp", [a - b for a, b in zip(draws, first, strict=True)]),
    ):
        sample = torch.stack(sample)
        error = sample.mean(0) - gram(X, kind=kind, depth=1, activation=activation)
        assert float((error.abs() / (sample.std(0) / math.sqrt(len(sample)))).max()) < 4.5, kind


@pytest.mark.parametrize("activation", ["relu", "tanh", "abs"])
def test_wide_networks_approach_the_kernel(activation):
    X = random(4, 3) / 2
    K = ntk_gram(X, depth=3, activation=activation)
    errors = []
    for width in (64, 1024):
        sample = [
            empirical_ntk(MLP(3, width, 3, activation, generator=torch.Generator().manual_seed(s)), X)
            for s in range(4)
        ]
        errors.append(float((torch.stack(sample) - K).square().mean().sqrt() / K.abs().max()))
    assert errors[1] < 0.1
    assert errors[1] < errors[0] / 2  # 1 / sqrt(width) says a quarter


# ---- ReLU and its kin


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_cases(case):
    X = torch.tensor(case["X"], dtype=torch.float64)
    for r in case["results"]:
        K = ntk_gram(X, depth=r["depth"], trained=r["trained"])
        assert float(torch.linalg.eigvalsh(K)[-1]) == pytest.approx(float(r["lambda_max"]), rel=1e-13)
        assert float(K.trace()) == pytest.approx(
            (r["depth"] + 1 if r["trained"] == "all" else 1) * float(X.square().sum())
        )


@pytest.mark.parametrize("kind", duals.KINDS)
@pytest.mark.parametrize(
    ("activation", "slope"), [("relu", 0.0), ("abs", -1.0), (("leaky_relu", 0.3), 0.3)], ids=str
)
def test_deficits_are_exact_at_every_angle(activation, slope, kind):
    """Relative error of top - K below 2e-14 from 1e-9 to pi, for pairs of unequal length."""
    s, angles = duals.dual(activation), [1e-9, 1e-6, 1e-3, 0.01, 0.03, 0.1, 0.5, 1.5, 2.5, 3.1]
    frame = torch.linalg.qr(random(4, 4))[0]
    X = torch.stack(
        [3 * frame[0], *(0.7 * (math.cos(t) * frame[0] + math.sin(t) * frame[1]) for t in angles)]
    )
    for depth in (1, 3, 10):
        D = homogeneous.deficits(X, s, depth, kind)[0]
        for j in range(1, len(X)):
            k, top = relu_in_mpmath(X[0], X[j], depth, kind, slope)
            exact = float((top - k) / (top / s.top(depth, kind)))
            assert float(D[0, j]) == pytest.approx(exact, rel=2e-14, abs=2e-15 if slope else 0)


def test_points_round_a_centre_keep_their_digits():
    X = torch.ones(40, 9, dtype=torch.float64) + 0.03 * random(40, 9)
    D = homogeneous.deficits(X, duals.dual("relu"), 3, "all")[0]
    for i, j in [(0, 1), (5, 30), (39, 2)]:
        k, top = relu_in_mpmath(X[i], X[j], 3, "all")
        assert float(D[i, j]) == pytest.approx(float((top - k) / (top / 4)), rel=3e-14)


@pytest.mark.parametrize("activation", RELU_LIKE, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 10, 40])
def test_interpolant(activation, depth):
    s = duals.dual(activation)
    if s.power(depth) > 100:
        pytest.skip("norms are raised to the power 2^depth: nobody's kernel")
    theta = torch.linspace(0.05, math.pi / 2 if s.even else math.pi, 3001, dtype=torch.float64)
    for kind in duals.KINDS:
        exact = s.deficit(theta, depth, kind)
        curve = interpolant.curve(s, depth, kind, torch.float64)
        # 40 layers or chaos magnify the rounding of theta itself by dD/dtheta / D
        assert float(((curve(theta / 2) - exact) / exact).abs().max()) < (3e-14 if depth <= 3 else 2e-12)
        single = interpolant.curve(s, depth, kind, torch.float32)
        assert float((single((theta / 2).float()) - exact).abs().max()) < 4e-6 * s.top(depth, kind)
        assert len(single.terms) < len(curve.terms) or depth > 10


def test_squared_relu_deficit_is_positive_and_exact_near_zero():
    theta = torch.tensor([1e-9, 1e-6, 1e-3], dtype=torch.float64)
    d = duals.dual("relu2").deficit(theta, 1, "nngp")
    assert torch.allclose(d, 2 / 3 * theta**2, rtol=1e-3)
    with mp.workdps(40):
        for t, value in zip(theta, d, strict=True):
            t = mp.mpf(float(t))
            exact = 1 - (3 * mp.sin(t) * mp.cos(t) + (mp.pi - t) * (1 + 2 * mp.cos(t) ** 2)) / (3 * mp.pi)
            assert float(value) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_linear_networks_have_depth_plus_one_grams(depth):
    X = random(6, 4)
    for activation in ("linear", ("leaky_relu", 1.0)):
        assert torch.allclose(
            ntk_gram(X, depth=depth, activation=activation), (depth + 1) * X @ X.T, rtol=1e-15
        )
        assert torch.allclose(
            ntk_gram(X, depth=depth, activation=activation, trained="first"), X @ X.T, rtol=1e-15
        )
        assert torch.allclose(nngp_gram(X, depth=depth, activation=activation), X @ X.T, rtol=1e-15)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(1e-100, 1e100),
    st.floats(1e-3, 1e3),
    st.integers(1, 12),
    st.sampled_from(["relu", "abs"]),
    st.sampled_from(["all", "first"]),
)
def test_scale_law(a, b, depth, activation, trained):
    X = random(3, 4)
    K = ntk_gram(X, depth=depth, activation=activation, trained=trained)
    scaled = ntk_gram(a * X, b * X, depth=depth, activation=activation, trained=trained)
    assert torch.allclose(scaled / a / b, K, rtol=1e-12, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 8))
def test_first_layer_conditioning_improves_with_depth(seed, n, d):
    """Schur: each layer multiplies entrywise by a PSD matrix of unit diagonal (papers.md D4)."""
    X = random(n, d, seed=seed)
    ends = [
        torch.linalg.eigvalsh(ntk_gram(X, depth=depth, trained="first"))[[0, -1]]
        for depth in (0, 1, 2, 5, 20)
    ]
    for shallow, deep in itertools.pairwise(ends):
        assert deep[0] >= shallow[0] - 1e-12
        assert deep[1] <= shallow[1] + 1e-12


def test_infinite_depth():
    """cos phi = 1/4 + (3/8) ln L / L + O(1/L) off the diagonal, for every pair (papers.md F4)."""
    X = random(8, 5)
    X = X / X.norm(dim=1, keepdim=True)
    off = ~torch.eye(8, dtype=torch.bool)
    rest = [
        (ntk_gram(X, depth=L)[off] / (L + 1) - 0.25).mean() / (3 / 8 * math.log(L) / L) for L in (300, 1200)
    ]
    assert abs(rest[1] - 1) < abs(rest[0] - 1) < 0.5


# ---- smooth activations


@pytest.mark.parametrize("name", ["erf", "sin", "gelu"])
def test_series_agrees_with_closed_form(name):
    X = random(5, 3) / 2
    function = smooth.SMOOTH[name].function
    for kind in duals.KINDS:
        series = gram(X, kind=kind, depth=2, activation=function)
        assert torch.allclose(series, gram(X, kind=kind, depth=2, activation=name), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_one_layer_is_the_gaussian_integral(name):
    """Against a two-dimensional quadrature in other nodes (Gauss-Legendre on [-10, 10])."""
    nodes, weights = (torch.as_tensor(v) for v in __import__("numpy").polynomial.legendre.leggauss(120))
    z, w = 10 * nodes, 10 * weights * torch.exp(-50 * nodes**2) / math.sqrt(2 * math.pi)
    s = smooth.SMOOTH[name].function
    X = torch.tensor([[1.0, 0.0], [0.9, 0.8]], dtype=torch.float64)
    u = z[:, None] * X[0, 0]
    v = X[1, 0] * z[:, None] + X[1, 1] * z[None, :]
    c = 1 / (w @ s(z) ** 2)
    assert float(nngp_gram(X, depth=1, activation=name)[0, 1]) == pytest.approx(
        float(c * (w @ (s(u) * s(v)) @ w)), rel=1e-12
    )


@pytest.mark.parametrize(
    ("name", "chi", "k2", "slope"),
    [
        ("tanh", 1.178, 0.761, 1.196),
        ("gelu", 1.072, 0.648, 1.161),
        ("silu", 1.067, 0.404, 1.108),
        ("sin", 1.313, 1, 1.252),
        ("erf", 1.226, 0.981, 1.242),
        ("relu2", 4 / 3, 4 / 3, 1.309),
        ("sigmoid", 0.153, 0.016, 0.528),
        ("softplus", 0.318, 0.049, 0.721),
    ],
)
def test_small_angles_of_smooth_activations(name, chi, k2, slope):
    """phi/theta -> sqrt((2 chi + k2)/(1 + chi)), chi = E[s'^2]/E[s^2], k2 = E[s''^2]/E[s^2] (papers.md F6)."""
    theta = 0.01
    X = torch.tensor([[1.0, 0.0], [math.cos(theta), math.sin(theta)]], dtype=torch.float64)
    K = ntk_gram(X, depth=1, activation=name)
    phi = math.acos(float(K[0, 1] / K[0, 0]))
    assert float(K[0, 0]) == pytest.approx(1 + chi, abs=6e-4)
    assert phi / theta == pytest.approx(slope, abs=2e-3)
    assert math.sqrt((2 * chi + k2) / (1 + chi)) == pytest.approx(slope, abs=1e-3)


def test_kinks_and_large_inputs_are_refused_by_the_series():
    X = torch.eye(2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"relu: 500 Hermite terms leave out .* name a kinked activation"):
        ntk_gram(X, depth=1, activation=torch.relu)
    with pytest.raises(ValueError, match=r"tanh: .*scale inputs down"):
        ntk_gram(100 * X, depth=1, activation="tanh")
    rough = ntk_gram(X, depth=1, activation=torch.relu, tol=0.1)
    assert torch.allclose(rough, ntk_gram(X, depth=1), atol=0.1)
    with pytest.raises(ValueError, match="no gradient at a zero input"):
        ntk_gram(torch.zeros(1, 2, dtype=torch.float64).requires_grad_(), depth=1, activation="tanh")


# ---- what users met elsewhere (numerics.md, section 6)


@pytest.mark.parametrize("depth", [1, 3])
def test_gradient_at_coincident_points(depth):
    x = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    ntk_gram(x, x.detach(), depth=depth).sum().backward()
    assert torch.allclose(x.grad, (depth + 1) * x.detach(), rtol=1e-12)
    z = torch.tensor(
        [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True
    )
    ntk_gram(z, depth=depth).sum().backward()
    assert bool(torch.isfinite(z.grad).all())


def test_zero_rows():
    X = torch.tensor([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    for activation in ["relu", "abs", "relu2", "linear", "erf", "tanh"]:
        K = ntk_gram(X, depth=2, activation=activation)
        assert float(K[0].abs().max()) == 0
        assert float(K[1, 1]) > 0
    assert float(nngp_gram(X, depth=1, activation="sigmoid")[0, 0]) > 0  # sigmoid(0) is not 0


def test_every_tile_size_gives_the_same(monkeypatch):
    X, Y = random(700, 3), random(300, 3, seed=1)
    whole, cross = ntk_gram(X, depth=3), ntk_gram(X, Y, depth=3)

    def small(work, n, m, symmetric, device):
        for i in range(0, n, 97):
            for j in range(0, i + 1 if symmetric else m, 97):
                work(slice(i, min(i + 97, n)), slice(j, min(j + 97, m)))

    monkeypatch.setattr(homogeneous, "run", small)
    assert torch.allclose(ntk_gram(X, depth=3), whole, rtol=1e-13)
    assert torch.allclose(ntk_gram(X, Y, depth=3), cross, rtol=1e-13)


def test_threads_are_left_as_they_were():
    before, seen = torch.get_num_threads(), []
    try:
        torch.set_num_threads(2)
        tiles.run(
            lambda i, j: seen.append((i.start, j.start, torch.get_num_threads())),
            700,
            700,
            True,
            torch.device("cpu"),
        )
        assert torch.get_num_threads() == 2
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert seen.pop() == 2
    finally:
        torch.set_num_threads(before)
    assert sorted((i, j) for i, j, _ in seen) == [(i, j) for i in (0, 128, 256, 384, 512, 640) for j in range(0, i + 1, 128)]
    assert {threads for *_, threads in seen} == {1}
    with pytest.raises(ZeroDivisionError):
        tiles.run(lambda i, j: 1 / 0, 700, 700, False, torch.device("cpu"))


# ---- inputs


def test_one_point_float32_views_and_untouched_arguments():
    assert torch.equal(ntk_gram(torch.tensor([[3.0, 4.0]]), depth=2), torch.tensor([[75.0]]))
    X = random(8, 6).T[::2]
    copy = X.clone()
    K = ntk_gram(X, depth=3)
    assert torch.equal(X, copy)
    assert K.dtype == torch.float64
    single = ntk_gram(X.float(), depth=3)
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), K, rtol=2e-6, atol=2e-5)
    near = torch.tensor([[1.0, 0.0], [1.0, 1e-4]])
    k, _ = relu_in_mpmath(near[0], near[1], 3, "all")
    assert float(ntk_gram(near, depth=3)[0, 1]) == pytest.approx(float(k), rel=1e-7)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (torch.ones(3), ValueError, r"X must have shape \(n, d\).*X\[None\]"),
        (torch.ones(0, 3), ValueError, "at least one point"),
        (torch.ones(2, 2, dtype=torch.long), TypeError, "float64 or float32"),
        (torch.ones(2, 2, dtype=torch.float16), TypeError, "float64 or float32"),
        (torch.tensor([[math.nan, 1.0]]), ValueError, "1 NaN"),
        (torch.tensor([[math.inf, 1.0]]), ValueError, "infinite"),
        ([[1.0, 2.0]], TypeError, "torch.Tensor"),
    ],
)
def test_refused_inputs(bad, error, message):
    with pytest.raises(error, match=message):
        ntk_gram(bad, depth=1)


def test_refused_options():
    X = torch.eye(2)
    with pytest.raises(TypeError, match="X and Y must share one dtype"):
        ntk_gram(X, X.double(), depth=1)
    with pytest.raises(ValueError, match="points of one dimension"):
        ntk_gram(X, torch.eye(3), depth=1)
    with pytest.raises(ValueError, match="depth must be at least 0"):
        ntk_gram(X, depth=-1)
    with pytest.raises(TypeError, match="depth must be an int"):
        nngp_gram(X, depth=1.5)
    with pytest.raises(ValueError, match="trained must be"):
        ntk_gram(X, depth=1, trained="last")
    with pytest.raises(ValueError, match="activation must be one of"):
        ntk_gram(X, depth=1, activation="rleu")
    with pytest.raises(ValueError, match="slope must be finite"):
        ntk_gram(X, depth=1, activation=("leaky_relu", math.inf))
    with pytest.raises(OverflowError, match="scale the inputs down"):
        ntk_gram(1e30 * X, depth=1)


def test_small_modules_read_as_they_are_named():
    for module in (kernels, homogeneous, interpolant, duals, smooth, tiles):
        assert len(Path(module.__file__).read_text().splitlines()) < 250


@pytest.mark.parametrize("activation", ["erf", "sin", "gelu"])
def test_the_diagonal_of_closed_forms_keeps_its_digits_at_large_norms(activation):
    X = 1e7 * random(6, 40)
    with mp.workdps(60):
        def duals_at(q):
            if activation == "erf":
                return 2 / mp.pi * mp.asin(2 * q / (1 + 2 * q)), 4 / mp.pi / mp.sqrt(1 + 4 * q)
            if activation == "sin":
                return (1 - mp.exp(-2 * q)) / 2, (1 + mp.exp(-2 * q)) / 2
            root, slope = mp.sqrt(1 + 2 * q), (1 - q * q) / (1 + q) ** 2
            orthant, rest = mp.mpf(1) / 4 + mp.atan2(q, root) / (2 * mp.pi), q * q + q * q * slope
            return (q * orthant + rest / root / (2 * mp.pi),
                    orthant + q * (1 + 2 * slope + rest / root**2) / root / (2 * mp.pi))
        sizes = [mp.fdot(map(mp.mpf, x), map(mp.mpf, x)) for x in X.tolist()]
        c = 1 / duals_at(mp.mpf(1))[0]
        true = [float(c * (first + q * second)) for q, (first, second) in ((q, duals_at(q)) for q in sizes)]
    K = ntk_gram(X, depth=1, activation=activation)
    assert torch.allclose(K.diagonal(), torch.tensor(true, dtype=torch.float64), rtol=1e-13)


def test_deep_smooth_kernels_keep_their_diagonal():
    X = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
    K = ntk_gram(X, depth=300, activation="tanh")            # q = 1 at every layer: sum_l chi^l, chi = c E[s'^2]
    chi = ntk_gram(X, depth=1, activation="tanh", trained="first")[0, 0]
    assert float(K[0, 0]) == pytest.approx(float((chi**301 - 1) / (chi - 1)), rel=1e-9)
    assert float(K[1, 1]) == pytest.approx(float(K[0, 0]), rel=1e-12)


@pytest.mark.parametrize("n", [100, 1100])
@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_smooth_grams_are_exactly_symmetric(activation, n):
    K = nngp_gram(random(n, 37) / 6, depth=1, activation=activation)
    assert torch.equal(K, K.T)


def test_a_custom_activation_may_have_any_size():
    X = random(3, 4) / 2
    K = ntk_gram(X, depth=2, activation="tanh")
    for size in (1e-4, 1e-20, 1e20):
        assert torch.allclose(ntk_gram(X, depth=2, activation=lambda u, a=size: a * torch.tanh(u)), K, rtol=1e-12)
    near, nearer = (ntk_gram(t * X, depth=1, activation="tanh") / t**2 for t in (1e-60, 1e-100))
    assert torch.allclose(near, nearer, rtol=1e-12)
    assert ntk_gram(0 * X, depth=1, activation="tanh").eq(0).all()
    assert torch.allclose(nngp_gram(X, depth=1, activation=lambda u: 0 * u + 3), torch.ones(3, 3).double(), rtol=1e-13)
    with pytest.raises(ValueError, match="500 Hermite terms leave out"):
        ntk_gram(X, depth=1, activation=lambda u: 1e-20 * torch.relu(u))


@pytest.mark.parametrize(("function", "message"), [
    (lambda u: u.sum(), "elementwise"), (lambda u: 3.0, "elementwise.*made float"),
    (lambda u: u.detach(), "autograd"), (lambda u: torch.softmax(u, 0), "elementwise"),
    (torch.nn.ReLU, "elementwise.*made ReLU"), (lambda u: 0 * u, r"E\[s\(z\)\^2\] = 0"),
    (torch.log, r"E\[s\(z\)\^2\] = nan"), (lambda u: torch.exp(u * u), r"E\[s\(z\)\^2\] = inf|= nan|e\+")])
def test_refused_functions(function, message):
    with pytest.raises(ValueError, match=message):
        ntk_gram(torch.eye(2), depth=1, activation=function)


def test_refused_sizes_and_tolerances():
    X = torch.eye(2, dtype=torch.float64)
    for activation in ("relu", "linear", "tanh"):
        with pytest.raises(OverflowError, match=r"2 of 2 points with itself is too small.*scale the inputs up"):
            ntk_gram(1e-200 * X, depth=2, activation=activation)
    assert ntk_gram(0 * X, depth=2).eq(0).all()
    with pytest.raises(ValueError, match=r"past depth 52.*got depth = 100"):
        ntk_gram(X, depth=100, activation="relu2")
    for tol in (math.nan, -1, "small", True):
        with pytest.raises(ValueError, match="tol must be a number >= 0"):
            ntk_gram(X, depth=1, tol=tol)
    with pytest.raises(ValueError, match="meta device"):
        ntk_gram(torch.empty(2, 2, device="meta"), depth=1)
    with pytest.raises(TypeError, match=r"must be dense, got torch\.sparse_coo: use X\.to_dense"):
        ntk_gram(torch.eye(2).to_sparse(), depth=1)
    with pytest.raises(TypeError, match=r"use X\.real"):
        ntk_gram(torch.eye(2) + 0j, depth=1)


def test_a_second_gradient_is_refused_not_dropped():
    X = random(3, 4).requires_grad_()
    gradient, = torch.autograd.grad(ntk_gram(X, depth=2).sum(), X, create_graph=True)
    with pytest.raises(NotImplementedError, match="first gradient only"):
        gradient.square().sum().backward()
