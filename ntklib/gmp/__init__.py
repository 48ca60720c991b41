"""Geometric parametrization (GmP): layers trained in radius, offset and angles instead of weights.

    z = r relu(u(theta) . x + lam)

A step eps in theta turns the boundary {x : u . x + lam = 0} of a unit by at most |eps|, whatever r, lam
and theta are (Chen & Ge, arXiv 2305.15912v5, Theorem 3.7).
"""
from ntklib.gmp.convert import Geometric, coordinates, from_module, geometric
from ntklib.gmp.layers import GmPConv1d, GmPConv2d, GmPLinear
from ntklib.gmp.norm import InputMeanNorm
from ntklib.gmp.unit import unit

__all__ = ["Geometric", "GmPConv1d", "GmPConv2d", "GmPLinear", "InputMeanNorm", "coordinates", "from_module",
           "geometric", "unit"]
