"""Gradient descent, as a kernel predicts it and as a network does it: one record for both.

Square loss is (1/2) sum_i |f(x_i) - y_i|^2, so that f moves by -lr K (f - y) in a step, and lr < 2 /
lambda_max is the exact limit of stability. Cross-entropy is the mean over the points, as in torch.
"""
import numbers
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ntklib import _check
from ntklib.empirical import empirical_ntk, trainable
from ntklib.spectrum import check_symmetric

__all__ = ["Record", "predict_flow", "predict_gd", "train"]


class Record(NamedTuple):
    """What a run was like: at `step` (T,), the loss (T,) and the outputs f(X), (T, n) or (T, n, k)."""

    step: Tensor
    loss: Tensor
    outputs: Tensor


def predict_gd(K: Float[Tensor, "n n"], y: Float[Tensor, " n"], lr: float, steps: int | Sequence[int], *,
               f0: Float[Tensor, " n"] | None = None) -> Record:
    """Gradient descent on square loss with a constant kernel, f_t = y + (I - lr K)^t (f_0 - y), exactly.

    K is (n, n), y and f0 (n,) or (n, k), f0 = 0 if None. `steps` is the last step (all are recorded) or those
    to record. Costs one eigendecomposition, however many the steps.

    Raises ValueError if lr > 2 / lambda_max, where it diverges, for a K that is not symmetric and positive
    semi-definite up to rounding, and for shapes and steps that do not fit.

    >>> K, y = torch.tensor([[2., 0.], [0., 1.]]), torch.tensor([1., 1.])
    >>> predict_gd(K, y, lr=0.5, steps=2).outputs                            # 1 - (1 - lr lambda)^t
    tensor([[0.0000, 0.0000],
            [1.0000, 0.5000],
            [1.0000, 0.7500]])

    Source: Lee et al. (2019), arXiv:1902.06720, eq. 8 to 10.
    """
    lam, V, y, f0 = _modes(K, y, f0)
    _check_lr(lr, float(lam[-1]))
    if isinstance(steps, Tensor | Sequence) and not isinstance(steps, str):
        step = torch.as_tensor(steps)
        if step.ndim != 1 or step.is_floating_point() or bool((step < 0).any()):
            raise ValueError(f"steps must be an int or a sequence of ints, none below 0; got {steps!r}")
    else:
        step = torch.arange(_check.count(steps, "steps") + 1)
    t = step.to(lam)[:, None]
    rate = 1 - lr * lam
    return _prediction(step, rate.abs() ** t * torch.where((rate < 0) & (t % 2 == 1), -1, 1), V, y, f0)


def predict_flow(K: Float[Tensor, "n n"], y: Float[Tensor, " n"], times: Float[Tensor, " T"], *,
                 f0: Float[Tensor, " n"] | None = None) -> Record:
    """Gradient flow on square loss with a constant kernel, f_t = y + exp(-t K) (f_0 - y), exactly.

    Time is lr times the number of steps. Arguments and errors otherwise as in `predict_gd`.

    >>> predict_flow(torch.eye(1), torch.ones(1), torch.tensor([0., 1.])).outputs     # 1 - exp(-t)
    tensor([[0.0000],
            [0.6321]])
    """
    lam, V, y, f0 = _modes(K, y, f0)
    times = torch.as_tensor(times)
    if times.ndim != 1 or bool(times.isnan().any()):
        raise ValueError(f"times must be a sequence of numbers, got {times}")
    return _prediction(times, torch.exp(-times.to(lam)[:, None] * lam), V, y, f0)


def train(model: nn.Module, X: Float[Tensor, "n ..."], y: Tensor, *, lr: float, steps: int,
          loss: str = "square", batch: int | None = None, generator: torch.Generator | None = None,
          records: int = 100, stop: float = 0.,
          callback: Callable[[int, float], object] | None = None) -> Record:
    """Train `model`, in place, by full-batch gradient descent, or by SGD on batches of `batch` points.

    loss is "square", y of the outputs' shape, or "cross_entropy", y (n,) integer classes. SGD shuffles by
    `generator` every epoch; its square loss is scaled by n / batch, so that one lr serves both. About
    `records` steps are recorded, the first and last among them. Ends early when the loss is at most `stop`,
    or when `callback(step, loss)`, called at every record, returns True: progress bars and stop buttons go
    there.

    Raises ValueError if lr exceeds 2 / lambda_max of the model's own tangent kernel (square loss, full
    batch), for a batch without a generator, and for shapes and dtypes that do not fit; ArithmeticError if the
    loss diverges.

    >>> model = nn.Linear(1, 1, bias=False).requires_grad_()
    >>> _ = nn.init.zeros_(model.weight)
    >>> train(model, torch.ones(1, 1), torch.ones(1, 1), lr=0.5, steps=2).loss       # (1/2) (1 - lr)^(2 t)
    tensor([0.5000, 0.1250, 0.0312])
    """
    steps, records = _check.count(steps, "steps"), _check.count(records, "records", 1)
    _check_training(model, X, y, lr, loss, batch, generator)
    parameters = [p for p in model.parameters() if p.requires_grad]
    keep = set(torch.linspace(0, steps, min(records, steps) + 1, dtype=torch.float64).round().long().tolist())
    order, rows = [], []
    for step in range(steps + 1):
        if step in keep:
            with torch.no_grad():
                f = model(X)
                value = float(_loss(f, y, loss))
            rows.append((step, value, f))
            if not value <= 1e6 * max(rows[0][1], 1):
                raise ArithmeticError(f"the loss went from {rows[0][1]:.3g} to {value:.3g} in {step} steps: "
                                      f"lower lr = {lr:g}")
            if value <= stop or (callback is not None and callback(step, value) is True):
                break
        if step == steps:
            break
        if batch is None:
            part, scale = slice(None), 1.
        else:
            order = order or list(torch.randperm(len(X), generator=generator).split(batch))
            part = order.pop()
            scale = len(X) / len(part) if loss == "square" else 1.
        with torch.enable_grad():
            value = scale * _loss(model(X[part]), y[part], loss)
            gradients = torch.autograd.grad(value, parameters, allow_unused=True)
        with torch.no_grad():
            for p, g in zip(parameters, gradients, strict=True):
                if g is not None:
                    p -= lr * g
    step, value, f = zip(*rows, strict=True)
    return Record(torch.tensor(step), torch.tensor(value, dtype=f[0].dtype), torch.stack(f))


