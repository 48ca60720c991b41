"""The Sphinx extension, by pieces and on a small book; the page tests, each on a page that it must refuse."""
import base64
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import test_pages as pages
from conftest import HTML, REPO, Visit
from jupyter_cache import get_cache
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.errors import ExtensionError

from ntklib.book import sphinx_ext
from ntklib.book.serve import serve


# ---- caches --------------------------------------------------------------------------------------
def test_a_digest_sees_names_and_contents(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    b.write_text("2")
    one = sphinx_ext.digest([a, b])
    assert one == sphinx_ext.digest([b, a])
    assert one != sphinx_ext.digest([a])
    a.write_text("2")
    b.write_text("1")
    assert one != sphinx_ext.digest([a, b])


def configured(root):
    app = SimpleNamespace(srcdir=str(root), outdir=str(root / "_build" / "html"))
    config = SimpleNamespace(templates_path=[], html_theme_options={}, html_context={})
    sphinx_ext.configure(app, config)
    return config


def test_a_new_pin_or_record_gives_a_new_cache_and_drops_the_old(tmp_path):
    (tmp_path / "requirements.txt").write_text("torch==1")
    first = configured(tmp_path)
    Path(first.nb_execution_cache_path).mkdir(parents=True)
    assert configured(tmp_path).ntklib_code == first.ntklib_code
    assert Path(first.nb_execution_cache_path).exists()
    (tmp_path / "requirements.txt").write_text("torch==2")
    second = configured(tmp_path)
    assert second.ntklib_code != first.ntklib_code
    assert second.ntklib_look == first.ntklib_look
    assert not Path(first.nb_execution_cache_path).exists()
    (tmp_path / "chapters" / "records").mkdir(parents=True)
    (tmp_path / "chapters" / "records" / "run.json").write_text("{}")
    assert configured(tmp_path).ntklib_code != second.ntklib_code


# ---- execution -----------------------------------------------------------------------------------
WAIT = """import pathlib, time
pathlib.Path("{mine}").touch()
while not pathlib.Path("{other}").exists():
    time.sleep(.1)
print("both")"""


@pytest.fixture
def execute(tmp_path):
    """`execute(**sources)` runs one-celled notebooks of these names as a build does, and gives the cache."""
    def run(**sources):
        for name, source in sources.items():
            path = tmp_path / f"{name}.ipynb"
            path.exists() or nbformat.write(new_notebook(cells=[new_code_cell(source)]), path)
        settings = SimpleNamespace(nb_execution_cache_path=str(tmp_path / "cache"), nb_execution_timeout=60)
        env = SimpleNamespace(doc2path=lambda page: str(tmp_path / page))
        sphinx_ext.execute(SimpleNamespace(config=settings), env, [*(f"{name}.ipynb" for name in sources), "page.md"])
        return get_cache(settings.nb_execution_cache_path)
    return run


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core runs one notebook at a time")
def test_notebooks_run_side_by_side_and_only_once(execute, tmp_path):
    cells = {name: WAIT.format(mine=name, other=other) for name, other in ("ab", "ba")}

    def found():
        cache = execute(**cells)
        merged = [cache.merge_match_into_notebook(nbformat.read(tmp_path / f"{name}.ipynb", 4))[1] for name in cells]
        return [nb.cells[0].outputs[0].text for nb in merged], [record.created for record in cache.list_cache_records()]

    first = found()
    assert first[0] == ["both\n", "both\n"]
    assert found() == first


def test_a_notebook_that_fails_is_not_kept(execute):
    assert not execute(bad="1 / 0").list_cache_records()


# ---- tables --------------------------------------------------------------------------------------
def page_with(data: bytes):
    text = base64.b64encode(data).decode()
    body = f'<figure class="explorable" id="fig-a"><script type="text/plain" data-table>{text}</script>'
    return text, sphinx_ext.TABLE.search(body)


def test_a_small_table_stays_in_its_page(tmp_path):
    _, m = page_with(b"1" * 1000)
    assert sphinx_ext.table(SimpleNamespace(outdir=tmp_path), "p", m) == m[0]


def test_a_large_table_leaves_its_page(tmp_path):
    text, m = page_with(random.Random(0).randbytes(20_000))
    new = sphinx_ext.table(SimpleNamespace(outdir=tmp_path), "p", m)
    script, = (tmp_path / "_static" / "ntklib" / "tables").iterdir()
    assert new == f'<script type="text/plain" data-table data-src="{script.stem}"></script>'
    assert script.read_text() == f'(window.NTK_TABLES??={{}})["{script.stem}"]="{text}"'


def test_a_table_over_the_limit_stops_the_build(tmp_path):
    _, m = page_with(random.Random(0).randbytes(310_000))
    with pytest.raises(ExtensionError, match=r"chapters/p: the table of explorable fig-a is 31\d kB gzipped"):
        sphinx_ext.table(SimpleNamespace(outdir=tmp_path), "chapters/p", m)


# ---- the theme -----------------------------------------------------------------------------------
def test_what_we_mend_in_the_theme_is_mended_on_every_page(book):
    texts = [p.read_text("utf8") for p in book.glob("chapters/**/*.html")]
    for pattern, _ in sphinx_ext.MENDS:
        assert not [text for text in texts if re.search(pattern, text)], pattern
    for mended in ('<i aria-hidden="true"', '"pst-primary-sidebar" role="region"', "search-button-field"):
        assert all(mended in text for text in texts), "the theme has changed: is this mend still needed?"


def test_the_published_folder_holds_nothing_that_no_page_loads(book):
    assert not list(book.rglob("*.map"))
    assert not list(book.rglob("fontawesome.js"))
    static = book / "_static"
    ours = static / "ntklib"
    assert weight(f for f in static.rglob("*") if ours not in f.parents) < 3e6
    assert weight((ours / "mathjax").rglob("*")) < 2e6


def weight(files) -> int:
    return sum(f.stat().st_size for f in files if f.is_file())


# ---- a small book --------------------------------------------------------------------------------
BAD = {
    "cdn": "<script src='https://cdn.example.org/x.js'></script>",
    "missing": "<img alt='lost' src='lost.png'>",
    "error": "<script>console.error('broken')</script>",
    "wide": "<div style='width: 3000px'>wide</div>",
    "contrast": "<p style='color: #777; background: #555'>pale</p>",
    "unlabelled": "<input type='text'>",
    "formula": r"<p class='tex2jax_ignore'>\(\frac12\)</p>",
    "jump": "<div id='late'></div>" + f"<p>{'text ' * 60}</p>" * 12,
    "link": '<a href="nowhere.html">nowhere</a>',
    "anchor": '<a href="#nothing">nothing</a>',
    "alt": "<img src='../_static/ntklib/favicon.svg'>",
    "twice": '<p id="more">a</p><p id="more">b</p>',
    "ring": "<style>.no:focus-visible { outline: none !important }</style><button class='no'>a</button>",
    "button": "<button>does nothing without a script</button>",
}


def build(root) -> str:
    builder = Path(sys.executable).with_name("jupyter-book")
    made = subprocess.run([builder, "build", "-W", "--keep-going", root], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-3000:]
    return made.stdout + made.stderr


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A book of one good page, one notebook and a page for each flaw."""
    root = tmp_path_factory.mktemp("small")
    chapters = root / "chapters"
    chapters.mkdir()
    shutil.copytree(REPO / "ntklib", root / "ntklib")           # a copy: nobody edits it meanwhile
    (root / "_config.yml").write_text((REPO / "_config.yml").read_text())
    (root / "requirements.txt").write_text("torch==1")
    (chapters / "references.bib").write_text("")
    good = "# Good\n\nText, $x^2$, [a link](run.ipynb).\n\n$$y = x$$\n\n## More\n\nText.\n"
    (chapters / "good.md").write_text(good)
    clock = new_code_cell("import time\nprint(time.time_ns())")
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Run"), clock]), chapters / "run.ipynb")
    for name, html in BAD.items():
        flawed = f"# Bad {name}\n\nSome text with $x^2$.\n\n```{{raw}} html\n{html}\n```\n"
        (chapters / f"{name}.md").write_text(flawed)
    files = "".join(f"  - file: chapters/{name}\n" for name in ["run", *BAD])
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: chapters/good\nchapters:\n{files}")
    build(root)
    return root


def executed(root) -> str:
    return (root / "_build" / "jupyter_execute" / "chapters" / "run.ipynb").read_text()


def test_an_unchanged_book_executes_nothing_and_a_changed_pin_everything(small):
    before = executed(small)
    log = build(small)
    assert executed(small) == before
    assert "0 added, 0 changed, 0 removed" in log
    with open(small / "chapters" / "good.md", "a") as page:
        page.write("\nOne more line.\n")
    build(small)
    assert executed(small) == before
    (small / "requirements.txt").write_text("torch==2")
    build(small)
    assert executed(small) != before


@pytest.fixture(scope="module")
def look(small, browser):
    """`look(name, **options)` visits a page of the small book."""
    html = small / "_build" / "html"
    server = serve(html)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    opened, address = [], f"http://127.0.0.1:{server.server_port}"

    def go(name, **options):
        opened.append(Visit(browser, f"{address}/chapters/{name}.html", **options))
        return opened[-1]
    go.html = html
    yield go
    for seen in opened:
        seen.context.close()
    server.shutdown()


CHECKS = {
    "cdn": lambda look, name: pages.assert_quiet(look(name)),
    "missing": lambda look, name: pages.assert_quiet(look(name)),
    "error": lambda look, name: pages.assert_quiet(look(name)),
    "wide": lambda look, name: pages.assert_fits(look(name, **pages.PHONE).page),
    "contrast": lambda look, name: accessible(look(name), "dark", 380, ["color-contrast"]),
    "unlabelled": lambda look, name: accessible(look(name), "light", 1280, None),
    "formula": lambda look, name: pages.test_formulas_are_typeset(look(name)),
    "jump": lambda look, name: pages.assert_still(when_the_late_part_has_come(look(name))),
    "link": lambda look, name: pages.test_links_and_anchors_resolve(look.html, f"chapters/{name}"),
    "anchor": lambda look, name: pages.test_links_and_anchors_resolve(look.html, f"chapters/{name}"),
    "alt": lambda look, name: pages.test_images_have_alternative_text(look.html, f"chapters/{name}"),
    "twice": lambda look, name: pages.test_an_id_stands_once(look.html, f"chapters/{name}"),
    "ring": lambda look, name: pages.test_the_focus_is_seen_at_every_stop_of_the_tab_key(look(name)),
    "button": lambda look, name: pages.assert_reads(look(name, java_script_enabled=False)),
}


accessible = pages.test_a_page_is_accessible


def when_the_late_part_has_come(seen):
    """After the scrolling that a visit begins with, in which the browser keeps the text in its place. Chromium does not
    count the first change of a page that is at rest, so it comes, goes and comes."""
    for height in ("600px", "0", "600px"):
        seen.page.evaluate("height => document.getElementById('late')?.style.setProperty('height', height)", height)
        seen.page.wait_for_timeout(200)
    return seen


@pytest.mark.browser
@pytest.mark.parametrize("flaw", BAD)
def test_a_page_test_refuses_its_flaw_and_passes_a_good_page(look, flaw):
    with pytest.raises(AssertionError):
        CHECKS[flaw](look, flaw)
    CHECKS[flaw](look, "good")


@pytest.mark.browser
def test_a_cdn_script_is_refused_before_it_leaves_the_machine(look):
    assert look("cdn").external == ["https://cdn.example.org/x.js"]


def test_the_scripts_test_refuses_another_host(small):
    with pytest.raises(AssertionError):
        pages.test_scripts_styles_and_images_are_the_books_own(small / "_build" / "html", "chapters/cdn")


# ---- the server ----------------------------------------------------------------------------------
def test_a_taken_port_gives_a_free_one(tmp_path):
    first = serve(tmp_path)
    second = serve(tmp_path, first.server_port)
    assert second.server_address[0] == "127.0.0.1"
    assert second.server_port not in (0, first.server_port)
    first.server_close()
    second.server_close()


def test_the_build_is_where_make_book_puts_it(book):
    assert book == HTML
    assert (book / "index.html").is_file()
