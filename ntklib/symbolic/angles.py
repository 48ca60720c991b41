"""The angle map of a wide random layer, from the Gaussian integral up (the twin of `ntklib.angles`).

A random unit w sees two inputs x and y of length 1 at angle z as u = w . x and v = w . y, standard Gaussians
with correlation cos z. In the plane of x and y, w is the point (r cos phi, r sin phi), x points along phi = 0
and y along phi = z, so that u = r cos phi and v = r cos(phi - z).
"""
from functools import cache

import sympy as sp

from ntklib.symbolic._step import Step, equation

_R, _Z, _EPS = sp.symbols("r z epsilon", positive=True)
_PHI, _BETA = sp.symbols("phi beta", real=True)


# The Gaussian integral

def _radius(degree: int) -> sp.Integral:
    """The part of E[f(u) f(v)] that depends on r, for f homogeneous of this degree."""
    return sp.Integral(_R ** (2 * degree + 1) * sp.exp(-_R**2 / 2), (_R, 0, sp.oo))


def _arc(degree: int, agree: bool, z=_Z) -> sp.Integral:
    """The part that depends on phi, over the arc u, v > 0 (agree) or u < 0 < v."""
    start, end = (z - sp.pi / 2, sp.pi / 2) if agree else (sp.pi / 2, z + sp.pi / 2)
    return sp.Integral((sp.cos(_PHI) * sp.cos(_PHI - z)) ** degree, (_PHI, start, end))


@cache
def _expectation(degree: int, agree: bool) -> sp.Expr:
    """E[(u v)^degree; u, v > 0] or E[(u v)^degree; u < 0 < v] as a function of z."""
    product = sp.simplify(_radius(degree).doit() * _arc(degree, agree).doit() / (2 * sp.pi))
    return sp.collect(sp.expand(2 * sp.pi * product), sp.cos(_Z)) / (2 * sp.pi)


def relu_kernel(z) -> sp.Expr:
    """E[relu(u) relu(v)] for standard Gaussians u, v at angle z, by integration in polar coordinates.

    >>> relu_kernel(sp.Symbol("z"))
    ((pi - z)*cos(z) + sin(z))/(2*pi)
    """
    return _expectation(1, True).subs(_Z, z)


def step_kernel(z) -> sp.Expr:
    """P(u > 0, v > 0) = E[relu'(u) relu'(v)], the share of hidden units that are active for both inputs.

    >>> step_kernel(sp.Symbol("z"))
    (pi - z)/(2*pi)
    """
    return _expectation(0, True).subs(_Z, z)


def leaky_kernel(z, slope, degree: int = 1) -> sp.Expr:
    """E[s(u) s(v)] for s(u) = u if u > 0, slope * u if u < 0; degree = 0 gives E[s'(u) s'(v)].

    Opposite arcs contribute alike, as (u, v) -> (-u, -v) leaves the Gaussian and u v unchanged: with
    weights 1 and slope^2 where the signs agree, with weight slope on both arcs where they differ.
    """
    agree, differ = (_expectation(degree, agree).subs(_Z, z) for agree in (True, False))
    return (1 + slope**2) * agree + 2 * slope * differ


