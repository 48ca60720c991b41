"""Exercises of the chapter "Characteristic activation boundaries".

Every right answer, and every number in a text, is computed here from ntklib.
"""
from math import atan, pi

import torch

from ntklib.book.exercises.kinds import Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives
from ntklib.boundaries import Boundary
from ntklib.symbolic import boundaries as exact

f64 = torch.float64


def _boundary(w, b) -> Boundary:
    return Boundary(torch.tensor(w, dtype=f64), torch.tensor(float(b), dtype=f64))


# ---- 1 -----------------------------------------------------------------------------------------------------
UNIT = _boundary([6.0, 8.0], -15)
DISTANCE = float(UNIT.location.norm())

distance = Number(
    id="boundaries.ex1", difficulty=1, title="How far away",
    question="A unit of the plane has $w=(6,8)$ and $b=-15$. How far from the origin is its boundary?",
    answer=DISTANCE, tolerance=1e-3,
    wrong=(
        Wrong(-DISTANCE, r"That is $\lambda=b/|w|$, which has a sign. A distance has none."),
        Wrong(15, r"That is $|b|$. The boundary is where $w\cdot x=15$, and $w$ has the length 10."),
        Wrong(0.15, r"You divided by $|w|^2$. That gives the factor in $\phi=-b\,w/|w|^2$; its length is $|b|/|w|$."),
        Wrong(15 / 14, "You divided by $6+8$. The length of $w$ is the root of the sum of the squares.", tolerance=0.01),
        Wrong(2.5, "You divided by 6 alone: that is where the boundary meets the first axis, not its nearest point."),
        Wrong(15 / 8, "You divided by 8 alone: that is where the boundary meets the second axis, not its nearest point."),
    ),
    hints=(r"The nearest point stands in the direction of $w$: look for it as $x=t\,w$.",
           r"$w\cdot(t\,w)=100\,t$ must be 15. Then the distance is $|t|\,|w|=10\,|t|$."),
    praise=r"$|b|/|w|=15/10$, and the point itself is $\phi=(0.9,1.2)$.",
    solution=rf"""
The nearest point of the line is a multiple of its normal, $x=t\,w$. On the line $w\cdot x=-b$, so $100\,t=15$ and
$t=0.15$: $\phi=({float(UNIT.location[0]):.1f},\,{float(UNIT.location[1]):.1f})$, at the distance
$|b|/|w|=15/10={DISTANCE:.1f}$.

In hyperspherical coordinates the same point is $-\lambda\,u(\theta)$, with $\lambda=b/|w|=-1.5$ and
$u=(0.6,0.8)$. The unit is active on the far side of its boundary, seen from the origin: at the origin it has
$b=-15<0$.""",
)

# ---- 2 -----------------------------------------------------------------------------------------------------
_BEFORE = _boundary([2.0, -1.0], 1)


def _same(w, b) -> bool:
    after = _boundary(w, b)
    return bool(torch.allclose(after.location, _BEFORE.location) and torch.allclose(after.direction, _BEFORE.direction))


same_place = Multiple(
    id="boundaries.ex2", difficulty=2, title="Which changes leave it in place",
    question="A ReLU unit has $w=(2,-1)$ and $b=1$. Which changes leave both its boundary and its active side as they are?",
    options=(
        Option("Three times $w$ and three times $b$", _same([6.0, -3.0], 3),
               r"$3w\cdot x+3b$ has the sign of $w\cdot x+b$ at every input."),
        Option("Three times $w$, the same $b$", _same([6.0, -3.0], 1),
               r"$\lambda=b/|w|$ becomes a third of what it was: the boundary comes nearer to the origin."),
        Option("$-w$ and $-b$", _same([-2.0, 1.0], -1),
               "The boundary is the same set, but the unit is now active on its other side."),
        Option("Three times the weight with which the next layer reads the unit", True,
               "The boundary knows nothing of what is done with the answer afterwards."),
        Option(r"$w$ turned by $180^\circ$, the same $b$", _same([-2.0, 1.0], 1),
               r"The normal turns, and $\phi=-b\,w/|w|^2$ moves to the opposite point."),
    ),
    hints=(r"The unit is active where $w\cdot x+b>0$. When is that the same set?",
           "Only a common positive factor of $w$ and $b$ keeps the sign everywhere. What about numbers that are not in $w$ and $b$?"),
    praise="A common positive factor, and whatever comes after the unit: everything else moves the boundary or flips its side.",
    solution=r"""
- **$3w$ and $3b$**: $3(w\cdot x+b)>0$ exactly where $w\cdot x+b>0$. In place.
- **$3w$ and $b$**: $\lambda=b/|w|$ falls to a third. Moved.
- **$-w$ and $-b$**: the same line, the other side. The unit is a different one.
- **The next layer's weight**: it multiplies the answer; where the answer is zero does not change. In place.
- **$-w$ and $b$**: $\phi$ changes its sign. Moved.

So the boundary with its side has $n$ numbers, direction and offset, and the unit has one more: a positive scale,
which may be moved to the next layer. That is the number which the geometric parametrization keeps apart, as $r$.""",
)

