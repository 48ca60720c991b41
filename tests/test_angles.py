"""Angles to the last digits: against 90-digit arccosines, autograd, real networks and the worst inputs.

The references below take the textbook formulas, arccosines and all, and pay for them with digits.
"""
import json
import math
import subprocess
import sys
from functools import cache
from pathlib import Path

import mpmath as mp
import pytest
import torch
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped
from torch.func import grad, hessian, jacfwd, jacrev, vmap

import ntklib
from ntklib import angle_between, angle_deficit, angle_map, embedding_angle, gradient_angle, gradient_deficit

PI = math.pi
BOUND = 2e-14                     # the library's promise: relative, at every angle; it needs a fiftieth of it
SLOPES = [0., 0.01, 0.1, 0.3, 0.9999, 1., -0.5, -1., -3., 1e200]
DEPTHS = [0, 1, 2, 5, 20, 50]
GRID = sorted([0., 1e-12, *(10 ** (-9 + k / 3) for k in range(27)), *(0.1 * k for k in range(11, 32)), PI / 2,
               *(PI - 10 ** -k for k in (9, 7.5, 6, 4, 3, 2)), PI])


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(90):                      # the arccosine of the cosine of 1e-12 costs 24 of them
        yield


def tensor(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=generator(seed))


FUNCTIONS = {
    "angle_map": angle_map,
    "abs": lambda t: angle_map(t, -1.),
    "leaky": lambda t: angle_map(t, 0.3),
    "linear": lambda t: angle_map(t, 1.),
    "angle_deficit": angle_deficit,
    "embedding_angle": lambda t: embedding_angle(t, 3, 0.8),
    "gradient_angle": lambda t: gradient_angle(t, 2, -0.5),
    "gradient_deficit": lambda t: gradient_deficit(t, 2),
}


# ---- references

def exact(theta: float):
    """The float's own value, but pi for the float that stands for it."""
    return mp.pi + 0 if theta == PI else mp.mpf(theta)


def reference(theta, depth: int, slope: float):
    """(theta^(l), cos phi_l) for l = 0..depth, from eq. 7 and 8 as they are printed."""
    a = mp.mpf(slope)
    beta = (1 - a) ** 2 / (1 + a**2)
    cosine = total = mp.cos(theta)
    rows = [(theta, cosine)]
    for l in range(depth):
        total *= 1 - beta * theta / mp.pi
        cosine = min(cosine + beta * (mp.sqrt(1 - cosine**2) - theta * cosine) / mp.pi, mp.mpf(1))
        theta = mp.acos(cosine)
        total += cosine
        rows.append((theta, total / (l + 2)))
    return rows


@cache
def references(slope: float):
    return {theta: reference(exact(theta), max(DEPTHS), slope) for theta in GRID}


def worst(got: torch.Tensor, want: list) -> float:
    """The largest relative error; the absolute one where the truth is 0, up to what is left of 90 digits."""
    return max(float(abs(g - w) / (abs(w) if abs(w) > 1e-40 else 1))
               for g, w in zip(map(mp.mpf, got.tolist()), want, strict=True))


# ---- accuracy

def test_the_shared_cases():
    cases = json.loads((Path(__file__).parent / "cases" / "angles.json").read_text())

    def column(rows, name):
        return [mp.mpf(row[name]) for row in rows]

    def radians(rows):
        return tensor(*(math.radians(row["theta_deg"]) for row in rows))

    rows = cases["angle_map"]
    assert worst(angle_map(radians(rows)), column(rows, "g_rad")) <= BOUND
    assert worst(angle_deficit(radians(rows)), column(rows, "theta_minus_g")) <= BOUND
    for depth in {row["depth"] for row in cases["gradient_angle"]}:
        rows = [row for row in cases["gradient_angle"] if row["depth"] == depth]
        phi, deficit = gradient_angle(radians(rows), depth), column(rows, "one_minus_cos")
        assert worst(phi, column(rows, "gradient_angle_rad")) <= BOUND
        assert worst(gradient_deficit(radians(rows), depth), deficit) <= BOUND
        assert worst(2 * (phi / 2).sin() ** 2, deficit) <= BOUND


