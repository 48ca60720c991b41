"""Claims of the chapter "The GmP layer".

The checks compare the layers with their definition written out, with difference quotients, bisection, explicit loops or
counting: never with the code that they are about.
"""
from itertools import product
from math import pi, sqrt

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ntklib import boundaries, gmp, sphere
from ntklib.book.claims import Chapter, Source, claim
from ntklib.book.claims.sources import BOOK, CHEN, CHEN_CODE
from ntklib.book.explorables import layer as shown
from ntklib.symbolic import layer as symbolic

CHAPTER = Chapter("layer", "The GmP layer", "boundaries/18_gmp_layer")
SALIMANS = Source("Salimans and Kingma 2016", "", "NeurIPS 29")
SEED = 1
f64 = torch.float64


# ---- independent means -------------------------------------------------------------------------------
def source(seed: int) -> torch.Generator:
    """Random numbers of a seed of their own."""
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed: int) -> Tensor:
    """Standard normal numbers of a seed of their own."""
    return torch.randn(*shape, dtype=f64, generator=source(seed))


def direction(theta: Tensor) -> Tensor:
    """u(theta) by plane rotations of the last basis vector's plane upwards, one unit, without cumulative products."""
    u = torch.ones(1, dtype=f64)
    for t in theta.flip(0):
        u = torch.cat([t.cos()[None], t.sin() * u])
    return u


def random_layer(n: int, units: int, seed: int, radius: float | None = None) -> nn.Module:
    """A GmPLinear with random numbers everywhere, r of both signs unless a radius is given."""
    g = source(seed)
    layer = gmp.GmPLinear(n, units, generator=g, dtype=f64)
    with torch.no_grad():
        layer.r.copy_(torch.randn(units, dtype=f64, generator=g) if radius is None else torch.full((units,), radius, dtype=f64))
        layer.lam.copy_(torch.randn(units, dtype=f64, generator=g))
    return layer


def written_out(layer: nn.Module, x: Tensor) -> Tensor:
    """r max(u(theta) . x + lam, 0), unit by unit."""
    units = zip(layer.r.detach(), layer.lam.detach(), layer.theta.detach(), strict=True)
    return torch.stack([r * (x @ direction(theta) + lam).clamp(min=0) for r, lam, theta in units], -1)


def one_unit(n: int, **options) -> nn.Linear:
    """nn.Linear(n, 1) with weights of a seed, active for about half of centred inputs."""
    layer = nn.Linear(n, 1, dtype=f64, **options)
    with torch.no_grad():
        layer.weight.copy_(randn(1, n, seed=SEED + n))
        if layer.bias is not None:
            layer.bias.fill_(0.1)
    return layer


class Work(TorchDispatchMode):
    """Counts the entries that all operations inside it write."""

    def __enter__(self):
        self.entries = 0
        return super().__enter__()

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        out = f(*args, **(kwargs or {}))
        moves = f._schema.name in ("aten::view", "aten::t", "aten::detach", "aten::slice", "aten::split", "aten::select",
                                   "aten::alias", "aten::_unsafe_view", "aten::unsqueeze", "aten::expand", "aten::transpose")
        self.entries += 0 if moves else sum(x.numel() for x in tree_leaves(out) if isinstance(x, Tensor))
        return out


# ---- the claims --------------------------------------------------------------------------------------
@claim("layer-definition", of=CHAPTER, verdict="proved", source=CHEN.at("section 3"), derivation="gmp.GmPLinear", seed=SEED,
       statement=r"A GmP unit answers $z=r\,\sigma(u(\theta)\cdot x+\lambda)$. For $r>0$ that is the unit with the weights $w=r\,u(\theta)$ "
                 r"and the bias $b=r\lambda$; for $r<0$ it is minus the unit with $w=|r|\,u$ and $b=|r|\lambda$.",
       measures="largest error of an answer", tolerance=1e-12)
