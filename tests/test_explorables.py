"""The explorables: their numbers, their tables, their words, and each of the book's own over its whole grid."""

import inspect
import itertools
import json
import re

import altair as alt
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ntklib.book.controls import Choice, Drag, Predict, Slider
from ntklib.book.explorable import Explorable, Twin, vega_js
from ntklib.book.explorables import registry
from ntklib.book.markup import fill, number
from ntklib.book.tables import pack, plain, tables, unpack

REGISTRY = registry()


def line():
    return (
        alt.Chart(alt.NamedData("path"))
        .mark_line()
        .encode(x=alt.X("x:Q", scale=alt.Scale(domain=[0, 3])), y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 100])))
    )


def power(base, k, kind="plain"):
    return {
        "path": {"x": np.arange(4), "y": float(base) ** np.arange(4) * k},
        "last": float(base) ** 3 * k,
        "word": f"{kind}!",
    }


def make(**change):
    settings = {
        "id": "t",
        "title": "T",
        "alt": "A line.",
        "caption": "c",
        "readout": "{base} to the third is {last:.4g}, {word}",
        "presets": {"Two": {"base": 2}},
    }
    return Explorable(
        power,
        line(),
        [
            Slider("base", [1, 2, 4], 1, "base", "b"),
            Slider("k", [0.5, 1.0], 1.0, "factor"),
            Choice("kind", {"plain": "Plain", "odd": "Odd"}, "plain", "kind"),
        ],
        **settings | change,
    )


# ---- numbers -----------------------------------------------------------------------------------------------------
def test_tables_refuse_ragged_columns_and_stray_arrays():
    with pytest.raises(ValueError, match=r"'t' needs columns of one length.*pad"):
        tables({"t": {"a": [1, 2], "b": [1]}})
    with pytest.raises(ValueError, match="'a' is an array"):
        tables({"a": np.arange(3)})


@pytest.mark.parametrize("out", [{"t": {"a": np.zeros((2, 2))}}, {"t": {"a": [None]}}, {"t": {"a": [1j]}}, {"s": None}, {"s": torch.ones(2, 2)}])
def test_tables_refuse_what_is_no_column_of_numbers(out):
    with pytest.raises(TypeError, match="must be a column of real numbers or of strings"):
        tables(out)


def test_tables_take_every_kind_of_real_number():
    half = torch.tensor([0.5], dtype=torch.bfloat16, requires_grad=True)
    got = tables({"t": {"a": half, "b": [True], "c": torch.tensor([3])}})["t"]
    assert [got[c].tolist() for c in "abc"] == [[0.5], [1.0], [3.0]]
    with pytest.raises(TypeError, match="must return a dict"):
        tables(None)


def test_an_infinite_number_is_said_everywhere():
    states = [tables({"s": v, "t": {"a": [v]}}) for v in (1.0, np.inf)]
    assert plain(states[1]) == {"scalar": {"s": ["∞"]}, "t": {"a": [None]}}
    assert unpack(pack(states), 2)[1] == plain(states[1])
    assert [number(v) for v in (np.inf, -np.inf, "∞")] == ["∞", "−∞", "∞"]


def test_what_cannot_be_json_becomes_null():
    assert plain(tables({"t": {"a": [1.0, np.nan, np.inf]}}))["t"]["a"] == [1.0, None, None]


@given(
    st.lists(
        st.tuples(st.floats(-(2.0**100), 2.0**100, width=32), st.sampled_from(["x", "y", "é"])),
        min_size=1,
        max_size=12,
    )
)
def test_packing_is_exact_in_float32_and_keeps_text(states):
    every = [tables({"t": {"same": [1.5, np.nan], "v": [v, np.nan], "w": [w, "fixed"]}, "s": v}) for v, w in states]
    packed = pack(every)
    for got, want in zip(unpack(packed, len(every)), every, strict=True):
        expected = plain(
            {
                n: {c: a.astype("f4") if a.dtype.kind == "f" else a for c, a in cols.items()}
                for n, cols in want.items()
            }
        )
        assert got == expected
    if len(set(states)) == 1:
        assert packed.fields == []  # nothing varies: everything is stored once


def test_packing_refuses_tables_that_change_shape():
    with pytest.raises(ValueError, match="same length in every state: pad it with nan"):
        pack([tables({"t": {"a": [1.0]}}), tables({"t": {"a": [1.0, 2.0]}})])
    for other in ({"s": 2.0}, {"s": 2.0, "t": {"b": [1.0]}}):
        with pytest.raises(ValueError, match=r"'t', 'a'.*in some states only"):
            pack([tables({"s": 1.0, "t": {"a": [1.0]}}), tables(other)])


