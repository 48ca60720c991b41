"""u(theta) for many units at once: fast, accurate in float32, differentiable again and again, even at poles.

The layers store latitudes phi = pi/2 - theta. Almost all angles of a direction in high dimension are
close to pi/2: there float32 keeps theta to 1e-7, but phi to 1e-7 *of phi*. With P_k = prod_{i<=k}
cos(phi_i),

    u_i = sin(phi_i) P_{i-1}  (i < n),    u_n = P_{n-1},    dL/dphi_k = P_k g_k - tan(phi_k) sum_{i>k} g_i
    u_i,

where g = dL/du: one product and one sum along each unit. The product is taken of float64 cosines, because
what float32 rounds off cosines near 1 adds up over 10^4 of them. Nothing is ever divided by zero: no
floating-point number is an odd multiple of pi/2, so that tan(phi) is finite, and P, which may underflow,
is no divisor.
"""
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def unit(latitude: Float[Tensor, "*batch units m"]) -> Float[Tensor, "*batch units m+1"]:
    """Unit vectors u_i = sin(phi_i) prod_{k<i} cos(phi_k), u_n = prod_k cos(phi_k) at latitudes pi/2 - theta.

    >>> unit(torch.tensor([[0.0, torch.pi / 6]]))
    tensor([[0.0000, 0.5000, 0.8660]])
    """
    if latitude.ndim < 2:
        raise ValueError(f"latitude must have shape (..., units, angles), got {tuple(latitude.shape)}"
                         + (": use latitude[None] for one unit" if latitude.ndim else ""))
    if latitude.shape[-1] == 0:
        return latitude.new_ones(*latitude.shape[:-1], 1)
    if torch.compiler.is_compiling():
        return _compose(latitude)[0]                      # the compiler fuses it, and would not trace _Unit
    return _Unit.apply(latitude)[0]


def _compose(latitude: Tensor) -> tuple[Tensor, Tensor]:
    """(u, P), in operations that every transform of torch sees through."""
    products = latitude.double().cos().cumprod(-1).to(latitude.dtype)
    return F.pad(latitude.sin(), (0, 1), value=1.0) * F.pad(products, (1, 0), value=1.0), products


def _push(u: Tensor, products: Tensor, latitude: Tensor) -> None:
    """The same, written into u and P = products."""
    products.copy_(latitude.double().cos().cumprod_(-1))
    torch.sin(latitude, out=u[..., :-1])
    u[..., 1:-1].mul_(products[..., :-1])
    u[..., -1] = products[..., -1]


def _pull(latitude: Tensor, u: Tensor, products: Tensor, g: Tensor, out: Tensor | None = None) -> Tensor:
    """dL/dphi from g = dL/du. Broadcasts: many g may meet one latitude."""
    tails = (g * u).flip(-1).cumsum(-1).flip(-1)[..., 1:]
    return torch.addcmul(products * g[..., :-1], latitude.tan(), tails, value=-1, out=out)


def _blocks(*arguments: Tensor):
    """The same rows of each argument, few enough for small temporaries, on a CPU in its cache."""
    whole = arguments[0]
    entries = max(2**16, whole.numel() // 64) if whole.device.type == "cpu" else 2**22
    rows = max(1, entries // whole.shape[-1])
    return zip(*(x.flatten(0, -2).split(rows) for x in arguments), strict=True)


class _Unit(torch.autograd.Function):
    """latitude -> (u, P)."""

    @staticmethod
    def forward(latitude):
        *batch, angles = latitude.shape
        u, products = latitude.new_empty(*batch, angles + 1), latitude.new_empty(*batch, angles)
        for block in _blocks(u, products, latitude):
            _push(*block)
        return u, products

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)                  # else zeros as large as the weight come in for P
        ctx.save_for_backward(*inputs, *output)
        ctx.save_for_forward(*inputs, *output)

    @staticmethod
    def backward(ctx, g, _):
        return None if g is None else _Pull.apply(*ctx.saved_tensors, g)

    @staticmethod
    def jvp(ctx, step):
        latitude, u, products = ctx.saved_tensors
        shrink = (latitude.tan() * step).cumsum(-1)       # -d log P
        zero = torch.zeros_like(step[..., :1])
        return torch.cat([products * step, zero], -1) - u * torch.cat([zero, shrink], -1), None

    @staticmethod
    def vmap(info, in_dims, latitude):
        return _Unit.apply(latitude.movedim(in_dims[0], 0)), (0, 0)


class _Pull(torch.autograd.Function):
    """(latitude, u, P, g) -> dL/dphi, where for further derivatives u and P are functions of latitude."""

    @staticmethod
    def forward(latitude, u, products, g):
        if not latitude.shape[:-1] == u.shape[:-1] == g.shape[:-1]:
            return _pull(latitude, u, products, g)
        out = torch.empty_like(products)
        for block, *arguments in _blocks(out, latitude, u, products, g):
            _pull(*arguments, out=block)
        return out

    @staticmethod
    def setup_context(ctx, inputs, output):
        latitude, _, _, g = inputs
        ctx.save_for_backward(latitude, g)
        ctx.save_for_forward(latitude, g)

    @staticmethod
    def whole(latitude, g):
        return _pull(latitude, *_compose(latitude), g)

    @staticmethod
    def backward(ctx, h):
        d_latitude, d_g = torch.func.vjp(_Pull.whole, *ctx.saved_tensors)[1](h)
        return d_latitude, None, None, d_g

    @staticmethod
    def jvp(ctx, d_latitude, d_u, d_products, d_g):
        at = ctx.saved_tensors
        steps = (torch.zeros_like(x) if d is None else d for x, d in zip(at, (d_latitude, d_g), strict=True))
        return torch.func.jvp(_Pull.whole, at, tuple(steps))[1]

    @staticmethod
    def vmap(info, in_dims, *arguments):
        front = [x if d is None else x.movedim(d, 0) for x, d in zip(arguments, in_dims, strict=True)]
        return _Pull.apply(*front), 0
