"""A GmP unit, exactly: its gradients, and how fast a gradient turns it, beside the same unit trained by its weights.

On the active side z = r s with s = u(theta) . x + lam. A loss hands down errors delta_i = dL/dz_i; what they ask of
the weights of s is G = sum of delta_i x_i over the active inputs, an n-vector.
"""
import sympy as sp

from ntklib.symbolic import sphere
from ntklib.symbolic._step import Step, equation


def unit(n: int) -> tuple[sp.Symbol, sp.Symbol, tuple[sp.Symbol, ...], sp.Matrix, sp.Expr]:
    """(r, lam, theta, x, z): a unit of R^n and its answer on the active side.

    >>> unit(2)[-1]
    r*(lambda + x_1*cos(theta_1) + x_2*sin(theta_1))
    """
    r, lam = sp.symbols("r lambda", real=True)
    x = sp.Matrix(sp.symbols(f"x_1:{n + 1}", real=True))
    return r, lam, sphere.angles(n), x, r * (sphere.from_angles(n).dot(x) + lam)


def gradients(n: int) -> tuple[sp.Expr, sp.Expr, list[sp.Expr]]:
    """(dz/dr, dz/dlam, [dz/dtheta_j]) on the active side: s, r, and r x . du/dtheta_j.

    >>> gradients(2)[1:]
    (r, [r*(-x_1*sin(theta_1) + x_2*cos(theta_1))])
    """
    r, lam, theta, _, z = unit(n)
    return sp.diff(z, r), sp.diff(z, lam), [sp.diff(z, t) for t in theta]


def pull(n: int) -> sp.Matrix:
    """G in the orthonormal frame at u(theta): sum of a_j e_j with e_j = (du/dtheta_j)/sqrt(M_jj), plus a_0 u.

    sqrt(M_jj) = prod_{k<j} sin(theta_k), taken positive as theta_k lies in (0, pi).
    """
    a = sp.symbols(f"a_0:{n}", real=True)
    J, theta = sphere.jacobian(n), sphere.angles(n)
    G = a[0] * sphere.from_angles(n)
    for j in range(n - 1):
        G += a[j + 1] * J[:, j] / sp.prod(sp.sin(t) for t in theta[:j])
    return G


def turn_by_weights(n: int) -> sp.Expr:
    """|du/dt|^2 when the weights w = r u follow -G: the sum of the a_j^2, over r^2.

    >>> turn_by_weights(3)
    (a_1**2 + a_2**2)/r**2
    """
    r = sp.Symbol("r", real=True)
    u, G = sphere.from_angles(n), pull(n)
    speed = -(G - u * u.dot(G)) / r                                  # d(w/|w|) along dw = -G
    return _frame(speed.dot(speed), n)


def turn_by_angles(n: int) -> sp.Expr:
    """|du/dt|^2 when the angles follow -dL/dtheta = -r J^T G: r^2 times the sum of M_jj^2 a_j^2.

    >>> turn_by_angles(3)
    r**2*(a_1**2 + a_2**2*sin(theta_1)**4)
    """
    r, J = sp.Symbol("r", real=True), sphere.jacobian(n)
    speed = J * (-r * J.T * pull(n))
    return _frame(speed.dot(speed), n)


def _frame(square: sp.Expr, n: int) -> sp.Expr:
    """A square in the frame, collected: polynomials in sines and cosines, and in the a_j."""
    whole = sphere.pythagoras(sp.expand(sp.together(square)))
    return sp.factor(sp.simplify(whole)) if n > 2 else sp.simplify(whole)


def mean_norm_radius() -> sp.Expr:
    """The radius that keeps the second moment of a layer whose answers are centred: 1/r^2 = E s(t)^2 - (E s(t))^2.

    For t standard normal and s the ReLU; without centring it is sqrt(2).

    >>> mean_norm_radius()
    sqrt(2)*sqrt(pi)/sqrt(-1 + pi)
    """
    t = sp.Symbol("t", positive=True)
    density = sp.exp(-t**2 / 2) / sp.sqrt(2 * sp.pi)
    first, second = (sp.integrate(t**k * density, (t, 0, sp.oo)) for k in (1, 2))
    return sp.simplify(1 / sp.sqrt(second - first**2))


def location_steps() -> list[Step]:
    """Why a step (dlam, dtheta) moves phi = -lam u by at most |dlam| + |lam| |dtheta|, if u turns by alpha."""
    lam, dlam, a = sp.symbols("lambda Delta alpha", real=True)
    u, v = sp.Matrix([1, 0]), sp.Matrix([sp.cos(a), sp.sin(a)])       # before and after, in the plane that holds both
    along, across = -dlam * v, -lam * (v - u)
    return [Step("Split the move", "the offset acts along the new direction, the turn on the old offset",
                 equation(sp.Add(*(-(lam + dlam) * v + lam * u)), sp.expand(sp.Add(*(along + across))))),
            Step("The first part", "v is a unit vector", equation(along.dot(along), dlam**2)),
            Step("The second part", "a chord of the unit circle is shorter than its arc",
                 equation(across.dot(across), 4 * lam**2 * sp.sin(a / 2) ** 2))]
