"""Claims of the chapter on depth.

The checks iterate the map by their own arithmetic (`layer`, `exact`), prove with intervals, draw networks or
integrate by quadrature, and compare the library with that.
"""
from functools import cache
from math import asin, cos, log, pi, radians, sin, sqrt

import mpmath as mp
import numpy as np
import torch

from ntklib import angles, kernels
from ntklib.book.claims import Chapter, Discrepancy, Source, claim
from ntklib.book.claims.sources import BOOK, LIU

CHAPTER = Chapter("depth", "Depth: embeddings collapse", "angles/02_depth")
MEAN_FIELD = Source("Poole et al. 2016, Schoenholz et al. 2017", "the slope of the correlation map at 1")
SEED = 2
A = 1 / (3 * pi)                                    # what a layer adds to the reciprocal of a small angle


# ---- independent means -------------------------------------------------------------------------------
def layer(z: float) -> float:
    """g(z) in doubles, from 1 - cos g = 2 sin(z/2)^2 - (sin z - z cos z)/pi, the bracket by its series."""
    if z < 0.3:                                                         # the next term is below 1e-15
        bracket = z**3 * (1 / 3 - z**2 * (1 / 30 - z**2 * (1 / 840 - z**2 * (1 / 45360 - z**2 / 3991680))))
    else:
        bracket = sin(z) - z * cos(z)
    return 2 * asin(sqrt(sin(z / 2) ** 2 - bracket / (2 * pi)))


def after(z: float, depth: int) -> float:
    """theta^(depth)."""
    for _ in range(depth):
        z = layer(z)
    return z


def exact(z, depth: int) -> mp.mpf:
    """theta^(depth) by the printed formula, in the digits that mpmath is set to."""
    z = mp.mpf(z)
    for _ in range(depth):
        z = mp.acos(((mp.pi - z) * mp.cos(z) + mp.sin(z)) / mp.pi)
    return z


def library(z, depth: int):
    """theta^(depth) as the library gives it."""
    return angles.embedding_angle(torch.as_tensor(z, dtype=torch.float64), depth)


def small_angle_margin(z: float) -> float:
    """A number below (cos g - cos y)/z^4 for y = z/(1 + A z) and 0 < z <= 1, by the alternating series of sin
    and cos and by 1 - 2t + 3t^2 - 4t^3 <= (1 + t)^-2 <= 1."""
    return 1.5 * A**2 - z * (1 / (30 * pi) + 2 * A**3) - z**2 / 720


def least_margin(pieces: int = 400):
    """A proven lower bound of cos g(z) - cos(z/(1 + A z)) on [1, pi], by interval arithmetic."""
    iv, least = mp.iv, mp.inf
    edges = [1 + (mp.pi - 1) * k / pieces for k in range(pieces)] + [mp.pi + mp.mpf("1e-12")]
    for k in range(pieces):
        z = iv.mpf([edges[k], edges[k + 1]])
        gap = iv.cos(z) + (iv.sin(z) - z * iv.cos(z)) / iv.pi - iv.cos(1 / (1 / z + 1 / (3 * iv.pi)))
        least = min(least, gap.a)
    return least


# ---- the claims --------------------------------------------------------------------------------------
@claim("depth-ceiling", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.depth.reciprocal_steps",
       statement=r"$\theta^{(L)}\le\frac{\theta}{1+L\theta/(3\pi)}$ for every $\theta\in[0,\pi]$ and every $L$. "
                 r"In particular no two inputs are more than $\frac{540^\circ}{L+3}$ apart after $L$ layers.",
       measures="largest excess over the bound", tolerance=1e-15)
def ceiling():
    """One layer: alternating series up to 1 and interval arithmetic up to pi; then induction. And the library on a grid."""
    assert small_angle_margin(1.0) > 0, f"the series leave a margin of {small_angle_margin(1.0):.3g} at z = 1"
    assert least_margin() > 0, f"the intervals leave a margin of {float(least_margin()):.3g}"
    z, excess = torch.logspace(-9, np.log10(pi), 200, dtype=torch.float64).clamp(max=pi), 0.0
    for depth in (1, 2, 5, 20, 100):
        bound = z / (1 + depth * A * z)
        excess = max(excess, float((library(z, depth) - bound).max()))
    return excess


