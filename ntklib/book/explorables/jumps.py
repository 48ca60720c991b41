"""Chapter "What makes a boundary jump": a small step of the parameters, and how far the boundary goes."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.explorables.boundaries import DART
from ntklib.book.figures import concept, plane, series
from ntklib.boundaries import layer_norm_cone

f64 = torch.float64
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`


def _at(name: str) -> dict:
    """The pixel columns NAME_x and NAME_y of `plane`, as encodings."""
    return {"x": alt.X(f"{name}_x:Q", **RAW), "y": alt.Y(f"{name}_y:Q", **RAW)}


def _to(name: str) -> dict:
    return {"x2": f"{name}_x:Q", "y2": f"{name}_y:Q"}


# ---- a random step ---------------------------------------------------------------------------------------------
INPUTS = [2, 3, 10, 30, 100, 1000]
RATIOS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]
PSI = np.union1d(np.linspace(0, 180, 61), np.linspace(78, 102, 49))  # finer where most steps point


def turn(ratio, psi):
    """The angle in degrees from w to w + eps, for |eps|/|w| = ratio and psi degrees between eps and w."""
    p = np.radians(psi)
    return np.degrees(np.arctan2(ratio * np.sin(p), 1 + ratio * np.cos(p)))


MIDPOINTS = 180 * (np.arange(20_000) + 0.5) / 20_000  # fine enough for a quantile at n = 1000


@cache
def random_turn(n: int, ratio: float) -> dict:
    """Mean turn in degrees over uniform directions of the step, its 95 % quantile, and the share beyond 90 degrees from w."""
    psi = MIDPOINTS
    mass = np.sin(np.radians(psi)) ** (n - 2)
    mass /= mass.sum()
    t = turn(ratio, psi)
    order = np.argsort(t)
    return {"mean": (mass * t).sum(), "most": t[order][np.searchsorted(mass[order].cumsum(), 0.95)], "back": mass[psi > 90].sum()}


def random_step(n: int, ratio: float) -> dict:
    """A step of length ratio |w| in a random direction of R^n: how far from w it points, and how far it turns the boundary."""
    density = np.sin(np.radians(PSI)) ** (n - 2)
    found = random_turn(n, ratio)
    t = turn(ratio, PSI)
    worst = math.degrees(math.asin(ratio)) if ratio <= 1 else 180.0
    return {
        "curve": {"psi": PSI, "turn": t, "density": 90 * density / density.max()},
        "means": {"ratio": RATIOS, "mean": [random_turn(n, r)["mean"] for r in RATIOS],
                  "worst": [math.degrees(math.asin(r)) if r <= 1 else np.nan for r in RATIOS]},
        "now": {"ratio": [ratio], "mean": [found["mean"]]},
        "mean": found["mean"],
        "most": found["most"],
        "back": found["back"],
        "worst": worst,
    }


def random_step_figure() -> Explorable:
    """Guess how far a random step turns a unit with 1000 inputs."""
    x = alt.X("psi:Q", title="angle between the step and w", scale=alt.Scale(domain=[0, 180]),
              axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'", grid=False))
    y = alt.Y("turn:Q", title="turn of the boundary", scale=alt.Scale(domain=[0, 90]),
              axis=alt.Axis(values=[0, 30, 60, 90], labelExpr="datum.value + '°'"))
    curve = alt.Chart(alt.NamedData("curve"))
    hill = curve.mark_area(color=concept("linear"), opacity=0.3).encode(x=x, y=alt.Y("density:Q"))
    line = curve.mark_line(color=concept("sp"), strokeWidth=3, clip=True).encode(x=x, y=y)
    left = alt.layer(hill, line).properties(height=290, title="where steps point, what they do")
    rx = alt.X("ratio:Q", title="length of the step over |w|", scale=alt.Scale(type="log", domain=[0.01, 5]), axis=alt.Axis(values=[0.01, 0.1, 1], format="~g"))
    ry = alt.Y("mean:Q", title="turn of the boundary", scale=alt.Scale(domain=[0, 90]),
               axis=alt.Axis(values=[0, 30, 60, 90], labelExpr="datum.value + '°'"))
    means = alt.Chart(alt.NamedData("means"))
    mean = means.mark_line(color=concept("sp"), strokeWidth=3).encode(x=rx, y=ry)
    worst = means.mark_line(color=concept("ink"), strokeWidth=2, strokeDash=[5, 4]).encode(x=rx, y="worst:Q")
    now = alt.Chart(alt.NamedData("now")).mark_circle(size=130, opacity=1, color=concept("sp")).encode(x=rx, y=ry)
    right = alt.layer(worst, mean, now).properties(height=290, title="on average, and at worst")
    return Explorable(
        random_step,
        [left, right],
        [
            Slider("ratio", RATIOS, 0.1, "length of the step", "|ε|/|w|", concept="sp"),
            Slider("n", INPUTS, 1000, "inputs", "n"),
        ],
        id="predict-random-step",
        title="Predict first: a random step in many dimensions",
        alt="Left: how far the boundary turns against the angle between step and weights, over a hill of how often each angle occurs, which is "
        "narrow and centred at 90 degrees in many dimensions. Right: the mean and the largest turn against the length of the step.",
        caption="*Left*: the grey hill says how often a random step makes each angle with $w$; half of it lies beyond 90°. The brown curve is the turn of "
        "the boundary for each such angle. *Right*: the mean turn (brown) and the largest (dashed). Type a guess or drag the dashed "
        "horizontal line, then reveal.",
        readout="{n} inputs, steps of {ratio} |w|: {back:.1%} of them point more than 90° away from w. The boundary turns by {mean:.2f}° on average, "
        "95 % of the time by less than {most:.2f}°, at worst by {worst:.2f}°.",
        presets={"A plane": {"n": 2, "ratio": 0.1}, "As long as w": {"ratio": 1}, "A hundredth": {"ratio": 0.01}},
        predict=Predict(
            "A unit has 1000 inputs. A step a tenth as long as its weights points in a random direction; half of such steps point backwards, more "
            "than 90° away from w. By how many degrees does the boundary turn on average?",
            "mean",
            ("turn", "mean", "worst"),
            "y",
            "°",
            ".3g",
            (0, 180),
        ),
        code="ntklib.symbolic.jumps.mean_turn({n}, {ratio})",
    )


# ---- the exact bound -------------------------------------------------------------------------------------------
ROUND = np.linspace(0, 2 * math.pi, 61)
TURNS = np.linspace(-180, 180, 145)


def worst_step(psi: float, ratio: float) -> dict:
    """w = (1, 0) moved by a step of length `ratio` at `psi` degrees from it, and by every other step of that length.

    Positions are in the plane of weights with the tip of w in the middle; the boundary is that of u . x = 1/2 |w|/|w + eps|.
    """
    p = math.radians(psi)
    eps = ratio * np.array([math.cos(p), math.sin(p)])
    tip = np.array([1.0, 0.0]) + eps
    length = float(np.hypot(*tip))
    signed = np.sign(psi) * turn(ratio, abs(psi))
    worst = math.degrees(math.asin(ratio)) if ratio <= 1 else 180.0
    alpha = math.asin(min(ratio, 1))
    side = np.array([math.cos(alpha), math.sin(alpha)])
    reach = 3.2 if ratio < 1 else np.nan
    u = tip / length if length > 1e-9 else np.array([np.nan, np.nan])
    place = 0.5 / length * u if length > 1e-9 else u
    along = np.array([-u[1], u[0]])
    ends = np.stack([place - 8 * along, place + 8 * along])
    return {
        "circle": {"x": ratio * np.cos(ROUND), "y": ratio * np.sin(ROUND), "order": np.arange(61)},
        "tangents": {"x": [reach * side[0] - 1] * 2, "y": [reach * side[1], -reach * side[1]]},
        "arrows": {"x": [0.0, eps[0]], "y": [0.0, eps[1]], "turn": [90.0, 90 - math.degrees(math.atan2(tip[1], tip[0]))],
                   "what": ["before", "after"]},
        "step": {"x": [eps[0]], "y": [eps[1]]},
        "lines": {"x": [0.5, 0.5, *ends[:, 0]], "y": [-8.0, 8.0, *ends[:, 1]], "what": ["before"] * 2 + ["after"] * 2},
        "curve": {"psi": TURNS, "turn": np.abs(np.sign(TURNS) * turn(ratio, np.abs(TURNS)))},
        "limit": {"worst": [worst]},
        "now": {"psi": [psi], "turn": [abs(signed)]},
        "turned": abs(signed),
        "worst": worst,
        "right": math.degrees(math.acos(-ratio)) if ratio <= 1 else 180.0,
        "far": 0.5 / length if length > 1e-9 else math.inf,
    }


def worst_step_figure() -> Explorable:
    """Drag the step round the tip of w: the turn is largest where the step is tangent to it."""
    reach = 1.7
    zero = {"x": "-1", "y": "0"}
    circle = (
        plane(alt.Chart(alt.NamedData("circle")), reach, at={"x": "datum.x", "y": "datum.y"})
        .mark_line(color=concept("sp"), strokeWidth=1.8, strokeDash=[3, 3], clip=True)
        .encode(**_at("at"), order="order:Q")
    )
    tangents = (
        plane(alt.Chart(alt.NamedData("tangents")), reach, zero=zero, at={"x": "datum.x", "y": "datum.y"})
        .mark_rule(color=concept("ink"), strokeDash=[5, 4], strokeWidth=1.5, clip=True)
        .encode(**_at("zero"), **_to("at"))
    )
    colour = series({"before": "linear", "after": "sp"}, "what:N")
    arrows = plane(alt.Chart(alt.NamedData("arrows")), reach, zero=zero, at={"x": "datum.x", "y": "datum.y"})
    shafts = arrows.mark_rule(strokeWidth=3.5).encode(**_at("zero"), **_to("at"), color=colour)
    heads = arrows.mark_point(shape=DART, filled=True, size=420, opacity=1).encode(
        **_at("at"), color=colour, angle=alt.Angle("turn:Q", scale=None)
    )
    step = plane(alt.Chart(alt.NamedData("step")), reach, tip={"x": "0", "y": "0"}, at={"x": "datum.x", "y": "datum.y"},
                 name={"x": "datum.x / 2 + 0.16 * datum.y / sqrt(datum.x * datum.x + datum.y * datum.y)",
                       "y": "datum.y / 2 - 0.16 * datum.x / sqrt(datum.x * datum.x + datum.y * datum.y)"})
    small = step.mark_rule(color=concept("gradient"), strokeWidth=4).encode(**_at("tip"), **_to("at"))
    eps = step.mark_text(text="ε", fontSize=17, fontStyle="italic", color=concept("gradient")).encode(**_at("name"))
    left = alt.layer(circle, tangents, shafts, heads, small, eps).properties(height=290, title="the weights")

    lines = (
        plane(alt.Chart(alt.NamedData("lines")), 1.6, at={"x": "datum.x", "y": "datum.y"})
        .mark_line(strokeWidth=3, clip=True)
        .encode(**_at("at"), color=series({"before": "linear", "after": "sp"}, "what:N", show=False))
    )
    middle = alt.layer(lines).properties(height=290, title="the boundary")
    x = alt.X("psi:Q", title="angle between ε and w", scale=alt.Scale(domain=[-180, 180]),
              axis=alt.Axis(values=[-180, -90, 0, 90, 180], labelExpr="(datum.value < 0 ? '−' : '') + abs(datum.value) + '°'"))
    y = alt.Y("turn:Q", title="turn", scale=alt.Scale(domain=[0, 180]), axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'"))
    curve = alt.Chart(alt.NamedData("curve")).mark_line(color=concept("sp"), strokeWidth=3).encode(x=x, y=y)
    limit = alt.Chart(alt.NamedData("limit")).mark_rule(color=concept("ink"), strokeDash=[5, 4]).encode(y="worst:Q")
    now = alt.Chart(alt.NamedData("now")).mark_circle(size=130, opacity=1, color=concept("gradient")).encode(x=x, y=y)
    right = alt.layer(limit, curve, now).properties(height=210, title="its turn")
    return Explorable(
        worst_step,
        [left, middle, right],
        [
            Slider("psi", list(range(-180, 181, 5)), 120, "direction", "ψ", "°", concept="gradient"),
            Slider("ratio", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.05, 1.2, 1.5], 0.5, "length", "|ε|/|w|", concept="gradient"),
        ],
        id="worst-step",
        title="The worst step is the one that is tangent",
        alt="Left: the weight arrow, a circle of all steps of one length about its tip, and the two tangents from the origin to that circle. Middle: the "
        "boundary before and after the step. Right: the turn against the direction of the step, with its largest value.",
        caption="*The weights*: $w$ (grey), a step $\\varepsilon$ (orange) and $w+\\varepsilon$ (brown). All steps of this length end on the dotted circle; seen from the "
        "origin, it lies between two tangents (dashed). *The boundary*, for a fixed bias. *Its turn*, by the direction of "
        "the step. Drag the end of $\\varepsilon$ round. Then make the step longer than $w$.",
        readout="A step of {ratio} |w| at {psi}° turns the boundary by {turned:.1f}°. The worst one, at {right:.0f}°, turns it by {worst:.1f}°. "
        "Its distance from the origin was 0.50 and is {far:.2f}.",
        presets={"Tangent": {"ratio": 0.5, "psi": 120}, "Straight back": {"ratio": 0.9, "psi": 180}, "Longer than w": {"ratio": 1.2, "psi": 165}},
        drag=(Drag(0, "psi", "angle"), Drag(2, "psi", "x")),
        code="ntklib.boundaries.rotation_bound(w, eps)",
    )


# ---- five ways to parametrise the same unit --------------------------------------------------------------------
LENGTHS = [0.001, 0.003, 0.01, 0.03, 0.1, 1.0]
STEPS = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]
WAYS = {"standard": "sp", "weight norm": "wn", "batch norm": "bn", "GmP": "gmp"}
OFFSET = -0.8  # lambda of the unit before the step


def moved(theta: float, length, delta) -> dict:
    """(direction in degrees, lambda) of one unit of the plane after `delta` was added to each of its parameters, in four ways.

    Before the step each has its normal at `theta` degrees, lambda = -0.8, weights of the given length and a scale of 1; batch
    normalisation sees whitened data, mean 0 and covariance 1. GmP adds to the latitude pi/2 - theta, which turns it back.
    """
    t = math.radians(theta)
    w1, w2 = length * np.cos(t) + delta, length * np.sin(t) + delta
    after, size = np.degrees(np.arctan2(w2, w1)), np.hypot(w1, w2)
    return {
        "standard": (after, (length * OFFSET + delta) / size),
        "weight norm": (after, (length * OFFSET + delta) / (length + delta)),
        "batch norm": (after, (OFFSET + delta) / (1 + delta)),
        "GmP": (theta - np.degrees(delta), OFFSET + delta + 0 * np.asarray(length)),
    }


def _apart(a, b):
    """The angle in degrees between two directions in degrees."""
    return np.abs((a - b + 180) % 360 - 180)


def four_ways(length: float, delta: float, theta: float) -> dict:
    """The boundary of one unit before and after a step of `delta` in every parameter, and how both changes grow with it."""
    now, path = moved(theta, length, delta), moved(theta, length, np.array(STEPS))
    names = list(WAYS)

    def line(direction, lam):
        u = np.array([np.cos(np.radians(direction)), np.sin(np.radians(direction))])
        return -lam * u[0] + 8 * u[1], -lam * u[1] - 8 * u[0], -lam * u[0] - 8 * u[1], -lam * u[1] + 8 * u[0]

    ends = np.array([*(line(*now[k]) for k in names), line(theta, OFFSET)])
    ends[~(np.abs(ends).max(1) < 60)] = np.nan
    turned = {k: float(_apart(now[k][0], theta)) for k in names}
    shifted = {k: float(abs(now[k][1] - OFFSET)) for k in names}
    return {
        "lines": {**{c: ends[:, i] for i, c in enumerate(("x0", "y0", "x1", "y1"))}, "what": [*names, "before"]},  # the last is drawn on top of GmP's, which hardly moves
        "paths": {
            "delta": STEPS * 4,
            "what": np.repeat(names, len(STEPS)),
            "turn": np.concatenate([np.maximum(_apart(path[k][0], theta), 1e-3) for k in names]),
            "shift": np.concatenate([np.maximum(np.abs(path[k][1] - OFFSET), 1e-5) for k in names]),
        },
        "now": {"delta": [delta] * 4, "what": names, "turn": [max(turned[k], 1e-3) for k in names], "shift": [max(shifted[k], 1e-5) for k in names]},
        "turn_sp": turned["standard"],
        "turn_gmp": turned["GmP"],
        "sp": shifted["standard"],
        "wn": shifted["weight norm"],
        "bn": shifted["batch norm"],
        "gmp": shifted["GmP"],
    }


def four_ways_figure() -> Explorable:
    """The paper's figure 1, with the reader's own lengths of weights and step."""
    shown = WAYS | {"before": "ink"}
    dashes = alt.StrokeDash("what:N", legend=None, scale=alt.Scale(domain=list(shown), range=[[1, 0], [9, 6], [3, 7], [1, 0], [2, 5]]))
    left = (
        plane(alt.Chart(alt.NamedData("lines")).transform_filter("isValid(datum.x0)"), 2.0,
              a={"x": "datum.x0", "y": "datum.y0"}, b={"x": "datum.x1", "y": "datum.y1"})
        .mark_rule(strokeWidth=3.2, clip=True)
        .encode(**_at("a"), **_to("b"), color=series(shown, "what:N", columns=3), strokeDash=dashes)
        .properties(height=300, title="the boundary")
    )
    x = alt.X("delta:Q", title="step δ in each parameter", scale=alt.Scale(type="log", domain=[1e-4, 0.3]), axis=alt.Axis(values=[1e-4, 1e-3, 1e-2, 1e-1], format="~g"))
    turns = alt.Axis(values=[0.01, 0.1, 1, 10, 100], labelExpr="datum.value + '°'")
    views = []
    for field, title, domain, axis in (("turn", "turn", [0.001, 200], turns),
                                       ("shift", "change of λ", [1e-5, 100], alt.Axis(values=[1e-4, 1e-2, 1, 100], format="~g"))):
        y = alt.Y(f"{field}:Q", title=None, scale=alt.Scale(type="log", domain=domain, clamp=True), axis=axis)
        paths, now = alt.Chart(alt.NamedData("paths")), alt.Chart(alt.NamedData("now"))
        quiet = series(shown, "what:N", show=False)
        lines = paths.mark_line(strokeWidth=3).encode(x=x, y=y, color=quiet, strokeDash=dashes)
        dots = now.mark_circle(size=90, opacity=1).encode(x=x, y=y, color=quiet)
        views.append(alt.layer(lines, dots).properties(height=300 if field == "turn" else 220, title=title))
    return Explorable(
        four_ways,
        [left, *views],
        [
            Slider("length", LENGTHS, 0.01, "length of w", "|w|", concept="sp"),
            Slider("delta", STEPS, 1e-2, "step", "δ", concept="gradient"),
            Slider("theta", list(range(0, 360, 15)), 195, "direction of w", "θ", "°"),
        ],
        id="four-ways",
        title="One unit, one small step, four ways to write it",
        alt="Left: the boundary of a unit before and after the same small step in four parametrizations. Middle: the turn of the boundary, and right: the "
        "change of its offset, against the size of the step, on logarithmic axes.",
        caption="The same unit of the plane, written in standard form, with weight or batch normalisation, and in geometric form. The number $\\delta$ is "
        "added to *each* parameter. *The boundary*: before (fine dots) and after. *Turn* and *change of $\\lambda$*, by $\\delta$. "
        "The first three turn alike: their curves lie on each other.",
        readout="|w| = {length}, δ = {delta}: the first three turn by {turn_sp:.3g}°, GmP by {turn_gmp:.3g}°. λ changes by {sp:.2g} (standard), {wn:.2g} (weight norm), "
        "{bn:.2g} (batch norm), {gmp:.2g} (GmP).",
        presets={"The paper's figure": {"length": 0.001, "delta": 0.01}, "Ordinary weights": {"length": 1.0, "delta": 0.01}, "Sideways": {"theta": 315}},
        code="ntklib.boundaries.perturb(layer, {delta})",
    )


# ---- layer normalisation ---------------------------------------------------------------------------------------
GRID = np.linspace(-2.4, 2.4, 73)
SIGNS = np.stack(np.meshgrid(np.linspace(-1.8, 1.8, 10), np.linspace(-1.8, 1.8, 10)), -1).reshape(-1, 2)


SEEDS = (1, 6, 5, 8)  # draws in which much of the boundary is in the picture; with biases the third has a closed one


@cache
def _normalised(draw: int, biased: bool) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(SEEDS[draw - 1])
    W, b = torch.randn(5, 2, dtype=f64, generator=g), torch.randn(5, dtype=f64, generator=g)
    return W, b if biased else torch.zeros(5, dtype=f64)


def _cone(draw: int, biased: bool, ratio: float):
    """`ntklib.boundaries.Cone` of Sequential(Linear, LayerNorm) with five units, beta/gamma = ratio in the first."""
    layer = torch.nn.Sequential(torch.nn.Linear(2, 5, dtype=f64), torch.nn.LayerNorm(5, eps=0, dtype=f64))
    with torch.no_grad():
        layer[0].weight.copy_(_normalised(draw, biased)[0])
        layer[0].bias.copy_(_normalised(draw, biased)[1])
        layer[1].bias.fill_(ratio)
    return layer_norm_cone(layer)


def conic_points(cone, grid: np.ndarray) -> np.ndarray:
    """Points (4 len(grid), 2) of the first unit's boundary on the lines x_1 = const and x_2 = const; nan where there is none."""
    Q, q, c = (v[0].numpy() for v in cone.quadric())
    found = []
    for fixed in (0, 1):
        free = 1 - fixed
        A = Q[free, free]
        B = Q[0, 1] * grid + q[free]
        C = Q[fixed, fixed] * grid**2 + 2 * q[fixed] * grid + c
        with np.errstate(all="ignore"):
            inner = B**2 - A * C
            root = np.sqrt(np.where(np.abs(inner) < 1e-12, 0.0, inner))  # a double root where the cone is a line
            for sign in (-1, 1):
                x = np.empty((len(grid), 2))
                x[:, fixed], x[:, free] = grid, (-B + sign * root) / A
                found.append(x)
    x = np.concatenate(found)
    # squaring has added the mirror image, where the two terms have the same sign
    a = torch.from_numpy(np.nan_to_num(x)) @ cone.weight[0] + cone.bias[0]
    good = (np.abs(x).max(1) <= np.abs(grid).max()) & (a.numpy() * cone.ratio[0].item() <= 1e-9)
    return np.where(good[:, None], x, np.nan)


