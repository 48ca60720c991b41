"""Chapter "The angle theorem, and the argument over it": four quantities that a step in a unit's angles has."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider, Twin
from ntklib.book.figures import LEAN, concept, leaning, plane, series
from ntklib.book.tables import plain
from ntklib.sphere import curve_length, from_angles, geodesic, metric, uniform_angles

f64 = torch.float64
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`
SHARES = [k / 32 for k in range(33)]  # of a step
ALONG = [k / 96 for k in range(97)]  # finer, for the drawn curve
NAMES = ["u(θ)", "u(θ+ε)"]
LIMB = -1e-9  # a point whose height towards the reader is less is behind the sphere
LEGEND = {"length": "gmp", "metric norm": "metric", "angle": "ink", "norm ‖ε‖": "linear"}
COLUMN = dict(zip(LEGEND, ("length", "metric", "angle", "norm"), strict=True))
DASH = dict(zip(LEGEND, ([1, 0], [7, 3], [1, 0], [2, 3]), strict=True))


def metric_norm(theta: torch.Tensor, eps: torch.Tensor) -> torch.Tensor:
    """|eps|_M with M at theta: what Theorem 3.7 prints for the angle."""
    return (metric(theta) * eps.square()).sum(-1).sqrt()


# ---- drawing on a sphere ------------------------------------------------------------------------------------------
@cache
def _grid() -> dict:
    """Rim, parallels and meridians of the coordinates, their near side."""
    degrees = np.linspace(-180, 180, 73)
    lines = [np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), np.zeros(73)], 1)]
    for a in (30, 60, 90, 120, 150):
        lines.append(leaning(from_angles(torch.tensor(np.stack([np.full(73, a), degrees], 1)).deg2rad())))
    for b in range(-180, 180, 30):
        lines.append(leaning(from_angles(torch.tensor(np.stack([np.linspace(0, 180, 73), np.full(73, b)], 1)).deg2rad())))
    points, line = np.concatenate(lines), np.concatenate([100 * i + _runs(v[:, 2]) for i, v in enumerate(lines)])
    near = points[:, 2] >= LIMB
    return {"x": points[near, 0].round(4), "y": points[near, 1].round(4), "line": line[near], "order": np.arange(near.sum())}


def _runs(z: np.ndarray) -> np.ndarray:
    """A number for each stretch of a line that is on one side of the sphere."""
    return np.concatenate([[0], (np.diff(z >= LIMB) != 0).cumsum()])


def _drawn(u: np.ndarray) -> dict:
    v = leaning(u)
    return {"x": v[..., 0], "y": v[..., 1], "z": v[..., 2], "run": _runs(v[..., 2])}


def _short_way(u: torch.Tensor, v: torch.Tensor) -> np.ndarray:
    """Points of the great circle from u to v; of opposite points none is the shortest, and there are none."""
    turned = geodesic(u, v)
    if turned < 1e-9:
        return np.tile(u.numpy(), (33, 1))
    if turned.sin() <= 1e-9:
        return np.full((33, 3), np.nan)
    s = torch.tensor(SHARES, dtype=f64)[:, None]
    return ((((1 - s) * turned).sin() * u + (s * turned).sin() * v) / turned.sin()).numpy()


def _at(name: str) -> dict:
    return {"x": alt.X(f"{name}_x:Q", **RAW), "y": alt.Y(f"{name}_y:Q", **RAW)}


def _place(table: str, x="x", y="y", side=None):
    """Pixels of a table's points, all of them or those on one side of the sphere."""
    seen = f"isValid(datum.{x})" + (f" && datum.z {'>=' if side == 'near' else '<'} {LIMB}" if side else "")
    return plane(alt.Chart(alt.NamedData(table)).transform_filter(seen), at={"x": f"datum.{x}", "y": f"datum.{y}"})


def _along(table: str, x="x", y="y", near=3.0, colour="ink") -> list:
    """A line on the sphere: dotted where it runs behind."""
    return [
        _place(table, x, y, side).mark_line(color=concept(colour), **look).encode(**_at("at"), order="order:Q", detail="run:N")
        for side, look in (("far", {"strokeWidth": 2, "strokeDash": [1, 3], "opacity": 0.8}), ("near", {"strokeWidth": near}))
    ]