# ---- 3 -----------------------------------------------------------------------------------------------------
OUT = 1 - float(exact.bend_share(10, 1))

far_out = Number(
    id="boundaries.ex3", difficulty=2, title="Bends that nobody sees",
    question="A layer with one input draws $w$ and $b$ independently from the same centred normal law. The data fill the interval "
             "$[-10,10]$. Which percentage of the units bends outside? Give it to within 0.05.",
    answer=100 * OUT, tolerance=0.05, unit="per cent", units=("%", "percent", "per cent"),
    wrong=(
        Wrong(100 * (1 - OUT), "That is the share that bends inside."),
        Wrong(OUT, "That is the share as a number between 0 and 1; the question asks for per cent.", tolerance=5e-4),
        Wrong(100 * OUT / 2, r"That is one side only: bends stand at both ends, beyond $-10$ and beyond $10$.", tolerance=0.04),
        Wrong(50, "That is the share outside $[-1,1]$. Here the interval is ten times as long."),
        Wrong(5, "That is what *uniform* weights and biases would give. The tails of two normal numbers' quotient are a little heavier.",
              tolerance=0.03),
        Wrong(0, "The quotient of two normal numbers has no such thin tails: $w$ may be very small.", tolerance=1e-2),
    ),
    hints=(r"The unit bends at $-b/w$, outside if $|b|>10\,|w|$. What is the direction of the point $(w,b)$ then?",
           r"The point $(w,b)$ has a uniform direction. The share inside is that of the angles with $|b|/|w|<10$, "
           r"$\frac2\pi\arctan10$."),
    praise="One unit in sixteen bends where there is no data. It is linear for all of it.",
    solution=rf"""
$(w,b)$ is a standard normal point of the plane, so its direction is uniform. The unit bends inside $[-10,10]$ where
$|b|\le10\,|w|$, which is a share $\frac2\pi\arctan10={2 / pi * atan(10):.4f}$ of all directions. Outside remain
${100 * OUT:.2f}$ per cent.

The quotient has a Cauchy law, whose tail falls only as $1/R$: for the interval $[-R,R]$ about $\frac{{2}}{{\pi R}}$ are lost. A
unit with a very small weight bends very far away, and a small step of that weight through zero carries its bend from one
end of the line to the other.""",
)

# ---- 4 -----------------------------------------------------------------------------------------------------
PIECES = exact.regions(5, 10)

pieces = Choice(
    id="boundaries.ex4", difficulty=2, title="How many pieces",
    question="Five units of the plane have boundaries that all cross the data, every two of them at a point of its own inside. On "
             "how many pieces is the layer a different affine function?",
    options=(
        Option("10", PIECES == 10, "That is the number of crossings. Without biases, five lines through one point make 10 pieces too."),
        Option("11", PIECES == 11, "You counted the whole and the ten crossings, and left out the five lines themselves."),
        Option("16", PIECES == 16, "One piece, five lines, ten crossings."),
        Option("32", PIECES == 32, "There are $2^5$ patterns of active units, but five lines in a plane cannot make them all."),
    ),
    hints=("Draw the lines one after the other. How many pieces does the third line cut in two?",
           "Line number $k$ crosses $k-1$ others, so it runs through $k$ pieces and cuts each of them."),
    praise="$1+5+10$: of the 32 patterns of active units, half exist nowhere in the plane.",
    solution=rf"""
Line number $k$ crosses the $k-1$ lines before it, so it runs through $k$ pieces and cuts each in two. The count goes
$1,2,4,7,11,{PIECES}$: in general $1+\ell+k$ for $\ell$ lines with $k$ crossings inside, here $1+5+10$.

Each piece has its own pattern of active units, and $2^5=32$ patterns can be written down. In the plane
only {PIECES} of them occur: the number of pieces grows as the *square* of the number of units, and in $\mathbb R^n$
as its $n$-th power, not exponentially.""",
)


# ---- 5 -----------------------------------------------------------------------------------------------------
def _location(w, b):
    return Boundary(w, b).location


def _location_trials(generator):
    w, b = torch.randn(6, 3, generator=generator, dtype=f64), torch.randn(6, generator=generator, dtype=f64)
    line = torch.tensor([[2.0], [-4.0]], dtype=f64)
    return [
        Trial((w, b), "six units in space"),
        Trial((10 * w, 10 * b), "the same units, times ten"),
        Trial((line, torch.tensor([1.0, 1.0], dtype=f64)), "two units with one input"),
        Trial((w.float()[:, :2], b.float()), "float32 units in the plane"),
        Trial((w, torch.zeros(6, dtype=f64)), "units without a bias"),
    ]


