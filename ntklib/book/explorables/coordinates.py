"""Chapter "Hyperspherical coordinates": a direction by its angles, the way back, and how to draw one at random."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import LEAN, concept, plane, series
from ntklib.sphere import from_angles, to_angles, uniform_angles

f64 = torch.float64
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`


def _at(name: str) -> dict:
    """The pixel columns NAME_x and NAME_y of `plane`, as encodings."""
    return {"x": alt.X(f"{name}_x:Q", **RAW), "y": alt.Y(f"{name}_y:Q", **RAW)}


def _to(name: str) -> dict:
    return {"x2": f"{name}_x:Q", "y2": f"{name}_y:Q"}


def generator(seed: int) -> torch.Generator:
    """A generator of its own."""
    return torch.Generator().manual_seed(seed)


def flat_angles(n: int, dim: int, *, generator: torch.Generator) -> torch.Tensor:
    """Every angle uniform on its range: the wrong way to draw n directions of R^dim."""
    theta = math.pi * torch.rand(n, dim - 1, generator=generator, dtype=f64)
    theta[:, -1] *= 2
    return theta


# ---- a prediction: angles drawn uniformly ------------------------------------------------------------------------
SIDE = 10
WEIGHTS = SIDE * SIDE
FIRST = [1, 2, 3, 4, 5, 7, 10, 20, 30, 50, 70, 90, 100]


@cache
def _unit(law: str, draw: int) -> np.ndarray:
    draws = flat_angles if law == "flat" else uniform_angles
    return from_angles(draws(1, WEIGHTS, generator=generator(draw)))[0].numpy()


def flat_share(law: str, first: int, draw: int) -> dict:
    """A unit with 100 weights whose angles are drawn by `law`: the percentage of |u|^2 = 1 that the first coordinates hold, on
    average and in one draw, and the weights of that draw as a picture of 10 x 10 pixels, relative to the largest."""
    u = _unit(law, draw)
    count = np.arange(WEIGHTS + 1)
    mean = 100 * count / WEIGHTS if law == "uniform" else 100 * np.where(count < WEIGHTS, 1 - 0.5**count, 1.0)
    found = 100 * np.concatenate([[0.0], (u * u).cumsum()])
    relative = np.round(64 * u / np.abs(u).max()) / 64
    return {
        "curve": {"count": count, "share": mean, "found": np.round(found, 2), "fair": 100 * count / WEIGHTS},
        "now": {"count": [first], "share": [mean[first]]},
        "pixels": {
            "column": np.tile(np.arange(SIDE), SIDE),
            "row": np.repeat(np.arange(SIDE), SIDE),
            "v": relative,
        },
        "share": mean[first],
        "found": found[first],
        "fair": 100 * first / WEIGHTS,
    }


def flat_share_figure() -> Explorable:
    """Guess what uniform angles do to a direction with 100 coordinates."""
    names = {"average": "ink", "this draw": "measured", "fair share": "gmp"}
    x = alt.X("count:Q", title="weights counted from the first", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y(
        "value:Q",
        title="share of the squared length",
        scale=alt.Scale(domain=[0, 100]),
        axis=alt.Axis(labelExpr="datum.value + ' %'", values=[0, 25, 50, 75, 100]),
    )
    colour = series(names, "name:N", columns=2)

    def line(name, column, **mark):
        return (
            alt.Chart(alt.NamedData("curve"))
            .transform_calculate(name=f"'{name}'", value=f"datum.{column}")
            .mark_line(**mark)
            .encode(x=x, y=y, color=colour)
        )

    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    point = now.transform_calculate(value="datum.share").mark_circle(size=130, opacity=1, color=concept("ink")).encode(x=x, y=y)
    left = alt.layer(
        rule,
        line("fair share", "fair", strokeWidth=2.5, strokeDash=[6, 4]),
        line("average", "share", strokeWidth=3.5),
        line("this draw", "found", strokeWidth=2),
        point,
    ).properties(height=300, title="all 100 weights")

    cell = "(min(width, height) / 10.6)"
    pixels = alt.Chart(alt.NamedData("pixels")).transform_calculate(
        px=f"width / 2 + {cell} * (datum.column - 4.5)",
        py=f"height / 2 + {cell} * (datum.row - 4.5)",
        frame=f"pow({cell} - 1, 2)",
        area=f"pow({cell} * 0.9 * datum.v, 2)",
    )
    place = {"x": alt.X("px:Q", **RAW), "y": alt.Y("py:Q", **RAW)}
    frames = pixels.mark_point(shape="square", strokeWidth=1, color=concept("faint"), opacity=1).encode(
        **place, size=alt.Size("frame:Q", scale=None)
    )
    more = pixels.transform_filter("datum.v > 0").mark_point(
        shape="square", filled=True, opacity=1, color=concept("ink")
    ).encode(**place, size=alt.Size("area:Q", scale=None))
    less = pixels.transform_filter("datum.v < 0").mark_point(
        shape="square", filled=False, opacity=1, strokeWidth=1.6, color=concept("ink")
    ).encode(**place, size=alt.Size("area:Q", scale=None))
    right = alt.layer(frames, more, less).properties(height=300, title="one unit, as a picture of 10 × 10 weights")
    return Explorable(
        flat_share,
        [left, right],
        [
            Choice("law", {"flat": "angles uniform", "uniform": "direction uniform"}, "flat", "law"),
            Slider("draw", [1, 2, 3, 4], 1, "random draw", concept="measured"),
            Slider("first", FIRST, 5, "weights counted"),
        ],
        id="predict-flat-angles",
        title="Predict first: draw every angle uniformly",
        alt="Left: the share of the squared length that the first weights hold, against their number, with the straight line of a fair share. "
        "Right: the 100 weights of one unit as squares on a grid, their areas the squared weights.",
        caption="*Left*: on average over many units (black), in the unit on the right (purple), and in equal shares (dashed). "
        "*Right*: its weights in the order of the coordinates, row by row. The area of a square is the squared weight, relative to the largest; "
        "hollow squares are negative. Type a guess or drag the dashed line, then reveal.",
        readout="Weights 1 to {first} of 100 hold {share:.1f} % of the squared length on average, {found:.1f} % in this draw. "
        "A fair share is {fair} %.",
        presets={
            "One weight": {"first": 1},
            "Every angle uniform": {"law": "flat", "first": 10},
            "Uniform on the sphere": {"law": "uniform", "first": 10},
        },
        predict=Predict(
            "The direction of a unit with 100 weights is given by 99 angles. Draw every angle uniformly from its range. Which percentage of the "
            "squared length do the first 5 of the 100 weights then hold, on average?",
            "share",
            ("share", "found", "v"),
            "y",
            "%",
            ".3g",
            (0, 100),
        ),
        code="ntklib.symbolic.coordinates.flat_square(100, {first})",
    )


# ---- over the pole -----------------------------------------------------------------------------------------------
TILT = math.radians(LEAN)  # the eye stands this far above the equator, over theta_2 = 90 degrees: the walk passes in front
MISS = [0, 1, 2, 5, 10, 20, 30, 60, 90]
ALONG = list(range(-90, 91, 3))
TRACK = np.linspace(-90, 90, 181)


def walk_past_the_pole(miss: float, along) -> np.ndarray:
    """Directions of R^3 on the great circle that passes `miss` degrees from the pole, `along` degrees after that point. It
    comes from theta_2 = 0 and leaves towards theta_2 = 180 degrees."""
    d, s = math.radians(miss), np.radians(np.asarray(along, dtype=float))
    return np.stack([math.cos(d) * np.cos(s), -np.sin(s), math.sin(d) * np.cos(s)], -1)


@cache
def _track(miss: float) -> dict:
    theta = to_angles(torch.from_numpy(walk_past_the_pole(miss, TRACK)))[1].rad2deg().numpy()
    theta[(TRACK == 0) & (miss == 0), 1] = np.nan  # there it is free
    return {"s": TRACK, "theta1": np.round(theta[:, 0], 2), "theta2": np.round(theta[:, 1], 2)}


def over_the_pole(miss: float, along: float) -> dict:
    """A direction that walks over the sphere of R^3 at unit speed past the pole, its angles, and how fast theta_2 turns."""
    u = walk_past_the_pole(miss, along)
    theta = to_angles(torch.from_numpy(u))[1].rad2deg()
    free = miss == 0 and along == 0
    t1, t2 = theta.tolist()
    squared = u[1] ** 2 + u[2] ** 2
    rate = math.inf if free else math.sin(math.radians(miss)) / squared
    return {
        "track": _track(miss),
        "now": {"s": [along], "theta1": [t1], "theta2": [math.nan if free else t2], "miss": [miss]},
        "theta1": t1,
        "theta2": "free" if free else f"{t2:.0f}°",
        "rate": rate,
    }


def _globe(c1: str, c2: str, c3: str) -> dict:
    """Screen position and depth of the point (c1, c2, c3) of the sphere, as Vega expressions: c1 is the polar axis, the eye
    stands over theta_2 = 90 degrees."""
    e, f = round(math.sin(TILT), 6), round(math.cos(TILT), 6)
    return {"x": f"-({c2})", "y": f"({c1}) * {f} - ({c3}) * {e}", "depth": f"({c1}) * {e} + ({c3}) * {f}"}


def _spherical(t1: str, t2: str) -> tuple[str, str, str]:
    r = math.pi / 180
    return f"cos({r} * ({t1}))", f"sin({r} * ({t1})) * cos({r} * ({t2}))", f"sin({r} * ({t1})) * sin({r} * ({t2}))"


def _curve(chart, t1: str, t2: str, **mark):
    """A curve on the near half of the globe: theta_1 and theta_2 in degrees, as expressions of the rows' parameter t."""
    p = _globe(*_spherical(t1, t2))
    near = chart.transform_calculate(depth=p["depth"]).transform_filter("datum.depth > -0.02")
    return plane(near, 1.08, at={"x": p["x"], "y": p["y"]}).mark_line(**mark).encode(**_at("at"), order="t:Q")


