"""GmP layers: definition, derivatives, the bugs of the published codes, what a torch layer must survive."""
import copy
import io
import math
import pickle

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from ntklib.gmp import (
    GmPConv1d,
    GmPConv2d,
    GmPLinear,
    InputMeanNorm,
    coordinates,
    from_module,
    geometric,
    unit,
)
from ntklib.sphere import from_angles, jacobian, to_angles

PI = math.pi
f64 = torch.float64


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0, dtype=f64):
    return torch.randn(*shape, dtype=f64, generator=generator(seed)).to(dtype)


def linear(n, m, seed=0, dtype=f64):
    """A GmPLinear none of whose numbers is special; about half of the radii are negative."""
    layer = GmPLinear(n, m, generator=generator(seed), dtype=dtype)
    with torch.no_grad():
        layer.r.copy_(randn(m, seed=seed + 1))
        layer.lam.copy_(randn(m, seed=seed + 2))
    return layer


# ---- u(theta) ------------------------------------------------------------------------------------
@given(st.integers(2, 9), st.integers(0, 2**32), st.sampled_from([1.0, 10.0]))
@settings(max_examples=40, deadline=None)
def test_unit_is_from_angles(n, seed, spread):
    theta = spread * randn(3, n - 1, seed=seed)
    torch.testing.assert_close(unit(PI / 2 - theta), from_angles(theta), rtol=0, atol=1e-14)


def test_unit_in_blocks_is_unit_one_by_one():
    latitude, g = randn(150, 999) / 10, randn(150, 1000)                  # three blocks of 65 rows
    whole = latitude.clone().requires_grad_()
    (unit(whole) * g).sum().backward()
    for i in (0, 64, 65, 149):
        row = latitude[i:i + 1].clone().requires_grad_()
        u = unit(row)
        (u * g[i]).sum().backward()
        torch.testing.assert_close(unit(latitude)[i], u[0].detach(), rtol=0, atol=0)
        torch.testing.assert_close(whole.grad[i], row.grad[0], rtol=0, atol=0)


