"""Claims of the chapter on the linear network.

Means over the weights are taken exactly, without a Gaussian: the kernel of a linear network is of degree two in every row
of weights, so that any symmetric distribution with the same second moments has the same mean, and one of four vectors can
be averaged over by trying all. For K(x, x) the same holds with ReLU. Gradients are autograd's.
"""
from functools import cache
from itertools import pairwise, product
from math import acos, cos, radians, sin, sqrt

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from ntklib import angles, dynamics, kernels, spectrum
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, LIU
from ntklib.symbolic import linear as symbolic

CHAPTER = Chapter("linear", "The linear network", "angles/04_linear_network")
SEED = 4
GENERIC = torch.tensor([[cos(1), sin(1)], [-sin(1), cos(1)]], dtype=torch.float64)      # no unit of it is on an edge
PAIR = torch.tensor([[1.0, 0.2], [0.3, 1.1]], dtype=torch.float64)
DEPTHS = (0, 1, 2)


# ---- independent means -------------------------------------------------------------------------------
@cache
def frame_networks(depth: int) -> tuple[Tensor, ...]:
    """Every network of width 2 whose rows are one of +-sqrt(2) q_i, q an orthonormal basis: E w w^T = I, as for a
    Gaussian row. Weights (N, rows, 2), 4^(2 L + 1) networks."""
    rows = sqrt(2) * torch.cat([GENERIC, -GENERIC])
    every = torch.tensor(list(product(range(4), repeat=2 * depth + 1)))
    layers = [rows[every[:, 2 * l:2 * l + 2]] for l in range(depth)]
    return *layers, rows[every[:, -1:]]


def gradients(weights, x: Tensor, relu: bool) -> Tensor:
    """grad f(x) of a stack of networks by autograd, (N, parameters), with the factors of the paper's equation (1)."""
    weights = [W.clone().requires_grad_() for W in weights]
    a = x.expand(len(weights[0]), -1)[..., None]
    for W in weights[:-1]:
        z = W @ a
        a = (z.relu() * sqrt(2) if relu else z) / sqrt(W.shape[1])
    grads = torch.autograd.grad((weights[-1] @ a).sum(), weights)
    return torch.cat([g.flatten(1) for g in grads], 1)


def mean_kernel(X: Tensor, depth: int, relu=False) -> Tensor:
    """E K over all networks of the frame."""
    g = torch.stack([gradients(frame_networks(depth), x, relu) for x in X])
    return torch.einsum("inp,jnp->ij", g, g) / g.shape[1]


def gaussian_networks(count: int, depth: int, width: int, d: int, generator) -> list[Tensor]:
    """A stack of networks with standard normal weights."""
    sizes = [d, *[width] * depth, 1]
    return [torch.randn(count, b, a, dtype=torch.float64, generator=generator) for a, b in pairwise(sizes)]


def close_points() -> Tensor:
    """Five points in eight dimensions, two of them half a degree apart."""
    X = torch.randn(5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(11))
    X[1] = X[0] + radians(0.5) * X[1]
    return X


# ---- the claims --------------------------------------------------------------------------------------
@claim("linear-angle", of=CHAPTER, verdict="proved", source=LIU.at("Theorem 2.3"), derivation="symbolic.linear.kernel",
       statement=r"In a linear network of any depth, as $m\to\infty$, the angle between the gradients at two inputs is the "
                 r"angle between the inputs: $\bar\phi=\theta$.",
       hypotheses="independent standard Gaussian weights, no biases, the factor $1/\\sqrt m$ at each hidden layer.",
       measures="largest error of the angle, in radians", tolerance=1e-13)
def angle():
    """The mean kernel over all frame networks (4, 64 and 1024 of them), as an angle; the library's gradient angle at slope 1."""
    theta = float(angles.angle_between(*PAIR))
    exact = acos(float(PAIR[0] @ PAIR[1] / PAIR[0].norm() / PAIR[1].norm()))
    found = []
    for depth in DEPTHS:
        K = mean_kernel(PAIR, depth)
        found.append(acos(float(K[0, 1] / (K[0, 0] * K[1, 1]).sqrt())))
        found.append(float(angles.gradient_angle(torch.tensor(theta, dtype=torch.float64), depth, slope=1.0)))
    return max(abs(f - exact) for f in found)


