"""Claims of chapter "The condition number of n points".

Kernels are made here once more, by the printed sum over layers (Lemma 3.1) in NumPy, or from random hidden
units; the library is reached through its modules.
"""
from math import pi, sqrt

import numpy as np
import torch
from torch import Tensor

from ntklib import kernels, network, spectrum
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, LIU, LIU_REPLY

CHAPTER = Chapter("points", "The condition number of n points", "conditioning/07_condition_number")
SEED = 1
SHORT, LONG = 0.1, 3.0                              # lengths of the two loners of the counterexample


# ---- independent means -------------------------------------------------------------------------------
def printed(X: Tensor, depth: int, trained: str = "all") -> np.ndarray:
    """The kernel of eq. 7 and 8, over the number of trained layers, with arccosines: for points not too close."""
    x = X.numpy()
    r = np.linalg.norm(x, axis=1)
    angle = np.arccos(np.clip(x @ x.T / np.outer(r, r), -1, 1))
    np.fill_diagonal(angle, 0)
    path = [angle]
    for _ in range(depth):
        t = path[-1]
        path.append(np.arccos(np.clip(((pi - t) * np.cos(t) + np.sin(t)) / pi, -1, 1)))
    share = [1 - t / pi for t in path]
    terms = [np.cos(path[l]) * np.prod(share[l:depth], axis=0) for l in range(depth + 1)]
    return np.outer(r, r) * (terms[0] if trained == "first" else np.mean(terms, axis=0))


def kappa_of(K) -> float:
    """Largest over smallest eigenvalue."""
    values = np.linalg.eigvalsh(K)
    return values[-1] / values[0]


def many(generator: torch.Generator, dims=((2, 3), (3, 3), (6, 9), (8, 20))) -> list[Tensor]:
    """Data sets with lengths from 1/2 to 2, each a second time with a pair made close."""
    sets = []
    for n, d in dims:
        X = torch.randn(n, d, generator=generator, dtype=torch.float64)
        X = X / X.norm(dim=1, keepdim=True) * (0.5 + 1.5 * torch.rand(n, 1, generator=generator, dtype=torch.float64))
        close = X.clone()
        close[1] = X[0] + 0.02 * X[1]
        sets += [X, close]
    return sets


def loners(close=0.9) -> Tensor:
    """A close pair of unit vectors, and orthogonal to it a short and a long vector."""
    half = np.arccos(close) / 2
    return torch.tensor([[SHORT, 0, 0, 0], [0, LONG, 0, 0], [0, 0, np.cos(half), np.sin(half)],
                         [0, 0, np.cos(half), -np.sin(half)]], dtype=torch.float64)


def unit(n: int, d: int, seed: int) -> Tensor:
    """Random directions."""
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return X / X.norm(dim=1, keepdim=True)


# ---- the claims --------------------------------------------------------------------------------------
@claim("points-pair-floor", of=CHAPTER, verdict="proved", source=LIU.at("Proposition 4.1"),
       derivation="symbolic.points.pair_steps", seed=SEED,
       statement=r"A pair of gradients of lengths $a$ and $b$ at angle $\phi$ bounds the kernel of all points: "
                 r"$\lambda_{\min}\le\min(a,b)^2\sin^2\phi$ and $\kappa\ge1/\sin^2\phi$; for equal lengths "
                 r"$\kappa\ge\cot^2(\phi/2)$.",
       discrepancy=Discrepancy(
           prints=r"In the proof, $A_{kk}=\lVert b_k\rVert$ for $A=BB^\top$.",
           shows=r"The diagonal holds the squares, $A_{kk}=\lVert b_k\rVert^2$.",
           remains=r"The proposition: $\lambda_{\min}=O(\phi^2)$ and $\kappa=\Omega(1/\phi^2)$."),
       measures="largest relative excess over a bound", tolerance=1e-10)