def test_unit_differentiated_in_every_way():
    latitude = randn(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(unit, latitude, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(unit, latitude)
    J = torch.func.jacrev(unit)(latitude)
    torch.testing.assert_close(torch.func.jacfwd(unit)(latitude), J)
    for i in range(3):
        torch.testing.assert_close(J[i, :, i], -jacobian(PI / 2 - latitude[i]))      # d theta = -d latitude
    many = randn(5, 3, 4, seed=1)
    torch.testing.assert_close(torch.vmap(unit)(many), torch.stack([unit(x) for x in many]))
    grad = torch.func.grad(lambda x: unit(x).square()[:, 1].sum())
    torch.testing.assert_close(torch.vmap(grad)(many), torch.stack([grad(x) for x in many]))
    hessian = torch.func.hessian(lambda x: unit(x)[:, -1].sum())(latitude[:1].detach())
    assert hessian.isfinite().all()


@pytest.mark.parametrize("theta", [[0.0, 0.0, 0.0], [PI, 0.3, 0.0], [0.7, 0.0, PI], [0.4, 1e-9, 0.0]])
def test_gradient_at_the_poles(theta):
    theta = torch.tensor([theta], dtype=f64)
    J = torch.func.jacrev(unit)(PI / 2 - theta)[0, :, 0]
    torch.testing.assert_close(J, -jacobian(theta[0]), rtol=0, atol=1e-14)
    single = torch.func.jacrev(unit)((PI / 2 - theta).float())[0, :, 0]
    torch.testing.assert_close(single, J.float(), rtol=0, atol=3e-7)


def test_gradient_is_finite_where_the_product_underflows():
    latitude = torch.full((2, 400), 1.5).requires_grad_()                 # cos = 0.07, to the power 400
    u = unit(latitude)
    (g,) = torch.autograd.grad(u.sum(), latitude)
    assert u[0, -1] == 0
    assert g.isfinite().all()
    wide = latitude.detach().double().requires_grad_()
    torch.testing.assert_close(g, torch.autograd.grad(unit(wide).sum(), wide)[0].float())


@pytest.mark.parametrize("dtype", [torch.float32, f64])
def test_tangent_and_cosine_never_vanish_or_blow_up(dtype):
    """The neighbours of every odd multiple of pi/2 up to a hundred turns: the gradient relies on it."""
    at = ((2 * torch.arange(-100, 100, dtype=f64) + 1) * PI / 2).to(dtype)
    for _ in range(5):
        assert (at.double().cos() != 0).all()
        assert at.tan().isfinite().all()
        at = torch.nextafter(at, torch.full_like(at, torch.inf))


def test_float32_error_in_ten_thousand_dimensions():
    weight = randn(3, 10_000, dtype=torch.float32)
    layer, exact = from_module(_linear_with(weight, torch.zeros(3))), weight.double()
    error = layer.direction().double() - exact / exact.norm(dim=1, keepdim=True)
    assert error.norm(dim=1).max() < 1e-7            # target 1e-6; angles stored near pi/2 give 2.5e-6
    g = randn(3, 10_000, seed=1)
    _, pull = torch.func.vjp(unit, layer.latitude.detach())
    _, exact = torch.func.vjp(unit, layer.latitude.detach().double())
    error = (pull(g.float())[0].double() - exact(g)[0]).norm() / exact(g)[0].norm()
    assert error < 3e-7


# ---- the definition ------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 784])
@pytest.mark.parametrize(("dtype", "tolerance"), [(f64, 1e-13), (torch.float32, 1e-4)])
def test_layer_is_its_definition_also_for_negative_radii(n, dtype, tolerance):
    layer, x = linear(n, 6, dtype=dtype), randn(2, 5, n, dtype=dtype)
    assert (layer.r < 0).any()
    u = layer.sign if n == 1 else from_angles(layer.theta)
    expected = torch.zeros(2, 5, 6, dtype=dtype)
    for i in range(6):
        expected[..., i] = layer.r[i] * (x @ u[i] + layer.lam[i]).clamp(min=0)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=tolerance)
    assert layer(x).dtype == dtype


def test_layer_gradients_and_other_activations():
    layer, x = linear(3, 4), randn(5, 3)
    names = [name for name, _ in layer.named_parameters()]
    assert names == ["r", "lam", "latitude"]

    def call(*parameters):
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))
    assert torch.autograd.gradcheck(call, tuple(p.detach().requires_grad_() for p in layer.parameters()))
    shrink = GmPLinear(3, 4, activation=nn.Hardtanh(), dtype=f64)
    pre = x @ shrink.direction().T + shrink.lam
    torch.testing.assert_close(shrink(x), shrink.r * pre.clamp(-1, 1))


def test_theta_can_be_read_and_set():
    layer = linear(5, 3)
    theta = randn(3, 4).abs()
    layer.theta = theta
    torch.testing.assert_close(layer.theta, theta)
    torch.testing.assert_close(layer.direction(), from_angles(theta))


@pytest.mark.parametrize(("groups", "stride", "padding", "dilation"),
                         [(1, 1, 0, 1), (2, 2, 1, 1), (1, (2, 1), 2, 2)])
