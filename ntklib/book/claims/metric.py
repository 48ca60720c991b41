"""Claims of the chapter on the metric tensor.

The checks build u(theta) in a plain loop and differentiate it by autograd, or draw Gaussian vectors and step: they compare
that with `ntklib.sphere` and `ntklib.symbolic.metric`, reached through their modules.
"""
from math import pi, sqrt

import torch
from torch import Tensor

from ntklib import boundaries, sphere
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, CHEN, CHEN_REPLY
from ntklib.symbolic import metric as symbolic

CHAPTER = Chapter("metric", "The metric tensor", "boundaries/16_metric_tensor")
SEED = 16
FAR = 4.5                               # standard errors: one in 150 000 checks of a true mean goes beyond


# ---- independent means -------------------------------------------------------------------------------
def unit(theta: Tensor) -> Tensor:
    """u(theta) of one unit, factor by factor as equation 17 is printed."""
    product, entries = torch.ones((), dtype=theta.dtype), []
    for t in theta:
        entries.append(product * torch.cos(t))
        product = product * torch.sin(t)
    return torch.stack([*entries, product])


def derivatives(theta: Tensor) -> Tensor:
    """du_i/dtheta_j, (n, n-1), by autograd."""
    return torch.autograd.functional.jacobian(unit, theta, vectorize=True)