@claim("linear-norm", of=CHAPTER, verdict="corrected", source=LIU.at("Theorem 2.3 and Lemma 3.1"), derivation="kernels.ntk_gram",
       statement=r"As $m\to\infty$, $\lVert\nabla f(x)\rVert=\sqrt{L+1}\,\lVert x\rVert$, without the ReLU and with it.",
       hypotheses="independent standard Gaussian weights, no biases.", seed=SEED,
       discrepancy=Discrepancy(
           prints=r"$\lVert\nabla f(x)\rVert=(L+1)\lVert x\rVert$, for both networks.",
           shows=r"Each of the $L+1$ weight matrices adds $\lVert x\rVert^2$ to the *square* of the length. At $L=15$ the gradient "
                 "is 4 times as long as its input, and not 16 times.",
           remains=r"Every statement about an angle or a condition number, where a common factor cancels. A learning rate that is "
                   r"chosen as $1/\lambda_{\max}$ would be too small by the factor $L+1$. The proof of the paper's Theorem 4.3 "
                   r"divides by $L+1$, which is right."),
       measures="largest error of the mean squared length, relative", tolerance=1e-13)
def norm():
    """E K(x, x) = (L + 1)|x|^2 exactly over the frame, both networks. Then one network of width 1000 each."""
    worst, generator = 0.0, torch.Generator().manual_seed(SEED)
    for relu in (False, True):
        for depth in DEPTHS:
            squared = mean_kernel(PAIR, depth, relu).diagonal()
            worst = max(worst, float((squared / ((depth + 1) * PAIR.square().sum(1)) - 1).abs().max()))
        wide = gaussian_networks(1, 5, 1000, 2, generator)
        length = float(gradients(wide, PAIR[0], relu).norm() / PAIR[0].norm())
        # sqrt(L + 1) = 2.4; L + 1 = 6 would be off by a factor 2.4, and a network of this width is off by some per cent
        assert abs(length / sqrt(6) - 1) < 0.25, f"at width 1000 and L = 5 the gradient is {length:.2f} times as long as x"
    K = kernels.ntk_gram(PAIR, depth=15)
    return max(worst, float((K.diagonal() / (16 * PAIR.square().sum(1)) - 1).abs().max()))


@claim("linear-kernel", of=CHAPTER, verdict="corrected", source=LIU.at("Corollary 2.4"), derivation="symbolic.linear.kernel",
       statement=r"As $m\to\infty$, the tangent kernel of a linear network is $\bar K=(L+1)\,G$, with $G=XX^\top$ the Gram matrix "
                 "of the inputs.",
       hypotheses="independent standard Gaussian weights, no biases.",
       discrepancy=Discrepancy(
           prints=r"$\bar K=(L+1)^2\,G$; and $G\in\mathbb R^{d\times d}$.",
           shows=r"The factor is $L+1$, one for each weight matrix; $XX^\top$ is $n\times n$.",
           remains=r"The conclusion of the corollary, $\bar\kappa=\kappa_0$ at every depth, and all that the paper draws from it."),
       measures="largest error relative to the largest entry", tolerance=1e-13)
def kernel():
    """The mean over the frame networks against (L + 1) G by numpy, and against the library."""
    X = torch.cat([PAIR, -2 * PAIR[:1]])
    G, worst = X.numpy() @ X.numpy().T, 0.0
    for depth in DEPTHS:
        truth = (depth + 1) * G
        for K in (mean_kernel(X, depth), kernels.ntk_gram(X, depth=depth, activation="linear")):
            worst = max(worst, float(np.abs(K.numpy() - truth).max() / np.abs(truth).max()))
    return worst


@claim("linear-kappa", of=CHAPTER, verdict="proved", source=LIU.at("Corollary 2.4"), derivation="spectrum.ntk_condition_number",
       statement=r"The condition number of that kernel is $\kappa(G)$ at every depth; where $G$ is singular, as for any $n>d$ "
                 r"points, it is singular at every depth, with the rank of $X$.",
       measures="largest relative error of kappa", tolerance=1e-11)
def kappa():
    """The square of the ratio of numpy's singular values of X, two rows of it half a degree apart; the rank of 9 points in
    8 dimensions."""
    X = close_points()
    sigma = np.linalg.svd(X.numpy(), compute_uv=False)
    truth = (sigma[0] / sigma[-1]) ** 2
    more = torch.cat([X, X.flip(1)[:4]])
    for depth in (0, 1, 7, 30):
        rank = spectrum.ntk_condition_number(more, depth=depth, activation="linear").rank
        assert rank == 8, f"nine points in eight dimensions: rank {rank} at depth {depth}"
    found = [spectrum.ntk_condition_number(X, depth=L, activation="linear").kappa for L in (0, 1, 7, 30)]
    return max(abs(k / truth - 1) for k in found)


@claim("linear-any-width", of=CHAPTER, verdict="proved", source=BOOK, derivation="empirical.empirical_ntk",
       statement=r"At any width the gradient of a linear network is a linear map of its input, so that $K=XMX^\top$ with one "
                 r"matrix $M$ for all inputs, and $\kappa(K)\le\kappa(M)\,\kappa(G)$.",
       hypotheses=r"the bound needs rows of $X$ that are linearly independent.", seed=SEED,
       measures="largest error of the map on a sum of inputs, relative", tolerance=1e-13)
