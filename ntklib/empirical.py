"""The tangent kernel of a network as it is: K(x, y) = <grad f(x), grad f(y)> over its trainable parameters.

A linear layer z = W a + b adds (<a(x), a(y)> + 1) <delta(x), delta(y)> with delta = df/dz: the Hadamard
product of two small Grams, so that no gradient with respect to W is ever formed. A layer used several times
adds all pairs of uses. What is not made of linear layers is differentiated by torch.func, one parameter after
another.
"""
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from ntklib import _check
from ntklib.gmp.norm import InputMeanNorm
from ntklib.mlp import MLP
from ntklib.smooth import value_and_slope
from ntklib.tiles import run

__all__ = ["empirical_ntk"]

ROWS = 2048             # points that go through the network at once
BUDGET = 2**26          # numbers in a block of a Jacobian


class _Use(NamedTuple):
    """One use of a linear layer: the layer's input (n, p) and df/dz for every output (n, k, q)."""

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    a: Tensor
    delta: Tensor


def empirical_ntk(model: nn.Module, X: Float[Tensor, "n ..."], Y: Float[Tensor, "m ..."] | None = None, *,
                  trace: bool = False) -> Float[Tensor, "n m"] | Float[Tensor, "n m k k"]:
    """Tangent kernel K(x, y) = sum_p df(x)/dp df(y)/dp of `model`, over its parameters with requires_grad.

    X is (n, ...), Y (m, ...), of the parameters' dtype and device; model maps (n, ...) to (n,) or (n, k). The
    result is (n, m) for one output and (n, m, k, k) for k; `trace` sums over the outputs, to (n, m). Freeze
    all but the first layer to get trained="first" of `ntk_gram`.

    Linear layers cost n^2 width and never store a Jacobian; everything else goes through torch.func. Raises
    ValueError for models that mix the points of a batch (batch normalisation in training) or are random
    (dropout in training), by name where it is a module, and where there is nothing to train; TypeError for mixed
    dtypes or devices; OverflowError.

    >>> model = nn.Linear(2, 1, bias=True, dtype=torch.float64)
    >>> empirical_ntk(model, torch.tensor([[1., 2.], [3., 0.]], dtype=torch.float64))   # <x, y> + 1
    tensor([[ 6.,  4.],
            [ 4., 10.]], dtype=torch.float64)

    Source: Jacot, Gabriel and Hongler (2018), section 4; Novak, Sohl-Dickstein and Schoenholz (2022).
    """
    trained = trainable(model)
    for Z, name in ((X, "X"), (Y, "Y")):
        if Z is not None:
            _check.real_tensor(Z, name)
            if Z.ndim == 0 or Z.is_meta or bool(torch.isinf(Z.detach()).any()):
                raise ValueError(f"{name} must hold finite points, one a row, got shape {tuple(Z.shape)}"
                                 + (" on the meta device" if Z.is_meta else " with infinite entries" * (Z.ndim > 0)))
            _check.alike(Z, trained[0], f"{name} and the model")
    _refuse_mixing(model, X)
    if type(model) is MLP and X.ndim == 2 and all(type(layer) is nn.Linear for layer in model.layers):
        K = _of_mlp(model, X, Y, trace)
    else:
        with torch.enable_grad():
            if _layerwise(model, trained, X[:1]):
                K = _hadamard(_uses(model, X), None if Y is None else _uses(model, Y), trace)
            else:
                K = _contract(model, X, X if Y is None else Y, trace)
    if not _check.all_finite(K):
        raise OverflowError(f"the tangent kernel is not finite in {K.dtype}: look for weights that are not, or scale "
                            "the inputs down")
    return K


# Layer by layer

def _of_mlp(model: MLP, X: Tensor, Y: Tensor | None, trace: bool) -> Tensor:
    """From the last layer to the first: little more than the preactivations is held at any time."""
    K = X.new_zeros(_shape(len(X), len(X if Y is None else Y), model.outputs, trace))
    chain, other = _chain(model, X), None if Y is None else _chain(model, Y)
    while (left := next(chain, None)) is not None:
        right = left if other is None else next(other)
        _add(K, [left], [right], Y is None)
        del left, right                                              # before the next are made
    return _mirror(K) if Y is None else K


