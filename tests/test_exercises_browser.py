"""Exercises and claims as a reader meets them: marked on the page, remembered there, linked to the ledger."""
import random
import re

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Visit
from test_exercises import EVERY as OF_THE_BOOK
from test_exercises import READ, REFUSED, UNITS, answer

from ntklib.book import claims
from ntklib.book.exercises import check, parse
from ntklib.book.exercises.kinds import LETTERS, Choice, Function, Number

pytestmark = pytest.mark.browser

PAGES = {c.chapter.name: f"chapters/{c.page}.html" for c in claims.all_claims().values()}
ANGLES = PAGES["angles"]                # what a reader does is tried on the first chapter's page, and the marking on every page
EVERY = {id: e for id, e in OF_THE_BOOK.items() if id.startswith("angles.")}
MODULE = """async ([texts, units]) => {
    const text = new Blob([NTK_ESM["exercise.js"]], { type: "text/javascript" });
    const module = await import(URL.createObjectURL(text)); """


def anchor(id):
    return f"ex-{id.replace('.', '-')}"


def box(page, id):
    return page.locator(f"#{anchor(id)}")


def ready(page):
    page.wait_for_function("!document.querySelector('[data-ntk=\"exercise.js\"]:not([data-ready])')")


@pytest.fixture(scope="module")
def light(book):
    """The chapter's page without its explorables and MathJax, which most of these tests have no use for."""
    source = re.sub(r'<figure class="explorable".*?</figure>', "", (book / ANGLES).read_text(), flags=re.S)
    return re.sub(r"<script[^>]*mathjax[^>]*></script>", "", source)


@pytest.fixture
def chapter(visit, site, light):
    """`chapter(**options)` opens the chapter's page, its exercises ready; `whole`, with all that is on it."""
    def go(whole=False, before=None, **options):
        seen = visit(settle=False, **options)
        if before:
            seen.page.add_init_script(before)
        if not whole:
            seen.context.route(f"**/{ANGLES}", lambda r: r.fulfill(body=light, content_type="text/html"))
        seen.page.goto(f"{site}/{ANGLES}")
        if options.get("java_script_enabled", True):
            ready(seen.page)
        return seen
    return go


def give(page, id, value):
    """Answer as a reader with a mouse does."""
    e, ex = EVERY[id], box(page, id)
    if isinstance(e, Number):
        ex.locator("input").fill(str(value))
    else:
        for x, field in zip(LETTERS, ex.locator("input").all(), strict=False):
            if isinstance(e, Choice):
                if x == value:
                    field.check()
            else:
                field.set_checked(x in value)
    ex.get_by_role("button", name="Check").click()
    return ex.locator("[data-feedback]")


def count(page):
    return page.locator("[data-count]").inner_text()


MARKED = [i for i, e in EVERY.items() if not isinstance(e, Function)]
N = len(EVERY)


# ---- every page ---------------------------------------------------------------
def test_every_exercise_stands_once_on_its_chapters_page(book):
    for chapter, name in PAGES.items():
        source = (book / name).read_text()
        assert source.count('class="exercise-progress"') == 1
        for id in OF_THE_BOOK:
            if id.startswith(f"{chapter}."):
                assert source.count(f'id="{anchor(id)}"') == 1, id


def test_nothing_moves_when_the_exercises_come_to_life(chapter):
    seen = chapter(whole=True).settle()
    moved = [s for s in seen.shifts() if any("exercise" in m or "task-" in m for m in s["moved"])]
    assert not moved, moved
    assert not seen.problems(), seen.problems()


# ---- the page marks as Python does ---------------------------------------------------------------
@pytest.fixture(scope="module")
def desk(browser, site):
    """`desk(chapter)` is a chapter's page, loaded once for the tests that leave no trace on it."""
    visits = {}

    def go(name):
        if name not in visits:
            visits[name] = Visit(browser, f"{site}/{PAGES[name]}", settle=False)
            ready(visits[name].page)
        return visits[name].page
    yield go
    for seen in visits.values():
        seen.context.close()


