"""Depth: the angle map applied layer after layer, and what becomes of inputs, pictures and other activations."""

import math
from functools import cache
from itertools import pairwise

import altair as alt
import numpy as np
import torch

from ntklib import angle_between, embedding_angle, load, nngp_gram
from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import concept, plane


@cache  # the states of a figure share their paths: do not write into them
def walk(thetas: tuple, depths: tuple) -> np.ndarray:
    """Angles in degrees (len(depths), len(thetas)) of pairs that start at `thetas` degrees; depths increase from 0 or more.
    Each depth goes on from the one before."""
    t, rows = torch.tensor(thetas, dtype=torch.float64).deg2rad(), []
    for before, depth in pairwise((0, *depths)):
        t = embedding_angle(t, depth - before)
        rows.append(t.rad2deg())
    return torch.stack(rows).numpy()


def cap(depth):
    """No two inputs are further apart than this after `depth` layers, in degrees."""
    return 540 / (np.asarray(depth, float) + 3)


def model(theta, depth):
    """The continuous model of the paper's equation (37), in degrees."""
    return theta / (1 + np.asarray(depth, float) * theta / 540)


# ---- a prediction -------------------------------------------------------------------------------------------------
HUNDRED = tuple(range(101))
STARTS = [1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 150, 180]


def fifty_layers(theta: float, depth: int) -> dict:
    """The angle after 0 to 100 layers of two inputs at `theta` degrees, and its value at `depth`."""
    path = walk((theta,), HUNDRED)[:, 0]
    return {
        "path": {"L": HUNDRED, "angle": path},
        "now": {"L": [depth], "angle": [path[depth]]},
        "start": {"L": [0], "theta": [theta]},
        "after": path[depth],
        "left": path[depth] / theta,
    }


