import json
import math
import re
from contextlib import suppress
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
import sympy
import torch
from conftest import beside_chapters
from hypothesis import given, settings
from hypothesis import strategies as st

from ntklib.angles import angle_between, angle_map
from ntklib.book.chapters import CHAPTERS
from ntklib.book.exercises import UnknownExercise, check, exercise, exercises, page, parse, progress
from ntklib.book.exercises.kinds import LETTERS, Choice, Function, Multiple, Number, Option, Wrong
from ntklib.book.exercises.trial import Mistake, Trial, gives

EVERY = {id: e for chapter in CHAPTERS for id, e in exercises(chapter).items()}
BASE = {"id": "test.ex1", "title": "T", "difficulty": 1, "question": "Q", "hints": ("a", "b"),
        "solution": "S"}


def of(kind):
    return [pytest.param(e, id=i) for i, e in EVERY.items() if isinstance(e, kind)]


def answer(e):
    """The right answer, as a student would give it."""
    match e:
        case Number():
            return e.answer
        case Choice() | Multiple():
            return "".join(x for x, o in zip(LETTERS, e.options, strict=False) if o.right)
        case Function():
            return e.truth


# ---- numbers as students type them ---------------------------------------------------------------------
READ = {"0.5": 0.5, "1/2": 0.5, "pi/3": math.pi / 3, "-2": -2, "+3.": 3, ".25": 0.25, "1e-3": 1e-3,
        "2.5E2": 250,
        "2pi": 2 * math.pi, "2 pi": 2 * math.pi, "π/2": math.pi / 2, "3*4-5": 7, "2^3^2": 512,
        "-2^2": -4, "2**-1": 0.5, "sqrt(2)/2": math.sqrt(0.5), "√2": math.sqrt(2), "(1+2)(3+4)": 21,
        "2(3)": 6, "1 − 2": -1, "2×3÷4": 1.5, " 71.4° ": 71.4, "71.4 deg": 71.4, "71.4degrees": 71.4,
        "pi/3 °": math.pi / 3, "1/3": 1 / 3, "--1": 1, "sqrt 4": 2, "arccos(1/2)": math.pi / 3, "2 sin(pi/2)": 2, "acos(0) * 180/pi °": 90, "1/2pi": math.pi / 2, "7-2-1": 4,
        "8/4/2": 1}
REFUSED = {"": "Type a number", "0,5": "not a comma", "1,000.5": "not a comma", "abc": "cannot read",
           "1.25 rad": "“rad”", "1/0": "divides by zero", "1/(2-2)": "divides by zero", "(1": "not closed",
           "1)": "do not understand “)”", "1 2": "do not understand “2”", "2*": "missing",
           "*2": "do not understand", "1e999": "not a finite", "10^10^10": "not a finite",
           "(-1)^0.5": "not a real", "sqrt(-1)": "not a real", "acos 2": "not a real", "ln 0": "not a real", "0x10": "cannot read", "nan": "cannot read",
           "__import__('os')": "cannot read", "1;2": "cannot read", "°": "cannot read",
           "1..2": "do not understand", "(" * 5000 + "1": "too long", "2 ^": "missing"}
UNITS = ("°", "deg", "degrees")


@pytest.mark.parametrize("text", READ)
def test_a_number_is_read(text):
    assert parse.number(text, UNITS) == pytest.approx(READ[text], rel=1e-15)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_number_is_refused_with_a_word(text):
    with pytest.raises(ValueError, match=re.escape(REFUSED[text])):
        parse.number(text, UNITS)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(x):
    assert parse.number(repr(x)) == x


@given(st.text(alphabet="0123456789.+-*/^()pisqrt√πaconl e,°", max_size=40))
def test_no_text_crashes_the_reader(text):
    with suppress(ValueError):
        assert math.isfinite(parse.number(text, UNITS))


@given(st.recursive(st.integers(1, 99).map(str), lambda s: st.tuples(s, st.sampled_from("+-*/"), s).map(
    lambda t: f"({t[0]}{t[1]}{t[2]})"), max_leaves=8))
