"""Boundaries of units in five parametrizations, where perturbations take them, and claims E4 to E6."""
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from ntklib.boundaries import Boundary, breakpoints, layer_norm_cone, of, perturb, rotation_bound
from ntklib.gmp import GmPConv2d, GmPLinear, from_module, geometric
from ntklib.sphere import geodesic, to_angles

f64 = torch.float64


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=f64, generator=generator(seed))


def randomised(module, seed=0):
    module = module.double()
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(randn(*p.shape, seed=seed + k))
    return module


def batch_norm(n=4, m=6):
    net = randomised(nn.Sequential(nn.Linear(n, m), nn.BatchNorm1d(m)))
    for _ in range(20):
        net(3 * randn(50, n, seed=9) + 1)
    return net.eval()


def layer_norm(n=4, m=6, shift=True):
    net = randomised(nn.Sequential(nn.Linear(n, m), nn.LayerNorm(m)))
    nn.init.constant_(net[1].bias, 0.4 * shift)
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([-1.3, 0.7]).repeat(3))
    return net


LAYERS = {
    "SP": (lambda: randomised(nn.Linear(4, 6)), lambda layer, x: layer(x)),
    "WN": (lambda: randomised(weight_norm(nn.Linear(4, 6))), lambda layer, x: layer(x)),
    "BN": (batch_norm, lambda layer, x: layer(x)),
    "LN": (lambda: layer_norm(shift=False), lambda layer, x: layer(x)),
    "GmP": (lambda: GmPLinear(4, 6, dtype=f64), lambda layer, x: x @ layer.direction().T + layer.lam),
    "geometric": (lambda: geometric(randomised(nn.Linear(4, 6))), lambda layer, x: layer(x)),
}


