"""Chapter "The angle theorem, and the argument over it": its figures, its prose, and what its claims and exercises must notice."""
import json
from math import degrees, pi

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
import torch

from ntklib import sphere
from ntklib.book.claims import theorem as claimed
from ntklib.book.exercises import theorem as asked
from ntklib.book.explorables import theorem as show
from ntklib.symbolic import sphere as exact
from ntklib.symbolic import theorem as twin

f64 = torch.float64
METRIC, LENGTH, GEODESIC = sphere.metric, sphere.curve_length, sphere.geodesic


def lengthened(theta, eps, **options):
    return (1 + 1e-8) * LENGTH(theta, eps, **options)


SABOTAGE = {
    "theorem-equality": [(sphere, "metric", lambda theta: METRIC(theta) + 1e-5)],
    "theorem-second-order": [(twin, "growth", lambda n: 2 * sum(e**3 for e in twin.steps(n)))],
    "theorem-length": [(sphere, "curve_length", lengthened)],
    "theorem-bound": [(sphere, "geodesic", lambda u, v: (u - v).norm(dim=-1))],
    "theorem-third-order": [(twin, "geodesic_curvature", lambda n: sp.Integer(1))],
    "theorem-lipschitz": [(sphere, "metric", lambda theta: METRIC(theta) / 2)],
    "theorem-plane": [(sphere, "metric", lambda theta: theta.sin() ** 2)],
}
STUDENTS = {
    "theorem.ex5": [
        (asked._norm, "the speed at the start"),
        (lambda theta, eps: eps.norm(), "the bound"),
        (asked._turned, "length of the shortest way"),
        (lambda theta, eps: asked._norm(theta + eps / 2, eps), "one node"),
        (asked._own_sine, "one factor too many"),
        (asked._energy, "Take the root before"),
        (lambda theta, eps: LENGTH(theta, eps)[None], "shape (1,)"),
    ],
}


def by_chords(theta, eps):
    share = torch.linspace(0, 1, 200_001, dtype=f64)[:, None]
    return sphere.from_angles(theta + share * eps).diff(dim=0).norm(dim=1).sum()


CORRECT = {"theorem.ex5": [LENGTH, lambda theta, eps: by_chords(theta.double(), eps.double()).to(theta.dtype)]}


# ---- the figures -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", [(15, -25, 60, 90), (70, -40, -60, 90), (45, 0, 0, 360), (120, 170, -180, -333), (20, 10, 70, 0)])
def test_the_four_quantities_of_a_step(state):
    out = show.turned_unit(*state)
    theta, eps = np.radians(state).reshape(2, 2)
    u, v = (np.array([float(x) for x in claimed.direction(t)]) for t in (theta, theta + eps))
    assert out["angle"] == pytest.approx(degrees(np.arctan2(np.linalg.norm(np.cross(u, v)), u @ v)), abs=1e-9)
    assert out["length"] == pytest.approx(degrees(float(claimed.polygon(torch.tensor(theta), torch.tensor(eps), 20_000))), rel=1e-7)
    assert out["metric"] == pytest.approx(degrees(np.hypot(eps[0], np.sin(theta[0]) * eps[1])), rel=1e-12)
    assert out["norm"] == pytest.approx(np.hypot(*state[2:]), rel=1e-12)
    assert out["angle"] <= out["length"] * (1 + 1e-12)
    assert out["length"] <= out["norm"] * (1 + 1e-12)
    for name in ("angle", "length", "metric", "norm"):
        assert out["curve"][name][0] == pytest.approx(0, abs=1e-12)
        assert out["curve"][name][-1] == out[name] == out["last"][name][0]


def test_the_sphere_shows_the_curve_and_the_short_way():
    out = show.turned_unit(70, -40, -60, 90)
    arc, path = (np.stack([out[name][c] for c in "xyz"], 1) for name in ("arc", "path"))
    assert np.allclose(np.linalg.norm(arc, axis=1), 1)
    assert np.allclose(np.linalg.norm(path, axis=1), 1)
    assert np.allclose(arc[[0, -1]], path[[0, -1]])
    assert np.abs(np.cross(arc[0], arc[-1]) @ arc.T).max() < 1e-12                     # one plane through the centre
    steps = np.linalg.norm(np.diff(arc, axis=0), axis=1)
    assert degrees(32 * 2 * np.arcsin(steps.max() / 2)) == pytest.approx(out["angle"], rel=1e-9)
    assert np.isnan(show.turned_unit(90, 0, 0, 180)["arc"]["x"]).all()                  # of opposite points none is the shortest
    near = np.array([out["grid"][c] for c in "xy"])
    assert np.nanmax(np.hypot(*near)) < 1 + 1e-4


