"""Every page of the book as readers meet it: offline, on a phone, by keyboard, in the dark, without scripts.

The pages come from _toc.yml, so a chapter is under test from the day it is listed there.
"""
import gzip
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from conftest import ROOT, Visit

pytestmark = pytest.mark.browser


def listed(toc) -> list[str]:
    """The pages of a table of contents, in order."""
    if isinstance(toc, dict):
        own = [toc[k] for k in ("root", "file") if k in toc]
        return own + [page for k in ("parts", "chapters", "sections") for page in listed(toc.get(k))]
    return [page for entry in toc or [] for page in listed(entry)]


PAGES = listed(yaml.safe_load((ROOT / "_toc.yml").read_text()))


@pytest.fixture(scope="module", params=PAGES)
def page_name(request):
    return request.param


@pytest.fixture(scope="module")
def seen(browser, site, page_name):
    """The page on a desk, loaded once for the tests that only look at it."""
    seen = Visit(browser, f"{site}/{page_name}.html", color_scheme="light")
    yield seen
    seen.context.close()


PHONE = {"viewport": {"width": 380, "height": 720}, "device_scale_factor": 2, "has_touch": True}


def assert_quiet(seen):
    assert not seen.problems(), "\n".join(seen.problems())


def assert_still(seen):
    assert sum(s["value"] for s in seen.shifts()) < 0.05, seen.shifts()


# ---- what a browser says --------------------------------------------------------------------------
def test_a_page_asks_no_other_host_and_reports_no_error(seen):
    assert_quiet(seen)


def test_nothing_jumps_while_a_page_loads_and_scrolls(seen):
    assert_still(seen)


def test_a_phone_shows_a_page_without_sideways_scrolling_or_jumps(visit, site, page_name):
    seen = visit(f"{site}/{page_name}.html", **PHONE)
    assert_quiet(seen)
    assert_still(seen)
    assert_fits(seen.page)
    seen.page.set_viewport_size({"width": 320, "height": 700})               # WCAG 1.4.10, also a page of 1280 px at 400 %
    seen.page.wait_for_timeout(300)
    assert_fits(seen.page)


def assert_fits(page):
    wide = page.evaluate("""() => {
        const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        const out = e => e.getBoundingClientRect().right > innerWidth + 1 && e.checkVisibility();
        const all = [...document.querySelectorAll("body *")];
        return over > 0 && [over, ...all.filter(out).map(e => e.outerHTML.slice(0, 120))];
    }""")
    assert not wide, f"{wide[0]} px too wide: {wide[1:4]}"


def violations(page, rules=None) -> list[str]:
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{v['id']}: {n['target']} {n['html'][:200]} {n['failureSummary']}"
            for v in found for n in v["nodes"]]


def test_formulas_are_typeset(seen):
    page = seen.page
    assert page.locator("mjx-merror").count() == 0, page.locator("mjx-merror").first.text_content()
    assert page.locator("article .math:not(:has(mjx-container))").count() == 0
    raw = page.evaluate(r"""() => [...document.querySelectorAll("article *")]
        .filter(e => !e.closest("script, style, pre, code, annotation")).flatMap(e => [...e.childNodes])
        .filter(n => n.nodeType === 3 && /\\[([]|\$\$|\\(frac|theta|begin)\b/.test(n.data))
        .map(n => n.data.slice(0, 80))""")
    assert not raw, raw


def test_the_focus_is_seen_at_every_stop_of_the_tab_key(seen):
    page = seen.page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    stops, bare = 0, []
    while stops < 40:
        page.keyboard.press("Tab")
        at = page.evaluate("""() => {
            const e = document.activeElement, s = getComputedStyle(e);
            const ring = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
            return e === document.body ? null : { html: e.outerHTML.slice(0, 120), ring };
        }""")
        if at is None:
            break
        stops += 1
        if not at["ring"]:
            bare.append(at["html"])
    assert stops >= 3
    assert not bare, bare


# The dark page differs from the light one in its colours only: the other rules need no second run there.
@pytest.mark.parametrize(("mode", "width", "rules"), [
    ("light", 1280, None), ("dark", 1280, ["color-contrast"]),
    ("dark", 380, ["color-contrast"]), ("light", 380, None)])
def test_a_page_is_accessible(seen, mode, width, rules):
    page = seen.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=mode)
    page.wait_for_function("m => document.documentElement.dataset.theme === m", arg=mode, timeout=5000)
    page.wait_for_timeout(350)              # the theme makes wide boxes focusable 300 ms after a resize
    # the insides of formulas are two thirds of a page's elements, and the same everywhere: axe may skip them
    page.evaluate("document.querySelectorAll('mjx-container:not([tabindex])').forEach(e => e.textContent = 'f')")
    found = violations(page, rules)
    assert not found, "\n".join(found)


