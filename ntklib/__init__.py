"""Angles, tangent kernels and geometry of ReLU networks, accurate where two inputs nearly coincide."""
from ntklib.angles import (
    angle_between,
    angle_deficit,
    angle_map,
    embedding_angle,
    gradient_angle,
    gradient_deficit,
)
from ntklib.boundaries import Boundary
from ntklib.gmp import GmPConv1d, GmPConv2d, GmPLinear, InputMeanNorm, from_module, geometric
from ntklib.sphere import (
    curve_length,
    from_angles,
    geodesic,
    jacobian,
    metric,
    to_angles,
    uniform_angles,
)

__all__ = [
    "Boundary",
    "GmPConv1d",
    "GmPConv2d",
    "GmPLinear",
    "InputMeanNorm",
    "angle_between",
    "angle_deficit",
    "angle_map",
    "curve_length",
    "embedding_angle",
    "from_angles",
    "from_module",
    "geodesic",
    "geometric",
    "gradient_angle",
    "gradient_deficit",
    "jacobian",
    "metric",
    "to_angles",
    "uniform_angles",
]