@pytest.mark.parametrize(("theta", "eps", "angle"), [(45, 180, 90), (45, 360, 0), (90, 270, 90), (30, 180, 60), (45, 20, 14.1)])
def test_half_a_turn(theta, eps, angle):
    out = show.half_turn(theta, eps)
    assert out["angle"] == pytest.approx(angle, abs=0.05)
    assert out["angle"] == pytest.approx(degrees(float(twin.half_turn(mp.radians(theta), mp.radians(eps)))), abs=1e-9)
    assert out["printed"] == pytest.approx(eps * np.sin(np.radians(theta)), rel=1e-12)


def test_the_two_errors_have_the_stated_orders():
    for place in show.PLACES:
        small = [show.two_orders(place, size) for size in (0.25, 0.125)]
        ratio = {name: small[0][name] / small[1][name] for name in ("metric", "length")}
        assert ratio["metric"] == pytest.approx(8 if place == "parallel" else 4, rel=0.02)
        assert ratio["length"] == pytest.approx(8, rel=0.02)
    out = show.two_orders("parallel", 8)
    assert out["angle"] + out["length"] == pytest.approx(8 * np.sin(np.radians(60)), rel=1e-12)
    theta, eps = (x.tolist() for x in show._place_and_way("ten"))
    with mp.workdps(30):
        eps = [e * mp.radians(8) for e in eps]
        assert show.two_orders("ten", 8)["angle"] == pytest.approx(
            float(mp.degrees(claimed.angle(claimed.direction(theta), claimed.moved(theta, eps, 1)))), rel=1e-12)


def test_random_steps_keep_the_bound_and_leave_the_diagonal():
    for weights in show.WEIGHTS:
        for size in show.STEPS:
            assert show.random_steps(weights, size)["largest"] <= 1 + 1e-12
    out = show.random_steps(3, 90)
    assert out["above"] > 0.2
    assert out["below"] > 0.5
    assert show.random_steps(3, 2)["above"] == show.random_steps(3, 2)["below"] == 0
    flat = show.random_steps(2, 90)["dots"]
    assert np.allclose(flat["angle"], 1)
    assert np.allclose(flat["metric"], 1)


# ---- the algebra -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", range(2, 6))
def test_the_squared_chord_begins_with_the_norm_and_its_growth(n):
    t = sp.Symbol("t")
    theta, eps = exact.angles(n), twin.steps(n)
    u = exact.from_angles(n).subs({a: a + t * e for a, e in zip(theta, eps, strict=True)}, simultaneous=True)
    first, second = (u.diff(t, k).subs(t, 0) for k in (1, 2))
    assert exact.pythagoras(first.dot(first) - twin.squared_norm(n)) == 0
    assert exact.pythagoras(first.dot(second) - twin.growth(n) / 2) == 0


def test_the_length_has_the_series_of_the_angle():
    s, t = sp.symbols("s t", positive=True)
    theta, eps = exact.angles(3), twin.steps(3)
    squared = twin.squared_norm(3).subs({a: a + s * e for a, e in zip(theta, eps, strict=True)}, simultaneous=True)
    speed = sp.sqrt(squared).subs(s, 0) + s * sp.sqrt(squared).diff(s).subs(s, 0)
    assert sp.simplify(sp.integrate(speed, (s, 0, t)) - twin.turn_series(3, t)) == 0


def test_no_product_of_sines_is_steeper_than_one():
    theta = torch.rand(4000, 7, generator=torch.Generator().manual_seed(0), dtype=f64) * pi
    slope = torch.func.vmap(torch.func.grad(lambda a: a.sin().prod()))(theta)
    assert slope.norm(dim=1).max() <= 1
    assert torch.func.grad(lambda a: a.sin().prod())(torch.tensor([0.0, pi / 2], dtype=f64)).norm() == pytest.approx(1)


