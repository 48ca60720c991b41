"""Claims of the chapter on the gradient angle.

The checks compute the sum over the layers by their own recursion (`cosine`, in doubles or with many digits), from kernels
integrated by quadrature, or by autograd on networks of finite width, and compare the library with that.
"""
from functools import cache
from math import acos, cos, degrees, log, pi, radians, sqrt

import mpmath as mp
import numpy as np
import torch

from ntklib import angles
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, LIU

CHAPTER = Chapter("gradient", "The gradient angle", "angles/03_gradient_angle")
SEED = 3
QUARTER = degrees(acos(0.25))


# ---- independent means -------------------------------------------------------------------------------
def cosine(theta, depth: int, beta=1):
    """cos phi by the sum over the layers, term by term, in the digits that mpmath is set to; theta an mpmath number."""
    path = [theta]
    for _ in range(depth):
        z = path[-1]
        path.append(mp.acos(mp.cos(z) + beta * (mp.sin(z) - z * mp.cos(z)) / mp.pi))
    total, back = mp.mpf(0), mp.mpf(1)
    for l in range(depth, -1, -1):                  # from the output down
        total += mp.cos(path[l]) * back
        if l:
            back *= 1 - beta * path[l - 1] / mp.pi
    return total / (depth + 1)


def angles_by_depth(theta, depth: int) -> np.ndarray:
    """phi_0, ..., phi_depth in radians for an array of angles, by the recursion from layer to layer, in doubles."""
    t = np.asarray(theta, float)
    N, out = np.cos(t), [t]
    for l in range(depth):
        after = np.arccos(np.clip(((pi - t) * np.cos(t) + np.sin(t)) / pi, -1, 1))
        N, t = np.cos(after) + (1 - t / pi) * N, after
        out.append(np.arccos(np.clip(N / (l + 2), -1, 1)))
    return np.array(out)


def library(theta, depth: int, slope: float = 0.0) -> float:
    """phi as the library gives it."""
    return float(angles.gradient_angle(torch.tensor(theta, dtype=torch.float64), depth, slope))


@cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    node, weight = np.polynomial.legendre.leggauss(400)
    return 6 * (node + 1), 6 * weight                # on [0, 12]


def dual(rho: float, degree: int) -> float:
    """2 E[relu(u) relu(v)] (degree 1) or 2 P(u > 0, v > 0) (degree 0) at correlation rho, by quadrature over u > 0."""
    if rho > 1 - 1e-12:
        return 1.0
    u, weight = _nodes()
    weight = weight * np.exp(-u * u / 2) / sqrt(2 * pi)
    s = sqrt(1 - rho * rho)
    t = torch.from_numpy(rho * u / s)
    above = torch.special.ndtr(t).numpy()
    if degree == 0:
        return float(2 * (weight * above).sum())
    mean = rho * u * above + s * np.exp(-t.numpy() ** 2 / 2) / sqrt(2 * pi)
    return float(2 * (weight * u * mean).sum())


