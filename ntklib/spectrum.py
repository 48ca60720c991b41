"""Extreme eigenvalues and condition numbers of Gram matrices, singular ones and near-duplicates included.

A matrix in float64 knows its lambda_min to eps lambda_max. The data know it to all digits: with p the lengths
and D = top - K the deficits of the directions, K = p p^T o (top - D), so that

    v^T K v = top (p . v)^2 - (p o v)^T D (p o v),

where for the lowest eigenvector the first term is negligible and D is exact. It remains to find v, and an
error in v enters squared.
"""
import math
import numbers
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ntklib import _check, cholesky
from ntklib.duals import LINEAR, Smooth, dual
from ntklib.homogeneous import deficits
from ntklib.kernels import ntk_gram, trained_layers

__all__ = ["Conditioning", "Extremes", "condition_number", "extreme_eigenvalues", "ntk_condition_number"]

SMALL, LARGE = 1400, 30000      # a full eigendecomposition is fastest up to one, impossible past the other


class Conditioning(NamedTuple):
    """kappa = lambda_max / lambda_min; infinite for a singular matrix, and lambda_min is 0 then.

    `rank` counts the eigenvalues above rounding, n eps lambda_max (for a linear kernel, the singular values
    of X above max(n, d) eps sigma_max), and `kappa_effective` is lambda_max over the least of them, lambda_r.
    Within `residual` = |K v - lambda_r v| of lambda_r there is an eigenvalue.
    """

    kappa: float
    lambda_max: float
    lambda_min: float
    rank: int
    kappa_effective: float
    residual: float


class Extremes(NamedTuple):
    """The two ends of a spectrum."""

    lambda_min: float
    lambda_max: float


def condition_number(K: Float[Tensor, "n n"]) -> Conditioning:
    """Condition number kappa = lambda_max / lambda_min of a symmetric positive semi-definite matrix.

    K is (n, n), float64 or float32 (whose rounding then decides what is zero); the arithmetic is in float64,
    with one copy of K and n^3 / 3 operations past n = 1400. Near-duplicates lose their lambda_min when K is
    rounded: for the kernel of points use `ntk_condition_number`.

    Raises ValueError unless K is square, symmetric and positive semi-definite up to rounding; OverflowError if
    an eigenvalue is beyond float64.

    >>> condition_number(torch.tensor([[2., 1.], [1., 2.]])).kappa           # eigenvalues 3 and 1
    3.0...
    >>> condition_number(torch.ones(2, 2))[:4]
    (inf, 2.0, 0.0, 1)
    """
    K = check_symmetric(K)
    eps, (K, e) = torch.finfo(K.dtype).eps, _scaled(K.double(), slack=200)
    return _unscaled(_of_matrix(K, eps, e), e)


def _of_matrix(K: Tensor, eps: float, e: int) -> Conditioning:
    """The condition number of 2^e K, with the eigenvalues of K."""
    n = len(K)
    ends = _ends(K) if n > SMALL else None
    if ends is not None and ends[1] > n * eps * ends[0]:
        return _conditioning(*ends, n, n)
    if n > LARGE:
        raise ValueError(f"K is singular up to rounding, and with n = {n} > {LARGE} its rank is unknown: "
                         "drop duplicated points, or call ntk_condition_number on the points")
    values = torch.linalg.eigvalsh(K)
    zero = n * eps * float(values.abs().max())
    if float(values[0]) < -zero:
        raise ValueError(f"K is not positive semi-definite: its eigenvalues run from "
                         f"{math.ldexp(float(values[0]), e):.6g} to "
                         f"{math.ldexp(float(values[-1]), e):.6g}. No Gram matrix has one below 0")
    rank = int((values > zero).sum())
    if rank == 0:
        return _ZERO
    low, high = float(values[n - rank]), float(values[-1])
    v = _vector(K, low, n * eps * high)
    return _conditioning(high, low, float((K @ v - low * v).norm()), n, rank)


def extreme_eigenvalues(K: Float[Tensor, "n n"]) -> Extremes:
    """(lambda_min, lambda_max) of a symmetric positive semi-definite matrix, for large n.

    Lanczos and a Cholesky factor, n^3 / 3 operations; torch.linalg.eigvalsh takes 4 n^3 / 3, and
    overflows its workspace at n = 32767. Arguments and errors as in `condition_number`; lambda_min = 0 if singular.

    >>> extreme_eigenvalues(torch.tensor([[2., 1.], [1., 2.]]))
    Extremes(lambda_min=1.0..., lambda_max=3.0...)
    """
    result = condition_number(K)
    return Extremes(result.lambda_min, result.lambda_max)