def test_conv2d_is_a_linear_layer_on_flattened_patches(groups, stride, padding, dilation):
    layer = GmPConv2d(4, 6, (3, 2), stride, padding, dilation, groups, dtype=f64, generator=generator())
    with torch.no_grad():
        layer.r.copy_(randn(6))
        layer.lam.copy_(randn(6, seed=1))
    x = randn(2, 4, 9, 8)
    patches = torch.nn.functional.unfold(x, (3, 2), dilation, padding, stride)      # (2, 4 * 6, places)
    patches = patches.view(2, groups, 4 // groups * 6, -1)
    u = layer.direction().view(groups, 6 // groups, -1)
    z = torch.einsum("gon,bgnp->bgop", u, patches).reshape(2, 6, -1)
    expected = layer.r[:, None] * torch.relu(z + layer.lam[:, None])
    torch.testing.assert_close(layer(x).flatten(2), expected)


def test_conv1d_is_a_linear_layer_on_windows_and_takes_single_images():
    layer, x = GmPConv1d(2, 3, 4, dtype=f64), randn(5, 2, 7)
    windows = x.unfold(2, 4, 1).permute(0, 2, 1, 3).flatten(2)
    expected = layer.r * torch.relu(windows @ layer.direction().T + layer.lam)
    torch.testing.assert_close(layer(x), expected.mT)
    torch.testing.assert_close(layer(x[0]), layer(x)[0])


# ---- where the units start -----------------------------------------------------------------------
def p_value(uniform, bins=12):
    expected = len(uniform) / bins
    chi_square = ((torch.histc(uniform.float(), bins, 0, 1) - expected) ** 2 / expected).sum().item()
    return float(mpmath.gammainc((bins - 1) / 2, chi_square / 2, mpmath.inf, regularized=True))


def test_first_directions_are_uniform_on_the_sphere():
    circle = GmPLinear(2, 30_000, generator=generator(1)).theta.detach()[:, 0]
    assert p_value(circle.remainder(2 * PI) / (2 * PI)) > 1e-3
    sphere = GmPLinear(3, 30_000, generator=generator(2)).direction().detach()     # Archimedes: uniform
    for i in range(3):
        assert p_value((sphere[:, i] + 1) / 2) > 1e-3
    line = GmPLinear(1, 1000, generator=generator(3)).direction()
    assert abs(line.mean()) < 5 / math.sqrt(1000)
    assert set(line.flatten().tolist()) == {-1.0, 1.0}


def test_start_keeps_the_second_moment_and_follows_the_generator():
    x = randn(1, 50)
    z = GmPLinear(50, 100_000, generator=generator(), dtype=f64)(x)
    assert z.square().mean().item() == pytest.approx(x.square().mean().item(), rel=0.03)
    first, second = (GmPLinear(9, 4, generator=generator(5)).latitude for _ in range(2))
    assert torch.equal(first, second)


# ---- the bugs of the two published codes ---------------------------------------------------------
def test_official_bug_sign_of_the_last_coordinate_lost():
    """cartesian_to_hyperspherical takes the root of a squared tail: half of the weights are mirrored."""
    w = randn(2000, 10)
    tails = w.square().flip(1).cumsum(1).flip(1).sqrt()
    theirs = torch.atan2(tails[:, 1:], w[:, :-1])                     # the last entry is |w_n|
    mirrored = (tails[:, :1] * from_angles(theirs) - w).abs().amax(1) > 1e-9
    assert abs(mirrored.double().mean() - 0.5) < 0.06
    layer = from_module(_linear_with(w, torch.zeros(2000, dtype=f64)))
    torch.testing.assert_close(layer.r[:, None] * layer.direction(), w, rtol=0, atol=1e-13)


def test_official_bug_starts_from_a_cube_and_not_from_a_sphere():
    """Glorot-uniform weights point to the corners: for n = 2 diagonals are 1.8 times as likely as axes."""
    def diagonal_to_axis(angle):
        folded = (angle % (PI / 2)).rad2deg()
        return ((folded - 45).abs() < 5).sum() / ((folded < 5) | (folded > 85)).sum()
    cube = torch.rand(60_000, 2, dtype=f64, generator=generator()) - 0.5
    assert diagonal_to_axis(to_angles(cube)[1][:, 0]).item() == pytest.approx(1.8, abs=0.1)
    ours = GmPLinear(2, 60_000, generator=generator()).theta[:, 0]
    assert diagonal_to_axis(ours).item() == pytest.approx(1, abs=0.07)


@pytest.mark.parametrize("dtype", [torch.float32, f64])
def test_port_bug_input_edited_in_place(dtype):
    latitude = randn(4, 6, dtype=dtype).requires_grad_()
    before = latitude.detach().clone()
    u = unit(latitude)
    kept = u.detach().clone()
    u.backward(g := randn(4, 7, dtype=dtype))
    assert torch.equal(latitude.detach(), before)
    assert torch.equal(u.detach(), kept)
    assert torch.equal(g, randn(4, 7, dtype=dtype))
    module = nn.Linear(6, 4, dtype=dtype)
    weight = module.weight.detach().clone()
    from_module(module)
    assert torch.equal(module.weight, weight)


def test_port_bug_radius_inside_the_relu():
    layer = linear(3, 5)
    x = randn(50, 3)
    inside = torch.relu(layer.r * (x @ layer.direction().T + layer.lam))
    negative = layer.r < 0
    torch.testing.assert_close(layer(x)[:, ~negative], inside[:, ~negative])
    assert (layer(x)[:, negative] <= 0).all()
    assert (layer(x)[:, negative] - inside[:, negative]).abs().max() > 0.1


@pytest.mark.parametrize("n", [2, 3, 20, 784])
def test_port_bug_radius_inflated(n):
    layer = from_module(nn.Linear(n, 50, dtype=f64))
    torch.testing.assert_close(layer.direction().norm(dim=1), torch.ones(50, dtype=f64), rtol=1e-13, atol=0)


# ---- conversion ----------------------------------------------------------------------------------
def _linear_with(weight, bias):
    module = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    with torch.no_grad():
        module.weight.copy_(weight)
        module.bias.copy_(bias)
    return module


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_a_linear_layer_keeps_its_function(n):
    module, x = nn.Linear(n, 7, dtype=f64), randn(20, n)
    layer = from_module(module)
    torch.testing.assert_close(layer(x), torch.relu(module(x)))
    assert (layer.r >= 0).all()
    bare = nn.Linear(n, 7, bias=False)
    torch.testing.assert_close(from_module(bare)(x.float()), torch.relu(bare(x.float())))


def test_a_trained_network_keeps_its_function():
    torch.manual_seed(0)                                       # nn.Module initialisation takes no generator
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Sequential(nn.Conv2d(4, 4, 3, groups=2, bias=False), nn.LeakyReLU(0.1)),
                        nn.Flatten(),
                        parametrizations.weight_norm(nn.Linear(36, 8)), nn.ReLU(), nn.Linear(8, 3)).double()
    x = randn(6, 1, 10, 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
    twin = from_module(net.eval())
    torch.testing.assert_close(twin(x), net(x))
    kinds = ["GmPConv2d", "MaxPool2d", "Sequential", "Flatten", "GmPLinear", "Linear"]
    assert [type(m).__name__ for m in twin] == kinds
    assert not twin.training
    assert twin[-1].weight is not net[-1].weight
    windows = nn.Sequential(nn.Conv1d(2, 3, 3, stride=2), nn.ReLU()).double()
    torch.testing.assert_close(from_module(windows)(randn(4, 2, 9)), windows(randn(4, 2, 9)))


def test_geometric_is_a_right_inverse_and_can_be_undone():
    for module in (nn.Linear(5, 4), nn.Linear(1, 4), nn.Conv2d(3, 4, 2), nn.Embedding(6, 3)):
        module = module.double()
        weight = module.weight.detach().clone()
        assert geometric(module) is module
        torch.testing.assert_close(module.weight.detach(), weight, rtol=0, atol=4e-15)
        module.weight = 2 * weight
        torch.testing.assert_close(module.weight.detach(), 2 * weight, rtol=0, atol=8e-15)
        parametrize.remove_parametrizations(module, "weight")
        torch.testing.assert_close(module.weight.detach(), 2 * weight, rtol=0, atol=8e-15)
        assert type(module.weight) is nn.Parameter


def test_geometric_trains_in_radii_and_angles():
    module, x = geometric(nn.Linear(4, 3, dtype=f64)), randn(10, 4)
    r, latitude = module.parametrizations.weight.original0, module.parametrizations.weight.original1
    torch.testing.assert_close(r.detach(), module.weight.norm(dim=1).detach())
    module(x).square().sum().backward()
    with parametrize.cached():
        weight = module.weight
    g = 2 * module(x).T @ x
    torch.testing.assert_close(r.grad, (g * weight / r[:, None]).sum(1))
    for i in range(3):
        torch.testing.assert_close(latitude.grad[i], -(r[i] * g[i] @ jacobian(PI / 2 - latitude[i])))
    twin = copy.deepcopy(module)
    fresh = geometric(nn.Linear(4, 3, dtype=f64))
    fresh.load_state_dict(module.state_dict())
    assert torch.equal(twin(x), module(x))
    assert torch.equal(fresh(x), module(x))


def test_coordinates_by_kind_reach_the_optimizer():
    net = nn.Sequential(GmPLinear(3, 4), InputMeanNorm(4), geometric(nn.Linear(4, 2)))
    kinds = coordinates(net)
    assert {k: [p.numel() for p in v] for k, v in kinds.items()} == {
        "radii": [4, 2], "offsets": [4], "angles": [8, 6], "other": [2]}
    assert sum(map(len, kinds.values())) == len(list(net.parameters()))
    before = copy.deepcopy(net.state_dict())
    optimizer = torch.optim.SGD([{"params": kinds["angles"], "lr": 0.1},
                                 {"params": kinds["radii"] + kinds["offsets"] + kinds["other"], "lr": 0.0}])
    net(randn(5, 3).float()).square().sum().backward()
    optimizer.step()
    moved = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"0.latitude", "1.running_mean", "2.parametrizations.weight.original1"}


# ---- what a torch layer must survive -------------------------------------------------------------
def test_copies_and_state():
    layer, x = linear(6, 4), randn(3, 6)
    layer.eval()
    with torch.no_grad():
        expected = layer(x)
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    fresh = GmPLinear(6, 4, dtype=f64)
    fresh.load_state_dict(layer.state_dict())
    loaded = torch.load(buffer, weights_only=False)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded, fresh):
        assert torch.equal(twin(x), expected)
        assert twin._cached is None
    line = linear(1, 3)
    other = GmPLinear(1, 3, dtype=f64, generator=generator(9))
    other.load_state_dict(line.state_dict())
    assert torch.equal(other(x[:, :1]), line(x[:, :1]))
    with pytest.raises(RuntimeError, match="latitude"):
        fresh.load_state_dict(linear(7, 4).state_dict())


