"""Sphinx extension of the book: pages that need no other host, and caches that know about ntklib.

Read it from `setup` at the bottom: each function there is one promise, listed in the order in which Sphinx calls it.
"""
import gzip
import hashlib
import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

from sphinx.errors import ExtensionError

HERE = Path(__file__).parent
STATIC = HERE / "static"
CLASSIC = ("mount.js", "book.js")           # plain scripts; every other .js in static/ is an ES module
NOT_IMPORTED = ("sphinx_ext.py", "normalize.py", "serve.py")   # of ntklib/book: no notebook's output depends on them
INLINE_LIMIT, TABLE_LIMIT = 20_000, 300_000                # bytes: of base64 kept in the page; of a table after gzip
WIDGET = re.compile(r'data-ntk="([\w.]+)\.js"')           # an element that mount.js gives to that module
TABLE = re.compile(r'<script type="text/plain" data-table>([A-Za-z0-9+/=\s]*)</script>')


# ---- caches --------------------------------------------------------------------------------------
def digest(files) -> str:
    """One hash of many files, names included."""
    h = hashlib.sha256()
    for f in sorted(files):
        h.update(f.name.encode() + b"\0" + f.read_bytes())
    return h.hexdigest()[:16]


def configure(app, config):
    """Tie the caches to the library: jupyter-cache and Sphinx both look only at the notebook itself.

    The execution cache lives in a folder named after the code, and Sphinx reads a page again when a configuration value
    changes: so an edit of ntklib, a pin or a recorded run executes the notebooks anew, and nothing else does.
    """
    root = Path(app.srcdir)
    code = [f for f in HERE.parent.rglob("*.py") if f.name not in NOT_IMPORTED]
    config.ntklib_code = digest([*code, *root.glob("requirements.txt"), *root.glob("chapters/records/**/*.json")])
    config.ntklib_look = digest(f for d in (STATIC, HERE / "templates") for f in d.rglob("*") if f.is_file())
    caches = Path(app.outdir).parent / ".jupyter_cache"
    for old in caches.glob("*"):
        if old.name != config.ntklib_code:
            shutil.rmtree(old, ignore_errors=True)
    config.nb_execution_cache_path = str(caches / config.ntklib_code)
    config.templates_path.insert(0, str(HERE / "templates"))
    config.html_theme_options["article_header_end"] = ["run-here.html", "article-header-buttons.html"]
    config.html_context["default_mode"] = "light"           # without JavaScript; with it, layout.html asks the system
    config.mathjax_path = "ntklib/mathjax/tex-mml-chtml.js"
    # the menu would make every formula a tab stop and offer speech files from another host; hidden MathML stays
    config.mathjax3_config = {"options": {"enableMenu": False, "enableAssistiveMml": True}}


# ---- the theme -----------------------------------------------------------------------------------
MENDS = [       # (pattern, replacement) over a whole page of sphinx-book-theme 1.2.0
    (r'<i class="(?=[^"]*\bfa-)', '<i aria-hidden="true" class="'),                     # an icon is not a letter to read out
    (r'(<button class="btn search-button-field[^>]*) title="Search" aria-label="Search"', r"\1"),     # its text says so already
    (r'<div role="list" (?=class="citation-list")', '<div '),         # roles that ARIA withdrew
    (r'(<div class="citation"[^>]*) role="doc-biblioentry"', r"\1"),
    (r'<div id="pst-primary-sidebar" ', '<div id="pst-primary-sidebar" role="region" aria-label="Book" '),
]


def mend_theme(app):
    """Repair what the theme gets wrong for readers with a screen reader, in the HTML itself. Sphinx has no event for it."""
    if app.builder.format != "html":
        return
    render = app.builder.templates.render

    def mended(template, context):
        text = render(template, context)
        for pattern, replacement in MENDS:
            text = re.sub(pattern, replacement, text)
        return text
    app.builder.templates.render = mended


def prune(app, error):
    """Take away what no page of ours loads: the icon script, source maps, fonts in a second format. 6 MB of 10."""
    if error is None and app.builder.format == "html":
        static = Path(app.outdir, "_static")
        for pattern in ("scripts/fontawesome.*", "*/*.map", "vendor/fontawesome/webfonts/*.ttf", "*webpack-macros.html"):
            for f in static.glob(pattern):
                f.unlink()


