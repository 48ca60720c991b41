"""Claims of the chapter on the arc-cosine angle map.

The checks reach the library through its modules (`angles.angle_map`) and compare it with quadrature, 50-digit
arithmetic or a random layer: never with the formula that they are about.
"""
from functools import cache
from math import acos, degrees, pi, radians, sqrt

import mpmath as mp
import numpy as np
import torch
from torch import Tensor

from ntklib import angles
from ntklib.book.claims import Chapter, Discrepancy, Source, claim
from ntklib.book.claims.sources import BOOK, LIU

CHAPTER = Chapter("angles", "The arc-cosine angle map", "angles/01_angle_map")
CHO_SAUL = Source("Cho and Saul 2009", "the arc-cosine kernel of degree 1", "NeurIPS 22")
C_SIGMA = 2.0                                       # 1 / E[relu(u)^2], the paper's equation (1)
SEED = 1

GRID = torch.linspace(0, pi, 2001, dtype=torch.float64).clamp(max=pi)
SMALL_TO_PI = torch.logspace(-9, np.log10(pi), 400, dtype=torch.float64).clamp(max=pi)


# ---- independent means -------------------------------------------------------------------------------
def exact(z) -> mp.mpf:
    """g(z) by the printed formula, with 50 digits."""
    with mp.workdps(50):
        z = mp.mpf(z)
        return mp.acos(((mp.pi - z) * mp.cos(z) + mp.sin(z)) / mp.pi)


def correlation(theta: float, slope: float = 0.0) -> float:
    """E[s(u) s(v)] for standard Gaussian u, v at correlation cos(theta), s the leaky ReLU.

    The expectation over v given u is a Gaussian integral in one variable, known in closed form; the one over
    u is done by Gauss-Legendre quadrature on each half line. No polar coordinates and no arccosine.
    """
    node, weight = _gauss_legendre(400)
    total = 0.0
    for activation, sign in ((1.0, 1), (slope, -1)):
        u = sign * 6 * (node + 1)
        mean, deviation = np.cos(theta) * u, np.sin(theta)              # of v given u
        positive = mean * torch.special.ndtr(mean / deviation) + deviation * _density(mean / deviation)
        given_u = slope * mean + (1 - slope) * positive                 # E[s(v) | u]
        total += float((6 * weight * _density(u) * activation * u * given_u).sum())
    return total


@cache
def _gauss_legendre(n: int) -> tuple[Tensor, Tensor]:
    node, weight = np.polynomial.legendre.leggauss(n)
    return torch.from_numpy(node), torch.from_numpy(weight)


def _density(t: Tensor) -> Tensor:
    return torch.exp(-t * t / 2) / sqrt(2 * pi)


def random_layer(theta: float, width: int, draws: int, generator) -> tuple[Tensor, Tensor]:
    """Outputs (draws, width) of `draws` random ReLU layers, for two unit inputs at angle theta."""
    weights = torch.randn(draws, width, 2, generator=generator, dtype=torch.float64)
    x = torch.tensor([[1.0, 0.0], [np.cos(theta), np.sin(theta)]], dtype=torch.float64)
    return (sqrt(C_SIGMA / width) * (weights @ x.T).relu()).unbind(-1)


# ---- the claims --------------------------------------------------------------------------------------
@claim("angles-layer-limit", of=CHAPTER, verdict="proved", source=CHO_SAUL, derivation="symbolic.relu_kernel",
       statement=r"After a random ReLU layer of width $m\to\infty$, two inputs at angle $\theta$ make the "
                 r"angle $g(\theta)=\arccos\left(\frac{(\pi-\theta)\cos\theta+\sin\theta}{\pi}\right)$.",
       hypotheses="independent Gaussian weights of mean zero, no biases.",
       measures="largest error of the cosine", tolerance=1e-12)
def layer_limit():
    """The normalised E[relu(u) relu(v)], by quadrature, is cos g."""
    theta = torch.linspace(0.2, pi - 0.2, 25, dtype=torch.float64)
    limit = torch.tensor([C_SIGMA * correlation(t) for t in theta.tolist()], dtype=torch.float64)
    return (limit - angles.angle_map(theta).cos()).abs().max()


