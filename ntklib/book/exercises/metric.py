"""Exercises of the chapter on the metric tensor.

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import pi, radians, sin, sqrt

import torch

from ntklib.book.exercises.kinds import Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.sphere import jacobian, metric
from ntklib.symbolic.metric import mean_metric

# ---- 1 -----------------------------------------------------------------------------------------------------
_AT = (30, 45, 60, 80)
_THETA = torch.tensor([radians(t) for t in _AT], dtype=torch.float64)
ENTRY = float(metric(_THETA)[2])

entry = Number(
    id="metric.ex1", difficulty=1, title="One entry",
    question=r"A unit has five inputs and the angles $\theta=(30^\circ,45^\circ,60^\circ,80^\circ)$. What is the diagonal entry "
             r"$M_{33}$?",
    answer=ENTRY, tolerance=0.002,
    wrong=(
        Wrong(sqrt(ENTRY), r"That is $\sqrt{M_{33}}$, the turn for a step of length 1 in the third angle. The metric has its square."),
        Wrong(float(metric(_THETA)[1]), r"That is $M_{22}$, with one sine. Which angles come before the third?"),
        Wrong(float(metric(_THETA)[3]), r"You took $\sin\theta_3$ along. $u$ turns about what the angles *before* the third have left: "
                                        r"the product runs over $k<3$.", tolerance=0.001),
        Wrong(sin(radians(60)) ** 2, r"That is $\sin^2\theta_3$: the one angle that $M_{33}$ does not contain."),
        Wrong(1, r"Only the first angle has the entry $1$: its step is never shortened."),
    ),
    hints=(r"$M_{jj}$ is a product of squared sines. Over which angles does it run?",
           "Over the angles *before* the third. Its own angle and the later ones do not enter."),
    praise=r"$\sin^2 30^\circ\,\sin^2 45^\circ=\frac14\cdot\frac12$.",
    solution=rf"""
$M_{{jj}}=\prod_{{k<j}}\sin^2\theta_k$ contains the angles before the one that moves:

$$M_{{33}}=\sin^2 30^\circ\,\sin^2 45^\circ=\tfrac14\cdot\tfrac12={ENTRY:.3f}.$$

So one degree in the third angle turns the unit by $\sqrt{{{ENTRY:.3f}}}={sqrt(ENTRY):.3f}$ degrees. The third and the fourth angle do
not enter. The other reading is the squared tail: $M_{{33}}=u_3^2+u_4^2+u_5^2$.""",
)


# ---- 2 -----------------------------------------------------------------------------------------------------
def _random(n: int, seed: int = 0):
    g = torch.Generator().manual_seed(seed)
    return 0.2 + (pi - 0.4) * torch.rand(n - 1, dtype=torch.float64, generator=g)


def _settles(theta) -> dict[str, bool]:
    """The statements of exercise 2, tried on one unit."""
    J, M = jacobian(theta), metric(theta)
    moved = theta.clone()
    moved[-1] += 1.0
    return {
        "falls": bool((M.diff() <= 0).all()),
        "last": torch.equal(metric(moved), M),
        "weights": bool((J @ J.T - torch.diag((J @ J.T).diagonal())).abs().max() < 1e-9),
        "bound": bool((M <= 1).all()),
        "invertible": float(metric(torch.zeros_like(theta)).prod()) > 0,
        "sum": abs(float(M.sum()) - 1) < 1e-9,
    }


_HOLDS = _settles(_random(6))
statements = Multiple(
    id="metric.ex2", difficulty=1, title="True or not",
    question=r"Which of these hold for the metric $M$ of a unit with $n\ge3$ inputs, at every $\theta$?",
    options=(
        Option(r"$M_{11}\ge M_{22}\ge\dots\ge M_{n-1,n-1}$.", _HOLDS["falls"],
               r"$M_{j+1,j+1}=M_{jj}\sin^2\theta_j$: one more factor, and it is at most 1."),
        Option(r"$M$ does not depend on the last angle.", _HOLDS["last"],
               r"$M_{jj}$ contains the sines of the angles before $j$, and no angle comes after the last."),
        Option(r"Since $M$ is diagonal, each angle moves one weight and no other.", _HOLDS["weights"],
               r"Different angles move $u$ in perpendicular *directions*. The direction of one angle has many components: $\theta_1$ "
               "moves every weight."),
        Option(r"No step in the angles turns the unit by more than its own length.", _HOLDS["bound"],
               r"No entry of the diagonal exceeds $1$: what follows for $\sum_jM_{jj}\varepsilon_j^2$? (For long steps, add up short "
               "ones.)"),
        Option(r"$M$ can be inverted at every $\theta$.", _HOLDS["invertible"],
               r"Put $\theta_1=0$: from the pole, the other angles move nothing."),
        Option(r"The entries of the diagonal add up to 1.", _HOLDS["sum"],
               r"The first is 1 already. It is the squared weights that add up to 1; $M_{jj}$ is the tail of that sum."),
    ),
    hints=(r"All but the third are settled by $M_{jj}=\prod_{k<j}\sin^2\theta_k$ alone. Try $\theta_1=0$, and all angles equal to $90^\circ$.",
           r"For the third one look at the columns of the Jacobian: perpendicular is not the same as having no entry in common."),
    praise="The diagonal falls from 1, it forgets the last angle, and it vanishes at the poles.",
    solution=r"""
