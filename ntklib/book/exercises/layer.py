"""Exercises of the chapter "The GmP layer".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import sin

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.boundaries import Boundary
from ntklib.gmp import GmPConv2d, GmPLinear, InputMeanNorm
from ntklib.sphere import from_angles, jacobian

f64 = torch.float64


def _numbers(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


# ---- 1 -----------------------------------------------------------------------------------------------------
IN, OUT, SIZE = 16, 32, 3
FAN = IN * SIZE * SIZE
COUNT = _numbers(GmPConv2d(IN, OUT, SIZE))

count = Number(
    id="layer.ex1", difficulty=1, title="How many numbers",
    question=f"A convolution has {IN} input channels, {OUT} filters of size {SIZE} × {SIZE} and a bias for each filter. How many numbers does "
             "the same layer train in the coordinates $r$, $\\lambda$ and $\\theta$?",
    answer=COUNT, tolerance=0.5,
    wrong=(
        Wrong(COUNT + OUT, "One too many for each filter: a direction of $\\mathbb R^n$ has $n-1$ angles, not $n$. The count with $n$ is that of weight "
                           "normalisation."),
        Wrong(COUNT - OUT, "One too few for each filter: beside the $n-1$ angles a filter has a radius *and* an offset."),
        Wrong(COUNT - 2 * OUT, "Those are the angles alone. Each filter has a radius and an offset as well."),
        Wrong(FAN + 1, "That is one filter. There are 32 of them."),
        Wrong(OUT * (SIZE * SIZE + 1), "A filter reaches over all 16 input channels: it has $16\\cdot3\\cdot3$ weights."),
    ),
    hints=("Flatten a filter: how many numbers $n$ does it hold, over all of its input channels?",
           f"$n={IN}\\cdot{SIZE}\\cdot{SIZE}={FAN}$. A direction of $\\mathbb R^n$ has $n-1$ angles; then come a radius and an offset."),
    praise="Exactly as many as the convolution had before, weights and biases.",
    solution=rf"""
A filter is a vector of $n={IN}\cdot{SIZE}\cdot{SIZE}={FAN}$ numbers. In hyperspherical coordinates it has $n-1={FAN - 1}$ angles and one radius,
and the offset makes $n+1={FAN + 1}$. With {OUT} filters that is ${OUT}\cdot{FAN + 1}={COUNT}$.

`nn.Conv2d({IN}, {OUT}, {SIZE})` has {_numbers(nn.Conv2d(IN, OUT, SIZE))} numbers too: the change of coordinates adds none. Weight normalisation has one more
for each filter, {_numbers(weight_norm(nn.Conv2d(IN, OUT, SIZE)))}, because the length of $v$ in $w=g\,v/|v|$ does nothing.""",
)


# ---- 2 -----------------------------------------------------------------------------------------------------
def _gradients(r: float, lam: float) -> list[bool]:
    """Whether a unit of the plane with u = (1, 0) has a gradient in r, in lam and in theta, on inputs within 2 of 0."""
    unit = GmPLinear(2, 1, dtype=f64)
    with torch.no_grad():
        unit.theta = torch.zeros(1, 1, dtype=f64)
        unit.r.fill_(r)
        unit.lam.fill_(lam)
    x = torch.randn(60, 2, dtype=f64, generator=torch.Generator().manual_seed(0))
    x = 2 * x / x.norm(dim=1).max()
    (unit(x)[:, 0] * x[:, 1].sin()).sum().backward()
    return [bool((p.grad != 0).any()) for p in (unit.r, unit.lam, unit.latitude)]


_DEAD = [(1.0, -3.0), (0.0, 0.5), (1.0, 3.0), (-1.0, 0.5)]
_ANY = [any(_gradients(*unit)) for unit in _DEAD]

dead = Choice(
    id="layer.ex2", difficulty=1, title="Which unit is lost",
    question="All inputs have length at most 2. Which of these units can gradient descent never move again?",
    options=(
        Option(r"$r=1,\ \lambda=-3$", not _ANY[0], r"Its argument $u\cdot x+\lambda$ is at most $2-3<0$: what does a gradient need?"),
        Option(r"$r=0,\ \lambda=0.5$", not _ANY[1],
               r"Its gradients in $\lambda$ and $\theta$ vanish, but $\partial z/\partial r=\sigma(u\cdot x+\lambda)$ does not: $r$ leaves 0, and then the others move."),
        Option(r"$r=1,\ \lambda=3$", not _ANY[2],
               "Its boundary misses all inputs, but it is active for all of them: every gradient flows. It acts as a linear unit until the boundary is back."),
        Option(r"$r=-1,\ \lambda=0.5$", not _ANY[3], "A negative radius turns the sign of the answer and of the gradients. They are not zero."),
    ),
    hints=(r"Each of the three derivatives contains $\mathbf 1[u\cdot x+\lambda>0]$ or $\sigma(u\cdot x+\lambda)$.",
           "A unit is lost if its argument is negative for every input. Between which bounds does $u\\cdot x$ lie here?"),
    praise="Silent for all inputs, in any coordinates.",
    solution=r"""
