"""Grams of homogeneous activations: one matrix product, and one function of the angle.

K_ij = (|x_i| |y_j|)^power (top - D(theta_ij)) for a deficit D of `ntklib.duals`. With u = x/|x| and v =
y/|y|,

    sin^2(theta/2) = |u - v|^2 / 4 = |a|^2 / 4 + |b|^2 / 4 - <a, b> / 2,   a = u - centre, b = v - centre,

is a single product of matrices with two columns more; the closer the points lie round their centre, the less
of it cancels. Where still too much does, the angle is taken from the two points themselves.
"""
import math
from collections.abc import Callable

import torch
from torch import Tensor

from ntklib.angles import angle_between
from ntklib.interpolant import curve
from ntklib.tiles import run

# The product leaves an error of eps times |a|^2 + |b|^2: below CLOSE times this, it is worth a closer look.
# u and v are rounded, to eps: so is every squared chord below TINY.
CLOSE, TINY = 1e-2, 1e-5


class Rays:
    """The rows of X as lengths and directions."""

    def __init__(self, X: Tensor):
        length = torch.linalg.vector_norm(X, dim=1, keepdim=True)
        unit, tiny = X / length, torch.finfo(X.dtype).tiny ** 0.45
        odd = ~((length > tiny) & (length < 1 / tiny))[:, 0]
        if bool(odd.any()):                                          # squares that over- or underflow; zero rows
            largest = X[odd].abs().amax(1, keepdim=True)
            rows = X[odd] / torch.where(largest > 0, largest, 1)
            short = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
            unit[odd], length[odd] = rows / torch.where(short > 0, short, 1), short * largest
        self.X, self.length, self.unit = X, length[:, 0], unit


def half_angles(x: Rays, y: Rays | None, even: bool, use: Callable[[slice, slice, Tensor], None],
                fix: Callable[[Tensor, Tensor, Tensor], None]) -> None:
    """Half the angle between every x_i and y_j (x_j without y), in tiles: use(rows, columns, half).

    The pairs that need more care go to `fix` afterwards, as (i, j, theta) in float64. Without y only i >= j
    are given. `even` takes the angle between lines instead of rays.
    """
    same, y = y is None, y or x
    centre = x.unit.mean(0) if same else (x.unit.mean(0) + y.unit.mean(0)) / 2
    left = _extended(x.unit, centre)
    right = (left if same else _extended(y.unit, centre)) * -0.5
    right[:, -2:] = right[:, -2:].flip(1) * -2
    aa, bb = left[:, -2:-1].contiguous(), right[:, -1:].contiguous()
    tiny = TINY if aa.dtype == torch.float64 else 1e-2
    late = []

    def tile(rows: slice, columns: slice) -> None:
        square = torch.mm(left[rows], right[columns].T).clamp_(0, 1)
        low, high = square.aminmax()
        if min(low, 1 - high) < max(tiny, CLOSE * (aa[rows].max() + bb[columns].max())):
            error = (CLOSE * (aa[rows] + bb[columns].T)).clamp_(min=tiny)
            i, j = (torch.minimum(square, 1 - square) < error).nonzero(as_tuple=True)
            late.append((i + rows.start, j + columns.start))
        if even:
            square = torch.minimum(square, 1 - square)
        use(rows, columns, square.sqrt_().asin_())

    run(tile, len(aa), len(bb), same, aa.device)
    for i, j in late:
        keep = (x.length[i] > 0) & (y.length[j] > 0) & ~(same & (i <= j))
        i, j = i[keep], j[keep]
        for k in range(0, len(i), 4096):
            p, q = i[k:k + 4096], j[k:k + 4096]
            u, v = x.X[p].double(), y.X[q].double()
            theta = angle_between(u, v)
            fix(p, q, torch.minimum(theta, angle_between(u, -v)) if even else theta)


def _extended(unit: Tensor, centre: Tensor) -> Tensor:
    """a = unit - centre, and two columns more: |a|^2 / 4 and 1."""
    d = unit.shape[1]
    rows = unit.new_empty(len(unit), d + 2)
    a = torch.sub(unit, centre, out=rows[:, :d])
    rows[:, d] = torch.linalg.vecdot(a, a) / 4
    rows[:, d + 1] = 1
    return rows


def gram(X: Tensor, Y: Tensor | None, s, depth: int, kind: str) -> Tensor:
    """K, (n, m)."""
    x, y = Rays(X), None if Y is None else Rays(Y)
    top, p, q = s.top(depth, kind), x.length ** s.power(depth), (y or x).length ** s.power(depth)
    largest = top * float(p.max() * q.max())
    if not math.isfinite(largest):
        raise OverflowError(f"the kernel exceeds {X.dtype}: scale the inputs down (largest |x| is "
                            f"{float(x.length.max()):.3g})")
    unit = bool((p == 1).all() and (q == 1).all())

    f = curve(s, depth, kind, X.dtype, X.device)

    def kernel(rows: slice, columns: slice, half: Tensor) -> Tensor:
        tile = f.kernel(half)
        return tile if unit else tile.mul_(p[rows, None]).mul_(q[columns])

    def entries(i: Tensor, j: Tensor, theta: Tensor) -> Tensor:
        return p[i] * q[j] * (top - s.deficit(theta, depth, kind))

    K = _fill(x, y, s.even, kernel, entries)
    if y is None:
        K.diagonal().copy_(top * p * p)
    return K