- **It falls**: each entry has one more factor $\sin^2\theta_k\le1$. True.
- **The last angle** enters no product. True: $M$ is the same all the way round.
- **One weight for each angle**: no. The columns of the Jacobian are perpendicular, but the first column has no zero in general.
- **No step turns more than its length**: true, as every entry is at most 1. Long steps follow, because the length of the curve
  $u(\theta+t\varepsilon)$ is the integral of $\sqrt{\sum_jM_{jj}\varepsilon_j^2}\le\lVert\varepsilon\rVert$, and the angle is at most the length.
- **Invertible**: not at the poles. Where $\sin\theta_k=0$, all angles after $k$ have no effect.
- **The sum is 1**: no. For a uniform direction its average is $(n+2)(n-1)/(2n)$.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
PIXELS = 784
LAST = sqrt(mean_metric(PIXELS, PIXELS - 1))

last_angle = Number(
    id="metric.ex3", difficulty=2, title="The last of 783",
    question=r"A unit has $784$ inputs and a uniform random direction. Its *last* angle moves by $1^\circ$. By how many degrees does its "
             "direction turn? Give the root mean square over random directions, to three decimals.",
    answer=LAST, tolerance=0.0006, unit="degrees", units=("°", "deg", "degree", "degrees"),
    wrong=(
        Wrong(LAST**2, r"That is $\mathbb E\,M_{783,783}$, the mean of a *squared* turn: take the root.", tolerance=0.0002),
        Wrong(sqrt(1 / PIXELS), r"You counted one weight in the tail. The last *angle* is number $783$, and two weights, $u_{783}$ and "
                                r"$u_{784}$, turn into each other.", tolerance=0.0004),
        Wrong(sqrt(0.5), "That is the angle in the middle. The last one has a tail of two weights only.", tolerance=0.003),
        Wrong(1, "Only the first angle turns the unit by its own step.", tolerance=0.01),
        Wrong(0, r"The product of $782$ sines is not as small as it looks: the sines of a uniform direction are nearly 1. Count the "
                 "weights in the tail.", tolerance=0.0003),
        Wrong(radians(LAST), r"You converted to radians. The turn is proportional to the step: degrees in, degrees out.", tolerance=0.0001),
    ),
    hints=(r"$M_{jj}=u_j^2+\dots+u_n^2$. How many terms are there for $j=n-1$, and what is the mean of each?",
           r"Two weights are behind the last angle, and by symmetry $\mathbb E\,u_i^2=1/n$. That gives the mean of the *squared* turn."),
    praise="Twenty times less than the first angle: a tail of two weights among 784.",
    solution=rf"""
The tail of the last angle has two weights, each with $\mathbb E\,u_i^2=1/784$:

$$\sqrt{{\mathbb E\,M_{{783,783}}}}=\sqrt{{2/784}}={LAST:.4f}.$$

One degree in the last angle turns the unit by about {LAST:.2f} degrees; one degree in the first turns it by one. The entry itself
scatters: $M_{{n-1,n-1}}$ is a sum of two small squares, and its standard deviation is almost as large as its mean.""",
)