# ---- numbers of the prose that no claim checks -------------------------------------------------------------------
def test_numbers_of_the_prose():
    assert 180 * np.sin(pi / 4) == pytest.approx(127.3, abs=0.05)
    assert 360 * np.sin(pi / 4) == pytest.approx(254.6, abs=0.05)
    default = show.turned_unit(15, -25, 60, 90)
    assert default["says"] == "more than"
    assert show.turned_unit(70, -40, -60, 90)["says"] == "less than"
    assert show.turned_unit(20, 10, 70, 0)["says"] == "as much as"
    for theta in ([0.4, 1.0], [pi / 2, 1.0]):                     # with three weights: of the parallels the equator alone runs straight
        kappa = twin.geodesic_curvature(3).subs(dict(zip((*exact.angles(3), *twin.steps(3)), (*theta, 0.0, 1.0), strict=True)))
        assert float(kappa) == pytest.approx(1 / np.tan(theta[0]) ** 2, abs=1e-12)
    place, step = torch.tensor([[1.0, 0.3, 2.0], [-2.5, 0.0, 0.0]], dtype=f64)
    assert GEODESIC(sphere.from_angles(place), sphere.from_angles(place + step)).item() == pytest.approx(2.5)


# ---- dragging on the sphere --------------------------------------------------------------------------------------
DRAWN = """canvas => {                // where the middle column of the canvas is painted, below the title
    const d = canvas.getContext("2d").getImageData(canvas.width >> 1, 0, 1, canvas.height).data;
    const rows = [...Array(canvas.height).keys()].filter(y => y * canvas.clientHeight > 40 * canvas.height && d[4 * y + 3] > 100);
    return [rows.at(0), rows.at(-1)].map(y => (y + 0.5) * canvas.clientHeight / canvas.height);
}"""


@pytest.mark.browser
def test_the_end_of_the_step_is_dragged_round_the_pole_and_the_turn_counts_on(visit, site):
    seen = visit(f"{site}/chapters/boundaries/17_angle_theorem.html#turned-unit", settle=False)
    figure = seen.page.locator("figure#turned-unit")
    figure.scroll_into_view_if_needed()
    seen.page.wait_for_selector("figure#turned-unit[data-ready='1']")
    plot = figure.locator(".ex-plot").first
    plot.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
    box, (top, bottom) = plot.bounding_box(), plot.locator("canvas").evaluate(DRAWN)
    r, centre = (bottom - top) / 2, (box["x"] + box["width"] / 2, box["y"] + (top + bottom) / 2)

    def pixel(theta1, theta2):
        x, y, _ = show.leaning(sphere.from_angles(torch.tensor([theta1, theta2], dtype=f64).deg2rad()).numpy())
        return centre[0] + r * x, centre[1] - r * y

    def state():
        return json.loads(figure.get_attribute("data-state"))

    assert state() == {"theta1": 15, "theta2": -25, "eps1": 60, "eps2": 90}
    seen.page.mouse.move(*pixel(75, 65))                                         # the end of the step
    seen.page.mouse.down()
    for turn in range(65, 65 + 361, 20):                                         # once round the pole, 20 degrees from it
        seen.page.mouse.move(*pixel(20, turn))
    seen.page.mouse.up()
    after = state()
    assert (after["theta1"], after["theta2"]) == (15, -25)
    assert after["eps1"] == pytest.approx(5, abs=2)
    assert after["eps2"] == 360                                                  # 450 is beyond the slider
    figure.locator("[data-reset]").click()
    seen.page.mouse.move(*pixel(15, -25))                                        # the unit itself: the step stays what it is
    seen.page.mouse.down()
    seen.page.mouse.move(*pixel(60, -50), steps=4)
    seen.page.mouse.up()
    after = state()
    assert after["theta1"] == pytest.approx(60, abs=3)
    assert after["theta2"] == pytest.approx(-50, abs=4)
    assert (after["eps1"], after["eps2"]) == (60, 90)
    assert not seen.problems(), seen.problems()