def relu_kernel_steps(z) -> list[Step]:
    """The derivation of `relu_kernel`, step by step; each right side is what sympy makes of the left."""
    plane = sp.Matrix([_R * sp.cos(_PHI), _R * sp.sin(_PHI)])
    area = sp.Determinant(plane.jacobian([_R, _PHI]))
    radius, opening, arc = _radius(1), _arc(0, True), _arc(1, True)
    half_angle = sp.collect(sp.expand(2 * sp.simplify(arc.doit())), sp.cos(_Z)) / 2
    steps = [
        Step("Polar coordinates",
             "Only the part of the weight vector in the plane of the two inputs matters. It is a Gaussian "
             "point, and a Gaussian looks alike in all directions: polar coordinates, with area element r.",
             equation(area, sp.simplify(area.doit()))),
        Step("Radius",
             "relu(u) relu(v) brings r twice, the area element once, and the density exp(-r^2/2).",
             equation(radius, radius.doit())),
        Step("Active arc",
             "A unit fires for x if phi is within pi/2 of 0, for y if phi is within pi/2 of z: for both on "
             "an arc that shrinks as the inputs part.",
             equation(opening, opening.doit())),
        Step("Angle",
             "On that arc both ReLUs are open, and the two cosines are left to integrate.",
             equation(arc, half_angle)),
        Step("Kernel",
             "Radius times angle, over the full turn 2 pi.",
             equation(radius * arc / (2 * sp.pi), relu_kernel(_Z))),
        Step("Angle map",
             "At z = 0 the kernel is the mean square of a unit's output. Divided by it, the kernel is the "
             "cosine of the angle between the layer's outputs.",
             equation(radius * arc / (radius * arc.subs(_Z, 0)), sp.cos(angle_map(_Z)))),
    ]
    return [step._replace(equation=step.equation.subs(_Z, z)) for step in steps]


# The angle map

def relu_share(slope) -> sp.Expr:
    """beta = (1 - a)^2 / (1 + a^2), the share of ReLU in leaky ReLU of slope a; the rest is the identity."""
    return (1 - slope) ** 2 / (1 + sp.sympify(slope) ** 2)


def leaky_kernel_steps(z, slope) -> list[Step]:
    """The leaky kernel and its derivative kernel, normalised: beta of ReLU and 1 - beta of the identity."""
    beta = relu_share(slope)
    weights = (1 + slope**2) * _arc(1, True, z) + 2 * slope * _arc(1, False, z)
    return [
        Step("Four arcs", "The signs agree on two arcs, weights 1 and a^2, and differ on two, weight a.",
             equation(_radius(1) * weights / (2 * sp.pi), leaky_kernel(z, slope))),
        Step("Mean square", "Half of the time u passes as it is, half of the time a u does.",
             equation(leaky_kernel(0, slope), (1 + slope**2) / 2)),
        Step("Kernel", "So a leaky ReLU is, for the angles, a mixture of ReLU and the identity.",
             equation(leaky_kernel(z, slope) / leaky_kernel(0, slope),
                      beta * relu_kernel(z) / relu_kernel(0) + (1 - beta) * sp.cos(z))),
        Step("Derivative kernel", "The same arcs, without the two cosines.",
             equation(leaky_kernel(z, slope, degree=0) / leaky_kernel(0, slope, degree=0),
                      1 - beta * z / sp.pi)),
    ]


def _cosine(z, slope=0) -> sp.Expr:
    """cos g(z): the kernel over its value at equal inputs."""
    if slope == 0:
        return relu_kernel(z) / relu_kernel(0)
    return leaky_kernel(z, slope) / leaky_kernel(0, slope)


def angle_map(z, slope=0) -> sp.Expr:
    """g(z), the angle after one wide random layer.

    >>> angle_map(sp.Symbol("z"))
    acos(((pi - z)*cos(z) + sin(z))/pi)
    >>> angle_map(sp.pi)
    pi/2
    """
    return sp.acos(_cosine(z, slope))


def angle_deficit(z, slope=0) -> sp.Expr:
    """z - g(z), what one layer takes off an angle."""
    return z - angle_map(z, slope)


def angle_map_derivative(z: sp.Symbol, slope=0) -> sp.Expr:
    """g'(z) = -(cos g)' / sin g; at 0 it has a limit, 1, and no value.

    >>> angle_map_derivative(sp.Symbol("z"))
    -(z - pi)*sin(z)/(pi*sqrt(-((pi - z)*cos(z) + sin(z))**2/pi**2 + 1))
    """
    cosine = _cosine(z, slope)
    return sp.factor(-sp.diff(cosine, z)) / sp.sqrt(1 - cosine**2)


@cache
def _series(order: int) -> sp.Expr:
    """g as a polynomial in z whose coefficients are polynomials in beta, through 1 - cos g = 2 sin(g/2)^2."""
    cosine = _BETA * _cosine(_Z) + (1 - _BETA) * sp.cos(_Z)
    deficit = sp.expand(sp.series(1 - cosine, _Z, 0, order + 2).removeO() / _Z**2)
    return sp.series(2 * sp.asin(_Z * sp.sqrt(deficit / 2)), _Z, 0, order + 1).removeO()


