"""The angle map: what one random ReLU layer does to the angle between two inputs."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib import angle_between, angle_map
from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import PALETTE, Still, concept, matplotlib_style, plane, series

DEGREES = np.linspace(0, 180, 91)
UNITS = 64  # hidden units drawn, however wide the layer is


@cache
def _at(degrees: float) -> float:
    return _g(degrees).item()


def _g(degrees, slope=0.0) -> np.ndarray:
    """The angle map in degrees."""
    return np.degrees(angle_map(torch.deg2rad(torch.as_tensor(degrees, dtype=torch.float64)), slope).numpy())


def _axes(after="g"):
    """Angle before and after a layer, on the same axes in every figure of the chapter."""
    shared = {
        "axis": alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'"),
        "scale": alt.Scale(domain=[0, 180]),
    }
    return alt.X("theta:Q", title="input angle θ", **shared), alt.Y(f"{after}:Q", title="output angle", **shared)


@cache
def _layer(draw: int) -> torch.Tensor:
    return torch.randn(1024, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(draw))


@cache
def _map() -> dict:
    return {"theta": DEGREES, "g": _g(DEGREES)}


# ---- the layer itself ---------------------------------------------------------------------------------------------
def hidden_units(theta: float, width: int, draw: int) -> dict:
    """One real random layer of `width` ReLU units on x = (1, 0) and z at `theta` degrees: its units, and the angle between
    its two outputs beside g(theta). Positions are rounded to 1/256 for drawing, the angle is not."""
    W = _layer(draw)[:width]
    t = torch.tensor(math.radians(theta), dtype=torch.float64)
    inputs = torch.stack([torch.tensor([1.0, 0.0], dtype=torch.float64), torch.stack([t.cos(), t.sin()])])
    hx, hz = torch.relu(inputs @ W.T)
    measured, exact = math.degrees(angle_between(hx, hz)), _at(theta)
    few = W[:UNITS]
    fires = (few @ inputs.T > 0).sum(1)

    def pixels(column, scale=1.0):
        out = np.full(UNITS, np.nan)
        out[: len(few)] = np.round(column[:UNITS].numpy() * scale * 256) / 256
        return out

    direction = few / few.norm(dim=1, keepdim=True)
    kind = np.full(UNITS, "", dtype="<U24")
    kind[: len(few)] = np.array(["silent for both", "tells them apart", "active for both"])[fires.numpy()]
    arcs = np.radians(np.concatenate([np.linspace(90, 90 + theta, 13), np.linspace(270, 270 + theta, 13)]))
    return {
        "units": {
            "x": pixels(direction[:, 0], 1.12),
            "y": pixels(direction[:, 1], 1.12),
            "hx": pixels(hx),
            "hz": pixels(hz),
            "kind": kind,
        },
        "arrows": {
            "x": inputs[:, 0].numpy(),
            "y": inputs[:, 1].numpy(),
            "turn": [90, 90 - theta],
            "name": ["x", "z"],
        },
        "arcs": {"x": np.cos(arcs), "y": np.sin(arcs), "side": [0] * 13 + [1] * 13, "order": range(26)},
        "map": _map(),
        "now": {"theta": [theta], "exact": [exact], "measured": [measured]},
        "apart": float(((hx > 0) != (hz > 0)).double().mean()),
        "expected": theta / 180,
        "measured": measured,
        "exact": exact,
    }


def hidden_units_figure() -> Explorable:
    """Two inputs, the random units that tell them apart, and the curve g: three views of one state."""
    kinds = {"active for both": "relu", "tells them apart": "gradient", "silent for both": "linear"}
    colour = series(kinds, "kind:N", columns=1)
    centre = {"x": "0", "y": "0"}
    arrow = plane(
        alt.Chart(alt.NamedData("arrows")),
        tail=centre,
        tip={"x": "datum.x * 0.9", "y": "datum.y * 0.9"},
        label={
            "x": "datum.name == 'x' ? 0.62 : datum.x * 0.62 - datum.y * 0.11",
            "y": "datum.name == 'x' ? -0.11 : datum.y * 0.62 + datum.x * 0.11",
        },
    )
    raw = {"scale": None, "axis": None}
    at = {n: {"x": alt.X(f"{n}_x:Q", **raw), "y": alt.Y(f"{n}_y:Q", **raw)} for n in ("tail", "tip", "label")}
    shafts = arrow.mark_rule(strokeWidth=3, color=concept("ink")).encode(**at["tail"], x2="tip_x:Q", y2="tip_y:Q")
    heads = arrow.mark_point(shape="triangle", filled=True, size=160, opacity=1, color=concept("ink")).encode(
        **at["tip"], angle=alt.Angle("turn:Q", scale=None)
    )
    names = arrow.mark_text(fontSize=17, fontStyle="italic", color=concept("ink")).encode(
        **at["label"], text="name:N"
    )
    dots = plane(
        alt.Chart(alt.NamedData("units")).transform_filter("datum.kind != ''"), dot={"x": "datum.x", "y": "datum.y"}
    )
    ring = dots.mark_circle(size=42, opacity=1).encode(
        x=alt.X("dot_x:Q", **raw), y=alt.Y("dot_y:Q", **raw), color=colour
    )
    arcs = (
        plane(alt.Chart(alt.NamedData("arcs")), arc={"x": "datum.x", "y": "datum.y"})
        .mark_line(strokeWidth=4, color=concept("gradient"))
        .encode(x=alt.X("arc_x:Q", **raw), y=alt.Y("arc_y:Q", **raw), detail="side:N", order="order:Q")
    )
    circle = alt.layer(arcs, ring, shafts, heads, names).properties(height=300, title="directions: inputs and units")

    h = {"scale": alt.Scale(domain=[0, 3.5]), "axis": alt.Axis(values=[0, 1, 2, 3])}
    answers = (
        alt.Chart(alt.NamedData("units"))
        .transform_filter("datum.kind != ''")
        .mark_circle(size=42, opacity=0.85, clip=True)
        .encode(
            x=alt.X("hx:Q", title="unit's answer to x", **h),
            y=alt.Y("hz:Q", title="unit's answer to z", **h),
            color=series(kinds, "kind:N", show=False),
        )
        .properties(height=300, title="answers: each dot a unit")
    )

    x, y = _axes()
    curve = alt.Chart(alt.NamedData("map")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y)
    same = (
        alt.Chart(alt.NamedData("map"))
        .mark_line(color=concept("linear"), strokeDash=[5, 4])
        .encode(x=x, y=alt.Y("theta:Q"))
    )
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint")).encode(x=x)
    exact = now.mark_point(size=130, color=concept("relu"), filled=True, opacity=1).encode(x=x, y="exact:Q")
    measured = now.mark_point(size=150, shape="diamond", filled=True, opacity=1, color=concept("measured")).encode(
        x=x, y="measured:Q"
    )
    right = alt.layer(rule, same, curve, exact, measured).properties(height=300, title="output of the layer")
    return Explorable(
        hidden_units,
        [circle, answers, right],
        [
            Slider("theta", list(range(0, 181, 5)), 60, "input angle", "θ", "°"),
            Choice("width", {m: f"{m} units" for m in (16, 64, 256, 1024)}, 64, "width", "m", concept="measured"),
            Slider("draw", [1, 2, 3, 4], 1, "random draw"),
        ],
        id="hidden-units",
        title="Two inputs and the random hidden units that tell them apart",
        alt="Three linked views. Directions: two input arrows in a circle of hidden-unit directions, with two orange arcs of the angle "
        "between the inputs that hold the units active for exactly one input. Middle: a scatter of each unit's two answers. "
        "Output: the curve g below the diagonal, with the angle measured on this layer.",
        caption="*Directions*: drag the arrow $z$, or use the slider. A unit is a dot in the direction of its weights; it fires for an "
        "input within 90° of it, so only the units on the two orange arcs, a fraction $\\theta/\\pi$ of all, answer "
        "one input and not the other. *Answers*: the same units by what they return; those lie on the axes. *Output*: the angle between the "
        "layer's two outputs, measured (purple) and as $m\\to\\infty$ (blue); the dashed line is a layer without ReLU. "
        "At most 64 units are drawn; the measured angle uses all $m$.",
        readout="θ = {theta}°: {apart:.1%} of the units tell the inputs apart (expected {expected:.1%}). "
        "Angle after the layer: {measured:.1f}° measured, {exact:.1f}° at infinite width.",
        presets={
            "Near-duplicates": {"theta": 5, "width": 1024},
            "Right angle": {"theta": 90, "width": 256},
            "Opposite": {"theta": 180, "width": 256},
        },
        drag=(Drag(0, "theta", "angle"), Drag(2, "theta", "x")),
        code="ntklib.angle_map(math.radians({theta}))",
    )


# ---- a prediction -------------------------------------------------------------------------------------------------
def one_layer(theta: float) -> dict:
    """The angle map g on a grid, and its value at `theta` degrees."""
    return {"map": _map(), "now": {"theta": [theta], "g": _g([theta])}, "after": _g(theta).item()}


def one_layer_figure() -> Explorable:
    """Guess what a ReLU layer makes of a right angle."""
    x, y = _axes()
    curve = alt.Chart(alt.NamedData("map")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y)
    same = (
        alt.Chart(alt.NamedData("map")).mark_line(color=concept("linear"), strokeDash=[5, 4]).encode(x=x, y="theta:Q")
    )
    point = alt.Chart(alt.NamedData("now")).mark_circle(size=130, opacity=1, color=concept("relu")).encode(x=x, y=y)
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    return Explorable(
        one_layer,
        alt.layer(rule, same, curve, point).properties(height=300),
        [Slider("theta", list(range(0, 181, 5)), 90, "input angle", "θ", "°")],
        id="predict-one-layer",
        title="Predict first: one wide ReLU layer",
        alt="The angle after one infinitely wide ReLU layer against the angle before it, with the diagonal for comparison.",
        caption="The dashed line is a layer without ReLU, which keeps every angle. Type a guess or drag the dashed horizontal line, then reveal; "
        "the slider then shows every other angle.",
        readout="Inputs {theta}° apart leave the layer {after:.1f}° apart.",
        presets={"Small angle": {"theta": 10}, "Opposite": {"theta": 180}},
        predict=Predict(
            "Two inputs at a right angle pass one very wide random ReLU layer. What is the angle between its two outputs?",
            "after",
            ("g",),
            "y",
            "°",
            ".3g",
            (0, 180),
        ),
        code="ntklib.angle_map(math.radians({theta}))",
    )


# ---- the integral -------------------------------------------------------------------------------------------------
def wedge_figure(theta: float = 60) -> Still:
    """Where both units' arguments are positive: the wedge over which the kernel is integrated."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Arc, Wedge

    p = PALETTE["light"]
    with plt.rc_context(matplotlib_style()):
        fig, ax = plt.subplots(figsize=(5.2, 4.4))
    ax.set(xlim=(-1.35, 1.55), ylim=(-1.2, 1.3), aspect="equal")
    ax.axis("off")
    for start, stop, name in ((theta - 90, 90, "relu"), (-90, theta - 90, "gradient"), (90, 90 + theta, "gradient")):
        ax.add_patch(Wedge((0, 0), 1, start, stop, facecolor=p[name], edgecolor="none", alpha=0.22))
    for edge in (90, theta - 90):
        e = np.radians(edge)
        ax.plot([0, np.cos(e)], [0, np.sin(e)], color=p["relu"], lw=1.5, ls=(0, (4, 3)))
    for degrees, name in ((0, "$x$"), (theta, "$z$")):
        end = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        ax.annotate(
            "", end * 1.02, (0, 0), arrowprops={"arrowstyle": "-|>", "color": p["ink"], "lw": 2, "mutation_scale": 16}
        )
        ax.text(*(end * 1.12), name, ha="center", va="center", fontsize=15)
    ax.add_patch(Arc((0, 0), 0.46, 0.46, theta1=0, theta2=theta, color=p["ink"], lw=1.3))
    middle = np.radians(theta / 2)
    ax.text(0.31 * np.cos(middle), 0.31 * np.sin(middle), r"$\theta$", ha="center", va="center", fontsize=14)
    for at, far, text, name in (
        (theta / 2 - 11, 0.7, "active\nfor both", "relu"),
        (-90 + theta / 2, 0.66, "only\nfor $x$", "gradient"),
        (90 + theta / 2, 0.66, "only\nfor $z$", "gradient"),
    ):
        x, y = far * np.cos(np.radians(at)), far * np.sin(np.radians(at))
        ax.text(x, y, text, ha="center", va="center", color=p[name], fontsize=12)
    ax.text(
        np.cos(np.radians(theta - 90)) * 1.05,
        np.sin(np.radians(theta - 90)) * 1.05,
        r"$\varphi=\theta-\frac{\pi}{2}$",
        va="center",
        fontsize=13,
    )
    ax.text(0, 1.08, r"$\varphi=\frac{\pi}{2}$", ha="center", va="bottom", fontsize=13)
    ax.text(-0.55, -0.45, "silent for both", ha="center", color=p["linear"], fontsize=12)
    return Still(
        fig,
        id="wedge",
        alt="The plane of the two inputs, divided by the directions of the weights: a wedge from theta minus 90 degrees to "
        "90 degrees where a unit is active for both inputs, two wedges of angle theta where it is active for one, and the rest.",
        caption="The plane of $x$ and $z$, by the direction $\\varphi$ of a unit's weights. The kernel is the integral over the blue wedge, "
        "whose opening is $\\pi-\\theta$; the two orange ones have opening $\\theta$ each.",
    )


