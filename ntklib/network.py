"""Networks of finite width and their tangent kernels."""
from ntklib.empirical import empirical_ntk
from ntklib.mlp import MLP

__all__ = ["MLP", "empirical_ntk"]