def units() -> list[Tensor]:
    """Angles for n = 2 .. 12 and 40: random ones, some outside [0, pi], and some at poles."""
    g, out = torch.Generator().manual_seed(SEED), []
    for n in [*range(2, 13), 40]:
        theta = pi * torch.rand(n - 1, dtype=torch.float64, generator=g)
        out += [theta, 3 * theta - 4]
        if n > 2:
            pole = theta.clone()
            pole[n // 3] = 0.0
            out.append(pole)
    return out


def directions(draws: int, n: int, generator) -> Tensor:
    """Uniform directions, (draws, n): normalised Gaussian vectors."""
    w = torch.randn(draws, n, dtype=torch.float64, generator=generator)
    return w / w.norm(dim=1, keepdim=True)


def off(sample: Tensor, mean) -> Tensor:
    """How many standard errors the mean of each column is from `mean`."""
    mean = torch.as_tensor(mean, dtype=torch.float64)
    return (sample.mean(0) - mean).abs() / (sample.std(0) / sqrt(len(sample)) + 1e-12)


# ---- the claims --------------------------------------------------------------------------------------
@claim("metric-diagonal", of=CHAPTER, verdict="proved", source=CHEN.at("Appendix B, equations 17 and 18"),
       derivation="symbolic.metric.induction_steps", seed=SEED,
       statement=r"$M=J^\top J$, with $J_{ij}=\partial u_i/\partial\theta_j$, is diagonal for every $n$, and "
                 r"$M_{jj}=\prod_{k<j}\sin^2\theta_k$.",
       hypotheses="none: angles outside their ranges and poles are included.",
       measures="largest error of an entry", tolerance=1e-13)
def diagonal():
    """The Gram matrix of autograd's Jacobian, for n = 2 .. 12 and 40 (units() is seeded with SEED)."""
    worst = 0.0
    for theta in units():
        J = derivatives(theta)
        worst = max(worst, float((J.T @ J - torch.diag(sphere.metric(theta))).abs().max()))
    return worst


@claim("metric-tail", of=CHAPTER, verdict="proved", source=BOOK, derivation="sphere.metric", seed=SEED,
       statement=r"$M_{jj}=u_j^2+\dots+u_n^2$: an angle turns the unit by as much as the weights from its own on still hold.",
       measures="largest error of an entry", tolerance=1e-13)
def tail():
    """Sums of squares of u, from the last one backwards (units() is seeded with SEED)."""
    return max(float((unit(t).square().flip(0).cumsum(0).flip(0)[:-1] - sphere.metric(t)).abs().max()) for t in units())


@claim("metric-rebuttal", of=CHAPTER, verdict="holds under", source=CHEN_REPLY.at("answers to the reviewers, on equation 18"),
       derivation="symbolic.metric.cancellation_steps", seed=SEED,
       statement=r"$\frac{\partial u_i}{\partial\theta_q}=u_i\cot\theta_q$ for $i>q$, and for $a<b$ the terms of $M_{ab}$ after "
                 r"the $b$-th add up to minus the $b$-th.",
       hypotheses="no sine vanishes.",
       discrepancy=Discrepancy(
           prints=r"The derivatives are written with the quotients $\frac{\cos\theta_k}{\sin\theta_k}$, at all angles.",
           shows=r"At a pole, $\sin\theta_k=0$, the printed formula reads $0/0$, while the derivative is finite: it is the product "
                 r"$u_i$ with its factor $\sin\theta_k$ turned into $\cos\theta_k$.",
           remains="Every step. Signs and indices are right, the singularity is removable, and $M$ is a polynomial in sines and cosines, "
                   r"so that $M_{ab}=0$ extends to the poles by continuity."),
       measures="largest error of a derivative", tolerance=1e-12)
def rebuttal():
    """The printed derivatives against autograd and the library; then both at a pole (units() is seeded with SEED)."""
    worst = 0.0
    for theta in units():
        J, u, n = derivatives(theta), unit(theta), len(theta) + 1
        worst = max(worst, float((J - sphere.jacobian(theta)).abs().max()))
        printed = torch.stack([torch.where(torch.arange(n) > q, u * theta[q].cos() / theta[q].sin(), 0.0) for q in range(n - 1)], 1)
        printed[range(n - 1), range(n - 1)] = -theta.sin().cumprod(0)
        if bool((theta == 0).any()):
            lost = int(printed.isnan().sum())
            assert lost > 0, f"the printed formula has {lost} undefined entries at a pole"
            continue
        worst = max(worst, float((J - printed).abs().max()))
        for a in range(n - 1):
            for b in range(a + 1, n - 1):
                terms = printed[:, a] * printed[:, b]
                worst = max(worst, float(terms[:b].abs().sum()), float((terms[b] + terms[b + 1:].sum()).abs()))
    return worst


@claim("metric-mean", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.metric.mean_metric", seed=SEED,
       statement=r"For a uniform direction $M_{jj}$ has the Beta law with parameters $\frac{n-j+1}2$ and $\frac{j-1}2$: its mean is "
                 r"$\frac{n-j+1}n$, and its standard deviation at most $1/\sqrt{2n+4}$.",
       hypotheses="$u$ uniform on the sphere.", measures="largest deviation of a mean, in standard errors", tolerance=FAR)
def mean():
    """First and second moments of the tails of 40 000 normalised Gaussian vectors in R^20."""
    n = 20
    u = directions(40_000, n, torch.Generator().manual_seed(SEED))
    tails = u.square().flip(1).cumsum(1).flip(1)[:, 1:-1]
    first = [float(symbolic.mean_metric(n, j)) for j in range(2, n)]
    second = [m * (n * m + 2) / (n + 2) for m in first]             # E X^2 of a Beta law with mean m and parameters adding up to n/2
    spread = max(sqrt(s - m * m) for m, s in zip(first, second, strict=True))
    assert spread <= 1 / sqrt(2 * n + 4) + 1e-12, f"the standard deviation reaches {spread:.4f}"
    return max(float(off(tails, first).max()), float(off(tails.square(), second).max()))


@claim("metric-half", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.metric.mean_metric", seed=SEED,
       statement=r"$\mathbb E\,\lVert\varepsilon\rVert_M^2=\frac{n+2}{2n}\lVert\varepsilon\rVert^2$ for a step of random heading: on "
                 r"average the bound $\lVert\varepsilon\rVert_M\le\lVert\varepsilon\rVert$ is within $\sqrt2$ of the truth, in every dimension.",
       hypotheses=r"$u$ uniform on the sphere, the heading of $\varepsilon$ uniform and independent of it.",
       measures="deviation of the mean, in standard errors", tolerance=FAR)
def half():
    """The library's metric at 4000 uniform units with 300 inputs, each with a step of random heading."""
    n, g = 300, torch.Generator().manual_seed(SEED)
    squared = (sphere.metric(sphere.uniform_angles(4000, n, generator=g)) * directions(4000, n - 1, g).square()).sum(1)
    exact = sum(symbolic.mean_metric(n, j) for j in range(1, n)) / (n - 1)
    assert exact * 2 * n == n + 2, f"the mean of the diagonal is {float(exact):.6g}"
    return off(squared, float(exact))


@claim("metric-weights", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.metric.mean_squared_move", seed=SEED,
       statement=r"If every angle steps by $\pm\eta$, the move of weight $i$ has the mean square $\frac{\eta^2}n\left(n-i+H_{n-1}-H_{n-i}\right)$, "
                 r"$H_k=1+\dots+\frac1k$: nearly $\eta^2$ for the first weight, $\eta^2\,H_{n-1}/n$ for the last.",
       hypotheses=r"$u$ uniform, independent signs, first order in $\eta$.",
       measures="largest deviation of a mean, in standard errors", tolerance=FAR)
def weights():
    """60 000 random units with 12 inputs make real steps of 1e-4 in all angles."""
    n, eta, g = 12, 1e-4, torch.Generator().manual_seed(SEED)
    theta = sphere.to_angles(directions(60_000, n, g))[1]
    signs = torch.randint(0, 2, theta.shape, generator=g, dtype=torch.float64) * 2 - 1
    moved = ((sphere.from_angles(theta + eta * signs) - sphere.from_angles(theta - eta * signs)) / (2 * eta)).square()
    return off(moved, [float(symbolic.mean_squared_move(n, i)) for i in range(1, n + 1)]).max()


@claim("metric-descent", of=CHAPTER, verdict="proved", source=BOOK, derivation="sphere.jacobian", seed=SEED,
       statement=r"Gradient descent in the angles moves $u$ by $-\eta\,JJ^\top g$, to first order: the component of the gradient $g$ along the "
                 r"unit vector $e_j=\partial_ju/\sqrt{M_{jj}}$ is multiplied by $M_{jj}$.",
       hypotheses="no pole, where $e_j$ is not defined.", measures="largest error of a component", tolerance=1e-12)
def descent():
    """The gradient in the angles by reverse mode, the move of u by forward mode (units() is seeded with SEED)."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    for theta in units():
        if bool((theta == 0).any()) or len(theta) > 11:
            continue
        g = torch.randn(len(theta) + 1, dtype=torch.float64, generator=generator)
        at = theta.clone().requires_grad_(True)
        down, = torch.autograd.grad(unit(at) @ g, at)
        du = torch.func.jvp(unit, (theta,), (-down,))[1]
        M = sphere.metric(theta)
        e = sphere.jacobian(theta) / M.sqrt()
        worst = max(worst, float((e.T @ du + M * (e.T @ g)).abs().max()))
    return worst


def descend(point, start: Tensor, target: Tensor, lr: float, steps: int) -> Tensor:
    """Where gradient descent on |point(p) - target|^2/2 takes a unit in `steps` steps, from the parameters `start`."""
    p = start
    for _ in range(steps):
        p = p.detach().requires_grad_(True)
        down, = torch.autograd.grad((point(p) - target).square().sum() / 2, p)
        p = p - lr * down
    return point(p).detach()


def reordered(start: Tensor, target: Tensor, lr: float, steps: int) -> tuple[float, float]:
    """The angle between where descent takes a unit and where it takes it with the inputs numbered backwards: for a unit that
    trains its weights w, u = w/|w|, and for one that trains its angles."""
    def by_weights(u, v):
        return descend(lambda w: w / w.norm(), u, v, lr, steps)

    def by_angles(u, v):
        return descend(sphere.from_angles, sphere.to_angles(u)[1], v, lr, steps)

    return tuple(float(sphere.geodesic(f(start, target), f(start.flip(0), target.flip(0)).flip(0))) for f in (by_weights, by_angles))


@claim("metric-order", of=CHAPTER, verdict="verified", source=BOOK, derivation="sphere.metric", seed=SEED,
       statement="Training in the angles depends on the order of the inputs: numbered backwards, the same unit on the same task goes elsewhere. "
                 r"Training in the weights, $u=w/|w|$, does not.",
       hypotheses=r"gradient descent on $\frac12\lVert u-u^\star\rVert^2$ with $50$ inputs, ten tasks.",
       measures="largest angle between the two units that train their weights", tolerance=1e-7)
def order():
    """Ten tasks, 20 steps: the angle that the order makes, in radians."""
    g, plain, angles = torch.Generator().manual_seed(SEED), [], []
    for _ in range(10):
        a, b = reordered(*directions(2, 50, g), lr=0.1, steps=20)
        plain.append(a)
        angles.append(b)
    assert min(angles) > 0.1, f"in the angles the order turns a unit by {min(angles):.3g} only"
    return max(plain)


def mean_turn(n: int, eta: float, draws: int, generator) -> Tensor:
    """Angles between u(theta) and u(theta + eta s), s random signs, for uniform units: real steps, not first order."""
    u = directions(draws, n, generator)
    theta = sphere.to_angles(u)[1]
    signs = torch.randint(0, 2, theta.shape, generator=generator, dtype=torch.float64) * 2 - 1
    return sphere.geodesic(u, sphere.from_angles(theta + eta * signs))


@claim("metric-dimension", of=CHAPTER, verdict="holds under", source=CHEN_REPLY.at("answers to the reviewers, on plots in higher dimension"), seed=SEED,
       derivation="symbolic.metric.mean_metric",
       statement=r"If every angle steps by $\pm\eta$, a random unit turns by $\eta\sqrt{\frac{(n-1)(n+2)}{2n}}\approx\eta\sqrt{n/2}$, root mean square: smoothly if "
                 r"$\eta\sqrt{n/2}$ is small.",
       hypotheses=r"$u$ uniform, $\eta\sqrt{n/2}\ll1$.",
       discrepancy=Discrepancy(
           prints="Theorem 3.7 \"guarantees smooth\" evolution \"under GmP in any dimensions in theory\".",
           shows=r"The bound is the length $\lVert\varepsilon\rVert$ of the whole step, and that grows with the dimension if every angle moves by $\eta$, as under "
                 r"Adam: $\lVert\varepsilon\rVert=\eta\sqrt{n-1}$. At $\eta=0.1$ a random unit with $n=1152$ inputs (a $3\times3$ kernel on 128 channels) turns by "
                 r"$80^\circ$ on average in one step.",
           remains=r"The theorem's bound, in every dimension. What a learning rate may be for a smooth evolution depends on $n$, as it does for plain weights."),
       measures=r"relative error of the root mean square at $n=1152$, $\eta=10^{-3}$", tolerance=5e-3)
def dimension():
    """Real steps of 800 units: small ones against the formula, and the ones that the statement names."""
    n, g = 1152, torch.Generator().manual_seed(SEED)
    exact = sqrt(float(sum(symbolic.mean_metric(n, j) for j in range(1, n))))
    assert abs(exact / sqrt((n - 1) * (n + 2) / (2 * n)) - 1) < 1e-12, f"the sum of the diagonal is {exact**2:.6g}"
    large = float(mean_turn(n, 0.1, 800, g).rad2deg().mean())
    assert abs(large - 80) < 1, f"the mean turn at 0.1 is {large:.1f} degrees"
    return abs(float(mean_turn(n, 1e-3, 800, g).square().mean().sqrt()) / (1e-3 * exact) - 1)


@claim("metric-location", of=CHAPTER, verdict="proved", source=BOOK, derivation="boundaries.Boundary", seed=SEED,
       statement=r"The spatial location $\phi=-\lambda u(\theta)$ moves by $\lVert d\phi\rVert^2=d\lambda^2+\lambda^2\sum_jM_{jj}\,d\theta_j^2$: the farther the "
                 "boundary, the farther the same step takes it.",
       measures="largest error of an entry of the metric of $\\phi$", tolerance=1e-12)
def location():
    """The Gram matrix of the derivatives of Boundary.from_angles(..).location in (theta, lambda) (units() is seeded with SEED)."""
    worst = 0.0
    for theta in units():
        if len(theta) > 11:
            continue
        lam = torch.tensor([1.7], dtype=torch.float64)
        J = torch.autograd.functional.jacobian(lambda p: boundaries.Boundary.from_angles(p[:-1], p[-1]).location, torch.cat([theta, lam]))
        expected = torch.diag(torch.cat([lam**2 * sphere.metric(theta), torch.ones(1, dtype=torch.float64)]))
        worst = max(worst, float((J.T @ J - expected).abs().max()))
    return worst