# ---- 4 -----------------------------------------------------------------------------------------------------
def turn(theta, eps):
    """|eps|_M: what the step eps turns a unit with the angles theta by, to first order."""
    return (metric(theta) * eps.square()).sum(-1).sqrt()


def _inclusive(theta):
    return theta.sin().cumprod(-1)


def _angle_trials(generator):
    def draw(*shape):
        return pi * torch.rand(*shape, generator=generator, dtype=torch.float64), torch.randn(*shape, generator=generator, dtype=torch.float64)

    outside = torch.tensor([[-1.0, 4.0, 7.0], [5.0, -2.0, 0.3]], dtype=torch.float64)
    poles = torch.tensor([[0.0, 1.0, 2.0], [1.0, pi / 2, 0.5]], dtype=torch.float64)
    ones = torch.ones(2, 3, dtype=torch.float64)
    return [
        Trial(draw(6, 4), "random angles and steps"),
        Trial(draw(1), "a unit with two inputs"),
        Trial(draw(2, 3, 5), "a batch of shape (2, 3)"),
        Trial((poles, ones), "angles at a pole and at the equator"),
        Trial((outside, 0.1 * ones), "angles outside [0, pi]"),
        Trial(tuple(t.float() for t in draw(4, 3)), "float32 angles"),
    ]