def test_arithmetic_agrees_with_exact_fractions(text):
    try:
        exact = eval(re.sub(r"\d+", r"Fraction(\g<0>)", text), {"Fraction": Fraction})
    except ZeroDivisionError:
        return
    assert parse.number(text) == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


# ---- every exercise of the book ------------------------------------------------------------------------
@pytest.mark.parametrize("e", of(object))
def test_the_right_answer_is_right_and_praised(e):
    verdict = check(e.id, answer(e))
    assert verdict.correct
    assert verdict
    assert repr(verdict).startswith(f"✓ {e.id}: Right.")
    assert verdict == check(e.id, answer(e))


@pytest.mark.parametrize("e", of(object))
def test_an_exercise_is_written_out(e):
    assert 4 <= len(exercises(e.id.partition(".")[0])) <= 6
    assert len(e.solution) > 200
    assert e.praise
    assert all(len(h) > 30 for h in e.hints)


def test_difficulty_rises_through_a_chapter():
    for chapter in CHAPTERS:
        levels = [e.difficulty for e in exercises(chapter).values()]
        assert levels == sorted(levels)
        assert {1, 3} <= set(levels)


@pytest.mark.parametrize("e", of(Number))
def test_every_known_mistake_has_its_own_answer(e):
    said = {check(e.id, w.value).message for w in e.wrong}
    assert said == {w.feedback for w in e.wrong}
    assert len(e.wrong) >= 4


@pytest.mark.parametrize("e", of(Choice))
def test_every_wrong_choice_has_its_own_answer(e):
    wrong = [check(e.id, x) for x, o in zip(LETTERS, e.options, strict=False) if not o.right]
    assert not any(wrong)
    assert len({v.message for v in wrong}) == len(e.options) - 1


@pytest.mark.parametrize("e", of(Multiple))
def test_one_wrong_tick_is_named_and_one_missing_is_counted(e):
    right, n = answer(e), len(e.options)
    for x, o in zip(LETTERS, e.options, strict=False):
        if o.right:
            assert f"{n - 1} of {n} judged rightly" in check(e.id, right.replace(x, "") or "A").message
        else:
            assert f"Look again at {x}: {o.feedback}" in check(e.id, right + x).message


@pytest.mark.parametrize("e", of(Function))
def test_the_solution_runs_and_passes(e):
    code, = re.findall(r"```python\n(.*?)```", e.solution, re.S)
    scope = {"torch": torch, "angle_map": angle_map, "math": math}
    exec(code, scope)
    name = e.signature.partition("(")[0]
    assert f"def {e.signature}:" in code
    verdict = check(e.id, scope[name])
    assert verdict, verdict


def beta(a):
    return (1 - a) ** 2 / (1 + a**2)


def mix(b, theta):
    return (b * angle_map(theta).cos() + (1 - b) * theta.cos()).clamp(-1, 1).arccos()


def unclamped(theta, slope):
    return (beta(slope) * angle_map(theta).cos() + (1 - beta(slope)) * theta.cos()).arccos()


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def sine(x, y):
    u, v = unit(x), unit(y)
    return (v - (u * v).sum(-1, keepdim=True) * u).norm(dim=-1).clamp(max=1).arcsin()


def cosine(x, y):
    return (x * y).sum(-1) / x.norm(dim=-1) / y.norm(dim=-1)


