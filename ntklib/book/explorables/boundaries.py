"""Chapter "Characteristic activation boundaries": where the units of a layer switch."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider, Twin
from ntklib.book.figures import PALETTE, Still, concept, matplotlib_style, plane, series
from ntklib.boundaries import Boundary
from ntklib.sphere import from_angles

f64 = torch.float64
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`
DART = "M0,-0.25L-0.6,1.3L0,1L0.6,1.3Z"  # the head of an arrow that ends at the mark; an equilateral triangle would point three ways


def _at(name: str) -> dict:
    """The pixel columns NAME_x and NAME_y of `plane`, as encodings."""
    return {"x": alt.X(f"{name}_x:Q", **RAW), "y": alt.Y(f"{name}_y:Q", **RAW)}


def _to(name: str) -> dict:
    return {"x2": f"{name}_x:Q", "y2": f"{name}_y:Q"}


# ---- a prediction: where units with one input bend --------------------------------------------------------------
SPREADS = {"0.25": "¼ of w's", "1": "as w's", "4": "4 × w's"}
REACH = [round(0.5 * k, 1) for k in range(1, 21)]
CURVE = np.linspace(0, 10, 101)
BENDS = 120  # units drawn


@cache
def _one_input() -> tuple[np.ndarray, np.ndarray]:
    draw = torch.randn(2, BENDS, dtype=f64, generator=torch.Generator().manual_seed(0)).numpy()
    return draw[0], draw[1]


def bend_share(reach: float, ratio: str) -> dict:
    """Units with one input, w ~ N(0, 1) and b ~ N(0, ratio^2): the percentage that bends within `reach` of 0, exactly and
    among 120 units, whose bends are at -b/w."""
    scale = float(ratio)
    w, b = _one_input()
    place = -scale * b / w
    inside = np.abs(place) <= reach
    seen = np.where(np.abs(place) <= 10, np.round(place, 3), np.nan)

    def share(r):
        return 200 / math.pi * np.arctan(np.asarray(r) / scale)

    return {
        "curve": {"reach": CURVE, "share": share(CURVE)},
        "now": {"reach": [reach], "share": share([reach])},
        "band": {"low": [-reach], "high": [reach]},
        "units": {
            "x": seen,
            "unit": np.arange(1, BENDS + 1),
            "kind": np.where(inside, "bends inside", "bends outside"),
        },
        "share": share(reach).item(),
        "found": 100 * inside.mean(),
        "lost": int((np.abs(place) > 10).sum()),
    }


def bend_share_figure() -> Explorable:
    """Guess how many of a layer's units bend near the data."""
    x = alt.X("reach:Q", title="interval from −R to R", scale=alt.Scale(domain=[0, 10]))
    y = alt.Y(
        "share:Q",
        title="units that bend inside",
        scale=alt.Scale(domain=[0, 100]),
        axis=alt.Axis(labelExpr="datum.value + ' %'", values=[0, 25, 50, 75, 100]),
    )
    curve = alt.Chart(alt.NamedData("curve")).mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y)
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    point = now.mark_circle(size=130, opacity=1, color=concept("relu")).encode(x=x, y=y)
    left = alt.layer(rule, curve, point).properties(height=280, title="the whole layer")

    ticks = alt.Axis(grid=False, values=[-10, -5, 0, 5, 10])
    place = alt.X("x:Q", title="input x", scale=alt.Scale(domain=[-10, 10]), axis=ticks)
    band = (
        alt.Chart(alt.NamedData("band"))
        .mark_rect(color=concept("faint"), opacity=0.55)
        .encode(x=alt.X("low:Q", title="input x", scale=alt.Scale(domain=[-10, 10]), axis=ticks), x2="high:Q")
    )
    dots = (
        alt.Chart(alt.NamedData("units"))
        .mark_point(size=55, opacity=1, filled=True, shape="diamond")
        .encode(
            x=place,
            y=alt.Y("unit:Q", title="unit", scale=alt.Scale(domain=[0, BENDS]), axis=alt.Axis(grid=False, values=[1, 40, 80, 120])),
            color=series({"bends inside": "relu", "bends outside": "linear"}, "kind:N", columns=2),
        )
    )
    right = alt.layer(band, dots).properties(height=280, title="each diamond a bend, at x = −b/w")
    return Explorable(
        bend_share,
        [left, right],
        [
            Slider("reach", REACH, 1, "half-width", "R", format=".1f"),
            Choice("ratio", SPREADS, "1", "spread of b"),
        ],
        id="predict-bends",
        title="Predict first: where does a random layer bend?",
        alt="Left: the percentage of units that bend within a distance R of zero, against R. Right: 120 random units, "
        "each with a diamond at the input where it bends.",
        caption="*Left*: the share of units, by the half-width of the interval. *Right*: 120 units, one a row, with "
        "a diamond where each bends; bends beyond ±10 are off the picture. Type a guess or drag the dashed line, then reveal.",
        readout="Between −{reach} and {reach}: {share:.1f} % of all units bend, {found:.1f} % of these 120. "
        "{lost:.0f} of the 120 bend farther out than ±10.",
        presets={"Near zero": {"reach": 0.5}, "Far out": {"reach": 10}, "Small biases": {"ratio": "0.25"}},
        predict=Predict(
            "A layer with one input draws every weight w and every bias b from the same normal law, centred at 0. "
            "Which percentage of its units bends between x = −1 and x = 1?",
            "share",
            ("share", "x"),
            "y",
            "%",
            ".3g",
            (0, 100),
        ),
        code="ntklib.symbolic.boundaries.bend_share({reach}, {ratio})",
    )