def _sphere(pick: float = 300, arc=("x", "y")) -> list:
    """The sphere, the curve of the coordinates, the short way, and both ends with their names."""
    grid = _place("grid").mark_line(color=concept("faint"), strokeWidth=1).encode(**_at("at"), detail="line:N", order="order:Q")
    dots = _place("ends", side="near").mark_circle(size=pick, opacity=1, color=concept("ink"))
    behind = _place("ends", side="far").mark_point(size=110, opacity=1, color=concept("ink"), strokeWidth=2)
    names = _place("ends", "name_x", "name_y").mark_text(fontSize=15, color=concept("ink")).encode(**_at("at"), text="name:N")
    lines = [*_along("path", near=3.5, colour="gmp"), *_along("arc", *arc, near=2.5)]
    return [grid, *lines, *(mark.encode(**_at("at")) for mark in (dots, behind)), names]


def _scene(theta: torch.Tensor, eps: torch.Tensor) -> dict:
    """Tables of `_sphere` for a step eps from theta, in radians."""
    u, v = from_angles(theta), from_angles(theta + eps)
    curve = from_angles(theta + torch.tensor(ALONG, dtype=f64)[:, None] * eps)
    ends = _drawn(torch.stack([u, v]).numpy())
    del ends["run"]
    gap = np.array([ends["x"][1] - ends["x"][0], ends["y"][1] - ends["y"][0]])
    far = np.hypot(*gap)
    away = np.array([0.0, 1.0]) if far < 1e-9 else gap / far
    by = np.array([-0.22, 0.22])
    return {
        "grid": _grid(),
        "path": {**_drawn(curve.numpy()), "order": range(97)},
        "arc": {**_drawn(_short_way(u, v)), "order": range(33)},
        "ends": {**ends, "name": NAMES, "name_x": ends["x"] + by * away[0], "name_y": ends["y"] + by * away[1]},
    }


def _twin() -> Twin:
    """What static/theorem.js needs of the constants here."""
    grid = plain({"grid": {c: np.asarray(v) for c, v in _grid().items()}})["grid"]
    orders = {"order": list(range(97)), "share_order": list(range(33))}
    lean = math.radians(LEAN)
    constant = {"shares": SHARES, "along": ALONG, "turns": TURNS, "names": NAMES, "grid": grid, **orders}
    return Twin("theorem.js", {"constant": constant, "cos": math.cos(lean), "sin": math.sin(lean)})


# ---- a prediction: half a turn of one angle -----------------------------------------------------------------------
TURNS = [float(k) for k in range(0, 361, 5)]


def half_turn(theta: float, eps: float) -> dict:
    """A unit of R^3 at theta = (theta, 0) whose second angle moves on by eps: the angle that it turns, and |eps|_M."""
    place, step = torch.tensor([[theta, 0.0], [0.0, eps]], dtype=f64).deg2rad()
    steps = torch.tensor([[0.0, q] for q in [*TURNS, eps]], dtype=f64).deg2rad()
    turned = geodesic(from_angles(place), from_angles(place + steps)).rad2deg().numpy()
    printed = metric_norm(place, steps).rad2deg().numpy()
    scene = _scene(place, step)
    arc = scene["arc"]
    return {
        **scene,
        "arc": {"short_x": arc["x"], "short_y": arc["y"], "z": arc["z"], "run": arc["run"], "order": arc["order"]},
        "curve": {"eps": TURNS, "angle": turned[:-1], "printed": printed[:-1]},
        "now": {"eps": [eps], "angle": turned[-1:], "printed": printed[-1:]},
        "angle": turned[-1],
        "printed": printed[-1],
    }


