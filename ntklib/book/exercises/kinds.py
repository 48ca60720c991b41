"""The four kinds of exercise and how each is marked. Texts are Markdown with $maths$ (ntklib.book.text)."""
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from ntklib.book import text
from ntklib.book.exercises import parse
from ntklib.book.exercises.trial import Mistake, first_failure, kind_of

LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True)
class Verdict:
    """What `check` found. True when the answer is right; as text, the mark and the reason."""

    id: str
    correct: bool
    message: str                                        # Markdown

    def __bool__(self):
        return self.correct

    def __repr__(self):
        return textwrap.fill(f"{'✓' if self.correct else '✗'} {self.id}: {text.plain(self.message)}", 76)


@dataclass(frozen=True)
class Wrong:
    """A wrong number that has a reason, and what to say to who gives it. `tolerance` None: the exercise's."""

    value: float
    feedback: str
    tolerance: float | None = None


@dataclass(frozen=True)
class Option:
    """One answer of a choice: the text, whether it holds, and what to say to who judged it wrongly."""

    text: str
    right: bool
    feedback: str


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What all kinds share. `hints` are shown one after the other, the solution when asked for."""

    id: str
    title: str
    difficulty: int                                     # 1 recall, 2 apply, 3 build
    question: str
    hints: tuple[str, str]
    solution: str
    praise: str = ""                                    # said with "Right."
    kind = ""

    def __post_init__(self):
        if self.difficulty not in (1, 2, 3) or len(self.hints) != 2:
            raise ValueError(f"{self.id}: difficulty must be 1, 2 or 3 and there must be two hints, "
                             f"got {self.difficulty} and {len(self.hints)}")
        self.validate()

    def validate(self) -> None:
        """Refuse an exercise that nobody could answer, or whose feedback would lie."""

    def verdict(self, correct: bool, message: str = "") -> Verdict:
        """A verdict in the house's words."""
        return Verdict(self.id, correct, f"Right. {self.praise}".strip() if correct else message)

    def check(self, answer) -> Verdict:
        """Mark an answer."""
        raise NotImplementedError

    def spec(self) -> dict:
        """What the page needs to mark an answer without a kernel."""
        return {"id": self.id, "kind": self.kind, "praise": text.inline(self.praise)}