STUDENTS = {        # what students write, and what it must be told
    "angles.ex5": [
        (lambda theta, slope: angle_map(theta), "plain ReLU"),
        (lambda theta, slope: beta(slope) * angle_map(theta) + (1 - beta(slope)) * theta, "averaged angles"),
        (lambda theta, slope: mix((1 - slope) ** 2, theta), "not normalised"),
        (lambda theta, slope: mix(1 - slope, theta), "cross terms"),
        (lambda theta, slope: mix(beta(slope), theta).cos(), "take the arccosine"),
        (unclamped, "clamp it"),
        (lambda theta, slope: theta / 2, "is right."),
    ],
    "angles.ex6": [
        (lambda x, y: (unit(x) * unit(y)).sum(-1).clamp(-1, 1).arccos(), "arccosine of the cosine"),
        (lambda x, y: cosine(x, y).clamp(-1, 1).arccos(), "arccosine of the cosine"),
        (lambda x, y: torch.cosine_similarity(x, y, dim=-1).clamp(-1, 1).arccos(), "arccosine of the cosine"),
        (sine, "You used a sine"),
        (lambda x, y: 2 * ((x - y).norm(dim=-1) / 2).clamp(max=1).arcsin(), "normalise the rows"),
        (lambda x, y: angle_between(x.double(), y.double()), "keep the dtype"),
    ],
} | beside_chapters("STUDENTS")
CORRECT = {         # other right ways
    "angles.ex5": [angle_map, lambda theta, slope: mix(beta(slope), theta)],
    "angles.ex6": [angle_between, lambda x, y: torch.atan2(sine(x, y).sin(), cosine(x, y))],
} | beside_chapters("CORRECT")
CASES = [pytest.param(i, f, says, id=f"{i}: {says}") for i, cases in STUDENTS.items() for f, says in cases]


@pytest.mark.parametrize(("id", "f", "says"), CASES)
def test_a_misconception_is_recognised(id, f, says):
    verdict = check(id, f)
    assert not verdict
    assert says in " ".join(repr(verdict).split())


@pytest.mark.parametrize("id", CORRECT)
def test_other_right_ways_pass(id):
    for f in CORRECT[id]:
        assert check(id, f), check(id, f)


def test_every_registered_misconception_is_seen_by_some_student():
    for id, e in EVERY.items():
        if isinstance(e, Function):
            told = " ".join(check(id, f).message for f, _ in STUDENTS[id])
            assert all(m.feedback in told for m in e.mistakes)


# ---- what `check` says to anything ---------------------------------------------------------------------
def raises(*_):
    raise RuntimeError("first line\nsecond line")


ODD = [None, True, math.nan, math.inf, "", "no idea", "Z", [], ["A", 3], {"A": 1}, {1}, 3 + 4j, object(),
       b"A", int, raises, torch.ones(3), torch.tensor(math.nan), np.ones((2, 2)), np.float32(1), sympy.pi,
       sympy.Symbol("x"), lambda: None, lambda *a: None, lambda *a: a, lambda *a: 0.5,
       lambda *a: a[0] * math.nan, lambda *a: a[0].numpy(), lambda *a: a[0][..., None],
       lambda *a: torch.tensor("x"), lambda *a: a[0].long(), lambda *a: a[0].add_(1)]


@pytest.mark.parametrize("e", of(object))
def test_no_answer_makes_check_raise(e):
    for odd in ODD:
        verdict = check(e.id, odd)
        assert not verdict, odd
        assert len(verdict.message) >= 20, odd
        assert "0x" not in repr(verdict), odd
        assert all(len(line) <= 76 for line in repr(verdict).splitlines()), odd


@pytest.mark.parametrize("value", ["71.44°", 71.44, np.float64(71.44), torch.tensor(71.44),
                                   torch.tensor([71.44]), sympy.Float("71.44"), Fraction(7144, 100),
                                   "180*1.2469/pi"])
def test_a_number_may_come_in_many_ways(value):
    assert check("angles.ex1", value)


@pytest.mark.parametrize("letters", ["ABD", "abd", "A, B, D", "A B D", ["A", "B", "D"], {"D", "A", "B"}])
def test_letters_may_come_in_many_ways(letters):
    assert check("angles.ex4", letters)


@pytest.mark.parametrize(("id", "near"), [("angles.ex7", "angles.ex"), ("angle.ex1", "angles.ex1"),
                                          ("ex3", r"\w+\.ex3"), (3, r"\w+\.ex3"), (None, r"\w+\.ex")])