# ---- finite width -------------------------------------------------------------------------------------------------
def layer_angles(theta: float, width: int, draws: int, generator: torch.Generator) -> torch.Tensor:
    """Angles in radians, (draws, k), between the outputs of `draws` random ReLU layers on two inputs at `theta` degrees, as
    each layer grows to 2^4, 2^5, ..., `width` units. Only the plane of the inputs matters, so they live in it."""
    t = math.radians(theta)
    device = generator.device
    plane_ = torch.tensor([[1.0, 0.0], [math.cos(t), math.sin(t)]], dtype=torch.float64, device=device)
    h = torch.relu(torch.randn(draws, width, 2, dtype=torch.float64, generator=generator, device=device) @ plane_.T)
    ends = [2**k - 1 for k in range(4, width.bit_length())]
    xx, zz, d = (s.cumsum(1)[:, ends] for s in (h[..., 0] ** 2, h[..., 1] ** 2, (h[..., 0] - h[..., 1]) ** 2))
    a, b = xx.sqrt(), zz.sqrt()
    chord = ((d - (a - b) ** 2).clamp(min=0) / (a * b)).sqrt()  # |u - v| of the unit vectors, without cancellation
    return 2 * torch.asin((chord / 2).clamp(max=1))


@cache
def _widths(theta: float) -> dict:
    angles = layer_angles(theta, 8192, 200, torch.Generator().manual_seed(0)).rad2deg()
    low, middle, high = angles.quantile(torch.tensor([0.025, 0.5, 0.975], dtype=torch.float64), dim=0)
    return {"m": [2.0**k for k in range(4, 14)], "low": low.numpy(), "middle": middle.numpy(), "high": high.numpy()}


