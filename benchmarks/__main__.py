"""Time ntklib against its peers, and check both: `python -m benchmarks [--quick]`.

Writes benchmarks/RESULTS.md and benchmarks/results.json. The first run installs the peers, each in an
environment of its own (some 4 GB).
"""

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from benchmarks import cases, gmp, venvs

HERE = Path(__file__).parent
NNGEOMETRY, RECIPE = ("nngeometry", "empirical"), ("ntklib", "torch_func")


def schedule(quick: bool) -> Iterator[tuple[Callable, tuple]]:
    """What to run, cheapest first."""
    for depth in (1, 10):
        yield cases.first_calls, (depth,)
    for chord in (1e-6, 1e-9):
        yield cases.kappa_accuracy, (chord,)
    yield cases.shared_layer, ()
    peers = {"nngeometry": NNGEOMETRY, "torch.func": RECIPE}
    if quick:
        for n in (500, 2000):
            for depth in (1, 3):
                yield cases.grams, (n, depth, 5)
        for n in (500, 1000, 2000):
            yield cases.kappas, (n, 3)
        yield cases.empiricals, (128, 256, 3, 3, {**peers, "curvlinops": ("curvlinops", "empirical")})
        return
    yield cases.empiricals, (128, 256, 3, 3, {**peers, "curvlinops": ("curvlinops", "empirical")})
    yield cases.empiricals, (512, 1024, 3, 1, {"torch.func": RECIPE})
    for width, depth in ((1024, 3), (2048, 3)):
        yield cases.empiricals, (512, width, depth, 9, {"nngeometry": NNGEOMETRY})
    for n in (5000, 10000):
        yield cases.empiricals, (n, 2048, 3, 1, {"ntklib, its MLP": ("ntklib", "empirical_mlp")})
    for n, rounds in ((512, 9), (2000, 5), (8000, 1)):
        yield cases.kappas, (n, rounds)
    for n, rounds in ((1000, 11), (4000, 3), (16000, 1)):
        for depth in (1, 3, 10):
            yield cases.grams, (n, depth, rounds)
    yield cases.kappas, (16000, 1)


def machine() -> dict:
    """Where, when and with what."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load before": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "ntklib": venvs.versions("ntklib", ["torch", "numpy", "mpmath"]),
        "neural-tangents": venvs.versions("neural_tangents", ["neural-tangents", "jax", "numpy"]),
        "nngeometry": venvs.versions("nngeometry", ["nngeometry", "torch"]),
        "curvlinops": venvs.versions("curvlinops", ["curvlinops-for-pytorch", "torch"]),
    }


def growth(rows: list[dict]) -> list[dict]:
    """The power of n that the largest two sizes show, for every series of ntklib's."""
    series = {}
    for row in rows:
        if row["who"].startswith("ntklib") and row.get("seconds"):
            series.setdefault((row["what"], row["L"], row["who"]), {})[row["n"]] = row["best"]
    found = []
    for (what, depth, who), times in series.items():
        if len(times) > 1:
            a, b = sorted(times)[-2:]
            power = math.log(times[b] / times[a]) / math.log(b / a)
            found.append({"what": what, "L": depth, "who": who, "from n": a, "to n": b, "power of n": power})
    return found


def table(rows: list[dict]) -> str:
    """Markdown."""
    columns = list(
        dict.fromkeys(k for row in rows for k, v in row.items() if v is not None and k not in ("what", "seconds"))
    )
    units = {"median": "median s", "best": "best s", "ratio": "time / first row's", "peak": "peak MB"}

    def cell(name: str, value) -> str:
        if value is None:
            return ""
        if name == "peak":
            return f"{value / 2**20:.0f}"
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(units.get(c, c) for c in columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(cell(c, row.get(c)) for c in columns) + " |" for row in rows])


def report(about: dict, rows: list[dict]) -> str:
    """RESULTS.md."""
    text = [
        "# ntklib against its peers",
        "",
        "Written by `make bench`. Peers take turns with ntklib in one run, each in its own "
        "process and environment, on the same inputs. A ratio is the median over rounds of times taken side by side, above 1 "
        "where the row is slower than the first of its group. JAX's compilation and ntklib's fit of the interpolant are done "
        "before the clock starts. Peak memory is above what the process held before the call, result included.",
        "",
    ]
    text += [
        f"* {name}: {value if not isinstance(value, dict) else ', '.join(f'{k} {v}' for k, v in value.items())}"
        for name, value in about.items()
    ]
    groups = {}
    for row in rows:
        groups.setdefault(row["what"], []).append(row)
    for what, group in groups.items():
        text += ["", f"## {what}", "", table(group)]
    return "\n".join([*text, "", "## How the cost grows", "", table(growth(rows)), ""])


def write(about: dict, rows: list[dict], layers: list[dict]) -> None:
    """RESULTS.md and results.json."""
    (HERE / "results.json").write_text(json.dumps({"about": about, "rows": rows, "gmp": layers}, indent=1))
    layers = [{"case": row["what"], **{k: v for k, v in row.items() if k != "what"}} for row in layers]
    text = report(about, rows) + "\n## GmP layers against nn.Linear\n\n" + table(layers) + "\n"
    (HERE / "RESULTS.md").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, three minutes in place of twenty")
    quick, rows = parser.parse_args().quick, []
    for peer in venvs.PINS:
        venvs.python(peer)
    about = machine()
    layers = gmp.main(quick)
    for case, arguments in schedule(quick):
        start = time.perf_counter()
        found = case(*arguments)
        rows += found
        print(
            f"{found[0]['what']}, n = {found[0]['n']}, L = {found[0]['L']} ({time.perf_counter() - start:.0f} s): "
            + ", ".join(f"{r['who']} {r['best']:.3g} s" for r in found if "best" in r),
            flush=True,
        )
        write({**about, "load after": os.getloadavg()[0]}, rows, layers)         # what is interrupted keeps what it has
    print(f"wrote {HERE / 'RESULTS.md'} and results.json")


if __name__ == "__main__":
    main()
