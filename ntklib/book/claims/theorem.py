r"""Claims of chapter "The angle theorem, and the argument over it".

The independent means: the direction written out with mpmath's sines and cosines at 40 digits, angles by atan2 of
chords, lengths as those of inscribed polygons or by mpmath's quadrature, derivatives by mpmath. The library
(`sphere`, `symbolic.theorem`) is what the claims are about.
"""
from math import pi

import mpmath as mp
import sympy as sp
import torch
from torch import Tensor

from ntklib import sphere
from ntklib.book.claims import Chapter, Discrepancy, Source, claim
from ntklib.book.claims.sources import BOOK, CHEN
from ntklib.symbolic import sphere as exact
from ntklib.symbolic import theorem

CHAPTER = Chapter("theorem", "The angle theorem, and the argument over it", "boundaries/17_angle_theorem")
DEBATE = Source("Discussion of Chen and Ge 2024", "", "OpenReview 7HFQfRjdcn", "https://openreview.net/forum?id=7HFQfRjdcn")
SEED = 37
EXAMPLES = (((pi / 4, 0.0), (0.0, pi)), ((0.1, 0.0), (1.0, 1.0)))       # the angle is below |eps|_M, and above
GENERIC = ((0.9, 2.0, 1.3, 0.4), (0.5, -0.7, 0.3, 0.6))                 # a place and a step of a unit of R^5


# ---- independent means -------------------------------------------------------------------------------
def direction(theta) -> list:
    """u(theta), one coordinate after the other."""
    out, product = [], mp.mpf(1)
    for t in theta:
        out.append(product * mp.cos(t))
        product *= mp.sin(t)
    return [*out, product]


def angle(u, v) -> mp.mpf:
    """Twice the arctangent of the rhombus's diagonals."""
    return 2 * mp.atan2(mp.norm([a - b for a, b in zip(u, v, strict=True)]),
                        mp.norm([a + b for a, b in zip(u, v, strict=True)]))


def moved(theta, eps, t) -> list:
    """u(theta + t eps)."""
    return direction([a + t * e for a, e in zip(theta, eps, strict=True)])


def speed(theta, eps, t) -> mp.mpf:
    """|du/dt| by numerical differentiation, with no metric."""
    return mp.norm([mp.diff(lambda s, i=i: moved(theta, eps, s)[i], t) for i in range(len(theta) + 1)])