def test_the_page_reads_numbers_as_python_does(desk):
    rng = random.Random(0)
    texts = [*READ, *REFUSED]
    texts += ["arccos(1/4)", "2 sin(pi/6)", "exp(1000)", "ln(0)", "tan 1"]
    texts += ["".join(rng.choices("0123456789.+-*/^()pisqrt√π e°", k=rng.randint(1, 9))) for _ in range(3000)]
    found = desk("angles").evaluate(MODULE + """return texts.map(t => {
        try { return [module.parseNumber(t, units), ""]; } catch (e) { return [null, e.message]; } }); }""",
                          [texts, UNITS])
    for text, (value, message) in zip(texts, found, strict=True):
        try:
            expected, refusal = parse.number(text, UNITS), ""
        except ValueError as e:
            expected, refusal = None, str(e)
        if expected is not None:
            expected = pytest.approx(expected, rel=1e-12)
        assert value == expected, f"{text!r} {refusal}"
        if text in REFUSED and len(text) < 1000:
            assert REFUSED[text] in message, text


@pytest.mark.parametrize("id", [i for i, e in OF_THE_BOOK.items() if not isinstance(e, Function)])
def test_the_page_marks_as_python_does(desk, id):
    e, rng = OF_THE_BOOK[id], random.Random(id)
    if isinstance(e, Number):
        edges = [(e.answer, e.tolerance), (e.answer, 10 * e.tolerance)]
        edges += [(w.value, e.tolerance if w.tolerance is None else w.tolerance) for w in e.wrong]
        values = [at + side * reach for at, reach in edges for side in (-1.01, -0.99, 0, 0.99, 1.01)]
        answers = [(v, repr(v)) for v in [*values, *(rng.uniform(0, 2 * abs(e.answer)) for _ in range(30))]]
    else:
        every = range(len(e.options))
        some = [[i] for i in every] if isinstance(e, Choice) else [
            [i for i in every if k >> i & 1] for k in range(1, 2 ** len(every))]
        answers = [("".join(LETTERS[i] for i in s), s) for s in some]
    found = desk(id.partition(".")[0]).evaluate(MODULE + """
        const { spec } = JSON.parse(document.querySelector(texts + " script").textContent);
        const words = html => new DOMParser().parseFromString(html, "text/html").body.textContent;
        return units.map(a => module.mark(spec, a)).map(v => [v.correct, words(v.html)]); }""",
                          [f"#{anchor(id)}", [a for _, a in answers]])
    for (python, _), (correct, words) in zip(answers, found, strict=True):
        verdict = check(id, python)
        assert correct == verdict.correct, python
        if "$" not in verdict.message and "*" not in verdict.message:
            assert verdict.message in (words, f"Right. {words}")


# ---- a reader answers ---------------------------------------------------------------
def test_a_wrong_number_is_explained_and_a_right_one_is_kept(chapter):
    seen = chapter()
    page, ex = seen.page, box(seen.page, "angles.ex1")
    field, feedback = ex.get_by_label("Your answer in degrees"), ex.locator("[data-feedback]")
    assert count(page) == f"0 of {N}"
    for text, says, invalid in [("0,5", "not a comma", "true"), ("", "Type a number", "true"),
                                ("<b>1", "cannot read", "true"), ("pi/2", "Not this number", "false"),
                                ("90", "✗ Not yet. A linear layer", "false")]:
        field.fill(text)
        assert feedback.inner_text() == ""                      # what was said is about another answer
        page.keyboard.press("Enter")
        assert says in feedback.inner_text()
        assert field.get_attribute("aria-invalid") == invalid
        assert ex.locator("[data-mark]").inner_text() == "not solved yet"
    field.fill("71.44°")
    page.keyboard.press("Enter")
    assert feedback.inner_text().startswith("✓ Right.")
    assert feedback.locator("math, mjx-container").count() > 0
    assert ex.locator("[data-mark]").inner_text() == "✓ solved"
    assert count(page) == f"1 of {N}"
    assert page.evaluate("location.search") == ""               # the form was not sent anywhere
    field.fill("90")
    page.keyboard.press("Enter")
    assert count(page) == f"1 of {N}"                           # solved once is solved
    field.fill("71.44")
    page.keyboard.press("Enter")
    page.reload()
    page.wait_for_selector("#ex-angles-ex1[data-ready]")
    assert field.input_value() == "71.44"
    assert ex.locator("[data-mark]").inner_text() == "✓ solved"
    assert count(page) == f"1 of {N}"
    assert not seen.problems(), seen.problems()


