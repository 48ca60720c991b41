"""A lab: an experiment that needs a kernel, with Run, Stop, a progress bar and the device named.

    Lab(figure, run, own=[Slider("steps", [500, 1500, 5000], 1500, "steps")])

`figure` is an explorable of recorded runs: it is all that a page of the book shows. In JupyterLab the same figure stands under
the lab's buttons, and Run computes the state that its controls show: `run(**state, **own, device=...)` is a generator that
yields (share done, tables) as often as it likes, in the form that the figure's `compute` returns. `own` are controls that only
a live run has. Nothing else of the kernel is held up: a run gives way to it at every yield.

    python -m ntklib.book.lab MODULE RECORD     runs a lab over its figure's grid, and keeps chapters/records/RECORD.json
"""

import argparse
import asyncio
import math
import os
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

import ipywidgets as widgets
import torch

from ntklib.book import records
from ntklib.book.controls import Slider
from ntklib.book.explorable import Explorable
from ntklib.book.markup import number
from ntklib.book.tables import plain, tables

__all__ = ["Lab", "devices", "main", "make_record", "recorded"]
RECORDED = "Shown: the recorded run."
PAINT = 0.15  # seconds between two pictures of a run


class Lab(widgets.VBox):
    """See the module. ValueError for an own control that the figure has too."""

    def __init__(self, figure: Explorable, run: Callable[..., Iterator[tuple[float, dict]]], *, own=()):
        if shared := {c.name for c in figure.controls} & {c.name for c in own}:
            raise ValueError(f"{figure.id}: {sorted(shared)} are controls of the figure already")
        self.figure, self.compute, self.own = figure, run, {c.name: (c, _field(c)) for c in own}
        self.device = widgets.Dropdown(options=devices(), description="Device")
        self.run_button = widgets.Button(description="Run", button_style="primary", tooltip="Run with the figure's state")
        self.stop_button = widgets.Button(description="Stop", disabled=True)
        self.progress = widgets.FloatProgress(value=0, min=0, max=1, layout={"width": "12rem"})
        self.status = widgets.HTML(RECORDED, layout={"min_width": "14rem"})
        self.status.add_class("lab-status")
        self._task, self._stopping = None, False
        self.run_button.on_click(lambda _: self.start())
        self.stop_button.on_click(lambda _: self.stop())
        figure.observe(self._moved, "state")
        wrap = {"flex_flow": "row wrap", "align_items": "center"}
        fields = widgets.HBox([self.device, *(f for _, f in self.own.values())], layout=wrap)
        buttons = widgets.HBox([self.run_button, self.stop_button, self.progress, self.status], layout=wrap)
        super().__init__([fields, buttons, figure])

    def start(self) -> None:
        """What the Run button does: the run becomes a task of the kernel's event loop."""
        self._task = asyncio.ensure_future(self.go())

    def stop(self) -> None:
        """What the Stop button does: the run ends at its next yield, and what it has found stays in view."""
        self._stopping = True

    def _moved(self, _) -> None:
        """Another state: the figure shows its recorded run, and what runs is no longer what the controls say."""
        if self.stop_button.disabled:
            self.status.value = RECORDED
        self.stop()

    async def go(self) -> dict | None:
        """A run from beginning to end, shown as it goes; returns its last tables."""
        if not self.stop_button.disabled:
            return None  # one run at a time
        state, own = dict(self.figure.state), {name: field.value for name, (_, field) in self.own.items()}
        began, painted, done, found = time.monotonic(), 0.0, 0.0, None
        self._stopping, self.run_button.disabled, self.stop_button.disabled = False, True, False
        self.progress.bar_style, self.progress.value = "", 0
        where = records.named(self.device.value)
        self.status.value = f"Running on {where} …"
        try:
            for done, found in self.compute(**state, **own, device=self.device.value):
                self.progress.value = done
                if time.monotonic() - painted > PAINT:
                    self._show(state, found)
                    painted = time.monotonic()
                await asyncio.sleep(0.001)  # lets the kernel hear Stop
                if self._stopping:
                    break
            if found is not None and dict(self.figure.state) == state:
                self._show(state, found)
            how = f"Stopped at {done:.0%}" if done < 1 else "Done"
            self.progress.bar_style = "success" if done >= 1 else "warning"
            self.status.value = f"{how}: {number(time.monotonic() - began, '.1f')} s on {where}."
            return found
        except Exception as e:
            self.progress.bar_style = "danger"
            self.status.value = f"{type(e).__name__}: {e}".replace("<", "&lt;")
            raise
        finally:
            self.run_button.disabled, self.stop_button.disabled = False, True

    def _show(self, state: dict, found: dict) -> None:
        self.figure.send({"state": state, "tables": plain(tables(found))})

    def __repr__(self):
        return f"Lab({self.figure.id})"

    def _repr_mimebundle_(self, **kw):
        if os.environ.get("NTKLIB_STATIC"):  # the page of the book: the recorded runs, as an explorable
            return self.figure._repr_mimebundle_(**kw)
        return (super()._repr_mimebundle_(**kw) or {}) | {"text/plain": repr(self)}


