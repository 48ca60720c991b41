"""Exercises of the chapter on two points.

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import ceil, cos, pi, radians, sin, tan

import torch

from ntklib import spectrum
from ntklib.angles import gradient_deficit
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives


def _kappa(degrees: float, depth: int, activation="relu", ratio=1.0) -> float:
    t = radians(degrees)
    X = torch.tensor([[1.0, 0.0], [ratio * cos(t), ratio * sin(t)]], dtype=torch.float64)
    return spectrum.ntk_condition_number(X, depth=depth, activation=activation).kappa


# ---- 1 -----------------------------------------------------------------------------------------------------
SIXTY = _kappa(60, 3, "linear")

linear_pair = Number(
    id="pairs.ex1", difficulty=1, title="Sixty degrees, no ReLU",
    question=r"Two unit inputs are $60^\circ$ apart. What is the condition number of their tangent kernel in an infinitely wide *linear* "
             "network with seven hidden layers?",
    answer=SIXTY, tolerance=0.005,
    wrong=(
        Wrong(1 / SIXTY, "A condition number is at least 1: divide the larger eigenvalue by the smaller."),
        Wrong(1 / tan(radians(30)), r"That is $\cot\frac\theta2$: it comes squared."),
        Wrong(4 / radians(60) ** 2, r"That is the leading term $4/\theta^2$ for small angles, and $60^\circ$ is not small. The exact value is "
                                    r"$\cot^2\frac\theta2$."),
        Wrong(8 * SIXTY, "The factor $L+1$ multiplies both eigenvalues and cancels."),
        Wrong(1 / cos(radians(60)), r"That is $1/\cos\theta$. The eigenvalues are $1+\cos\theta$ and $1-\cos\theta$, up to a factor."),
    ),
    hints=(r"The kernel is a multiple of $\begin{pmatrix}1&c\\c&1\end{pmatrix}$ with $c=\cos60^\circ$. Its eigenvectors are $(1,1)$ and $(1,-1)$.",
           r"The eigenvalues are $1+c$ and $1-c$, in units of $L+1$."),
    praise=r"$\frac{1+1/2}{1-1/2}=\cot^2 30^\circ$, at any depth.",
    solution=rf"""
Without the ReLU $\bar K=(L+1)G$, and $G=\begin{{pmatrix}}1&\frac12\\\frac12&1\end{{pmatrix}}$ has the eigenvalues $\frac32$, for $(1,1)$, and $\frac12$, for
$(1,-1)$. Their quotient is ${SIXTY:.0f}$.

In general $\bar\kappa=\frac{{1+\cos\theta}}{{1-\cos\theta}}=\cot^2\frac\theta2$. The depth, here seven, does not enter.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
HALF = _kappa(0.01, 5) / _kappa(0.02, 5)
_FACTORS = {
    1: "The angle between the gradients does shrink, as the root of the input angle.",
    1.4142: r"That is what happens to the *angle* of the gradients, $\phi\sim\sqrt{L\theta/\pi}$. The condition number goes with $1/\phi^2$.",
    2: "",
    4: r"That is the linear network, with $4/\theta^2$. With the ReLU the exponent is another one.",
}

