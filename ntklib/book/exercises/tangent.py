"""Exercises of chapter "The tangent kernel three ways".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import pi

import torch

from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.kernels import ntk_gram

f64 = torch.float64

# ---- 1 -----------------------------------------------------------------------------------------------------
X3 = torch.tensor([[3.0, 0, 0]], dtype=f64)
DIAGONAL = float(ntk_gram(X3, depth=4)[0, 0])

diagonal = Number(
    id="tangent.ex1", difficulty=1, title="The diagonal",
    question=r"An infinitely wide ReLU network with four hidden layers, all layers trained, and an input of length 3: what is "
             r"$K(x,x)=\lVert\nabla f(x)\rVert^2$?",
    answer=DIAGONAL, tolerance=1e-6, unit="",
    wrong=(
        Wrong(4 * 9, "Four hidden layers have *five* weight matrices, the output layer's among them."),
        Wrong(5 * 3, "Both factors of the scalar product carry the length: it enters squared."),
        Wrong(9, "That is one layer's share. All of them are trained, and each adds as much."),
        Wrong(25 * 9, r"The layers' terms are added, not multiplied: $(L+1)\lVert x\rVert^2$, with the length of the gradient "
                      r"$\sqrt{L+1}\,\lVert x\rVert$."),
        Wrong(15**0.5 * 3, "You have taken a root somewhere: $K(x,x)$ is the square of the gradient's length.", tolerance=0.05),
    ),
    hints=(r"Put $z=x$ into the sum over layers: what is $\theta^{(\ell)}$, and what are the factors $1-\theta^{(k)}/\pi$?",
           r"Every one of the $L+1$ terms is $\lVert x\rVert^2$."),
    praise="Every layer keeps the length of the signal, forwards and backwards, so every layer adds the same.",
    solution=r"""
With $z=x$ all angles are 0, so all shares $1-\theta^{(k)}/\pi$ are 1 and every term of the sum is
$\lVert x\rVert^2\cos0=9$. There are $L+1=5$ terms, one for each weight matrix:

$$K(x,x)=(L+1)\lVert x\rVert^2=5\cdot9=45 .$$

`ntk_gram(X, depth=4)` divides by nothing: divide by $L+1$ to compare depths.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
M2, D2, L2, N2 = 1000, 784, 3, 500
P2 = M2 * D2 + (L2 - 1) * M2**2 + M2

