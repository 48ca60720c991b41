"""Trying a student's function on inputs, and saying what went wrong in words that help."""
import numbers
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

SEED = 2305_08813                       # the same inputs at every run: a verdict can be discussed


@dataclass(frozen=True)
class Trial:
    """Arguments for one call, and in words what they are: "random angles", "two parallel vectors"."""

    args: tuple
    about: str


@dataclass(frozen=True)
class Mistake:
    """A misconception: `matches(output, *args)` recognises it in one call, `feedback` answers it."""

    matches: Callable
    feedback: str


def gives(wrong: Callable) -> Callable:
    """Recognises a function that returns what `wrong` returns."""
    def matches(output, *args):
        return torch.allclose(output, wrong(*args).to(output.dtype), rtol=1e-5, atol=1e-7, equal_nan=True)
    return matches


def first_failure(f: Callable, exercise) -> str | None:
    """What is wrong with `f`, as a Markdown sentence or two, or None. Never raises what `f` raises.

    A wrong type, shape or an exception ends the trials; wrong values are gathered from all of them, since
    only all calls together tell one misconception from another.
    """
    failures = []
    for t in exercise.trials(torch.Generator().manual_seed(SEED)):
        expected = exercise.truth(*t.args)
        got, misfit = _attempt(f, t, expected)
        if misfit:
            return f"For {t.about} your function {misfit}"
        rtol = max(exercise.rtol, 2e3 * torch.finfo(expected.dtype).eps)
        if not torch.allclose(got, expected, rtol=rtol, atol=exercise.atol):
            failures.append((t, got, expected))
    if not failures:
        return None
    known = [m.feedback for m in exercise.mistakes if all(m.matches(got, *t.args) for t, got, _ in failures)]
    return " ".join([_worst(exercise, *failures[0]), *known[:1]])


def kind_of(x) -> str:
    """What a student passed or returned, in words: "0.5", "None", "a Tensor of shape (3,)", "an ndarray"."""
    if x is None or isinstance(x, numbers.Number | str):
        return repr(x)
    name, shape = type(x).__name__, tuple(getattr(x, "shape", ()))
    return f"{'an' if name[0] in 'aeionAEIO' else 'a'} {name}" + (f" of shape {shape}" if shape else "")


def _attempt(f: Callable, t: Trial, expected: Tensor) -> tuple[Tensor | None, str | None]:
    """The output of one call, or how it failed to be a tensor like the expected one."""
    given = [a.clone() if isinstance(a, Tensor) else a for a in t.args]
    try:
        got = f(*given)
    except Exception as e:
        reason = (str(e).strip() or "no message").splitlines()[0].replace("`", "'")[:200]
        return None, f"raised {type(e).__name__}: `{reason}`"
    if any(isinstance(a, Tensor) and not torch.equal(a, b) for a, b in zip(given, t.args, strict=True)):
        return None, "changed its argument: compute out of place, or on a copy."
    if got is None:
        return None, "returned None: does it end in `return`?"
    if not isinstance(got, Tensor):
        return None, f"returned {kind_of(got)}: return a torch.Tensor."
    if got.shape != expected.shape:
        return None, f"returned shape {tuple(got.shape)}, and {tuple(expected.shape)} is wanted."
    if got.dtype != expected.dtype:
        return None, f"returned {got.dtype} for {expected.dtype} input: keep the dtype of the input."
    return got.detach(), None


def _worst(exercise, t: Trial, got: Tensor, expected: Tensor) -> str:
    """The entry that is furthest off: its input if that is a number, what came and what is right."""
    error = ((got - expected).abs() / (expected.abs() + exercise.atol)).nan_to_num(nan=torch.inf)
    i = int(torch.where(got == expected, 0, error).flatten().argmax())
    names = exercise.signature.partition("(")[2].rstrip(")").split(", ")
    at = [f"{name} = {float(a.flatten()[i]) if isinstance(a, Tensor) else a:.8g}" for name, a in
          zip(names, t.args, strict=True) if not isinstance(a, Tensor) or a.shape == expected.shape]
    where = f" at {', '.join(at)}" if at else f" in entry {i}" if expected.numel() > 1 else ""
    came, right = float(got.flatten()[i]), float(expected.flatten()[i])
    s = f"For {t.about} your function gave {came:.8g}{where}, and {right:.8g} is right."
    return f"{s} {exercise.when_nan}".rstrip() if came != came else s
