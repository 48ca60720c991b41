"""Smooth activations as an infinitely wide layer sees them: E[s(u) s(v)] and E[s'(u) s'(v)], u and v normal.

With Hermite coefficients h_k(q) = E[s(sqrt(q) z) He_k(z)] / sqrt(k!), Mehler's formula gives

    E[s(u) s(v)] = sum_k h_k(q_x) h_k(q_y) rho^k

for variances q_x and q_y and correlation rho. Where a closed form is known it is used instead. Both are
normalised by c = 1 / E[s(z)^2].

Sources: Daniely, Frostig and Singer (2016), section 4.2; Williams (1997), eq. 11 (erf).
"""
import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor


class Smooth(NamedTuple):
    """An activation without homogeneity; `closed(q_x, q_y, s)` gives both duals, before c, where known."""

    name: str
    function: Callable[[Tensor], Tensor]
    closed: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None

    @property
    def c(self) -> float:
        """1 / E[s(z)^2]."""
        return float(self._normaliser(torch.ones(1, dtype=torch.float64)))

    def duals(self, qx: Tensor, qy: Tensor, s: Tensor, tol: float) -> tuple[Tensor, Tensor]:
        """c E[s(u) s(v)] and c E[s'(u) s'(v)], (n, m), for variances (n,), (m,) and covariances s (n, m)."""
        c = self._normaliser(qx)
        if self.closed is not None:
            first, second = self.closed(qx[:, None], qy[None, :], s)
            return c * first, c * second
        size = qx.sqrt()[:, None] * qy.sqrt()[None, :]                # the root of their product may underflow
        rho = torch.where(size > 0, s / torch.where(size > 0, size, 1), 0).clamp(-1, 1)
        hx, hy = self._coefficients(qx, tol), self._coefficients(qy, tol)
        return c * _mehler(hx[0], hy[0], rho), c * _mehler(hx[1], hy[1], rho)

    def variance(self, q: Tensor) -> Tensor:
        """c E[s(sqrt(q) z)^2]: the next layer's variance."""
        return self._normaliser(q) * self._size(q)

    def _size(self, q: Tensor) -> Tensor:
        if self.closed is not None:
            return self.closed(q, q, q)[0]
        nodes, weights, _ = _gauss_hermite()
        return self.function(q.sqrt()[:, None] * nodes.to(q)) ** 2 @ weights.to(q)

    def _normaliser(self, like: Tensor) -> Tensor:
        size = self._size(torch.ones(1, dtype=torch.float64))
        if not torch.finfo(size.dtype).tiny <= float(size) < math.inf:
            raise ValueError(f"{self.name}: E[s(z)^2] = {float(size):g} for z ~ N(0, 1), but kernels are divided "
                             "by it: pass a function for which it is finite and positive")
        return (1 / size).to(like)

    def _coefficients(self, q: Tensor, tol: float) -> tuple[Tensor, Tensor]:
        """h_k of s and of s', (n, terms); what the series leaves out is, by Parseval, <= tol."""
        nodes, weights, hermite = _gauss_hermite()
        at = q.sqrt()[:, None] * nodes.to(q)
        values = value_and_slope(self.function, at)
        both, kept, number = tuple(v @ hermite.to(q) for v in values), 1, torch.finfo(q.dtype)
        for v, h in zip(values, both, strict=True):
            size = v.detach() ** 2 @ weights.to(q)
            lost = (size - h.detach().square().sum(-1)).abs().max()
            rest = float(lost / size.max().clamp(min=number.tiny / number.eps))
            if not rest <= max(tol, 100 * number.eps):
                raise ValueError(
                    f"{self.name}: {h.shape[1]} Hermite terms leave out {rest:.1e} of the kernel, more than "
                    f"tol = {tol:g} (largest |x| is {math.sqrt(float(q.detach().max())):.3g}): scale inputs "
                    "down, raise tol, or name a kinked activation, such as 'relu', rather than passing it")
            large = h.detach().abs() > 1e-10 * size.sqrt()[:, None]
            kept = max(kept, *(1 + large.any(0).nonzero()[:, 0]).tolist(), 0)
        return both[0][:, :kept], both[1][:, :kept]


