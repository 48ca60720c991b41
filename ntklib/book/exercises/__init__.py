"""Exercises that mark themselves, on the page and in the notebook.

    exercise("angles.ex1")          shows one
    check("angles.ex1", "pi/3")     marks an answer: a number, letters ("B", "ACD") or a function
    progress("angles")              counts what the reader has solved

An exercise is written once, in the module of its chapter (angles.py, ...): a `Number`, `Choice`, `Multiple`
or `Function` in the tuple EXERCISES, with ids "angles.ex1", "angles.ex2", ... in order. Its right answer is
computed there, from ntklib.
"""
import difflib
import importlib
from functools import cache

from ntklib.book.chapters import CHAPTERS
from ntklib.book.exercises import page
from ntklib.book.exercises.kinds import Exercise, Verdict

__all__ = ["UnknownExercise", "check", "exercise", "exercises", "progress"]


class UnknownExercise(KeyError):
    """No exercise, or no chapter, has this name; the message names the nearest one."""

    def __str__(self):
        return self.args[0]                             # KeyError would show the repr


def exercise(id: str) -> page.ExerciseWidget:
    """Show an exercise."""
    return page.widget(_find(id))


def check(id: str, answer) -> Verdict:
    """Mark an answer to an exercise. UnknownExercise for an id that no chapter has; nothing else is raised.

    >>> from ntklib.book.exercises import check
    >>> check("angles.ex1", "90 degrees").correct
    False
    """
    verdict = _find(id).check(answer)
    page.tell(id, verdict.correct)
    return verdict


def progress(chapter: str) -> page.ExerciseWidget:
    """Show how many of a chapter's exercises the reader has solved, with a button that clears the answers."""
    return page.progress(chapter, list(exercises(chapter)))


@cache
def exercises(chapter: str) -> dict[str, Exercise]:
    """The exercises of a chapter by id, in order."""
    if chapter not in CHAPTERS:
        raise UnknownExercise(f"no chapter {chapter!r}{_nearest(chapter, CHAPTERS)}")
    listed = importlib.import_module(f"ntklib.book.exercises.{chapter}").EXERCISES
    for i, e in enumerate(listed, 1):
        if e.id != f"{chapter}.ex{i}":
            raise ValueError(f"exercise {i} of {chapter} must have the id {chapter}.ex{i}, not {e.id}")
    return {e.id: e for e in listed}


def _find(id: str) -> Exercise:
    chapter = str(id).partition(".")[0]
    if chapter in CHAPTERS and id in exercises(chapter):
        return exercises(chapter)[id]                   # the other chapters are loaded for a misspelt id only
    every = {k: e for c in CHAPTERS for k, e in exercises(c).items()}
    if id not in every:
        raise UnknownExercise(f"no exercise {id!r}{_nearest(id, every)}")
    return every[id]


def _nearest(name, known) -> str:
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)
    return f": did you mean {near[0]!r}?" if near else ""
