"""Input mean normalisation: what Chen & Ge put between two GmP layers (section 3)."""
import numbers

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ntklib import _check
from ntklib.gmp.layers import HALF


class InputMeanNorm(nn.Module):
    """x - mean(x), the mean of each feature over the batch; in eval mode its running average. Untrained.

    Input (N, num_features) or (N, num_features, *space), as for nn.BatchNorm1d and 2d, of which this is
    the mean alone. The offsets lam of the layer behind it are then measured from the centre of its input.
    Each training step moves `running_mean` by `momentum` of the way (the paper's decay of 0.99 is
    momentum 0.01). With sync=True all ranks of `torch.distributed` share one mean, as in
    nn.SyncBatchNorm; every rank must then run the layer.

    >>> InputMeanNorm(2)(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """

    def __init__(self, num_features: int, *, momentum: float = 0.01, sync: bool = False, device=None,
                 dtype: torch.dtype | None = None):
        super().__init__()
        if not isinstance(momentum, numbers.Real) or not 0 < momentum <= 1:
            raise ValueError(f"momentum must be a number in (0, 1], got {momentum!r}")
        self.num_features = _check.count(num_features, "num_features", least=1)
        self.momentum, self.sync = float(momentum), sync
        self.register_buffer("running_mean", torch.zeros(num_features, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """x with the mean of each feature taken off."""
        if x.ndim < 2 or x.shape[1] != self.num_features:
            raise ValueError(f"x must have shape (N, {self.num_features}, ...), got {tuple(x.shape)}")
        if not x.is_floating_point():
            raise TypeError(f"x must be floating-point, as its mean is, got {x.dtype}: use x.float()")
        mean = self._batch_mean(x) if self.training else self.running_mean
        return x - mean.to(x.dtype).view(-1, *[1] * (x.ndim - 2))

    def _batch_mean(self, x: Tensor) -> Tensor:
        count = x.numel() // self.num_features
        if count == 0 and not self.sync:
            raise ValueError(f"a batch of shape {tuple(x.shape)} has no mean: eval() uses running_mean")
        axes = [d for d in range(x.ndim) if d != 1]
        total = x.sum(axes, dtype=torch.float32 if x.dtype in HALF else None)
        if self.sync and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            everything = _SumOverRanks.apply(torch.cat([total, total.new_full((1,), count)]))
            mean = everything[:-1] / everything[-1]
        else:
            mean = total / count
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
        return mean

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.num_features}, momentum={self.momentum}" + ", sync=True" * self.sync


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return _SumOverRanks.apply(g)
