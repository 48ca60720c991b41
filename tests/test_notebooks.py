"""The notebooks as files, and the tool that puts them in order.

nbval runs their cells and compares the outputs that they keep; here the whole file is held to what a run
gives.
"""
import json

import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from ntklib.book.normalize import main, normalize

NOTEBOOKS = sorted(p for p in (ROOT / "chapters").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT)))


@every_notebook
def test_a_notebook_is_committed_in_normal_form(path):
    text = path.read_text("utf8")
    assert normalize(text) == text, f"run `python -m ntklib.book.normalize {path.relative_to(ROOT)}`"


@every_notebook
def test_a_run_gives_the_committed_file(book, path):
    """Also where a stored output was lost: nbval passes a cell without one, having compared nothing."""
    executed = book.parent / "jupyter_execute" / path.relative_to(ROOT)
    if not executed.exists():
        pytest.skip("not a page of the book yet")
    assert normalize(executed.read_text("utf8")) == path.read_text("utf8")


def test_the_introduction_lists_every_chapter():
    toc, intro = (ROOT / "_toc.yml").read_text(), (ROOT / "chapters" / "intro.ipynb").read_text()
    chapters = [line.split("chapters/")[1].strip() for line in toc.splitlines() if "file:" in line]
    assert len(chapters) > 4
    missing = [c for c in chapters if f"]({c})" not in intro]
    assert not missing, f"not in the introduction's table: {missing}"


# ---- the tool ------------------------------------------------------------------------------------
def stdout(text="1\n"):
    return new_output("stream", name="stdout", text=text)


def result(text="2", n=7):
    return new_output("execute_result", {"text/plain": text}, execution_count=n, metadata={"x": 1})


def code(source, *outputs, n=7, **kw):
    return new_code_cell(source, outputs=list(outputs), execution_count=n, **kw)


def notebook(*cells):
    other = {"widgets": {"state": {}}, "kernelspec": {"name": "odd", "display_name": "odd"}}
    return nbformat.writes(new_notebook(cells=list(cells), metadata=other))


def normal_cells(text):
    return nbformat.reads(normalize(text), as_version=4).cells


def test_short_text_stays_and_is_numbered():
    text = notebook(new_markdown_cell("#"), code("print(1)", stdout()), code("x = 1"), code("2", result()))
    cells = normal_cells(text)
    assert [c.get("execution_count") for c in cells] == [None, 1, None, 2]
    assert cells[3].outputs[0].execution_count == 2
    assert not cells[3].outputs[0].metadata
    assert "odd" not in normalize(text)


@pytest.mark.parametrize("output", [
    new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}),
    new_output("display_data", {"text/html": "<b>1</b>", "text/plain": "1"}),
    new_output("stream", name="stderr", text="careful\n"),
    new_output("error", ename="E", evalue="e", traceback=[]),
    result("<object at 0x7f00deadbeef>"),
    result("long " * 1000),
], ids=["picture", "html", "stderr", "error", "address", "long"])
def test_what_the_next_run_would_not_repeat_goes(output):
    cell, = normal_cells(notebook(code("f()", result(), output)))
    assert cell.outputs == []
    assert cell.execution_count is None


def test_a_stream_that_came_in_pieces_is_one():
    """A kernel sends what a cell prints whenever it finds the time."""
    pieces = notebook(code("f()", stdout("1\n"), stdout("2\n"), result(), stdout("3\n"), id="a"))
    whole = notebook(code("f()", stdout("1\n2\n"), result(), stdout("3\n"), id="a"))
    assert normalize(pieces) == normalize(whole)
    assert [o.get("text") for o in normal_cells(pieces)[0].outputs] == ["1\n2\n", None, "3\n"]


@pytest.mark.parametrize("tag", ["nbval-ignore-output", "nbval-skip"])
def test_an_author_can_ask_for_no_comparison(tag):
    cell, = normal_cells(notebook(code("time()", result(), metadata={"tags": [tag], "scrolled": True})))
    assert cell.outputs == []
    assert cell.metadata == {"tags": [tag]}


def test_ids_stay_and_are_made_where_they_lack():
    raw = json.loads(notebook(new_markdown_cell("a", id="mine"), new_markdown_cell("b"), code("c")))
    raw["cells"][1]["id"] = "mine"
    del raw["cells"][2]["id"]
    assert [c.id for c in normal_cells(json.dumps(raw))] == ["mine", "cell-00", "cell-01"]


def test_a_second_pass_changes_nothing():
    once = normalize(notebook(code("1 + 1", result()), code("2")))
    assert normalize(once) == once


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", '{"cells": [{"cell_type": "odd"}]}'])
def test_other_files_are_refused(text):
    with pytest.raises(ValueError, match="not a notebook"):
        normalize(text)


def test_the_command_checks_mends_and_runs(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(code("1 + 1", result("3"))))
    assert main(["--check", str(path)]) == 1
    assert "not normalised" in capsys.readouterr().out
    assert main([str(path)]) == 0
    assert main(["--check", str(path)]) == 0
    assert main(["--run", str(path)]) == 0                      # the stored result was wrong
    assert nbformat.read(path, as_version=4).cells[0].outputs[0].data["text/plain"] == "2"
    assert main(["--check", str(path)]) == 0