@claim("angles-norm", of=CHAPTER, verdict="proved", source=LIU.at("section 2, equation (1)"),
       derivation="symbolic.relu_kernel",
       statement=r"With $c_\sigma=2$ a layer keeps the squared length of its input: on average at every "
                 r"width, and exactly as $m\to\infty$.",
       hypotheses="independent standard Gaussian weights, no biases.", seed=SEED,
       measures="error of the squared length", tolerance=1e-12)
def norm():
    """2 E[relu(u)^2] = 1 by quadrature; 40 000 layers of width 10 average to it."""
    a, _ = random_layer(1.0, 10, 40_000, torch.Generator().manual_seed(SEED))
    squared = a.square().sum(-1)
    off = float((squared.mean() - 1).abs() / squared.std()) * sqrt(len(squared))
    assert off < 4, f"the mean squared length at width 10 is {off:.1f} standard errors from 1"
    return abs(C_SIGMA * correlation(1e-12) - 1)


@claim("angles-finite-width", of=CHAPTER, verdict="verified", source=BOOK, derivation="angles.angle_map",
       statement=r"At finite width $m$ the angle after one random layer scatters around $g(\theta)$, with a "
                 r"standard deviation proportional to $m^{-1/2}$.", seed=SEED,
       hypotheses=r"measured at $\theta=60^\circ$ and $m=32$ to $2048$.",
       measures="error of the exponent", tolerance=0.06)
def finite_width():
    """The slope of log(scatter) against log(width) from 400 layers a width; its standard error is 0.013."""
    theta, widths = pi / 3, (32, 128, 512, 2048)
    target = float(angles.angle_map(torch.tensor(theta, dtype=torch.float64)))
    generator, scatter = torch.Generator().manual_seed(SEED), []
    for m in widths:
        a, b = random_layer(theta, m, 400, generator)
        found = ((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))).arccos()     # about 50 degrees
        scatter.append(float(found.std()))
    off = abs(float(found.mean()) - target) / scatter[-1] * sqrt(400)
    assert off < 4, f"the mean angle at width {widths[-1]} is {off:.1f} standard errors from g"
    return abs(np.polyfit(np.log(widths), np.log(scatter), 1)[0] + 0.5)


@claim("angles-range", of=CHAPTER, verdict="proved", source=LIU.at("appendix A"),
       derivation="symbolic.angle_map",
       statement=r"$g$ maps $[0,\pi]$ onto $[0,\pi/2]$; in particular $g(0)=0$ and $g(\pi)=\pi/2$.",
       discrepancy=Discrepancy(
           prints=r"$g$ is a map from $[0,\pi)$ to $[0,\pi)$, and parallel inputs are left out.",
           shows=r"The formula holds at $\pi$ too, where it gives $\pi/2$, and no value exceeds $\pi/2$. "
                 "Opposite inputs need not be left out: after one layer they are orthogonal.",
           remains="All of it. The domain can be larger and the range smaller than printed, and only inputs "
                   "in the *same* direction need to be excluded."),
       measures="error at the ends", tolerance=1e-15)
def image():
    """The two ends, and no value of a dense grid outside."""
    g = angles.angle_map(GRID)
    assert bool(((g >= 0) & (g <= pi / 2)).all()), f"g leaves [0, pi/2]: it reaches {float(g.max()):.17g}"
    return max(abs(float(g[0])), abs(float(g[-1]) - pi / 2))


@claim("angles-increasing", of=CHAPTER, verdict="proved", source=LIU.at("Proposition A.1"),
       derivation="symbolic.monotonicity_steps",
       statement=r"$g$ is strictly increasing, with $g'(z)=\frac{(\pi-z)\sin z}{\pi\sin g(z)}$ on $(0,\pi)$.",
       measures="largest relative error of the derivative", tolerance=1e-10)
def increasing():
    """The values of a dense grid increase, and autograd agrees with the stated derivative."""
    steps = angles.angle_map(GRID).diff()
    assert bool((steps > 0).all()), f"g does not increase: its smallest step is {float(steps.min()):.3g}"
    z = torch.linspace(0.01, pi - 0.01, 301, dtype=torch.float64, requires_grad=True)
    slope, = torch.autograd.grad(angles.angle_map(z).sum(), z)
    stated = [float((mp.pi - t) * mp.sin(t) / (mp.pi * mp.sin(exact(t)))) for t in z.tolist()]
    return (slope / torch.tensor(stated, dtype=torch.float64) - 1).abs().max()


