"""Chapter "The metric tensor": how far the direction of a unit turns when its angles move."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import concept, plane, series
from ntklib.book.markup import number
from ntklib.sphere import from_angles, jacobian, metric, uniform_angles

f64 = torch.float64
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---- a prediction: the angle in the middle ----------------------------------------------------------------------
N = 784  # the pixels of a 28 x 28 image
PLACES = list(range(1, N, 23))  # 1, 24, .., 392, .., 783
THIN = np.unique(np.r_[1:25, 24:N:8, N - 1])


@cache
def _drawn(law: str) -> np.ndarray:
    """sqrt(M_jj) of three random units with N inputs, on THIN."""
    g = _generator(0)
    theta = uniform_angles(3, N, generator=g) if law == "direction" else math.pi * torch.rand(3, N - 1, dtype=f64, generator=g)
    return metric(theta).sqrt().numpy()[:, THIN - 1]


def _rms(j, law: str) -> np.ndarray:
    """Root mean square of sqrt(M_jj): (N - j + 1)/N for a uniform direction, else (E sin^2)^(j-1) = 2^-(j-1)."""
    j = np.asarray(j, float)
    return np.sqrt((N - j + 1) / N) if law == "direction" else 2 ** (-(j - 1) / 2)


def one_angle(place: int, law: str) -> dict:
    """Degrees by which the direction of a unit with 784 inputs turns for a step of one degree in its angle number `place`:
    root mean square over random units, and three units. `law`: the direction is uniform, or each angle is."""
    turn = float(_rms(place, law))
    return {
        "curve": {"j": THIN, "rms": _rms(THIN, law)},
        "drawn": {"j": np.tile(THIN, 3), "one": _drawn(law).ravel(), "unit": np.repeat([1, 2, 3], len(THIN))},
        "now": {"j": [place], "turn": [turn]},
        "middle": turn,
        "said": number(turn, ".3g"),
    }


def one_angle_figure() -> Explorable:
    """Guess how much the middle one of 783 angles turns a unit."""
    x = alt.X("j:Q", title="number j of the angle", scale=alt.Scale(domain=[0, N]), axis=alt.Axis(values=[1, 196, 392, 588, 783]))
    y = alt.Y("rms:Q", title="turn of the direction (degrees)", scale=alt.Scale(domain=[0, 1.05]), axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f"))
    drawn = alt.Chart(alt.NamedData("drawn")).mark_line(color=concept("measured"), strokeWidth=1, opacity=0.7).encode(
        x=x, y=alt.Y("one:Q", title="turn of the direction (degrees)"), detail="unit:N"
    )
    curve = alt.Chart(alt.NamedData("curve")).mark_line(color=concept("gmp"), strokeWidth=3).encode(x=x, y=y)
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    point = now.mark_circle(size=130, opacity=1, color=concept("gmp")).encode(x=x, y="turn:Q")
    return Explorable(
        one_angle,
        alt.layer(rule, drawn, curve, point).properties(height=300),
        [
            Slider("place", PLACES, 392, "angle", "j", concept="gmp"),
            Choice("law", {"direction": "uniform direction", "angles": "uniform angles"}, "direction", "unit"),
        ],
        id="predict-middle-angle",
        title="Predict first: one angle of 783 moves by one degree",
        alt="The turn of the direction for a step of one degree in one angle, against the number of the angle.",
        caption="How far the direction of a unit with 784 inputs turns when one angle moves by 1°: the root mean square over all random units "
        "(thick), and three random units (thin). Type a guess or drag the dashed line, then reveal; then try the other way to draw a unit.",
        readout="One degree in angle {place} of 783 turns the direction by {said}°.",
        presets={"The first": {"place": 1}, "The last": {"place": 783}, "Each angle uniform": {"place": 24, "law": "angles"}},
        predict=Predict(
            "A unit has 784 inputs and points in a random direction. Its angle number 392 moves by 1°. The derivative carries a product of 391 sines. "
            "By how many degrees does the direction turn (root mean square)?",
            "middle",
            ("rms", "one", "turn"),
            "y",
            "°",
            ".3g",
            (0, 1),
        ),
        drag=(Drag(0, "place", "x"),),
        code="ntklib.symbolic.metric.mean_metric(784, {place})",
    )


# ---- equal steps on the sphere ----------------------------------------------------------------------------------
RADIUS = 11.0  # degrees, of the discs of steps
TILT = math.radians(25)
ROUND = np.linspace(0, 2 * np.pi, 25)


def _picture(x: np.ndarray) -> np.ndarray:
    """(..., 2) picture of points of space, the axis of x_1 up and turned towards the reader."""
    return np.stack([x[..., 2], x[..., 0] * math.cos(TILT) - x[..., 1] * math.sin(TILT)], -1)


def _seen(x: np.ndarray) -> np.ndarray:
    """The picture of points of the sphere; nan on the far side."""
    far = x[..., 0] * math.sin(TILT) + x[..., 1] * math.cos(TILT) < 0
    return np.where(far[..., None], np.nan, _picture(x))


def _sphere(first, second) -> np.ndarray:
    return from_angles(torch.tensor(np.stack(np.broadcast_arrays(first, second), -1), dtype=f64).deg2rad()).numpy()


def patch(first: float, second: float) -> np.ndarray:
    """(25, 2) picture of the steps |eps| = RADIUS at the angles (degrees), to first order: the ellipse u + J eps."""
    theta = torch.tensor([first, second], dtype=f64).deg2rad()
    eps = math.radians(RADIUS) * np.stack([np.cos(ROUND), np.sin(ROUND)])
    u, J = from_angles(theta).numpy(), jacobian(theta).numpy()
    flat = _picture((u[:, None] + J @ eps).T)
    return np.full_like(flat, np.nan) if np.isnan(_seen(u)).any() else flat


@cache
def _lattice() -> dict:
    """The discs that do not move, in the chart and on the globe."""
    centres = [(a, b) for a in (30, 60, 90, 120, 150) for b in (-60, -30, 0, 30, 60)]
    seen = np.concatenate([patch(*c) for c in centres])
    chart = np.concatenate([np.array(c) + RADIUS * np.stack([np.cos(ROUND), np.sin(ROUND)], 1) for c in centres])
    return {"t1": chart[:, 0], "t2": chart[:, 1], "x": seen[:, 0], "y": seen[:, 1], "disc": np.repeat(range(len(centres)), 25), "order": np.tile(range(25), len(centres))}


@cache
def _net() -> dict:
    """Rim, parallels and meridians."""
    rim = np.stack([np.cos(ROUND), np.sin(ROUND)], 1)
    around, down = np.linspace(-180, 180, 49), np.linspace(0, 180, 25)
    lines = [rim, *(_seen(_sphere(a, around)) for a in range(30, 180, 30)), *(_seen(_sphere(down, b)) for b in range(-180, 180, 30))]
    xy = np.concatenate(lines)
    return {
        "x": xy[:, 0],
        "y": xy[:, 1],
        "line": np.repeat(range(len(lines)), [len(p) for p in lines]),
        "order": np.concatenate([range(len(p)) for p in lines]),
    }


def _arrow(tail, tip, ends) -> dict:
    """A shaft and its head; `ends` is the direction on the screen, x to the right and y up."""
    return {"x": [tail[0]], "y": [tail[1]], "x2": [tip[0]], "y2": [tip[1]], "turn": [math.degrees(math.atan2(ends[0], ends[1])) % 360]}


def step(first: float, heading: float) -> dict:
    """A step of 11 degrees in the angles of a unit with three inputs, at theta_1 = `first`, theta_2 = 0, turned by `heading`
    from theta_1 towards theta_2; on the sphere to first order. |eps|_M is what the direction turns by."""
    h = math.radians(heading)
    theta = torch.tensor([math.radians(first), 0.0], dtype=f64)
    eps = torch.tensor([math.cos(h), math.sin(h)], dtype=f64)
    M, u, J = metric(theta), from_angles(theta), jacobian(theta)
    seen = patch(first, 0)
    ring = np.array([first, 0]) + RADIUS * np.stack([np.cos(ROUND), np.sin(ROUND)], 1)
    at, tip = _picture(u.numpy()), _picture((u + math.radians(RADIUS) * J @ eps).numpy())
    return {
        "net": _net(),
        "lattice": _lattice(),
        "disc": {"t1": ring[:, 0], "t2": ring[:, 1], "x": seen[:, 0], "y": seen[:, 1], "order": range(25)},
        "chart": _arrow((0, first), (RADIUS * math.sin(h), first + RADIUS * math.cos(h)), (math.sin(h), -math.cos(h))),
        "globe": _arrow(at, tip, tip - at),
        "m": M[1].item(),
        "turn": RADIUS * (M * eps**2).sum().sqrt().item(),
        "along": RADIUS * M[1].sqrt().item(),
    }


def _square(side: str) -> list:
    """The pixels of a centred square, as wide as the view allows: equal axes that a drag can read."""
    low, high = f"{side} / 2 - min(width, height) / 2", f"{side} / 2 + min(width, height) / 2"
    return [alt.ExprRef(low), alt.ExprRef(high)]


def step_figure() -> Explorable:
    """Equal discs of steps, and what they become on the sphere."""
    degrees = "datum.value + '°'"
    x = alt.X("t2:Q", title="second angle θ₂", scale=alt.Scale(domain=[-90, 90], range=_square("width"), nice=False), axis=alt.Axis(values=[-90, -45, 0, 45, 90], labelExpr=degrees, grid=False))
    y = alt.Y("t1:Q", title="first angle θ₁", scale=alt.Scale(domain=[0, 180], range=_square("height"), nice=False), axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr=degrees, grid=False))
    quiet = {"color": concept("gmp"), "fill": concept("gmp"), "fillOpacity": 0.12, "strokeWidth": 1, "strokeOpacity": 0.6}
    loud = {"color": concept("gmp"), "fill": concept("gmp"), "fillOpacity": 0.45, "strokeWidth": 2.5}

    def shaft(chart, tail, tip):
        return chart.mark_rule(color=concept("ink"), strokeWidth=3).encode(**tail, **tip)

    def head(chart, at):
        return chart.mark_point(shape="triangle", filled=True, size=110, opacity=1, color=concept("ink")).encode(**at, angle=alt.Angle("turn:Q", scale=None))

    lattice, disc, arrow = (alt.Chart(alt.NamedData(n)) for n in ("lattice", "disc", "chart"))
    tail = {"x": alt.X("x:Q", title="second angle θ₂"), "y": alt.Y("y:Q", title="first angle θ₁")}
    left = alt.layer(
        lattice.mark_line(**quiet, clip=True).encode(x=x, y=y, detail="disc:N", order="order:Q"),
        disc.mark_line(**loud, clip=True).encode(x=x, y=y, order="order:Q"),
        shaft(arrow, tail, {"x2": "x2:Q", "y2": "y2:Q"}),
        head(arrow, {"x": alt.X("x2:Q", title="second angle θ₂"), "y": alt.Y("y2:Q", title="first angle θ₁")}),
    ).properties(height=310, title="steps in the angles: all alike")

    def place(table, **points):
        return plane(alt.Chart(alt.NamedData(table)), reach=1.05, **points)

    here = {"x": "datum.x", "y": "datum.y"}
    at = {"x": alt.X("at_x:Q", **RAW), "y": alt.Y("at_y:Q", **RAW)}
    tip = {"x": alt.X("tip_x:Q", **RAW), "y": alt.Y("tip_y:Q", **RAW)}
    globe = place("globe", at=here, tip={"x": "datum.x2", "y": "datum.y2"})
    right = alt.layer(
        place("net", at=here).mark_line(color=concept("faint"), strokeWidth=1).encode(**at, detail="line:N", order="order:Q"),
        place("lattice", at=here).mark_line(**quiet).encode(**at, detail="disc:N", order="order:Q"),
        place("disc", at=here).mark_line(**loud).encode(**at, order="order:Q"),
        shaft(globe, at, {"x2": "tip_x:Q", "y2": "tip_y:Q"}),
        head(globe, tip),
    ).properties(height=310, title="what they do to the direction")
    return Explorable(
        step,
        [left, right],
        [
            Slider("first", list(range(0, 151, 5)), 30, "first angle", "θ₁", "°", concept="gmp"),
            Slider("heading", list(range(0, 181, 15)), 60, "heading of the arrow", "α", "°"),
        ],
        id="equal-steps",
        title="Equal steps in the angles, unequal turns of the unit",
        alt="Left: equal discs of steps in the plane of two angles. Right: the same discs on the sphere of directions, as ellipses that become thinner towards the pole.",
        caption="*Left*: a unit with three inputs is a point of the plane of its two angles; each disc holds the steps of length up to 11°. Drag the dark "
        "disc up or down. *Right*: the same discs on the sphere of directions, to first order. Along $\\theta_1$ a step keeps its length; along $\\theta_2$ it shrinks by $\\sin\\theta_1$, "
        "to nothing at the pole. The axes of an ellipse stay perpendicular: they follow the two angles.",
        readout="At θ₁ = {first}° the diagonal of M is (1, {m:.3f}): 11° along θ₁ turn the unit by 11°, along θ₂ by {along:.1f}°, and along the arrow by {turn:.1f}°.",
        presets={"At the pole": {"first": 0}, "Half way": {"first": 30}, "At the equator": {"first": 90}},
        drag=(Drag(0, "first", "y"),),
        code="ntklib.sphere.metric(torch.deg2rad(torch.tensor([{first}., 0.])))",
    )


# ---- why the sum vanishes ---------------------------------------------------------------------------------------
SMALL = 8  # inputs of the units in this figure
UNITS = [11, 184, 133, 169]  # seeds of units whose terms at a = 2, b = 4 are large enough to be seen


@cache
def _jacobian(draw: int) -> np.ndarray:
    return jacobian(uniform_angles(1, SMALL, generator=_generator(UNITS[draw - 1]))[0]).numpy()


def running_sum(a: int, b: int, draw: int) -> dict:
    """The terms of M_ab = sum_i du_i/dtheta_a du_i/dtheta_b for a random unit with 8 inputs, each column of the Jacobian
    divided by its length: the sum is the cosine of the angle between the two columns."""
    J = _jacobian(draw)
    i, j = np.indices(J.shape)
    lengths = np.linalg.norm(J, axis=0)
    terms = J[:, a - 1] * J[:, b - 1] / lengths[a - 1] / lengths[b - 1]
    ends = terms.cumsum()
    sign = np.where(terms < 0, "takes away", "adds")
    vanishes = (i < j).ravel()
    return {
        "entries": {
            "i": i.ravel() + 1,
            "j": j.ravel() + 1,
            "size": np.abs(J).ravel(),
            "sign": np.where(vanishes, "", np.where(J.ravel() < 0, "negative", "positive")),
        },
        "columns": {"j": [a, b]},
        "terms": {"i": np.arange(1, SMALL + 1), "start": ends - terms, "end": ends, "sign": sign},
        "total": {"i": [SMALL], "sum": [round(ends[-1], 12)]},
        "cosine": round(ends[-1], 12) + 0.0,
        "M": round((J[:, a - 1] @ J[:, b - 1]).item(), 12) + 0.0,
        "largest": np.abs(terms).max(),
    }


def running_sum_figure() -> Explorable:
    """Two columns of the Jacobian, and their scalar product term by term."""
    entries = alt.Chart(alt.NamedData("entries"))
    low, high = SMALL + 0.6, 0.4
    x = alt.X("j:Q", title="angle j", scale=alt.Scale(domain=[0.4, 7.6], nice=False), axis=alt.Axis(values=list(range(1, 8)), grid=False, format="d"))
    y = alt.Y("i:Q", title="input i", scale=alt.Scale(domain=[low, high], nice=False), axis=alt.Axis(values=list(range(1, 9)), grid=False, format="d"))
    signs = {"positive": "gmp", "negative": "gradient"}
    squares = entries.transform_filter("datum.sign != ''").mark_square(opacity=1).encode(
        x=x,
        y=y,
        size=alt.Size("size:Q", scale=alt.Scale(domain=[0, 1], range=[0, 620]), legend=None),
        color=series(signs, "sign:N", columns=2),
    )
    zeros = entries.transform_filter("datum.sign == ''").mark_circle(size=12, opacity=1, color=concept("linear")).encode(x=x, y=y)
    frame = alt.Chart(alt.NamedData("columns")).mark_rule(color=concept("faint"), strokeWidth=26, opacity=0.5).encode(x=x)
    left = alt.layer(frame, zeros, squares).properties(height=320, title="derivatives of u: two columns marked")

    z = alt.Chart(alt.NamedData("terms"))
    xi = alt.X("i:Q", title="input i", scale=alt.Scale(domain=[0.4, 8.6], nice=False), axis=alt.Axis(values=list(range(1, 9)), grid=False, format="d"))
    up = {"scale": alt.Scale(domain=[-0.6, 1.05], nice=False), "axis": alt.Axis(values=[-0.5, 0, 0.5, 1])}
    # a bar of no height would vanish: its outline keeps it in sight
    bars = z.mark_bar(size=20, strokeWidth=2).encode(
        x=xi,
        y=alt.Y("start:Q", title="sum of the terms up to i", **up),
        y2="end:Q",
        color=alt.Color("sign:N", scale=alt.Scale(domain=["adds", "takes away"], range=[concept("gmp"), concept("gradient")]), legend=alt.Legend(title=None, orient="top")),
        stroke=alt.Stroke("sign:N", scale=alt.Scale(domain=["adds", "takes away"], range=[concept("gmp"), concept("gradient")]), legend=None),
    )
    zero = z.mark_rule(color=concept("ink"), strokeWidth=1).encode(y=alt.datum(0))
    total = alt.Chart(alt.NamedData("total")).mark_point(shape="diamond", filled=True, size=200, opacity=1, color=concept("ink")).encode(x=xi, y="sum:Q")
    right = alt.layer(zero, bars, total).properties(height=320, title="their product, term by term")
    return Explorable(
        running_sum,
        [left, right],
        [
            Slider("a", list(range(1, SMALL)), 2, "first column", "a", concept="gmp"),
            Slider("b", list(range(1, SMALL)), 4, "second column", "b", concept="gmp"),
            Slider("draw", [1, 2, 3, 4], 1, "random unit"),
        ],
        id="running-sum",
        title="One term against all the others",
        alt="Left: the matrix of derivatives of u, a square for each entry, zeros above the diagonal, two columns marked. Right: the running sum of the products of the two columns; one bar goes one way, the later ones bring it back to zero.",
        caption="*Left*: $\\partial u_i/\\partial\\theta_j$ for a random unit with 8 inputs; the area of a square is the size of the entry, dots are zeros. *Right*: the products of the two marked columns, added up from "
        "$i=1$ to $8$, with each column scaled to length 1. For $a\\ne b$ nothing happens until the larger of the two, where one term goes one way; the later ones bring the sum (diamond) back to 0. For $a=b$ it climbs to 1.",
        readout="Columns {a} and {b}: the largest term is {largest:.2f} in size, and the sum is {cosine:.2f}. M = {M:.3f}.",
        presets={"First and last": {"a": 1, "b": 7}, "Neighbours": {"a": 4, "b": 5}, "One column with itself": {"a": 3, "b": 3}},
        drag=(Drag(0, "b", "x"),),
        code="(J[:, {a} - 1] * J[:, {b} - 1]).sum()    # J = ntklib.sphere.jacobian(theta)",
    )


# ---- which weights feel a step ----------------------------------------------------------------------------------
SIDE = 16
PIXELS = SIDE * SIDE
ORDERS = {"rows": "row by row", "columns": "column by column", "centre": "from the centre outwards", "shuffled": "shuffled"}


def moves(n: int) -> np.ndarray:
    """Root mean square of du_i/eta, i = 1 .. n, where every angle of a uniform direction steps by +-eta."""
    harmonic = np.r_[0, np.cumsum(1 / np.arange(1, n))]  # H_0 .. H_(n-1)
    i = np.arange(1, n + 1)
    return np.sqrt((n - i + harmonic[n - 1] - harmonic[n - i]) / n)


@cache
def _one_unit() -> np.ndarray:
    theta = uniform_angles(1, PIXELS, generator=_generator(1))[0]
    return jacobian(theta).norm(dim=1).numpy()


@cache
def _pixels(order: str) -> np.ndarray:
    """The pixel (row by row from the top left, from 0) that is input number 1, 2, .., 256."""
    row, column = np.divmod(np.arange(PIXELS), SIDE)
    if order == "rows":
        return np.arange(PIXELS)
    if order == "columns":
        return np.lexsort((row, column))
    if order == "centre":
        return np.argsort(np.hypot(row - 7.5, column - 7.5), kind="stable")
    return torch.randperm(PIXELS, generator=_generator(0)).numpy()


def weights(order: str, source: str, place: int) -> dict:
    """Root mean square of the move of each weight of a unit that sees 16 x 16 pixels, where every angle steps by +-eta with
    random signs, in units of eta: over all uniform directions, or for one unit. `order` numbers the pixels."""
    mean, i = moves(PIXELS), np.arange(1, PIXELS + 1)
    shown = mean if source == "mean" else _one_unit()
    pixels = _pixels(order)
    image = np.empty(PIXELS)
    image[pixels] = np.round(shown * 256) / 256
    row, column = np.divmod(np.arange(PIXELS), SIDE)
    at = np.divmod(pixels[place - 1], SIDE)
    return {
        "image": {"row": row, "column": column, "move": image},
        "curve": {"i": i[::3], "mean": mean[::3], "plain": np.ones(len(i[::3]))},
        "unit": {"i": i[::3], "move": _one_unit()[::3] if source == "one" else np.full(len(i[::3]), np.nan)},
        "now": {"i": [place], "move": [shown[place - 1]], "row": [at[0]], "column": [at[1]]},
        "move": shown[place - 1],
        "ratio": mean[0] / mean[-1],
    }


def weights_figure() -> Explorable:
    """A unit that looks at an image: where does it learn?"""
    x = alt.X("left:Q", scale=alt.Scale(domain=[0, SIDE], range=_square("width"), nice=False), axis=None)
    y = alt.Y("top:Q", scale=alt.Scale(domain=[0, SIDE], range=_square("height"), nice=False), axis=None)
    box = {"left": "datum.column", "right": "datum.column + 1", "top": "datum.row", "bottom": "datum.row + 1"}
    shade = alt.Color("move:Q", scale=alt.Scale(domain=[0, 1], range=[concept("paper"), concept("gmp")], interpolate="rgb"), legend=None)
    image = alt.Chart(alt.NamedData("image")).transform_calculate(**box).mark_rect().encode(x=x, x2="right:Q", y=y, y2="bottom:Q", color=shade)
    ring = (
        alt.Chart(alt.NamedData("now"))
        .transform_calculate(**box)
        .mark_rect(fillOpacity=0, stroke=concept("ink"), strokeWidth=3)
        .encode(x=x, x2="right:Q", y=y, y2="bottom:Q")
    )
    edge = (
        alt.Chart(alt.NamedData("now"))
        .transform_calculate(left="0", right=f"{SIDE}", top="0", bottom=f"{SIDE}")
        .mark_rect(fillOpacity=0, stroke=concept("faint"), strokeWidth=1)
        .encode(x=x, x2="right:Q", y=y, y2="bottom:Q")
    )
    left = alt.layer(image, edge, ring).properties(height=310, title="the move of each weight")

    xi = alt.X("i:Q", title="place i of the input in the order", scale=alt.Scale(domain=[0, 257], nice=False), axis=alt.Axis(values=[1, 64, 128, 192, 256], grid=False))
    up = {"scale": alt.Scale(domain=[0, 1.15], nice=False), "axis": alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f")}
    curve = alt.Chart(alt.NamedData("curve"))
    lines = (
        curve.transform_calculate(**{"plain weights": "datum.plain", "angles": "datum.mean"})
        .transform_fold(["plain weights", "angles"], ["what", "move"])
        .mark_line(strokeWidth=3)
        .encode(x=xi, y=alt.Y("move:Q", title="move of the weight, in units of η", **up), color=series({"plain weights": "sp", "angles": "gmp"}, columns=2))
    )
    dots = alt.Chart(alt.NamedData("unit")).mark_circle(size=24, opacity=0.9, color=concept("measured")).encode(x=xi, y="move:Q")
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=xi)
    point = now.mark_circle(size=130, opacity=1, color=concept("ink")).encode(x=xi, y="move:Q")
    right = alt.layer(rule, lines, dots, point).properties(height=310, title="the same, by place")
    return Explorable(
        weights,
        [left, right],
        [
            Choice("order", ORDERS, "rows", "inputs"),
            Choice("source", {"mean": "average over units", "one": "one random unit"}, "mean", "unit", concept="measured"),
            Slider("place", list(range(1, PIXELS + 1, 5)), 206, "place of one input", "i"),
        ],
        id="weights-that-move",
        title="A unit of angles learns the first inputs, and hardly the last",
        alt="Left: a picture of 16 by 16 pixels, dark where the weight of a pixel moves much: dark at the inputs numbered first, pale at the last. Right: the move against the place of the input, which falls from 1 to 0.15.",
        caption="Every angle of a unit that sees 16 × 16 pixels steps by $+\\eta$ or $-\\eta$. *Left*: the root mean square of the move of each weight, from 0 (blank) to $\\eta$ (full colour). *Right*: the same "
        "against the place of the input, and for a unit that steps in its plain weights (brown). Drag along the curve to move the framed pixel, and number the inputs in another order.",
        readout="Input {place} of 256 moves by {move:.2f} η. The first moves {ratio:.1f} times as much as the last (average over units).",
        presets={"One random unit": {"source": "one"}, "From the centre": {"order": "centre"}, "Shuffled": {"order": "shuffled"}},
        drag=(Drag(1, "place", "x"),),
        code="ntklib.symbolic.metric.mean_squared_move(256, {place}) ** 0.5",
    )


EXPLORABLES = {
    "predict-middle-angle": one_angle_figure,
    "equal-steps": step_figure,
    "running-sum": running_sum_figure,
    "weights-that-move": weights_figure,
}