def fifty_layers_figure() -> Explorable:
    """Guess what fifty layers leave of a right angle."""
    x = alt.X("L:Q", title="layers passed", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y(
        "angle:Q",
        title="angle",
        scale=alt.Scale(domain=[0, 180]),
        axis=alt.Axis(values=[0, 30, 60, 90, 120, 150, 180], labelExpr="datum.value + '°'"),
    )
    line = alt.Chart(alt.NamedData("path")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y)
    now = alt.Chart(alt.NamedData("now"))
    point = now.mark_circle(size=130, opacity=1, color=concept("relu")).encode(x=x, y=y)
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    start = (
        alt.Chart(alt.NamedData("start"))
        .mark_circle(size=110, opacity=1, color=concept("ink"))
        .encode(x=x, y=alt.Y("theta:Q"))
    )
    return Explorable(
        fifty_layers,
        alt.layer(rule, line, point, start).properties(height=300),
        [
            Slider("theta", STARTS, 90, "input angle", "θ", "°"),
            Slider("depth", list(range(0, 101, 5)), 50, "layers", "L"),
        ],
        id="predict-fifty-layers",
        title="Predict first: fifty wide ReLU layers",
        alt="The angle between two inputs against the number of infinitely wide ReLU layers that they have passed.",
        caption="The dot on the axis is where the two inputs start. Type a guess or drag the dashed line, then reveal; afterwards try a "
        "pair that starts very close, and one that starts far apart.",
        readout="Inputs {theta}° apart are {after:.2f}° apart after {depth} layers: {left:.1%} of the angle is left.",
        presets={"Near-duplicates": {"theta": 1, "depth": 50}, "Opposite": {"theta": 180, "depth": 50}},
        predict=Predict(
            "Two inputs at a right angle pass 50 very wide random ReLU layers. What angle is left between them?",
            "after",
            ("angle",),
            "y",
            "°",
            ".3g",
            (0, 180),
        ),
        code="ntklib.embedding_angle(math.radians({theta}), depth={depth})",
    )


# ---- the map, again and again -------------------------------------------------------------------------------------
STEPS = 30


@cache
def _curve() -> dict:
    grid = tuple(range(0, 121, 2))
    return {"theta": grid, "g": walk(grid, (1,))[0]}


def staircase(theta: float, depth: int) -> dict:
    """The first `depth` applications of g to `theta` degrees, as a staircase between g and the diagonal and as a list."""
    path = walk((theta,), tuple(range(STEPS + 1)))[:, 0]
    corners = np.stack([path[:-1], path[1:], path[1:], path[1:]], 1).reshape(-1, 2)  # down to g, then across to the diagonal
    corners = np.concatenate([[[theta, theta]], corners])
    corners[2 * depth + 1 :] = np.nan
    shown = np.where(np.arange(STEPS + 1) <= depth, path, np.nan)
    return {
        "map": _curve(),
        "stairs": {"x": corners[:, 0], "y": corners[:, 1], "order": range(2 * STEPS + 1)},
        "path": {"L": range(STEPS + 1), "angle": shown},
        "later": {"L": range(STEPS + 1), "rest": path},
        "now": {"x": [path[depth]], "y": [path[depth]]},
        "after": path[depth],
        "step": path[depth] - walk((theta,), (depth + 1,))[0, 0],
    }


def staircase_figure() -> Explorable:
    """Why the collapse slows down: the staircase narrows towards zero."""
    shared = {
        "axis": alt.Axis(values=[0, 30, 60, 90, 120], labelExpr="datum.value + '°'"),
        "scale": alt.Scale(domain=[0, 120]),
    }
    x, y = alt.X("theta:Q", title="angle before a layer", **shared), alt.Y("g:Q", title="angle after it", **shared)
    table = alt.Chart(alt.NamedData("map"))
    curve = table.mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y)
    same = table.mark_line(color=concept("linear"), strokeDash=[5, 4]).encode(x=x, y="theta:Q")
    stairs = (
        alt.Chart(alt.NamedData("stairs"))
        .mark_line(color=concept("ink"), strokeWidth=1.8, interpolate="linear")
        .encode(x="x:Q", y="y:Q", order="order:Q")
    )
    dot = alt.Chart(alt.NamedData("now")).mark_circle(size=110, opacity=1, color=concept("ink")).encode(x="x:Q", y="y:Q")
    left = alt.layer(same, curve, stairs, dot).properties(height=320, title="the map g, and where it leads")

    layer = alt.X("L:Q", title="layers passed", scale=alt.Scale(domain=[0, STEPS]))
    angle = alt.Y("angle:Q", title="angle", **shared)
    rest = alt.Chart(alt.NamedData("later")).mark_line(color=concept("faint"), strokeWidth=2).encode(x=layer, y="rest:Q")
    passed = alt.Chart(alt.NamedData("path")).mark_circle(size=60, opacity=1, color=concept("relu")).encode(x=layer, y=angle)
    right = alt.layer(rest, passed).properties(height=320, title="layer by layer")
    return Explorable(
        staircase,
        [left, right],
        [
            Slider("theta", list(range(5, 121, 5)), 120, "input angle", "θ", "°"),
            Slider("depth", list(range(STEPS + 1)), 8, "layers", "L"),
        ],
        id="staircase",
        title="The same map again and again: wide steps first, then ever smaller ones",
        alt="Left: a staircase runs between the curve g and the diagonal towards zero, its steps getting smaller. Right: the angle "
        "after each layer falls fast and then slowly.",
        caption="*Left*: start on the diagonal at $\\theta$, go down to $g$, across to the diagonal, down again: each step is a layer. "
        "Drag sideways to move the start. The curve touches the diagonal at zero, so the steps shrink and the staircase never "
        "arrives. *Right*: the same angles by layer.",
        readout="Layer {depth} leaves {after:.2f}° of {theta}°. The next one takes {step:.2g}° more.",
        presets={
            "One layer": {"theta": 120, "depth": 1},
            "Thirty layers": {"theta": 120, "depth": 30},
            "A close pair": {"theta": 10, "depth": 30},
        },
        drag=(Drag(0, "theta", "x"),),
        code="ntklib.embedding_angle(math.radians({theta}), depth={depth})",
    )


# ---- the law ------------------------------------------------------------------------------------------------------
FUNNEL = (0.1, 0.3, 1, 3, 10, 30, 90, 180)
DEPTHS = tuple(sorted({round(10 ** (k / 12)) for k in range(37)}))  # 1 to 1000
WIDTH, MEASURED = 1024, (1, 2, 4, 8, 16, 32)