@pytest.mark.parametrize("slope", SLOPES)
def test_every_digit_at_every_angle(slope):
    table = references(slope)
    theta = tensor(*table)
    assert worst(angle_map(theta, slope), [row[1][0] for row in table.values()]) <= BOUND
    assert worst(angle_deficit(theta, slope), [row[0][0] - row[1][0] for row in table.values()]) <= BOUND
    for depth in DEPTHS:
        rows = [row[depth] for row in table.values()]
        assert worst(embedding_angle(theta, depth, slope), [angle for angle, _ in rows]) <= BOUND
        assert worst(gradient_angle(theta, depth, slope), [mp.acos(cosine) for _, cosine in rows]) <= BOUND
        assert worst(gradient_deficit(theta, depth, slope), [1 - cosine for _, cosine in rows]) <= BOUND


@pytest.mark.parametrize("slope", [0., 0.9])
def test_no_error_builds_up_over_thousands_of_layers(slope):
    theta, depth = tensor(1e-9, 0.02), 1000
    rows = [reference(mp.mpf(t), depth, slope)[-1] for t in theta.tolist()]
    assert worst(embedding_angle(theta, depth, slope), [angle for angle, _ in rows]) <= BOUND
    assert worst(gradient_angle(theta, depth, slope), [mp.acos(cosine) for _, cosine in rows]) <= BOUND
    assert worst(gradient_deficit(theta, depth, slope), [1 - cosine for _, cosine in rows]) <= BOUND


@pytest.mark.parametrize("slope", [0., 0.3, 1., -0.5, -1.])
def test_float32_is_as_good_as_float32_can_be(slope):
    # the references are our own float64 results, proved above; four units in the last place
    theta = tensor(*GRID, dtype=torch.float32).unique()
    theta = theta[theta < torch.tensor(PI, dtype=torch.float32)]            # which is above pi in float64
    for f in (lambda t: angle_map(t, slope), lambda t: angle_deficit(t, slope),
              lambda t: embedding_angle(t, 20, slope), lambda t: gradient_angle(t, 20, slope),
              lambda t: gradient_deficit(t, 20, slope)):
        single, double = f(theta), f(theta.double())
        assert single.dtype == torch.float32
        normal = (double > torch.finfo(torch.float32).tiny) | (double == 0)
        assert torch.allclose(single.double()[normal], double[normal], rtol=5e-7, atol=0)


def test_at_pi_as_each_dtype_rounds_it():
    for dtype in (torch.float64, torch.float32):
        pi = torch.tensor(PI, dtype=dtype)
        assert angle_map(pi) == pi / 2
        for f in (angle_map(pi, -1.), embedding_angle(pi, 3, -1.), gradient_angle(pi, 3, -1.)):
            assert f == 0                                 # |u| cannot tell -x from x
        assert gradient_angle(pi, 0, -1.) == pi


def test_angles_too_small_to_square():
    tiny = tensor(0., 5e-324, 1e-300, 1e-200)
    assert torch.equal(angle_map(tiny), tiny)
    assert torch.equal(embedding_angle(tiny, 9, 0.3), tiny)
    want = [3 * mp.mpf(t) / (2 * mp.pi) for t in tiny[2:].tolist()]
    assert worst(gradient_deficit(tiny[2:], 3), want) <= BOUND


def test_linear_networks_leave_every_angle():
    theta = tensor(*GRID)
    for depth in (0, 1, 7):
        assert torch.equal(embedding_angle(theta, depth, 1.), theta)
        assert torch.equal(gradient_angle(theta, depth, 1.), theta)
    assert angle_deficit(theta, 1.).count_nonzero() == 0


def test_slopes_a_and_1_over_a_act_alike():
    theta = tensor(*GRID)
    assert torch.allclose(gradient_angle(theta, 3, 4.), gradient_angle(theta, 3, 0.25), rtol=BOUND, atol=0)


