"""Each explorable in a real browser: what a reader's hand does, and that the page shows what `compute` returns."""

import json
import random
import re
from functools import cache

import nbformat
import pytest
from conftest import Visit

from ntklib.book.explorables import registry
from ntklib.book.tables import plain

pytestmark = pytest.mark.browser
REGISTRY = registry()
SPOTS = {id: (figure.__module__.rpartition(".")[2], id) for id, figure in REGISTRY.items()}       # id: (chapter, id)


@cache
def explorable(id):
    """Each explorable, made once."""
    return REGISTRY[id]()


@pytest.fixture(scope="module")
def home(book):
    """The page on which each explorable stands."""
    pages = {p.relative_to(book).as_posix(): p.read_text() for p in book.rglob("*.html") if "_static" not in p.parts}
    return {
        id: next((name for name, text in pages.items() if f'<figure class="explorable" id="{id}"' in text), None)
        for id in REGISTRY
    }


@pytest.fixture
def at(visit, site, home):
    """`at(id, query)` opens the page of an explorable and waits for it: the visit, and its figure."""

    def go(id, query="", **options):
        assert home[id], f"no page shows {id}"
        seen = visit(f"{site}/{home[id]}#{id}{query}", settle=False, **options)
        figure = seen.page.locator(f"figure#{id}")
        figure.scroll_into_view_if_needed()
        seen.page.wait_for_selector(f"figure#{id}[data-ready='1']")
        return seen, figure

    return go


@pytest.fixture(scope="module")
def opened(browser, site, home):
    """`opened(page)` is a visit to that page of the book, which stays open until another one is asked for."""
    visits = {}

    def go(name):
        if name not in visits:
            close()
            visits[name] = Visit(browser, f"{site}/{name}", settle=False)
        return visits[name]

    def close():
        for seen in visits.values():
            seen.context.close()
        visits.clear()

    yield go
    close()


@pytest.fixture(scope="module", params=SPOTS.values(), ids=SPOTS)
def spot(request):
    """Chapter and id of every figure in turn; the tests of one figure follow each other on one open page."""
    return request.param


@pytest.fixture
def on_page(spot, home, opened):
    """The explorable, the visit to its page, and its figure as a reader finds it: no guess, default state, light, on a desk."""
    _, id = spot
    e = explorable(id)
    assert home[id], f"no page shows {id}"
    seen = opened(home[id])
    seen.page.set_viewport_size({"width": 1280, "height": 800})
    seen.page.evaluate("() => { localStorage.clear(); document.documentElement.dataset.theme = 'light'; }")
    figure = seen.page.locator(f"figure#{id}")
    figure.scroll_into_view_if_needed()
    seen.page.wait_for_selector(f"figure#{id}[data-ready='1']")
    if e.predict and not figure.locator("[data-reveal]").is_enabled():
        figure.locator("[data-again]").click()
    figure.locator("[data-reset]").click()
    shows(figure, expected(e, e.default, figure))
    return e, seen, figure


def state(figure):
    return json.loads(figure.get_attribute("data-state"))


def shows(figure, text):
    """The readout, once the frame that it belongs to has been painted."""
    figure.page.wait_for_function(
        "([id, text]) => document.querySelector(`#${id} [data-readout]`).textContent === text",
        arg=[figure.get_attribute("id"), text],
        timeout=15000,
    )


def expected(e, s, figure):
    return e.text(s, hidden=bool(e.predict) and figure.locator("[data-reveal]").is_enabled())


