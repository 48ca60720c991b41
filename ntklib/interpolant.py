"""A kernel of any depth as one short polynomial.

For a homogeneous activation the deficit D (the kernel at theta = 0 less its value at theta) is theta^order
times an analytic function q on [0, pi]. Its nearest singularity lies near theta = -pole / depth: deep kernels
bend on the scale 1 / depth. As a function of theta / (theta + 2 a), with a in proportion to that distance, q
needs some 30 Chebyshev terms up to depth 30, and 50 at depth 100.
"""
import math
from functools import cache

import torch
from torch import Tensor

from ntklib.duals import ReLULike, SquaredReLU


class Curve:
    """D as a function of the half angle, for tiles that stay in cache; terms are fitted in float64."""

    def __init__(self, dual: ReLULike | SquaredReLU, depth: int, kind: str, dtype: torch.dtype, device: str):
        self.order, self.top = dual.order(kind), dual.top(depth, kind)
        end = math.pi / 4 if dual.even else math.pi / 2
        self.a = min(4 * dual.pole / depth, 64.)                     # 4: measured, and flat from 1 to 8
        self.c = 2 * (end + self.a) / end                            # x = 1 - c half / (half + a) in [-1, 1]
        fit = _fit(dual, depth, kind, dtype, self.a, end)
        powers = _to_powers(fit)
        # Horner on powers costs half of Clenshaw, and is as accurate if the terms do not outgrow the sum.
        self.horner = bool(powers.abs().sum() < 8 * fit.abs().sum())
        terms = (powers if self.horner else fit).to(device, dtype)
        self.terms, self.one, self.offset = list(terms), terms.new_ones(()), terms.new_tensor(self.top)

    def __call__(self, half: Tensor) -> Tensor:
        """D at the angles 2 `half`."""
        return self._quotient(half).mul_(half)

    def kernel(self, half: Tensor) -> Tensor:
        """top - D at the angles 2 `half`."""
        q = self._quotient(half)
        return torch.addcmul(self.offset, half, q, value=-1, out=q)

    def _quotient(self, half: Tensor) -> Tensor:
        """D / half."""
        x = half + self.a
        torch.div(half, x, out=x)
        torch.add(self.one, x, alpha=-self.c, out=x)
        q = (_horner if self.horner else _clenshaw)(self.terms, x)
        return q if self.order == 1 else q.mul_(half)


@cache
def curve(dual: ReLULike | SquaredReLU, depth: int, kind: str, dtype: torch.dtype, device="cpu") -> Curve:
    """The interpolant of one kernel, fitted once."""
    return Curve(dual, depth, kind, dtype, device)


def _horner(terms: list[Tensor], x: Tensor) -> Tensor:
    q = torch.add(terms[-2], x, alpha=float(terms[-1]))
    for c in terms[-3::-1]:
        torch.addcmul(c, q, x, out=q)
    return q


def _clenshaw(terms: list[Tensor], x: Tensor) -> Tensor:
    first, *terms = terms
    twice, now, before = 2 * x, torch.zeros_like(x), torch.zeros_like(x)
    for c in reversed(terms):
        torch.addcmul(before.neg_().add_(c), twice, now, out=before)
        now, before = before, now
    return torch.addcmul(before.neg_().add_(first), x, now, out=before)


def _fit(dual, depth: int, kind: str, dtype: torch.dtype, a: float, end: float) -> Tensor:
    """Chebyshev coefficients of D / half^order, as many as the dtype can tell."""
    negligible = 1e-15 if dtype == torch.float64 else 4e-9
    for count in (64, 128, 256, 512):
        k = torch.arange(count)
        turn = math.pi / count * (k + 0.5).double()
        t = torch.sin(turn / 2) ** 2
        half = a * end * t / (a + end * torch.cos(turn / 2) ** 2)
        q = dual.deficit(2 * half, depth, kind) / half**dual.order(kind)
        whole_turns = torch.outer(k, 2 * k + 1) % (4 * count)        # in integers: k * turn would be rounded
        c = 2 / count * (torch.cos(math.pi / (2 * count) * whole_turns.double()) @ q)
        c[0] /= 2
        size = c.abs() / q.abs().max()
        if size[-8:].max() < 4 * negligible:
            return c[:max(3, int((size > negligible).nonzero().max()) + 1)]
    raise ArithmeticError(f"no interpolant for {dual} at depth {depth}: after {count} terms the rest is "
                          f"{float(size[-8:].max()):.1e}; take a smaller depth")


def _to_powers(c: Tensor) -> Tensor:
    """Chebyshev coefficients to powers of x."""
    before, now = torch.zeros_like(c), torch.zeros_like(c)
    before[0], now[1] = 1, 1
    powers = c[0] * before + c[1] * now
    for coefficient in c[2:]:
        before, now = now, 2 * now.roll(1) - before
        powers = powers + coefficient * now
    return powers