@pytest.mark.parametrize("slope", [0., 0.3, -1.])
@pytest.mark.parametrize("depth", [10, 100, 1000])
def test_deep_networks_on_small_angles(slope, depth):
    # theta -> 0, L -> infinity with s = beta L theta / (3 pi) fixed: the sums become integrals of powers of
    # 1/(1 + s). For large s the cosine is 1/4, whatever the slope
    theta = 1e-3
    s = (1 - slope) ** 2 / (1 + slope**2) * depth * theta / (3 * PI)
    limit = math.acos(((1 + s) ** 4 - 1) / (4 * s * (1 + s) ** 3))
    assert gradient_angle(theta, depth, slope).item() == pytest.approx(limit, abs=5e-4)


# ---- the map as a function

angles = st.floats(0, PI)
slopes = st.one_of(st.sampled_from(SLOPES), st.floats(-1e6, 1e6))


@settings(max_examples=60, deadline=None)
@given(angles, slopes)
def test_g_contracts(theta, slope):
    g, deficit = angle_map(theta, slope), angle_deficit(theta, slope)
    assert 0 <= g <= theta
    assert 0 <= deficit <= theta
    assert (g + deficit).item() == pytest.approx(theta, rel=4e-16, abs=0)


@settings(max_examples=60, deadline=None)
@given(angles, angles, st.floats(0, 1))
def test_g_increases_for_slopes_from_0_to_1(one, other, slope):
    low, high = sorted((one, other))
    assert angle_map(low, slope) <= angle_map(high, slope) * (1 + 4e-16)


@settings(max_examples=30, deadline=None)
@given(angles, st.integers(0, 6), st.integers(0, 6), slopes)
def test_depths_add(theta, m, n, slope):
    two = embedding_angle(embedding_angle(theta, m, slope), n, slope)
    assert two.item() == pytest.approx(embedding_angle(theta, m + n, slope).item(), rel=BOUND, abs=0)


def test_shapes_and_strides_do_not_matter():
    theta = torch.rand(6, 5, dtype=torch.float64, generator=generator()) * PI
    for f in FUNCTIONS.values():
        full = f(theta)
        # torch has vector and scalar versions of atan2, a unit in the last place apart
        for part, want in ((theta, full), (theta.T, full.T), (theta[::2, 1], full[::2, 1]),
                           (theta[:0], full[:0]), (theta[3, 2], full[3, 2])):
            assert f(part).shape == part.shape
            assert torch.allclose(f(part), want, rtol=2e-15, atol=0)
        assert f(theta[0, 0].item()).dtype == torch.float64                 # a number is a float64


def test_the_argument_is_neither_edited_nor_returned():
    theta = tensor(0.5, 1., PI)
    for result in (angle_map(theta), angle_map(theta, 1.), embedding_angle(theta, 0),
                   gradient_angle(theta, 0), gradient_angle(theta, 2, 1.)):
        result.zero_()
        assert torch.equal(theta, tensor(0.5, 1., PI))


# ---- derivatives

def derivative(f, theta):
    return vmap(grad(f))(theta)


@pytest.mark.parametrize("slope", [0., 0.01, 0.3, 0.9, -0.5, -1., 2.])
def test_derivative_of_the_map(slope):
    a = mp.mpf(slope)
    beta = (1 - a) ** 2 / (1 + a**2)
    inside = [t for t in GRID if 0 < t < PI]
    want = []
    for t in map(mp.mpf, inside):
        cosine = mp.cos(t) + beta * (mp.sin(t) - t * mp.cos(t)) / mp.pi
        want.append((1 - beta * t / mp.pi) * mp.sin(t) / mp.sqrt(1 - cosine**2))
    got = derivative(lambda t: angle_map(t, slope), tensor(*inside))
    # absolute, as g' passes through 0 where beta theta = pi
    assert max(abs(g - float(w)) for g, w in zip(got.tolist(), want, strict=True)) <= 2e-15
    off = derivative(lambda t: angle_deficit(t, slope), tensor(*inside))
    assert worst(off, [1 - w for w in want]) <= BOUND


