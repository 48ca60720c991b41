"""Sphinx extension of the book: pages that need no other host, and caches that know about ntklib.

Read it from `setup`, at the end: it lists what happens, in the order in which Sphinx calls it.
"""
import copy
import gzip
import hashlib
import importlib.util
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock

from sphinx.errors import ExtensionError

HERE = Path(__file__).parent
STATIC = HERE / "static"
CLASSIC = ("mount.js", "book.js")               # plain scripts; every other .js in static/ is an ES module
INLINE_LIMIT = 20_000                           # characters of a table that may stay in its page
TABLE_LIMIT = 300_000                           # bytes of a table after gzip
NO_INFLUENCE = ("sphinx_ext.py", "normalize.py", "serve.py")    # on what a notebook prints

WIDGET = re.compile(r'data-ntk="(\w+)\.js"')    # an element that mount.js gives to that module
STILL = 'class="ntk-still-figure"'              # styled with the explorables, but no script moves it
TABLE = re.compile(r'<script type="text/plain" data-table>([A-Za-z0-9+/=\s]*)</script>')


# ---- caches --------------------------------------------------------------------------------------
def digest(files) -> str:
    """One short hash of the names and contents of many files."""
    h = hashlib.sha256()
    for f in sorted(files):
        h.update(f.as_posix().encode() + b"\0" + f.read_bytes())
    return h.hexdigest()[:16]


def configure(app, config):
    """Set what depends on where this file lies, and tie the caches to the library.

    jupyter-cache and Sphinx look only at the notebook itself. So the execution cache lives in a folder named
    after the code, and the same name is a configuration value, whose change makes Sphinx read all pages
    again: an edit of ntklib, a pin or a recorded run executes the notebooks anew, and nothing else does.
    """
    root = Path(app.srcdir)
    code = [f for f in HERE.parent.rglob("*.py") if f.name not in NO_INFLUENCE]
    code += [*root.glob("requirements.txt"), *root.glob("chapters/records/**/*.json")]
    config.ntklib_code = digest(code)
    config.ntklib_look = digest(f for d in ("static", "templates") for f in (HERE / d).iterdir())
    caches = Path(app.outdir).parent / ".jupyter_cache"
    for old in caches.glob("*"):
        if old.name != config.ntklib_code:
            shutil.rmtree(old, ignore_errors=True)
    config.nb_execution_cache_path = str(caches / config.ntklib_code)

    config.templates_path.insert(0, str(HERE / "templates"))
    config.html_theme_options["article_header_end"] = ["run-here.html", "article-header-buttons.html"]
    config.html_context["default_mode"] = "light"       # without JavaScript; else layout.html asks the system
    config.mathjax_path = "ntklib/mathjax/tex-mml-chtml.js"
    # The menu would make every formula a tab stop and fetch speech files from afar; the hidden MathML stays.
    config.mathjax3_config = {"options": {"enableMenu": False, "enableAssistiveMml": True}}


def execute(app, env, pages):
    """Run the notebooks that are about to be read, one a core: myst-nb, which runs one after the other, finds them in its cache.

    It runs again what failed, and reports it.
    """
    import nbformat
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from jupyter_cache.executors.utils import single_nb_execution
    from traitlets.config import Config

    cache, turn = get_cache(app.config.nb_execution_cache_path), Lock()
    quiet = Config(KernelManager={"transport_encryption": "auto"})      # else every kernel warns of eavesdroppers
    os.environ.setdefault("OMP_NUM_THREADS", "1")       # the kernels inherit it: their threads would wait for each other

    def run(path: Path):
        notebook = nbformat.read(path, as_version=4)
        with turn, suppress(KeyError):
            cache.match_cache_notebook(notebook)
            return
        done = single_nb_execution(notebook, cwd=str(path.parent), timeout=app.config.nb_execution_timeout, allow_errors=False, config=quiet)
        if done.err is None:
            with turn:
                cache.cache_notebook_bundle(CacheBundleIn(notebook, str(path), data={"execution_seconds": done.time}),
                                            check_validity=False, overwrite=True)

    paths = [Path(env.doc2path(page)) for page in pages]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, [path for path in paths if path.suffix == ".ipynb"]))


# ---- static files --------------------------------------------------------------------------------
def folder(app, *parts) -> Path:
    """The folder _static/ntklib of this build, or one below it."""
    d = Path(app.outdir, "_static", "ntklib", *parts)
    d.mkdir(parents=True, exist_ok=True)
    return d


def copy_static(app):
    """Put static/ and MathJax in place before any page is written: Sphinx stamps checksums on the links."""
    if app.builder.format != "html":
        return
    for f in STATIC.iterdir():
        shutil.copy(f, folder(app))
    modules = {f.name: f.read_text("utf8") for f in sorted(STATIC.glob("*.js")) if f.name not in CLASSIC}
    # the modules travel as text, because a page opened as a file may not import them
    (folder(app) / "esm.js").write_text(f"window.NTK_ESM={json.dumps(modules)};", "utf8")
    wheel = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
    for f in [wheel / "tex-mml-chtml.js", *wheel.glob("output/chtml/fonts/woff-v2/*")]:     # 1.6 MB of its 24
        shutil.copy(f, folder(app, "mathjax", *f.parent.relative_to(wheel).parts))


