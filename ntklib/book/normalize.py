"""Notebooks as they are committed: `python -m ntklib.book.normalize [--check] [--run] [FILE ...]`.

A small text output that is the same on every run stays, with its cell numbered, and the tests compare it.
Every other output (pictures, widgets, HTML, warnings) goes, and its cell is numbered null, which tells nbval
to run it and compare nothing. So a diff shows what a reader would see change, and a second run gives the same
bytes.

--check   change nothing; name each file that is not in this form, and exit with 1 if there is one
--run     execute first, in the notebook's own folder
Without FILE: every notebook under chapters/.
"""
import argparse
import itertools
import json
import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

KEPT = {"text/plain", "text/latex"}             # what nbval compares word by word
LONGEST = 4000                                  # characters of a cell's outputs
BY_CHANCE = re.compile(r"\bat 0x[0-9a-f]+")     # a memory address
CELL_KEYS = ("tags", "editable", "jupyter")     # the rest of the metadata belongs to one editor or one run
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
          "language_info": {"name": "python"}}


def normalize(text: str) -> str:
    """The committed form of a notebook given as JSON text. Raises ValueError for another kind of file."""
    try:
        notebook = nbformat.from_dict(json.loads(text))
        notebook.update(nbformat=4, nbformat_minor=5, metadata=nbformat.from_dict(KERNEL))
        name_cells(notebook.cells)
        nbformat.validate(notebook)
    except (json.JSONDecodeError, AttributeError, nbformat.ValidationError) as e:
        raise ValueError(f"not a notebook of format 4: {str(e).splitlines()[0]}") from e
    count = 0
    for cell in notebook.cells:
        cell.metadata = NotebookNode({k: cell.metadata[k] for k in CELL_KEYS if k in cell.metadata})
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
            compared = is_compared(cell)
            count += compared
            number(cell, count if compared else None)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def name_cells(cells):
    """Give every cell an id of its own. One that is there stays, so that a diff follows a cell that moves."""
    seen, taken = set(), {c.get("id") for c in cells}
    fresh = (name for i in itertools.count() if (name := f"cell-{i:02d}") not in taken)
    for cell in cells:
        if not cell.get("id") or cell["id"] in seen:
            cell["id"] = next(fresh)
        seen.add(cell["id"])


def joined(outputs: list) -> list:
    """The outputs with pieces of one stream put together: where a kernel cuts it is a matter of its timing."""
    out = []
    for output in outputs:
        if out and output.output_type == out[-1].output_type == "stream" and output.name == out[-1].name:
            out[-1].text += output.text
        else:
            out.append(output)
    return out


def is_compared(cell) -> bool:
    """Does this code cell's output stay? Only if all of it is short text that the next run repeats."""
    if not cell.outputs or {"nbval-ignore-output", "nbval-skip"} & set(cell.metadata.get("tags", [])):
        return False
    text = str(cell.outputs)
    return len(text) <= LONGEST and not BY_CHANCE.search(text) and all(map(is_text, cell.outputs))


def is_text(output) -> bool:
    """Standard output, or a result with no other face than text."""
    if output.output_type == "stream":
        return output.name == "stdout"
    return output.output_type in ("execute_result", "display_data") and set(output.data) <= KEPT


def number(cell, n: int | None):
    """Give the cell its execution count, or take its outputs away."""
    cell.execution_count = n
    cell.outputs = cell.outputs if n else []
    for output in cell.outputs:
        if output.output_type == "execute_result":
            output.execution_count = n
        if "metadata" in output:
            output.metadata = NotebookNode()


def run(path: Path) -> str:
    """The notebook's JSON text after executing it in its own folder."""
    from nbclient import NotebookClient
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    return nbformat.writes(notebook)


def main(argv=None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser("python -m ntklib.book.normalize", description="Put notebooks in order.")
    parser.add_argument("--check", action="store_true", help="only name the files that are not in order")
    parser.add_argument("--run", action="store_true", help="execute each notebook first")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all under chapters/")
    args = parser.parse_args(argv)
    files = args.files or [p for p in sorted(Path("chapters").rglob("*.ipynb")) if "checkpoint" not in p.name]
    if not files:
        parser.error("no notebook named, and none under chapters/")
    off = 0
    for path in files:
        before = path.read_text("utf8")
        after = normalize(run(path) if args.run else before)
        if after == before:
            continue
        off += 1
        if args.check:
            print(f"{path}: not normalised, run `python -m ntklib.book.normalize {path}`")
        else:
            path.write_text(after, "utf8")
            print(f"{path}: normalised")
    return int(args.check and off > 0)


if __name__ == "__main__":
    sys.exit(main())
