"""Characteristic activation boundaries: where a unit switches, and what moves it (Chen & Ge, 2, 3).

A unit z = act(w . x + b) with a breakpoint of act at t switches on the hyperplane w . x + b = t. In
hyperspherical form it is u . x + lam = 0, with u = w/|w| and lam = (b - t)/|w|; the point of it nearest
to the origin, -lam u, is the unit's spatial location. `of` reads the hyperplanes off a layer in any of
five parametrizations:

    SP    nn.Linear                              u = w/|w|             lam = b/|w|
    WN    weight_norm(nn.Linear)                 u = v/|v|             lam = b/g
    BN    Sequential(nn.Linear, BatchNorm1d)     u = w/|w|             lam = (b - mu + sigma beta/gamma)/|w|
    LN    Sequential(nn.Linear, LayerNorm)       u = (w - wbar)/|..|   only if beta = 0: else `layer_norm_cone`
    GmP   GmPLinear, GmPConv1d, GmPConv2d        u = u(theta)          lam = lam

and `perturb` moves the numbers that training moves in each of them.
"""
import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ntklib import _check
from ntklib.gmp.layers import GmPLayer
from ntklib.sphere import from_angles, to_angles


@dataclass(frozen=True)
class Boundary:
    """The hyperplanes normal . x + offset = 0, one a row: normal (*units, n), offset (*units).

    Raises ValueError for a zero normal (that unit never switches), a non-finite entry or shapes that do
    not match.

    >>> b = Boundary(torch.tensor([3.0, 4.0]), torch.tensor(-10.0))
    >>> b.location, b.distance(torch.tensor([0.0, 0.0]))
    (tensor([1.2000, 1.6000]), tensor(-2.))
    """

    normal: Float[Tensor, "*units n"]
    offset: Float[Tensor, "*units"]

    def __post_init__(self):
        normal, offset = _check.real_tensor(self.normal, "normal"), _check.real_tensor(self.offset, "offset")
        object.__setattr__(self, "offset", offset)              # a number has become a tensor
        _check.alike(normal, offset, "normal and offset")
        if normal.ndim == 0 or normal.shape[-1] == 0 or normal.shape[:-1] != offset.shape:
            raise ValueError(f"normal must have shape (*units, n) and offset (*units), got "
                             f"{tuple(normal.shape)} and {tuple(offset.shape)}")
        for x, name in ((normal, "normal"), (offset, "offset")):
            if not x.is_meta and bool(torch.isinf(x.detach()).any()):
                raise ValueError(f"{name} contains infinite entries: drop or repair them first")
        if not normal.is_meta and not bool((normal.detach() != 0).any(-1).all()):
            raise ValueError("normal has a zero row: a unit without weights never switches; drop it")

    @classmethod
    def from_angles(cls, theta: Float[Tensor, "*units m"], lam: Float[Tensor, "*units"]) -> "Boundary":
        """The same set in hyperspherical coordinates: u(theta) . x + lam = 0 (Definition 3.1)."""
        return cls(from_angles(theta), lam)

    @property
    def angles(self) -> Float[Tensor, "*units m"]:
        """theta of the normal; empty for n = 1."""
        return to_angles(self.normal)[1]

    @property
    def direction(self) -> Float[Tensor, "*units n"]:
        """u = w/|w|."""
        w = self.normal / _size(self.normal)
        return w / torch.linalg.vector_norm(w, dim=-1, keepdim=True)

    @property
    def lam(self) -> Float[Tensor, "*units"]:
        """b/|w|: minus the signed distance from the origin, counted along u."""
        return self.offset / self._length

    @property
    def location(self) -> Float[Tensor, "*units n"]:
        """The spatial location -lam u = -b w/|w|^2, its nearest point to the origin (Definition 2.1)."""
        return -self.lam[..., None] * self.direction

    def distance(self, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "..."]:
        """Signed distance u . x + lam of points, (*batch, *units): positive where a unit is on."""
        _check.alike(_check.real_tensor(x, "x"), self.normal, "x and the boundary")
        if x.ndim == 0 or x.shape[-1] != self.normal.shape[-1]:
            raise ValueError(f"x must have shape (..., {self.normal.shape[-1]}), got {tuple(x.shape)}")
        return torch.tensordot(x, self.direction, dims=([-1], [-1])) + self.lam

    def points(self, count: int, *, radius: float = 1.0,
               generator: torch.Generator | None = None) -> Float[Tensor, "*units count n"]:
        """`count` points of each boundary, around its location.

        In the plane they are evenly spaced from end to end within `radius` of it; in more dimensions Gaussian
        with standard deviation `radius`, for which a generator is needed.
        """
        count, n = _check.count(count, "count", least=1), self.normal.shape[-1]
        if not 0 <= radius < math.inf:
            raise ValueError(f"radius must be a finite number >= 0, got {radius!r}")
        u = self.direction
        if n == 2:
            along = torch.stack([-u[..., 1], u[..., 0]], -1)
            t = torch.linspace(-radius, radius, count, dtype=u.dtype, device=u.device)
            return self.location[..., None, :] + t[:, None] * along[..., None, :]
        if n > 2 and generator is None:
            raise TypeError(f"points on a boundary in R^{n} are random: pass generator=torch.Generator()")
        x = torch.zeros(*u.shape[:-1], count, n, dtype=u.dtype, device=u.device)
        if n > 2:
            x = radius * torch.randn(x.shape, dtype=u.dtype, device=u.device, generator=generator)
        return x - (x * u[..., None, :]).sum(-1, keepdim=True) * u[..., None, :] + self.location[..., None, :]

    def __getitem__(self, unit) -> "Boundary":
        """The boundary of one unit, or of some."""
        return Boundary(self.normal[unit], self.offset[unit])

    @property
    def _length(self) -> Tensor:
        return _length(self.normal)


