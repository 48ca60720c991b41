"""Appendix B of the paper proved for n <= 6, and every formula equal to its twin in ntklib.sphere."""
import math

import pytest
import sympy as sp
import torch

from ntklib import sphere
from ntklib.symbolic import sphere as exact

DIMENSIONS = range(2, 7)


def theta_of(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n - 1, dtype=torch.float64, generator=generator) * math.pi


def value(expression, n, theta):
    found = sp.lambdify(exact.angles(n), expression, "numpy")(*theta.tolist())
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("n", DIMENSIONS)
def test_u_has_length_one(n):
    u = exact.from_angles(n)
    assert exact.pythagoras(sum(x**2 for x in u) - 1) == 0


@pytest.mark.parametrize("n", DIMENSIONS)
def test_metric_is_diagonal_with_products_of_squared_sines(n):
    expected = [sp.prod(sp.sin(t) ** 2 for t in exact.angles(n)[:j]) for j in range(n - 1)]
    assert exact.metric(n) == sp.diag(*expected)


@pytest.mark.parametrize("n", DIMENSIONS)
def test_metric_is_the_squared_norm_of_the_tail(n):
    u, M = exact.from_angles(n), exact.metric(n)
    for j in range(n - 1):
        assert exact.pythagoras(sum(x**2 for x in u[j:])) == M[j, j]


@pytest.mark.parametrize("n", DIMENSIONS)
def test_the_rebuttals_derivative_formula_up_to_its_removable_singularity(n):
    """du_i/dtheta_q with cot(theta_q) = cos/sin, as printed in the answer on eq. 18."""
    theta, u, J = exact.angles(n), exact.from_angles(n), exact.jacobian(n)
    for i in range(n):
        for q in range(n - 1):
            if i < q:
                printed = sp.Integer(0)
            elif i == q:
                printed = -sp.prod(sp.sin(t) for t in theta[:i + 1])
            else:
                printed = u[i] * sp.cos(theta[q]) / sp.sin(theta[q])
            assert sp.expand(J[i, q] - printed) == 0


@pytest.mark.parametrize("n", DIMENSIONS)
def test_the_densities_integrate_to_one_and_multiply_to_the_volume_element(n):
    theta = exact.angles(n)
    for i in range(1, n):
        end = 2 * sp.pi if i == n - 1 else sp.pi
        assert sp.simplify(sp.integrate(exact.density(n, i), (theta[i - 1], 0, end)) - 1) == 0
    volume = sp.prod(sp.sin(t) ** (n - 1 - i) for i, t in enumerate(theta, 1))
    assert volume**2 == sp.prod(exact.metric(n).diagonal())
    assert not (sp.prod(exact.density(n, i) for i in range(1, n)) / volume).free_symbols


@pytest.mark.parametrize("n", DIMENSIONS)
def test_twins(n):
    theta = theta_of(n)
    torch.testing.assert_close(sphere.from_angles(theta), value(exact.from_angles(n), n, theta)[:, 0])
    torch.testing.assert_close(sphere.jacobian(theta), value(exact.jacobian(n), n, theta))
    torch.testing.assert_close(sphere.metric(theta).diag(), value(exact.metric(n), n, theta))


@pytest.mark.parametrize("n", range(1, 7))
def test_twin_of_to_angles(n):
    for seed in range(8):
        w = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        symbols, r, theta = exact.to_angles(n)
        found_r, found = sphere.to_angles(w)
        expected = [sp.lambdify(symbols, t, "math")(*w.tolist()) for t in theta]
        if n > 1:
            expected[-1] %= 2 * math.pi
        assert sp.lambdify(symbols, r, "math")(*w.tolist()) == pytest.approx(found_r.item(), rel=1e-15)
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-14, atol=0)


def test_dimension_one_and_refusals():
    assert exact.from_angles(1).is_Identity
    assert exact.jacobian(1).shape == (1, 0)
    for bad in (0, 2.0, True):
        with pytest.raises((TypeError, ValueError), match="n must be"):
            exact.from_angles(bad)
    with pytest.raises(ValueError, match="n - 1 = 2 angles"):
        exact.density(3, 3)
