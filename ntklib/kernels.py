"""Gram matrices of infinitely wide networks: Sigma^(L) (NNGP) and the neural tangent kernel Theta^(L).

With the normalised duals of an activation s, for (u, v) ~ N(0, Sigma^(l)),

    Sigma^(l+1) = c E[s(u) s(v)],   Theta^(l+1) = Sigma^(l+1) + Theta^(l) c E[s'(u) s'(v)]

from Sigma^(0) = Theta^(0) = <x, y>; this is the sum over layers of Lemma 3.1. If only the first layer is
trained, Theta^(0) times the product of the derivative duals is left. For a homogeneous activation all this is
one function of the angle, whatever the depth (`ntklib.homogeneous`).
"""
import numbers

import torch
from jaxtyping import Float
from torch import Tensor

from ntklib import _check
from ntklib.duals import LINEAR, Smooth, dual
from ntklib.homogeneous import HomogeneousGram

__all__ = ["nngp_gram", "ntk_gram"]


def nngp_gram(X: Float[Tensor, "n d"], Y: Float[Tensor, "m d"] | None = None, *, depth: int,
              activation="relu", tol: float = 1e-9) -> Float[Tensor, "n m"]:
    """Covariance Sigma^(L)(x, y) of the outputs of an infinitely wide network with L = `depth` hidden layers.

    X is (n, d), Y (m, d), float64 or float32; without Y, the Gram of X with itself, exactly symmetric.
    Weights are standard normal, a layer is scaled by c = 1 / E[s(z)^2], and there are no biases (paper, eq.
    1): Sigma^(L)(x, x) = |x|^2 for ReLU. `activation` is "linear", "relu", ("leaky_relu", a), "abs", "relu2",
    "erf", "sin", "tanh", "gelu", "silu", "sigmoid", "softplus" or an elementwise function of a tensor. depth
    = 0 is <x, y>. For tanh, silu, sigmoid, softplus and functions a Hermite series leaves out at most the
    share `tol` (100 eps, if that is more) in every layer; all others are closed forms. Those of erf, sin and
    gelu round by eps |x|^2 between two points that nearly coincide, though not on the diagonal without Y.

    Raises TypeError or ValueError for anything but finite points of one dimension, dtype and device;
    ValueError where a Hermite series does not reach `tol`, for a function that is not elementwise, or whose
    E[s(z)^2] is 0 or infinite, and for "relu2" past depth 52; OverflowError.

    >>> nngp_gram(torch.eye(2), depth=1) * torch.pi             # |x|^2, and 1/pi at a right angle
    tensor([[3.1416, 1.0000],
            [1.0000, 3.1416]])

    Source: Cho and Saul (2009), eq. 6; Lee et al. (2018), arXiv:1711.00165, eq. 5.
    """
    return _gram(X, Y, depth, activation, "nngp", tol)


def ntk_gram(X: Float[Tensor, "n d"], Y: Float[Tensor, "m d"] | None = None, *, depth: int, activation="relu",
             trained: str = "all", tol: float = 1e-9) -> Float[Tensor, "n m"]:
    """Tangent kernel K(x, y) = <grad f(x), grad f(y)> of an infinitely wide network at initialisation.

    trained = "all" sums over all L + 1 weight matrices, with K(x, x) = (L + 1)|x|^2 for ReLU; "first" keeps
    the first alone, with K(x, x) = |x|^2. A network with k outputs has K times the k x k identity. Arguments
    and errors otherwise as in `nngp_gram`.

    The gradients with respect to X and Y are right wherever they exist. Where two points coincide a ReLU
    kernel has a kink, and the mean of its sides is returned.

    >>> ntk_gram(torch.eye(2), depth=1) * torch.pi              # 2 |x|^2, and 1/pi + 0 * (1/2)
    tensor([[6.2832, 1.0000],
            [1.0000, 6.2832]])

    Source: Jacot, Gabriel and Hongler (2018), Theorem 1; Liu et al. (2025), arXiv:2305.08813v2, Lemma 3.1.
    """
    return _gram(X, Y, depth, activation, trained_layers(trained), tol)


def trained_layers(trained) -> str:
    """`trained` itself if it is "all" or "first"."""
    if trained not in ("all", "first"):
        raise ValueError(f'trained must be "all" or "first", the layers that are trained; got {trained!r}')
    return trained


def _gram(X, Y, depth: int, activation, kind: str, tol: float) -> Tensor:
    X, depth, s = _check.points(X), _check.count(depth, "depth"), dual(activation)
    if isinstance(tol, bool) or not isinstance(tol, numbers.Real) or not tol >= 0:
        raise ValueError(f"tol must be a number >= 0, the share a Hermite series may leave out; got {tol!r}")
    if Y is not None:
        Y = _check.points(Y, "Y")
        _check.alike(X, Y, "X and Y")
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"X and Y must hold points of one dimension, got shapes {tuple(X.shape)} and "
                             f"{tuple(Y.shape)}")
    if depth == 0 or s == LINEAR:
        K = _inner(X, Y) * LINEAR.top(depth, kind)
    elif isinstance(s, Smooth):
        K = _recursion(X, Y, s, depth, kind, tol)
    else:
        K = HomogeneousGram.apply(X, Y, s, depth, kind)
    if Y is None and not (isinstance(s, Smooth) and kind == "first"):    # a constant layer has no such kernel
        lost = (K.detach().diagonal().abs() < torch.finfo(X.dtype).tiny) & (X.detach() != 0).any(1)
        if bool(lost.any()):
            raise OverflowError(f"the kernel of {int(lost.sum())} of {len(X)} points with itself is too small for "
                                f"{X.dtype}: scale the inputs up, or drop points of next to no length")
    if not _check.all_finite(K):
        raise OverflowError(f"the kernel exceeds {X.dtype}: scale the inputs down")
    return K


def _inner(X: Tensor, Y: Tensor | None) -> Tensor:
    if Y is not None:
        return X @ Y.T
    G = X @ X.T
    return (G + G.T) / 2                             # a product need not round alike on both sides


def _recursion(X: Tensor, Y: Tensor | None, s: Smooth, depth: int, kind: str, tol: float, rows=1024) -> Tensor:
    """The recursion above, a block of rows at a time, as torch differentiates it.

    Without Y the diagonal of S is the variance, to the last digit: E[s'^2] > 1 would grow any difference of the
    two from layer to layer, and large variances cancel in the closed forms.
    """
    if s.closed is None and any(Z is not None and Z.requires_grad and bool((Z == 0).all(1).any()) for Z in (X, Y)):
        raise ValueError(f"{s.name}: its Hermite series has no gradient at a zero input: drop zero rows")
    blocks, right = [], X if Y is None else Y

    def own(S: Tensor, q: Tensor, start: int) -> Tensor:
        return S if Y is not None else torch.diagonal_scatter(S, q, start)

    for start, block in zip(range(0, len(X), rows), X.split(rows), strict=True):
        qx, qy = block.square().sum(1), right.square().sum(1)
        S = own(block @ right.T, qx, start)
        T = S
        for _ in range(depth):
            S, slope = s.duals(qx, qy, S, tol)
            qx, qy = s.variance(qx), s.variance(qy)
            S = own(S, qx, start)
            T = T * slope + (S if kind == "all" else 0)
        blocks.append(S if kind == "nngp" else T)
    K = torch.cat(blocks)
    return K if Y is not None else (K + K.T) / 2         # products need not round alike on both sides