def real_angles(thetas, width: int, depths: tuple, draws: int, generator: torch.Generator) -> torch.Tensor:
    """Angles in radians (draws, len(depths), len(thetas)) between the embeddings of pairs of inputs at `thetas` degrees, in
    `draws` real networks of `width` units a layer. Only the plane of a pair matters, so all pairs share one plane."""
    t = torch.tensor([0.0, *thetas], dtype=torch.float64, device=generator.device).deg2rad()
    a, out = torch.stack([t.cos(), t.sin()]).expand(draws, 2, -1), []
    for layer in range(1, max(depths) + 1):
        W = torch.randn(draws, width, a.shape[1], dtype=torch.float64, device=t.device, generator=generator)
        a = math.sqrt(2 / width) * torch.relu(W @ a)
        if layer in depths:
            out.append(angle_between(a[:, None, :, 0], a[:, :, 1:].transpose(1, 2)))
    return torch.stack(out, 1)


@cache
def _measured() -> np.ndarray:
    return real_angles(FUNNEL, WIDTH, MEASURED, 1, torch.Generator().manual_seed(0))[0].rad2deg().numpy()


@cache
def _funnel() -> dict:
    every, L = walk(FUNNEL, DEPTHS), np.array(DEPTHS, float)
    start = np.repeat(FUNNEL, len(L))
    angle = every.T.ravel()
    return {
        "L": np.tile(L, len(FUNNEL)),
        "angle": angle,
        "start": start,
        "s": np.tile(L, len(FUNNEL)) * start / 540,
        "left": angle / start,
    }


def collapse_law(theta: float, depth: int) -> dict:
    """The angle against depth for starts from 0.1 to 180 degrees, as it is and as a share of the start against
    s = L theta / (3 pi); one real network of width 1024 beside the chosen start."""
    i = FUNNEL.index(theta)
    every = _funnel()
    chosen = {c: a[i * len(DEPTHS) : (i + 1) * len(DEPTHS)] for c, a in every.items()}
    m = np.array(MEASURED, float)
    now = walk(FUNNEL, DEPTHS)[DEPTHS.index(depth), i]
    s = depth * theta / 540
    grid = np.logspace(-4, np.log10(400), 61)
    return {
        "every": every,
        "chosen": chosen,
        "law": {"s": grid, "share": 1 / (1 + grid)},
        "cap": {"L": DEPTHS, "cap": cap(DEPTHS)},
        "real": {"L": m, "angle": _measured()[:, i], "s": m * theta / 540, "left": _measured()[:, i] / theta},
        "now": {"L": [depth], "angle": [now], "s": [s], "left": [now / theta]},
        "after": now,
        "bound": model(theta, depth),
        "cap_now": cap(depth),
        "s_now": s,
    }


