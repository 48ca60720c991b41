"""What every figure of the book shares: one colour per concept, light and dark, and stills that follow the page's theme.

A mark names a concept, never a colour. In a moving figure that name is a Vega signal (`concept("relu")`), which the
front end sets from `PALETTE`; in a still it is a CSS variable, written once on the figure (`css_variables`).
"""

import html
import io
import re
from functools import cache

import altair as alt
import numpy as np

# Okabe-Ito hues, darkened (light page) or lightened (dark page) until a label in that colour reads at 4.5:1
# (tests/test_figures.py); first the five of Parts I and II, then the five ways to parametrise a unit of Part III, and last the
# metric norm of a step in a unit's angles.
PALETTE = {
    "light": {
        "ink": "#1f2328",
        "faint": "#d0d7de",
        "paper": "#ffffff",
        "linear": "#646b74",
        "relu": "#0b64a0",
        "leaky": "#066b4e",
        "gradient": "#b3400e",
        "measured": "#7d1fd1",
        "sp": "#7a5230",
        "wn": "#a8326b",
        "bn": "#856300",
        "ln": "#4553b8",
        "gmp": "#00737f",
        "metric": "#c0152f",
    },
    "dark": {
        "ink": "#e6e8eb",
        "faint": "#454b54",
        "paper": "#14181e",
        "linear": "#a8b0b9",
        "relu": "#6cb8f0",
        "leaky": "#4fd0a7",
        "gradient": "#f79a63",
        "measured": "#b76cf8",
        "sp": "#d0a781",
        "wn": "#f08bb9",
        "bn": "#e0b73c",
        "ln": "#a3b1ff",
        "gmp": "#45cbd9",
        "metric": "#ff8a8f",
    },
}
FONT = "system-ui, sans-serif"


def concept(name: str) -> alt.ExprRef:
    """The colour of a concept, for use anywhere Altair takes a colour: `mark_line(color=concept("relu"))`."""
    if name not in PALETTE["light"]:
        raise KeyError(f"no concept {name!r} in the palette: choose one of {', '.join(PALETTE['light'])}")
    return alt.ExprRef(f"c_{name}")


def series(names: dict, field: str = "what:N", show: bool = True, columns: int = 3) -> alt.Color:
    """A colour encoding, {what the reader sees: concept}, with its legend on top unless another view shows it."""
    scale = alt.Scale(domain=list(names), range=[concept(c) for c in names.values()])
    legend = alt.Legend(title=None, orient="top", labelLimit=0, columns=columns) if show else None
    return alt.Color(field, scale=scale, legend=legend)


def signals(mode: str) -> dict:
    """Vega signals of a theme: {"c_ink": "#1f2328", ...}."""
    return {f"c_{name}": colour for name, colour in PALETTE[mode].items()}


def css_variables() -> str:
    """The palette as CSS variables that follow the page's colour scheme, for a style attribute."""
    return "".join(f"--c-{k}:light-dark({v},{PALETTE['dark'][k]});" for k, v in PALETTE["light"].items())


def vega_config(mode: str, zoom: float = 1.0) -> dict:
    """Vega's look in a theme. `zoom` enlarges the text, for a projector."""
    ink, faint = PALETTE[mode]["ink"], PALETTE[mode]["faint"]
    guide = {
        "labelColor": ink,
        "titleColor": ink,
        "labelFontSize": 13 * zoom,
        "titleFontSize": 14 * zoom,
        "titleFontWeight": "normal",
        "labelFont": FONT,
        "titleFont": FONT,
    }
    return {
        "background": None,
        "aria": False,  # the figure element carries the description, see markup.py
        "font": FONT,
        "axis": {
            **guide,
            "domainColor": ink,
            "tickColor": faint,
            "gridColor": faint,
            "gridOpacity": 0.6,
            "labelPadding": 4,
        },
        "legend": guide,
        "title": {
            "color": ink,
            "fontSize": 14 * zoom,
            "fontWeight": "normal",
            "font": FONT,
            "anchor": "start",
            "offset": 8,
        },
        "style": {
            "guide-label": {"fill": ink},
            "guide-title": {"fill": ink},
            "cell": {"stroke": None},
            "text": {"fill": ink, "fontSize": 13 * zoom, "font": FONT},
        },
    }


