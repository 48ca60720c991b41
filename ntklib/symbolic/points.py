"""The condition number of n points: the steps that are algebra (used with `ntklib.spectrum`)."""
import sympy as sp

from ntklib.symbolic import kernels
from ntklib.symbolic._step import Step, equation


def pair_gram(a, b, phi) -> sp.Matrix:
    """Gram matrix of two vectors of lengths a and b at angle phi."""
    return sp.Matrix([[a**2, a * b * sp.cos(phi)], [a * b * sp.cos(phi), b**2]])


def pair_steps(a, b, phi) -> list[Step]:
    """What one pair says of the spectrum of all points, whose ends lie outside those of the pair (Cauchy)."""
    G = pair_gram(a, b, phi)
    low, high = (1 - sp.cos(phi), 1 + sp.cos(phi))
    return [
        Step("Product", "The product of the eigenvalues is the determinant. The larger one is at least the larger "
             "of a^2 and b^2, so the smaller one is at most the smaller of them times sin^2(phi).",
             equation(sp.Determinant(G), a**2 * b**2 * sp.sin(phi) ** 2)),
        Step("Equal lengths", "For unit vectors the eigenvectors are the sum and the difference.",
             equation(sp.Determinant(pair_gram(1, 1, phi)), low * high)),
        Step("Quotient", "The condition number of the pair alone.", equation(high / low, sp.cot(phi / 2) ** 2)),
    ]


def equicorrelated_kappa(n, c) -> sp.Expr:
    """kappa of n unit vectors with the same cosine c >= 0 between any two.

    (1 - c) I plus c times the matrix of ones has 1 - c + n c on (1, .., 1), and 1 - c on what is orthogonal to it.

    >>> equicorrelated_kappa(12, sp.Rational(1, 4)), equicorrelated_kappa(2, 0)
    (5, 1)
    """
    return (1 + (n - 1) * sp.sympify(c)) / (1 - sp.sympify(c))


def odd_part_steps(z) -> list[Step]:
    """With one hidden layer, x and -x differ by no more than in a linear network: relu(u) - relu(-u) = u."""
    difference = kernels.ntk(z, 1) - kernels.ntk(sp.pi - z, 1)
    return [
        Step("Opposite input", "-x makes the angle pi - z with the other input; all but the linear term cancels.",
             equation(difference, 2 * sp.cos(z))),
        Step("Two opposite pairs", "The gradients' differences at x and at y have the kernel of a linear network.",
             equation(2 * difference, 4 * sp.cos(z))),
    ]