def half_turn_figure() -> Explorable:
    """Guess how far a unit turns when one of its angles makes half a turn."""
    degrees = alt.Axis(values=[0, 90, 180, 270, 360], labelExpr="datum.value + '°'")
    x = alt.X("eps:Q", title="step ε₂ of the second angle", scale=alt.Scale(domain=[0, 360]), axis=degrees)

    def y(column):
        return alt.Y(f"{column}:Q", title="angle turned", scale=alt.Scale(domain=[0, 360]), axis=degrees)

    curve, now = alt.Chart(alt.NamedData("curve")), alt.Chart(alt.NamedData("now"))
    lines = [
        curve.mark_line(color=concept("linear"), strokeDash=[2, 3]).encode(x=x, y=y("eps")),
        now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x),
        curve.mark_line(color=concept("metric"), strokeWidth=2.5, strokeDash=[7, 3]).encode(x=x, y=y("printed")),
        curve.mark_line(color=concept("ink"), strokeWidth=3).encode(x=x, y=y("angle")),
        now.mark_circle(size=110, color=concept("metric"), opacity=1).encode(x=x, y=y("printed")),
        now.mark_circle(size=130, color=concept("ink"), opacity=1).encode(x=x, y=y("angle")),
    ]
    globe = alt.layer(*_sphere(130, ("short_x", "short_y"))).properties(height=300, title="the unit's directions")
    return Explorable(
        half_turn,
        [alt.layer(*lines).properties(height=300, title="how far the unit turns"), globe],
        [
            Slider("theta", list(range(181)), 45, "place", "θ₁", "°", concept="ink"),
            Slider("eps", list(range(361)), 180, "step", "ε₂", "°", concept="gmp"),
        ],
        id="predict-half-turn",
        title="Predict first: half a turn of one angle",
        alt="Left: the angle that a unit of three weights turns, against the step of its second angle, from 0 to 360 degrees, with the diagonal for "
        "comparison. Right: the unit's direction on a sphere before and after the step, and the circle on which it moves.",
        caption="*Left*: the angle between the unit's old and new direction (black), and the metric norm $\\|\\varepsilon\\|_M$ that the theorem equates with it "
        "(dashed red); the dotted line is $\\|\\varepsilon\\|$ itself. *Right*: the direction moves along the green circle; the pole leans "
        "towards you. Type a guess or drag the dashed horizontal line, then reveal.",
        readout="θ = ({theta}°, 0°), ε = (0°, {eps}°): the unit turns by {angle:.1f}°; the metric norm is {printed:.1f}°.",
        presets={"A small step": {"eps": 20}, "A full turn": {"eps": 360}, "On the equator": {"theta": 90, "eps": 270}},
        predict=Predict(
            "A unit with three weights has the angles θ = (45°, 0°). Its second angle moves on by half a turn, ε = (0°, 180°). "
            "By how many degrees does the unit's direction turn?",
            "angle",
            ("angle", "printed", "short_x", "short_y"),
            "y",
            "°",
            ".3g",
            (0, 360),
        ),
        drag=(Drag(0, "eps", "x"),),
        twin=_twin(),
        code="ntklib.geodesic(ntklib.from_angles(theta), ntklib.from_angles(theta + eps))",
    )


# ---- the whole debate on one sphere -------------------------------------------------------------------------------
def turned_unit(theta1: float, theta2: float, eps1: float, eps2: float) -> dict:
    """A unit of R^3 at theta that steps by eps, all in degrees: the angle it turns, the length of t -> u(theta + t eps),
    |eps|_M at theta and |eps|, for the whole step and for each share of it."""
    theta, eps = torch.tensor([[theta1, theta2], [eps1, eps2]], dtype=f64).deg2rad()
    steps = torch.tensor(SHARES, dtype=f64)[:, None] * eps
    found = {
        "angle": geodesic(from_angles(theta), from_angles(theta + steps)),
        "length": curve_length(theta, steps),
        "metric": metric_norm(theta, steps),
        "norm": steps.norm(dim=1),
    }
    found = {name: x.rad2deg().numpy() for name, x in found.items()}
    whole = {name: x[-1] for name, x in found.items()}
    excess = math.radians(whole["angle"] - whole["metric"])
    return {
        **_scene(theta, eps),
        "curve": {"share": SHARES, **found},
        "last": {"share": [1.0], **{name: [x] for name, x in whole.items()}},
        **whole,
        "says": "as much as" if abs(excess) < 1e-3 else "more than" if excess > 0 else "less than",
    }