def collapse_law_figure() -> Explorable:
    """All starts run into one line; rescaled, all of them are one curve."""
    log = {"type": "log"}
    L = alt.X("L:Q", title="layers L", scale=alt.Scale(domain=[1, 1000], **log), axis=alt.Axis(values=[1, 10, 100, 1000], format="d"))
    angle = alt.Y(
        "angle:Q",
        title="angle",
        scale=alt.Scale(domain=[0.05, 200], **log),
        axis=alt.Axis(values=[0.1, 1, 10, 100], labelExpr="datum.value + '°'"),
    )
    s = alt.X("s:Q", title="s = Lθ/(3π)", scale=alt.Scale(domain=[1e-4, 400], **log), axis=alt.Axis(values=[1e-4, 0.01, 1, 100], format="~g"))
    left = alt.Y("left:Q", title="share of the angle that is left", scale=alt.Scale(domain=[2e-3, 1.3], **log), axis=alt.Axis(values=[0.01, 0.1, 1], format="~g"))

    def view(x, y, dashed, title):
        thin = (
            alt.Chart(alt.NamedData("every"))
            .mark_line(color=concept("relu"), strokeWidth=1.2, opacity=0.6, clip=True)
            .encode(x=x, y=y, detail="start:N")
        )
        thick = alt.Chart(alt.NamedData("chosen")).mark_line(color=concept("relu"), strokeWidth=3.5, clip=True).encode(x=x, y=y)
        real = (
            alt.Chart(alt.NamedData("real"))
            .mark_point(shape="diamond", size=70, filled=True, opacity=1, color=concept("measured"), clip=True)
            .encode(x=x, y=y)
        )
        now = alt.Chart(alt.NamedData("now")).mark_circle(size=120, opacity=1, color=concept("ink")).encode(x=x, y=y)
        return alt.layer(thin, dashed, thick, real, now).properties(height=320, title=title)

    dash = {"color": concept("ink"), "strokeDash": [6, 4], "strokeWidth": 2, "clip": True}
    ceiling = alt.Chart(alt.NamedData("cap")).mark_line(**dash).encode(x=L, y="cap:Q")
    law = alt.Chart(alt.NamedData("law")).mark_line(**dash).encode(x=s, y="share:Q")
    return Explorable(
        collapse_law,
        [view(L, angle, ceiling, "as it is"), view(s, left, law, "rescaled: one curve")],
        [
            Slider("theta", list(FUNNEL), 90, "input angle", "θ", "°", concept="relu"),
            Slider("depth", list(DEPTHS), 100, "layers", "L"),
        ],
        id="collapse-law",
        title="However they start, all pairs run into the same line",
        alt="Left: on logarithmic axes the angles of eight pairs against depth stay level and then bend down into one falling line, "
        "below a dashed ceiling. Right: divided by their start and drawn against s they lie on one curve.",
        caption="*Left*: thin lines start at 0.1° to 180°; the thick one is yours. Dashed: the ceiling $540°/(L+3)$. A pair keeps its "
        "angle until the ceiling comes down to it, and then follows it. *Right*: the same lines, rescaled; dashed: $1/(1+s)$. "
        "The lines that start wide lie below it: the logarithm. Diamonds: one real network of 1024 units a layer.",
        readout="{theta}° becomes {after:.3g}° after {depth} layers (s = {s_now:.2g}). The bound θ/(1+s) says {bound:.3g}°, "
        "the ceiling for all pairs {cap_now:.3g}°.",
        presets={
            "Forgotten": {"theta": 180, "depth": 1000},
            "At the bend": {"theta": 10, "depth": 56},
            "Untouched": {"theta": 0.3, "depth": 100},
        },
        drag=(Drag(0, "depth", "x"),),
        code="ntklib.embedding_angle(math.radians({theta}), depth={depth})",
    )


# ---- digits -------------------------------------------------------------------------------------------------------
PAIRS = {"3 and 8": (3, 8), "two threes": (3, 3), "0 and 1": (0, 1), "4 and 9": (4, 9), "1 and 7": (1, 7)}
DIGIT_DEPTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 300)


@cache
def _digits() -> tuple:
    X, y, _ = load("digits")
    return X, y


@cache
def _pair(name: str) -> tuple:
    """Two images, as unit vectors, and their angle in degrees: the first of each digit, or the first two."""
    X, y = _digits()
    a, b = PAIRS[name]
    i = int((y == a).nonzero()[0])
    j = int((y == b).nonzero()[0 if a != b else 1])
    u, v = (X[k] / X[k].norm() for k in (i, j))
    return u, v, math.degrees(angle_between(u, v))


@cache
def _crowd(count: int = 60) -> tuple:
    """Angles of `count` random pairs of one digit and of `count` pairs of different digits, in degrees."""
    X, y = _digits()
    i, j = torch.randint(len(X), (2, 40 * count), generator=torch.Generator().manual_seed(0))
    theta, same = angle_between(X[i], X[j]).rad2deg(), y[i] == y[j]
    picked = [theta[(same == kind) & (i != j)][:count] for kind in (True, False)]
    return tuple(torch.cat(picked).tolist()), np.repeat(["same digit", "different digits"], count)