def prune(app, error):
    """Take away what no page loads: icon script, source maps, doubled fonts (6 MB of 10), old tables."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for pattern in ("scripts/fontawesome.*", "*/*.map", "vendor/fontawesome/*/*.ttf", "*webpack-macros.html"):
        for f in static.glob(pattern):
            f.unlink()
    pages = "".join(page.read_text("utf8") for page in Path(app.outdir).rglob("*.html"))
    for f in folder(app, "tables").iterdir():
        if f'data-src="{f.stem}"' not in pages:
            f.unlink()


# ---- pages ---------------------------------------------------------------------------------------
MENDS = [               # (pattern, replacement), over the whole of a page that sphinx-book-theme 1.2.0 made
    # an icon is a picture, not a letter to read out
    (r'<i class="(?=[^"]*\bfa-)', '<i aria-hidden="true" class="'),
    # the button's text says so already, and more
    (r'(<button class="btn search-button-field[^>]*) title="Search" aria-label="Search"', r"\1"),
    # every part of a page belongs to a landmark
    (r'(<div id="pst-primary-sidebar") (?!role)', r'\1 role="region" aria-label="Book" '),
    # roles that ARIA has withdrawn, or that their children do not fit
    (r'<div role="list" (?=class="citation-list")', "<div "),
    (r'(<div class="citation"[^>]*) role="doc-biblioentry"', r"\1"),
]


def mend_theme(app):
    """Repair in the HTML what the theme gets wrong for assistive technology: Sphinx has no event for it."""
    if app.builder.format != "html":
        return
    render = app.builder.templates.render

    def mended(template, context):
        text = render(template, context)
        for pattern, replacement in MENDS:
            text = re.sub(pattern, replacement, text)
        return text
    app.builder.templates.render = mended


def typeset_mathml(app, page, template, context, doctree):
    """Load MathJax for formulas in widgets too: Sphinx looks for equations, and they are `<math>` in HTML."""
    if "<math" in context.get("body", ""):
        app.env.get_domain("math").data["has_equations"][page] = True


def dress(app, page, template, context, doctree):
    """Give a page the scripts and styles that it needs and no others, and take its big tables out of it."""
    body = context.get("body", "")
    modules = set(WIDGET.findall(body))
    styles = {"book", *modules} | ({"explorable"} if STILL in body else set())
    for name in sorted(styles):
        if (STATIC / f"{name}.css").exists():
            app.builder.add_css_file(f"ntklib/{name}.css", priority=900)
    for name in [*(["esm", "mount"] if modules else []), "book"]:
        app.builder.add_js_file(f"ntklib/{name}.js", defer="defer", priority=900)
    if "explorable" in modules:
        from ntklib.book.explorable import vega_js
        (folder(app) / "vega.js").write_text(vega_js(), "utf8")
        context["body"] = TABLE.sub(lambda m: table(app, page, m), body)
    context["script_files"] = [s for s in context["script_files"] if not is_widget_state(s)]
    context["typesets"] = any("mathjax" in str(getattr(s, "filename", "")) for s in context["script_files"])


def is_widget_state(script) -> bool:
    """Is this myst-nb's copy of all ipywidgets' states? Only html-manager reads it, which we do not ship."""
    return "widget-state" in str(getattr(script, "attributes", {}).get("type", ""))


def table(app, page: str, m: re.Match) -> str:
    """What replaces a `<script data-table>`: itself if it is small, else a reference to a separate script."""
    text = m[1].strip()
    if len(text) <= INLINE_LIMIT:
        return m[0]
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    js = f'(window.NTK_TABLES??={{}})["{key}"]="{text}"'
    size = len(gzip.compress(js.encode(), 9))
    if size > TABLE_LIMIT:
        figure = re.findall(r'<figure[^>]*\bid="([^"]+)"', m.string[:m.start()])[-1:]
        raise ExtensionError(
            f"{page}: the table of explorable {' '.join(figure)} is {size / 1000:.0f} kB gzipped, "
            f"over {TABLE_LIMIT // 1000} kB: give a control fewer values, or return less from compute()")
    (folder(app, "tables") / f"{key}.js").write_text(js, "utf8")
    return f'<script type="text/plain" data-table data-src="{key}"></script>'


def spare_outputs():
    """Let myst-nb merge the pieces of a stream on the page alone: it would write the merged text into the executed notebook
    before the pieces that it leaves there."""
    from myst_nb.core import render

    merge = render.coalesce_streams
    render.coalesce_streams = lambda outputs: merge(copy.deepcopy(outputs))


def keep_outputs():
    """Let myst-nb write a notebook from its cache as it was executed: it would write its copy without the outputs."""
    from myst_nb.core.execute.cache import NotebookClientCache as Client

    start = Client.start_client

    def started(self):
        given = self.notebook
        start(self)
        given.update(self.notebook)
    Client.start_client = started


def setup(app):
    """Say what happens when."""
    spare_outputs()
    keep_outputs()
    os.environ["NTKLIB_STATIC"] = "1"   # the kernels inherit it: widgets then add the HTML that a page shows
    app.add_config_value("ntklib_code", "", "env", (str,))
    app.add_config_value("ntklib_look", "", "html", (str,))
    app.add_config_value("comments_config", {}, "")     # set by Jupyter Book for an extension left out here
    app.connect("config-inited", configure)
    app.connect("env-before-read-docs", execute)
    app.connect("builder-inited", copy_static)
    app.connect("builder-inited", mend_theme)
    app.connect("html-page-context", typeset_mathml, priority=400)      # before MathJax's own handler, at 500
    app.connect("html-page-context", dress, priority=900)               # after everybody's
    app.connect("build-finished", prune)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
