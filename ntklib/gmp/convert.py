"""From ordinary layers to geometric ones and to optimizers: `geometric`, `from_module`, `coordinates`."""
import copy
import math
from collections import OrderedDict
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ntklib import _check
from ntklib.gmp.layers import HALF, GmPConv1d, GmPConv2d, GmPLayer, GmPLinear, KeepsAngles
from ntklib.gmp.unit import unit
from ntklib.sphere import to_angles


class Geometric(nn.Module):
    """The parametrization w_i = r_i u(theta_i) of the rows of a weight, for torch.nn.utils.parametrize.

    A row is everything behind the first dimension, flattened. Rows of one weight have no angle: there w = r.
    """

    def __init__(self, shape: torch.Size):
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, r: Float[Tensor, " m"], latitude: Float[Tensor, "m k"]) -> Tensor:
        """The weight: r_i times the unit vector at latitude_i = pi/2 - theta_i."""
        return (r[:, None] * unit(latitude)).to(r.dtype).view(self.shape)

    def right_inverse(self, weight: Tensor) -> tuple[Float[Tensor, " m"], Float[Tensor, "m k"]]:
        """(r, latitude) of a weight, up to rounding. ValueError for another shape, a zero or a non-finite row."""
        if weight.shape != self.shape:
            raise ValueError(f"the weight must have shape {self.shape}, got {tuple(weight.shape)}")
        wide = torch.float32 if weight.dtype in HALF else weight.dtype
        r, theta = to_angles(weight.detach().flatten(1).double())
        return r.to(weight.dtype), (math.pi / 2 - theta).to(wide)


class _Coordinates(KeepsAngles, parametrize.ParametrizationList):
    _angles = "original1"


