"""Claims of the chapter "What makes a boundary jump".

The checks compare the library and the figures with searches over steps, with layers of torch that were really
moved, and with Monte Carlo: never with the formula that they are about.
"""
from itertools import pairwise
from math import asin, atan, degrees, pi, radians, sqrt

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from ntklib import boundaries
from ntklib.book.claims import Chapter, Discrepancy, claim
from ntklib.book.claims.sources import BOOK, CHEN, CHEN_REPLY
from ntklib.book.explorables import jumps as shown
from ntklib.gmp import GmPLinear

CHAPTER = Chapter("jumps", "What makes a boundary jump", "boundaries/14_jumps")
SEED = 1
f64 = torch.float64


# ---- independent means -------------------------------------------------------------------------------
def randn(*shape, seed: int) -> Tensor:
    """Standard normal numbers of a seed of their own."""
    return torch.randn(*shape, dtype=f64, generator=torch.Generator().manual_seed(seed))


def angle(u: Tensor, v: Tensor) -> Tensor:
    """The angle between rows, from the lengths of the sum and the difference of their unit vectors."""
    u, v = u / u.norm(dim=-1, keepdim=True), v / v.norm(dim=-1, keepdim=True)
    return 2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1))


def unit_in(way: str, theta: float, length: float, offset: float) -> nn.Module:
    """A torch layer with one unit of the plane in a parametrization: its normal at `theta` degrees, lambda = offset."""
    u = torch.tensor([[np.cos(radians(theta)), np.sin(radians(theta))]], dtype=f64)
    with torch.no_grad():
        if way == "GmP":
            layer = GmPLinear(2, 1, generator=torch.Generator().manual_seed(SEED), dtype=f64)
            layer.theta = torch.tensor([[radians(theta)]], dtype=f64)
            layer.lam.fill_(offset)
            return layer
        linear = nn.Linear(2, 1, dtype=f64)
        linear.weight.copy_(length * u)
        linear.bias.fill_(length * offset)
        if way == "weight norm":
            return weight_norm(linear)
        if way == "batch norm":
            norm = nn.BatchNorm1d(1, eps=0, dtype=f64)
            norm.bias.fill_(offset)
            return nn.Sequential(linear, norm)
    return linear


def white(count: int = 64) -> Tensor:
    """A batch of inputs of the plane with mean 0 and covariance 1, to the last digit."""
    x = randn(count, 2, seed=SEED)
    x = x - x.mean(0)
    return x @ torch.linalg.inv(torch.linalg.cholesky(x.T @ x / count)).T


def boundary_of(layer: nn.Module) -> boundaries.Boundary:
    """Its boundary; behind batch normalisation with the statistics of the white batch."""
    return boundaries.of(layer, batch=white()) if isinstance(layer, nn.Sequential) else boundaries.of(layer)


def crossings(value, count: int, n: int) -> Tensor:
    """Points where `value` of one unit vanishes, on random segments of R^n, by bisection."""
    low, high = 3 * randn(40 * count, n, seed=SEED), 3 * randn(40 * count, n, seed=SEED + 1)
    keep = (value(low) > 0) != (value(high) > 0)
    low, high = low[keep][:count], high[keep][:count]
    on = value(low) > 0
    for _ in range(60):
        middle = (low + high) / 2
        same = ((value(middle) > 0) == on)[:, None]
        low, high = torch.where(same, middle, low), torch.where(same, high, middle)
    return low


# ---- the claims --------------------------------------------------------------------------------------
@claim("jumps-exact-bound", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.jumps.rotation_steps",
       statement=r"A step $\varepsilon$ in the weights turns the boundary by at most $\arcsin\frac{|\varepsilon|}{|w|}$ if "
                 r"$|\varepsilon|<|w|$, and the step at a right angle to $w+\varepsilon$ turns it by just that. If $|\varepsilon|>|w|$, every "
                 r"turn up to $\pi$ is possible.",
       hypotheses="at least two inputs; their number does not enter.", seed=SEED, measures="relative error of the largest turn that a search finds", tolerance=1e-6)