def test_all_kinds_are_solved_remembered_and_cleared(chapter):
    seen = chapter()
    page = seen.page
    assert "Choose an answer first" in give(page, "angles.ex2", "").inner_text()
    assert "Tick at least one" in give(page, "angles.ex4", "").inner_text()
    for id in MARKED:
        assert give(page, id, answer(EVERY[id])).inner_text().startswith("✓ Right."), id
    for id in set(EVERY) - set(MARKED):
        claim = box(page, id).locator("[data-claim]")
        assert "check(" in box(page, id).locator("form pre").inner_text()
        claim.click()
        assert claim.get_attribute("aria-pressed") == "true"
        claim.click()
        assert claim.get_attribute("aria-pressed") == "false"
        claim.click()
    for _ in range(2):
        assert count(page) == f"{N} of {N}"
        assert page.locator(".exercise-progress progress").evaluate("e => e.value") == N
        assert page.locator(".exercise[data-solved]").count() == N
        page.reload()
        ready(page)
    for id in MARKED[1:]:
        ticked = [i.is_checked() for i in box(page, id).locator("fieldset input").all()]
        assert "".join(x for x, on in zip(LETTERS, ticked, strict=False) if on) == (
            "" if isinstance(EVERY[id], Number) else answer(EVERY[id]))
    page.locator("[data-clear]").click()
    assert page.locator("[data-said]").inner_text() == "Cleared."
    for _ in range(2):
        assert count(page) == f"0 of {N}"
        assert page.locator(".exercise[data-solved]").count() == 0
        assert page.locator(".exercise input:checked").count() == 0
        assert box(page, "angles.ex1").locator("input").input_value() == ""
        assert page.locator("[data-feedback]").all_inner_texts() == [""] * N
        page.reload()
        ready(page)
    assert not page.evaluate("Object.keys(localStorage).filter(k => k.startsWith('ntk-book:'))")
    assert not seen.problems(), seen.problems()