def pair_floor():
    """The bounds from the kernel's own entries, against the library's kappa, for all pairs of many data sets."""
    worst = 0.0
    for X in many(torch.Generator().manual_seed(SEED)):
        for depth in (0, 1, 4):
            K = X.numpy() @ X.numpy().T if depth == 0 else (depth + 1) * printed(X, depth)
            found = spectrum.ntk_condition_number(X, depth=depth)
            size = np.diag(K)
            i, j = np.triu_indices(len(X), 1)
            sine = 1 - K[i, j] ** 2 / (size[i] * size[j])
            least = 1 / (np.minimum(size[i], size[j]) * sine)           # reciprocals: bounds from below
            worst = max(worst, least.max() * found.lambda_min - 1, (1 / sine).max() / found.kappa - 1)
            if len(X) == 2:
                worst = max(worst, abs(kappa_of(K) / found.kappa - 1))
    return worst


@claim("points-first-layer", of=CHAPTER, verdict="proved", source=LIU.at("Theorem 4.2, without strictness"),
       derivation="kernels.ntk_gram", seed=SEED,
       statement=r"If the first layer alone is trained, then for *all* data $\lambda_{\min}$ does not fall, "
                 r"$\lambda_{\max}$ does not rise, and $\kappa$ does not rise when a layer is added; depth $0$ "
                 "is the linear network.",
       hypotheses=r"$m\to\infty$; any lengths and angles.",
       measures="largest relative step in the wrong direction", tolerance=1e-10)
def first_layer():
    """Eigenvalues of the library's kernel, depth by depth; its entries against masks of 400 000 random units."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    for X in many(generator):
        last = torch.linalg.eigvalsh(X @ X.T)
        for depth in range(1, 7):
            K = kernels.ntk_gram(X, depth=depth, trained="first")
            now = torch.linalg.eigvalsh(K)
            worst = max(worst, float((last[0] - now[0]) / last[0]), float((now[-1] - last[-1]) / last[-1]))
            last = now
    fires = (torch.randn(400_000, X.shape[1], generator=generator, dtype=torch.float64) @ X.T > 0).double()
    both, K = fires.T @ fires / len(fires), kernels.ntk_gram(X, depth=1, trained="first") / (X @ X.T)
    off = float(((2 * both - K).abs() / (2 * (both * (1 - both) / len(fires)).sqrt())).max())
    assert off < 4.5, f"the shares of units that see both points are off by {off:.1f} standard errors"
    return worst


@claim("points-not-strict", of=CHAPTER, verdict="refuted", source=LIU.at("Theorem 4.2"),
       derivation="spectrum.ntk_condition_number",
       statement=r"With the first layer trained, ReLU makes $\lambda_{\min}$ larger and $\kappa$ smaller, "
                 "strictly, for all pairwise non-parallel data; and so does each further layer.",
       discrepancy=Discrepancy(
           prints=r"$\lambda_{\min}(K_{\mathrm{ReLU}})>\lambda_{\min}(K_{\mathrm{lin}})$ and "
                  r"$\kappa_{\mathrm{ReLU}}<\kappa_{\mathrm{lin}}$ whenever no two inputs are parallel, and "
                  r"$\kappa$ decreases strictly in $L$.",
           shows=rf"Orthonormal inputs keep $K=G$, so $\kappa=1$ at every depth. And a close pair beside two "
                 rf"vectors of lengths {SHORT} and {LONG:g} that are orthogonal to everything keeps $\kappa=900$: the "
                 "loners are the extreme eigenvectors, and no layer touches them.",
           remains=r"Both inequalities with $\ge$ and $\le$, for all data; and the strict one for $\lambda_{\min}$ "
                   "when it is simple and its eigenvector involves two non-parallel points."),
       measures=r"largest relative change of $\kappa$ over depths 1 to 10", tolerance=1e-12)
def not_strict():
    """Both counterexamples, at every depth up to 10; and the close pair's own eigenvalues do move."""
    G, K = loners() @ loners().T, kernels.ntk_gram(loners(), depth=1, trained="first")
    inner = torch.linalg.eigvalsh(K)[1:3] - torch.linalg.eigvalsh(G)[1:3]
    assert float(inner[0]) > 0.1 > -0.1 > float(inner[1]), f"the close pair's eigenvalues moved by {inner.tolist()}"
    change = 0.0
    for X, kappa in ((loners(), 900.0), (torch.eye(5, dtype=torch.float64), 1.0)):
        for depth in range(11):
            found = spectrum.ntk_condition_number(X, depth=depth, trained="first").kappa
            change = max(change, abs(found / kappa - 1))
    return change