def concentration(theta: float, width: int) -> dict:
    """The angle after one real layer against its width: the middle 95 % of 200 layers, and g(theta)."""
    w = _widths(theta)
    i = w["m"].index(width)
    return {
        "widths": w,
        "limit": {"g": [_g(theta).item()]},
        "now": {"m": [float(width)], "low": [w["low"][i]], "high": [w["high"][i]]},
        "low": w["low"][i],
        "high": w["high"][i],
        "half": (w["high"][i] - w["low"][i]) / 2,
        "exact": _g(theta).item(),
    }


def concentration_figure() -> Explorable:
    """How fast a real layer becomes its infinitely wide limit."""
    m = alt.X(
        "m:Q",
        title="width m (hidden units)",
        scale=alt.Scale(type="log", base=2, domain=[16, 8192]),
        axis=alt.Axis(values=[16, 64, 256, 1024, 4096], format="d"),
    )
    y = alt.Scale(domain=[0, 120])
    data = alt.Chart(alt.NamedData("widths"))
    band = data.mark_area(opacity=0.3, color=concept("measured")).encode(
        x=m, y=alt.Y("low:Q", title="angle after the layer (degrees)", scale=y), y2="high:Q"
    )
    middle = data.mark_line(color=concept("measured"), strokeWidth=2.5).encode(x=m, y="middle:Q")
    limit = (
        alt.Chart(alt.NamedData("limit"))
        .mark_rule(color=concept("relu"), strokeWidth=2.5, strokeDash=[6, 4])
        .encode(y="g:Q")
    )
    now = (
        alt.Chart(alt.NamedData("now"))
        .mark_rule(color=concept("ink"), strokeWidth=3)
        .encode(x=m, y="low:Q", y2="high:Q")
    )
    return Explorable(
        concentration,
        alt.layer(band, middle, limit, now).properties(height=280),
        [
            Slider("theta", [1, 5, 10, 30, 60, 90, 120, 150, 180], 90, "input angle", "θ", "°"),
            Slider("width", [2**k for k in range(4, 14)], 256, "width", "m", "units", concept="measured"),
        ],
        id="concentration",
        title="A real layer approaches its limit as it widens",
        alt="A band of measured angles narrows around the dashed limit g as the width grows from 16 to 8192 units.",
        caption="Purple: the middle 95 % of 200 random layers and their median; dashed blue: $g(\\theta)$. Four times the width "
        "halves the band: the spread falls as $1/\\sqrt m$. The table was drawn with one fixed seed on the CPU.",
        readout="At width {width}, 95 % of layers turn {theta}° into {low:.1f}° to {high:.1f}° (half-width {half:.2g}°); g = {exact:.2f}°.",
        presets={"Narrow": {"width": 16}, "Wide": {"width": 8192}, "Close inputs": {"theta": 5, "width": 256}},
    )


