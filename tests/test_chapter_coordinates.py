"""The chapter "Hyperspherical coordinates": its figures' numbers by a second method, and the numbers in its prose."""
import math

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import GmPLinear, angle_between, sphere
from ntklib.book.claims import coordinates as claims
from ntklib.book.exercises import coordinates as exercises
from ntklib.book.explorables import coordinates as show
from ntklib.symbolic import coordinates as symbolic
from ntklib.symbolic import sphere as exact

f64 = torch.float64
TO, FROM, DRAW, DENSITY = sphere.to_angles, sphere.from_angles, sphere.uniform_angles, exact.density


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def without_sign(w):
    r, theta = TO(w)
    return r, torch.cat([theta[..., :-1], torch.atan2(w[..., -1:].abs(), w[..., -2:-1])], -1)


SABOTAGE = {        # for test_claims.py: a falsehood that each check must notice
    "coordinates-inverse": [(sphere, "to_angles", without_sign)],
    "coordinates-poles": [(sphere, "to_angles", without_sign)],
    "coordinates-law": [(exact, "density", lambda n, i: 1 / sp.pi if i < n - 1 else 1 / (2 * sp.pi))],
    "coordinates-flat": [(symbolic, "flat_square", lambda n, i: sp.Rational(1, n))],
    "coordinates-no-vanishing": [(symbolic, "tail_square", lambda n, k: sp.Rational(1, 2) ** k)],
    "coordinates-sign": [(show, "released_angle", lambda w: torch.atan2(w[..., -1], w[..., -2]))],
    "coordinates-silent": [(show, "released_angle", lambda w: torch.atan2(w[..., -1], w[..., -2]))],
    "coordinates-glorot": [(symbolic, "glorot_density", lambda t: 1 / (2 * sp.pi) + 0 * t)],
    "coordinates-fourths": [(symbolic, "sums_of_fourths", lambda n: (3 / (n + 2), 3 / (n + 2)))],
    "coordinates-sparse": [(sphere, "uniform_angles", lambda n, dim, generator: show.flat_angles(n, dim, generator=generator))],
}


def last(f):
    def g(w):
        tails = w.square().flip(-1).cumsum(-1).flip(-1).sqrt()
        return torch.cat([torch.atan2(tails[:, 1:-1], w[:, :-2]), f(w[:, -2:-1], w[:, -1:])], -1)
    return g


def by_arccos(w):
    tails = w.square().flip(-1).cumsum(-1).flip(-1).sqrt()
    theta = torch.arccos(w[:, :-1] / tails[:, :-1])
    return torch.cat([theta[:, :-1], torch.where(w[:, -1:] < 0, 2 * math.pi - theta[:, -1:], theta[:, -1:])], -1)


def logs(theta, shift=0, area=True):
    n = theta.shape[-1] + 1
    power = torch.arange(n - 2, 0, -1, dtype=theta.dtype) + shift
    constant = math.log(2) + n / 2 * math.log(math.pi) - math.lgamma(n / 2)
    return (power * theta[:, :-1].sin().log()).sum(-1) - area * constant


def one_by_one(theta):
    """The product of the library's exact densities."""
    n = theta.shape[-1] + 1
    t = exact.angles(n)
    total = torch.zeros(len(theta), dtype=theta.dtype)
    for i in range(1, n):
        f = sp.lambdify(t[i - 1], sp.expand_log(sp.log(DENSITY(n, i)), force=True) if i < n - 1 else sp.log(DENSITY(n, i)), "numpy")
        total = total + torch.as_tensor(f(theta[:, i - 1].numpy()), dtype=theta.dtype)
    return total


STUDENTS = {        # for test_exercises.py: what students write, and what they must be told
    "coordinates.ex5": [
        (last(lambda x, y: torch.atan2(y.abs(), x)), "The sign of w_n is lost"),
        (last(lambda x, y: torch.atan2(y, x)), "bring it to"),
        (last(lambda x, y: torch.atan2(x, y) % (2 * math.pi)), "arguments exchanged"),
        (lambda w: TO(w)[1].rad2deg(), "give radians"),
        (lambda w: TO(w.double())[1], "keep the dtype"),
        (lambda w: TO(w)[1][:, :-1], "is wanted"),
    ],
    "coordinates.ex6": [
        (lambda theta: logs(theta, area=False), "the constant is missing"),
        (lambda theta: logs(theta, 1), "one too large"),
        (lambda theta: logs(theta) + math.log(2), "full turn"),
        (lambda theta: logs(theta).exp(), "give its logarithm"),
        (lambda theta: (theta.shape[-1] * theta.sin().log()).sum(-1), "has no logarithm"),
    ],
}
CORRECT = {
    "coordinates.ex5": [last(lambda x, y: torch.atan2(y, x) % (2 * math.pi)), lambda w: TO(w)[1]],
    "coordinates.ex6": [logs, exercises.log_density, one_by_one],
}


