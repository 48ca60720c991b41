"""Laws of hyperspherical angles and of the directions that they make: the chapter "Hyperspherical coordinates"."""
import sympy as sp

from ntklib import _check


def tail_square(n, k) -> sp.Expr:
    """E prod_{i<=k} sin^2 theta_i = E(u_{k+1}^2 + .. + u_n^2) for a uniform direction: a product that telescopes.

    The angles are independent, and E sin^2 theta_i = (n - i)/(n - i + 1). Both arguments may be symbols.

    >>> n, k = sp.symbols("n k", positive=True, integer=True)
    >>> tail_square(n, k)
    -k/n + 1
    """
    i = sp.Symbol("i", positive=True, integer=True)
    return sp.expand(sp.gammasimp(sp.product((n - i) / (n - i + 1), (i, 1, k))))


def flat_square(n: int, i: int) -> sp.Rational:
    """E u_i^2 where all angles are drawn uniformly: E cos^2 = E sin^2 = 1/2, so 2^-i, and 2^(1-n) for the last.

    >>> [flat_square(4, i) for i in (1, 2, 3, 4)]
    [1/2, 1/4, 1/8, 1/8]
    """
    n = _check.count(n, "n", least=1)
    i = _check.count(i, "i", least=1)
    if i > n:
        raise ValueError(f"there are n = {n} coordinates, got i = {i}")
    return sp.Rational(1, 2 ** min(i, n - 1))


def glorot_density(theta) -> sp.Expr:
    """Law of the last angle atan2(w_n, w_{n-1}) of weights drawn uniformly from a cube, on a full turn, at every n.

    The area of the square [-1, 1]^2 near a direction is half of the squared distance to its edge; the whole is 4.

    >>> glorot_density(sp.Integer(0)), glorot_density(sp.pi / 4)
    (1/8, 1/4)
    """
    return 1 / (8 * sp.Max(sp.cos(theta) ** 2, sp.sin(theta) ** 2))


def sums_of_fourths(n) -> tuple[sp.Expr, sp.Expr]:
    """E sum_i u_i^4 for a uniform direction of R^n, exactly, and for weights from a cube, to leading order in n.

    It is 1 for a direction along an axis and 1/n where all |u_i| are equal. A uniform direction is w/|w| of normal
    weights, whose E w^4 is 3 (E w^2)^2; for weights uniform on an interval it is 9/5 of (E w^2)^2.

    >>> sums_of_fourths(sp.Symbol("n"))
    (3/(n + 2), 9/(5*n))
    """
    n = sp.sympify(n)
    return 3 / (n + 2), sp.Rational(9, 5) / n
