"""The linear network, s(t) = t, at any width: its tangent kernel as a polynomial in the weights, and its moments.

f(x) = W^(L+1) a^(L), a^(l) = W^(l) a^(l-1) / sqrt(m), a^(0) = x, with independent standard normal weights.
"""
import sympy as sp


def weights(depth: int, width: int, dim: int) -> list[sp.Matrix]:
    """Symbolic W^(1), ..., W^(L+1).

    >>> [W.shape for W in weights(2, width=3, dim=2)]
    [(3, 2), (3, 3), (1, 3)]
    """
    sizes = [dim, *[width] * depth, 1]
    return [sp.Matrix(sizes[l + 1], sizes[l], lambda i, j, l=l: sp.Symbol(f"w{l + 1}_{i}{j}", real=True))
            for l in range(depth + 1)]


def network(W: list[sp.Matrix], x) -> sp.Expr:
    """f(x), a polynomial in the weights.

    >>> network(weights(1, width=1, dim=1), [sp.Symbol("x")])
    w1_00*w2_00*x
    """
    answer = sp.Matrix(x)
    for layer in W[:-1]:
        answer = layer * answer / sp.sqrt(layer.shape[0])
    return (W[-1] * answer)[0]


def kernel(W: list[sp.Matrix], x, z) -> sp.Expr:
    """K(x, z), the sum over all weights of df(x)/dw df(z)/dw.

    >>> x, z = sp.symbols("x z")
    >>> kernel(weights(1, width=1, dim=1), [x], [z])
    w1_00**2*x*z + w2_00**2*x*z
    """
    f, h = network(W, x), network(W, z)
    return sp.expand(sum(sp.diff(f, w) * sp.diff(h, w) for layer in W for w in layer))


def gaussian_mean(polynomial, W: list[sp.Matrix]) -> sp.Expr:
    """E of a polynomial in independent standard normals: w^k has the mean 1 * 3 * ... * (k - 1), or 0 if k is odd.

    >>> W = weights(0, width=1, dim=1)
    >>> gaussian_mean(W[0][0] ** 4 + 5 * W[0][0] + 2, W)
    5
    """
    terms = sp.Poly(polynomial, *[w for layer in W for w in layer]).terms()
    return sp.expand(sum(c * sp.prod([sp.factorial2(k - 1) for k in powers])
                         for powers, c in terms if not any(k % 2 for k in powers)))


def second_moment(depth: int, width) -> sp.Expr:
    """E K(x, x)^2 / |x|^4 = (1/3) sum_{i,j=0..L} q^L + 2 q^(L-|i-j|) p^|i-j|, q = 1 + 2/m, p = 1 - 1/m.

    K(x, x) is a sum over the L + 1 layers of |delta|^2 |a|^2, each a product of L independent chi^2_m / m, whose
    second moment is q. Layers i and j share the factors outside of both, q^(L-|i-j|). Between them lie k = |i-j| -
    1 layers of product P, through which one goes forwards from a random direction u, the other backwards from v;
    taking one layer off P, A_k = E |P u|^2 |P^T v|^2 = (1 - 1/m) A_(k-1) + q^k / m from A_0 = 1, and so A_k =
    (q^(k+1) + 2 p^(k+1)) / 3.

    At L = 1 one layer sees |v|^2 / m, the other |W x|^2 / m, and the two are independent:

    >>> m = sp.Symbol("m")
    >>> sp.expand(second_moment(1, m))                              # 2 (1 + 2/m) + 2
    4 + 4/m
    """
    q, p = 1 + 2 / sp.sympify(width), 1 - 1 / sp.sympify(width)
    pairs = [(depth + 1, 0), *((2 * (depth + 1 - j), j) for j in range(1, depth + 1))]
    return sum(many * q ** (depth - j) * (q**j + 2 * p**j) for many, j in pairs) / 3