def test_eval_mode_computes_the_directions_once_and_never_serves_stale_ones():
    layer, x = linear(6, 4).eval(), randn(3, 6)
    with torch.no_grad():
        first = layer.direction()
        assert layer.direction() is first
        layer.latitude.add_(0.1)                                          # an optimizer step
        torch.testing.assert_close(layer.direction(), from_angles(layer.theta))
        layer.load_state_dict(linear(6, 4, seed=5).state_dict())
        torch.testing.assert_close(layer.direction(), from_angles(layer.theta))
        layer.theta = layer.theta + 1
        torch.testing.assert_close(layer.direction(), from_angles(layer.theta))
        layer.float()
        assert layer.direction().dtype == torch.float32
        layer.double()
    layer(x).sum().backward()                                             # with gradients nothing is kept
    assert layer.latitude.grad.abs().max() > 0
    other = {name: p + 1 for name, p in layer.named_parameters()}
    with torch.no_grad():
        called = torch.func.functional_call(layer, other, (x,))
        expected = other["r"] * torch.relu(x @ unit(other["latitude"]).T + other["lam"])
        torch.testing.assert_close(called, expected)
    with torch.inference_mode():
        layer(x)
    layer.requires_grad_(False)
    x.requires_grad_()
    layer(x).sum().backward()                                             # what inference mode left is usable
    assert x.grad.abs().max() > 0