@claim("points-strict-when", of=CHAPTER, verdict="holds under", source=BOOK, derivation="kernels.ntk_gram",
       statement=r"With the first layer trained, $\lambda_{\min}$ of the ReLU network is strictly larger than that "
                 "of the linear network.",
       hypotheses=r"$\lambda_{\min}(G)$ is simple, and its eigenvector has non-zero entries at two points that do "
                  "not point the same way.", seed=SEED,
       measures="data sets without a gain, of 200", tolerance=0)
def strict_when():
    """200 random data sets, which satisfy the hypotheses: the gain, against the average over random masks."""
    generator, without = torch.Generator().manual_seed(SEED), 0
    for k in range(200):
        X = many(generator, ((3 + k % 4, 8),))[0]
        values, vectors = torch.linalg.eigh(X @ X.T)
        assert float(values[1] - values[0]) > 1e-6, f"lambda_min is not simple: {values[:2].tolist()}"
        K = kernels.ntk_gram(X, depth=1, trained="first")
        without += bool(torch.linalg.eigvalsh(K)[0] <= values[0] * (1 + 1e-6))
    fires = (torch.randn(200_000, 8, generator=generator, dtype=torch.float64) @ X.T > 0).double()
    masked = fires * vectors[:, 0]
    form = 2 * ((masked @ X).square().sum(1))
    exact = float(vectors[:, 0] @ K @ vectors[:, 0])
    off = abs(float(form.mean()) - exact) / float(form.std()) * sqrt(len(form))
    assert off < 4.5, f"the masked forms average to {float(form.mean()):.6g}, not {exact:.6g}: {off:.1f} standard errors"
    return without


@claim("points-all-layers", of=CHAPTER, verdict="refuted", source=LIU.at("remark after Theorem 4.2"),
       derivation="spectrum.ntk_condition_number", seed=SEED,
       statement=r"Fixing the top layers is not necessary: with all layers trained, too, $\kappa$ of $n$ points "
                 "is smaller than without ReLU, and decreases with depth.",
       discrepancy=Discrepancy(
           prints="In v2: fixing the top layers is not necessary; in the review: the same results are believable "
                  "for deep networks whose layers are all trained.",
           shows=r"Twelve orthonormal inputs have $\kappa=1$ without ReLU, and $3.27$, $6.55$, $5.07$ at depths $1$, "
                 r"$10$ and $1000$: worse at every depth, and not monotone. Ten random directions in $\mathbb R^{20}$ "
                 r"improve with the first hidden layer, and get worse again with the next.",
           remains=r"Two points at a small angle (the paper's Theorem F.1), and data whose close pairs dominate $\kappa$."),
       measures=r"largest deviation from the stated values of $\kappa$", tolerance=5e-3)
def all_layers():
    """Orthonormal inputs by the printed sum and by the library; ten random directions; a near-duplicate."""
    E, worst = torch.eye(12, dtype=torch.float64), 0.0
    for depth, stated in ((0, 1.0), (1, 3.27), (10, 6.55), (1000, 5.07)):
        found = spectrum.ntk_condition_number(E, depth=depth).kappa
        own = kappa_of(printed(E, depth))
        worst = max(worst, abs(found - stated), abs(found - own))
    X = unit(10, 20, SEED)
    path = [spectrum.ntk_condition_number(X, depth=L).kappa for L in range(6)]
    assert path[0] > path[5] > path[1], f"random directions: kappa by depth is {np.round(path, 3)}"
    X[1] = X[0] + 0.02 * X[1]
    path = [spectrum.ntk_condition_number(X / X.norm(dim=1, keepdim=True), depth=L).kappa for L in range(6)]
    assert all(np.diff(path) < 0), f"with a near-duplicate, kappa by depth is {np.round(path, 3)}"
    return worst


