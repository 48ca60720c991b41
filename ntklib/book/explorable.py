"""An explorable: one specification, three renderings.

live    in JupyterLab a moved control runs `compute` in the kernel
page    the same front end reads a table of every grid state, computed when the book was built; where the states are too
        many for a table, it computes as `compute` does, from functions that ntklib has tabulated (`Twin`)
still   an SVG of the default state: in print, without JavaScript, and before the front end has loaded

`compute(**state)` is a pure function that a test can import; `view` is one Altair chart or a list of them, whose data are
`alt.NamedData("table")`; `controls` are sliders and choices. The author of a chart writes only Python.
"""

import itertools
import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import altair as alt
import anywidget
import traitlets
import vl_convert

from ntklib.book import markup
from ntklib.book.controls import Choice, Drag, Predict, Slider
from ntklib.book.figures import PALETTE, concept, signals, themed, vega_config
from ntklib.book.tables import Tables, pack, plain, tables

__all__ = ["Choice", "Drag", "Explorable", "Predict", "Slider", "Twin", "vega_js"]

STATIC = Path(__file__).parent / "static"
VEGA_LITE = "v6.4"  # pinned with vl-convert-python in requirements.txt


@dataclass(frozen=True)
class Twin:
    """`compute` on a page, where its states are too many for a table (points that the reader drags).

    `module` in static/ exports a function of `compute`'s name, (state, given) -> the tables of `compute`, as `plain` writes
    them. `given` is what it needs of ntklib: tabulated functions, constants. A browser test compares the two on random
    states.
    """

    module: str
    given: dict


