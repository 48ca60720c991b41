"""Claims of the chapter "Characteristic activation boundaries".

The checks compare the library with minimisation, counting, Monte Carlo or quadrature: never with the formula
that they are about.
"""
from math import erf, log, pi, radians, sqrt

import numpy as np
import torch
from torch import Tensor

from ntklib import boundaries
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, CHEN, CHEN_REPLY
from ntklib.book.explorables import boundaries as shown
from ntklib.sphere import to_angles

CHAPTER = Chapter("boundaries", "Characteristic activation boundaries", "boundaries/13_activation_boundaries")
SEED = 1
f64 = torch.float64


# ---- independent means -------------------------------------------------------------------------------
def randn(*shape, seed: int) -> Tensor:
    """Standard normal numbers of a seed of their own."""
    return torch.randn(*shape, dtype=f64, generator=torch.Generator().manual_seed(seed))


def rotated(theta: Tensor) -> Tensor:
    """The first basis vector after plane rotations by theta_{n-1}, .., theta_1: u(theta), without its products."""
    n = len(theta) + 1
    u = torch.eye(n, dtype=f64)[:, 0]
    if n == 1:
        return u
    # the last rotation first: (1, 0, ..) -> (cos, sin) in the planes (n-1, n), (n-2, n-1), .., (1, 2)
    v = torch.zeros(n, dtype=f64)
    v[n - 2], v[n - 1] = theta[-1].cos(), theta[-1].sin()
    for i in range(n - 3, -1, -1):
        tail = v.clone()
        v = theta[i].sin() * tail
        v[i] = theta[i].cos()
    return v


def patterns(W: Tensor, b: Tensor, radius: float) -> int:
    """How many pieces the lines W x + b = 0 cut a disc into, by counting patterns of active units.

    Every piece has a corner inside the disc, or an arc of its rim: points close round each corner, and between
    the crossings of the rim, meet all of them.
    """
    points = [torch.zeros(1, 2, dtype=f64) + 1e-9]
    around = torch.linspace(0, 2 * pi, 4001, dtype=f64)
    ring = torch.stack([around.cos(), around.sin()], -1)
    for i in range(len(b)):
        for j in range(i):
            corner = torch.linalg.solve(W[[i, j]], -b[[i, j]])
            if corner.norm() < radius:
                points.append(corner + 1e-7 * ring[::40])
    meets = []
    for w, c in zip(W, b, strict=True):                     # the rim (R cos t, R sin t): a cos t + b sin t = -c
        size, at = radius * w.norm(), torch.atan2(w[1], w[0])
        if abs(c) < size:
            half = torch.arccos(-c / size)
            meets += [float((at + half) % (2 * pi)), float((at - half) % (2 * pi))]
    cuts = sorted(meets)
    middles = torch.tensor([(a + b_) / 2 for a, b_ in zip(cuts, [*cuts[1:], cuts[0] + 2 * pi], strict=True)], dtype=f64)
    points.append(radius * torch.stack([middles.cos(), middles.sin()], -1))
    active = torch.cat(points) @ W.T + b > 0
    return len(torch.unique(active, dim=0))


# ---- the claims --------------------------------------------------------------------------------------
@claim("boundaries-location", of=CHAPTER, verdict="proved", source=CHEN.at("Definition 2.1"),
       derivation="symbolic.boundaries.location_steps", seed=SEED,
       statement=r"The boundary of a unit with weights $w$ and bias $b$ is $B=\{x:w\cdot x+b=0\}$, and its "
                 r"point nearest to the origin is $\phi=-b\,w/|w|^2$, at the distance $|b|/|w|$.",
       hypotheses=r"$w\ne0$.", measures="largest distance from the nearest point", tolerance=1e-12)
def location():
    """The least solution of w . x = -b, from a singular value decomposition, for 200 units in R^1 to R^20."""
    worst = 0.0
    for n in range(1, 21):
        w, b = randn(10, n, seed=SEED + n), randn(10, seed=SEED + 50 + n)
        nearest = torch.stack([torch.linalg.pinv(row[None]) @ -c[None] for row, c in zip(w, b, strict=True)])
        worst = max(worst, float((boundaries.Boundary(w, b).location - nearest).abs().max()))
    return worst


