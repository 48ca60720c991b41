"""Two points: the condition number of their tangent kernel, without and with the ReLU."""

import math
from functools import cache
from itertools import pairwise

import altair as alt
import numpy as np
import torch
from torch import Tensor

from ntklib import embedding_angle, gradient_angle, gradient_deficit
from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import concept, plane, series


def kappa(deficit, ratio=1.0):
    """Condition number of the kernel of two points whose gradients have 1 - cos phi = `deficit` and lengths 1 : `ratio`:
    kappa + 1/kappa + 2 = (r + 1/r)^2 / sin^2 phi, solved for the larger root without cancellation."""
    half = (ratio + 1 / ratio) ** 2 / (2 * deficit * (2 - deficit)) - 1
    return half + np.sqrt((half - 1) * (half + 1)) if np.ndim(half) else half + math.sqrt(max(half - 1, 0.0) * (half + 1))


def _radians(degrees) -> Tensor:
    return torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float64))


TENTHS = [m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5)]
EVEN = [1, 2, 3, 4, *range(5, 180, 5), 178, 179]


@cache
def _deficits(depth: int) -> dict:
    """1 - cos phi_L at every angle of a slider, in degrees, in one pass."""
    grid = sorted({*TENTHS, *EVEN})
    return dict(zip(grid, gradient_deficit(_radians(grid), depth).tolist(), strict=True))


def _deficit(theta: float, depth: int) -> float:
    """1 - cos phi_L at `theta` degrees; depth = 0 is the linear network of any depth."""
    known = _deficits(depth)
    return known[theta] if theta in known else gradient_deficit(_radians(theta), depth).item()


# ---- a prediction -------------------------------------------------------------------------------------------------
FINE = np.geomspace(0.01, 90, 121)


@cache
def _gains(depth: int) -> dict:
    linear, relu = (kappa(gradient_deficit(_radians(FINE), L).numpy()) for L in (0, depth))
    return {"theta": FINE, "gain": linear / relu}


def pair_gain(theta: float) -> dict:
    """By what the ReLU divides the condition number of two points, ten hidden layers, against their angle."""
    gain = kappa(_deficit(theta, 0)) / kappa(_deficit(theta, 10))
    return {"curve": _gains(10), "now": {"theta": [theta], "gain": [gain]}, "gain": gain}


POWERS = "'10' + ['⁻⁶', '⁻⁵', '⁻⁴', '⁻³', '⁻²', '⁻¹', '⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '¹⁰', '¹¹', '¹²', '¹³', '¹⁴', '¹⁵', '¹⁶'][round(log(datum.value) / LN10) + 6]"
DEGREES = alt.Axis(values=[1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 90], labelExpr=f"(datum.value < 0.001 ? {POWERS} : format(datum.value, '~g')) + '°'")
BIG = f"datum.value < 1e4 ? format(datum.value, 'd') : {POWERS}"  # labels of a condition number's axis


def pair_gain_figure() -> Explorable:
    """Guess the gain of a close pair."""
    x = alt.X("theta:Q", title="angle between the inputs θ", scale=alt.Scale(type="log", domain=[0.01, 90], nice=False), axis=DEGREES)
    y = alt.Y("gain:Q", title="κ without ReLU / κ with it", scale=alt.Scale(type="log", domain=[0.1, 1e5]), axis=alt.Axis(values=[0.1, 1, 10, 100, 1000, 1e4, 1e5], format=",~g"))
    curve, now = alt.Chart(alt.NamedData("curve")), alt.Chart(alt.NamedData("now"))
    return Explorable(
        pair_gain,
        alt.layer(
            now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x),
            curve.mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y),
            now.mark_circle(size=130, opacity=1, color=concept("relu")).encode(x=x, y=y),
        ).properties(height=300),
        [Slider("theta", [*TENTHS[12:], 10, 20, 30, 45, 60, 75, 90], 1, "input angle", "θ", "°")],
        id="predict-pair-gain",
        title="Predict first: what the ReLU does for a close pair",
        alt="The factor by which the ReLU divides the condition number of two points, against the angle between them, on logarithmic axes.",
        caption="Ten hidden layers, infinite width, unit inputs. Below $1$ the ReLU makes the condition number larger. Type a guess or drag the horizontal line, then reveal; "
        "the slider then shows every other angle.",
        readout="Two inputs {theta}° apart: the ReLU divides their condition number by {gain:.3g}.",
        presets={"Near-duplicates": {"theta": 0.01}, "Right angle": {"theta": 90}},
        predict=Predict(
            "Two unit inputs are $1^\\circ$ apart. By which factor is the condition number of their tangent kernel smaller in a ReLU network with ten hidden "
            "layers than in the same network without the ReLU?",
            "gain",
            ("gain",),
            "y",
            "",
            ".3g",
            (0, 1e9),
        ),
    )


