"""The gradient angle: forward and backward factors, the crossover, the law of small angles, and the limit."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib import embedding_angle, gradient_angle
from ntklib.book.explorable import Drag, Explorable, Predict, Slider
from ntklib.book.figures import concept, series

DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 70, 100, 200, 300, 1000)


@cache  # the states of a figure share their numbers: do not write into them
def phi(thetas: tuple, depths: tuple) -> np.ndarray:
    """Gradient angles in degrees, (len(depths), len(thetas)), of pairs of inputs at `thetas` degrees."""
    t = torch.tensor(thetas, dtype=torch.float64).deg2rad()
    return torch.stack([gradient_angle(t, depth).rad2deg() for depth in depths]).numpy()


def log_depth(title="depth L"):
    """A logarithmic axis of depths with a place for L = 0: it shows L + 1."""
    ticks = alt.Axis(values=[1, 2, 4, 11, 101, 1001], labelExpr="datum.value - 1")
    return alt.X("place:Q", title=title, scale=alt.Scale(type="log", domain=[1, 1001]), axis=ticks)


# ---- a prediction -------------------------------------------------------------------------------------------------
STARTS = (0.1, 1, 2, 5, 10, 20, 30, 45, 60, 75, 90, 120, 150, 180)
ALL = (0, *DEPTHS)


def depth_path(theta: float, depth: int) -> dict:
    """The gradient angle of inputs at `theta` degrees for depths up to 1000, and at `depth`."""
    path, place = phi(STARTS, ALL)[:, STARTS.index(theta)], np.array(ALL) + 1.0
    now = path[ALL.index(depth)]
    return {
        "path": {"place": place, "angle": path},
        "now": {"place": [depth + 1.0], "angle": [now]},
        "start": {"place": [1.0], "theta": [theta]},
        "after": now,
        "moves": "further apart than" if now > theta + 1e-9 else "closer than" if now < theta - 1e-9 else "as far apart as",
    }


def depth_path_figure() -> Explorable:
    """Guess the angle between the gradients of two orthogonal inputs."""
    x = log_depth()
    ticks = alt.Axis(values=[0, 30, 60, 90, 120, 150, 180], labelExpr="datum.value + '°'")
    y = alt.Y("angle:Q", title="angle between the gradients", scale=alt.Scale(domain=[0, 180]), axis=ticks)
    line = alt.Chart(alt.NamedData("path")).mark_line(color=concept("gradient"), strokeWidth=3).encode(x=x, y=y)
    now = alt.Chart(alt.NamedData("now"))
    point = now.mark_circle(size=130, opacity=1, color=concept("gradient")).encode(x=x, y=y)
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    start = alt.Chart(alt.NamedData("start")).mark_circle(size=110, opacity=1, color=concept("linear"))
    start = start.encode(x=x, y=alt.Y("theta:Q"))
    return Explorable(
        depth_path,
        alt.layer(rule, line, point, start).properties(height=300),
        [
            Slider("theta", list(STARTS), 90, "input angle", "θ", "°", concept="linear"),
            Slider("depth", list(ALL), 10, "depth", "L"),
        ],
        id="predict-gradient-angle",
        title="Predict first: the gradients of two orthogonal inputs",
        alt="The angle between the gradients of two inputs to an infinitely wide ReLU network, against its depth on a logarithmic axis.",
        caption="The dot at $L=0$ is the linear model, whose gradient is its input: there the two angles are the same. Type a guess or drag "
        "the dashed line, then reveal; afterwards try a pair that is very close.",
        readout="Inputs {theta}° apart, L = {depth}: the gradients are {after:.2f}° apart, {moves} the inputs.",
        presets={"Near-duplicates": {"theta": 1, "depth": 10}, "A deep network": {"theta": 5, "depth": 1000}, "Opposite": {"theta": 180, "depth": 1}},
        predict=Predict(
            "Two inputs at a right angle enter a very wide ReLU network with 10 hidden layers. What is the angle between their gradients?",
            "after",
            ("angle",),
            "y",
            "°",
            ".3g",
            (0, 180),
        ),
        code="ntklib.gradient_angle(math.radians({theta}), depth={depth})",
    )


# ---- forward and backward -----------------------------------------------------------------------------------------
MOST, WIDTH = 12, 512
PAIR = (0.1, 1, 2, 5, 10, 20, 30, 45, 60, 75, 90)


def factors(theta: float, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """What each of the L + 1 weight matrices has of cos phi at infinite width: the cosine of its inputs, and the share of the
    active units above that both inputs have in common; `theta` in degrees."""
    t = torch.tensor(math.radians(theta), dtype=torch.float64)
    path = torch.stack([embedding_angle(t, l) for l in range(depth + 1)])
    rate = (1 - path[:-1] / math.pi).flip(0).cumprod(0).flip(0)
    return path.cos().numpy(), torch.cat([rate, torch.ones(1, dtype=torch.float64)]).numpy()


@cache
def _weights() -> tuple:
    g = torch.Generator().manual_seed(0)
    inner = [torch.randn(WIDTH, 2 if l == 0 else WIDTH, dtype=torch.float64, generator=g) for l in range(MOST)]
    return inner, torch.randn(WIDTH, dtype=torch.float64, generator=g)


@cache
def _forward() -> tuple:
    """Activations and patterns of one real network, for x and for z at every angle of PAIR: (units, 1 + len(PAIR))."""
    t = torch.tensor([0.0, *PAIR], dtype=torch.float64).deg2rad()
    a, alphas, patterns = torch.stack([t.cos(), t.sin()]), [], []
    for W in _weights()[0]:
        alphas.append(a)
        z = W @ a
        patterns.append((z > 0).double())
        a = math.sqrt(2 / WIDTH) * z * patterns[-1]
    return [*alphas, a], patterns


@cache
def measured(depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The factors and the gradient angle in degrees of one real network of 512 units a layer, for every angle of PAIR:
    (depth + 1, len(PAIR)) twice, and (len(PAIR),)."""
    (inner, last), (alphas, patterns) = _weights(), _forward()
    delta = torch.ones(1, len(PAIR) + 1, dtype=torch.float64)         # of the output, with respect to each matrix's product
    deltas = [delta]
    for l in range(depth - 1, -1, -1):
        above = last[:, None] if l == depth - 1 else inner[l + 1].T
        delta = math.sqrt(2 / WIDTH) * patterns[l] * (above @ delta)
        deltas.insert(0, delta)

    def products(v):
        return v[:, :1].T @ v[:, 1:], v[:, 0].square().sum(), v[:, 1:].square().sum(0)

    forward, backward, K, Kx, Kz = [], [], 0, 0, 0
    for a, d in zip(alphas[: depth + 1], deltas, strict=True):
        (f, fx, fz), (b, bx, bz) = products(a), products(d)
        forward.append((f / (fx * fz).sqrt())[0])
        backward.append((b / (bx * bz).sqrt())[0])
        K, Kx, Kz = K + f[0] * b[0], Kx + fx * bx, Kz + fz * bz
    angle = (K / (Kx * Kz).sqrt()).clamp(-1, 1).arccos().rad2deg()
    return torch.stack(forward).numpy(), torch.stack(backward).numpy(), angle.numpy()