def digits(pair: str, depth: int) -> dict:
    """Two images of digits and their embeddings after `depth` layers, shown as two images in the plane of the originals that
    are as far apart as the embeddings are; and the angles of 120 pairs, as shares of their mean."""
    u, v, theta = _pair(pair)
    crowd, kind = _crowd()
    d = DIGIT_DEPTHS.index(depth)
    angles = walk((theta, *crowd), DIGIT_DEPTHS)[d]
    now, crowded = angles[0], angles[1:]
    middle, across = (w / w.norm() for w in (u + v, u - v))
    half = math.radians(now / 2)
    pictures = [middle * math.cos(half) + sign * across * math.sin(half) for sign in (1, -1)]
    grey = np.concatenate([np.round((p / p.max()).clamp(min=0).numpy() * 32) / 32 for p in pictures])
    row, column = np.divmod(np.arange(64), 8)
    grid = np.arange(0, 79, 3.0)
    curve = walk(tuple(grid), DIGIT_DEPTHS)[d] / crowded.mean()
    tips = np.radians([90 + now / 2, 90 - now / 2])
    same = crowded[kind == "same digit"].mean()
    return {
        "pixels": {
            "x": np.concatenate([column - 8.6, column + 0.6]),
            "y": np.tile(3 - row, 2),
            "grey": grey,
        },
        "frames": {"x": [-8.6, 0.6], "y": [-4, -4]},
        "arrows": {"x": np.cos(tips), "y": np.sin(tips), "turn": [-now / 2, now / 2], "name": ["first", "second"]},
        "curve": {"theta": grid, "share": curve, "before": grid / np.mean(crowd)},
        "crowd": {"theta": crowd, "share": np.round(crowded / crowded.mean(), 3), "kind": kind},
        "start": theta,
        "after": now,
        "contrast": crowded[kind != "same digit"].mean() / same,
    }


def digits_figure() -> Explorable:
    """Two images of digits become one direction, and so do all others."""
    raw = {"scale": None, "axis": None}
    unit = "(min(width / 18, height / 10))"

    def place(chart, width, height):
        return chart.transform_calculate(
            left=f"width / 2 + {unit} * datum.x",
            right=f"width / 2 + {unit} * (datum.x + {width})",
            low=f"height / 2 - {unit} * datum.y",
            high=f"height / 2 - {unit} * (datum.y + {height})",
        )

    box = {"x": alt.X("left:Q", **raw), "x2": "right:Q", "y": alt.Y("low:Q", **raw), "y2": "high:Q"}
    pixels = place(alt.Chart(alt.NamedData("pixels")), 1.02, 1.02).mark_rect(color=concept("ink"), strokeWidth=0)
    pixels = pixels.encode(**box, opacity=alt.Opacity("grey:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None))
    frames = place(alt.Chart(alt.NamedData("frames")), 8, 8).mark_rect(filled=False, stroke=concept("faint"), strokeWidth=1.5)
    pictures = alt.layer(frames.encode(**box), pixels).properties(height=210, title="two pictures, as far apart")

    fan = plane(
        alt.Chart(alt.NamedData("arrows")),
        tail={"x": "0", "y": "-0.85"},
        tip={"x": "datum.x * 1.75", "y": "datum.y * 1.75 - 0.85"},
    )
    at = {n: {"x": alt.X(f"{n}_x:Q", **raw), "y": alt.Y(f"{n}_y:Q", **raw)} for n in ("tail", "tip")}
    shafts = fan.mark_rule(strokeWidth=3, color=concept("relu")).encode(**at["tail"], x2="tip_x:Q", y2="tip_y:Q")
    heads = fan.mark_point(shape="triangle", filled=True, size=170, opacity=1, color=concept("relu"))
    heads = heads.encode(**at["tip"], angle=alt.Angle("turn:Q", scale=None))
    arrows = alt.layer(shafts, heads).properties(height=210, title="their directions")

    x = alt.X(
        "theta:Q",
        title="angle of the two images",
        scale=alt.Scale(domain=[0, 78]),
        axis=alt.Axis(values=[0, 20, 40, 60], labelExpr="datum.value + '°'"),
    )
    y = alt.Y("share:Q", title="angle after L layers / its mean", scale=alt.Scale(domain=[0, 1.7]), axis=alt.Axis(values=[0, 0.5, 1, 1.5]))
    curve = alt.Chart(alt.NamedData("curve")).mark_line(color=concept("relu"), strokeWidth=2, clip=True).encode(x=x, y=y)
    before = alt.Chart(alt.NamedData("curve")).mark_line(color=concept("linear"), strokeDash=[5, 4], clip=True).encode(x=x, y="before:Q")
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=["same digit", "different digits"], range=["circle", "cross"]),
        legend=alt.Legend(title=None, orient="top", symbolStrokeColor=concept("ink")),
    )
    crowd = alt.Chart(alt.NamedData("crowd")).mark_point(size=45, filled=False, opacity=1, strokeWidth=1.6, color=concept("ink"))
    contrast = alt.layer(before, curve, crowd.encode(x=x, y=y, shape=shape)).properties(height=260, title="120 pairs of images")
    return Explorable(
        digits,
        [pictures, arrows, contrast],
        [
            Choice("pair", {name: name for name in PAIRS}, "3 and 8", "images"),
            Slider("depth", list(DIGIT_DEPTHS), 20, "layers", "L"),
        ],
        id="digits-one-direction",
        title="Two images of digits become one direction",
        alt="Three linked views: two pictures of digits that become alike with depth, two arrows that close up, and a scatter of 120 "
        "pairs of images whose angles, divided by their mean, flatten to one.",
        caption="*Pictures*: the two images, turned towards each other in their common plane until they are as far apart as their "
        "embeddings. *Directions*: the same angle. *Pairs*: each mark is a pair of images, the curve is $g$ applied $L$ times, "
        "the dashed line no layer at all. The order of the pairs stays at every depth; the contrast between near and far does not.",
        readout="{pair}: {start:.1f}° apart as images, {after:.2f}° after {depth} layers. On average, different digits are "
        "{contrast:.2f} times as far apart as pairs of one digit.",
        presets={"As they are": {"depth": 0}, "A hundred layers": {"depth": 100}, "Two threes": {"pair": "two threes", "depth": 5}},
        code='X, y, about = ntklib.load("digits")',
    )