def test_keyboard_mouse_presets_reset_and_link(on_page):
    e, seen, figure = on_page
    assert state(figure) == e.default
    for c in e.controls:
        field = figure.locator(f"[data-control='{c.name}']")
        assert figure.locator(f"label[for='{field.get_attribute('id')}']").inner_text().strip()
        before = state(figure)
        field.focus()
        seen.page.keyboard.press("ArrowLeft" if state(figure)[c.name] == c.values[-1] else "ArrowRight")
        after = state(figure)
        assert after[c.name] != before[c.name], f"{c.name} is dead to the keyboard"
        assert {k: v for k, v in after.items() if k != c.name} == {k: v for k, v in before.items() if k != c.name}
        shows(figure, expected(e, after, figure))
        if field.get_attribute("type") == "range":
            box = field.bounding_box()
            seen.page.mouse.click(box["x"] + box["width"] * 0.93, box["y"] + box["height"] / 2)
            assert state(figure)[c.name] in c.values[-max(2, len(c.values) // 5) :], f"{c.name} is dead to the mouse"
            shows(figure, expected(e, state(figure), figure))
    for name, preset in e.presets.items():
        figure.locator(f"[data-preset={json.dumps(name, ensure_ascii=False)}]").click()
        assert state(figure) == preset
        shows(figure, expected(e, preset, figure))
    in_link = "([id, s]) => location.hash === `#${id}?${new URLSearchParams(s)}`"
    seen.page.wait_for_function(in_link, arg=[e.id, state(figure)])
    figure.locator("[data-reset]").click()
    assert state(figure) == e.default
    seen.page.wait_for_function(in_link, arg=[e.id, e.default])
    assert not seen.problems(), seen.problems()


def test_a_link_opens_its_state_and_the_page_shows_what_compute_returns(on_page):
    e, seen, figure = on_page
    rng = random.Random(e.id)
    for k in range(8):
        wanted = {c.name: rng.choice(c.values) for c in e.controls}
        shown = {"answer": "shown"} if e.predict and k >= 4 else {}     # else a link leaves the question open
        seen.page.evaluate(
            """([id, state]) => { location.hash = `#${id}?` + new URLSearchParams(state); }""", [e.id, wanted | shown]
        )
        seen.page.wait_for_function(
            "([id, s]) => document.querySelector(`#${id}`).dataset.state === JSON.stringify(s)", arg=[e.id, wanted]
        )
        shows(figure, e.text(wanted, hidden=bool(e.predict) and not shown))
    assert not seen.problems(), seen.problems()


def test_a_reload_and_a_copied_link_keep_a_question_open(at):
    seen, figure = at("predict-fifty-layers")
    e = explorable("predict-fifty-layers")
    figure.locator("input[type=range]").first.focus()
    for opened in (False, True):
        seen.page.keyboard.press("ArrowRight")
        seen.page.wait_for_timeout(600)
        figure.locator("[data-link]").click()
        seen.page.wait_for_timeout(100)
        assert ("answer=shown" in seen.page.url) is opened
        seen.page.reload()
        seen.page.wait_for_selector(f"figure#{e.id}[data-ready='1']")
        assert figure.locator("[data-reveal]").is_enabled() is not opened
        shows(figure, e.text(state(figure), hidden=not opened))
        if not opened:
            figure.locator("[data-reveal]").click()
            figure.locator("input[type=range]").first.focus()


TWIN = """async ([id, states]) => {
    const { twin } = JSON.parse(document.querySelector(`#${id} script[type='application/json']`).textContent);
    const module = await import(URL.createObjectURL(new Blob([NTK_ESM[twin.module]], { type: "text/javascript" })));
    return states.map(s => module[twin.function](s, twin.given));
}"""


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == pytest.approx(b, rel=1e-6, abs=1e-9) if isinstance(a, int | float) and isinstance(b, int | float) else a == b


def test_a_twin_returns_what_compute_returns(at, home):
    """Where the states are too many for a table, the page computes as Python does: in random states."""
    for e in [e for e in map(explorable, REGISTRY) if e.twin and home[e.id]]:
        seen, rng = at(e.id)[0], random.Random(e.id)
        states = [e.default, *e.presets.values(), *({c.name: rng.choice(c.values) for c in e.controls} for _ in range(100))]
        for s, got in zip(states, seen.page.evaluate(TWIN, [e.id, states]), strict=True):
            want = plain(e.run(s))
            assert got.keys() == want.keys(), s
            odd = [name for name in want if not same(got[name], want[name])]
            assert not odd, (e.id, s, odd, [(got[n], want[n]) for n in odd[:1]])


PAINTED = """id => [...document.querySelectorAll(`#${id} canvas`)].map(c => {
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    const seen = {};
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200) { const k = d[i] + "," + d[i + 1] + "," + d[i + 2]; seen[k] = (seen[k] ?? 0) + 1; }
    return Object.keys(seen).filter(k => seen[k] > 15);
})"""


def test_it_is_painted_and_follows_theme_and_width(on_page):
    e, seen, figure = on_page
    id = e.id
    if e.predict:
        figure.locator("[data-reveal]").click()  # so that nothing is hidden

    def painted(mode, other=None):
        """The colours of each view once the theme is `mode`."""
        seen.page.evaluate("mode => { document.documentElement.dataset.theme = mode; }", mode)
        for _ in range(100):
            colours = seen.page.evaluate(PAINTED, id)
            if (
                len(colours) == len(e.charts)
                and all(len(c) >= 3 for c in colours)
                and (other is None or all(set(a) != set(b) for a, b in zip(colours, other, strict=True)))
            ):
                return colours
            seen.page.wait_for_timeout(100)
        pytest.fail(f"{mode}: {colours}")

    painted("dark", painted("light"))
    for width in (380, 1920):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.wait_for_function(
            """id => [...document.querySelectorAll(`#${id} .ex-plot`)].every(plot =>
            Math.abs(plot.clientWidth - plot.querySelector("canvas").clientWidth) < 3)""",
            arg=id,
        )
    assert not seen.problems(), seen.problems()


STOPWATCH = """id => {
    const times = window.times = [];
    document.querySelector(`#${id} input[type=range]`).addEventListener("input", event => requestAnimationFrame(() => {
        const painted = new MessageChannel();
        painted.port1.onmessage = () => times.push(performance.now() - event.timeStamp);
        painted.port2.postMessage(0);
    }));
}"""


def latency(seen, figure, rounds, enough):
    """Median milliseconds from a key press on the first slider to after the paint: the best of some rounds of 30 presses."""
    seen.page.evaluate(STOPWATCH, figure.get_attribute("id"))
    figure.locator("input[type=range]").first.focus()
    medians = []
    while not medians or (min(medians) >= enough and len(medians) < rounds):
        seen.page.evaluate("times.length = 0")
        for k in range(30):
            seen.page.keyboard.press("ArrowRight" if k // 5 % 2 else "ArrowLeft")
            seen.page.wait_for_timeout(15 + 7 * k % 16)  # at every phase of the display's refresh
        medians.append(seen.page.evaluate("times.sort((a, b) => a - b)[times.length >> 1]"))
    return min(medians)


@pytest.mark.slow
def test_a_moved_slider_is_painted_within_a_frame(on_page, record_property):
    """The book's promise, 16 ms: it needs a machine that does nothing else, so `make bench` keeps it."""
    e, seen, figure = on_page
    ms = latency(seen, figure, rounds=5, enough=16)
    record_property("latency_ms", round(ms, 1))
    print(f"{e.id}: {ms:.1f} ms")
    assert ms < 16


def test_a_moved_slider_is_never_sluggish(on_page):
    """Beside the other worker of `make test`, which has one of two cores: within 100 ms, the limit of what feels immediate."""
    assert latency(*on_page[1:], rounds=5, enough=100) < 100


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?theta=93&depth=1", "theta=93, shown at 90"),
        ("?theta=abc", "theta=abc"),
        ("?theta=", "theta="),
        ("?nonsense=1", "nonsense=1"),
    ],
)
def test_a_link_to_no_state_is_told(query, says, at):
    _, figure = at("two-fates", query)
    figure.page.wait_for_function(
        "text => document.querySelector('#two-fates [data-readout]').textContent.includes(text)", arg=says
    )


def test_a_prediction_is_kept_and_the_verdict_speaks_of_its_own_question(at):
    e = explorable("predict-one-layer")
    seen, figure = at(e.id)
    answer = e.run(e.default)["scalar"]["after"][0]
    text = seen.page.evaluate(
        "() => document.querySelector('#predict-one-layer').innerText + document.querySelector('#predict-one-layer .ex-plots').ariaLabel"
    )
    assert f"{answer:.1f}" not in text
    figure.locator("[data-guess]").fill("80")
    figure.locator("[data-control='theta']").focus()
    seen.page.keyboard.press("ArrowRight")  # the slider moves before the reveal ...
    seen.page.reload()
    seen.page.wait_for_selector(f"figure#{e.id}[data-ready='1']")
    assert figure.locator("[data-guess]").input_value() == "80"
    figure.locator("[data-reveal]").click()
    assert state(figure) == e.default  # ... which returns to the question's own state
    verdict = figure.locator("[data-verdict]")
    assert verdict.inner_text() == f"You guessed 80°; it is {answer:.1f}°: off by {80 - answer:.2f}°."
    figure.locator("[data-preset='Opposite']").click()
    shows(figure, e.text(e.presets["Opposite"]))
    assert f"{answer:.1f}" in verdict.inner_text()
    figure.locator("[data-again]").click()
    assert verdict.inner_text() == ""
    shows(figure, e.text(e.presets["Opposite"], hidden=True))
    assert not seen.problems(), seen.problems()


def box_of(plot):
    plot.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
    return plot.bounding_box()


def test_a_moved_control_leaves_the_chart_its_size(on_page):
    """A control may bear any name, `width` too, which is also the name of a Vega signal."""
    _, seen, figure = on_page
    for preset in figure.locator("[data-preset]").all():
        preset.click()
        seen.page.wait_for_timeout(100)
        for plot in figure.locator(".ex-plot").all():
            size = plot.evaluate("p => [p.clientWidth, p.querySelector('canvas').clientWidth, p.clientHeight, p.querySelector('canvas').clientHeight]")
            assert abs(size[0] - size[1]) < 3, size
            assert abs(size[2] - size[3]) < 3, size


CUT = """figure => [...figure.querySelectorAll(".ex-control output, .ex-readout, .ex-code")]
    .filter(box => box.scrollHeight > box.clientHeight + 1 || !box.matches(".ex-code") && box.scrollWidth > box.clientWidth + 1)
    .map(box => [box.textContent, box.scrollWidth, box.clientWidth, box.scrollHeight, box.clientHeight])"""


@pytest.mark.parametrize("width", [1280, 380])
def test_no_word_is_cut_off(on_page, width):
    """The words lie in boxes of a fixed size, which must hold the longest of them."""
    _, seen, figure = on_page
    seen.page.set_viewport_size({"width": width, "height": 800})
    seen.page.wait_for_timeout(100)
    for button in [*figure.locator("[data-preset]").all(), figure.locator("[data-reset]")]:
        button.click()
        assert not figure.evaluate(CUT)


@pytest.mark.parametrize("hash", ["%E0%A4%A", "%", "two-fates?theta=1e999", "two-fates?__proto__=1", "unknown?x=1", "two-fates?"])
def test_a_broken_link_breaks_nothing(hash, visit, site, home):
    seen = visit(f"{site}/{home['two-fates']}#{hash}", settle=False)
    seen.page.wait_for_selector("figure#two-fates[data-ready='1']", state="attached")
    assert state(seen.page.locator("figure#two-fates")) == explorable("two-fates").default
    assert not seen.problems(), seen.problems()


def test_junk_reveals_no_answer(at):
    seen, figure = at("predict-one-layer", "?junk=1")
    assert figure.locator("[data-reveal]").is_enabled()
    seen.page.evaluate("localStorage.setItem('ntk-guess:predict-one-layer', '{\"open\":\"no\",\"value\":\"x\"}')")
    seen.page.reload()
    seen.page.wait_for_selector("figure#predict-one-layer[data-ready='1']")
    assert figure.locator("[data-reveal]").is_enabled()
    figure.locator("[data-guess]").fill("9999")
    assert figure.locator("[data-verdict]").inner_text()                # the browser's own words on the range
    figure.locator("[data-guess]").fill("60")
    figure.locator("[data-guess]").press("Enter")
    assert "You guessed 60°" in figure.locator("[data-verdict]").inner_text()


def test_a_drag_moves_the_guess_and_a_mark_moves_its_slider(at):
    seen, figure = at("predict-one-layer")
    plot = box_of(figure.locator(".ex-plot"))
    seen.page.mouse.move(plot["x"] + 200, plot["y"] + 60)
    seen.page.mouse.down()
    seen.page.mouse.move(plot["x"] + 210, plot["y"] + 120)
    seen.page.mouse.up()
    assert 60 < float(figure.locator("[data-guess]").input_value()) < 150
    seen, figure = at("hidden-units")
    plot = box_of(figure.locator(".ex-plot").first)
    centre = plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2
    seen.page.mouse.move(centre[0], centre[1] - 60)
    seen.page.mouse.down()
    seen.page.mouse.move(centre[0] - 60, centre[1] + 25)
    seen.page.mouse.up()
    assert state(figure)["theta"] > 120


def mark_of(figure, x, y):
    """Where on the screen a point of the plane stands that `figures.plane` draws in the first view."""
    plot = box_of(figure.locator(".ex-plot").first)
    width, height, top = plot["width"] - 10, plot["height"] - 36, 31          # inside the padding and below the title
    r = min(width, height) / 2.5
    return plot["x"] + 5 + width / 2 + r * x, plot["y"] + top + height / 2 - r * y


def test_the_nearest_of_many_points_is_dragged(at):
    seen, figure = at("circle-points")
    before = state(figure)
    seen.page.mouse.move(*mark_of(figure, 0.2, 0.95))                          # by x₃, at 80°
    seen.page.mouse.down()
    seen.page.mouse.move(*mark_of(figure, 0, 0.9))
    seen.page.mouse.move(*mark_of(figure, -0.9, -0.01))
    seen.page.mouse.up()
    after = state(figure)
    assert abs(after["p3"] - 180) < 10
    assert {**after, "p3": before["p3"]} == before
    shows(figure, explorable("circle-points").text(after))
    seen, figure = at("sphere-points")
    before = state(figure)
    seen.page.mouse.move(*mark_of(figure, 0.5, -0.5))                          # by x₃
    seen.page.mouse.down()
    seen.page.mouse.move(*mark_of(figure, 0, 0))
    seen.page.mouse.up()
    after = state(figure)
    assert abs(after["lon3"]) < 10
    assert abs(after["lat3"]) < 10
    assert {**after, "lon3": before["lon3"], "lat3": before["lat3"]} == before
    assert not seen.problems(), seen.problems()


def test_a_finger_on_a_point_moves_it_and_beside_the_points_scrolls(at):
    seen, figure = at("sphere-points", viewport={"width": 380, "height": 720}, has_touch=True)
    finger = seen.context.new_cdp_session(seen.page)

    def swipe(x, y, up):
        for k in range(9):
            kind = "touchStart" if k == 0 else "touchMove"
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y - up * k / 8}]})
            seen.page.wait_for_timeout(20)
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        seen.page.wait_for_timeout(150)

    at_x3, beside = mark_of(figure, 0.46, -0.56), mark_of(figure, 0.1, 0.6)
    top, before = seen.page.evaluate("scrollY"), state(figure)
    swipe(*at_x3, 60)
    assert state(figure)["lat3"] > before["lat3"] + 15
    assert seen.page.evaluate("scrollY") == top
    moved = state(figure)
    swipe(*beside, 60)
    assert state(figure) == moved
    assert seen.page.evaluate("scrollY") > top + 20