def over_the_pole_figure() -> Explorable:
    """The direction moves evenly, its last angle does not."""
    # twelve meridians and five parallels, each a curve in t; the other angle stands still
    grid = (
        alt.Chart(alt.sequence(0, 17, as_="line"))
        .transform_calculate(still="datum.line < 12 ? 30 * datum.line : 30 * (datum.line - 11)", t="datum.line < 12 ? sequence(0, 181, 10) : sequence(-90, 271, 10)")
        .transform_flatten(["t"])
    )
    lines = _curve(grid, "datum.line < 12 ? datum.t : datum.still", "datum.line < 12 ? datum.still : datum.t", strokeWidth=1, color=concept("faint"))
    lines = lines.encode(detail="line:N")
    limb = (
        plane(alt.Chart(alt.sequence(0, 361, 6, as_="t")), 1.08,
              at={"x": f"cos({math.pi / 180} * datum.t)", "y": f"sin({math.pi / 180} * datum.t)"})
        .mark_line(color=concept("linear"), strokeWidth=1.3)
        .encode(**_at("at"), order="t:Q")
    )
    p = _globe(*_spherical("90", "datum.b"))
    labels = (
        plane(alt.Chart(alt.sequence(30, 151, 30, as_="b")).transform_calculate(name="datum.b + '°'"), 1.08, at={"x": f"({p['x']})", "y": f"{p['y']} - 0.075"})
        .mark_text(fontSize=12, color=concept("linear"))
        .encode(**_at("at"), text="name:N")
    )
    now = alt.Chart(alt.NamedData("now"))

    def swept(expression):
        return now.transform_calculate(t=expression).transform_flatten(["t"])

    r = math.pi / 180
    way = _globe(f"cos({r} * datum.miss) * cos({r} * datum.t)", f"-sin({r} * datum.t)", f"sin({r} * datum.miss) * cos({r} * datum.t)")
    path = (
        plane(swept("sequence(-90, 91, 3)"), 1.08, at={"x": way["x"], "y": way["y"]})
        .mark_line(color=concept("ink"), strokeWidth=2, strokeDash=[4, 3])
        .encode(**_at("at"), order="t:Q")
    )
    hand = _curve(swept("sequence(0, 91, 6)").transform_filter("isValid(datum.theta2)"), "datum.t", "datum.theta2", color=concept("gmp"), strokeWidth=3)
    ring = _curve(swept("sequence(-90, 271, 6)"), "datum.theta1", "datum.t", color=concept("sp"), strokeWidth=2)
    here = _globe(f"cos({r} * datum.miss) * cos({r} * datum.s)", f"-sin({r} * datum.s)", f"sin({r} * datum.miss) * cos({r} * datum.s)")
    pole = plane(alt.Chart(alt.sequence(0, 1, as_="one")), 1.08, at={"x": "0", "y": str(round(math.cos(TILT), 6))})
    top = pole.mark_point(shape="cross", size=70, filled=True, color=concept("ink"), opacity=1).encode(**_at("at"))
    dot = (
        plane(now, 1.08, at={"x": here["x"], "y": here["y"]})
        .mark_circle(size=190, opacity=1, color=concept("ink"))
        .encode(**_at("at"))
    )
    left = alt.layer(lines, limb, labels, ring, path, hand, top, dot).properties(height=330, title="the direction u, on the sphere")

    names = {"θ₁": ("theta1", "sp"), "θ₂": ("theta2", "gmp")}
    x = alt.X("s:Q", title="way gone (degrees of arc)", scale=alt.Scale(domain=[-90, 90]), axis=alt.Axis(values=[-90, -45, 0, 45, 90]))
    y = alt.Y(
        "value:Q", title="angle", scale=alt.Scale(domain=[0, 180]),
        axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'"),
    )
    colour = series({k: c for k, (_, c) in names.items()}, "what:N", columns=2)

    def folded(data):
        return (
            alt.Chart(alt.NamedData(data))
            .transform_calculate(**{k: f"datum.{c}" for k, (c, _) in names.items()})
            .transform_fold(list(names), ["what", "value"])
        )

    curves = folded("track").mark_line(strokeWidth=3).encode(x=x, y=y, color=colour)
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    points = folded("now").transform_filter("isValid(datum.value)").mark_circle(size=130, opacity=1).encode(x=x, y=y, color=colour)
    right = alt.layer(rule, curves, points).properties(height=330, title="its two angles, on the way")
    return Explorable(
        over_the_pole,
        [left, right],
        [
            Slider("miss", MISS, 5, "distance from the pole", "δ", "°"),
            Slider("along", ALONG, 0, "way gone", "s", "°"),
        ],
        id="over-the-pole",
        title="A steady walk past the pole: the last angle spins",
        alt="Left: a globe with its pole, meridians and parallels, and a walk that passes close to the pole. Right: both angles along the walk: "
        "theta 1 falls and rises again, theta 2 stays near 0, leaps to near 180 degrees at the pole, and stays there.",
        caption="*Left*: the dot walks along the dashed great circle at an even pace. Its parallel (brown) is $\\theta_1$, its meridian (green) "
        "$\\theta_2$; numbers on the equator are values of $\\theta_2$, the cross is the pole $\\theta_1=0$. *Right*: the same two angles on the way. "
        "Drag there, or move $s$, and watch the green hand.",
        readout="{along}° from the nearest point: θ₁ = {theta1:.0f}°, θ₂ = {theta2}. One degree of way turns θ₂ by {rate:.3g}°.",
        presets={
            "Far from the pole": {"miss": 60},
            "Close": {"miss": 1},
            "Through the pole": {"miss": 0, "along": 0},
        },
        drag=(Drag(1, "along", "x"),),
        code="ntklib.sphere.to_angles(u)",
    )