@claim("depth-model", of=CHAPTER, verdict="holds under", source=LIU.at("equation (37), proof of Theorem 3.5"),
       derivation="symbolic.depth.reciprocal_steps",
       statement=r"The continuous model $\frac{\theta}{1+L\theta/(3\pi)}$ gives $\theta^{(L)}$ to leading order.",
       hypotheses=r"$L\to\infty$, or $\theta\to0$ with $L\theta$ fixed. At finite depth it is too large: "
                  r"$\frac{1}{\theta^{(L)}}$ exceeds its reciprocal by about $\frac{1}{2\pi}\ln\left(1+\frac{L\theta}{3\pi}\right)$.",
       discrepancy=Discrepancy(
           prints="The recursion is replaced by a differential equation, and its solution is used for the angle.",
           shows=r"The solution is an upper bound at every depth. The true angle is smaller, by a factor "
                 r"$1-\frac{3}{2}\frac{\ln L}{L}+O(1/L)$ in the limit.",
           remains="Theorem 3.5, for which the leading order is enough."),
       measures=r"relative error of the logarithm at $\theta=0.01$, $L=50\,000$", tolerance=0.01)
def continuous_model():
    """Iterate 50 000 layers from 0.01; what the reciprocal has gained beyond L/(3 pi), over ln(1 + s)/(2 pi)."""
    theta, depth = 0.01, 50_000
    off = abs(float(library(theta, 500)) / after(theta, 500) - 1)
    assert off < 1e-12, f"the library's angle after 500 layers is off by {off:.3g}"
    gained = 1 / after(theta, depth) - 1 / theta - depth * A
    return abs(gained / (log(1 + depth * theta * A) / (2 * pi)) - 1)


@claim("depth-rate", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.depth.reciprocal_series",
       statement=r"From every $\theta\in(0,\pi]$: $\frac{1}{\theta^{(L)}}=\frac{L}{3\pi}+\frac{\ln L}{2\pi}+O(1)$, that is, "
                 r"$\theta^{(L)}=\frac{3\pi}{L}\left(1-\frac{3}{2}\frac{\ln L}{L}+O\left(\frac{1}{L}\right)\right)$.",
       measures=r"error of $\ln 2$, from $L=20\,000$ and $40\,000$", tolerance=0.005)
def rate():
    """Twice the depth must add ln 2 / (2 pi) to 1/theta^(L) - L/(3 pi), from three starts."""
    worst = 0.0
    for theta in (0.1, pi / 2, pi):
        half = after(theta, 20_000)
        whole = after(half, 20_000)
        worst = max(worst, abs(2 * pi * (1 / whole - 1 / half - 20_000 * A) - log(2)))
    off = abs(float(library(pi, 500)) / after(pi, 500) - 1)
    assert off < 1e-12, f"the library's angle after 500 layers is off by {off:.3g}"
    return worst


@claim("depth-lemma", of=CHAPTER, verdict="holds under", source=LIU.at("Lemma E.6"),
       derivation="symbolic.depth.embedding_angle_series",
       statement=r"$\theta^{(\ell)}=\theta-\frac{\ell}{3\pi}\theta^2+\frac{2\ell^2-3\ell}{18\pi^2}\theta^3+O(\theta^4)$; the paper has the "
                 r"terms up to $\theta^2$.",
       hypotheses=r"$\theta\to0$ with $\ell$ fixed. If $\ell$ grows, each term is smaller than the one before as long as $\ell\theta\to0$.",
       discrepancy=Discrepancy(
           prints=r"For $\theta=o(1/\ell)$ the remainder after the second term is $o(\theta^2)$.",
           shows=r"The third term is about $\frac{\ell^2\theta^3}{9\pi^2}$. Under that hypothesis it is smaller than the "
                 r"second term, which is of order $\ell\theta^2$; that it is also $o(\theta^2)$ needs $\ell^2\theta\to0$, or a fixed $\ell$.",
           remains=r"The lemma for a fixed depth as it stands, and for growing depth with the remainder $o(\ell\theta^2)$."),
       measures=r"relative error of the cubic coefficient at $\theta=10^{-6}$", tolerance=2e-5)
