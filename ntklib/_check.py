"""Refusals in one voice: what was expected, what came, and the next step.

Every public function of `ntklib` passes its arguments through one of these; none of them copies or casts.
"""
import math
import numbers
from functools import partial

import torch
from torch import Tensor

DTYPES = (torch.float64, torch.float32)


def real_tensor(x, name: str) -> Tensor:
    """`x` itself if it is a float64 or float32 tensor without NaN; a Python number becomes a float64 tensor."""
    if isinstance(x, numbers.Real) and not isinstance(x, bool):
        x = torch.tensor(float(x), dtype=torch.float64)
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}: use torch.as_tensor({name})")
    if x.dtype not in DTYPES:
        raise TypeError(f"{name} must be float64 or float32, got {x.dtype}: use {name}"
                        f"{'.real if that is all' if x.is_complex() else '.double()'}")
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be dense, got {x.layout}: use {name}.to_dense()")
    if not x.is_meta and not all_finite(x) and bool(torch.isnan(x.detach()).any()):
        raise ValueError(f"{name} contains {int(torch.isnan(x.detach()).sum())} NaN out of {x.numel()} entries: "
                         "drop or repair them first")
    return x


def all_finite(x: Tensor) -> bool:
    """No entry of `x` is NaN or infinite. A sum is ten times as fast as a look at each, and needs no memory."""
    return bool(torch.isfinite(x.detach().sum())) or bool(torch.isfinite(x.detach()).all())


def angle(theta, name: str = "theta") -> Tensor:
    """An angle in radians, every entry in [0, pi] (pi as the dtype rounds it)."""
    theta = real_tensor(theta, name)
    top = torch.tensor(math.pi, dtype=theta.dtype, device=theta.device)   # float32 rounds pi upwards
    t = theta.detach()
    bad = (t < 0) | (t > top)
    if not t.is_meta and bool(bad.any()):
        raise ValueError(f"{name} must be an angle in radians in [0, pi], got {float(t[bad].flatten()[0]):.6g}: "
                         "convert degrees with torch.deg2rad, and fold larger angles first")
    return theta


def points(X, name: str = "X") -> Tensor:
    """A finite (n, d) matrix of n points, n >= 1 and d >= 1."""
    X = real_tensor(X, name)
    if X.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), one row a point, got {tuple(X.shape)}"
                         + (f": use {name}[None] for a single point" if X.ndim == 1 else ""))
    if X.numel() == 0:
        raise ValueError(f"{name} has shape {tuple(X.shape)}: at least one point with one coordinate is needed")
    if X.is_meta:
        raise ValueError(f"{name} is on the meta device, where there are no numbers: use points of a CPU or GPU")
    if not all_finite(X):
        raise ValueError(f"{name} contains infinite entries: drop or repair them first")
    return X


def alike(x: Tensor, y: Tensor, names: str = "x and y") -> None:
    """Same dtype and device, or a TypeError."""
    if x.dtype != y.dtype:
        raise TypeError(f"{names} must share one dtype, got {x.dtype} and {y.dtype}: cast one of them with .to()")
    if x.device != y.device:
        raise TypeError(f"{names} must be on one device, got {x.device} and {y.device}: move one of them with .to()")


def count(k, name: str, least: int = 0) -> int:
    """An integer >= least (bool and float are refused: depth=2.5 means nothing)."""
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(f"{name} must be an int, got {type(k).__name__} {k!r}")
    if k < least:
        raise ValueError(f"{name} must be at least {least}, got {k}")
    return int(k)


class _Seen(torch.autograd.Function):
    """The identity on what `check` accepts."""

    @staticmethod
    def forward(x, check):
        """Look at the values and hand them on."""
        x = check(x)
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Nothing to keep."""

    @staticmethod
    def backward(ctx, gradient):
        """Hand the gradient back."""
        return gradient, None

    @staticmethod
    def jvp(ctx, tangent, _):
        """Hand the tangent on."""
        return tangent.view_as(tangent)

    @staticmethod
    def vmap(info, in_dims, x, check):
        """Check the whole batch at once."""
        return _Seen.apply(x, check), in_dims[0]


def seen(check, x, name: str) -> Tensor:
    """`check(x, name)`, also under `torch.func.vmap`: there only an autograd Function may look at values."""
    return _Seen.apply(x, partial(check, name=name))