# ---- other activations --------------------------------------------------------------------------------------------
ACTIVATIONS = {
    "relu": "ReLU",
    "leaky": "leaky ReLU, a = 0.3",
    "abs": "absolute value",
    "tanh": "tanh",
    "sin": "sine",
    "gelu": "GELU",
    "softplus": "softplus",
    "sigmoid": "sigmoid",
}
LAYERS = 60
EDGE_STARTS = (0.1, 1, 5, 10, 30, 60, 90)
RATIO_GRID = tuple(np.round(np.concatenate([[0.02, 0.5, 1], np.arange(2, 91, 2)]), 2))


def one_layer(theta: torch.Tensor, activation: str) -> torch.Tensor:
    """The angle after one wide layer of any activation, scaled to keep lengths; radians. From the cosine, so that angles below
    1e-6 lose digits."""
    name = ("leaky_relu", 0.3) if activation == "leaky" else activation
    x = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    y = torch.stack([theta.cos(), theta.sin()], 1)
    cosine = nngp_gram(x, y, depth=1, activation=name)[0] / nngp_gram(x, depth=1, activation=name)[0, 0]
    return torch.arccos(cosine.clamp(-1, 1))


@cache
def _phase(activation: str) -> tuple:
    t = torch.tensor(EDGE_STARTS, dtype=torch.float64).deg2rad()
    rows = [t]
    for _ in range(LAYERS):
        rows.append(one_layer(rows[-1], activation))
    grid = torch.tensor(RATIO_GRID, dtype=torch.float64).deg2rad()
    return torch.stack(rows).rad2deg().numpy(), (one_layer(grid, activation) / grid).numpy()


