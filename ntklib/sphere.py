r"""Hyperspherical coordinates: a vector w of R^n as a radius r and n - 1 angles theta, w = r u(theta).

    u_i(theta) = cos(theta_i) prod_{k<i} sin(theta_k)  (i < n),      u_n(theta) = prod_{k<n} sin(theta_k)

with theta_1 .. theta_{n-2} in [0, pi] and theta_{n-1} in [0, 2 pi) (Chen & Ge, arXiv 2305.15912v5, eq. 17).
The columns of du/dtheta are orthogonal, so lengths on the sphere are a weighted sum of squares whose weights
never exceed 1 (eq. 18): that is why a step eps in the angles turns u by at most |eps| (Theorem 3.7).

The last dimension of an argument holds the vector or its angles; all dimensions before it are batch. float32
input is worked on in float64 and handed back in float32: 10^4 factors in float32 would lose three digits.
"""
import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from ntklib import _check
from ntklib.angles import angle_between


def to_angles(w: Float[Tensor, "*batch n"]) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch n-1"]]:
    """r = |w|, theta_i = atan2(|(w_{i+1}, .., w_n)|, w_i), and theta_{n-1} = atan2(w_n, w_{n-1}) mod 2 pi.

    The inverse of `r[..., None] * from_angles(theta)`. On the line (n = 1) no angle could carry the sign, so
    r = w itself, negative where w is. The angles of a tail (w_i, .., w_n) that is all zero are free: they
    come out as 0 or pi, and have no derivative.

    Raises ValueError for a zero vector (it has no direction), an infinite entry or n = 0.

    >>> r, theta = to_angles(torch.tensor([0.0, 3.0, -4.0], dtype=torch.float64))
    >>> r.item(), [round(math.degrees(t), 2) for t in theta]
    (5.0, [90.0, 306.87])
    """
    w = _vectors(w, "w")
    wide = w.double()
    largest = wide.detach().abs().amax(-1, keepdim=True)
    if not w.is_meta and bool((largest == 0).any()):
        raise ValueError(f"{int((largest == 0).sum())} of the {largest.numel()} vectors in w are zero and "
                         "have no direction: drop them, or draw angles with uniform_angles")
    if w.shape[-1] == 1:
        return w[..., 0], w[..., 1:]
    x = wide / largest                                        # now squares neither overflow nor underflow
    tails = x.square().flip(-1).cumsum(-1).flip(-1).sqrt()    # |(x_i, .., x_n)|, summed from the small end
    polar = torch.atan2(tails[..., 1:-1], x[..., :-2])
    last = torch.atan2(x[..., -1:], x[..., -2:-1])
    theta = torch.cat([polar, torch.where(last < 0, last + 2 * math.pi, last)], -1)
    r = torch.linalg.vector_norm(x, dim=-1) * largest[..., 0]
    return r.to(w.dtype), _below_full_turn(theta.to(w.dtype))


def from_angles(theta: Float[Tensor, "*batch m"]) -> Float[Tensor, "*batch m+1"]:
    """The unit vector u_i = cos(theta_i) prod_{k<i} sin(theta_k), u_n = prod_k sin(theta_k), at any angles.

    Angles outside [0, pi] are taken as they are (training goes there). Gradients are finite everywhere, also
    where a sine vanishes. No angle at all gives the unit vector (1,) of the line.

    >>> from_angles(torch.tensor([math.pi / 3, math.pi], dtype=torch.float64)).round(decimals=6)
    tensor([ 0.5000, -0.8660,  0.0000], dtype=torch.float64)
    """
    theta = _angles(theta)
    wide = theta.double()
    return (_append_one(wide.cos()) * _sine_products(wide)).to(theta.dtype)


def metric(theta: Float[Tensor, "*batch m"]) -> Float[Tensor, "*batch m"]:
    """The diagonal of M = (du/dtheta)^T (du/dtheta):  M_jj = prod_{k<j} sin^2(theta_k) = u_j^2 + .. + u_n^2.

    Its other entries vanish (eq. 18; proved in `ntklib.symbolic.sphere`), so |du|^2 = sum_j M_jj dtheta_j^2.

    >>> metric(torch.tensor([math.pi / 6, math.pi / 4, 0.1], dtype=torch.float64))
    tensor([1.0000, 0.2500, 0.1250], dtype=torch.float64)
    """
    theta = _angles(theta)
    return _sine_products(theta.double())[..., :-1].square().to(theta.dtype)


