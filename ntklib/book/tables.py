"""The numbers behind an explorable: what `compute` returned, as named tables, and a whole grid of states packed for a page.

Tables are columns of equal length: {"path": {"layer": [...], "angle": [...]}, "scalar": {"final": [...]}}.
"""

import base64
import gzip
import json
from dataclasses import dataclass

import numpy as np

Tables = dict[str, dict[str, np.ndarray]]


def tables(out: dict) -> Tables:
    """`compute`'s dict as tables: a dict of arrays is a table, single numbers and strings share the table "scalar"."""
    if not isinstance(out, dict):
        raise TypeError(f"compute must return a dict of tables and numbers, got {type(out).__name__}")
    t: Tables = {"scalar": {}}
    for name, value in out.items():
        if isinstance(value, dict):
            t[name] = {c: np.atleast_1d(_array(f"{name}.{c}", v)) for c, v in value.items()}
            if len({len(a) for a in t[name].values()}) > 1:
                raise ValueError(
                    f"table {name!r} needs columns of one length, got "
                    f"{ {c: len(a) for c, a in t[name].items()} }: pad the short ones with nan"
                )
        else:
            t["scalar"][name] = np.atleast_1d(_array(name, value))
            if len(t["scalar"][name]) != 1:
                raise ValueError(f"{name!r} is an array: put it into a table, as {{'table': {{{name!r}: ...}}}}")
    return t


def _array(name: str, v) -> np.ndarray:
    if hasattr(v, "detach"):
        v = v.detach().cpu()
        v = (v.double() if v.is_floating_point() else v).numpy()      # NumPy has no bfloat16
    a = np.asarray(v)
    if a.dtype.kind not in "USbiuf" or a.ndim > 1:
        raise TypeError(f"{name} must be a column of real numbers or of strings, got {a.ndim} dimensions of {a.dtype}")
    return a if a.dtype.kind in "US" else a.astype(np.float64)


def plain(t: Tables) -> dict:
    """Tables as JSON-ready lists; nan and infinity become null, but an infinite scalar is read as "∞"."""

    def column(a, table):
        return a.tolist() if a.dtype.kind in "US" else [_entry(x, table) for x in a]

    return {n: {c: column(a, n) for c, a in cols.items()} for n, cols in t.items()}


def _entry(x: float, table: str) -> float | str | None:
    return float(x) if np.isfinite(x) else "∞" if table == "scalar" and x > 0 else None


@dataclass(frozen=True)
class Packed:
    """All states of a grid. `constant`: the columns that never change, as plain tables. `fields`: [table, column, length,
    levels or None] of the others. `blob`: their float32 values, state by state, as base64 of gzip of byte planes."""

    constant: dict
    fields: list
    blob: str


def pack(states: list[Tables]) -> Packed:
    """Pack the tables of every state; a text column that varies is stored as an index into its levels."""
    first, constant, fields, columns = states[0], {}, [], []
    for s in states:
        if odd := {(n, c) for n in s for c in s[n]} ^ {(n, c) for n in first for c in first[n]}:
            raise ValueError(f"every state needs the same columns: {sorted(odd)} are in some states only; fill them with nan")
    for name, cols in first.items():
        for col, a in cols.items():
            every = [s.get(name, {}).get(col) for s in states]
            if any(e is None or e.shape != a.shape for e in every):
                raise ValueError(
                    f"column {col!r} of table {name!r} must have the same length in every state: pad it with nan"
                )
            stack = np.stack(every)
            if (stack == stack[0]).all() or (
                stack.dtype.kind == "f" and np.array_equal(stack, np.broadcast_to(a, stack.shape), equal_nan=True)
            ):
                constant.setdefault(name, {})[col] = plain({name: {col: a}})[name][col]
                continue
            levels = None
            if stack.dtype.kind in "US":
                levels, codes = np.unique(stack, return_inverse=True)
                stack, levels = codes.reshape(stack.shape), levels.tolist()
            fields.append([name, col, stack.shape[1], levels])
            columns.append(stack.astype("<f4"))
    matrix = np.concatenate(columns, axis=1) if columns else np.zeros((len(states), 0), "<f4")
    planes = (
        np.ascontiguousarray(matrix).view(np.uint8).reshape(-1, 4).T.tobytes()
    )  # equal bytes side by side: gzip sees them
    return Packed(constant, fields, base64.b64encode(gzip.compress(planes, 9, mtime=0)).decode())


def unpack(packed: Packed, states: int) -> list[dict]:
    """The inverse of `pack`, as plain tables in float32: what the page's front end shows (explorable.js does the same)."""
    raw = np.frombuffer(gzip.decompress(base64.b64decode(packed.blob)), np.uint8)
    matrix = np.ascontiguousarray(raw.reshape(4, -1).T).view("<f4").reshape(states, -1)
    out = []
    for row in matrix:
        t, o = json.loads(json.dumps(packed.constant)), 0
        for name, col, n, levels in packed.fields:
            a = row[o : o + n]
            t.setdefault(name, {})[col] = [levels[int(x)] for x in a] if levels else plain({name: {col: a}})[name][col]
            o += n
        out.append(t)
    return out