# ---- expansions ---------------------------------------------------------------------------------------------------
def expansion(order: int, theta: float) -> dict:
    """g and its Taylor polynomial at 0 up to z^order, on [0, pi], in degrees."""
    p = np.degrees(np.polynomial.polynomial.polyval(np.radians(DEGREES), _coefficients()[: order + 1]))
    at = np.degrees(np.polynomial.polynomial.polyval(math.radians(theta), _coefficients()[: order + 1]))
    return {
        "map": _map(),
        "taylor": {"theta": DEGREES, "g": np.where((p > -5) & (p < 185), p, np.nan)},
        "now": {"theta": [theta], "g": _g([theta])},
        "exact": _g(theta).item(),
        "value": at,
        "error": abs(at - _g(theta).item()),
    }


@cache
def _coefficients() -> np.ndarray:
    import sympy as sp

    from ntklib.symbolic import angle_map_series

    z = sp.Symbol("z", positive=True)
    return np.array([float(c) for c in reversed(sp.Poly(angle_map_series(z, 5), z).all_coeffs())])


def expansion_figure() -> Explorable:
    """How far a polynomial follows g."""
    x, y = _axes()
    curve = alt.Chart(alt.NamedData("map")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y)
    poly = (
        alt.Chart(alt.NamedData("taylor"))
        .mark_line(color=concept("gradient"), strokeWidth=2.5, strokeDash=[6, 3], clip=True)
        .encode(x=x, y=y)
    )
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    point = alt.Chart(alt.NamedData("now")).mark_circle(size=110, color=concept("relu"), opacity=1).encode(x=x, y=y)
    return Explorable(
        expansion,
        alt.layer(rule, curve, poly, point).properties(height=280),
        [
            Slider("order", [1, 2, 3, 4, 5], 2, "order of the polynomial", "k", concept="gradient"),
            Slider("theta", list(range(0, 181, 5)), 30, "input angle", "θ", "°"),
        ],
        id="expansion",
        title="The first terms carry the small angles",
        alt="The curve g and its Taylor polynomial of the chosen order, which leave each other as the angle grows.",
        caption="Blue: $g$. Dashed orange: its Taylor polynomial at 0. Order 1 is the identity, *nothing happens*; order 2, "
        "$z - z^2/(3\\pi)$, already holds to half a degree up to 50°.",
        readout="Order {order} at {theta}°: {value:.4g}° instead of {exact:.4g}° (error {error:.2g}°).",
        presets={"Identity": {"order": 1}, "Two terms": {"order": 2}, "Too far": {"order": 5, "theta": 180}},
        drag=(Drag(0, "theta", "x"),),
    )