def jacobian(theta: Float[Tensor, "*batch m"]) -> Float[Tensor, "*batch m+1 m"]:
    """du_i/dtheta_j: for i > j u_i with its factor sin(theta_j) turned into cos(theta_j), else

    -prod_{k<=j} sin(theta_k) for i = j and 0 for i < j. (The rebuttal's formula divides by sin(theta_j) and
    fails at the poles; to replace the factor does not.)

    >>> jacobian(torch.tensor([0.0, math.pi / 2], dtype=torch.float64)).round(decimals=6) + 0.0
    tensor([[0., 0.],
            [0., 0.],
            [1., 0.]], dtype=torch.float64)
    """
    theta = _angles(theta)
    wide = theta.double()
    cos, sin = wide.cos(), wide.sin()
    here = torch.eye(theta.shape[-1], dtype=torch.bool, device=theta.device)
    factors = torch.where(here, cos[..., None], sin[..., None])     # rows k, columns j: at k = j the cosine
    below = F.pad(factors, (0, 0, 1, 0), value=1.0).cumprod(-2) * _append_one(cos)[..., None]
    diagonal = F.pad(torch.diag_embed(_sine_products(wide)[..., 1:]), (0, 0, 0, 1))
    return (below.tril(-1) - diagonal).to(theta.dtype)


