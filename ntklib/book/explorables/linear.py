"""The linear network: the same architecture without the ReLU, where depth does nothing but scale."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch
from torch import Tensor

from ntklib import MLP, embedding_angle, empirical_ntk, ntk_condition_number, ntk_gram
from ntklib.book.explorable import Choice, Drag, Explorable, Predict, Slider
from ntklib.book.figures import concept, plane

NETS = {"linear": "linear", "ReLU": "relu"}


def _network(depth: int, width: int, draw: int, activation="linear", d=2) -> MLP:
    seed = 1_000_000 * draw + 1000 * depth + width
    return MLP(d, width, depth, activation, generator=torch.Generator().manual_seed(seed))


# ---- how long the gradient is -------------------------------------------------------------------------------------
DEEP = 24
WIDTH = 512


@cache
def _lengths() -> dict:
    """Gradient lengths of real networks of width 512, for a unit input."""
    x, depths = torch.tensor([[0.6, 0.8]], dtype=torch.float64), [0, 2, 5, 9, 15, 24]
    real = {a: [empirical_ntk(_network(L, WIDTH, 1, a), x).sqrt().item() for L in depths] for a in ("linear", "relu")}
    return {"L": depths, **real}


def gradient_length(depth: int) -> dict:
    """|grad f(x)| / |x|: its limit sqrt(L + 1), the printed L + 1, and real networks of width 512."""
    L = np.arange(DEEP + 1)
    return {
        "law": {"L": L, "length": np.sqrt(L + 1), "printed": L + 1.0},
        "real": _lengths(),
        "now": {"L": [depth], "length": [math.sqrt(depth + 1)]},
        "length": math.sqrt(depth + 1),
        "printed": depth + 1,
    }


def gradient_length_figure() -> Explorable:
    """Guess how the gradient grows with depth."""
    x = alt.X("L:Q", title="depth L", scale=alt.Scale(domain=[0, DEEP]))

    def y(field):
        return alt.Y(field, title="length of the gradient", scale=alt.Scale(domain=[0, 10]))

    law, real, now = (alt.Chart(alt.NamedData(n)) for n in ("law", "real", "now"))
    printed = law.mark_line(strokeDash=[6, 4], color=concept("ink"), clip=True).encode(x=x, y=y("printed:Q"))
    limit = law.mark_line(strokeWidth=3, color=concept("linear")).encode(x=x, y=y("length:Q"))
    points = [
        real.mark_point(size=90, shape=shape, filled=False, strokeWidth=2, color=concept("measured"), opacity=1).encode(x=x, y=y(f"{n}:Q"))
        for n, shape in (("linear", "circle"), ("relu", "triangle-up"))
    ]
    rule = now.mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x)
    point = now.mark_circle(size=130, opacity=1, color=concept("linear")).encode(x=x, y=y("length:Q"))
    return Explorable(
        gradient_length,
        alt.layer(rule, printed, limit, *points, point).properties(height=300),
        [Slider("depth", list(range(DEEP + 1)), 15, "depth", "L")],
        id="predict-gradient-length",
        title="Predict first: the length of the gradient",
        alt="Length of the parameter gradient, for an input of length 1, against depth: a curve, measured networks beside it, and a steeper dashed line.",
        caption="Grey: the length at infinite width. Purple: one real network of width 512 for each point, without the ReLU (circles) and with it "
        "(triangles). Dashed: the length as the paper prints it. Type a guess or drag the horizontal line, then reveal.",
        readout="At depth {depth} the gradient is {length:.3g} times as long as the input; the paper prints {printed}.",
        presets={"No hidden layer": {"depth": 0}, "Deep": {"depth": 24}},
        predict=Predict(
            "The gradient of the linear model, $L=0$, is as long as its input. How many times as long is that of a linear network "
            "with 15 hidden layers?",
            "length",
            ("length", "printed", "linear", "relu"),
            "y",
            "",
            ".3g",
            (0, 100),
        ),
        code="ntklib.ntk_gram(x, depth={depth}, activation='linear').sqrt()",
    )


# ---- the gradient is a linear map of the input --------------------------------------------------------------------
@cache
def gradient_map(depth: int, width: int, draw: int) -> np.ndarray:
    """M^(1/2), (2, 2), of a random linear network on the plane: K(x, z) = x . M z, so that x -> M^(1/2) x shows the
    gradients up to a rotation of parameter space."""
    M = empirical_ntk(_network(depth, width, draw), torch.eye(2, dtype=torch.float64)).numpy()
    values, vectors = np.linalg.eigh(M)
    return vectors * np.sqrt(values) @ vectors.T


def gradient_plane(theta: float, depth: int, width: int, draw: int) -> dict:
    """The plane of the gradients of a random linear network: the image of the unit circle, and of two inputs."""
    S, t = gradient_map(depth, width, draw), math.radians(theta)
    gx, gz = S[:, 0], S @ [math.cos(t), math.sin(t)]
    short, long = np.linalg.eigvalsh(S)
    return {
        "map": {"s11": S[0, 0], "s12": S[0, 1], "s22": S[1, 1], "theta": [t], "radius": [math.sqrt(depth + 1)]},
        "phi": math.degrees(math.atan2(abs(gx[0] * gz[1] - gx[1] * gz[0]), gx @ gz)),
        "length": math.hypot(*gx),
        "limit": math.sqrt(depth + 1),
        "ratio": long / short,
    }


def gradient_plane_figure() -> Explorable:
    """Two inputs, and on top of them the gradients of a linear network at them."""
    one = alt.Chart(alt.NamedData("map"))
    raw = {"scale": None, "axis": None}
    turn = "(datum.k * PI / 32)"

    def at(chart, place, mark, **encoding):
        kind, style = mark
        chart = plane(chart, reach=3.4, p=dict(zip("xy", place, strict=True)))
        return getattr(chart, f"mark_{kind}")(**style).encode(x=alt.X("p_x:Q", **raw), y=alt.Y("p_y:Q", **raw), **encoding)

    def rows(k):  # k = 0, 1, ..., in as many rows
        return one.transform_calculate(k=f"sequence(0, {k + 1})").transform_flatten(["k"])

    def image(x, y):
        return f"datum.s11 * ({x}) + datum.s12 * ({y})", f"datum.s12 * ({x}) + datum.s22 * ({y})"

    def line(width, ink, **style):
        return "line", {"strokeWidth": width, "color": concept(ink)} | style

    def arrow(tip, ink, width, label, beyond, off):  # the label is so far beyond the tip, and beside the shaft
        x, y = tip
        n = f"hypot({x}, {y})"
        place = [f"({a}) * (1 + {beyond} / {n}) + {off} * ({b}) / {n}" for a, b in ((x, f"-({y})"), (y, x))]
        head = one.transform_calculate(turn=f"90 - atan2({y}, {x}) * 180 / PI")
        pointed = "point", {"shape": "triangle", "filled": True, "size": 130, "opacity": 1, "color": concept(ink)}
        return [
            at(rows(1), (f"0.95 * datum.k * ({x})", f"0.95 * datum.k * ({y})"), line(width, ink), order="k:Q"),
            at(head, (f"0.95 * ({x})", f"0.95 * ({y})"), pointed, angle=alt.Angle("turn:Q", scale=None)),
            at(one, place, ("text", {"text": label, "fontSize": 16, "fontStyle": "italic", "color": concept(ink)})),
        ]

    x, z = ("1", "0"), ("cos(datum.theta)", "sin(datum.theta)")
    circles = [
        at(rows(64), (f"datum.radius * cos{turn}", f"datum.radius * sin{turn}"), line(2, "linear", strokeDash=[5, 4]), order="k:Q"),
        at(rows(64), image(f"cos{turn}", f"sin{turn}"), line(3, "measured"), order="k:Q"),
        at(rows(64), (f"cos{turn}", f"sin{turn}"), line(2.5, "linear"), order="k:Q"),
    ]
    arrows = [
        *arrow(image(*x), "gradient", 4, "∇f(x)", 0.5, 0),
        *arrow(image(*z), "gradient", 4, "∇f(z)", 0.36, 0),
        *arrow(x, "ink", 2.5, "x", -0.42, -0.2),
        *arrow(z, "ink", 2.5, "z", -0.42, 0.2),
    ]
    return Explorable(
        gradient_plane,
        alt.layer(*circles, *arrows).properties(height=360),
        [
            Slider("theta", list(range(0, 181, 5)), 60, "input angle", "θ", "°"),
            Slider("depth", list(range(7)), 3, "depth", "L"),
            Choice("width", {m: f"{m} units" for m in (16, 64, 512)}, 512, "width", "m", concept="measured"),
            Slider("draw", [1, 2, 3], 1, "random draw"),
        ],
        id="gradient-plane",
        title="A linear network copies its inputs into its gradients",
        alt="The unit circle with two input arrows. Around it the image of the circle, a closed curve beside a larger dashed circle, with the two gradients as arrows "
        "in almost the same directions as the inputs.",
        caption="Black: two inputs on the unit circle; drag $z$. Orange: the gradients of one real linear network at these inputs, in the plane that holds the "
        "gradients of all inputs. Purple: the image of the unit circle. The dashed circle has the radius $\\sqrt{L+1}$ of the infinitely wide network. "
        "Wide: a larger copy, at every depth. Narrow: an ellipse, and angles are not kept.",
        readout="Inputs {theta}° apart have gradients {phi:.1f}° apart. |∇f(x)| = {length:.2f} (limit {limit:.2f}); the ellipse is {ratio:.2f} times as long as wide.",
        presets={
            "Linear model": {"depth": 0, "width": 512},
            "Wide and deep": {"depth": 6, "width": 512},
            "Narrow and deep": {"depth": 6, "width": 16},
        },
        drag=(Drag(0, "theta", "angle"),),
    )


# ---- layer by layer -----------------------------------------------------------------------------------------------
MOST = 8
ANGLES = [1, 2, 5, 10, 15, 20, 30, 45, 60, 75, 90]


def layer_shares(theta: float, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """What each of the L + 1 weight matrices adds to K(x, z) for unit inputs at `theta` degrees: cos theta in a linear
    network, cos theta^(l) prod_{k >= l} (1 - theta^(k) / pi) with ReLU, at infinite width."""
    t = torch.tensor(math.radians(theta), dtype=torch.float64)
    angles = torch.stack([embedding_angle(t, l) for l in range(depth + 1)])
    keep = torch.cat([1 - angles[:-1] / math.pi, torch.ones(1, dtype=torch.float64)])
    gates = keep.flip(0).cumprod(0).flip(0)
    return np.full(depth + 1, math.cos(t)), (angles.cos() * gates).numpy()


@cache
def _measured_shares(depth: int) -> dict:
    """Cosines of the angles between the gradients of each layer of one real network of width 512: {net: (angles, L + 1)}."""
    t = torch.tensor([0, *ANGLES], dtype=torch.float64).deg2rad()
    X = torch.stack([t.cos(), t.sin()], dim=1)
    out = {}
    for activation in NETS.values():
        model = _network(depth, WIDTH, 1, activation)
        K = torch.zeros(len(ANGLES), depth + 1, dtype=torch.float64)
        for l, layer in enumerate(model.layers):
            for other in model.layers:
                other.weight.requires_grad_(other is layer)
            full = empirical_ntk(model, X)
            length = full.diagonal().sqrt()
            K[:, l] = full[0, 1:] / (length[0] * length[1:])
        out[activation] = K.numpy()
    return out


def layer_sum(theta: float, depth: int) -> dict:
    """The share of each layer in K(x, z), at infinite width and measured as a cosine, without and with ReLU; the mean of the
    shares is cos phi."""
    row, shares = ANGLES.index(theta), layer_shares(theta, depth)

    def padded(a):
        return np.concatenate([a, np.full(MOST - depth, np.nan)])

    measured = _measured_shares(depth)
    means = [float(s.mean()) for s in shares]
    return {
        "layers": {"layer": range(1, MOST + 2)}
        | {n: padded(s) for n, s in zip(NETS.values(), shares, strict=True)}
        | {f"{n}_real": padded(measured[n][row]) for n in NETS.values()},
        "means": {"linear": [means[0]], "relu": [means[1]], "end": [depth + 1.5], "start": [0.5]},
        "phi_linear": math.degrees(math.acos(means[0])),
        "phi_relu": math.degrees(math.acos(means[1])),
    }


def layer_sum_figure() -> Explorable:
    """Every layer of the linear network says the same."""

    def view(net, title):
        x = alt.X("layer:Q", title="trained layer", scale=alt.Scale(domain=[0.5, MOST + 1.5], nice=False), axis=alt.Axis(values=list(range(1, MOST + 2)), format="d", grid=False))
        y = {"title": "part of K(x, z)", "scale": alt.Scale(domain=[-0.1, 1.05], nice=False), "axis": alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1])}
        data, means = alt.Chart(alt.NamedData("layers")), alt.Chart(alt.NamedData("means"))
        bars = data.mark_bar(width=22, color=concept(net), opacity=0.85).encode(x=x, y=alt.Y(f"{net}:Q", **y))
        real = data.mark_point(size=90, shape="diamond", filled=True, opacity=1, color=concept("measured"), stroke=concept("paper"), strokeWidth=1).encode(x=x, y=alt.Y(f"{net}_real:Q", **y))
        mean = means.mark_rule(strokeWidth=3, color=concept("gradient"), strokeDash=[7, 3]).encode(x=alt.X("start:Q"), x2="end:Q", y=alt.Y(f"{net}:Q", **y))
        return alt.layer(bars, mean, real).properties(height=280, title=title)

    return Explorable(
        layer_sum,
        [view("linear", "without the ReLU"), view("relu", "with it")],
        [Slider("theta", ANGLES, 20, "input angle", "θ", "°"), Slider("depth", list(range(MOST + 1)), 5, "depth", "L")],
        id="layer-sum",
        title="What each weight matrix adds to the kernel of two unit inputs",
        alt="Two bar charts over the trained layers. Without the ReLU all bars have one height. With it the bars of the first layers are lower and those of the last "
        "layers higher, and their mean, a dashed line, is lower.",
        caption="Bar $\\ell$: the scalar product of the two gradients with respect to $W^{(\\ell)}$, at infinite width, where it is the cosine of their angle; purple, "
        "that cosine in one real network of width 512. The dashed line is the mean of the bars, and that is $\\cos\\phi_L$. Without the ReLU every bar is $\\cos\\theta$, so that the mean is, too. With it the "
        "first layers lose and the last ones gain: which effect wins depends on the angle.",
        readout="Inputs {theta}° apart, L = {depth}: the mean is cos φ for φ = {phi_linear:.1f}° without the ReLU and for {phi_relu:.1f}° with it.",
        presets={"Near-duplicates": {"theta": 1, "depth": 8}, "Right angle": {"theta": 90, "depth": 8}, "One hidden layer": {"theta": 20, "depth": 1}},
    )


# ---- the spectrum -------------------------------------------------------------------------------------------------
POINTS = 6
SETS = {"pair": "with a close pair", "random": "random directions", "orthonormal": "orthonormal"}


@cache
def points(kind: str) -> Tensor:
    """Six unit inputs in R^8: orthonormal, or random, or random with the last one 2 degrees from the first."""
    X = torch.randn(POINTS, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    if kind == "orthonormal":
        return torch.eye(POINTS, 8, dtype=torch.float64)
    X = X / X.norm(dim=1, keepdim=True)
    if kind == "pair":
        away = X[-1] - (X[-1] @ X[0]) * X[0]
        X[-1] = math.cos(math.radians(2)) * X[0] + math.sin(math.radians(2)) * away / away.norm()
    return X


@cache
def _spectra(kind: str) -> dict:
    """Eigenvalues of both kernels at depths 0 to 12, and their ratio."""
    depths, X = range(13), points(kind)
    values = {n: [torch.linalg.eigvalsh(ntk_gram(X, depth=L, activation=n)).tolist() for L in depths] for n in NETS.values()}
    kappa = {n: [ntk_condition_number(X, depth=L, activation=n).kappa for L in depths] for n in NETS.values()}
    return {"values": values, "kappa": kappa}


def spectrum(data: str, depth: int) -> dict:
    """The eigenvalues of the tangent kernel of six points against depth, without and with ReLU."""
    s = _spectra(data)
    flat = {n: [v for row in s["values"][n] for v in row] for n in NETS.values()}
    ends = {n: (s["values"][n][depth][0], s["values"][n][depth][-1]) for n in NETS.values()}
    return {
        "lines": {"L": np.repeat(np.arange(13), POINTS), "which": list(range(POINTS)) * 13, **flat},
        "now": {"L": [depth]} | {f"{n}_{e}": [ends[n][i]] for n in NETS.values() for i, e in enumerate(("low", "high"))},
        "kappa_linear": s["kappa"]["linear"][depth],
        "kappa_relu": s["kappa"]["relu"][depth],
    }


def spectrum_figure() -> Explorable:
    """Parallel lines on a logarithmic axis: one ratio at every depth."""

    def view(net, title):
        x = alt.X("L:Q", title="depth L", scale=alt.Scale(domain=[0, 12], nice=False))

        def y(field):
            return alt.Y(field, title="eigenvalue", scale=alt.Scale(type="log", domain=[1e-4, 100]), axis=alt.Axis(values=[1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100], format="~g"))

        now = alt.Chart(alt.NamedData("now"))
        lines = alt.Chart(alt.NamedData("lines")).mark_line(strokeWidth=2.5, color=concept(net)).encode(x=x, y=y(f"{net}:Q"), detail="which:N")
        span = now.mark_rule(strokeWidth=4, color=concept("ink")).encode(x=x, y=y(f"{net}_low:Q"), y2=f"{net}_high:Q")
        ends = [now.mark_circle(size=110, opacity=1, color=concept("ink")).encode(x=x, y=y(f"{net}_{e}:Q")) for e in ("low", "high")]
        return alt.layer(lines, span, *ends).properties(height=300, title=title)

    return Explorable(
        spectrum,
        [view("linear", "without the ReLU"), view("relu", "with it")],
        [Choice("data", SETS, "pair", "six inputs"), Slider("depth", list(range(13)), 6, "depth", "L")],
        id="linear-spectrum",
        title="The condition number is a distance on this axis",
        alt="Two charts of the six eigenvalues of the tangent kernel against depth on a logarithmic axis. Without the ReLU the lines rise in parallel; with it "
        "the lowest line rises faster than the others.",
        caption="Each line is an eigenvalue of the $6\\times6$ kernel. The bar spans from $\\lambda_{\\min}$ to $\\lambda_{\\max}$: on this axis its "
        "length is $\\log\\kappa$. Without the ReLU all lines rise by the same factor $L+1$, and the bar keeps its length. With it the bar "
        "shrinks where two inputs nearly coincide; try *orthonormal*, where it grows.",
        readout="Depth {depth}: κ = {kappa_linear:.4g} without the ReLU, {kappa_relu:.4g} with it.",
        presets={"Linear model": {"depth": 0}, "Orthonormal": {"data": "orthonormal", "depth": 2}, "Deep": {"depth": 12}},
    )


EXPLORABLES = {
    "predict-gradient-length": gradient_length_figure,
    "gradient-plane": gradient_plane_figure,
    "layer-sum": layer_sum_figure,
    "linear-spectrum": spectrum_figure,
}