# ---- what the two answers can do ----------------------------------------------------------------------------------
def pair_ellipses(theta: float, depth: int, ratio: float) -> dict:
    """Both kernels of x = (1, 0) and z of length `ratio` at `theta` degrees, divided by L + 1: what a unit step of the
    parameters can do to the two answers, and what gradient descent leaves of the slowest error."""
    out = {}
    for net, L in (("linear", 0), ("relu", depth)):
        lost = _deficit(theta, L)
        phi = 2 * math.atan2(math.sqrt(lost), math.sqrt(2 - lost))
        k = kappa(lost, ratio)
        # the lowest eigenvector: (c - b, a - d +- root), by the larger of two forms
        a, b, d = 1.0, ratio * math.cos(phi), ratio**2
        root = math.hypot(a - d, 2 * b)
        low = 2 * (ratio * math.sin(phi)) ** 2 / (a + d + root)
        v = np.array([-b, a - low]) if a >= d else np.array([d - low, -b])
        v = v / np.hypot(*v) * math.sqrt(low) if np.hypot(*v) > 1e-12 else np.array([0.0, math.sqrt(low)])
        out[net] = {"phi": phi, "kappa": k, "v": v if v[1] >= 0 else -v}
    return {
        "pair": {"theta": [math.radians(theta)], "r": [ratio]} | {f"{net}_phi": [o["phi"]] for net, o in out.items()},
        "low": {"net": ["without ReLU", "with ReLU"], "x": [o["v"][0] for o in out.values()], "y": [o["v"][1] for o in out.values()]},
        "kappas": {"net": ["without ReLU", "with ReLU"], "kappa": [o["kappa"] for o in out.values()]},
        "kappa_linear": out["linear"]["kappa"],
        "kappa_relu": out["relu"]["kappa"],
        "phi": math.degrees(out["relu"]["phi"]),
        "left_linear": (1 - 1 / out["linear"]["kappa"]) ** 50,
        "left_relu": (1 - 1 / out["relu"]["kappa"]) ** 50,
    }


NETS = {"without ReLU": "linear", "with ReLU": "relu"}