# ---- one unit in the plane --------------------------------------------------------------------------------------
WINDOW = 3.0
FIELD = np.stack(np.meshgrid(np.linspace(-2.64, 2.64, 9), np.linspace(-2.64, 2.64, 9)), -1).reshape(-1, 2)


def one_unit(theta: float, length: float, bias: float) -> dict:
    """A ReLU unit of the plane, w = length (cos theta, sin theta): its boundary, location and answers on a field of
    points, all from ntklib.boundaries."""
    t = torch.tensor([math.radians(theta)], dtype=f64)
    b = Boundary(length * from_angles(t), torch.tensor(float(bias), dtype=f64))
    polar = Boundary.from_angles(t, b.lam)
    z = torch.relu(length * b.distance(torch.from_numpy(FIELD))).numpy()
    u, here = b.direction.numpy(), b.location.numpy() + 0.0
    line = b.points(2, radius=8.0).numpy()
    along = np.array([-WINDOW, np.clip(-b.lam.item(), -WINDOW, WINDOW), WINDOW])
    return {
        "field": {"x": FIELD[:, 0], "y": FIELD[:, 1], "z": np.round(16 * z) / 16},
        "line": {"x": line[:, 0], "y": line[:, 1]},
        "arrow": {"x": [length * u[0]], "y": [length * u[1]], "ux": [u[0]], "uy": [u[1]], "turn": [(90 - theta) % 360]},
        "spot": {"x": [here[0]], "y": [here[1]], "ux": [u[0]], "uy": [u[1]]},
        "profile": {"t": along, "z": np.maximum(length * along + bias, 0)},
        "bend": {"t": [-b.lam.item()], "z": [0.0]},
        "w1": length * u[0] + 0.0,
        "w2": length * u[1] + 0.0,
        "lam": b.lam.item(),
        "p1": here[0],
        "p2": here[1],
        "q1": polar.location[0].item() + 0.0,
        "q2": polar.location[1].item() + 0.0,
        "far": abs(b.lam.item()),
    }


