"""Condition numbers: 50-digit references, near-duplicates, singular matrices, and the blocked Cholesky."""

import json
import math
from pathlib import Path

import mpmath as mp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ntklib import (
    cholesky,
    condition_number,
    extreme_eigenvalues,
    nngp_gram,
    ntk_condition_number,
    ntk_gram,
    spectrum,
)

CASES = json.loads((Path(__file__).parent / "cases" / "grams.json").read_text())["cases"]


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit(*shape, seed=0):
    X = random(*shape, seed=seed)
    return X / X.norm(dim=-1, keepdim=True)


def exact_ends(X, depth, trained="all"):
    """Extreme eigenvalues of the ReLU kernel, in 50 digits."""
    with mp.workdps(50):
        rows = [[mp.mpf(v) for v in row] for row in X.tolist()]
        norms = [mp.sqrt(mp.fdot(r, r)) for r in rows]
        K = mp.matrix(len(X), len(X))
        for i in range(len(X)):
            for j in range(i + 1):
                rho = total = mp.fdot(rows[i], rows[j]) / norms[i] / norms[j] if i != j else mp.mpf(1)
                for _ in range(depth):
                    angle = mp.acos(rho)
                    rho = rho + (mp.sin(angle) - angle * rho) / mp.pi
                    total = total * (1 - angle / mp.pi) + (rho if trained == "all" else 0)
                K[i, j] = K[j, i] = total * norms[i] * norms[j]
        values = sorted(mp.eigsy(K, eigvals_only=True))
        return values[0], values[-1]


# ---- from the points


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_cases(case):
    X = torch.tensor(case["X"], dtype=torch.float64)
    for r in case["results"]:
        c = ntk_condition_number(X, depth=r["depth"], trained=r["trained"])
        assert c.lambda_max == pytest.approx(float(r["lambda_max"]), rel=1e-13)
        assert c.rank == r.get("rank", len(X))
        assert c.kappa_effective == pytest.approx(float(r.get("kappa_effective", r["kappa"])), rel=1e-13)
        if r["kappa"] == "inf":
            assert (c.kappa, c.lambda_min) == (math.inf, 0.0)
        else:
            assert c.kappa == pytest.approx(float(r["kappa"]), rel=1e-13)
            assert c.lambda_min == pytest.approx(float(r["lambda_min"]), rel=1e-13)


PAIRS = {
    "one pair": (10, {1: 0}, 1.0),
    "two pairs": (10, {1: 0, 3: 2}, 1.0),
    "a pair of unequal length": (10, {1: 0}, 3.7),
    "three of a kind": (10, {1: 0, 2: 0}, 1.0),
    "784 dimensions": (784, {1: 0}, 1.0),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("depth", "trained"), [(1, "all"), (3, "all"), (10, "all"), (3, "first")])
def test_pairs_a_billionth_apart(name, depth, trained):
    d, near, length = PAIRS[name]
    X = unit(8, d)
    for k, (i, j) in enumerate(near.items()):
        X[i] = length * (X[j] + (1 + k / 2) * 1e-9 * unit(d, seed=k + 1))
    low, high = exact_ends(X, depth, trained)
    c = ntk_condition_number(X, depth=depth, trained=trained)
    assert abs(c.lambda_min / low - 1) < 1e-11
    assert abs(c.lambda_max / high - 1) < 1e-13
    assert c.residual < 1e-13 * c.lambda_max
    assert float(torch.linalg.eigvalsh(ntk_gram(X, depth=depth, trained=trained))[0]) != pytest.approx(
        c.lambda_min, rel=1e-11, abs=0
    )


@pytest.mark.parametrize("seed", range(3))
def test_linear_pair_a_billionth_apart(seed):
    X = unit(6, 9, seed=seed)
    X[1] = X[0] + 1e-9 * unit(9, seed=seed + 10)
    low, high = exact_ends(X, 0)
    c = ntk_condition_number(X, depth=0)
    assert abs(c.lambda_min / low - 1) < 1e-11
    assert abs(c.kappa / (high / low) - 1) < 1e-11


def test_two_points():
    """kappa = (1 + cos phi)/(1 - cos phi) ~ 4 pi/(L theta); linear: cot^2(theta/2) (papers.md F3)."""
    for theta in (1e-7, 1e-4):
        X = torch.tensor([[1.0, 0.0], [math.cos(theta), math.sin(theta)]], dtype=torch.float64)
        assert ntk_condition_number(X, depth=10).kappa * 10 * theta / 4 / math.pi == pytest.approx(
            1, abs=30 * theta
        )
        assert ntk_condition_number(X, depth=0).kappa * math.tan(theta / 2) ** 2 == pytest.approx(1, rel=1e-8)


