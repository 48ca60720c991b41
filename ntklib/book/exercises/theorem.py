"""Exercises of chapter "The angle theorem, and the argument over it".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import cos, degrees, pi, radians, sin

import torch

from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.sphere import curve_length, from_angles, geodesic, metric, uniform_angles

DEGREES = ("°", "deg", "degree", "degrees")


def _angles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).deg2rad()


def _turned(theta, eps):
    return geodesic(from_angles(theta), from_angles(theta + eps))


def _norm(theta, eps):
    return (metric(theta) * eps**2).sum(-1).sqrt()


# ---- 1 -----------------------------------------------------------------------------------------------------
HALF = degrees(_turned(_angles(30, 0), _angles(0, 180)))

half_a_turn = Number(
    id="theorem.ex1", difficulty=1, title="Across the pole",
    question=r"A unit with three weights has the angles $\theta=(30^\circ,0^\circ)$, and its second angle moves on by "
             r"half a turn, $\varepsilon=(0^\circ,180^\circ)$. How many degrees does its direction turn?",
    answer=HALF, tolerance=0.05, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(180, r"That is $\|\varepsilon\|$, the bound. Near the pole a step of the second angle moves the "
                   "direction less."),
        Wrong(degrees(_norm(_angles(30, 0), _angles(0, 180))),
              r"That is $\|\varepsilon\|_M=\sin\theta_1\cdot180^\circ$, the number that the theorem prints, and the length of "
              "the way round. Over the pole it is shorter."),
        Wrong(radians(HALF), "That is the angle in radians; the question asks for degrees."),
        Wrong(cos(radians(HALF)), "That is the cosine of the angle. One step is left: take the arccosine."),
        Wrong(30, "That is how far each of the two directions is from the pole. How far are they from each other?"),
    ),
    hints=("Draw the sphere from the side: the pole on top, the direction before the step on one side of it. Where is "
           "the direction after half a turn?",
           r"Both directions are $30^\circ$ from the pole, on opposite sides of it, on one great circle."),
    praise="The shortest way leads over the pole, and the curve of the coordinates goes round it.",
    solution=rf"""
Half a turn about the pole takes the direction to the other side of it, again $30^\circ$ away: the two directions
are ${HALF:.0f}^\circ$ apart. In formulas, $u\cdot u'=\cos^2\theta_1+\sin^2\theta_1\cos\varepsilon_2=\frac34-\frac14=\frac12$.

The norm that the theorem prints is $\|\varepsilon\|_M=\sin30^\circ\cdot180^\circ=90^\circ$. It is also the length of
the half circle on which the coordinates lead the unit there.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
PLACE, STEP = _angles(60, 0), _angles(-20, 40)
TURN, NORM = float(_turned(PLACE, STEP)), float(_norm(PLACE, STEP))