@claim("points-effective", of=CHAPTER, verdict="refuted", source=LIU_REPLY.at("W1, on more points than dimensions"),
       derivation="spectrum.ntk_condition_number", seed=SEED,
       statement=r"The results do not need $d\ge n$: with more points than dimensions the ReLU network has the smaller *effective* condition number, "
                 r"$\lambda_{\max}$ over the smallest eigenvalue that is not zero.",
       discrepancy=Discrepancy(
           prints=r"The results essentially rely on the effective condition number, since the zero eigenvalues of the kernel contribute nothing to the "
                  r"optimisation. (And for the measured batches of 512 points $G$ is always of full rank.)",
           shows=r"The linear network's $n-d$ zero eigenvalues become small positive ones, which count: random directions in space have "
                 r"$\kappa_{\mathrm{eff}}<2$ without ReLU, and from a hundred to tens of thousands with it. (The synthetic inputs of the paper are in $\mathbb R^5$, "
                 "where no batch of 512 has full rank.)",
           remains=r"With the ordinary $\kappa$, infinite against finite, the statement holds and says nothing. The kernel of the ReLU network "
                   r"can fit all $n$ labels, that of the linear one $d$ combinations of them."),
       measures=r"largest quotient $\kappa_{\mathrm{eff}}(G)/\kappa_{\mathrm{eff}}(K)$", tolerance=0.02)
def effective():
    """Random directions in space by the printed sum and numpy's eigenvalues, for one and three hidden layers; the library's ranks."""
    worst = 0.0
    for n, seed in ((50, 1), (100, 2), (200, 3)):
        X = unit(n, 3, seed)
        values = np.linalg.eigvalsh(X.numpy() @ X.numpy().T)[::-1]
        linear = values[0] / values[2]
        assert linear < 2, f"without ReLU the effective kappa of {n} points is {linear:.3g}"
        for depth in (1, 3):
            for trained in ("first", "all"):
                found = spectrum.ntk_condition_number(X, depth=depth, trained=trained)
                assert found.rank == n, f"{n} points, depth {depth}, {trained}: rank {found.rank}"
                own = kappa_of(printed(X, depth, trained))
                assert abs(found.kappa_effective / own - 1) < 1e-6, f"the library's kappa is {found.kappa_effective:.6g}, and not {own:.6g}"
                worst = max(worst, linear / own)
        found = spectrum.ntk_condition_number(X, depth=0)
        assert found.rank == 3, f"without ReLU, {n} points in space have rank {found.rank}"
        assert abs(found.kappa_effective / linear - 1) < 1e-9, f"without ReLU the library's effective kappa is {found.kappa_effective:.6g}, not {linear:.6g}"
    return worst


@claim("points-equicorrelated", of=CHAPTER, verdict="proved", source=BOOK,
       derivation="symbolic.points.equicorrelated_kappa",
       statement=r"If all pairs of $n$ gradients of equal length have the same cosine $c\ge0$, then "
                 r"$\kappa=\frac{1+(n-1)c}{1-c}$. For orthonormal inputs $c=\cos\phi_L(90^\circ)$, which is "
                 r"$\frac1{2\pi}$ at $L=1$.",
       measures="largest relative error", tolerance=1e-10)
def equicorrelated():
    """The formula with the printed cosine, against the library's kappa of orthonormal inputs."""
    worst = 0.0
    for n in (2, 5, 12, 100):
        E = torch.eye(n, dtype=torch.float64)
        for depth in (1, 2, 10):
            c = printed(E[:2], depth)[0, 1] if depth > 1 else 1 / (2 * pi)
            worst = max(worst, abs((1 + (n - 1) * c) / (1 - c) / spectrum.ntk_condition_number(E, depth=depth).kappa - 1))
    return worst


