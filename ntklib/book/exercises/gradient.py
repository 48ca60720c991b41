"""Exercises of the chapter on the gradient angle.

Every right answer, and every number in a text, is computed here from ntklib.
"""
from itertools import pairwise
from math import acos, degrees, pi, radians, sqrt

import torch

from ntklib.angles import angle_map, embedding_angle, gradient_angle
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives

DEGREES = ("°", "deg", "degree", "degrees")


def _phi(degree: float, depth: int, slope: float = 0.0) -> float:
    """The gradient angle in degrees."""
    return degrees(gradient_angle(torch.tensor(radians(degree), dtype=torch.float64), depth, slope))


# ---- 1 -----------------------------------------------------------------------------------------------------
RIGHT = _phi(90, 1)

right_angle = Number(
    id="gradient.ex1", difficulty=1, title="A right angle, one hidden layer",
    question="Two orthogonal inputs enter a very wide ReLU network with one hidden layer. What angle do their gradients make? "
             r"Give degrees, to within $0.05^\circ$.",
    answer=RIGHT, tolerance=0.05, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(90, "That is the angle that the first matrix sees. The second one sees the embeddings, which are closer."),
        Wrong(degrees(acos(1 / pi)), r"That is the angle between the embeddings, $\arccos\frac1\pi$: the share of the last matrix alone. "
                                     "Average over both."),
        Wrong(radians(RIGHT), "That is the angle in radians; the question asks for degrees."),
        Wrong(degrees(acos(1 / 4)), r"That is the limit of infinite depth. Here $L=1$."),
        Wrong((90 + degrees(acos(1 / pi))) / 2, "You averaged two angles. It is the *cosines* that are averaged.", tolerance=0.04),
        Wrong(degrees(acos((1 / pi + 0.5) / 2)), r"The first term is $\cos\theta^{(0)}\left(1-\theta^{(0)}/\pi\right)$: the backward factor "
                                                 r"is $\frac12$, but it multiplies $\cos90^\circ$."),
    ),
    hints=(r"Two matrices, two terms: $\cos\theta^{(0)}\left(1-\frac{\theta^{(0)}}{\pi}\right)$ and $\cos\theta^{(1)}$, divided by 2.",
           r"The first is $0\cdot\frac12$. The second is $\cos g(\pi/2)=\frac1\pi$."),
    praise=r"$\cos\phi=\frac{1}{2\pi}$: closer than the inputs, further apart than the embeddings.",
    solution=rf"""
$\cos\phi_1=\frac12\left(\cos\frac\pi2\cdot\frac12+\frac1\pi\right)=\frac{{1}}{{2\pi}}$, so $\phi_1\approx{RIGHT:.2f}^\circ$.

For inputs that are this far apart the gradients are *closer* than the inputs. The first matrix still sees them at a right angle,
the second sees embeddings at ${degrees(acos(1 / pi)):.2f}^\circ$, and the mean of the two cosines lies between.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
PAIRS = (1, 30, 60, 90)
_RISE = {a: _phi(a, 1) - a for a in PAIRS}
_WHY = {a: rf"${a}^\circ$ becomes ${_phi(a, 1):.2f}^\circ$ with one hidden layer: "
        + ("further apart." if _RISE[a] > 0 else "closer.") for a in PAIRS}

who_comes_closer = Choice(
    id="gradient.ex2", difficulty=1, title="Who is not separated",
    question="A very wide ReLU network with one hidden layer sees four pairs of inputs. For which pair are the gradients *closer* "
             "together than the inputs?",
    options=tuple(Option(rf"${a}^\circ$", _RISE[a] < 0, _WHY[a]) for a in PAIRS),
    hints=("Look at the figure that compares gradients with inputs: on which side of the diagonal is the curve?",
           r"The curve crosses the diagonal near $67^\circ$."),
    praise=r"Separation is for similar inputs: it ends at $66.78^\circ$.",
    solution="| inputs | gradients, $L=1$ |\n|---|---|\n" + "\n".join(rf"| ${a}^\circ$ | ${_phi(a, 1):.2f}^\circ$ |" for a in PAIRS) + r"""

The two are equal at $66.78^\circ$. Below, one hidden layer separates the gradients, above it brings them closer: the network pulls every
pair towards $\arccos\frac14$, some from below and some from above.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
TINY, EIGHT = 0.1, 8
SMALL = _phi(TINY, EIGHT)