def test_parallel_rows_are_one_direction():
    X = unit(5, 4)
    twice = torch.cat([X, 0.1 * X[:2], 3 * X[1:2]])  # 0.1 x rounds: parallel only up to eps
    merged = X.clone()
    merged[0] *= math.sqrt(1 + 0.01)
    merged[1] *= math.sqrt(1 + 0.01 + 9)
    c, m = ntk_condition_number(twice, depth=2), ntk_condition_number(merged, depth=2)
    assert (c.kappa, c.lambda_min, c.rank) == (math.inf, 0.0, 5)
    assert c.kappa_effective == pytest.approx(m.kappa, rel=1e-12)
    values = torch.linalg.eigvalsh(ntk_gram(twice, depth=2))
    assert c.lambda_max == pytest.approx(float(values[-1]), rel=1e-13)
    assert c.lambda_max / c.kappa_effective == pytest.approx(float(values[3]), rel=1e-12)


def test_cluster_merges_what_lies_within_an_angle():
    X = unit(5, 4)
    X[1] = X[0] + 1e-4 * unit(4, seed=3)
    assert ntk_condition_number(X, depth=1).rank == 5
    c = ntk_condition_number(X, depth=1, cluster=1e-3)
    assert c.rank == 4
    assert c.kappa_effective == pytest.approx(
        float(ntk_condition_number(X, depth=1).lambda_max)
        / float(torch.linalg.eigvalsh(ntk_gram(X, depth=1))[1]),
        rel=1e-3,
    )
    assert ntk_condition_number(X, depth=1, activation="abs", cluster=0.0).rank == 5
    assert ntk_condition_number(torch.cat([X, -X]), depth=1, activation="abs").rank == 5  # |u| is even


def test_singular_kernels_are_told():
    """One ReLU layer leaves <x, y>, of rank d, as the odd part of its kernel: +-X has rank n + d, not 2n."""
    X = unit(7, 4)
    c = ntk_condition_number(torch.cat([X, -X]), depth=1)
    assert (c.kappa, c.lambda_min, c.rank) == (math.inf, 0.0, 11)
    values = torch.linalg.eigvalsh(ntk_gram(torch.cat([X, -X]), depth=1))
    assert c.kappa_effective == pytest.approx(float(values[-1] / values[3]), rel=1e-10)


