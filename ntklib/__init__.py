"""Angles, tangent kernels and geometry of ReLU networks, accurate where two inputs nearly coincide."""
from ntklib.angles import (
    angle_between,
    angle_deficit,
    angle_map,
    embedding_angle,
    gradient_angle,
    gradient_deficit,
)

__all__ = [
    "angle_between",
    "angle_deficit",
    "angle_map",
    "embedding_angle",
    "gradient_angle",
    "gradient_deficit",
]