def pair_ellipses_figure() -> Explorable:
    """The inputs, what the answers can do, and how fast training goes: three views of one pair."""
    one = alt.Chart(alt.NamedData("pair"))
    raw = {"scale": None, "axis": None}

    def at(chart, place, reach, mark, style, **encoding):
        chart = plane(chart, reach=reach, p=dict(zip("xy", place, strict=True)))
        return getattr(chart, f"mark_{mark}")(**style).encode(x=alt.X("p_x:Q", **raw), y=alt.Y("p_y:Q", **raw), **encoding)

    def rows(k):
        return one.transform_calculate(k=f"sequence(0, {k + 1})").transform_flatten(["k"])

    def arrow(angle, length, ink, label, side):
        head = one.transform_calculate(turn=f"90 - ({angle}) * 180 / PI")
        far, off = f"({length} + 0.26)", 0.12 * side
        return [
            at(rows(1), (f"0.94 * datum.k * {length} * cos({angle})", f"0.94 * datum.k * {length} * sin({angle})"), 2.0, "line", {"strokeWidth": 3, "color": concept(ink)}, order="k:Q"),
            at(head, (f"0.94 * {length} * cos({angle})", f"0.94 * {length} * sin({angle})"), 2.0, "point", {"shape": "triangle", "filled": True, "size": 130, "opacity": 1, "color": concept(ink)}, angle=alt.Angle("turn:Q", scale=None)),
            at(one, (f"{far} * cos({angle}) - {off} * sin({angle})", f"{far} * sin({angle}) + {off} * cos({angle})"), 2.0, "text", {"text": label, "fontSize": 16, "fontStyle": "italic", "color": concept(ink)}),
        ]

    inputs = alt.layer(
        *arrow("datum.relu_phi", "datum.r", "gradient", "∇f(z)", 1.6),
        *arrow("datum.theta", "datum.r", "ink", "z", -0.6),
        *arrow("0", "1", "ink", "x", -0.6),
    ).properties(height=300, title="inputs and gradients")

    turn = "(datum.k * PI / 32)"

    def ellipse(phi, ink):
        place = f"cos{turn}", f"datum.r * (cos({phi}) * cos{turn} + sin({phi}) * sin{turn})"
        return at(rows(64), place, 1.75, "line", {"strokeWidth": 3, "color": concept(ink)}, order="k:Q")

    low = alt.Chart(alt.NamedData("low")).transform_calculate(k="[-1, 1]").transform_flatten(["k"])
    axes = at(low, ("datum.k * datum.x", "datum.k * datum.y"), 1.75, "line", {"strokeWidth": 3}, order="k:Q", color=series(NETS, "net:N", show=False))
    cross = [
        at(one.transform_calculate(k="[-1.6, 1.6]").transform_flatten(["k"]), place, 1.75, "line", {"strokeWidth": 1, "color": concept("faint")}, order="k:Q")
        for place in (("datum.k", "0"), ("0", "datum.k"))
    ]
    words = [
        at(one, place, 1.75, "text", {"text": text, "fontSize": 13, "color": concept("ink"), "align": "right"})
        for place, text in ((("1.68", "-0.16"), "f(x)"), (("-0.06", "1.55"), "f(z)"))
    ]
    middle = alt.layer(*cross, *words, ellipse("datum.theta", "linear"), ellipse("datum.relu_phi", "relu"), axes).properties(height=300, title="reach of a step")

    curves = (
        alt.Chart(alt.NamedData("kappas"))
        .transform_calculate(t="sequence(0, 201, 4)")
        .transform_flatten(["t"])
        .transform_calculate(left="max(pow(1 - 1 / datum.kappa, datum.t), 0.0009)")
        .mark_line(strokeWidth=3, clip=True)
        .encode(
            x=alt.X("t:Q", title="training steps", scale=alt.Scale(domain=[0, 200]), axis=alt.Axis(values=[0, 50, 100, 150, 200])),
            y=alt.Y("left:Q", title="error left", scale=alt.Scale(type="log", domain=[1e-3, 1]), axis=alt.Axis(values=[1, 0.1, 0.01, 0.001], format="~g")),
            color=series(NETS, "net:N", columns=1),
        )
        .properties(height=300, title="slowest error")
    )
    return Explorable(
        pair_ellipses,
        [inputs, middle, curves],
        [
            Slider("theta", EVEN[:-2], 15, "input angle", "θ", "°"),
            Slider("depth", [1, 2, 3, 5, 10, 20], 5, "depth", "L", concept="relu"),
            Slider("ratio", [0.5, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6], 1.0, "length of z", "r"),
        ],
        id="pair-ellipses",
        title="A pair, what a step can do to its answers, and how long it takes to train",
        alt="Three linked views. Inputs as two arrows, and the gradient at z as a third, further from x. Two ellipses in the plane of the two answers: without the ReLU "
        "a thin one, with it a rounder one. The slowest error against training steps, which falls faster with the ReLU.",
        caption="*Inputs and gradients*: drag $z$; orange, the gradient at $z$, at the angle $\\phi_L$ from that at $x$. *Reach of a step*: what a parameter step of length 1 can do to the two answers. "
        "A thin ellipse means that they can hardly move apart, which is its short axis; $\\kappa$ is the square of the ratio of the axes. *Slowest error*: what gradient descent with "
        "$\\eta=1/\\lambda_{\\max}$ leaves of it; each step multiplies it by $1-1/\\kappa$.",
        readout="θ = {theta}°, φ = {phi:.1f}°: κ = {kappa_linear:.3g} without the ReLU and {kappa_relu:.3g} with it. After 50 steps {left_linear:.1%} and {left_relu:.1%} of the slowest error are left.",
        presets={
            "Close pair": {"theta": 5, "ratio": 1.0, "depth": 5},
            "Right angle": {"theta": 90, "ratio": 1.0, "depth": 5},
            "Nearly opposite": {"theta": 165, "ratio": 1.0, "depth": 1},
            "Unequal": {"theta": 15, "ratio": 0.5, "depth": 5},
        },
        drag=(Drag(0, "theta", "angle"),),
        code="ntklib.ntk_condition_number(X, depth={depth})",
    )