def ntk_condition_number(X: Float[Tensor, "n d"], *, depth: int, activation="relu", trained: str = "all",
                         cluster: float | None = None) -> Conditioning:
    """Condition number of `ntk_gram(X, ...)`, to full relative accuracy however close the rows of X lie.

    X is (n, d), float64 or float32; the arithmetic is in float64 and one n x n array. Homogeneous activations
    go by their deficits (above), linear networks and depth = 0 by the singular values of X. For smooth
    activations the Gram itself is used, which knows lambda_min to eps lambda_max.

    Rows that are parallel up to rounding, or within the angle `cluster` (radians) if it is given, count as
    one direction. They make K singular; the rest of its spectrum is that of one row of length sqrt(sum
    |x_i|^2) each.

    Raises as `ntk_gram`; ValueError for a singular K of more than 30000 directions (rank unknown), and for
    `cluster` with a linear or smooth kernel; OverflowError if an eigenvalue is beyond float64.

    >>> X = torch.tensor([[1., 0.], [1., 1e-9]], dtype=torch.float64)
    >>> round(ntk_condition_number(X, depth=2).kappa * 1e-9 / torch.pi, 6)       # 4 pi / (L theta)
    2.0

    Source: Liu et al. (2025), arXiv:2305.08813v2, Theorems 4.2 and F.1.
    """
    X, depth, s = _check.points(X).detach(), _check.count(depth, "depth"), dual(activation)
    kind = trained_layers(trained)
    if cluster is not None:
        if isinstance(cluster, bool) or not isinstance(cluster, numbers.Real) or not 0 <= cluster < math.pi / 2:
            raise ValueError(f"cluster must be an angle in radians in [0, pi/2), got {cluster!r}")
        if depth == 0 or s == LINEAR or isinstance(s, Smooth):
            raise ValueError("cluster needs a kernel of angles alone (relu, leaky_relu, abs or relu2 at depth >= 1), "
                             f"got activation = {activation!r} at depth = {depth}: merge rows yourself")
    if isinstance(s, Smooth) and depth:
        return condition_number(ntk_gram(X.double(), depth=depth, activation=activation, trained=trained))
    eps, (X, e) = torch.finfo(X.dtype).eps, _scaled(X.double())
    if depth == 0 or s == LINEAR:
        return _unscaled(_linear(X, LINEAR.top(depth, kind), eps), 2 * e)
    found = _homogeneous(X, s, depth, kind, eps if cluster is None else cluster)
    return _unscaled(found, 2 * e * s.power(depth))


# Everything is computed at a size at which neither squares overflow nor residuals underflow.

