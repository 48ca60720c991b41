"""Exercises of the chapter "Hyperspherical coordinates".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import cos, degrees, lgamma, log, pi, radians

import torch
from torch import Tensor

from ntklib import sphere
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives

f64 = torch.float64
DEGREES = ("°", "deg", "degree", "degrees")
PERCENT = ("%", "percent", "per cent")

# ---- 1 -----------------------------------------------------------------------------------------------------
W = [2.0, 2.0, 2.0, -2.0]
LAST = degrees(float(sphere.to_angles(torch.tensor(W, dtype=f64))[1][-1]))

last_angle = Number(
    id="coordinates.ex1", difficulty=1, title="The last angle",
    question=r"A unit has the weights $w=(2,2,2,-2)$. What is its last angle, $\theta_3\in[0,2\pi)$? Give degrees.",
    answer=LAST, tolerance=0.05, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(360 - LAST, "That is the angle of $(2,2,2,+2)$. Lengths alone lose the sign of the last weight: this is the slip of the released "
                          "code."),
        Wrong(LAST - 360, r"The right direction, but the range is $[0^\circ,360^\circ)$: add a full turn."),
        Wrong(135, r"You divided the wrong way round: it is $\operatorname{atan2}(w_4,w_3)$, with the later weight first."),
        Wrong(radians(LAST), "That is the angle in radians; the question asks for degrees."),
        Wrong(60, r"That is $\theta_1=\operatorname{atan2}(\sqrt{12},2)$. The *last* angle sees only the last two weights."),
    ),
    hints=(r"The first angles only see lengths of tails. Which weights does the last angle see?",
           r"The point $(w_3,w_4)=(2,-2)$ of the plane: in which quadrant does it lie?"),
    praise="The last angle alone goes round a full turn, because it alone must carry a sign.",
    solution=rf"""
The last angle is the angle of the point $(w_3,w_4)=(2,-2)$ of the plane, $\operatorname{{atan2}}(-2,2)=-45^\circ$, and in
$[0^\circ,360^\circ)$ that is ${LAST:.0f}^\circ$.

The first two angles are $\operatorname{{atan2}}(\sqrt{{12}},2)=60^\circ$ and $\operatorname{{atan2}}(\sqrt8,2)\approx54.74^\circ$: a
tail has a length and no sign, so they stay in $[0^\circ,180^\circ]$.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
_POLE = sphere.from_angles(torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0], dtype=f64))
ZEROS = int((_POLE == 0).sum())