class Explorable(anywidget.AnyWidget):
    """See the module. Raises ValueError for a state off the grid, a preset of unknown controls, or ragged tables."""

    _esm, _css = STATIC / "explorable.js", STATIC / "explorable.css"
    html = traitlets.Unicode().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        compute,
        view,
        controls,
        *,
        id,
        title,
        alt,
        caption,
        readout,
        presets=None,
        predict: Predict | None = None,
        drag: tuple[Drag, ...] = (),
        code="",
        twin: Twin | None = None,
    ):
        self.compute, self.controls, self.id = compute, list(controls), id
        self.title, self.alt, self.code = title, alt, code
        self.caption, self.readout = (text.replace(" %", "\u00a0%") for text in (caption, readout))   # one line, both
        self.predict, self.drag, self.twin = predict, drag, twin
        self._by_name = {c.name: c for c in controls}
        self.default = {c.name: c.value for c in controls}
        self.presets = {name: self._complete(s) for name, s in (presets or {}).items()}
        self.data = self.run(self.default)
        self.charts = [_sized(c) for c in (view if isinstance(view, list) else [view])]
        self._refuse_loose_ends()
        if predict:
            self.charts[0] = _with_guess(self.charts[0], predict)
        super().__init__(state=dict(self.default))
        self.html = markup.figure(self, self._spec(), self._stills(), None)
        self.observe(self._pushed, "state")
        self.on_msg(self._asked)

    def _refuse_loose_ends(self):
        """What would fail only at the reader's is the author's error now."""
        if not re.fullmatch(r"[a-z][a-z0-9-]*", self.id):
            raise ValueError(f"id must be lower-case letters, digits and hyphens, got {self.id!r}")
        if len(self._by_name) < len(self.controls):
            raise ValueError(f"{self.id}: two controls share a name: {[c.name for c in self.controls]}")
        for d in self.drag:
            if not all(isinstance(self._by_name.get(c), Slider) for c in (*d.controls, *d.base)) or not 0 <= d.view < len(self.charts):
                raise ValueError(f"{self.id}: {d} needs a slider among {list(self._by_name)} and a view below {len(self.charts)}")
        names = set(re.findall(r"{(\w+)", self.readout + self.code))
        if loose := names - set(self._by_name) - set(self.data["scalar"]):
            raise ValueError(f"{self.id}: {loose} in its texts are no controls and no numbers of compute")
        p, columns = self.predict, {c for cols in self.data.values() for c in cols}
        if p and (p.answer not in self.data["scalar"] or not set(p.columns) <= columns or p.axis not in ("x", "y")):
            raise ValueError(f"{self.id}: {p} needs an answer among {list(self.data['scalar'])}, columns among {sorted(columns)}, axis x or y")

    # ---- numbers ----------------------------------------------------------------------------------------------
    def _complete(self, state: dict) -> dict:
        unknown = set(state) - set(self._by_name)
        if unknown:
            raise ValueError(
                f"{self.id} has no control {', '.join(sorted(unknown))}: its controls are {', '.join(self._by_name)}"
            )
        return {**self.default, **{k: self._by_name[k].parse(v) for k, v in state.items()}}

    def run(self, state: dict) -> Tables:
        """The tables of a state; controls that it leaves out are at their defaults."""
        return tables(self.compute(**self._complete(state)))

    def grid(self) -> list[dict]:
        """Every state of the page's table, the last control fastest."""
        return [
            dict(zip(self._by_name, v, strict=True)) for v in itertools.product(*(c.values for c in self.controls))
        ]

    def text(self, state: dict | None = None, hidden=False) -> str:
        """The readout of a state (the default one if none is given), with "?" for what a prediction still hides."""
        state = self._complete(state or {})
        data = self.data if state == self.default else self.run(state)
        scalars = {} if hidden else plain({"scalar": _float32(data["scalar"])})["scalar"]
        return markup.fill(self.readout, {**state, **{k: v[0] for k, v in scalars.items()}})

    # ---- with a kernel ----------------------------------------------------------------------------------------
    @traitlets.validate("state")
    def _valid(self, proposal):
        return self._complete(proposal["value"])

    def _pushed(self, change):
        self.send(
            {"state": change["new"], "tables": plain(self.run(change["new"]))}
        )  # set from Python, or asked for below

    def _asked(self, _widget, message, _buffers):
        if message == "vega":  # asked for once a page, not once a widget
            self.send({"vega": vega_js()})
            return
        try:  # every question is answered: the front end waits for it
            state = self._complete(message["ask"])
            if state == self.state:
                self._pushed({"new": state})
            self.state = state
        except Exception as e:
            self.send({"error": f"{type(e).__name__}: {e}"})

    # ---- renderings -------------------------------------------------------------------------------------------
    def _spec(self) -> dict:
        p = self.predict
        return {
            "id": self.id,
            "alt": self.alt,
            "readout": self.readout,
            "code": self.code,
            "controls": [c.spec() for c in self.controls],
            "default": self.default,
            "presets": self.presets,
            "drag": [d.spec() for d in self.drag],
            "predict": p
            and {
                "answer": p.answer,
                "columns": p.columns,
                "axis": p.axis,
                "unit": p.unit,
                "format": p.format,
                "range": [None if x in (float("inf"), -float("inf")) else x for x in p.range],
            },
            "initial": plain(self.data),
            "heights": [c["height"] for c in self.charts],
            "signals": {m: signals(m) for m in PALETTE},
            "config": {m: vega_config(m) for m in PALETTE},
            "zoomed": {m: vega_config(m, 1.5) for m in PALETTE},
            "views": [_vega(c) for c in self.charts],
        }

    def _stills(self) -> list[str]:
        width = 640 if len(self.charts) == 1 else 340
        hide = self.predict.columns if self.predict else ()
        shown = {
            n: {c: [None] * len(a) if c in hide else a for c, a in cols.items()}
            for n, cols in plain(self.data).items()
        }
        rows = {
            n: [dict(zip(cols, r, strict=True)) for r in zip(*cols.values(), strict=True)]
            for n, cols in shown.items()
        }
        svgs = []
        for i, chart in enumerate(self.charts):
            spec = {
                **chart,
                "width": width,
                "datasets": {**rows, "guess": []},
                "params": [
                    *(
                        p | ({"value": self.default[p["name"]]} if p["name"] in self.default else {})
                        for p in chart["params"]
                    )
                ],
            }
            svg = vl_convert.vegalite_to_svg(
                json.loads(json.dumps(spec)), vl_version=VEGA_LITE, config=vega_config("light")
            )
            svgs.append(themed(svg, f"{self.id}-still{i}"))
        return svgs

    def page(self) -> str:
        """The figure element of the static page, with the packed table of every grid state, or with what its twin needs."""
        if self.twin:
            twin = vars(self.twin) | {"function": self.compute.__name__}
            return markup.figure(self, self._spec() | {"initial": None, "twin": twin}, self._stills(), None)
        packed = pack([tables(self.compute(**s)) for s in self.grid()])
        spec = self._spec() | {"initial": None, "constant": packed.constant, "fields": packed.fields}
        return markup.figure(self, spec, self._stills(), packed.blob)

    def __repr__(self):
        return f"Explorable({self.id})"

    def _repr_mimebundle_(self, **kw):
        bundle = super()._repr_mimebundle_(**kw)
        data, *metadata = bundle if isinstance(bundle, tuple) else (bundle,)
        html = self.page() if os.environ.get("NTKLIB_STATIC") else self.html  # set by the Sphinx extension
        data = {**(data or {}), "text/plain": repr(self), "text/html": html}
        return (data, *metadata) if metadata else data


