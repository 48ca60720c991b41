"""Claims of the chapter on two points.

The checks compute angles by the printed recursion with 40 digits, eigenvalues by mpmath or numpy, and real networks by
autograd; the library is what they are compared with.
"""
from functools import cache
from math import log10, pi, radians, sqrt

import mpmath as mp
import numpy as np
import torch

from ntklib import angles, spectrum
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, LIU, LIU_REPLY
from ntklib.mlp import MLP

CHAPTER = Chapter("pairs", "Two points", "conditioning/06_two_points")
SEED = 6
THRESHOLD = 66.781737                               # degrees, L = 1


# ---- independent means -------------------------------------------------------------------------------
@cache
def cosine(theta: float, depth: int) -> mp.mpf:
    """cos phi_L by the paper's equations (7) and (8), with 40 digits; depth = 0 is the linear network."""
    with mp.workdps(40):
        angle, total = mp.mpf(theta), mp.cos(mp.mpf(theta))
        for _ in range(depth):
            after = ((mp.pi - angle) * mp.cos(angle) + mp.sin(angle)) / mp.pi
            total = total * (1 - angle / mp.pi) + after
            angle = mp.acos(after)
        return total / (depth + 1)


def kappa(theta: float, depth: int, ratio=1) -> mp.mpf:
    """The ratio of mpmath's eigenvalues of the 2 x 2 kernel."""
    with mp.workdps(40):
        ratio = mp.mpf(ratio)
        c = ratio * cosine(theta, depth)
        low, high = mp.eigsy(mp.matrix([[1, c], [c, ratio**2]]), eigvals_only=True)
        return high / low


def library(theta: float, depth: int, ratio=1.0, activation="relu") -> float:
    """The same from the two points, by the library."""
    X = torch.tensor([[1.0, 0.0], [ratio * np.cos(theta), ratio * np.sin(theta)]], dtype=torch.float64)
    return spectrum.ntk_condition_number(X, depth=depth, activation=activation).kappa


# ---- the claims --------------------------------------------------------------------------------------
@claim("pairs-formula", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.pairs.spread",
       statement=r"Two points whose gradients make the angle $\phi$ and have lengths in the ratio $r$ have a kernel with "
                 r"$\kappa+\frac1\kappa+2=\frac{(r+1/r)^2}{\sin^2\phi}$; for equal lengths $\kappa=\cot^2\frac\phi2$ if "
                 r"$\phi\le90^\circ$, and $\tan^2\frac\phi2$ beyond.",
       hypotheses=r"$0<\phi<\pi$. Of the angle, only $\sin\phi$ matters.",
       measures="largest relative error", tolerance=1e-11)
def formula():
    """mpmath's eigenvalues against the formula, and against the library on points of that angle and ratio."""
    worst = 0.0
    for theta in (1e-6, 0.01, 0.7, 1.5, 2.2, 3.0):
        for depth in (1, 4):
            for ratio in (1.0, 0.3, 2.5):
                k, c = kappa(theta, depth, ratio), cosine(theta, depth)
                with mp.workdps(40):
                    stated = (mp.mpf(ratio) + 1 / mp.mpf(ratio)) ** 2 / (1 - c**2)
                    worst = max(worst, abs(float((k + 1 / k + 2) / stated - 1)))
                worst = max(worst, abs(float(library(theta, depth, ratio) / k - 1)))
    return worst


@claim("pairs-linear", of=CHAPTER, verdict="proved", source=LIU.at("Corollary 2.4, for two points"), derivation="symbolic.pairs.condition_number",
       statement=r"Without the ReLU two unit points have $\bar\kappa=\cot^2\frac\theta2$ at every depth, which is about "
                 r"$4/\theta^2$ for a small angle.",
       hypotheses=r"$m\to\infty$, $0<\theta\le90^\circ$.", measures="largest relative error", tolerance=1e-9)