def _chain(model: MLP, X: Tensor) -> Iterator[_Use]:
    """The trainable layers, last first: a = scale s(z) below, delta = (delta W) scale s'(z) from above."""
    def rowwise(f, z: Tensor) -> Tensor:
        out = torch.empty_like(z)
        for part, into in zip(z.split(ROWS), out.split(ROWS), strict=True):
            torch.mul(f(part), model.scale, out=into)
        return out

    weights, z, a = [layer.weight.detach() for layer in model.layers], [], X
    for W in weights[:-1]:
        z.append(a @ W.T)
        a = rowwise(model.function, z[-1])
    delta = torch.eye(model.outputs, dtype=X.dtype, device=X.device).expand(len(X), -1, -1)
    for l in range(model.depth, -1, -1):
        if model.layers[l].weight.requires_grad:
            yield _Use(model.layers[l].weight, None, a, delta)
        if l:
            a = None
            slope = rowwise(lambda u: value_and_slope(model.function, u)[1], z.pop())
            delta = (delta @ weights[l]).mul_(slope[:, None])
            del slope
            a = rowwise(model.function, z[-1]) if z else X


def _uses(model: nn.Module, X: Tensor) -> list[_Use]:
    """Every use of a linear layer with a trainable parameter, for all points."""
    whole = None
    for i in range(0, max(len(X), 1), ROWS):
        block = _uses_of_block(model, X[i:i + ROWS])
        if whole is None:
            if len(X) <= ROWS:
                return block
            whole = [_Use(u.weight, u.bias, *(part.new_empty(len(X), *part.shape[1:]) for part in (u.a, u.delta)))
                     for u in block]
        for u, of_block in zip(whole, block, strict=True):
            u.a[i:i + ROWS], u.delta[i:i + ROWS] = of_block.a, of_block.delta
    return whole


def _uses_of_block(model: nn.Module, X: Tensor) -> list[_Use]:
    seen = []
    hooks = [m.register_forward_hook(lambda m, inputs, z: seen.append((m, inputs[0], z)))
             for m in model.modules()
             if isinstance(m, nn.Linear) and any(p.requires_grad for p in m.parameters())]
    try:
        f = _outputs(model, X)
    finally:
        for hook in hooks:
            hook.remove()
    z = [z for _, _, z in seen]
    deltas = [torch.autograd.grad(f[:, k].sum(), z, retain_graph=k + 1 < f.shape[1], allow_unused=True)
              for k in range(f.shape[1])]
    return [_Use(m.weight if m.weight.requires_grad else None,
                 m.bias if m.bias is not None and m.bias.requires_grad else None, a.detach(),
                 torch.stack([torch.zeros_like(z) if d is None else d for d in delta], 1))
            for (m, a, z), delta in zip(seen, zip(*deltas, strict=True), strict=True)]


def _shape(n: int, m: int, k: int, trace: bool) -> tuple[int, ...]:
    return (n, m) if trace or k == 1 else (n, m, k, k)


def _hadamard(left: list[_Use], right: list[_Use] | None, trace: bool) -> Tensor:
    """The kernel from all uses of all layers."""
    n, k, m = *left[0].delta.shape[:2], len((right or left)[0].a)
    K = left[0].a.new_zeros(_shape(n, m, k, trace))
    _add(K, left, right or left, right is None)
    return _mirror(K) if right is None else K


def _add(K: Tensor, left: list[_Use], right: list[_Use], same: bool) -> None:
    """K += sum over parameters and pairs of uses of <a, a'> <delta, delta'>; the lower half if same."""
    pairs = [(u, v, u.weight is not None and u.weight is v.weight, u.bias is not None and u.bias is v.bias)
             for u in left for v in right]
    pairs = [pair for pair in pairs if pair[2] or pair[3]]
    k = left[0].delta.shape[1]

    def tile(i: slice, j: slice) -> None:
        block = K[i, j]
        for u, v, weight, bias in pairs:
            inner = u.a[i] @ v.a[j].T if weight else K.new_zeros(block.shape[:2])
            inner = inner.add_(1) if bias else inner
            p, q = u.delta[i], v.delta[j]
            if K.ndim == 2:
                block.addcmul_(inner, p.flatten(1) @ q.flatten(1).T)
            else:
                outer = (p.flatten(0, 1) @ q.flatten(0, 1).T).reshape(len(p), k, len(q), k)
                block.addcmul_(inner[..., None, None], outer.transpose(1, 2))

    run(tile, len(K), K.shape[1], same, K.device)


def _mirror(K: Tensor) -> Tensor:
    """The lower half on both sides."""
    def tile(i: slice, j: slice) -> None:
        block = K[i, j].transpose(0, 1).transpose(-1, -2) if K.ndim == 4 else K[i, j].T
        K[j, i] = block if i != j else (K[i, i] + block) / 2         # products need not round alike on both sides

    run(tile, len(K), len(K), True, K.device)
    return K