# ---- controls ----------------------------------------------------------------------------------------------------
def test_controls_refuse_what_is_not_on_their_grid():
    s = Slider("theta", [0, 5, 10], 5, "angle")
    assert s.parse(5.0) == 5
    assert isinstance(s.parse(5.0), int)
    with pytest.raises(ValueError, match=r"theta=7 is not on its grid 0 to 10.*nearest is 5"):
        s.parse(7)
    for bad in ("5", None, True, float("nan"), [5]):
        with pytest.raises(TypeError, match="theta must be a finite number"):
            s.parse(bad)
    with pytest.raises(ValueError, match="at least two increasing"):
        Slider("x", [1, 1], 1, "x")
    with pytest.raises(ValueError, match=r"must be one of \['a', 'b'\], got 'c'"):
        Choice("k", {"a": "A", "b": "B"}, "c", "kind")
    for odd in (True, 0.5, None):
        with pytest.raises(TypeError, match="strings or integers"):
            Choice("k", {odd: "A"}, odd, "kind")
    with pytest.raises(ValueError, match="Drag"):
        Drag(0, "theta", "z")
    with pytest.raises(ValueError, match="'globe' moves two sliders"):
        Drag(0, "theta", "globe")
    with pytest.raises(ValueError, match="'sphere' moves two sliders"):
        Drag(0, "theta", "sphere")
    with pytest.raises(ValueError, match="a base for each of them or none"):
        Drag(0, ("a", "b"), "sphere", ("c",))
    with pytest.raises(ValueError, match="'x' moves one slider"):
        Drag(0, ("theta", "depth"))


def test_an_even_grid_is_a_plain_range_and_another_one_a_range_over_its_indices():
    assert Slider("x", [0, 5, 10], 0, "x").spec()["even"]
    assert not Slider("x", [1e-3, 1e-2, 1e-1], 1e-3, "x").spec()["even"]
    assert Slider("x", [round(-1 + 0.1 * k, 1) for k in range(21)], 0, "x").spec()["even"]


# ---- words -------------------------------------------------------------------------------------------------------
def test_numbers_read_as_a_person_writes_them():
    assert [
        number(v, s)
        for v, s in [
            (0.5, ""),
            (-1.25, ".1f"),
            (1e-9, ".3g"),
            (2.5e7, ".1e"),
            (None, ".1f"),
            (float("nan"), ""),
            ("x", ".1f"),
            (0.256, ".1%"),
        ]
    ] == ["0.5", "−1.3", "1×10⁻⁹", "2.5×10⁷", "–", "–", "x", "25.6%"]


def test_an_exact_tie_is_rounded_as_the_page_rounds_it():
    assert [
        number(v, s)
        for v, s in [
            (6.25, ".1f"),
            (-6.25, ".1f"),
            (0.0625, ".1%"),
            (2.5, ".1g"),
            (1.25, ".1e"),
            (0.5, ".0f"),
            (1e22, ".3g"),
            (0.0, ".2f"),
            (1e30, ".0f"),
        ]
    ] == ["6.3", "−6.3", "6.3%", "3", "1.3×10⁰", "1", "1×10²²", "0.00", f"{1e30:.0f}"]


def test_a_format_that_the_page_does_not_know_is_refused():
    for spec in ("d", ",.1f", ".f", "5.1f"):
        with pytest.raises(ValueError, match=r"a number format is \.3f"):
            number(1.0, spec)


def test_a_name_without_a_value_stays_visible():
    assert fill("{a:.1f} and {b}", {"a": 1}) == "1.0 and ?\u2060"


# ---- the widget --------------------------------------------------------------------------------------------------
def test_the_states_of_the_page_and_of_the_kernel_are_the_same():
    e = make()
    assert len(e.grid()) == 3 * 2 * 2
    packed = pack([e.run(s) for s in e.grid()])
    for state, row in zip(e.grid(), unpack(packed, 12), strict=True):
        assert row["scalar"]["last"][0] == pytest.approx(power(**state)["last"], rel=1e-6)
        assert row["scalar"]["word"] == [power(**state)["word"]]


def test_the_kernel_answers_every_question_errors_too():
    e, sent = make(), []
    e.send = lambda content, buffers=None: sent.append(content)
    e._asked(e, {"ask": {"base": 4}}, [])
    assert sent[-1]["tables"]["scalar"]["last"] == [64.0]
    e._asked(e, {"ask": {"base": 3}}, [])
    assert "not on its grid" in sent[-1]["error"]
    e._asked(e, "vega", [])
    assert sent[-1]["vega"] == vega_js()
    e.state = {"base": 2}
    assert sent[-1]["tables"]["path"]["y"] == [1.0, 2.0, 4.0, 8.0]
    with pytest.raises(ValueError, match="no control bse: its controls are base, k, kind"):
        e.state = {"bse": 2}


def test_a_preset_of_an_unknown_control_is_the_authors_error():
    with pytest.raises(ValueError, match="t has no control q"):
        make(presets={"P": {"q": 1}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 'a"><script>'}, "id must be lower-case"),
        ({"drag": (Drag(0, "bse"),)}, "needs a slider among"),
        ({"drag": (Drag(3, "base"),)}, "a view below 1"),
        ({"drag": (Drag(0, "kind"),)}, "needs a slider among"),
        ({"drag": (Drag(0, ("base", "kind"), "globe"),)}, "needs a slider among"),
        ({"drag": (Drag(0, "base", base=("kind",)),)}, "needs a slider among"),
        ({"predict": Predict("q", "lost")}, "needs an answer among"),
        ({"predict": Predict("q", "last", ("z",))}, "columns among"),
        ({"readout": "{lost:.1f}"}, "no controls and no numbers"),
    ],
    ids=["id", "control", "view", "choice", "globe", "base", "answer", "columns", "readout"],
)
def test_loose_ends_are_the_authors_error(change, message):
    with pytest.raises(ValueError, match=message):
        make(**change)


