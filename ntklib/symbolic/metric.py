"""The metric of the hyperspherical angles, exactly: why M is diagonal in every dimension, and what it is on average.

M itself, by differentiation for one n at a time, is `symbolic.sphere.metric`. Here are two proofs for all n, as
steps that a test checks for many of them, and averages over a uniform direction, which need only E u_i^2 = 1/n.
"""
from itertools import pairwise

import sympy as sp

from ntklib import _check
from ntklib.symbolic import sphere
from ntklib.symbolic._step import Step, equation


def summands(n: int, a: int, b: int) -> list[sp.Expr]:
    """The terms du_i/dtheta_a du_i/dtheta_b, i = 1 .. n, whose sum is M_ab (Chen & Ge, eq. 18).

    >>> summands(3, 1, 2)
    [0, -sin(theta_1)*sin(theta_2)*cos(theta_1)*cos(theta_2), sin(theta_1)*sin(theta_2)*cos(theta_1)*cos(theta_2)]
    """
    J = sphere.jacobian(_check.count(n, "n", least=2))
    a, b = _column(n, a, "a"), _column(n, b, "b")
    return [J[i, a - 1] * J[i, b - 1] for i in range(n)]


def cancellation_steps(n: int, a: int, b: int) -> list[Step]:
    """Why M_ab = 0 for a < b: one term is minus the squared tail of u, and the others add up to that tail.

    >>> all(step.holds for step in cancellation_steps(5, 2, 3))
    True
    """
    terms, theta, u = summands(n, a, b), sphere.angles(n), sphere.from_angles(n)
    if not a < b:
        raise ValueError(f"the steps are those of an entry beside the diagonal, a < b, got a = {a} and b = {b}")
    factor = sp.cot(theta[a - 1]) * sp.cot(theta[b - 1])
    tail = sp.prod(sp.sin(t) ** 2 for t in theta[:b])
    rest = sum(x**2 for x in u[b:])
    return [
        Step("Before b", "u_i does not contain theta_b for i < b", equation(sum(terms[:b - 1], sp.Integer(0)), 0)),
        Step("At b", "u_b = T_b cos(theta_b), and T_b sin(theta_b) = T_(b+1)",
             equation(terms[b - 1], -factor * tail)),
        Step("After b", "u_i contains both sines, and each derivative makes one a cosine",
             equation(sum(terms[b:]), factor * rest)),
        Step("The tail", "u_(b+1), .., u_n is T_(b+1) times a unit vector", equation(rest, tail)),
        Step("Together", "minus the tail, plus the tail", equation(sum(terms), 0)),
    ]


def induction_steps(n: int) -> list[Step]:
    """From n - 1 to n: u = (cos theta_1, sin(theta_1) v) with a unit vector v of the other angles.

    >>> all(step.holds for step in induction_steps(4))
    True
    """
    theta, J = sphere.angles(_check.count(n, "n", least=3)), sphere.jacobian(n)
    v = sphere.from_angles(n - 1).subs(dict(pairwise(theta)), simultaneous=True)
    dv = v.jacobian(theta[1:])
    sin, cos, M = sp.sin(theta[0]), sp.cos(theta[0]), J.T * J
    return [
        Step("The first angle", "|v| = 1", equation(M[0, 0], sin**2 + cos**2 * v.dot(v))),
        Step("The first and another", "v.dv is half the derivative of |v|^2 = 1, so 0",
             equation(M[0, 1], sin * cos * sp.diff(v.dot(v), theta[1]) / 2)),
        *(Step("Two others", "both carry the factor sin(theta_1)",
               equation(M[j, k], sin**2 * dv[:, j - 1].dot(dv[:, k - 1])))
          for j, k in ((1, 1), (1, 2)) if k < n - 1),
    ]


def mean_metric(n: int, j: int) -> sp.Rational:
    """E M_jj = (n - j + 1)/n for a uniform direction of R^n: M_jj is the squared tail u_j^2 + .. + u_n^2.

    >>> [mean_metric(4, j) for j in (1, 2, 3)]
    [1, 3/4, 1/2]
    """
    j = _column(_check.count(n, "n", least=2), j, "j")
    return sp.Rational(n - j + 1, n)


def mean_squared_derivative(n: int, i: int, j: int) -> sp.Rational:
    """E (du_i/dtheta_j)^2 for a uniform direction: (n - j)/n at i = j, 1/(n (n - j)) below, 0 above.

    >>> [mean_squared_derivative(3, i, 1) for i in (1, 2, 3)]
    [2/3, 1/6, 1/6]
    """
    j = _column(_check.count(n, "n", least=2), j, "j")
    i = _check.count(i, "i", least=1)
    if i > n:
        raise ValueError(f"there are n = {n} weights, got i = {i}")
    return sp.Integer(0) if i < j else sp.Rational(n - j, n) if i == j else sp.Rational(1, n * (n - j))


def mean_squared_move(n: int, i: int) -> sp.Rational:
    """E du_i^2/eta^2 where every angle steps by +-eta: ((n - i) + H_(n-1) - H_(n-i))/n, H the harmonic numbers.

    To first order in eta, for a uniform direction and independent signs. It falls from (n - 1)/n to H_(n-1)/n.

    >>> [mean_squared_move(3, i) for i in (1, 2, 3)]
    [2/3, 1/2, 1/2]
    """
    i = _check.count(i, "i", least=1)
    if i > _check.count(n, "n", least=2):
        raise ValueError(f"there are n = {n} weights, got i = {i}")
    return (n - i + sp.harmonic(n - 1) - sp.harmonic(n - i)) / n


def _column(n: int, j: int, name: str) -> int:
    j = _check.count(j, name, least=1)
    if j >= n:
        raise ValueError(f"there are n - 1 = {n - 1} angles, got {name} = {j}")
    return j