@claim("angles-below-identity", of=CHAPTER, verdict="proved", source=LIU.at("Proposition A.1"),
       derivation="symbolic.contraction_steps",
       statement=r"$g(z)\le z$ on $[0,\pi]$, with equality only at $z=0$.",
       measures="largest relative error of $z-g(z)$", tolerance=2e-14)
def below_identity():
    """z - g(z) is positive from 1e-9 to pi, and has all its digits."""
    lost = angles.angle_deficit(SMALL_TO_PI)
    assert bool((lost > 0).all()), f"some angle does not shrink: z - g(z) falls to {float(lost.min()):.3g}"
    at_zero = float(angles.angle_deficit(torch.zeros((), dtype=torch.float64)))
    assert at_zero == 0, f"the angle 0 moved by {at_zero:.3g}"
    with mp.workdps(50):
        truth = [mp.mpf(z) - exact(z) for z in SMALL_TO_PI.tolist()]
        return max(abs(d / t - 1) for d, t in zip(lost.tolist(), truth, strict=True))


@claim("angles-near-identity", of=CHAPTER, verdict="verified", source=BOOK, derivation="angles.angle_deficit",
       statement=r"$\frac{z^2}{3\pi}\le z-g(z)\le\frac{z^2}{2\pi}$ on $[0,\pi]$: the share of its angle "
                 "that a pair loses in one layer is proportional to the angle, within a factor of 1.5.",
       measures="largest excess over the bounds", tolerance=1e-14)
def near_identity():
    """(z - g)/z^2 lies between its values at 0 and at pi: with 50 digits, and as the library gives it."""
    with mp.workdps(50):
        ratio = [(mp.mpf(z) - exact(z)) / mp.mpf(z) ** 2 for z in SMALL_TO_PI.tolist()]
        beyond = max(max(1 / (3 * mp.pi) - r, r - 1 / (2 * mp.pi)) for r in ratio)
    library = (angles.angle_deficit(SMALL_TO_PI) / SMALL_TO_PI**2).tolist()
    return max(beyond, *(abs(r - q) for r, q in zip(ratio, library, strict=True)))


@claim("angles-series", of=CHAPTER, verdict="proved", source=LIU.at("Lemma E.6, for one layer"),
       derivation="symbolic.angle_map_series",
       statement=r"$g(z)=z-\frac{z^2}{3\pi}-\frac{z^3}{18\pi^2}-\frac{5+6\pi^2}{270\pi^3}z^4+O(z^5)$; the "
                 "paper has the terms up to $z^2$.",
       measures="remainder over $z^4$ at $z=10^{-4}$", tolerance=1e-5)
def series():
    """The stated polynomial leaves a remainder of order z^5, with 50 digits."""
    with mp.workdps(50):
        z = mp.mpf("1e-4")
        quartic = (5 + 6 * mp.pi**2) / (270 * mp.pi**3)
        stated = z - z**2 / (3 * mp.pi) - z**3 / (18 * mp.pi**2) - quartic * z**4
        return abs(exact(z) - stated) / z**4


@claim("angles-flat-at-pi", of=CHAPTER, verdict="proved", source=BOOK,
       derivation="symbolic.antipode_steps",
       statement=r"Near $\pi$ the curve is flat, and its first term cubic: $g(\pi-\varepsilon)=\frac{\pi}{2}-"
                 r"\frac{\varepsilon^3}{3\pi}+O(\varepsilon^5)$. Nearly opposite inputs come out nearly "
                 "orthogonal.",
       measures=r"relative error of the cubic coefficient at $\varepsilon=0.01$", tolerance=2e-5)
def flat_at_pi():
    """pi/2 - g over eps^3/(3 pi), with 50 digits; and the library's own value there."""
    z = pi - 0.01
    off = abs(float(angles.angle_map(torch.tensor(z, dtype=torch.float64)) - float(exact(z))))
    assert off < 1e-15, f"the library's g({z:.8g}) is off by {off:.3g}"
    with mp.workdps(50):
        eps = mp.mpf("0.01")
        return abs((mp.pi / 2 - exact(mp.pi - eps)) / (eps**3 / (3 * mp.pi)) - 1)