def test_an_unknown_exercise_is_named_with_the_nearest(id, near):
    for call in (lambda: check(id, 1), lambda: exercise(id)):
        with pytest.raises(UnknownExercise) as e:
            call()
        assert isinstance(e.value, KeyError)
        assert re.match(f"no exercise {id!r}: did you mean '{near}", str(e.value))
    with pytest.raises(UnknownExercise, match="did you mean 'angles'"):
        progress("angels")


# ---- functions under trial -----------------------------------------------------------------------------
def square_exercise(**about):
    trials = about.pop("trials", lambda g: [Trial((torch.tensor([1.0, 2, 3]),), "three numbers")])
    return Function(**BASE, signature="f(x)", truth=lambda x: x * x, trials=trials, **about)


@pytest.mark.parametrize(("f", "says"), [
    (lambda x: None, "returned None: does it end in return"),
    (lambda x: 2.5, "returned 2.5: return a torch.Tensor"),
    (lambda x: x.numpy() ** 2, "an ndarray of shape (3,)"),
    (lambda x: (x * x)[:2], "shape (2,), and (3,) is wanted"),
    (lambda x: (x * x).double(), "torch.float64 for torch.float32"),
    (lambda x: x.mul_(x), "changed its argument"),
    (raises, "raised RuntimeError: first line"),
    (lambda: 1, "raised TypeError"), (lambda x, y: x, "raised TypeError"),
    (lambda x: x * x + torch.tensor([0, 0, 0.5]), "gave 9.5 at x = 3, and 9 is right"),
    (lambda x: x * x * torch.tensor([1, math.nan, 1]), "gave nan at x = 2, and 4 is right. Mind the root."),
    (lambda x: 2 * x, "gave 2 at x = 1, and 1 is right. That doubles."),
])
def test_a_trial_says_which_input_what_came_and_what_was_right(f, says):
    doubles = Mistake(gives(lambda x: 2 * x), "That doubles.")
    e = square_exercise(when_nan="Mind the root.", mistakes=(doubles,))
    verdict = e.check(f)
    assert not verdict
    assert says in " ".join(repr(verdict).split())


def test_a_right_zero_is_not_blamed_for_another_entry():
    e = square_exercise(trials=lambda g: [Trial((torch.tensor([0.0, 2.0]),), "a zero and a two")])
    assert "gave 5 at x = 2" in e.check(lambda x: x * x + (x > 0)).message


def test_a_misconception_must_explain_every_failure():
    """Doubling is right at 0 and 2; the function below doubles in the first call only."""
    e = square_exercise(
        trials=lambda g: [Trial((torch.tensor([1.0, 2]),), "two"), Trial((torch.tensor([5.0]),), "one")],
        mistakes=(Mistake(gives(lambda x: 2 * x), "That doubles."),))
    assert "doubles" in e.check(lambda x: 2 * x).message
    assert "doubles" not in e.check(lambda x: 2 * x if len(x) > 1 else x).message


def test_gradients_and_the_students_state_are_left_alone():
    w = torch.ones(3, requires_grad=True)
    state = torch.random.get_rng_state()
    assert square_exercise().check(lambda x: x * x * w)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert w.grad is None


def test_trials_are_the_same_at_every_run():
    seen = []
    for _ in range(2):
        seen.append([])
        check("angles.ex5", lambda theta, slope: seen[-1].append(theta.clone()) or angle_map(theta, slope))
    assert len(seen[0]) >= 5
    assert all(torch.equal(a, b) for a, b in zip(*seen, strict=True))
    ends = torch.cat([t.double().flatten() for t in seen[0]])
    assert {0.0, math.pi} <= set(ends.tolist())


# ---- exercises that nobody could answer are refused --------------------------------------------------------
YES, NO = Option("yes", True, ""), Option("no", False, "why not")


