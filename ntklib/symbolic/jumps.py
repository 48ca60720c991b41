"""How far a step turns a boundary, exactly: the sympy twin of `ntklib.boundaries.rotation_bound`, and why it holds.

A step eps from the weights w turns the direction w/|w|. Only the plane of w and eps matters; in it w = (1, 0) and
eps = ratio (cos psi, sin psi), where ratio = |eps|/|w| and psi is the angle between the two.
"""
import sympy as sp

from ntklib.symbolic._step import Step, equation

PSI = sp.Symbol("psi", real=True)
RATIO = sp.Symbol("rho", positive=True)


def turn(ratio=RATIO, psi=PSI) -> sp.Expr:
    """The angle from w to w + eps: atan2(ratio sin psi, 1 + ratio cos psi).

    >>> turn(1, sp.pi / 2)
    pi/4
    """
    ratio, psi = sp.sympify(ratio), sp.sympify(psi)
    return sp.atan2(ratio * sp.sin(psi), 1 + ratio * sp.cos(psi))


def rotation_bound(ratio=RATIO) -> sp.Expr:
    """The largest turn over all directions of a step of that length: arcsin(ratio) up to 1, and pi beyond.

    >>> rotation_bound(sp.Rational(1, 2)), rotation_bound(3)
    (pi/6, pi)
    """
    ratio = sp.sympify(ratio)
    return sp.Piecewise((sp.asin(ratio), ratio <= 1), (sp.pi, True))


def rotation_steps() -> list[Step]:
    """Why: the turn is stationary where eps stands at a right angle to w + eps, and there its sine is the ratio.

    The ratio is a sine, ratio = sin(alpha), so that every value below 1 is covered.

    >>> all(step.holds for step in rotation_steps())
    True
    """
    alpha = sp.Symbol("alpha", positive=True)
    ratio = sp.sin(alpha / 2)                           # below 1 at the values that a step is tried at
    tangent = ratio * sp.sin(PSI) / (1 + ratio * sp.cos(PSI))
    slope = ratio * (sp.cos(PSI) + ratio) / (1 + ratio * sp.cos(PSI)) ** 2
    return [
        Step("The slope", "the tangent of the turn rises with psi until cos(psi) = -ratio, and falls after it",
             equation(sp.Derivative(tangent, PSI), slope)),
        Step("The sine", "there eps stands at a right angle to w + eps, in a triangle with hypotenuse |w| = 1",
             equation(sp.sin(sp.atan2(ratio * sp.sqrt(1 - ratio**2), 1 - ratio**2)), ratio)),
    ]


def mean_turn(n: int, ratio) -> sp.Integral:
    """The mean turn over uniform directions of eps in R^n, as an integral over psi.

    As n grows it tends to arctan(ratio), here 0.0997:

    >>> [round(float(mean_turn(n, 0.1).evalf(6)), 4) for n in (3, 10)]
    [0.0785, 0.0944]
    """
    weight = sp.sin(PSI) ** (n - 2)
    whole = sp.sqrt(sp.pi) * sp.gamma(sp.Rational(n - 1, 2)) / sp.gamma(sp.Rational(n, 2))
    return sp.Integral(turn(ratio) * weight / whole, (PSI, 0, sp.pi))


def batch_norm_offset() -> tuple[tuple[sp.Symbol, ...], sp.Expr]:
    """Symbols (l, s, m, beta, gamma, b) and lambda = (b - mu + sigma beta/gamma)/|w| behind batch normalisation.

    For inputs with mean m and standard deviation s along the direction of w, and |w| = l, the batch has
    mu = b + l m and sigma = l s: both l and b drop out, and lambda = s beta/gamma - m.

    >>> batch_norm_offset()[1]
    beta*s/gamma - m
    """
    length, s, m, beta, gamma, b = sp.symbols("l s m beta gamma b", positive=True)
    offset = (b - (b + length * m) + length * s * beta / gamma) / length
    return (length, s, m, beta, gamma, b), sp.expand(offset)


def layer_norm_quadric(units: int = 3) -> tuple[tuple[sp.Symbol, ...], sp.Expr]:
    """Symbols (a_1, .., a_m, rho) and what vanishes where unit 1 of a layer-normalised layer switches, squared.

    a are the pre-activations before centring, rho = beta_1/gamma_1. Unless rho = 0 the quadratic form has a rank
    above one: a cone.

    >>> (a1, a2, rho), q = layer_norm_quadric(2)
    >>> sp.factor(q)
    -(a_1 - a_2)**2*(rho - 1)*(rho + 1)/4
    """
    a = sp.symbols(f"a_1:{units + 1}", real=True)
    rho = sp.Symbol("rho", real=True)
    mean = sum(a) / sp.Integer(units)
    centred = [x - mean for x in a]
    variance = sum(x**2 for x in centred) / sp.Integer(units)
    return (*a, rho), sp.expand(centred[0] ** 2 - rho**2 * variance)
