"""nngeometry 0.4: the empirical kernel by the same Hadamard formula, with hooks."""

from network import load, load_twice
from nngeometry.backend import TorchHooksJacobianBackend
from torch.utils.data import DataLoader, TensorDataset
from worker import serve


def _gram(model, X):
    def ntk():
        loader = DataLoader(TensorDataset(X), batch_size=len(X))
        return TorchHooksJacobianBackend(model).get_gram_matrix(loader)[0, :, 0].detach().numpy()

    return ntk


def empirical(inputs):
    return _gram(*load(inputs))


def twice(inputs):
    return _gram(*load_twice(inputs))


if __name__ == "__main__":
    serve({"empirical": empirical, "twice": twice})