@pytest.mark.parametrize(("slope", "at_pi"), [(0., 0.), (0.3, 0.), (0.99, 0.), (-0.5, 0.), (2., 0.), (1., 1.),
                                              (-1., -1.)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_derivatives_at_both_ends(slope, at_pi, dtype):
    ends = tensor(0., PI, dtype=dtype)
    for f, want in ((lambda t: angle_map(t, slope), [1, at_pi]),
                    (lambda t: angle_deficit(t, slope), [0, 1 - at_pi]),
                    (lambda t: embedding_angle(t, 4, slope), [1, at_pi])):
        assert derivative(f, ends).tolist() == pytest.approx(want, abs=4 * torch.finfo(dtype).eps)
    beta = (1 - slope) ** 2 / (1 + slope**2)
    second = derivative(grad(lambda t: angle_map(t, slope)), ends)
    assert second[0].item() == pytest.approx(-2 * beta / (3 * PI), rel=1e-6)
    assert torch.isfinite(second).all()


@pytest.mark.parametrize("slope", [0., 0.3, -0.5, -1.])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_derivative_of_the_gradient_deficit(slope, depth):
    theta = [0., 1e-9, 1e-3, 0.4, 1.1, 2., 2.9, PI]
    got = derivative(lambda t: gradient_deficit(t, depth, slope), tensor(*theta))
    for g, t in zip(got.tolist(), theta, strict=True):
        side = 1 if t == 0 else -1 if t == PI else 0
        h = mp.mpf(10) ** -20                             # small, but not for the arccosines at 90 digits
        want = -mp.diff(lambda x: reference(x, depth, slope)[-1][1], exact(t), direction=side, h=h)
        assert g == pytest.approx(float(want), rel=1e-13, abs=1e-15)
    beta = (1 - slope) ** 2 / (1 + slope**2)
    assert got[0].item() == pytest.approx(beta * depth / (2 * PI))      # Corollary 3.3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_cusp_of_the_gradient_angle(dtype):
    ends = tensor(0., PI, dtype=dtype)
    for depth, slope in ((1, 0.), (5, 0.3), (3, -0.5)):
        at_0, at_pi = derivative(lambda t, d=depth, a=slope: gradient_angle(t, d, a), ends).tolist()
        assert at_0 == 0                                                     # the convention
        assert math.isfinite(at_pi)
        deficit = gradient_deficit(ends[1], depth, slope)
        slope_of_deficit = grad(lambda t, d=depth, a=slope: gradient_deficit(t, d, a))(ends[1])
        assert at_pi == pytest.approx((slope_of_deficit / (deficit * (2 - deficit)).sqrt()).item(), rel=1e-5)
    assert derivative(lambda t: gradient_angle(t, 3, -1.), ends).tolist() == [0, 0]
    assert derivative(lambda t: gradient_angle(t, 0), ends).tolist() == [1, 1]
    assert derivative(lambda t: gradient_angle(t, 3, 1.), ends).tolist() == [1, 1]
    near = tensor(1e-8, dtype=dtype)                                         # phi ~ sqrt(L theta / pi)
    want = 0.5 * math.sqrt(3 / (PI * 1e-8))
    assert grad(lambda t: gradient_angle(t, 3).sum())(near).item() == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_autograd_in_every_way(f):
    theta = tensor(0.2, 1.5, 1.7, 2.9).requires_grad_()
    assert torch.autograd.gradcheck(f, theta, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(f, theta)
    ends = tensor(0., 0.7, PI)
    assert torch.equal(vmap(f)(ends), f(ends))
    first = derivative(f, ends)
    assert torch.isfinite(first).all()
    assert torch.allclose(jacrev(f)(ends), first.diag())
    assert torch.allclose(jacfwd(f)(ends), first.diag())
    assert torch.isfinite(hessian(lambda t: f(t).sum())(ends)).all()


# ---- between two vectors

def true_angle(x, y):
    x, y = (mp.matrix(v.tolist()) for v in (x, y))
    x, y = x / mp.norm(x), y / mp.norm(y)
    return 2 * mp.atan2(mp.norm(x - y), mp.norm(x + y))


def pair(theta: float, dim: int, seed: int):
    x, y = randn(2, dim, seed=seed)
    y = y - x * (x @ y) / (x @ x)
    return x, math.cos(theta) * x + math.sin(theta) * y * x.norm() / y.norm()


@pytest.mark.parametrize("dim", [2, 3, 50])
@pytest.mark.parametrize("theta", [1e-15, 1e-9, 1e-4, 0.3, PI / 2, 2.5, PI - 1e-6, PI - 1e-9])
def test_angle_between_keeps_every_digit(theta, dim):
    # the truth is the angle of the vectors as rounded, which at 1e-15 is far from theta
    for seed, (p, q) in enumerate([(1., 1.), (1e-200, 3.7e-200), (1e-300, 1e300), (7e307, 0.1)]):
        x, y = pair(theta, dim, seed)
        x, y = p * x / x.norm(), q * y / y.norm()
        assert worst(angle_between(x, y)[None], [true_angle(x, y)]) <= 1e-15
        single = x.clamp(-3e38, 3e38).float(), y.clamp(-3e38, 3e38).float()
        if all(1e-35 < v.norm() < 1e38 for v in single):
            assert worst(angle_between(*single)[None], [true_angle(*single)]) <= 1e-6


def test_angle_between_where_arccos_gives_up():
    x, y = tensor(1., 0.), tensor(1., 1e-9)
    assert torch.dot(x, y) / (x.norm() * y.norm()) == 1
    assert angle_between(x, y).item() == pytest.approx(1e-9, rel=1e-15)
    assert angle_between(tensor(1., 0.), tensor(1., 1e-140)).item() == pytest.approx(1e-140, rel=1e-15)
    assert angle_between(tensor(1., 0.), tensor(-1., 0.)).item() == PI
    subnormal = tensor(3e-310, 0.), tensor(4e-310, 4e-310)
    assert angle_between(*subnormal).item() == pytest.approx(PI / 4)


coordinates = st.floats(-1e3, 1e3).filter(lambda v: v == 0 or abs(v) > 1e-3)
vectors = st.lists(coordinates, min_size=3, max_size=3).filter(any)


@settings(max_examples=60, deadline=None)
@given(vectors, vectors, vectors, st.integers(-300, 300))
def test_angle_between_is_a_metric_on_directions(x, y, z, exponent):
    x, y, z = tensor(*x), tensor(*y), tensor(*z)
    xy = angle_between(x, y)
    assert torch.equal(angle_between(y, x), xy)
    assert torch.equal(angle_between(x * 2.**exponent, y), xy)
    assert angle_between(x, x) == 0
    assert angle_between(x, -x) == PI
    assert (xy + angle_between(x, -y)).item() == pytest.approx(PI, abs=1e-15)
    assert xy <= angle_between(x, z) + angle_between(z, y) + 1e-15
    cosine = (x @ y / (x.norm() * y.norm())).clamp(-1, 1)
    assert xy.cos().item() == pytest.approx(cosine.item(), abs=1e-15)


def test_angle_between_broadcasts_over_leading_dimensions():
    X, Y = randn(4, 1, 3), randn(5, 3, seed=1)
    table = angle_between(X, Y)
    assert table.shape == (4, 5)
    assert table[2, 3] == angle_between(X[2, 0], Y[3])
    assert torch.equal(angle_between(X.expand(4, 5, 3), Y.T.contiguous().T), table)         # other strides
    assert angle_between(X[:0], Y).shape == (0, 5)
    assert angle_between(tensor(2.), tensor(-3.)) == PI                                     # one coordinate
    assert torch.equal(vmap(angle_between, (None, 0))(Y[0], Y), angle_between(Y[0], Y))


def test_angle_between_is_differentiable():
    x, y = (randn(3, 4, seed=s).requires_grad_() for s in (0, 1))
    assert torch.autograd.gradcheck(angle_between, (x, y), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(angle_between, (x, y))
    # d theta = -(the part of dx along y, across x) / |x|, also for neighbours
    x, y = pair(1e-8, 4, seed=3)
    along = y / y.norm() - x / x.norm()
    along = along - x * (x @ along) / (x @ x)
    want = -along / (along.norm() * x.norm())
    assert torch.allclose(grad(angle_between)(x, y), want, atol=1e-7)     # `along` itself has 8 digits


@pytest.mark.parametrize("factor", [1., 2., -1., -0.25])
def test_the_kinks_of_angle_between_have_gradient_0(factor):
    x = randn(5)
    assert angle_between(x, factor * x).item() == (0 if factor > 0 else PI)
    for wrt in (0, 1):
        assert grad(angle_between, argnums=wrt)(x, factor * x).count_nonzero() == 0
        assert hessian(angle_between, argnums=wrt)(x, factor * x).count_nonzero() == 0


# ---- real layers

def leaky(u, slope):
    return torch.where(u > 0, u, slope * u)


@pytest.mark.parametrize("slope", [0., 0.3, -1.])
@pytest.mark.parametrize("theta", [0.05, 1.2, 2.8])
def test_a_real_wide_layer(theta, slope):
    # cos of the outputs' angle is a ratio of means over the width; its standard error by the delta method
    width, (x, y) = 60_000, pair(theta, 5, seed=2)
    W = randn(width, 5, seed=4)
    u, v = leaky(W @ x, slope), leaky(W @ y, slope)
    c = torch.cos(angle_between(u, v))
    influence = u * v / (u.norm() * v.norm()) - c / 2 * (u**2 / (u @ u) + v**2 / (v @ v))
    assert abs(c - torch.cos(angle_map(theta, slope))) <= 4.5 * influence.norm()
    assert influence.norm() < 0.01                        # so that a wrong constant cannot hide


def gradients(W, x, slope):
    """grad f(x) by autograd, one row a network, for networks of the paper's eq. 1 stacked in dimension 0."""
    *hidden, last = W
    h = x.expand(len(last), -1)
    for w in hidden:
        h = (2 / (1 + slope**2) / w.shape[1]) ** 0.5 * leaky((w @ h[..., None])[..., 0], slope)
    return torch.cat([g.flatten(1) for g in torch.autograd.grad((last * h).sum(), W)], dim=1)


@pytest.mark.parametrize(("theta", "slope"), [(0.3, 0.), (2., 0.), (1., 0.3), (2.8, -1.)])
def test_gradients_of_real_networks(theta, slope):
    depth, width, networks = 2, 100, 200
    x, y = (v / v.norm() for v in pair(theta, 4, seed=6))
    shapes = (width, 4), (width, width), (width,)
    W = [randn(networks, *shape, seed=s).requires_grad_() for s, shape in enumerate(shapes)]
    of_x, of_y = gradients(W, x, slope), gradients(W, y, slope)
    # the mean of <grad, grad> is (L + 1) cos phi up to O(1/width): the angle after the first layer fluctuates
    for row, want in (((of_x * of_y).sum(1), (depth + 1) * (1 - gradient_deficit(theta, depth, slope))),
                      ((of_x * of_x).sum(1), tensor(depth + 1))):
        error = row.std() / networks**0.5
        assert abs(row.mean() - want) <= 4 * error + 3 / width
        assert error < 0.06                               # so that a wrong formula cannot hide


# ---- refusals

ANGLE_FUNCTIONS = [angle_map, angle_deficit, lambda t, **k: embedding_angle(t, 2, **k),
                   lambda t, **k: gradient_angle(t, 2, **k), lambda t, **k: gradient_deficit(t, 2, **k)]


@pytest.mark.parametrize("f", ANGLE_FUNCTIONS)
@pytest.mark.parametrize(("theta", "error", "says"), [
    (tensor(0.1, math.nan), ValueError, "theta contains 1 NaN out of 2"),
    (tensor(-1e-9), ValueError, "radians"), (tensor(3.1416), ValueError, "3.1416"),
    (tensor(math.inf), ValueError, "inf"), (90., ValueError, "deg2rad"),
    (torch.tensor([1]), TypeError, "float64 or float32, got torch.int64"), ([0.1], TypeError, "got list"),
    (torch.tensor(1.).half(), TypeError, "float16"), (torch.tensor([1j]), TypeError, "complex"),
    (None, TypeError, "got NoneType"), (True, TypeError, "got bool")])
def test_angles_refused(f, theta, error, says):
    with pytest.raises(error, match=says):
        f(theta)


@pytest.mark.parametrize("f", ANGLE_FUNCTIONS)
@pytest.mark.parametrize(("slope", "error"), [
    (math.nan, ValueError), (math.inf, ValueError), ("relu", TypeError), (True, TypeError), (None, TypeError),
    (1j, TypeError), (torch.tensor(0.1), TypeError)])
def test_slopes_refused(f, slope, error):
    with pytest.raises(error, match="slope must be"):
        f(tensor(0.1), slope=slope)


@pytest.mark.parametrize("f", [embedding_angle, gradient_angle, gradient_deficit])
@pytest.mark.parametrize(("depth", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_depths_refused(f, depth, error):
    with pytest.raises(error, match="depth must be"):
        f(tensor(0.1), depth)


@pytest.mark.parametrize(("x", "y", "error", "says"), [
    (tensor(1., 0.), tensor(0., 0.), ValueError, "y contains 1 zero vector"),
    (torch.zeros(3, 2), torch.ones(2), ValueError, r"x contains 3 zero .* out of 3"),
    (tensor(1., 0.), tensor(0., math.nan), ValueError, "y contains 1 NaN"),
    (tensor(math.inf, 0.), tensor(0., 1.), ValueError, "x contains infinite"),
    (tensor(1., 0.), tensor(0., 1., 0.), ValueError, r"last dimension.*\(2,\) and \(3,\)"),
    (torch.ones(4, 3), torch.ones(5, 3), ValueError, r"broadcast.*\(4, 3\) and \(5, 3\)"),
    (torch.ones(3, 0), torch.ones(3, 0), ValueError, r"x must hold vectors.*\(3, 0\)"),
    (torch.tensor(1.), torch.tensor(1.), ValueError, "x must hold vectors"),
    (1., 2., ValueError, "x must hold vectors"),
    (torch.ones(3), torch.ones(3).double(), TypeError, "share one dtype"),
    (torch.ones(3), torch.ones(3, device="meta"), TypeError, "on one device"),
    (torch.ones(3).long(), torch.ones(3), TypeError, "x must be float64 or float32"),
    (torch.ones(3), torch.ones(3).half(), TypeError, "y must be float64 or float32"),
    ([1., 0.], torch.ones(2), TypeError, "x must be a torch.Tensor")])
def test_vectors_refused(x, y, error, says):
    with pytest.raises(error, match=says):
        angle_between(x, y)


def test_refusals_reach_through_vmap():
    with pytest.raises(ValueError, match="radians"):
        vmap(angle_map)(tensor(0.1, 4.))
    with pytest.raises(ValueError, match="zero vector"):
        vmap(angle_between)(torch.ones(2, 3), torch.zeros(2, 3))


# ---- the package

def test_signatures_tell_the_shapes():
    def checked(f):
        return jaxtyped(typechecker=beartype)(f)

    theta = torch.rand(2, 3, generator=generator())
    for f in (angle_map, angle_deficit):
        checked(f)(theta, 0.5)
    for f in (embedding_angle, gradient_angle, gradient_deficit):
        checked(f)(theta, 2, 0.5)
    checked(angle_between)(torch.ones(4, 1, 3), torch.ones(5, 3))
    assert set(ntklib.__all__) >= set(ntklib.angles.__all__)


def test_import_is_light():
    code = """import time, sys, torch; start = time.process_time()
import ntklib
heavy = {"sympy", "ntklib.symbolic", "matplotlib", "altair", "ipywidgets"}
print(time.process_time() - start, heavy & set(sys.modules))"""
    seconds, heavy = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert float(seconds) < 0.2                           # more than `import torch`
    assert heavy == "set()"


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_same_digits_on_a_gpu():
    theta = tensor(*GRID)
    for f in FUNCTIONS.values():
        there = f(theta.cuda())
        assert there.is_cuda
        assert torch.allclose(there.cpu(), f(theta), rtol=BOUND, atol=0)
    x, y = randn(20, 1, 6), randn(30, 6, seed=1)
    assert torch.allclose(angle_between(x.cuda(), y.cuda()).cpu(), angle_between(x, y), rtol=1e-15, atol=0)


def test_angles_on_the_meta_device():
    theta = torch.empty(3, device="meta")
    for y in (angle_map(theta), embedding_angle(theta, 3), gradient_angle(theta, 3), gradient_deficit(theta, 3)):
        assert (y.device.type, y.shape) == ("meta", (3,))