def exact_bound():
    """All directions of a step in the plane, on a grid of a million; then 200 000 random steps in R^5 stay below."""
    t = torch.linspace(0, 2 * pi, 1_000_001, dtype=f64)
    circle = torch.stack([t.cos(), t.sin()], -1)
    w, worst = torch.tensor([3.0, 0.0], dtype=f64), 0.0
    for ratio in (0.01, 0.3, 0.9):
        found = float(angle(w[None], w + 3 * ratio * circle).max())
        worst = max(worst, abs(found / float(boundaries.rotation_bound(w, 3 * ratio * circle[0])) - 1))
    reached = float(angle(w[None], w + 3.3 * circle).max())
    assert reached > pi - 1e-5, f"steps longer than w turn it by at most {degrees(reached):.4f} degrees"
    w, eps = randn(200_000, 5, seed=SEED), randn(200_000, 5, seed=SEED + 1)
    over = float((angle(w, w + eps) - boundaries.rotation_bound(w, eps)).max())
    assert over < 1e-12, f"a random step turns the boundary by {over:.3g} more than the bound"
    return worst


@claim("jumps-cartesian", of=CHAPTER, verdict="holds under", source=CHEN.at("section 2, the propositions on SP, WN and BN"),
       derivation="boundaries.perturb", seed=SEED,
       statement="In standard form, and with weight or batch normalisation, the direction of a boundary is unstable: a small "
                 "step can turn it over.",
       hypotheses=r"$|\varepsilon|\gtrsim|w|$ (for weight normalisation $|v|$). For $|\varepsilon|<|w|$ all three obey the same bound, "
                  r"$\arcsin(|\varepsilon|/|w|)$, which is as good as that of GmP where $|w|\ge1$.",
       measures="largest error of a turn, in degrees", tolerance=1e-8)
def cartesian():
    """Real layers, moved by `perturb`, against the figure, for 6 lengths, 8 steps and 4 directions."""
    worst, turned = 0.0, {}
    for theta in (30, 120, 225, 300):
        for length in shown.LENGTHS:
            for delta in shown.STEPS:
                for way in ("standard", "weight norm", "batch norm"):
                    layer = unit_in(way, theta, length, shown.OFFSET)
                    before, after = (boundary_of(m).direction for m in (layer, boundaries.perturb(layer, delta)))
                    found = degrees(float(angle(before, after)))
                    stated = shown.moved(theta, length, delta)[way][0]
                    worst = max(worst, abs(found - float(shown._apart(stated, theta))))
                    turned[theta, length, delta] = found
                    if sqrt(2) * delta < length:
                        limit = degrees(asin(sqrt(2) * delta / length))
                        assert found <= limit + 1e-9, f"{way} turned by {found:.6g} degrees, more than {limit:.6g}"
    flipped = turned[225, 0.001, 0.1]
    assert flipped > 179, f"a step 100 times the weights turned the opposite unit by {flipped:.3g} degrees only"
    return worst


@claim("jumps-batch-norm-offset", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.jumps.batch_norm_offset",
       statement=r"The offsets differ. In standard form $\lambda=b/|w|$ and with weight normalisation $b/g$ grow without bound as "
                 r"the weights, or $g$, shrink. Behind batch normalisation $\lambda=s\beta/\gamma-m$ depends on the direction of $w$ alone, "
                 r"through the mean $m$ and the deviation $s$ of the data along it; it grows as $\gamma\to0$.",
       seed=SEED, measures="largest relative error of $\\lambda$", tolerance=1e-10)
def batch_norm_offset():
    """Moved layers of torch against the figure's numbers; then a unit behind batch norm with its weights shrunk to 1e-6."""
    worst = 0.0
    for theta in (30, 225):
        for length in shown.LENGTHS:
            for delta in shown.STEPS:
                for way in shown.WAYS:
                    after = float(boundary_of(boundaries.perturb(unit_in(way, theta, length, shown.OFFSET), delta)).lam)
                    stated = float(shown.moved(theta, length, delta)[way][1])
                    worst = max(worst, abs(after - stated) / abs(stated))
    small, usual = (float(boundary_of(unit_in("batch norm", 30, length, shown.OFFSET)).lam) for length in (1e-6, 1.0))
    assert abs(small - usual) < 1e-9, f"the weights' length moved the offset from {usual:.9f} to {small:.9f}"
    return worst