def one_unit_figure() -> Explorable:
    """The boundary of a unit, its location, and what w and b have to do with them."""
    field = plane(alt.Chart(alt.NamedData("field")), WINDOW, dot={"x": "datum.x", "y": "datum.y"})
    dots = field.mark_circle(opacity=0.8).encode(
        **_at("dot"),
        size=alt.Size("z:Q", scale=alt.Scale(domain=[0, 6], range=[9, 330], clamp=True), legend=None),
        color=alt.condition("datum.z > 0", alt.value(concept("relu")), alt.value(concept("linear"))),
    )
    line = (
        plane(alt.Chart(alt.NamedData("line")), WINDOW, end={"x": "datum.x", "y": "datum.y"})
        .mark_line(color=concept("ink"), strokeWidth=3, clip=True)
        .encode(**_at("end"))
    )
    zero = {"x": "0", "y": "0"}
    arrow = plane(
        alt.Chart(alt.NamedData("arrow")), WINDOW, tail=zero, tip={"x": "datum.x", "y": "datum.y"},
        name={"x": "0.6 * datum.x - 0.3 * datum.uy", "y": "0.6 * datum.y + 0.3 * datum.ux"},
    )
    shaft = arrow.mark_rule(color=concept("sp"), strokeWidth=3.5, clip=True).encode(**_at("tail"), **_to("tip"))
    head = arrow.mark_point(shape=DART, filled=True, size=420, opacity=1, color=concept("sp"), clip=True).encode(
        **_at("tip"), angle=alt.Angle("turn:Q", scale=None)
    )
    name = arrow.mark_text(text="w", fontSize=17, fontStyle="italic", color=concept("sp"), clip=True).encode(**_at("name"))
    spot = plane(alt.Chart(alt.NamedData("spot")), WINDOW, tail=zero, at={"x": "datum.x", "y": "datum.y"},
                 name={"x": "datum.x + 0.2 * datum.ux + 0.42 * datum.uy", "y": "datum.y + 0.2 * datum.uy - 0.42 * datum.ux"})
    way = spot.mark_rule(color=concept("gmp"), strokeWidth=2.5, strokeDash=[5, 4], clip=True).encode(**_at("tail"), **_to("at"))
    dot = spot.mark_circle(size=190, color=concept("gmp"), opacity=1, clip=True).encode(**_at("at"))
    phi = spot.mark_text(text="φ", fontSize=18, fontStyle="italic", color=concept("gmp"), clip=True).encode(**_at("name"))
    left = alt.layer(dots, line, way, shaft, head, name, dot, phi).properties(height=330, title="the plane of inputs")

    x = alt.X("t:Q", title="position along u", scale=alt.Scale(domain=[-3, 3]))
    y = alt.Y("z:Q", title="answer of the unit", scale=alt.Scale(domain=[-0.2, 4], nice=False), axis=alt.Axis(values=[0, 1, 2, 3, 4]))
    hinge = alt.Chart(alt.NamedData("profile")).mark_line(color=concept("relu"), strokeWidth=3, clip=True).encode(x=x, y=y)
    bend = alt.Chart(alt.NamedData("bend")).mark_circle(size=170, color=concept("gmp"), opacity=1, clip=True).encode(x=x, y=y)
    right = alt.layer(hinge, bend).properties(height=330, title="along the direction of w")
    return Explorable(
        one_unit,
        [left, right],
        [
            Slider("theta", list(range(0, 360, 15)), 30, "direction of w", "θ", "°", concept="sp"),
            Slider("length", [0.25, 0.5, 1, 2], 1, "length of w", "|w|", concept="sp"),
            Slider("bias", [round(-3 + 0.5 * k, 1) for k in range(13)], -1.5, "bias", "b", concept="gmp", format=".1f"),
        ],
        id="unit-in-the-plane",
        title="One unit: a line, a side, and a point",
        alt="Left: the plane of inputs with the line where a unit switches. Dots on its active side grow with the "
        "answer. The weight arrow w starts at the origin and meets the line at a right angle at the point phi. Right: the answer along w, zero "
        "up to the bend and a straight slope after it.",
        caption="*Left*: the black line is the boundary. Each blue dot is an input where the unit is active, larger where it answers more; "
        "grey dots get 0. $\\phi$ is the point of the line nearest to the origin. *Right*: the same unit along $u=w/|w|$; its bend "
        "stands at $-\\lambda=-b/|w|$. Drag the arrow to turn it.",
        readout="w = ({w1:.2f}, {w2:.2f}) and b = {bias:.1f}, or θ = {theta}° and λ = {lam:.2f}. "
        "φ = ({p1:.2f}, {p2:.2f}) from (w, b), ({q1:.2f}, {q2:.2f}) from (λ, θ): {far:.2f} from the origin.",
        presets={
            "Double w and b": {"length": 2, "bias": -3},
            "Halve w alone": {"length": 0.5},
            "Through the origin": {"bias": 0},
            "Out of the picture": {"length": 0.25},
        },
        drag=(Drag(0, "theta", "angle"),),
        code="ntklib.boundaries.Boundary(w, b).location",
    )


# ---- a layer in the plane ---------------------------------------------------------------------------------------
DISC = 2.0
MANY = 24  # the widest layer drawn


