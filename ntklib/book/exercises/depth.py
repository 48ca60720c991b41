"""Exercises of the chapter on depth.

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import degrees, log, pi, radians

import torch

from ntklib.angles import angle_between, angle_map, embedding_angle
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.kernels import nngp_gram


def _after(degree: float, depth: int) -> float:
    """theta^(depth) in degrees."""
    return degrees(embedding_angle(torch.tensor(radians(degree), dtype=torch.float64), depth))


def _layers_until(start: float, goal: float) -> int:
    """How many layers take `start` degrees to `goal` degrees or less."""
    z, depth = torch.tensor(radians(start), dtype=torch.float64), 0
    while z > radians(goal):
        z, depth = angle_map(z), depth + 1
    return depth


# ---- 1 -----------------------------------------------------------------------------------------------------
GOAL = 20
ENOUGH, TRULY = 540 // GOAL - 3, _layers_until(180, GOAL)

under_the_ceiling = Number(
    id="depth.ex1", difficulty=1, title="Under the ceiling",
    question=rf"By the bound $540^\circ/(L+3)$: how many wide ReLU layers are enough for any two inputs whatever to be at "
             rf"most ${GOAL}^\circ$ apart?",
    answer=ENOUGH, tolerance=0.4, unit="layers", units=("layers",),
    wrong=(
        Wrong(540 / GOAL, "That is $L+3$. The inputs start at an angle, not at infinity: subtract 3."),
        Wrong(TRULY, rf"That is the true number for opposite inputs, by iteration. The question asks what the *bound* "
                     rf"promises, which is a little more: ${ENOUGH}$."),
        Wrong(4, r"Halving four times would do: the first layer halves $180^\circ$. But the later ones take ever smaller shares."),
        Wrong(3 * pi / GOAL, r"The $540^\circ$ are $3\pi$ radians, and you divided radians by degrees."),
        Wrong(ENOUGH - 1, "One layer more: the bound there is still just above the goal."),
    ),
    hints=(rf"Solve $\frac{{540}}{{L+3}}\le {GOAL}$ for $L$.",
           rf"$L+3\ge 540/{GOAL}={540 // GOAL}$: how many layers is that?"),
    praise=rf"In truth {TRULY} layers do it: the bound is off by the logarithm.",
    solution=rf"""
