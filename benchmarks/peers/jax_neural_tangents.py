"""neural-tangents 0.6.5 on JAX 0.5.3, jitted, in float64: the analytic kernel."""

import jax
import numpy as np
from neural_tangents import stax
from worker import serve

jax.config.update("jax_enable_x64", True)


def _kernel(depth):
    layers = [layer for l in range(depth) for layer in (stax.Dense(1, W_std=1.0 if l == 0 else 2**0.5), stax.Relu())]
    *_, kernel = stax.serial(*layers, stax.Dense(1, W_std=2**0.5 if depth else 1.0))
    return jax.jit(kernel, static_argnames="get")


def gram(inputs, depth):
    X, kernel = jax.numpy.asarray(inputs["X"] * inputs["X"].shape[1] ** 0.5), _kernel(depth)
    kernel(X, None, get="ntk").block_until_ready()  # compiles for this shape
    return lambda: kernel(X, None, get="ntk").block_until_ready()


def kappa(inputs, depth):
    X, kernel = jax.numpy.asarray(inputs["X"] * inputs["X"].shape[1] ** 0.5), _kernel(depth)
    return lambda: np.linalg.eigvalsh(np.asarray(kernel(X, None, get="ntk")))[[0, -1]]


if __name__ == "__main__":
    serve({"gram": gram, "kappa": kappa})