# ---- static files --------------------------------------------------------------------------------
def copy_static(app):
    """Put static/ and MathJax where pages find them, before any page is written: Sphinx stamps ?v=checksum on links."""
    if app.builder.format != "html":
        return
    out = folder(app)
    for f in STATIC.iterdir():
        shutil.copy(f, out)
    modules = {f.name: f.read_text("utf8") for f in sorted(STATIC.glob("*.js")) if f.name not in CLASSIC}
    (out / "esm.js").write_text(f"window.NTK_ESM={json.dumps(modules)};", "utf8")    # import() fails on file://
    wheel = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
    fonts = "output/chtml/fonts/woff-v2"
    shutil.copytree(wheel / fonts, out / "mathjax" / fonts, dirs_exist_ok=True)      # 1.6 MB of the wheel's 24
    shutil.copy(wheel / "tex-mml-chtml.js", out / "mathjax")


def folder(app, *parts) -> Path:
    """_static/ntklib of this build, or a folder in it."""
    d = Path(app.outdir, "_static", "ntklib", *parts)
    d.mkdir(parents=True, exist_ok=True)
    return d


# ---- pages ---------------------------------------------------------------------------------------
def typeset_mathml(app, page, template, context, doctree):
    """Sphinx loads MathJax where it saw an equation; a formula inside a widget is `<math>` in raw HTML."""
    if "<math" in context.get("body", ""):
        app.env.get_domain("math").data["has_equations"][page] = True


def dress(app, page, template, context, doctree):
    """Give a page the scripts and styles that it needs, and take its big tables out of it."""
    body = context.get("body", "")
    widgets = set(WIDGET.findall(body))
    for name in ["book", *sorted(widgets)]:
        if (STATIC / f"{name}.css").exists():
            app.builder.add_css_file(f"ntklib/{name}.css", priority=900)
    for name in [*(["esm", "mount"] if widgets else []), "book"]:
        app.builder.add_js_file(f"ntklib/{name}.js", defer="defer", priority=900)
    if "explorable" in widgets:
        from ntklib.book.explorable import vega_js
        (folder(app) / "vega.js").write_text(vega_js(), "utf8")
        context["body"] = TABLE.sub(lambda m: table(app, page, body, m), body)
    context["script_files"] = [s for s in context["script_files"] if not is_widget_state(s)]
    context["typesets"] = any("mathjax" in str(getattr(s, "filename", "")) for s in context["script_files"])


def is_widget_state(script) -> bool:
    """myst-nb's copy of every ipywidget's state: only html-manager reads it, and we do not ship that."""
    return "widget-state" in str(getattr(script, "attributes", {}).get("type", ""))


def table(app, page: str, body: str, m: re.Match) -> str:
    """The `<script data-table>` that replaces this one: a big table becomes a script of its own, loaded when needed."""
    if len(m[1]) <= INLINE_LIMIT:
        return m[0]
    key = hashlib.sha256(m[1].encode()).hexdigest()[:16]
    js = f'(window.NTK_TABLES??={{}})["{key}"]="{m[1].strip()}"'
    size = len(gzip.compress(js.encode(), 9))
    if size > TABLE_LIMIT:
        ids = re.findall(r'<figure[^>]*\bid="([^"]+)"', body[:m.start()])
        raise ExtensionError(f"{page}: the table of explorable {ids[-1] if ids else '(no id)'} is {size / 1000:.0f} kB after gzip, "
                             f"over the limit of {TABLE_LIMIT / 1000:.0f} kB: give a control fewer values, or return less from compute")
    (folder(app, "tables") / f"{key}.js").write_text(js, "utf8")
    return f'<script type="text/plain" data-table data-src="{key}"></script>'


def setup(app):
    """Register everything."""
    os.environ["NTKLIB_STATIC"] = "1"       # inherited by the kernels: widgets add the HTML that a page shows
    app.add_config_value("ntklib_code", "", "env", (str,))
    app.add_config_value("ntklib_look", "", "html", (str,))
    app.add_config_value("comments_config", {}, "")     # Jupyter Book sets it for an extension that we leave out
    app.connect("config-inited", configure)
    app.connect("builder-inited", copy_static)
    app.connect("builder-inited", mend_theme)
    app.connect("html-page-context", typeset_mathml, priority=400)
    app.connect("html-page-context", dress, priority=900)
    app.connect("build-finished", prune)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