def linear():
    """The library on points against cot^2 by mpmath; and theta^2 kappa -> 4. One coordinate of a point carries the angle to
    16 digits, so that its square is known to some 1e-16 only in relation to the angle: hence 1e-9."""
    worst = 0.0
    for theta in (1e-6, 1e-3, 0.1, 0.9, 1.5):
        truth = float(mp.cot(mp.mpf(theta) / 2) ** 2)
        worst = max(worst, *(abs(library(theta, L, activation="linear") / truth - 1) for L in (0, 3, 20)))
    off = abs(library(1e-6, 5, activation="linear") * 1e-12 / 4 - 1)
    assert off < 1e-6, f"theta^2 kappa is off from 4 by {off:.2g}"
    return worst


@claim("pairs-relu-rate", of=CHAPTER, verdict="proved", source=LIU_REPLY.at("W3"), derivation="symbolic.gradient_deficit",
       statement=r"With the ReLU $\kappa\sim\frac{4\pi}{L\,\theta}$ as $\theta\to0$ at a fixed depth $L\ge1$.",
       hypotheses=r"$m\to\infty$, unit inputs. The reply says 'scales roughly as $1/z$', with $z$ the angle of the *inputs*; Proposition 4.1 "
                  r"of the paper, $\kappa=\Omega(1/\phi^2)$, speaks of the angle of the gradients, $\phi\sim\sqrt{L\theta/\pi}$. They agree.",
       measures=r"largest error of $\kappa L\theta/(4\pi)$ at $\theta=10^{-7}$", tolerance=1e-4)
def relu_rate():
    """mpmath's eigenvalues and the library at 1e-7; the next term is of the order L theta, 1e-5 at L = 100."""
    theta, depths = 1e-7, (1, 2, 5, 20, 100)
    both = [float(kappa(theta, L) * L * theta / (4 * pi)) for L in depths] + [library(theta, L) * L * theta / (4 * pi) for L in depths]
    return max(abs(b - 1) for b in both)


@claim("pairs-gain", of=CHAPTER, verdict="proved", source=BOOK, derivation="angles.gradient_deficit",
       statement=r"The gain $\bar\kappa/\kappa$ is $\frac{L}{\pi\theta}$ to leading order: it grows without bound as two inputs approach each "
                 "other.",
       hypotheses=r"$m\to\infty$ first, then $\theta\to0$, unit inputs.", measures="largest relative error at $10^{-6}$ radians", tolerance=1e-4)
def gain():
    """The quotient of mpmath's eigenvalues, and of the library's deficits; 316.8 at theta = 0.01 and L = 10."""
    theta = 1e-6
    t = torch.tensor(theta, dtype=torch.float64)
    at_hundredth = float(kappa(0.01, 0) / kappa(0.01, 10))
    assert abs(at_hundredth - 316.8) < 0.05, f"the gain at 0.01 and L = 10 is {at_hundredth:.4g}"
    worst = 0.0
    for L in (1, 3, 10, 50):
        stated = L / (pi * theta)
        found = float(kappa(theta, 0) / kappa(theta, L))
        library_found = float(angles.gradient_deficit(t, L) / angles.gradient_deficit(t, 0))     # (2 - d)/d for both, d small
        worst = max(worst, abs(found / stated - 1), abs(library_found / stated - 1))
    return worst


@claim("pairs-theorem-f1", of=CHAPTER, verdict="holds under", source=LIU.at("Theorem F.1"), derivation="angles.gradient_angle",
       statement=r"For two inputs at a small angle the ReLU makes $\kappa$ smaller, $\kappa<\bar\kappa$, and $\kappa$ decreases with depth. "
                 r"Exactly: $\phi_1>\theta$ for $0<\theta<66.78^\circ$, and from there on up to $90^\circ$ $\phi_1<\theta$; below $66.78^\circ$ $\kappa$ falls "
                 "with every layer that was computed.",
       hypotheses=r"$m\to\infty$, all layers trained, $\theta<66.78^\circ$ (the paper: $\theta\ll1$); any lengths. Computed for $L\le200$.",
       measures=r"error of the threshold, in degrees", tolerance=1e-5)
