r"""By how much a step eps in the angles theta turns u(theta): the expansions behind Chen & Ge's Theorem 3.7.

Along the curve t -> u(theta + t eps), whose speed is |eps|_M with M at theta + t eps, the angle from its start
and its length both begin as  t |eps|_M + t^2 (d/dt |eps|_M) / 2  with everything at theta: they agree to the
second order, and |eps|_M with them to the first one only. Symbols are those of
`ntklib.symbolic.sphere.angles(n)` and of `steps(n)`.
"""
import sympy as sp

from ntklib.symbolic import sphere


def steps(n: int) -> tuple[sp.Symbol, ...]:
    """The symbols eps_1 .. eps_{n-1}."""
    return sp.symbols(f"varepsilon_1:{n}", real=True)


def squared_norm(n: int) -> sp.Expr:
    """|eps|_M^2 = eps^T M eps, the squared speed of t -> u(theta + t eps) at t = 0.

    >>> squared_norm(3)
    varepsilon_1**2 + varepsilon_2**2*sin(theta_1)**2
    """
    return sum(m * e**2 for m, e in zip(sphere.metric(n).diagonal(), steps(n), strict=True))


def growth(n: int) -> sp.Expr:
    """d/dt of |eps|_M^2 along the step, at t = 0: positive where the coordinates spread out.

    >>> growth(3)
    2*varepsilon_1*varepsilon_2**2*sin(theta_1)*cos(theta_1)
    """
    return sum(e * sp.diff(squared_norm(n), t) for e, t in zip(steps(n), sphere.angles(n), strict=True))


def turn_series(n: int, t) -> sp.Expr:
    """The angle between u(theta) and u(theta + t eps) up to t^2, and the length of the curve up to t^2 as well.

    >>> t = sp.Symbol("t")
    >>> turn_series(2, t)
    t*Abs(varepsilon_1)
    """
    speed = sp.sqrt(squared_norm(n))
    return speed * t + growth(n) / (4 * speed) * t**2


def half_turn(theta, eps) -> sp.Expr:
    """The angle that a unit of R^3 turns by when its second angle moves on by eps: exact, for all eps.

    >>> half_turn(sp.pi / 4, sp.pi)
    pi/2
    """
    return 2 * sp.asin(sp.Abs(sp.sin(theta) * sp.sin(sp.sympify(eps) / 2)))


def geodesic_curvature(n: int) -> sp.Expr:
    """kappa^2 of t -> u(theta + t eps) on the sphere, at t = 0: zero where the curve runs straight.

    |u'|^2 |u''|^2 - (u'.u'')^2 over |u'|^6 is the squared curvature in space, which the sphere raises by 1.

    >>> sp.simplify(geodesic_curvature(3).subs(steps(3)[0], 0))      # along a parallel: cot^2
    tan(theta_1)**(-2)
    """
    t = sp.Symbol("t")
    shift = {a: a + t * e for a, e in zip(sphere.angles(n), steps(n), strict=True)}
    u = sphere.from_angles(n).subs(shift, simultaneous=True)
    second = u.diff(t, 2).subs(t, 0)
    speed = squared_norm(n)
    return (speed * second.dot(second) - (growth(n) / 2) ** 2) / speed**3 - 1