def devices() -> dict[str, str]:
    """Where a run can happen, in words: {"NVIDIA H200": "cuda:0", "CPU (x86_64)": "cpu"}. The fastest first."""
    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    names = {}
    for d in [*found, "cpu"]:
        name = records.named(d)
        names[f"{name} {d}" if name in names else name] = d
    return names


def _field(c):
    """A slider or a choice as ipywidgets."""
    if isinstance(c, Slider):
        options = [(f"{number(v, c.format)} {c.unit}".strip(), v) for v in c.values]
        kind = widgets.SelectionSlider
    else:
        options, kind = [(words, v) for v, words in c.options.items()], widgets.Dropdown
    return kind(options=options, value=c.value, description=c.label, style={"description_width": "initial"})


# ---- recorded runs -------------------------------------------------------------------------------------------------
def recorded(name: str, state: dict) -> dict:
    """The tables of a recorded run. KeyError for a state that was not recorded."""
    for run in _record(name)["runs"]:
        if run["state"] == state:
            return {n: {c: [math.nan if x is None else x for x in v] for c, v in t.items()} if isinstance(t, dict) else t for n, t in run["tables"].items()}
    raise KeyError(f"the record {name!r} has no run with {state}: make it again")


_record = cache(records.load)


def make_record(name: str, grid: list[dict], run: Callable, *, command: str, dtype: str, seed=None, code=(), device="cpu", tell=print):
    """Run every state of a grid to its end, and keep the last tables of each. Numbers are kept to 6 digits."""
    runs = []
    for state in grid:
        began = time.monotonic()
        ((_, found),) = deque(run(**state, device=device), maxlen=1)
        runs.append({"state": state, "tables": _short(found)})
        tell(f"{state}: {time.monotonic() - began:.1f} s")
    return records.save(name, {"runs": runs}, command=command, dtype=dtype, device=device, seed=seed, code=code)


def _short(found: dict) -> dict:
    """Tables as JSON keeps them: 6 digits, None for what is no number."""
    def entry(x):
        return float(f"{x:.6g}") if isinstance(x, float) else x

    t = plain(tables(found))
    scalar = {k: entry(v[0]) for k, v in t.pop("scalar").items()}
    return {n: {c: [entry(x) for x in column] for c, column in cols.items()} for n, cols in t.items()} | scalar


def main(argv=None) -> None:
    """The command. The module of a chapter names what it keeps: RECORDS = {name: arguments of `make_record`}."""
    parser = argparse.ArgumentParser("python -m ntklib.book.lab", description="Make a record again.")
    parser.add_argument("module", help="a chapter's module in ntklib/book/explorables")
    parser.add_argument("record", help="the name of the record")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)
    module = f"ntklib.book.explorables.{options.module}"
    about = import_module(module).RECORDS[options.record]
    command = shlex.join(["python", "-m", "ntklib.book.lab", *(sys.argv[1:] if argv is None else argv)])
    print("wrote", make_record(options.record, **about, command=command, code=(module,), device=options.device))


if __name__ == "__main__":
    main()
