"""Exercises of the chapter on the arc-cosine angle map.

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import acos, cos, degrees, pi, radians

import torch

from ntklib.angles import angle_between, angle_deficit, angle_map
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives

DEGREES = ("°", "deg", "degree", "degrees")


def _g(z: float) -> float:
    return float(angle_map(torch.tensor(z, dtype=torch.float64)))


def _loss(z: float) -> float:
    """What one layer takes off an angle: z - g(z)."""
    return float(angle_deficit(torch.tensor(z, dtype=torch.float64)))


# ---- 1 -----------------------------------------------------------------------------------------------------
RIGHT = degrees(_g(pi / 2))

right_angle = Number(
    id="angles.ex1", difficulty=1, title="A right angle",
    question="Two inputs are orthogonal. One very wide random ReLU layer is applied to both. What angle do "
             r"the outputs make? Give degrees, to within $0.05^\circ$.",
    answer=RIGHT, tolerance=0.05, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(90, "A linear layer would leave the right angle alone. The ReLU does not: its outputs have no "
                  "negative entries, so two of them can hardly be orthogonal."),
        Wrong(radians(RIGHT), "That is the angle in radians; the question asks for degrees."),
        Wrong(cos(radians(RIGHT)), r"That is $\cos g(\pi/2)=1/\pi$. One step is left: take the arccosine."),
        Wrong(degrees(acos(1 / (2 * pi))),
              r"You took $\mathbb{E}[\sigma(u)\sigma(v)]=1/(2\pi)$ for the cosine. It is not normalised yet: "
              r"divide by $\mathbb{E}[\sigma(u)^2]=1/2$."),
        Wrong(degrees(acos(1 / 4)),
              r"That is $\arccos(1/4)$, the limit of another angle, between *gradients*, in a very deep "
              "network (*The gradient angle*). Here it is one layer, and the angle between its outputs."),
        Wrong(45, "Half of the units are silent for each input, but that does not halve the angle: put "
                  "$z=\\pi/2$ into the formula of $g$."),
    ),
    hints=(r"Two terms stand inside the arccosine of $g(z)$. What are $\cos z$ and $\sin z$ at $z=\pi/2$?",
           r"The first term vanishes, so $\cos g(\pi/2)$ is $\sin(\pi/2)/\pi=1/\pi$."),
    praise=r"$\cos g(\pi/2)=1/\pi$: even orthogonal inputs come out positively correlated.",
    solution=rf"""
At $z=\pi/2$ the term $(\pi-z)\cos z$ vanishes, so $\cos g(\pi/2)=1/\pi$ and
$g(\pi/2)=\arccos(1/\pi)\approx {RIGHT:.2f}^\circ$.

The outputs of a ReLU are never negative, so any two of them lie in one orthant and their angle is at most
$90^\circ$. A quarter of the units is active for both of two orthogonal inputs, and on those both outputs are
positive: this is the correlation that the layer creates.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
PAIRS = (1, 45, 90, 180)
SHARE = {a: 100 * _loss(radians(a)) / radians(a) for a in PAIRS}       # per cent of the angle that is lost
_WHY = {
    1: r"Near $0$ the map hugs the identity: $g(z)\approx z-z^2/(3\pi)$. The share that is lost is about "
       rf"$z/(3\pi)$, here only {SHARE[1]:.2f} %.",
    45: f"This pair loses {SHARE[45]:.0f} %, more than a smaller angle does, but the share keeps growing "
        "beyond it.",
    90: f"This pair loses {SHARE[90]:.0f} %. Is the share that is lost still growing beyond a right angle?",
    180: f"Opposite inputs lose {SHARE[180]:.0f} %.",
}

