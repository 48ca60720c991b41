"""Hyperspherical coordinates: inverses, derivatives, Theorem 3.7 as it holds, uniform directions."""
import itertools
import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ntklib.sphere import curve_length, from_angles, geodesic, jacobian, metric, to_angles, uniform_angles

PI = math.pi


def randn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def angles_of(n, count=(), seed=0, dtype=torch.float64):
    theta = torch.rand(*count, n - 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * PI
    theta[..., -1] *= 2
    return theta.to(dtype)


def back(w):
    r, theta = to_angles(w)
    return r[..., None] * from_angles(theta)


# ---- there and back ------------------------------------------------------------------------------
@given(st.integers(1, 12), st.integers(0, 2**32), st.data())
@settings(max_examples=150, deadline=None)
def test_round_trip_on_any_signs_zeros_and_magnitudes(n, seed, data):
    signs = torch.tensor(data.draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=n, max_size=n)))
    powers = torch.tensor(data.draw(st.lists(st.sampled_from([-280, -8, 0, 8]), min_size=n, max_size=n)))
    w = signs * randn(n, seed=seed).abs().add(0.1) * 10.0 ** powers.double()
    if not w.any():
        w[seed % n] = -1.0
    r, theta = to_angles(w)
    torch.testing.assert_close(back(w), w, rtol=0, atol=4e-16 * n * float(w.abs().max()))
    assert (theta[:-1] <= PI).all()
    assert (theta >= 0).all()
    assert (theta < 2 * PI).all()
    assert n == 1 or r > 0


@pytest.mark.parametrize("n", [1, 2, 3, 784, 10_000])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 2e-15), (torch.float32, 3e-7)])
def test_round_trip_in_every_dimension(n, dtype, tolerance):
    # float32: each angle is rounded to 2^-24 of itself and u moves by |d theta|_M, at n = 10^4 2.5e-6 in the
    # Euclidean norm; a single coordinate moves far less
    w = randn(3, n, dtype=dtype)
    w[1] = -w[1].abs()
    torch.testing.assert_close(back(w), w, rtol=0, atol=tolerance * float(w.norm(dim=-1).max()))
    assert back(w).dtype == dtype


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_round_trip_at_every_corner_of_the_cube_with_zeros(n):
    w = torch.tensor([p for p in itertools.product([-1.0, -0.0, 0.0, 1.0], repeat=n) if any(p)]).double()
    torch.testing.assert_close(back(w), w, rtol=0, atol=1e-15)


def test_angles_by_hand_and_against_50_digits():
    w = torch.tensor([-1.0, 2.0, 0.5, -3.0], dtype=torch.float64)
    r, theta = to_angles(w)
    with mpmath.workdps(50):
        expected = [mpmath.atan2(mpmath.norm(w[i + 1:].tolist()), w[i].item()) for i in range(2)]
        expected.append(mpmath.atan2(-3, 0.5) + 2 * mpmath.pi)
        assert theta.tolist() == pytest.approx([float(t) for t in expected], rel=4e-16)
        u = from_angles(theta)
        sines = [mpmath.sin(t) for t in theta.tolist()]
        assert u[3].item() == pytest.approx(float(mpmath.fprod(sines)), rel=1e-15)
    assert r.item() == pytest.approx(math.sqrt(14.25), rel=1e-16)


def test_a_tiny_tail_keeps_its_relative_accuracy():
    w = torch.tensor([1.0, 3e-11, -2e-12, 5e-13], dtype=torch.float64)
    torch.testing.assert_close(back(w), w, rtol=1e-14, atol=0)


def test_the_last_angle_never_reaches_a_full_turn():
    for dtype in (torch.float64, torch.float32):
        w = torch.tensor([1.0, -1e-20], dtype=dtype)
        assert to_angles(w)[1].item() == 0
    w = torch.tensor([-1.0, -0.0], dtype=torch.float64)
    assert to_angles(w)[1].item() == PI


def test_on_the_line_the_radius_carries_the_sign():
    w = torch.tensor([[2.0], [-3.0]])
    r, theta = to_angles(w)
    assert torch.equal(r, torch.tensor([2.0, -3.0]))
    assert theta.shape == (2, 0)
    assert torch.equal(from_angles(theta), torch.ones(2, 1))
    assert metric(theta).shape == (2, 0)
    assert jacobian(theta).shape == (2, 1, 0)