def lemma():
    """With 60 digits at 1, 2, 10 and 50 layers; at one layer the library, too."""
    worst = 0.0
    with mp.workdps(60):
        z = mp.mpf("1e-6")
        for l in (1, 2, 10, 50):
            cubic = (exact(z, l) - z + l * z**2 / (3 * mp.pi)) / z**3
            worst = max(worst, float(abs(cubic / ((2 * l**2 - 3 * l) / (18 * mp.pi**2)) - 1)))
            off = abs(float(library(1e-6, l)) / float(exact(z, l)) - 1)
            assert off < 1e-14, f"the library's angle after {l} layers is off by {off:.3g}"
    return worst


@claim("depth-crossover", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.depth.reciprocal_steps",
       statement=r"As $\theta\to0$ with $s=\frac{L\theta}{3\pi}$ fixed, $\frac{\theta^{(L)}}{\theta}\to\frac{1}{1+s}$: one curve for all "
                 "small angles and all depths.",
       measures=r"largest relative error at $\theta=10^{-3}$", tolerance=1e-3)
def crossover():
    """s = 0.1, 1 and 5, by plain iteration; s = 0.1 by the library."""
    theta, worst = 1e-3, 0.0
    for s in (0.1, 1.0, 5.0):
        depth = round(s / (A * theta))
        share = (float(library(theta, depth)) if s < 1 else after(theta, depth)) / theta
        worst = max(worst, abs(share * (1 + depth * A * theta) - 1))
    return worst


@claim("depth-order", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.monotonicity_steps",
       statement="Depth keeps the order of the pairs: of two pairs, the one with the larger angle has the larger angle after "
                 "every number of layers. The closest pair stays the closest, and no two directions ever merge.",
       measures="share of neighbouring angles out of order", tolerance=0.0)
def order():
    """A thousand angles to pi: their images under 1, 10 and 100 layers increase strictly."""
    z = torch.linspace(0, pi, 1001, dtype=torch.float64).clamp(max=pi)
    steps = torch.cat([library(z, depth).diff() for depth in (1, 10, 100)])
    return float((steps <= 0).double().mean())


@claim("depth-contrast", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.depth.reciprocal_series",
       statement=r"The ratio of the angles of any two pairs tends to $1$, and differs from it by $O(1/L)$: deep embeddings of $n$ "
                 "unit inputs are nearly a regular simplex, whatever the inputs were.",
       hypotheses="no two of the inputs have the same direction.",
       measures=r"largest $L\,|\text{ratio}-1|$ from $10^\circ$ to $180^\circ$, over its limit, less 1", tolerance=0.02)
def contrast():
    """The constants C = 1/theta^(L) - L/(3 pi) - ln L/(2 pi) of both starts at 40 000 layers predict the ratio at 2000."""
    small, large = radians(10), pi
    difference = 1 / after(small, 40_000) - 1 / after(large, 40_000)
    depth = 2000
    measured = (after(large, depth) / after(small, depth) - 1) / after(large, depth)
    off = abs(float(library(large, 200)) / after(large, 200) - 1)
    assert off < 1e-12, f"the library's angle after 200 layers is off by {off:.3g}"
    return abs(measured / difference - 1)


@claim("depth-edge", of=CHAPTER, verdict="proved", source=MEAN_FIELD, derivation="symbolic.step_kernel",
       statement=r"For ReLU $\frac{d\cos g}{d\cos\theta}=1-\frac{\theta}{\pi}$, the share of the active units that the inputs have in "
                 r"common. At $\theta=0$ it is $\chi=1$, the edge of chaos, whatever the variance of the weights.",
       hypotheses="no biases. The variance of the weights scales lengths, and leaves every angle as it is.", seed=SEED,
       measures="largest error of the derivative", tolerance=1e-12)
