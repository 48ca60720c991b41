"""Two points: the kernel of a pair, its eigenvalues and its condition number (`ntklib.spectrum`, 2 x 2)."""
import sympy as sp


def kernel(phi, ratio=1) -> sp.Matrix:
    """K / K(x, x) for two points whose gradients have the angle phi and lengths in the given ratio.

    >>> kernel(sp.Symbol("phi"))
    Matrix([
    [       1, cos(phi)],
    [cos(phi),        1]])
    """
    return sp.Matrix([[1, ratio * sp.cos(phi)], [ratio * sp.cos(phi), ratio**2]])


def spread(phi, ratio=1) -> sp.Expr:
    """kappa + 1/kappa + 2 = trace^2 / determinant = (ratio + 1/ratio)^2 / sin(phi)^2.

    >>> spread(sp.Symbol("phi"))
    4/sin(phi)**2
    """
    K = kernel(phi, ratio)
    return sp.factor(sp.trigsimp(K.trace() ** 2 / K.det()))


def condition_number(phi, ratio=1) -> sp.Expr:
    """kappa, the larger root of kappa + 1/kappa + 2 = `spread`.

    >>> condition_number(sp.pi / 3), condition_number(sp.pi / 2, ratio=3)
    (3, 9)
    """
    half = spread(phi, ratio) / 2 - 1
    return sp.simplify(half + sp.sqrt(half**2 - 1))