def theorem_f1():
    """cos phi_L falls strictly in L at 12 angles below the threshold, by the recursion; above it, the first layer raises it.
    The zero of cos phi_1 - cos theta by mpmath, and of the library's angles by bisection."""
    for degrees in [10.0**k for k in np.linspace(-5, log10(THRESHOLD - 1e-4), 12)]:
        t = torch.tensor(radians(degrees), dtype=torch.float64)
        cosines = [cosine(float(t), L) for L in (*range(30), 50, 51, 100, 101, 199, 200)]
        rises = [i for i in range(len(cosines) - 1) if cosines[i + 1] >= cosines[i]]
        assert not rises, f"at {degrees:.4g} degrees cos phi does not fall after step {rises[0]}"
    for degrees in (THRESHOLD + 1e-3, 75.0, 90.0):
        change = float(cosine(radians(degrees), 1) - cosine(radians(degrees), 0))
        assert change > 0, f"at {degrees:.6g} degrees the first layer changes cos phi by {change:.3g}"
    root = float(mp.findroot(lambda t: cosine(t, 1) - mp.cos(t), 1.1655))
    low, high = 0.5, 1.5
    for _ in range(60):
        middle = torch.tensor((low + high) / 2, dtype=torch.float64)
        low, high = (float(middle), high) if angles.gradient_angle(middle, 1) > middle else (low, float(middle))
    return max(abs(np.degrees(root) - THRESHOLD), abs(np.degrees(low) - THRESHOLD))


@claim("pairs-window", of=CHAPTER, verdict="verified", source=BOOK, derivation="angles.gradient_angle",
       statement=r"For every $L\ge1$ there is a window of angles around $90^\circ$ in which the ReLU makes $\kappa$ *larger*: from $66.78^\circ$ to "
                 r"$96.20^\circ$ at $L=1$, from $69.56^\circ$ to $107.51^\circ$ at $L=10$. Outside of it, for nearly opposite inputs too, $\kappa$ is smaller.",
       hypotheses=r"$m\to\infty$, $0<\theta<\pi$; any lengths. Computed for $L\le100$ on a grid of one degree.",
       measures="largest error of an edge, in degrees", tolerance=5e-3)
def window():
    """The sign of |cos phi_L| - |cos theta| on the grid by the library changes twice; the edges by mpmath's root finder."""
    grid = torch.arange(1, 180, dtype=torch.float64).deg2rad()
    for depth in (*range(1, 11), 20, 50, 100):
        worse = angles.gradient_angle(grid, depth).cos().abs() > grid.cos().abs()
        changes = int((worse[1:] != worse[:-1]).sum())
        assert changes == 2, f"at depth {depth} there are {changes} edges"
    error = 0.0
    for depth, edges in ((1, (66.78, 96.20)), (10, (69.56, 107.51))):
        for edge, sign in zip(edges, (1, -1), strict=True):
            root = mp.findroot(lambda t, L=depth, s=sign: cosine(t, L) - s * mp.cos(t), radians(edge))
            error = max(error, abs(float(mp.degrees(root)) - edge))
    return error


@claim("pairs-lengths", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.pairs.spread",
       statement=r"The lengths of the two inputs do not decide which network has the smaller $\kappa$: for each ratio $r$, $\kappa$ is a decreasing function of "
                 r"$\sin\phi$ alone. No angle brings it below $\max(r^2,1/r^2)$.",
       hypotheses=r"$m\to\infty$.", measures="largest excess below the floor, relative", tolerance=1e-12)
def lengths():
    """The order of kappa without and with the ReLU, by mpmath, is the same for four ratios; numpy's eigenvalues keep the floor."""
    worst = 0.0
    for degrees in (5, 60, 66, 68, 90, 100, 120):
        orders = {bool(kappa(radians(degrees), 1, r) < kappa(radians(degrees), 0, r)) for r in (1, 0.5, 3, 10)}
        assert len(orders) == 1, f"at {degrees} degrees the {len(orders)} orders depend on the ratio"
    for ratio in (0.2, 0.9, 4.0):
        for degrees in (1, 45, 90, 135):
            c = ratio * np.cos(radians(degrees))
            low, high = np.linalg.eigvalsh([[1, c], [c, ratio**2]])
            worst = max(worst, max(ratio**2, ratio**-2) / (high / low) - 1)
            found = library(radians(degrees), 1, ratio)
            worst = max(worst, max(ratio**2, ratio**-2) / found - 1)
    return worst


