"""Every explorable of the book, by chapter. Each is a pure `compute` and a factory that returns the figure.

`EXPLORABLES` lists the factories by the figure's id; the tests run every one of them over its grid and in the browser.
"""

from importlib import import_module

CHAPTERS = ("intro", "angles")


def registry() -> dict:
    """{figure id: factory} for the whole book."""
    return {id: f for c in CHAPTERS for id, f in import_module(f"ntklib.book.explorables.{c}").EXPLORABLES.items()}
