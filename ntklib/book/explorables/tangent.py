"""Chapter "The tangent kernel three ways": a real network's kernel, its limit, and how far training moves it."""

import math
from functools import cache

import altair as alt
import numpy as np
import torch

from ntklib import MLP, embedding_angle, empirical_ntk, gradient_angle, ntk_gram, predict_gd, train
from ntklib.book.explorable import Drag, Explorable, Predict, Slider
from ntklib.book.figures import concept, series

f64 = torch.float64


# ---- a prediction: how wide? ---------------------------------------------------------------------------------------
PAIRS = [0.5, 1, 2, 5, 10]  # degrees
UNITS_APART = [0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 9]  # expected number of units that tell the pair apart, m theta / pi


def separating_share(theta: float, widths: list[int], draws: int, generator: torch.Generator) -> torch.Tensor:
    """The share of networks with one hidden layer whose gradients at two unit inputs, `theta` radians apart, are farther
    apart than the inputs, for every width. The networks of `draws` grow: the first units of a wide one are a narrow one."""
    found, part = torch.zeros(len(widths), dtype=f64), max(1, 2_000_000 // max(widths))
    for start in range(0, draws, part):
        n = min(part, draws - start)
        u, v, a = torch.randn(3, n, max(widths), dtype=f64, generator=generator)
        v = math.cos(theta) * u + math.sin(theta) * v
        fire_u, fire_v, a = (u > 0).double(), (v > 0).double(), a * a
        p, q = fire_u * u, fire_v * v
        sums = (p * p + a * fire_u, q * q + a * fire_v, (fire_u * p - fire_v * q).square() + a * (fire_u - fire_v).square())
        xx, zz, _ = (s.cumsum(1)[:, [m - 1 for m in widths]] for s in sums)
        xz = (p * q + a * fire_u * fire_v * math.cos(theta)).cumsum(1)[:, [m - 1 for m in widths]]
        found += (xz < math.cos(theta) * (xx * zz).sqrt()).sum(0)
    return found / draws


@cache
def _separating(theta: float) -> tuple[list[int], np.ndarray]:
    t = math.radians(theta)
    widths = [max(1, round(c * math.pi / t)) for c in UNITS_APART]
    return widths, separating_share(t, widths, 1200, torch.Generator().manual_seed(0)).numpy()


def _reaches(theta: float, share: float = 0.95) -> float:
    """The width at which the curve crosses `share`, between its points on a logarithmic axis."""
    widths, found = _separating(theta)
    return math.exp(np.interp(share, np.maximum.accumulate(found), np.log(widths)))


def width_needed(theta: float) -> dict:
    """How many networks with one hidden layer pull two inputs `theta` degrees apart further apart, by width, and the width
    at which 95 % do."""
    widths, found = _separating(theta)
    t = math.radians(theta)
    return {
        "curve": {"m": widths, "share": found},
        "marks": {"m": [1 / t**2], "at": [0.08], "name": ["1/θ²"]},
        "needed": _reaches(theta),
        "now": {"m": [_reaches(theta)], "share": [0.95]},
        "paper": 1 / t**2,
    }


def width_needed_figure() -> Explorable:
    """Guess the width from which on a ReLU network separates a pair."""
    x = alt.X("m:Q", title="width m (hidden units)", scale=alt.Scale(type="log", domain=[3, 20000]), axis=alt.Axis(values=[10, 100, 1000, 10000], format=",d"))
    y = alt.Y("share:Q", title="networks that separate", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%"))
    curve = alt.Chart(alt.NamedData("curve"))
    lines = curve.mark_line(color=concept("measured"), strokeWidth=3).encode(x=x, y=y)
    dots = curve.mark_circle(color=concept("measured"), size=60, opacity=1).encode(x=x, y=y)
    level = alt.Chart(alt.Data(values=[{"level": 0.95}])).mark_rule(color=concept("faint"), strokeWidth=2).encode(y="level:Q")
    now = alt.Chart(alt.NamedData("now")).transform_filter("isValid(datum.share)").mark_rule(color=concept("measured"), strokeDash=[2, 3], strokeWidth=2).encode(x=x)
    marks = alt.Chart(alt.NamedData("marks"))
    rule = marks.mark_rule(color=concept("ink"), strokeWidth=2).encode(x=x)
    name = marks.mark_text(align="left", dx=6, fontSize=15, color=concept("ink")).encode(x=x, y="at:Q", text="name:N")
    return Explorable(
        width_needed,
        alt.layer(level, lines, dots, now, rule, name).properties(height=300),
        [Slider("theta", PAIRS, 1, "input angle", "θ", "°")],
        id="predict-width",
        title="Predict first: how wide is wide enough?",
        alt="The share of random networks whose gradients are farther apart than the inputs, against the width on a logarithmic axis, with a vertical line at one over the "
        "square of the angle.",
        caption="Purple: the share of 1200 random networks with one hidden layer for which $\\phi>\\theta$. Faint: 95 %. Black: the width $1/\\theta^2$ that "
        "the theorem's condition suggests. Type a guess or drag the dashed line, then reveal.",
        readout="Inputs {theta}° apart: 95 % of the networks separate from about {needed:.2g} units on; 1/θ² = {paper:.2g}.",
        presets={"Close pair": {"theta": 0.5}, "Far pair": {"theta": 10}},
        predict=Predict(
            "Two inputs are 1° apart. A theorem promises gradients that are farther apart than the inputs, $\\phi>\\theta$, if the width is of order "
            "$1/\\theta^2\\approx3283$. From which width on do 95 % of networks with one hidden layer do it?",
            "needed",
            ("share",),
            "x",
            "units",
            ".2g",
            (3, 20000),
        ),
    )


# ---- one real network and the limit ----------------------------------------------------------------------------------
TURN = np.linspace(0, 180, 61)
WIDTHS = [16, 32, 64, 128, 256]
DEPTHS = [1, 2, 3, 4]
NETS = 80


@cache
def _limit(depth: int) -> np.ndarray:
    t = torch.tensor(TURN, dtype=f64).deg2rad()
    return gradient_angle(t, depth).cos().numpy()


@cache
def _real(width: int, depth: int, draw: int) -> np.ndarray:
    """K(x, z) / (L + 1) of one network for x at 0 degrees and z at every angle of TURN."""
    t = torch.tensor(TURN, dtype=f64).deg2rad()
    model = MLP(2, width, depth, generator=torch.Generator().manual_seed(100 * draw + depth))
    Z = torch.stack([t.cos(), t.sin()], 1)
    return (empirical_ntk(model, Z[:1], Z)[0] / (depth + 1)).numpy()


def diagonals(width: int, depth: int, nets: int, generator: torch.Generator) -> torch.Tensor:
    """K(x, x) / (L + 1) at a unit input of `nets` networks for every L = 1 to `depth`, (depth, nets): forward norms times
    backward norms, layer by layer. The networks of all depths share their first layers."""
    found, part = torch.zeros(depth, nets, dtype=f64), max(1, 4_000_000 // width**2)
    for start in range(0, nets, part):
        n = min(part, nets - start)
        a = torch.zeros(n, 2, dtype=f64)
        a[:, 0] = 1
        norms, layers = [a.square().sum(1)], []
        for _ in range(depth):
            W = torch.randn(n, width, a.shape[1], dtype=f64, generator=generator)
            z = (W @ a[..., None])[..., 0]
            a = math.sqrt(2 / width) * z.clamp(min=0)
            layers.append((W, z > 0))
            norms.append(a.square().sum(1))
            delta = torch.randn(n, width, dtype=f64, generator=generator)
            total = norms[-1].clone()
            for l in range(len(layers) - 1, -1, -1):
                delta = math.sqrt(2 / width) * delta * layers[l][1]
                total += norms[l] * delta.square().sum(1)
                delta = (layers[l][0].mT @ delta[..., None])[..., 0]
            found[len(layers) - 1, start : start + n] = total / (len(layers) + 1)
    return found


@cache
def _bands() -> dict:
    """Depth -> the middle 95 % of K(x, x) / (L + 1) by width."""
    generator = torch.Generator().manual_seed(1)
    all_ = torch.stack([diagonals(m, max(DEPTHS), NETS, generator) for m in WIDTHS])
    low, middle, high = all_.quantile(torch.tensor([0.025, 0.5, 0.975], dtype=f64), dim=2)
    return {L: {"m": WIDTHS, "low": low[:, L - 1], "middle": middle[:, L - 1], "high": high[:, L - 1]} for L in DEPTHS}


def one_network(depth: int, width: int, draw: int) -> dict:
    """The tangent kernel of one real network against the angle, its limit, and how K(x, x) varies over networks."""
    real, limit, band = _real(width, depth, draw), _limit(depth), _bands()[depth]
    i = WIDTHS.index(width)
    return {
        "curve": {"theta": TURN, "real": real, "limit": limit},
        "band": {c: np.asarray(v) for c, v in band.items()},
        "now": {"m": [width], "real": [real[0]]},
        "diagonal": real[0],
        "off": np.abs(real - limit).max(),
        "low": float(band["low"][i]),
        "high": float(band["high"][i]),
    }


def one_network_figure() -> Explorable:
    """A real network's kernel is the closed form plus noise that falls like one over the square root of the width."""
    colour = series({"this network": "measured", "infinite width": "relu"}, columns=2)
    x = alt.X("theta:Q", title="angle between x and z", scale=alt.Scale(domain=[0, 180]), axis=alt.Axis(values=[0, 45, 90, 135, 180], labelExpr="datum.value + '°'"))
    y = alt.Y("k:Q", title="K(x, z) / (L + 1)", scale=alt.Scale(domain=[-0.6, 2.2], clamp=True))
    curves = (
        alt.Chart(alt.NamedData("curve"))
        .transform_calculate(**{"this network": "datum.real", "infinite width": "datum.limit"})
        .transform_fold(["infinite width", "this network"], ["what", "k"])
        .mark_line(strokeWidth=3)
        .encode(x=x, y=y, color=colour)
    )
    left = curves.properties(height=310, title="one kernel")
    m = alt.X("m:Q", title="width m", scale=alt.Scale(type="log", base=2, domain=[16, 256]), axis=alt.Axis(values=WIDTHS, format="d"))
    size = alt.Scale(domain=[0, 3], clamp=True)
    band = alt.Chart(alt.NamedData("band"))
    right = alt.layer(
        band.mark_area(opacity=0.3, color=concept("measured")).encode(x=m, y=alt.Y("low:Q", title="K(x, x) / (L + 1)", scale=size), y2="high:Q"),
        band.mark_line(color=concept("measured"), strokeWidth=2).encode(x=m, y="middle:Q"),
        alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(color=concept("relu"), strokeWidth=2.5, strokeDash=[6, 4]).encode(y="one:Q"),
        alt.Chart(alt.NamedData("now")).mark_circle(size=140, opacity=1, color=concept("measured")).encode(x=m, y="real:Q"),
    ).properties(height=310, title="many networks, z = x")
    return Explorable(
        one_network,
        [left, right],
        [
            Slider("depth", DEPTHS, 2, "depth", "L"),
            Slider("width", WIDTHS, 64, "width", "m", "units", concept="measured"),
            Slider("draw", [1, 2, 3, 4], 1, "random draw"),
        ],
        id="one-network",
        title="One real network's kernel, and its limit",
        alt="Left: the tangent kernel of one network against the angle between two inputs, beside the closed form. Right: a band that holds 95 percent of all "
        "networks' K(x, x), which narrows as the width grows.",
        caption="*Left*: purple, $K(x,z)/(L+1)$ of one random network, with $x$ fixed and $z$ turned away from it; blue, the closed form. *Right*: where 95 % of 80 networks "
        "have $K(x,x)/(L+1)$, by width; the dot is the network on the left, the dashed line the limit. Wider is nearer; deeper, at the same width, is farther.",
        readout="Depth {depth}, width {width}: K(x, x)/(L+1) = {diagonal:.2f} here, {low:.2f} to {high:.2f} for 95 % of networks, 1 in the limit. "
        "Largest distance from the closed form: {off:.2f}.",
        presets={"Wide and shallow": {"width": 256, "depth": 1}, "Narrow": {"width": 16, "depth": 1}, "Narrow and deep": {"width": 32, "depth": 4}},
        drag=(Drag(1, "width", "x"),),
        code="ntklib.empirical_ntk(ntklib.MLP(2, {width}, {depth}), X)",
    )


# ---- the kernel as a sum over layers -----------------------------------------------------------------------------------
DEEP = 16


@cache
def _terms(theta: float) -> tuple[np.ndarray, np.ndarray]:
    """cos theta^(l) for l = 0 to DEEP, and the shares 1 - theta^(l)/pi."""
    t = torch.tensor(math.radians(theta), dtype=f64)
    angle = torch.stack([embedding_angle(t, l) for l in range(DEEP + 1)]).numpy()
    return np.cos(angle), 1 - angle / math.pi


def layer_terms(theta: float, depth: int) -> dict:
    """What each layer's weights add to the kernel of two unit inputs at `theta` degrees, and the two points' condition numbers
    by depth: of the tangent kernel, and of its last term, which is the kernel of the embeddings (NNGP)."""
    cosine, share = _terms(theta)
    term = np.full(DEEP + 1, np.nan)
    term[: depth + 1] = [cosine[l] * share[l:depth].prod() for l in range(depth + 1)]
    means = [np.mean([cosine[l] * share[l:L].prod() for l in range(L + 1)]) for L in range(DEEP + 1)]

    def kappa(c):
        c = np.abs(np.asarray(c))
        with np.errstate(divide="ignore"):  # opposite inputs and no hidden layer
            return (1 + c) / (1 - c)

    return {
        "terms": {"layer": range(1, DEEP + 2), "term": term, "kind": ["last" if l == depth else "other" for l in range(DEEP + 1)]},
        "mean": {"mean": [means[depth]], "from": [0.5], "to": [depth + 1.5]},
        "curve": {"L": range(DEEP + 1), "ntk": kappa(means), "nngp": kappa(cosine)},
        "now": {"L": [depth], "ntk": [kappa(means[depth])], "nngp": [kappa(cosine[depth])]},
        "cosine": means[depth],
        "embedding": cosine[depth],
        "kappa": kappa(means[depth]),
        "kappa_nngp": kappa(cosine[depth]),
    }


def layer_terms_figure() -> Explorable:
    """Every layer adds its own term; the last one alone is the NNGP kernel, which collapses."""
    bars = (
        alt.Chart(alt.NamedData("terms"))
        .transform_filter("isValid(datum.term)")
        .mark_bar(width={"band": 0.8})
        .encode(
            x=alt.X("layer:O", title="weights of layer", scale=alt.Scale(domain=list(range(1, DEEP + 2))), axis=alt.Axis(values=[1, 5, 9, 13, 17], labelAngle=0)),
            y=alt.Y("term:Q", title="contribution to K(x, z)", scale=alt.Scale(domain=[-0.25, 1])),
            color=alt.Color("kind:N", scale=alt.Scale(domain=["last", "other"], range=[concept("relu"), concept("gradient")]), legend=None),
            opacity=alt.value(0.85),
        )
    )
    mean = alt.Chart(alt.NamedData("mean")).mark_rule(color=concept("ink"), strokeWidth=2, strokeDash=[6, 4]).encode(y="mean:Q")
    left = alt.layer(bars, mean).properties(height=300, title="one term a layer")
    names = {"tangent kernel": "gradient", "last term alone (NNGP)": "relu"}
    x = alt.X("L:Q", title="depth L", scale=alt.Scale(domain=[0, DEEP]), axis=alt.Axis(values=[0, 4, 8, 12, 16]))
    y = alt.Y("kappa:Q", title="κ of the two points", scale=alt.Scale(type="log", domain=[1, 20000], clamp=True), axis=alt.Axis(values=[1, 10, 100, 1000, 10000], format=",d"))

    def both(table):
        return (
            alt.Chart(alt.NamedData(table))
            .transform_calculate(**{"tangent kernel": "datum.ntk", "last term alone (NNGP)": "datum.nngp"})
            .transform_fold(list(names), ["what", "kappa"])
        )

    right = alt.layer(
        alt.Chart(alt.NamedData("now")).mark_rule(color=concept("faint"), strokeWidth=2).encode(x=x),
        both("curve").mark_line(strokeWidth=3).encode(x=x, y=y, color=series(names, columns=1)),
        both("now").mark_circle(size=110, opacity=1).encode(x=x, y=y, color=series(names, columns=1)),
    ).properties(height=300, title="what it does to a pair")
    return Explorable(
        layer_terms,
        [left, right],
        [
            Slider("theta", [1, 2, 5, 10, 20, 30, 45, 60, 75, 90, 120, 150, 180], 20, "input angle", "θ", "°"),
            Slider("depth", list(range(DEEP + 1)), 8, "depth", "L"),
        ],
        id="layer-terms",
        title="The kernel is a sum over layers, and its last term is another kernel",
        alt="Left: a bar for every layer's contribution to the kernel, the last one in another colour, and their mean. Right: condition numbers of two points against the "
        "depth: it falls for the tangent kernel and rises for the last term.",
        caption="*Left*: what the weights of each layer add to $K(x,z)$, for unit inputs; dashed, the mean, which is $\\cos\\phi_L$. The last bar (blue) is the cosine of the embeddings, "
        "$\\cos\\theta^{(L)}$: the NNGP kernel. *Right*: κ of the two points. The embeddings fall together, and the tangent kernel separates, because it remembers every layer.",
        readout="Depth {depth}, {theta}°: mean of the terms {cosine:.3f}, last term {embedding:.3f}; κ = {kappa:.3g} for the tangent kernel, {kappa_nngp:.3g} for the last term alone.",
        presets={"One hidden layer": {"depth": 1}, "Deep": {"depth": 16, "theta": 20}, "Right angle": {"theta": 90, "depth": 8}},
        drag=(Drag(1, "depth", "x"),),
    )


# ---- training ------------------------------------------------------------------------------------------------------------
TRAINED = [16, 32, 64, 128, 256, 512]
STEPS, LR = 150, 0.25  # lr in units of 1 / lambda_max of the limit
RUNS = [1, 2, 3, 4, 5]


@cache
def task() -> tuple[torch.Tensor, torch.Tensor]:
    """Eight unit inputs in R^4 with random labels of sign plus and minus."""
    generator = torch.Generator().manual_seed(3)
    X = torch.randn(8, 4, dtype=f64, generator=generator)
    y = torch.where(torch.randn(8, generator=generator) > 0, 1.0, -1.0).double()
    return X / X.norm(dim=1, keepdim=True), y


def run(width: int, draw: int, steps: int = STEPS, depth: int = 2) -> dict:
    """Train one network by gradient descent on `task`, predict it by its kernel at the start, and follow that kernel."""
    X, y = task()
    lr = LR / float(torch.linalg.eigvalsh(ntk_gram(X, depth=depth))[-1])
    model = MLP(4, width, depth, generator=torch.Generator().manual_seed(draw))
    K0 = empirical_ntk(model, X)
    f0 = model(X).detach()
    lr = min(lr, 1.5 / float(torch.linalg.eigvalsh(K0)[-1]))
    moved = []

    def watch(step, loss):
        moved.append(float((empirical_ntk(model, X) - K0).norm() / K0.norm()))

    real = train(model, X, y, lr=lr, steps=steps, records=20, callback=watch)
    predicted = predict_gd(K0, y, lr, real.step.tolist(), f0=f0)
    return {"step": real.step.numpy(), "real": real.loss.numpy(), "predicted": predicted.loss.numpy(), "moved": np.array(moved)}


@cache
def _run(width: int, draw: int) -> dict:
    return run(width, draw)


@cache
def kernel_movement() -> dict:
    """The kernel's movement over the whole of training, by width: every run, and their median."""
    ends = np.array([[_run(m, d)["moved"][-1] for d in RUNS] for m in TRAINED])
    return {"m": TRAINED, "middle": np.median(ends, 1), **{f"run{d}": ends[:, d - 1] for d in RUNS}}


def training(width: int, draw: int) -> dict:
    """One network's loss and what its first kernel predicts; and how far kernels move, by width."""
    r = _run(width, draw)
    return {
        "loss": {"step": r["step"], "real": r["real"], "predicted": r["predicted"]},
        "moved": kernel_movement(),
        "now": {"m": [width], "moved": [r["moved"][-1]]},
        "movement": r["moved"][-1],
        "real": r["real"][-1],
        "predicted": r["predicted"][-1],
    }


def training_figure() -> Explorable:
    """The kernel moves in training, the less the wider the network."""
    names = {"this network": "measured", "predicted by its first kernel": "gradient"}
    x = alt.X("step:Q", title="step of gradient descent", scale=alt.Scale(domain=[0, STEPS]))
    y = alt.Y("value:Q", title="square loss", scale=alt.Scale(type="log", domain=[0.001, 20], clamp=True), axis=alt.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g"))
    dash = alt.StrokeDash("what:N", scale=alt.Scale(domain=list(names), range=[[1, 0], [6, 4]]), legend=None)
    left = (
        alt.Chart(alt.NamedData("loss"))
        .transform_calculate(**{"this network": "datum.real", "predicted by its first kernel": "datum.predicted"})
        .transform_fold(list(names), ["what", "value"])
        .mark_line(strokeWidth=3)
        .encode(x=x, y=y, color=series(names, columns=1), strokeDash=dash)
        .properties(height=300, title="training")
    )
    m = alt.X("m:Q", title="width m", scale=alt.Scale(type="log", base=2, domain=[16, 512]), axis=alt.Axis(values=[16, 64, 256], format="d"))
    move = alt.Scale(type="log", domain=[0.01, 1], clamp=True)
    line = alt.Chart(alt.NamedData("moved"))
    every = line.transform_fold([f"run{d}" for d in RUNS], ["run", "moved"]).mark_circle(color=concept("measured"), size=45, opacity=0.6)
    right = alt.layer(
        every.encode(x=m, y="moved:Q"),
        line.mark_line(color=concept("measured"), strokeWidth=3).encode(
            x=m, y=alt.Y("middle:Q", title="how far the kernel moved", scale=move, axis=alt.Axis(values=[0.01, 0.03, 0.1, 0.3, 1], format=".0%"))
        ),
        alt.Chart(alt.NamedData("now")).mark_circle(size=140, opacity=1, color=concept("measured")).encode(x=m, y="moved:Q"),
    ).properties(height=300, title="from first to last step")
    return Explorable(
        training,
        [left, right],
        [
            Slider("width", TRAINED, 128, "width", "m", "units", concept="measured"),
            Slider("draw", RUNS, 1, "random draw"),
        ],
        id="lazy-training",
        title="Training moves the kernel, and moves it less the wider the network",
        alt="Left: the loss of one network in training, beside the prediction of its kernel at initialisation. Right: the relative change of the kernel against the width, which falls.",
        caption="Two hidden layers, eight inputs, square loss. *Left*: the loss of a real network (purple), and what gradient descent would do if the kernel stayed what it was (dashed). "
        "*Right*: $\\lVert K_{\\mathrm{last}}-K_{\\mathrm{first}}\\rVert/\\lVert K_{\\mathrm{first}}\\rVert$, of five networks, with their median and this one.",
        readout="Width {width}: the kernel moved by {movement:.0%}; the loss ended at {real:.2g}, and its first kernel predicted {predicted:.2g}.",
        presets={"Narrow": {"width": 16}, "Wide": {"width": 512}},
        drag=(Drag(1, "width", "x"),),
        code="ntklib.predict_gd(ntklib.empirical_ntk(model, X), y, lr, steps, f0=model(X))",
    )


EXPLORABLES = {
    "predict-width": width_needed_figure,
    "one-network": one_network_figure,
    "layer-terms": layer_terms_figure,
    "lazy-training": training_figure,
}