# ---- leaky ReLU ---------------------------------------------------------------------------------------------------
def leaky(slope: float, theta: float) -> dict:
    """The angle map of a leaky ReLU of negative slope `slope`, beside ReLU's."""
    return {
        "map": {"theta": DEGREES, "leaky": _g(DEGREES, slope), "relu": _g(DEGREES)},
        "now": {"theta": [theta], "g": _g([theta], slope)},
        "beta": (1 - slope) ** 2 / (1 + slope**2),
        "after": _g(theta, slope).item(),
        "relu": _g(theta).item(),
    }


def leaky_figure() -> Explorable:
    """From the absolute value through ReLU to a linear layer."""
    x, _ = _axes()
    data = alt.Chart(alt.NamedData("map"))
    mine = data.mark_line(color=concept("leaky"), strokeWidth=3).encode(x=x, y=_axes("leaky")[1])
    relu = data.mark_line(color=concept("relu"), strokeDash=[6, 3]).encode(x=x, y="relu:Q")
    same = data.mark_line(color=concept("linear"), strokeDash=[2, 3]).encode(x=x, y="theta:Q")
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    point = (
        alt.Chart(alt.NamedData("now")).mark_circle(size=110, color=concept("leaky"), opacity=1).encode(x=x, y="g:Q")
    )
    return Explorable(
        leaky,
        alt.layer(rule, same, relu, mine, point).properties(height=280),
        [
            Slider("slope", [round(-1 + 0.1 * k, 1) for k in range(21)], 0.3, "negative slope", "a", concept="leaky"),
            Slider("theta", list(range(0, 181, 5)), 90, "input angle", "θ", "°"),
        ],
        id="leaky",
        title="One number, β, takes the layer from linear to absolute value",
        alt="The angle map of a leaky ReLU lies between the diagonal of a linear layer and the map of the absolute value.",
        caption="Green: slope $a$. Dashed blue: ReLU, $a=0$. Dotted grey: linear, $a=1$. The cosine is "
        "$\\beta$ times ReLU's plus $1-\\beta$ times the input's, with $\\beta=(1-a)^2/(1+a^2)$.",
        readout="Slope {slope:.1f}: β = {beta:.3f}; {theta}° becomes {after:.1f}° (ReLU: {relu:.1f}°).",
        presets={"Absolute value": {"slope": -1}, "ReLU": {"slope": 0}, "Linear": {"slope": 1}},
        drag=(Drag(0, "theta", "x"),),
        code="ntklib.angle_map(math.radians({theta}), slope={slope})",
    )


