"""Homogeneous activations (ReLU and its kin) as one infinitely wide layer after another sees them.

Every activation is normalised by c = 1 / E[s(z)^2], z ~ N(0, 1), so that a unit input stays a unit vector at
every layer. Norms factor out of a homogeneous kernel, and a function of the angle is left. It is given as a
*deficit*, its value at theta = 0 less its value at theta: a sum of positive terms, exact however close two
inputs are. Smooth activations are in `ntklib.smooth`.

Source: Cho and Saul (2009), eq. 6: J_1 is the dual of ReLU, J_0 of its derivative, J_2 of max(0, u)^2.
"""
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ntklib._layer import fold, gradient_deficits, layers
from ntklib.angles import _shares
from ntklib.smooth import SMOOTH, Smooth

# A kernel's kind: the covariance Sigma^(L), the tangent kernel of all layers, that of the first layer alone.
KINDS = ("nngp", "all", "first")


class ReLULike(NamedTuple):
    """Leaky ReLU of slope a: 0 is ReLU, 1 the identity, -1 the absolute value."""

    slope: float

    def function(self, u: Tensor) -> Tensor:
        """s(u)."""
        return u if self.slope == 1 else torch.nn.functional.leaky_relu(u, self.slope)

    @property
    def c(self) -> float:
        """1 / E[s(z)^2]."""
        return 2 / (1 + self.slope**2)

    @property
    def even(self) -> bool:
        """s(-u) = s(u), so that the angles theta and pi - theta are one."""
        return self.slope == -1

    @property
    def pole(self) -> float:
        """A deep kernel is singular near theta = -pole / depth: it varies with L beta theta / (3 pi)."""
        return 3 * math.pi / _shares(self.slope)[0]

    def power(self, depth: int) -> int:
        """K(x, y) is (|x| |y|)^power times a function of the angle."""
        return 1

    def order(self, kind: str) -> int:
        """The deficit vanishes like theta^order."""
        return 2 if kind == "nngp" else 1

    def top(self, depth: int, kind: str) -> float:
        """The kernel of a unit input with itself."""
        return depth + 1. if kind == "all" else 1.

    def deficit(self, theta: Tensor, depth: int, kind: str) -> Tensor:
        """1 - cos theta^(L); (L + 1)(1 - cos phi_L); 1 - cos theta prod_l (1 - beta theta^(l) / pi)."""
        beta, gamma = _shares(self.slope)
        if kind == "all":
            return gradient_deficits(theta, depth, beta, gamma)[0]
        *hidden, last = layers(theta, depth, beta, gamma)
        if kind == "nngp":
            return last.ends[0]
        lost = [*hidden, last][0].ends[0]
        for layer in hidden:
            lost = lost + beta / math.pi * layer.theta * (1 - lost)
        return lost


class SquaredReLU(NamedTuple):
    """max(0, u)^2, homogeneous of degree 2: norms are squared at every layer."""

    c: float = 2 / 3
    even: bool = False
    pole: float = math.inf

    def function(self, u: Tensor) -> Tensor:
        """s(u)."""
        return torch.relu(u) ** 2

    def power(self, depth: int) -> int:
        """As in ReLULike."""
        if depth > 52:
            raise ValueError(f"'relu2' takes |x| to the power 2^depth: past depth 52 the rounding of |x| leaves no "
                             f"digit of it, got depth = {depth}")
        return 2**depth

    def order(self, kind: str) -> int:
        """As in ReLULike."""
        return 2

    def top(self, depth: int, kind: str) -> float:
        """As in ReLULike; chi = E[s'^2] / E[s^2] = 4/3."""
        chi = 4 / 3
        return {"nngp": 1., "first": chi**depth, "all": sum(chi**l for l in range(depth + 1))}[kind]

    def deficit(self, theta: Tensor, depth: int, kind: str) -> Tensor:
        """1 - J_2 = ((3/2)(2 theta - sin 2 theta) + 2 (pi - theta) sin^2 theta) / (3 pi); and 1 - J_1."""
        d = lost = 2 * torch.sin(theta / 2) ** 2
        for l in range(depth):
            slope = d - _excess(theta)
            d = (1.5 * _lag(2 * theta) + 2 * (math.pi - theta) * torch.sin(theta) ** 2) / (3 * math.pi)
            lost = 4 / 3 * (lost + (self.top(l, kind) - lost) * slope) + (d if kind == "all" else 0)
            theta = 2 * torch.atan2(d.sqrt(), (2 - d).clamp(min=0).sqrt())
        return d if kind == "nngp" else lost


def _excess(theta: Tensor) -> Tensor:
    """J_1 - cos theta = h(theta) = (sin theta - theta cos theta) / pi without cancellation."""
    layer = fold(theta)
    near = layer.f**3 * layer.B / math.pi
    return torch.where(layer.far, 1 - layer.v + near, near)          # h(pi - f) = cos f + h(f)


def _lag(x: Tensor) -> Tensor:
    """x - sin x without cancellation."""
    square, series = x * x, torch.zeros_like(x)
    for k in range(12, 0, -1):
        series = series * square + (-1) ** (k + 1) / math.factorial(2 * k + 1)
    return torch.where(x < 2, series * square * x, x - torch.sin(x))


LINEAR = ReLULike(1.)
_HOMOGENEOUS = {"linear": LINEAR, "relu": ReLULike(0.), "abs": ReLULike(-1.), "relu2": SquaredReLU()}


def dual(activation) -> ReLULike | SquaredReLU | Smooth:
    """The dual of a name, of ("leaky_relu", a), or of an elementwise function of a tensor."""
    named = {**_HOMOGENEOUS, **SMOOTH}
    if isinstance(activation, str) and activation in named:
        return named[activation]
    if isinstance(activation, tuple) and len(activation) == 2 and activation[0] == "leaky_relu":
        _shares(activation[1])                                       # refuses what is not a finite number
        return ReLULike(float(activation[1]))
    if callable(activation):
        _check_elementwise(activation)
        return Smooth(getattr(activation, "__name__", repr(activation)), activation)
    raise ValueError(f"activation must be one of {', '.join(named)}, ('leaky_relu', slope) or an elementwise "
                     f"function of a tensor, got {activation!r}")


def _check_elementwise(function: Callable) -> None:
    """One value for each entry, whatever its neighbours, that autograd can follow: tried on three numbers."""
    u = torch.tensor([-1., 0.5, 2.], dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        s = function(u)
        whole = isinstance(s, Tensor) and s.shape == u.shape and s.dtype == u.dtype
        if whole and s.requires_grad and torch.allclose(s[1:2], function(u[1:2]), equal_nan=True):
            return
    got = f"{s.dtype} of shape {tuple(s.shape)}" if isinstance(s, Tensor) else type(s).__name__
    raise ValueError(f"an activation must be an elementwise function of a tensor, of which autograd can follow each "
                     f"value from its entry alone; {function!r} made {got} of float64 of shape (3,)")