@claim("pairs-deep", of=CHAPTER, verdict="corrected", source=LIU.at("Theorem 4.3, for $n=2$"), derivation="angles.gradient_angle",
       statement=r"As $L\to\infty$ the condition number of any two unit points that are not equal tends to $\frac53$.",
       hypotheses=r"$m\to\infty$ first, then $L\to\infty$.",
       discrepancy=Discrepancy(
           prints=r"The limit is $\frac{n+4}3$, which is $2$ for two points.",
           shows=r"$\cos\phi_L\to\frac14$ (the paper's Theorem 3.5), and the eigenvalues of the kernel of two points are $1\pm\frac14$ times its diagonal: "
                 r"$\kappa\to\frac{5/4}{3/4}=\frac{n+3}3$. In the paper's proof the diagonal is counted twice.",
           remains="Theorem 3.5, and that all pairs have one limit, which does not depend on the data."),
       measures="error of the extrapolated limit, at three angles", tolerance=1e-4)
def deep():
    """kappa is a limit + (a ln L + b) / L + (c ln^2 L + d ln L) / L^2: a fit to depths up to 3200 extrapolates it."""
    depths = [100 * 2**k for k in range(6)]
    t = torch.deg2rad(torch.tensor([20.0, 90.0, 179.0], dtype=torch.float64))
    c = np.stack([angles.gradient_angle(t, L).cos().numpy() for L in depths])
    L = np.array(depths, float)
    basis = np.stack([L**0, np.log(L) / L, 1 / L, (np.log(L) / L) ** 2, np.log(L) / L**2], 1)
    limits = np.linalg.lstsq(basis, (1 + c) / (1 - c), rcond=None)[0][0]
    return np.abs(limits - 5 / 3).max()


@claim("pairs-width", of=CHAPTER, verdict="verified", source=BOOK, derivation="empirical.empirical_ntk",
       statement=r"In a network of finite width with $mL\theta/\pi\ll1$ most initialisations have no unit that tells the two inputs apart. For these the condition number is "
                 r"again of the order $4/\theta^2$: the ReLU gains nothing.",
       hypotheses=r"unit inputs; measured with $L=1$, $m=64$, where the share of such networks is $(1-\theta/\pi)^m$.", seed=SEED,
       measures="distance of the measured share from it, in standard errors", tolerance=4)
def width():
    """500 networks at theta = 0.02: gradients by autograd, unit by unit patterns, and which of the networks gain a factor 3."""
    theta, m, count = 0.02, 64, 500
    generator = torch.Generator().manual_seed(SEED)
    X = torch.tensor([[1.0, 0.0], [np.cos(theta), np.sin(theta)]], dtype=torch.float64)
    same, ratios = 0, {True: [], False: []}
    for _ in range(count):
        model = MLP(2, m, 1, generator=generator)
        grads = []
        for x in X:
            g = torch.autograd.grad(model(x[None]).sum(), list(model.parameters()))
            grads.append(torch.cat([p.flatten() for p in g]))
        values = np.linalg.svd(torch.stack(grads).numpy(), compute_uv=False) ** 2
        alike = bool(((X[0] @ model.layers[0].weight.T > 0) == (X[1] @ model.layers[0].weight.T > 0)).all())
        same += alike
        ratios[alike].append(values[0] / values[1] * theta**2 / 4)
    middle = {k: float(np.median(v)) for k, v in ratios.items()}
    assert 0.5 < middle[True] < 2, f"without a flip the median kappa is {middle[True]:.3g} times 4/theta^2"
    assert middle[False] < 0.2, f"with one it is {middle[False]:.3g} times 4/theta^2"
    chance = (1 - theta / pi) ** m
    return abs(same / count - chance) / sqrt(chance * (1 - chance) / count)
