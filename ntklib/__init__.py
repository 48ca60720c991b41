"""Angles, tangent kernels and geometry of ReLU networks, accurate where two inputs nearly coincide."""
