"""How claims look: tables for a chapter, the ledger and the errata, as HTML and as plain text."""
import html
import os
from pathlib import Path

from ntklib.book import text

ROOT = Path(__file__).parents[3] / "chapters"       # the book's pages; absent where only ntklib is installed

VERDICTS = {            # verdict: (sign, what it means)
    "proved": ("✓", "derived on its page, and the derivation agrees with an independent computation"),
    "verified": ("≈", "computed by independent means within the tolerance, not derived here"),
    "holds under": ("◐", "true under hypotheses that the source does not state, or states otherwise"),
    "corrected": ("✎", "the printed statement needs a change, which is given"),
    "refuted": ("✗", "there is a counterexample, which is given"),
    "open": ("?", "neither derived nor contradicted"),
}

STYLE = """<style>
.claims { overflow-x: auto; margin: 1rem 0; }
.claims:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
.claims table { width: 100%; min-width: 44rem; margin: 0; border-collapse: collapse; color: inherit; }
.claims caption { caption-side: top; padding: .3rem 0; text-align: left; font-weight: 600; color: inherit; }
.claims :is(th, td) { padding: .5rem .8rem .5rem 0; vertical-align: top; text-align: left; border: 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); background: none; }
.claims :is(th, td) { font-size: .9rem; line-height: 1.45; white-space: normal; }
.claims tbody th { min-width: 15rem; font-weight: 400; }
.claims p { margin: 0 0 .3rem; }
.claims tr:target > * { box-shadow: inset 0 2px currentColor, inset 0 -2px currentColor; }
.claims .claim-verdict { white-space: nowrap; font-weight: 600; }
.claims .claim-small { display: block; font-size: .93em; }
</style>"""


class Table:
    """A table of claims, which shows itself in a notebook and on a page."""

    def __init__(self, kind: str, claims: list):
        self.kind, self.claims = kind, claims

    def __repr__(self):
        lines = [f"{c.id:<24} {VERDICTS[c.verdict][0]} {c.verdict:<11}  {text.plain(c.statement)}"
                 for c in self.claims]
        return "\n".join(lines) or "No claims."

    def _repr_html_(self):
        columns, row = KINDS[self.kind]
        head = "".join(f'<th scope="col">{name}</th>' for name in columns)
        parts = [STYLE]
        for chapter in dict.fromkeys(c.chapter for c in self.claims):
            caption, label = _caption(self.kind, chapter)
            here = [c for c in self.claims if c.chapter == chapter]
            rows = "".join(f'<tr id="claim-{c.id}">{row(c)}</tr>' for c in here)
            parts += [f'<div class="claims" role="region" tabindex="0" aria-label="{html.escape(label)}">',
                      f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>",
                      f"<tbody>{rows}</tbody></table></div>"]
        return "".join(parts) + (_legend() if self.kind == "ledger" else "")


def link(page: str, anchor: str, words: str) -> str:
    """A link to a page of the book from the notebook that is running: a kernel runs in its notebook's folder.

    On the static page (NTKLIB_STATIC, set by the Sphinx extension) its name ends in .html, in JupyterLab in
    .ipynb. Without the book's folder there is nothing to link to, and the words stay alone.
    """
    if not (ROOT / f"{page}.ipynb").exists():
        return html.escape(words)
    target = Path(os.path.relpath(ROOT / page, Path.cwd())).as_posix()
    ending = ".html" if os.environ.get("NTKLIB_STATIC") else ".ipynb"
    return f'<a href="{html.escape(target + ending + anchor)}">{html.escape(words)}</a>'


def _caption(kind: str, chapter) -> tuple[str, str]:
    """The caption, with a link to the chapter where that is another page, and the name of the scroll box."""
    if kind == "claims":
        return "Claims of this chapter", f"Claims: {chapter.title}"
    what = {"ledger": "Claims", "errata": "Errata"}[kind]
    return f"{what}: {link(chapter.page, '', chapter.title)}", f"{what}: {chapter.title}"


def _legend() -> str:
    terms = "".join(f"<dt>{sign} {name}</dt><dd>{means}.</dd>" for name, (sign, means) in VERDICTS.items())
    return f"<dl>{terms}</dl>"


# ---- cells -------------------------------------------------------------------------------------------
def _statement(c) -> str:
    given = f'<span class="claim-small">Given: {text.inline(c.hypotheses)}</span>' if c.hypotheses else ""
    return f'<th scope="row">{text.html(c.statement)}{given}</th>'


def _source(c, tag: str = "td") -> str:
    s = c.source
    paper = f'<a href="{html.escape(s.url)}">{html.escape(s.paper)}</a>' if s.url else html.escape(s.paper)
    rest = "".join(f", {text.inline(part)}" for part in (s.version, s.where) if part)
    return f"<{tag}>{paper}{rest}</{tag.split()[0]}>"


def _verdict(c) -> str:
    sign = f'<span aria-hidden="true">{VERDICTS[c.verdict][0]}</span>'
    return f'<td class="claim-verdict">{sign} {c.verdict}</td>'


def _evidence(c) -> str:
    """What was measured now, and what is allowed; a check that takes minutes is left to `make bench`."""
    found = "measured by <code>make bench</code>" if c.slow else _power(c.measured)
    return (f'<td>{text.inline(c.measures)}: {found} '
            f'<span class="claim-small">allowed: {_power(c.tolerance)}</span></td>')


def _power(x: float) -> str:
    """One digit, "3·10⁻¹⁶" for the small."""
    if x == 0 or 1e-3 <= x < 1e4:
        return f"{x:.1g}"
    digit, exponent = f"{x:.0e}".split("e")
    return f"{digit}·10<sup>{int(exponent)}</sup>".replace("-", "−")


def _chapter_row(c) -> str:
    more = link("ledger", f"#claim-{c.id}", c.id)
    return f"{_statement(c)}{_source(c)}{_verdict(c)}{_evidence(c)}<td>{more}</td>"


def _ledger_row(c) -> str:
    run = c.device if c.seed is None else f"{c.device}, seed {c.seed}"
    how = f'<code>{html.escape(c.derivation)}</code><span class="claim-small">checked on {run}</span>'
    made = link(c.page, f"#claim-{c.id}", c.id)
    return f"{_statement(c)}{_source(c)}{_verdict(c)}{_evidence(c)}<td>{how}</td><td>{made}</td>"


def _errata_row(c) -> str:
    d = c.discrepancy
    cells = "".join(f"<td>{text.html(part)}</td>" for part in (d.prints, d.shows, d.remains))
    more = link("ledger", f"#claim-{c.id}", c.id)
    source = _source(c, 'th scope="row"')
    return f"{source}{cells}{_verdict(c)}<td>{more}</td>"


KINDS = {
    "claims": (("Claim", "Source", "Verdict", "Checked", "In the ledger"), _chapter_row),
    "ledger": (("Claim", "Source", "Verdict", "Checked", "Derived in ntklib", "Made in"), _ledger_row),
    "errata": (("Source", "The paper says", "The book finds", "What remains true", "Verdict", "Claim"),
               _errata_row),
}