# ---- the figures' numbers by other means -----------------------------------------------------------------
@pytest.mark.parametrize("law", ["flat", "uniform"])
def test_the_shares_are_those_of_many_draws(law):
    draws = show.flat_angles if law == "flat" else sphere.uniform_angles
    u = claims.peeled(draws(20_000, 100, generator=generator()))
    for first in show.FIRST:
        found = 100 * u[:, :first].square().sum(-1)
        got = show.flat_share(law, first, 1)
        assert abs(float(found.mean()) - got["share"]) < 5 * float(found.std()) / 20_000**0.5 + 1e-4     # far tails are not sampled
    assert show.flat_share("flat", 5, 1)["share"] == pytest.approx(96.875)
    assert show.flat_share("flat", 100, 2)["found"] == pytest.approx(100)


def test_the_picture_shows_the_weights_that_are_counted():
    got = show.flat_share("uniform", 10, 3)
    v = np.array(got["pixels"]["v"])
    assert np.abs(v).max() == 1
    assert 100 * (v[:10] ** 2).sum() / (v**2).sum() == pytest.approx(got["found"], abs=1)
    assert got["curve"]["found"][10] == pytest.approx(got["found"], abs=0.01)


@pytest.mark.parametrize("miss", show.MISS)
def test_the_walk_is_even_and_as_near_as_it_says(miss):
    u = torch.from_numpy(show.walk_past_the_pole(miss, show.TRACK))
    assert u.norm(dim=-1).numpy() == pytest.approx(1)
    assert angle_between(u[1:], u[:-1]).rad2deg().numpy() == pytest.approx(1, rel=1e-9)
    pole = torch.tensor([1.0, 0, 0], dtype=f64)
    assert math.degrees(float(angle_between(u, pole).min())) == pytest.approx(miss, abs=1e-9)


def test_the_last_angle_turns_as_fast_as_it_says():
    for miss, along in ((5, 0), (5, 9), (30, -45), (90, 60), (1, 3)):
        got = show.over_the_pole(miss, along)
        theta = TO(torch.from_numpy(show.walk_past_the_pole(miss, np.array([along - 1e-4, along + 1e-4]))))[1]
        assert got["rate"] == pytest.approx(float(theta[1, 1] - theta[0, 1]) / math.radians(2e-4), rel=1e-4)
        i = list(show.TRACK).index(along)
        assert got["track"]["theta1"][i] == pytest.approx(got["theta1"], abs=0.006)
        assert f"{got['track']['theta2'][i]:.0f}°" == got["theta2"]
    assert show.over_the_pole(0, 0)["theta2"] == "free"
    assert math.isinf(show.over_the_pole(0, 0)["rate"])
    assert show.over_the_pole(5, 0)["rate"] == pytest.approx(11.5, abs=0.05)


def test_the_globe_shows_the_point_of_the_angles():
    """The Vega expressions, evaluated as Python, are an orthographic view of u."""
    names = {"cos": math.cos, "sin": math.sin}
    e = show.TILT
    for t1, t2 in ((20, 70), (90, 0), (130, 200)):
        u = sphere.from_angles(torch.tensor([t1, t2], dtype=f64).deg2rad()).tolist()
        got = {k: eval(v, names) for k, v in show._globe(*show._spherical(str(t1), str(t2))).items()}
        right, up = -u[1], u[0] * math.cos(e) - u[2] * math.sin(e)
        assert (got["x"], got["y"]) == pytest.approx((right, up), abs=1e-6)
        assert got["x"] ** 2 + got["y"] ** 2 + got["depth"] ** 2 == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("behind", show.BEHIND)
def test_the_law_of_an_angle(behind):
    got = show.angle_laws(behind)
    assert got["law"]["exact"].sum() == pytest.approx(1, abs=1e-3)
    assert abs(got["found"] - 0.95) < 4 * (0.95 * 0.05 / 2000) ** 0.5
    assert got["bars"]["height"].sum() * 4 == pytest.approx(1)
    with mp.workdps(30):        # P(|cos| < s) of the Beta law of cos^2
        s = mp.sin(mp.radians(90 - got["low"])) ** 2
        assert float(mp.betainc(0.5, mp.mpf(behind) / 2, 0, s, regularized=True)) == pytest.approx(0.95, abs=1e-9)
    if behind <= 50:
        t = exact.angles(behind + 1)[0]
        f = sp.lambdify(t, DENSITY(behind + 1, 1), "numpy")
        assert got["law"]["exact"] == pytest.approx(math.radians(1) * f(np.radians(show.GRID)), rel=1e-9, abs=1e-15)