def test_print_shows_the_default_state_without_controls(at):
    seen, figure = at("two-fates", "?theta=90&depth=3")
    seen.page.emulate_media(media="print")
    assert figure.locator(".ex-still").first.is_visible()
    assert not figure.locator(".ex-canvas").first.is_visible()
    assert not figure.locator("[data-control='theta']").is_visible()


def test_full_screen_enlarges_the_text(at):
    seen, figure = at("two-fates")
    button = figure.locator("[data-fullscreen]")
    button.click()
    seen.page.wait_for_function("document.fullscreenElement?.id === 'two-fates'")
    assert button.inner_text() == "Leave full screen"
    seen.page.wait_for_function("document.querySelector('#two-fates canvas').clientHeight > 350")
    button.click()
    seen.page.wait_for_function("document.fullscreenElement === null")


def test_full_screen_cuts_nothing_on_a_phone(at):
    """Three plots and much text: they scroll, below each other, and the words keep their height."""
    seen, figure = at("worst-step")
    figure.locator("[data-fullscreen]").click()
    seen.page.wait_for_function("document.fullscreenElement?.id === 'worst-step'")
    seen.page.set_viewport_size({"width": 380, "height": 740})
    seen.page.wait_for_timeout(600)
    assert not figure.evaluate(CUT)
    lowest = max(box["y"] + box["height"] for box in (plot.bounding_box() for plot in figure.locator(".ex-plot").all()))
    assert lowest < figure.locator("[data-readout]").bounding_box()["y"]