# ---- two exponents ------------------------------------------------------------------------------------------------
WIDE = np.geomspace(1e-6, 90, 121)


@cache
def _rates(depth: int) -> dict:
    t = _radians(WIDE)
    law = 4 * math.pi / (depth * t.numpy()) if depth else np.full(len(WIDE), np.nan)
    return {
        "theta": WIDE,
        "linear": kappa(gradient_deficit(t, 0).numpy()),
        "relu": kappa(gradient_deficit(t, depth).numpy()),
        "square": np.where(WIDE < 40, 4 / t.numpy() ** 2, np.nan),
        "inverse": np.where(law > 1.3, law, np.nan),
    }


def pair_rates(theta: float, depth: int) -> dict:
    """Both condition numbers against the angle, with their leading terms 4/theta^2 and 4 pi/(L theta)."""
    linear, relu = kappa(_deficit(theta, 0)), kappa(_deficit(theta, depth))
    return {
        "curves": _rates(depth),
        "now": {"theta": [theta], "linear": [linear], "relu": [relu]},
        "linear": linear,
        "relu": relu,
        "gain": linear / relu,
        "law": depth / (math.pi * math.radians(theta)),
    }


def pair_rates_figure() -> Explorable:
    """The ReLU changes the exponent."""
    x = alt.X("theta:Q", title="angle between the inputs θ", scale=alt.Scale(type="log", domain=[1e-6, 90], nice=False), axis=DEGREES)

    def y(field):
        return alt.Y(field, title="condition number κ", scale=alt.Scale(type="log", domain=[1, 1e17]), axis=alt.Axis(values=[1, 1e4, 1e8, 1e12, 1e16], labelExpr=BIG))

    curves, now = alt.Chart(alt.NamedData("curves")), alt.Chart(alt.NamedData("now"))
    dashed = {"strokeWidth": 2, "strokeDash": [5, 4], "color": concept("ink"), "clip": True}
    return Explorable(
        pair_rates,
        alt.layer(
            curves.mark_line(strokeWidth=4, color=concept("linear"), clip=True).encode(x=x, y=y("linear:Q")),
            curves.mark_line(strokeWidth=4, color=concept("relu"), clip=True).encode(x=x, y=y("relu:Q")),
            curves.mark_line(**dashed).encode(x=x, y=y("square:Q")),
            curves.mark_line(**dashed).encode(x=x, y=y("inverse:Q")),
            now.mark_rule(strokeWidth=3, color=concept("ink")).encode(x=x, y=y("relu:Q"), y2="linear:Q"),
            now.mark_circle(size=110, opacity=1, color=concept("linear")).encode(x=x, y=y("linear:Q")),
            now.mark_circle(size=110, opacity=1, color=concept("relu")).encode(x=x, y=y("relu:Q")),
        ).properties(height=340),
        [
            Slider("theta", [*TENTHS, 10, 20, 30, 45, 60, 75], 0.1, "input angle", "θ", "°", format=".3g"),
            Slider("depth", [1, 2, 3, 5, 10, 20, 50, 100], 10, "depth", "L", concept="relu"),
        ],
        id="pair-rates",
        title="Without the ReLU the condition number grows as θ⁻², with it as θ⁻¹",
        alt="Two falling curves on logarithmic axes, condition number against angle. That of the network without ReLU has twice the slope of the other, so that the gap "
        "between them widens as the angle shrinks.",
        caption="Grey: without the ReLU. Blue: with it. Dashed: the leading terms $4/\\theta^2$ and $4\\pi/(L\\theta)$. The bar is the gain: on these axes its length grows "
        "without end as the angle shrinks, since the two lines have different slopes. Depth shifts the blue line down.",
        readout="θ = {theta}°, L = {depth}: κ = {linear:.3g} without the ReLU and {relu:.3g} with it, a gain of {gain:.4g}; L/(πθ) = {law:.4g}.",
        presets={"A millionth of a degree": {"theta": 1e-6}, "One hidden layer": {"depth": 1}, "Wide apart": {"theta": 60}},
        drag=(Drag(0, "theta", "x"),),
        code="ntklib.gradient_deficit(math.radians({theta}), depth={depth})",
    )