@pytest.mark.parametrize(("make", "says"), [
    (lambda: Number(**BASE | {"difficulty": 4}, answer=1, tolerance=0.1), "difficulty"),
    (lambda: Number(**BASE | {"hints": ("a",)}, answer=1, tolerance=0.1), "two hints"),
    (lambda: Number(**BASE, answer=1, tolerance=0.1, wrong=(Wrong(1.15, "x"),)), "too near the answer"),
    (lambda: Number(**BASE, answer=1, tolerance=0.1, wrong=(Wrong(2, "x"), Wrong(2.1, "y"))),
     "near the mistake"),
    (lambda: Choice(**BASE, options=(YES, YES, NO)), "exactly one"),
    (lambda: Choice(**BASE, options=(NO,)), "exactly one"),
    (lambda: Multiple(**BASE, options=(YES, YES)), "at least one"),
])
def test_a_faulty_exercise_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


# ---- the widgets ---------------------------------------------------------------------------------------
class Visible(HTMLParser):
    """What a reader sees before opening anything, and the attributes that are read aloud."""

    def __init__(self, source):
        super().__init__()
        self.depth, self.words, self.aloud, self.ids, self.inputs, self.labels = 0, [], [], [], 0, 0
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.depth += tag in ("script", "details")
        self.aloud += [attrs[k] for k in ("aria-label", "alt", "title") if k in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.inputs += tag == "input"
        self.labels += tag == "label"

    def handle_endtag(self, tag):
        self.depth -= tag in ("script", "details")

    def handle_data(self, data):
        if not self.depth:
            self.words.append(data)


@pytest.mark.parametrize("e", of(object))
def test_a_widget_is_complete_without_a_script_and_hides_the_answer(e):
    w = exercise(e.id)
    data, _ = w._repr_mimebundle_()
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= set(data)
    assert data["text/html"] == w.html
    assert data["text/plain"] == repr(w)
    seen = Visible(w.html)
    shown = " ".join(seen.words + seen.aloud)
    assert "difficulty" in shown
    assert "not solved yet" in shown
    assert f"ex-{e.id.replace('.', '-')}" in seen.ids
    assert seen.inputs == seen.labels
    assert w.html.count("<details") == 3
    assert e.praise not in shown
    if isinstance(e, Number):
        for answer in {f"{e.answer:.{digits}g}" for digits in range(2, 6)}:
            if len(answer) > 1:             # a single digit stands in many a number
                assert answer not in shown
                assert answer not in repr(w)


@pytest.mark.parametrize("e", of(object))
def test_the_spec_in_the_page_is_that_of_the_widget(e):
    w = exercise(e.id)
    source, = re.findall(r'<script type="application/json">(.*?)</script>', w.html, re.S)
    assert json.loads(source)["spec"] == json.loads(json.dumps(w.spec))
    assert w.html.startswith('<section class="exercise" id="ex-')
    assert 'data-ntk="exercise.js"' in w.html


def test_a_script_in_a_text_cannot_leave_its_json():
    e = Number(**BASE | {"title": "</script><b>"}, answer=1, tolerance=0.1, wrong=(Wrong(5, "</script>"),))
    w = page.widget(e)
    assert w.html.count("</script>") == 1
    assert "<b>" not in w.html


def test_check_tells_the_widget_that_is_shown():
    w, other = exercise("angles.ex5"), exercise("angles.ex6")
    check("angles.ex5", lambda theta, slope: theta)
    assert not w.solved
    check("angles.ex5", angle_map)
    assert w.solved
    assert not other.solved


def test_progress_counts_the_exercises_of_the_chapter():
    w = progress("angles")
    assert w.spec["ids"] == list(exercises("angles"))
    assert f"0 of {len(exercises('angles'))}" in w.html
    assert repr(w) == "6 exercises: angles.ex1, angles.ex2, angles.ex3, angles.ex4, angles.ex5, angles.ex6"


@settings(max_examples=50)
@given(st.floats(-200, 200))
def test_a_number_is_right_exactly_within_its_tolerance(x):
    e = EVERY["angles.ex1"]
    assert check(e.id, x).correct == (abs(x - e.answer) <= e.tolerance)
