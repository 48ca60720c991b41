"""The paper's network, at finite width."""
import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ntklib import _check
from ntklib.duals import dual

__all__ = ["MLP"]


class MLP(nn.Module):
    """f(x) = W^(L+1) a^(L), a^(l) = sqrt(c / width) s(W^(l) a^(l-1)), a^(0) = x; W standard normal.

    L = `depth` hidden layers of `width` units, no biases, c = 1 / E[s(z)^2] (2 for ReLU); depth = 0 is linear
    in x. The tangent kernel at initialisation tends to `ntk_gram` as the width grows. Maps (n, d) to (n,), or
    to (n, outputs) if outputs > 1. `generator` draws the weights (torch's default generator if None).

    Raises TypeError and ValueError for sizes that are not positive integers and for unknown activations.

    >>> f = MLP(3, width=5, depth=2, generator=torch.Generator().manual_seed(0))
    >>> [tuple(W.shape) for W in f.parameters()]
    [(5, 3), (5, 5), (1, 5)]

    Source: Liu et al. (2025), arXiv:2305.08813v2, eq. 1.
    """

    def __init__(self, d: int, width: int, depth: int, activation="relu", *, outputs: int = 1,
                 generator: torch.Generator | None = None, dtype: torch.dtype = torch.float64, device=None):
        super().__init__()
        d, width = _check.count(d, "d", 1), _check.count(width, "width", 1)
        self.depth, self.outputs = _check.count(depth, "depth"), _check.count(outputs, "outputs", 1)
        self.activation, s = activation, dual(activation)
        self.function, self.scale = s.function, math.sqrt(s.c / width)
        sizes = [d, *[width] * depth, outputs]
        # "meta": a linear layer's own initialisation would draw from the global generator
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=False, device="meta")
                                    for a, b in itertools.pairwise(sizes))
        where = device if generator is None else generator.device
        for layer in self.layers:
            weight = torch.randn(layer.weight.shape, dtype=dtype, device=where, generator=generator)
            layer.weight = nn.Parameter(weight if device is None else weight.to(device))

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"] | Float[Tensor, "n k"]:
        """f at every row of x."""
        d = self.layers[0].weight.shape[1]
        if x.ndim == 0 or x.shape[-1] != d:
            raise ValueError(f"x must have shape (n, {d}), one row a point, got {tuple(x.shape)}")
        *hidden, last = self.layers
        for layer in hidden:
            x = self.scale * self.function(layer(x))
        return last(x).squeeze(-1) if self.outputs == 1 else last(x)

    def __repr__(self) -> str:
        first, last = self.layers[0].weight, self.layers[-1].weight
        width = last.shape[1] if self.depth else None
        return (f"MLP(d={first.shape[1]}, width={width}, depth={self.depth}, activation={self.activation!r}, "
                f"outputs={self.outputs})")
