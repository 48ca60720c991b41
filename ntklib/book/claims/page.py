"""How claims look: tables for a chapter, the ledger and the errata, as HTML and as plain text."""
import html
import os
from pathlib import Path

from ntklib.book import text

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
.claims table { width: 100%; min-width: 38rem; margin: 0; border-collapse: collapse; color: inherit; }
.claims caption { caption-side: top; padding: .3rem 0; text-align: left; font-weight: 600; color: inherit; }
.claims.claims table :is(th, td) { padding: .5rem .8rem .5rem 0; vertical-align: top; text-align: left; border: 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); white-space: normal; }
.claims.claims table tr { background: none; }
.claims.claims table { table-layout: auto; font-size: .9em; line-height: 1.5; }
.claims tbody th { font-weight: 400; }
.claims :not(thead) > tr > th { width: 54%; }
.claims-errata :not(thead) > tr > th { width: 22%; }
.claims code { padding: 0; color: inherit; background: none; border: 0; overflow-wrap: anywhere; }
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
            parts += [f'<div class="claims claims-{self.kind}" role="region" tabindex="0" '
                      f'aria-label="{html.escape(label)}">',
                      f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>",
                      f"<tbody>{rows}</tbody></table></div>"]
        return "".join(parts) + (_legend() if self.kind == "ledger" else "")


def link(page: str, anchor: str, words: str) -> str:
    """A link to a page of the book from the notebook that is running: a kernel runs in its notebook's folder.

    On the static page (NTKLIB_STATIC, set by the Sphinx extension) a page's name ends in .html, in JupyterLab
    in .ipynb. In a notebook outside the book there is nothing to link to, and the words stay alone.
    """
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / f"{page}.ipynb").exists()), None)
    if root is None:
        return html.escape(words)
    target = Path(os.path.relpath(root / page, here)).as_posix()
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
def _statement(c, more: str) -> str:
    given = f'<span class="claim-small">Given: {text.inline(c.hypotheses)}</span>' if c.hypotheses else ""
    return f'<th scope="row">{text.html(c.statement)}{given}{more}</th>'


def _source(c) -> str:
    s = c.source
    paper = f'<a href="{html.escape(s.url)}">{html.escape(s.paper)}</a>' if s.url else html.escape(s.paper)
    return paper + "".join(f", {text.inline(part)}" for part in (s.version, s.where) if part)


def _verdict(c) -> str:
    sign = f'<span aria-hidden="true">{VERDICTS[c.verdict][0]}</span>'
    return f'<span class="claim-verdict">{sign} {c.verdict}</span>'


def _evidence(c, run: bool) -> str:
    """What is allowed, and, on the chapter's page, what was measured now; a check of minutes is left to `make bench`."""
    found = "left to <code>make bench</code>, " if c.slow else f"{_power(c.measured)}, " if run else ""
    found = f"{text.inline(c.measures)}: {found}allowed {_power(c.tolerance)}"
    return f'<span class="claim-small">{found}</span>'


def _power(x: float) -> str:
    """Three digits, or one and a power of ten: 0.0209, 3·10⁻¹⁶."""
    if x == 0 or 1e-3 <= x < 1e4:
        return f"{x:.3g}"
    digit, exponent = f"{x:.0e}".split("e")
    return f"{'' if digit == '1' else digit + '·'}10<sup>−{-int(exponent)}</sup>"


def _row(c, small: str, run: bool) -> str:
    claim = _statement(c, f'<span class="claim-small">{small}</span>')
    return f"{claim}<td>{_source(c)}</td><td>{_verdict(c)}{_evidence(c, run)}</td>"


def _chapter_row(c) -> str:
    return _row(c, link("ledger", f"#claim-{c.id}", f"In the ledger: {c.id}"), run=True)


def _ledger_row(c) -> str:
    run = c.device if c.seed is None else f"{c.device}, seed {c.seed}"
    made = link(c.page, f"#claim-{c.id}", c.id)
    return _row(c, f"{made}: <code>ntklib.{html.escape(c.derivation)}</code>, checked on {run}, measured on its page", run=False)


def _errata_row(c) -> str:
    d = c.discrepancy
    cells = "".join(f"<td>{text.html(part)}</td>" for part in (d.prints, d.shows, d.remains))
    more = link("ledger", f"#claim-{c.id}", c.id)
    return f'<th scope="row">{_source(c)}<span class="claim-small">{more}: {_verdict(c)}</span></th>{cells}'


KINDS = {
    "claims": (("Claim", "Source", "Verdict"), _chapter_row),
    "ledger": (("Claim", "Source", "Verdict"), _ledger_row),
    "errata": (("Source", "The paper says", "The book finds", "What remains true"), _errata_row),
}