- $r=1,\ \lambda=-3$: $u\cdot x+\lambda\le|x|-3\le-1$, silent for every input. All derivatives are 0. **Lost.**
- $r=0$: the answers are 0, but $\partial z/\partial r=\sigma(u\cdot x+\lambda)$ is not. One step makes $r\ne0$.
- $\lambda=3$: active for every input. The unit is linear on the data; its gradients are those of a linear unit.
- $r=-1$: an ordinary unit with its answer subtracted.

The lost unit would be just as lost with $w=(1,0)$ and $b=-3$: a change of coordinates cannot create a gradient where the function does not
change. Another input, or momentum left over from earlier steps, can still move it.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
LAM, STEP = 3.0, 1.0
_PLACES = Boundary.from_angles(torch.tensor([[0.4], [0.4 + STEP]], dtype=f64), torch.tensor([LAM, LAM], dtype=f64)).location
SWING = float((_PLACES[1] - _PLACES[0]).norm())

swing = Number(
    id="layer.ex3", difficulty=2, title="A far unit swings",
    question=rf"A unit of the plane has $\lambda={LAM:.0f}$. A step changes its angle by ${STEP:.0f}$ radian and $\lambda$ not at all. How far does its location "
             r"$\phi=-\lambda\,u(\theta)$ move? Give the straight distance, to within $0.005$.",
    answer=SWING, tolerance=5e-3,
    wrong=(
        Wrong(LAM * STEP, "That is the way along the circle, and the bound of this chapter. The straight distance, the chord, is shorter."),
        Wrong(STEP, r"That is the step in $\theta$. The location stands at the distance $|\lambda|$ from the origin, and swings that much farther."),
        Wrong(SWING / LAM, r"That is how far $u$ moves. The location is $-\lambda\,u$."),
        Wrong(2 * LAM * sin(STEP), r"The chord of an angle $\alpha$ is $2\sin(\alpha/2)$ radii: half of the angle."),
        Wrong(0, r"The offset stays, but the direction turns, and $\phi=-\lambda\,u$ turns with it.", tolerance=1e-6),
    ),
    hints=("Before and after, the location stands on the circle of radius 3 about the origin.",
           r"The chord between two points of a circle of radius $R$ at the angle $\alpha$ is $2R\sin(\alpha/2)$."),
    praise="Nearly three times the step: the bound on the angle says nothing of how far away the unit is.",
    solution=rf"""
Both locations are {LAM:.0f} from the origin, one radian apart: $2\cdot{LAM:.0f}\cdot\sin\frac12={SWING:.4f}$.

In general $\phi'-\phi=-d\lambda\,u'-\lambda\,(u'-u)$, so $|d\phi|\le|d\lambda|+|\lambda|\,|d\theta|$, here $3$. The theorem bounds the *turn* by
$|d\theta|$ for every unit. The distance is that turn times a lever, and the lever is $|\lambda|$: for units near the data it is of order one, for
units far out it is not.""",
)


# ---- 4 -----------------------------------------------------------------------------------------------------
def _same_mean(conv: bool) -> bool:
    g = torch.Generator().manual_seed(0)
    if conv:
        x, kernel = torch.randn(3, 2, 6, 6, dtype=f64, generator=g) + 1, torch.randn(2, 2, 3, 3, dtype=f64, generator=g)
        before, plain = torch.conv2d(InputMeanNorm(2, dtype=f64)(x), kernel, padding=1), torch.conv2d(x, kernel, padding=1)
        return bool(torch.allclose(before, plain - plain.mean((0, 2, 3), keepdim=True)))
    x, W = torch.randn(20, 5, dtype=f64, generator=g) + 1, torch.randn(3, 5, dtype=f64, generator=g)
    return bool(torch.allclose(InputMeanNorm(5, dtype=f64)(x) @ W.T, x @ W.T - (x @ W.T).mean(0)))