location = Function(
    id="boundaries.ex5", difficulty=2, title="The nearest points",
    question="Write a function that takes the weights of a layer, a tensor `w` of shape $(m,n)$, and its biases `b` of shape $(m)$, and returns the "
             r"$m$ locations $\phi$ as the rows of a tensor. (`ntklib.boundaries.Boundary` does it, so leave that one aside.)",
    signature="location(w, b)", truth=_location, trials=_location_trials, atol=1e-12,
    when_nan="A norm over the wrong dimension can vanish: take it along the inputs, `dim=-1`.",
    mistakes=(
        Mistake(gives(lambda w, b: b[:, None] * w / w.square().sum(-1, keepdim=True)),
                r"The sign is missing: $w\cdot\phi$ must be $-b$, not $b$."),
        Mistake(gives(lambda w, b: -b[:, None] * w / w.norm(dim=-1, keepdim=True)),
                r"You divided by $|w|$ once. That point is at the distance $|b|$; divide by $|w|$ once more."),
        Mistake(gives(lambda w, b: w / w.norm(dim=-1, keepdim=True)),
                "Those are the directions $u$. The location also says how far: $-\\lambda u$ with $\\lambda=b/|w|$."),
        Mistake(gives(lambda w, b: -b[:, None] * w / w.square().sum()),
                r"You divided by the squares of *all* weights. Each unit has its own $|w|^2$: sum along `dim=-1`."),
    ),
    hints=(r"$\phi=-b\,w/|w|^2$, row by row: which of the three factors are numbers, one a row?",
           "`b[:, None]` has the shape $(m,1)$, and so has `w.square().sum(-1, keepdim=True)`."),
    praise="One line of code, and the picture of a whole layer as points.",
    solution=r"""
```python
def location(w, b):
    return -b[:, None] * w / w.square().sum(-1, keepdim=True)
```

Two checks that do not use the formula: each row lies on its boundary, $w\cdot\phi+b=0$, and it is parallel to $w$, so
that no other point of the boundary is nearer. A common positive factor of $w$ and $b$ cancels, as it must.""",
)


# ---- 6 -----------------------------------------------------------------------------------------------------
def _pieces(w, b, radius):
    """The number of pieces, in the dtype of w."""
    edge = Boundary(w, b)
    i, j = torch.triu_indices(len(b), len(b), 1)
    det = w[i, 0] * w[j, 1] - w[i, 1] * w[j, 0]
    x = torch.stack([b[j] * w[i, 1] - b[i] * w[j, 1], b[i] * w[j, 0] - b[j] * w[i, 0]], -1) / det[:, None]
    return (1 + (edge.lam.abs() < radius).sum() + (x.norm(dim=-1) < radius).sum()).to(w.dtype)


def _piece_trials(generator):
    w, b = torch.randn(9, 2, generator=generator, dtype=f64), torch.randn(9, generator=generator, dtype=f64)
    return [
        Trial((w, b, 2.0), "nine units and the radius 2"),
        Trial((w, b, 0.5), "nine units and the radius 0.5"),
        Trial((w, b, 100.0), "nine units and the radius 100"),
        Trial((w[:1], 50 + b[:1], 1.0), "one unit that misses the disc"),
        Trial((5 * w, 5 * b, 2.0), "nine units, times five"),
    ]


count = Function(
    id="boundaries.ex6", difficulty=3, title="Counting pieces",
    question="Write a function that returns how many pieces the boundaries of a layer of the plane (`w` of shape $(m,2)$, `b` of "
             "shape $(m)$, in general position) cut the disc of a given `radius` about the origin into: a number, as a tensor of shape () in "
             "the dtype of `w`.",
    signature="pieces(w, b, radius)", truth=_pieces, trials=_piece_trials,
    mistakes=(
        Mistake(gives(lambda w, b, radius: w.new_tensor(1 + len(b) + len(b) * (len(b) - 1) // 2)),
                "That counts the whole plane. Lines that miss the disc do not cut it, and crossings outside it make no piece inside."),
        Mistake(gives(lambda w, b, radius: 1 + (Boundary(w, b).lam.abs() < radius).sum()),
                "Those are the pieces of lines that never meet: each crossing inside the disc makes one piece more."),
        Mistake(gives(lambda w, b, radius: _pieces(w, b, radius) - 1),
                "One is missing everywhere: a disc that nothing crosses is one piece."),
    ),
    hints=(r"$1+\ell+k$: a line crosses the disc where $|\lambda|<R$. For a pair of lines, solve two equations for their common point.",
           "`torch.linalg.solve` takes a batch: all pairs at once from `torch.triu_indices(m, m, 1)`, with the right side $-b$."),
    praise="Counting corners is exact; counting patterns on a grid of points would miss the small pieces.",
    solution=r"""
Line after line: a new one cuts one piece in two, and one more for each line that it crosses inside. So the count is
$1+\ell+k$, with $\ell$ lines in the disc and $k$ crossings in it.

```python
def pieces(w, b, radius):
    lines = (b.abs() < radius * w.norm(dim=-1)).sum()
    i, j = torch.triu_indices(len(b), len(b), 1)
    pairs = torch.stack([w[i], w[j]], 1)
    right = -torch.stack([b[i], b[j]], -1)
    meet = torch.linalg.solve(pairs, right)
    inside = (meet.norm(dim=-1) < radius).sum()
    return (1 + lines + inside).to(w.dtype)
```

A crossing inside the disc belongs to two lines that cross the disc, so nothing has to be checked twice.""",
)

EXERCISES = (distance, same_place, far_out, pieces, location, count)
