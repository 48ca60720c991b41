"""The HTML of an explorable, complete before any script runs: controls, stills, readout, caption.

The front end (static/explorable.js) only brings it to life; nothing moves when it does.
"""

import html
import json
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

from ntklib.book.figures import css_variables
from ntklib.book.text import inline

esc = html.escape
_WIDE = Context(prec=800)  # digits enough for any float to be rounded exactly
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(v, spec: str = "") -> str:
    """A value as text, the same in Python and in the front end: `format` with a true minus and 10ⁿ; nothing is "–"."""
    if v is None or v != v:
        return "–"
    if not isinstance(v, int | float):
        return str(v)
    if math.isinf(v):
        return "∞" if v > 0 else "−∞"
    s = _format(float(v), spec or ".6g")
    if "e" in s:
        mantissa, exponent = s.split("e")
        s = f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    return s.replace("-", "−")


def _format(v: float, spec: str) -> str:
    """`format`, but an exact tie is rounded away from zero, as JavaScript does it: 6.25 to one place is 6.3."""
    if not re.fullmatch(r"\.\d+[fge%]", spec):
        raise ValueError(f"a number format is .3f, .3g, .3e or .3%, which the front end knows too; got {spec!r}")
    if spec[-1] == "%":
        return _format(100 * v, spec[:-1] + "f") + "%"
    digits, exact = int(spec[1:-1]), Decimal(v)
    last = -digits if spec[-1] == "f" else exact.adjusted() + (spec[-1] == "g") - max(digits, spec[-1] == "g")
    return (
        format(float(exact.quantize(Decimal(1).scaleb(last), ROUND_HALF_UP, _WIDE)), spec)
        if math.isfinite(v) and v
        else format(v, spec)
    )


def fill(template: str, values: dict) -> str:
    """`template` with each {name} or {name:.3g} replaced by `number`. A name without a value stays visible as "?", with no line break after it."""
    out, rest = "", template
    while "{" in rest:
        head, _, rest = rest.partition("{")
        key, _, rest = rest.partition("}")
        name, _, spec = key.partition(":")
        out += head + (number(values[name], spec) if name in values else "?\u2060")
    return out + rest


def with_unit(text: str, unit: str) -> str:
    """ "60°", "3 layers"."""
    return f"{text}{unit}" if unit in ("", "°", "%") else f"{text}\u2009{unit}"


def _control(id: str, c) -> str:
    cid, s = f"{id}-{c.name}", c.spec()
    symbol = f' <span class="ex-symbol">{esc(c.symbol)}</span>' if c.symbol else ""
    label = f'<label for="{cid}">{esc(c.label)}{symbol}</label>'
    if s["kind"] == "choice":
        options = "".join(
            f'<option value="{esc(str(v))}"{" selected" if v == c.value else ""}>{esc(t)}</option>'
            for v, t in c.options.items()
        )
        field, shown = f'<select id="{cid}" data-control="{c.name}" disabled>{options}</select>', ""
    else:
        v, text = c.values, with_unit(number(c.value, c.format), c.unit)
        lo, hi, step, at = (
            (v[0], v[-1], (v[-1] - v[0]) / (len(v) - 1), c.value)
            if s["even"]
            else (0, len(v) - 1, 1, v.index(c.value))
        )
        field = (
            f'<input type="range" id="{cid}" data-control="{c.name}" min="{lo}" max="{hi}" step="{step:.12g}" value="{at}" '
            f'aria-valuetext="{esc(text)}" autocomplete="off" disabled>'
        )
        shown = f'<output for="{cid}">{esc(text)}</output>'
    chars = (
        1 + max((len(with_unit(number(v, c.format), c.unit)) for v in c.values), default=0)
        if s["kind"] == "slider"
        else 0
    )
    return (
        f'<div class="ex-control" style="--accent:var(--c-{c.concept});--chars:{chars}">{label}{field}{shown}</div>'
    )


def _button(text: str, attribute: str) -> str:
    return f'<button type="button" {attribute} disabled>{esc(text)}</button>'


def _bounds(range: tuple) -> str:
    return "".join(f' {name}="{v:g}"' for name, v in zip(("min", "max"), range, strict=True) if math.isfinite(v))


def _predict(id: str, p) -> str:
    return (
        f'<div class="ex-predict"><label for="{id}-guess">{inline(p.question)}</label>'
        f'<span class="ex-guess-box"><input type="number" step="any" id="{id}-guess" data-guess{_bounds(p.range)} disabled autocomplete="off"><span>{esc(p.unit)}</span></span>'
        f'{_button("Show without a guess", "data-reveal")}{_button("Guess again", "data-again hidden")}<p class="ex-verdict" data-verdict aria-live="polite"></p></div>'
    )


def figure(ex, spec: dict, stills: list[str], table: str | None) -> str:
    """The figure element of an explorable. `stills`: one themed SVG a view; `table`: packed numbers, or None with a kernel."""
    js = json.dumps(spec, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    state = esc(json.dumps(ex.default, separators=(",", ":")))
    plots = "".join(
        f'<div class="ex-plot" style="height:{h}px"><div class="ex-still">{svg}</div></div>'
        for svg, h in zip(stills, spec["heights"], strict=True)
    )
    parts = [
        f'<figure class="explorable" id="{ex.id}" data-ntk="explorable.js" data-state="{state}" style="{css_variables()}">',
        f'<script type="application/json">{js}</script>',
        f'<script type="text/plain" data-table>{table}</script>' if table is not None else "",
        f'<p class="ex-title" id="{ex.id}-title">{inline(ex.title)}</p>',
        _predict(ex.id, ex.predict) if ex.predict else "",
        f'<div class="ex-controls" role="group" aria-labelledby="{ex.id}-title">{"".join(_control(ex.id, c) for c in ex.controls)}</div>',
        '<div class="ex-bar">',
        *(_button(name, f'data-preset="{esc(name)}"') for name in ex.presets),
        _button("Reset", "data-reset"),
        _button("Copy link", "data-link"),
        _button("Full screen", "data-fullscreen"),
        "</div>",
        f'<div class="ex-plots" role="img" aria-label="{esc(ex.alt + " " + ex.text(hidden=bool(ex.predict)))}">{plots}</div>',
        f'<p class="ex-readout" data-readout aria-live="polite">{esc(ex.text(hidden=bool(ex.predict)))}</p>',
        f'<p class="ex-code"><span>In Python:</span> <code data-code>{esc(fill(ex.code, ex.default))}</code></p>'
        if ex.code
        else "",
        f"<figcaption>{inline(ex.caption)}<noscript> This is a still: the controls need JavaScript.</noscript></figcaption></figure>",
    ]
    return "".join(parts)
