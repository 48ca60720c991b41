"""Exercises of the chapter "What makes a boundary jump".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import asin, atan, degrees, pi, radians, sin

import torch

from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.boundaries import rotation_bound
from ntklib.sphere import geodesic

f64 = torch.float64
DEGREES = ("°", "deg", "degree", "degrees")


def _bound(ratio: float) -> float:
    return degrees(float(rotation_bound(torch.tensor([1.0, 0.0], dtype=f64), torch.tensor([ratio, 0.0], dtype=f64))))


# ---- 1 -----------------------------------------------------------------------------------------------------
WORST = _bound(0.5)

half = Number(
    id="jumps.ex1", difficulty=1, title="Half as long",
    question="A step is half as long as the weights of a unit. By how many degrees can it turn the unit's boundary at most? Give it to within 0.1.",
    answer=WORST, tolerance=0.1, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(degrees(atan(0.5)), r"That is the turn of a step at a right angle to $w$. One at a right angle to $w+\varepsilon$ turns it further."),
        Wrong(radians(WORST), "That is the angle in radians; the question asks for degrees.", tolerance=0.01),
        Wrong(degrees(0.5), r"That would be a step along the circle. The tip of $w$ moves on a straight line: the ratio is a *sine*."),
        Wrong(90, "A turn by 90° needs a step as long as the weights."),
        Wrong(180, "To turn the boundary over, the step has to reach the origin: it must be as long as the weights."),
    ),
    hints=("Draw $w$ and the circle of all its ends after a step of this length. Which line from the origin only just meets the circle?",
           r"The tangent makes a right triangle with the hypotenuse $|w|$ and the opposite leg $|\varepsilon|$."),
    praise=r"$\arcsin\frac12$: the tangent from the origin to the circle round the tip of $w$.",
    solution=rf"""
All possible ends of $w+\varepsilon$ lie on a circle of radius $|\varepsilon|$ about the tip of $w$. Seen from the origin, the circle lies between
its two tangents. A tangent, $w$ and the radius at the point of contact form a right triangle with the hypotenuse $|w|$, so the angle $\alpha$ between $w$
and the tangent has $\sin\alpha=|\varepsilon|/|w|$: here $\alpha=\arcsin\frac12={WORST:.0f}^\circ$.

The step that does it points at $\arccos(-\frac12)=120^\circ$ from $w$, partly backwards. Straight sideways it turns the boundary by
$\arctan\frac12={degrees(atan(0.5)):.1f}^\circ$ only.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
NEEDED = 0.01 / sin(radians(1))