def layer_norm_bend(ratio: float, biased: str, draw: int) -> dict:
    """The boundary of the first of five units of the plane behind layer normalisation, and behind batch normalisation of
    whitened data with the same weights and the same beta/gamma."""
    cone = _cone(draw, biased == "yes", ratio)
    points = conic_points(cone, GRID)
    active = cone.value(torch.from_numpy(SIGNS))[:, 0].numpy() > 0
    w = _normalised(draw, biased == "yes")[0][0].numpy()
    u = w / np.hypot(*w)
    place, along = -ratio * u, np.array([-u[1], u[0]])
    seen = points[np.isfinite(points[:, 0])]
    flat = np.linalg.svd(np.c_[seen, np.ones(len(seen))], compute_uv=False)[-1] / math.sqrt(len(seen)) if len(seen) > 3 else 0.0
    return {
        "bend": {"x": np.round(points[:, 0] * 512) / 512, "y": np.round(points[:, 1] * 512) / 512},
        "signs": {"x": SIGNS[:, 0], "y": SIGNS[:, 1], "on": active},
        "line": {"x": [place[0] - 8 * along[0], place[0] + 8 * along[0]], "y": [place[1] - 8 * along[1], place[1] + 8 * along[1]]},
        "flat": flat,
        "word": _word(seen, flat),
    }