def geodesic(u: Float[Tensor, "*#batch n"], v: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch"]:
    """The distance on the sphere between the directions of u and v, in [0, pi]: the angle between them.

    Arguments broadcast; their lengths do not matter. Accurate near 0 and pi, where arccos(u.v) is not.

    >>> geodesic(torch.tensor([2.0, 0.0]).double(), torch.tensor([0.0, 3.0]).double()).item() == math.pi / 2
    True
    """
    return angle_between(u, v)


def curve_length(theta: Float[Tensor, "*#batch m"], eps: Float[Tensor, "*#batch m"], *, rtol: float = 1e-10,
                 with_error: bool = False):
    """Length of t -> u(theta + t eps):  int_0^1 sqrt(sum_j M_jj(theta + t eps) eps_j^2) dt <= |eps|.

    It bounds the geodesic distance of the two ends from above, and is not that distance. Gauss-Legendre
    panels are doubled until two results agree within rtol; `with_error=True` returns (length, difference).

    Raises RuntimeError if 8192 panels do not reach rtol, ValueError for an angle of more than 2^20 radians in eps.

    >>> round(curve_length(torch.tensor([0.1, 0.0]).double(), torch.tensor([1.0, 1.0]).double()).item(), 4)
    1.1561
    """
    theta, eps = _angles(theta), _angles(eps, "eps")
    _check.alike(theta, eps, "theta and eps")
    if theta.shape[-1] != eps.shape[-1]:
        raise ValueError(f"eps must hold a step for each of {theta.shape[-1]} angles, got {eps.shape[-1]}")
    try:
        torch.broadcast_shapes(theta.shape, eps.shape)
    except RuntimeError:
        raise ValueError(f"theta and eps must broadcast over their leading dimensions, got {tuple(theta.shape)} and "
                         f"{tuple(eps.shape)}") from None
    start, step = theta.double(), eps.double()
    longest = max(1.0, float(step.detach().abs().amax()) if step.numel() else 0.0)
    if longest > 2**20:
        raise ValueError(f"eps takes an angle through {longest:.3g} radians: split it into steps of at most 2^20")
    panels = 2 ** math.ceil(math.log2(longest))               # at least one a radian
    length = _gauss_panels(start, step, panels)
    while True:
        panels *= 2
        coarse, length = length, _gauss_panels(start, step, panels)
        error = (length - coarse).detach().abs()
        if bool((error <= rtol * length.detach()).all()):
            length, error = length.to(theta.dtype), error.to(theta.dtype)
            return (length, error) if with_error else length
        if panels >= 8192:
            raise RuntimeError(f"{panels} panels leave an error of {float(error.max()):.1e}, more than rtol "
                               f"= {rtol:g} allows: split eps into shorter steps, or raise rtol")


def uniform_angles(n: int, dim: int, *, generator: torch.Generator,
                   dtype: torch.dtype = torch.float64) -> Float[Tensor, "n m"]:
    """Angles of n directions uniform on the sphere of R^dim, on the device of the generator (Remark 3.5).

    Their exact law: independent, p(theta_i) = Gamma((dim-i+1)/2) / (sqrt(pi) Gamma((dim-i)/2)) times
    sin(theta_i)^(dim-1-i) on [0, pi], the last one uniform on [0, 2 pi). Angles all drawn uniformly are not
    this: they give E u_i^2 = 2^-i.

    Raises ValueError for dim < 2: the two directions of a line have no angle. TypeError without a generator, and for
    a dtype other than float64 and float32.

    >>> uniform_angles(3, 5, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3, 4])
    """
    n, dim = _check.count(n, "n"), _check.count(dim, "dim", least=2)
    if not isinstance(generator, torch.Generator) or dtype not in _check.DTYPES:
        raise TypeError("uniform_angles needs generator=torch.Generator() and a dtype of float64 or float32, got "
                        f"{generator!r} and {dtype}")
    gaussian = torch.randn(n, dim, dtype=torch.float64, device=generator.device, generator=generator)
    return _below_full_turn(to_angles(gaussian)[1].to(dtype))


def _sine_products(theta: Tensor) -> Tensor:
    """(1, sin theta_1, sin theta_1 sin theta_2, .., prod_k sin theta_k): the norms of u's tails, signed."""
    return F.pad(theta.sin(), (1, 0), value=1.0).cumprod(-1)


def _append_one(x: Tensor) -> Tensor:
    return F.pad(x, (0, 1), value=1.0)


def _below_full_turn(theta: Tensor) -> Tensor:
    """Only a last angle can have been rounded up to 2 pi, which is 0 in [0, 2 pi)."""
    return torch.where(theta >= torch.full_like(theta, 2 * math.pi), torch.zeros_like(theta), theta)


def _gauss_panels(theta: Tensor, eps: Tensor, panels: int) -> Tensor:
    """Composite 16-point Gauss-Legendre rule for the length of the curve, `panels` equal pieces."""
    node, weight = (v.to(theta.device) for v in _gauss_legendre(16))
    nodes = ((torch.arange(panels, device=theta.device)[:, None] + node) / panels).flatten()
    weights = (weight / panels).repeat(panels)
    at_once = max(1, 2**20 // max(1, eps.numel()))            # nodes a batch: 8 MB a temporary
    length = 0.0
    for t, weight in zip(nodes.split(at_once), weights.split(at_once), strict=True):
        at = theta[..., None, :] + t[:, None] * eps[..., None, :]
        speed = torch.linalg.vector_norm(_sine_products(at)[..., :-1] * eps[..., None, :], dim=-1)
        length = length + (speed * weight).sum(-1)
    return length


def _gauss_legendre(order: int) -> tuple[Tensor, Tensor]:
    """Nodes and weights on [0, 1], from the eigenvectors of the Jacobi matrix (Golub & Welsch 1969)."""
    k = torch.arange(1, order, dtype=torch.float64)
    beside = k / (4 * k.square() - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(beside, 1) + torch.diag(beside, -1))
    return (nodes + 1) / 2, vectors[0].square()


def _vectors(x, name: str) -> Tensor:
    x = _check.real_tensor(x, name)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} must have shape (..., n) with n >= 1, got {tuple(x.shape)}")
    if not x.is_meta and bool(torch.isinf(x.detach()).any()):
        raise ValueError(f"{name} contains infinite entries: drop or repair them first")
    return x


def _angles(x, name: str = "theta") -> Tensor:
    x = _check.real_tensor(x, name)
    if x.ndim == 0:
        raise ValueError(f"{name} must have shape (..., n-1), the angles last, got a scalar: {name}[None]?")
    if not x.is_meta and bool(torch.isinf(x.detach()).any()):
        raise ValueError(f"{name} contains infinite entries: an angle is a finite number of radians")
    return x