quiet = Number(
    id="jumps.ex2", difficulty=2, title="Long enough to be quiet",
    question=r"An optimizer moves the weights of a unit by $|\varepsilon|=0.01$ in each step, in a direction that you do not know. How long must $w$ "
             r"be at least, so that no step turns the boundary by more than $1^\circ$? Give it to within 0.005.",
    answer=NEEDED, tolerance=0.005,
    wrong=(
        Wrong(0.01 * sin(radians(1)), "You multiplied where the bound divides: the longer $w$, the smaller the turn.", tolerance=1e-5),
        Wrong(0.01, r"At $|w|=0.01$ a step is as long as the weights and can turn the boundary over.", tolerance=2e-4),
        Wrong(0.01 / sin(1), r"The sine was taken of 1 radian: convert $1^\circ$ first.", tolerance=2e-4),
        Wrong(100 * NEEDED, r"You took $|\varepsilon|=1$. Here it is $0.01$.", tolerance=0.5),
        Wrong(1, r"$|\varepsilon|/|w|=0.01$ is in radians: it is $0.57^\circ$, less than needed. Shorter weights will do.", tolerance=0.1),
    ),
    hints=(r"The bound is $\arcsin(|\varepsilon|/|w|)$. Set it equal to $1^\circ$ and solve for $|w|$.",
           r"$|w|=0.01/\sin1^\circ$, and $\sin1^\circ\approx0.01745$."),
    praise="A condition on the ratio of step and weights, and on nothing else: neither the dimension nor the bias enters.",
    solution=rf"""
$\arcsin(|\varepsilon|/|w|)\le1^\circ$ means $|w|\ge|\varepsilon|/\sin1^\circ=0.01/{sin(radians(1)):.5f}={NEEDED:.3f}$.

He's initialisation with $n$ inputs has $|w|\approx\sqrt2$ whatever $n$ is. But Adam moves every coordinate by about its learning rate $\eta$, so that
$|\varepsilon|\approx\eta\sqrt n$: with $\eta=0.01$ and $n=1000$ that is $0.32$, and a step may turn such a unit by ${degrees(asin(0.01 * 1000**0.5 / 2**0.5)):.0f}^\circ$.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
statements = Multiple(
    id="jumps.ex3", difficulty=2, title="True or not",
    question=r"A unit has the weights $w$, and a step $\varepsilon$ is a tenth as long. Which of these hold?",
    options=(
        Option(r"In the plane and in $\mathbb R^{1000}$ the boundary turns by at most the same angle.", True,
               r"Only the plane of $w$ and $\varepsilon$ matters, whatever it lies in."),
        Option(r"A step that makes more than $90^\circ$ with $w$ turns the boundary by more than one that makes less.", False,
               r"Compare the step straight back, at $180^\circ$: it does not turn the boundary at all."),
        Option("A step straight back, against $w$, moves the boundary without turning it.", True,
               "The direction stays, the weights get shorter: $b/|w|$ grows."),
        Option(r"In $\mathbb R^{1000}$ half of all random steps are unstable.", _bound(0.1) > 45,
               rf"Half of them point backwards, but none turns the boundary by more than ${_bound(0.1):.2f}^\circ$."),
        Option("Weight normalisation makes the bound smaller.", False,
               r"Its direction is $v/|v|$, and $v$ obeys the same bound with $|v|$ in place of $|w|$."),
    ),
    hints=(r"Look at the curve of the turn against the angle between $\varepsilon$ and $w$: where is it zero, where largest?",
           r"The bound is $\arcsin(|\varepsilon|/|w|)$, here $\arcsin0.1$. What does it depend on?"),
    praise="Length decides; the direction of the step only says how much of the bound is used.",
    solution=rf"""
- **The same bound in every dimension**: yes, $\arcsin0.1={_bound(0.1):.2f}^\circ$.
- **Backward steps turn more**: no. The turn is largest at $\arccos(-0.1)\approx96^\circ$, nearly sideways, and falls to zero at $180^\circ$.
- **Straight back**: yes, the direction stays, and the offset $\lambda=b/|w|$ grows by a ninth.
- **Half are unstable**: no. Half point backwards, and that is all.
- **Weight normalisation**: no, the bound is the same, with $|v|$. (In training $|v|$ can only grow under gradient descent, because the gradient in $v$ is at a right
  angle to it; that makes later steps turn it less.)""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
which = Choice(
    id="jumps.ex4", difficulty=2, title="What cannot run away",
    question=r"The weights $w$ of a unit shrink towards zero, while every other parameter stays put. Where does the distance $|\lambda|$ of its boundary from the "
             "origin stay bounded?",
    options=(
        Option(r"In standard form, $\lambda=b/|w|$", False, "The bias stays and $|w|$ shrinks: the boundary runs away."),
        Option(r"Behind batch normalisation, $\lambda=s\,\beta/\gamma-m$", True, "The batch's deviation shrinks with $|w|$, and the quotient stays."),
        Option("In neither", False, r"Behind batch normalisation the deviation of $w\cdot x$ over the batch shrinks with $w$. What happens to $\sigma\beta/(\gamma|w|)$?"),
        Option("In both", False, r"In standard form nothing makes up for a small $|w|$ in $b/|w|$."),
    ),
    hints=("Write the offset of both as a quotient with $|w|$ below. What is above?",
           r"The standard deviation of $w\cdot x$ over a batch is proportional to $|w|$."),
    praise=r"Batch normalisation protects the offset, and not the direction. Its own dangerous number is $\gamma$.",
    solution=r"""
Behind batch normalisation a unit switches where $\gamma\,(w\cdot x+b-\mu)/\sigma+\beta=0$, that is, at

$$\lambda=\frac{b-\mu+\sigma\beta/\gamma}{|w|}.$$

The batch has $\mu=b+w\cdot\bar x$ and $\sigma=|w|\,s$, where $s$ is the standard deviation of the data along $w$. Everything is proportional to $|w|$, and
$\lambda=s\beta/\gamma-m$ with $m=\bar x\cdot w/|w|$. It does not feel the length of $w$, and blows up only if $\gamma$ goes to zero.

In standard form $b/|w|$ grows without bound. The *direction* is $w/|w|$ in both, and jumps in both.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _turn(w, eps):
    return geodesic(w, w + eps)


def _turn_trials(generator):
    w, eps = torch.randn(2, 8, 5, generator=generator, dtype=f64)
    axis = torch.tensor([[2.0, 0, 0], [0, 2.0, 0], [1.0, 1, 0]], dtype=f64)
    return [
        Trial((w, 0.3 * eps), "random steps"),
        Trial((w, 1e-9 * eps), "very small steps"),
        Trial((w.float(), eps.float()), "float32 weights and steps"),
        Trial((axis, -3 * axis), "steps that turn the weights over"),
        Trial((axis, -0.5 * axis), "steps straight back"),
    ]


def _is_arccos(output, w, eps):
    """Its cosine is right to the last digits: the angle was lost after it."""
    few = 32 * torch.finfo(output.dtype).eps
    return bool((((output.cos() - _turn(w, eps).cos()).abs() <= few) | output.isnan()).all())


turn = Function(
    id="jumps.ex5", difficulty=2, title="How far a step turns",
    question=r"Write a function that takes weights `w` and steps `eps`, two $(m,n)$ tensors, and returns the angle in radians by which each boundary turns. It must be "
             r"right to six digits also for steps of $10^{-9}$.",
    signature="turn(w, eps)", truth=_turn, trials=_turn_trials, atol=1e-15,
    when_nan="Rounding can push a cosine above 1, where arccos is not defined. Start from the difference of the two directions instead.",
    mistakes=(
        Mistake(_is_arccos, r"That is the arccosine of a cosine. Near zero the cosine is $1-\theta^2/2$, and an angle of $10^{-9}$ is rounded away: use the "
                            "difference of the two unit vectors."),
        Mistake(gives(lambda w, eps: geodesic(w, eps)), r"That is the angle between $w$ and the step. Compare $w$ with $w+\varepsilon$."),
        Mistake(gives(lambda w, eps: rotation_bound(w, eps)),
                "That is the largest turn of any step of this length. Here the direction of the step is given."),
        Mistake(gives(lambda w, eps: eps.norm(dim=-1) / w.norm(dim=-1)), "That is the ratio of the lengths, an upper bound of the turn for small steps only."),
    ),
    hints=(r"For unit vectors $u$ and $v$: $|u-v|=2\sin(\theta/2)$ and $|u+v|=2\cos(\theta/2)$.",
           "`torch.atan2` takes the sine and the cosine of half the angle, and knows all angles up to 180°."),
    praise="The difference of two directions keeps the digits of a small turn.",
    solution=r"""
```python
def turn(w, eps):
    u = w / w.norm(dim=-1, keepdim=True)
    v = (w + eps) / (w + eps).norm(dim=-1, keepdim=True)
    return 2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1))
```

The difference $u-v$ carries a small angle in its leading digits, the cosine $u\cdot v$ in its last ones. At $180^\circ$ the sum vanishes instead, and the
arctangent of two arguments still gives $\pi$.""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def _worst(w, length):
    """The step of each row at a right angle to w + eps, in the plane of w and the axis that w leans on least."""
    u = w / w.norm(dim=-1, keepdim=True)
    across = torch.nn.functional.one_hot(w.abs().argmin(-1), w.shape[-1]).to(w.dtype)
    across = across - (across * u).sum(-1, keepdim=True) * u
    across = across / across.norm(dim=-1, keepdim=True)
    sine = length / w.norm(dim=-1, keepdim=True)
    return geodesic(w, w + length * ((1 - sine**2).sqrt() * across - sine * u))


def _worst_trials(generator):
    w = torch.randn(6, 4, generator=generator, dtype=f64)
    w = w / w.norm(dim=-1, keepdim=True) * torch.tensor([[1.0], [2], [3], [1], [0.6], [5]], dtype=f64)
    return [
        Trial((w, 0.5), "six units and the length 0.5"),
        Trial((w, 0.01), "six units and the length 0.01"),
        Trial((w, 0.59), "six units and the length 0.59"),
        Trial((w[:, :2] / w[:, :2].norm(dim=-1, keepdim=True), 0.9), "units of the plane and the length 0.9"),
    ]


def _after(step):
    """How far a rule for steps turns the weights."""
    return lambda w, length: geodesic(w, w + step(w, length))


def _sideways(w, length):
    u = w / w.norm(dim=-1, keepdim=True)
    across = torch.nn.functional.one_hot(w.abs().argmin(-1), w.shape[-1]).to(w.dtype)
    across = across - (across * u).sum(-1, keepdim=True) * u
    return length * across / across.norm(dim=-1, keepdim=True)


attack = Function(
    id="jumps.ex6", difficulty=3, title="The worst step, in numbers",
    question=r"Find the worst step by search, without the formula: write a function that takes weights `w`, an $(m,n)$ tensor, and a `length` shorter than each of them, "
             r"and returns, for each unit, the largest angle by which a step of that length turns its boundary, right to four digits. (Only the plane of $w$ and the step "
             "matters, so one angle is all there is to search.)",
    signature="worst_turn(w, length)", truth=_worst, trials=_worst_trials, rtol=1e-4,
    mistakes=(
        Mistake(gives(_after(_sideways)), r"That is the turn of a step at a right angle to $w$, $\arctan$ of the ratio. Let it point backwards a little."),
        Mistake(gives(lambda w, length: length / w.norm(dim=-1)), "That is the ratio itself, in radians: right for short steps only."),
        Mistake(gives(lambda w, length: torch.full_like(w[:, 0], pi)), r"Only a step longer than $w$ can turn a boundary by $180^\circ$."),
    ),
    hints=(r"In the plane of $w$ and the step put $w=(|w|,0)$ and $\varepsilon=\ell(\cos\psi,\sin\psi)$. What is the angle of $w+\varepsilon$?",
           "Try a fine grid of `psi` from 0 to `math.pi` for all units at once: a broadcast over a new last dimension, and `amax(-1)`."),
    praise=r"No step of that length turns the boundary by more than $\arcsin(\ell/|w|)$, and one turns it by that much.",
    solution=r"""
```python
def worst_turn(w, length):
    psi = torch.linspace(0, math.pi, 20_001, dtype=w.dtype)
    size = w.norm(dim=-1, keepdim=True)
    x = size + length * psi.cos()
    y = length * psi.sin()
    return torch.atan2(y.expand_as(x), x).amax(-1)
```

Near its maximum the turn is flat, so that a grid of 20 001 angles gives it to eight digits. It is $\arcsin(\ell/|w|)$, attained at
$\cos\psi=-\ell/|w|$: at a right angle to $w+\varepsilon$.""",
)

EXERCISES = (half, quiet, statements, which, turn, attack)