$\frac{{540}}{{L+3}}\le{GOAL}$ means $L+3\ge{540 // GOAL}$, that is, $L\ge{ENOUGH}$.

The bound holds for every pair, so it is worst for the widest one, opposite inputs. Iterating $g$ from $180^\circ$ takes
${TRULY}$ layers. The gap is the logarithm in $\frac{{1}}{{\theta^{{(L)}}}}=\frac{{L}}{{3\pi}}+\frac{{\ln L}}{{2\pi}}+O(1)$, which the bound leaves
out.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
NEAR, FAR, DEEP = 2, 100, 1000
RATIO = _after(FAR, DEEP) / _after(NEAR, DEEP)
_WHY = {
    50: "That is the ratio before the first layer. The wide pair loses much of its angle in the first few layers, the close one "
        "hardly anything.",
    7: r"That is about $\sqrt{50}$, and much of the ratio is still there. Look at where both lines run in the figure of the law.",
    1.25: rf"Here is what is left: ${_after(FAR, DEEP):.3f}^\circ$ and ${_after(NEAR, DEEP):.3f}^\circ$.",
    1: "Only in the limit. The order of two pairs is kept at every depth, so the ratio stays above 1.",
}
_NEAREST = min(_WHY, key=lambda r: abs(r - RATIO))

forgotten = Choice(
    id="depth.ex2", difficulty=1, title="What a thousand layers remember",
    question=rf"One pair of inputs is ${NEAR}^\circ$ apart, another ${FAR}^\circ$. After {DEEP} wide ReLU layers, how many times "
             "as large is the second angle as the first?",
    options=tuple(Option(f"exactly {r}" if r == 1 else f"about {r}", r == _NEAREST, _WHY[r]) for r in _WHY),
    hints=(r"Compare both with the ceiling $540^\circ/(L+3)$: which of the two pairs has come near it?",
           r"Use $1/\theta^{(L)}\approx1/\theta+L/(3\pi)$, with $\theta$ in radians, for both."),
    praise="A ratio of 50 has become a ratio of 1.25: this is what deep embeddings lose.",
    solution=rf"""
Reciprocals add: $\frac{{1}}{{\theta^{{(L)}}}}\approx\frac1\theta+\frac{{L}}{{3\pi}}$. With $L/(3\pi)={DEEP / (3 * pi):.1f}$ the close pair has
${1 / radians(NEAR):.1f}+{DEEP / (3 * pi):.1f}$, the wide one ${1 / radians(FAR):.1f}+{DEEP / (3 * pi):.1f}$: the ratio is about
${(1 / radians(NEAR) + DEEP / (3 * pi)) / (1 / radians(FAR) + DEEP / (3 * pi)):.2f}$. Iterating $g$ gives ${RATIO:.2f}$.

Where a pair started is a constant in its reciprocal angle, and depth adds the same large number to all of them.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
CLOSE = 3
HALF = _layers_until(CLOSE, CLOSE / 2)

half_life = Number(
    id="depth.ex3", difficulty=2, title="Half of a small angle",
    question=rf"Two inputs are ${CLOSE}^\circ$ apart. About how many wide ReLU layers does it take to halve their angle? "
             "Five per cent either way is near enough.",
    answer=HALF, tolerance=0.05 * HALF, unit="layers", units=("layers",),
    wrong=(
        Wrong(3 * pi / CLOSE, r"The formula is for radians: convert $3^\circ$ first.", tolerance=0.1),
        Wrong(1, r"Only opposite inputs are halved by one layer. A pair at $3^\circ$ loses about half a percent of its angle.",
              tolerance=0.5),
        Wrong(0.5 * 540 / CLOSE, "That many layers would do it if each took as much as the first one. They take less and less.",
              tolerance=4),
        Wrong(2 * 540 / CLOSE, r"Set $1+s=2$ in $\theta/(1+s)$: then $s=L\theta/(3\pi)$ is 1, not 2.", tolerance=8),
        Wrong(log(2) * 540 / CLOSE, "That would be right if the share that is lost stayed the same, as in radioactive decay. It "
                                    "falls with the angle.", tolerance=4),
    ),
    hints=(r"Use the continuous model $\theta^{(L)}\approx\frac{\theta}{1+s}$ with $s=L\theta/(3\pi)$.",
           r"The angle is halved where $s=1$: $L=3\pi/\theta$, or $540$ over the angle in degrees."),
    praise=rf"$540/{CLOSE}={540 // CLOSE}$. The next halving takes twice as long.",
    solution=rf"""
In the continuous model the angle is halved where $s=1$, that is, after $L=3\pi/\theta=540/{CLOSE}={540 // CLOSE}$ layers. By iteration it is
{HALF}: the logarithm saves a layer.

The half-life is inversely proportional to the angle. So the next halving takes twice as many layers, and that is a power law:
an exponential would take the same number each time.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
_Z = torch.linspace(0, pi, 1001, dtype=torch.float64).clamp(max=pi)
_DEEP = embedding_angle(_Z, 100)
_SHARE = [_after(d, 1) / d for d in (1, 100)]
_PAIR = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)


def _far_apart(activation: str) -> bool:
    """Whether ten layers leave the pair more than ten degrees apart."""
    K = nngp_gram(_PAIR, depth=10, activation=activation)
    return bool(K[0, 1] / K[0, 0] < torch.tensor(radians(10)).cos())


_OUT = [torch.relu(s * torch.tensor([[1.0, 2], [-2, 1], [3, -1]], dtype=torch.float64) @ _PAIR.T).T for s in (1, 2)]

statements = Multiple(
    id="depth.ex4", difficulty=2, title="True or not",
    question="Which of these hold for infinitely wide random ReLU networks without biases?",
    options=(
        Option("Of two pairs of inputs, the one that starts closer is closer at every depth.", bool((_DEEP.diff() > 0).all()),
               "$g$ is increasing, so each layer keeps the order, and any number of them."),
        Option("Every layer takes the same share of every angle.", abs(_SHARE[0] - _SHARE[1]) < 0.01,
               r"A pair at $\theta$ loses about the share $\theta/(3\pi)$: ten times the angle, ten times the share."),
        Option("The ratio of the angles of two pairs tends to 1.", _after(180, 1000) / _after(10, 1000) < 1.06,
               r"All angles are $\frac{3\pi}{L}(1+\dots)$, whatever they started from."),
        Option("Weights of twice the size keep inputs apart for longer.",
               abs(float(angle_between(*_OUT[0]) - angle_between(*_OUT[1]))) > 1e-9,
               "ReLU is homogeneous: twice the weights make outputs twice as long, and leave every angle as it is."),
        Option("Some finite number of layers makes all inputs exactly parallel.", bool((_DEEP[1:] <= 0).any()),
               r"$g(z)=0$ only at $z=0$: the angles tend to 0 and never are 0."),
        Option("The same happens with tanh in place of ReLU, each layer scaled to keep lengths.", not _far_apart("tanh"),
               r"For tanh $\chi=1.18>1$: close pairs come apart, and all angles tend to $90^\circ$."),
    ),
    hints=("Two of them follow from $g$ being increasing and having one fixed point, one from the rate.",
           r"For the last one look at $\chi$ in the figure on order and chaos; for the fourth, at $\max(2t,0)$."),
    praise="Order is kept, contrast is lost, and the size of the weights has no say.",
    solution=r"""
- **Order is kept**: a composition of increasing functions increases. True.
- **The same share**: no, the share is $\theta/(3\pi)+\dots$, proportional to the angle.
- **The ratio tends to 1**: both angles are $3\pi/L$ to leading order. True.
- **Larger weights**: no, $\max(2t,0)=2\max(t,0)$. Lengths change, angles do not.
- **Exactly parallel**: no, $0$ is reached in the limit alone.
- **tanh as well**: no. With lengths kept its $\chi$ is above 1, and inputs are driven apart.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _angles(X, depth):
    return embedding_angle(angle_between(X[:, None], X[None]), depth)


def _rows(n, dim, generator, dtype=torch.float64):
    return torch.randn(n, dim, generator=generator, dtype=torch.float64).to(dtype)


def _collapse_trials(generator):
    twins = _rows(1, 5, generator).repeat(3, 1) + 1e-8 * _rows(3, 5, generator)
    return [
        Trial((_rows(6, 4, generator), 1), "six random inputs and one layer"),
        Trial((_rows(6, 4, generator), 7), "six random inputs and seven layers"),
        Trial((_rows(4, 3, generator), 0), "no layer at all"),
        Trial((twins, 3), "inputs that nearly coincide"),
        Trial((torch.tensor([[1.0, 2.0], [-2.0, -4.0], [3.0, 6.0]], dtype=torch.float64), 2), "parallel and opposite inputs"),
        Trial((_rows(5, 8, generator, torch.float32), 3), "float32 inputs"),
    ]


def _cosine(X):
    return (X @ X.T) / X.norm(dim=1) / X.norm(dim=1)[:, None]


def _is_arccos(output, X, depth):
    """The cosines are right to their last digits: the angles were lost on the way."""
    few = 64 * torch.finfo(output.dtype).eps
    lost = output.isnan()
    return not bool(lost.all()) and bool((((output.cos() - _angles(X, depth).cos()).abs() <= few) | lost).all())


def _by_model(X, depth):
    theta = angle_between(X[:, None], X[None])
    return theta / (1 + depth * theta / (3 * pi))


collapse = Function(
    id="depth.ex5", difficulty=2, title="A whole data set, layer by layer",
    question="Write a function that takes inputs `X`, an $(n, d)$ tensor, and a number of layers `depth`, and gives the "
             "$(n, n)$ tensor of the angles between their embeddings. It must be right to six digits also for inputs that are "
             r"$10^{-8}$ apart. You may call `ntklib.angle_between` and `ntklib.angle_map`.",
    signature="collapse(X, depth)", truth=_angles, trials=_collapse_trials, atol=1e-15,
    when_nan="Rounding can push a cosine above 1, where arccos is not defined. Clamping hides the NaN, but a cosine near 1 has "
             "lost the digits of a small angle.",
    mistakes=(
        Mistake(gives(lambda X, depth: angle_map(angle_between(X[:, None], X[None]))),
                "That is one layer, whatever `depth` says: apply the map `depth` times."),
        Mistake(gives(lambda X, depth: _angles(X, depth + 1)), "That is one layer too many: `depth=0` must give the inputs' own angles."),
        Mistake(gives(_by_model), "That is the continuous model, which is an upper bound: it leaves out the logarithm. Iterate the map."),
        Mistake(gives(lambda X, depth: _angles(X, depth).rad2deg()), "Those are degrees: give radians."),
        Mistake(_is_arccos, "Their cosines are right and the small angles are not: somewhere an arccosine was taken of a cosine near "
                            "1. Keep the angle itself from layer to layer."),
    ),
    hints=("`angle_between` broadcasts over its leading dimensions: which shapes make all pairs?",
           "`angle_between(X[:, None], X[None])` is the table for no layer. Then apply `angle_map` to it `depth` times."),
    praise="One table of angles is all that a wide ReLU network keeps of a data set.",
    solution=r"""
```python
from ntklib import angle_between


def collapse(X, depth):
    theta = angle_between(X[:, None], X[None])
    for _ in range(depth):
        theta = angle_map(theta)
    return theta
```

`X[:, None]` has the shape $(n, 1, d)$ and `X[None]` the shape $(1, n, d)$: they broadcast to all pairs. No cosine appears
anywhere, so a pair that is $10^{-8}$ apart keeps its digits. (`embedding_angle(theta, depth)` is the loop, and carries what
each layer rounds off.)""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def _estimate(theta, depth, weight=1 / (2 * pi), inner=None):
    s = depth * theta / (3 * pi)
    return 1 / (1 / theta + depth / (3 * pi) + weight * torch.log1p(s if inner is None else inner(s)))


def _estimate_trials(generator):
    random = 0.1 * torch.rand(12, generator=generator, dtype=torch.float64).clamp(min=1e-3)
    return [Trial((random, depth), f"small angles and {depth} layers") for depth in (10, 100, 1000)] + [
        Trial((random.float(), 30), "float32 angles and 30 layers"),
        Trial((torch.tensor(0.05, dtype=torch.float64), 300), "one angle, a tensor of shape ()"),
    ]


with_logarithm = Function(
    id="depth.ex6", difficulty=3, title="The logarithm that the model leaves out",
    question=r"The continuous model $\theta/(1+s)$ is up to 0.6 % too large for angles below $0.1$. Write an estimate of "
             r"$\theta^{(L)}$ without a loop over the layers that is right to $0.05$ % for angles `theta` up to $0.1$ and any "
             r"`depth`. Start from $\frac{1}{g(z)}=\frac1z+\frac{1}{3\pi}+\frac{z}{6\pi^2}+\dots$",
    signature="estimate(theta, depth)", truth=_estimate, trials=_estimate_trials, rtol=5e-4,
    when_nan="Is a logarithm taken of something that is not positive?",
    mistakes=(
        Mistake(gives(lambda theta, depth: _estimate(theta, depth, 0.0)),
                "That is the continuous model itself. What do the terms $z/(6\\pi^2)$ of all layers add up to?"),
        Mistake(gives(lambda theta, depth: theta - depth * theta**2 / (3 * pi)),
                r"The first two terms of the series hold for small $L\theta$ only. Work with the reciprocal."),
        Mistake(gives(lambda theta, depth: _estimate(theta, depth, 1 / (3 * pi))),
                r"The logarithm is right and its factor is not: $\frac{1}{6\pi^2}\cdot3\pi=\frac{1}{2\pi}$."),
        Mistake(gives(lambda theta, depth: _estimate(theta, depth, 1 / (6 * pi**2))),
                r"The factor of the logarithm is $\frac{1}{6\pi^2}$ times $3\pi$, since $\int\frac{\theta\,d\ell}{1+l\theta/(3\pi)}="
                r"3\pi\ln(1+s)$."),
        Mistake(gives(lambda theta, depth: 1 / (1 / theta + depth / (3 * pi) + depth * theta / (6 * pi**2))),
                r"You added $\theta/(6\pi^2)$ in every layer, but the angle shrinks: put $\frac{\theta}{1+\ell\theta/(3\pi)}$ for the "
                r"angle in layer $\ell$, and integrate."),
    ),
    hints=(r"Sum the third term over the layers, with the model's own angle $\frac{\theta}{1+\ell\theta/(3\pi)}$ in layer $\ell$.",
           r"$\frac{1}{6\pi^2}\int_0^L\frac{\theta\,d\ell}{1+\ell\theta/(3\pi)}=\frac{1}{2\pi}\ln\left(1+\frac{L\theta}{3\pi}\right)$."),
    praise="One logarithm makes the estimate twenty times as good.",
    solution=r"""
Each layer adds $\frac{1}{3\pi}+\frac{z}{6\pi^2}+O(z^2)$ to the reciprocal angle. The first part adds up to $\frac{L}{3\pi}$. In the
second, take the angle from the model and replace the sum by an integral:

$$\frac{1}{6\pi^2}\int_0^L\frac{\theta\,d\ell}{1+\ell\theta/(3\pi)}=\frac{1}{2\pi}\ln\left(1+\frac{L\theta}{3\pi}\right).$$

```python
def estimate(theta, depth):
    s = depth * theta / (3 * math.pi)
    reciprocal = 1 / theta + depth / (3 * math.pi)
    return 1 / (reciprocal + torch.log1p(s) / (2 * math.pi))
```

As $L\to\infty$ this is $\frac{L}{3\pi}+\frac{\ln L}{2\pi}+O(1)$, the true rate.""",
)

EXERCISES = (under_the_ceiling, forgotten, half_life, statements, collapse, with_logarithm)
