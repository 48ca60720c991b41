"""The chapter on the angle map: its figures' numbers by a second method, and the numbers in its prose."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import angle_map, gradient_angle, symbolic
from ntklib.book.claims import angles as claims
from ntklib.book.explorables import angles as show


def g(degrees: float, slope=0.0) -> float:
    """The printed formula, in plain doubles and degrees."""
    t, beta = math.radians(degrees), (1 - slope) ** 2 / (1 + slope**2)
    return math.degrees(math.acos(math.cos(t) + beta * (math.sin(t) - t * math.cos(t)) / math.pi))


# ---- the figures' numbers by other means -------------------------------------------------------------------------
def test_a_curve_is_the_printed_formula():
    for theta in (5, 60, 90, 175):
        assert show.one_layer(theta)["after"] == pytest.approx(g(theta), rel=1e-12)
        for slope in (-1, -0.4, 0.3):
            state = show.leaky(slope, theta)
            assert state["after"] == pytest.approx(g(theta, slope), rel=1e-12)
            assert state["beta"] == pytest.approx((1 - slope) ** 2 / (1 + slope**2))
    i = list(show.DEGREES).index(120)
    assert show.leaky(0.3, 60)["map"]["leaky"][i] == pytest.approx(g(120, 0.3), rel=1e-12)


@pytest.mark.parametrize(("theta", "width"), [(5, 1024), (60, 64), (120, 16), (180, 256)])
def test_units_are_counted_and_the_measured_angle_is_that_of_their_answers(theta, width):
    state, W = show.hidden_units(theta, width, 1), show._layer(1)[:width].numpy()
    x, z = np.array([1.0, 0]), np.array([math.cos(math.radians(theta)), math.sin(math.radians(theta))])
    hx, hz = np.maximum(W @ x, 0), np.maximum(W @ z, 0)
    cosine = hx @ hz / np.linalg.norm(hx) / np.linalg.norm(hz)
    assert state["measured"] == pytest.approx(math.degrees(math.acos(cosine)), abs=1e-9)
    assert state["exact"] == pytest.approx(g(theta), rel=1e-12)
    assert state["apart"] == np.mean((W @ x > 0) != (W @ z > 0))
    assert state["expected"] == theta / 180
    kinds = state["units"]["kind"]
    drawn = min(width, show.UNITS)
    assert (kinds[:drawn] != "").all()
    assert (kinds[drawn:] == "").all()
    split = kinds[:drawn] == "tells them apart"
    assert (split == ((W @ x > 0) != (W @ z > 0))[:drawn]).all()
    if 0 < theta < 180:                                                        # and those lie on the two arcs
        at = np.degrees(np.arctan2(state["units"]["y"], state["units"]["x"]))[:drawn] % 180
        assert (split == ((at > 90) & (at < 90 + theta) | (at + 180 < 90 + theta))).all()


def test_four_times_the_width_halves_the_band():
    w = show._widths(60)
    band = w["high"] - w["low"]
    assert band[:-2] / band[2:] == pytest.approx(2, abs=0.6)
    assert band[0] / band[-1] == pytest.approx(math.sqrt(512), rel=0.2)
    exact = g(60)
    assert (np.abs(w["middle"] - exact) < band / 2).all()


def test_below_two_to_minus_twelve_the_float32_cosine_is_one():
    below, above = (show.precision("float32", t * 2**-12) for t in (0.99, 1.01))
    assert below["arccos"] == 0
    assert below["lost"] == 1
    assert above["arccos"] > 0
    assert show.precision("float32", 1e-9)["now"]["ours"][0] < 1e-6
    assert show.precision("float64", 1e-8)["lost"] == pytest.approx(1)         # the second preset


# ---- the numbers in the prose ------------------------------------------------------------------------------------
def test_two_terms_of_the_series_hold_to_half_a_degree_up_to_50_degrees():
    errors = [show.expansion(2, theta)["error"] for theta in range(0, 65, 5)]
    assert all(a <= b for a, b in pairwise(errors))
    assert 0.4 < errors[10] < 0.5 < errors[11]
    t = math.radians(50)
    assert show.expansion(2, 50)["value"] == pytest.approx(math.degrees(t - t**2 / (3 * math.pi)), rel=1e-12)


def test_the_numbers_in_the_text():
    t = torch.tensor(math.radians(1), dtype=torch.float64)
    assert float((t - angle_map(t)) / t) == pytest.approx(0.002, abs=2e-4)
    for degrees, tolerance in ((1, 0.04), (0.1, 0.013), (0.01, 0.005)):        # the ratio grows like 1/sqrt(pi theta)
        t = torch.tensor(math.radians(degrees), dtype=torch.float64)
        assert float(gradient_angle(t, 1) / t * (math.pi * t) ** 0.5) == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize("slope", [-1, -0.5, -0.1])
def test_for_negative_slopes_the_map_increases_up_to_pi_over_beta(slope):
    beta = (1 - slope) ** 2 / (1 + slope**2)
    assert beta > 1
    t = torch.linspace(0.001, math.pi, 1001, dtype=torch.float64)
    rises = angle_map(t, slope).diff() > 0
    middle = (t[1:] + t[:-1]) / 2
    clear = (middle - math.pi / beta).abs() > 0.01
    assert bool((rises == (middle < math.pi / beta))[clear].all())
    theta, a = sp.symbols("theta a", positive=True)
    share = symbolic.relu_share(a)
    cosine = share * sp.cos(symbolic.angle_map(theta)) + (1 - share) * sp.cos(theta)
    assert sp.simplify(sp.diff(cosine, theta) + (1 - share * theta / sp.pi) * sp.sin(theta)) == 0


def test_the_kernel_of_the_page_by_quadrature():
    for theta in (0.4, math.pi / 3, 2.5):
        kernel = ((math.pi - theta) * math.cos(theta) + math.sin(theta)) / (2 * math.pi)
        assert claims.correlation(theta) == pytest.approx(kernel, abs=1e-12)
    assert claims.correlation(1e-9) == pytest.approx(1 / 2, abs=1e-8)          # 1 / c_sigma