# ---- the law of one angle ----------------------------------------------------------------------------------------
BEHIND = [2, 3, 5, 10, 20, 50, 100, 200, 500, 783, 1000]
GRID = np.linspace(0, 180, 181)
BINS = np.arange(0, 181, 4)


@cache
def density(behind: int) -> np.ndarray:
    """The exact density per degree on GRID of an angle with `behind` coordinates behind it. (symbolic.sphere.density has it too,
    but its gamma functions overflow a float at 1000.)"""
    log = math.lgamma((behind + 1) / 2) - math.lgamma(behind / 2) - math.log(math.pi) / 2
    return np.radians(1) * math.exp(log) * np.sin(np.radians(GRID)) ** (behind - 1)


@cache
def _draws(behind: int) -> np.ndarray:
    return uniform_angles(2000, behind + 1, generator=generator(behind))[:, 0].rad2deg().numpy()


@cache
def reach(behind: int) -> float:
    """Half the width, in degrees about 90, of the middle 95 % of such an angle: the integral by 400 Gauss-Legendre nodes, then
    bisection."""
    node, weight = np.polynomial.legendre.leggauss(400)
    scale = math.exp(math.lgamma((behind + 1) / 2) - math.lgamma(behind / 2)) / math.sqrt(math.pi)

    def inside(half):
        return scale * half * (weight * np.cos(half * node) ** (behind - 1)).sum()

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < 0.95 else (low, middle)
    return math.degrees(low)