def test_everything_is_done_by_keyboard(chapter):
    page = chapter().page
    ex = box(page, "angles.ex2")
    ex.locator("input").first.focus()
    for _ in range(LETTERS.index(answer(EVERY["angles.ex2"]))):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Check"
    page.keyboard.press("Space")
    assert ex.locator("[data-feedback]").inner_text().startswith("✓ Right.")
    for name in ("Hint 1", "Hint 2", "Solution"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == name
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.parentElement.open")
    ex = box(page, "angles.ex4")
    ex.locator("input").first.focus()
    for x in LETTERS[:6]:
        if x in answer(EVERY["angles.ex4"]):
            page.keyboard.press("Space")
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert ex.locator("[data-feedback]").inner_text().startswith("✓ Right.")


def test_another_tab_counts_along(chapter):
    seen = chapter()
    other = seen.context.new_page()
    other.goto(seen.page.url)
    give(other, "angles.ex1", 71.44)
    seen.page.wait_for_function(f"document.querySelector('[data-count]').textContent === '1 of {N}'")


FULL = """Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };"""
DENIED = """Object.defineProperty(window, "localStorage",
    { get() { throw new DOMException("denied", "SecurityError"); } });"""


@pytest.mark.parametrize("harm", [FULL, DENIED], ids=["full", "denied"])
def test_without_storage_answers_last_until_the_page_is_left(chapter, harm):
    # after the theme, which keeps its mode there, has started: only ours is under test
    seen = chapter(before="addEventListener('DOMContentLoaded', () => { " + harm + " });")
    page = seen.page
    assert give(page, "angles.ex1", 71.44).inner_text().startswith("✓ Right.")
    assert count(page) == f"1 of {N}"
    page.locator("[data-clear]").click()
    assert count(page) == f"0 of {N}"
    assert not [p for p in seen.problems() if "did not start" in p]


DAMAGE = ["{oops", "[]", "null", '"x"', "5", '{"answer":{"a":1},"solved":"yes"}', '{"answer":[99,"x"]}']


def test_a_damaged_memory_is_a_fresh_start(chapter):
    seen = chapter()
    page = seen.page
    for shift in range(0, len(DAMAGE), 2):
        damage = {id: DAMAGE[(i + shift) % len(DAMAGE)] for i, id in enumerate(EVERY)}
        page.evaluate("d => { for (const id in d) localStorage.setItem(`ntk-book:${id}`, d[id]); }", damage)
        page.reload()
        ready(page)
        assert count(page) == f"0 of {N}"
        assert box(page, "angles.ex1").locator("input").input_value() == ""
        assert page.locator(".exercise input:checked").count() == 0
    assert not seen.problems(), seen.problems()


# ---- other homes ---------------------------------------------------------------
def test_without_javascript_all_is_there_but_the_marking(chapter):
    page = chapter(java_script_enabled=False).page
    for id, e in EVERY.items():
        ex = box(page, id)
        assert ex.locator(".task-question").inner_text().strip()
        assert not ex.get_by_role("button").count()
        assert ("needs JavaScript" in ex.inner_text()) == (not isinstance(e, Function))
        assert not ex.get_by_text("Hint 2").is_visible()
        for name in ("Hint 1", "Hint 2", "Solution"):
            ex.get_by_text(name, exact=True).click()
            assert len(ex.locator(f"details:has(> summary:text-is('{name}'))").inner_text()) > len(name) + 20
    assert not page.locator(".exercise-progress").is_visible()


def test_a_page_opened_as_a_file_marks_and_remembers(visit, book):
    seen = visit(f"file://{book}/{ANGLES}", settle=False)
    page = seen.page
    ready(page)
    assert give(page, "angles.ex1", 71.44).inner_text().startswith("✓ Right.")
    page.reload()
    ready(page)
    assert count(page) == f"1 of {N}"
    assert not seen.problems(), seen.problems()


def open_all(page):
    give(page, "angles.ex1", 71.44)
    give(page, "angles.ex2", "A")
    give(page, "angles.ex3", "x")
    give(page, "angles.ex4", "C")
    page.locator("[data-claim]").first.click()
    page.evaluate("document.querySelectorAll('.exercise details').forEach(d => d.open = true)")


OVER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_opened_and_answered_it_is_accessible_in_both_modes(chapter):
    page = chapter(whole=True).page
    open_all(page)
    for mode, width in (("light", 1280), ("dark", 380)):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=mode)
        page.wait_for_timeout(400)              # the theme makes wide boxes focusable 300 ms after a resize
        found = Axe().run(page, context={"include": [[".exercise"], [".exercise-progress"], [".claims"]]},
                          options={"resultTypes": ["violations"]}).response["violations"]
        assert not found, [(v["id"], n["html"][:200], n["failureSummary"]) for v in found for n in v["nodes"]]


def test_on_a_phone_nothing_that_an_exercise_can_say_is_too_wide(chapter):
    page = chapter(whole=True, viewport={"width": 380, "height": 720}).page
    page.evaluate("MathJax.startup.promise")
    open_all(page)
    assert page.evaluate(OVER) <= 0
    for ex in page.locator(".exercise").all():
        ex.evaluate("""ex => { const { spec } = JSON.parse(ex.querySelector("script").textContent);
            const mistakes = [...spec.wrong ?? [], ...spec.options ?? []].map(o => o.feedback);
            const say = [spec.praise, spec.near, spec.far, ...mistakes];
            const box = ex.querySelector("[data-feedback]");
            box.innerHTML = say.map(s => `<p>${s}</p>`).join("");
            return MathJax.typesetPromise([box]); }""")
        assert page.evaluate(OVER) <= 0, ex.get_attribute("id")


# ---- claims ---------------------------------------------------------------
def test_claims_lead_to_the_ledger_and_back(visit, site):
    seen = visit(f"{site}/{ANGLES}", settle=False)
    page = seen.page
    page.locator("#claim-angles-range a[href*='ledger']").click()
    page.wait_for_url("**/ledger.html#claim-angles-range")
    assert page.locator("tr:target").get_attribute("id") == "claim-angles-range"
    page.locator("#claim-angles-range a[href*='01_angle_map']").click()
    page.wait_for_url("**/angles/01_angle_map.html#claim-angles-range")
    assert page.locator("tr:target").count() == 1
    assert not seen.problems(), seen.problems()