def edge(activation: str, theta: float) -> dict:
    """What one layer multiplies an angle by, and what sixty layers make of `theta` degrees, beside ReLU."""
    i = EDGE_STARTS.index(theta)
    (path, ratio), (relu, relu_ratio) = _phase(activation), _phase("relu")
    slope = ratio[0]
    fate = "the edge" if abs(slope - 1) < 1e-3 else "ordered" if slope < 1 else "chaotic"
    return {
        "ratio": {"theta": RATIO_GRID, "share": ratio},
        "relu_ratio": {"theta": RATIO_GRID, "relu": relu_ratio},
        "path": {"L": range(LAYERS + 1), "angle": np.where(path[:, i] > 1e-3, path[:, i], np.nan)},
        "relu": {"L": range(LAYERS + 1), "relu": relu[:, i]},
        "one": {"one": [1.0]},
        "name": ACTIVATIONS[activation],
        "slope": slope,
        "chi": slope**2,
        "fate": fate,
        "after": path[-1, i] if path[-1, i] > 1e-3 else 0.0,
    }


def edge_figure() -> Explorable:
    """ReLU sits exactly between the activations that collapse quickly and those that keep inputs apart."""
    x = alt.X("theta:Q", title="angle before the layer", scale=alt.Scale(domain=[0, 90]), axis=alt.Axis(values=[0, 30, 60, 90], labelExpr="datum.value + '°'"))
    y = alt.Y("share:Q", title="angle after / angle before", scale=alt.Scale(domain=[0.3, 1.2]), axis=alt.Axis(values=[0.4, 0.6, 0.8, 1, 1.2]))
    one = alt.Chart(alt.NamedData("one")).mark_rule(color=concept("linear"), strokeDash=[5, 4], strokeWidth=2).encode(y="one:Q")
    mine = alt.Chart(alt.NamedData("ratio")).mark_line(color=concept("ink"), strokeWidth=3).encode(x=x, y=y)
    relu = alt.Chart(alt.NamedData("relu_ratio")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y="relu:Q")
    left = alt.layer(one, mine, relu).properties(height=300, title="one layer")

    layer = alt.X("L:Q", title="layers", scale=alt.Scale(domain=[0, LAYERS]))
    angle = alt.Y(
        "angle:Q",
        title="angle",
        scale=alt.Scale(type="log", domain=[0.01, 100]),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10, 90], labelExpr="datum.value + '°'"),
    )
    path = alt.Chart(alt.NamedData("path")).mark_line(color=concept("ink"), strokeWidth=3, clip=True).encode(x=layer, y=angle)
    reference = alt.Chart(alt.NamedData("relu")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=layer, y="relu:Q")
    right = alt.layer(path, reference).properties(height=300, title="layer after layer")
    return Explorable(
        edge,
        [left, right],
        [
            Choice("activation", ACTIVATIONS, "sigmoid", "activation"),
            Slider("theta", list(EDGE_STARTS), 5, "input angle", "θ", "°"),
        ],
        id="edge-of-chaos",
        title="Between order and chaos: ReLU starts at exactly 1",
        alt="Left: the factor by which one layer multiplies an angle, for the chosen activation and for ReLU, which starts at one. Right: "
        "the angle after up to sixty layers on a logarithmic axis.",
        caption="Blue: ReLU; the other line: the activation that you choose. *Left*: what one layer multiplies an angle by. The value at 0 is "
        "$\\sqrt\\chi$; where the line crosses 1 the angle stays. *Right*: below 1 angles die out exponentially, above 1 close pairs come "
        "apart until they reach that crossing. ReLU does neither.",
        readout="{name}: √χ = {slope:.3f}, χ = {chi:.3f} ({fate}). Inputs {theta}° apart end at {after:.3g}° after 60 layers.",
        presets={
            "Order: sigmoid": {"activation": "sigmoid", "theta": 5},
            "Chaos: tanh": {"activation": "tanh", "theta": 5},
            "GELU settles": {"activation": "gelu", "theta": 90},
            "Leaky ReLU": {"activation": "leaky", "theta": 90},
        },
    )


EXPLORABLES = {
    "predict-fifty-layers": fifty_layers_figure,
    "staircase": staircase_figure,
    "collapse-law": collapse_law_figure,
    "digits-one-direction": digits_figure,
    "edge-of-chaos": edge_figure,
}
