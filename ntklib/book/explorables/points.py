"""Chapter "The condition number of n points": which eigenvalues a ReLU moves, for data that the reader builds."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib import angle_between, embedding_angle, gradient_deficit, ntk_condition_number, ntk_gram
from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider, Twin
from ntklib.book.figures import concept, plane, series

f64 = torch.float64
DEPTH = 12
INFINITE = 1e9  # a larger kappa of dragged points is shown as infinite: they lie on whole degrees
RAW = {"scale": None, "axis": None}  # encodings in pixels, made by `plane`
STEPS = [k / 12 for k in range(13)]  # along an arc


def _at(name: str) -> dict:
    """The pixel columns NAME_x and NAME_y of `plane`, as encodings."""
    return {"x": alt.X(f"{name}_x:Q", **RAW), "y": alt.Y(f"{name}_y:Q", **RAW)}


def _place(table: str, x="datum.x", y="datum.y"):
    return plane(alt.Chart(alt.NamedData(table)), at={"x": x, "y": y})


def _kappas(grams: torch.Tensor) -> np.ndarray:
    """Condition numbers of a stack of matrices."""
    values = torch.linalg.eigvalsh(grams)
    low, high = values[..., 0], values[..., -1]
    return torch.where(high < INFINITE * low, high / low, torch.inf).numpy()


def _grams(X: torch.Tensor, trained: str = "all") -> torch.Tensor:
    """The kernels at depths 1 to DEPTH, divided by the number of trained layers: the diagonal is that of X X^T."""
    layers = [L + 1 if trained == "all" else 1 for L in range(1, DEPTH + 1)]
    return torch.stack([ntk_gram(X, depth=L, trained=trained) / k for L, k in enumerate(layers, 1)])


@cache
def _tabulated(trained: str) -> list[list[float]]:
    """What the kernel loses between two unit inputs, 1 - K(theta)/K(0), as a Chebyshev series on [0, pi], for each depth."""

    def lost(theta: torch.Tensor, depth: int) -> torch.Tensor:
        if trained == "all":
            return gradient_deficit(theta, depth)
        angles = torch.stack([embedding_angle(theta, l) for l in range(depth)])
        return 1 - theta.cos() * (1 - angles / math.pi).prod(0)

    def on_interval(x, depth):
        return lost(torch.tensor((x + 1) * (math.pi / 2), dtype=f64).clamp(0, math.pi), depth).numpy()

    # the nearest singularity lies near theta = -3 pi / L, which makes a term 2.6 times smaller than the last one at L = 12
    return [np.polynomial.chebyshev.chebinterpolate(on_interval, 36, (L,)).tolist() for L in range(1, DEPTH + 1)]


def _kappa_axis(top: float, title="condition number κ"):
    ticks = [10.0**k for k in range(round(math.log10(top)) + 1)]
    return alt.Y(
        "kappa:Q",
        title=title,
        scale=alt.Scale(type="log", domain=[1, top], clamp=True),
        axis=alt.Axis(values=ticks, labelExpr="datum.value < 1e4 ? format(datum.value, 'd') : '10⁴'"),
    )


def _depth_axis(first: int = 0):
    return alt.X("L:Q", title="depth L", scale=alt.Scale(domain=[first, DEPTH]), axis=alt.Axis(values=[0, 2, 4, 6, 8, 10, 12]))


# ---- a prediction: the closest pair comes closer ------------------------------------------------------------------
NEAR = [0.125, 0.25, 0.5, 1, 2, 4, 8, 16]
KNOWN = 2.0  # degrees at which the reader is told the answer


@cache
def _with_pair(degrees: float) -> torch.Tensor:
    """Eight unit vectors in R^16: seven random ones, and one at `degrees` from the first."""
    X = torch.linalg.qr(torch.randn(16, 16, dtype=f64, generator=torch.Generator().manual_seed(2)))[0]
    spread = X[:7] + 0.45 * X[7]
    spread = spread / spread.norm(dim=1, keepdim=True)
    t = math.radians(degrees)
    return torch.cat([spread, (math.cos(t) * spread[0] + math.sin(t) * X[8])[None]])


@cache
def _nearing() -> dict:
    linear, relu = (np.array([ntk_condition_number(_with_pair(t), depth=L).kappa for t in NEAR]) for L in (0, 1))
    return {"theta": NEAR, "linear": linear, "relu": relu}


def closest_pair(theta: float) -> dict:
    """Condition numbers of eight points whose closest pair is `theta` degrees apart, with one hidden layer and without ReLU."""
    both = _nearing()
    i, known = NEAR.index(theta), NEAR.index(KNOWN)
    return {
        "curve": both,
        "now": {"theta": [theta], "linear": [both["linear"][i]], "relu": [both["relu"][i]]},
        "known": {"theta": [KNOWN], "told": [both["relu"][known]]},
        "linear": both["linear"][i],
        "relu": both["relu"][i],
    }


def closest_pair_figure() -> Explorable:
    """Guess what a closer pair costs a ReLU network."""
    x = alt.X(
        "theta:Q",
        title="angle of the closest pair (degrees)",
        scale=alt.Scale(type="log", base=2, domain=[0.125, 16]),
        axis=alt.Axis(values=NEAR),
    )
    scale = alt.Scale(type="log", domain=[10, 1e7])
    axis = alt.Axis(values=[10.0**k for k in range(1, 8)], format=".0e", labelExpr="'10' + ['¹','²','³','⁴','⁵','⁶','⁷'][round(log(datum.value)/log(10)) - 1]")

    def y(column):
        return alt.Y(f"{column}:Q", title="condition number κ", scale=scale, axis=axis)

    curve, now = alt.Chart(alt.NamedData("curve")), alt.Chart(alt.NamedData("now"))
    lines = [
        curve.mark_line(color=concept("linear"), strokeWidth=2.5, strokeDash=[6, 4]).encode(x=x, y=y("linear")),
        curve.mark_line(color=concept("relu"), strokeWidth=3).encode(x=x, y=y("relu")),
        now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x),
        now.mark_circle(size=110, color=concept("linear"), opacity=1).encode(x=x, y=y("linear")),
        now.mark_circle(size=130, color=concept("relu"), opacity=1).encode(x=x, y=y("relu")),
        alt.Chart(alt.NamedData("known")).mark_point(size=150, color=concept("relu"), strokeWidth=2.5, opacity=1).encode(x=x, y=y("told")),
    ]
    told = _nearing()
    linear, relu = (round(told[name][NEAR.index(KNOWN)]) for name in ("linear", "relu"))
    return Explorable(
        closest_pair,
        alt.layer(*lines).properties(height=300),
        [Slider("theta", NEAR, 1, "closest pair", "θ", "°", concept="ink")],
        id="predict-closest-pair",
        title="Predict first: the closest pair comes closer",
        alt="Condition number against the angle of the closest of eight points, both axes logarithmic, for a linear network and for a "
        "network with one hidden ReLU layer.",
        caption="Dashed grey: the linear network. Open circle: the ReLU network while the closest pair is 2° apart. Both axes are logarithmic. "
        "Type a guess or drag the dashed horizontal line, then reveal.",
        readout="Closest pair at {theta}°: κ = {linear:.4g} without ReLU, κ = {relu:.4g} with one hidden layer.",
        presets={"Farther": {"theta": 8}, "Closer": {"theta": 0.25}},
        predict=Predict(
            f"Eight points; the closest pair is 2° apart. The linear network has κ = {linear}, a wide network with one hidden ReLU layer "
            f"κ = {relu}. Now the pair moves to 1°, which takes the linear network to κ = {round(told['linear'][NEAR.index(1)])}. "
            "What is the ReLU network's κ now?",
            "relu",
            ("relu",),
            "y",
            "",
            ".3g",
            (1, 1e7),
        ),
        drag=(Drag(0, "theta", "x"),),
        code="ntklib.ntk_condition_number(X, depth=1).kappa",
    )


# ---- six points on a circle ---------------------------------------------------------------------------------------
NAMES = ["x₁", "x₂", "x₃", "x₄", "x₅", "x₆"]


def circle_points(p1: float, p2: float, p3: float, p4: float, p5: float, p6: float, depth: int) -> dict:
    """Six points on a circle, at these degrees: kappa of their kernel for every depth, all layers trained, and the kappa of
    the closest pair alone, which is a floor under it."""
    turns = [p1, p2, p3, p4, p5, p6]
    t = torch.tensor(turns, dtype=f64).deg2rad()
    X = torch.stack([t.cos(), t.sin()], 1)
    kappa = _kappas(_grams(X))
    angles = angle_between(X[:, None], X[None])
    i, j = np.triu_indices(6, 1)
    pairs = angles.numpy()[i, j]
    near = int(np.flatnonzero(pairs <= pairs.min() + 1e-9)[0])
    closest = torch.tensor(pairs[near], dtype=f64)
    lost = np.array([gradient_deficit(closest, L).item() for L in range(1, DEPTH + 1)])
    floor = np.where(lost > 2 / INFINITE, (2 - lost) / np.maximum(lost, 1e-300), np.inf)
    start = turns[i[near]]
    arc = np.radians([start + s * ((turns[j[near]] - start + 540) % 360 - 180) for s in STEPS])
    return {
        "points": {"x": X[:, 0], "y": X[:, 1], "name": NAMES},
        "arc": {"x": np.cos(arc), "y": np.sin(arc), "order": range(13)},
        "curve": {"L": range(1, DEPTH + 1), "kappa": kappa, "floor": floor, "infinite": np.where(np.isinf(kappa), 1, np.nan)},
        "now": {"L": [depth], "kappa": [kappa[depth - 1]], "floor": [floor[depth - 1]]},
        "closest": math.degrees(closest),
        "kappa": kappa[depth - 1],
        "floor": floor[depth - 1],
    }


def _circle_marks():
    """The circle, the closest pair's arc and the six points."""
    points = _place("points")
    dots = points.mark_circle(size=330, opacity=1, color=concept("ink")).encode(**_at("at"))
    names = _place("points", "1.17 * datum.x", "1.17 * datum.y").mark_text(fontSize=16, color=concept("ink")).encode(**_at("at"), text="name:N")
    arc = _place("arc").mark_line(strokeWidth=7, color=concept("gradient")).encode(**_at("at"), order="order:Q")
    ring = (
        plane(alt.Chart(alt.Data(values=[{"x": math.cos(a), "y": math.sin(a), "order": k} for k, a in enumerate(np.linspace(0, 2 * math.pi, 73))])),
              at={"x": "datum.x", "y": "datum.y"})
        .mark_line(color=concept("faint"), strokeWidth=2)
        .encode(**_at("at"), order="order:Q")
    )
    return alt.layer(ring, arc, dots, names)


