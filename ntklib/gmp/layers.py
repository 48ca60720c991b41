"""Layers in geometric parametrization: z = r act(u(theta) . x + lam), unit by unit (Chen & Ge, section 3).

The radius r stands outside the activation and lam is not multiplied by it, so the boundary {x : u . x +
lam = 0} of a unit depends on (theta, lam) alone, and r may turn negative. n + 1 numbers a unit instead of
n + bias.
"""
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ntklib import _check
from ntklib.gmp.unit import unit
from ntklib.sphere import to_angles

HALF = (torch.bfloat16, torch.float16)


class KeepsAngles:
    """A module whose angles stay float32 when it is cast to bfloat16 or float16.

    A bfloat16 angle near pi/2 is off by up to 4e-3, and n of them by sqrt(n/2) times that.
    """

    _angles = "latitude"

    def _apply(self, fn, recurse=True):
        angles = getattr(self, self._angles, None)

        def keep(x):
            out = fn(x)
            mine = angles is not None and (x is angles or x is angles.grad)
            return x.to(out.device) if mine and out.dtype in HALF else out
        return super()._apply(keep, recurse)


class GmPLayer(KeepsAngles, nn.Module):
    """What the layers share: `count` units of `fan_in` weights each. Not for use by itself.

    Parameters: r (count,), lam (count,) and latitude = pi/2 - theta (count, fan_in - 1), see
    `ntklib.gmp.unit`. One weight (fan_in = 1) leaves no angle: its sign is a buffer and never trained, as
    in the paper.
    """

    def __init__(self, fan_in: int, count: int, *, activation: Callable[[Tensor], Tensor] = torch.relu,
                 generator: torch.Generator | None = None, device=None, dtype: torch.dtype | None = None):
        super().__init__()
        if not callable(activation):
            raise TypeError(f"activation must be a function such as torch.relu, got {activation!r}")
        self.activation = activation
        dtype = dtype or torch.get_default_dtype()
        self.r = nn.Parameter(torch.empty(count, device=device, dtype=dtype))
        self.lam = nn.Parameter(torch.empty(count, device=device, dtype=dtype))
        wide = torch.float32 if dtype in HALF else dtype
        self.latitude = nn.Parameter(torch.empty(count, fan_in - 1, device=device, dtype=wide))
        sign = torch.empty(count, 1, device=device, dtype=wide) if fan_in == 1 else None
        self.register_buffer("sign", sign)
        self._cached = None
        self.reset_parameters(generator)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Directions uniform on the sphere (Remark 3.5), lam = 0, r = sqrt(2), so that E z^2 = |x|^2 / n."""
        self.r.fill_(math.sqrt(2))
        self.lam.zero_()
        if not self.r.is_meta:
            count, angles = self.latitude.shape
            device = self.latitude.device if generator is None else generator.device
            draw = torch.randn(count, angles + 1, dtype=torch.float64, generator=generator, device=device)
            self.point_along(draw)

    @property
    def theta(self) -> Float[Tensor, "count m"]:
        """The angles of `ntklib.sphere`, pi/2 - latitude; assign to set them."""
        return math.pi / 2 - self.latitude

    @theta.setter
    def theta(self, theta: Float[Tensor, "count m"]) -> None:
        theta = _check.real_tensor(theta, "theta")
        if theta.shape != self.latitude.shape:
            units, angles = self.latitude.shape
            raise ValueError(f"theta must hold {angles} angles for each of {units} units, got shape "
                             f"{tuple(theta.shape)}: ({units}, {angles}) is right")
        if not theta.is_meta and bool(torch.isinf(theta.detach()).any()):
            raise ValueError("theta contains infinite entries: an angle is a finite number of radians")
        with torch.no_grad():
            self.latitude.copy_(math.pi / 2 - theta.double())

    def direction(self) -> Float[Tensor, "count n"]:
        """The unit vectors u(theta), one a row, in float32 or better.

        In eval mode they are computed once and kept while no gradient in theta is asked for, until theta
        changes. (A change through `latitude.data` is not seen by autograd, and not here either: call
        eval() after it.)
        """
        if self.sign is not None:
            return self.sign
        latitude = self.latitude
        if self.training or (latitude.requires_grad and torch.is_grad_enabled()) or not _watched(latitude):
            return unit(latitude)
        state = (latitude.data_ptr(), latitude._version, latitude.dtype)
        if self._cached is None or self._cached[0] != state:
            with torch.inference_mode(False), torch.no_grad():
                self._cached = (state, unit(latitude))
        return self._cached[1]

    def forward(self, x: Tensor) -> Tensor:
        """r act(u . x + lam)."""
        z = self.activation(self._affine(x, self.direction().to(self.lam.dtype)))
        return self._per_unit(self.r).to(z.dtype) * z

    def train(self, mode: bool = True):
        """As in nn.Module; forgets the directions kept in eval mode."""
        self._cached = None
        return super().train(mode)

    def __getstate__(self):
        return self.__dict__ | {"_cached": None}

    @torch.no_grad()
    def point_along(self, w: Float[Tensor, "count n"]) -> Float[Tensor, " count"]:
        """Turn the units to the directions of w; returns |w|. ValueError for a zero or non-finite row, or a shape."""
        if w.shape != (len(self.latitude), self.latitude.shape[1] + 1):
            raise ValueError(f"w must have shape {(len(self.latitude), self.latitude.shape[1] + 1)}, one row a unit, "
                             f"got {tuple(w.shape)}")
        r, theta = to_angles(w.double())
        self.latitude.copy_(math.pi / 2 - theta)
        if self.sign is not None:
            self.sign.copy_(w.sign())
        return r.abs()

    def _affine(self, x: Tensor, u: Tensor) -> Tensor:
        raise NotImplementedError

    def _per_unit(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class GmPLinear(GmPLayer):
    """z = r relu(u(theta) . x + lam): nn.Linear and its ReLU in one, (*, in_features) -> (*, out_features).

    Another piecewise activation may be given. `generator` draws the first directions, torch's own one by
    default.

    >>> layer = GmPLinear(2, 1)
    >>> layer.theta = torch.tensor([[torch.pi / 2]])                     # u = (0, 1)
    >>> (layer(torch.tensor([[5.0, 3.0]])) / layer.r).detach()
    tensor([[3.]])
    """

    def __init__(self, in_features: int, out_features: int, **options):
        super().__init__(_check.count(in_features, "in_features", least=1),
                         _check.count(out_features, "out_features", least=1), **options)
        self.in_features, self.out_features = in_features, out_features

    def _affine(self, x, u):
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ValueError(f"x must have shape (..., {self.in_features}), got {tuple(x.shape)}")
        return F.linear(x, u, self.lam)

    def _per_unit(self, x):
        return x

    def extra_repr(self) -> str:
        """The sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}"