def any_width():
    """grad f(2x - 3z) = 2 grad f(x) - 3 grad f(z) by autograd, at width 3 and depth 6; the bound on 200 networks of it."""
    generator = torch.Generator().manual_seed(SEED)
    W = gaussian_networks(200, 6, 3, 2, generator)
    g = [gradients(W, x, relu=False) for x in (*PAIR, 2 * PAIR[0] - 3 * PAIR[1])]
    rows, basis = torch.stack(g[:2], 1), torch.stack([gradients(W, e, relu=False) for e in torch.eye(2, dtype=torch.float64)], 1)
    cond = [np.linalg.cond(a.numpy()) ** 2 for a in (rows, basis)]
    excess = float((cond[0] / (cond[1] * np.linalg.cond(PAIR.numpy()) ** 2)).max())
    assert excess < 1 + 1e-9, f"kappa(K) is {excess:.4g} times its bound"
    return (g[2] - 2 * g[0] + 3 * g[1]).abs().max() / g[2].abs().max()


@claim("linear-mean", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.linear.gaussian_mean",
       statement=r"The mean of the kernel of a linear network over its weights is $(L+1)\,G$ at every width, and not only as "
                 r"$m\to\infty$.",
       measures="what sympy leaves of the difference", tolerance=0)
def mean():
    """The kernel as a polynomial in the weights, term by term, for one to three units and up to two hidden layers."""
    x, z = sp.symbols("x:2", real=True), sp.symbols("z:2", real=True)
    inner, left = x[0] * z[0] + x[1] * z[1], 0
    for depth, width in ((0, 1), (1, 1), (1, 3), (2, 1), (2, 2)):
        W = symbolic.weights(depth, width, 2)
        difference = sp.expand(symbolic.gaussian_mean(symbolic.kernel(W, x, z), W) - (depth + 1) * inner)
        left += sum(abs(c) for c in sp.Poly(difference, *x, *z).coeffs())
    return float(left)


@claim("linear-fluctuation", of=CHAPTER, verdict="verified", source=BOOK, derivation="symbolic.linear.second_moment",
       statement=r"Around that mean, $K(x,x)$ has the relative variance $\frac13\left(q^L+\frac{2}{(L+1)^2}\sum_{i,j=0}^{L}"
                 r"q^{L-|i-j|}p^{|i-j|}\right)-1$, with $q=1+\frac2m$ and $p=1-\frac1m$: for $m\gg L$ about "
                 r"$\frac{2L(2L+1)}{3(L+1)\,m}$.", seed=SEED,
       hypotheses="independent standard Gaussian weights, no biases.",
       measures="distance of the measured variance from it, in standard errors", tolerance=4)
def fluctuation():
    """40 000 networks of 12 units and four hidden layers. A true formula is off by four standard errors for one seed in
    16 000; and the approximation for wide networks."""
    depth, width, count = 4, 12, 40_000
    generator = torch.Generator().manual_seed(SEED)
    x = torch.tensor([1.0, 0.0], dtype=torch.float64)
    parts = [gradients(gaussian_networks(count // 8, depth, width, 2, generator), x, relu=False).square().sum(1) for _ in range(8)]
    squares = (torch.cat(parts) / (depth + 1)).square()
    stated = float(symbolic.second_moment(depth, width)) / (depth + 1) ** 2
    wide = (float(symbolic.second_moment(depth, 10**6)) / (depth + 1) ** 2 - 1) * 10**6
    off = abs(wide / (2 * depth * (2 * depth + 1) / (3 * (depth + 1))) - 1)
    assert off < 1e-5, f"the approximation is off by {off:.2g} at width 10^6"
    return abs(float(squares.mean()) - stated) / (float(squares.std()) / sqrt(count))


@claim("linear-time", of=CHAPTER, verdict="proved", source=BOOK, derivation="dynamics.predict_gd",
       statement=r"At infinite width, gradient descent on a linear network with learning rate $\eta$ moves its answers exactly as "
                 r"gradient descent on the linear model with learning rate $(L+1)\,\eta$.",
       hypotheses="square loss, both start from the same answers; the kernel stays what it is at initialisation.",
       measures="largest difference of the answers", tolerance=1e-12)
def time():
    """The linear model trained by hand, against the kernel's prediction for seven hidden layers."""
    X, depth, lr, steps = close_points() / 3, 7, 0.02, 50
    y = torch.linspace(-1, 1, 5, dtype=torch.float64)
    w = torch.zeros(8, dtype=torch.float64)
    for _ in range(steps):
        w = w - (depth + 1) * lr * (X.T @ (X @ w - y))
    K = kernels.ntk_gram(X, depth=depth, activation="linear")
    return (dynamics.predict_gd(K, y, lr, steps).outputs[-1] - X @ w).abs().max()