@pytest.mark.parametrize("make", [lambda: GmPLinear(64, 8), lambda: geometric(nn.Linear(64, 8))])
def test_bfloat16_keeps_angles_in_float32(make):
    layer = make()
    x = randn(4, 64).float()
    expected = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        z = layer(x)
    assert z.dtype == torch.bfloat16
    torch.testing.assert_close(z.float(), expected, rtol=0, atol=0.1)
    layer(x).sum().backward()
    layer.to(torch.bfloat16)
    kinds = coordinates(layer)
    assert [p.dtype for p in kinds["angles"]] == [torch.float32]
    assert kinds["angles"][0].grad.dtype == torch.float32
    assert kinds["radii"][0].dtype == torch.bfloat16
    z = layer(x.bfloat16())
    assert z.dtype == torch.bfloat16
    torch.testing.assert_close(z.float(), expected, rtol=0, atol=0.1)
    z.sum().backward()
    layer.double()
    assert {p.dtype for p in layer.parameters()} == {f64}


def test_bfloat16_from_the_start():
    layer = GmPLinear(5, 3, dtype=torch.bfloat16)
    assert (layer.r.dtype, layer.latitude.dtype) == (torch.bfloat16, torch.float32)
    assert layer(torch.ones(2, 5, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert from_module(nn.Linear(5, 3, dtype=torch.bfloat16)).latitude.dtype == torch.float32


def test_a_training_step_holds_three_weight_sized_buffers_more_than_nn_linear():
    """u and P of the forward pass and dL/du: what is as large as the weight, of 1024 x 1024, in a step."""
    def peak(layer):
        x = torch.ones(4, 1024)
        layer(x).sum().backward()
        layer.zero_grad()
        with torch.profiler.profile(profile_memory=True) as profile:
            layer(x).sum().backward()
        held = [0]
        for event in profile.profiler.kineto_results.events():
            if event.name() == "[memory]" and abs(event.nbytes()) > 1024 * 1024 * 3:
                held.append(held[-1] + event.nbytes())
        return max(held) / (1024 * 1024 * 4)
    assert peak(nn.Linear(1024, 1024)) == 1                               # the gradient
    assert peak(GmPLinear(1024, 1024)) == pytest.approx(4, abs=0.01)


def test_meta_device_and_materialising():
    layer = GmPLinear(5, 3, device="meta")
    assert layer(torch.empty(2, 5, device="meta")).shape == (2, 3)
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters(generator())
    torch.testing.assert_close(layer.direction().norm(dim=1), torch.ones(3))


def test_per_example_gradients_and_the_tangent_kernel():
    """NTK = J J^T by functional_call and vmap, against the chain rule dL/dtheta = dL/dw dw/dtheta by hand."""
    net, x = nn.Sequential(linear(3, 5), nn.Linear(5, 1, dtype=f64)), randn(4, 3)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def f(parameters, x):
        return torch.func.functional_call(net, parameters, (x[None],))[0, 0]
    J = torch.vmap(torch.func.grad(f), (None, 0))(parameters, x)
    layer, v = net[0], net[1].weight[0]
    on = (x @ layer.direction().T + layer.lam > 0).double()
    for k in range(4):
        for i in range(5):
            expected = -v[i] * layer.r[i] * on[k, i] * (x[k] @ jacobian(layer.theta[i]))
            torch.testing.assert_close(J["0.latitude"][k, i], expected)
    flat = torch.cat([g.flatten(1) for g in J.values()], 1)
    K = flat @ flat.T
    rows = []
    for point in x:
        net.zero_grad()
        net(point[None]).sum().backward()
        rows.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    torch.testing.assert_close(K, torch.stack(rows) @ torch.stack(rows).T)


def test_ensembles_by_vmap():
    layers, x = [linear(4, 3, seed=s) for s in range(3)], randn(5, 4)
    parameters, _ = torch.func.stack_module_state(layers)
    found = torch.vmap(lambda p: torch.func.functional_call(layers[0], p, (x,)))(parameters)
    torch.testing.assert_close(found, torch.stack([layer(x) for layer in layers]))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compile(backend):
    layer, x = GmPLinear(9, 4), randn(3, 9).float()
    with torch.no_grad():
        layer.latitude[0, 0] = PI / 2                                     # a pole: theta = 0
    layer(x).square().sum().backward()
    expected, gradient = layer(x), layer.latitude.grad.clone()
    layer.zero_grad()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    z = compiled(x)
    z.square().sum().backward()
    torch.testing.assert_close(z, expected)
    torch.testing.assert_close(layer.latitude.grad, gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [lambda: GmPLinear(9, 4), lambda: GmPLinear(9, 4).eval(),
                                  lambda: geometric(nn.Linear(9, 4))])
def test_export(make):
    module, x = make(), randn(3, 9).float()
    program = torch.export.export(module, (x,)).module()
    torch.testing.assert_close(program(x), module(x))


# ---- input mean normalisation --------------------------------------------------------------------
def test_input_mean_norm_in_training_and_after():
    norm, x = InputMeanNorm(3, momentum=0.25), randn(8, 3, 2, 5).float() + 4
    z = norm(x)
    torch.testing.assert_close(z.mean((0, 2, 3)), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(norm.running_mean, 0.25 * x.mean((0, 2, 3)))
    peer = nn.BatchNorm2d(3, momentum=0.25, affine=False)
    peer(x)
    torch.testing.assert_close(norm.running_mean, peer.running_mean)
    norm.eval()
    torch.testing.assert_close(norm(x), x - norm.running_mean[:, None, None])
    assert list(norm.state_dict()) == ["running_mean"]
    flat = InputMeanNorm(3, momentum=1, dtype=f64)
    assert torch.autograd.gradcheck(flat, randn(4, 3).requires_grad_())
    assert InputMeanNorm(3)(x.bfloat16()).dtype == torch.bfloat16


def test_input_mean_norm_recentres_the_offsets():
    """After it, lam = 0 puts every boundary of the next layer through the centre of its input."""
    x = randn(500, 4) + 10
    active = (InputMeanNorm(4).double()(x) @ randn(4, 50)) > 0
    assert active.double().mean().item() == pytest.approx(0.5, abs=0.05)


def _rank(rank, address, path):
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    x = randn(6, 3)[(slice(0, 2), slice(2, 6))[rank]].requires_grad_()        # unequal shares
    norm = InputMeanNorm(3, momentum=1.0, sync=True, dtype=f64)
    z = norm(x)
    (z**3).sum().backward()
    torch.save({"z": z.detach(), "grad": x.grad, "mean": norm.running_mean}, f"{path}/{rank}")
    torch.distributed.destroy_process_group()


def test_input_mean_norm_over_two_processes_is_one_batch(tmp_path):
    torch.multiprocessing.spawn(_rank, (f"file://{tmp_path}/meet", tmp_path), nprocs=2)
    x = randn(6, 3).requires_grad_()
    norm = InputMeanNorm(3, momentum=1.0, dtype=f64)
    z = norm(x)
    (z**3).sum().backward()
    ranks = [torch.load(tmp_path / str(rank)) for rank in range(2)]
    torch.testing.assert_close(torch.cat([r["z"] for r in ranks]), z.detach())
    torch.testing.assert_close(torch.cat([r["grad"] for r in ranks]), x.grad)
    for r in ranks:
        torch.testing.assert_close(r["mean"], norm.running_mean)


# ---- refusals ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda: GmPLinear(0, 3), ValueError, "in_features must be at least 1"),
    (lambda: GmPLinear(3, 0), ValueError, "out_features must be at least 1"),
    (lambda: GmPLinear(3.0, 2), TypeError, "in_features must be an int"),
    (lambda: GmPLinear(3, 2, activation="relu"), TypeError, "activation must be a function"),
    (lambda: GmPLinear(3, 2)(torch.ones(4)), ValueError, r"shape \(..., 3\), got \(4,\)"),
    (lambda: GmPConv2d(3, 4, 3, groups=2), ValueError, "groups = 2 must divide"),
    (lambda: GmPConv2d(3, 4, (3, 3, 3)), ValueError, "kernel_size"),
    (lambda: GmPConv1d(3, 4, 0), ValueError, "kernel_size must be at least 1"),
    (lambda: setattr(GmPLinear(4, 2), "theta", torch.ones(2, 4)), ValueError, "3 angles for each of 2 units"),
    (lambda: setattr(GmPLinear(2, 1), "theta", torch.tensor([[math.nan]])), ValueError, "theta contains 1"),
    (lambda: setattr(GmPLinear(3, 1), "theta", torch.ones(1, 2).long()), TypeError, "theta must be float"),
    (lambda: from_module(_linear_with(torch.zeros(2, 3), torch.ones(2))), ValueError, "have no direction"),
    (lambda: from_module(_linear_with(torch.full((2, 3), math.nan), torch.ones(2))), ValueError, "NaN"),
    (lambda: from_module(_linear_with(torch.ones(2, 3), torch.tensor([1, math.nan]))), ValueError, "bias"),
    (lambda: from_module(nn.Conv2d(1, 1, 3, padding_mode="reflect")), ValueError, "padding_mode"),
    (lambda: from_module(nn.LayerNorm(3)), TypeError, "cannot convert LayerNorm"),
    (lambda: from_module(nn.Sequential(nn.Linear(2, 2), nn.Tanh())), ValueError, "nothing to convert"),
    (lambda: geometric(_linear_with(torch.zeros(2, 3), torch.ones(2))), ValueError, "have no direction"),
    (lambda: geometric(nn.Linear(2, 2), "wait"), ValueError, "no tensor 'wait'"),
    (lambda: geometric(nn.Linear(2, 2), "bias"), ValueError, r"shape \(units, ...\)"),
    (lambda: geometric(geometric(nn.Linear(2, 2))), ValueError, "parametrized already"),
    (lambda: InputMeanNorm(0), ValueError, "num_features must be at least 1"),
    (lambda: InputMeanNorm(3, momentum=0), ValueError, "momentum"),
    (lambda: InputMeanNorm(3)(torch.ones(3, 4)), ValueError, r"shape \(N, 3, ...\)"),
    (lambda: InputMeanNorm(3)(torch.ones(0, 3)), ValueError, "no mean"),
])
def test_refused_by_name(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_refused_parametrization_leaves_the_module_alone():
    module = _linear_with(torch.zeros(2, 3), torch.ones(2))
    with pytest.raises(ValueError, match="zero"):
        geometric(module)
    assert type(module) is nn.Linear
    assert isinstance(module.weight, nn.Parameter)


def test_from_module_keeps_modules_that_are_used_twice():
    torch.manual_seed(0)
    x, act, layer = torch.randn(6, 5), nn.ReLU(), nn.Linear(5, 5)
    net = nn.Sequential(nn.Linear(5, 5), act, nn.Linear(5, 5), act, nn.Linear(5, 2))
    assert [type(m).__name__ for m in from_module(net)] == ["GmPLinear", "GmPLinear", "Linear"]
    assert torch.allclose(from_module(net)(x), net(x), atol=1e-6)
    twice = nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU())
    assert torch.allclose(from_module(twice)(x), twice(x), atol=1e-6)
    assert len(list(from_module(twice).parameters())) == 3
    norm = nn.LayerNorm(5)
    twice = from_module(nn.Sequential(nn.Linear(5, 5), nn.ReLU(), norm, nn.Linear(5, 5), nn.ReLU(), norm))
    assert twice[1] is twice[3] is not norm


def test_from_module_leaves_what_it_does_not_know():
    class Twice(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    class TwiceNet(nn.Sequential):
        def forward(self, x):
            return 2 * super().forward(x)

    hooked = nn.Linear(3, 3)
    hooked.register_forward_hook(lambda module, inputs, z: z + 1)
    for module in (Twice(3, 3), hooked, TwiceNet(nn.Linear(3, 3), nn.ReLU())):
        with pytest.raises(TypeError, match="their own forward and without hooks"):
            from_module(module)
        net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), module, nn.ReLU()), torch.randn(4, 3)
        assert torch.allclose(from_module(net)(x), net(x), atol=1e-6)