def definition():
    """The layer against the definition written out by plane rotations, and against an ordinary layer, in R^2 to R^12."""
    worst = 0.0
    for n in range(2, 13):
        layer, x = random_layer(n, 8, SEED + n), randn(30, n, seed=SEED + 40 + n)
        z, r = layer(x).detach(), layer.r.detach()
        u = torch.stack([direction(t) for t in layer.theta.detach()])
        plain = r.sign() * torch.relu(x @ (r.abs()[:, None] * u).T + r.abs() * layer.lam.detach())
        assert bool((r < 0).any()), "no negative radius among the random ones"
        worst = max(worst, float((z - written_out(layer, x)).abs().max()), float((z - plain).abs().max()))
    return worst


@claim("layer-boundary", of=CHAPTER, verdict="proved", source=CHEN.at("Definition 3.1"), derivation="boundaries.of", seed=SEED,
       statement=r"The boundary of a GmP unit, $\{x:u(\theta)\cdot x+\lambda=0\}$, depends on $\lambda$ and $\theta$ alone: no $r\ne0$, of either sign, "
                 "moves it.", measures="largest distance of a switching point from it", tolerance=1e-9)
def boundary_without_radius():
    """Where the answers switch along random lines of inputs, found by bisection, for five radii."""
    worst = 0.0
    for n, radius in product((2, 3, 7), (-3.0, -0.01, 0.01, 1.0, 40.0)):
        layer = random_layer(n, 6, SEED + n, radius).requires_grad_(False)
        edge = boundaries.of(layer)
        for unit in range(6):
            u, x = direction(layer.theta[unit]), randn(8, n, seed=SEED + 90 + unit)
            on, off = (x + s * 50 * u for s in (1, -1))                         # active, silent
            for _ in range(60):
                middle = (on + off) / 2
                active = (layer(middle)[:, unit] != 0)[:, None]
                on, off = torch.where(active, middle, on), torch.where(active, off, middle)
            worst = max(worst, float(edge[unit].distance(on).abs().max()))
    return worst


@claim("layer-numbers", of=CHAPTER, verdict="proved", source=CHEN_CODE, derivation="gmp.GmPLinear", seed=SEED,
       statement=r"A GmP unit with $n\ge2$ inputs trains $n+1$ numbers, as many as weights with a bias, and none of them is redundant. "
                 "Weight normalisation and batch normalisation train $n+2$, one of which the function does not need.",
       measures="largest error of a count", tolerance=0.0)
def numbers():
    """Counted, and as the rank of the derivative of a unit's answers to 60 inputs with respect to all its numbers."""
    worst = 0
    for n in (2, 3, 6):
        x = randn(60, n, seed=SEED)
        normed = nn.Sequential(one_unit(n, bias=False), nn.BatchNorm1d(1, dtype=f64))
        units = {"sp": (one_unit(n), n + 1), "wn": (weight_norm(one_unit(n)), n + 2),
                 "bn": (normed, n + 2), "gmp": (gmp.GmPLinear(n, 1, generator=source(SEED), dtype=f64), n + 1)}
        for module, count in units.values():
            parameters = [p for p in module.parameters() if p.numel()]
            rows = [torch.cat([d.flatten() for d in torch.autograd.grad(z, parameters, retain_graph=True)])
                    for z in torch.relu(module(x))[:, 0]]
            rank = int(torch.linalg.matrix_rank(torch.stack(rows), rtol=1e-9))
            worst = max(worst, abs(sum(p.numel() for p in parameters) - count), abs(rank - (n + 1)))
    return worst


@claim("layer-gradients", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.layer.gradients", seed=SEED,
       statement=r"On the active side $\partial z/\partial r=u\cdot x+\lambda$, $\partial z/\partial\lambda=r$ and $\partial z/\partial\theta_j="
                 r"r\,x\cdot\partial u/\partial\theta_j$; on the silent side all three are $0$.",
       measures="largest error of a derivative", tolerance=1e-7)
