"""Every explorable of the book, by chapter. Each is a pure `compute` and a factory that returns the figure.

`EXPLORABLES` lists the factories by the figure's id; the tests run every one of them over its grid and in the browser.
"""

from importlib import import_module

from ntklib.book.chapters import CHAPTERS


def registry() -> dict:
    """{figure id: factory} for the whole book."""
    modules = [import_module(f"ntklib.book.explorables.{c}") for c in ("intro", *CHAPTERS)]
    return {id: figure for module in modules for id, figure in module.EXPLORABLES.items()}