def circle_points_figure() -> Explorable:
    """The closest pair gives a floor under kappa, and no ceiling."""
    colour = series({"all six points": "relu", "the closest pair alone": "gradient"}, columns=1)
    x, y = _depth_axis(1), _kappa_axis(1e4)

    def both(table):
        return (
            alt.Chart(alt.NamedData(table))
            .transform_calculate(**{"all six points": "datum.kappa", "the closest pair alone": "datum.floor"})
            .transform_fold(["all six points", "the closest pair alone"], ["what", "kappa"])
        )

    lines = both("curve").mark_line(strokeWidth=3).encode(x=x, y=y, color=colour)
    here = both("now").mark_circle(size=120, opacity=1).encode(x=x, y=y, color=colour)
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    infinite = (
        alt.Chart(alt.NamedData("curve"))
        .transform_filter("isValid(datum.infinite)")
        .mark_text(text="κ = ∞", fontSize=15, color=concept("relu"), align="left", dx=6, dy=8, fontWeight="bold")
        .encode(x=x, y=alt.value(0))
    )
    controls = [Slider(f"p{k}", list(range(360)), v, f"point {n}", "", "°") for k, (n, v) in enumerate(zip(NAMES, (10, 22, 80, 138, 205, 283), strict=True), 1)]
    return Explorable(
        circle_points,
        [_circle_marks().properties(height=320, title="the data: drag a point"), alt.layer(rule, lines, here, infinite).properties(height=320, title="the kernel, all layers trained")],
        [*controls, Slider("depth", list(range(1, DEPTH + 1)), 3, "depth", "L", concept="relu")],
        id="circle-points",
        title="Six points on a circle: the closest pair is a floor under κ, and no ceiling",
        alt="Left: six points on a circle, the two closest ones joined by a thick arc. Right: the condition number against the depth for all six points, "
        "above that of the closest pair alone.",
        caption="*Left*: drag any point, or use its slider; the thick arc joins the closest pair. *Right*: κ of the tangent kernel of all six "
        "points, and of the closest pair alone, by depth. Move the pair together: both curves rise, and stay parallel. Now spread the six points "
        "evenly, and look at $L=1$. A κ above $10^9$ is written as ∞.",
        readout="The closest pair is {closest:.0f}° apart. At depth {depth}: κ = {kappa:.3g}, and {floor:.3g} for that pair alone.",
        presets={
            "Closer": {"p1": 14, "p2": 18},
            "One cluster": {"p1": 0, "p2": 12, "p3": 23, "p4": 36, "p5": 47, "p6": 60},
            "Regular hexagon": {"p1": 0, "p2": 60, "p3": 120, "p4": 180, "p5": 240, "p6": 300, "depth": 1},
        },
        drag=tuple(Drag(0, f"p{k}", "angle") for k in range(1, 7)),
        twin=Twin("points.js", {"all": _tabulated("all"), "constant": {"names": NAMES, "steps": STEPS, "order": list(range(13)), "depths": list(range(1, DEPTH + 1))}}),
        code="ntklib.ntk_condition_number(X, depth={depth}).kappa",
    )