@cache
def _spread() -> dict:
    half = np.array([reach(m) for m in BEHIND])
    return {"behind": BEHIND, "low": 90 - half, "high": 90 + half}


def angle_laws(behind: int) -> dict:
    """The law of an angle of a uniform direction with `behind` coordinates behind it (behind = n - i for theta_i), against a
    flat law; 2000 draws of the library; and the middle 95 % for every such number."""
    d, draws = density(behind), _draws(behind)
    counts = np.histogram(draws, BINS)[0] / len(draws) / 4
    half = reach(behind)
    return {
        "law": {"theta": GRID, "exact": d, "flat": np.full(len(GRID), 1 / 180)},
        "bars": {"low": BINS[:-1] + 0.3, "high": BINS[1:] - 0.3, "height": counts},
        "spread": _spread(),
        "now": {"behind": [behind], "low": [90 - half], "high": [90 + half]},
        "low": 90 - half,
        "high": 90 + half,
        "found": float((np.abs(draws - 90) < half).mean()),
    }


def angle_laws_figure() -> Explorable:
    """Most angles of a uniform direction are near 90 degrees."""
    m = alt.X(
        "behind:Q", title="coordinates behind it, m",
        scale=alt.Scale(type="log", domain=[2, 1000]), axis=alt.Axis(values=[2, 5, 10, 20, 50, 100, 500], format="d"),
    )
    degrees = {"scale": alt.Scale(domain=[0, 180]), "axis": alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'")}
    spread = alt.Chart(alt.NamedData("spread"))
    band = spread.mark_area(opacity=0.3, color=concept("gmp")).encode(x=m, y=alt.Y("low:Q", title="middle 95 % of the angle", **degrees), y2="high:Q")
    now = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("gmp"), strokeWidth=4).encode(x=m, y=alt.Y("low:Q", **degrees), y2="high:Q")
    left = alt.layer(band, now).properties(height=290, title="every angle")

    x = alt.X("theta:Q", title="angle θ", **degrees)
    names = {"uniform direction": "gmp", "uniform angle": "ink", "2000 draws": "measured"}
    colour = series(names, "what:N", columns=1)
    y = alt.Y("value:Q", title="density (per degree)", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4))
    law = alt.Chart(alt.NamedData("law"))
    curve = law.transform_calculate(what="'uniform direction'", value="datum.exact").mark_line(strokeWidth=3).encode(x=x, y=y, color=colour)
    flat = law.transform_calculate(what="'uniform angle'", value="datum.flat").mark_line(strokeWidth=2.5, strokeDash=[6, 4]).encode(x=x, y=y, color=colour)
    bars = (
        alt.Chart(alt.NamedData("bars"))
        .transform_calculate(what="'2000 draws'")
        .mark_rect(opacity=0.4)
        .encode(x=alt.X("low:Q", title="angle θ", **degrees), x2="high:Q", y=alt.Y("height:Q", title="density (per degree)"), y2=alt.datum(0), color=colour)
    )
    right = alt.layer(bars, flat, curve).properties(height=290, title="its density, for this m")
    return Explorable(
        angle_laws,
        [left, right],
        [Slider("behind", BEHIND, 100, "coordinates behind", "m", concept="gmp")],
        id="angle-laws",
        title="In many dimensions almost every angle is almost a right angle",
        alt="Left: the range of an angle of a uniform direction narrows around 90 degrees as the number of coordinates behind it grows. Right: its density, "
        "a narrow peak at 90 degrees, with a histogram of draws and the flat density of an angle that is drawn uniformly.",
        caption="*Left*: the middle 95 % of the angle $\\theta_i$ of a uniform direction, by the number $m=n-i$ of coordinates that follow it; drag the bar. "
        "*Right*: the density of that angle, $\\propto\\sin^{m-1}\\theta$, with draws of `uniform_angles`; dashed is an angle drawn uniformly.",
        readout="With {behind} coordinates behind it, 95 % of the angles lie between {low:.1f}° and {high:.1f}° ({found:.1%} of these 2000). "
        "Drawn uniformly, 95 % would lie between 4.5° and 175.5°.",
        presets={"A sphere in space": {"behind": 2}, "Eleven inputs": {"behind": 10}, "A 28 × 28 image": {"behind": 783}},
        drag=(Drag(0, "behind", "x"),),
        code="ntklib.sphere.uniform_angles(2000, {behind} + 1, generator=g)[:, 0]",
    )


