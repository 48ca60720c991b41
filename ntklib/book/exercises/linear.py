"""Exercises of the chapter on the linear network.

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import sqrt

import torch

from ntklib import kernels, spectrum
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.symbolic.linear import second_moment

# ---- 1 -----------------------------------------------------------------------------------------------------
_X = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
LENGTH = sqrt(float(kernels.ntk_gram(_X, depth=8, activation="linear")))

gradient_length = Number(
    id="linear.ex1", difficulty=1, title="How long is the gradient",
    question=r"An input of length $2$ enters an infinitely wide linear network with $8$ hidden layers. How long is the gradient "
             "of its answer with respect to all weights?",
    answer=LENGTH, tolerance=0.01,
    wrong=(
        Wrong(LENGTH**2, "That is the *square* of the length, $K(x,x)$: take the root."),
        Wrong(9 * 2, r"That is $(L+1)\lVert x\rVert$, as the paper prints it. The $L+1$ parts are orthogonal, so that their squares "
                     "add up, and not their lengths."),
        Wrong(LENGTH / 2, r"That is $\sqrt{L+1}$, for an input of length 1. The gradient is linear in the input."),
        Wrong(sqrt(8) * 2, r"You counted the hidden layers. There are $L+1$ weight matrices: the one of the output has a gradient, "
                           "too."),
        Wrong(2, "That is the linear model, $L=0$. Every further weight matrix makes the gradient longer."),
    ),
    hints=("Every weight matrix adds the same number to $K(x,x)=\\lVert\\nabla f(x)\\rVert^2$. Which, and how many are there?",
           r"$K(x,x)=(L+1)\lVert x\rVert^2=9\cdot4$."),
    praise=r"Nine weight matrices with $\lVert x\rVert^2=4$ each, and then the root.",
    solution=rf"""
There are $L+1=9$ weight matrices, and each adds $\lVert x\rVert^2=4$ to the squared length of the gradient:

$$\lVert\nabla f(x)\rVert=\sqrt{{(L+1)\lVert x\rVert^2}}=\sqrt{{36}}={LENGTH:.0f}.$$

The gradients with respect to different matrices are different coordinates of parameter space. They are orthogonal, and squares add
up. With the ReLU the length is the same.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
def _kappa(depth: int) -> float:
    X = torch.diag(torch.tensor([10.0, 1.0, 0.1], dtype=torch.float64))
    return spectrum.ntk_condition_number(X, depth=depth, activation="linear").kappa


KAPPA = _kappa(4)

