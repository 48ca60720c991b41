"""Claims of chapter "The tangent kernel three ways".

Networks are written out here in a few lines of torch, and differentiated by autograd, one point after another;
the library is reached through its modules.
"""
from itertools import pairwise
from math import pi, radians, sqrt

import numpy as np
import torch
from torch import Tensor

from ntklib import dynamics, kernels, network, spectrum
from ntklib.book.claims import Chapter, Discrepancy, Source, claim
from ntklib.book.claims.sources import BOOK, LIU, LIU_REPLY

CHAPTER = Chapter("tangent", "The tangent kernel three ways", "conditioning/05_tangent_kernel")
JACOT = Source("Jacot, Gabriel and Hongler 2018", "", "arXiv 1806.07572")
SEED = 1
GAIN = 2.0                                          # c of ReLU


# ---- independent means -------------------------------------------------------------------------------
def weights(d: int, width: int, depth: int, generator: torch.Generator) -> list[Tensor]:
    """The matrices of eq. 1, with gradients."""
    sizes = [d, *[width] * depth, 1]
    return [torch.randn(b, a, generator=generator, dtype=torch.float64).requires_grad_()
            for a, b in pairwise(sizes)]


def output(W: list[Tensor], x: Tensor) -> Tensor:
    """f(x) of eq. 1, one layer after another."""
    for w in W[:-1]:
        x = sqrt(GAIN / len(w)) * torch.relu(w @ x)
    return (W[-1] @ x)[0]


def jacobian(W: list[Tensor], X: Tensor) -> Tensor:
    """One row a point: the gradient with respect to all weights."""
    rows = [torch.autograd.grad(output(W, x), W) for x in X]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


def copied(W: list[Tensor]) -> network.MLP:
    """The library's network with these weights."""
    model = network.MLP(W[0].shape[1], len(W[0]), len(W) - 1, generator=torch.Generator())
    with torch.no_grad():
        for layer, w in zip(model.layers, W, strict=True):
            layer.weight.copy_(w)
    return model