# ---- what Glorot-uniform weights draw ----------------------------------------------------------------------------
DIRECTIONS = list(range(0, 360, 5))
AROUND = np.arange(0, 361, 3)
DOTS = 220


def released_angle(w: torch.Tensor) -> torch.Tensor:
    """The last angle as the released code converts it: 2 arccot((w_{n-1} + r) / sqrt(w_n^2)), r = |(w_{n-1}, w_n)|. The square
    root is never negative, so that the angle never exceeds pi."""
    x, size = w[..., -2], w[..., -1].square().sqrt()
    return 2 * (math.pi / 2 - torch.atan2(x + torch.hypot(x, size), size))


def glorot_area(theta) -> np.ndarray:
    """The share of the square [-1, 1]^2 in the sector from 0 to theta radians, by triangles: 1/8 of tan in each octant."""
    t = np.asarray(theta, dtype=float)
    octant = np.floor(t / (math.pi / 4) + 1e-12)
    rest = t - octant * math.pi / 4
    part = np.where(octant % 2 == 0, np.tan(rest), 1 - np.tan(math.pi / 4 - rest))
    return (octant + part) / 8


def relative_density(law: str, theta) -> np.ndarray:
    """How many times as likely as in a uniform law a direction at theta radians of the plane is."""
    t = np.mod(np.asarray(theta, dtype=float), 2 * math.pi)
    if law == "uniform":
        return np.ones_like(t)
    square = math.pi / 4 / np.maximum(np.cos(t) ** 2, np.sin(t) ** 2)
    return square if law == "glorot" else np.where(t <= math.pi, 2 * square, 0.0)