def deficits(X: Tensor, s, depth: int, kind: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """D, (n, n), to full relative accuracy; and i, j and theta of the pairs that lie close, i > j."""
    f, nothing = curve(s, depth, kind, X.dtype, X.device), torch.zeros(0, dtype=torch.long, device=X.device)
    close = [(nothing, nothing, nothing.double())]

    def entries(i: Tensor, j: Tensor, theta: Tensor) -> Tensor:
        close.append((i, j, theta))
        return s.deficit(theta, depth, kind)

    D = _fill(Rays(X), None, s.even, lambda rows, columns, half: f(half), entries)
    D.diagonal().zero_()
    return D, *(torch.cat(column) for column in zip(*close, strict=True))


def _fill(x: Rays, y: Rays | None, even: bool, values: Callable, entries: Callable) -> Tensor:
    """A matrix of values at the angles: values(rows, columns, half) for tiles, entries(i, j, theta) for pairs."""
    M = x.X.new_empty(len(x.length), len((y or x).length))

    def use(rows: slice, columns: slice, half: Tensor) -> None:
        tile = values(rows, columns, half)          # contiguous: transposed three times as fast as a part of M
        M[rows, columns] = _mirrored(tile) if y is None and rows == columns else tile
        if y is None and rows != columns:
            M[columns, rows] = tile.T

    def fix(i: Tensor, j: Tensor, theta: Tensor) -> None:
        M[i, j] = found = entries(i, j, theta).to(M.dtype)
        if y is None:
            M[j, i] = found

    half_angles(x, y, even, use, fix)
    return M


def _mirrored(tile: Tensor) -> Tensor:
    """The lower triangle on both sides: a product need not round alike."""
    return tile.tril() + tile.tril(-1).T


class HomogeneousGram(torch.autograd.Function):
    """`gram` with a backward pass of its own, for tiles are filled in place."""

    @staticmethod
    def forward(ctx, X, Y, s, depth, kind):
        """K from X and Y."""
        ctx.save_for_backward(X, Y)
        ctx.kernel = s, depth, kind
        return gram(X, Y, s, depth, kind)

    @staticmethod
    def backward(ctx, G):
        """The gradients of <G, K>."""
        X, Y = ctx.saved_tensors
        if Y is None:
            return _Once.apply(G + G.T, X, None, *ctx.kernel), None, None, None, None
        return (_Once.apply(G, X, Y, *ctx.kernel) if ctx.needs_input_grad[0] else None,
                _Once.apply(G.T, Y, X, *ctx.kernel) if ctx.needs_input_grad[1] else None, None, None, None)


class _Once(torch.autograd.Function):
    """`_pull_back`, which cannot be differentiated (torch's once_differentiable overlooks saved tensors)."""

    @staticmethod
    def forward(ctx, *arguments):
        """The gradient."""
        return _pull_back(*arguments)

    @staticmethod
    def backward(ctx, *gradients):
        """No second one."""
        raise NotImplementedError("the kernels of relu, leaky_relu, abs and relu2 have a first gradient only: for "
                                  "higher ones use gradient_deficit of angle_between")


def _pull_back(G: Tensor, X: Tensor, Y: Tensor | None, s, depth: int, kind: str) -> Tensor:
    """sum_j G_ij dK_ij/dx_i for K_ij = p_i q_j (top - D), p_i = |x_i|^power, where

    |x_i| dK_ij/dx_i = p_i q_j (D' (v_j - cos theta u_i) / sin theta + power (top - D) u_i).
    """
    x, y = Rays(X), None if Y is None else Rays(Y)
    right, power = y or x, s.power(depth)
    theta = X.new_zeros(len(x.length), len(right.length))

    def use(rows: slice, columns: slice, half: Tensor) -> None:
        theta[rows, columns] = 2 * half
        if y is None:
            theta[columns, rows] = 2 * half.T

    def fix(i: Tensor, j: Tensor, angle: Tensor) -> None:
        theta[i, j] = angle.to(theta.dtype)
        if y is None:
            theta[j, i] = theta[i, j]

    half_angles(x, y, False, use, fix)
    if y is None:
        theta.diagonal().zero_()
    with torch.enable_grad():
        D = s.deficit(theta.requires_grad_(), depth, kind)
        slope, = torch.autograd.grad(D.sum(), theta)
    theta, D, sin = theta.detach(), D.detach(), theta.detach().sin()
    G = G * (x.length**power)[:, None] * right.length**power
    W = torch.where(sin > torch.finfo(sin.dtype).tiny, G * slope / sin, 0)
    radial = (power * G * (s.top(depth, kind) - D) - W * theta.cos()).sum(1, keepdim=True)
    length = torch.where(x.length > 0, x.length, 1)[:, None]
    return (W @ right.unit + radial * x.unit) / length
