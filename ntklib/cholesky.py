"""Cholesky factorisation inside one array: the factor below, and above what stood there before.

Block columns are factored from left to right, so that nearly all the work is one large matrix product for
each. The array is the only one: no workspace, and no 32-bit index to overflow.
"""
from collections.abc import Callable

import torch
from torch import Tensor

BLOCK = 512


def _blocks(n: int) -> list[slice]:
    return [slice(k, min(k + BLOCK, n)) for k in range(0, n, BLOCK)]


def mirror_(A: Tensor, value: Callable[[slice, slice, Tensor], Tensor]) -> None:
    """Write value(rows, columns, block) on and below the diagonal, for the symmetric matrix that stands above."""
    for k in _blocks(len(A)):
        corner = A[k, k].triu(1)
        A[k, k] = value(k, k, corner + corner.T).tril() + corner
        for j in _blocks(k.start):
            A[k, j] = value(k, j, A[j, k].T)


def factor_(A: Tensor) -> bool:
    """Overwrite the lower triangle and diagonal by the Cholesky factor; False if not positive definite.

    >>> A = torch.tensor([[4., 7.], [2., 2.]]); factor_(A), A
    (True, tensor([[2., 7.],
            [1., 1.]]))
    """
    for k in _blocks(len(A)):
        A[k.stop:, k].addmm_(A[k.stop:, :k.start], A[k, :k.start].T, alpha=-1)
        L, info = torch.linalg.cholesky_ex(A[k, k] - A[k, :k.start] @ A[k, :k.start].T)
        if int(info):
            return False
        A[k, k] = L + A[k, k].triu(1)
        A[k.stop:, k] = torch.linalg.solve_triangular(L.T, A[k.stop:, k], upper=True, left=False)
    return True


def solve(A: Tensor, b: Tensor) -> Tensor:
    """(L L^T)^-1 b for b (n, k), with L in the lower triangle of A; the upper one is not read."""
    x, blocks = b.clone(), _blocks(len(A))
    for k in blocks:
        x[k] = torch.linalg.solve_triangular(A[k, k], x[k] - A[k, :k.start] @ x[:k.start], upper=False)
    for k in reversed(blocks):
        x[k] = torch.linalg.solve_triangular(A[k, k].T, x[k], upper=True)
        x[:k.start] -= A[k, :k.start].T @ x[k]
    return x


def above(A: Tensor, x: Tensor) -> Tensor:
    """(U + U^T) x for the strict upper triangle U of A."""
    y = torch.zeros_like(x)
    for k in _blocks(len(A)):
        corner, right = A[k, k].triu(1), A[k, k.stop:]
        y[k] += corner @ x[k] + corner.T @ x[k] + right @ x[k.stop:]
        y[k.stop:] += right.T @ x[k]
    return y