@claim("boundaries-two-coordinates", of=CHAPTER, verdict="proved", source=CHEN.at("Definitions 2.1 and 3.1"),
       derivation="symbolic.boundaries.location_steps", seed=SEED,
       statement=r"In hyperspherical coordinates, $w=|w|\,u(\theta)$ and $\lambda=b/|w|$, the same set is "
                 r"$B=\{x:u(\theta)\cdot x+\lambda=0\}$ and the same point $\phi=-\lambda\,u(\theta)$.",
       hypotheses=r"$w\ne0$.", measures="largest distance between the two", tolerance=1e-12)
def two_coordinates():
    """u(theta) by successive plane rotations; 20 points of each set lie in the other, and the locations agree."""
    worst, g = 0.0, torch.Generator().manual_seed(SEED)
    for n in range(2, 12):
        theta = torch.rand(n - 1, dtype=f64, generator=g) * pi
        theta[-1] *= 2
        u, r, lam = rotated(theta), 3 * torch.rand(1, dtype=f64, generator=g)[0] + 0.1, randn(1, seed=SEED + n)[0]
        cartesian = boundaries.Boundary(r * u, r * lam)
        polar = boundaries.Boundary.from_angles(theta, lam)
        points = torch.cat([b.points(20, generator=g) for b in (cartesian, polar)])
        errors = [cartesian.distance(points), polar.distance(points), cartesian.location - polar.location]
        worst = max(worst, *(float(e.abs().max()) for e in errors))
    return worst


@claim("boundaries-scale", of=CHAPTER, verdict="proved", source=CHEN.at("section 2"),
       derivation="symbolic.boundaries.location", seed=SEED,
       statement=r"Multiplying $w$ and $b$ by the same $c>0$ moves neither the boundary nor its active side: a "
                 r"unit has $n+1$ numbers, its boundary $n$. The last one is a scale, $\sigma(cw\cdot x+cb)="
                 r"c\,\sigma(w\cdot x+b)$.",
       measures="largest change of the location", tolerance=1e-12)
def scale():
    """The nearest point by pseudo-inverse, before and after; the ReLU's answers, divided by c."""
    w, b, x = randn(30, 5, seed=SEED), randn(30, seed=SEED + 1), randn(50, 5, seed=SEED + 2)
    worst = 0.0
    for c in (1e-3, 0.5, 40.0):
        before, after = boundaries.Boundary(w, b), boundaries.Boundary(c * w, c * b)
        assert bool(((before.distance(x) > 0) == (after.distance(x) > 0)).all()), f"c = {c} changed a side"
        off = float((torch.relu(x @ (c * w).T + c * b) / c - torch.relu(x @ w.T + b)).abs().max())
        assert off < 1e-12, f"c = {c} changed the shape of an answer by {off:.3g}"
        worst = max(worst, float((before.location - after.location).abs().max()))
    return worst


@claim("boundaries-spline", of=CHAPTER, verdict="proved", source=BOOK, derivation="boundaries.Boundary",
       statement=r"A network $f(x)=\sum_k a_k\,\sigma(w_k\cdot x+b_k)$ is affine between the boundaries. Across "
                 r"the boundary of unit $k$, in the direction of $w_k$, its gradient jumps by $a_k w_k$; on a line "
                 r"of inputs its slope jumps by $a_k|w_k|$ at $\phi_k$.", seed=SEED,
       hypotheses="no two units share a boundary.", measures="largest error of a jump", tolerance=1e-9)
def spline():
    """autograd on both sides of each boundary of a random network, in R^1 and R^3; nothing changes on a side."""
    worst = 0.0
    for n in (1, 3):
        w, b, a = randn(12, n, seed=SEED), randn(12, seed=SEED + 1), randn(12, seed=SEED + 2)
        edge = boundaries.Boundary(w, b)
        for k in range(12):
            # a point of boundary k at a distance from all the others, and steps of 1e-6 to both sides
            step = 1e-6 * edge.direction[k]
            x = torch.stack([edge.location[k] - 2 * step, edge.location[k] - step,
                             edge.location[k] + step, edge.location[k] + 2 * step]).requires_grad_()
            slope, = torch.autograd.grad((torch.relu(x @ w.T + b) @ a).sum(), x)
            varies = float(torch.stack([slope[0] - slope[1], slope[2] - slope[3]]).abs().max())
            assert varies == 0, f"unit {k}: the slope varies by {varies:.3g} on one side"
            worst = max(worst, float((slope[2] - slope[1] - a[k] * w[k]).abs().max()))
    return worst