class GmPConv(GmPLayer):
    """A convolution whose filters, flattened over (channel, kernel), are the units."""

    rank: int

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...], stride=1,
                 padding=0, dilation=1, groups: int = 1, **options):
        for name, k in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
            _check.count(k, name, least=1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"groups = {groups} must divide in_channels = {in_channels} and "
                             f"out_channels = {out_channels}")
        kernel = kernel_size if isinstance(kernel_size, tuple) else (kernel_size,) * self.rank
        if len(kernel) != self.rank:
            raise ValueError(f"kernel_size must be an int or {self.rank} of them, got {kernel_size}")
        kernel = tuple(_check.count(k, "kernel_size", least=1) for k in kernel)
        shape = (out_channels, in_channels // groups, *kernel)
        super().__init__(math.prod(shape[1:]), out_channels, **options)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight_shape = shape

    def _affine(self, x, u):
        convolve = F.conv1d if self.rank == 1 else F.conv2d
        return convolve(x, u.view(self.weight_shape), self.lam, self.stride, self.padding, self.dilation,
                        self.groups)

    def _per_unit(self, x):
        return x.view(-1, *[1] * self.rank)

    def extra_repr(self) -> str:
        """The sizes."""
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
                f"groups={self.groups}")


class GmPConv1d(GmPConv):
    """z = r relu(conv(x, u(theta)) + lam), (*, in_channels, l) -> (*, out_channels, l').

    Arguments as in nn.Conv1d; padding is with zeros.

    >>> GmPConv1d(3, 8, 5, padding="same")(torch.randn(2, 3, 10)).shape
    torch.Size([2, 8, 10])
    """

    rank = 1


class GmPConv2d(GmPConv):
    """z = r relu(conv(x, u(theta)) + lam), (*, in_channels, h, w) -> (*, out_channels, h', w').

    Arguments as in nn.Conv2d; padding is with zeros.

    >>> GmPConv2d(3, 8, 3, stride=2)(torch.randn(2, 3, 9, 9)).shape
    torch.Size([2, 8, 4, 4])
    """

    rank = 2


def _watched(latitude: Tensor) -> bool:
    """Can a change be noticed? Not by a compiler, in functional_call, or without a version counter."""
    return (not torch.compiler.is_compiling() and isinstance(latitude, nn.Parameter)
            and not latitude.is_inference())
