"""Claims of the chapter "Hyperspherical coordinates".

The checks compare the library with rotations, quadrature, sums over grids, areas or random draws: never with the
formula that they are about.
"""
from itertools import combinations_with_replacement
from math import factorial, pi, prod, sqrt

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from ntklib import sphere
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, CHEN, CHEN_CODE, CHEN_REPLY
from ntklib.book.explorables import coordinates as shown
from ntklib.symbolic import coordinates as symbolic
from ntklib.symbolic import sphere as exact

CHAPTER = Chapter("coordinates", "Hyperspherical coordinates", "boundaries/15_hyperspherical_coordinates")
SEED = 1
f64 = torch.float64


# ---- independent means -------------------------------------------------------------------------------
def generator() -> torch.Generator:
    """A generator of its own."""
    return torch.Generator().manual_seed(SEED)


def peeled(theta: Tensor) -> Tensor:
    """u(theta) from the inside out: (cos, sin) of the last angle, then for each earlier one (cos t, sin t * u)."""
    u = torch.stack([theta[..., -1].cos(), theta[..., -1].sin()], -1)
    for t in theta[..., :-1].flip(-1).unbind(-1):
        u = torch.cat([t.cos()[..., None], t.sin()[..., None] * u], -1)
    return u


def angle_laws(n: int) -> list:
    """(weights, cosines, sines) of 200 Gauss-Legendre nodes for each angle, the weights times the sympy twin's density."""
    node, weight = np.polynomial.legendre.leggauss(200)
    laws = []
    for i, theta in enumerate(exact.angles(n), start=1):
        length = 2 * pi if i == n - 1 else pi
        t = length * (node + 1) / 2
        p = np.broadcast_to(sp.lambdify(theta, exact.density(n, i), "numpy")(t), t.shape)
        laws.append((length / 2 * weight * p, np.cos(t), np.sin(t)))
    return laws


def moment_of_law(laws: list, powers) -> float:
    """E prod_i u_i^powers[i] where the angles are independent with these laws."""
    return prod(float((w * c ** powers[i] * s ** sum(powers[i + 1:])).sum()) for i, (w, c, s) in enumerate(laws))