@claim("boundaries-breakpoints", of=CHAPTER, verdict="holds under", source=CHEN_REPLY.at("on other activations"),
       derivation="boundaries.breakpoints", seed=SEED,
       statement=r"The analysis carries over to any piecewise activation: each breakpoint $t$ gives a unit the boundary "
                 r"$w\cdot x+b=t$, at $\lambda_t=(b-t)/|w|$. Two breakpoints give parallel boundaries, "
                 r"$(t_2-t_1)/|w|$ apart.",
       hypotheses=r"that direction and offset alone fix the place, as for ReLU, is true for $t=0$ only: for every other "
                  r"breakpoint the length of $w$ moves the boundary.",
       measures="largest error of a place", tolerance=2e-3)
def other_breakpoints():
    """Bends found as jumps of the second difference along 6 random units on a line, for 7 activations."""
    worst, x = 0.0, torch.arange(-8000, 8001, dtype=f64) / 1000
    for act in (torch.nn.ReLU(), torch.nn.LeakyReLU(0.2), torch.nn.ELU(0.5), torch.nn.Hardtanh(-1, 0.5),
                torch.nn.ReLU6(), torch.nn.Softshrink(0.3), torch.nn.Hardsigmoid()):
        for w, b in randn(6, 2, seed=SEED).tolist():
            w = w + (0.5 if w > 0 else -0.5)
            bend = (act(w * x + b).diff(n=2).abs() > 3e-5).nonzero().flatten() + 1
            bend = bend[torch.cat([torch.tensor([True]), bend.diff() > 5])[: len(bend)]]     # one bend fills two cells
            layer = torch.nn.Linear(1, 1, dtype=f64)
            with torch.no_grad():
                layer.weight.fill_(w)
                layer.bias.fill_(b)
            places = [float(boundaries.of(layer, at=t).location) for t in boundaries.breakpoints(act)]
            inside = sorted(p for p in places if abs(p) < 7.9)
            found = [p for p in x[bend].tolist() if abs(p) < 7.9]
            assert len(found) == len(inside), f"{act}, w = {w:.2f}: {len(found)} bends, and {len(inside)} breakpoints"
            worst = max([worst, *(abs(p - q) for p, q in zip(found, inside, strict=True))])
    return worst


@claim("boundaries-half-inside", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.boundaries.bend_share",
       statement=r"Of units with one input and centred normal $w$ and $b$, the share $\frac2\pi\arctan\frac{R\,s_w}{s_b}$ "
                 r"bends in $[-R,R]$, where $s_w$ and $s_b$ are the standard deviations. For $s_w=s_b$ and $R=1$ it is one half.",
       measures="largest error of the share", tolerance=1e-10)
def half_inside():
    """E[P(|b| < R |w|)] over w by Gauss-Legendre quadrature of the error function."""
    node, weight = np.polynomial.legendre.leggauss(300)
    w, mass = 5 * (node + 1), 10 * weight * np.exp(-(5 * (node + 1)) ** 2 / 2) / sqrt(2 * pi)      # on [0, 10], both signs
    worst = 0.0
    for reach in (0.5, 1.0, 3.0, 10.0):
        for ratio in ("0.25", "1", "4"):
            inside = sum(m * erf(reach * x / float(ratio) / sqrt(2)) for x, m in zip(w, mass, strict=True))
            worst = max(worst, abs(shown.bend_share(reach, ratio)["share"] / 100 - inside))
    return worst


@claim("boundaries-pieces", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.boundaries.regions", seed=SEED,
       statement=r"Boundaries that cross a disc of the plane cut it into $1+\ell+k$ pieces: $\ell$ of them cross the disc, "
                 r"and $k$ pairs meet inside. Without biases $m$ lines meet in one point and make only $2m$ pieces.",
       hypotheses="no three boundaries meet in one point, unless all do.", measures="largest error of a count", tolerance=0.0)
def pieces():
    """Patterns of active units counted near every corner and along the rim, for every state of the figure."""
    worst = 0
    for units in (4, 8, 12, 16, 24):
        for spread in ("0", "0.25", "1", "4"):
            W, b = shown._layer(SEED)
            counted = patterns(W[:units], float(spread) * b[:units], shown.DISC)
            worst = max(worst, abs(counted - shown.layer_lines(units, spread, SEED)["pieces"]))
    return worst