@claim("jumps-gmp", of=CHAPTER, verdict="verified", source=CHEN.at("Theorem 3.7"), derivation="boundaries.perturb", seed=SEED,
       statement=r"In geometric form a step $\varepsilon$ in the angles turns the boundary by at most $|\varepsilon|$, whatever the "
                 r"unit, and a step $d\lambda$ moves its location by at most $|d\lambda|+|\lambda|\,|\varepsilon|$.",
       hypotheses="the proof is in the chapter on the angle theorem.", measures="largest excess over the bounds", tolerance=1e-9)
def gmp():
    """2000 units of R^2 to R^40 with steps from 1e-3 to 3, moved by `perturb`."""
    worst = 0.0
    for k, n in enumerate((2, 3, 5, 10, 40)):
        for size in (1e-3, 0.1, 1.0, 3.0):
            layer = GmPLinear(n, 100, generator=torch.Generator().manual_seed(SEED + k), dtype=f64)
            with torch.no_grad():
                layer.lam.copy_(randn(100, seed=SEED + n))
            eps, step = size * randn(100, n - 1, seed=SEED + 2 * n) / sqrt(n - 1), 0.1 * randn(100, seed=SEED + 3 * n)
            before, after = boundaries.of(layer), boundaries.of(boundaries.perturb(layer, {"latitude": eps, "lam": step}))
            length = eps.norm(dim=1)
            shift = (after.location - before.location).norm(dim=1)
            worst = max(worst, float((angle(before.normal, after.normal) - length).max()),
                        float((shift - step.abs() - before.lam.abs() * length).max()))
    return worst


@claim("jumps-fifty-percent", of=CHAPTER, verdict="refuted", source=CHEN_REPLY.at("on randomly oriented perturbations"),
       derivation="symbolic.jumps.mean_turn", seed=SEED,
       statement=r"“There would still be a 50 % chance that the angle between them is greater than 90 degrees, in which case the "
                 r"gradient update will be unstable.”",
       discrepancy=Discrepancy(
           prints=r"Half of all random steps $\varepsilon$ make an angle of more than $90^\circ$ with $w$; for these the direction of the "
                  "boundary changes significantly.",
           shows=rf"The premise is right, the conclusion is not: with $|\varepsilon|=|w|/10$ in $\mathbb R^{{1000}}$ the boundary turns by "
                 rf"${degrees(atan(0.1)):.1f}^\circ$ on average and never by more than ${degrees(asin(0.1)):.2f}^\circ$, while half of the "
                 r"steps do point backwards. What decides is the length of the step, not its angle with $w$.",
           remains=r"Steps longer than $w$ can turn a boundary over, and then backward steps are the ones that do: in many dimensions half of "
                   r"them turn it by more than $\arctan(|\varepsilon|/|w|)$."),
       measures=r"error of the mean turn, in degrees", tolerance=0.05)
def fifty_percent():
    """Ten thousand random steps of R^1000, counted and measured; their standard error is 0.0002 degrees."""
    w, eps = randn(10_000, 1000, seed=SEED), randn(10_000, 1000, seed=SEED + 1)
    eps *= 0.1 * w.norm(dim=1, keepdim=True) / eps.norm(dim=1, keepdim=True)
    back = float(((w * eps).sum(1) < 0).double().mean())
    assert abs(back - 0.5) < 0.02, f"{back:.1%} of the steps point backwards"
    turned = angle(w, w + eps).rad2deg()
    assert float(turned.max()) < degrees(asin(0.1)), f"one step turned the boundary by {float(turned.max()):.3f} degrees"
    return abs(float(turned.mean()) - shown.random_step(1000, 0.1)["mean"])


@claim("jumps-random-mean", of=CHAPTER, verdict="proved", source=BOOK, derivation="symbolic.jumps.mean_turn", seed=SEED,
       statement=r"For a random direction of the step the turn tends to $\arctan(|\varepsilon|/|w|)$ as the number of inputs grows: almost "
                 r"all steps are nearly at a right angle to $w$.",
       measures="standard errors between the integral and Monte Carlo", tolerance=4.0)