def test_large_letters_cut_nothing(at):
    """A reader's own letter size, twice the usual, on a desk and on a phone."""
    seen, figure = at("one-network")
    seen.page.add_style_tag(content="html { font-size: 32px !important; }")
    for width in (1280, 380):
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.wait_for_timeout(600)
        assert not figure.evaluate(CUT)
        edge = figure.bounding_box()["x"] + figure.bounding_box()["width"]
        for output in figure.locator(".ex-control output").all():
            box = output.bounding_box()
            assert box["x"] + box["width"] <= edge


def test_without_a_kernels_answer_and_storage_it_still_works(at):
    seen, figure = at("predict-one-layer")
    seen.page.evaluate("Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })")
    figure.locator("[data-guess]").fill("70")
    figure.locator("[data-reveal]").click()
    assert "You guessed 70°" in figure.locator("[data-verdict]").inner_text()
    assert not seen.problems(), seen.problems()


# ---- JupyterLab --------------------------------------------------------------------------------------------------
NOTEBOOK = [
    "from ntklib.book.explorables import intro, angles\nfig = intro.two_fates_figure()\nfig",
    "print('STATE', repr(fig.state), fig.text(fig.state))",
    "fig.state = {'theta': 1, 'depth': 3}",
    "guess = angles.one_layer_figure()\nguess",
]