which_side = Choice(
    id="theorem.ex2", difficulty=1, title="Which side?",
    question=r"A unit with three weights is at $\theta=(60^\circ,0^\circ)$ and makes the step "
             r"$\varepsilon=(-20^\circ,40^\circ)$. Compare the angle that it turns with $\|\varepsilon\|_M$. No calculator is needed.",
    options=(
        Option(r"The angle is larger than $\|\varepsilon\|_M$.", TURN > NORM + 1e-3,
               "It would be larger on the way *from* the pole, where the same change of the second angle moves the unit "
               "more and more. This step goes towards it."),
        Option(r"The angle is smaller than $\|\varepsilon\|_M$.", TURN < NORM - 1e-3, ""),
        Option("They are equal.", abs(TURN - NORM) <= 1e-3,
               r"For three weights they are equal if $\varepsilon_2=0$. Here both angles change, and $M$ changes on the way."),
        Option(r"That depends on $\theta_2$.", False,
               r"Neither quantity knows $\theta_2$: adding to it turns the whole picture about the pole."),
    ),
    hints=(r"$\|\varepsilon\|_M$ is the speed at the start. Does the speed grow or fall along the step?",
           r"The squared speed is $\varepsilon_1^2+\sin^2(\theta_1+t\varepsilon_1)\,\varepsilon_2^2$, and $\theta_1+t\varepsilon_1$ falls from "
           r"$60^\circ$ to $40^\circ$."),
    praise="Towards the pole the curve slows down, so its start promises too much.",
    solution=rf"""
The sign is that of $\sin(2\theta_1)\,\varepsilon_1\varepsilon_2^2$, which is negative: $\theta_1$ is below $90^\circ$ and decreases. The
speed along the curve falls, so that its length is less than its first speed $\|\varepsilon\|_M$, and the angle is smaller still.

The numbers: $\|\varepsilon\|_M={degrees(NORM):.1f}^\circ$, the length is ${degrees(curve_length(PLACE, STEP)):.1f}^\circ$, and the unit
turns by ${degrees(TURN):.1f}^\circ$.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
LONG, SHORT = (degrees(curve_length(_angles(30, 0), _angles(0, e))) for e in (300, -60))

two_lengths = Number(
    id="theorem.ex3", difficulty=2, title="Two steps, one direction",
    question=r"At $\theta=(30^\circ,0^\circ)$ the steps $(0^\circ,300^\circ)$ and $(0^\circ,-60^\circ)$ end at the same direction. By how many "
             r"degrees do the two integrals $\int_0^1\sqrt{\varepsilon^\top M_{\theta+t\varepsilon}\,\varepsilon}\,dt$ differ?",
    answer=LONG - SHORT, tolerance=0.05, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(0, "They would not differ if the integral were the distance of the two ends. Compute it: what is $M$ along a parallel?"),
        Wrong(240, r"That is the difference of the steps. The curves run on a circle of radius $\sin30^\circ$."),
        Wrong(LONG + SHORT, "That is their sum, the whole circle."),
        Wrong(radians(LONG - SHORT), r"That is the difference in radians: multiply by $180/\pi$."),
        Wrong(240 * sin(radians(30)) ** 2, r"You took $M_{22}=\sin^2\theta_1$. Under the root stands $M_{22}\,\varepsilon_2^2$, so the "
                                          r"factor is $\sin\theta_1$."),
    ),
    hints=(r"Only $\varepsilon_2$ is not zero, so only $M_{22}=\sin^2\theta_1$ enters, and it is constant along the step.",
           r"Each integral is $\sin30^\circ\,|\varepsilon_2|$."),
    praise="One pair of directions and two values: the integral is the length of a way, and no distance.",
    solution=rf"""
Along a parallel $M_{{22}}=\sin^2\theta_1$ does not change, so the integral is $\sin\theta_1\,|\varepsilon_2|$: ${LONG:.0f}^\circ$ for the
first step and ${SHORT:.0f}^\circ$ for the second. They differ by ${LONG - SHORT:.0f}^\circ$.

A distance depends on the two points alone. The distance of these two is
${degrees(_turned(_angles(30, 0), _angles(0, -60))):.1f}^\circ$, less than both: no parallel except the equator is a shortest way.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
_GENERATOR = torch.Generator().manual_seed(0)
_THETA = uniform_angles(2000, 4, generator=_GENERATOR)
_EPS = torch.randn(2000, 3, generator=_GENERATOR, dtype=torch.float64)
_A, _N, _L = _turned(_THETA, _EPS), _norm(_THETA, _EPS), curve_length(_THETA, _EPS, rtol=1e-8)
_SMALL = _turned(_THETA, 1e-3 * _EPS) > 1e-3 * _N * (1 + 1e-7)

statements = Multiple(
    id="theorem.ex4", difficulty=2, title="True or not",
    question=r"Which of these hold for a unit with any number $n\ge2$ of weights, for every $\theta$ and every step $\varepsilon$?",
    options=(
        Option(r"The angle is at most $\|\varepsilon\|$.", bool((_EPS.norm(dim=1) >= _A).all()),
               r"The speed of the curve is never more than $\|\varepsilon\|$, since no entry of $M$ exceeds 1."),
        Option(r"The angle is at most $\|\varepsilon\|_M$.", bool((_A <= _N).all()),
               "Look at a step away from the pole: there the metric grows on the way."),
        Option(r"If the step is small enough, the angle is at most $\|\varepsilon\|_M$.", not bool(_SMALL.any()),
               "For a small step the sign of the difference is that of the growth of the metric along it. That can be positive."),
        Option("The angle is at most the length of the curve.", bool((_A <= _L * (1 + 1e-9)).all()),
               "The angle is the length of the shortest way between the two directions."),
        Option("If the unit ends where it began, the length of the curve is zero.", False,
               "Take one full turn of the second angle on the equator: where does it end, and how long is the way?"),
        Option(r"If $n=2$ and $|\varepsilon|\le\pi$, the angle is $|\varepsilon|$.", True,
               "In the plane there is one angle, its metric is 1, and the circle is the sphere."),
    ),
    hints=("Move the step of the second figure through these cases: away from the pole, towards it, once round.",
           r"Order them: angle, length and $\|\varepsilon\|$ stand in a chain. $\|\varepsilon\|_M$ has no place in it."),
    praise=r"Angle, length, $\|\varepsilon\|$: this chain holds always, and the metric norm is not a link of it.",
    solution=r"""
- **Angle at most $\|\varepsilon\|$**: true, the bound of the theorem.
- **Angle at most $\|\varepsilon\|_M$**: false. At $\theta=(0.1,0)$ the step $(1,1)$ turns the unit by $1.048$, and the norm is $1.005$.
- **... for small steps**: false as well. The difference is $\frac14\sin(2\theta_1)\,\varepsilon_1\varepsilon_2^2/\|\varepsilon\|_M$ to the
  second order, positive for every small step away from the pole.
- **Angle at most the length**: true, no way is shorter than the shortest.
- **Back at the start means length zero**: false. A closed curve has a length, and no distance to cover.
- **The plane**: true, $M=1$ there.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _own_sine(theta, eps):
    """Products of sines that include the angle's own."""
    t = (torch.arange(2000, dtype=theta.dtype) + 0.5) / 2000
    return ((theta + t[:, None] * eps).sin().cumprod(1) * eps).norm(dim=1).mean()


def _energy(theta, eps):
    t = (torch.arange(2000, dtype=theta.dtype) + 0.5) / 2000
    return (metric(theta + t[:, None] * eps) * eps**2).sum(1).mean()


def _trials(generator):
    out = []
    for n, size in ((3, 1.0), (4, 2.0), (8, 1.0)):
        theta = uniform_angles(1, n, generator=generator)[0]
        out.append(Trial((theta, size * torch.randn(n - 1, generator=generator, dtype=torch.float64)), f"a unit with {n} weights"))
    return [
        *out,
        Trial((torch.tensor([0.7], dtype=torch.float64), torch.tensor([-1.2], dtype=torch.float64)), "a unit with two weights"),
        Trial(_pair([pi / 4, 0.0], [0.0, 1.5 * pi]), "a step along a parallel"),
        Trial(_pair([0.3, 1.0], [-0.9, 2.0]), "a step over the pole"),
        Trial(_pair([1.0, 2.0, 0.5], [0.0, 0.0, 0.0]), "no step at all"),
        Trial(tuple(x.float() for x in _pair([0.4, 1.0, 3.0], [0.8, -0.5, 0.7])), "float32 angles"),
    ]


def _pair(theta, eps):
    return torch.tensor(theta, dtype=torch.float64), torch.tensor(eps, dtype=torch.float64)


path_length = Function(
    id="theorem.ex5", difficulty=3, title="The integral of the discussion",
    question=r"Write the length of the curve $t\mapsto u(\theta+t\varepsilon)$, $0\le t\le1$, for a unit with any number of weights. `theta` and "
             r"`eps` are tensors of shape $(n-1,)$, the answer is a tensor of shape $()$, right to four digits. "
             "(`ntklib.sphere.curve_length` does it, so leave that one aside.)",
    signature="path_length(theta, eps)", truth=curve_length, trials=_trials,
    rtol=1e-4,                          # four digits: any quadrature with some hundred nodes reaches them
    atol=1e-9,
    mistakes=(
        Mistake(gives(_norm), r"That is $\|\varepsilon\|_M$ with $M$ at $\theta$: the speed at the start. Along the step $M$ changes, so integrate."),
        Mistake(gives(lambda theta, eps: eps.norm()), r"That is $\|\varepsilon\|$, the bound: every entry of $M$ was taken as 1."),
        Mistake(gives(_turned), "That is the angle, the length of the *shortest* way. Here the way is given."),
        Mistake(gives(lambda theta, eps: _norm(theta + eps / 2, eps)),
                "You took the speed half way as the mean speed: that is a quadrature with one node. Take more."),
        Mistake(gives(_own_sine), r"Each product of sines has one factor too many: $M_{jj}$ is the product over $k<j$, so that $M_{11}=1$."),
        Mistake(gives(_energy), "You integrated the square of the speed. Take the root before the integral."),
    ),
    hints=(r"The speed at $t$ is $\sqrt{\sum_jM_{jj}\,\varepsilon_j^2}$ with $M$ at $\theta+t\varepsilon$, and $M_{jj}=\prod_{k<j}\sin^2(\theta_k+t\varepsilon_k)$.",
           "Make a tensor of nodes $t$, one row of angles for each, and use `cumprod`. The mean of the speeds at the middles of 2000 equal "
           "pieces is good enough."),
    praise="The formula of the reviewer, with the index in its place.",
    solution=r"""
The speed is the norm of the vector with the entries $\varepsilon_j\prod_{k<j}\sin(\theta_k+t\varepsilon_k)$. A mean over the middles of many equal pieces
integrates it:

```python
def path_length(theta, eps):
    t = (torch.arange(2000, dtype=theta.dtype) + 0.5) / 2000
    at = theta + t[:, None] * eps
    one = torch.ones_like(at[:, :1])
    products = torch.cat([one, at[:, :-1].sin()], 1).cumprod(1)
    return (products * eps).norm(dim=1).mean()
```

With 2000 pieces the error is of order $10^{-7}$ for a step of one radian. `curve_length` doubles its Gauss-Legendre panels until two results agree.""",
)

EXERCISES = (half_a_turn, which_side, two_lengths, statements, path_length)
