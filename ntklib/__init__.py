"""Angles, tangent kernels and geometry of ReLU networks, accurate where two inputs nearly coincide."""
import importlib

from ntklib.angles import (
    angle_between,
    angle_deficit,
    angle_map,
    embedding_angle,
    gradient_angle,
    gradient_deficit,
)
from ntklib.boundaries import Boundary
from ntklib.data import load
from ntklib.dynamics import Record, predict_flow, predict_gd, train
from ntklib.empirical import empirical_ntk
from ntklib.gmp import GmPConv1d, GmPConv2d, GmPLinear, InputMeanNorm, from_module, geometric
from ntklib.kernels import nngp_gram, ntk_gram
from ntklib.network import MLP
from ntklib.spectrum import (
    Conditioning,
    Extremes,
    condition_number,
    extreme_eigenvalues,
    ntk_condition_number,
)
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
    "MLP",
    "Boundary",
    "Conditioning",
    "Extremes",
    "GmPConv1d",
    "GmPConv2d",
    "GmPLinear",
    "InputMeanNorm",
    "Record",
    "angle_between",
    "angle_deficit",
    "angle_map",
    "condition_number",
    "curve_length",
    "embedding_angle",
    "empirical_ntk",
    "extreme_eigenvalues",
    "from_angles",
    "from_module",
    "geodesic",
    "geometric",
    "gradient_angle",
    "gradient_deficit",
    "jacobian",
    "load",
    "metric",
    "nngp_gram",
    "ntk_condition_number",
    "ntk_gram",
    "predict_flow",
    "predict_gd",
    "to_angles",
    "train",
    "uniform_angles",
]


def __getattr__(name: str):
    """`ntklib.symbolic`, and sympy with it, when it is first asked for."""
    if name == "symbolic":
        return importlib.import_module("ntklib.symbolic")
    raise AttributeError(f"module 'ntklib' has no attribute {name!r}")