def moment_of_sphere(powers) -> float:
    """The same for a uniform direction, from normal numbers: E prod g_i^p_i = E |g|^P E prod u_i^p_i."""
    if any(p % 2 for p in powers):
        return 0.0
    n, total = len(powers), sum(powers)
    normal = prod(factorial(p) / (2 ** (p // 2) * factorial(p // 2)) for p in powers)
    return normal / prod(n + 2 * k for k in range(total // 2))


# ---- the claims --------------------------------------------------------------------------------------
@claim("coordinates-inverse", of=CHAPTER, verdict="proved", source=CHEN.at("appendix B, equation (17)"),
       derivation="sphere.to_angles", seed=SEED,
       statement=r"Every $w\ne0$ of $\mathbb R^n$, $n\ge2$, is $|w|\,u(\theta)$ with "
                 r"$\theta_i=\operatorname{atan2}(|(w_{i+1},\dots,w_n)|,\,w_i)$ for $i\le n-2$ and "
                 r"$\theta_{n-1}=\operatorname{atan2}(w_n,\,w_{n-1})$, taken in $[0,2\pi)$.",
       hypotheses="the paper states the map and its ranges; the way back is standard.",
       measures="largest error of the way there and back, relative to $|w|$", tolerance=1e-14)
def inverse():
    """Every sign pattern of n <= 6 with some zeros, and normal vectors of n = 10 and 784, put together from inside."""
    worst = 0.0
    for n in (2, 3, 4, 5, 6):
        patterns = torch.cartesian_prod(*[torch.tensor([-1.0, 0.0, 1.0], dtype=f64)] * n)
        size = torch.arange(1, n + 1, dtype=f64)
        worst = max(worst, _there_and_back((patterns * size)[patterns.abs().sum(-1) > 0]))
    for n in (10, 784):
        w = torch.randn(200, n, dtype=f64, generator=generator())
        worst = max(worst, _there_and_back(w))
    return worst


def _there_and_back(w: Tensor) -> float:
    r, theta = sphere.to_angles(w)
    inside = (theta >= 0) & (theta <= pi + 1e-15)
    inside[:, -1] = (theta[:, -1] >= 0) & (theta[:, -1] < 2 * pi)
    assert bool(inside.all()), f"{int((~inside).sum())} angles are out of their range"
    return float(((r[:, None] * peeled(theta) - w).norm(dim=-1) / w.norm(dim=-1)).max())


@claim("coordinates-poles", of=CHAPTER, verdict="proved", source=BOOK, derivation="sphere.to_angles", seed=SEED,
       statement=r"The angles of a direction are unique where $(u_{n-1},u_n)\ne0$, and nowhere else. Near the rest they "
                 r"leap: for every $\delta>0$ there are two directions $2\delta$ apart whose last angles "
                 r"differ by $\pi$.",
       hypotheses=r"$n\ge3$.", measures=r"largest error of the leap", tolerance=1e-12)
def poles():
    """Angles drawn at random come back; on the poles any last angle gives one point; two sides of a pole are pi apart."""
    theta = pi * torch.rand(2000, 6, dtype=f64, generator=generator())
    theta[:, -1] *= 2
    keeps = theta[:, :-1].sin().prod(-1) > 1e-2         # the accuracy of the last angle is that of the last two entries
    error = float((sphere.to_angles(peeled(theta))[1] - theta)[keeps].abs().max())
    assert error < 1e-12, f"angles away from the poles come back with an error of {error:.1e}"
    theta[:, 3] = 0.0
    moved = float((peeled(theta) - peeled(torch.cat([theta[:, :4], 0 * theta[:, 4:]], -1))).norm(dim=-1).max())
    assert moved == 0, f"at a pole the angles behind it move the direction by {moved:.1e}"
    worst = 0.0
    for delta in (1e-1, 1e-4, 1e-8, 1e-12):
        side = torch.tensor([[0.6, 0.8, 0.0, delta], [0.6, 0.8, 0.0, -delta]], dtype=f64)
        last = sphere.to_angles(side)[1][:, -1]
        worst = max(worst, abs(float(last[1] - last[0]) - pi))
    return worst


@claim("coordinates-law", of=CHAPTER, verdict="proved", source=CHEN.at("Remark 3.5"),
       derivation="symbolic.sphere.density", seed=SEED,
       statement=r"A direction is uniform on the sphere exactly if its angles are independent, "
                 r"$\theta_i\in[0,\pi]$ with density $\propto\sin^{n-1-i}\theta_i$ for $i\le n-2$, and $\theta_{n-1}$ "
                 r"uniform on $[0,2\pi)$.",
       hypotheses=r"$n\ge2$. The paper names the law, von Mises–Fisher with concentration 0, and not the angles' densities.",
       measures="largest error of a moment of $u$", tolerance=1e-13)
def law():
    """All moments of degree <= 6 for n = 2, 3, 5 from the densities and from normal numbers; four of them from draws."""
    worst = 0.0
    for n in (2, 3, 5):
        laws = angle_laws(n)
        for factors in combinations_with_replacement(range(n + 1), 6):      # n stands for the factor 1
            powers = [factors.count(i) for i in range(n)]
            worst = max(worst, abs(moment_of_law(laws, powers) - moment_of_sphere(powers)))
    u = peeled(sphere.uniform_angles(100_000, 5, generator=generator()))
    for powers in ((2, 0, 0, 0, 0), (0, 0, 0, 0, 4), (0, 0, 2, 2, 0), (1, 0, 0, 0, 1)):
        x = (u ** torch.tensor(powers)).prod(-1)
        off = abs(float(x.mean()) - moment_of_sphere(powers)) / float(x.std()) * sqrt(len(x))
        assert off < 4.5, f"the moment {powers} of the library's draws is off by {off:.1f} standard errors"
    return worst


@claim("coordinates-flat", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.coordinates.flat_square",
       statement=r"Angles drawn independently and uniformly from their ranges do not give uniform directions for "
                 r"$n\ge3$: $\mathbb E\,u_i^2=2^{-i}$ for $i<n$ and $2^{1-n}$ for $i=n$, where a uniform direction has $1/n$.",
       measures="largest error of a mean square", tolerance=1e-15)
def flat():
    """The mean over 8 equidistant values of every angle, n = 2 to 7, is the integral: the squares have no higher waves."""
    worst = 0.0
    for n in range(2, 8):
        one = torch.arange(8, dtype=f64) * pi / 8
        theta = torch.cartesian_prod(*[one] * (n - 1)).reshape(-1, n - 1)
        found = sphere.from_angles(theta).square().mean(0)
        stated = torch.tensor([float(symbolic.flat_square(n, i)) for i in range(1, n + 1)], dtype=f64)
        worst = max(worst, float((found - stated).abs().max()))
    return worst


@claim("coordinates-no-vanishing", of=CHAPTER, verdict="proved", source=CHEN_REPLY.at("answers to the reviewers, on gradients"),
       derivation="symbolic.coordinates.tail_square", seed=SEED,
       statement=r"For a uniform direction the products of sines do not vanish in the mean square: "
                 r"$\mathbb E\prod_{i\le k}\sin^2\theta_i=\frac{n-k}{n}$, and $\mathbb E\,u_i^2=\frac1n$ for "
                 r"every $i$, also for the product of all sines.",
       hypotheses=r"directions as in Remark 3.5, that is at initialisation. The authors report what they saw in training; that is "
                  "not covered.",
       measures="largest error of a mean square", tolerance=1e-12)
def no_vanishing():
    """By quadrature of the densities, n = 2, 5, 30; and the library's draws of n = 200, within their scatter."""
    worst = 0.0
    for n in (2, 5, 30):
        sines = [float((w * s**2).sum()) for w, _, s in angle_laws(n)]
        stated = [float(symbolic.tail_square(n, k)) for k in range(1, n)]
        worst = max(worst, float(np.abs(np.cumprod(sines) - stated).max()))
    theta = sphere.uniform_angles(4000, 200, generator=generator())
    for k in (1, 100, 198):
        x = theta[:, :k].sin().square().prod(-1)
        off = abs(float(x.mean()) - float(symbolic.tail_square(200, k))) / float(x.std()) * sqrt(len(x))
        assert off < 4, f"the product of {k} squared sines of the library's draws is off by {off:.1f} standard errors"
    return worst


@claim("coordinates-sign", of=CHAPTER, verdict="corrected", source=CHEN_CODE.at("released code, utils.py and models.py"), derivation="sphere.to_angles", seed=SEED,
       statement=r"A conversion of weights to angles must take the sign of $w_n$ into the last angle. From $\sqrt{w_n^2}$ "
                 r"alone it comes back as $|w_n|$: wrong for half of all weights, at every $n$.",
       hypotheses="a law of the weights that is symmetric in $w_n$. Read, and recomputed in PyTorch; the TensorFlow code was not run.",
       discrepancy=Discrepancy(
           prints=r"The function that turns Cartesian weights into angles takes the last angle as "
                  r"$2\operatorname{arccot}\frac{w_{n-1}+\sqrt{w_{n-1}^2+w_n^2}}{\sqrt{w_n^2}}$.",
           shows=r"With $w_n$ itself in the denominator, the half-angle formula is right. The square root loses the sign, and "
                 r"the angle never exceeds $\pi$: every unit starts with $u_n\ge0$. With two inputs all units look into one half plane.",
           remains="All of the theory, and the map from angles to weights, which is the one that trains. Only the starting point is "
                   "affected, and only in one coordinate."),
       measures="distance of the share of wrong weights from one half", tolerance=0.02)
def sign():
    """Weights of n = 2, 3, 10 through that formula and back, put together from inside."""
    worst, draws = 0.0, 10_000
    for n in (2, 3, 10):
        w = torch.randn(draws, n, dtype=f64, generator=generator())
        r, theta = sphere.to_angles(w)
        theta[:, -1] = shown.released_angle(w)
        back = r[:, None] * peeled(theta)
        folded = torch.cat([w[:, :-1], w[:, -1:].abs()], -1)
        off = float((back - folded).norm(dim=-1).max())
        assert off < 1e-6, f"the way back is not the vector with |w_n|: off by {off:.1e}"       # arccot near 0 and pi
        wrong = ((back - w).norm(dim=-1) > 1e-5).double().mean()
        worst = max(worst, abs(float(wrong) - 0.5))
    return worst


@claim("coordinates-silent", of=CHAPTER, verdict="verified", source=BOOK, derivation="sphere.to_angles", seed=SEED,
       statement=r"If every unit starts with $u_n\ge0$ and $\lambda=0$, an input $x=-t\,e_n$, $t>0$, is answered by no unit, and "
                 r"$x=t\,e_n$ by all. Uniform directions answer every input with half of the units, on average.",
       hypotheses=r"one layer at initialisation, before $\lambda$ moves.", measures="error of the share of active units", tolerance=0.02)
def silent():
    """Ten thousand units of n = 2 and 10, counted; the share by direction of the plane that the page draws, as well."""
    worst = 0.0
    for n in (2, 10):
        w = 2 * torch.rand(10_000, n, dtype=f64, generator=generator()) - 1
        theta = sphere.to_angles(w)[1]
        fair = sphere.from_angles(theta)
        theta[:, -1] = shown.released_angle(w)
        folded = peeled(theta)
        answers = [int((folded[:, -1] < -1e-9).sum()), int((folded[:, -1] > 0).sum())]      # to -e_n, to e_n
        assert answers == [0, len(w)], f"{answers} units answer -e_n and e_n"
        x = torch.randn(50, n, dtype=f64, generator=generator())
        worst = max(worst, float(((fair @ x.T > 0).double().mean(0) - 0.5).abs().max()))
        if n == 2:
            around = torch.arange(0, 360, 15, dtype=f64).deg2rad()
            inputs = torch.stack([around.cos(), around.sin()])
            found = (folded @ inputs > 1e-12).double().mean(0).numpy()
            worst = max(worst, float(np.abs(found - shown.active_share("code", around.numpy())).max()))
    return worst


@claim("coordinates-glorot", of=CHAPTER, verdict="corrected", source=CHEN.at("Remark 3.5, against the released code"),
       derivation="symbolic.coordinates.glorot_density", seed=SEED,
       statement=r"Weights drawn from a cube are not uniform in direction. At every $n$ the angle "
                 r"$\operatorname{atan2}(w_n,w_{n-1})$ has the density $\frac{1}{8\max(\cos^2\theta,\,\sin^2\theta)}$ on a full turn: "
                 r"diagonals are twice as likely as axes.",
       hypotheses=r"independent weights, uniform on $[-a,a]$, and the right sign.",
       discrepancy=Discrepancy(
           prints="Remark 3.5: the angles are initialised so that directions are uniform on the sphere, and $r$ apart from them.",
           shows=r"The released code draws Glorot-uniform weights and converts them. The directions favour the corners of "
                 r"the cube, and $r$ starts as the length of the weights.",
           remains=r"The recipe of the remark, which `GmPLinear` follows. For many inputs of comparable size the two differ little: "
                   r"$u\cdot x$ is nearly normal under both laws. For inputs along an axis they differ at every $n$."),
       measures="largest error of the share of a sector", tolerance=1e-13)
def glorot():
    """Sectors of the square by the shoelace formula, against the integral of the density; draws of n = 20 near a diagonal."""
    theta = sp.Symbol("theta")
    density = sp.lambdify(theta, symbolic.glorot_density(theta), "numpy")
    node, weight = np.polynomial.legendre.leggauss(40)
    worst = 0.0
    for octant in range(8):
        for part in (0.2, 0.7, 1.0):
            a, b = octant * pi / 4, (octant + part) * pi / 4
            integral = (b - a) / 2 * (weight * density(a + (b - a) * (node + 1) / 2)).sum()
            corners = [np.array([np.cos(t), np.sin(t)]) / max(abs(np.cos(t)), abs(np.sin(t))) for t in (a, b)]
            triangle = abs(corners[0][0] * corners[1][1] - corners[0][1] * corners[1][0]) / 2
            worst = max(worst, abs(integral - triangle / 4))
    w = 2 * torch.rand(50_000, 20, dtype=f64, generator=generator()) - 1
    last = sphere.to_angles(w)[1][:, -1].rad2deg()
    near = (((last % 90) - 45).abs() < 10).double()
    share = (1 - np.tan(np.radians(35)))                    # eight triangles of the square, 35 to 45 degrees
    off = abs(float(near.mean()) - share) / float(near.std()) * sqrt(len(w))
    assert off < 4, f"{float(near.mean()):.4f} of the draws lie within 10 degrees of a diagonal: {off:.1f} standard errors off"
    return worst


@claim("coordinates-fourths", of=CHAPTER, verdict="verified", source=BOOK, derivation="symbolic.coordinates.sums_of_fourths", seed=SEED,
       statement=r"No dimension cures it: $\mathbb E\sum_iu_i^4$ is $\frac{3}{n+2}$ for a uniform direction, and near $\frac{9}{5n}$ for weights "
                 r"from a cube. The ratio falls to $\frac35$.",
       hypotheses="stated for large $n$, measured at $n=1000$.", measures="relative error of the sums", tolerance=0.01)
def fourths():
    """4000 directions of each kind; the next term of the cube's sum is of relative size 1/n, the scatter below 0.002."""
    n = 1000
    uniform = sphere.from_angles(sphere.uniform_angles(4000, n, generator=generator()))
    w = 2 * torch.rand(4000, n, dtype=f64, generator=generator()) - 1
    cube = w / w.norm(dim=-1, keepdim=True)
    stated = symbolic.sums_of_fourths(n)
    return max(abs(float(u.pow(4).sum(-1).mean()) / float(s) - 1) for u, s in zip((uniform, cube), stated, strict=True))


@claim("coordinates-sparse", of=CHAPTER, verdict="holds under", source=CHEN_REPLY.at("answers to the reviewers, on sparsity"),
       derivation="sphere.jacobian", seed=SEED,
       statement=r"The derivatives have an exact pattern: $\partial u_i/\partial\theta_j=0$ for $i<j$, a share $\frac{n-2}{2n}$ of "
                 r"all. The direction itself is sparse only near a pole: if $\sin\theta_k=0$ for some $k\le n-2$, all later coordinates vanish.",
       hypotheses="some angle at, or near, a pole. At the initialisation of Remark 3.5 $u$ has the law of a normalised Gaussian vector, no more "
                  "sparse than that.",
       discrepancy=Discrepancy(
           prints="The product structure explains why GmP easily creates sparse features.",
           shows="At initialisation it does not: directions, and so activations, have the same law as with Gaussian weights. A pole must be reached first, "
                 "and in high dimension almost all angles start near the equator.",
           remains="The pattern of the derivatives, and the mechanism where training does drive an angle to a pole. Whether it does is an "
                   "empirical question."),
       measures="difference of the shares of small coordinates", tolerance=0.004)
def sparse():
    """Zeros of autograd's Jacobian, n = 3, 7, 12; an angle at 0; and shares of |u_i| < 0.1 / sqrt(n) at n = 50, 4000 draws of each:
    their scatter is 0.001."""
    for n in (3, 7, 12):
        theta = sphere.uniform_angles(1, n, generator=generator())[0]
        J = torch.func.jacrev(sphere.from_angles)(theta)
        library = sphere.jacobian(theta)
        zeros = [int((m == 0).sum()) for m in (J, library)]
        assert zeros == [(n - 1) * (n - 2) // 2] * 2, f"{zeros} zeros of {J.numel()} at n = {n}"
    theta[4] = 0.0
    behind = sphere.from_angles(theta)[5:]
    assert not bool(behind.any()), f"behind a pole {int((behind != 0).sum())} coordinates are not 0"
    u = sphere.from_angles(sphere.uniform_angles(4000, 50, generator=generator()))
    g = torch.randn(4000, 50, dtype=f64, generator=torch.Generator().manual_seed(SEED + 1))
    small = [(v.abs() < 0.1 / sqrt(50)).double().mean() for v in (u, g / g.norm(dim=-1, keepdim=True))]
    return abs(float(small[0] - small[1]))