statements = Multiple(
    id="layer.ex4", difficulty=2, title="True or not",
    question="Which of these hold for a GmP layer trained by plain gradient descent?",
    options=(
        Option("A change of $r$ alone never moves the boundary.", True, r"The boundary is $u\cdot x+\lambda=0$: is there an $r$ in it?"),
        Option("Two units that compute the same function take the same step, whether they are trained by $(w,b)$ or by $(r,\\lambda,\\theta)$.", False,
               "The function is the same, but the gradient depends on the coordinates: at $|w|=r$ the turns are as $1$ to at most $r^2$."),
        Option("In one step no unit turns by more than its change $|d\\theta|$ of the angles.", True,
               "That is the theorem of this part. It holds for every step, also for one that is far too long."),
        Option("So every unit turns by at most the learning rate.", False,
               r"The change is $\eta\,|\partial L/\partial\theta|$, and the gradient is proportional to $|r|$. Only an optimiser that fixes the size of the steps bounds it."),
        Option("Before a dense layer, input mean normalisation does what mean-only batch normalisation does inside it, in training.", _same_mean(False),
               r"Put $x-\bar x$ into $u\cdot x$ and use that it is linear."),
        Option("Before a convolution with zero padding, too.", _same_mean(True),
               "At the edge the filter sees padding, whose mean is not subtracted: try it on an image of ones."),
    ),
    hints=("Ask of each quantity in which formula $r$ stands: the boundary, the gradient, the turn.",
           "A bound on the turn by $|d\\theta|$ and a bound on $|d\\theta|$ itself are two different things."),
    praise="The theorem speaks of a step, not of the optimiser that chooses it.",
    solution=r"""
- **A change of $r$**: the boundary depends on $\lambda$ and $\theta$ alone. True.
- **The same step**: no. With $G=\sum_i\delta_ix_i$ a unit trained by its weights turns by about $\eta|G_\perp|/|w|$, a GmP unit by up to
  $\eta\,r\,|G_\perp|$.
- **At most $|d\theta|$**: true for all steps, by the theorem.
- **At most $\eta$**: no. Under gradient descent $|d\theta|=\eta\,|\partial L/\partial\theta|$, and that grows with $|r|$ and with the errors.
- **Dense**: $u\cdot(x-\bar x)=u\cdot x-\overline{u\cdot x}$. True.
- **Padded convolution**: no, the padding is not centred.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def answers(x, r, lam, theta):
    """The answers of a GmP layer: the truth of exercise 5."""
    return r * torch.relu(x @ from_angles(theta).T + lam)


def _gmp_trials(generator):
    def numbers(n, units, dtype=f64):
        x, r, lam, theta = (torch.randn(*s, dtype=f64, generator=generator) for s in ((9, n), (units,), (units,), (units, n - 1)))
        return tuple(t.to(dtype) for t in (x, r, lam, 2 * theta))
    return [Trial(numbers(3, 6), "six units of three inputs, radii of both signs"), Trial(numbers(2, 4), "four units of two inputs"),
            Trial(numbers(8, 3), "three units of eight inputs"), Trial(numbers(4, 5, torch.float32), "float32 numbers")]


def _rows_of_signs(x, r, lam, theta):
    return torch.relu(r * (x @ from_angles(theta).T + lam))


forward = Function(
    id="layer.ex5", difficulty=2, title="The layer, written out",
    question=r"Write the answers $z=r\,\sigma(u(\theta)\cdot x+\lambda)$ of a GmP layer: `x` is $(N,n)$, `r` and `lam` are $(m)$, `theta` is $(m,n-1)$, the result $(N,m)$. "
             "`ntklib.sphere.from_angles(theta)` gives the directions, one a row. Some radii are negative.",
    signature="answers(x, r, lam, theta)", truth=answers, trials=_gmp_trials, rtol=1e-9, atol=1e-12,
    mistakes=(
        Mistake(gives(_rows_of_signs),
                "You put the radius inside the ReLU. For $r>0$ that is the same, but a unit with $r<0$ then switches to its other side; the radius must stand outside."),
        Mistake(gives(lambda x, r, lam, theta: torch.relu(x @ (r[:, None] * from_angles(theta)).T + lam)),
                r"You made weights $w=r\,u$ and kept $\lambda$ as a bias: then the boundary stands at $\lambda/r$ and moves with the radius."),
        Mistake(gives(lambda x, r, lam, theta: r * torch.relu(x @ from_angles(theta).T) + r * lam),
                r"You added the offset after the ReLU. It belongs inside, $\sigma(u\cdot x+\lambda)$."),
        Mistake(gives(lambda x, r, lam, theta: r * (x @ from_angles(theta).T + lam)), "Where is the ReLU?"),
        Mistake(gives(lambda x, r, lam, theta: torch.relu(x @ from_angles(theta).T + lam)), "The radius is missing: it multiplies the answer."),
    ),
    hints=("All arguments at once are a matrix product, $x$ times the directions transposed, plus the offsets.",
           "Then the ReLU, and then the radii: does `r` of shape $(m)$ multiply the rows or the columns of an $(N,m)$ tensor?"),
    praise="Radius outside, offset inside: five symbols, and the boundary is free of one of them.",
    solution=r"""
```python
from ntklib.sphere import from_angles

def answers(x, r, lam, theta):
    u = from_angles(theta)
    return r * torch.relu(x @ u.T + lam)
```

The place of the radius matters only where it is negative: $\sigma(r\,s)=r\,\sigma(s)$ for $r\ge0$, but for $r<0$ the left side answers where $s<0$. One published port of the
method has it inside; its units change their side when the radius passes 0. With the radius outside, $z$ passes through the zero function and comes out with
the other sign, on the same side of the same boundary.""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def velocity(x, delta, r, lam, theta):
    """du/dt of one GmP unit under gradient flow: the truth of exercise 6."""
    active = (x @ from_angles(theta) + lam > 0).to(x.dtype)
    J = jacobian(theta)
    return -r * (J @ (J.T @ (x.T @ (active * delta))))


def _velocity_trials(generator):
    def numbers(n, r, dtype=f64):
        x, delta = torch.randn(20, n, dtype=f64, generator=generator), torch.randn(20, dtype=f64, generator=generator)
        theta = 0.4 + 2.2 * torch.rand(n - 1, dtype=f64, generator=generator)
        lam = 0.3 * torch.randn((), dtype=f64, generator=generator)
        return tuple(t.to(dtype) for t in (x, delta, torch.tensor(r, dtype=f64), lam, theta))
    return [Trial(numbers(3, 2.0), "a unit of three inputs with r = 2"), Trial(numbers(5, 0.5), "a unit of five inputs with r = 0.5"),
            Trial(numbers(3, -1.5), "a unit with a negative radius"), Trial(numbers(8, 3.0), "a unit of eight inputs")]


def _project(x, delta, r, lam, theta, scale):
    u = from_angles(theta)
    G = x.T @ ((x @ u + lam > 0).to(x.dtype) * delta)
    return -scale(r) * (G - u * (u @ G))


def _through_angles(x, delta, r, lam, theta, gate=True, power=1):
    J, on = jacobian(theta), (x @ from_angles(theta) + lam > 0).to(x.dtype)
    return -(r**power) * (J @ (J.T @ (x.T @ ((on if gate else 1) * delta))))


turn = Function(
    id="layer.ex6", difficulty=3, title="How fast a gradient turns a unit",
    question=r"One GmP unit has `r`, `lam` (tensors of shape `()`) and angles `theta` of shape $(n-1)$. On inputs `x`, $(N,n)$, the loss has the derivatives "
             r"`delta` $=\partial L/\partial z_i$, $(N)$. Return the velocity $du/dt$, shape $(n)$, of its direction when $\theta$ follows the negative gradient, "
             r"$\dot\theta=-\partial L/\partial\theta$. `ntklib.sphere.jacobian(theta)` is $\partial u_i/\partial\theta_j$.",
    signature="velocity(x, delta, r, lam, theta)", truth=velocity, trials=_velocity_trials, rtol=1e-8, atol=1e-11,
    mistakes=(
        Mistake(gives(lambda *a: _project(*a, scale=lambda r: r)),
                r"You projected $G$ to the tangent plane, as for weights. The angles give $J J^\top G$, whose directions are weighted by $M_{jj}$: compute $\dot\theta$ first, then "
                r"$J\dot\theta$."),
        Mistake(gives(lambda *a: _project(*a, scale=lambda r: 1 / r)), r"That is the velocity of $w/|w|$ when the *weights* follow the gradient, with $|w|=r$."),
        Mistake(gives(lambda *a: _through_angles(*a, power=0)), r"The radius is missing: $\partial z/\partial\theta$ contains it."),
        Mistake(gives(lambda *a: _through_angles(*a, gate=False)), "Silent inputs must not count: their derivative is 0."),
        Mistake(gives(lambda *a: -_through_angles(*a)), "The sign: the angles follow the *negative* gradient."),
    ),
    hints=(r"By the chain rule $\partial L/\partial\theta=r\,J^\top G$ with $G=\sum_i\delta_i\,\mathbf 1[s_i>0]\,x_i$ and $s_i=u\cdot x_i+\lambda$.",
           r"Then $\dot u=J\,\dot\theta$, by the chain rule once more. Write the gate as `(x @ u + lam > 0).to(x.dtype)`."),
    praise=r"$\dot u=-r\,JJ^\top G$: one factor $r$ where the weights have $1/|w|$, and $JJ^\top$ where they have a projection.",
    solution=r"""
```python
from ntklib.sphere import from_angles, jacobian

def velocity(x, delta, r, lam, theta):
    u, J = from_angles(theta), jacobian(theta)
    on = (x @ u + lam > 0).to(x.dtype)
    G = x.T @ (on * delta)
    return -r * J @ (J.T @ G)
```

$J J^\top=\sum_jM_{jj}\,e_je_j^\top$ in the orthonormal directions $e_j$ of the columns of $J$. For weights the same formula has the projection
$\sum_j e_je_j^\top$ and the factor $1/|w|$.""",
)

EXERCISES = (count, dead, swing, statements, forward, turn)