square_root = Number(
    id="gradient.ex3", difficulty=2, title="A tenth of a degree",
    question=rf"Two inputs are ${TINY}^\circ$ apart. How far apart are their gradients in a very wide ReLU network with {EIGHT} hidden layers? "
             "Give degrees; three per cent either way is near enough.",
    answer=SMALL, tolerance=0.03 * SMALL, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(sqrt(EIGHT * TINY / pi), r"The formula $\sqrt{L\theta/\pi}$ is for radians: convert the angle first, and the result back."),
        Wrong(sqrt(EIGHT * radians(TINY) / pi), "That is the angle in radians; the question asks for degrees.", tolerance=0.005),
        Wrong(SMALL / sqrt(2), r"You took $\phi^2=\frac{L\theta}{2\pi}$. But $1-\cos\phi\approx\frac{\phi^2}{2}$, so the 2 cancels.",
              tolerance=0.05),
        Wrong(SMALL / sqrt(EIGHT), r"That is one hidden layer. The depth enters as $\sqrt L$.", tolerance=0.05),
        Wrong(TINY, "For the linear network, yes. ReLU separates close inputs, and by a large factor.", tolerance=0.02),
        Wrong(TINY * EIGHT / pi, r"It is not linear in $\theta$: the square root is what makes the ratio $\phi/\theta$ grow without bound.",
              tolerance=0.02),
    ),
    hints=(r"$1-\cos\phi\approx\frac{L\theta}{2\pi}$ and $1-\cos\phi\approx\frac{\phi^2}{2}$.",
           rf"$\theta={radians(TINY):.6f}$ radians; take $\sqrt{{{EIGHT}\,\theta/\pi}}$, and turn it into degrees."),
    praise=rf"About {SMALL / TINY:.0f} times the angle between the inputs.",
    solution=rf"""
$\sqrt{{L\theta/\pi}}=\sqrt{{{EIGHT}\cdot{radians(TINY):.6f}/\pi}}={sqrt(EIGHT * radians(TINY) / pi):.5f}$ radians
$={degrees(sqrt(EIGHT * radians(TINY) / pi)):.2f}^\circ$. All terms give ${SMALL:.2f}^\circ$.

The ratio $\phi/\theta\approx\sqrt{{L/(\pi\theta)}}$ is {SMALL / TINY:.0f} here, and ten times as much for a pair that is a hundred times
as close. The premise "$g$ is nearly the identity, so nothing happens" is about embeddings.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
_GRID = torch.linspace(0.5, 179.5, 359, dtype=torch.float64).deg2rad()       # the first 180 are acute, or right
DEEP = 600
_BY_DEPTH = [gradient_angle(_GRID, depth) for depth in range(1, 13)]

statements = Multiple(
    id="gradient.ex4", difficulty=2, title="True or not",
    question=r"Which of these hold for infinitely wide ReLU networks, $L\ge1$?",
    options=(
        Option("For every pair of inputs, one more hidden layer moves the gradients further apart.",
               all(bool((b > a).all()) for a, b in pairwise(_BY_DEPTH)),
               rf"From a right angle they come closer at first: ${_phi(90, 1):.1f}^\circ$, ${_phi(90, 2):.1f}^\circ$, "
               rf"${_phi(90, 3):.1f}^\circ$ for one, two and three hidden layers."),
        Option(r"For a pair at $30^\circ$, each further layer moves the gradients further apart.",
               all(_phi(30, n + 1) > _phi(30, n) for n in range(12)),
               r"Below $66.78^\circ$ that holds at every depth."),
        Option(r"In a very deep network all pairs, except inputs in one direction, have gradients about $75.5^\circ$ apart.",
               all(abs(_phi(t, DEEP) - degrees(acos(1 / 4))) < 2 for t in (10, 90, 180)),
               r"$\cos\phi\to\frac14$, whatever the angle between the inputs."),
        Option("That limit is another one for leaky ReLU.", abs(_phi(90, DEEP, 0.1) - _phi(90, DEEP)) > 0.5,
               r"$\beta$ changes how fast, not where to: the mean of $p^3$ over $0\le p\le1$ is $\frac14$ for every slope but 1."),
        Option("Similar inputs are separated because their embeddings are.",
               _phi(1, 10) < degrees(embedding_angle(torch.tensor(radians(1), dtype=torch.float64), 10)),
               "Embeddings come closer with every layer. It is the backward factors, the units that only one of the inputs uses."),
        Option("The pair of inputs that is closest has the closest gradients, for data without negative coordinates.",
               all(bool((row[:180].diff() > 0).all()) for row in _BY_DEPTH),
               r"Such data are at most $90^\circ$ apart, and there $\phi_L$ increases with $\theta$."),
    ),
    hints=("Try a right angle and a small angle in the first figure, and follow the curves.",
           "For the fifth, look at the two factors: which of them differs from 1 when the inputs are close?"),
    praise="Deeper separates what is similar, and brings together what is not.",
    solution=rf"""