def derivatives():
    """autograd through the layer against central differences of the definition written out."""
    worst, h = 0.0, 1e-6
    for n in (2, 3, 8):
        layer, x = random_layer(n, 5, SEED + n), randn(12, n, seed=SEED + 60)
        weight = randn(12, 5, seed=SEED + 70)                                   # one error signal an answer
        found = torch.autograd.grad((layer(x) * weight).sum(), [layer.r, layer.lam, layer.latitude])
        for p, gradient in zip((layer.r, layer.lam, layer.latitude), found, strict=True):
            for i in range(p.numel()):
                ends = []
                for s in (h, -h):
                    with torch.no_grad():
                        p.view(-1)[i] += s
                        ends.append(float((written_out(layer, x) * weight).sum()))
                        p.view(-1)[i] -= s
                worst = max(worst, abs((ends[0] - ends[1]) / (2 * h) - float(gradient.view(-1)[i])))
    return worst


@claim("layer-turn", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.layer.turn_by_angles", seed=SEED,
       statement=r"Let $G=\sum_i\delta_i x_i$ over the active inputs, with components $a_j$ in the orthonormal directions of the $\partial u/"
                 r"\partial\theta_j$. Under gradient descent with a small rate $\eta$ a unit trained by its weights turns by $\frac{\eta}{|w|}(\sum_j a_j^2)^{1/2}$, "
                 r"a GmP unit by $\eta\,|r|\,(\sum_jM_{jj}^2a_j^2)^{1/2}$: at most $r^2$ times as much where $r=|w|$.",
       hypotheses=r"the same error signals $\delta_i$ from above, and no input changes its side in the step.",
       measures="largest relative error of a turn", tolerance=1e-5)
def turning():
    """Turns of real layers in one step of gradient descent at a rate of 1e-7, seen as chords, in R^2 to R^8."""
    worst = 0.0
    for n, radius in product((2, 3, 5, 8), (0.2, 1.0, 5.0)):
        layer, x = random_layer(n, 4, SEED + n, radius), randn(25, n, seed=SEED + 7)
        linear = nn.Linear(n, 4, dtype=f64)
        u = torch.stack([direction(t) for t in layer.theta.detach()])
        with torch.no_grad():
            linear.weight.copy_(radius * u)
            linear.bias.copy_(radius * layer.lam)
        delta = randn(25, 4, seed=SEED + 8)
        G = ((x @ u.T + layer.lam.detach() > 0) * delta).T @ x
        J = sphere.jacobian(layer.theta.detach())
        M = J.square().sum(1)
        a = torch.einsum("uij,ui->uj", J, G) / M.sqrt()
        stated = {"sp": a.norm(dim=1) / radius, "gmp": radius * (M * a).norm(dim=1)}
        for name, module, z in (("sp", linear, torch.relu(linear(x))), ("gmp", layer, layer(x))):
            (z * delta).sum().backward()
            with torch.no_grad():
                for p in module.parameters():
                    p -= 1e-7 * p.grad
                moved = linear.weight / linear.weight.norm(dim=1, keepdim=True) if name == "sp" else torch.stack([direction(t) for t in layer.theta])
            worst = max(worst, float(((moved - u).norm(dim=1) / 1e-7 / stated[name] - 1).abs().max()))
    return worst


@claim("layer-location", of=CHAPTER, verdict="holds under", source=CHEN.at("section 3, after Theorem 3.7"),
       derivation="symbolic.layer.location_steps", seed=SEED,
       statement=r"A step $(d\lambda,d\theta)$ moves the location $\phi=-\lambda u$ of a unit by at most $|d\lambda|+|\lambda|\,|d\theta|$, whatever $r$ and "
                 r"$\theta$ are.",
       hypotheses=r"the factor $|\lambda|$ belongs there: that small steps move boundaries little holds for the direction everywhere, for the location only where "
                  r"$|\lambda|$ is of order one.",
       measures="excess of the largest ratio over 1", tolerance=1e-9)