def _word(seen: np.ndarray, flat: float) -> str:
    if len(seen) < 4:
        return "out of the picture"
    if np.ptp(seen, axis=0).max() < 1e-6:
        return "the origin alone"
    return "a straight line" if flat < 1e-6 else "no straight line"


def layer_norm_bend_figure() -> Explorable:
    """Layer normalisation bends the boundary as soon as beta is not zero."""
    reach = 2.0
    signs = plane(alt.Chart(alt.NamedData("signs")), reach, at={"x": "datum.x", "y": "datum.y"})
    on = signs.transform_filter("datum.on == 1").mark_circle(size=70, color=concept("ln"), opacity=0.4).encode(**_at("at"))
    off = signs.transform_filter("datum.on == 0").mark_circle(size=14, color=concept("linear"), opacity=0.8).encode(**_at("at"))
    line = (
        plane(alt.Chart(alt.NamedData("line")), reach, at={"x": "datum.x", "y": "datum.y"})
        .mark_line(color=concept("bn"), strokeWidth=2.5, strokeDash=[6, 5], clip=True)
        .encode(**_at("at"))
    )
    bend = (
        plane(alt.Chart(alt.NamedData("bend")).transform_filter("isValid(datum.x)"), reach, at={"x": "datum.x", "y": "datum.y"})
        .mark_circle(size=26, color=concept("ln"), opacity=1, clip=True)
        .encode(**_at("at"))
    )
    return Explorable(
        layer_norm_bend,
        alt.layer(off, on, line, bend).properties(height=360),
        [
            Slider("ratio", [round(-1.5 + 0.25 * k, 2) for k in range(13)], 0.75, "shift", "β/γ", concept="ln"),
            Choice("biased", {"no": "without b", "yes": "with b"}, "no", "layer"),
            Slider("draw", [1, 2, 3, 4], 1, "random draw"),
        ],
        id="layer-norm-bend",
        title="Behind layer normalisation the boundary is a cone",
        alt="The plane of inputs with dots where a unit is active, the bent boundary of the unit behind layer normalisation, and the straight one behind "
        "batch normalisation with the same weights.",
        caption="The first of five units with two inputs. Large blue dots: active behind layer normalisation; its boundary is the dotted blue curve. Dashed ochre: "
        "the boundary of the same unit behind batch normalisation. Without the bias $b$ layer normalisation does not see the length of an input, so its "
        "boundary is made of rays. Set $\\beta/\\gamma$ to 0: both are straight, and not the same line.",
        readout="β/γ = {ratio}: the boundary behind layer normalisation is {word}; its points lie {flat:.3f} from the nearest line (root mean square).",
        presets={"No shift": {"ratio": 0}, "With biases": {"biased": "yes"}, "A closed curve": {"biased": "yes", "ratio": 1.0, "draw": 3}},
    )