def _modes(K, y, f0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    K, y = _check.points(K, "K"), _check.real_tensor(y, "y")
    _check.alike(K, y, "K and y")
    f0 = torch.zeros_like(y) if f0 is None else _check.real_tensor(f0, "f0")
    _check.alike(y, f0, "y and f0")
    if K.shape[0] != K.shape[1] or y.ndim not in (1, 2) or len(y) != len(K) or f0.shape != y.shape:
        raise ValueError(f"K must be (n, n), y and f0 (n,) or (n, k); got {tuple(K.shape)}, {tuple(y.shape)} "
                         f"and {tuple(f0.shape)}")
    if not bool(torch.isfinite(f0.detach() - y.detach()).all()):
        raise ValueError("y and f0 must be finite: drop or repair infinite entries first")
    check_symmetric(K)
    lam, V = torch.linalg.eigh(K)
    if float(lam[0]) < -len(K) * torch.finfo(K.dtype).eps * float(lam.detach().abs().max()):
        raise ValueError(f"K is not positive semi-definite: it has an eigenvalue {float(lam[0]):.6g}, along which "
                         "the loss would grow. No Gram matrix has one below 0")
    return lam, V, y, f0


def _prediction(step: Tensor, decay: Tensor, V: Tensor, y: Tensor, f0: Tensor) -> Record:
    modes = V.T @ (f0 - y).reshape(len(y), -1)
    rest = torch.einsum("ij,tj,jk->tik", V, decay, modes).reshape(len(decay), *y.shape)
    return Record(step, rest.flatten(1).square().sum(1) / 2, y + rest)


def _check_lr(lr: float, lam: float) -> None:
    if isinstance(lr, bool) or not isinstance(lr, numbers.Real | Tensor):
        raise TypeError(f"lr must be a number, got {type(lr).__name__} {lr!r}")
    if not lr > 0:
        raise ValueError(f"lr must be positive, got {lr}")
    if lr * lam > 2 * (1 + 1e-6):
        raise ValueError(f"lr = {lr:g} exceeds 2 / lambda_max = {2 / lam:.6g}; gradient descent diverges: "
                         f"1 / lambda_max = {1 / lam:.6g} is safe")


def _loss(f: Tensor, y: Tensor, loss: str) -> Tensor:
    return (f - y).square().sum() / 2 if loss == "square" else nn.functional.cross_entropy(f, y)


def _check_training(model, X, y, lr, loss, batch, generator) -> None:
    if loss not in ("square", "cross_entropy"):
        raise ValueError(f'loss must be "square" or "cross_entropy", got {loss!r}')
    _check.alike(_check.real_tensor(X, "X"), trainable(model)[0], "X and the model")
    if X.ndim == 0 or len(X) == 0:
        raise ValueError(f"X must hold at least one point, got shape {tuple(X.shape)}")
    if not isinstance(y, Tensor):
        raise TypeError(f"y must be a torch.Tensor, got {type(y).__name__}: use torch.as_tensor(y)")
    with torch.no_grad():
        f = model(X[:1])
    if loss == "square":
        _check.alike(f, _check.real_tensor(y, "y"), "the model's outputs and y")
        if y.shape != (len(X), *f.shape[1:]):
            raise ValueError(f"the model maps X to {(len(X), *f.shape[1:])}: y must have this shape, "
                             f"got {tuple(y.shape)}")
    elif (y.dtype not in (torch.int64, torch.uint8) or y.shape != (len(X),) or f.ndim != 2
          or int(y.max()) >= f.shape[1] or int(y.min()) < 0):
        raise ValueError(f"cross-entropy needs y ({len(X)},) of integer classes below the number of outputs, int64 "
                         f"or uint8, got {y.dtype} {tuple(y.shape)} for outputs {(len(X), *f.shape[1:])}")
    if batch is not None:
        if not 1 <= _check.count(batch, "batch", 1) <= len(X) or generator is None:
            raise ValueError(f"SGD needs 1 <= batch <= n = {len(X)} and a torch.Generator for batches, got "
                             f"batch = {batch}, generator = {generator}")
        _check_lr(lr, 0.)
    elif loss == "square" and f.numel() <= 64:
        part = X[:max(1, 256 // f.numel())]                          # of some points: a lower bound
        K = empirical_ntk(model, part).double()
        K = K if K.ndim == 2 else K.transpose(1, 2).flatten(2).flatten(0, 1)
        _check_lr(lr, float(torch.linalg.eigvalsh(K)[-1]))
    else:
        _check_lr(lr, 0.)