kappa = Number(
    id="linear.ex2", difficulty=2, title="From singular values",
    question=r"Three inputs in $\mathbb R^3$ are the rows of a matrix $X$ with singular values $10$, $1$ and $0.1$. What is the "
             r"condition number of the tangent kernel of an infinitely wide linear network with $4$ hidden layers on them?",
    answer=KAPPA, tolerance=KAPPA / 1000,
    wrong=(
        Wrong(sqrt(KAPPA), "That is the condition number of $X$. The kernel is $XX^\\top$, up to a factor: its eigenvalues are the "
                           "squares.", tolerance=0.1),
        Wrong(5 * KAPPA, "You kept the factor $L+1$. It multiplies both ends of the spectrum.", tolerance=10),
        Wrong(25 * KAPPA, "You kept the printed factor $(L+1)^2$. It multiplies both ends of the spectrum.", tolerance=10),
        Wrong(KAPPA**5, "Five factors of $X$ would do that. But in every layer the *random* weights come between, and on average they are "
                        "the identity.", tolerance=1e17),
        Wrong(10, "That is $\\sigma_1/\\sigma_2$: take the smallest singular value.", tolerance=0.1),
    ),
    hints=(r"$\bar K=(L+1)XX^\top$. What are the eigenvalues of $XX^\top$, in terms of singular values of $X$?",
           r"$\lambda_{\max}/\lambda_{\min}=(L+1)\,10^2/((L+1)\,0.1^2)$."),
    praise="The factor cancels, and the squares of the singular values are left.",
    solution=rf"""
The eigenvalues of $XX^\top$ are $\sigma_i^2=100,\ 1,\ 0.01$, those of $\bar K$ are $L+1=5$ times as large, and

$$\bar\kappa=\frac{{5\cdot100}}{{5\cdot0.01}}={KAPPA:.0f},$$

which is what the linear model has. The depth is of no consequence.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
statements = Multiple(
    id="linear.ex3", difficulty=2, title="At which width",
    question="Which of these hold for the linear network at *every* width, whatever its weights are?",
    options=(
        Option("The gradient at $x+z$ is the sum of the gradients at $x$ and at $z$.", True,
               "Every layer's answer is linear in $x$, and what comes from above does not depend on $x$."),
        Option("The rank of its tangent kernel is at most the dimension $d$ of the inputs.", True,
               "$K=XMX^\\top$ with a $d\\times d$ matrix $M$."),
        Option("Two equal inputs have equal gradients.", True, "There is nothing random about one network at one point."),
        Option("The angle between the gradients is the angle between the inputs.", False,
               "Only if $M$ is a multiple of the identity, as it is for $m\\to\\infty$. Look at the ellipse of a narrow network."),
        Option("The gradient at $x$ has the length $\\sqrt{L+1}$ times that of $x$.", False,
               "Only its mean square is fixed, at $L+1$ times the square. One network of finite width is off."),
        Option("Orthogonal inputs have orthogonal gradients.", False,
               "An ellipse turns and stretches: only its axes stay orthogonal."),
    ),
    hints=("Three follow from $K=XMX^\\top$, which needs no large width.",
           "The others need $M=(L+1)I$. Which are they?"),
    praise="Linearity needs no width; isometry does.",
    solution=r"""
The gradient with respect to $W^{(\ell)}$ is $\delta^{(\ell)}\alpha^{(\ell-1)}(x)^\top$. Without an activation $\delta^{(\ell)}$ does not
depend on $x$, and $\alpha^{(\ell-1)}(x)$ is linear in $x$. So the whole gradient is a linear map of $x$, and $K=XMX^\top$ with $M=\sum_\ell
\lVert\delta^{(\ell)}\rVert^2A_{\ell-1}^\top A_{\ell-1}$.

- Sums, rank and equal inputs follow from linearity, at every width.
- Angles, lengths and orthogonality need $M=(L+1)I$: this is so on average at every width, and for a single network only as $m\to\infty$.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
WIDTHS = (30, 300, 3000, 30_000)


def _scatter(width: int, depth: int = 30) -> float:
    """Relative standard deviation of the squared length of the gradient."""
    return sqrt(float(second_moment(depth, width)) / (depth + 1) ** 2 - 1)


_ENOUGH = next(m for m in WIDTHS if _scatter(m) < 0.15)

wide_enough = Choice(
    id="linear.ex4", difficulty=2, title="Wide enough",
    question="A linear network has 30 hidden layers. The squared length of its gradient should scatter by less than 15 % (relative standard "
             "deviation) from one initialisation to the next. What is the smallest width in the list that will do?",
    options=tuple(Option(f"{m} units", m == _ENOUGH, f"At this width it scatters by {100 * _scatter(m):.3g} %: "
                         + ("too much. What counts is the depth divided by the width." if m < _ENOUGH else
                            "it will do, and a smaller one would, too.")) for m in WIDTHS),
    hints=(r"For $m\gg L$ the relative variance is about $\frac{2L(2L+1)}{3(L+1)m}\approx\frac{4L}{3m}$.",
           r"$\frac{4\cdot30}{3m}<0.15^2$ asks for $m>1800$ or so."),
    praise=r"The scatter depends on $L/m$: a deep network must be wide in proportion.",
    solution="| width | scatter |\n|---|---|\n" + "\n".join(f"| {m} | {100 * _scatter(m):.3g} % |" for m in WIDTHS) + r"""

The relative variance is about $\frac{4L}{3m}$ while $m\gg L$. It is the ratio of depth and width that decides how near a network is to its
infinitely wide limit, and at $m=L$ there is no such limit to speak of.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def network_kernel(W, v, X):
    """Tangent kernel of f(x) = v . W_L ... W_1 x / m^(L/2), from its forward and backward products."""
    m = W.shape[-1]
    below, layers = X, [X]
    for layer in W:
        below = below @ layer.T / m**0.5
        layers.append(below)
    delta, K = v, layers[-1] @ layers[-1].T
    for layer, a in zip(W.flip(0), layers[-2::-1], strict=True):
        K = K + (delta @ delta) / m * (a @ a.T)
        delta = layer.T @ delta / m**0.5
    return K


def _kernel_trials(generator):
    def draw(*shape, dtype=torch.float64):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
    return [
        Trial((draw(3, 4, 4), draw(4), draw(5, 4)), "three hidden layers of four units"),
        Trial((draw(1, 3, 3), draw(3), draw(2, 3)), "one hidden layer"),
        Trial((draw(6, 2, 2), draw(2), draw(3, 2)), "six hidden layers of two units"),
        Trial((draw(2, 5, 5, dtype=torch.float32), draw(5, dtype=torch.float32), draw(4, 5, dtype=torch.float32)), "float32 weights"),
    ]


def _last_only(W, v, X):
    for layer in W:
        X = X @ layer.T / W.shape[-1] ** 0.5
    return X @ X.T


def _first_only(W, v, X):
    for layer in W.flip(0)[:-1]:
        v = layer.T @ v / W.shape[-1] ** 0.5
    return (v @ v) / W.shape[-1] * (X @ X.T)


def _without_output(W, v, X):
    return network_kernel(W, v, X) - _last_only(W, v, X)


def _raw(W, v, X):
    layers = [X]
    for layer in W:
        layers.append(layers[-1] @ layer.T)
    K, delta = layers[-1] @ layers[-1].T, v
    for layer, a in zip(W.flip(0), layers[-2::-1], strict=True):
        K = K + (delta @ delta) * (a @ a.T)
        delta = layer.T @ delta
    return K


kernel = Function(
    id="linear.ex5", difficulty=3, title="The kernel of one network",
    question=r"A linear network has square weights: `W` of shape $(L,m,m)$ holds $W^{(1)},\dots,W^{(L)}$, `v` of shape $(m)$ is the output "
             r"layer, and $f(x)=v\cdot W^{(L)}\cdots W^{(1)}x\,/\,m^{L/2}$. Write its tangent kernel on the rows of `X`, a tensor of shape $(n,m)$, "
             "without forming a gradient. Take the sum over all $L+1$ layers.",
    signature="kernel(W, v, X)", truth=network_kernel, trials=_kernel_trials, rtol=1e-8,
    mistakes=(
        Mistake(gives(lambda W, v, X: (len(W) + 1) * X @ X.T),
                "That is the limit $m\\to\\infty$. Here the network is given, and it is narrow."),
        Mistake(gives(_last_only), "That is the part of the output layer alone, from $v$: add those of the other layers."),
        Mistake(gives(_first_only), "That is the part of the first layer alone: add those of the other layers."),
        Mistake(gives(_without_output), "The output layer $v$ is trained, too: its part is the Gram matrix of the last hidden answers."),
        Mistake(gives(_raw), "The factor $1/\\sqrt m$ of every hidden layer is missing: it enters the answers and the gradients."),
    ),
    hints=(r"The gradient with respect to $W^{(\ell)}$ is the outer product of $\delta^{(\ell)}$ and the layer's input "
           r"$\alpha^{(\ell-1)}(x)$, so that its part of $K$ is $\lVert\delta^{(\ell)}\rVert^2$ times a Gram matrix.",
           r"Go up once to collect the layers' inputs, and down once with $\delta^{(L)}=v/\sqrt m$ and "
           r"$\delta^{(\ell)}=W^{(\ell+1)\top}\delta^{(\ell+1)}/\sqrt m$. The output layer adds the Gram matrix of the last answers."),
    praise="Two passes and $L+1$ small Gram matrices: no gradient of size $m^2$ was ever formed.",
    solution=r"""
With $f=v\cdot\alpha^{(L)}$ and $\alpha^{(\ell)}=W^{(\ell)}\alpha^{(\ell-1)}/\sqrt m$, the derivative with respect to $W^{(\ell)}$ is the
outer product of $\delta^{(\ell)}$ and $\alpha^{(\ell-1)}(x)$. The scalar product of two outer products is the product of two scalar
products, and $\delta^{(\ell)}$ is the same for all inputs.

```python
def kernel(W, v, X):
    root = W.shape[-1] ** 0.5
    inputs = [X]                      # alpha^(0), ..., alpha^(L)
    for layer in W:
        inputs.append(inputs[-1] @ layer.T / root)
    K = inputs[-1] @ inputs[-1].T     # the output layer
    delta = v / root
    for l in range(len(W) - 1, -1, -1):
        K = K + (delta @ delta) * (inputs[l] @ inputs[l].T)
        delta = W[l].T @ delta / root
    return K
```

`ntklib.empirical_ntk` does the same for networks with activations, where $\delta^{(\ell)}$ depends on $x$.""",
)

EXERCISES = (gradient_length, kappa, statements, wide_enough, kernel)