def _size(x: Tensor) -> Tensor:
    """A power of two next to each vector's largest entry, 1 for zero: squares over it neither over- nor underflow."""
    size = x.detach().abs().amax(-1, keepdim=True)
    return torch.where(size > 0, size / (2 * torch.frexp(size).mantissa), 1)


def _length(x: Tensor) -> Tensor:
    size = _size(x)
    return torch.linalg.vector_norm(x / size, dim=-1) * size[..., 0]


def of(layer: nn.Module, *, at: float = 0.0, batch: Float[Tensor, "b n"] | None = None) -> Boundary:
    """The boundaries of a layer's units as it stands (a copy): where the input of the activation equals `at`.

    `layer` is any of the five kinds above, (units, n) for normals and offsets; a convolution's boundaries
    lie in the space of its patches. For an activation with several breakpoints call once for each of
    `breakpoints(activation)`. The mean and variance of batch normalisation are its running ones in eval
    mode; in training mode they come from `batch`, the input of the layer.

    Raises TypeError for another module; ValueError for a scale gamma = 0 (a constant unit), for batch
    statistics without a batch, and for layer normalisation with beta != at, whose boundary is no
    hyperplane.

    >>> layer = nn.Linear(2, 1)
    >>> layer.load_state_dict({"weight": torch.tensor([[0.0, 2.0]]), "bias": torch.tensor([-1.0])})
    <All keys matched successfully>
    >>> of(layer).location
    tensor([[0.0000, 0.5000]])
    """
    with torch.no_grad():
        if isinstance(layer, GmPLayer):
            u = layer.direction()
            return Boundary(u.clone(), layer.lam.to(u.dtype) - at)
        if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d):
            return Boundary(*_affine(layer, at))
        linear, norm = _normalised(layer)
        if isinstance(norm, nn.LayerNorm):
            return _layer_norm_plane(linear, norm, at)
        return _batch_norm_plane(linear, norm, at, batch)


def breakpoints(activation) -> tuple[float, ...]:
    """Where a piecewise activation changes its formula: the sources of its nonlinearity.

    `activation` is a module of torch.nn, one of the names "relu", "leaky_relu", "elu", "hardtanh", or
    ("srelu", t_left, t_right). ValueError for a smooth one: it has none.

    >>> breakpoints("relu"), breakpoints(nn.Hardtanh(-2, 3)), breakpoints(("srelu", -1.0, 0.5))
    ((0.0,), (-2.0, 3.0), (-1.0, 0.5))
    """
    if isinstance(activation, nn.Hardtanh):                       # and ReLU6, a subclass
        return float(activation.min_val), float(activation.max_val)
    if isinstance(activation, nn.Hardshrink | nn.Softshrink):
        return -float(activation.lambd), float(activation.lambd)
    if isinstance(activation, nn.Hardsigmoid | nn.Hardswish):
        return -3.0, 3.0
    if isinstance(activation, nn.Threshold):
        return (float(activation.threshold),)
    if isinstance(activation, nn.ReLU | nn.LeakyReLU | nn.PReLU | nn.RReLU | nn.ELU | nn.CELU | nn.SELU):
        return (0.0,)
    match activation:
        case "relu" | "leaky_relu" | "elu":
            return (0.0,)
        case "hardtanh":
            return -1.0, 1.0
        case ("srelu", left, right) if -math.inf < left <= right < math.inf:
            return float(left), float(right)
    raise ValueError(f"{activation!r} is not a known piecewise activation (a smooth one has no breakpoints)")