def random_mean():
    """Monte Carlo in R^2 to R^100 at four lengths; and the integral at n = 1000 against its limit."""
    worst = 0.0
    for n in (2, 3, 10, 100):
        w = torch.zeros(n, dtype=f64)
        w[0] = 1
        e = randn(20_000, n, seed=SEED + n)
        e = e / e.norm(dim=1, keepdim=True)
        for ratio in (0.1, 0.5, 1, 5):
            t = angle(w[None], w + ratio * e).rad2deg()
            worst = max(worst, abs(float(t.mean()) - shown.random_turn(n, ratio)["mean"]) / float(t.std()) * sqrt(len(t)))
    for ratio in shown.RATIOS:
        off = abs(shown.random_turn(1000, ratio)["mean"] - degrees(atan(ratio)))
        assert off < 0.03, f"at ratio {ratio} the mean is {off:.3g} degrees from its limit"
    return worst


@claim("jumps-layer-norm", of=CHAPTER, verdict="corrected", source=CHEN_REPLY.at("on other normalisations"),
       derivation="symbolic.jumps.layer_norm_quadric", seed=SEED,
       statement=r"Behind layer normalisation with $\beta\ne0$ the boundary is not a hyperplane: squared, it is a quadric in $x$, and a "
                 r"cone if the layer has no bias. With $\beta=0$ it is the hyperplane with the normal $w_i-\bar w$.",
       discrepancy=Discrepancy(
           prints="“The proof for Layernorm is the same as the proof for BN, except that the expectation and variance operators are now "
                  "computed along the feature axis.”",
           shows=r"Along the feature axis the mean and the deviation depend on the input itself: $(w_i-\bar w)\cdot x=-\frac{\beta_i}{\gamma_i}"
                 r"\operatorname{std}_j(w_j\cdot x)$. The right side is no constant, so that the set is no hyperplane and has no one normal.",
           remains=r"For $\beta=0$ the argument applies, with $w_i-\bar w$ in place of $w_i$: the bound is "
                   r"$\arcsin(|\varepsilon_i-\bar\varepsilon|/|w_i-\bar w|)$. A step that is the same for all units does not move such a boundary at all."),
       measures=r"flatness with $\beta=0$, as a singular value", tolerance=1e-9)
def layer_norm():
    """Points of both boundaries by bisection of the network itself; the smallest singular value of (x, 1) tells a hyperplane."""
    net = nn.Sequential(nn.Linear(4, 6, bias=False), nn.LayerNorm(6, eps=0)).double()
    flat = {}
    for shift in (0.0, 0.4):
        with torch.no_grad():
            net[0].weight.copy_(randn(6, 4, seed=SEED))
            net[1].bias.fill_(shift)
            x = crossings(lambda x: net(x)[:, 0], 60, 4)
        flat[shift] = float(torch.linalg.svdvals(torch.cat([x, torch.ones(len(x), 1, dtype=f64)], 1))[-1])
        cone = boundaries.layer_norm_cone(net)
        off = float((cone.value(x)[:, 0]).abs().max())
        assert off < 1e-9, f"the library's cone misses the boundary by {off:.3g}"
        assert float(net(5 * x)[:, 0].detach().abs().max()) < 1e-9, "5x left the boundary of a layer without bias by more than 1e-9"
    assert flat[0.4] > 0.1, f"a hyperplane fits the cone to {flat[0.4]:.3g}"
    return flat[0.0]


@claim("jumps-larger-scale", of=CHAPTER, verdict="proved", source=BOOK, derivation="boundaries.rotation_bound", seed=SEED,
       statement=r"Multiplying $w$ and $b$ by $s>1$, and dividing the output weight by $s$, changes no function and no boundary, and "
                 r"divides the sine of the largest turn for a given $|\varepsilon|<|w|$ by $s$. The gradient in $w$ shrinks by $s$ too, so that in gradient "
                 r"descent at one learning rate the turn falls as $1/s^2$; with Adam, whose steps have a fixed size, as $1/s$.",
       hypotheses="for small turns; activation ReLU.", measures="largest relative error of a ratio", tolerance=0.02)