def angle_map_series(z, order: int = 5, slope=0) -> sp.Expr:
    """The Taylor polynomial of g at 0, up to and with z^order.

    >>> angle_map_series(sp.Symbol("z"), order=3)
    -z**3/(18*pi**2) - z**2/(3*pi) + z
    """
    return _series(order).subs({_Z: z, _BETA: relu_share(slope)}, simultaneous=True)


# What g does: proofs whose last line has an evident sign

def contraction_steps(z: sp.Symbol) -> list[Step]:
    """g(z) < z on (0, pi), as cos g - cos z starts at 0 and grows."""
    lead = _cosine(z) - sp.cos(z)
    gap = (sp.sin(z) - z * sp.cos(z)) / sp.pi
    return [
        Step("Gap", "g(z) < z means cos g(z) > cos z, and the difference of the two is simpler than g.",
             equation(lead, gap)),
        Step("Start", "Two equal inputs stay equal.", equation(sp.Subs(gap, z, 0), 0)),
        Step("Growth", "Positive on (0, pi): the gap grows from 0, so it is positive, and g(z) < z.",
             equation(sp.Derivative(gap, z), z * sp.sin(z) / sp.pi)),
    ]


def monotonicity_steps(z: sp.Symbol, slope=0) -> list[Step]:
    """g increases on (0, pi) for ReLU; with a slope, as far as z = pi / beta."""
    return [Step("Slope of the cosine", "Negative while beta z < pi: cos g falls, so g rises.",
                 equation(sp.Derivative(_cosine(z, slope), z),
                          -(sp.pi - relu_share(slope) * z) * sp.sin(z) / sp.pi))]


def antipode_steps(z: sp.Symbol) -> list[Step]:
    """At pi g is pi/2 and flat to third order: g(pi - e) = pi/2 - e^3 / (3 pi) + ..."""
    return [
        Step("Value", "Opposite inputs share no active unit: their outputs are orthogonal.",
             equation(sp.Subs(angle_map(z), z, sp.pi), sp.pi / 2)),
        Step("Slope", "The common arc opens with the square of the distance from pi.",
             equation(sp.Subs(sp.Derivative(angle_map(z), z), z, sp.pi), 0)),
        Step("Curvature", "Both cosines are small on that arc, too: the second derivative is 0 as well.",
             equation(sp.Subs(sp.Derivative(angle_map(z), (z, 2)), z, sp.pi), 0)),
        Step("Third order", "The first term that is left.",
             equation(sp.Limit((sp.pi / 2 - angle_map(sp.pi - _EPS)) / _EPS**3, _EPS, 0), 1 / (3 * sp.pi))),
    ]


# Depth

def embedding_angle(z, depth: int, slope=0) -> sp.Expr:
    """theta^(depth), the angle map iterated."""
    for _ in range(depth):
        z = angle_map(z, slope)
    return z


def _gradient_cosine(z, depth: int, slope) -> sp.Expr:
    theta = [embedding_angle(z, l, slope) for l in range(depth + 1)]
    rate = [1 - relu_share(slope) * angle / sp.pi for angle in theta]
    return sum(sp.cos(theta[l]) * sp.prod(rate[l:depth]) for l in range(depth + 1)) / (depth + 1)


def gradient_angle(z, depth: int, slope=0) -> sp.Expr:
    """phi, the angle between the parameter gradients at two inputs (Liu et al. 2025, eq. 7 and 8).

    >>> gradient_angle(sp.Symbol("z"), depth=1)
    acos((-z/pi + 1)*cos(z)/2 + ((pi - z)*cos(z) + sin(z))/(2*pi))
    """
    return sp.acos(_gradient_cosine(z, depth, slope))


def gradient_deficit(z, depth: int, slope=0) -> sp.Expr:
    """1 - cos phi."""
    return 1 - _gradient_cosine(z, depth, slope)