def test_a_page_works_when_opened_as_a_file(visit, book, page_name):
    assert_quiet(visit((book / f"{page_name}.html").as_uri()))


def test_a_page_reads_without_javascript(visit, site, page_name):
    assert_reads(visit(f"{site}/{page_name}.html", java_script_enabled=False))


def assert_reads(seen):
    assert_quiet(seen)
    page = seen.page
    assert page.locator("article h1").is_visible()
    assert len(page.locator("article").inner_text()) > 20
    for figure in page.locator("figure.explorable").all():
        assert figure.locator("svg, img").first.is_visible(), "an explorable has no still"
        assert figure.locator("[data-readout]").is_visible()
    for button in page.locator("article button").all():
        assert button.is_disabled() or not button.is_visible(), f"a dead button: {button.inner_text()}"


# ---- what the files say ---------------------------------------------------------------------------
def html(book, page_name) -> str:
    return (book / f"{page_name}.html").read_text("utf8")


def test_links_and_anchors_resolve(book, page_name):
    here = (book / f"{page_name}.html").as_uri()
    links = re.findall(r'<a\b[^>]*\bhref="([^"]+)"', html(book, page_name))
    lost = [link for link in links if not resolves(urljoin(here, link.replace("&amp;", "&")))]
    assert not lost


def resolves(url: str) -> bool:
    """Does a link into the book lead to a file, and its anchor to an element of it?"""
    target, anchor = urldefrag(url)
    if not target.startswith("file:"):
        return True
    path = Path(unquote(target.removeprefix("file://")))
    if not path.is_file() or not anchor or path.suffix != ".html":
        return path.is_file()
    name = re.escape(unquote(anchor).split("?")[0])
    return bool(re.search(rf'\b(id|name)="{name}"', path.read_text("utf8")))


def test_scripts_styles_and_images_are_the_books_own(book, page_name):
    tags = re.findall(r'<(?:script|img|iframe|source|video|audio|link)\b[^>]*>', html(book, page_name))
    assert not [t for t in tags if re.search(r'\b(src|href)=["\'](https?:)?//', t)]


def test_images_have_alternative_text(book, page_name):
    images = re.findall(r"<img\b[^>]*>", html(book, page_name))
    assert not [i for i in images if not re.search(r'\balt="[^"]|\baria-hidden="true"', i)]


def test_an_id_stands_once(book, page_name):
    """A figure may not have the id that the theme gives to a heading: a link to it would find the heading."""
    ids = Counter(re.findall(r'<[^>]*\sid="([^"]+)"', html(book, page_name)))
    assert not [id for id, times in ids.items() if times > 1]


def test_a_notebook_can_be_downloaded_and_says_how_to_run(book, page_name):
    if not (ROOT / f"{page_name}.ipynb").exists():
        pytest.skip("prose, not a notebook")
    text = html(book, page_name)
    assert "make lab" in text
    link = re.search(r'<a href="([^"]+\.ipynb)" download>', text)[1]
    offered = (book / page_name).parent / link
    assert offered.resolve().read_bytes() == (ROOT / f"{page_name}.ipynb").read_bytes()


def gz(path: Path) -> float:
    return len(gzip.compress(path.read_bytes(), 9)) / 1000


def test_what_every_figure_shares_weighs_at_most_350_kB(book):
    files = list((book / "_static" / "ntklib").glob("*.js"))
    assert sum(map(gz, files)) <= 350, {f.name: round(gz(f)) for f in files}


def test_a_table_weighs_at_most_300_kB(book):
    heavy = {f.name: gz(f) for f in (book / "_static" / "ntklib" / "tables").glob("*.js") if gz(f) > 300}
    assert not heavy


def test_the_front_door_and_the_search_page_work(visit, site):
    seen = visit(f"{site}/index.html", settle=False)
    seen.page.wait_for_url(f"**/{PAGES[0]}.html")
    seen.page.goto(f"{site}/search.html?q=angle")
    seen.page.wait_for_selector("#search-results li, #search-results p.search-summary:not(:empty)")
    assert_quiet(seen)
    assert not violations(seen.page)


def test_the_colour_switch_is_obeyed_and_kept(visit, site):
    page = visit(f"{site}/{PAGES[0]}.html", color_scheme="light").page
    icons = page.locator(".theme-switch-button").first.locator(".theme-switch")
    assert [i.is_visible() for i in icons.all()].count(True) == 1            # of three: the mode that is on
    page.locator(".theme-switch-button").first.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert [i.get_attribute("data-mode") for i in icons.all() if i.is_visible()] == ["dark"]
    assert page.locator(".theme-switch-button").first.get_attribute("aria-label") == "Color mode: dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