def larger_scale():
    """One step of each optimizer on the same function at scales 1 and 3; the ratios of the largest turns."""
    x, y = randn(50, 3, seed=SEED), randn(50, seed=SEED + 1)
    W0, b0, a0 = randn(20, 3, seed=SEED + 2), randn(20, seed=SEED + 3), randn(20, seed=SEED + 4)
    turned, answers = {}, {}
    for s in (1.0, 3.0):
        for optimizer in (torch.optim.SGD, torch.optim.Adam):
            W, b, a = (p.clone().requires_grad_() for p in (s * W0, s * b0, a0 / s))
            f = torch.relu(x @ W.T + b) @ a
            answers[s] = f.detach()
            (f - y).square().mean().backward()
            optimizer([W, b, a], lr=1e-4).step()
            turned[optimizer, s] = float(angle(s * W0, W.detach()).max())
    off = float((answers[3.0] - answers[1.0]).abs().max())
    assert off < 1e-12, f"the scaled network is another function, by {off:.3g}"
    ratios = {o: turned[o, 1.0] / turned[o, 3.0] for o in (torch.optim.SGD, torch.optim.Adam)}
    bound = [boundaries.rotation_bound(s * W0[0], 1e-3 * W0[1]).sin() for s in (1.0, 3.0)]
    return max(abs(ratios[torch.optim.SGD] / 9 - 1), abs(ratios[torch.optim.Adam] / 3 - 1), abs(float(bound[0] / bound[1]) / 3 - 1))


@claim("jumps-larger-variance", of=CHAPTER, verdict="open", source=CHEN_REPLY.at("on larger initial variance"),
       derivation="boundaries.rotation_bound",
       statement=r"“Could this instability issue also be solved by initializing the weights in SP to have larger variance relative to the learning rate?” "
                 r"“Unfortunately, no”: the final performance would be very poor. On this chapter's regression weights times 3 divide the largest turn by 2.5 or more. With "
                 r"compensated output weights that costs less than a fifth in error; 10 times, not compensated, more than doubles the error.",
       hypotheses="one task, 24 units, 300 steps of Adam, medians of 6 runs: too little to decide the general statement.",
       measures="error after training at 3 times the scale, over that at 1", tolerance=1.2)
def larger_variance():
    """The recorded runs of the figure, read at scales 1, 3 and 10."""
    kept, plain = shown.scaled_runs(True), shown.scaled_runs(False)
    one, three, ten = (shown.SCALES.index(s) for s in (1.0, 3.0, 10.0))
    for runs in (kept, plain):
        calmer = runs["largest"][one] / runs["largest"][three]
        assert calmer > 2.5, f"three times the weights divide the largest turn by {calmer:.2f} only"
    worse = plain["error"][ten] / plain["error"][one]
    assert worse > 2, f"ten times the weights, not compensated, make the error {worse:.2f} times as large"
    return kept["error"][three] / kept["error"][one]


@claim("jumps-one-input", of=CHAPTER, verdict="verified", source=CHEN_REPLY.at("on spread-out activations"), derivation="boundaries.of", seed=SEED,
       statement=r"With one input the location $\phi=-b/w$ of a unit in standard form leaves every bound as $w$ passes through zero, and "
                 r"comes back from the other side. In geometric form $|d\phi|=|d\lambda|$, and the sign of the weight is fixed.",
       measures="largest error of a location", tolerance=1e-9)
def one_input():
    """A weight walked from 0.02 to -0.02 in steps of 1e-3 that miss zero; then a GmP unit with one input."""
    layer = nn.Linear(1, 1, dtype=f64)
    places = []
    for k in range(41):
        w = 0.02 - 1e-3 * k + 5e-4
        with torch.no_grad():
            layer.weight.fill_(w)
            layer.bias.fill_(-0.1)
        places.append(float(boundaries.of(layer).location))
        off = abs(w * places[-1] - 0.1)
        assert off < 1e-12, f"the location is off its boundary by {off:.3g}"
    jump = max(abs(a - b) for a, b in pairwise(places))
    assert jump > 300, f"the largest jump is {jump:.1f}"
    unit = GmPLinear(1, 1, generator=torch.Generator().manual_seed(SEED), dtype=f64)
    steps = [boundaries.of(boundaries.perturb(unit, {"lam": d})).location for d in (0.0, 0.3)]
    return abs(float((steps[1] - steps[0]).abs()) - 0.3)