# ---- larger initial weights ------------------------------------------------------------------------------------
SCALES = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]


def surface(x: torch.Tensor) -> torch.Tensor:
    """The function that the small networks learn: a wave and a step."""
    return torch.sin(1.5 * x[..., 0]) * torch.cos(x[..., 1]) + 0.5 * (x[..., 0] > 0.3)


@cache
def scaled_runs(kept: bool, runs: int = 6, steps: int = 300, lr: float = 0.01) -> dict:
    """Adam on networks of 24 units whose weights and biases were multiplied by a scale before training.

    `kept`: the output weights were divided by it, so that all start as the same function. For each scale, the median over
    `runs` of the largest turn of a boundary in one step (degrees), the typical turn in the first step, and the root mean squared
    error on 1000 new inputs. All networks train at once as one tensor (scale, run, unit).
    """
    g = torch.Generator().manual_seed(0)
    X, new = torch.randn(96, 2, dtype=f64, generator=g), torch.randn(1000, 2, dtype=f64, generator=g)
    W, b, a = (torch.randn(runs, 24, *more, dtype=f64, generator=g) for more in ((2,), (), ()))
    s = torch.tensor(SCALES, dtype=f64)[:, None, None]
    output = a / math.sqrt(24) / (s if kept else torch.ones_like(s))
    start = s[..., None] * W, s * 0.5 * b, output, torch.zeros(len(SCALES), runs, 1, dtype=f64)
    W, b, a, c = parameters = [p.clone().requires_grad_() for p in start]

    def net(x):
        return torch.einsum("ksnm,ksm->ksn", torch.relu(torch.einsum("ksmi,ni->ksnm", W, x) + b[:, :, None]), a) + c

    optimizer, largest, first = torch.optim.Adam(parameters, lr), torch.zeros(len(SCALES), runs, dtype=f64), None
    for _ in range(steps):
        before = W.detach().clone()
        optimizer.zero_grad()
        (net(X) - surface(X)).square().mean(-1).sum().backward()
        optimizer.step()
        after = W.detach()
        turned = torch.atan2(before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0], (before * after).sum(-1)).abs().rad2deg()
        largest = torch.maximum(largest, turned.amax(-1))
        first = turned.median(-1).values if first is None else first
    with torch.no_grad():
        error = (net(new) - surface(new)).square().mean(-1).sqrt()
    return {"scale": SCALES, "largest": largest.median(1).values.numpy(), "first": first.median(1).values.numpy(), "error": error.median(1).values.numpy()}