@claim("points-limit", of=CHAPTER, verdict="corrected", source=LIU.at("Theorem 4.3"),
       derivation="symbolic.points.equicorrelated_kappa", seed=SEED,
       statement=r"For unit vectors of which no two are the same, $\kappa\to\frac{n+3}{3}$ as first $m$ and then $L$ "
                 r"tends to infinity. So depth makes $\kappa$ worse in the end if $\kappa(G)<1+n/3$, and better if "
                 r"$\kappa(G)>1+n/3$.",
       discrepancy=Discrepancy(
           prints=r"$K/(L+1)$ tends to a matrix with the eigenvalue $1+n/4$ once and $3/4$ otherwise: $\kappa\to\frac{n+4}{3}$.",
           shows=r"The limit has $1$ on the diagonal and $1/4$ elsewhere, $\frac34I+\frac14\mathbf{1}\mathbf{1}^\top$: its eigenvalues are $\frac{n+3}{4}$ "
                 r"and $\frac34$, and they add up to the trace $n$, as they must.",
           remains=r"The limit cosine $1/4$ of every pair, and that $\kappa$ has a limit that the data do not enter."),
       measures=r"largest distance from $\frac{n+3}{3}$ at depth 20 000", tolerance=0.02)
def limit():
    """Random, close and orthonormal data by a sum over layers in NumPy; the distance falls like ln(L)/L. The library at depth 300."""
    n, depth, library = 10, 20_000, 300
    close = unit(n, 20, SEED)
    close[1] = close[0] + 0.05 * close[1]
    sets = torch.stack([unit(n, 20, SEED), close / close.norm(dim=1, keepdim=True), torch.eye(n, 20, dtype=torch.float64)])
    angle = np.arccos(np.clip((sets @ sets.mT).numpy(), -1, 1))
    angle[:, range(n), range(n)] = 0
    total = np.cos(angle)
    for layer in range(1, depth + 1):
        share = 1 - angle / pi
        angle = np.arccos(np.clip(((pi - angle) * np.cos(angle) + np.sin(angle)) / pi, -1, 1))
        total = total * share + np.cos(angle)
        if layer == library:
            found = [spectrum.ntk_condition_number(X, depth=library).kappa for X in sets]
            off = max(abs(f / kappa_of(K) - 1) for f, K in zip(found, total, strict=True))
            assert off < 1e-8, f"the library's kappa at depth {library} is off by {off:.3g}"
    return max(abs(kappa_of(K) - (n + 3) / 3) for K in total)


@claim("points-opposites", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.points.odd_part_steps",
       statement=r"With one hidden layer $K(x,z)-K(x,-z)=2\,x\cdot z$. So more than $d$ pairs of opposite inputs in "
                 r"$\mathbb R^d$ make the kernel singular, however far apart they are; a regular hexagon, for instance. "
                 "A second hidden layer removes it.", seed=SEED,
       hypotheses="no biases; at every width.",
       measures="largest error of the identity", tolerance=1e-12)
def opposites():
    """The identity on random points; the hexagon's kernel, at infinite width and of a real network."""
    generator = torch.Generator().manual_seed(SEED)
    X, Z = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64)
    error = kernels.ntk_gram(X, Z, depth=1) - kernels.ntk_gram(X, -Z, depth=1) - 2 * X @ Z.T
    t = torch.arange(6, dtype=torch.float64) * pi / 3
    hexagon = torch.stack([t.cos(), t.sin()], 1)
    real = network.empirical_ntk(network.MLP(2, 50, 1, generator=generator), hexagon)
    for K in (kernels.ntk_gram(hexagon, depth=1), real):
        values = torch.linalg.eigvalsh(K)
        assert abs(float(values[0] / values[-1])) < 1e-14, f"the hexagon's eigenvalues are {values.tolist()}"
    second = spectrum.ntk_condition_number(hexagon, depth=2).kappa
    assert second < 20, f"with two hidden layers kappa is {second:.3g}"
    return error.abs().max()