# ---- where it holds -----------------------------------------------------------------------------------------------
ANGLES = np.arange(1, 180, 1.0)
DEPTHS = [*range(1, 21), 25, 30, 40, 50, 70, 100]


@cache
def window(depth: int) -> tuple[float, float]:
    """The input angles in degrees between which |cos phi_L| > |cos theta|: there the ReLU makes kappa larger.

    cos phi_L -+ cos theta has one zero on each side of a right angle; the secant method finds both."""
    sign = torch.tensor([1.0, -1.0], dtype=torch.float64)

    def excess(t):
        return gradient_angle(t, depth).cos() - sign * t.cos()

    t, last = _radians([70.0, 103.0]), _radians([65.0, 110.0])
    f_last = excess(last)
    for _ in range(12):
        f = excess(t)
        step = torch.where(f == f_last, 0, f * (t - last) / (f - f_last))
        last, f_last, t = t, f, t - step
    return tuple(t.rad2deg().tolist())


@cache
def _windows() -> dict:
    edges = [window(L) for L in DEPTHS]
    return {"L": DEPTHS, "low": [e[0] for e in edges], "high": [e[1] for e in edges]}


@cache
def _around(depth: int) -> dict:
    t = _radians(ANGLES)
    linear, relu = (kappa(gradient_deficit(t, L).numpy()) for L in (0, depth))
    worse = relu > linear
    return {"theta": ANGLES, "linear": linear, "relu": relu, "from": np.where(worse, linear, np.nan), "to": np.where(worse, relu, np.nan)}


def pair_window(theta: float, depth: int) -> dict:
    """Both condition numbers on [0, 180] degrees, and the window of angles in which the ReLU loses, against depth."""
    low, high = window(depth)
    linear, relu = kappa(_deficit(theta, 0)), kappa(_deficit(theta, depth))
    return {
        "curves": _around(depth),
        "windows": _windows(),
        "now": {"theta": [theta], "linear": [linear], "relu": [relu], "L": [depth], "low": [low], "high": [high]},
        "linear": linear,
        "relu": relu,
        "low": low,
        "high": high,
        "verdict": "larger" if relu > linear else "smaller",
    }