- **Every pair, every layer**: no. A right angle falls to $71.55^\circ$ at $L=11$ before it rises.
- **At $30^\circ$**: true, as for all pairs below $66.78^\circ$.
- **About $75.5^\circ$ in the end**: true, $\arccos\frac14$; opposite inputs included.
- **Another limit for leaky ReLU**: no. With slope $0.1$ and $L={DEEP}$ a right angle is at ${_phi(90, DEEP, 0.1):.1f}^\circ$, with slope 0 at ${_phi(90, DEEP):.1f}^\circ$.
- **Because of the embeddings**: no, they come closer. The backward factors separate.
- **The closest pair**: true. $\phi_L$ increases up to $142.6^\circ$ at least.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _path(theta, depth):
    path = [theta]
    for _ in range(depth):
        path.append(angle_map(path[-1]))
    return path


def _by_terms(theta, depth, back=lambda path, l, depth: range(l, depth), divide=lambda depth: depth + 1):
    path, total = _path(theta, depth), 0
    for l in range(depth + 1):
        term = path[l].cos()
        for k in back(path, l, depth):
            term = term * (1 - path[k] / pi)
        total = total + term
    return (total / divide(depth)).clamp(-1, 1).arccos()


def _last_only(theta, depth):
    """The embeddings' own angle."""
    return _path(theta, depth)[-1]


def _input_rate(theta, depth):
    path = _path(theta, depth)
    total = sum(path[l].cos() * (1 - theta / pi) ** (depth - l) for l in range(depth + 1))
    return (total / (depth + 1)).clamp(-1, 1).arccos()


def _formula_trials(generator):
    random = 0.01 + 3.1 * torch.rand(12, generator=generator, dtype=torch.float64)
    ends = torch.tensor([0.0, pi / 2, pi], dtype=torch.float64)
    return [Trial((random, depth), f"random angles and depth {depth}") for depth in (1, 2, 3, 8)] + [
        Trial((random, 0), "the linear model, depth 0"),
        Trial((ends, 4), "the angles 0, pi/2 and pi"),
        Trial((random.float(), 3), "float32 angles"),
        Trial((torch.tensor(1.0, dtype=torch.float64), 2), "one angle, a tensor of shape ()"),
    ]