def test_sectors_areas_and_shares():
    t = np.linspace(0, 2 * math.pi, 41)[:-1]
    node, weight = np.polynomial.legendre.leggauss(2000)
    for law in ("code", "glorot", "uniform"):
        for a in t:
            s = a + math.pi / 2 * node                         # the half plane that answers the input
            share = (math.pi / 2 * weight * show.relative_density(law, s)).sum() / (2 * math.pi)
            assert show.active_share(law, a) == pytest.approx(share, abs=2e-3)
            if law != "code":                                  # the outline's area is spread as the density
                assert show.edge(law, a) ** 2 / 2 / 4 == pytest.approx(float(show.relative_density(law, a)) / (2 * math.pi))
        around = np.linspace(0, 2 * math.pi, 7201)[:-1]
        assert show.relative_density(law, around).mean() == pytest.approx(1, abs=2e-3)
        got = show._measured(law)
        for theta, found in zip(got["theta"], got["density"], strict=True):
            inside = np.radians(np.linspace(theta - 10, theta + 10, 401))
            want = show.relative_density(law, inside).mean()
            assert abs(found - want) < 4.5 * math.sqrt(18 * want / 20_000) + 0.01


def test_the_released_formula_is_the_arccosine():
    w = torch.randn(1000, 3, dtype=f64, generator=generator())
    plane = w[:, 1:]
    want = torch.arccos(plane[:, 0] / plane.norm(dim=-1))
    torch.testing.assert_close(show.released_angle(w), want, rtol=1e-6, atol=1e-6)


def test_dots_are_mirrored_only_from_below():
    dots = show._dots("code")
    assert (dots["y"] >= 0).all()
    moved = np.isfinite(dots["from_x"])
    assert 0.4 < moved.mean() < 0.6
    assert dots["from_y"][moved] == pytest.approx(-dots["y"][moved])
    assert dots["from_x"][moved] == pytest.approx(dots["x"][moved])
    assert not np.isfinite(show._dots("glorot")["from_x"]).any()
    assert np.hypot(*(show._dots("uniform")[k] for k in "xy")).max() <= 2 / math.sqrt(math.pi) + 0.01


# ---- the closed forms -------------------------------------------------------------------------------------
def test_the_telescope():
    for n in (2, 3, 7):
        for k in range(1, n):
            product = sp.prod(sp.Rational(n - i, n - i + 1) for i in range(1, k + 1))
            assert symbolic.tail_square(sp.Integer(n), k) == product
    for n in (2, 3, 6):
        assert sum(symbolic.flat_square(n, i) for i in range(1, n + 1)) == 1
    with pytest.raises(ValueError, match="there are n = 3 coordinates"):
        symbolic.flat_square(3, 4)


def test_the_square_has_mass_one():
    t = sp.Symbol("t")
    assert sp.simplify(8 * sp.integrate(1 / (8 * sp.cos(t) ** 2), (t, 0, sp.pi / 4))) == 1
    assert symbolic.glorot_density(sp.pi / 3) == sp.Rational(1, 6)


# ---- the numbers in the prose -----------------------------------------------------------------------------
def test_numbers_in_the_text():
    assert 1 - 2.0**-7 > 0.99 > 1 - 2.0**-6                                    # seven weights hold 99 %
    low = show.angle_laws(783)["low"]
    assert low == pytest.approx(86, abs=0.05)
    assert 2 * (90 - low) / 180 == pytest.approx(0.04, abs=0.005)                # of angles drawn uniformly
    assert math.degrees(1 / math.sqrt(783)) == pytest.approx(2.05, abs=0.01)   # about two degrees


def test_products_of_uniform_sines_reach_zero_in_float32():
    """The typical product of k such sines is 2^-k: exp(k E log sin). The smallest float32 is 2^-149."""
    assert float(mp.quad(lambda t: mp.log(mp.sin(t)), [0, mp.pi / 2, mp.pi]) / mp.pi) == pytest.approx(-math.log(2))
    theta = show.flat_angles(200, 784, generator=generator()).float()
    products = theta.sin().abs().cumprod(-1)
    first = (products > 0).sum(-1).double()
    assert float(first.median()) == pytest.approx(149, abs=12)


def test_a_gmp_layer_starts_with_uniform_directions():
    u = GmPLinear(5, 20_000, generator=generator()).double().direction().detach()
    assert u.square().mean(0).numpy() == pytest.approx(0.2, abs=0.006)
    assert u.mean(0).numpy() == pytest.approx(0, abs=0.015)
    assert float(u.pow(4).sum(-1).mean()) == pytest.approx(3 / 7, abs=0.01)
