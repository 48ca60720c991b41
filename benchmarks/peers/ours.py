"""ntklib, and what plain torch offers for the same: a full product X X^T, eigvalsh, torch.func's recipe."""

import numpy as np
import torch
from network import load, load_twice
from torch.func import functional_call, jacrev, vmap
from worker import serve

from ntklib import MLP, condition_number, empirical_ntk, ntk_condition_number, ntk_gram


def gram(inputs, depth):
    X = torch.from_numpy(inputs["X"])
    ntk_gram(X[:64], depth=depth)  # fits the interpolant: peers compile, too
    return lambda: ntk_gram(X, depth=depth).numpy()


def product(inputs, depth):
    X = torch.from_numpy(inputs["X"])
    return lambda: (X @ X.T).numpy()


def first_call(inputs, depth):
    X = torch.from_numpy(inputs["X"])

    def again():
        from ntklib import interpolant

        interpolant.curve.cache_clear()
        return ntk_gram(X, depth=depth).numpy()

    return again


def kappa(inputs, depth):
    X = torch.from_numpy(inputs["X"])

    def ends():
        c = ntk_condition_number(X, depth=depth)
        return np.array([c.lambda_min, c.lambda_max])

    return ends


def kappa_of_matrix(inputs, depth):
    K = ntk_gram(torch.from_numpy(inputs["X"]), depth=depth)

    def ends():
        c = condition_number(K)
        return np.array([c.lambda_min, c.lambda_max])

    return ends


def eigvalsh(inputs, depth):
    K = ntk_gram(torch.from_numpy(inputs["X"]), depth=depth)
    return lambda: torch.linalg.eigvalsh(K)[[0, -1]].numpy()


def empirical(inputs):
    model, X = load(inputs)
    return lambda: empirical_ntk(model, X).numpy()


def empirical_mlp(inputs):
    """The same network as ntklib's own MLP, whose layers are known before it runs."""
    weights = [torch.from_numpy(inputs[f"W{k}"]) for k in range(len(inputs) - 1)]
    model = MLP(weights[0].shape[1], len(weights[0]), len(weights) - 1, dtype=weights[0].dtype)
    for layer, W in zip(model.layers, weights, strict=True):
        layer.weight.data = W
    X = torch.from_numpy(inputs["X"])
    return lambda: empirical_ntk(model, X).numpy()


def torch_func(inputs):
    return _jacobians(*load(inputs))


def twice(inputs):
    model, X = load_twice(inputs)
    return lambda: empirical_ntk(model, X).numpy()


def twice_exact(inputs):
    return _jacobians(*load_twice(inputs))


def _jacobians(model, X):
    """torch's tutorial: vmap(jacrev), then one contraction for each parameter."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def at(p, x):
        return functional_call(model, p, (x[None],))[0]

    def ntk():
        J = [j.flatten(2) for j in vmap(jacrev(at), (None, 0))(parameters, X).values()]
        return sum(torch.einsum("Naf,Maf->NM", j, j) for j in J).numpy()

    return ntk


if __name__ == "__main__":
    serve(
        {
            "gram": gram,
            "product": product,
            "first_call": first_call,
            "kappa": kappa,
            "eigvalsh": eigvalsh,
            "kappa_of_matrix": kappa_of_matrix,
            "empirical": empirical,
            "empirical_mlp": empirical_mlp,
            "torch_func": torch_func,
            "twice": twice,
            "twice_exact": twice_exact,
        }
    )