halving = Choice(
    id="pairs.ex2", difficulty=1, title="Half the angle",
    question="Two inputs are 0.02° apart, and then one of them is moved to half the angle. By which factor does the condition number of a ReLU network "
             "with five hidden layers grow, at infinite width?",
    options=tuple(Option({1: "It hardly changes", 1.4142: r"By $\sqrt2$", 2: "By 2", 4: "By 4"}[f], abs(f - HALF) < 0.02, why) for f, why in _FACTORS.items()),
    hints=(r"How does $\phi_L$ depend on a small $\theta$?", r"$\kappa\approx4/\phi^2$ and $\phi^2\approx L\theta/\pi$."),
    praise=r"$\kappa\approx\frac{4\pi}{L\theta}$ doubles; without the ReLU it would be four times as large.",
    solution=rf"""
For a small angle $\kappa=\cot^2\frac{{\phi_L}}2\approx\frac4{{\phi_L^2}}$ and $\phi_L^2\approx\frac{{L\theta}}\pi$, so that

$$\kappa\approx\frac{{4\pi}}{{L\,\theta}}.$$

Half the angle, twice the condition number: ${HALF:.4f}$ times, to be exact. In the linear network it is $\cot^2\frac\theta2\approx4/\theta^2$, and the factor is 4.
This difference of exponents is the whole effect.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
_CANDIDATES = (30, 60, 75, 90, 100, 120)
_WORSE = {a: _kappa(a, 1) > _kappa(a, 1, "linear") for a in _CANDIDATES}

worse = Multiple(
    id="pairs.ex3", difficulty=2, title="Where the ReLU hurts",
    question=r"For which of these angles between two unit inputs does *one* hidden ReLU layer make the condition number larger than the linear network has it?",
    options=tuple(Option(rf"${a}^\circ$", w, rf"Here $\kappa={_kappa(a, 1):.3g}$ with the ReLU, and ${_kappa(a, 1, 'linear'):.3g}$ without.")
                  for a, w in _WORSE.items()),
    hints=(r"Compare $|\cos\phi_1|$ with $|\cos\theta|$: the smaller one has the smaller $\kappa$.",
           r"$\cos\phi_1=\frac12\bigl[(1-\frac\theta\pi)\cos\theta+\cos g(\theta)\bigr]$. The edges of the window are near $67^\circ$ and $96^\circ$."),
    praise="Only near a right angle, and the window is not symmetric about it.",
    solution="| angle | without | with one ReLU layer |\n|---|---|---|\n" + "\n".join(
        rf"| ${a}^\circ$ | {_kappa(a, 1, 'linear'):.4g} | {_kappa(a, 1):.4g} |" for a in _CANDIDATES) + """

The ReLU pulls the gradients of any pair towards acute angles that are not small. That helps a pair that is close, and one that is nearly opposite: for a linear network
$x$ and $-x$ are one direction. It spoils a pair that was nearly orthogonal to begin with.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
ANGLE, TARGET = 0.5, 1000
DEPTH = next(L for L in range(1, 200) if _kappa(ANGLE, L, "linear") / _kappa(ANGLE, L) >= TARGET)
_ESTIMATE = TARGET * pi * radians(ANGLE)

enough_layers = Number(
    id="pairs.ex4", difficulty=2, title="How deep for a thousand",
    question=rf"Two unit inputs are ${ANGLE}^\circ$ apart. How many hidden ReLU layers does it take, at infinite width, to make their condition number at least "
             f"{TARGET} times smaller than that of a linear network? An estimate within two layers will do.",
    answer=DEPTH, tolerance=2, unit="layers", units=("layers", "layer"),
    wrong=(
        Wrong(TARGET * pi * ANGLE, r"You put degrees into $L/(\pi\theta)$: convert to radians.", tolerance=5),
        Wrong(TARGET / (pi * radians(ANGLE)), r"You divided by $\pi\theta$. The gain is $L/(\pi\theta)$: solve for $L$.", tolerance=100),
        Wrong(TARGET * radians(ANGLE), r"The factor $\pi$ is missing: the gain is $L/(\pi\theta)$.", tolerance=1),
        Wrong(_ESTIMATE**2, r"The gain is proportional to $L$, and not to $\sqrt L$: that would be the gain in *angle*.", tolerance=5),
        Wrong(TARGET, "One layer already gains far more than a factor 1 at this angle.", tolerance=1),
    ),
    hints=(r"The gain is about $\frac L{\pi\theta}$, with $\theta$ in radians.",
           rf"${ANGLE}^\circ={radians(ANGLE):.5f}$ radians. Solve $\frac L{{\pi\theta}}={TARGET}$."),
    praise="The gain is proportional to the depth, as long as $L\\theta$ is small.",
    solution=rf"""
$\frac L{{\pi\theta}}={TARGET}$ gives $L={TARGET}\,\pi\cdot{radians(ANGLE):.5f}\approx{_ESTIMATE:.1f}$, so ${ceil(_ESTIMATE)}$ layers by the leading term. The exact condition
numbers need ${DEPTH}$, since at $L\theta\approx{DEPTH * radians(ANGLE):.2f}$ the next term, which is negative, begins to be felt.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def pair_kappa(theta, ratio, depth):
    """Condition number of two points at angle theta with lengths 1 : ratio."""
    d = gradient_deficit(theta, depth)
    half = (ratio + 1 / ratio) ** 2 / (2 * d * (2 - d)) - 1
    return half + ((half - 1).clamp(min=0) * (half + 1)).sqrt()


def _trials(generator):
    random = 0.2 + 2.6 * torch.rand(12, generator=generator, dtype=torch.float64)
    small = torch.tensor([1e-3, 1e-6, 1e-9, 1e-12], dtype=torch.float64)
    return [
        Trial((random, 1.0, 3), "random angles and equal lengths"), Trial((random, 2.0, 1), "random angles and lengths 1 : 2"),
        Trial((random, 0.3, 0), "random angles, lengths 1 : 0.3, and no hidden layer"),
        Trial((small, 1.0, 2), "very small angles"), Trial((small, 3.0, 5), "very small angles and lengths 1 : 3"),
    ]


def _equal(theta, ratio, depth):
    return pair_kappa(theta, 1.0, depth)


def _of_inputs(theta, ratio, depth):
    return pair_kappa(theta, ratio, 0)


def _inverse(theta, ratio, depth):
    return 1 / pair_kappa(theta, ratio, depth)


def _root(theta, ratio, depth):
    return pair_kappa(theta, ratio, depth).sqrt()


def _cancelled(output, theta, ratio, depth):
    """Right where the angle is not small; wrong or infinite where the cosine has lost it."""
    truth = pair_kappa(theta, ratio, depth)
    return bool((((output / truth - 1).abs() < 1e-3) | (theta < 1e-4)).all())


general = Function(
    id="pairs.ex5", difficulty=3, title="Any angle, any lengths",
    question=r"Write the condition number of the tangent kernel of two points at the angle $\theta$ whose lengths are in the ratio $1:r$, for a ReLU network with `depth` hidden "
             r"layers at infinite width (`depth` $=0$: the linear one). `theta` is a tensor of angles in $(0,\pi)$. It must be right to six digits for angles down to $10^{-12}$. "
             r"You may call `ntklib.gradient_angle(theta, depth)`, which is $\phi_L$, and `ntklib.gradient_deficit(theta, depth)`, which is $1-\cos\phi_L$.",
    signature="kappa(theta, ratio, depth)", truth=pair_kappa, trials=_trials,
    when_nan="A difference of nearly equal numbers came out as zero or below: start from $1-\\cos\\phi$, which `gradient_deficit` gives with all its digits.",
    mistakes=(
        Mistake(gives(_equal), "The lengths do not enter. The kernel has the diagonal $1$, $r^2$ and the off-diagonal entry $r\\cos\\phi$."),
        Mistake(gives(_of_inputs), "That is the linear network, with $\\theta$ in place of $\\phi_L$."),
        Mistake(gives(_inverse), "That is $\\lambda_{\\min}/\\lambda_{\\max}$: the other way round."),
        Mistake(gives(_root), "That is the root of it, the condition number of the gradients and not of their Gram matrix."),
        Mistake(_cancelled, "It is right for moderate angles. For small ones $1-\\cos^2\\phi$, or the smaller eigenvalue, is what rounding leaves of a difference: with "
                            "$d=1-\\cos\\phi$ it is $\\sin^2\\phi=d\\,(2-d)$, without a subtraction."),
    ),
    hints=(r"Sum and product of the eigenvalues are the trace $1+r^2$ and the determinant $r^2\sin^2\phi$. So $\kappa+\frac1\kappa+2$ is the trace squared over the determinant.",
           r"With $d=1-\cos\phi$: $\sin^2\phi=d(2-d)$. Let $2h=\kappa+\frac1\kappa$; then $\kappa=h+\sqrt{(h-1)(h+1)}$."),
    praise="Six digits at a trillionth of a radian.",
    solution=r"""
$\kappa+\frac1\kappa+2=\frac{(\lambda_1+\lambda_2)^2}{\lambda_1\lambda_2}=\frac{(1+r^2)^2}{r^2\sin^2\phi}=\frac{(r+1/r)^2}{\sin^2\phi}$. With $d=1-\cos\phi$ the
denominator is $d(2-d)$, which loses no digits, and the larger root is a sum of positive terms.

```python
from ntklib import gradient_deficit

def kappa(theta, ratio, depth):
    d = gradient_deficit(theta, depth)
    h = (ratio + 1 / ratio) ** 2 / (2 * d * (2 - d)) - 1
    return h + ((h - 1).clamp(min=0) * (h + 1)).sqrt()
```

For equal lengths it is $\frac{2-d}d=\cot^2\frac\phi2$ (or its inverse, beyond a right angle). `ntklib.ntk_condition_number` does this for any number of points.""",
)

EXERCISES = (linear_pair, halving, worse, enough_layers, general)