def two_factors(theta: float, depth: int) -> dict:
    """Forward factor, backward factor and their product for each weight matrix, at infinite width and in one real network;
    and the gradient angle for depths up to 12."""
    forward, backward = factors(theta, depth)
    i = PAIR.index(theta)
    real_forward, real_backward, real = (m[..., i] for m in measured(depth))
    room = np.full(MOST + 1, np.nan)

    def padded(column):
        out = room.copy()
        out[: depth + 1] = column
        return out

    path = phi(PAIR, tuple(range(MOST + 1)))[:, i]
    product = forward * backward
    return {
        "layers": {
            "l": range(1, MOST + 2),
            "forward": padded(forward),
            "backward": padded(backward),
            "product": padded(product),
            "zero": padded(0 * product),
            "real_forward": padded(real_forward),
            "real_backward": padded(real_backward),
        },
        "mean": {"mean": [product.mean()]},
        "path": {"L": range(MOST + 1), "angle": path},
        "inputs": {"theta": [theta]},
        "now": {"L": [depth], "angle": [path[depth]], "real": [real]},
        "phi": path[depth],
        "real": float(real),
        "cosine": product.mean(),
        "early": backward[0],
        "same": forward[0],
    }


def two_factors_figure() -> Explorable:
    """Each weight matrix's share of the gradients' cosine: what came up to it, times what comes back down."""
    names = {"forward: cosine of its inputs": "relu", "backward: units in common above": "gradient"}
    x = alt.X("l:Q", title="weight matrix, input to output", scale=alt.Scale(domain=[0.5, MOST + 1.5]), axis=alt.Axis(values=[1, 4, 7, 10, 13], format="d"))
    y = alt.Y("value:Q", title="factor", scale=alt.Scale(domain=[0, 1.05]), axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f"))
    table = alt.Chart(alt.NamedData("layers"))
    bars = table.mark_bar(color=concept("faint"), size=14).encode(x=x, y=alt.Y("product:Q"), y2="zero:Q")
    both = table.transform_calculate(**{n: f"datum.{n.partition(':')[0]}" for n in names}).transform_fold(list(names), ["what", "value"])
    lines = both.mark_line(strokeWidth=3).encode(x=x, y=y, color=series(names, columns=1))
    real = table.transform_fold(["real_forward", "real_backward"], ["what", "value"])
    real = real.mark_point(shape="diamond", size=50, filled=True, opacity=1, clip=True, color=concept("measured")).encode(x=x, y=y)
    mean = alt.Chart(alt.NamedData("mean")).mark_rule(color=concept("ink"), strokeDash=[6, 4], strokeWidth=2).encode(y="mean:Q")
    left = alt.layer(bars, mean, lines, real).properties(height=330, title="shares of the cosine")

    L = alt.X("L:Q", title="depth L", scale=alt.Scale(domain=[0, MOST]))
    angle = alt.Y("angle:Q", title="angle", scale=alt.Scale(domain=[0, 90]), axis=alt.Axis(values=[0, 15, 30, 45, 60, 75, 90], labelExpr="datum.value + '°'"))
    inputs = alt.Chart(alt.NamedData("inputs")).mark_rule(color=concept("linear"), strokeDash=[5, 4], strokeWidth=2).encode(y="theta:Q")
    path = alt.Chart(alt.NamedData("path")).mark_line(color=concept("gradient"), strokeWidth=3).encode(x=L, y=angle)
    now = alt.Chart(alt.NamedData("now"))
    dot = now.mark_circle(size=120, opacity=1, color=concept("gradient")).encode(x=L, y=angle)
    diamond = now.mark_point(shape="diamond", size=110, filled=True, opacity=1, color=concept("measured")).encode(x=L, y="real:Q")
    right = alt.layer(inputs, path, dot, diamond).properties(height=330, title="gradient angle")
    return Explorable(
        two_factors,
        [left, right],
        [
            Slider("theta", list(PAIR), 10, "input angle", "θ", "°", concept="linear"),
            Slider("depth", list(range(MOST + 1)), MOST, "depth", "L"),
        ],
        id="forward-backward",
        title="What separates similar inputs comes from above",
        alt="Left: for each weight matrix the forward factor, the backward factor and, as a bar, their product; the forward factors stay near "
        "one while the backward factors are small for early layers. Right: the gradient angle against depth.",
        caption="*Left*: one place for each of the $L+1$ weight matrices. Blue: the cosine of the two inputs that it sees. Orange: the share of "
        "the active units above it that both inputs have in common. Grey bars: the product, which is its share of "
        "$\\cos\\phi$; dashed: their mean. *Right*: $\\phi$ against the depth; dashed, the inputs. Diamonds: one real network of 512 units a layer.",
        readout="The first matrix sees a cosine of {same:.3f}, and {early:.1%} of the active units above are common. "
        "The mean of all products is cos φ = {cosine:.3f}: φ = {phi:.1f}°, measured {real:.1f}°.",
        presets={
            "Near-duplicates": {"theta": 1, "depth": 12},
            "One hidden layer": {"theta": 10, "depth": 1},
            "A right angle": {"theta": 90, "depth": 11},
        },
        drag=(Drag(1, "depth", "x"),),
        code="ntklib.gradient_angle(math.radians({theta}), depth={depth})",
    )


# ---- where the two sides meet -------------------------------------------------------------------------------------
GRID = tuple(range(0, 181, 3))


@cache
def crossings() -> np.ndarray:
    """For each of DEPTHS the angle in degrees at which phi_L = theta, from a grid of a tenth of a degree by interpolation."""
    grid = np.linspace(66.5, 75.6, 92)
    above = phi(tuple(grid), DEPTHS) - grid
    last = (above > 0).sum(1) - 1
    rows = np.arange(len(DEPTHS))
    a, b = above[rows, last], above[rows, last + 1]
    return grid[last] + (grid[1] - grid[0]) * a / (a - b)


def crossover_map(theta: float, depth: int) -> dict:
    """The gradient angle against the input angle for one depth, and the angle at which they are equal for all depths."""
    every = phi(GRID, DEPTHS)
    d = DEPTHS.index(depth)
    where = crossings()
    now = every[d, GRID.index(theta)]
    return {
        "map": {"theta": GRID, "phi": every[d]},
        "cross": {"theta": [where[d]], "phi": [where[d]]},
        "now": {"theta": [theta], "phi": [now]},
        "border": {"L": DEPTHS, "theta": where, "low": [55.0] * len(DEPTHS), "high": [85.0] * len(DEPTHS)},
        "here": {"L": [depth], "theta": [where[d]]},
        "words": {"L": [30.0, 5.0], "theta": [61.0, 80.0], "text": ["gradients further apart", "gradients closer"]},
        "where": where[d],
        "after": now,
    }


def crossover_map_figure() -> Explorable:
    """Gradients are further apart than the inputs below about 67 to 76 degrees, and closer above."""
    x = alt.X("theta:Q", title="input angle θ", scale=alt.Scale(domain=[0, 180]), axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'"))
    y = alt.Y("phi:Q", title="gradient angle φ", scale=alt.Scale(domain=[0, 180]), axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'"))
    table = alt.Chart(alt.NamedData("map"))
    same = table.mark_line(color=concept("linear"), strokeDash=[5, 4]).encode(x=x, y="theta:Q")
    curve = table.mark_line(color=concept("gradient"), strokeWidth=3).encode(x=x, y=y)
    cross = alt.Chart(alt.NamedData("cross")).mark_point(size=160, filled=False, strokeWidth=2.5, opacity=1, color=concept("ink")).encode(x=x, y=y)
    now = alt.Chart(alt.NamedData("now")).mark_circle(size=110, opacity=1, color=concept("gradient")).encode(x=x, y=y)
    left = alt.layer(same, curve, cross, now).properties(height=320, title="gradients against inputs")

    L = alt.X("L:Q", title="depth L", scale=alt.Scale(type="log", domain=[1, 1000]), axis=alt.Axis(values=[1, 10, 100, 1000], format="d"))
    t = alt.Y("theta:Q", title="input angle θ", scale=alt.Scale(domain=[55, 85]), axis=alt.Axis(values=[55, 60, 65, 70, 75, 80, 85], labelExpr="datum.value + '°'"))
    border = alt.Chart(alt.NamedData("border"))
    below = border.mark_area(color=concept("gradient"), opacity=0.16).encode(x=L, y=t, y2="low:Q")
    over = border.mark_area(color=concept("linear"), opacity=0.16).encode(x=L, y=t, y2="high:Q")
    line = border.mark_line(color=concept("ink"), strokeWidth=2.5).encode(x=L, y=t)
    here = alt.Chart(alt.NamedData("here")).mark_point(size=160, filled=False, strokeWidth=2.5, opacity=1, color=concept("ink")).encode(x=L, y=t)
    words = alt.Chart(alt.NamedData("words")).mark_text(fontSize=13, color=concept("ink")).encode(x=L, y=t, text="text:N")
    right = alt.layer(below, over, line, here, words).properties(height=320, title="where they are equal")
    return Explorable(
        crossover_map,
        [left, right],
        [
            Slider("depth", list(DEPTHS), 1, "depth", "L"),
            Slider("theta", list(GRID), 30, "input angle", "θ", "°", concept="gradient"),
        ],
        id="gradient-crossover",
        title="Similar inputs are separated, dissimilar ones are not",
        alt="Left: the gradient angle against the input angle rises steeply from zero, crosses the diagonal near 67 degrees and bends over. "
        "Right: the angle of the crossing rises slowly with the depth and divides the plane in two.",
        caption="*Left*: above the dashed diagonal the gradients are further apart than the inputs, below it closer; the ring is where they are "
        "equal. Drag sideways. *Right*: the ring's angle for every depth: it rises towards $\\arccos\\frac14$. With depth, the curve on the left "
        "becomes a plateau at that height.",
        readout="Depth {depth}: inputs {theta}° apart have gradients {after:.2f}° apart. The two are equal at {where:.2f}°.",
        presets={"One hidden layer": {"depth": 1}, "Ten": {"depth": 10}, "A thousand": {"depth": 1000}, "Too far apart": {"depth": 1, "theta": 150}},
        drag=(Drag(0, "theta", "x"),),
        code="ntklib.gradient_angle(math.radians({theta}), depth={depth})",
    )


# ---- the law of small angles --------------------------------------------------------------------------------------
LAW_DEPTHS = (1, 3, 10, 30, 100, 300)
SMALL = tuple(10 ** (k / 4) for k in range(-12, 9))                    # a thousandth of a degree to 100 degrees


def law(s):
    """The limit of cos phi for small angles, s = L theta/(3 pi): ((1 + s)^4 - 1)/(4 s (1 + s)^3), without its cancellation."""
    s = np.asarray(s, float)
    return (1 + 1.5 * s + s**2 + s**3 / 4) / (1 + s) ** 3


@cache
def _lines() -> dict:
    every, n = phi(SMALL, LAW_DEPTHS), len(SMALL)
    theta = np.tile(SMALL, len(LAW_DEPTHS))
    depth = np.repeat(LAW_DEPTHS, n)
    return {
        "theta": theta,
        "phi": every.ravel(),
        "depth": depth,
        "s": depth * theta / 540,
        "cosine": np.where(theta <= 10, np.cos(np.radians(every.ravel())), np.nan),
    }


def small_angles(depth: int, theta: float) -> dict:
    """The gradient angle against small input angles for several depths, beside sqrt(L theta/pi); and its cosine against
    s = L theta/(3 pi), beside the law and the first-order formula."""
    every, i = _lines(), LAW_DEPTHS.index(depth)
    chosen = {c: a[i * len(SMALL) : (i + 1) * len(SMALL)] for c, a in every.items()}
    j = SMALL.index(theta)
    grid = np.logspace(-5, np.log10(60), 81)
    root = np.degrees(np.sqrt(depth * np.radians(SMALL) / math.pi))
    s = depth * theta / 540
    now = chosen["phi"][j]
    return {
        "every": every,
        "chosen": chosen | {"root": np.where(root < 80, root, np.nan), "same": np.array(SMALL)},
        "law": {"s": grid, "law": law(grid), "first": np.where(grid < 0.65, 1 - 1.5 * grid, np.nan)},
        "quarter": {"quarter": [0.25]},
        "now": {"theta": [theta], "phi": [now], "s": [s], "cosine": [math.cos(math.radians(now))]},
        "after": now,
        "times": now / theta,
        "s_now": s,
        "cosine": math.cos(math.radians(now)),
        "by_law": float(law(s)),
    }


def small_angles_figure() -> Explorable:
    """A square root near zero, a quarter far out, and one curve between them."""
    log = {"type": "log"}
    x = alt.X("theta:Q", title="input angle θ", scale=alt.Scale(domain=[1e-3, 100], **log), axis=alt.Axis(values=[1e-3, 0.1, 10], labelExpr="format(datum.value, '~g') + '°'"))
    y = alt.Y("phi:Q", title="gradient angle φ", scale=alt.Scale(domain=[1e-3, 100], **log), axis=alt.Axis(values=[1e-3, 0.01, 0.1, 1, 10, 100], labelExpr="format(datum.value, '~g') + '°'"))
    s = alt.X("s:Q", title="s = Lθ/(3π)", scale=alt.Scale(domain=[1e-5, 60], **log), axis=alt.Axis(values=[1e-4, 0.01, 1], format="~g"))
    c = alt.Y("cosine:Q", title="cos φ", scale=alt.Scale(domain=[0, 1.02]), axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f"))

    def lines(x, y):
        thin = alt.Chart(alt.NamedData("every")).mark_line(color=concept("gradient"), strokeWidth=1.2, opacity=0.6, clip=True)
        thick = alt.Chart(alt.NamedData("chosen")).mark_line(color=concept("gradient"), strokeWidth=3.5, clip=True)
        dot = alt.Chart(alt.NamedData("now")).mark_circle(size=120, opacity=1, color=concept("ink"))
        return thin.encode(x=x, y=y, detail="depth:N"), thick.encode(x=x, y=y), dot.encode(x=x, y=y)

    chosen = alt.Chart(alt.NamedData("chosen"))
    root = chosen.mark_line(color=concept("ink"), strokeDash=[6, 4], strokeWidth=2, clip=True).encode(x=x, y="root:Q")
    same = chosen.mark_line(color=concept("linear"), strokeDash=[5, 4], strokeWidth=2, clip=True).encode(x=x, y="same:Q")
    thin, thick, dot = lines(x, y)
    left = alt.layer(thin, same, thick, root, dot).properties(height=330, title="a square root")

    curve = alt.Chart(alt.NamedData("law"))
    exact = curve.mark_line(color=concept("ink"), strokeDash=[6, 4], strokeWidth=2, clip=True).encode(x=s, y="law:Q")
    first = curve.mark_line(color=concept("ink"), strokeDash=[1, 4], strokeCap="round", strokeWidth=2.5, clip=True).encode(x=s, y="first:Q")
    quarter = alt.Chart(alt.NamedData("quarter")).mark_rule(color=concept("faint"), strokeWidth=2).encode(y="quarter:Q")
    thin, thick, dot = lines(s, c)
    right = alt.layer(quarter, thin, thick, exact, first, dot).properties(height=330, title="one curve for all depths")
    return Explorable(
        small_angles,
        [left, right],
        [
            Slider("depth", list(LAW_DEPTHS), 10, "depth", "L", concept="gradient"),
            Slider("theta", list(SMALL), 0.1, "input angle", "θ", "°", format=".2g"),
        ],
        id="gradient-law",
        title="A square root at first, one quarter in the end",
        alt="Left: on logarithmic axes the gradient angle against the input angle, half as steep as the inputs' own line and far above it for "
        "small angles. Right: the cosine against s falls from one to one quarter on one curve for all depths.",
        caption="*Left*: thin lines are depths from 1 to 300; the thick one is yours. Dashed: $\\sqrt{L\\theta/\\pi}$; dashed grey: the inputs. "
        "*Right*: the same lines up to 10°, against $s$. Dashed: the law $\\frac{(1+s)^4-1}{4s(1+s)^3}$; dotted: the first-order formula $1-\\frac32s$, "
        "which is good while $s$ is small; grey: one quarter.",
        readout="At depth {depth} inputs {theta:.2g}° apart have gradients {after:.3g}° apart, {times:.3g} times as far. "
        "s = {s_now:.2g}: cos φ = {cosine:.4f}, by the law {by_law:.4f}.",
        presets={"A hundredth of a degree": {"depth": 10, "theta": 0.01}, "Past the first order": {"depth": 100, "theta": 1}, "Deep": {"depth": 300, "theta": 10}},
        drag=(Drag(0, "theta", "x"),),
        code="ntklib.gradient_angle(math.radians({theta}), depth={depth})",
    )


EXPLORABLES = {
    "predict-gradient-angle": depth_path_figure,
    "forward-backward": two_factors_figure,
    "gradient-crossover": crossover_map_figure,
    "gradient-law": small_angles_figure,
}