# ---- precision ----------------------------------------------------------------------------------------------------
TINY = np.logspace(-9, math.log10(3), 96)


def precision(dtype: str, theta: float) -> dict:
    """Relative error of two formulas for the angle between (1, 0) and (cos t, sin t), both rounded to `dtype` before either
    formula sees them; the truth is atan2 of the rounded coordinates in float64. Errors below 1e-17 are shown as 1e-17."""
    kind = getattr(torch, dtype)

    def measure(t):
        t = torch.as_tensor(t, dtype=torch.float64)
        z = torch.stack([t.cos(), t.sin()], dim=-1).to(kind)
        x = torch.tensor([1.0, 0.0], dtype=kind)
        truth = torch.atan2(z[..., 1].double(), z[..., 0].double())
        arccos, ours = torch.arccos((z @ x) / z.norm(dim=-1).clamp(min=1)).double(), angle_between(x, z).double()
        return arccos, ours, [((a / truth) - 1).abs().clamp(min=1e-17).numpy() for a in (arccos, ours)]

    errors = measure(TINY)[2]
    arccos, ours, (e1, e2) = measure([theta])
    return {
        "errors": {"t": TINY, "arccos": errors[0], "ours": errors[1]},
        "now": {"t": [theta], "arccos": e1, "ours": e2},
        "arccos": arccos.item(),
        "ours": ours.item(),
        "lost": e1.item(),
    }