# ---- the first layer alone, and all of them: the whole spectrum ----------------------------------------------------
@cache
def data_set(name: str) -> torch.Tensor:
    """The chapter's data sets, (n, d): "random", "pair", "lengths", "orthonormal" or "isolated"."""
    generator = torch.Generator().manual_seed(0)
    if name == "orthonormal":
        return torch.eye(8, dtype=f64)
    if name == "isolated":  # a short point and a long one, both orthogonal to a close pair
        half = math.acos(0.9) / 2
        return torch.tensor([[0.1, 0, 0, 0], [0, 3, 0, 0], [0, 0, math.cos(half), math.sin(half)], [0, 0, math.cos(half), -math.sin(half)]], dtype=f64)
    X = torch.randn(8, 16, dtype=f64, generator=generator)
    X = X / X.norm(dim=1, keepdim=True)
    if name == "pair":
        other = X[1] - (X[1] @ X[0]) * X[0]
        t = math.radians(3)
        X = torch.cat([X[:1], (math.cos(t) * X[0] + math.sin(t) * other / other.norm())[None], X[2:]])
    if name == "lengths":
        X = X * torch.linspace(0.5, 2, 8, dtype=f64)[:, None]
    return X


@cache
def _spectra(data: str, trained: str) -> np.ndarray:
    """Eigenvalues, ascending, at depths 0 to DEPTH: (DEPTH + 1, n)."""
    X = data_set(data)
    return torch.linalg.eigvalsh(torch.cat([(X @ X.T)[None], _grams(X, trained)])).numpy()