def location_bound():
    """20 000 random steps of all sizes in R^2 to R^9; a far unit for which the bound without the factor fails, 100 times over."""
    worst, largest = 0.0, 0.0
    for n in range(2, 10):
        g = source(SEED + n)
        theta = torch.rand(2500, n - 1, dtype=f64, generator=g) * 2 * pi
        lam = 3 * torch.randn(2500, dtype=f64, generator=g)
        size = torch.pow(10, 3 * torch.rand(2500, 1, dtype=f64, generator=g) - 2.5)
        dtheta, dlam = (size * torch.randn(2500, k, dtype=f64, generator=g) for k in (n - 1, 1))
        before = boundaries.Boundary.from_angles(theta, lam).location
        after = boundaries.Boundary.from_angles(theta + dtheta, lam + dlam[:, 0]).location
        ratio = (after - before).norm(dim=1) / (dlam[:, 0].abs() + lam.abs() * dtheta.norm(dim=1))
        worst, largest = max(worst, float(ratio.max()) - 1), max(largest, float(ratio.max()))
    assert largest > 0.99, f"the bound is never nearly reached: the largest ratio is {largest:.3f}"
    far = boundaries.Boundary.from_angles(torch.tensor([[0.0], [0.01]], dtype=f64), torch.tensor([100.0, 100.0], dtype=f64)).location
    swing = float((far[1] - far[0]).norm())
    assert abs(swing - 1) < 1e-3, f"a step of 0.01 at lambda = 100 moves the location by {swing:.3f}, and 1 is expected"
    return max(worst, 0.0)


@claim("layer-dead", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.layer.gradients", seed=SEED,
       statement=r"A unit with $\lambda\le-\max_i u\cdot x_i$ is silent for every input, and its gradients in $r$, $\lambda$ and $\theta$ vanish together: no "
                 r"coordinates revive it. A unit with $r=0$ is not dead: its gradient in $r$ is $\sum_i\delta_i\,\sigma(u\cdot x_i+\lambda)$.",
       measures="largest gradient of a silent unit", tolerance=0.0)
def dead():
    """Units pushed beyond 50 inputs in R^2 to R^6 and asked by autograd; units with r = 0, and what one step makes of them."""
    worst = 0.0
    for n in (2, 3, 6):
        layer, x, delta = random_layer(n, 6, SEED + n), randn(50, n, seed=SEED + 5), randn(50, 6, seed=SEED + 6)
        u = torch.stack([direction(t) for t in layer.theta.detach()])
        with torch.no_grad():
            layer.lam.copy_(-(x @ u.T).amax(0) - 1e-9)
        (layer(x) * delta).sum().backward()
        worst = max(worst, *(float(p.grad.abs().max()) for p in layer.parameters()))
        layer = random_layer(n, 6, SEED + n, radius=0.0)
        (layer(x) * delta).sum().backward()
        s = (x @ u.T + layer.lam.detach()).clamp(min=0)
        off = float((layer.r.grad - (delta * s).sum(0)).abs().max())
        assert off < 1e-10, f"at r = 0 the gradient in r is off by {off:.3g}"
        assert float(layer.r.grad.abs().min()) > 1e-3, "a unit with r = 0 has no gradient"
        assert float(layer.latitude.grad.abs().max()) == 0, "at r = 0 the angles have a gradient"
    return worst


@claim("layer-mean-only", of=CHAPTER, verdict="holds under", source=SALIMANS.at("section 2.2, mean-only batch normalisation"),
       derivation="gmp.InputMeanNorm", seed=SEED,
       statement=r"Input mean normalisation before a layer is mean-only batch normalisation inside it: $u\cdot(x-\bar x)=u\cdot x-\overline{u\cdot x}$, in "
                 "values and in gradients.",
       hypotheses="a dense layer, and the means of the batch, as in training. Running means differ while $u$ changes; in a convolution the edges of the image make "
                  "a difference.",
       measures="largest difference", tolerance=1e-12)
