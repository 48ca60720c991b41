"""Exercises of chapter "The condition number of n points".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import pi, radians, sin, tan

import torch

from ntklib.angles import angle_between, angle_map
from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.kernels import ntk_gram
from ntklib.spectrum import ntk_condition_number

f64 = torch.float64


def _kappa(X, depth, trained="all"):
    return ntk_condition_number(X, depth=depth, trained=trained).kappa


# ---- 1 -----------------------------------------------------------------------------------------------------
TEN = radians(10)
FLOOR = 1 / tan(TEN / 2) ** 2

least = Number(
    id="points.ex1", difficulty=1, title="What one pair says",
    question=r"Fifty inputs of length 1 enter a wide ReLU network. The *gradients* at two of them are $10^\circ$ "
             r"apart; of the others you know nothing. How large is $\kappa$ at least?",
    answer=FLOOR, tolerance=0.3, unit="",
    wrong=(
        Wrong(1 / sin(TEN) ** 2, r"That is the bound $1/\sin^2\phi$ for gradients of any lengths. These have equal "
                                 "lengths, and for them the pair's own $\\kappa$ says more."),
        Wrong(1 / tan(TEN / 2), r"The eigenvalues are $1\mp\cos\phi$, and their quotient is the *square* of this "
                                "cotangent."),
        Wrong(1 / tan(TEN) ** 2, r"Half the angle: $\frac{1+\cos\phi}{1-\cos\phi}=\cot^2(\phi/2)$."),
        Wrong(1 / tan(5) ** 2, "Your cotangent read the 5 as radians: convert the degrees first.", tolerance=0.02),
        Wrong(50 * FLOOR, "More points can make it larger, but nothing in the question says that they do: what is "
                          "*certain*?", tolerance=20),
    ),
    hints=(r"The ends of the spectrum of all fifty points lie outside those of any $2\times2$ block. Which block do you know?",
           r"The block is $\|\nabla f\|^2$ times $\begin{pmatrix}1&\cos\phi\\\cos\phi&1\end{pmatrix}$: its eigenvalues are $1\pm\cos\phi$."),
    praise="A floor for any number of points, and it holds whatever the network.",
    solution=rf"""
The gradients at inputs of equal length have equal length, so the pair's block is proportional to
$\begin{{pmatrix}}1&\cos\phi\\\cos\phi&1\end{{pmatrix}}$, with the eigenvalues $1\pm\cos\phi$. By interlacing the
spectrum of all points reaches at least as far in both directions:

$$\kappa\ge\frac{{1+\cos10^\circ}}{{1-\cos10^\circ}}=\cot^2 5^\circ={FLOOR:.1f}.$$

What lies between this floor and the truth is decided by the other points: with a regular hexagon the floor is
below 3, and $\kappa$ is infinite at depth 1.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
EYE8 = torch.eye(8, dtype=f64)
_close = torch.cat([EYE8[:1] + 0.05 * EYE8[1:2], EYE8[:1], EYE8[2:]])
_close = _close / _close.norm(dim=1, keepdim=True)
_equal = 0.5 + 0.5 * EYE8                                # a Gram matrix with cosine 1/2
_half = torch.linalg.cholesky(_equal)
_opposite = torch.cat([EYE8[:4, :4], -EYE8[:4, :4]])     # four opposite pairs in R^4: G is singular
SETS = {
    "Eight inputs of which two are $3^\\circ$ apart, the others orthogonal": _close,
    "Eight unit inputs, $60^\\circ$ between any two of them": _half,
    "Eight orthogonal unit inputs": EYE8,
    "Four orthogonal unit inputs and their negatives": _opposite,
}
WORSE = {name: _kappa(X, 1) > _kappa(X, 0) for name, X in SETS.items()}


def _said(X, depth):
    kappa = _kappa(X, depth)
    return r"$\infty$" if kappa == float("inf") else f"{kappa:.3g}"


_WHY = {
    "Eight inputs of which two are $3^\\circ$ apart, the others orthogonal": " The close pair is what ReLU repairs.",
    "Eight unit inputs, $60^\\circ$ between any two of them": " ReLU pulls even these directions apart a little, as $60^\\circ<66.8^\\circ$.",
    "Eight orthogonal unit inputs": "",
    "Four orthogonal unit inputs and their negatives": " Eight inputs in four dimensions are linearly dependent: without ReLU the kernel is singular.",
}