moved_most = Choice(
    id="angles.ex2", difficulty=1, title="Who is moved most",
    question="One wide ReLU layer is applied to four pairs of inputs. Which pair loses the largest *share* "
             "of its angle?",
    options=tuple(Option(rf"${a}^\circ$", SHARE[a] == max(SHARE.values()), _WHY[a]) for a in PAIRS),
    hints=("Read $1-g(z)/z$ off the curve: how far below the diagonal is it, compared with its distance from "
           "the axis?",
           r"Compare the two ends: near $0$ the curve touches the diagonal. Where does it end, at $z=\pi$?"),
    praise="Opposite inputs lose half of their angle in one layer, and nearly parallel ones next to nothing.",
    solution="| angle | after one layer | share lost |\n|---|---|---|\n" + "\n".join(
        rf"| ${a}^\circ$ | ${degrees(_g(radians(a))):.2f}^\circ$ | {SHARE[a]:.2f} % |" for a in PAIRS) + """

The share grows with the angle all the way. That ReLU "separates similar inputs" is therefore *not* a
statement about this angle, which only shrinks: it is about the angle between gradients (*The gradient angle*).""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
THREE = radians(3)
LOSS = degrees(_loss(THREE))
LEADING = degrees(THREE**2 / (3 * pi))

small_loss = Number(
    id="angles.ex3", difficulty=2, title="How little one layer takes",
    question=r"Two inputs are $3^\circ$ apart. How much smaller is their angle after one wide ReLU layer? "
             "Give the *loss* $z-g(z)$ in degrees, to three decimals; the leading term of the series is near enough.",
    answer=LOSS, tolerance=5e-4, unit="degrees", units=DEGREES,
    wrong=(
        Wrong(3 - LOSS, "That is the angle that remains. The question asks what was lost.", tolerance=5e-3),
        Wrong(radians(LOSS), r"That is the loss in radians: multiply by $180/\pi$.", tolerance=1e-5),
        Wrong(3**2 / (3 * pi), r"The series $z-z^2/(3\pi)$ holds for radians, and you put in degrees. "
                               r"Convert $3^\circ$ first, and the result back.", tolerance=1e-2),
        Wrong(3 / (3 * pi), r"That would be a fixed share of the angle, $1/(3\pi)$ of it. The loss is "
                            "*quadratic* in $z$.", tolerance=5e-3),
        Wrong(0, "It is small, but not zero: $g(z)<z$ for every positive angle. Which term follows $z$ in "
                 "the series?", tolerance=1e-6),
        Wrong(degrees(THREE**2 / pi), r"The coefficient is $1/(3\pi)$: the cubic term of $\cos g$ is "
                                      r"$z^3/(3\pi)$, and the loss is that divided by $z$.", tolerance=2e-3),
        Wrong(degrees(THREE**3 / (3 * pi)),
              r"That is the cubic term of the series $1-z^2/2+z^3/(3\pi)+\dots$ of $\cos g(z)$. To turn it "
              r"into a loss of angle, divide by $\sin z\approx z$.", tolerance=1e-5),
    ),
    hints=(r"Use $g(z)=z-\frac{z^2}{3\pi}-\dots$ with $z$ in radians.",
           rf"$3^\circ={THREE:.5f}$ radians, so the loss is about ${THREE:.5f}^2/(3\pi)$ radians."),
    praise="About half a percent of the angle: tiny, but it is taken again in every layer.",
    solution=rf"""
$z={THREE:.5f}$, so $z^2/(3\pi)={radians(LEADING):.6f}$ radians $={LEADING:.5f}^\circ$; all digits give
${LOSS:.5f}^\circ$.

The *share* lost, $z/(3\pi)$, goes to zero with $z$: for similar inputs one layer is almost the identity. What
makes depth matter is that the loss never stops, and the chapter on depth adds it up.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
_Z = torch.linspace(0, pi, 2001, dtype=torch.float64).clamp(max=pi)
_AFTER, _LOST = angle_map(_Z), angle_deficit(_Z)

statements = Multiple(
    id="angles.ex4", difficulty=2, title="True or not",
    question=r"Which of these hold for the angle map $g$ on $[0,\pi]$?",
    options=(
        Option("$g$ is increasing: of two pairs, the one with the larger angle still has the larger angle "
               "after the layer.", bool((_AFTER.diff() > 0).all()),
               r"The derivative of $\cos g$ is $-(\pi-z)\sin z/\pi$, which is negative inside."),
        Option("Every positive angle gets smaller.", bool((_LOST[1:] > 0).all()),
               r"$\cos g(z)-\cos z$ is $(\sin z-z\cos z)/\pi$: what is its sign?"),
        Option(r"$g$ has a second fixed point, at $z=\pi$.", _LOST[-1].item() < 1e-9,
               r"At $z=\pi$ the cosine of $g$ is $\sin(\pi)/\pi=0$: opposite inputs become orthogonal."),
        Option("Opposite inputs become orthogonal.", abs(_AFTER[-1].item() - pi / 2) < 1e-12,
               r"Put $z=\pi$ into the formula: no unit is active for both of two opposite inputs."),
        Option("Two different directions can become the same direction after finitely many such layers.",
               bool((_AFTER[1:] <= 0).any()), "$g(z)=0$ only at $z=0$: a positive angle stays positive."),
        Option("For nearly parallel inputs one layer takes away a fixed percentage of the angle, however "
               "small it is.", _loss(1e-6) / 1e-6 > _loss(1e-3) / 1e-3 / 2,
               r"The share lost is about $z/(3\pi)$, which vanishes with the angle."),
    ),
    hints=(r"Three of them are settled by $\cos g$ alone: look at its derivative, and at $\cos g(z)-\cos z$.",
           r"For the others look at the ends: $z=\pi$, and $z\to 0$ in the series $g(z)=z-z^2/(3\pi)-\dots$"),
    praise="Increasing, below the identity, one fixed point: with these the next chapter goes deep.",
    solution=r"""
- **Increasing**: $\frac{d}{dz}\cos g=-\frac{(\pi-z)\sin z}{\pi}<0$ on $(0,\pi)$. True.
- **Every angle shrinks**: $\cos g(z)-\cos z$ is $\frac{\sin z-z\cos z}{\pi}$, positive for $0<z\le\pi$. True.
- **A fixed point at $\pi$**: no, $g(\pi)=\pi/2$. The only one is $0$, because every other angle shrinks.
- **Opposite becomes orthogonal**: that same value. True.
- **Two directions merge**: no, $\cos g(z)=1$ only at $z=0$. Angles tend to $0$ with depth and never reach it.
- **A fixed percentage**: no, the share lost is $z/(3\pi)+\dots$ and vanishes with $z$.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _mixed(beta):
    """A leaky map with some weight beta(slope) on the ReLU part of the cosine."""
    def f(theta, slope):
        b = beta(slope)
        return (b * angle_map(theta).cos() + (1 - b) * theta.cos()).clamp(-1, 1).arccos()
    return f


def _mean_of_angles(theta, slope):
    b = (1 - slope) ** 2 / (1 + slope**2)
    return b * angle_map(theta) + (1 - b) * theta


def _leaky_trials(generator):
    random = pi * torch.rand(16, generator=generator, dtype=torch.float64)
    ends = torch.tensor([0.0, pi / 2, pi], dtype=torch.float64)
    return [
        Trial((random, 0.1), "random angles"), Trial((random, 0.0), "random angles"),
        Trial((random, -1.0), "random angles"), Trial((random, 1.0), "random angles"),
        Trial((torch.linspace(0.3, 2.5, 7, dtype=torch.float32), 0.3), "float32 angles"),
        Trial((ends, 0.2), "the angles 0, pi/2 and pi"), Trial((ends, -1.0), "the angles 0, pi/2 and pi"),
        Trial((torch.tensor(1.0, dtype=torch.float64), 0.5), "one angle, a tensor of shape ()"),
    ]


leaky = Function(
    id="angles.ex5", difficulty=2, title="The leaky ReLU, and the absolute value",
    question=r"Write the angle map of the leaky ReLU $\sigma_a(t)=\max(t,0)+a\,\min(t,0)$ for a tensor of "
             r"angles `theta` in $[0,\pi]$ and a number `slope` $=a$. With $a=0$ it must be $g$, with $a=1$ "
             "the identity, and $a=-1$ is the absolute value. You may call `ntklib.angle_map(theta)`, "
             "which is $g$.",
    signature="leaky_map(theta, slope)", truth=angle_map, trials=_leaky_trials,
    atol=1e-7,                          # an arccosine has no more digits near 0, and may be used here
    when_nan="Rounding can push a cosine above 1, where arccos is not defined: clamp it to $[-1,1]$.",
    mistakes=(
        Mistake(gives(lambda theta, slope: angle_map(theta)),
                "That is the plain ReLU for every slope: where does $a$ enter?"),
        Mistake(gives(_mean_of_angles),
                "You averaged *angles*. Expectations are linear, so it is the *cosines* that mix: "
                r"$\cos g_a$ is $\beta\cos g+(1-\beta)\cos\theta$."),
        Mistake(gives(_mixed(lambda a: (1 - a) ** 2)),
                r"The cosine is not normalised: divide by $\mathbb{E}[\sigma_a(u)^2]=(1+a^2)/2$ at the end."),
        Mistake(gives(_mixed(lambda a: 1 - a)),
                "You mixed the *functions* with weights $1-a$ and $a$, but the kernel is quadratic in "
                r"$\sigma$: expand $\mathbb{E}[\sigma_a(u)\sigma_a(v)]$ and mind the cross terms."),
        Mistake(gives(lambda theta, slope: angle_map(theta, slope).cos()),
                "Those are the cosines of the right angles: take the arccosine."),
    ),
    hints=(r"Write $\sigma_a(t)=a\,t+(1-a)\operatorname{relu}(t)$ and expand "
           r"$\mathbb{E}[\sigma_a(u)\sigma_a(v)]$. By symmetry "
           r"$\mathbb{E}[u\,\operatorname{relu}(v)]=\frac12\cos\theta$.",
           r"The sum is $a\cos\theta+\frac{(1-a)^2}{2}\cos g(\theta)$. Divide by its value at $\theta=0$."),
    praise=r"One number, $\beta=(1-a)^2/(1+a^2)$, says how far the activation is from linear.",
    solution=r"""
With $\sigma_a(t)=a\,t+(1-a)\operatorname{relu}(t)$,

$$\mathbb{E}[\sigma_a(u)\sigma_a(v)]
=a^2\cos\theta+2a(1-a)\frac{\cos\theta}{2}+(1-a)^2\frac{\cos g(\theta)}{2}$$
$$=a\cos\theta+\frac{(1-a)^2}{2}\cos g(\theta).$$

At $\theta=0$ it is $(1+a^2)/2$, so with $\beta=\frac{(1-a)^2}{1+a^2}$

$$\cos g_a(\theta)=\beta\cos g(\theta)+(1-\beta)\cos\theta.$$

```python
def leaky_map(theta, slope):
    beta = (1 - slope) ** 2 / (1 + slope ** 2)
    c = beta * angle_map(theta).cos() + (1 - beta) * theta.cos()
    return c.clamp(-1, 1).arccos()
```

For $a=-1$, $\beta=2$: the absolute value cannot tell $x$ from $-x$, so it sends $\pi$ to $0$.
`angle_map(theta, slope)` does the same and keeps the digits of small angles, which the arccosine loses.""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def _pairs(angles, generator, dtype=torch.float64, dim=5):
    """Rows x, y with the given angles between them, and lengths that are not 1."""
    n = len(angles)
    q = torch.linalg.qr(torch.randn(n, dim, 2, generator=generator, dtype=torch.float64))[0]
    a = torch.tensor(angles, dtype=torch.float64)[:, None]
    r = 0.5 + torch.rand(2, n, 1, generator=generator, dtype=torch.float64)
    return (r[0] * q[..., 0]).to(dtype), (r[1] * (a.cos() * q[..., 0] + a.sin() * q[..., 1])).to(dtype)


def _stable_trials(generator):
    x, y = torch.randn(2, 12, 4, generator=generator, dtype=torch.float64)
    exact = torch.tensor([[1.0, 0], [3, 4], [1, 0]], dtype=torch.float64)
    return [
        Trial((x, y), "random vectors"),
        Trial(_pairs([1e-3, 1e-5, 1e-7, 1e-8], generator), "nearly parallel vectors"),
        Trial(_pairs([pi - 1e-3, pi - 1e-5, pi - 1e-7], generator), "nearly opposite vectors"),
        Trial(_pairs([3e-2, 3e-3, 0.5, 2.5], generator, torch.float32), "float32 vectors"),
        Trial((exact, exact * torch.tensor([[2.0], [1], [-1]])), "parallel and opposite vectors"),
    ]


def _is_arccos(output, x, y):
    """The cosine of the output is right to its last digits: the angle was lost after it."""
    few = 16 * torch.finfo(output.dtype).eps
    return bool((((output.cos() - angle_between(x, y).cos()).abs() <= few) | output.isnan()).all())


def _is_sine(output, x, y):
    """Acute angles are right, obtuse ones folded onto them."""
    theta = angle_between(x, y)
    return torch.allclose(output, torch.minimum(theta, pi - theta), rtol=1e-4, atol=1e-7)


stable = Function(
    id="angles.ex6", difficulty=3, title="An angle that keeps its digits",
    question="Write a function that gives the angles between the rows of two $(n, d)$ tensors, and that is "
             r"right to six digits also for rows that are $10^{-8}$ apart, or opposite. Rows are not zero, "
             "and not of length 1. (`ntklib.angle_between` does it, so leave that one aside.)",
    signature="angle(x, y)", truth=angle_between, trials=_stable_trials,
    when_nan="Rounding can push a cosine above 1, where arccos is not defined (and arcsin neither). Clamping "
             "hides the NaN, but a cosine near 1 no longer has the digits of a small angle.",
    mistakes=(
        Mistake(_is_arccos, r"That is the arccosine of the cosine. Near $0$ the cosine is $1-\theta^2/2$: "
                            r"with 16 digits every $\theta$ below about $10^{-8}$ is rounded to the same "
                            "number, and no arccosine can bring it back. Start from the difference of the "
                            "vectors instead."),
        Mistake(_is_sine, r"You used a sine, which is the same for $\theta$ and $\pi-\theta$: obtuse angles "
                          "came out acute. The arctangent of two arguments knows both."),
        Mistake(gives(lambda x, y: 2 * ((x - y).norm(dim=-1) / 2).clamp(max=1).arcsin()),
                "The chord formula is for vectors of length 1: normalise the rows first."),
    ),
    hints=("For unit vectors $u$ and $v$, draw the rhombus with sides $u$ and $v$. Its diagonals are $u-v$ "
           r"and $u+v$: what are their lengths, in terms of $\theta/2$?",
           r"$\|u-v\|=2\sin(\theta/2)$ and $\|u+v\|=2\cos(\theta/2)$. Which function of two arguments gives "
           "an angle from its sine and its cosine?"),
    praise="The difference of two vectors keeps what their cosine has rounded away.",
    solution=r"""
The diagonals of the rhombus of $u=x/\|x\|$ and $v=y/\|y\|$ have lengths $2\sin(\theta/2)$ and
$2\cos(\theta/2)$, so

$$\theta=2\,\operatorname{atan2}(\|u-v\|,\ \|u+v\|).$$

```python
def angle(x, y):
    u = x / x.norm(dim=-1, keepdim=True)
    v = y / y.norm(dim=-1, keepdim=True)
    return 2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1))
```

Subtracting two nearly equal vectors is harmless here: the *difference* carries the angle in its leading
digits. The cosine carries it in its last ones, because $1-\cos\theta\approx\theta^2/2$. (The first diagonal
alone, $2\arcsin(\frac12\|u-v\|)$, is as good for small angles; near $\pi$ it loses half of the digits of
$\pi-\theta$.)""",
)

EXERCISES = (right_angle, moved_most, small_loss, statements, leaky, stable)
