"""Kernels of infinitely wide networks in closed form (the twin of `ntklib.kernels`).

Kernels of homogeneous activations are functions of the angle z between two unit inputs; those of smooth ones,
of the variances q_x, q_y and the covariance s of two Gaussians u and v. Both are normalised by c = 1 /
E[s(z)^2].
"""
import sympy as sp

from ntklib.symbolic.angles import _expectation, leaky_kernel

_S = sp.Symbol("s", real=True)


def normalised_kernel(z, slope=0, degree: int = 1) -> sp.Expr:
    """c E[s(u) s(v)] of a leaky ReLU at angle z; degree = 0 for c E[s'(u) s'(v)].

    >>> normalised_kernel(sp.pi / 2), normalised_kernel(sp.pi / 2, degree=0)
    (1/pi, 1/2)
    """
    return sp.expand(2 * leaky_kernel(z, slope, degree) / (1 + sp.sympify(slope) ** 2))


def squared_relu_kernel(z) -> sp.Expr:
    """c E[s(u) s(v)] of s(u) = max(0, u)^2, c = 2/3, by integration in polar coordinates.

    >>> squared_relu_kernel(0), squared_relu_kernel(sp.pi / 2)
    (1, 1/6)
    """
    return sp.simplify(_expectation(2, True) * sp.Rational(2, 3)).subs(sp.Symbol("z", positive=True), z)


def nngp(z, depth: int, slope=0) -> sp.Expr:
    """Sigma^(L) of two unit inputs at angle z, the dual of a leaky ReLU applied L times.

    >>> nngp(sp.pi, 1), nngp(sp.pi, 2)
    (0, 1/pi)
    """
    rho = sp.cos(z)
    for _ in range(depth):
        rho = normalised_kernel(sp.acos(rho) if rho != sp.cos(z) else z, slope)
    return rho


def ntk(z, depth: int, slope=0, trained: str = "all") -> sp.Expr:
    """Theta^(L) of two unit inputs at angle z: Theta^(l+1) = Theta^(l) c E[s' s'] + Sigma^(l+1), from cos z.

    >>> ntk(sp.pi / 2, 1), ntk(0, 3), ntk(0, 3, trained="first")
    (1/pi, 4, 1)
    """
    angle, total = z, sp.cos(z)
    for _ in range(depth):
        rho = normalised_kernel(angle, slope)
        total = total * normalised_kernel(angle, slope, degree=0) + (rho if trained == "all" else 0)
        angle = sp.acos(rho)
    return total


# Smooth activations: E[s' s'] is a Gaussian integral, and its integral over s is E[s s] (Price's theorem)

def erf_slopes(qx, qy, s) -> sp.Expr:
    """E[erf'(u) erf'(v)] = (4/pi) E[exp(-u^2 - v^2)] = (4/pi) / sqrt(det(I + 2 Sigma)).

    >>> erf_slopes(0, 0, 0)
    4/pi
    """
    sigma = sp.Matrix([[qx, s], [s, qy]])
    return 4 / sp.pi / sp.sqrt(sp.factor((sp.eye(2) + 2 * sigma).det()))


def erf_kernel(qx, qy, s) -> sp.Expr:
    """E[erf(u) erf(v)], the integral of `erf_slopes` from s = 0, where it is 0.

    >>> erf_kernel(1, 1, 1), sp.simplify(sp.diff(erf_kernel(1, 1, _S), _S) ** 2 / erf_slopes(1, 1, _S) ** 2)
    (2*asin(2/3)/pi, 1)
    """
    return 2 / sp.pi * sp.asin(2 * s / sp.sqrt((1 + 2 * qx) * (1 + 2 * qy)))


def sin_kernel(qx, qy, s) -> sp.Expr:
    """E[sin u sin v] = (E[cos(u - v)] - E[cos(u + v)]) / 2, where E[cos w] = exp(-Var(w) / 2).

    >>> sin_kernel(1, 1, 0)
    0
    """
    return (sp.exp(-(qx + qy - 2 * s) / 2) - sp.exp(-(qx + qy + 2 * s) / 2)) / 2


def gelu_kernel(qx, qy, s) -> sp.Expr:
    """E[u Phi(u) v Phi(v)] by Stein's lemma, E[u F] = q_x E[dF/du] + s E[dF/dv], twice.

    With p = E[phi(u) phi(v)] = 1 / (2 pi r), r^2 = (1 + q_x)(1 + q_y) - s^2, the orthant probability E[Phi(u)
    Phi(v)], and E[u phi(u) Phi(v)] = s p / (1 + q_x).

    >>> gelu_kernel(1, 1, 0)                                        # E[u Phi(u)]^2 = (1 / (2 sqrt(pi)))^2
    1/(4*pi)
    """
    r = sp.sqrt((1 + qx) * (1 + qy) - s**2)
    p, orthant = 1 / (2 * sp.pi * r), sp.Rational(1, 4) + sp.atan2(s, r) / (2 * sp.pi)
    return s * orthant + qx * (qy * p - s * s * p / (1 + qx)) + s * s * p / (1 + qy)