which = Choice(
    id="points.ex2", difficulty=1, title="Who loses",
    question="A linear network gets one hidden ReLU layer, and all layers are trained. For which data does $\\kappa$ "
             "become *larger*?",
    options=(
        *(Option(name + ".", WORSE[name], rf"Here $\kappa$ goes from {_said(X, 0)} to {_said(X, 1)}.{_WHY[name]}")
          for name, X in SETS.items()),
    ),
    hints=(r"Where is there room below? A linear network with $\kappa=1$ can only lose.",
           r"Compute $\frac{1+(n-1)c}{1-c}$ for data with equal cosines $c$, before and after: at $90^\circ$ the "
           r"cosine of the gradients is $\frac1{2\pi}$ at depth 1."),
    praise="Perfect conditioning cannot be improved, and the layer gives all gradients a common direction.",
    solution="| data | linear network | one hidden layer |\n|---|---|---|\n" + "\n".join(
        f"| {name} | {_said(X, 0)} | {_said(X, 1)} |" for name, X in SETS.items()) + """

A hidden ReLU layer answers every input with non-negative numbers, so all its answers share a direction. That
common part pushes the largest eigenvalue up. It pays where close pairs had pulled the smallest one down, and
costs where nothing was wrong.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
first = Multiple(
    id="points.ex3", difficulty=2, title="The first layer alone",
    question=r"Only $W^{(1)}$ is trained, and $m\to\infty$. What holds for *all* data sets with $n\le d$?",
    options=(
        Option(r"$\kappa$ of the ReLU network is at most $\kappa$ of the linear network.", True,
               r"Every layer averages $v^\top G v$ over random masks of $v$: nothing leaves $[\lambda_{\min},\lambda_{\max}]$."),
        Option(r"Adding a layer never makes $\lambda_{\min}$ smaller.", True,
               r"The kernel is multiplied, entry by entry, by one more positive semi-definite matrix with ones on its "
               "diagonal."),
        Option(r"Adding a layer makes $\kappa$ strictly smaller.", False,
               "Try orthonormal inputs: which entries are there to be multiplied?"),
        Option(r"The trace of the kernel is the same at every depth.", True,
               r"The factor on the diagonal is $1-0/\pi=1$."),
        Option(r"If the inputs have different lengths, $\kappa$ still tends to 1 with depth.", False,
               r"The diagonal stays, and all other entries tend to 0: what is left has the eigenvalues $\|x_i\|^2$."),
        Option(r"The same bounds hold when all layers are trained.", False,
               "Twelve orthonormal inputs refute it: the terms of the later layers have other diagonals than $G$, and "
               "larger entries beside them."),
    ),
    hints=(r"Write the kernel as $G\circ C$, where $C_{ij}=\prod_\ell(1-\theta_{ij}^{(\ell)}/\pi)$. What is on the diagonal of $C$?",
           r"For a strict statement and for lengths, take orthogonal inputs: then $G\circ C=G$ whatever $C$ is."),
    praise="A Hadamard product with ones on the diagonal squeezes a spectrum; it need not move the ends.",
    solution=r"""
$K=G\circ C$ with $C$ positive semi-definite and $C_{ii}=1$. Write $C=\sum_k u_ku_k^\top$; then
$v^\top Kv=\sum_k(v\circ u_k)^\top G(v\circ u_k)$, and $\sum_k\|v\circ u_k\|^2=\sum_iv_i^2C_{ii}=\|v\|^2$.

- **$\kappa$ at most the linear one**, and **$\lambda_{\min}$ never smaller with depth**: each further layer is one more such product. True.
- **Strictly smaller**: no. Orthonormal inputs have $K=G$.
- **Trace**: the diagonal is $\|x_i\|^2$ at every depth. True.
- **To 1 for all lengths**: no. $K\to\operatorname{diag}(\|x_i\|^2)$, and $\kappa\to\max\|x_i\|^2/\min\|x_i\|^2$.
- **All layers**: no. The later terms have the kernel of the embeddings in place of $G$.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
C1 = 1 / (2 * pi)
TWENTY = (1 + 19 * C1) / (1 - C1)

orthonormal = Number(
    id="points.ex4", difficulty=2, title="Twenty orthonormal inputs",
    question=r"Twenty orthonormal inputs, one wide hidden ReLU layer, all layers trained. What is $\kappa$?",
    answer=TWENTY, tolerance=0.01, unit="",
    wrong=(
        Wrong(1, "That is the linear network, and the ReLU network with its first layer trained alone."),
        Wrong((1 + 20 * C1) / (1 - C1), r"The row sum is $1+(n-1)c$: the diagonal counts once, as $1$."),
        Wrong((1 + 19 / pi) / (1 - 1 / pi), r"$1/\pi$ is the cosine after the layer, which is the term of the *last* "
                                            "weights. The gradient's cosine averages it with the first layer's term, "
                                            r"which is $\cos90^\circ\cdot\frac12=0$."),
        Wrong(1 + 20 / 3, "That is the limit of infinite depth, where every cosine is $1/4$. At depth 1 it is smaller."),
        Wrong(1 + 19 * C1, r"That is the largest eigenvalue (for diagonal 1). The smallest one is not 1 any more."),
    ),
    hints=(r"All pairs have the same gradient angle, so $K$ is proportional to $(1-c)I+c\,\mathbf{1}\mathbf{1}^\top$. What are its eigenvalues?",
           r"$c=\cos\phi_1(90^\circ)=\frac12\bigl(\cos90^\circ\cdot\frac12+\frac1\pi\bigr)=\frac1{2\pi}$."),
    praise="From 1 to almost 5 with a single layer; with more inputs it grows like $n/(2\\pi-1)$.",
    solution=rf"""
$K/2=(1-c)I+c\,\mathbf{{1}}\mathbf{{1}}^\top$ with $c=\frac1{{2\pi}}={C1:.4f}$. On $(1,\dots,1)$ it acts as $1+19c={1 + 19 * C1:.4f}$, on every vector
orthogonal to that as $1-c={1 - C1:.4f}$:

$$\kappa=\frac{{1+19c}}{{1-c}}={TWENTY:.4f}.$$

The linear network has $\kappa=1$. `ntk_condition_number(torch.eye(20), depth=1)` gives the same number.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _first_layer(X, depth):
    return ntk_gram(X, depth=depth, trained="first")


def _angles(X):
    return angle_between(X[:, None], X[None])


def _product(X, start, stop):
    theta, share = _angles(X), torch.ones(len(X), len(X), dtype=X.dtype)
    for l in range(stop):
        if l >= start:
            share = share * (1 - theta / pi)
        theta = angle_map(theta)
    return share


def _first_trials(generator):
    X = torch.randn(6, 4, generator=generator, dtype=f64)
    U = X / X.norm(dim=1, keepdim=True)
    near = U.clone()
    near[1] = U[0] + 1e-3 * U[1]
    return [
        Trial((U, 1), "unit vectors and one hidden layer"), Trial((U, 3), "unit vectors and three hidden layers"),
        Trial((X, 2), "random vectors"), Trial((near, 4), "two nearly parallel vectors"),
        Trial((X.float(), 1), "float32 vectors"), Trial((torch.eye(3, dtype=f64), 5), "orthonormal vectors"),
        Trial((torch.tensor([[1.0, 0], [-2, 0], [0, 3]], dtype=f64), 2), "opposite vectors"),
    ]


build = Function(
    id="points.ex5", difficulty=3, title="The kernel of the first layer",
    question=r"Write the tangent kernel of a wide ReLU network of which only the first layer is trained, "
             r"$K_{ij}=x_i\cdot x_j\prod_{\ell=0}^{L-1}\bigl(1-\theta_{ij}^{(\ell)}/\pi\bigr)$, for the rows of `X`, $(n,d)$, and "
             r"a number `depth` $=L\ge1$ of hidden layers. `angle_between(X[:, None], X[None])` gives the angles of the "
             "inputs, `angle_map(theta)` takes angles through a layer; leave `ntk_gram` aside.",
    signature="first_layer_kernel(X, depth)", truth=_first_layer, trials=_first_trials, atol=1e-9,
    when_nan="Angles have to come from `angle_between`: the arccosine of a rounded cosine above 1 is NaN.",
    mistakes=(
        Mistake(gives(lambda X, depth: (X @ X.T) * _product(X, 0, 1)),
                "That is the network with one hidden layer, whatever `depth` is: multiply one factor a layer, and take the "
                "angles through the layer before the next."),
        Mistake(gives(lambda X, depth: (X @ X.T) * (1 - _angles(X) / pi) ** depth),
                r"You used the *input* angle in every factor. The units of layer $\ell+1$ see the embeddings, at $\theta^{(\ell)}$."),
        Mistake(gives(lambda X, depth: (X @ X.T) * _product(X, 1, depth + 1)),
                r"Your product starts at $\theta^{(1)}$: the first factor belongs to the inputs themselves, $\theta^{(0)}$."),
        Mistake(gives(lambda X, depth: _angles(X).cos() * _product(X, 0, depth)),
                r"The cosine forgets the lengths: the first factor is the scalar product $x_i\cdot x_j$."),
        Mistake(gives(lambda X, depth: ntk_gram(X, depth=depth)),
                "That is the kernel of *all* layers: only one term of the sum is wanted."),
    ),
    hints=("Start with `K = X @ X.T` and `theta` between the inputs; go through the layers in a loop.",
           "In each turn of the loop: `K = K * (1 - theta / math.pi)`, and then `theta = angle_map(theta)`."),
    praise="One matrix a layer, multiplied entry by entry: all of the paper's Theorem 4.2 is in this loop.",
    solution=r"""
Each hidden layer multiplies the backward signal of a pair by the share of units that are active for both,
$1-\theta^{(\ell)}/\pi$ after normalisation, where $\theta^{(\ell)}$ is the angle at which the pair enters that layer.

```python
from ntklib import angle_between, angle_map

def first_layer_kernel(X, depth):
    K = X @ X.T
    theta = angle_between(X[:, None], X[None])
    for _ in range(depth):
        K = K * (1 - theta / math.pi)
        theta = angle_map(theta)
    return K
```

`torch.linalg.eigvalsh` of it shows the squeeze: the smallest eigenvalue only rises with `depth`, and the largest
only falls.""",
)

EXERCISES = (least, which, first, orthonormal, build)