def precision_figure() -> Explorable:
    """What arccos does to a small angle."""
    colour = series({"arccos of the cosine": "gradient", "angle_between": "relu"}, columns=1)
    x = alt.X(
        "t:Q",
        title="angle (radians)",
        scale=alt.Scale(type="log", domain=[1e-9, 3.2]),
        axis=alt.Axis(format=".0e", tickCount=8),
    )
    y = alt.Y(
        "error:Q",
        title="relative error",
        scale=alt.Scale(type="log", domain=[1e-17, 10], clamp=True),
        axis=alt.Axis(format=".0e", tickCount=9),
    )

    def marks(name):
        return (
            alt.Chart(alt.NamedData(name))
            .transform_calculate(**{"arccos of the cosine": "datum.arccos", "angle_between": "datum.ours"})
            .transform_fold(["arccos of the cosine", "angle_between"], ["what", "error"])
        )

    lines = marks("errors").mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour)
    points = marks("now").mark_circle(size=110, opacity=1).encode(x=x, y=y, color=colour)
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    return Explorable(
        precision,
        alt.layer(rule, lines, points).properties(height=300),
        [
            Choice("dtype", {"float32": "float32", "float64": "float64"}, "float32", "number format"),
            Slider("theta", [10.0**n for n in range(-9, 1)], 1e-4, "angle in radians", "θ", format=".0e"),
        ],
        id="precision",
        title="A small angle does not survive its own cosine",
        alt="Relative error of two formulas against the angle. The arccos of the cosine loses every digit below a threshold, the "
        "stable formula stays at rounding error.",
        caption="Orange: normalise, take the scalar product, take $\\arccos$. Blue: `ntklib.angle_between`. Both see the same rounded "
        "vectors. In float32 every angle below $2^{-12}\\approx2.4\\cdot10^{-4}$ becomes 0: an error of 100 %.",
        readout="In {dtype} an angle of {theta:.0e}: arccos says {arccos:.3g} (error {lost:.0%}), angle_between says {ours:.3g}.",
        presets={
            "0.0001 in float32": {"dtype": "float32", "theta": 1e-4},
            "and in float64": {"dtype": "float64", "theta": 1e-8},
        },
    )


EXPLORABLES = {
    "predict-one-layer": one_layer_figure,
    "hidden-units": hidden_units_figure,
    "concentration": concentration_figure,
    "expansion": expansion_figure,
    "leaky": leaky_figure,
    "precision": precision_figure,
}
