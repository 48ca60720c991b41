"""Networks of finite width, and their tangent kernels against torch.func's Jacobian."""

import math

import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev, vmap

from ntklib import MLP, InputMeanNorm, empirical, empirical_ntk, ntk_gram


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def brute_force(model, X, Y=None):
    parameters = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def jacobian(Z):
        of_point = jacrev(lambda p, z: functional_call(model, p, (z[None],)).reshape(-1))
        return torch.cat([j.flatten(2) for j in vmap(of_point, (None, 0))(parameters, Z).values()], 2)

    left = jacobian(X)
    return torch.einsum("akp,blp->abkl", left, left if Y is None else jacobian(Y))


class Twice(nn.Module):
    """One layer used twice, and a second layer (nngeometry 0.4 is wrong here, its issue 94)."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.b(torch.tanh(self.a(torch.tanh(self.a(x)))))


class Tied(nn.Module):
    """Two layers with one weight and biases of their own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Bypassed(nn.Module):
    """A weight used once as a layer, once behind its back."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 4, bias=False)

    def forward(self, x):
        return torch.tanh(self.a(x)) @ self.a.weight


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 2), nn.Linear(5, 2)

    def forward(self, x):
        return self.a(x)


def frozen():
    model = MLP(5, 8, 2, generator=torch.Generator().manual_seed(0))
    for layer in model.layers[1:]:
        layer.requires_grad_(False)
    return model


def mlp(depth, activation="relu", outputs=1):
    return MLP(5, 9, depth, activation, outputs=outputs, generator=torch.Generator().manual_seed(0))


class Wrapped(nn.Module):
    """An MLP that is not seen to be one."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


LAYERWISE = {
    "wrapped": lambda: Wrapped(mlp(3, "gelu", 2)),
    "leaky": lambda: mlp(2, ("leaky_relu", -0.5)),
    "depth 0": lambda: mlp(0),
    "depth 3": lambda: mlp(3),
    "3 outputs": lambda: mlp(2, "tanh", 3),
    "twice": Twice,
    "tied": Tied,
    "frozen": frozen,
    "unused": Unused,
    "dropout": lambda: nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, 1)).eval(),
}
OTHERS = {
    "bypassed": Bypassed,
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)
    ),
    "layer norm": lambda: nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 1)),
    "batch norm": lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).eval(),
    "sequence": lambda: nn.Sequential(
        nn.Unflatten(1, (5, 1)), nn.Linear(1, 2), nn.Tanh(), nn.Flatten(), nn.Linear(10, 1)
    ),
}


@pytest.mark.parametrize("name", [*LAYERWISE, *OTHERS])
def test_empirical_ntk_is_the_product_of_jacobians(name):
    torch.manual_seed(0)
    model, X, Y = (LAYERWISE.get(name) or OTHERS[name])().double(), random(7, 5), random(4, 5, seed=1)
    assert empirical._layerwise(model, empirical.trainable(model), X[:1]) is (name in LAYERWISE)
    for other in (None, Y):
        exact = brute_force(model, X, other)
        size = float(exact.abs().max())
        K = empirical_ntk(model, X, other)
        assert K.shape == (exact.shape if exact.shape[-1] > 1 else exact.shape[:2])
        assert torch.allclose(K.reshape(exact.shape), exact, rtol=0, atol=2e-14 * size)
        total = empirical_ntk(model, X, other, trace=True)
        assert torch.allclose(total, exact.diagonal(dim1=2, dim2=3).sum(-1), rtol=0, atol=2e-14 * size)
        assert not K.requires_grad


def test_blocks_and_tiles_do_not_show(monkeypatch):
    model, conv, X = mlp(2, outputs=2), OTHERS["convolution"]().double(), random(600, 5)
    whole, whole_conv = empirical_ntk(model, X), empirical_ntk(conv, X[:9])
    monkeypatch.setattr(empirical, "ROWS", 37)
    monkeypatch.setattr(empirical, "BUDGET", 50)
    assert torch.allclose(empirical_ntk(model, X), whole, rtol=1e-12, atol=1e-12)
    assert torch.equal(whole, whole.permute(1, 0, 3, 2))
    assert torch.allclose(empirical_ntk(conv, X[:9]), whole_conv, rtol=1e-12, atol=1e-12)


def test_positive_semi_definite_and_close_to_the_limit_at_width():
    X = random(20, 5)
    K = empirical_ntk(MLP(5, 4096, 2, generator=torch.Generator().manual_seed(0)), X)
    assert float(torch.linalg.eigvalsh(K)[0]) > 0
    assert float((K - ntk_gram(X, depth=2)).abs().max() / K.abs().max()) < 0.1