def active_share(law: str, theta) -> np.ndarray:
    """The share of units u with u.x > 0 for an input in the direction theta radians of the plane, no offset."""
    t = np.mod(np.asarray(theta, dtype=float), 2 * math.pi)
    if law != "code":
        return np.full_like(t, 0.5)
    low, high = np.maximum(0, t - math.pi / 2), np.minimum(math.pi, t + math.pi / 2)
    one = np.maximum(0, glorot_area(high) - glorot_area(np.minimum(low, high)))
    wrapped = np.maximum(0, glorot_area(np.maximum(0, t - 1.5 * math.pi)))  # directions after a full turn
    return 2 * (one + wrapped)


def edge(law: str, theta) -> np.ndarray:
    """Distance from the origin to the outline whose area shows the law: a square, its upper half, or a disc of equal area."""
    t = np.asarray(theta, dtype=float)
    if law == "uniform":
        return np.full_like(t, 2 / math.sqrt(math.pi))
    square = 1 / np.maximum(np.abs(np.cos(t)), np.abs(np.sin(t)))
    return square if law == "glorot" else np.where(np.sin(t) >= -1e-12, square, 0.0)


@cache
def _dots(law: str) -> dict:
    w = 2 * torch.rand(DOTS, 2, generator=generator(0), dtype=f64) - 1
    before = w.clone()
    if law == "uniform":  # the same number of dots an area, in a disc
        angle, r = math.pi * (w[:, 0] + 1), (0.5 * (w[:, 1] + 1)).sqrt() * 2 / math.sqrt(math.pi)
        w = before = torch.stack([r * angle.cos(), r * angle.sin()], -1)
    if law == "code":
        theta = released_angle(w)
        w = w.norm(dim=-1, keepdim=True) * torch.stack([theta.cos(), theta.sin()], -1)
    moved = (w - before).norm(dim=-1) > 1e-9
    ghost = torch.where(moved[:, None], before, torch.nan)
    columns = {"x": w[:, 0], "y": w[:, 1], "from_x": ghost[:, 0], "from_y": ghost[:, 1]}
    return {k: np.round(v.numpy() * 256) / 256 for k, v in columns.items()}


