"""Labs: an experiment in a kernel, with Run, Stop and progress; on a page, its recorded runs."""
import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor

import altair as alt
import pytest
import torch

from ntklib.book import lab as labs
from ntklib.book import records
from ntklib.book.controls import Choice, Slider
from ntklib.book.explorable import Explorable
from ntklib.book.lab import Lab, devices, make_record, recorded


def halves(base, *, steps=4, device="cpu"):
    """An experiment: base, base/2, base/4, .."""
    y = torch.full((steps + 1,), torch.nan, dtype=torch.float64, device=device)
    for k in range(steps + 1):
        y[k] = base / 2**k
        yield k / steps, {"path": {"k": range(steps + 1), "y": y.clone()}, "last": y[k]}


def kept(base):
    """What a page shows of it."""
    ((_, found),) = [pair for pair in halves(base) if pair[0] == 1]
    return found


def make(run=halves, **kw):
    line = alt.Chart(alt.NamedData("path")).mark_line().encode(x="k:Q", y="y:Q")
    figure = Explorable(kept, line, [Slider("base", [1, 2, 3], 2, "base")], id="trial", title="T", alt="A", caption="c", readout="{base} ends at {last:.3f}")
    lab = Lab(figure, run, **kw)
    lab.sent = []
    figure.send = lambda content, buffers=None: lab.sent.append(content)
    return lab


def alone(coroutine):
    """asyncio.run in a thread of its own: the tests' browser keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_a_run_shows_what_it_finds_and_ends():
    lab = make()
    lab.figure.state = {"base": 3}
    lab.sent.clear()
    found = alone(lab.go())
    assert found["last"] == 3 / 16
    assert lab.sent[-1]["state"] == {"base": 3}
    assert lab.sent[-1]["tables"]["path"]["y"] == [3, 1.5, 0.75, 0.375, 0.1875]
    assert lab.progress.value == 1
    assert re.fullmatch(r"Done: \d+\.\d s on CPU \(\w+\)\.", lab.status.value)
    assert [lab.run_button.disabled, lab.stop_button.disabled] == [False, True]


def test_stop_keeps_what_was_found():
    lab = make(own=[Slider("steps", [4, 400], 400, "steps")])
    seen = []

    async def press():
        lab.start()
        while lab.progress.value < 0.05:
            await asyncio.sleep(0)
        seen.append((lab.run_button.disabled, lab.stop_button.disabled, lab.status.value))
        lab.stop_button.click()
        await lab._task

    alone(press())
    assert seen[0][:2] == (True, False)
    assert seen[0][2].startswith("Running on CPU")
    assert 0.05 <= lab.progress.value < 1
    assert re.match(r"Stopped at \d+%: ", lab.status.value)
    y = lab.sent[-1]["tables"]["path"]["y"]
    assert y[0] == 2
    assert y[-1] is None                                # not reached
    assert [lab.run_button.disabled, lab.stop_button.disabled] == [False, True]


def test_another_state_ends_the_run_and_is_not_painted_over():
    lab = make(own=[Slider("steps", [4, 400], 400, "steps")])

    async def move():
        lab.start()
        while lab.progress.value < 0.05:
            await asyncio.sleep(0)
        lab.figure.state = {"base": 1}
        await lab._task

    alone(move())
    assert lab.progress.value < 1
    assert lab.sent[-1]["state"] == {"base": 1}
    assert lab.status.value.startswith("Stopped")
    lab.figure.state = {"base": 2}
    assert lab.status.value == labs.RECORDED


def test_one_run_at_a_time():
    lab = make(own=[Slider("steps", [4, 400], 400, "steps")])

    async def twice():
        lab.start()
        await asyncio.sleep(0)
        assert await lab.go() is None
        lab.stop()
        await lab._task

    alone(twice())


def test_an_error_is_said_and_leaves_the_lab_usable():
    def fails(base, *, device):
        yield 0.5, kept(base)
        raise ArithmeticError("the loss <diverged>")

    lab = make(fails)
    with pytest.raises(ArithmeticError):
        alone(lab.go())
    assert lab.status.value == "ArithmeticError: the loss &lt;diverged>"
    assert [lab.run_button.disabled, lab.stop_button.disabled] == [False, True]


def test_own_controls_reach_the_run_and_must_be_its_own():
    got = {}

    def run(base, *, steps, kind, device):
        got.update(base=base, steps=steps, kind=kind, device=device)
        yield 1.0, kept(base)

    lab = make(run, own=[Slider("steps", [4, 8], 4, "steps"), Choice("kind", {"a": "A", "b": "B"}, "a", "kind")])
    lab.own["steps"][1].value, lab.own["kind"][1].value = 8, "b"
    alone(lab.go())
    assert got == {"base": 2, "steps": 8, "kind": "b", "device": "cpu"}
    with pytest.raises(ValueError, match="base"):
        make(own=[Slider("base", [1, 2], 1, "base")])


def test_the_device_is_named():
    assert "cpu" in devices().values()
    assert re.fullmatch(r"CPU \(\w+\)", list(devices())[-1])
    assert make().device.value == next(iter(devices().values()))


def test_a_page_shows_the_figure_and_jupyter_the_lab(monkeypatch):
    lab = make()
    assert repr(lab) == "Lab(trial)"
    live = lab._repr_mimebundle_()
    assert live["text/plain"] == "Lab(trial)"
    assert live["application/vnd.jupyter.widget-view+json"]["model_id"] == lab.model_id
    monkeypatch.setenv("NTKLIB_STATIC", "1")
    page = lab._repr_mimebundle_()
    page = page[0] if isinstance(page, tuple) else page
    assert '<figure class="explorable" id="trial"' in page["text/html"]
    assert "data-table" in page["text/html"]


def test_a_record_holds_every_state_and_reads_back(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    monkeypatch.setattr(records, "commit", lambda code=(): "abc1234")
    grid = [{"base": 1}, {"base": 3}]
    path = make_record("trial", grid, halves, command="python -m trial", dtype="float64", tell=lambda line: None)
    labs._record.cache_clear()
    assert recorded("trial", {"base": 3})["path"]["y"] == [3, 1.5, 0.75, 0.375, 0.1875]
    assert recorded("trial", {"base": 3})["last"] == 0.1875
    assert json.loads(path.read_text())["command"] == "python -m trial"
    with pytest.raises(KeyError, match="no run with"):
        recorded("trial", {"base": 2})
    labs._record.cache_clear()


def test_what_was_not_reached_reads_back_as_no_number(tmp_path, monkeypatch):
    def short(base, *, device):
        yield 1.0, {"path": {"k": [0, 1], "y": [1.0, float("nan")]}, "word": "so far"}

    monkeypatch.setattr(records, "FOLDER", tmp_path)
    monkeypatch.setattr(records, "commit", lambda code=(): "")
    make_record("short", [{"base": 1}], short, command="python -m trial", dtype="float64", tell=lambda line: None)
    found = recorded("short", {"base": 1})
    assert found["word"] == "so far"
    assert found["path"]["y"][1] != found["path"]["y"][1]
    labs._record.cache_clear()


@pytest.mark.browser
def test_run_and_stop_in_jupyterlab(visit, lab):
    """A lab of two seconds in a live kernel: Run, a moving bar, Stop; then a run to its end, painted in the figure."""
    import nbformat

    source = """