def by_gradients(theta: float, width: int, depth: int, draws: int, generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Autograd on real networks: the cosines of the gradients (draws,), and each matrix's share of them (draws, depth + 1)."""
    x = torch.tensor([[1.0, 0.0], [cos(theta), sqrt(1 - cos(theta) ** 2)]], dtype=torch.float64)
    inner = []
    for _ in range(draws):
        W = [torch.randn(width, 2 if l == 0 else width, generator=generator, dtype=torch.float64).requires_grad_()
             for l in range(depth)]
        W.append(torch.randn(1, width if depth else 2, generator=generator, dtype=torch.float64).requires_grad_())
        grads = []
        for one in x:
            a = one
            for w in W[:-1]:
                a = sqrt(2 / width) * (w @ a).relu()
            grads.append(torch.autograd.grad((W[-1] @ a)[0], W))
        inner.append(torch.tensor([[float((p * q).sum()) for p, q in zip(grads[i], grads[j], strict=True)]
                                   for i, j in ((0, 1), (0, 0), (1, 1))]))
    K = torch.stack(inner)
    total = K.sum(2)
    scale = (total[:, 1] * total[:, 2]).sqrt()
    return total[:, 0] / scale, K[:, 0] / scale[:, None]


def crossing(depth: int) -> float:
    """The angle in degrees at which phi_depth = theta, by bisection on `cosine`."""
    low, high = mp.mpf(1), mp.mpf("1.4")
    with mp.workdps(20):
        while high - low > mp.mpf("1e-9"):
            middle = (low + high) / 2
            low, high = (middle, high) if cosine(middle, depth) < mp.cos(middle) else (low, middle)
        return float(mp.degrees(low))


# ---- the claims --------------------------------------------------------------------------------------
@claim("gradient-formula", of=CHAPTER, verdict="proved", source=LIU.at("Lemma 3.1, equations (7) and (8)"),
       derivation="symbolic.gradient_angle",
       statement=r"$\cos\phi_L=\frac{1}{L+1}\sum_{\ell=0}^{L}\cos\theta^{(\ell)}\prod_{k=\ell}^{L-1}\left(1-\frac{\theta^{(k)}}{\pi}\right)$ "
                 r"for the angle $\phi_L$ between the gradients with respect to all weights.",
       hypotheses=r"ReLU, $L$ hidden layers whose widths go to infinity, independent standard normal weights, no biases.",
       measures="largest error of the cosine", tolerance=1e-10)
def formula():
    """The kernel recursion with both Gaussian expectations by quadrature, at depths 1 to 6."""
    worst = 0.0
    for theta in (0.3, 1.0, 2.0, 3.0):
        forward, total = cos(theta), cos(theta)
        for depth in range(1, 7):
            total = dual(forward, 1) + dual(forward, 0) * total
            forward = dual(forward, 1)
            worst = max(worst, abs(total / (depth + 1) - cos(library(theta, depth))))
    return worst


@claim("gradient-autograd", of=CHAPTER, verdict="verified", source=LIU.at("Lemma 3.1, equations (7) and (8)"),
       derivation="symbolic.gradient_angle", seed=SEED,
       statement=r"In real networks the share of each weight matrix in $\cos\phi$ is, on average, its forward factor times its backward "
                 r"factor over $L+1$.",
       hypotheses=r"measured by autograd at $\theta=30^\circ$ with $L=3$, 60 networks of width 400.",
       measures="largest error of a share", tolerance=0.015)
def autograd():
    """Each share against its two factors; the standard error of the means is 0.002, the bias of order 1/width."""
    theta, depth = radians(30), 3
    cosines, shares = by_gradients(theta, 400, depth, 60, torch.Generator().manual_seed(SEED))
    off = abs(float(cosines.mean()) - cos(library(theta, depth)))
    assert off < 0.02, f"the mean cosine is off by {off:.3g}"
    path = [theta]
    for _ in range(depth):
        path.append(acos(cos(path[-1]) + (sqrt(1 - cos(path[-1]) ** 2) - path[-1] * cos(path[-1])) / pi))
    expected = [cos(path[l]) * float(np.prod([1 - t / pi for t in path[l:depth]])) / (depth + 1) for l in range(depth + 1)]
    return (shares.mean(0) - torch.tensor(expected, dtype=torch.float64)).abs().max()


@claim("gradient-separation", of=CHAPTER, verdict="proved", source=LIU.at("Theorem 3.2, at infinite width"),
       derivation="symbolic.gradient.gradient_cosine_series",
       statement=r"For small angles $\phi_L\approx\sqrt{\frac{L\theta}{\pi}}$: not only is $\phi_L>\theta$, the ratio "
                 r"$\frac{\phi_L}{\theta}$ grows without bound as $\theta\to0$.",
       hypotheses=r"$L\ge1$ and $L\theta\to0$. The theorem itself says $\phi>\theta$ for small $\theta$, with high probability at finite width.",
       measures=r"largest relative error at $\theta=10^{-8}$", tolerance=1e-6)
def separation():
    """With 60 digits at depths 1, 4 and 16; the library at the same places."""
    worst = 0.0
    with mp.workdps(60):
        theta = mp.mpf("1e-8")
        for depth in (1, 4, 16):
            true = mp.acos(cosine(theta, depth))
            off = abs(library(1e-8, depth) / float(true) - 1)
            assert off < 1e-13, f"the library's angle at depth {depth} is off by {off:.3g}"
            worst = max(worst, float(abs(true / mp.sqrt(depth * theta / mp.pi) - 1)))
    return worst


@claim("gradient-first-order", of=CHAPTER, verdict="corrected", source=LIU.at("Corollary 3.3"),
       derivation="symbolic.gradient.gradient_cosine_series",
       statement=r"$\frac{\cos\phi_L}{\cos\theta}=1-\frac{L\theta}{2\pi}+\frac{5L(L-1)\theta^2}{18\pi^2}+\dots$ as $L\theta\to0$.",
       hypotheses=r"$L\theta\to0$, for instance any fixed depth.",
       discrepancy=Discrepancy(
           prints=r"The formula up to the term in $\theta$, for a finite depth $L=\Omega(1/\theta)$.",
           shows=r"The formula is of first order in $L\theta$, so it needs $L=o(1/\theta)$. Where $L\theta$ is not small the next "
                 r"term counts: at $\theta=0.1$ and $L=20$ it gives $\cos\phi=0.678$, and $0.761$ is right.",
           remains=r"The formula, with $o(1/\theta)$ in place of $\Omega(1/\theta)$ as in the paper's earlier versions."),
       measures=r"relative error of the quadratic coefficient at $\theta=10^{-6}$", tolerance=1e-4)
def first_order():
    """With 60 digits at depths 2, 5 and 20; and the two numbers of the discrepancy."""
    worst = 0.0
    with mp.workdps(60):
        z = mp.mpf("1e-6")
        for L in (2, 5, 20):
            quadratic = (cosine(z, L) / mp.cos(z) - 1 + L * z / (2 * mp.pi)) / z**2
            worst = max(worst, float(abs(quadratic / (mp.mpf(5 * L * (L - 1)) / (18 * mp.pi**2)) - 1)))
    printed, true = (1 - 20 * 0.1 / (2 * pi)) * cos(0.1), cos(library(0.1, 20))
    assert abs(printed - 0.678) < 5e-4, f"the printed formula gives {printed:.4f}"
    assert abs(true - 0.761) < 5e-4, f"cos phi is {true:.4f}"
    return worst


@claim("gradient-law", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.gradient.crossover_steps",
       statement=r"As $\theta\to0$ with $s=\frac{L\theta}{3\pi}$ fixed, $\cos\phi_L\to\frac{(1+s)^4-1}{4s(1+s)^3}$, which runs from $1$ "
                 r"to $\frac14$.",
       measures=r"largest error of the angle in degrees at $\theta=0.1^\circ$, $L\ge5$", tolerance=0.02)
def small_angle_law():
    """Depths 5 to 5000 by the recursion; depth 50 by the library."""
    theta = radians(0.1)
    path = angles_by_depth(theta, 5000)
    off = abs(library(theta, 50) - float(path[50]))
    assert off < 1e-9, f"the library's angle at depth 50 is off by {off:.3g}"
    depth = np.arange(5, 5001)
    s = depth * theta / (3 * pi)
    return np.degrees(np.abs(path[5:] - np.arccos(((1 + s) ** 4 - 1) / (4 * s * (1 + s) ** 3)))).max()


@claim("gradient-limit", of=CHAPTER, verdict="proved", source=LIU.at("Theorem 3.5"),
       derivation="symbolic.gradient.crossover_steps",
       statement=r"As $L\to\infty$, $\phi_L\to\arccos\frac14\approx75.5^\circ$ for every pair of inputs that do not have the same direction; "
                 r"$\cos\phi_L=\frac14+\frac38\frac{\ln L}{L}+O(1/L)$.",
       hypotheses="widths to infinity first, then the depth.",
       discrepancy=Discrepancy(
           prints=r"The limit for inputs that are not parallel, with $g$ defined on $[0,\pi)$.",
           shows=r"Opposite inputs need not be left out: one layer makes them orthogonal, and from there the limit is the same.",
           remains="All of it. Only inputs in the *same* direction must be excluded."),
       measures=r"error of $\frac38$, from $L=10\,000$ and $20\,000$", tolerance=0.02)
def limit():
    """Twice the depth, from 0.1, a right angle and pi: L cos phi must gain L/4 and 3/8 ln 2."""
    start = np.array([0.1, pi / 2, pi])
    path = angles_by_depth(start, 20_000)
    off = max(abs(library(t, 100) - float(p)) for t, p in zip(start.tolist(), path[100], strict=True))
    assert off < 1e-9, f"the library's angle at depth 100 is off by {off:.3g}"
    far = float(np.abs(np.degrees(path[-1]) - QUARTER).max())
    assert far < 0.1, f"after 20 000 layers an angle is {far:.3g} degrees from the limit"
    half, whole = ((L + 1) * (np.cos(path[L]) - 0.25) for L in (10_000, 20_000))
    return np.abs((whole - half) / log(2) - 3 / 8).max()


@claim("gradient-crossover", of=CHAPTER, verdict="verified", source=LIU.at("section 3 and Figure 1"),
       derivation="angles.gradient_angle",
       statement=r"$\phi_L>\theta$ exactly below an angle that depends on the depth: $66.78^\circ$ for $L=1$, $67.16^\circ$ for $2$, $68.23^\circ$ "
                 r"for $5$, $69.56^\circ$ for $10$, $74.06^\circ$ for $100$; it rises towards $\arccos\frac14$.",
       discrepancy=Discrepancy(
           prints=r"Gradients are better separated for small angles, "
                  r'"say" $\theta\le30^\circ$; above that $\phi$ stays above $30^\circ$.',
           shows=r"Read off Figure 1, this is careful: the separation holds up to $66.78^\circ$ at every depth.",
           remains="All of it."),
       measures="largest error in degrees", tolerance=0.005)
def crossover():
    """Bisection with 20 digits; the sign on both sides by the library on a grid."""
    stated, worst = {1: 66.78, 2: 67.16, 5: 68.23, 10: 69.56, 100: 74.06}, 0.0
    grid = torch.linspace(0.1, 179.9, 900, dtype=torch.float64)
    for depth, where in stated.items():
        worst = max(worst, abs(crossing(depth) - where))
        above = angles.gradient_angle(grid.deg2rad(), depth).rad2deg() > grid
        wrong = int((above != (grid < where)).sum())
        assert wrong == 0, f"at depth {depth} {wrong} angles of the grid are on the wrong side of {where}"
    return worst


@claim("gradient-depth", of=CHAPTER, verdict="holds under", source=LIU.at("section 3 and Figure 1"),
       derivation="angles.gradient_angle",
       statement="Each further layer separates the gradients further.",
       hypotheses=r"$\theta<66.78^\circ$, where it holds at every depth (verified to $L=300$). From $66.78^\circ$ on the first layers bring "
                  r"the gradients closer: from a right angle $\phi_L$ falls to $71.55^\circ$ at $L=11$, and rises from there.",
       measures="error of the smallest angle in degrees", tolerance=0.005)
def deeper():
    """All depths to 300 on a grid; from 90 degrees the smallest angle and its depth; the library at that place."""
    path = np.degrees(angles_by_depth(np.radians(np.linspace(0.05, 180, 3600)), 300))
    start = path[0]
    monotone = (np.diff(path, axis=0) > 0).all(0)
    wrong = int((monotone != (start < 66.78)).sum())
    assert wrong == 0, f"{wrong} starting angles are on the wrong side of 66.78 degrees"
    right = path[:, np.abs(start - 90).argmin()]
    assert int(right.argmin()) == 11, f"the smallest angle is at depth {int(right.argmin())}"
    off = abs(degrees(library(pi / 2, 11)) - float(right.min()))
    assert off < 1e-6, f"the library's angle at depth 11 is off by {off:.3g}"
    return abs(float(right.min()) - 71.552)


@claim("gradient-closest", of=CHAPTER, verdict="verified", source=BOOK, derivation="angles.gradient_angle",
       statement=r"$\phi_L$ increases with $\theta$ up to $142.6^\circ$ ($L=1$), $148^\circ$ ($L=2$), $167^\circ$ ($L=10$): the pair of inputs that is "
                 "closest has the closest gradients.",
       hypotheses=r"no two inputs are more than $142.6^\circ$ apart, as with data that have no negative coordinates. Beyond, only pairs "
                  r"whose gradients are more than $72^\circ$ apart change places.",
       measures="largest error of the three angles in degrees", tolerance=0.6)
def closest():
    """Where a fine grid has its maximum; the library increases as far as that."""
    theta = np.linspace(0, pi, 36_001)
    path = angles_by_depth(theta, 10)
    worst = 0.0
    for depth, where in ((1, 142.6), (2, 148.0), (10, 167.0)):
        worst = max(worst, abs(degrees(theta[path[depth].argmax()]) - where))
        some = torch.linspace(0, radians(where) - 0.01, 2000, dtype=torch.float64)
        steps = angles.gradient_angle(some, depth).diff()
        assert bool((steps > 0).all()), f"at depth {depth} the smallest step is {float(steps.min()):.3g}"
        beyond = float(np.degrees(path[depth][theta > radians(where)]).min())
        assert beyond > 72, f"at depth {depth} a wide pair has gradients {beyond:.2f} degrees apart"
    return worst


@claim("gradient-leaky", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.gradient.gradient_cosine_series",
       statement=r"For leaky ReLU of slope $a$ every $\frac{\theta^{(k)}}{\pi}$ becomes $\beta\frac{\theta^{(k)}}{\pi}$ with "
                 r"$\beta=\frac{(1-a)^2}{1+a^2}$: $\phi_L\approx\sqrt{\frac{\beta L\theta}{\pi}}$, and the limit is $\arccos\frac14$ for every $a\ne1$.",
       measures=r"largest relative error of the small angles at $\theta=10^{-8}$", tolerance=1e-5)
def leaky():
    """With 60 digits at slopes -1, 0.1 and 0.5, and the library; the limit by the recursion at L = 3000, in plain doubles."""
    worst = 0.0
    with mp.workdps(60):
        for a in (mp.mpf(-1), mp.mpf("0.1"), mp.mpf("0.5")):
            beta = (1 - a) ** 2 / (1 + a**2)
            true = mp.acos(cosine(mp.mpf("1e-8"), 4, beta))
            off = abs(library(1e-8, 4, float(a)) / float(true) - 1)
            assert off < 1e-12, f"the library's angle for slope {float(a):g} is off by {off:.3g}"
            worst = max(worst, float(abs(true / mp.sqrt(4 * beta * mp.mpf("1e-8") / mp.pi) - 1)))
    for a in (-1.0, 0.1, 0.5):
        beta, t = (1 - a) ** 2 / (1 + a**2), 0.3
        N = cos(t)
        for _ in range(3000):
            after = acos(cos(t) + beta * (sqrt(1 - cos(t) ** 2) - t * cos(t)) / pi)
            N, t = cos(after) + (1 - beta * t / pi) * N, after
        off = degrees(acos(N / 3001)) - QUARTER
        assert abs(off) < 1, f"with slope {a:g} the angle is {off:.3g} degrees from the limit at L = 3000"
    return worst


@claim("gradient-kappa", of=CHAPTER, verdict="verified", source=LIU.at("Proposition 4.1, and the rebuttal at ICLR 2024"),
       derivation="angles.gradient_deficit",
       statement=r"For two inputs of one length at a small angle $\kappa_{\mathrm{linear}}\approx\frac{4}{\theta^2}$ and "
                 r"$\kappa_{\mathrm{ReLU}}\approx\frac{4}{\phi_L^2}\approx\frac{4\pi}{L\theta}$.",
       hypotheses=r"all layers trained, $L\theta\to0$.",
       discrepancy=Discrepancy(
           prints=r"The rebuttal says that $\kappa$ scales as $1/z$ for a small angle $z$, Proposition 4.1 that it is $\Omega(1/\phi^2)$.",
           shows=r"Both hold, for two different angles: $z=\theta$ is between the inputs, $\phi$ between their gradients, and "
                 r"$\phi^2\approx\frac{L\theta}{\pi}$.",
           remains="Both statements, once each names its angle."),
       measures=r"largest relative error at $\theta=10^{-6}$, $L=1$ and $10$", tolerance=2e-5)
def kappa():
    """Eigenvalues 1 + cos and 1 - cos of the normalised kernel with 60 digits, and from the library's deficit."""
    theta, worst = 1e-6, 0.0
    with mp.workdps(60):
        z = mp.mpf(theta)
        linear = (1 + mp.cos(z)) / (1 - mp.cos(z))
        worst = float(abs(linear * z**2 / 4 - 1))
        for depth in (1, 10):
            c = cosine(z, depth)
            true = (1 + c) / (1 - c)
            d = float(angles.gradient_deficit(torch.tensor(theta, dtype=torch.float64), depth))
            off = abs((2 - d) / d / float(true) - 1)
            assert off < 1e-12, f"the library's kappa at depth {depth} is off by {off:.3g}"
            worst = max(worst, float(abs(true * depth * z / (4 * mp.pi) - 1)))
    return worst
