"""Chapter "The GmP layer": what a gradient does to a unit in radius, offset and angles, and what it cannot do."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch
from torch import nn

from ntklib.angles import embedding_angle
from ntklib.book import records
from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import PALETTE, Still, concept, matplotlib_style, plane, series
from ntklib.book.lab import Lab, recorded
from ntklib.gmp import GmPLinear, InputMeanNorm, from_module

f64 = torch.float64
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`
WAYS = {"weights (w, b)": "sp", "GmP (r, λ, θ)": "gmp"}


def _at(name: str) -> dict:
    """The pixel columns NAME_x and NAME_y of `plane`, as encodings."""
    return {"x": alt.X(f"{name}_x:Q", **RAW), "y": alt.Y(f"{name}_y:Q", **RAW)}


def _to(name: str) -> dict:
    return {"x2": f"{name}_x:Q", "y2": f"{name}_y:Q"}


# ---- one step of training, in both coordinates --------------------------------------------------------------------
RADII = [round(2.0 ** (k / 2), 4) for k in range(-6, 7)]
LENGTHS = np.exp2(np.linspace(-3, 3, 49))


def turns(length, lr: float, optimiser: str) -> tuple[np.ndarray, np.ndarray]:
    """Degrees by which one step turns a unit of R^2, trained as w = length u and as r = length with the angle of u.

    The gradient with respect to the argument's weights, sum of error times input, has length 1 and is at a right angle to
    u. Gradient descent, or the first step of Adam, which moves every coordinate that has a gradient by lr.
    """
    length = np.asarray(length, dtype=float)
    angle = lr * (length if optimiser == "gd" else np.ones_like(length))
    return np.degrees(np.arctan(lr / length)), np.degrees(angle)


def one_step(length: float, lr: float, optimiser: str) -> dict:
    """A unit with |w| = r = `length` before and after one step: its line in the plane, and the turn for every length."""
    sp, gmp = turns(LENGTHS, lr, optimiser)
    now = [x.item() for x in turns(length, lr, optimiser)]

    def line(degrees):
        t = math.radians(90 + degrees)
        return [1.15 * math.cos(t)], [1.15 * math.sin(t)]

    (sx, sy), (gx, gy), (ux, uy) = line(-now[0] - 90), line(-now[1] - 90), line(-90)
    return {
        "curve": {"r": LENGTHS, "sp": sp, "gmp": gmp},
        "now": {"r": [length], "sp": [now[0]], "gmp": [now[1]]},
        "lines": {"bx": ux, "by": uy, "sx": sx, "sy": sy, "gx": gx, "gy": gy},
        "sp": now[0],
        "gmp": now[1],
        "ratio": now[1] / now[0],
    }


def one_step_figure() -> Explorable:
    """Guess how far one step of gradient descent turns a GmP unit of radius 4."""
    ticks = [0.125, 0.25, 0.5, 1, 2, 4, 8]
    x = alt.X("r:Q", title="|w| = r", scale=alt.Scale(type="log", base=2, domain=[0.125, 8]), axis=alt.Axis(values=ticks, format="~g"))
    y = alt.Scale(domain=[0, 180])
    axis = alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'")

    def marks(name):
        return (
            alt.Chart(alt.NamedData(name))
            .transform_calculate(**{"weights (w, b)": "datum.sp", "GmP (r, λ, θ)": "datum.gmp"})
            .transform_fold(list(WAYS), ["what", "turn"])
        )

    turn = alt.Y("turn:Q", title="turn in one step", scale=y, axis=axis)
    colour = series(WAYS, columns=2)
    curves = marks("curve").mark_line(strokeWidth=3, clip=True).encode(x=x, y=turn, color=colour)
    points = marks("now").mark_circle(size=140, opacity=1, clip=True).encode(x=x, y=turn, color=colour)
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    left = alt.layer(rule, curves, points).properties(height=300, title="turn, by the length of the unit")

    ends = {
        name: ({"x": f"datum.{c}x", "y": f"datum.{c}y"}, {"x": f"-datum.{c}x", "y": f"-datum.{c}y"})
        for name, c in (("before", "b"), ("sp", "s"), ("gmp", "g"))
    }
    points_ = {f"{n}{k}": e for n, pair in ends.items() for k, e in zip("ab", pair, strict=True)}
    lines = plane(alt.Chart(alt.NamedData("lines")), **points_)
    drawn = [
        lines.mark_rule(color=concept(c), strokeWidth=w, strokeDash=d).encode(**_at(f"{n}a"), **_to(f"{n}b"))
        for n, c, w, d in (("before", "linear", 2.5, [5, 4]), ("sp", "sp", 3.5, [1, 0]), ("gmp", "gmp", 3.5, [1, 0]))
    ]
    right = alt.layer(*drawn).properties(height=300, title="the unit's line, before (dashed) and after")
    return Explorable(
        one_step,
        [left, right],
        [
            Slider("length", RADII, 4, "length", "|w| = r", format=".3g"),
            Slider("lr", [0.05, 0.1, 0.2, 0.35], 0.35, "learning rate", "η", format=".2f"),
            Choice("optimiser", {"gd": "gradient descent", "adam": "Adam, first step"}, "gd", "optimiser"),
        ],
        id="predict-one-step",
        title="Predict first: one step, two descriptions of the same unit",
        alt="Left: the turn of a unit's line in one training step against its length, trained by weights and as GmP. Right: the "
        "line in the plane before the step and after it.",
        caption="One unit of the plane with $\\lambda=0$; the error signal asks for a turn, and its strength is 1. *Left*: brown, the unit trained "
        "by its weights; blue-green, by radius and angle. *Right*: its line. Switch the optimiser, then move the length.",
        readout="|w| = r = {length:.3g}, η = {lr:.2f}: the weights turn by {sp:.1f}°, GmP by {gmp:.1f}° "
        "({ratio:.3g} times as much).",
        presets={
            "Short": {"length": 0.25},
            "Long": {"length": 4},
            "Short, Adam": {"length": 0.25, "optimiser": "adam"},
            "Long, Adam": {"length": 4, "optimiser": "adam"},
        },
        predict=Predict(
            "At length 1 one step of gradient descent turns the line by about 20°, whether the unit is trained by w or by r and θ. At "
            "length 4, with the same error signal, the weights turn by 5°. By how many degrees does the GmP unit turn?",
            "gmp",
            ("gmp", "gx", "gy"),
            "y",
            "°",
            ".3g",
            (0, 180),
        ),
        drag=(Drag(0, "length", "x"),),
    )


# ---- dead and far-away units --------------------------------------------------------------------------------------
OFFSETS = [round(-4 + 0.25 * k, 2) for k in range(33)]
SWING = 15  # degrees


@cache
def cloud() -> torch.Tensor:
    """Forty inputs of the plane."""
    x = torch.randn(40, 2, dtype=f64, generator=torch.Generator().manual_seed(3))
    return (x - x.mean(0)).mul(1000).round() / 1000


def sensitivity(x: torch.Tensor, theta: torch.Tensor, lam: torch.Tensor, r: float = 1.0) -> torch.Tensor:
    """Root mean squares over the inputs x (n, 2) of dz/dr, dz/dlam and dz/dtheta, (3, *) for units theta, lam (*)."""
    u, across = torch.stack([theta.cos(), theta.sin()]), torch.stack([-theta.sin(), theta.cos()])
    s = x @ u.reshape(2, -1) + lam.reshape(-1)
    on = (s > 0).to(x.dtype)
    parts = torch.stack([on * s, r * on, r * on * (x @ across.reshape(2, -1))])
    return parts.square().mean(1).sqrt().reshape(3, *lam.shape)


def far_unit(lam: float, theta: float) -> dict:
    """A unit of the plane with r = 1 among forty inputs: who is active, how its answers depend on r, lam and theta, and
    where its line and its location go when it turns by 15 degrees."""
    x, t = cloud(), math.radians(theta)
    turn = torch.full((len(OFFSETS),), t, dtype=f64)
    curves = sensitivity(x, turn, torch.tensor(OFFSETS, dtype=f64))
    here = sensitivity(x, torch.tensor(t, dtype=f64), torch.tensor(float(lam), dtype=f64)).tolist()
    on = ((x @ torch.tensor([math.cos(t), math.sin(t)], dtype=f64) + lam) > 0).numpy()

    def line(angle):
        u, v = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
        return -lam * u, -lam * u + 9 * v, -lam * u - 9 * v

    (p, a, b), (q, c, d) = line(t), line(t + math.radians(SWING))
    ends = {f"{n}{i}": [v] for n, point in (("p", p), ("a", a), ("b", b), ("q", q), ("c", c), ("d", d)) for i, v in zip("xy", point + 0.0, strict=True)}
    return {
        "inputs": {"x": x[:, 0].numpy(), "y": x[:, 1].numpy(), "kind": np.where(on, "active", "silent")},
        "lines": ends,
        "curves": {"lam": OFFSETS, "r": curves[0].numpy(), "offset": curves[1].numpy(), "angle": curves[2].numpy()},
        "now": {"lam": [lam], "r": [here[0]], "offset": [here[1]], "angle": [here[2]]},
        "active": int(on.sum()),
        "dr": here[0],
        "dlam": here[1],
        "dtheta": here[2],
        "swing": 2 * abs(lam) * math.sin(math.radians(SWING) / 2),
    }


def far_unit_figure() -> Explorable:
    """Drag a boundary off the data, and watch the gradients."""
    reach = 4.4
    dots = plane(alt.Chart(alt.NamedData("inputs")), reach, at={"x": "datum.x", "y": "datum.y"}).mark_circle(opacity=1).encode(
        **_at("at"),
        color=series({"active": "relu", "silent": "linear"}, "kind:N", columns=2),
        size=alt.Size("kind:N", scale=alt.Scale(domain=["active", "silent"], range=[70, 30]), legend=None),
    )
    points = {n: {"x": f"datum.{n}x", "y": f"datum.{n}y"} for n in "pabqcd"}
    unit = plane(alt.Chart(alt.NamedData("lines")), reach, zero={"x": "0", "y": "0"}, **points)
    after = unit.mark_rule(color=concept("gmp"), strokeWidth=2, strokeDash=[5, 4], clip=True).encode(**_at("c"), **_to("d"))
    swing = unit.mark_rule(color=concept("gmp"), strokeWidth=2, clip=True).encode(**_at("p"), **_to("q"))
    moved = unit.mark_point(color=concept("gmp"), size=110, opacity=1, clip=True, strokeWidth=2).encode(**_at("q"))
    now = unit.mark_rule(color=concept("ink"), strokeWidth=3, clip=True).encode(**_at("a"), **_to("b"))
    spot = unit.mark_circle(color=concept("gmp"), size=170, opacity=1, clip=True).encode(**_at("p"))
    left = alt.layer(dots, after, now, swing, moved, spot).properties(height=330, title="forty inputs and one unit")

    x = alt.X("lam:Q", title="offset λ", scale=alt.Scale(domain=[-4, 4]), axis=alt.Axis(values=[-4, -2, 0, 2, 4]))
    y = alt.Scale(domain=[0, 4.2])
    curves, here = alt.Chart(alt.NamedData("curves")), alt.Chart(alt.NamedData("now"))
    layers = [here.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)]
    for column, dash in (("r", [1, 0]), ("offset", [8, 4]), ("angle", [2, 3])):
        value = alt.Y(f"{column}:Q", title="r.m.s. derivative of the answer", scale=y)
        layers.append(curves.mark_line(color=concept("gmp"), strokeWidth=3, strokeDash=dash).encode(x=x, y=value))
        layers.append(here.mark_circle(color=concept("gmp"), size=90, opacity=1).encode(x=x, y=value))
    end = curves.transform_filter("datum.lam == 3.5")
    for column, words, lift in (("r", "in r", -16), ("offset", "in λ", -12), ("angle", "in θ", 14)):
        layers.append(end.mark_text(text=words, align="right", dy=lift, dx=4 if column != "r" else -14, color=concept("gmp")).encode(x=x, y=f"{column}:Q"))
    right = alt.layer(*layers).properties(height=330, title="how the answers feel r, λ and θ")
    return Explorable(
        far_unit,
        [left, right],
        [
            Slider("theta", list(range(0, 360, 15)), 30, "direction of u", "θ", "°", concept="gmp"),
            Slider("lam", OFFSETS, -3, "offset", "λ", concept="gmp", format=".2f"),
        ],
        id="far-unit",
        title="A boundary that leaves the data on its silent side does not come back",
        alt="Left: forty inputs in the plane, the line of one unit with its nearest point to the origin, and the same line turned by 15 "
        "degrees. Right: the root mean square derivatives of the unit's answers with respect to r, lambda and theta, against lambda.",
        caption="*Left*: black, the boundary $u\\cdot x+\\lambda=0$, and its location $\\phi$ as a dot; dashed, the boundary after a turn by 15°, with its "
        "location as a ring. *Right*: the three derivatives at $r=1$. For small $\\lambda$, left in this view, no input is active and all three are exactly 0. "
        "Drag in the right view.",
        readout="λ = {lam:.2f}, θ = {theta}°: active for {active:.0f} of 40 inputs. Derivatives: {dr:.3g} in r, {dlam:.3g} in λ, {dtheta:.3g} in θ. "
        "A turn of 15° moves the location by {swing:.2f}.",
        presets={
            "Through the data": {"lam": 0, "theta": 30},
            "A few left": {"lam": -1.5, "theta": 30},
            "Dead": {"lam": -3, "theta": 30},
            "Always on": {"lam": 3, "theta": 30},
        },
        drag=(Drag(1, "lam", "x"),),
    )


# ---- input mean normalisation -------------------------------------------------------------------------------------
WIDTH, BATCH, LAYERS = 256, 256, 16
EDGES = np.linspace(0, 1, 33)


@cache
def active_shares(centred: bool, draw: int) -> np.ndarray:
    """(LAYERS, WIDTH): the share of a batch of 256 Gaussian inputs for which each unit of each layer is active, in a GmP
    network at initialisation (lam = 0), with or without input mean normalisation between its layers."""
    g = torch.Generator().manual_seed(draw)
    x, shares = torch.randn(BATCH, WIDTH, dtype=f64, generator=g), []
    for layer in range(LAYERS):
        unit = GmPLinear(WIDTH, WIDTH, generator=g, dtype=f64).requires_grad_(False)
        if centred and layer:
            x = InputMeanNorm(WIDTH, dtype=f64)(x)
        x = unit(x)
        shares.append((x > 0).double().mean(0).numpy())
    return np.stack(shares)


def missed(cosine: float, batch: int) -> float:
    """The chance that a boundary with lam = 0 has a whole batch on one side, in the limit of infinite width, for inputs
    whose cosines are all `cosine`: the argument is then sqrt(c) A + sqrt(1 - c) B_i with independent normal A, B_i."""
    if cosine == 0:
        return 2.0 ** (1 - batch)
    a = torch.linspace(-9, 9, 20_001, dtype=f64)
    share = torch.special.ndtr(math.sqrt(cosine / (1 - cosine)) * a)
    mass = torch.exp(-a * a / 2) / math.sqrt(2 * math.pi) * (a[1] - a[0])
    return 2 * float((share**batch * mass).sum())


def cosine_before(layer: int) -> float:
    """The cosine between two orthogonal inputs when they reach layer 1, 2, .. of an infinitely wide ReLU network."""
    t = embedding_angle(torch.tensor(math.pi / 2, dtype=f64), layer - 1)
    return max(0.0, t.cos().item()) if layer > 1 else 0.0


@cache
def _depth(draw: int) -> dict:
    plain, centred = active_shares(False, draw), active_shares(True, draw)
    off = [100 * ((s == 0) | (s == 1)).mean(1) for s in (plain, centred)]
    limit = [100 * missed(cosine_before(k), BATCH) for k in range(1, LAYERS + 1)]
    return {"layer": np.arange(1, LAYERS + 1), "plain": off[0], "centred": off[1], "limit": np.array(limit)}


def mean_norm(layer: int, draw: int) -> dict:
    """How the boundaries of a layer, all with lam = 0, divide a batch: with and without input mean normalisation."""
    depth = _depth(draw)
    counts = [100 * np.histogram(active_shares(c, draw)[layer - 1], EDGES)[0] / WIDTH for c in (False, True)]
    middle = 100 * (EDGES[1:] + EDGES[:-1]) / 2
    i = layer - 1
    return {
        "bars": {"low": 100 * EDGES[:-1], "high": 100 * EDGES[1:], "middle": middle, "plain": counts[0], "centred": counts[1], "zero": np.zeros(32)},
        "depth": depth,
        "now": {"layer": [layer], "plain": [depth["plain"][i]], "centred": [depth["centred"][i]]},
        "plain": depth["plain"][i],
        "centred": depth["centred"][i],
        "limit": depth["limit"][i],
    }


def mean_norm_figure() -> Explorable:
    """Boundaries that miss the data, deeper and deeper, and the remedy."""
    x = alt.X("low:Q", title="inputs for which a unit is active", scale=alt.Scale(domain=[0, 100], nice=False),
              axis=alt.Axis(values=[0, 50, 100], labelExpr="datum.value + ' %'"))
    y = {"scale": alt.Scale(domain=[0, 60], clamp=True), "axis": alt.Axis(values=[0, 20, 40, 60], labelExpr="datum.value + ' %'")}
    bars = alt.Chart(alt.NamedData("bars"))
    plain = bars.mark_rect(color=concept("ink"), opacity=0.75).encode(x=x, x2="high:Q", y=alt.Y("plain:Q", title="units", **y), y2="zero:Q")
    centred = bars.mark_rect(color=concept("gmp"), opacity=0.6).encode(x=x, x2="high:Q", y=alt.Y("centred:Q", title="units", **y), y2="zero:Q")
    left = alt.layer(plain, centred).properties(height=290, title="how the units divide the batch")

    n = alt.X("layer:Q", title="layer", scale=alt.Scale(domain=[1, LAYERS]), axis=alt.Axis(values=[1, 4, 8, 12, 16], format="d"))
    ways = {"without": "ink", "mean subtracted": "gmp"}
    share = alt.Y("share:Q", title="units whose boundary misses", scale=alt.Scale(domain=[0, 60]), axis=alt.Axis(values=[0, 20, 40, 60], labelExpr="datum.value + ' %'"))

    def marks(name):
        return (
            alt.Chart(alt.NamedData(name))
            .transform_calculate(**{"without": "datum.plain", "mean subtracted": "datum.centred"})
            .transform_fold(list(ways), ["what", "share"])
        )

    colour = series(ways, columns=2)
    dots = marks("depth").mark_circle(size=60, opacity=1).encode(x=n, y=share, color=colour)
    big = marks("now").mark_point(size=200, opacity=1, strokeWidth=2).encode(x=n, y=share, color=colour)
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=n)
    limit = alt.Chart(alt.NamedData("depth")).mark_line(color=concept("ink"), strokeDash=[5, 4], strokeWidth=2).encode(
        x=n, y=alt.Y("limit:Q", title="units whose boundary misses"))
    right = alt.layer(rule, limit, dots, big).properties(height=290, title="the whole batch on one side")
    return Explorable(
        mean_norm,
        [left, right],
        [
            Slider("layer", list(range(1, LAYERS + 1)), 8, "layer", "ℓ"),
            Slider("draw", [1, 2, 3], 1, "random draw"),
        ],
        id="mean-norm",
        title="Without centring, the boundaries of deep layers miss the data",
        alt="Left: two histograms of the share of a batch for which a unit is active; without input mean normalisation the units pile up at 0 "
        "and at 100 per cent, with it they stay around 50. Right: the percentage of units that have the whole batch on one side, against the layer.",
        caption="A GmP network at its start, $\\lambda=0$, 256 units a layer, and a batch of 256 Gaussian inputs. *Left*: the units of layer "
        "$\\ell$, by the share of the batch that activates them; black without, blue-green with input mean normalisation. *Right*: units that are silent for all "
        "inputs, or active for all; dashed, the limit of infinite width without normalisation.",
        readout="Layer {layer}: the boundary misses the whole batch for {plain:.1f} % of the units without normalisation "
        "(infinite width: {limit:.1f} %), for {centred:.1f} % with it.",
        presets={"First layer": {"layer": 1}, "Second": {"layer": 2}, "Deep": {"layer": 16}},
        drag=(Drag(1, "layer", "x"),),
    )


# ---- the cost ------------------------------------------------------------------------------------------------------
def cost() -> dict:
    """{batch: {layer: time / time of nn.Linear}} of the recorded run, one training step of a layer 1024 -> 1024."""
    rows = [r for r in records.load("gmp-cost")["rows"] if r["what"].startswith("train")]
    batches = sorted({int(r["what"].rpartition(" ")[2]) for r in rows})
    return {b: {r["layer"]: r["x nn.Linear"] for r in rows if r["what"].endswith(f"batch {b}")} for b in batches}


def cost_figure() -> Still:
    """What a training step costs, against nn.Linear, at the batch sizes of the record."""
    import matplotlib.pyplot as plt

    p, found = PALETTE["light"], cost()
    batches = list(found)
    with plt.rc_context(matplotlib_style()):
        fig, ax = plt.subplots(figsize=(6.2, 3.3))
    for layer, colour, marker, dash in (("weight_norm", "wn", "s", "-"), ("geometric", "gmp", "D", (0, (3, 2))), ("GmPLinear", "gmp", "o", "-")):
        y = [found[b][layer] for b in batches]
        ax.plot(batches, y, marker=marker, color=p[colour], lw=2, ms=7, ls=dash)
        ax.annotate(layer, (batches[0], y[0]), (-10, 0), textcoords="offset points", ha="right", va="center", color=p[colour])
    ax.axhline(1, color=p["linear"], lw=2, ls=(0, (4, 3)))
    ax.annotate("nn.Linear", (batches[0], 1), (-10, -4), textcoords="offset points", ha="right", va="top", color=p["linear"])
    ax.set(xscale="log", xticks=batches, xlabel="inputs in a batch", ylabel="time of a step", ylim=(0, None), xlim=(batches[0] / 5, batches[-1] * 1.3))
    ax.set_xticks(batches, [str(b) for b in batches])
    ax.minorticks_off()
    return Still(
        fig,
        id="gmp-cost",
        alt="The time of a training step relative to nn.Linear against the batch size, for weight_norm, geometric and GmPLinear: the cost above "
        "nn.Linear shrinks as the batch grows.",
        caption="Forward and backward of one layer 1024 → 1024 with its ReLU, float32, in units of `nn.Linear`'s time. " + records.said("gmp-cost"),
    )


# ---- a lab: where the bends go in training -------------------------------------------------------------------------
RATES, SEEDS, STEPS, UNITS = [0.003, 0.01, 0.03, 0.1], [1, 2, 3], 1500, 16
PICTURES = 40


def curve(x: torch.Tensor) -> torch.Tensor:
    """What the lab fits on [-1, 1]."""
    return torch.sin(3 * math.pi * x) * (1 + x) / 2


def start(units: int, seed: int) -> tuple[nn.Sequential, nn.Sequential]:
    """A network with one hidden layer, drawn as PyTorch draws it, and the same function as a GmP network."""
    g, net = torch.Generator().manual_seed(seed), nn.Sequential(nn.Linear(1, units, dtype=f64), nn.ReLU(), nn.Linear(units, 1, dtype=f64))
    with torch.no_grad():
        for p in net.parameters():
            fan_in = 1 if len(p) == units else units
            p.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=g)
    return net, from_module(net)


def training(lr: float, seed: int, *, steps: int = STEPS, units: int = UNITS, device: str = "cpu"):
    """Adam on the mean square error of 65 points, by weights and as GmP, from the same function: yields (share done, tables)."""
    x = torch.linspace(-1, 1, 65, dtype=f64, device=device)[:, None]
    y, nets = curve(x), dict(zip(("sp", "gmp"), (net.to(device) for net in start(units, seed)), strict=True))
    optimisers = {name: torch.optim.Adam(net.parameters(), lr=lr) for name, net in nets.items()}
    shape = (PICTURES + 1, units)
    at = np.linspace(0, steps, PICTURES + 1).round().astype(int)
    places, errors, jumps = ({name: np.full(s, np.nan) for name in nets} for s in (shape, PICTURES + 1, ()))
    last, found = {}, {}

    def bends(name):
        layer = nets[name][0]
        b = -layer.bias / layer.weight[:, 0] if name == "sp" else -layer.lam * layer.direction()[:, 0]
        return b.detach().cpu().numpy()

    for step in range(steps + 1):
        for name, net in nets.items():
            error = (net(x) - y).square().mean()
            place = bends(name)
            jumps[name] = np.fmax(jumps[name], np.abs(place - last.get(name, place)).max())
            last[name] = place
            if step in at:
                places[name][at == step], errors[name][at == step] = place, error.item() ** 0.5
            if step < steps:
                optimisers[name].zero_grad()
                error.backward()
                optimisers[name].step()
        if step in at:
            found = _pictures(x, y, nets, at, places, errors, jumps, "Recorded" if step == steps else f"Step {step}")
        if step % 10 == 0 or step == steps:
            yield step / steps, found


def _pictures(x, y, nets, at, places, errors, jumps, source) -> dict:
    """The tables of a run so far. A bend outside [-2, 2] is not drawn."""
    units = places["sp"].shape[1]
    seen = {name: np.where(np.abs(p) <= 2, p, np.nan).T.ravel() for name, p in places.items()}
    now = {name: e[np.isfinite(e)][-1] for name, e in errors.items()}
    with torch.no_grad():
        fits = {name: net(x)[:, 0].cpu().numpy() for name, net in nets.items()}
    outside = {name: int((np.abs(p[np.isfinite(e)][-1]) > 1).sum()) for (name, p), e in zip(places.items(), errors.values(), strict=True)}
    return {
        "fits": {"x": x[:, 0].cpu().numpy(), "goal": y[:, 0].cpu().numpy(), **fits},
        "bends": {"step": np.tile(at, units), "unit": np.repeat(np.arange(units), len(at)), **seen},
        "error_sp": now["sp"],
        "error_gmp": now["gmp"],
        "jump_sp": float(jumps["sp"]),
        "jump_gmp": float(jumps["gmp"]),
        "outside_sp": outside["sp"],
        "outside_gmp": outside["gmp"],
        "source": source,
    }


def bends_in_training(lr: float, seed: int) -> dict:
    """A recorded run of `training`."""
    return recorded("gmp-training", {"lr": lr, "seed": seed})


def training_figure() -> Explorable:
    """The recorded runs."""
    x = alt.X("x:Q", title="input x", scale=alt.Scale(domain=[-1, 1]), axis=alt.Axis(values=[-1, 0, 1], format="d"))

    def fit(column, title):
        value = alt.Scale(domain=[-1.2, 1.2])
        base, axis = alt.Chart(alt.NamedData("fits")), alt.Axis(values=[-1, 0, 1], format="d")
        data = base.mark_circle(size=24, opacity=1, color=concept("linear")).encode(x=x, y=alt.Y("goal:Q", title="answer", scale=value, axis=axis))
        line = base.mark_line(strokeWidth=3, clip=True, color=concept(column)).encode(x=x, y=alt.Y(f"{column}:Q", title="answer", scale=value, axis=axis))
        return alt.layer(data, line).properties(height=190, title=title)

    def paths(column):
        place = alt.X(f"{column}:Q", title="where a unit bends", scale=alt.Scale(domain=[-2, 2]), axis=alt.Axis(values=[-2, -1, 0, 1, 2]))
        step = alt.Y("step:Q", title="step of training", scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=4))
        base = alt.Chart(alt.NamedData("bends"))
        return base.mark_line(color=concept(column), strokeWidth=2).encode(x=place, y=step, detail="unit:N", order="step:Q").properties(height=260)

    return Explorable(
        bends_in_training,
        [fit("sp", "trained by weights (w, b)"), fit("gmp", "trained as GmP (r, λ)"), paths("sp"), paths("gmp")],
        [
            Slider("lr", RATES, 0.01, "learning rate", "η", format=".3f"),
            Slider("seed", SEEDS, 1, "seed"),
        ],
        id="bends-in-training",
        title="Sixteen bends in training, by weights and as GmP",
        alt="Above: a curve on an interval and the network fitted to it, by weights and as GmP. Below: the places where the sixteen units bend, "
        "against the step of training; trained by weights some leave the picture at one side and return at the other, trained as GmP all move in small steps.",
        caption="Both networks start as the same function and are trained by Adam with the same learning rate. *Above*: the data as dots, and the fit. *Below*: each path is a "
        "unit, from the first step up; the data fill $-1$ to $1$. " + records.said("gmp-training"),
        readout="{source}, η = {lr:.3f}, seed {seed}. By weights: error {error_sp:.3f}, {outside_sp:.0f} bends outside the data, largest jump of a bend in one step {jump_sp:.3g}. "
        "GmP: error {error_gmp:.3f}, {outside_gmp:.0f} outside, largest jump {jump_gmp:.3g}.",
        presets={"Small steps": {"lr": 0.003}, "Large steps": {"lr": 0.1}, "Another start": {"seed": 2}},
    )


def training_lab() -> Lab:
    """The same, run by the reader."""
    own = [Slider("steps", [500, 1500, 5000], STEPS, "steps"), Slider("units", [8, 16, 32, 64], UNITS, "units")]
    return Lab(training_figure(), training, own=own)


RECORDS = {"gmp-training": {"grid": [{"lr": lr, "seed": seed} for lr in RATES for seed in SEEDS], "run": training, "dtype": "float64"}}

EXPLORABLES = {
    "predict-one-step": one_step_figure,
    "mean-norm": mean_norm_figure,
    "far-unit": far_unit_figure,
    "bends-in-training": training_figure,
}