def _layerwise(model: nn.Module, trained: list[nn.Parameter], x: Tensor) -> bool:
    """Whether linear layers, used as layers, are all that holds trainable parameters: tried on one point."""
    owners = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
    if not all(type(m) is nn.Linear for m in owners):
        return False
    uses = _uses_of_block(model, x)
    if not all(u.a.ndim == 2 and u.delta.ndim == 3 and len(u.a) == len(u.delta) == 1 for u in uses):
        return False
    f = _outputs(model, x)
    true = torch.autograd.grad(f.sum(), trained, allow_unused=True)
    for p, gradient in zip(trained, true, strict=True):
        found = [u.delta.sum(1).T @ u.a if u.weight is p else u.delta.sum((0, 1))
                 for u in uses if u.weight is p or u.bias is p]
        if gradient is None and not found:                           # not used at all
            continue
        if gradient is None or not found:
            return False
        if _largest(sum(found[1:], found[0]) - gradient) > 1e3 * torch.finfo(p.dtype).eps * _largest(gradient):
            return False
    return True


def _largest(x: Tensor) -> float:
    low, high = x.aminmax()
    return max(-float(low), float(high))


# Any module

def _contract(model: nn.Module, X: Tensor, Y: Tensor, trace: bool) -> Tensor:
    """Jacobians by torch.func, of one parameter and some points at a time."""
    parameters = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    k = _outputs(model, X[:1]).shape[1]
    K = X.new_zeros(_shape(len(X), len(Y), k, trace))
    for name, p in parameters.items():
        def of_point(q, x, name=name):
            return functional_call(model, {**parameters, name: q}, (x[None],)).reshape(-1)

        jacobian = vmap(jacrev(of_point), (None, 0))
        rows = max(1, BUDGET // (k * p.numel()))
        for i in range(0, len(X), rows):
            left = jacobian(p, X[i:i + rows]).flatten(2)
            for j in range(0, len(Y), rows):
                right = left if Y is X and i == j else jacobian(p, Y[j:j + rows]).flatten(2)
                product = torch.einsum("akp,bkp->ab" if K.ndim == 2 else "akp,blp->abkl", left, right)
                K[i:i + rows, j:j + rows] += product
    return K


# What it can and cannot take

def _outputs(model: nn.Module, X: Tensor) -> Tensor:
    f = model(X)
    if not isinstance(f, Tensor) or f.ndim not in (1, 2) or len(f) != len(X):
        got = tuple(f.shape) if isinstance(f, Tensor) else type(f).__name__
        raise ValueError(f"the model must map ({len(X)}, ...) to ({len(X)},) or ({len(X)}, k), got {got}")
    return f[:, None] if f.ndim == 1 else f


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that training moves, at least one."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise ValueError("no parameter of the model has requires_grad: its tangent kernel is zero")
    return trained


def _refuse_mixing(model: nn.Module, X: Tensor) -> None:
    for name, m in model.named_modules():
        batch = ((isinstance(m, nn.modules.batchnorm._BatchNorm) and (m.training or not m.track_running_stats))
                 or (isinstance(m, InputMeanNorm) and m.training))
        if batch or (isinstance(m, nn.modules.dropout._DropoutNd) and m.training and m.p > 0):
            why = "mixes the points of a batch" if batch else "is random"
            raise ValueError(f"{name or 'the model'} ({type(m).__name__}) {why} in training mode: a "
                             "point has no gradient of its own. Call model.eval() first")
    if len(X) == 0:
        return
    with torch.no_grad():
        once, again = _outputs(model, X[:64]), _outputs(model, X[:64])
    if not bool(once.isfinite().all()):
        raise ValueError(f"{type(model).__name__} maps X to NaN or infinite numbers: look for such weights, or scale "
                         "X down")
    if not torch.allclose(once, again, rtol=1e-3, atol=1e-3 * float(once.abs().max())):
        raise ValueError(f"what {type(model).__name__} makes of a point is random, and the point has no gradient of "
                         "its own. Call model.eval() first, or take the random function out")
    if len(X) > 1:
        with torch.no_grad():
            alone, together = _outputs(model, X[:1]), _outputs(model, X[:2])[:1]
        if not torch.allclose(alone, together, rtol=1e-3, atol=1e-3 * float(together.abs().max())):
            raise ValueError(f"what {type(model).__name__} makes of a point depends on the rest of the batch,"
                             " and the point has no gradient of its own")