at_the_pole = Choice(
    id="coordinates.ex2", difficulty=1, title="At a pole",
    question=r"A unit with $n=6$ weights has $\theta_3=0$; its other angles are $57^\circ$. How many of its six weights are exactly zero?",
    options=tuple(Option(str(k), k == ZEROS, why) for k, why in (
        (1, r"Which coordinates contain the factor $\sin\theta_3$? More than one."),
        (2, r"$u_5$ and $u_6$ contain the factor $\sin\theta_3$. They are not the only ones: look at $u_4$."),
        (3, r"Three of them contain the factor $\sin\theta_3$, and it vanishes."),
        (4, r"$u_3=\cos\theta_3\sin\theta_1\sin\theta_2$ has the *cosine* of $\theta_3$, which is 1."),
    )),
    hints=(r"Write $u_1,\dots,u_6$ as products. In which of them does $\sin\theta_3$ stand?",
           r"$u_3$ has $\cos\theta_3$; each later coordinate has $\sin\theta_3$, whatever follows."),
    praise=r"And $\theta_4$ and $\theta_5$ may now be anything: they move nothing.",
    solution=rf"""
$u_i$ contains $\sin\theta_3$ exactly for $i>3$, so $u_4=u_5=u_6=0$: {ZEROS} weights. What is left is the direction
$(\cos\theta_1,\ \sin\theta_1\cos\theta_2,\ \sin\theta_1\sin\theta_2)$ of the first three inputs.

The angles $\theta_4$ and $\theta_5$ are still there, but no value of them changes $u$. Their gradients are zero, so that
gradient descent leaves them where they are until $\theta_3$ moves away from $0$.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
NEAR = 100 * (1 - cos(radians(30)))

near_the_poles = Number(
    id="coordinates.ex3", difficulty=2, title="How many directions are near a pole",
    question=r"Directions are uniform on the sphere of $\mathbb R^3$. What percentage of them lies within $30^\circ$ of one of the two poles, "
             r"that is, has $\theta_1<30^\circ$ or $\theta_1>150^\circ$? Give one decimal.",
    answer=NEAR, tolerance=0.06, unit="per cent", units=PERCENT,
    wrong=(
        Wrong(100 / 3, "That would be right if the angle itself were uniform, $60$ of $180$ degrees. It is not: there is less room near a "
                       "pole.", tolerance=0.5),
        Wrong(NEAR / 2, "That is one of the two caps."),
        Wrong(NEAR / 100, "That is the share; the question asks for per cent.", tolerance=1e-3),
        Wrong(100 - NEAR, "That is what lies outside the two caps."),
        Wrong(50, r"You integrated the cosine. The density of $\theta_1$ is $\frac12\sin\theta_1$, the length of its parallel."),
    ),
    hints=(r"With two coordinates behind it, the density of $\theta_1$ is proportional to $\sin\theta_1$ on $[0,\pi]$.",
           r"Make it a density on $[0,\pi]$: what is $\int_0^\pi\sin\theta\,d\theta$? Then integrate it over one cap, from $0$ to $\pi/6$. There are two caps."),
    praise="Archimedes knew it: the area of a cap is proportional to its height.",
    solution=rf"""
$\theta_1$ has the density $\frac12\sin\theta_1$, so one cap holds $\frac12(1-\cos30^\circ)$ and both hold
$1-\cos30^\circ={NEAR / 100:.4f}$, which is {NEAR:.1f} %.

Angles drawn uniformly would put 33.3 % there: two and a half times too many. It gets much worse with more dimensions, where the
density is $\propto\sin^{{n-2}}\theta_1$: for $n=100$ a uniform direction is practically never within $30^\circ$ of the first axis.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
_U = sphere.from_angles(sphere.uniform_angles(20_000, 12, generator=torch.Generator().manual_seed(0)))
_MEAN = _U.square().mean(0)

statements = Multiple(
    id="coordinates.ex4", difficulty=2, title="True or not",
    question=r"A direction of $\mathbb R^n$, $n\ge3$, is drawn uniformly from the sphere and written in angles. Which of these hold?",
    options=(
        Option(r"$u_n$ is a product of $n-1$ sines, so for large $n$ it is much smaller than $u_1$ on average.",
               bool(_MEAN[-1] < 0.5 * _MEAN[0]),
               r"The law does not know the order of the coordinates: $\mathbb E\,u_i^2=1/n$ for each. The sines are near 1."),
        Option("The angles are independent of each other.", True,
               r"The angle of $w_1$ against its tail says nothing about the direction of that tail."),
        Option("All angles have the same law.", False,
               r"The density of $\theta_i$ is $\propto\sin^{n-1-i}\theta_i$: it changes with $i$."),
        Option(r"$\cos\theta_1$ has the mean square $1/n$.", abs(float(_MEAN[0]) * 12 - 1) < 0.05, r"$\cos\theta_1$ is $u_1$."),
        Option("Half of the entries of $w$ may be replaced by their absolute values before the angles are taken: angles see lengths only.", False,
               "Each polar angle sees the sign of its own coordinate through the cosine, and the last angle sees two signs."),
    ),
    hints=("A uniform law does not change when coordinates are exchanged. Which statements contradict that?",
           r"Peel off one coordinate: $w=(w_1,\text{tail})$. Of what is $\theta_1$ made, and of what are the later angles made?"),
    praise="Independent, not equal: each angle belongs to a sphere of its own dimension.",
    solution=r"""
- **$u_n$ is smaller**: no. $\mathbb E\,u_i^2$ is the same for all $i$ because the law is, and the squares sum to 1. The product of sines is the
  telescoping product $\frac{n-1}{n}\cdot\frac{n-2}{n-1}\cdots\frac12$.
- **Independent**: yes. $\theta_1$ is made of $w_1$ and the length of the tail, the later angles of the direction of the tail.
- **The same law**: no, $\theta_1$ is narrow around $90^\circ$ and the last angle is uniform.
- **$\mathbb E\cos^2\theta_1=1/n$**: yes, it is $\mathbb E\,u_1^2$.
- **Absolute values**: no. $\theta_i>90^\circ$ exactly where $w_i<0$.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _angles(w: Tensor) -> Tensor:
    return sphere.to_angles(w)[1]


def _with_last(last):
    """Right polar angles, and some last angle of (w_{n-1}, w_n)."""
    return lambda w: torch.cat([_angles(w)[:, :-1], last(w[:, -2:-1], w[:, -1:])], -1)


def _weights(generator):
    return [
        Trial((torch.randn(12, 5, generator=generator, dtype=f64),), "random vectors"),
        Trial((torch.randn(12, 2, generator=generator, dtype=f64),), "vectors of the plane"),
        Trial((1e-3 * torch.randn(6, 30, generator=generator, dtype=f64),), "short vectors of 30 coordinates"),
        Trial((torch.randn(8, 4, generator=generator, dtype=torch.float32),), "float32 vectors"),
        Trial((torch.tensor([[0.0, 0, 1, -1], [-1, 1e-9, 0, -1e-9]], dtype=f64),), "vectors with zeros, and one near a pole"),
    ]


way_back = Function(
    id="coordinates.ex5", difficulty=2, title="The way back",
    question=r"Write the angles of the rows of a $(k,n)$ tensor, $n\ge2$: $\theta_1,\dots,\theta_{n-2}\in[0,\pi]$ and $\theta_{n-1}\in[0,2\pi)$, a "
             r"$(k,n-1)$ tensor. (`ntklib.sphere.to_angles` does it, so leave that one aside.)",
    signature="angles_of(w)", truth=_angles, trials=_weights, atol=1e-9,
    when_nan="An arccosine of a quotient can leave $[-1,1]$ by rounding: the arctangent of two arguments cannot.",
    mistakes=(
        Mistake(gives(_with_last(lambda x, y: torch.atan2(y.abs(), x))),
                "The sign of $w_n$ is lost: your last angle never exceeds $\\pi$. The released code loses it in the same way."),
        Mistake(gives(_with_last(lambda x, y: torch.atan2(y, x))),
                r"The last angle comes out in $(-\pi,\pi]$: bring it to $[0,2\pi)$."),
        Mistake(gives(_with_last(lambda x, y: torch.atan2(x, y) % (2 * pi))),
                "The last angle has its arguments exchanged: the later coordinate comes first."),
        Mistake(gives(lambda w: _angles(w).rad2deg()), "Those are degrees: give radians."),
    ),
    hints=(r"The squared tails are a cumulative sum from the end: `flip`, `cumsum`, `flip`. Which two numbers does a polar angle see, and "
           "which two does the last one see?",
           r"A polar angle is that of the point $(w_i,\text{tail behind }w_i)$, by `torch.atan2`. For the last one both numbers have signs, and "
           r"`% (2 * math.pi)` brings it to $[0,2\pi)$."),
    praise="One cumulative sum, n − 1 arctangents: as cheap as the norm.",
    solution=r"""
The tail $(w_{i+1},\dots,w_n)$ has the length $|w|\prod_{k\le i}\sin\theta_k$ and $w_i$ is $|w|\cos\theta_i\prod_{k<i}\sin\theta_k$: their quotient is
$\tan\theta_i$. In the last plane both coordinates have signs.

```python
def angles_of(w):
    tails = w.square().flip(-1).cumsum(-1).flip(-1).sqrt()
    polar = torch.atan2(tails[:, 1:-1], w[:, :-2])
    last = torch.atan2(w[:, -1:], w[:, -2:-1]) % (2 * math.pi)
    return torch.cat([polar, last], -1)
```

The library's version also scales each row first, so that squares neither overflow nor underflow, and works in float64 inside.""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def _log_area(n: int) -> float:
    """log of the area of the unit sphere of R^n."""
    return log(2) + n / 2 * log(pi) - lgamma(n / 2)


def _powers(theta: Tensor, shift: int = 0) -> Tensor:
    n = theta.shape[-1] + 1
    power = torch.arange(n - 2, 0, -1, dtype=theta.dtype) + shift
    return (power * theta[:, :-1].sin().log()).sum(-1)


def log_density(theta: Tensor) -> Tensor:
    """log of the density of the angles (k, n-1) of a uniform direction."""
    return _powers(theta) - _log_area(theta.shape[-1] + 1)


def _angle_trials(generator):
    def draw(k, n):
        return sphere.uniform_angles(k, n, generator=generator)
    return [
        Trial((draw(10, 5),), "angles of five coordinates"),
        Trial((draw(6, 3),), "angles of the sphere in space"),
        Trial((draw(4, 60),), "angles of 60 coordinates"),
        Trial((draw(5, 2),), "the one angle of the plane"),
        Trial((draw(8, 7).float(),), "float32 angles"),
    ]


density = Function(
    id="coordinates.ex6", difficulty=3, title="The density of the angles",
    question=r"Write the *logarithm* of the joint density of the angles of a uniform direction, for a $(k,n-1)$ tensor of angles inside their "
             r"ranges: $k$ numbers. It must integrate to 1 over $[0,\pi]^{n-2}\times[0,2\pi)$. You may use `math.lgamma`.",
    signature="log_density(theta)", truth=log_density, trials=_angle_trials, atol=1e-9,
    when_nan=r"The last angle goes up to $2\pi$, where its sine is negative and has no logarithm: leave it out, its exponent is zero.",
    mistakes=(
        Mistake(gives(_powers), "The shape is right and the constant is missing: the density must integrate to 1."),
        Mistake(gives(lambda theta: _powers(theta, 1) - _log_area(theta.shape[-1] + 1)),
                r"The exponents are one too large: $\theta_i$ has $n-i$ coordinates behind it and the exponent $n-i-1$."),
        Mistake(gives(lambda theta: log_density(theta) + log(2)),
                r"Off by $\log2$: the last angle goes round a full turn, and has the density $\frac1{2\pi}$."),
        Mistake(gives(lambda theta: log_density(theta).exp()), "That is the density itself: give its logarithm."),
    ),
    hints=(r"The angles are independent, so the logarithms of their densities add up. Which power of $\sin\theta_i$ belongs to $\theta_i$? All the "
           "constants together are one well-known area.",
           r"The power is $n-1-i$, and $0$ for the last angle. The area of the unit sphere of $\mathbb R^n$ is $2\pi^{n/2}/\Gamma(n/2)$."),
    praise="The constant is the area of the sphere: angles are just a map of it.",
    solution=r"""
The densities multiply to $\prod_{i\le n-2}\sin^{n-1-i}\theta_i$ over the product of their constants, and that product is the area of the sphere,
$2\pi^{n/2}/\Gamma(n/2)$.

```python
def log_density(theta):
    n = theta.shape[-1] + 1
    power = torch.arange(n - 2, 0, -1, dtype=theta.dtype)
    area = math.log(2) + n / 2 * math.log(math.pi) - math.lgamma(n / 2)
    return (power * theta[:, :-1].sin().log()).sum(-1) - area
```

It is what a Bayesian prior on directions, or a normalising flow, has to add when it works in angles.""",
)

EXERCISES = (last_angle, at_the_pole, near_the_poles, statements, way_back, density)