def random_steps(count: int = 20_000) -> list[tuple[Tensor, Tensor]]:
    """Places, uniform on the sphere, and steps of sizes 10^-3 to 10 in random directions, for n = 2 to 11."""
    generator, out = torch.Generator().manual_seed(SEED), []
    for n in range(2, 12):
        theta = sphere.uniform_angles(count // 10, n, generator=generator)
        way = torch.randn(count // 10, n - 1, generator=generator, dtype=torch.float64)
        size = 10 ** (4 * torch.rand(count // 10, 1, generator=generator, dtype=torch.float64) - 3)
        out.append((theta, size * way / way.norm(dim=1, keepdim=True)))
    return out


def written_out(theta: Tensor) -> Tensor:
    """u(theta) in float64, by a loop."""
    out, product = [], torch.ones_like(theta[..., 0])
    for t in theta.unbind(-1):
        out.append(product * t.cos())
        product = product * t.sin()
    return torch.stack([*out, product], -1)


def turned(theta: Tensor, eps: Tensor) -> Tensor:
    """The angle between the two directions, in float64."""
    u, v = written_out(theta), written_out(theta + eps)
    return 2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1))


def polygon(theta: Tensor, eps: Tensor, sides: int) -> Tensor:
    """Length of the polygon inscribed in t -> u(theta + t eps)."""
    share = torch.arange(sides + 1, dtype=torch.float64)[:, None] / sides
    corner = written_out(theta[..., None, :] + share * eps[..., None, :])
    return corner.diff(dim=-2).norm(dim=-1).sum(-1)


def pair(theta, eps) -> tuple[Tensor, Tensor]:
    """As tensors."""
    return torch.tensor(theta, dtype=torch.float64), torch.tensor(eps, dtype=torch.float64)


def metric_norm(theta: Tensor, eps: Tensor) -> Tensor:
    """|eps|_M by the library's metric."""
    return (sphere.metric(theta) * eps**2).sum(-1).sqrt()


# ---- the claims --------------------------------------------------------------------------------------
@claim("theorem-equality", of=CHAPTER, verdict="corrected", source=CHEN.at("Theorem 3.7"),
       derivation="symbolic.theorem.squared_norm",
       statement=r"The angle between $u(\theta)$ and $u(\theta+\varepsilon)$ is $\|\varepsilon\|_M$ to first order: "
                 r"for $t\to0$ the angle of the step $t\varepsilon$ is $t\|\varepsilon\|_M+O(t^2)$. It can be larger "
                 r"and smaller than $\|\varepsilon\|_M$.",
       discrepancy=Discrepancy(
           prints=r"The angle *equals* $\|\varepsilon\|_M$ for every $\varepsilon$ (also in the answer to the reviewers).",
           shows=r"At $\theta=(\frac{\pi}{4},0)$ the step $(0,\pi)$ turns the unit by $\frac{\pi}{2}$, and "
                 r"$\|\varepsilon\|_M=\frac{\pi}{\sqrt2}$. At $\theta=(0.1,0)$ the step $(1,1)$ turns it by $1.048$, "
                 r"and $\|\varepsilon\|_M=1.005$. An angle is at most $\pi$ and a norm has no bound, so that no "
                 "equality of this kind can hold for all steps.",
           remains=r"The bound of the same theorem, angle $\le\|\varepsilon\|$, for every step; and the equality to "
                   "first order. What the paper concludes from the theorem uses the bound alone."),
       measures="error of the quotient at $t=10^{-6}$", tolerance=1e-6)
def equality():
    """The two examples at 40 digits; then the quotient of the angle and t |eps|_M for a small step of a unit of R^5."""
    with mp.workdps(40):
        for (theta, eps), sign in zip(EXAMPLES, (-1, 1), strict=True):
            found = angle(direction(theta), moved(theta, eps, 1)) - float(metric_norm(*pair(theta, eps)))
            assert sign * found > 0.04, f"the angle minus the norm is {float(found):.3g} at {theta}, {eps}"
        t = mp.mpf("1e-6")
        small = angle(direction(GENERIC[0]), moved(*GENERIC, t)) / t
        return abs(small / float(metric_norm(*pair(*GENERIC))) - 1)


@claim("theorem-second-order", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.theorem.turn_series",
       statement=r"The angle of the step $t\varepsilon$ is $t\|\varepsilon\|_M+\frac{t^2}{4\|\varepsilon\|_M}\,"
                 r"\frac{d}{ds}\|\varepsilon\|_{M(\theta+s\varepsilon)}^2|_{s=0}+O(t^3)$: larger than the norm where "
                 "the metric grows along the step, smaller where it shrinks.",
       hypotheses=r"$\|\varepsilon\|_M\neq0$.",
       measures="relative error of the coefficient at $t=10^{-5}$", tolerance=1e-3)
def second_order():
    """(angle - t |eps|_M)/t^2 at 40 digits, and the growth of the squared speed by mpmath, against the sympy twin."""
    theta, eps = GENERIC
    values = dict(zip((*exact.angles(5), *theorem.steps(5)), (*theta, *eps), strict=True))
    stated = float((theorem.growth(5) / (4 * sp.sqrt(theorem.squared_norm(5)))).subs(values))
    with mp.workdps(40):
        t, rate = mp.mpf("1e-5"), speed(theta, eps, 0)
        by_speed = mp.diff(lambda s: speed(theta, eps, s) ** 2, 0, h=mp.mpf("1e-8")) / (4 * rate)
        assert abs(by_speed / stated - 1) < 1e-6, f"the growth of the speed gives {float(by_speed):.9g}, not {stated:.9g}"
        return abs((angle(direction(theta), moved(theta, eps, t)) - t * rate) / t**2 / stated - 1)


@claim("theorem-length", of=CHAPTER, verdict="corrected", source=DEBATE.at("a reviewer, and the answer to them"),
       derivation="sphere.curve_length", seed=SEED,
       statement=r"$\int_0^1\sqrt{\varepsilon^\top M_{\theta+t\varepsilon}\,\varepsilon}\,dt$ is the length of one curve from $u(\theta)$ to "
                 r"$u(\theta+\varepsilon)$. It is at least their distance on the sphere, the angle, and at most $\|\varepsilon\|$.",
       discrepancy=Discrepancy(
           prints=r"$d(u(\theta),u(\theta+\varepsilon))=\int_0^1\sqrt{\varepsilon^\top M_{\theta+t\varepsilon}\,\varepsilon}\,dt$, called a distance; in the "
                  r"answer the angles inside are written $\theta_j+t\varepsilon$.",
           shows=r"At $\theta=(\frac{\pi}{4},0)$ the steps $(0,\frac{3\pi}{2})$ and $(0,-\frac{\pi}{2})$ end at the same direction, and the "
                 r"integrals are $3.33$ and $1.11$; the distance is $\frac{\pi}{3}$. The index $j$ belongs to both: $\theta_j+t\varepsilon_j$.",
           remains=r"The inequality that both sides draw from it, and with it the corollary that the authors promised: it "
                   "is what proves the bound of Theorem 3.7."),
       measures="largest relative error against polygons", tolerance=1e-9)
def length():
    """Polygons of 512 and 1024 sides, extrapolated; no length is below the angle or above |eps|, for 20 000 steps."""
    worst = 0.0
    for theta, eps in random_steps():
        found, size = sphere.curve_length(theta, eps, rtol=1e-8), eps.norm(dim=-1)
        assert bool((found <= size * (1 + 1e-9)).all()), f"a curve is {float((found / size).max()):.9g} |eps| long"
        excess = (turned(theta, eps) - found).max()
        assert excess < 1e-9, f"a curve is {float(excess):.3g} shorter than the angle"
        few = size < 3                                                # of longer ones the polygons would need more sides
        sides = [polygon(theta[few][:100], eps[few][:100], k) for k in (512, 1024)]
        worst = max(worst, float(((4 * sides[1] - sides[0]) / 3 / found[few][:100] - 1).abs().max()))
    place = (pi / 4, 0.0)
    lengths = [float(sphere.curve_length(*pair(place, (0.0, e)))) for e in (1.5 * pi, -0.5 * pi)]
    assert abs(lengths[0] - lengths[1] - pi / 2**0.5) < 1e-9, f"two steps to the same direction have lengths {lengths}"
    return worst


@claim("theorem-bound", of=CHAPTER, verdict="proved", source=CHEN.at("Theorem 3.7"), derivation="sphere.geodesic",
       statement=r"The angle between $u(\theta)$ and $u(\theta+\varepsilon)$ is at most $\|\varepsilon\|$, for every $\theta$ and "
                 r"$\varepsilon$ and in every dimension. A step of the first angle alone attains it.", seed=SEED,
       measures=r"excess of the angle over $\|\varepsilon\|$", tolerance=1e-12)           # a step of 1e-3 leaves 13 digits
def bound():
    """20 000 random steps, n = 2 to 11, the directions written out; the library's angle is the same. Then the step that attains it."""
    excess = 0.0
    for theta, eps in random_steps():
        found = turned(theta, eps)
        ours = sphere.geodesic(sphere.from_angles(theta), sphere.from_angles(theta + eps))
        apart = float((ours - found).abs().max())
        assert apart < 1e-12, f"the library's angle is off by {apart:.3g}"
        excess = max(excess, float((found / eps.norm(dim=-1)).max()) - 1)
    theta, eps = pair((0.2, 1.0, 4.0), (2.9, 0.0, 0.0))
    attained = float(turned(theta, eps) / eps.norm())
    return max(excess, abs(attained - 1), 0.0)


@claim("theorem-third-order", of=CHAPTER, verdict="verified", source=BOOK, derivation="symbolic.theorem.geodesic_curvature",
       statement=r"The length of the curve exceeds the angle by $\frac{k_g^2}{24}$ times its cube, up to terms of fourth order, with $k_g$ the geodesic "
                 r"curvature of the curve at $\theta$: the integral misses the angle by the third order only.",
       hypotheses=r"$\|\varepsilon\|_M\neq0$.",
       measures="relative error of the coefficient at $t=10^{-4}$", tolerance=1e-2)
def third_order():
    """The length by mpmath's quadrature of the numerical speed, the angle by atan2, both with 40 digits."""
    theta, eps = GENERIC
    values = dict(zip((*exact.angles(5), *theorem.steps(5)), (*theta, *eps), strict=True))
    stated = float(theorem.geodesic_curvature(5).subs(values)) / 24
    with mp.workdps(40):
        t = mp.mpf("1e-4")
        path = mp.quad(lambda s: speed(theta, eps, s), [0, t], maxdegree=3)
        return abs((path - angle(direction(theta), moved(theta, eps, t))) / path**3 / stated - 1)


@claim("theorem-lipschitz", of=CHAPTER, verdict="proved", source=BOOK, derivation="sphere.metric", seed=SEED,
       statement=r"The length of the curve, and so the angle, is at most $\|\varepsilon\|_M+\frac12\|\varepsilon\|^2$, for every $\theta$ and "
                 r"$\varepsilon$ and in every dimension. (Not sharp: 20 000 random steps stay below 0.15 in place of 0.5.)",
       measures=r"largest $(\text{length}-\|\varepsilon\|_M)/\|\varepsilon\|^2$", tolerance=0.5)
def lipschitz():
    """20 000 random steps, the lengths by the library, which theorem-length compares with polygons."""
    excess = [((sphere.curve_length(theta, eps, rtol=1e-8) - metric_norm(theta, eps)) / eps.square().sum(-1)).max()
              for theta, eps in random_steps()]
    assert max(excess) < 0.15, f"a step reaches {float(max(excess)):.3g}"
    return max(0.0, *map(float, excess))


@claim("theorem-plane", of=CHAPTER, verdict="proved", source=BOOK, derivation="sphere.metric",
       statement=r"For two weights the equality is exact: one angle, $M=1$, and the unit turns by $|\varepsilon|$ as long as that is at most $\pi$.",
       measures="largest error of the angle", tolerance=1e-14)
def plane():
    """A grid of places and steps of a unit of R^2."""
    theta, eps = torch.meshgrid(torch.linspace(0, 6, 61, dtype=torch.float64),
                                torch.linspace(-pi, pi, 101, dtype=torch.float64).clamp(-pi, pi), indexing="ij")
    norm = metric_norm(theta[..., None], eps[..., None])
    return (turned(theta[..., None], eps[..., None]) - norm).abs().max()