def mean_only():
    """Both ways through a dense layer, values and gradients; a convolution, where they must differ."""
    layer, x, delta = random_layer(7, 5, SEED), randn(40, 7, seed=SEED + 1) + 2, randn(40, 5, seed=SEED + 2)
    found = []
    for inside in (False, True):
        inputs = x.clone().requires_grad_()
        if inside:
            s = inputs @ torch.stack([direction(t) for t in layer.theta]).T
            z = layer.r * torch.relu(s - s.mean(0) + layer.lam)
        else:
            z = layer(gmp.InputMeanNorm(7, dtype=f64)(inputs))
        found.append([z, *torch.autograd.grad((z * delta).sum(), [inputs, layer.latitude, layer.lam, layer.r])])
    image, kernel = randn(4, 2, 6, 6, seed=SEED + 3) + 1, randn(3, 2, 3, 3, seed=SEED + 4)
    centred = torch.conv2d(gmp.InputMeanNorm(2, dtype=f64)(image), kernel, padding=1)
    plain = torch.conv2d(image, kernel, padding=1)
    apart = float((centred - plain + plain.mean((0, 2, 3), keepdim=True)).abs().max())
    assert apart > 0.1, f"in a padded convolution they differ by {apart:.3g} only"
    return max(float((a - b).detach().abs().max()) for a, b in zip(*found, strict=True))


@claim("layer-missed", of=CHAPTER, verdict="verified", source=BOOK, derivation="angles.embedding_angle", seed=SEED,
       statement=r"At the start, $\lambda=0$, a boundary of layer $\ell$ misses a batch of $N$ inputs, which were orthogonal when they came in, with the probability "
                 r"$2\,\mathbb E\,\Phi(kA)^N$, $k^2=c/(1-c)$, where $A$ is standard normal, $\Phi$ its distribution function and $c=\cos\theta^{(\ell-1)}$ the cosine "
                 "between two inputs on arrival. With input mean normalisation none misses.",
       hypotheses="infinite width; measured at width 256, in eight networks, with 256 nearly orthogonal Gaussian inputs.",
       measures="largest difference of the share, over 16 layers", tolerance=0.08)
def missed():
    """Eight GmP networks of width 256, counted. They scatter more the deeper: at layer 16 the mean has a standard error of 0.026."""
    seen = np.mean([[(s == 0) | (s == 1) for s in shown.active_shares(False, SEED + k)] for k in range(8)], axis=(0, 2))
    law = [shown.missed(shown.cosine_before(k), shown.BATCH) for k in range(1, shown.LAYERS + 1)]
    centred = np.concatenate([shown.active_shares(True, SEED + k).ravel() for k in range(3)])
    assert 0.2 < centred.min() < centred.max() < 0.8, f"with normalisation shares reach {centred.min():.2f} to {centred.max():.2f}"
    return float(np.abs(seen - np.array(law)).max())


@claim("layer-radius", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.layer.mean_norm_radius",
       statement=r"With $\lambda=0$ and uniform directions, $r=\sqrt2$ keeps the mean square of the answers from layer to layer. With input mean normalisation in between "
                 r"it falls by the factor $1-1/\pi$ a layer; $r=\sqrt{2\pi/(\pi-1)}\approx1.71$ keeps it.",
       hypotheses="infinite width, inputs orthogonal on arrival.", measures="largest error of a factor", tolerance=1e-12)
def radius():
    """E relu^2 and (E relu)^2 by Gauss-Legendre quadrature."""
    node, weight = np.polynomial.legendre.leggauss(200)
    t, mass = 6 * (node + 1), 6 * weight * np.exp(-(6 * (node + 1)) ** 2 / 2) / sqrt(2 * pi)
    first, second = float((mass * t).sum()), float((mass * t**2).sum())
    kept = float(symbolic.mean_norm_radius()) ** 2
    return max(abs(2 * second - 1), abs(2 * (second - first**2) - (1 - 1 / pi)), abs(kept * (second - first**2) - 1))


@claim("layer-conv", of=CHAPTER, verdict="proved", source=CHEN_CODE, derivation="gmp.GmPConv2d", seed=SEED,
       statement=r"In a convolution each filter, flattened to $n=c_{\mathrm{in}}k_hk_w$ numbers, is a unit: the layer answers every patch of the image as "
                 r"$z=r\,\sigma(u(\theta)\cdot\mathrm{patch}+\lambda)$.", measures="largest error of an answer", tolerance=1e-12)