def value_and_slope(function: Callable, u: Tensor) -> tuple[Tensor, Tensor]:
    """s(u) and s'(u), differentiable if u is."""
    with torch.enable_grad():
        at = u if u.requires_grad else u.detach().requires_grad_()
        value = function(at)
        slope, = torch.autograd.grad(value.sum(), at, create_graph=u.requires_grad)
    return (value, slope) if u.requires_grad else (value.detach(), slope)


def _mehler(hx: Tensor, hy: Tensor, rho: Tensor) -> Tensor:
    """sum_k hx_k hy_k rho^k by Horner's rule."""
    total = torch.zeros_like(rho)
    for k in range(min(hx.shape[1], hy.shape[1]) - 1, -1, -1):
        total = total * rho + hx[:, k, None] * hy[None, :, k]
    return total


@cache
def _gauss_hermite(count: int = 1000, terms: int = 500) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes x and weights w for N(0, 1) (Golub and Welsch 1969), and w p_k(x), p_k = He_k / sqrt(k!).

    Computed as Hermite functions, p_k exp(-x^2 / 4): where these vanish in float64, so does the weight.
    """
    jacobi = torch.diag(torch.arange(1, count, dtype=torch.float64).sqrt(), 1)
    x = torch.linalg.eigvalsh(jacobi + jacobi.T)
    x = x[x.abs() < 50]
    rows = [torch.exp(-x**2 / 4), x * torch.exp(-x**2 / 4)]
    for j in range(1, count - 1):
        rows.append((x * rows[-1] - math.sqrt(j) * rows[-2]) / math.sqrt(j + 1))
    functions = torch.stack(rows, 1)
    damped = torch.exp(-x**2 / 4) / functions.square().sum(1)       # Christoffel: w = exp(-x^2 / 2) / sum
    return x, damped * torch.exp(-x**2 / 4), damped[:, None] * functions[:, :terms]


# Closed forms. A variance squared is left out of them wherever it would cancel, but for what is exact at s = qx = qy.

def _gap(qx: Tensor, qy: Tensor, s: Tensor) -> Tensor:
    """qx qy - s^2, which is never negative (Cauchy and Schwarz)."""
    return (qx * qy - s * s).clamp(min=0)


def _erf(qx: Tensor, qy: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    inside = (1 + 2 * qx) * (1 + 2 * qy)
    return (2 / math.pi * torch.asin(2 * s / inside.sqrt()),
            4 / math.pi / (1 + 2 * (qx + qy) + 4 * _gap(qx, qy, s)).sqrt())


def _sin(qx: Tensor, qy: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    half = (qx + qy) / 2
    plus, minus = torch.exp((s - half).clamp(max=0)), torch.exp((-s - half).clamp(max=0))
    return (plus - minus) / 2, (plus + minus) / 2


def _gelu(qx: Tensor, qy: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """s(u) = u Phi(u): Stein's lemma twice on E[u v Phi(u) Phi(v)], and d/ds (Price's theorem) for s'."""
    both = (1 + qx) * (1 + qy)
    root = (1 + qx + qy + _gap(qx, qy, s)).sqrt()                    # of both - s^2
    orthant = 0.25 + torch.atan2(s, root) / (2 * math.pi)            # E[Phi(u) Phi(v)]
    return (s * orthant + (qx * qy * root + s * s / root) / both / (2 * math.pi),
            orthant + s * (3 + qx + qy + (s / root) ** 2) / both / root / (2 * math.pi))


_F = torch.nn.functional
SMOOTH = {s.name: s for s in (
    Smooth("erf", torch.erf, _erf), Smooth("sin", torch.sin, _sin), Smooth("gelu", _F.gelu, _gelu),
    Smooth("tanh", torch.tanh), Smooth("silu", _F.silu), Smooth("sigmoid", torch.sigmoid),
    Smooth("softplus", _F.softplus))}