sizes = Choice(
    id="tangent.ex2", difficulty=1, title="Which matrix do you store?",
    question=rf"A network with {L2} hidden layers of {M2} units takes images of {D2} pixels; there are {N2} of them. You want the smallest "
             "non-zero eigenvalue that governs the training of the linearised network. Which of these is the cheapest way to it?",
    options=(
        Option(r"The Gauss-Newton matrix $J^\top J$, by multiplying the Jacobian with itself.", False,
               f"It has $p^2$ entries, and $p={P2 / 1e6:.1f}$ million: {P2**2 * 8 / 1e12:.0f} terabytes."),
        Option("The Jacobian $J$, stored as a whole, and its singular values.", False,
               f"Right eigenvalues, but $J$ has $np$ entries: {N2 * P2 * 8 / 1e9:.0f} gigabytes."),
        Option(r"The kernel $JJ^\top$, summed layer by layer from two small Gram matrices each.", True,
               rf"It is ${N2}\times{N2}$, and no gradient of a weight matrix is ever formed."),
        Option("The kernel of infinite width, since it has the same eigenvalues.", False,
               "It is cheaper still, but it is the kernel of another network: at this width and depth an entry on its diagonal is off by ten percent, typically."),
    ),
    hints=(r"$JJ^\top$ and $J^\top J$ have the same non-zero eigenvalues. How large is each?",
           rf"Count the parameters: ${D2}\cdot{M2}+2\cdot{M2}^2+{M2}$."),
    praise="The small matrix knows all the eigenvalues that are not zero.",
    solution=rf"""
There are $p={P2}$ parameters and $n={N2}$ points.

- $J^\top J$ is $p\times p$: {P2**2 * 8 / 1e12:.0f} TB in double precision.
- $J$ is $n\times p$: {N2 * P2 * 8 / 1e9:.1f} GB.
- $JJ^\top$ is $n\times n$: {N2**2 * 8 / 1e6:.0f} MB, and with $K=\sum_\ell(\alpha\cdot\alpha')(\delta\cdot\delta')$ nothing larger than
  $n\times m$ is needed on the way (`ntklib.empirical_ntk` does that).

The limit kernel is exact for infinite width only.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
statements = Multiple(
    id="tangent.ex3", difficulty=2, title="True or not",
    question="Which of these hold for a ReLU network of the chapter, at initialisation and with all layers trained?",
    options=(
        Option("The kernel of a network of finite width is random: another draw gives another matrix.", True,
               "It depends on the weights, and those are drawn."),
        Option(r"With one hidden layer its mean over draws is the kernel of infinite width, at every width.", True,
               r"It is $\frac2m$ times a sum of $m$ independent terms with the same mean."),
        Option("At a fixed width, a deeper network's kernel is nearer to its limit.", False,
               r"The spread grows like $\sqrt{L/m}$: every layer adds its own noise."),
        Option(r"If $K$ is singular, gradient descent on the linearised network cannot fit all labels, however many parameters there are.", True,
               "The error's component along a null vector of $K$ never moves."),
        Option(r"$J^\top J$ has more non-zero eigenvalues than $JJ^\top$, because it is larger.", False,
               "Both have as many as $J$ has non-zero singular values, at most $n$."),
        Option("The NNGP kernel and the tangent kernel have the same limit of infinite depth.", False,
               r"The last term tends to 1 for every pair; the mean of all terms tends to $\frac14$."),
    ),
    hints=("Two of them are about the draw of one network: what is averaged over $m$ units, and what over draws?",
           r"For the spectra, take the singular value decomposition $J=U\Sigma V^\top$ and multiply out both products."),
    praise="A random matrix with a known mean, a spread that falls with width and grows with depth, and a small side that knows everything.",
    solution=r"""
- **Random**: it is a function of the weights. True.
- **Mean at every width**, one hidden layer: $K=\frac2m\sum_k[\dots]$ with independent, identically distributed terms. True. (With more layers it holds on the diagonal, and elsewhere only in the limit.)
- **Deeper is nearer**: no, the spread is a function of $L/m$ that grows.
- **Singular kernel**: $f_t-y=(I-\eta K)^t(f_0-y)$ leaves the null space of $K$ alone. True.
- **More eigenvalues**: no. $JJ^\top=U\Sigma\Sigma^\top U^\top$ and $J^\top J=V\Sigma^\top\Sigma V^\top$ share the squares of the singular values.
- **Same limit in depth**: no. The NNGP kernel of unit inputs tends to a matrix of ones, $K/(L+1)$ to $\frac34I+\frac14\mathbf{1}\mathbf{1}^\top$.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
THETA4, M4 = 0.02, 785
APART = M4 * THETA4 / pi

apart = Number(
    id="tangent.ex4", difficulty=2, title="Units that tell them apart",
    question=rf"Two inputs are at an angle of {THETA4} radians; a layer has {M4} hidden units. How many of its units are active for exactly one of the two inputs, "
             "on average over random layers?",
    answer=APART, tolerance=0.02, unit="units",
    wrong=(
        Wrong(M4 * THETA4 / (2 * pi), "That is the units active for the first and silent for the second. The other way round counts as well."),
        Wrong(M4 * (1 - THETA4 / pi), "Those units agree: both active or both silent.", tolerance=0.5),
        Wrong(M4 * THETA4, r"An angle is a share of a half turn: divide by $\pi$.", tolerance=0.1),
        Wrong(M4 * THETA4**2, "The share is of *first* order in the angle. That is the whole point."),
        Wrong(M4 * THETA4 / 180, r"The angle is given in radians: a half turn is $\pi$, not 180.", tolerance=0.01),
    ),
    hints=("A unit is a random direction; draw the plane of the two inputs. For which directions does a hyperplane pass between them?",
           r"For a share $\theta/\pi$ of all directions: two arcs of the angle $\theta$ each, out of $2\pi$."),
    praise="Five units of 785 carry the separation of the gradients: rare, and enough.",
    solution=rf"""
A unit tells the inputs apart if its direction lies on one of two arcs of angle $\theta$: a share $\theta/\pi$. Of $m$ units that is

$$m\,\theta/\pi={M4}\cdot{THETA4}/\pi={APART:.2f}$$

on average, and the probability that there is none is $(1-\theta/\pi)^m\approx e^{{-{APART:.0f}}}$. The theorem's condition $m=\Omega(1/\theta^2)$
would ask for {1 / THETA4**2:.0f}.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def one_layer(W, a, X):
    """The kernel of f(x) = sqrt(2/m) a . relu(W x)."""
    z = X @ W.T
    h, on = z.relu(), (z > 0).to(X.dtype)
    return 2 / len(W) * (h @ h.T + (X @ X.T) * ((on * a**2) @ on.T))


def _part(W, a, X, last=True, first=True, square=True, gain=2.0):
    z = X @ W.T
    h, on = z.relu(), (z > 0).to(X.dtype)
    return gain / len(W) * (last * (h @ h.T) + first * (X @ X.T) * ((on * (a**2 if square else a)) @ on.T))


def _trials(generator):
    def net(n, d, m, dtype=f64):
        return tuple(torch.randn(*s, generator=generator, dtype=dtype) for s in ((m, d), (m,), (n, d)))
    W, a, X = net(4, 3, 20)
    return [
        Trial((W, a, X), "four inputs and 20 units"), Trial(net(6, 2, 5), "six inputs in the plane and 5 units"),
        Trial(net(3, 8, 100), "three inputs and 100 units"), Trial((W, a, X[:1]), "a single input"),
        Trial(net(4, 3, 16, torch.float32), "float32 weights"), Trial((W, 0 * a, X), "output weights of zero"),
        Trial((W, a, torch.cat([X, -X])), "inputs and their negatives"),
    ]


build = Function(
    id="tangent.ex5", difficulty=3, title="The kernel of a real network, without a gradient",
    question=r"A network with one hidden layer is $f(x)=\sqrt{2/m}\;a\cdot\operatorname{relu}(Wx)$, with `W` $(m,d)$ and `a` $(m,)$. Write its tangent kernel "
             r"over *both* weights for the rows of `X` $(n,d)$: an $(n,n)$ tensor, exactly, at this width. Do not form the gradient with respect to $W$.",
    signature="kernel(W, a, X)", truth=one_layer, trials=_trials,
    when_nan="Nothing here divides by anything but the width: look for a division by a norm.",
    mistakes=(
        Mistake(gives(lambda W, a, X: _part(W, a, X, first=False)), "That is the output weights' term alone: `W` is trained as well."),
        Mistake(gives(lambda W, a, X: _part(W, a, X, last=False)), "That is the hidden weights' term alone: `a` is trained as well."),
        Mistake(gives(lambda W, a, X: _part(W, a, X, gain=1.0)), r"The factor $\sqrt{2/m}$ stands in front of both gradients: squared it is $2/m$."),
        Mistake(gives(lambda W, a, X: _part(W, a, X, gain=2.0 * len(W))), "The factor $2/m$ is missing its width."),
        Mistake(gives(lambda W, a, X: _part(W, a, X, square=False)), "Two gradients are multiplied, and each carries $a_k$: it enters squared."),
    ),
    hints=(r"$\partial f/\partial a_k=\sqrt{2/m}\,\operatorname{relu}(w_k\cdot x)$, and $\partial f/\partial w_k=\sqrt{2/m}\,a_k\,[w_k\cdot x>0]\,x$. "
           "Multiply each with itself at another input, and add over $k$.",
           r"The first gives `h @ h.T` with `h = relu(X @ W.T)`, the second `(X @ X.T) * ((on * a**2) @ on.T)` with `on = (X @ W.T > 0)`."),
    praise="Two small Gram matrices, multiplied entry by entry: this is how a kernel of millions of parameters is computed.",
    solution=r"""
Add the squares of both gradients over the units. The gradient with respect to $w_k$ is a number times $x$, so its scalar product is a product of two.

```python
def kernel(W, a, X):
    z = X @ W.T
    h, on = z.relu(), (z > 0).to(X.dtype)
    backward = (on * a**2) @ on.T
    return 2 / len(W) * (h @ h.T + (X @ X.T) * backward)
```

`ntklib.empirical_ntk` does the same for every depth: per layer, the Gram matrix of its inputs times that of its backward signals.""",
)

EXERCISES = (diagonal, sizes, statements, apart, build)