def geometric(module: nn.Module, name: str = "weight") -> nn.Module:
    """Train `module.name` in radii and angles, w_i = r_i u(theta_i), as weight_norm trains it in g and v.

    Changes the module in place and returns it: `module.parametrizations.weight.original0` are the radii,
    `.original1` the latitudes pi/2 - theta, and assigning to `module.weight` sets both. The bias stays a
    bias (r times lam, not lam); for the layer of the paper use GmPLinear or `from_module`. Undo with
    torch.nn.utils.parametrize.remove_parametrizations.

    Raises ValueError for a weight with a zero or non-finite row, or without rows.

    >>> layer = geometric(torch.nn.Linear(3, 2, dtype=torch.float64))
    >>> {name: tuple(p.shape) for name, p in layer.named_parameters()}
    {'bias': (2,), 'parametrizations.weight.original0': (2,), 'parametrizations.weight.original1': (2, 2)}
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"{type(module).__name__} has no tensor {name!r} to parametrize")
    if parametrize.is_parametrized(module, name):
        raise ValueError(f"{name!r} is parametrized already: remove that parametrization first")
    if weight.ndim < 2:
        raise ValueError(f"{name!r} must have shape (units, ...), got {tuple(weight.shape)}")
    parametrize.register_parametrization(module, name, Geometric(weight.shape))
    module.parametrizations[name].__class__ = _Coordinates      # the same list; keeps angles float32
    return module


def from_module(module: nn.Module) -> nn.Module:
    """The same function with r = |w| and lam = b/|w|: relu(w.x + b) = r relu(u.x + lam).

    An nn.Linear, nn.Conv1d or nn.Conv2d becomes the layer that computes relu(module(x)). In an
    nn.Sequential each of them that a ReLU or LeakyReLU follows takes that activation in; all else is
    copied, also the output layer, and modules with hooks or a forward of their own. A module used twice is used
    twice. The argument itself is left alone. A layer without bias gets lam = 0, which is then trained; what was
    frozen stays frozen.

    Raises TypeError for another module, ValueError for a unit of weight zero, or so small that b/|w| overflows,
    for padding other than zeros, and for a Sequential in which there is nothing to convert.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> [type(layer).__name__ for layer in from_module(net)]
    ['GmPLinear', 'Linear']
    """
    if _is(module, nn.Sequential):
        net = _convert_pairs(module, {})
        if not any(isinstance(layer, GmPLayer) for layer in net.modules()):
            raise ValueError("nothing to convert: no linear or convolution layer is followed by a ReLU")
        return net
    if not _is(module, *CONVERTIBLE):
        raise TypeError(f"cannot convert {type(module).__name__}: only nn.Linear, nn.Conv1d, nn.Conv2d and "
                        "nn.Sequential can be, with their own forward and without hooks")
    return _convert(module, torch.relu)


CONVERTIBLE = (nn.Linear, nn.Conv1d, nn.Conv2d)


def _is(module, *kinds: type) -> bool:
    """Whether a module computes what one of these does: of a subclass with another forward nothing is known."""
    return (any(isinstance(module, kind) and type(module).forward is kind.forward for kind in kinds)
            and not module._forward_hooks and not module._forward_pre_hooks)


def _convert_pairs(net: nn.Sequential, done: dict) -> nn.Sequential:
    """`done` has the copies by the id of what they are of, and the converted layers also by their activation."""
    out, children = OrderedDict(), list(net._modules.items())         # named_children() gives a shared module once
    while children:
        name, module = children.pop(0)
        following = children[0][1] if children else None
        if _is(module, *CONVERTIBLE) and _is(following, nn.ReLU, nn.LeakyReLU):
            children.pop(0)
            key = id(module), getattr(following, "negative_slope", 0)
            if key not in done:
                activation = torch.relu if isinstance(following, nn.ReLU) else copy.deepcopy(following)
                done[key] = _convert(module, activation)
            out[name] = done[key]
        elif _is(module, nn.Sequential):
            out[name] = _convert_pairs(module, done)
        else:
            out[name] = copy.deepcopy(module, done)
    return nn.Sequential(out).train(net.training)


@torch.no_grad()
def _convert(module: nn.Module, activation: Callable) -> GmPLayer:
    """The layer that computes activation(module(x)), for a positively homogeneous activation."""
    weight = module.weight
    options = {"activation": activation, "device": "meta", "dtype": weight.dtype}      # no random start
    if isinstance(module, nn.Linear):
        layer = GmPLinear(module.in_features, module.out_features, **options)
    else:
        if module.padding_mode != "zeros":
            raise ValueError(f"only padding_mode = 'zeros' can be converted, got {module.padding_mode!r}")
        kind = GmPConv1d if isinstance(module, nn.Conv1d) else GmPConv2d
        layer = kind(module.in_channels, module.out_channels, module.kernel_size, module.stride,
                     module.padding, module.dilation, module.groups, **options)
    layer = layer.to_empty(device=weight.device).train(module.training)
    r = layer.point_along(weight.flatten(1))
    lam = torch.zeros_like(r) if module.bias is None else _check.real_tensor(module.bias.double(), "bias") / r
    layer.r.copy_(r)
    layer.lam.copy_(lam)
    if not layer.lam.is_meta and not bool(layer.lam.isfinite().all()):
        wrong = int((~layer.lam.isfinite()).sum())
        raise ValueError(f"b/|w| of {wrong} of {len(r)} units is beyond {layer.lam.dtype}: drop these units, which "
                         "are next to constant, or convert in a wider dtype")
    layer.r.requires_grad_(weight.requires_grad)
    layer.latitude.requires_grad_(weight.requires_grad)
    layer.lam.requires_grad_((weight if module.bias is None else module.bias).requires_grad)
    return layer


def coordinates(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    """The parameters of a model by kind: "radii", "offsets", "angles", "other", for one learning rate each.

    >>> kinds = coordinates(nn.Sequential(GmPLinear(3, 5), nn.Linear(5, 1)))
    >>> {kind: [tuple(p.shape) for p in parameters] for kind, parameters in kinds.items()}
    {'radii': [(5,)], 'offsets': [(5,)], 'angles': [(5, 2)], 'other': [(1, 5), (1,)]}
    >>> angles = {"params": kinds.pop("angles"), "lr": 0.1}
    >>> optimizer = torch.optim.Adam([angles, *({"params": kind} for kind in kinds.values())], lr=0.01)
    """
    kinds = {"radii": [], "offsets": [], "angles": [], "other": []}
    for module in model.modules():
        if isinstance(module, GmPLayer):
            found = {"radii": module.r, "offsets": module.lam, "angles": module.latitude}
        elif isinstance(module, _Coordinates):
            found = {"radii": module.original0, "angles": module.original1}
        else:
            continue
        for kind, parameter in found.items():
            if all(parameter is not known for known in kinds[kind]):
                kinds[kind].append(parameter)
    known = {id(p) for parameters in kinds.values() for p in parameters}
    kinds["other"] = [p for p in model.parameters() if id(p) not in known]
    return kinds
