"""Recorded runs: where they come from is written down, and said."""
import json
import re
import subprocess
import sys
import types

import pytest
import torch

from ntklib.book import records


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    monkeypatch.setattr(records, "commit", lambda code=(): "abc1234")
    return tmp_path / "records"


def test_a_record_says_how_it_was_made(folder):
    path = records.save("trial", {"rows": [1, 2.5, "é"]}, command="python -m trial", dtype="float64", seed=3)
    kept = json.loads(path.read_text("utf8"))
    assert set(records.ABOUT) == set(kept) - {"rows"}
    assert records.load("trial") == kept
    assert kept["rows"] == [1, 2.5, "é"]
    said = records.said("trial")
    assert re.search(r"Recorded on \d+ \w+ 20\d\d on a CPU \(\w+\), \d+ threads?, seed 3, with torch ", said)
    assert said.endswith("`python -m trial`.")
    assert torch.__version__ in said


def test_results_do_not_hide_their_provenance(folder):
    with pytest.raises(ValueError, match="device"):
        records.save("trial", {"device": "mine"}, command="c", dtype="float64")
    with pytest.raises(FileNotFoundError, match=r"no record 'trial': there is none"):
        records.load("trial")


def test_the_commit_is_that_of_the_code_that_runs():
    assert re.fullmatch(r"([0-9a-f]{7,40}(\+changes)?)?", records.commit())


def test_a_changed_file_is_told_if_its_code_ran(tmp_path, monkeypatch):
    """A checkout of one module, in and out of step with its commit."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path)]
    source = tmp_path / "mine.py"
    source.write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "mine.py"], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(records, "FOLDER", tmp_path / "chapters" / "records")
    monkeypatch.setitem(sys.modules, "ntklib.book.mine", types.SimpleNamespace(__file__=str(source)))
    clean = records.commit(("ntklib.book.mine",))
    assert re.fullmatch("[0-9a-f]{7,}", clean)
    source.write_text("x = 2\n")
    assert records.commit(("ntklib.book.mine",)) == clean + "+changes"
    assert records.commit() == clean                    # the book's other modules may be at work


def test_every_record_of_the_book_is_whole():
    for path in records.FOLDER.glob("*.json"):
        kept = records.load(path.stem)
        assert set(records.ABOUT) < set(kept), path.name
        assert not kept["commit"].endswith("+changes"), f"{path.name} was made by code that no commit holds"
        assert kept["command"].startswith("python -m ")