import time, altair as alt
from ntklib.book.controls import Slider
from ntklib.book.explorable import Explorable
from ntklib.book.lab import Lab
def run(base, *, steps=60, device="cpu"):
    for k in range(steps + 1):
        time.sleep(0.03)
        yield k / steps, {"path": {"k": [0, 1], "y": [0, base * k / steps]}, "last": base * k / steps}
line = alt.Chart(alt.NamedData("path")).mark_line().encode(x="k:Q", y="y:Q")
Lab(Explorable(lambda base: {"path": {"k": [0, 1], "y": [0, 0]}, "last": 0.0}, line, [Slider("base", [1, 2, 3], 2, "base")],
    id="trial", title="T", alt="A", caption="c", readout="base {base} ends at {last:.2f}"), run)
"""
    seen = visit(f"{lab}/lab", settle=False, viewport={"width": 1400, "height": 2400})
    page = seen.page
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    saved = page.evaluate(
        """async content => (await fetch("/api/contents/labtrial.ipynb", { method: "PUT",
        headers: { "X-XSRFToken": document.cookie.match(/_xsrf=([^;]*)/)[1] },
        body: JSON.stringify({ type: "notebook", format: "json", content }) })).status""",
        notebook,
    )
    assert saved == 201
    page.goto(f"{lab}/lab/tree/labtrial.ipynb?reset")
    page.get_by_text("| Idle").wait_for(timeout=60000)
    page.locator(".jp-Notebook .jp-CodeCell .jp-InputArea-editor").first.click()
    page.keyboard.press("Control+Enter")
    figure = page.locator("figure#trial")
    page.wait_for_selector("figure#trial[data-ready='1']", timeout=60000)
    run, stop, status = page.get_by_role("button", name="Run", exact=True), page.get_by_role("button", name="Stop", exact=True), page.locator(".lab-status")
    readout = figure.locator("[data-readout]")
    assert readout.inner_text() == "base 2 ends at 0.00"
    run.last.click()
    page.wait_for_function("() => document.querySelector('.lab-status').textContent.includes('Running on CPU')", timeout=15000)
    page.wait_for_function("() => !document.querySelector('#trial [data-readout]').textContent.endsWith('0.00')", timeout=15000)
    stop.last.click()
    page.wait_for_function("() => /Stopped at \\d+%/.test(document.querySelector('.lab-status').textContent)", timeout=15000)
    assert readout.inner_text() != "base 2 ends at 2.00"
    run.last.click()
    page.wait_for_function("() => document.querySelector('.lab-status').textContent.startsWith('Done')", timeout=30000)
    page.wait_for_function("() => document.querySelector('#trial [data-readout]').textContent === 'base 2 ends at 2.00'", timeout=15000)
    assert status.inner_text().startswith("Done")
