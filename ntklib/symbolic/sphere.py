"""Hyperspherical coordinates, exactly: the sympy twin of `ntklib.sphere` for a given dimension n.

Each function returns an expression in the symbols theta_1 .. theta_{n-1} of `angles(n)`; lambdify turns it
into what `ntklib.sphere` computes. The identities of Chen & Ge's appendix B are results, which the tests
prove for n <= 6: M = (du/dtheta)^T (du/dtheta) is diagonal, and M_jj = prod_{k<j} sin^2(theta_k) is the
squared tail u_j^2 + .. + u_n^2.
"""
import sympy as sp

from ntklib import _check


def angles(n: int) -> tuple[sp.Symbol, ...]:
    """The symbols theta_1 .. theta_{n-1}."""
    return sp.symbols(f"theta_1:{_check.count(n, 'n', least=1)}", real=True)


def from_angles(n: int) -> sp.Matrix:
    """u(theta) as a column: u_i = cos(theta_i) prod_{k<i} sin(theta_k), u_n = prod_k sin(theta_k) (eq. 17).

    >>> list(from_angles(3))
    [cos(theta_1), sin(theta_1)*cos(theta_2), sin(theta_1)*sin(theta_2)]
    """
    theta = angles(n)
    products = [sp.prod(sp.sin(t) for t in theta[:i]) for i in range(n)]
    return sp.Matrix([p * sp.cos(t) for p, t in zip(products, theta, strict=False)] + products[-1:])


def to_angles(n: int) -> tuple[tuple[sp.Symbol, ...], sp.Expr, list[sp.Expr]]:
    """Symbols w, r = |w| and the angles theta_i = atan2(|(w_{i+1}, .., w_n)|, w_i), the last one signed.

    The last angle is in (-pi, pi]; `ntklib.sphere.to_angles` adds 2 pi where it is negative. n = 1: r = w_1.

    >>> to_angles(2)[1:]
    (sqrt(w_1**2 + w_2**2), [atan2(w_2, w_1)])
    """
    w = sp.symbols(f"w_1:{_check.count(n, 'n', least=1) + 1}", real=True)
    if n == 1:
        return w, w[0], []
    tails = [sp.sqrt(sum(x**2 for x in w[i:])) for i in range(n)]
    return w, tails[0], [sp.atan2(tails[i + 1], w[i]) for i in range(n - 2)] + [sp.atan2(w[-1], w[-2])]


def jacobian(n: int) -> sp.Matrix:
    """du_i/dtheta_j, the n x (n-1) matrix, by differentiation.

    >>> jacobian(2)
    Matrix([
    [-sin(theta_1)],
    [ cos(theta_1)]])
    """
    return from_angles(n).jacobian(angles(n)) if n > 1 else sp.zeros(1, 0)


def metric(n: int) -> sp.Matrix:
    """M = (du/dtheta)^T (du/dtheta), with nothing assumed: that it is diagonal is a result (eq. 18).

    >>> metric(3)
    Matrix([
    [1,               0],
    [0, sin(theta_1)**2]])
    """
    J = jacobian(n)
    return (J.T * J).applyfunc(pythagoras)


def pythagoras(expression: sp.Expr) -> sp.Expr:
    """The normal form of a polynomial in sines and cosines: expanded, with every cos^2 written as 1 - sin^2.

    Two such polynomials are equal as functions exactly if their normal forms are equal: a proof, and hundreds
    of times faster than sympy's trigsimp.

    >>> t = sp.Symbol("t")
    >>> pythagoras(sp.sin(t)**4 + (1 + sp.sin(t)**2) * sp.cos(t)**2)
    1
    """
    squares = {sp.cos(t) ** 2: 1 - sp.sin(t) ** 2 for t in expression.free_symbols}
    return sp.expand(sp.expand(expression).subs(squares))


def density(n: int, i: int) -> sp.Expr:
    """Law of theta_i for a uniform direction of R^n: Gamma((n-i+1)/2)/(sqrt(pi) Gamma((n-i)/2)) sin^(n-1-i).

    On [0, pi] for i <= n - 2; the last angle is uniform on [0, 2 pi). The product over i is sqrt(det M),
    normalised.

    >>> density(3, 1), density(3, 2)
    (sin(theta_1)/2, 1/(2*pi))
    """
    theta = angles(_check.count(n, "n", least=2))
    i = _check.count(i, "i", least=1)
    if i >= n:
        raise ValueError(f"there are n - 1 = {n - 1} angles, got i = {i}")
    if i == n - 1:
        return 1 / (2 * sp.pi)
    power = sp.Integer(n - i)
    constant = sp.gamma((power + 1) / 2) / (sp.sqrt(sp.pi) * sp.gamma(power / 2))
    return constant * sp.sin(theta[i - 1]) ** (power - 1)