def edge():
    """Autograd on the library's map; the share by counting the units of a random layer; a layer with thrice the weights."""
    z = torch.linspace(0.01, pi - 0.01, 101, dtype=torch.float64, requires_grad=True)
    slope, = torch.autograd.grad(angles.angle_map(z).cos().sum(), z)
    slope = slope / -z.detach().sin()
    w = torch.randn(200_000, 2, generator=torch.Generator().manual_seed(SEED), dtype=torch.float64)
    x = torch.tensor([[1.0, 0.0], [cos(1.0), sin(1.0)]], dtype=torch.float64)
    both = float(((w @ x.T) > 0).all(1).double().mean()) * 2
    assert abs(both - (1 - 1 / pi)) < 0.009, f"{both:.4f} of the active units are common at one radian"      # 4 standard errors
    small, large = (angles.angle_between(*((factor * w[:500]) @ x.T).relu().T) for factor in (1.0, 3.0))
    assert abs(float(small - large)) < 1e-14, f"thrice the weights change the angle by {float(small - large):.3g}"
    return (slope - (1 - z.detach() / pi)).abs().max()


@cache
def _hermite():
    node, weight = np.polynomial.hermite_e.hermegauss(120)
    return torch.from_numpy(node), torch.from_numpy(weight / weight.sum())


@claim("depth-phases", of=CHAPTER, verdict="verified", source=MEAN_FIELD, derivation="kernels.nngp_gram",
       statement=r"A smooth activation multiplies a small angle by $\sqrt\chi$ in every layer, $\chi=\frac{\mathbb{E}[\sigma'(u)^2]}"
                 r"{\mathbb{E}[\sigma(u)^2]}$: sigmoid $0.15$, softplus $0.32$ (order), GELU $1.07$, tanh $1.18$, sine $1.31$ (chaos).",
       hypotheses="standard normal weights, each layer scaled so that lengths are kept, no biases.",
       measures="largest error of the factor at a thousandth of a radian", tolerance=1e-5)
def phases():
    """chi by Gauss-Hermite quadrature and autograd, against one layer of the library."""
    smooth = {"sigmoid": (torch.sigmoid, 0.15), "softplus": (torch.nn.functional.softplus, 0.32),
              "gelu": (torch.nn.functional.gelu, 1.07), "tanh": (torch.tanh, 1.18), "sin": (torch.sin, 1.31)}
    theta, worst = 1e-3, 0.0
    x = torch.tensor([[1.0, 0.0], [cos(theta), sin(theta)]], dtype=torch.float64)
    for name, (function, stated) in smooth.items():
        u, weight = _hermite()
        u = u.clone().requires_grad_()
        value = function(u)
        slope, = torch.autograd.grad(value.sum(), u)
        chi = float((weight * slope**2).sum() / (weight * value.detach() ** 2).sum())
        assert abs(chi - stated) < 0.005, f"chi of {name} is {chi:.4f}"
        K = kernels.nngp_gram(x, depth=1, activation=name, tol=1e-12)
        out = float(2 * torch.asin(((K[0, 0] - K[0, 1]) / K[0, 0] / 2).sqrt()))
        worst = max(worst, abs(out / theta - sqrt(chi)))
    return worst


@claim("depth-width", of=CHAPTER, verdict="verified", derivation="angles.embedding_angle", seed=SEED,
       source=Source("Li and Nica 2024", "the limit of depth over width", "TMLR"),
       statement=r"In a real network of width $m$ the angle after $L$ layers scatters by a factor that depends on $L/m$: the "
                 r"standard deviation of its logarithm is about $\sqrt{L/m}$.",
       hypotheses=r"measured from $90^\circ$ at $L/m=1/4$, with $m=32$ and $m=64$.",
       measures=r"largest error of the standard deviation over $\sqrt{L/m}$", tolerance=0.35)
def width():
    """300 networks each; the standard error of each ratio is 0.04."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    for m in (32, 64):
        a = torch.eye(2, dtype=torch.float64).expand(300, 2, 2)
        for _ in range(m // 4):
            a = (torch.randn(300, m, a.shape[1], generator=generator, dtype=torch.float64) @ a).relu() / sqrt(m / 2)
        found = angles.angle_between(a[:, :, 0], a[:, :, 1])
        spread = float(found.log().std())
        typical = float(found.median() / library(pi / 2, m // 4))
        assert 0.75 < typical < 1.05, f"the median angle at width {m} is {typical:.3f} of the limit's"
        worst = max(worst, abs(spread / sqrt(1 / 4) - 1))
    return worst