def test_a_round_trip_in_jupyterlab(visit, lab):
    """The slider asks the kernel, the kernel's state follows, a state set in Python moves the slider, and nothing is logged."""
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in NOTEBOOK])
    nb.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    seen = visit(f"{lab}/lab", settle=False, viewport={"width": 1400, "height": 2400})
    page = seen.page
    saved = page.evaluate(
        """async content => (await fetch("/api/contents/trip.ipynb", { method: "PUT",
        headers: { "X-XSRFToken": document.cookie.match(/_xsrf=([^;]*)/)[1] },
        body: JSON.stringify({ type: "notebook", format: "json", content }) })).status""",
        nb,
    )
    assert saved == 201
    page.goto(f"{lab}/lab/tree/trip.ipynb?reset")
    cell = page.locator(".jp-Notebook .jp-CodeCell").nth
    page.get_by_text("| Idle").wait_for(timeout=60000)

    def run(i):
        cell(i).locator(".jp-InputArea-editor").click()
        page.keyboard.press("Control+Enter")

    run(0)
    page.wait_for_selector("figure#two-fates[data-ready='1']", timeout=60000)
    figure = page.locator("figure#two-fates")
    e = explorable("two-fates")
    assert figure.count() == 1  # the widget alone, no static copy beside it
    shows(figure, e.text())
    figure.locator("[data-control='depth']").focus()
    page.keyboard.press("ArrowRight")
    shows(figure, e.text({"depth": 11}))
    run(1)
    page.wait_for_function("document.querySelector('.jp-Notebook')?.innerText.includes('STATE {')")
    assert "'depth': 11" in cell(1).inner_text()
    run(2)
    shows(figure, e.text({"theta": 1, "depth": 3}))
    assert figure.locator("[data-control='depth']").input_value() == "3"
    run(3)
    page.wait_for_selector("figure#predict-one-layer[data-ready='1']", timeout=60000)
    page.locator("figure#predict-one-layer [data-guess]").fill("75")
    page.locator("figure#predict-one-layer [data-reveal]").click()
    assert re.match(
        "You guessed 75°; it is 71.4°", page.locator("figure#predict-one-layer [data-verdict]").inner_text()
    )
    assert not seen.external, seen.external
    assert not [c for c in seen.console if "ntk" in c.lower() or "uncaught" in c], seen.console