@pytest.mark.parametrize("chord", [1e-11, 1e-13, 1e-15])
def test_pairs_that_a_rounded_matrix_cannot_tell_apart(chord):
    X = torch.tensor([[1.0, 0.0, 0.0], [1.0, chord, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    low, _ = exact_ends(X, 2)
    c = ntk_condition_number(X, depth=2)
    assert c.rank == 3
    assert abs(c.lambda_min / low - 1) < 1e-11
    assert ntk_condition_number(X, depth=2, cluster=1e-10).rank == 2


def test_unreachable_ranks_are_refused(monkeypatch):
    monkeypatch.setattr(spectrum, "LARGE", 3)
    X = unit(7, 4)
    with pytest.raises(ValueError, match=r"14 > 3 directions is singular up to rounding.*cluster="):
        ntk_condition_number(torch.cat([X, -X]), depth=1)


def test_graded_and_wide_linear_grams():
    """sigma from 1 to 1e-9, kappa 1e18; n > d, where eigvalsh of X X^T gets the rank wrong."""
    Q, R = torch.linalg.qr(random(60, 60))[0], torch.linalg.qr(random(60, 60, seed=1))[0]
    X = Q @ torch.diag(torch.logspace(0, -9, 60, dtype=torch.float64)) @ R
    assert ntk_condition_number(X, depth=0).kappa == pytest.approx(1e18, rel=1e-6)
    wide = random(50, 5)
    c, sigma = ntk_condition_number(wide, depth=3, activation="linear"), torch.linalg.svdvals(wide)
    assert (c.kappa, c.rank) == (math.inf, 5)
    assert c.kappa_effective == pytest.approx(float(sigma[0] / sigma[-1]) ** 2, rel=1e-12)
    assert c.lambda_max == pytest.approx(4 * float(sigma[0]) ** 2, rel=1e-12)


def test_infinite_depth_is_n_plus_three_over_three():
    """kappa_L ~ (n + 3)/3 + (2n/3) ln L / L, not (n + 4)/3; first layer alone: 1 (papers.md D1, F4)."""
    X = unit(10, 20)
    rest = [
        (ntk_condition_number(X, depth=L).kappa - 13 / 3) / (20 / 3 * math.log(L) / L) for L in (200, 1000)
    ]
    assert abs(rest[1] - 1) < abs(rest[0] - 1) < 0.8
    assert ntk_condition_number(X, depth=300, trained="first").kappa == pytest.approx(1, abs=0.01)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(["all", "first"]),
)
def test_agrees_with_the_matrix(seed, n, d, depth, trained):
    X = random(n, d, seed=seed)
    c, values = (
        ntk_condition_number(X, depth=depth, trained=trained),
        ntk_gram(X, depth=depth, trained=trained),
    )
    values = torch.linalg.eigvalsh(values)
    assert c.lambda_max == pytest.approx(float(values[-1]), rel=1e-12)
    assert c.lambda_max / c.kappa_effective == pytest.approx(
        float(values[n - c.rank]), rel=1e-9, abs=1e-13 * float(values[-1])
    )
    if d > 1:
        assert c.rank == n


def test_smooth_activations_and_float32():
    X = unit(6, 4)
    K = ntk_gram(X, depth=2, activation="tanh")
    assert ntk_condition_number(X, depth=2, activation="tanh").kappa == pytest.approx(
        float(torch.linalg.cond(K)), rel=1e-9
    )
    with pytest.raises(ValueError, match="cluster needs a kernel of angles alone"):
        ntk_condition_number(X, depth=2, activation="tanh", cluster=0.1)
    single, double = X.float(), X.float().double()
    assert ntk_condition_number(single, depth=2) == ntk_condition_number(double, depth=2)
    assert ntk_condition_number(X, depth=1, activation="relu2").kappa == pytest.approx(
        float(torch.linalg.cond(ntk_gram(X, depth=1, activation="relu2"))), rel=1e-9
    )


def test_zero_rows_and_one_point():
    X = torch.zeros(3, 2, dtype=torch.float64)
    assert ntk_condition_number(X, depth=1)[:4] == (math.inf, 0.0, 0.0, 0)
    assert ntk_condition_number(X, depth=0).rank == 0
    X[1] = torch.tensor([3.0, 4.0])
    assert ntk_condition_number(X, depth=1)[:5] == (math.inf, 50.0, 0.0, 1, 1.0)
    assert ntk_condition_number(X[1:2], depth=1)[:4] == (1.0, 50.0, 50.0, 1)


# ---- from a matrix


@pytest.mark.parametrize("n", [5, 900])
def test_full_rank(n):
    X = random(n, 40) + 1
    K = ntk_gram(X, depth=2)
    values = torch.linalg.eigvalsh(K)
    copy = K.clone()
    c, ends = condition_number(K), extreme_eigenvalues(K)
    assert torch.equal(K, copy)
    assert c.lambda_max == ends.lambda_max == pytest.approx(float(values[-1]), rel=1e-12)
    assert c.lambda_min == ends.lambda_min == pytest.approx(float(values[0]), rel=1e-10)
    assert c.rank == n
    assert c.residual < 1e-12 * c.lambda_max
    assert condition_number(K.float()).kappa == pytest.approx(c.kappa, rel=1e-2)


@pytest.mark.parametrize("n", [6, 500])
def test_singular(n):
    half = random(n // 2, n)
    X = torch.cat([half, half])
    c = condition_number(nngp_gram(X, depth=1))
    assert (c.kappa, c.lambda_min, c.rank) == (math.inf, 0.0, n // 2)
    assert c.kappa_effective == pytest.approx(condition_number(nngp_gram(half, depth=1)).kappa, rel=1e-9)
    assert condition_number(torch.zeros(n, n))[:4] == (math.inf, 0.0, 0.0, 0)


def test_refused_matrices(monkeypatch):
    with pytest.raises(ValueError, match=r"square, got shape \(2, 3\)"):
        condition_number(torch.ones(2, 3))
    with pytest.raises(ValueError, match="symmetric"):
        condition_number(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"not positive semi-definite.*-0\.239"):
        condition_number(torch.diag(torch.tensor([1.0, -0.239])))
    with pytest.raises(ValueError, match="NaN"):
        extreme_eigenvalues(torch.full((2, 2), math.nan))
    with pytest.raises(ValueError, match="cluster must be an angle"):
        ntk_condition_number(torch.eye(2), depth=1, cluster=4.0)
    monkeypatch.setattr(spectrum, "SMALL", 1)
    monkeypatch.setattr(spectrum, "LARGE", 2)
    with pytest.raises(ValueError, match="n = 3 > 2 its rank"):
        condition_number(torch.ones(3, 3))


def test_lanczos_finds_close_and_repeated_eigenvalues():
    values = torch.cat([torch.ones(30), torch.tensor([2.0, 2.0 + 1e-9, 2.0])]).double()
    Q = torch.linalg.qr(random(33, 33))[0]
    largest, vectors = spectrum.lanczos(lambda v: Q @ (values[:, None] * (Q.T @ v)), values)
    assert largest == pytest.approx(2 + 1e-9, rel=1e-12) or largest == pytest.approx(2, abs=1e-9)
    assert torch.allclose(vectors.T @ vectors, torch.eye(vectors.shape[1]).double(), atol=1e-12)


# ---- Cholesky in one array


@pytest.mark.parametrize("n", [1, 7, 8, 50])
def test_cholesky_keeps_what_stands_above(n, monkeypatch):
    monkeypatch.setattr(cholesky, "BLOCK", 8)
    B = random(n, n)
    K, above = B @ B.T + torch.eye(n), random(n, n, seed=1).triu(1)
    A = K.tril() + above
    assert cholesky.factor_(A)
    assert torch.equal(A.triu(1), above)
    assert torch.allclose(A.tril() @ A.tril().T, K, rtol=1e-12, atol=1e-12)
    b = random(n, 3)
    assert torch.allclose(K @ cholesky.solve(A, b), b, atol=1e-9)
    assert torch.allclose(cholesky.above(A, b), (above + above.T) @ b, atol=1e-12)
    cholesky.mirror_(A, lambda i, j, block: block + i.start)
    assert torch.equal(A.triu(1), above)
    assert torch.allclose(A.tril(), ((above + above.T) + torch.arange(n)[:, None] // 8 * 8).tril())
    assert not cholesky.factor_(-K)


@pytest.mark.parametrize("activation", ["relu", "linear", "abs"])
@pytest.mark.parametrize("exponent", [-500, 400, 500])
def test_kappa_does_not_depend_on_the_size_of_the_points(activation, exponent):
    X = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.6, 0.9]], dtype=torch.float64)
    c, far = (ntk_condition_number(Z, depth=2, activation=activation) for Z in (X, 2.0**exponent * X))
    assert far.kappa == c.kappa
    assert far.lambda_max == math.ldexp(c.lambda_max, 2 * exponent)
    assert far.lambda_min == math.ldexp(c.lambda_min, 2 * exponent)
    assert math.isfinite(far.residual)


def test_eigenvalues_beyond_float64_are_refused():
    X = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
    for size in (1e-200, 1e160, 1e200):
        for activation, depth in (("relu", 2), ("linear", 2), ("relu", 0), ("relu2", 1)):
            with pytest.raises(OverflowError, match=r"beyond float64: scale the input, which leaves kappa = \d"):
                ntk_condition_number(size * X, depth=depth, activation=activation)
    for size in (1e200, 1e-300, 1e308):
        c = condition_number(size * torch.tensor([[1.0, 0.0], [0.0, 0.1]], dtype=torch.float64))
        assert c.kappa == pytest.approx(10, rel=1e-12)
        assert c.residual <= 1e-12 * size
    with pytest.raises(OverflowError, match="beyond float64"):
        condition_number(torch.tensor([[1e-310, 0.0], [0.0, 1e-311]], dtype=torch.float64))


def test_cluster_is_never_ignored():
    X = torch.tensor([[1.0, 0.0], [1.0, 1e-9]], dtype=torch.float64)
    for options in ({"depth": 0}, {"depth": 2, "activation": "linear"}):
        with pytest.raises(ValueError, match="merge rows yourself"):
            ntk_condition_number(X, cluster=0.1, **options)
    for cluster in (True, "0.1", math.nan):
        with pytest.raises(ValueError, match="cluster must be an angle"):
            ntk_condition_number(X, depth=1, cluster=cluster)