def spectra(data: str, trained: str, depth: int) -> dict:
    """All eigenvalues of the kernel of a data set for every depth, over the number of trained layers, and their extremes."""
    values = _spectra(data, trained)
    low, high = values[:, 0], values[:, -1]
    every = np.full((8, DEPTH + 1), np.nan)
    every[: values.shape[1]] = values.T
    depths = np.arange(DEPTH + 1)
    return {
        "values": {"L": np.tile(depths, 8), "mode": np.repeat(np.arange(8), DEPTH + 1), "value": every.ravel()},
        "ends": {"L": depths, "low": low, "high": high, "low0": np.full(DEPTH + 1, low[0]), "high0": np.full(DEPTH + 1, high[0]), "relu": high / low, "linear": np.full(DEPTH + 1, high[0] / low[0])},
        "now": {"L": [depth], "low": [low[depth]], "high": [high[depth]], "relu": [high[depth] / low[depth]], "linear": [high[0] / low[0]]},
        "low": low[depth],
        "high": high[depth],
        "kappa": high[depth] / low[depth],
        "low0": low[0],
        "high0": high[0],
        "kappa0": high[0] / low[0],
    }


def spectra_figure() -> Explorable:
    """Training the first layer alone squeezes the spectrum from both sides; training all layers need not."""
    x = _depth_axis()
    y = alt.Y("value:Q", title="eigenvalues", scale=alt.Scale(type="log", domain=[5e-4, 20]), axis=alt.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g"))
    ends = alt.Chart(alt.NamedData("ends"))
    modes = alt.Chart(alt.NamedData("values")).mark_line(color=concept("relu"), strokeWidth=1.5, opacity=0.75).encode(x=x, y=y, detail="mode:N")
    edges = [ends.mark_line(color=concept("relu"), strokeWidth=3.5).encode(x=x, y=f"{c}:Q") for c in ("low", "high")]
    walls = [ends.mark_line(color=concept("linear"), strokeWidth=2.5, strokeDash=[6, 4]).encode(x=x, y=f"{c}:Q") for c in ("low0", "high0")]
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    dots = [now.mark_circle(size=110, opacity=1, color=concept("relu")).encode(x=x, y=f"{c}:Q") for c in ("low", "high")]
    left = alt.layer(rule, modes, *walls, *edges, *dots).properties(height=300, title="all eigenvalues")
    k = alt.Y("relu:Q", title="condition number κ", scale=alt.Scale(type="log", domain=[1, 3000]), axis=alt.Axis(values=[1, 10, 100, 1000], format="d"))
    right = alt.layer(
        rule,
        ends.mark_line(color=concept("linear"), strokeWidth=2.5, strokeDash=[6, 4]).encode(x=x, y="linear:Q"),
        ends.mark_line(color=concept("relu"), strokeWidth=3.5).encode(x=x, y=k),
        now.mark_circle(size=110, opacity=1, color=concept("relu")).encode(x=x, y=k),
    ).properties(height=300, title="their quotient")
    return Explorable(
        spectra,
        [left, right],
        [
            Choice("data", {"pair": "eight, one pair at 3°", "random": "eight random directions", "lengths": "with lengths ½ to 2", "orthonormal": "eight orthonormal", "isolated": "a pair, two loners"}, "pair", "data"),
            Choice("trained", {"first": "the first layer", "all": "all layers"}, "first", "train"),
            Slider("depth", list(range(DEPTH + 1)), 3, "depth", "L", concept="relu"),
        ],
        id="spectra",
        title="Train the first layer alone, and the spectrum is squeezed from both sides",
        alt="Left: the eigenvalues of the tangent kernel against the depth on a logarithmic axis, between two dashed lines that mark the smallest and the largest "
        "eigenvalue of the linear network. Right: the condition number against the depth, with the linear network's as a dashed line.",
        caption="*Left*: every eigenvalue of the kernel, divided by the number of trained layers; the dashed lines are the smallest and the largest "
        "one of the linear network. *Right*: the largest over the smallest. With the first layer trained no curve leaves the dashed corridor, whatever the data. "
        "Train all layers, and watch the upper edge.",
        readout="Depth {depth}: eigenvalues from {low:.3g} to {high:.3g}, κ = {kappa:.4g}. Linear network: from {low0:.3g} to {high0:.3g}, κ = {kappa0:.4g}.",
        presets={
            "Random directions": {"data": "random", "depth": 3},
            "Loners": {"data": "isolated", "depth": 1},
            "Orthonormal, all layers": {"data": "orthonormal", "trained": "all", "depth": 10},
        },
        drag=(Drag(0, "depth", "x"), Drag(1, "depth", "x")),
        code='ntklib.ntk_condition_number(X, depth={depth}, trained="{trained}").kappa',
    )


# ---- three points on a sphere -------------------------------------------------------------------------------------
@cache
def _globe() -> dict:
    """Rim, parallels and meridians of the near half of a globe."""
    degrees = np.linspace(-90, 90, 25)
    lines = [(np.cos(np.radians(part)), np.sin(np.radians(part))) for part in (degrees, degrees + 180)]
    for a in (-60, -30, 0, 30, 60):
        lines.append((np.cos(np.radians(a)) * np.sin(np.radians(degrees)), np.full(25, np.sin(np.radians(a)))))
        lines.append((np.cos(np.radians(degrees)) * np.sin(np.radians(a)), np.sin(np.radians(degrees))))
    x, y = (np.concatenate(c) for c in zip(*lines, strict=True))
    return {"x": x.round(4).tolist(), "y": y.round(4).tolist(), "line": np.repeat(range(12), 25).tolist(), "order": np.tile(range(25), 12).tolist()}


def _beside(centre, u, v, other) -> np.ndarray:
    """Where the label of an arc stands: beside its centre, away from the third point, and farther off beside a short arc."""
    across = np.array([u[1] - v[1], v[0] - u[0]])
    size = np.linalg.norm(across)
    side = 1 if (centre - other) @ across >= 0 else -1
    return centre + side * (0.12 + 0.45 * max(0, 1 - 2.5 * size)) * across / max(size, 1e-9)


def sphere_points(lon1: float, lat1: float, lon2: float, lat2: float, lon3: float, lat3: float, depth: int) -> dict:
    """Three points on the near half of a sphere, by longitude and latitude in degrees: kappa for every depth with all layers
    trained, with the first one, and of the linear network."""
    a = torch.tensor([[lon1, lat1], [lon2, lat2], [lon3, lat3]], dtype=f64).deg2rad()
    lon, lat = a[:, 0], a[:, 1]
    X = torch.stack([lat.cos() * lon.sin(), lat.sin(), lat.cos() * lon.cos()], 1)
    linear = _kappas(X @ X.T).item()
    relu, first = ([linear, *_kappas(_grams(X, kind)).tolist()] for kind in ("all", "first"))
    pairs = [(0, 1), (0, 2), (1, 2)]
    middle = X.mean(0).numpy()

    def along(i, j, s):
        w = ((1 - s) * X[i] + s * X[j]).numpy()
        r = np.linalg.norm(w)
        return w[:2] / r if r >= 1e-9 else np.full(2, np.nan)

    arcs = np.array([along(*p, s) for p in pairs for s in STEPS])
    centres = np.array([along(*p, 0.5) for p in pairs])

    def outwards(p, by):
        away = p - middle[:2]
        return p + by * away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)

    flat = X[:, :2].numpy()
    names, labels = outwards(flat, 0.19), np.array([_beside(centres[k], *flat[[*p, 2 - k]]) for k, p in enumerate(pairs)])
    gain = linear / relu[depth] if math.isfinite(relu[depth]) else math.nan
    says = "two points coincide" if math.isnan(gain) else "no change" if abs(gain - 1) < 1e-6 else "ReLU is better" if gain > 1 else "ReLU is worse"
    return {
        "grid": _globe(),
        "points": {"x": X[:, 0], "y": X[:, 1], "name": NAMES[:3], "name_x": names[:, 0], "name_y": names[:, 1]},
        "arcs": {"x": arcs[:, 0], "y": arcs[:, 1], "pair": np.repeat(range(3), 13), "order": np.tile(range(13), 3)},
        "labels": {"x": labels[:, 0], "y": labels[:, 1], "degrees": [math.degrees(angle_between(X[i], X[j])) for i, j in pairs]},
        "curve": {"L": range(DEPTH + 1), "linear": [linear] * (DEPTH + 1), "all": relu, "first": first},
        "now": {"L": [depth], "linear": [linear], "all": [relu[depth]], "first": [first[depth]]},
        "linear": linear,
        "all": relu[depth],
        "first": first[depth],
        "says": says,
    }