# ---- the object ----------------------------------------------------------------------------------
@given(st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_location_is_the_nearest_point_to_the_origin(n, seed):
    b = Boundary(randn(3, n, seed=seed), randn(3, seed=seed + 1))
    torch.testing.assert_close((b.normal * b.location).sum(-1), -b.offset, rtol=1e-12, atol=1e-12)
    points = b.points(5, generator=generator(seed))
    at = (points * b.normal[:, None]).sum(-1)
    torch.testing.assert_close(at, -b.offset[:, None].expand(3, 5), rtol=0, atol=1e-10)
    assert (points.norm(dim=-1) >= b.location.norm(dim=-1)[:, None] * (1 - 1e-12)).all()
    squares = b.normal.square().sum(-1, keepdim=True)
    torch.testing.assert_close(b.location, -b.offset[:, None] * b.normal / squares)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_hyperspherical_form_is_the_same_set(n):
    b = Boundary(randn(5, n), randn(5, seed=1))
    twin = Boundary.from_angles(b.angles, b.lam)
    x = randn(10, n, seed=2)
    torch.testing.assert_close(twin.location, b.location)
    torch.testing.assert_close(twin.distance(x), b.distance(x))
    torch.testing.assert_close(b.direction, twin.normal)


def test_distance_by_minimisation():
    b, x = Boundary(randn(2), randn(1)[0]), randn(2, seed=3)
    along = b.points(400_001, radius=20.0)
    assert (along - x).norm(dim=1).min().item() == pytest.approx(abs(b.distance(x).item()), rel=1e-6)
    layer = Boundary(randn(4, 3), randn(4))
    assert layer.distance(randn(2, 5, 3)).shape == (2, 5, 4)
    torch.testing.assert_close(layer[2].distance(randn(5, 3)), layer.distance(randn(5, 3))[:, 2])


def test_points_on_a_line_are_even_and_elsewhere_drawn():
    b = Boundary(torch.tensor([0.0, 2.0], dtype=f64), torch.tensor(-6.0, dtype=f64))
    torch.testing.assert_close(b.points(3, radius=2), torch.tensor([[2.0, 3], [0, 3], [-2, 3]], dtype=f64))
    line = Boundary(torch.tensor([[2.0]]), torch.tensor([3.0]))
    assert torch.equal(line.points(2), torch.full((1, 2, 1), -1.5))
    b = Boundary(randn(4), randn(1)[0])
    spread = (b.points(20_000, radius=3, generator=generator()) - b.location).square().sum(-1).mean()
    assert spread.item() == pytest.approx(9 * 3, rel=0.03)                # three free dimensions
    with pytest.raises(TypeError, match="generator"):
        b.points(3)


# ---- read off a layer ----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", LAYERS)
def test_a_unit_switches_on_its_boundary_and_is_on_where_the_distance_is_positive(kind):
    make, pre = LAYERS[kind]
    layer, x = make(), randn(200, 4)
    for at in (0.0, 0.7) if kind != "LN" else (0.0,):
        b = of(layer, at=at)
        points = b.points(20, radius=3, generator=generator())
        z = pre(layer, points.flatten(0, 1)).view(6, 20, 6).diagonal(dim1=0, dim2=2)
        torch.testing.assert_close(z, torch.full_like(z, at), rtol=0, atol=1e-9)
        assert torch.equal(b.distance(x) > 0, pre(layer, x) > at)
        assert not b.normal.requires_grad


def test_a_boundary_is_a_snapshot():
    for make, _ in LAYERS.values():
        layer = make()
        b = of(layer)
        kept = b.normal.clone()
        with torch.no_grad():
            for p in layer.parameters():
                p.add_(1.0)
        assert torch.equal(b.normal, kept)


def test_conversion_to_gmp_keeps_the_boundaries():
    layer = randomised(nn.Linear(5, 4))
    torch.testing.assert_close(of(from_module(layer)).location, of(layer).location)
    conv = randomised(nn.Conv2d(2, 3, 2))
    b = of(from_module(conv))
    assert isinstance(from_module(conv), GmPConv2d)
    assert b.normal.shape == (3, 8)
    torch.testing.assert_close(b.location, of(conv).location)


def test_batch_statistics():
    net, X = batch_norm(), randn(30, 4, seed=4)
    with pytest.raises(ValueError, match="batch"):
        of(net.train())
    b = of(net, batch=X)
    z = net(X)
    torch.testing.assert_close((b.distance(X) > 0), z > 0)
    w, sign = net[0].weight.detach(), net[1].weight.sign().detach()
    torch.testing.assert_close(b.direction, sign[:, None] * w / w.norm(dim=1, keepdim=True))


def test_breakpoints_are_where_the_second_difference_is():
    for activation in (nn.ReLU(), nn.LeakyReLU(0.2), nn.PReLU(), nn.ELU(0.5), nn.Hardtanh(-2, 0.5),
                       nn.ReLU6(), nn.Hardsigmoid(), nn.Hardshrink(0.4), nn.Softshrink(0.3),
                       nn.Threshold(0.1, 5)):
        x = torch.arange(-4000, 7001, dtype=f64) / 1000
        z = activation.double()(x).detach()
        jumps = (z[2:] - 2 * z[1:-1] + z[:-2]).abs() > 1.1e-4
        found = sorted({round(t, 2) for t in x[1:-1][jumps].tolist()})
        assert found == pytest.approx(list(breakpoints(activation)), abs=2e-3)
    assert breakpoints("relu") == breakpoints("elu") == (0.0,)
    assert breakpoints(("srelu", -1, 2)) == (-1.0, 2.0)
    for smooth in (nn.Tanh(), "gelu", torch.sin):
        with pytest.raises(ValueError, match="smooth"):
            breakpoints(smooth)


# ---- moved ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", LAYERS)
def test_perturb_moves_a_copy_by_just_eps(kind):
    layer = LAYERS[kind][0]()
    before = [p.detach().clone() for p in layer.parameters()]
    count = sum(p.numel() for p in before)
    moved = perturb(layer, 0.25)
    for p, q in zip(before, moved.parameters(), strict=True):
        torch.testing.assert_close(q.detach(), p + 0.25)
    flat = randn(count)
    moved = torch.cat([q.detach().flatten() for q in perturb(layer, flat).parameters()])
    torch.testing.assert_close(moved, torch.cat([p.flatten() for p in before]) + flat)
    name = next(iter(dict(layer.named_parameters())))
    moved = perturb(layer, {name: 1.0})
    old, new = dict(layer.named_parameters()), dict(moved.named_parameters())
    assert [k for k in old if not torch.equal(old[k], new[k])] == [name]
    for p, q in zip(before, layer.parameters(), strict=True):
        assert torch.equal(p, q)


@given(st.integers(1, 8), st.integers(0, 2**32), st.floats(-2, 0.5))
@settings(max_examples=60, deadline=None)
def test_weights_obey_their_own_bound_and_reach_it(n, seed, size):
    w, eps = randn(20, n, seed=seed), 10**size * randn(20, n, seed=seed + 1)
    turned = geodesic(w, w + eps)
    assert (turned <= rotation_bound(w, eps) + 1e-12).all()
    if n > 1:
        # the worst step is at a right angle to w + eps
        across = eps - (eps * w).sum(-1, keepdim=True) / w.square().sum(-1, keepdim=True) * w
        length = eps.norm(dim=-1, keepdim=True).minimum(0.9 * w.norm(dim=-1, keepdim=True))
        sine = length / w.norm(dim=-1, keepdim=True)
        worst = length * (across / across.norm(dim=-1, keepdim=True) * (1 - sine**2).sqrt()
                          - w / w.norm(dim=-1, keepdim=True) * sine)
        torch.testing.assert_close(geodesic(w, w + worst), rotation_bound(w, worst), rtol=1e-9, atol=0)
    assert rotation_bound(w, 2 * w).eq(math.pi).all()


@given(st.integers(2, 12), st.integers(0, 2**32), st.floats(-3, 1))
@settings(max_examples=40, deadline=None)
def test_gmp_turns_by_at_most_eps_and_its_location_moves_by_at_most_the_bound(n, seed, size):
    layer = GmPLinear(n, 5, generator=generator(seed), dtype=f64)
    eps = 10**size * randn(5, n - 1, seed=seed + 1)
    with torch.no_grad():
        layer.lam.copy_(randn(5, seed=seed + 2))
    step = 0.1 * randn(5, seed=seed + 3)
    before, after = of(layer), of(perturb(layer, {"latitude": eps, "lam": step}))
    assert (geodesic(before.normal, after.normal) <= eps.norm(dim=1) * (1 + 1e-9) + 1e-14).all()
    moved = (after.location - before.location).norm(dim=1)                # |d phi| <= |d lam| + |lam| |eps|
    assert (moved <= step.abs() + before.lam.abs() * eps.norm(dim=1) + 1e-12).all()


def test_small_weights_jump_and_gmp_does_not():
    """The paper's figure 1: weights of size 1e-3, every parameter moved by delta."""
    sp = nn.Linear(2, 200, dtype=f64)
    with torch.no_grad():
        sp.weight.copy_(1e-3 * randn(200, 2))
        sp.bias.copy_(1e-3 * randn(200, seed=1))
    wn, gmp = weight_norm(from_weights(sp)), from_module(sp)
    for delta in (1e-4, 1e-3, 1e-2, 1e-1):
        turned = {kind: geodesic(of(layer).normal, of(perturb(layer, delta)).normal)
                  for kind, layer in (("SP", sp), ("WN", wn), ("GmP", gmp))}
        assert turned["GmP"].max() <= delta * (1 + 1e-9)
        for kind in ("SP", "WN"):
            assert turned[kind].max() > 20 * delta
            bound = rotation_bound(sp.weight.detach(), torch.full((200, 2), delta, dtype=f64))
            assert (turned[kind] <= bound + 1e-12).all()


def from_weights(module):
    twin = nn.Linear(module.in_features, module.out_features, dtype=f64)
    twin.load_state_dict(module.state_dict())
    return twin


def test_claim_e5_a_random_step_beyond_90_degrees_is_no_instability():
    """Half of all steps point more than 90 degrees away from w; at |eps| = |w|/10 they turn it by 5.7."""
    w = randn(1000, 1000)
    eps = randn(1000, 1000, seed=1)
    eps *= 0.1 * w.norm(dim=1, keepdim=True) / eps.norm(dim=1, keepdim=True)
    assert ((w * eps).sum(1) < 0).double().mean().item() == pytest.approx(0.5, abs=0.08)
    assert geodesic(w, w + eps).mean().rad2deg().item() == pytest.approx(5.7, abs=0.05)


def test_claim_e6_the_bound_grows_with_the_square_root_of_the_dimension():
    """When Adam moves every angle by eta, a unit turns by about eta sqrt(n/2)."""
    for n, eta, expected in ((1152, 0.1, 1.40), (28, 0.1, 0.37)):
        layer = GmPLinear(n, 400, generator=generator(), dtype=f64)
        signs = eta * randn(400, n - 1).sign()
        turned = geodesic(of(layer).normal, of(perturb(layer, {"latitude": signs})).normal)
        assert turned.mean().item() == pytest.approx(expected, abs=0.03)


# ---- layer normalisation: claim E4 ---------------------------------------------------------------
def test_the_boundary_behind_layer_norm_is_the_cone():
    net, x = layer_norm(), randn(50, 4)
    cone = layer_norm_cone(net, at=0.2)
    sign = net[1].weight.sign()
    assert torch.equal(sign * cone.value(x) > 0, net(x) > 0.2)
    Q, q, c = cone.quadric()
    a = x @ cone.weight.T + cone.bias
    expected = a**2 - cone.ratio**2 * (a.square().mean(1, keepdim=True) + cone.eps)
    torch.testing.assert_close(torch.einsum("bi,mij,bj->bm", x, Q, x) + 2 * x @ q.T + c, expected)


def boundary_points(net, unit, n, count=60):
    """Zeros of one unit along random lines, by bisection of the network itself."""
    low, high = 3 * randn(count * 30, n, seed=5), 3 * randn(count * 30, n, seed=6)
    crossing = (net(low)[:, unit] > 0) != (net(high)[:, unit] > 0)
    low, high = low[crossing][:count], high[crossing][:count]
    on = net(low)[:, unit] > 0
    for _ in range(60):
        middle = (low + high) / 2
        same = ((net(middle)[:, unit] > 0) == on)[:, None]
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return low


def test_claim_e4_layer_norm_bends_the_boundary_unless_beta_is_zero():
    def flatness(net):
        points = boundary_points(net, 0, 4)
        return torch.linalg.svdvals(torch.cat([points, torch.ones(len(points), 1, dtype=f64)], 1))[-1].item()
    bent, flat = layer_norm(), layer_norm(shift=False)
    assert flatness(bent) > 0.1                                           # no hyperplane fits
    assert flatness(flat) < 1e-9
    with pytest.raises(ValueError, match="6 of 6 units have beta"):
        of(bent)
    normal = of(flat).direction[0]
    centred = flat[0].weight.detach() - flat[0].weight.detach().mean(0)
    torch.testing.assert_close(normal, flat[1].weight[0].sign().detach() * centred[0] / centred[0].norm())


def test_without_a_bias_layer_norm_does_not_see_the_length_of_its_input():
    net = randomised(nn.Sequential(nn.Linear(4, 6, bias=False), nn.LayerNorm(6, eps=0)))
    x = randn(10, 4)
    torch.testing.assert_close(net(x), net(5 * x))
    cone = layer_norm_cone(net)
    torch.testing.assert_close(cone.value(5 * x), 5 * cone.value(x))


# ---- refusals ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda: Boundary(torch.zeros(2, 3), torch.zeros(2)), ValueError, "zero row"),
    (lambda: Boundary(torch.tensor([math.nan]), torch.tensor(0.0)), ValueError, "normal contains 1 NaN"),
    (lambda: Boundary(torch.tensor([1.0]), torch.tensor(math.inf)), ValueError, "offset contains infinite"),
    (lambda: Boundary(torch.ones(2, 3), torch.zeros(3)), ValueError, r"\(2, 3\) and \(3,\)"),
    (lambda: Boundary(torch.ones(2, 3), torch.zeros(2).double()), TypeError, "one dtype"),
    (lambda: Boundary(torch.ones(2, 3).long(), torch.zeros(2)), TypeError, "normal must be float"),
    (lambda: Boundary(torch.ones(3), torch.tensor(0.0)).points(0), ValueError, "count must be at least 1"),
    (lambda: of(nn.Bilinear(2, 2, 2)), TypeError, "no boundaries known for Bilinear"),
    (lambda: of(nn.Sequential(nn.Linear(2, 2), nn.ReLU())), TypeError, "without the activation"),
    (lambda: layer_norm_cone(batch_norm()), TypeError, "got BatchNorm1d"),
    (lambda: perturb(nn.Linear(2, 1), {"wait": 1.0}), ValueError, "there are weight, bias"),
    (lambda: perturb(nn.Linear(2, 1), torch.ones(4)), ValueError, r"shape \(3,\)"),
    (lambda: perturb(nn.Linear(2, 1), {"weight": torch.ones(3)}), ValueError, r"shape \(1, 2\)"),
    (lambda: perturb(nn.Linear(2, 1), math.nan), ValueError, "NaN"),
    (lambda: rotation_bound(torch.zeros(2), torch.zeros(2)), ValueError, "both zero"),
])
def test_refused_by_name(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_constant_unit_has_no_boundary():
    net = batch_norm()
    with torch.no_grad():
        net[1].weight[2] = 0
    with pytest.raises(ValueError, match="gamma = 0"):
        of(net)


def test_angles_of_a_layer_cover_the_circle():
    """Half of them lie in the half plane that the official conversion cannot reach."""
    b = of(nn.Linear(2, 2000))
    assert (b.angles > math.pi).double().mean().item() == pytest.approx(0.5, abs=0.06)
    torch.testing.assert_close(b.angles, to_angles(b.normal)[1])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_a_normal_of_any_length(size):
    b = Boundary(size * torch.tensor([3.0, 4.0], dtype=f64), torch.tensor(-10 * size, dtype=f64))
    assert torch.allclose(b.location, torch.tensor([1.2, 1.6], dtype=f64))
    w, eps = size * torch.tensor([2.0, 0.0], dtype=f64), size * torch.tensor([0.0, 1.0], dtype=f64)
    assert float(rotation_bound(w, eps)) == pytest.approx(math.pi / 6)


def test_a_number_as_offset():
    assert Boundary(torch.eye(2, dtype=f64)[0], 2.0)[()].lam == 2


def test_refused_points():
    b = Boundary(torch.eye(2), torch.ones(2))
    with pytest.raises(ValueError, match=r"x must have shape \(..., 2\), got \(5, 3\)"):
        b.distance(torch.rand(5, 3))
    with pytest.raises(TypeError, match="one dtype"):
        b.distance(torch.rand(5, 2).double())
    for radius in (math.nan, -1.0):
        with pytest.raises(ValueError, match="radius must be a finite number"):
            b.points(3, radius=radius)
    for t in (("srelu", 1.0, -0.5), ("srelu", math.nan, 1.0)):
        with pytest.raises(ValueError, match="not a known piecewise activation"):
            breakpoints(t)
    with pytest.raises(ValueError, match=r"last dimension, got \(3,\) and \(2,\)"):
        rotation_bound(torch.ones(3), torch.ones(2))
    with pytest.raises(ValueError, match="finite"):
        rotation_bound(torch.tensor([math.inf, 0.0]), torch.ones(2))
    with pytest.raises(ValueError, match=r"must have shape \(3, 2\), got \(2, 3\)"):
        perturb(nn.Linear(2, 3), {"weight": torch.ones(2, 3)})