@claim("boundaries-by-location", of=CHAPTER, verdict="corrected", source=CHEN_REPLY.at("on parametrising the neurons themselves"),
       derivation="symbolic.boundaries.location_steps", seed=SEED,
       statement=r"A unit can be parametrised by its location: $u=\phi/|\phi|$ and $\lambda=-|\phi|$ are differentiable for "
                 r"$\phi\ne0$, and a step $d\phi$ turns the boundary by up to $\arcsin(|d\phi|/|\phi|)$, as a step in $w$ does. "
                 r"All boundaries through the origin share $\phi=0$. The polar form of $\phi$, with a signed "
                 r"radius, is $(\lambda,\theta)$.",
       discrepancy=Discrepancy(
           prints="Networks whose hidden neurons are represented directly are very difficult to train, “since gradient-based "
                  "optimization is no longer applicable”.",
           shows=r"Read as a parametrisation by the location $\phi$, gradients exist wherever $\phi\ne0$. What goes wrong is "
                 r"their size: the direction turns at a rate $1/|\phi|$, so that near the origin, where biases start, a small step jumps. "
                 "The answer says of the representation that was tried only that it was “in the hyperspherical coordinate”; for another one "
                 "than the location the statement may hold.",
           remains=r"The difficulty, and the remark that a search by sampling suffers from the dimension. In polar form the location is "
                   "what the paper's own parametrisation trains."),
       measures="relative error of the largest turn", tolerance=1e-6)
def by_location():
    """autograd's derivative of u(phi); the largest turn over all directions of a step, by search in the plane."""
    phi = torch.tensor([0.3, -0.4], dtype=f64, requires_grad=True)
    J = torch.autograd.functional.jacobian(lambda p: p / p.norm(), phi)
    rate = float(torch.linalg.matrix_norm(J, 2))
    assert abs(rate - 1 / 0.5) < 1e-12, f"u turns at a rate {rate:.6g}, and 1/|phi| is 2"
    around = torch.linspace(0, 2 * pi, 200_001, dtype=f64)
    worst = 0.0
    for ratio in (0.05, 0.3, 0.9):
        moved = phi.detach() + 0.5 * ratio * torch.stack([around.cos(), around.sin()], -1)
        cos = (moved @ phi.detach()) / (moved.norm(dim=-1) * 0.5)
        largest = float(boundaries.rotation_bound(phi.detach(), 0.5 * ratio * torch.tensor([1.0, 0.0], dtype=f64)))
        worst = max(worst, abs(float(cos.clamp(max=1).arccos().max()) / largest - 1))
    place = randn(20, 4, seed=SEED)
    radius, theta = to_angles(place)
    off = float((boundaries.Boundary.from_angles(theta, -radius).location - place).abs().max())
    assert off < 1e-12, f"the polar form of phi is off by {off:.3g}"
    return worst


@claim("boundaries-sampling", of=CHAPTER, verdict="verified", source=CHEN_REPLY.at("on parametrising the neurons themselves"),
       derivation="symbolic.boundaries.cap_share", seed=SEED,
       statement=r"Placing units by rejection sampling suffers from the dimension. The share of random directions of $\mathbb R^n$ within "
                 r"$\alpha<\pi/2$ of a wanted one is at most $\frac12\sin^{n-1}\alpha$: at $\alpha=30^\circ$ it is 1 in 6 for "
                 r"$n=2$ and less than 1 in a million for $n=20$.",
       measures="standard errors between the formula and a count", tolerance=4.0)
def sampling():
    """Counts of a million random numbers, in the cap and in the ball, for n = 2 to 8; then the bound (1/2)^n for n up to 40."""
    worst = 0.0
    for n in range(2, 9):
        x = torch.randn(1_000_000 // n, n, generator=torch.Generator().manual_seed(SEED + n))
        share = 10 ** shown.log_cap_share(n, radians(30))
        found = (x[:, 0] > 3**0.5 / 2 * x.norm(dim=1)).double().mean().item()
        inside = torch.rand(len(x), n, generator=torch.Generator().manual_seed(SEED)).square().sum(1) < 1
        ball = 10 ** shown.log_ball_share(n)
        worst = max(worst, abs(found - share) / sqrt(share * (1 - share) / len(x)),
                    abs(inside.double().mean().item() - ball) / sqrt(ball * (1 - ball) / len(x)))
    for n in shown.DIMS:
        value = shown.log_cap_share(n, radians(30))
        assert value < n * log(0.5) / log(10), f"n = {n}: the share 10^{value:.3f} is above the bound"
    assert shown.log_cap_share(20, radians(30)) < -6, "at n = 20 the share is above 1e-6"
    return worst