@cache
def _around(law: str) -> dict:
    t = np.radians(AROUND)
    r = edge(law, t)
    return {
        "theta": AROUND,
        "density": np.round(relative_density(law, t), 4),
        "active": np.round(100 * active_share(law, t), 3),
        "x": np.round(r * np.cos(t), 4),
        "y": np.round(r * np.sin(t), 4),
    }


@cache
def _measured(law: str) -> dict:
    """20 000 weights, through the conversion: the number of directions in sectors of 20 degrees, relative to a uniform law."""
    w = torch.randn(20_000, 2, generator=generator(1), dtype=f64)
    if law != "uniform":
        w = 2 * torch.rand(20_000, 2, generator=generator(1), dtype=f64) - 1
    theta = released_angle(w) if law == "code" else to_angles(w)[1][:, 0]
    counts = np.histogram(theta.rad2deg().numpy(), np.arange(0, 361, 20))[0]
    return {"theta": np.arange(10, 360, 20), "density": counts / 20_000 * 18}


def glorot_directions(law: str, theta: float) -> dict:
    """Where the last two weights of a unit point: as the released code starts, as Glorot-uniform weights point, or uniformly."""
    t = math.radians(theta)
    sides = np.radians(theta + np.linspace(-10, 10, 5))
    r = edge(law, sides)
    wedge_x, wedge_y = (np.concatenate([[0.0], r * f(sides), [0.0]]) for f in (np.cos, np.sin))
    times, active = relative_density(law, t).item(), 100 * active_share(law, t).item()
    return {
        "dots": _dots(law),
        "around": _around(law),
        "sectors": _measured(law),
        "wedge": {"x": wedge_x, "y": wedge_y, "order": np.arange(7)},
        "now": {"theta": [theta], "density": [times], "active": [active]},
        "times": times,
        "active": active,
        "silent": 100 - active,
    }