def test_modules_without_a_gradient_of_a_point_are_refused_by_name():
    X = random(3, 5)
    with pytest.raises(ValueError, match=r"1 \(BatchNorm1d\) mixes the points of a batch.*model.eval\(\)"):
        empirical_ntk(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).double(), X)
    with pytest.raises(ValueError, match=r"1 \(Dropout\) is random"):
        empirical_ntk(nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5)).double(), X)

    class Mean(nn.Linear):
        def forward(self, x):
            return super().forward(x - x.mean(0))

    with pytest.raises(ValueError, match="Mean makes of a point depends on the rest of the batch"):
        empirical_ntk(Mean(5, 2).double(), X)


def test_refused_arguments():
    X = random(3, 5)
    with pytest.raises(TypeError, match="X and the model must share one dtype"):
        empirical_ntk(nn.Linear(5, 1), X)
    with pytest.raises(ValueError, match="requires_grad"):
        empirical_ntk(mlp(1).requires_grad_(False), X)
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        empirical_ntk(lambda x: x, X)
    with pytest.raises(ValueError, match=r"must map \(3, ...\)"):
        empirical_ntk(nn.Sequential(nn.Linear(5, 4), nn.Unflatten(1, (2, 2))).double(), X)
    with pytest.raises(ValueError, match="NaN"):
        empirical_ntk(mlp(1), X * math.nan)
    with pytest.raises(ValueError, match="width must be at least 1"):
        MLP(5, 0, 1)
    with pytest.raises(TypeError, match="depth must be an int"):
        MLP(5, 3, 1.5)
    with pytest.raises(ValueError, match="activation must be one of"):
        MLP(5, 3, 1, "rleu")


def test_mlp_is_the_papers_network():
    model, x = mlp(2), random(4, 5)
    W1, W2, W3 = (p.detach() for p in model.parameters())
    a = math.sqrt(2 / 9) * torch.relu(math.sqrt(2 / 9) * torch.relu(x @ W1.T) @ W2.T)
    assert torch.allclose(model(x), (a @ W3.T)[:, 0])
    assert model(x).shape == (4,)
    assert mlp(1, outputs=3)(x).shape == (4, 3)
    assert repr(model) == "MLP(d=5, width=9, depth=2, activation='relu', outputs=1)"
    assert torch.allclose(mlp(0)(x), x @ mlp(0).layers[0].weight[0])
    assert MLP(5, 9, 1, dtype=torch.float32).layers[0].weight.dtype == torch.float32


def test_weights_come_from_the_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a, b = mlp(2), mlp(2)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    W = MLP(300, 300, 1, generator=torch.Generator().manual_seed(1)).layers[0].weight.detach()
    assert float(W.mean()) == pytest.approx(0, abs=4.5 / 300)
    assert float(W.var()) == pytest.approx(1, abs=4.5 * math.sqrt(2) / 300)


def test_random_functions_and_input_mean_norm_are_refused():
    class Random(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(5, 8, dtype=torch.float64)

        def forward(self, x):
            return nn.functional.dropout(self.linear(x), 0.5)

    with pytest.raises(ValueError, match="is random"):
        empirical_ntk(Random(), random(20, 5))
    net = nn.Sequential(nn.Linear(5, 3), InputMeanNorm(3), nn.Linear(3, 1)).double()
    with pytest.raises(ValueError, match=r"1 \(InputMeanNorm\) mixes the points"):
        empirical_ntk(net, random(1, 5))
    assert net[1].running_mean.eq(0).all()
    assert empirical_ntk(net.eval(), random(2, 5)).shape == (2, 2)


def test_what_is_not_finite_is_refused():
    X = random(3, 5)
    for model in (mlp(1), nn.Linear(5, 1).double()):
        with pytest.raises(ValueError, match="infinite entries"):
            empirical_ntk(model, X * math.inf)
    with pytest.raises(OverflowError, match="scale the inputs down"):
        empirical_ntk(mlp(1), 1e200 * X)
    broken = nn.Linear(5, 1).double()
    nn.init.constant_(broken.weight, math.nan)
    with pytest.raises(ValueError, match="maps X to NaN"):
        empirical_ntk(broken, X)
    with pytest.raises(ValueError, match=r"x must have shape \(n, 5\), one row a point, got \(3, 4\)"):
        empirical_ntk(mlp(1), X[:, :4])
    with pytest.raises(ValueError, match=r"one a row, got shape \(\)"):
        empirical_ntk(mlp(1), torch.tensor(1.0, dtype=torch.float64))