def test_float32_at_ten_thousand_dimensions():
    generator = torch.Generator().manual_seed(1)
    theta = uniform_angles(2, 10_000, generator=generator, dtype=torch.float32)
    u = from_angles(theta)
    assert (u.double() - from_angles(theta.double())).norm(dim=-1).max() < 1e-7      # target 1e-6
    assert (u != 0).all()                            # a uniform direction does not underflow
    assert abs(u.double().norm(dim=-1) - 1).max() < 1e-7


# ---- derivatives ---------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [2, 3, 7])
def test_jacobian_is_autograds(n):
    theta = angles_of(n)
    torch.testing.assert_close(jacobian(theta), torch.func.jacrev(from_angles)(theta), rtol=1e-13, atol=1e-15)


def test_jacobian_is_autograds_in_784_dimensions():
    theta, g = angles_of(784), randn(784)
    _, pull = torch.func.vjp(from_angles, theta)
    torch.testing.assert_close(g @ jacobian(theta), pull(g)[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("theta", [[0.0, 0.0, 0.0], [PI, 0.3, 0.0], [0.7, 0.0, PI], [0.4, 1.0, 0.0]])
def test_derivatives_at_the_poles(theta):
    theta = torch.tensor(theta, dtype=torch.float64)
    J = jacobian(theta)
    step = 1e-6 * torch.eye(3, dtype=torch.float64)
    differences = torch.stack([(from_angles(theta + e) - from_angles(theta - e)) / 2e-6 for e in step], -1)
    torch.testing.assert_close(J, differences, rtol=0, atol=1e-9)
    torch.testing.assert_close(torch.func.jacrev(from_angles)(theta), J, rtol=0, atol=1e-15)
    torch.testing.assert_close(J.T @ J, metric(theta).diag(), rtol=0, atol=1e-15)


def test_gradcheck_and_a_batch():
    theta = angles_of(5, (2, 3)).requires_grad_()
    assert torch.autograd.gradcheck(from_angles, theta)
    assert torch.autograd.gradcheck(lambda w: to_angles(w)[1], randn(2, 4).requires_grad_())
    assert torch.autograd.gradcheck(lambda w: to_angles(w)[0], randn(2, 4).requires_grad_())
    for f in (from_angles, metric, jacobian):
        torch.testing.assert_close(f(theta)[1, 2], f(theta[1, 2]), rtol=1e-15, atol=0)


@given(st.integers(2, 9), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_metric_is_diagonal_and_its_entries_are_squared_tails(n, seed):
    theta = angles_of(n, seed=seed)
    J, u = jacobian(theta), from_angles(theta)
    torch.testing.assert_close(J.T @ J, metric(theta).diag(), rtol=0, atol=1e-14)
    torch.testing.assert_close(metric(theta), u.square().flip(0).cumsum(0).flip(0)[:-1], rtol=0, atol=1e-14)


# ---- lengths: Theorem 3.7 as it holds ------------------------------------------------------------
@given(st.integers(2, 11), st.integers(0, 2**32), st.floats(-3, 1))
@settings(max_examples=60, deadline=None)
def test_angle_turned_at_most_curve_length_at_most_step(n, seed, size):
    theta, eps = angles_of(n, seed=seed), 10**size * randn(n - 1, seed=seed + 1)
    turned = geodesic(from_angles(theta), from_angles(theta + eps))
    length = curve_length(theta, eps)
    assert turned <= length * (1 + 1e-9)
    assert length <= eps.norm() * (1 + 1e-9)


def test_the_equality_printed_in_theorem_3_7_fails_on_both_sides():
    """angle = |eps|_M holds to first order only: the angle can be above and below."""
    cases = ([PI / 4, 0], [0, PI], 1.5708, 2.2214), ([0.1, 0], [1, 1], 1.0479, 1.0050)
    for theta, eps, angle, norm in cases:
        theta, eps = torch.tensor(theta).double(), torch.tensor(eps).double()
        assert geodesic(from_angles(theta), from_angles(theta + eps)).item() == pytest.approx(angle, abs=5e-5)
        assert (metric(theta) * eps**2).sum().sqrt().item() == pytest.approx(norm, abs=5e-5)


def test_equality_along_the_first_angle_and_first_order_elsewhere():
    theta = angles_of(6)
    eps = torch.zeros(5, dtype=torch.float64)
    eps[0] = 0.1
    assert geodesic(from_angles(theta), from_angles(theta + eps)).item() == pytest.approx(0.1, rel=1e-13)
    eps = randn(5)
    norm = (metric(theta) * eps**2).sum().sqrt()
    u = from_angles(theta)
    errors = [abs(geodesic(u, from_angles(theta + h * eps)) - h * norm) for h in (1e-3, 1e-4)]
    assert errors[1] < errors[0] / 50                # O(|eps|^2)


def test_curve_length_against_adaptive_quadrature_and_its_error():
    theta, eps = torch.tensor([0.1, 0.0]).double(), torch.tensor([1.0, 1.0]).double()
    with mpmath.workdps(30):
        expected = mpmath.quad(lambda t: mpmath.sqrt(1 + mpmath.sin(0.1 + t) ** 2), [0, 1])
    length, error = curve_length(theta, eps, with_error=True)
    # theta = 0.1 was rounded to float32 above, hence 1e-8
    assert length.item() == pytest.approx(float(expected), rel=1e-8)
    assert error <= 1e-10 * length
    circle = torch.tensor([PI / 2, 0.0]).double(), torch.tensor([0.0, 2 * PI]).double()
    assert curve_length(*circle).item() == pytest.approx(2 * PI, rel=1e-7)       # a closed curve, distance 0
    assert curve_length(theta, 0 * eps).item() == 0
    batch = curve_length(angles_of(4, (5,)).float(), randn(5, 3).float())
    assert batch.shape == (5,)
    assert batch.dtype == torch.float32
    assert torch.autograd.gradcheck(lambda e: curve_length(angles_of(4), e), randn(3).requires_grad_())


def test_curve_length_of_many_turns_and_its_refusal():
    theta, eps = torch.tensor([0.3, 0.2]).double(), torch.tensor([40.0, 1000.0]).double()
    midpoints = (torch.arange(10**6, dtype=torch.float64) + 0.5) / 10**6
    expected = (1600 + ((0.3 + 40 * midpoints).sin() * 1000) ** 2).sqrt().mean()
    assert curve_length(theta, eps).item() == pytest.approx(expected.item(), rel=1e-7)
    with pytest.raises(RuntimeError, match="split eps"):
        curve_length(theta, torch.linspace(3e3, 4e3, 20).double()[:, None].expand(20, 2), rtol=1e-18)    # 20: one may agree by luck


def test_geodesic():
    u = randn(4, 6)
    torch.testing.assert_close(geodesic(u, 3 * u), torch.zeros(4).double())
    assert geodesic(u[0], -u[0]).item() == pytest.approx(PI)
    near = torch.tensor([1.0, 1e-9], dtype=torch.float64)
    assert geodesic(near, torch.tensor([1.0, 0.0]).double()).item() == pytest.approx(1e-9, rel=1e-14)


# ---- the law of uniform directions ---------------------------------------------------------------
def p_value(cdf, bins: int) -> float:
    """Chi-square test of uniformity on [0, 1]."""
    expected = len(cdf) / bins
    chi_square = ((torch.histc(cdf.float(), bins, 0, 1) - expected) ** 2 / expected).sum().item()
    return float(mpmath.gammainc((bins - 1) / 2, chi_square / 2, mpmath.inf, regularized=True))


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_uniform_angles_follow_their_law(dim):
    """Chi-square of each angle in 16 bins of equal probability."""
    count, bins = 40_000, 16
    theta = uniform_angles(count, dim, generator=torch.Generator().manual_seed(7))
    for i in range(1, dim):
        if i == dim - 1:
            cdf = theta[:, -1] / (2 * PI)
        else:
            grid = torch.linspace(0, PI, 20_001, dtype=torch.float64)
            mass = torch.cumulative_trapezoid(grid.sin() ** (dim - 1 - i), grid)
            place = torch.searchsorted(grid, theta[:, i - 1].contiguous()).clamp(1, 20_000) - 1
            cdf = (mass / mass[-1])[place]
        assert p_value(cdf, bins) > 1e-4
        assert p_value(0.01 + 0.98 * cdf, bins) < 1e-4       # the test sees a law that is off by a hundredth


def test_uniform_directions_have_equal_second_moments_and_independent_angles():
    theta = uniform_angles(40_000, 5, generator=torch.Generator().manual_seed(3))
    u = from_angles(theta)
    deviation = math.sqrt(2 * 0.8 / (25 * 7))            # of u_i^2, a Beta(1/2, 2) variable
    assert (u.square().mean(0) - 0.2).abs().max() < 5 * deviation / math.sqrt(40_000)
    assert (torch.corrcoef(theta.T) - torch.eye(4)).abs().max() < 5 / math.sqrt(40_000)
    M = metric(theta).mean(0)
    torch.testing.assert_close(M, torch.tensor([1, 0.8, 0.6, 0.4]).double(), rtol=0, atol=0.01)


def test_uniform_angles_are_reproducible_and_typed():
    draw = [uniform_angles(4, 3, generator=torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(*draw)
    assert uniform_angles(0, 3, generator=torch.Generator()).shape == (0, 2)
    assert uniform_angles(2, 3, generator=torch.Generator(), dtype=torch.float32).dtype == torch.float32
    with pytest.raises(ValueError, match="dim must be at least 2"):
        uniform_angles(4, 1, generator=torch.Generator())


# ---- arguments -----------------------------------------------------------------------------------
def test_the_official_code_loses_the_sign_of_the_last_coordinate_and_we_do_not():
    """cartesian_to_hyperspherical of the published code returns sqrt(w_n^2) for w_n."""
    w = torch.tensor([[0.6, -0.8], [-0.6, -0.8]], dtype=torch.float64)
    torch.testing.assert_close(back(w), w)
    assert (to_angles(w)[1] > PI).all()


def test_the_port_edits_its_input_and_we_do_not():
    w = randn(5, 4)
    before = w.clone()
    theta = to_angles(w)[1]
    kept = theta.clone()
    from_angles(theta), metric(theta), jacobian(theta), curve_length(theta, theta)
    assert torch.equal(w, before)
    assert torch.equal(theta, kept)


def test_non_contiguous_input_and_large_batches():
    w = randn(4, 6).T
    torch.testing.assert_close(to_angles(w)[1], to_angles(w.contiguous())[1])
    assert from_angles(torch.empty(0, 3)).shape == (0, 4)
    assert to_angles(torch.empty(0, 3))[1].shape == (0, 2)
    meta = torch.empty(2, 5, device="meta")
    assert to_angles(meta)[1].shape == (2, 4)
    assert from_angles(meta).shape == (2, 6)


@pytest.mark.parametrize(("bad", "error", "match"), [
    (torch.zeros(3), ValueError, "zero and have no direction"),
    (torch.tensor([[1.0, 2.0], [0.0, 0.0]]), ValueError, "1 of the 2 vectors"),
    (torch.tensor([1.0, math.nan]), ValueError, "NaN"),
    (torch.tensor([1.0, math.inf]), ValueError, "infinite"),
    (torch.empty(2, 0), ValueError, "n >= 1"),
    (torch.tensor(1.0), ValueError, "n >= 1"),
    (torch.tensor([1, 2]), TypeError, "float64 or float32"),
    (torch.ones(3, dtype=torch.float16), TypeError, "float64 or float32"),
    ([1.0, 2.0], TypeError, "torch.Tensor"),
])
def test_vectors_refused_by_name(bad, error, match):
    with pytest.raises(error, match=match) as caught:
        to_angles(bad)
    assert "w" in str(caught.value)


@pytest.mark.parametrize(("bad", "error", "match"), [
    (torch.tensor([math.nan]), ValueError, "theta contains 1 NaN"),
    (torch.tensor([math.inf]), ValueError, "theta contains infinite"),
    (torch.tensor(0.5), ValueError, "theta must have shape"),
    (torch.tensor([1]), TypeError, "theta must be float64"),
])
def test_angles_refused_by_name(bad, error, match):
    for f in (from_angles, metric, jacobian):
        with pytest.raises(error, match=match):
            f(bad)


def test_curve_length_refuses_mismatched_arguments():
    theta = angles_of(4)
    with pytest.raises(ValueError, match="each of 3 angles, got 2"):
        curve_length(theta, theta[:2])
    with pytest.raises(TypeError, match="one dtype"):
        curve_length(theta, theta.float())


def test_refused_steps_and_generators():
    theta = torch.rand(3, 2)
    with pytest.raises(ValueError, match=r"broadcast.*got \(3, 2\) and \(4, 2\)"):
        curve_length(theta, torch.rand(4, 2))
    with pytest.raises(ValueError, match=r"1e\+30 radians: split"):
        curve_length(theta, torch.full((3, 2), 1e30))
    for options in ({"generator": None}, {"generator": torch.Generator(), "dtype": torch.int64}):
        with pytest.raises(TypeError, match="float64 or float32"):
            uniform_angles(2, 3, **options)