def glorot_directions_figure() -> Explorable:
    """Neither the cube nor the lost sign is uniform, and the lost sign shows."""
    brown = concept("sp")
    dots = plane(alt.Chart(alt.NamedData("dots")), 1.5, at={"x": "datum.x", "y": "datum.y"}, old={"x": "datum.from_x", "y": "datum.from_y"})
    ghosts = dots.transform_filter("isValid(datum.from_x)").mark_point(size=14, strokeWidth=1.1, opacity=1, color=concept("linear")).encode(**_at("old"))
    points = dots.mark_circle(size=20, opacity=1, color=brown).encode(**_at("at"))
    outline = (
        plane(alt.Chart(alt.NamedData("around")), 1.5, at={"x": "datum.x", "y": "datum.y"})
        .mark_line(color=concept("ink"), strokeWidth=1.5)
        .encode(**_at("at"), order="theta:Q")
    )
    wedge = (
        plane(alt.Chart(alt.NamedData("wedge")), 1.5, at={"x": "datum.x", "y": "datum.y"})
        .mark_line(interpolate="linear-closed", color=concept("measured"), strokeWidth=2.5)
        .encode(**_at("at"), order="order:Q")
    )
    r = math.pi / 180
    ray = (
        plane(alt.Chart(alt.NamedData("now")), 1.5, zero={"x": "0", "y": "0"},
              at={"x": f"1.43 * cos({r} * datum.theta)", "y": f"1.43 * sin({r} * datum.theta)"})
        .mark_rule(color=concept("measured"), strokeWidth=2, strokeDash=[4, 3])
        .encode(**_at("zero"), **_to("at"))
    )
    left = alt.layer(outline, ghosts, points, wedge, ray).properties(height=290, title="the last two weights of a unit")

    turn = {"scale": alt.Scale(domain=[0, 360]), "axis": alt.Axis(values=[0, 90, 180, 270, 360], labelExpr="datum.value + '°'")}
    x = alt.X("theta:Q", title="direction of the unit", **turn)
    y = alt.Y("density:Q", title="units, relative to uniform", scale=alt.Scale(domain=[0, 3.5]), axis=alt.Axis(values=[0, 1, 2, 3]))
    around, now = alt.Chart(alt.NamedData("around")), alt.Chart(alt.NamedData("now"))
    fair = around.mark_line(color=concept("gmp"), strokeWidth=2.5, strokeDash=[6, 4]).encode(x=x, y=alt.Y("one:Q", title="units, relative to uniform")).transform_calculate(one="1")
    curve = around.mark_line(color=brown, strokeWidth=3).encode(x=x, y=y)
    sectors = alt.Chart(alt.NamedData("sectors")).mark_point(shape="diamond", size=45, filled=True, opacity=1, color=concept("measured")).encode(x=x, y=y)
    rule = now.mark_rule(color=concept("measured"), strokeWidth=2, strokeDash=[4, 3]).encode(x=x)
    point = now.mark_circle(size=130, opacity=1, color=brown).encode(x=x, y=y)
    middle = alt.layer(rule, fair, curve, sectors, point).properties(height=290, title="where units point")

    z = alt.Y(
        "active:Q", title="units that answer it", scale=alt.Scale(domain=[0, 100]),
        axis=alt.Axis(values=[0, 25, 50, 75, 100], labelExpr="datum.value + ' %'"),
    )
    x3 = alt.X("theta:Q", title="direction of the input", **turn)
    half = around.mark_line(color=concept("gmp"), strokeWidth=2.5, strokeDash=[6, 4]).encode(x=x3, y=alt.Y("half:Q", title="units that answer it")).transform_calculate(half="50")
    share = around.mark_line(color=brown, strokeWidth=3).encode(x=x3, y=z)
    third = alt.layer(
        now.mark_rule(color=concept("measured"), strokeWidth=2, strokeDash=[4, 3]).encode(x=x3),
        half, share, now.mark_circle(size=130, opacity=1, color=brown).encode(x=x3, y=z),
    ).properties(height=290, title="who answers an input there")
    return Explorable(
        glorot_directions,
        [left, middle, third],
        [
            Choice("law", {"code": "released code", "glorot": "the weights", "uniform": "uniform"}, "code", "directions", concept="sp"),
            Slider("theta", DIRECTIONS, 45, "direction", "θ", "°", concept="measured"),
        ],
        id="glorot-directions",
        title="Weights from a square, and a sign that is lost on the way",
        alt="Left: weights drawn in a square; those below the axis are hollow and their mirror images above it are filled. Middle: the density of the directions, "
        "zero on the lower half, high at the diagonals. Right: the share of units that answer an input, by its direction, which falls to zero straight down.",
        caption="*The last two weights*: pairs, uniform in a square; hollow dots are where the conversion takes them from. A sector reaches farther towards a "
        "corner, and the number of units in it grows with the square of that. *Where units point*: the exact law (brown), 20 000 draws (purple), "
        "a uniform law (dashed). *Who answers*: the share of units with $u\\cdot x>0$ for an input $x$ in that direction.",
        readout="At {theta}°: {times:.2f} times as many units as in a uniform law. An input there is answered by {active:.0f} % of the units.",
        presets={
            "Straight down": {"law": "code", "theta": 270},
            "Without the slip": {"law": "glorot", "theta": 45},
            "Uniform directions": {"law": "uniform", "theta": 45},
        },
        drag=(Drag(0, "theta", "angle"), Drag(1, "theta", "x"), Drag(2, "theta", "x")),
        code="ntklib.symbolic.coordinates.glorot_density(math.radians({theta}))",
    )


EXPLORABLES = {
    "predict-flat-angles": flat_share_figure,
    "over-the-pole": over_the_pole_figure,
    "angle-laws": angle_laws_figure,
    "glorot-directions": glorot_directions_figure,
}