def turned_unit_figure() -> Explorable:
    """Four quantities of one step: two that are equal to first order only, one between, one that bounds them all."""
    legend = alt.Legend(title=None, orient="top", labelLimit=0, columns=2, symbolType="stroke", symbolSize=500, symbolStrokeWidth=3)
    scale = alt.Scale(domain=list(LEGEND), range=[concept(c) for c in LEGEND.values()])
    colour = alt.Color("what:N", scale=scale, legend=legend)
    dash = alt.StrokeDash("what:N", scale=alt.Scale(domain=list(DASH), range=list(DASH.values())), legend=legend)
    x = alt.X("share:Q", title="share of the step that is made", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(values=[0, 0.5, 1], labelExpr="['0', 'half', 'all'][2 * datum.value]"))
    y = alt.Y("degrees:Q", title=None, axis=alt.Axis(labelExpr="datum.value + '°'", tickCount=5))

    def four(table):
        return (
            alt.Chart(alt.NamedData(table))
            .transform_calculate(**{name: f"datum.{column}" for name, column in COLUMN.items()})
            .transform_fold(list(LEGEND), ["what", "degrees"])
        )

    lines = four("curve").mark_line(strokeWidth=3).encode(x=x, y=y, color=colour, strokeDash=dash)
    ends = four("last").mark_circle(size=110, opacity=1).encode(x=x, y=y, color=alt.Color("what:N", scale=scale, legend=None))
    controls = [
        Slider("theta1", list(range(181)), 15, "place", "θ₁", "°", concept="ink"),
        Slider("theta2", list(range(-180, 181)), -25, "place", "θ₂", "°", concept="ink"),
        Slider("eps1", list(range(-180, 181)), 60, "step", "ε₁", "°", concept="gmp"),
        Slider("eps2", list(range(-360, 361)), 90, "step", "ε₂", "°", concept="gmp"),
    ]
    return Explorable(
        turned_unit,
        [
            alt.layer(*_sphere()).properties(height=330, title="drag the unit, or the end of its step"),
            alt.layer(lines, ends).properties(height=330),
        ],
        controls,
        id="turned-unit",
        title="One step, four quantities",
        alt="Left: a sphere with the direction of a unit before and after a step in its two angles, the curve of the coordinates between them and the "
        "shorter great circle. Right: four quantities against the share of the step that is made. Two straight lines, the metric norm and "
        "the norm; and two curves that leave zero along the metric norm, the length and below it the angle.",
        caption="*Left*: drag either point, or use the sliders; the pole leans towards you. Green: the curve that the angles follow from $\\theta$ to "
        "$\\theta+\\varepsilon$. Black: the great circle, the shortest way. *Right*: for each share of the step, the angle turned, the length of "
        "the green curve, the metric norm $\\|\\varepsilon\\|_M$ at $\\theta$, and $\\|\\varepsilon\\|$. The two curves start along the dashed red line and leave it; which side do they take? "
        "Drag the end of the step to the pole and round it.",
        readout="The unit turns by {angle:.1f}°, {says} the metric norm of {metric:.1f}°. The curve is {length:.1f}° long; ‖ε‖ = {norm:.1f}°.",
        presets={
            "Away from the pole": {"theta1": 15, "theta2": -25, "eps1": 60, "eps2": 90},
            "Towards it": {"theta1": 70, "theta2": -40, "eps1": -60, "eps2": 90},
            "Along a meridian": {"theta1": 20, "theta2": 10, "eps1": 70, "eps2": 0},
            "Once round": {"theta1": 45, "theta2": 0, "eps1": 0, "eps2": 360},
            "A small step": {"theta1": 40, "theta2": -20, "eps1": 6, "eps2": 9},
        },
        drag=(Drag(0, ("theta1", "theta2"), "sphere"), Drag(0, ("eps1", "eps2"), "sphere", ("theta1", "theta2"))),
        twin=_twin(),
    )


# ---- how the two errors vanish ------------------------------------------------------------------------------------
SIZES = [2.0**k for k in range(-3, 8)]
FINE = [2.0 ** (k / 4) for k in range(-12, 29)]
PLACES = {
    "away": "away from the pole",
    "towards": "towards the pole",
    "parallel": "along a parallel",
    "ten": "ten weights, at random",
}


