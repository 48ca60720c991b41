"""What a reader can move: sliders, choices, a dragged mark, and the prediction made before anything is moved."""

import math
from dataclasses import dataclass, field
from itertools import pairwise


def _python(v):
    return v.item() if hasattr(v, "item") else v


@dataclass(frozen=True)
class Slider:
    """One symbol on a grid of values. The grid is the same with and without a kernel, so that a link means one state."""

    name: str  # the argument of compute()
    values: list  # increasing; integers stay integers
    value: float  # the default, one of `values`
    label: str  # in words
    symbol: str = ""  # the book's symbol, as shown: "θ", "L", "m"
    unit: str = ""
    concept: str = "ink"  # colour of the mark that it moves
    format: str = ""  # of the value beside the slider

    def __post_init__(self):
        values = [_python(v) for v in self.values]
        if len(values) < 2 or any(b <= a for a, b in pairwise(values)):
            raise ValueError(f"slider {self.name!r} needs at least two increasing values, got {values[:5]}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value", self.parse(_python(self.value)))

    def parse(self, v):
        """The grid's own value nearest to `v` if it is on the grid, else an error that names the grid."""
        if isinstance(v, bool) or not isinstance(v, int | float) or not math.isfinite(v):
            raise TypeError(f"{self.name} must be a finite number, got {v!r}")
        near = min(self.values, key=lambda g: abs(g - v))
        if not math.isclose(near, v, rel_tol=1e-6, abs_tol=1e-12):
            raise ValueError(
                f"{self.name}={v!r} is not on its grid {self.values[0]} to {self.values[-1]} "
                f"({len(self.values)} values): the nearest is {near}"
            )
        return near

    def spec(self) -> dict:
        """What the front end needs. An evenly spaced grid is a plain range; any other one is a range over its indices."""
        v = self.values
        step = (v[-1] - v[0]) / (len(v) - 1)
        even = all(math.isclose(x, v[0] + i * step, rel_tol=1e-9, abs_tol=1e-9 * step) for i, x in enumerate(v))
        return {
            "name": self.name,
            "kind": "slider",
            "values": v,
            "even": even,
            "unit": self.unit,
            "format": self.format,
        }


@dataclass(frozen=True)
class Choice:
    """One of a few named options."""

    name: str
    options: dict  # value -> what the reader sees
    value: object
    label: str
    symbol: str = ""
    concept: str = "ink"

    def __post_init__(self):
        odd = [v for v in self.options if isinstance(v, bool) or not isinstance(v, str | int)]
        if odd or not self.options:     # a link and JavaScript must write the value as Python does
            raise TypeError(f"choice {self.name!r} needs options whose values are strings or integers, got {odd}")
        object.__setattr__(self, "value", self.parse(self.value))

    @property
    def values(self) -> list:
        """The options' values, in order."""
        return list(self.options)

    def parse(self, v):
        """The option itself; a string that names an option is accepted too, as a link can hold nothing else."""
        for option in self.options:
            if option == v or str(option) == v:
                return option
        raise ValueError(f"{self.name} must be one of {self.values}, got {v!r}")

    def spec(self) -> dict:
        """What the front end needs."""
        return {"name": self.name, "kind": "choice", "values": self.values, "options": list(self.options.values())}


@dataclass(frozen=True)
class Drag:
    """Lets the pointer move a slider by a mark in a view: along x, along y, or as an angle in degrees round the centre, with
    or without sign or as a full turn, as the slider's range says. On a "globe", of which `figures.plane` shows the near half,
    a mark moves two sliders, its longitude and its latitude; on a "sphere", which `figures.leaning` shows, its angle from the
    pole and its turn about it, the book's theta_1 and theta_2. Of several marks in a view the pointer takes the nearest.

    `base` names sliders whose values are added to find the mark, for a step: `Drag(0, ("eps1", "eps2"), "sphere",
    ("theta1", "theta2"))` moves the step, and the mark is where it ends. Dragged round the pole, a slider of more than one
    full turn goes on counting.
    """

    view: int
    control: str | tuple[str, ...]
    read: str = "x"  # "x", "y", "angle", "globe" or "sphere"
    base: tuple[str, ...] = ()

    def __post_init__(self):
        if self.read not in ("x", "y", "angle", "globe", "sphere"):
            raise ValueError(f"Drag.read must be 'x', 'y', 'angle', 'globe' or 'sphere', got {self.read!r}")
        two = self.read in ("globe", "sphere")
        if len(self.controls) != (2 if two else 1):
            raise ValueError(f"Drag by {self.read!r} moves {'two sliders' if two else 'one slider'}, got {self.controls}")
        if self.base and len(self.base) != len(self.controls):
            raise ValueError(f"Drag of {self.controls} needs a base for each of them or none, got {self.base}")

    @property
    def controls(self) -> tuple[str, ...]:
        """The names of the sliders that it moves."""
        return (self.control,) if isinstance(self.control, str) else tuple(self.control)

    def spec(self) -> dict:
        """What the front end needs."""
        return {"view": self.view, "controls": self.controls, "read": self.read, "base": self.base}


@dataclass(frozen=True)
class Predict:
    """Hides `columns` until the reader has guessed the scalar `answer` of the default state, or asked to see it."""

    question: str
    answer: str
    columns: tuple = ()
    axis: str = "y"  # a drag on the first view moves the guess along this axis
    unit: str = ""
    format: str = ".3g"
    range: tuple = field(default=(-math.inf, math.inf))