def test_from_module_keeps_what_is_frozen():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3, bias=False), nn.ReLU())
    net[0].weight.requires_grad_(False)
    first, second = from_module(net)
    assert [p.requires_grad for p in (first.r, first.latitude, first.lam)] == [False, False, True]
    assert all(p.requires_grad for p in second.parameters())


def test_refused_layers_and_shapes():
    tiny = nn.Linear(3, 2).half()
    nn.init.constant_(tiny.weight, 1e-6)
    nn.init.constant_(tiny.bias, 1)
    with pytest.raises(ValueError, match=r"b/\|w\| of 2 of 2 units is beyond torch\.float16"):
        from_module(tiny)
    layer = geometric(nn.Linear(3, 2))
    with pytest.raises(ValueError, match=r"must have shape \(2, 3\), got \(1, 3\)"):
        layer.weight = torch.ones(1, 3)
    assert layer(torch.ones(1, 3)).shape == (1, 2)
    gmp = GmPLinear(3, 2)
    with pytest.raises(ValueError, match="theta contains infinite"):
        gmp.theta = torch.full((2, 2), math.inf)
    with pytest.raises(ValueError, match=r"\(2, 3\), one row a unit, got \(1, 3\)"):
        gmp.point_along(torch.ones(1, 3))
    with pytest.raises(ValueError, match="x must have shape"):
        gmp(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"latitude\[None\]"):
        unit(torch.zeros(3))
    with pytest.raises(TypeError, match=r"x\.float\(\)"):
        InputMeanNorm(2)(torch.ones(3, 2).long())


def test_coordinates_of_tied_layers():
    first, second = GmPLinear(3, 3), GmPLinear(3, 3)
    second.r = first.r
    assert [len(p) for p in coordinates(nn.Sequential(first, second)).values()] == [1, 2, 2, 0]
