"""Angles between inputs, and what wide random ReLU networks do to them.

theta is the angle between two inputs, a the slope of the activation, u for u > 0 and a u for u < 0, and
beta = (1 - a)^2 / (1 + a^2) its share of ReLU: 1 for ReLU (a = 0), 0 for the identity (1), 2 for |u| (-1).

Every function is accurate to a few units in the last place at every angle from 0 to pi, also where the result
is small (theta - g, 1 - cos phi), and differentiable any number of times, also under `torch.func`.
"""
import math
import numbers

import torch
from jaxtyping import Float
from torch import Tensor

from ntklib import _check, _layer

__all__ = ["angle_between", "angle_deficit", "angle_map", "embedding_angle", "gradient_angle",
           "gradient_deficit"]


# The angle between two vectors

def angle_between(x: Float[Tensor, "*#batch d"], y: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch"]:
    """Angle between two vectors, 2 atan2(|u - v|, |u + v|) with u = x/|x| and v = y/|y|.

    Vectors of any length lie along the last dimension, those before it broadcast; radians in [0, pi].
    Small angles keep their relative accuracy (down to 1e-150; 1e-18 in float32), as u and v carry what their
    division rounds off. At parallel and antiparallel inputs the angle has a kink; the gradient returned there
    is the mean of its sides, 0.

    Raises TypeError unless x and y are float64 or float32 tensors of one dtype on one device; ValueError for
    NaN or infinite entries, zero vectors, vectors without a coordinate, and shapes that do not broadcast.

    >>> angle_between(torch.tensor([1., 0.]), torch.tensor([[0., 3.], [2., 2.], [-5., 0.]])).rad2deg()
    tensor([ 90.,  45., 180.])

    Source: W. Kahan, "How futile are mindless assessments of roundoff in floating-point computation?" (2006),
    section 12.
    """
    x, y = _check.seen(_vectors, x, "x"), _check.seen(_vectors, y, "y")
    _check.alike(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("x and y must have the same last dimension, the coordinates of a vector, "
                         f"got {tuple(x.shape)} and {tuple(y.shape)}")
    try:
        torch.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        raise ValueError(f"x and y must broadcast over their leading dimensions, got {tuple(x.shape)} and "
                         f"{tuple(y.shape)}: use x[:, None] and y[None] for all pairs") from None
    (u, u_rest), (v, v_rest) = _direction(x), _direction(y)
    across, along = (u - v) + (u_rest - v_rest), u + v
    # |u| and |v| are 1 only up to rounding, which puts a component along u + v into u - v: take it out. Past
    # pi/2 the divisor is |u - v|^2, so that nothing happens where u + v vanishes.
    size = torch.maximum((along * along).sum(-1, keepdim=True), (across * across).sum(-1, keepdim=True))
    across = across - along * ((along * across).sum(-1, keepdim=True) / size)
    return 2 * torch.atan2(_layer.root((across * across).sum(-1)), _layer.root((along * along).sum(-1)))


def _direction(x: Tensor) -> tuple[Tensor, Tensor]:
    """x/|x| = u + rest: u is rounded, rest is what it lacks (to autograd a constant)."""
    largest = x.detach().abs().amax(-1, keepdim=True)
    power_of_two = torch.frexp(largest).mantissa / largest            # exact, so that no digit of x is lost
    x = x * power_of_two.clamp(max=1 / torch.finfo(x.dtype).tiny)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    u = x / length
    x, length, product = x.detach(), length.detach(), u.detach() * length.detach()
    return u, (x - product - _product_error(u.detach(), length, product)) / length


def _product_error(a: Tensor, b: Tensor, product: Tensor) -> Tensor:
    """Exactly a b - product, where product is a b rounded (Dekker 1971)."""
    split = 2. ** (27 if a.dtype == torch.float64 else 12) + 1
    a1, b1 = (split * c - (split * c - c) for c in (a, b))            # the upper half of the digits
    a2, b2 = a - a1, b - b1
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


# One layer

def angle_map(theta: Float[Tensor, "*shape"], slope: float = 0.) -> Float[Tensor, "*shape"]:
    """Angle after a wide random layer, g(theta) = arccos(cos theta + beta (sin theta - theta cos theta)/pi).

    theta in radians in [0, pi], any shape; pi as the dtype rounds it stands for pi itself. The derivative is
    right on the closed interval: g'(0) = 1 and g'(pi) = 0 (for slope -1, the absolute value, -1).

    Raises TypeError for anything but a float64 or float32 tensor (or a number, taken as float64) and for a
    slope that is no number; ValueError for NaN, angles outside [0, pi] and a slope that is not finite.

    >>> angle_map(torch.tensor([0., torch.pi / 2, torch.pi])).rad2deg()      # arccos of 1, 1/pi and 0
    tensor([ 0.0000, 71.4393, 90.0000])

    Source: Cho and Saul (2009), the arc-cosine kernel of degree 1; Liu et al. (2025), arXiv:2305.08813v2,
    Proposition A.1; the slope is derived in `ntklib.symbolic`.
    """
    theta, beta, gamma = _check.seen(_check.angle, theta, "theta"), *_shares(slope)
    return _layer.turn(_layer.fold(theta), beta, gamma).angle


def angle_deficit(theta: Float[Tensor, "*shape"], slope: float = 0.) -> Float[Tensor, "*shape"]:
    """What one layer takes off an angle: theta - g(theta) = beta theta^2 / (3 pi) + ..., uncancelled.

    Arguments and errors as in `angle_map`.

    >>> angle_deficit(torch.tensor(1e-9)) * 3 * torch.pi                     # theta^2
    tensor(1.0000e-18)

    Source: Liu et al. (2025), arXiv:2305.08813v2, Lemma E.6.
    """
    theta, beta, gamma = _check.seen(_check.angle, theta, "theta"), *_shares(slope)
    return _layer.turn(_layer.fold(theta), beta, gamma).deficit


# Depth

def embedding_angle(theta: Float[Tensor, "*shape"], depth: int, slope: float = 0.) -> Float[Tensor, "*shape"]:
    """Angle between the embeddings of two inputs after `depth` wide layers, theta^(L) = g(g(...g(theta))).

    depth is an int >= 0, and 0 gives theta itself. Other arguments and errors as in `angle_map`.

    >>> embedding_angle(torch.tensor(torch.pi), depth=2).rad2deg()           # g(90 degrees), arccos(1/pi)
    tensor(71.4393)

    Source: Liu et al. (2025), arXiv:2305.08813v2, Theorem A.2.
    """
    theta, depth = _check.seen(_check.angle, theta, "theta"), _check.count(depth, "depth")
    for layer in _layer.layers(theta, depth, *_shares(slope)):
        theta = layer.theta
    return theta.clone()


def gradient_angle(theta: Float[Tensor, "*shape"], depth: int, slope: float = 0.) -> Float[Tensor, "*shape"]:
    """Angle phi between the parameter gradients of two inputs to a network of L = `depth` wide hidden layers,
    (L + 1) cos phi = sum_{l=0..L} cos theta^(l) prod_{k=l..L-1} (1 - beta theta^(k) / pi).

    theta^(l) is the embedding angle; depth = 0 is the linear model, phi = theta. Arguments and errors as in
    `embedding_angle`.

    For depth >= 1 and slope != 1, phi ~ sqrt(beta L theta / pi) leaves theta = 0 without a finite slope.
    Inputs that pass through each other see a cusp; the derivative returned there is the mean of its sides, 0
    (for slope -1 also at pi, where phi is 0 again). `gradient_deficit` has a true, finite derivative there.

    >>> gradient_angle(torch.tensor(torch.pi / 2), depth=1).cos() * 2 * torch.pi     # (0 * 1/2 + 1/pi) / 2
    tensor(1.0000)

    Source: Liu et al. (2025), arXiv:2305.08813v2, Lemma 3.1, eq. 7 and 8.
    """
    theta, depth = _check.seen(_check.angle, theta, "theta"), _check.count(depth, "depth")
    beta, gamma = _shares(slope)
    if depth == 0 or beta == 0:                          # a linear network has the angle of the linear model
        return theta.clone()
    minus, plus = _layer.gradient_deficits(theta, depth, beta, gamma)
    return 2 * torch.atan2(_layer.root(minus), plus.sqrt())


def gradient_deficit(theta: Float[Tensor, "*shape"], depth: int,
                     slope: float = 0.) -> Float[Tensor, "*shape"]:
    """1 - cos phi for the gradient angle phi, = beta L theta / (2 pi) + ..., without cancellation.

    Differentiable on the closed interval. Arguments and errors as in `gradient_angle`.

    >>> gradient_deficit(torch.tensor(1e-9), depth=4) * torch.pi             # 2 theta
    tensor(2.0000e-09)

    Source: Liu et al. (2025), arXiv:2305.08813v2, Lemma 3.1 and Corollary 3.3.
    """
    theta, depth = _check.seen(_check.angle, theta, "theta"), _check.count(depth, "depth")
    return _layer.gradient_deficits(theta, depth, *_shares(slope))[0] / (depth + 1)


# Arguments

def _vectors(x, name: str) -> Tensor:
    """Non-zero finite vectors along the last dimension."""
    x = _check.real_tensor(x, name)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} must hold vectors along its last dimension, got shape {tuple(x.shape)}")
    if x.is_meta:
        return x
    if bool(torch.isinf(x).any()):
        raise ValueError(f"{name} contains infinite entries: drop or repair them first")
    zero = (x == 0).all(-1)
    if bool(zero.any()):
        raise ValueError(f"{name} contains {int(zero.sum())} zero vector(s) out of {zero.numel()}, "
                         "which have no direction: drop them first")
    return x


def _shares(slope: float) -> tuple[float, float]:
    """beta = (1 - a)^2 / (1 + a^2) and gamma = 2 - beta = (1 + a)^2 / (1 + a^2), both to full accuracy."""
    if isinstance(slope, bool) or not isinstance(slope, numbers.Real):
        raise TypeError(f"slope must be a number, got {type(slope).__name__} {slope!r}: call once a slope")
    a = float(slope)
    if not math.isfinite(a):
        raise ValueError(f"slope must be finite, got {a}: 0. is ReLU, 1. a linear network, -1. |u|")
    return ((1 - a) / math.hypot(1, a)) ** 2, ((1 + a) / math.hypot(1, a)) ** 2