def points(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Random inputs, not of length 1."""
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def unit_kernels(theta: float, width: int, draws: int, generator) -> tuple[Tensor, Tensor, Tensor]:
    """K(x,x), K(z,z), K(x,z) of `draws` networks with one hidden layer; unit inputs, in their plane."""
    w = torch.randn(draws, width, 2, generator=generator, dtype=torch.float64)
    a2 = torch.randn(draws, width, generator=generator, dtype=torch.float64).square()
    x, z = torch.tensor([[1.0, 0.0], [np.cos(theta), np.sin(theta)]], dtype=torch.float64)
    u, v = w @ x, w @ z

    def entry(p, q, inner):
        return GAIN / width * (p.relu() * q.relu() + a2 * ((p > 0) & (q > 0)) * inner).sum(1)
    return entry(u, u, 1.0), entry(v, v, 1.0), entry(u, v, float(np.cos(theta)))


# ---- the claims --------------------------------------------------------------------------------------
@claim("tangent-step", of=CHAPTER, verdict="proved", source=JACOT.at("section 4"), derivation="empirical.empirical_ntk",
       statement=r"A step of gradient descent on the square loss moves the outputs by $-\eta K(f-y)+O(\eta^2)$, with "
                 r"$K=JJ^\top$ of the network as it is.", seed=SEED,
       hypotheses="no hidden unit switches at an input during the step.",
       measures="error of the order in the step size", tolerance=0.05)
def step():
    """Steps of size eta and eta/2 from the same weights: what -eta K (f - y) misses falls by four."""
    generator = torch.Generator().manual_seed(SEED)
    W, X = weights(3, 60, 2, generator), points(5, 3, generator)
    y = torch.randn(5, generator=generator, dtype=torch.float64)
    f = torch.stack([output(W, x) for x in X]).detach()
    K = network.empirical_ntk(copied(W), X)
    gradient = torch.autograd.grad(sum((output(W, x) - t) ** 2 / 2 for x, t in zip(X, y, strict=True)), W)
    missed = []
    for eta in (2e-4, 1e-4):
        moved = [(w - eta * g).detach() for w, g in zip(W, gradient, strict=True)]
        after = torch.stack([output(moved, x) for x in X])
        missed.append(float((after - f + eta * K @ (f - y)).norm()))
    return abs(np.log2(missed[0] / missed[1]) - 2)


@claim("tangent-layers", of=CHAPTER, verdict="proved", source=BOOK, derivation="empirical.empirical_ntk",
       statement=r"At every width, $K(x,z)=\sum_\ell(\alpha^{(\ell-1)}(x)\cdot\alpha^{(\ell-1)}(z))\,(\delta^{(\ell)}(x)\cdot\delta^{(\ell)}(z))$ over the "
                 r"layers, with the layers' inputs $\alpha$ and backward signals $\delta$, the derivatives of $f$ by the layers' "
                 "products $W\\alpha$: no gradient of a weight matrix is needed.", seed=SEED,
       measures="largest relative error", tolerance=1e-12)
def layers():
    """The library's sum of Hadamard products against J J^T by autograd, depths 0 to 4."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    for depth in range(5):
        W, X = weights(4, 30, depth, generator), points(6, 4, generator)
        J = jacobian(W, X)
        K = network.empirical_ntk(copied(W), X)
        worst = max(worst, float((K - J @ J.T).abs().max() / K.abs().max()))
    return worst


@claim("tangent-limit", of=CHAPTER, verdict="verified", source=LIU.at("Lemma 3.1"), derivation="symbolic.tangent.one_layer_steps",
       statement=r"As $m\to\infty$ the kernel tends to $\lVert x\rVert\lVert z\rVert\sum_{\ell=0}^L\cos\theta^{(\ell)}\prod_{k=\ell}^{L-1}(1-\theta^{(k)}/\pi)$. "
                 "At one hidden layer this is its mean at *every* width.", seed=SEED,
       measures="largest distance in standard errors", tolerance=4.5)
def limit():
    """Means over random networks: width 8 with one hidden layer, width 512 with three; gradients by autograd."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    X = points(3, 4, generator)
    for width, depth, draws in ((8, 1, 600), (512, 3, 24)):
        found = []
        for _ in range(draws):
            J = jacobian(weights(4, width, depth, generator), X)
            found.append(J @ J.T)
        found, exact = torch.stack(found), kernels.ntk_gram(X, depth=depth)
        error = (found.mean(0) - exact).abs() / (found.std(0) / sqrt(draws))
        worst = max(worst, float(error.max()))
    return worst


@claim("tangent-spread", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.tangent.unit_moments", seed=SEED,
       statement=r"With one hidden layer the standard deviation of $K(x,x)$ over networks is $\sqrt{3/m}$ of its mean, at every width.",
       measures="relative error of the standard deviation", tolerance=0.02)
def spread():
    """40 000 networks of width 20; the standard error of their deviation is below 0.6 %."""
    K, _, _ = unit_kernels(1.0, 20, 40_000, torch.Generator().manual_seed(SEED))
    off = abs(float(K.mean()) - 2) / float(K.std()) * sqrt(len(K))
    assert off < 4.5, f"the mean of K(x, x) is {float(K.mean()):.5g}: {off:.1f} standard errors from 2"
    return abs(float(K.std() / K.mean()) / sqrt(3 / 20) - 1)


@claim("tangent-depth-spread", of=CHAPTER, verdict="verified", source=Source("Hanin and Nica 2020", "Theorem 1, for the scale", "arXiv 1909.05989"),
       derivation="empirical.empirical_ntk", seed=SEED,
       statement=r"In deeper networks the spread of $K(x,x)$ depends on depth and width through $L/m$: twice the depth needs twice the width.",
       hypotheses=r"$L$ well below $m$.", measures=r"largest relative difference of the spread at equal $L/m$", tolerance=0.2)
def depth_spread():
    """300 networks each at (L, m) = (2, 32), (3, 48), (4, 64); a spread is right to about 6 %, and three are compared."""
    generator, found = torch.Generator().manual_seed(SEED), []
    for depth, width in ((2, 32), (3, 48), (4, 64)):
        size = []
        for _ in range(300):
            W = weights(1, width, depth, generator)
            K = network.empirical_ntk(copied(W), torch.ones(1, 1, dtype=torch.float64))
            size.append(float(K) / (depth + 1))
        found.append(np.std(size) / np.mean(size))
    return max(found) / min(found) - 1


@claim("tangent-width", of=CHAPTER, verdict="verified", source=LIU.at("Theorem 3.2"), derivation="angles.gradient_angle", seed=SEED,
       statement=r"With one hidden layer $\phi>\theta$ in at least 90 % of networks from $m=3\pi/\theta$ on, and in 99 % from $m=10\pi/\theta$ on.",
       hypotheses=r"measured for $\theta=0.1,\ 0.03,\ 0.01$.",
       discrepancy=Discrepancy(
           prints=r"A width $m=\Omega(1/\theta^2)$ makes $\phi>\theta$ with high probability.",
           shows=r"A width in proportion to $1/\theta$ is enough: what is needed is a few hidden units that tell the inputs apart, "
                 r"and their expected number is $m\theta/\pi$. At $\theta=0.01$ that is 942 units for three of them, and $1/\theta^2=10\,000$.",
           remains="The theorem: its condition is sufficient, and not tight."),
       measures="largest share of networks that fails, beyond 10 % and 1 %", tolerance=0)
def width():
    """1000 networks for each angle and width, by the kernel's three entries."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    for theta in (0.1, 0.03, 0.01):
        for apart, allowed in ((3, 0.1), (10, 0.01)):
            failed = []
            for _ in range(5):
                xx, zz, xz = unit_kernels(theta, round(apart * pi / theta), 200, generator)
                failed.append((xz >= np.cos(theta) * (xx * zz).sqrt()).double().mean())
            worst = max(worst, float(torch.stack(failed).mean()) - allowed)
    return max(worst, 0.0)


@claim("tangent-no-flip", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.step_kernel", seed=SEED,
       statement=r"The probability that no hidden unit of a layer tells two inputs apart is $(1-\theta/\pi)^m\approx e^{-m\theta/\pi}$.",
       measures="largest distance in standard errors", tolerance=4.5)
def no_flip():
    """Counted in 20 000 layers each, for three angles and widths."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    for degrees, m in ((10, 20), (30, 8), (3, 60)):
        theta = radians(degrees)
        w = torch.randn(20_000, m, 2, generator=generator, dtype=torch.float64)
        x, z = torch.tensor([[1.0, 0.0], [np.cos(theta), np.sin(theta)]], dtype=torch.float64)
        found = float((((w @ x) > 0) == ((w @ z) > 0)).all(1).double().mean())
        p = (1 - theta / pi) ** m
        worst = max(worst, abs(found - p) / sqrt(p * (1 - p) / 20_000))
    return worst


@claim("tangent-spaces", of=CHAPTER, verdict="proved", source=LIU_REPLY.at("on the rank of the kernel"), derivation="dynamics.predict_gd",
       statement=r"$JJ^\top$ ($n\times n$) and $J^\top J$ ($p\times p$) have the same non-zero eigenvalues. The part of the error $f-y$ "
                 r"that lies in the null space of $JJ^\top$ does not move, whatever the size of $p$.", seed=SEED,
       discrepancy=Discrepancy(
           prints="In reply to a reviewer: gradient descent lives in the space of parameters, the eigenvectors of the kernel in another one, so that "
                  "its zero eigenvalues contribute nothing to the optimisation.",
           shows=r"The outputs live in the kernel's space, and so does the error. Each null vector of $K$ is a combination of the data whose error "
                 "stays at its first value for ever, as the reviewer said.",
           remains="The non-zero spectra agree, and govern the speed of the part that can be fitted."),
       measures="largest relative difference of the spectra", tolerance=1e-10)
def spaces():
    """Spectra of both products; then the hexagon, whose kernel is singular at one hidden layer, trained in the linearised model."""
    generator = torch.Generator().manual_seed(SEED)
    J = jacobian(weights(3, 12, 2, generator), points(5, 3, generator))
    small, large = torch.linalg.eigvalsh(J @ J.T), torch.linalg.eigvalsh(J.T @ J)
    rest = float(large[:-5].abs().max() / large[-1])
    assert rest < 1e-12, f"beyond the {len(small)} eigenvalues of J J^T there is one of {rest:.3g} of the largest"
    t = torch.arange(6, dtype=torch.float64) * pi / 3
    X, y = torch.stack([t.cos(), t.sin()], 1), torch.tensor([1.0, -1, 1, -1, 1, -1], dtype=torch.float64)
    J = jacobian(weights(2, 200, 1, generator), X)
    K = J @ J.T
    lr, p = 1 / float(torch.linalg.eigvalsh(K)[-1]), torch.zeros(J.shape[1], dtype=torch.float64)
    for _ in range(500):                                                 # gradient descent over 600 parameters
        p = p - lr * J.T @ (J @ p - y)
    left = float((J @ p - y).square().sum() / y.square().sum())
    said = float(dynamics.predict_gd(K, y, lr, [500]).loss[0] * 2 / y.square().sum())
    assert abs(left - said) < 1e-9, f"the share of the loss that is left is {left:.6g}, and not {said:.6g}"
    assert left > 0.999, f"the alternating labels are fitted: {left:.3g} of their loss is left"
    return (large[-5:] / small - 1).abs().max()


@claim("tangent-movement", of=CHAPTER, verdict="verified", source=LIU_REPLY.at("W4, on the change of the kernel in practice"), derivation="dynamics.train",
       statement=r"Training moves the kernel, by a share of itself that falls with the width: between $m^{-1/2}$ and $m^{-1}$ on the chapter's task. "
                 "At 128 units it is still more than 2 %.", seed=SEED,
       hypotheses="two hidden layers, eight inputs, full-batch gradient descent on the square loss; median of four networks.",
       measures="distance of the exponent from 0.75", tolerance=0.35)
def movement():
    """Widths 32, 128 and 512: the change of the library's kernel over 100 steps, against autograd's at one width."""
    generator = torch.Generator().manual_seed(SEED)
    X = points(8, 4, generator)
    X, y = X / X.norm(dim=1, keepdim=True), torch.tensor([1.0, -1] * 4, dtype=torch.float64)
    lr = 0.25 / float(torch.linalg.eigvalsh(kernels.ntk_gram(X, depth=2))[-1])
    moved = []
    for m in (32, 128, 512):
        each = []
        for _ in range(4):
            W = weights(4, m, 2, generator)
            model = copied(W)
            before = network.empirical_ntk(model, X)
            dynamics.train(model, X, y, lr=lr, steps=100)
            after = network.empirical_ntk(model, X)
            each.append(float((after - before).norm() / before.norm()))
        moved.append(float(np.median(each)))
    J = jacobian([layer.weight.detach().requires_grad_() for layer in model.layers], X[:3])
    off = float((J @ J.T - after[:3, :3]).abs().max() / after.abs().max())
    assert off < 1e-10, f"the trained network's kernel is off by {off:.3g}"
    assert moved[1] > 0.02, f"at 128 units the kernel moved by {moved[1]:.3g} only"
    return abs(-np.polyfit(np.log([32, 128, 512]), np.log(moved), 1)[0] - 0.75)


@claim("tangent-nngp", of=CHAPTER, verdict="proved", source=LIU.at("Lemma 3.1 and Theorem A.2"), derivation="kernels.nngp_gram", seed=SEED,
       statement=r"The last term of the sum is the NNGP kernel $\Sigma^{(L)}$, the kernel of the embeddings. With depth it tends to a matrix of ones (for unit "
                 r"inputs), so $\kappa\to\infty$, while $K/(L+1)$ tends to $\frac34I+\frac14\mathbf{1}\mathbf{1}^\top$.",
       measures="largest relative error of the last term", tolerance=1e-12)
def nngp():
    """The library's kernels of depths L and L - 1 differ by the last term; the two limits by their condition numbers."""
    generator, worst = torch.Generator().manual_seed(SEED), 0.0
    X = points(5, 8, generator)
    X = X / X.norm(dim=1, keepdim=True)
    angle = np.arccos(np.clip((X @ X.T).numpy(), -1, 1))
    np.fill_diagonal(angle, 0)
    for depth in range(1, 6):
        share = 1 - torch.from_numpy(angle) / pi
        last = kernels.ntk_gram(X, depth=depth) - kernels.ntk_gram(X, depth=depth - 1) * share
        worst = max(worst, float((last - kernels.nngp_gram(X, depth=depth)).abs().max()))
        angle = np.arccos(np.clip(((pi - angle) * np.cos(angle) + np.sin(angle)) / pi, -1, 1))
    ones = kernels.nngp_gram(X, depth=1000)
    embedded, tangent = spectrum.condition_number(ones).kappa, spectrum.ntk_condition_number(X, depth=1000).kappa
    assert float(ones.min()) > 0.999, f"the smallest entry of the NNGP kernel at depth 1000 is {float(ones.min()):.5g}"
    assert embedded > 1e4 > 3 > tangent > 2, f"at depth 1000, kappa is {embedded:.3g} and {tangent:.3g}"
    return worst