@dataclass(frozen=True, kw_only=True)
class Number(Exercise):
    """A number within `tolerance` of `answer`. `units` are endings that a student may type after it."""

    answer: float
    tolerance: float
    unit: str = ""                                      # in words, as part of the label: "degrees"
    units: tuple[str, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    kind = "number"

    def validate(self):
        """A recognised mistake must not overlap the right answer or another mistake."""
        taken = [("the answer", self.answer, self.tolerance)]
        for w in self.wrong:
            tolerance = self.tolerance if w.tolerance is None else w.tolerance
            for name, value, reach in taken:
                if abs(w.value - value) <= tolerance + reach:
                    raise ValueError(f"{self.id}: the mistake {w.value:.6g} is too near {name} {value:.6g}: "
                                     "give it a smaller tolerance")
            taken.append(("the mistake", w.value, tolerance))

    def check(self, answer) -> Verdict:
        """A number, or a string such as "pi/3"; also a 0-d tensor or a sympy number."""
        try:
            value = parse.number(answer, self.units) if isinstance(answer, str) else _real(answer)
        except ValueError as e:
            return self.verdict(False, str(e))
        if abs(value - self.answer) <= self.tolerance:
            return self.verdict(True)
        for w in self.wrong:
            if abs(value - w.value) <= (self.tolerance if w.tolerance is None else w.tolerance):
                return self.verdict(False, w.feedback)
        return self.verdict(False, self.near if abs(value - self.answer) <= 2.5 * self.tolerance else self.far)

    @property
    def near(self) -> str:
        """Said to an answer that was rounded too early."""
        return f"Very near, but not within {self.tolerance:g} {self.unit}".rstrip() + ": keep more digits."

    @property
    def far(self) -> str:
        """Said to a wrong answer that nobody foresaw."""
        return "Not this number. Open the first hint, then try again."

    def spec(self):
        """The answer, its tolerance and the recognised mistakes."""
        wrong = [{"value": w.value, "tolerance": self.tolerance if w.tolerance is None else w.tolerance,
                  "feedback": text.inline(w.feedback)} for w in self.wrong]
        return super().spec() | {"answer": self.answer, "tolerance": self.tolerance, "units": self.units,
                                 "wrong": wrong, "near": self.near, "far": self.far}


@dataclass(frozen=True, kw_only=True)
class Choice(Exercise):
    """Exactly one option is right. In a notebook the answer is its letter."""

    options: tuple[Option, ...]
    kind = "choice"

    def validate(self):
        """One right option."""
        right = sum(o.right for o in self.options)
        if right != 1:
            raise ValueError(f"{self.id}: exactly one option must be right, got {right}")

    def check(self, answer) -> Verdict:
        """One letter, such as "B"."""
        letters = _letters(answer, len(self.options))
        if letters is None or len(letters) != 1:
            return self.verdict(False, f"Answer with one letter from A to {LETTERS[len(self.options) - 1]}, "
                                       f'such as check("{self.id}", "A").')
        option = self.options[LETTERS.index(letters.pop())]
        return self.verdict(True) if option.right else self.verdict(False, option.feedback)

    def spec(self):
        """Which options are right, and what to say to each."""
        return super().spec() | {"options": _marks(self.options)}


@dataclass(frozen=True, kw_only=True)
class Multiple(Exercise):
    """Any number of options is right. In a notebook the answer is their letters together."""

    options: tuple[Option, ...]
    kind = "multiple"

    def validate(self):
        """At least one true and one false option."""
        if len({o.right for o in self.options}) != 2:
            raise ValueError(f"{self.id}: at least one option must be right and one wrong")

    def check(self, answer) -> Verdict:
        """Letters, such as "ACD", or a collection of letters."""
        letters = _letters(answer, len(self.options))
        if letters is None:
            return self.verdict(False, f"Answer with letters from A to {LETTERS[len(self.options) - 1]}, "
                                       f'such as check("{self.id}", "AC").')
        pairs = zip(LETTERS, self.options, strict=False)
        misjudged = [(x, o) for x, o in pairs if o.right != (x in letters)]
        if not misjudged:
            return self.verdict(True)
        n = len(self.options)
        score = f"{n - len(misjudged)} of {n} judged rightly."
        ticked = [(x, o) for x, o in misjudged if x in letters]
        if ticked:                      # one misconception at a time; the rest is left to find
            letter, option = ticked[0]
            return self.verdict(False, f"{score} Look again at {letter}: {option.feedback}")
        more = "one more is" if len(misjudged) == 1 else f"{len(misjudged)} more are"
        return self.verdict(False, f"{score} What you ticked is true, and {more} as well.")

    def spec(self):
        """Which options are right, and what to say to each."""
        return super().spec() | {"options": _marks(self.options)}


@dataclass(frozen=True, kw_only=True)
class Function(Exercise):
    """A function that the student writes in a notebook; `check` tries it on random inputs against `truth`."""

    signature: str                                      # "angle(x, y)", as the starter code shows it
    truth: Callable
    trials: Callable                                    # generator -> list of Trial
    mistakes: tuple[Mistake, ...] = ()
    when_nan: str = ""                                  # the usual reason for NaN in this exercise
    rtol: float = 1e-6
    atol: float = 0.0
    kind = "function"

    def check(self, answer) -> Verdict:
        """The function itself, not a value of it."""
        name = self.signature.partition("(")[0]
        if not callable(answer):
            return self.verdict(False, f'Pass the function itself, `check("{self.id}", {name})`, '
                                       f"and not a value of it: this is {kind_of(answer)}.")
        failure = first_failure(answer, self)
        return self.verdict(failure is None, failure or "")

    def starter(self) -> str:
        """The code that a student begins with."""
        return f'def {self.signature}:\n    ...\n\ncheck("{self.id}", {self.signature.partition("(")[0]})'


def _real(answer) -> float:
    """A finite float, or a ValueError with a sentence for the student."""
    try:
        value = math.nan if isinstance(answer, bool) else float(answer)
    except (TypeError, ValueError, RuntimeError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"This exercise wants one finite number, and got {kind_of(answer)}.")
    return value


def _letters(answer, n: int) -> set[str] | None:
    """The letters of an answer to n options, or None if it is not letters of these options."""
    if isinstance(answer, str):
        answer = answer.replace(",", " ").split() if any(c in answer for c in ", ") else list(answer)
    if not isinstance(answer, list | tuple | set | frozenset) or not answer:
        return None
    letters = {x.upper() if isinstance(x, str) else x for x in answer}
    return letters if letters <= set(LETTERS[:n]) else None


def _marks(options) -> list[dict]:
    return [{"right": o.right, "feedback": text.inline(o.feedback)} for o in options]
