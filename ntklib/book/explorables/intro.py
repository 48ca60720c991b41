"""The opening figure: one pair of inputs as the embedding, the gradient and a linear network see it, layer by layer."""

import math
from functools import cache

import altair as alt
import torch

from ntklib import embedding_angle, gradient_angle
from ntklib.book.explorable import Explorable, Slider
from ntklib.book.figures import concept, series

DEPTH = 50
THETA = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60, 75, 90, 120, 150]


@cache
def _paths(thetas: tuple) -> list:
    """For each input angle in degrees, the embedding's and the gradient's angle at depths 0 to DEPTH: (n, 2, DEPTH + 1)."""
    t = torch.tensor(thetas, dtype=torch.float64).deg2rad()
    both = [torch.stack([f(t, k) for k in range(DEPTH + 1)], dim=1) for f in (embedding_angle, gradient_angle)]
    return torch.stack(both, dim=1).rad2deg().tolist()


def two_fates(theta: float, depth: int) -> dict:
    """Angles in degrees between the embeddings and between the gradients of two inputs at `theta` degrees, for each depth
    up to 50, and the condition number of the two-point tangent kernel at `depth`, with ReLU and without."""
    thetas = tuple(THETA) if theta in THETA else (theta,)  # the grid in one pass
    embedding, gradient = _paths(thetas)[thetas.index(theta)]

    def kappa(degrees):  # eigenvalues in the ratio 1 + cos : 1 - cos
        x = math.tan(math.radians(degrees) / 2) ** 2
        return max(x, 1 / x)

    return {
        "path": {
            "L": range(DEPTH + 1),
            "gradient": gradient,
            "linear": [theta] * (DEPTH + 1),
            "embedding": embedding,
        },
        "here": {
            "L": [depth] * 3,
            "angle": [gradient[depth], theta, embedding[depth]],
            "what": ["gradients", "linear network", "embeddings"],
        },
        "embedding": embedding[depth],
        "gradient": gradient[depth],
        "kappa_linear": kappa(theta),
        "kappa_relu": kappa(gradient[depth]),
    }


def two_fates_figure() -> Explorable:
    """Embeddings collapse with depth while gradients separate."""
    colour = series({"gradients": "gradient", "linear network": "linear", "embeddings": "relu"}, columns=1)
    y = alt.Y(
        "angle:Q",
        title="angle (degrees)",
        scale=alt.Scale(type="sqrt", domain=[0, 180]),
        axis=alt.Axis(values=[0, 1, 5, 15, 30, 60, 90, 120, 180]),
    )
    x = alt.X("L:Q", title="depth L", scale=alt.Scale(domain=[0, DEPTH]))
    lines = (
        alt.Chart(alt.NamedData("path"))
        .transform_calculate(
            gradients="datum.gradient", embeddings="datum.embedding", **{"linear network": "datum.linear"}
        )
        .transform_fold(["gradients", "linear network", "embeddings"], ["what", "angle"])
        .mark_line(strokeWidth=3)
        .encode(x=x, y=y, color=colour)
    )
    here = alt.Chart(alt.NamedData("here"))
    points = here.mark_circle(size=110, opacity=1).encode(x=x, y=y, color=colour)
    rule = here.mark_rule(color=concept("ink"), strokeDash=[2, 3]).encode(x=x)
    return Explorable(
        two_fates,
        alt.layer(rule, lines, points).properties(height=320),
        [
            Slider("theta", THETA, 5, "input angle", "θ", "°", concept="linear"),
            Slider("depth", list(range(DEPTH + 1)), 10, "depth", "L"),
        ],
        id="two-fates",
        title="Two similar inputs in a wide ReLU network, as depth grows",
        alt="Line chart of angle against depth. The angle between embeddings falls towards 0 with depth, the angle between "
        "gradients rises steeply towards 75.5 degrees, and for a linear network both stay at the input angle.",
        caption="Two inputs at angle $\\theta$ enter an infinitely wide network with $L$ hidden layers. Their "
        "**embeddings** (blue) become one direction; their **gradients** (orange), on which training acts, "
        "come apart. Without the ReLU (grey) nothing changes. Try a right angle: its gradients come *together* "
        "in the first layers. The story has hypotheses, and this book is about them.",
        readout="At depth {depth}, inputs {theta}° apart have embeddings {embedding:.3g}° and gradients {gradient:.3g}° apart. "
        "Condition number of the pair's tangent kernel: {kappa_relu:.3g} with ReLU, {kappa_linear:.3g} without.",
        presets={
            "Near-duplicates": {"theta": 0.1, "depth": 10},
            "Right angle": {"theta": 90, "depth": 1},
            "Very deep": {"theta": 5, "depth": 50},
        },
        code="ntklib.gradient_angle(math.radians({theta}), depth={depth})",
    )


EXPLORABLES = {"two-fates": two_fates_figure}