formula = Function(
    id="gradient.ex5", difficulty=2, title="The sum over the matrices",
    question=r"Write the gradient angle $\phi_L$ of a ReLU network for a tensor of angles `theta` and a number of hidden layers `depth`. "
             "You may call `ntklib.angle_map`.",
    signature="phi(theta, depth)", truth=gradient_angle, trials=_formula_trials, atol=1e-7,   # an arccosine's digits near 0
    when_nan="Rounding can push a cosine above 1, where arccos is not defined: clamp it to $[-1,1]$.",
    mistakes=(
        Mistake(gives(_last_only), "That is the angle between the embeddings, the share of the last matrix. Where are the others?"),
        Mistake(gives(lambda theta, depth: _by_terms(theta, depth, lambda *_: ())),
                r"You averaged the forward factors alone. Each needs its backward factor $\prod\left(1-\theta^{(k)}/\pi\right)$."),
        Mistake(gives(lambda theta, depth: _by_terms(theta, depth, lambda path, l, depth: range(l + 1, depth))),
                r"The product starts one layer too late: the units of layer $\ell+1$ see $\theta^{(\ell)}$, so $k$ begins at $\ell$."),
        Mistake(gives(lambda theta, depth: _by_terms(theta, depth, lambda path, l, depth: range(l))),
                r"You multiplied the layers *below*. The gradient comes from above: $k$ runs from $\ell$ to $L-1$."),
        Mistake(gives(lambda theta, depth: _by_terms(theta, depth, divide=lambda depth: max(depth, 1))),
                r"There are $L+1$ matrices, the output's included: divide by $L+1$."),
        Mistake(gives(_input_rate),
                r"The units of a layer are split by the angle that *they* see, $\theta^{(k)}$, and not by that of the inputs."),
    ),
    hints=(r"First make the list $\theta^{(0)},\dots,\theta^{(L)}$. Then go from the output down, and carry the backward factor along.",
           r"Or go up: $N_{\ell+1}=\cos\theta^{(\ell+1)}+\left(1-\theta^{(\ell)}/\pi\right)N_\ell$ with $N_0=\cos\theta$, and $\cos\phi_L=N_L/(L+1)$."),
    praise="One pass over the layers is enough: that recursion is the tangent kernel's.",
    solution=r"""
From the input up, with $N_0=\cos\theta$ and $N_{\ell+1}=\cos\theta^{(\ell+1)}+\left(1-\frac{\theta^{(\ell)}}{\pi}\right)N_\ell$:

```python
def phi(theta, depth):
    N = theta.cos()
    for _ in range(depth):
        after = angle_map(theta)
        N = after.cos() + (1 - theta / math.pi) * N
        theta = after
    return (N / (depth + 1)).clamp(-1, 1).arccos()
```

One more layer multiplies all earlier shares by its backward factor and adds one share of its own. The arccosine loses the digits of
a small $\phi$; `ntklib.gradient_angle` carries $1-\cos\phi$ instead, by the same recursion.""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def _separation(s):
    return s * (1.5 + 2 * s + 0.75 * s**2) / (1 + s) ** 3


def _as_printed(s):
    return 1 - ((1 + s) ** 4 - 1) / (4 * s * (1 + s) ** 3)


def _law_trials(generator):
    wide = 10 ** (6 * torch.rand(16, generator=generator, dtype=torch.float64) - 3)
    return [
        Trial((wide,), "s from a thousandth to a thousand"),
        Trial((torch.tensor([1e-6, 1e-9, 1e-12, 1e-15], dtype=torch.float64),), "very small s"),
        Trial((torch.tensor([1e-4, 1e-2, 1.0, 30.0], dtype=torch.float32),), "float32 values of s"),
        Trial((torch.tensor(1.0, dtype=torch.float64),), "s = 1, a tensor of shape ()"),
    ]


def _is_printed(output, s):
    """Right up to the rounding of the printed formula."""
    few = 64 * torch.finfo(output.dtype).eps
    return bool((((output - _separation(s)).abs() <= few * (1 + 1 / s)) | output.isnan()).all())


law = Function(
    id="gradient.ex6", difficulty=3, title="The law, with all its digits",
    question=r"For small angles $\cos\phi$ is $\frac{(1+s)^4-1}{4s(1+s)^3}$. Write a function that gives $1-\cos\phi$ for a tensor of positive "
             r"numbers `s`, right to six digits also for $s=10^{-15}$.",
    signature="separation(s)", truth=_separation, trials=_law_trials,
    when_nan="Something is 0/0 for a very small $s$: cancel the factor $s$ by hand.",
    mistakes=(
        Mistake(_is_printed, r"That is the formula as printed. For small $s$ it subtracts $1$ from $(1+s)^4$, and then a number near 1 from "
                             r"1: both lose the digits. Expand $(1+s)^4$, cancel the $s$, and simplify $1-\cos\phi$ by hand."),
        Mistake(gives(lambda s: 1.5 * s), r"That is the first term for small $s$; it must hold for large $s$, too."),
        Mistake(gives(lambda s: 1 - _separation(s)), r"That is $\cos\phi$: the question asks for $1-\cos\phi$."),
    ),
    hints=(r"$(1+s)^4-1=4s+6s^2+4s^3+s^4$: divide by $4s$ before anything is subtracted.",
           r"$1-\cos\phi=\frac{(1+s)^3-\left(1+\frac32s+s^2+\frac14s^3\right)}{(1+s)^3}$; expand the numerator, and nothing cancels any more."),
    praise="All terms are positive: nothing can cancel.",
    solution=r"""
$(1+s)^4-1=4s+6s^2+4s^3+s^4$, so $\cos\phi=\frac{1+\frac32s+s^2+\frac14s^3}{(1+s)^3}$ and

$$1-\cos\phi=\frac{\frac32s+2s^2+\frac34s^3}{(1+s)^3}.$$

```python
def separation(s):
    return s * (1.5 + 2 * s + 0.75 * s**2) / (1 + s) ** 3
```

At $s=10^{-15}$ the printed formula has lost all digits, and this one none. The same idea keeps small angles alive all over
`ntklib`: carry $1-\cos$, as a sum of positive terms.""",
)

EXERCISES = (right_angle, who_comes_closer, square_root, statements, formula, law)