def convolution():
    """Patch by patch in plain loops, with padding and a stride."""
    layer = gmp.GmPConv2d(2, 4, 3, stride=2, padding=1, generator=source(SEED), dtype=f64)
    with torch.no_grad():
        layer.r.copy_(randn(4, seed=SEED + 1))
        layer.lam.copy_(randn(4, seed=SEED + 2))
    image = randn(2, 2, 7, 7, seed=SEED + 3)
    z, padded = layer(image).detach(), nn.functional.pad(image, (1, 1, 1, 1))
    worst = 0.0
    for i, j in product(range(z.shape[2]), range(z.shape[3])):
        patch = padded[:, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3].flatten(1)
        worst = max(worst, float((z[:, :, i, j] - written_out(layer, patch)).abs().max()))
    return worst


@claim("layer-cost", of=CHAPTER, verdict="verified", source=CHEN_CODE, derivation="gmp.GmPLinear", seed=SEED,
       statement="What a GmP layer computes beyond weights and bias in a training step, with $m$ units of $n$ inputs each and a batch of $B$, is a multiple of $nm$ for the angles "
                 "and a multiple of $Bm$ for the radii; the matrix products, $3Bnm$ multiplications, are the same.",
       measures="error of the entries per input and unit, across n", tolerance=0.0)
def work():
    """Entries written by all operations of a step, counted at three batch sizes and two numbers of inputs."""
    m, slopes = 32, {}
    for n in (64, 128):
        extra = {}
        for batch in (8, 16, 64):
            x, counts = torch.randn(batch, n, generator=source(SEED)), []
            for layer in (gmp.GmPLinear(n, m, generator=source(SEED)), nn.Sequential(nn.Linear(n, m), nn.ReLU())):
                with Work() as counted:
                    layer(x).sum().backward()
                counts.append(counted.entries)
            extra[batch] = counts[0] - counts[1]
        first, second = (extra[16] - extra[8]) / (8 * m), (extra[64] - extra[16]) / (48 * m)
        assert first == second, f"the extra work is not affine in the batch: {first} and {second} entries an input and unit"
        slopes[n], fixed = first, extra[8] - 8 * m * first
        assert 2 < fixed / (n * m) < 40, f"{fixed / (n * m):.1f} entries a weight"
    return abs(slopes[64] - slopes[128])


@claim("layer-weight-norm", of=CHAPTER, verdict="proved", source=SALIMANS.at("section 2.1"), derivation="symbolic.layer.turn_by_weights", seed=SEED,
       statement=r"In weight normalisation, $w=g\,v/|v|$, a step of gradient descent is at a right angle to $v$, so that $|v|^2$ grows by the square of the step every time and "
                 r"never shrinks; the unit turns at a rate proportional to $|g|/|v|^2$. A GmP direction has no length that could grow.",
       hypotheses="plain gradient descent, without weight decay.", measures="largest relative error of the growth", tolerance=1e-9)
def weight_normalisation():
    """100 steps of a real weight_norm layer on a random regression, each |v|^2 against the sum of squared steps before it."""
    torch_layer, x = nn.Linear(6, 4, dtype=f64), randn(30, 6, seed=SEED)
    with torch.no_grad():
        torch_layer.weight.copy_(randn(4, 6, seed=SEED + 1))
        torch_layer.bias.copy_(randn(4, seed=SEED + 2))
    layer, y = weight_norm(torch_layer), randn(30, 4, seed=SEED + 3)
    v = layer.parametrizations.weight.original1
    expected, worst = v.detach().square().sum(1), 0.0
    for _ in range(100):
        layer.zero_grad()
        (torch.relu(layer(x)) - y).square().mean().backward()
        expected = expected + (0.5 * v.grad).square().sum(1)
        with torch.no_grad():
            for p in layer.parameters():
                p -= 0.5 * p.grad
        worst = max(worst, float((v.detach().square().sum(1) / expected - 1).abs().max()))
    assert float(expected.max() / randn(4, 6, seed=SEED + 1).square().sum(1).max()) > 1.001, "nothing grew"
    return worst