def _float32(columns: dict) -> dict:
    """Readouts come from float32 in every rendering, so that all of them show the same digits."""
    return {c: a.astype("f4").astype("f8") if a.dtype.kind == "f" else a for c, a in columns.items()}


def _sized(chart) -> dict:
    """A chart as Vega-Lite that fills its box, with the palette's signals."""
    d = chart.to_dict()
    d.pop("config", None)
    return {
        **d,
        "width": "container",
        "height": d.get("height", 280),
        "autosize": {"type": "fit", "contains": "padding"},
        "params": [*d.get("params", []), *({"name": n, "value": v} for n, v in signals("light").items())],
    }


def _with_guess(chart: dict, p: Predict) -> dict:
    """The chart with the reader's guess drawn across it, as a dashed rule that a drag moves."""
    # the title of the axis that it shares: Vega-Lite would let no title, or its own, win over the chart's
    encode = {p.axis: (alt.X if p.axis == "x" else alt.Y)("guess:Q", title=next(_titles(chart, p.axis), None))}
    rule = (
        alt.Chart(alt.NamedData("guess"))
        .mark_rule(color=concept("ink"), strokeDash=[6, 4], strokeWidth=2)
        .encode(**encode)
    )
    whole = {"$schema", "params", "width", "height", "autosize"}
    inner = {k: v for k, v in chart.items() if k not in whole}
    return {k: v for k, v in chart.items() if k in whole} | {
        "layer": [inner, {k: v for k, v in rule.to_dict().items() if k not in whole | {"config"}}]
    }


def _titles(chart: dict, axis: str):
    """The titles that a chart and its layers give to an axis."""
    for part in (chart, *chart.get("layer", [])):
        title = part.get("encoding", {}).get(axis, {}).get("title")
        if title:
            yield title
        if part is not chart:
            yield from _titles(part, axis)


def _vega(chart: dict) -> dict:
    """Compiled here, so that an error in a chart is the author's and not the reader's; colours are left to the theme."""
    vega = vl_convert.vegalite_to_vega(json.loads(json.dumps(chart)), vl_version=VEGA_LITE)
    return {k: v for k, v in vega.items() if k != "background"}


@cache
def vega_js() -> str:
    """vega-embed as a classic script, which also loads from a file. Made from the wheel: nothing to vendor.

    (In vl-convert 1.9.0 the bundle's `vega` and `vegaLite` are null, its `vegaEmbed` is right: use that alone.)
    """
    return "(()=>{" + vl_convert.javascript_bundle("globalThis.NTKVega=vegaEmbed;", vl_version=VEGA_LITE) + "})();"
