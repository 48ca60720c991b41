"""What a wide random layer does to an angle, to full relative accuracy: the arithmetic under `ntklib.angles`.

A layer with leaky-ReLU slope a turns the angle theta into g, where with beta = (1 - a)^2 / (1 + a^2)

    cos g = cos theta + beta h(theta),   h(theta) = (sin theta - theta cos theta) / pi.

As h >= 0 on [0, pi], the half-angle formula

    tan((theta - g)/2) = (cos g - cos theta) / (sin theta + sin g) = beta h(theta) / (sin theta + sin g)

has no cancellation. Three rules keep the other digits: 1 - cos and 1 + cos are carried as sums of positive
terms, never through cos; powers of a small angle are taken out of the series that they multiply, so that
autograd meets no 0/0; an angle past pi/2 is held as its distance from pi.
"""
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

# pi rounded to the dtype, and pi less that. An angle equal to the first stands for pi itself.
_PI = {torch.float64: (math.pi, 1.2246467991473532e-16),
       torch.float32: (3.1415927410125732, -8.742277657347586e-08)}

# Taylor coefficients of A and B below in powers of f^2; at pi/2 the next term is below 1e-17.
_SERIES = torch.tensor([[(-1) ** k / math.factorial(2 * k + 2),
                         (-1) ** k * (2 * k + 2) / math.factorial(2 * k + 3)] for k in range(11)],
                       dtype=torch.float64)


class Layer(NamedTuple):
    """An angle theta and its trigonometry, as a function of its distance f from the nearer of 0 and pi."""

    theta: Tensor
    lost: Tensor | float    # theta + lost is the angle to more digits
    far: Tensor | None      # where f = pi - theta; None if nowhere
    f: Tensor
    v: Tensor               # 1 - cos f
    A: Tensor               # v / f^2
    B: Tensor               # (sin f - f cos f) / f^3

    @property
    def ends(self) -> Tensor:
        """1 - cos theta and 1 + cos theta, stacked."""
        near, opposite = self.v, 2 - self.v
        if self.far is None:
            return torch.stack([near, opposite])
        return torch.stack([torch.where(self.far, opposite, near), torch.where(self.far, near, opposite)])


class Turn(NamedTuple):
    """What a layer makes of theta."""

    angle: Tensor           # g
    lost: Tensor | float
    deficit: Tensor         # theta - g


def fold(theta: Tensor, lost: Tensor | float = 0., obtuse: bool = True) -> Layer:
    """The trigonometry of theta; `obtuse=False` promises that no angle is past pi/2."""
    f, far = theta, None
    if obtuse:
        pi, rest = _PI[theta.dtype]
        far = theta > pi / 2
        f = torch.where(far, torch.where(theta < pi, (pi - theta) + rest, pi - theta), theta)
    square = f * f
    *series, AB = _SERIES.to(f.device, f.dtype).reshape(11, 2, *[1] * f.ndim)
    for term in reversed(series):
        AB = torch.addcmul(term, AB, square)
    return Layer(theta, lost, far, f, square * AB[0], AB[0], AB[1])


def turn(layer: Layer, beta: float, gamma: float) -> Turn:
    """One layer. gamma = 2 - beta is an argument because the subtraction would lose it near beta = 2."""
    theta, lost, far, f, v, A, B = layer
    if beta == 0:
        return Turn(theta.clone(), lost, 0 * theta)
    B = (beta / math.pi) * B                                         # beta h(f) / f^3
    fB = f * B
    q = A - fB                                                       # (1 - cos g) / f^2, had theta been f
    w = f * f * q
    sin = (A * (2 - v)).sqrt()                                       # sin f / f
    rise, run = f * fB, sin + (q * (2 - w)).sqrt()                   # of the half-angle formula, over f
    if far is None:
        deficit = 2 * torch.atan2(rise, run)
        return Turn(*add(theta, lost, -deficit), deficit)
    # Past pi/2, cos theta = -cos f and h(theta) = cos f + h(f).
    cos = 1 - v
    rise_far = beta * cos + f * f * fB
    plus = v + rise_far                                              # 1 + cos g
    sin_g = ((w + gamma * cos) * plus).sqrt() if gamma else f * (q * plus).sqrt()
    deficit = 2 * torch.atan2(torch.where(far, rise_far, rise), torch.where(far, f * sin + sin_g, run))
    angle, lost = add(theta, lost, -deficit)
    cancels = deficit > theta / 2                                    # only past pi/2
    angle = torch.where(cancels, 2 * torch.atan2(sin_g, plus), angle)
    return Turn(angle, torch.where(cancels, 0., lost), deficit)


def layers(theta: Tensor, depth: int, beta: float, gamma: float) -> Iterator[Layer]:
    """theta^(l) for l = 0..depth. Only with 0 < a (beta < 1) can a layer return an angle past pi/2."""
    layer = fold(theta)
    yield layer
    for _ in range(depth):
        angle, lost, _ = turn(layer, beta, gamma)
        layer = fold(angle, lost, obtuse=beta < 1)
        yield layer


def gradient_deficits(theta: Tensor, depth: int, beta: float, gamma: float) -> Tensor:
    """(L + 1)(1 - cos phi) and (L + 1)(1 + cos phi) for the gradient angle phi, stacked.

    By eq. 7 and 8 of the paper, N_l = (l + 1) cos phi_l obeys N_{l+1} = cos theta^(l+1) + (1 - rate) N_l with
    rate = beta theta^(l) / pi; hence both D_l = l + 1 -+ N_l obey
    D_{l+1} = D_l + (1 -+ cos theta^(l+1)) + rate (l + 1 - D_l).
    """
    each = layers(theta, depth, beta, gamma)
    first = next(each)
    total, rate, lost = first.ends, beta / math.pi * first.theta, 0.
    if beta > 1 and depth:
        # Past pi/2 the factor 1 - rate may be negative, and terms cancel. With -x for x it and cos theta both
        # change sign, N_1 stays, and theta becomes f.
        total, rate = torch.stack([first.v, 2 - first.v]), beta / math.pi * first.f
        rate = torch.where(first.far, gamma + rate, rate)
    for l, layer in enumerate(each):
        total, lost = add(total, lost, layer.ends + rate * (l + 1 - total))
        rate = beta / math.pi * layer.theta
    return total


def add(total: Tensor, lost: Tensor | float, term: Tensor) -> tuple[Tensor, Tensor]:
    """total + term, and what rounding loses of it (Kahan): every layer may repeat the same rounding error."""
    term = term + lost
    new = total + term
    return new, (term - (new - total)).detach()


def root(x: Tensor) -> Tensor:
    """sqrt(x), with derivatives 0 at x = 0: an angle turns round there, and the mean of its sides is 0."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.).sqrt(), 0.)