def themed(svg: str, prefix: str) -> str:
    """An SVG drawn in the light palette, made to follow the theme: colours become variables, ids get the prefix."""
    for name, colour in PALETTE["light"].items():
        svg = re.sub(rf'(fill|stroke)(=")({colour}|{_rgb(colour)})"', rf'\1\2var(--c-{name})"', svg, flags=re.I)
        svg = re.sub(rf"(fill|stroke)(:\s*){colour}", rf"\1\2var(--c-{name})", svg, flags=re.I)
    seen: dict[str, str] = {}
    for old in re.findall(r'\bid="([^"]+)"', svg):  # the drawing library numbers its ids per process
        seen.setdefault(old, f"{prefix}-{len(seen)}")
    for old, new in seen.items():
        svg = re.sub(rf'(id="|url\(#|href="#){re.escape(old)}(?=["\)])', rf"\g<1>{new}", svg)
    return svg[svg.index("<svg") :].replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)


def _rgb(colour: str) -> str:
    return r"rgb\(" + r",\s*".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5)) + r"\)"


class Still:
    """A matplotlib figure that does not move: an inline SVG in the theme's colours, with alt text and caption."""

    def __init__(self, figure, *, id: str, alt: str, caption: str):
        self.id, self.alt, self.caption = id, alt, caption
        import matplotlib.pyplot as plt
        from matplotlib.text import Text

        for text in figure.findobj(Text):  # written outside the book's style: black, and so unseen on a dark page
            if text.get_color() == "black":
                text.set_color(PALETTE["light"]["ink"])
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)
        self._svg = themed(buffer.getvalue(), id)
        self._width = figure.get_figwidth() * 96  # CSS pixels: text in a figure is as large as drawn

    def __repr__(self):
        return f"Figure {self.id}: {self.alt}"

    def _repr_html_(self):
        from ntklib.book.text import inline

        return (
            f'<figure class="ntk-still-figure" id="{self.id}" style="{css_variables()}">'
            f'<div role="img" aria-label="{html.escape(self.alt)}" style="max-width:{self._width:.0f}px;margin:auto">{self._svg}</div>'
            f"<figcaption>{inline(self.caption)}</figcaption></figure>"
        )


@cache
def matplotlib_style() -> dict:
    """rcParams of the book's still figures."""
    p = PALETTE["light"]
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "ntklib",
        "font.size": 12,
        "font.family": "sans-serif",
        "mathtext.fontset": "stix",
        "text.color": p["ink"],
        "axes.labelcolor": p["ink"],
        "axes.edgecolor": p["ink"],
        "xtick.color": p["ink"],
        "ytick.color": p["ink"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.linewidth": 2.5,
        "figure.figsize": (6.4, 3.2),
    }


def plane(chart, reach: float = 1.25, **points: dict) -> alt.Chart:
    """Pixel positions in the plane with equal axes: `plane(chart, tip={"x": "datum.x", "y": "datum.y"})` adds the columns
    tip_x and tip_y, for encodings with scale=None; the circle of radius `reach` fits the view."""
    r = f"(min(width, height) / {2 * reach})"
    pixels = {f"{n}_x": f"width / 2 + {r} * ({p['x']})" for n, p in points.items()}
    return chart.transform_calculate(
        **pixels, **{f"{n}_y": f"height / 2 - {r} * ({p['y']})" for n, p in points.items()}
    )


LEAN = 30.0  # degrees by which the pole of a drawn sphere leans towards the reader; explorable.js has the same


def leaning(u: np.ndarray) -> np.ndarray:
    """Unit vectors of R^3, (..., 3), as a sphere is drawn: right, up, and towards the reader. The pole of the book's
    coordinates, u = (1, 0, 0), leans towards the reader, and theta_2 = 0 faces them; `plane` makes pixels of the first two."""
    u, lean = np.asarray(u), np.radians(LEAN)
    pole, front = u[..., 0], u[..., 1]
    return np.stack([u[..., 2], pole * np.cos(lean) - front * np.sin(lean), pole * np.sin(lean) + front * np.cos(lean)], -1)
