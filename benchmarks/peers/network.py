"""The networks that torch's peers are timed on."""

import torch


class Network(torch.nn.Module):
    """The paper's network (eq. 1), made of nn.Linear layers, which every peer knows."""

    def __init__(self, weights):
        super().__init__()
        self.layers = torch.nn.ModuleList(linear(W) for W in weights)

    def forward(self, x):
        *hidden, last = self.layers
        for layer in hidden:
            x = (2 / layer.out_features) ** 0.5 * torch.relu(layer(x))
        return last(x)


class Twice(torch.nn.Module):
    """A layer that is used twice."""

    def __init__(self, W, V):
        super().__init__()
        self.a, self.b = linear(W), linear(V)

    def forward(self, x):
        return self.b(torch.tanh(self.a(torch.tanh(self.a(x)))))


def linear(W):
    layer = torch.nn.Linear(*W.shape[::-1], bias=False, device="meta")
    layer.weight = torch.nn.Parameter(W)
    return layer


def load(inputs):
    """(model, X) from arrays X, W0, W1, ..."""
    weights = [torch.from_numpy(inputs[f"W{k}"]) for k in range(len(inputs) - 1)]
    return Network(weights), torch.from_numpy(inputs["X"])


def load_twice(inputs):
    """(model, X) from arrays X, W, V."""
    return Twice(torch.from_numpy(inputs["W"]), torch.from_numpy(inputs["V"])), torch.from_numpy(inputs["X"])