def larger_weights(scale: float, kept: str) -> dict:
    """The recorded runs of `scaled_runs`, and the one at `scale`."""
    runs = scaled_runs(kept == "yes")
    i = SCALES.index(scale)
    here = {k: [v[i]] for k, v in runs.items()}
    base = SCALES.index(1.0)
    return {"runs": runs, "now": here, "largest": runs["largest"][i], "first": runs["first"][i], "error": runs["error"][i],
            "usual_error": runs["error"][base]}


def larger_weights_figure() -> Explorable:
    """Larger initial weights do keep boundaries from jumping; what it costs depends on what else is scaled."""
    x = alt.X("scale:Q", title="initial weights, times", scale=alt.Scale(type="log", domain=[0.01, 10]), axis=alt.Axis(values=[0.01, 0.1, 1, 10], format="~g"))
    ty = alt.Y("largest:Q", title="turn in one step", scale=alt.Scale(type="log", domain=[0.03, 200]),
               axis=alt.Axis(values=[0.1, 1, 10, 100], labelExpr="datum.value + '°'"))
    ey = alt.Y("error:Q", title="error after training", scale=alt.Scale(domain=[0, 0.4]))
    runs, now = alt.Chart(alt.NamedData("runs")), alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    biggest = runs.mark_line(color=concept("sp"), strokeWidth=3, point={"size": 60, "filled": True, "color": concept("sp")}).encode(x=x, y=ty)
    typical = runs.mark_line(color=concept("sp"), strokeWidth=2, strokeDash=[5, 4]).encode(x=x, y="first:Q")
    dot = now.mark_circle(size=150, opacity=1, color=concept("sp")).encode(x=x, y=ty)
    left = alt.layer(rule, typical, biggest, dot).properties(height=290, title="how far boundaries turn")
    line = runs.mark_line(color=concept("measured"), strokeWidth=3, point={"size": 60, "filled": True, "color": concept("measured")}).encode(x=x, y=ey)
    mark = now.mark_circle(size=150, opacity=1, color=concept("measured")).encode(x=x, y=ey)
    right = alt.layer(rule, line, mark).properties(height=290, title="how well they learn")
    return Explorable(
        larger_weights,
        [left, right],
        [
            Slider("scale", SCALES, 1.0, "weights, times", "s", concept="sp"),
            Choice("kept", {"yes": "divided by s", "no": "left as they are"}, "yes", "output weights"),
        ],
        id="larger-weights",
        title="Larger initial weights: calmer boundaries, at a price that depends",
        alt="Left: the largest and the typical turn of a boundary in a step of training fall as the initial weights grow. Right: the error after training "
        "against the same scale.",
        caption="Recorded: 300 steps of Adam (learning rate 0.01) on networks of 24 units in standard form, medians of 6 runs. *Left*: the largest turn of any boundary "
        "in one step (solid), the typical turn in the first step (dashed). *Right*: root mean squared error on new inputs. With output "
        "weights divided by $s$ all networks start as the same function.",
        readout="Weights times {scale}: a boundary turns by up to {largest:.3g}° in a step, typically {first:.2g}° in the first. "
        "Error after training: {error:.3f} (at scale 1: {usual_error:.3f}).",
        presets={"Tiny": {"scale": 0.01}, "Three times": {"scale": 3.0}, "Ten times, uncompensated": {"scale": 10.0, "kept": "no"}},
    )


EXPLORABLES = {
    "predict-random-step": random_step_figure,
    "worst-step": worst_step_figure,
    "four-ways": four_ways_figure,
    "layer-norm-bend": layer_norm_bend_figure,
    "larger-weights": larger_weights_figure,
}