def perturb(layer: nn.Module, eps: float | Tensor | Mapping[str, float | Tensor]) -> nn.Module:
    """A copy of `layer` with its parameters moved by eps; `of(perturb(layer, eps))` is where that leads.

    eps is one number for every coordinate (the paper's figure 1), a flat tensor in the order of
    layer.parameters(), or {name: step} for some of the parameters. The coordinates are the layer's own: w
    and b, g and v, gamma and beta, or r, lam and the latitudes pi/2 - theta. Raises ValueError for an
    unknown name or a wrong size.

    >>> perturb(nn.LayerNorm(2), {"bias": 0.5}).bias.tolist()
    [0.5, 0.5]
    """
    moved = copy.deepcopy(layer)
    parameters = dict(moved.named_parameters())
    if isinstance(eps, Tensor) and eps.ndim > 0:
        sizes = [p.numel() for p in parameters.values()]
        if eps.shape != (sum(sizes),):
            raise ValueError(f"eps must be a number or have shape ({sum(sizes)},), one step a parameter, got "
                             f"{tuple(eps.shape)}")
        eps = dict(zip(parameters, eps.split(sizes), strict=True))
    elif not isinstance(eps, Mapping):
        eps = dict.fromkeys(parameters, eps)
    with torch.no_grad():
        for name, step in eps.items():
            if name not in parameters:
                raise ValueError(f"no parameter {name!r}: there are {', '.join(parameters)}")
            p = parameters[name]
            step = _check.real_tensor(step, f"eps[{name!r}]").to(p.dtype)
            if step.ndim and step.shape not in (p.shape, (p.numel(),)):
                raise ValueError(f"eps[{name!r}] must have shape {tuple(p.shape)}, got {tuple(step.shape)}")
            p.add_(step.view_as(p) if step.ndim else step)
    return moved


def rotation_bound(w: Float[Tensor, "*units n"], eps: Float[Tensor, "*units n"]) -> Float[Tensor, "*units"]:
    """The largest angle from w to w + eps over all eps of that length: arcsin(|eps|/|w|), pi if |eps| > |w|.

    Exact: attained by a step at a right angle to w + eps. This, and no worse, is what weights suffer in
    SP, v in WN, and w in BN; in GmP |eps| itself is a bound, whatever the unit (Theorem 3.7).

    >>> rotation_bound(torch.tensor([2.0, 0.0]), torch.tensor([0.0, 1.0])).sin()
    tensor(0.5000)
    """
    w, eps = _check.real_tensor(w, "w"), _check.real_tensor(eps, "eps")
    _check.alike(w, eps, "w and eps")
    if w.ndim == 0 or w.shape[-1:] != eps.shape[-1:]:
        raise ValueError(f"w and eps must have the same last dimension, got {tuple(w.shape)} and {tuple(eps.shape)}")
    if bool(torch.isinf(w).any() or torch.isinf(eps).any()):
        raise ValueError("w and eps must be finite: drop or repair infinite entries first")
    ratio = _length(eps) / _length(w)
    if bool(ratio.isnan().any()):
        raise ValueError("w and eps are both zero in one row: no direction, no angle")
    return torch.where(ratio <= 1, torch.asin(ratio.clamp(max=1)), torch.full_like(ratio, math.pi))