def test_the_markup_is_whole_before_any_script_runs():
    h = make(code="f({base})", drag=(Drag(0, "base"),)).page()
    assert re.search(r'<figure class="explorable" id="t"', h)
    for c in ("base", "k", "kind"):
        assert re.search(rf'<label for="t-{c}">', h)
        assert re.search(rf'data-control="{c}"', h)
    assert 'data-preset="Two"' in h
    assert "data-reset" in h
    assert "1 to the third is 1, plain!" in h
    assert "<svg" in h
    assert "f(1)" in h
    spec = json.loads(re.search(r'<script type="application/json">(.*?)</script>', h, re.S)[1].replace("<\\/", "</"))
    assert spec["default"] == {"base": 1, "k": 1.0, "kind": "plain"}


def test_a_prediction_hides_its_answer_from_still_and_words():
    shown = make()
    e = make(predict=Predict("Guess", "last", ("y",), "y"), readout="{base} gives {last}")
    assert e.text(hidden=True) == "1 gives ?\u2060"  # with no line break before its unit
    markup = re.sub(r"<script.*?</script>", "", e.html, flags=re.S)
    assert "1 gives 1" not in markup
    assert "1 gives ?" in markup
    assert len(e._stills()[0]) < len(shown._stills()[0])  # the line is not drawn
    assert make(predict=None, readout="{base} gives {last}").text() == "1 gives 1"


def test_a_guess_keeps_the_titles_of_both_axes():
    y = alt.Y("y:Q", title="height", scale=alt.Scale(domain=[0, 100]))
    chart = alt.layer(line(), alt.Chart(alt.NamedData("path")).mark_point().encode(x=alt.X("x:Q", title="place"), y=y))
    for axis in ("x", "y"):
        e = Explorable(power, chart, make().controls, id="t", title="T", alt="A", caption="c", readout="r",
                       predict=Predict("Guess", "last", ("y",), axis))
        titles = {a["scale"]: a["title"] for a in e._spec()["views"][0]["axes"] if a.get("title")}
        assert titles["x"].count("place") == 1
        assert titles["y"].count("height") == 1
        assert "guess" not in " ".join(titles.values())


def test_a_still_is_the_same_twice_and_follows_the_theme():
    one, two = make()._stills(), make()._stills()
    assert one == two
    assert "var(--c-ink)" in one[0]
    assert "#1f2328" not in one[0]
    ids = re.findall(r'\bid="([^"]+)"', one[0])
    assert len(set(ids)) == len(ids)
    assert all(i.startswith("t-still0") for i in ids)


def test_its_repr_holds_no_address():
    assert repr(make()) == "Explorable(t)"
    assert make()._repr_mimebundle_()[0]["text/plain"] == "Explorable(t)"


def test_a_page_with_a_twin_carries_what_it_needs_and_no_table(monkeypatch):
    e = make(twin=Twin("power.js", {"terms": [1.0, 2.0]}))
    monkeypatch.setattr(e, "grid", lambda: pytest.fail("its states are too many"))
    h = e.page()
    assert "data-table" not in h
    spec = json.loads(re.search(r'<script type="application/json">(.*?)</script>', h, re.S)[1])
    assert spec["twin"] == {"module": "power.js", "function": "power", "given": {"terms": [1.0, 2.0]}}
    assert spec["initial"] is None


def test_the_page_version_is_made_only_while_the_book_is_built(monkeypatch):
    e = make()
    assert "data-table" not in e._repr_mimebundle_()[0]["text/html"]
    monkeypatch.setenv("NTKLIB_STATIC", "1")
    assert "data-table" in e._repr_mimebundle_()[0]["text/html"]


# ---- every explorable of the book --------------------------------------------------------------------------------
@pytest.mark.parametrize("id", REGISTRY)
def test_each_explorable_of_the_book(id):
    e = REGISTRY[id]()
    assert e.id == id
    assert e.presets, "a teacher needs presets"
    assert set(inspect.signature(e.compute).parameters) == set(e.default), "compute(**state)"
    assert "?" not in e.text(), f"the readout names something that compute does not return: {e.text()}"
    corners = [
        dict(zip(e.default, v, strict=True))
        for v in itertools.product(*((c.values[0], c.values[-1]) for c in e.controls))
    ]
    shape = {n: {c: len(a) for c, a in cols.items()} for n, cols in e.data.items()}
    for state in [*corners, *e.presets.values()]:
        got = e.run(state)
        assert {n: {c: len(a) for c, a in cols.items()} for n, cols in got.items()} == shape
        assert not any(np.isnan(a).any() for a in got["scalar"].values() if a.dtype.kind == "f"), state
    assert all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for n, cols in e.run(e.default).items()
        for c, a in cols.items()
        for b in [e.data[n][c]]
    ), "compute must give the same numbers every time"