def sphere_points_figure() -> Explorable:
    """Three points to drag: where is ReLU worse than no ReLU?"""
    lines = {"linear network": "linear", "ReLU, all layers trained": "relu", "ReLU, first layer trained": "relu"}
    legend = alt.Legend(title=None, orient="top", labelLimit=0, columns=1, symbolType="stroke", symbolSize=700, symbolStrokeWidth=3)
    scale = alt.Scale(domain=list(lines), range=[concept(c) for c in lines.values()])
    colour = alt.Color("what:N", scale=scale, legend=legend)
    dash = alt.StrokeDash("what:N", scale=alt.Scale(domain=list(lines), range=[[6, 4], [1, 0], [2, 2]]), legend=legend)
    x, y = _depth_axis(), _kappa_axis(1e4)

    def three(table):
        return (
            alt.Chart(alt.NamedData(table))
            .transform_calculate(**dict(zip(lines, ("datum.linear", "datum.all", "datum.first"), strict=True)))
            .transform_fold(list(lines), ["what", "kappa"])
        )

    curves = three("curve").mark_line(strokeWidth=3).encode(x=x, y=y, color=colour, strokeDash=dash)
    here = three("now").mark_circle(size=110, opacity=1).encode(x=x, y=y, color=alt.Color("what:N", scale=scale, legend=None))
    rule = alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    right = alt.layer(rule, curves, here).properties(height=330, title="their condition numbers")
    globe = alt.layer(
        _place("grid").mark_line(color=concept("faint"), strokeWidth=1).encode(**_at("at"), detail="line:N", order="order:Q"),
        _place("arcs").mark_line(color=concept("ink"), strokeWidth=2, strokeDash=[2, 3]).encode(**_at("at"), detail="pair:N", order="order:Q"),
        _place("points").mark_circle(size=330, opacity=1, color=concept("ink")).encode(**_at("at")),
        _place("points", "datum.name_x", "datum.name_y").mark_text(fontSize=16, color=concept("ink")).encode(**_at("at"), text="name:N"),
        _place("labels").transform_calculate(text="format(datum.degrees, '.0f') + '°'").mark_text(fontSize=13, color=concept("ink")).encode(**_at("at"), text="text:N"),
    ).properties(height=330, title="the data: drag a point")
    controls = [
        Slider(f"{kind}{k}", list(range(-90, 91)), v, f"{NAMES[k - 1]} {word}", "", "°")
        for k, at in enumerate(((-42, -12), (-30, -2), (38, -34)), 1)
        for kind, word, v in zip(("lon", "lat"), ("longitude", "latitude"), at, strict=True)
    ]
    return Explorable(
        sphere_points,
        [globe, right],
        [*controls, Slider("depth", list(range(DEPTH + 1)), 4, "depth", "L", concept="relu")],
        id="sphere-points",
        title="Three points on a sphere: can you place them so that ReLU makes it worse?",
        alt="Left: three points on the near half of a globe, with the angle between each two. Right: condition numbers against the depth, of the linear "
        "network and of ReLU networks with all layers or the first one trained.",
        caption="*Left*: drag a point, or use its two sliders; the numbers are the angles between the points. *Right*: κ of the "
        "linear network and of the ReLU network, by depth. With a close pair ReLU wins, and deeper is better. "
        "Find three points for which the solid curve runs *above* the grey line. A κ above $10^9$ is written as ∞.",
        readout="At depth {depth}: {says}. κ = {linear:.3g} without ReLU; with it κ = {all:.3g}, or {first:.3g} with the first layer trained alone.",
        presets={
            "A closer pair": {"lon1": -37, "lat1": -8, "lon2": -35, "lat2": -7},
            "On one great circle": {"lon1": -60, "lat1": 0, "lon2": 0, "lat2": 0, "lon3": 60, "lat3": 0},
            "Show me one": {"lon1": 0, "lat1": 55, "lon2": -51, "lat2": -24, "lon3": 51, "lat3": -24, "depth": 4},
        },
        drag=tuple(Drag(0, (f"lon{k}", f"lat{k}"), "globe") for k in (1, 2, 3)),
        twin=Twin(
            "points.js",
            {
                "all": _tabulated("all"),
                "first": _tabulated("first"),
                "constant": {
                    "names": NAMES[:3],
                    "steps": STEPS,
                    "order": np.tile(range(13), 3).tolist(),
                    "pair": np.repeat(range(3), 13).tolist(),
                    "depths": list(range(DEPTH + 1)),
                    "grid": _globe(),
                },
            },
        ),
        code="ntklib.ntk_condition_number(X, depth={depth}).kappa",
    )


EXPLORABLES = {
    "predict-closest-pair": closest_pair_figure,
    "circle-points": circle_points_figure,
    "spectra": spectra_figure,
    "sphere-points": sphere_points_figure,
}
