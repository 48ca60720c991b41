"""The claims of the book: each stated once, with its source, and checked by running it.

    claims.table("angles")      the claims of a chapter, checked now
    claims.ledger()             all of them
    claims.errata()             those where a paper prints something else

A claim is written once, in the module of its chapter (angles.py, ...), as a function under the decorator
`claim`: the function recomputes the claim by independent means and returns the measured error. Calling the
claim runs it and raises AssertionError where the error is not within its tolerance.
"""
import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ntklib.book import text
from ntklib.book.chapters import CHAPTERS
from ntklib.book.claims import page
from ntklib.book.claims.page import VERDICTS

__all__ = ["VERDICTS", "Chapter", "Claim", "Discrepancy", "Source",
           "all_claims", "claim", "errata", "ledger", "of_chapter", "table"]


@dataclass(frozen=True)
class Source:
    """Where a claim comes from: the paper, the version that was read, the theorem or the remark."""

    paper: str
    where: str
    version: str = ""
    url: str = ""

    def at(self, where: str) -> "Source":
        """The same paper, at another place."""
        return Source(self.paper, where, self.version, self.url)


@dataclass(frozen=True)
class Discrepancy:
    """What a paper prints, what the computation shows, and what remains true. Markdown; respectful."""

    prints: str
    shows: str
    remains: str


@dataclass(frozen=True)
class Chapter:
    """The page that a claim belongs to, such as "angles/01_angle_map", and the chapter's title."""

    name: str
    title: str
    page: str


@dataclass(frozen=True, eq=False)
class Claim:
    """See the module. Texts are Markdown with $maths$; `derivation` is a name like "symbolic.angle_map"."""

    id: str
    chapter: Chapter
    statement: str
    source: Source
    verdict: str
    derivation: str
    check: Callable[[], float]
    measures: str                               # what the check returns, in words: "largest relative error"
    tolerance: float
    hypotheses: str = ""
    discrepancy: Discrepancy | None = None
    seed: int | None = None
    device: str = "cpu"
    slow: bool = False

    def __call__(self) -> float:
        """Run the check: the measured error, or AssertionError."""
        error = float(self.check())
        if not error <= self.tolerance:         # a NaN is a failure as well
            raise AssertionError(f"{self.id}: the {text.plain(self.measures)} is {error:.3g}, "
                                 f"and {self.tolerance:.3g} is allowed")
        return error

    @cached_property
    def measured(self) -> float:
        """The error found in this session."""
        return self()

    @property
    def page(self) -> str:
        """The page that makes the claim."""
        return self.chapter.page


def claim(id: str, *, of: Chapter, verdict: str, **about) -> Callable[[Callable], Claim]:
    """Make a claim of the function below: see `Claim` for what to say about it."""
    def make(check: Callable[[], float]) -> Claim:
        if verdict not in VERDICTS:
            raise ValueError(f"{id}: the verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}")
        if verdict in ("corrected", "refuted") and "discrepancy" not in about:
            raise ValueError(f"{id} is {verdict}: give the discrepancy, printed, shown and still true")
        if verdict == "holds under" and not about.get("hypotheses"):
            raise ValueError(f"{id} holds under hypotheses: state them")
        return Claim(id=id, chapter=of, verdict=verdict, check=check, **about)
    return make


def of_chapter(chapter: str) -> list[Claim]:
    """The claims of a chapter, in the order of its module."""
    if chapter not in CHAPTERS:
        near = difflib.get_close_matches(str(chapter), CHAPTERS, n=1, cutoff=0)
        raise KeyError(f"no chapter {chapter!r}: did you mean {near[0]!r}?")
    module = importlib.import_module(f"ntklib.book.claims.{chapter}")
    return [c for c in vars(module).values() if isinstance(c, Claim) and c.chapter.name == chapter]


def all_claims() -> dict[str, Claim]:
    """Every claim of the book by id."""
    found = [c for chapter in CHAPTERS for c in of_chapter(chapter)]
    ids = {c.id: c for c in found}
    if len(ids) < len(found):
        raise ValueError(f"two claims share an id: {sorted(c.id for c in found)}")
    return ids


def table(chapter: str) -> page.Table:
    """The claims of a chapter with their verdicts, each checked now; a check that fails raises."""
    return page.Table("claims", of_chapter(chapter))


def ledger() -> page.Table:
    """Every claim of the book, its evidence and its page, each checked now unless that takes minutes."""
    return page.Table("ledger", list(all_claims().values()))


def errata() -> page.Table:
    """Where a paper prints something else than what the book finds."""
    return page.Table("errata", [c for c in all_claims().values() if c.discrepancy])