@cache
def _layer(draw: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(draw)
    return torch.randn(MANY, 2, dtype=f64, generator=g), torch.randn(MANY, dtype=f64, generator=g)


def chords(b: Boundary, radius: float) -> torch.Tensor:
    """The ends (units, 2, 2) of the boundaries' chords in the disc about the origin; nan where a line misses it."""
    u, lam = b.direction, b.lam
    half = (radius**2 - lam**2).sqrt()  # nan beyond the disc
    across = torch.stack([-u[:, 1], u[:, 0]], -1)
    return torch.stack([b.location - half[:, None] * across, b.location + half[:, None] * across], 1)


def crossings(b: Boundary, radius: float) -> int:
    """How many pairs of boundaries of the plane meet inside the disc about the origin."""
    i, j = torch.triu_indices(len(b.lam), len(b.lam), 1)
    u, lam = b.direction, b.lam
    det = u[i, 0] * u[j, 1] - u[i, 1] * u[j, 0]
    x = torch.stack([lam[j] * u[i, 1] - lam[i] * u[j, 1], lam[i] * u[j, 0] - lam[j] * u[i, 0]], -1) / det[:, None]
    return int((x.norm(dim=-1) < radius).sum())


def layer_lines(units: int, spread: str, draw: int) -> dict:
    """The boundaries of `units` random units of the plane, w ~ N(0, I) and b ~ N(0, spread^2), as lines in a disc of
    radius 2 and as points phi; and the number of pieces that the lines cut the disc into."""
    W, unit_bias = _layer(draw)
    s = float(spread)
    b = Boundary(W[:units], s * unit_bias[:units])
    ends, spots = chords(b, DISC).numpy(), b.location.numpy() + 0.0
    seen = ~np.isnan(ends[:, 0, 0])

    def pad(column, fill=np.nan):
        out = np.full(MANY, fill)
        out[:units] = np.round(column * 1000) / 1000
        return out

    lines = int(seen.sum())
    # through one common point (spread 0) every line after the first cuts each piece at the centre's two sides only
    pieces = 2 * lines if s == 0 else 1 + lines + crossings(b, DISC)
    shown = np.abs(spots).max(1) < 2.1
    mark = np.full(MANY, "other", dtype="<U8")
    mark[np.where(seen, np.abs(b.lam.numpy() - 1.1), np.inf).argmin()] = "one unit"  # one that both views show well
    return {
        "lines": {
            **{f"{c}{k}": pad(ends[:, k, i]) for k in (0, 1) for i, c in enumerate("xy")},
            "kind": mark,
        },
        "spots": {"x": pad(np.where(shown, spots[:, 0], np.nan)), "y": pad(np.where(shown, spots[:, 1], np.nan)), "kind": mark},
        "rim": _rim(),
        "lines_in": lines,
        "pieces": pieces,
        "out": units - lines,
    }


@cache
def _rim() -> dict:
    t = np.linspace(0, 2 * math.pi, 61)
    return {"x": DISC * np.cos(t), "y": DISC * np.sin(t), "order": np.arange(61)}


def layer_lines_figure() -> Explorable:
    """A layer as lines, and the same layer as points."""
    reach = 2.12
    rim = (
        plane(alt.Chart(alt.NamedData("rim")), reach, at={"x": "datum.x", "y": "datum.y"})
        .mark_line(color=concept("linear"), strokeWidth=1.5, strokeDash=[3, 3])
        .encode(**_at("at"), order="order:Q")
    )
    colour = series({"one unit": "measured", "other": "relu"}, "kind:N", show=False)
    lines = (
        plane(alt.Chart(alt.NamedData("lines")).transform_filter("isValid(datum.x0)"), reach,
              a={"x": "datum.x0", "y": "datum.y0"}, b={"x": "datum.x1", "y": "datum.y1"})
        .mark_rule(strokeWidth=2.2)
        .encode(**_at("a"), **_to("b"), color=colour)
    )
    spots = plane(alt.Chart(alt.NamedData("spots")).transform_filter("isValid(datum.x)"), reach, zero={"x": "0", "y": "0"},
                  at={"x": "datum.x", "y": "datum.y"})
    chosen = spots.transform_filter("datum.kind == 'one unit'")
    way = chosen.mark_rule(color=concept("measured"), strokeDash=[4, 3], strokeWidth=1.8).encode(**_at("zero"), **_to("at"))
    dots = spots.mark_circle(size=80, opacity=1).encode(**_at("at"), color=colour)
    dot = chosen.mark_circle(size=130, opacity=1, color=concept("measured")).encode(**_at("at"))
    left = alt.layer(rim, lines, way, dot).properties(height=340, title="the boundaries: lines")
    right = alt.layer(rim, way, dots, dot).properties(height=340, title="the locations φ: points")
    return Explorable(
        layer_lines,
        [left, right],
        [
            Slider("units", [4, 8, 12, 16, 24], 12, "units", "m", concept="relu"),
            Choice("spread", {"0": "no biases"} | SPREADS, "1", "spread of b"),
            Slider("draw", [1, 2, 3, 4], 1, "random draw"),
        ],
        id="layer-lines",
        title="A layer: lines that cut the inputs, or points that say where",
        alt="Left: straight lines across a disc of inputs, one a unit. Right: one point a unit, the line's nearest point to the centre.",
        caption="*Left*: the dashed disc holds the data; each line is the boundary of one unit. On each piece between the lines the layer is "
        "an affine function. *Right*: the same units as points $\\phi$. The purple unit is the same in both. Take the biases away: "
        "the lines stay different, and all their points become one.",
        readout="{units} units: {lines_in:.0f} boundaries cross the disc and cut it into {pieces:.0f} pieces; {out:.0f} miss it, "
        "so those units are on for all of the data, or off for all of it.",
        presets={"No biases": {"spread": "0"}, "Wide layer": {"units": 24}, "Far away": {"units": 24, "spread": "4"}},
    )


# ---- sampling in many dimensions --------------------------------------------------------------------------------
DIMS = list(range(2, 41))


def log_cap_share(n: int, angle: float) -> float:
    """log10 of the share of uniform directions of R^n within `angle` < pi/2 of a given one: the integral of sin^(n-2)
    by 200 Gauss-Legendre nodes, over its value on [0, pi]."""
    node, weight = np.polynomial.legendre.leggauss(200)
    part = (angle / 2 * weight * np.sin(angle / 2 * (node + 1)) ** (n - 2)).sum()
    whole = math.lgamma((n - 1) / 2) - math.lgamma(n / 2) + math.log(math.pi) / 2
    return math.log10(part) - whole / math.log(10)


def log_ball_share(n: int) -> float:
    """log10 of the share of the cube [-1, 1]^n that the unit ball fills."""
    return (n / 2 * math.log(math.pi) - n * math.log(2) - math.lgamma(n / 2 + 1)) / math.log(10)


WAYS = {"one within α of the place": "measured", "one kept from the cube": "linear", "numbers in a gradient": "gradient"}


def log_draws(n: int, angle: float) -> list[float]:
    """log10 of what each of WAYS takes for one unit of n inputs, `angle` in degrees."""
    return [-log_cap_share(n, math.radians(angle)), -log_ball_share(n), math.log10(n + 1)]


@cache
def _curves(angle: float) -> dict:
    n = DIMS[::2]
    value = np.array([log_draws(k, angle) for k in n]).T.ravel()
    return {"n": n * 3, "value": np.where(value < 25, value, np.nan), "what": np.repeat(list(WAYS), len(n))}


def draws_needed(n: int, angle: float) -> dict:
    """Random draws needed, on average, for one direction within `angle` degrees of a wanted one; for one direction by
    rejection from a cube; and the n + 1 numbers of one gradient, as powers of ten."""
    cap, cube, numbers = log_draws(n, angle)
    return {
        "curves": _curves(angle),
        "now": {"n": [n] * 3, "value": [cap, cube, numbers], "what": list(WAYS)},
        "cap": 10.0**cap,
        "cube": 10.0**cube,
        "numbers": n + 1,
    }


def draws_needed_figure() -> Explorable:
    """Why placing units by sampling fails as the dimension grows."""
    x = alt.X("n:Q", title="number of inputs n", scale=alt.Scale(domain=[2, 40]), axis=alt.Axis(values=[2, 10, 20, 30, 40]))
    y = alt.Y(
        "value:Q",
        title="draws needed",
        scale=alt.Scale(domain=[0, 24]),
        axis=alt.Axis(values=[0, 6, 12, 18, 24], labelExpr="['1', '10⁶', '10¹²', '10¹⁸', '10²⁴'][datum.value / 6]"),
    )
    curves = (
        alt.Chart(alt.NamedData("curves"))
        .mark_line(strokeWidth=3, clip=True)
        .encode(x=x, y=y, color=series(WAYS, columns=1))
    )
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    points = now.mark_circle(size=110, opacity=1, clip=True).encode(x=x, y=y, color=series(WAYS, columns=1))
    return Explorable(
        draws_needed,
        alt.layer(rule, curves, points).properties(height=320),
        [
            Slider("n", DIMS, 20, "inputs", "n"),
            Slider("angle", [10, 15, 20, 30, 45, 60], 30, "near enough", "α", "°", concept="measured"),
        ],
        id="draws-needed",
        title="To place a unit by chance takes exponentially many draws",
        alt="The number of random draws needed grows as a straight line on a logarithmic axis against the number of inputs, steeper for a smaller "
        "angle; the numbers in a gradient stay near the bottom.",
        caption="Purple: random directions drawn, on average, until one lies within $\\alpha$ of the place where a unit is wanted. Grey: "
        "points of a cube drawn until one lies in the ball and gives a direction at all (normalising a Gaussian vector needs one draw). "
        "Orange: the $n+1$ numbers of the gradient of one unit.",
        readout="{n} inputs: one direction in {cap:.2g} lies within {angle}° of a wanted one; rejection from the cube keeps one draw in {cube:.2g}; "
        "a gradient is {numbers:.0f} numbers.",
        presets={"Plane": {"n": 2}, "Image patch": {"n": 27}, "Coarse": {"n": 40, "angle": 60}},
        drag=(Drag(0, "n", "x"),),
    )


# ---- a network as a set of bends, dragged -----------------------------------------------------------------------
PLACES = [round(-3 + 0.1 * k, 1) for k in range(61)]  # where a bend may stand
INPUTS = np.round(-3 + 0.05 * np.arange(121), 2)  # where the error is measured
EVEN = (-2.0, -1.0, 0.0, 1.0, 2.0)
TARGETS = {"bump": "a narrow bump", "stair": "a steep stair", "chirp": "waves that shorten"}


def target(name: str) -> np.ndarray:
    """The curve to fit, on INPUTS."""
    x = INPUTS
    return {"bump": np.exp(-6 * (x - 0.5) ** 2), "stair": 0.5 + 0.5 * np.tanh(5 * (x + 1)), "chirp": 0.5 + 0.5 * np.sin(0.32 * (x + 3) ** 2)}[name]


def hinges(bends: np.ndarray) -> np.ndarray:
    """The columns 1, x and relu(x - bend) of each bend, on INPUTS: (..., 121, 2 + bends)."""
    bends = np.asarray(bends, dtype=float)
    affine = np.broadcast_to(np.stack([np.ones_like(INPUTS), INPUTS], -1), (*bends.shape[:-1], len(INPUTS), 2))
    return np.concatenate([affine, np.maximum(INPUTS[:, None] - bends[..., None, :], 0)], -1)


def best_output(name: str, bends) -> np.ndarray:
    """The best function of a network that bends at `bends`: least squares in its output weights and affine part."""
    A, y = hinges(bends), target(name)
    return A @ np.linalg.lstsq(A, y, rcond=1e-10)[0]


def misfit(name: str, bends) -> float:
    """Root of the mean squared error of `best_output`."""
    return float(np.sqrt(np.mean((best_output(name, bends) - target(name)) ** 2)))


@cache
def best_bends(name: str, starts: int = 6) -> tuple[float, ...]:
    """Five bends of PLACES that no move of a single one improves: coordinate descent, the best of a few starts."""
    generator, y, places = torch.Generator().manual_seed(1), target(name), np.array(PLACES[1:-1])
    found = []
    for k in range(starts):
        draw = torch.randperm(len(places), generator=generator)[:5].numpy()
        bends, error = (np.array(EVEN) if k == 0 else places[draw]), np.inf
        while True:
            for j in range(5):
                tries = np.repeat(bends[None], len(places), 0)
                tries[:, j] = places
                Q, R = np.linalg.qr(hinges(tries))
                whole = np.abs(np.diagonal(R, axis1=-2, axis2=-1)).min(-1) > 1e-9  # no two bends at one place
                left = y @ y - np.square(np.swapaxes(Q, -1, -2) @ y).sum(-1)
                bends = tries[np.where(whole, left, np.inf).argmin()]
            now = misfit(name, bends)
            if now >= error - 1e-9:
                break
            error = now
        found.append((error, tuple(sorted(bends.tolist()))))
    return min(found)[1]


def fit_by_hand(target_name: str, k1: float, k2: float, k3: float, k4: float, k5: float) -> dict:
    """The best network of five ReLU units that bends at k1 .. k5, its error, and how much its slope changes at each bend."""
    bends = np.array([k1, k2, k3, k4, k5])
    y, fit = target(target_name), best_output(target_name, bends)
    at = np.rint((bends + 3) / 0.05).astype(int)
    slope = np.diff(fit) / 0.05
    inner = (at > 0) & (at < len(INPUTS) - 1)
    change = np.where(inner, slope[np.minimum(at, 119)] - slope[np.maximum(at, 1) - 1], 0.0)
    return {
        "curve": {"x": INPUTS, "goal": y, "fit": fit},
        "bends": {"x": bends, "y": fit[at], "change": change, "name": list("12345")},
        "error": misfit(target_name, bends),
        "even": misfit(target_name, EVEN),
        "best": misfit(target_name, best_bends(target_name)),
    }


def fit_by_hand_figure() -> Explorable:
    """Drag five bends until the network fits."""
    x = alt.X("x:Q", title="input x", scale=alt.Scale(domain=[-3, 3]), axis=alt.Axis(grid=False))
    y = alt.Y("goal:Q", title="output", scale=alt.Scale(domain=[-0.4, 1.4]))
    curve = alt.Chart(alt.NamedData("curve"))
    goal = curve.mark_line(color=concept("linear"), strokeWidth=7, opacity=0.45).encode(x=x, y=y)
    fit = curve.mark_line(color=concept("relu"), strokeWidth=3, clip=True).encode(x=x, y="fit:Q")
    bends = alt.Chart(alt.NamedData("bends"))
    rules = bends.mark_rule(color=concept("gmp"), strokeDash=[4, 4], strokeWidth=1.5).encode(x=x)
    dots = bends.mark_point(size=260, shape="diamond", filled=True, opacity=1, color=concept("gmp"), clip=True).encode(x=x, y="y:Q")
    numbers = bends.mark_text(fontSize=13, color=concept("gmp"), dx=9).encode(x=x, y=alt.datum(1.33), text="name:N")
    top = alt.layer(goal, rules, fit, dots, numbers).properties(height=300, title="curve (grey), network (blue)")
    change = alt.Y("change:Q", title="change of slope", scale=alt.Scale(domain=[-5, 5], clamp=True))
    zero = bends.mark_rule(color=concept("linear")).encode(y=alt.datum(0))
    stems = bends.mark_rule(color=concept("gmp"), strokeWidth=4).encode(x=x, y=change, y2=alt.datum(0))
    tips = bends.mark_point(size=160, shape="diamond", filled=True, opacity=1, color=concept("gmp")).encode(x=x, y=change)
    bottom = alt.layer(zero, stems, tips).properties(height=300, title="what each bend does")
    names = [f"k{k}" for k in range(1, 6)]
    given = {
        "x": INPUTS.tolist(),
        "targets": {t: target(t).tolist() for t in TARGETS},
        "even": {t: misfit(t, EVEN) for t in TARGETS},
        "best": {t: misfit(t, best_bends(t)) for t in TARGETS},
    }
    return Explorable(
        fit_by_hand,
        [top, bottom],
        [
            Choice("target_name", TARGETS, "bump", "curve to fit", concept="linear"),
            *(Slider(n, PLACES, v, f"bend {n[1]}", f"φ{'₁₂₃₄₅'[i]}", concept="gmp", format=".1f") for i, (n, v) in enumerate(zip(names, EVEN, strict=True))),
        ],
        id="fit-by-hand",
        title="Drag the bends until the network fits",
        alt="Left: a grey curve to fit, the blue broken line of a network with five ReLU units, and a diamond at each of its five bends. "
        "Right: how much the slope changes at each bend.",
        caption="*Left*: drag a diamond sideways, or use the sliders. The output weights are always the best ones for the bends that you chose "
        "(least squares), so only the *places* are yours to choose. *Right*: the change of slope at each bend, the unit's output weight times $|w|$; "
        "a bend that does nothing is wasted.",
        readout="Your bends miss the curve by {error:.3f} (root mean square). Evenly spaced bends miss it by {even:.3f}, "
        "the best placing that a search found by {best:.3f}.",
        presets={
            "Round the bump": dict(zip(names, (-0.2, 0.2, 0.5, 0.8, 1.2), strict=True)),
            "All at the left": dict(zip(names, (-2.8, -2.6, -2.4, -2.2, -2.0), strict=True)),
            "A stair, evenly": {"target_name": "stair"},
            "Waves, evenly": {"target_name": "chirp"},
        },
        drag=tuple(Drag(0, n, "x") for n in names),
        twin=Twin("boundaries.js", given),
    )


# ---- what else can bend ------------------------------------------------------------------------------------------
def activations_figure() -> Still:
    """Six activations of one unit, and where each of them bends."""
    import matplotlib.pyplot as plt

    from ntklib.boundaries import breakpoints

    p = PALETTE["light"]
    x = torch.linspace(-3, 3, 601, dtype=f64)
    w, b = 1.5, 1.0
    shown = (
        ("ReLU", torch.nn.ReLU()),
        ("leaky ReLU, a = 0.2", torch.nn.LeakyReLU(0.2)),
        ("ELU", torch.nn.ELU()),
        ("Hardtanh", torch.nn.Hardtanh()),
        ("Softshrink", torch.nn.Softshrink(0.5)),
        ("GELU: no boundary", torch.nn.GELU()),
    )
    with plt.rc_context(matplotlib_style() | {"font.size": 11}):
        fig, axes = plt.subplots(3, 2, figsize=(5.2, 5.8), sharex=True, sharey=True)
        for ax, (name, act) in zip(axes.flat, shown, strict=True):
            smooth = isinstance(act, torch.nn.GELU)
            ax.plot(x, act(w * x + b), color=p["leaky" if "leaky" in name else "linear" if smooth else "relu"], lw=2.5)
            for t in () if smooth else breakpoints(act):
                at = (t - b) / w
                ax.axvline(at, color=p["gmp"], lw=1.5, ls=(0, (4, 3)))
                ax.plot(at, act(torch.tensor(t, dtype=f64)), "o", color=p["gmp"], ms=7)
            ax.set(title=name, ylim=(-1.6, 3.2), xlim=(-3, 3), xticks=[-2, 0, 2], yticks=[0, 2])
            ax.title.set_fontsize(11)
        fig.supxlabel("input x", fontsize=12)
        fig.tight_layout()
    return Still(
        fig,
        id="activations",
        alt="Six graphs of one unit with w = 1.5 and b = 1: ReLU, leaky ReLU and ELU change their formula at one input, Hardtanh and Softshrink "
        "at two, GELU nowhere.",
        caption="One unit, $w=1.5$ and $b=1$, with six activations. A dashed line stands wherever the formula changes, at $x=(t-b)/w$ for a "
        "breakpoint $t$. ELU has a tangent there and changes its curvature only. GELU is smooth: it has no boundary.",
    )


def second_layer(draw: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Weights of the picture of a second layer: (W, b) of five units in the plane, and the weights of one unit behind them."""
    g = torch.Generator().manual_seed(draw)
    return (torch.randn(5, 2, dtype=f64, generator=g), 0.7 * torch.randn(5, dtype=f64, generator=g),
            torch.randn(5, dtype=f64, generator=g))


def second_layer_figure() -> Still:
    """The boundary of a unit of the second layer, seen from the input."""
    import matplotlib.pyplot as plt

    p = PALETTE["light"]
    W, b, v = second_layer()
    g = torch.linspace(-2.5, 2.5, 401, dtype=f64)
    X = torch.cartesian_prod(g, g)
    hidden = torch.relu(X @ W.T + b)
    z = (hidden @ v - (hidden @ v).median()).reshape(401, 401).T
    with plt.rc_context(matplotlib_style()):
        fig, ax = plt.subplots(figsize=(4.6, 4.6))
        for line in Boundary(W, b).points(2, radius=6.0):
            ax.plot(*line.T, color=p["relu"], lw=1.6, ls=(0, (5, 3)))
        ax.contour(g, g, z, levels=[0], colors=[p["gmp"]], linewidths=3.2)
        ax.set(xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), aspect="equal", xlabel="$x_1$", ylabel="$x_2$", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
    return Still(
        fig,
        id="second-layer",
        alt="Five dashed straight lines, the boundaries of a first layer, and the boundary of one unit of the second layer, a broken line that "
        "bends wherever it crosses one of them.",
        caption="Dashed: the boundaries of five units of the first layer. Solid: the boundary of one unit of the second layer, seen from the "
        "input. It is straight in its own input space, and bends here wherever it crosses a dashed line.",
    )


EXPLORABLES = {
    "predict-bends": bend_share_figure,
    "unit-in-the-plane": one_unit_figure,
    "layer-lines": layer_lines_figure,
    "fit-by-hand": fit_by_hand_figure,
    "draws-needed": draws_needed_figure,
}