@pytest.mark.parametrize("name", [ANGLES, "chapters/ledger.html", "chapters/errata.html"])
def test_every_link_of_a_claims_table_arrives(book, name):
    source = (book / name).read_text()
    tables = "".join(re.findall(r'<div class="claims .*?</table>', source, re.S))
    links = {h for h in re.findall(r'<a href="([^"]+)"', tables) if not h.startswith("https://")}
    assert links
    for link in links:
        path, _, target = link.partition("#")
        page = ((book / name).parent / path).resolve()
        assert page.is_relative_to(book)
        assert page.exists(), link
        assert not target or f'id="{target}"' in page.read_text(), link


def test_on_a_phone_a_table_scrolls_in_its_own_box_by_keyboard(visit, site):
    page = visit(f"{site}/chapters/ledger.html", settle=False, viewport={"width": 380, "height": 720}).page
    table = page.get_by_role("region", name="Claims: The arc-cosine angle map")
    assert table.evaluate("e => e.scrollWidth > e.clientWidth")
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.claims').scrollLeft > 0")
    assert page.evaluate(OVER) <= 0


# ---- JupyterLab ---------------------------------------------------------------
NOTEBOOK = ["from ntklib import angle_map\nfrom ntklib.book import check, claims, exercise, progress\n"
            "progress('angles')", "exercise('angles.ex4')", "exercise('angles.ex5')",
            "check('angles.ex5', lambda theta, slope: theta)", "check('angles.ex5', angle_map)",
            "claims.table('angles')"]


def test_the_same_exercise_in_jupyterlab(visit, lab):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in NOTEBOOK])
    nb.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    seen = visit(f"{lab}/lab", settle=False, viewport={"width": 1400, "height": 4000})
    page = seen.page
    saved = page.evaluate("""async content => (await fetch("/api/contents/exercises.ipynb", { method: "PUT",
        headers: { "X-XSRFToken": document.cookie.match(/_xsrf=([^;]*)/)[1] },
        body: JSON.stringify({ type: "notebook", format: "json", content }) })).status""", nb)
    assert saved == 201
    page.goto(f"{lab}/lab/tree/exercises.ipynb?reset")
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth
    page.get_by_text("| Idle").wait_for(timeout=60000)

    def run(i, then):
        cell(i).locator(".jp-InputArea-editor").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_function(then, timeout=60000)
    run(0, "document.querySelector('.exercise-progress[data-ready]')")
    run(1, "document.querySelector('#ex-angles-ex4[data-ready]')")
    run(2, "document.querySelector('#ex-angles-ex5[data-ready]')")
    assert page.locator("#ex-angles-ex4").count() == 1          # the widget alone, no static copy beside it
    assert "Look again at C" in give(page, "angles.ex4", "C").inner_text()
    page.locator("#ex-angles-ex4 input").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")                        # JupyterLab would go to the next cell
    assert page.evaluate("document.activeElement.closest('#ex-angles-ex4') !== null")
    assert give(page, "angles.ex4", answer(EVERY["angles.ex4"])).inner_text().startswith("✓ Right.")
    assert count(page) == f"1 of {N}"
    run(3, "document.querySelector('.jp-Notebook').innerText.includes('✗ angles.ex5')")
    assert count(page) == f"1 of {N}"
    run(4, "document.querySelector('.jp-Notebook').innerText.includes('✓ angles.ex5')")
    page.wait_for_selector("#ex-angles-ex5[data-solved]")
    assert count(page) == f"2 of {N}"
    run(5, "document.querySelector('.claims')")
    assert not [c for c in seen.console if "ntk" in c.lower() or "uncaught" in c], seen.console
    page.locator("#claim-angles-range a[href*='ledger']").click()       # opens the notebook, and no dead page
    page.get_by_role("heading", name="The claims ledger").first.wait_for(timeout=60000)
    assert not seen.external, seen.external