first_order = Function(
    id="metric.ex4", difficulty=2, title="How far does a step turn it",
    question=r"Write the first-order turn $\lVert\varepsilon\rVert_M=\sqrt{\sum_jM_{jj}\varepsilon_j^2}$ of units with angles `theta`, of shape "
             r"$(\dots,n-1)$, under the steps `eps`, of the same shape. The last dimension holds the angles of one unit. Angles may "
             "be anywhere, also at a pole. (`ntklib.sphere.metric` does most of it, so leave it aside.)",
    signature="turn(theta, eps)", truth=turn, trials=_angle_trials, atol=1e-9,
    when_nan="Do you divide by a sine? It vanishes at the poles, and sines may be negative outside $[0,\\pi]$. Only products are needed.",
    mistakes=(
        Mistake(gives(lambda theta, eps: eps.norm(dim=-1)),
                r"That is $\lVert\varepsilon\rVert$ with all weights equal to 1: the bound, and not the turn."),
        Mistake(gives(lambda theta, eps: (_inclusive(theta) * eps).norm(dim=-1)),
                r"Your product for $M_{jj}$ runs to $j$: it must stop before, so that $M_{11}=1$. Shift it by one place."),
        Mistake(gives(lambda theta, eps: turn(theta, eps).square()),
                "That is the *square* of the turn: the root is missing."),
        Mistake(gives(lambda theta, eps: (metric(theta) * eps).norm(dim=-1)),
                r"You squared the entries of $M$ once too often: inside the root it is $M_{jj}\varepsilon_j^2$, not $M_{jj}^2\varepsilon_j^2$."),
        Mistake(gives(lambda theta, eps: (metric(theta).sqrt() * eps.abs()).sum(-1)),
                "You added up lengths. The steps along different angles are perpendicular: add their squares."),
        Mistake(gives(lambda theta, eps: (torch.cat([torch.ones_like(theta[..., :1]), theta[..., :-1].sin()], -1) * eps).norm(dim=-1)),
                r"You took the sine of one angle, the one before. $M_{jj}$ is the product over *all* angles before $j$: `cumprod`."),
    ),
    hints=(r"The weights are $1,\ \sin^2\theta_1,\ \sin^2\theta_1\sin^2\theta_2,\dots$: a cumulative product, shifted by one place.",
           r"`torch.cumprod(theta[..., :-1].sin(), -1)` has the roots of all of them but the first, which is 1: put a column of ones in front."),
    praise="A cumulative product and a norm: the metric costs no more than the unit vector itself.",
    solution=r"""
$\sqrt{M_{jj}}$ is the product of the sines before $j$, up to a sign that the square removes:

```python
def turn(theta, eps):
    sines = theta[..., :-1].sin().cumprod(-1)
    first = torch.ones_like(theta[..., :1])
    return (torch.cat([first, sines], -1) * eps).norm(dim=-1)
```

It costs one sine and one product for each angle. No sine is divided by, so that the poles are harmless, where the turn is simply
smaller.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def fair_step(theta, g, lr):
    """The step in the angles whose turn is -lr times the tangent part of g, to first order."""
    return -lr * (g[..., None, :] @ jacobian(theta))[..., 0, :] / metric(theta)


def _plain(theta, g, lr, power: float = 0.0, sign: float = -1.0):
    return sign * lr * (g[..., None, :] @ jacobian(theta))[..., 0, :] * metric(theta) ** power


def _gradient_trials(generator):
    def draw(*shape):
        theta = 0.3 + (pi - 0.6) * torch.rand(*shape, generator=generator, dtype=torch.float64)
        return theta, torch.randn(*shape[:-1], shape[-1] + 1, generator=generator, dtype=torch.float64)

    return [
        Trial((*draw(5, 4), 0.1), "random units and gradients"),
        Trial((*draw(1), 1.0), "one unit with two inputs"),
        Trial((*draw(2, 3, 6), 0.03), "a batch of shape (2, 3)"),
        Trial((*(t.float() for t in draw(4, 3)), 0.5), "float32 units"),
    ]


same_turn = Function(
    id="metric.ex5", difficulty=3, title="A step without a favourite",
    question=r"Gradient descent in the angles turns a unit fast along the first angles and slowly along the last. Write the step `d_theta` "
             r"in the angles, of shape $(\dots,n-1)$, that turns the unit as gradient descent *on the sphere* would: to first order, "
             r"$du$ must be $-\text{lr}$ times the part of the gradient `g` $=\partial L/\partial u$, of shape $(\dots,n)$, that is tangent to the sphere. You "
             "may call `ntklib.sphere.jacobian(theta)`, of shape $(\\dots,n,n-1)$, and `ntklib.sphere.metric(theta)`. No sine vanishes.",
    signature="fair_step(theta, g, lr)", truth=fair_step, trials=_gradient_trials,
    atol=1e-9,
    when_nan=r"Is a negative number under a root, or a sine divided by itself at a pole? $M_{jj}$ is never negative.",
    mistakes=(
        Mistake(gives(_plain), r"That is plain gradient descent, $-\text{lr}\,J^\top g$. It turns the unit by $-\text{lr}\,JJ^\top g$, and $JJ^\top$ is not "
                               "the projection onto the tangent space. What undoes the lengths of the columns of $J$?"),
        Mistake(gives(lambda theta, g, lr: _plain(theta, g, lr, -0.5)),
                r"You divided by $\sqrt{M_{jj}}$, the length of a column. The column enters twice: once from the gradient to the "
                "angles, once from the angles back to $u$."),
        Mistake(gives(lambda theta, g, lr: _plain(theta, g, lr, 1.0)),
                r"You multiplied by $M_{jj}$, which makes the slow angles slower still."),
        Mistake(gives(lambda theta, g, lr: _plain(theta, g, lr, -1.0, 1.0)),
                "The size is right, but it climbs: descent goes against the gradient."),
    ),
    hints=(r"To first order $du=J\,d\theta$. The columns of $J$ are perpendicular, with squared lengths $M_{jj}$: how do you write the projection "
           "onto their span?",
           r"The projection is $J\,M^{-1}J^\top$, with the diagonal $M$. For which $d\theta$ is $J\,d\theta$ equal to $-\text{lr}$ times the projection of $g$?"),
    praise=r"This is the *natural* gradient: the metric, inverted, makes the step independent of the coordinates.",
    solution=r"""
The tangent space at $u$ is spanned by the columns of $J$. They are perpendicular, so the projection onto it is
$P=J\,M^{-1}J^\top$, and $du=J\,d\theta=-\text{lr}\,P\,g$ holds for

$$d\theta=-\text{lr}\;M^{-1}J^\top g .$$

```python
from ntklib.sphere import jacobian, metric

def fair_step(theta, g, lr):
    gradient = (g[..., None, :] @ jacobian(theta))[..., 0, :]
    return -lr * gradient / metric(theta)
```

$J^\top g$ is what autograd gives for $\partial L/\partial\theta$, so in practice the step is the gradient divided by $M$. Since $M$ is diagonal, it costs a
division. Its price is elsewhere: near a pole $M_{jj}$ vanishes, and the angles make long steps for a short turn.""",
)

EXERCISES = (entry, statements, last_angle, first_order, same_turn)