def _scaled(x: Tensor, slack: int = 0) -> tuple[Tensor, int]:
    """x / 2^e with its largest entry in [1/2, 1), and e; x itself, uncopied, and 0 if |e| is within `slack`."""
    e = math.frexp(_largest(x))[1]
    if abs(e) <= slack:
        return x, 0
    return x * 2. ** (-e // 2) * 2. ** (-e - -e // 2), e             # 2^-e alone may overflow


def _largest(x: Tensor) -> float:
    """max |x|, without a copy."""
    return max(abs(float(end)) for end in x.aminmax())


def _unscaled(found: Conditioning, e: int) -> Conditioning:
    """What was found for K / 2^e, for K."""
    high = math.ldexp(found.lambda_max, e) if math.frexp(found.lambda_max)[1] + e <= 1024 else math.inf
    low, tiny = math.ldexp(found.lambda_min, e) if high < math.inf else math.inf, torch.finfo(torch.float64).tiny
    if high == math.inf or (found.lambda_max > 0 and high < tiny) or (found.lambda_min > 0 and low < tiny):
        raise OverflowError(f"eigenvalues from {found.lambda_min:.6g} to {found.lambda_max:.6g}, times 2^{e}, are "
                            f"beyond float64: scale the input, which leaves kappa = {found.kappa:.6g} as it is")
    return found._replace(lambda_max=high, lambda_min=low, residual=math.ldexp(found.residual, e))


# From the points

class _Deficits:
    """K = p p^T o (top - D), from D above the diagonal of A; the rest of A is free for other use."""

    def __init__(self, A: Tensor, p: Tensor, top: float):
        self.A, self.p, self.top = A, p, top

    def apply(self, v: Tensor) -> Tensor:
        """K v."""
        pv = self.p[:, None] * v
        return self.p[:, None] * (self.top * pv.sum(0) - cholesky.above(self.A, pv))

    def form(self, V: Tensor) -> Tensor:
        """V^T K V."""
        pV = self.p[:, None] * V
        return self.top * torch.outer(pV.sum(0), pV.sum(0)) - pV.T @ cholesky.above(self.A, pV)

    def noise(self, v: Tensor) -> float:
        """What rounding may leave of v^T K v."""
        pv = self.p[:, None] * v.abs()
        size = float((pv * cholesky.above(self.A, pv)).sum() / v.square().sum())
        return 4 * torch.finfo(v.dtype).eps * size

    def write_below(self) -> None:
        """K on the diagonal of A and below it."""
        p = self.p
        cholesky.mirror_(self.A, lambda i, j, D: (self.top - D).mul_(p[i, None]).mul_(p[j]))


def _homogeneous(X: Tensor, s, depth: int, kind: str, limit: float) -> Conditioning:
    p = torch.linalg.vector_norm(X, dim=1) ** s.power(depth)
    A, i, j, theta = deficits(X, s, depth, kind)
    keep, p = _merge(p, i[theta <= limit], j[theta <= limit])
    if len(keep) == 0:
        return _ZERO
    K = _Deficits(A if len(keep) == len(X) else A[keep[:, None], keep], p, s.top(depth, kind))
    K.write_below()
    largest, _ = lanczos(K.apply, p)
    if cholesky.factor_(K.A):
        low, v = _lowest(K.A, K.form)
        if low > K.noise(v):
            return _conditioning(largest, low, float((K.apply(v) - low * v).norm()), len(X), len(p))
    return _singular(K, len(X))


def _singular(K: _Deficits, n: int) -> Conditioning:
    """K, rounded, is singular: a full decomposition, and its null space once more by the deficits."""
    if len(K.p) > LARGE:
        raise ValueError(f"the kernel of these {len(K.p)} > {LARGE} directions is singular up to rounding, "
                         "and its rank unknown: merge close directions with cluster=, or drop some")
    K.write_below()
    values, V = torch.linalg.eigh(K.A, UPLO="L")
    null = V[:, values < math.sqrt(torch.finfo(V.dtype).eps) * values[-1]]
    null = null @ torch.linalg.eigh(K.form(null))[1]
    V = torch.cat([null, V[:, null.shape[1]:]], 1)
    for k in range(V.shape[1]):
        v = V[:, k:k + 1]
        low = float(K.form(v) / v.square().sum())
        if low > K.noise(v):
            residual = float((K.apply(v) - low * v).norm())
            return _conditioning(float(values[-1]), low, residual, n, V.shape[1] - k)
    return _ZERO


def _merge(p: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of one row a direction, and its length: the root of the sum of squares of the parallels."""
    owner = list(range(len(p)))

    def find(a: int) -> int:
        while owner[a] != a:
            owner[a] = a = owner[owner[a]]
        return a

    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        first, second = sorted((find(a), find(b)))
        owner[second] = first
    first = torch.tensor([find(a) for a in range(len(p))], device=p.device)
    alone = torch.bincount(first, minlength=len(p)) == 1
    joint = torch.where(alone, p, torch.zeros_like(p).index_add_(0, first, p * p).sqrt())
    keep = ((first == torch.arange(len(p), device=p.device)) & (p > 0)).nonzero()[:, 0]
    return keep, joint[keep]


def _linear(X: Tensor, top: float, eps: float) -> Conditioning:
    """top X X^T has the squares of the singular values of X; its own eigenvalues lose half the digits."""
    U, sigma, _ = torch.linalg.svd(X, full_matrices=False)
    rank = int((sigma > max(X.shape) * eps * sigma[0]).sum())
    if rank == 0:
        return _ZERO
    u = U[:, rank - 1]
    w = _combination(u, X)
    low = float(w @ w) / float(u @ u)
    residual = float((X @ w - low * u).norm())
    return _conditioning(top * float(sigma[0]) ** 2, top * low, top * residual, len(X), rank)


def _combination(u: Tensor, X: Tensor) -> Tensor:
    """sum_i u_i x_i as if in twice the precision (Ogita, Rump and Oishi 2005): close rows cancel in it."""
    def halves(a: Tensor) -> tuple[Tensor, Tensor]:
        high = 134217729 * a
        high = high - (high - a)
        return high, a - high

    total, lost = torch.zeros_like(X[0]), torch.zeros_like(X[0])
    for c, x in zip(u, X, strict=True):
        product, (c1, c2), (x1, x2) = c * x, halves(c), halves(x)
        error = ((c1 * x1 - product) + c1 * x2 + c2 * x1) + c2 * x2
        new = total + product
        part = new - total
        lost = lost + ((total - (new - part)) + (product - part) + error)
        total = new
    return total + lost


# From a matrix

def _ends(K: Tensor) -> tuple[float, float, float] | None:
    """lambda_max, lambda_min and its residual; None unless K is positive definite."""
    largest, _ = lanczos(lambda v: K @ v, K[0])
    A = K.clone()
    if not cholesky.factor_(A):
        return None
    low, v = _lowest(A, lambda V: V.T @ (K @ V))
    return largest, low, float((K @ v - low * v).norm())


def _vector(K: Tensor, value: float, away: float) -> Tensor:
    """A unit eigenvector for an eigenvalue, by two inverse iterations from below, in half the time of eigh."""
    factors = torch.linalg.lu_factor(K - (value - away) * torch.eye(len(K), dtype=K.dtype, device=K.device))
    v = _start(len(K), K.device)
    for _ in range(2):
        v = torch.linalg.lu_solve(*factors, v)
        v = v / v.norm()
    return v


def _start(n: int, device: torch.device) -> Tensor:
    """A fixed vector (n, 1), so that results repeat."""
    return torch.randn(n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(device)


def _lowest(A: Tensor, form: Callable[[Tensor], Tensor]) -> tuple[float, Tensor]:
    """lambda_min and its vector: Rayleigh and Ritz in the space that inverse Lanczos spans."""
    _, V = lanczos(lambda v: cholesky.solve(A, v), A[0])
    v = V @ torch.linalg.eigh(form(V))[1][:, :1]
    return float(form(v) / v.square().sum()), v


def lanczos(apply: Callable[[Tensor], Tensor], like: Tensor, steps: int = 300,
            tol: float = 1e-11) -> tuple[float, Tensor]:
    """The largest Ritz value of a symmetric operator, and all Ritz vectors, (n, m), from the largest on.

    Stops when the residual of the largest is below tol times it: the value is off by the square of that over
    the gap to the next. Every vector is made orthogonal to all before, twice. The start is fixed: results
    repeat.
    """
    n, start = len(like), _start(len(like), like.device)
    basis, diagonal, beside, check = start / start.norm(), [], [], 4
    while True:
        w = apply(basis[:, -1:])
        along = basis.T @ w
        w = w - basis @ along
        w = w - basis @ (basis.T @ w)
        diagonal.append(float(along[-1]))
        m, left = len(diagonal), float(w.norm())
        if m >= check or m == min(steps, n) or left <= tol * max(map(abs, diagonal)):
            check = m + 2 + m // 8                                   # m^3 operations: not at every step
            T = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
            T.diagonal(1).copy_(torch.tensor(beside, dtype=torch.float64))
            values, Y = torch.linalg.eigh(T, UPLO="U")
            if left * abs(float(Y[-1, -1])) <= tol * abs(float(values[-1])) or m == min(steps, n):
                return float(values[-1]), (basis @ Y.to(basis)).flip(1)
        beside.append(left)
        basis = torch.cat([basis, w / left], 1)


_ZERO = Conditioning(math.inf, 0., 0., 0, math.nan, 0.)              # the zero matrix


def _conditioning(high: float, low: float, residual: float, n: int, rank: int) -> Conditioning:
    kappa = high / low
    if rank < n:
        return Conditioning(math.inf, high, 0., rank, kappa, residual)
    return Conditioning(kappa, high, low, n, kappa, residual)


def check_symmetric(K) -> Tensor:
    """K, detached, if it is a square matrix and symmetric up to rounding."""
    K = _check.points(K, "K").detach()
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be square, got shape {tuple(K.shape)}: for points use ntk_condition_number")
    pairs = zip(K.split(512), K.split(512, dim=1), strict=True)          # in strips: three copies of K would not fit
    size, off = _largest(K), max(_largest(rows - columns.T) for rows, columns in pairs)
    if off > 100 * torch.finfo(K.dtype).eps * size:
        raise ValueError(f"K must be symmetric, but |K - K^T| reaches {off:.3g}, entries {size:.3g}: if it "
                         "is rounding, use (K + K.T) / 2")
    return K
