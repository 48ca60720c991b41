"""curvlinops 3.0.1 has a Jacobian operator: the kernel is J J^T applied to the identity."""

import torch
from curvlinops import JacobianLinearOperator, TransposedJacobianLinearOperator
from network import load
from worker import serve


def empirical(inputs):
    model, X = load(inputs)
    parameters, data = list(model.parameters()), [(X, torch.zeros(len(X), 1, dtype=X.dtype))]
    options = {"check_deterministic": False}

    def ntk():
        J = JacobianLinearOperator(model, parameters, data, **options)
        JT = TransposedJacobianLinearOperator(model, parameters, data, **options)
        return (J @ (JT @ torch.eye(len(X), dtype=X.dtype))).detach().numpy()

    return ntk


if __name__ == "__main__":
    serve({"empirical": empirical})
