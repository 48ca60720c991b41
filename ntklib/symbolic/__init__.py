"""The sympy twins of ntklib's closed forms: derived here, and asserted equal to the numbers by the tests.

Arguments are sympy expressions; give a slope exactly, as `sympy.Rational(1, 10)` or a symbol. `import ntklib`
leaves this package alone, so that sympy is loaded only where formulas are wanted.
"""
from ntklib.symbolic import boundaries, depth, gradient, kernels, metric, points, sphere
from ntklib.symbolic._step import Step
from ntklib.symbolic.angles import (
    angle_deficit,
    angle_map,
    angle_map_derivative,
    angle_map_series,
    antipode_steps,
    contraction_steps,
    embedding_angle,
    gradient_angle,
    gradient_deficit,
    leaky_kernel,
    leaky_kernel_steps,
    monotonicity_steps,
    relu_kernel,
    relu_kernel_steps,
    relu_share,
    step_kernel,
)

__all__ = [
    "Step",
    "angle_deficit",
    "angle_map",
    "angle_map_derivative",
    "angle_map_series",
    "antipode_steps",
    "boundaries",
    "contraction_steps",
    "depth",
    "embedding_angle",
    "gradient",
    "gradient_angle",
    "gradient_deficit",
    "kernels",
    "leaky_kernel",
    "leaky_kernel_steps",
    "metric",
    "monotonicity_steps",
    "points",
    "relu_kernel",
    "relu_kernel_steps",
    "relu_share",
    "sphere",
    "step_kernel",
]