@dataclass(frozen=True)
class Cone:
    """Where the units of Sequential(nn.Linear, LayerNorm) switch: a_i + ratio_i sqrt(mean_j a_j^2 + eps) = 0.

    a = weight x + bias are the centred pre-activations, ratio_i = (beta_i - at)/gamma_i. Squared, it is a
    quadric; it is one half of a cone if bias and eps are 0, because layer normalisation does not see the
    length of x. The rebuttal's "same proof as for batch normalisation" holds for ratio = 0 alone, where
    it is a hyperplane. For |ratio_i| > sqrt(m - 1) it is empty: such a unit never switches.
    """

    weight: Float[Tensor, "m n"]
    bias: Float[Tensor, " m"]
    ratio: Float[Tensor, " m"]
    eps: float

    def value(self, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch m"]:
        """What vanishes on the boundary; in sign the activation's input (less `at`) where gamma > 0."""
        a = x @ self.weight.T + self.bias
        return a + self.ratio * (a.square().mean(-1, keepdim=True) + self.eps).sqrt()

    def quadric(self) -> tuple[Float[Tensor, "m n n"], Float[Tensor, "m n"], Float[Tensor, " m"]]:
        """(Q, q, c) with x.Qx + 2 q.x + c = a_i^2 - ratio_i^2 (mean_j a_j^2 + eps)."""
        W, b, m = self.weight, self.bias, len(self.bias)
        share = self.ratio.square() / m
        Q = W[:, :, None] * W[:, None, :] - share[:, None, None] * (W.T @ W)
        q = b[:, None] * W - share[:, None] * (b @ W)
        return Q, q, b.square() - share * (b @ b + m * self.eps)


def layer_norm_cone(layer: nn.Sequential, *, at: float = 0.0) -> Cone:
    """The boundary of Sequential(nn.Linear, LayerNorm), hyperplane or not."""
    linear, norm = _normalised(layer)
    if not isinstance(norm, nn.LayerNorm):
        raise TypeError(f"layer_norm_cone needs a Sequential of nn.Linear and nn.LayerNorm, "
                        f"got {type(norm).__name__}")
    with torch.no_grad():
        weight, bias = _affine(linear, 0.0)
        gamma, beta = _scale_and_shift(norm, bias)
        return Cone(weight - weight.mean(0), bias - bias.mean(), (beta - at) / gamma, norm.eps)


def _affine(linear: nn.Module, at: float) -> tuple[Tensor, Tensor]:
    weight = linear.weight.detach().flatten(1).clone()
    bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias.detach()
    return weight, bias - at


def _layer_norm_plane(linear: nn.Linear, norm: nn.LayerNorm, at: float) -> Boundary:
    cone = layer_norm_cone(nn.Sequential(linear, norm), at=at)
    if bool((cone.ratio != 0).any()):
        raise ValueError(f"{int((cone.ratio != 0).sum())} of {len(cone.ratio)} units have beta != {at:g}, "
                         "so that layer normalisation bends their boundary: use layer_norm_cone")
    sign = _scale_and_shift(norm, cone.bias)[0].sign()
    return Boundary(sign[:, None] * cone.weight, sign * cone.bias)


def _batch_norm_plane(linear: nn.Linear, norm: nn.BatchNorm1d, at: float, batch: Tensor | None) -> Boundary:
    weight, bias = _affine(linear, 0.0)
    if batch is not None:
        pre = _check.points(batch, "batch") @ weight.T + bias
        mean, var = pre.mean(0), pre.var(0, correction=0)
    elif norm.training or norm.running_mean is None:
        raise ValueError("in training mode the boundary depends on the batch: call eval(), or pass batch=")
    else:
        mean, var = norm.running_mean, norm.running_var
    gamma, beta = _scale_and_shift(norm, bias)
    offset = bias - mean + (var + norm.eps).sqrt() * (beta - at) / gamma
    return Boundary(gamma.sign()[:, None] * weight, gamma.sign() * offset)


def _normalised(layer: nn.Module) -> tuple[nn.Linear, nn.Module]:
    match list(layer) if isinstance(layer, nn.Sequential) else layer:
        case [nn.Linear() as linear, (nn.BatchNorm1d() | nn.LayerNorm()) as norm]:
            return linear, norm
    raise TypeError(f"no boundaries known for {type(layer).__name__}: pass nn.Linear, a convolution, a GmP "
                    "layer, or nn.Sequential(nn.Linear, BatchNorm1d or LayerNorm) without the activation")


def _scale_and_shift(norm: nn.Module, like: Tensor) -> tuple[Tensor, Tensor]:
    gamma = torch.ones_like(like) if norm.weight is None else norm.weight.detach()
    beta = torch.zeros_like(like) if norm.bias is None else norm.bias.detach()
    if bool((gamma == 0).any()):
        raise ValueError("a unit with scale gamma = 0 is constant and has no boundary: drop it")
    return gamma, beta