@cache
def _place_and_way(place: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A place theta and a unit vector of steps."""
    if place == "ten":
        generator = torch.Generator().manual_seed(3)
        theta, way = uniform_angles(1, 10, generator=generator)[0], torch.randn(9, dtype=f64, generator=generator)
    else:
        way = torch.tensor({"away": [1.0, 1.0], "towards": [-1.0, 1.0], "parallel": [0.0, 1.0]}[place], dtype=f64)
        theta = torch.tensor([math.pi / 3, 0.0], dtype=f64)
    return theta, way / way.norm()


@cache
def _errors(place: str) -> dict:
    theta, way = _place_and_way(place)
    steps = torch.tensor(FINE, dtype=f64).deg2rad()[:, None] * way
    angle = geodesic(from_angles(theta), from_angles(theta + steps)).rad2deg()
    norm, length = metric_norm(theta, steps).rad2deg(), curve_length(theta, steps, rtol=1e-14).rad2deg()
    return {"angle": angle.numpy(), "metric": (norm - angle).abs().numpy(), "length": (length - angle).numpy()}


def two_orders(place: str, size: float) -> dict:
    """By how much |eps|_M and the length of the curve miss the angle, for steps of |eps| = 1/8 to 128 degrees in one direction."""
    e, i = _errors(place), FINE.index(size)
    return {
        "curve": {"size": FINE, "metric": e["metric"], "length": e["length"]},
        "now": {"size": [size], "metric": [e["metric"][i]], "length": [e["length"][i]]},
        "angle": e["angle"][i],
        "metric": e["metric"][i],
        "length": e["length"][i],
    }


def two_orders_figure() -> Explorable:
    """The printed equality is off by a square of the step, the integral by a cube."""
    colour = series({"metric norm": "metric", "curve length": "gmp"}, columns=2)
    x = alt.X("size:Q", title="size ‖ε‖ of the step", scale=alt.Scale(type="log", base=2, domain=[0.125, 128]), axis=alt.Axis(values=[0.125, 0.5, 2, 8, 32, 128], labelExpr="datum.value + '°'"))
    y = alt.Y(
        "error:Q",
        title="distance from the angle turned",
        scale=alt.Scale(type="log", domain=[1e-9, 100], clamp=True),
        axis=alt.Axis(values=[10.0**k for k in range(-8, 3, 2)], labelExpr="['10⁻⁸', '10⁻⁶', '10⁻⁴', '10⁻²', '1', '100'][round(log(datum.value) / log(10)) / 2 + 4] + '°'"),
    )

    def both(table):
        return (
            alt.Chart(alt.NamedData(table))
            .transform_calculate(**{"metric norm": "datum.metric", "curve length": "datum.length"})
            .transform_fold(["metric norm", "curve length"], ["what", "error"])
        )

    lines = both("curve").mark_line(strokeWidth=3).encode(x=x, y=y, color=colour)
    here = both("now").mark_circle(size=120, opacity=1).encode(x=x, y=y, color=colour)
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    return Explorable(
        two_orders,
        alt.layer(rule, lines, here).properties(height=300),
        [
            Choice("place", PLACES, "away", "step", concept="ink"),
            Slider("size", SIZES, 8, "size", "‖ε‖", "°", concept="ink"),
        ],
        id="two-orders",
        title="Halve the step: one error falls to a quarter, the other to an eighth",
        alt="Two straight lines in double logarithmic axes: how far the metric norm and the length of the curve are from the angle turned, against "
        "the size of the step. The line of the metric norm lies higher and has slope 2, the other one slope 3.",
        caption="How far $\\|\\varepsilon\\|_M$ (red) and the length of the curve (green) are from the angle turned. Both axes are logarithmic, so a slope "
        "is a power: 2 for the printed equality, 3 for the integral. Along a parallel the metric does not change: the square has the factor 0, "
        "the norm is the length, and the two lines are one. Units of three weights start at $\\theta_1=60^\\circ$.",
        readout="‖ε‖ = {size}°: the unit turns by {angle:.4g}°. The metric norm is off by {metric:.2g}°, the length of the curve by {length:.2g}°.",
        presets={
            "A training step": {"place": "away", "size": 0.5},
            "A large step": {"place": "away", "size": 64},
            "Along a parallel": {"place": "parallel"},
            "Ten weights": {"place": "ten"},
        },
        drag=(Drag(0, "size", "x"),),
    )


# ---- random steps -------------------------------------------------------------------------------------------------
STEPS = [2, 5, 10, 20, 45, 90, 135, 180, 360]
WEIGHTS = [2, 3, 4, 8, 30, 200]
COUNT = 200


@cache
def _cloud(weights: int, size: float) -> dict:
    generator = torch.Generator().manual_seed(weights)
    theta = uniform_angles(COUNT, weights, generator=generator)
    eps = torch.randn(COUNT, weights - 1, dtype=f64, generator=generator)
    eps = math.radians(size) * eps / eps.norm(dim=1, keepdim=True)
    turned = geodesic(from_angles(theta), from_angles(theta + eps))
    return {"angle": (turned / math.radians(size)).numpy(), "metric": (metric_norm(theta, eps) / math.radians(size)).numpy()}


def random_steps(weights: int, size: float) -> dict:
    """200 random units of `weights` weights, each with a random step |eps| = `size` degrees: the angle turned and |eps|_M, both
    divided by |eps|. Drawn positions are rounded to 1/512, the counts are not."""
    cloud = _cloud(weights, size)
    excess = cloud["angle"] / cloud["metric"] - 1
    return {
        "dots": {name: np.round(512 * x) / 512 for name, x in cloud.items()},
        "lines": {"at": [0.0, 1.0], "one": [1.0, 1.0]},
        "above": float((excess > 0.01).mean()),
        "below": float((excess < -0.01).mean()),
        "largest": cloud["angle"].max(),
    }


def random_steps_figure() -> Explorable:
    """The printed equality is a diagonal that the dots leave, the bound a ceiling that they do not."""
    shared = {"scale": alt.Scale(domain=[0, 1.1]), "axis": alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f")}

    def on(chart, x, y):
        return chart.encode(x=alt.X(f"{x}:Q", title="metric norm / ‖ε‖", **shared), y=alt.Y(f"{y}:Q", title="angle turned / ‖ε‖", **shared))

    lines = alt.Chart(alt.NamedData("lines"))
    equal = on(lines.mark_line(color=concept("metric"), strokeWidth=2.5, strokeDash=[7, 3]), "at", "at")
    bound = on(lines.mark_line(color=concept("linear"), strokeWidth=2.5, strokeDash=[2, 3]), "at", "one")
    dots = on(alt.Chart(alt.NamedData("dots")).mark_circle(size=34, opacity=0.75, color=concept("ink")), "metric", "angle")
    words = [
        on(alt.Chart(alt.Data(values=[{"at": at, "up": up, "what": what}])).mark_text(align="left", color=concept(colour)), "at", "up").encode(text="what:N")
        for at, up, what, colour in ((0.02, 1.05, "the bound: angle = ‖ε‖", "linear"), (0.13, 0.06, "printed as equal", "metric"))
    ]
    return Explorable(
        random_steps,
        alt.layer(equal, bound, dots, *words).properties(height=360),
        [
            Choice("weights", {n: f"{n} weights" for n in WEIGHTS}, 4, "unit", "n", concept="ink"),
            Slider("size", STEPS, 90, "size", "‖ε‖", "°", concept="ink"),
        ],
        id="random-steps",
        title="200 random steps: the equality fails on both sides, the bound never",
        alt="A scatter of 200 steps: the metric norm across, the angle turned upwards, both divided by the norm of the step. The dots scatter on "
        "both sides of the dashed diagonal and stay below the dotted horizontal line at 1.",
        caption="Each dot is a unit with a random direction and a random step of one size in its $n-1$ angles. On the dashed red diagonal "
        "the equality holds; the dotted line is the bound. Small steps lie on the diagonal, large ones leave it on both sides, and no dot passes the ceiling. "
        "A unit of two weights is one dot: there the equality is exact up to 180°.",
        readout="{weights} weights, ‖ε‖ = {size}°: {above:.0%} of the steps turn the unit by at least 1% more than the metric norm, {below:.0%} by at least 1% less. "
        "The largest turn is {largest:.3f} ‖ε‖.",
        presets={
            "Small steps": {"weights": 4, "size": 2},
            "Large steps": {"weights": 4, "size": 180},
            "Two weights": {"weights": 2, "size": 90},
            "Two hundred": {"weights": 200, "size": 90},
        },
    )


EXPLORABLES = {
    "predict-half-turn": half_turn_figure,
    "turned-unit": turned_unit_figure,
    "two-orders": two_orders_figure,
    "random-steps": random_steps_figure,
}