def pair_window_figure() -> Explorable:
    """A window of angles in which the ReLU makes things worse."""
    angle = {"title": "angle between the inputs θ", "axis": alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'")}
    x = alt.X("theta:Q", scale=alt.Scale(domain=[0, 180], nice=False), **angle)

    def y(field):
        return alt.Y(field, title="condition number κ", scale=alt.Scale(type="log", domain=[1, 300]), axis=alt.Axis(values=[1, 3, 10, 30, 100, 300], format="~g"))

    curves, now = alt.Chart(alt.NamedData("curves")), alt.Chart(alt.NamedData("now"))
    left = alt.layer(
        now.mark_rule(strokeWidth=2, color=concept("faint")).encode(x=x),
        curves.mark_area(opacity=0.35, color=concept("gradient")).encode(x=x, y=y("from:Q"), y2="to:Q"),
        curves.mark_line(strokeWidth=3, color=concept("linear"), clip=True).encode(x=x, y=y("linear:Q")),
        curves.mark_line(strokeWidth=3, color=concept("relu"), clip=True).encode(x=x, y=y("relu:Q")),
        now.mark_circle(size=100, opacity=1, color=concept("linear"), clip=True).encode(x=x, y=y("linear:Q")),
        now.mark_circle(size=100, opacity=1, color=concept("relu"), clip=True).encode(x=x, y=y("relu:Q")),
    ).properties(height=300, title="condition number at depth L")

    L = alt.X("L:Q", title="depth L", scale=alt.Scale(type="log", domain=[1, 100], nice=False), axis=alt.Axis(values=[1, 3, 10, 30, 100], format="d"))

    def edge(field):
        return alt.Y(field, scale=alt.Scale(domain=[0, 180], nice=False), **angle)

    windows = alt.Chart(alt.NamedData("windows"))
    right = alt.layer(
        windows.mark_area(opacity=0.35, color=concept("gradient")).encode(x=L, y=edge("low:Q"), y2="high:Q"),
        *(windows.mark_line(strokeWidth=2.5, color=concept("gradient")).encode(x=L, y=edge(f"{e}:Q")) for e in ("low", "high")),
        now.mark_rule(strokeWidth=3, color=concept("ink")).encode(x=L, y=edge("low:Q"), y2="high:Q"),
        now.mark_point(shape="diamond", filled=True, size=150, opacity=1, color=concept("ink")).encode(x=L, y=edge("theta:Q")),
    ).properties(height=300, title="where the ReLU loses")
    return Explorable(
        pair_window,
        [left, right],
        [
            Slider("theta", EVEN, 90, "input angle", "θ", "°"),
            Slider("depth", DEPTHS, 3, "depth", "L", concept="relu"),
        ],
        id="pair-window",
        title="Around a right angle the ReLU makes the condition number worse",
        alt="Left: condition number against angle from 0 to 180 degrees; the grey curve without ReLU falls to 1 at a right angle and rises again, the blue curve with ReLU is "
        "flatter and lies above it around a right angle. Right: this window of angles against depth.",
        caption="*Left*: grey without, blue with the ReLU, unit inputs; shaded, the angles at which the ReLU loses. *Right*: these angles for every depth; the diamond is "
        "your pair. Orthogonal inputs need no help. *Opposite* ones do, since a linear network sees one direction only, and there the ReLU wins again.",
        readout="θ = {theta}°, L = {depth}: κ = {linear:.3g} without the ReLU and {relu:.3g} with it, {verdict}. The ReLU loses from {low:.2f}° to {high:.2f}°.",
        presets={"Close": {"theta": 30}, "Right angle": {"theta": 90}, "Nearly opposite": {"theta": 170}, "Deep": {"depth": 100}},
        drag=(Drag(0, "theta", "x"),),
    )


# ---- finite width -------------------------------------------------------------------------------------------------
COUNT = 200
SMALL = [0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 30]


def real_kappas(theta: Tensor, width: int, depth: int, count: int, generator: torch.Generator) -> Tensor:
    """Condition numbers (count, k) of the kernels of `count` random ReLU networks on (1, 0) and each of k unit inputs at
    angles `theta` from it, in radians. The squared distance of two gradients is summed layer by layer from differences of
    the layers' inputs and of the backward signals, so that a small angle keeps its digits."""
    X = torch.cat([torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.stack([theta.cos(), theta.sin()], 1)]).to(generator.device)
    sizes, scale, found = [2, *[width] * depth, 1], math.sqrt(2 / width), []
    for part in torch.arange(count).split(max(1, 10**7 // width**2)):
        W = [torch.randn(len(part), b, a, dtype=torch.float64, generator=generator, device=generator.device) for a, b in pairwise(sizes)]
        a, gates = [X.T.expand(len(part), -1, -1)], []
        for layer in W[:-1]:
            z = layer @ a[-1]
            gates.append((z > 0) * scale)
            a.append(z * gates[-1])
        delta = torch.ones(len(part), 1, len(X), dtype=torch.float64, device=generator.device)
        own = apart = 0
        for l in range(depth, -1, -1):
            (ax, az), (dx, dz) = ((u[:, :, :1], u[:, :, 1:]) for u in (a[l], delta))
            own = own + a[l].square().sum(1) * delta.square().sum(1)
            da, dd = ax - az, dx - dz
            apart = apart + dd.square().sum(1) * ax.square().sum(1) + dz.square().sum(1) * da.square().sum(1) + 2 * (dd * dz).sum(1) * (ax * da).sum(1)
            if l:
                delta = (W[l].mT @ delta) * gates[l - 1]
        trace, gap = own[:, :1] + own[:, 1:], own[:, :1] - own[:, 1:]
        det = (2 * apart * trace - apart**2 - gap**2) / 4
        high = (trace + (trace**2 - 4 * det).clamp(min=0).sqrt()) / 2
        found.append(high**2 / det)
    return torch.cat(found)


@cache
def _finite(width: int, depth: int) -> dict:
    t = _radians(SMALL)
    k = real_kappas(t, width, depth, COUNT, torch.Generator().manual_seed(0))
    low, middle, high = k.quantile(torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64), dim=0).numpy()
    linear, relu = (kappa(gradient_deficit(t, L).numpy()) for L in (0, depth))
    half = np.sqrt(linear * relu)  # half of the way from one curve to the other, on a logarithmic axis
    return {"theta": SMALL, "low": low, "middle": middle, "high": high, "linear": linear, "relu": relu, "share": (k.numpy() < half).mean(0)}


@cache
def flip_chance(theta: float, width: int, depth: int) -> float:
    """1 - prod over layers of (1 - theta^(l)/pi)^m: the chance that some unit of the network tells two inputs at `theta`
    degrees apart, if the layers were independent and their angles those of infinite width."""
    t = _radians(theta)
    share = torch.stack([embedding_angle(t, l) for l in range(depth)]) / math.pi
    return -math.expm1(width * torch.log1p(-share).sum().item())


def pair_width(theta: float, width: int, depth: int) -> dict:
    """Condition numbers of 200 real networks for each angle, and the share of those that gain, half of what infinite width gains or more."""
    f, i = _finite(width, depth), SMALL.index(theta)
    chance = [flip_chance(t, width, depth) for t in SMALL]
    return {
        "curves": f,
        "chance": {"theta": SMALL, "chance": chance},
        "now": {"theta": [theta], "low": [f["low"][i]], "high": [f["high"][i]], "share": [f["share"][i]]},
        "edge": {"theta": [math.degrees(math.pi / (width * depth))]},
        "middle": f["middle"][i],
        "linear": f["linear"][i],
        "relu": f["relu"][i],
        "flips": width * depth * theta / 180,
        "share": f["share"][i],
    }


def pair_width_figure() -> Explorable:
    """A real network gains only where some unit tells the two inputs apart."""
    x = alt.X("theta:Q", title="angle between the inputs θ", scale=alt.Scale(type="log", domain=[0.003, 30], nice=False), axis=alt.Axis(values=[0.01, 0.1, 1, 10], labelExpr="format(datum.value, '~g') + '°'"))

    def y(field):
        return alt.Y(field, title="condition number κ", scale=alt.Scale(type="log", domain=[1, 1e10]), axis=alt.Axis(values=[1, 100, 1e4, 1e6, 1e8, 1e10], labelExpr=BIG))

    curves, now, edge = (alt.Chart(alt.NamedData(n)) for n in ("curves", "now", "edge"))
    at_edge = edge.mark_rule(strokeWidth=2, strokeDash=[2, 3], color=concept("ink"))
    left = alt.layer(
        at_edge.encode(x=x),
        curves.mark_area(opacity=0.3, color=concept("measured")).encode(x=x, y=y("low:Q"), y2="high:Q"),
        curves.mark_line(strokeWidth=2.5, color=concept("linear")).encode(x=x, y=y("linear:Q")),
        curves.mark_line(strokeWidth=2.5, color=concept("relu")).encode(x=x, y=y("relu:Q")),
        curves.mark_line(strokeWidth=3, color=concept("measured")).encode(x=x, y=y("middle:Q")),
        now.mark_rule(strokeWidth=4, color=concept("ink")).encode(x=x, y=y("low:Q"), y2="high:Q"),
    ).properties(height=310, title="κ of real networks")
    part = {"title": "share of networks", "scale": alt.Scale(domain=[0, 1.02], nice=False), "axis": alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format="%")}
    right = alt.layer(
        at_edge.encode(x=x),
        alt.Chart(alt.NamedData("chance")).mark_line(strokeWidth=3, color=concept("gradient")).encode(x=x, y=alt.Y("chance:Q", **part)),
        curves.mark_point(filled=True, shape="diamond", size=70, opacity=1, color=concept("measured")).encode(x=x, y=alt.Y("share:Q", **part)),
        now.mark_point(filled=True, shape="diamond", size=220, opacity=1, color=concept("measured"), stroke=concept("ink"), strokeWidth=2).encode(x=x, y=alt.Y("share:Q", **part)),
    ).properties(height=310, title="networks that gain")
    return Explorable(
        pair_width,
        [left, right],
        [
            Slider("theta", SMALL, 0.1, "input angle", "θ", "°"),
            Choice("width", {m: f"{m} units" for m in (16, 64, 256)}, 64, "width", "m", concept="measured"),
            Choice("depth", {1: "1 hidden layer", 3: "3 hidden layers"}, 1, "depth", "L"),
        ],
        id="pair-width",
        title="At small angles a network of finite width returns to the linear law",
        alt="Left: condition number against angle on logarithmic axes. The median of real networks follows the blue line of infinite width at large angles and jumps up to the "
        "grey line of the linear network at small ones. Right: the share of networks that gain falls to 0 as the angle shrinks past the same place.",
        caption="*Left*: purple, the median and the middle 80 % of 200 real ReLU networks; blue, infinite width; grey, without ReLU. *Right*: purple, the share of networks that gain, "
        "with $\\kappa$ nearer to blue than to grey; orange, the chance that at least one unit tells the two inputs apart. Dotted: $\\theta=\\pi/(mL)$, where one unit does on average. "
        "The table was drawn with one fixed seed on the CPU.",
        readout="θ = {theta}°, {width} units: {flips:.2g} units tell the inputs apart on average. Median κ = {middle:.3g} (infinite width {relu:.3g}, linear {linear:.3g}); {share:.0%} of the networks gain.",
        presets={"Narrow": {"width": 16, "theta": 1}, "Wide": {"width": 256, "theta": 1}, "Deep": {"depth": 3}},
    )


EXPLORABLES = {
    "predict-pair-gain": pair_gain_figure,
    "pair-ellipses": pair_ellipses_figure,
    "pair-rates": pair_rates_figure,
    "pair-window": pair_window_figure,
    "pair-width": pair_width_figure,
}