@claim("angles-collapse", of=CHAPTER, verdict="proved", source=LIU.at("Theorem A.2"),
       derivation="symbolic.contraction_steps",
       statement=r"Applied again and again, $g$ takes every angle down to $0$: for every $z\in(0,\pi]$ the "
                 r"angles $g^{(l)}(z)$ decrease strictly in $l$ and tend to $0$.", seed=SEED,
       discrepancy=Discrepancy(
           prints="Appendix A words it so that the embeddings of deep layers tend to a vector.",
           shows=r"Every layer draws new weights. From the second on, and with equal widths, it turns its own "
                 rf"input by $\arccos(1/\pi)\approx {degrees(acos(1 / pi)):.1f}^\circ$, however deep it is. No vector "
                 "is a limit: what has a limit is the *angle between two inputs*.",
           remains="The theorem: the embeddings of all inputs in a deep layer are nearly parallel to each "
                   "other."),
       measures="largest angle after 500 layers, in degrees", tolerance=1.1)
def collapse():
    """Iterate from many angles. Then let a layer act on the output of another: how far does it turn it?"""
    z, generator, width = GRID[1::100], torch.Generator().manual_seed(SEED), 2000
    for _ in range(500):
        z, before = angles.angle_map(z), z
        shrunk = float((before - z).min())
        assert shrunk > 0, f"some angle changed by {-shrunk:.3g} and did not shrink"
    first = torch.randn(width, generator=generator, dtype=torch.float64).relu()
    second = (torch.randn(width, width, generator=generator, dtype=torch.float64) @ first).relu()
    turned = float(angles.angle_between(first, second))
    off = abs(turned - acos(1 / pi))
    assert off < 4 / sqrt(width), f"a layer turned its input by {degrees(turned):.2f} degrees"
    return degrees(float(z.max()))


@claim("angles-leaky", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.leaky_kernel_steps",
       statement=r"For a leaky ReLU of slope $a$: $\cos g_a=\beta\cos g+(1-\beta)\cos\theta$ with "
                 r"$\beta=\frac{(1-a)^2}{1+a^2}$, which is $1$ for ReLU, $0$ for the identity and $2$ for "
                 "$|t|$.",
       measures="largest error of the cosine", tolerance=1e-12)
def leaky():
    """The normalised E[s(u) s(v)], by quadrature, is the cosine of the library's leaky map."""
    theta = torch.linspace(0.2, pi - 0.2, 9, dtype=torch.float64)
    worst = 0.0
    for a in (-1.0, 0.0, 0.01, 0.1, 0.3, 1.0, 2.0):
        limit = [2 / (1 + a * a) * correlation(t, a) for t in theta.tolist()]
        error = torch.tensor(limit, dtype=torch.float64) - angles.angle_map(theta, a).cos()
        worst = max(worst, float(error.abs().max()))
    return worst


@claim("angles-float32", of=CHAPTER, verdict="verified", source=BOOK, derivation="angles.angle_between",
       statement=r"In float32 the cosine of every angle below $2^{-12}$, about $0.014^\circ$, is $1$, so "
                 "that its arccosine is $0$. The form "
                 r"$2\,\operatorname{atan2}(\|u-v\|,\,\|u+v\|)$ keeps such an angle.",
       measures=r"relative error of the atan2 form at $0.01^\circ$", tolerance=1e-6)
def float32():
    """1 - cos passes half a float32 spacing, 2^-25, just after 2^-12. Then both forms on float32 vectors."""
    with mp.workdps(50):
        edge = mp.mpf(2) ** -12
        below, above = (float(2**25 * (1 - mp.cos(t))) for t in (edge, edge * (1 + mp.mpf("1e-6"))))
    assert below < 1 < above, f"1 - cos in units of 2^-25 is {below:.9f} at 2^-12, and {above:.9f} after it"
    theta = radians(0.01)
    x, y = torch.tensor([[1.0, 0.0], [np.cos(theta), np.sin(theta)]], dtype=torch.float32)
    kept = float((x @ y).arccos())
    assert kept == 0, f"the float32 arccosine of 0.01 degrees is {degrees(kept):.3g} degrees, and not 0"
    return abs(float(angles.angle_between(x, y)) / theta - 1)
