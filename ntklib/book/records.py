"""Recorded runs: what a computer once measured, with all that is needed to measure it again.

    records.save("gmp-cost", {"rows": rows}, command="python -m benchmarks.gmp --record gmp-cost", dtype="float32")
    records.load("gmp-cost")["rows"]
    records.said("gmp-cost")        the sentence that stands under a figure

A record is a JSON file under chapters/records/: the results beside date, command, device, dtype, seed, threads, torch's
version and the commit. A page shows its numbers only with that sentence.
"""

import datetime
import json
import platform
import subprocess
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parents[2] / "chapters" / "records"
ABOUT = ("date", "command", "commit", "device", "dtype", "seed", "threads", "torch")


def save(name: str, results: dict, *, command: str, dtype: str, device: str = "cpu", seed: int | None = None, code: tuple = ()) -> Path:
    """Write a record; returns its file. `code` names modules of the book that computed it, beside the library and the
    program itself. ValueError for results under a name that the provenance takes."""
    if taken := set(results) & set(ABOUT):
        raise ValueError(f"{name}: {sorted(taken)} say how a record was made: call the results otherwise")
    about = {
        "date": datetime.date.today().isoformat(),
        "command": command,
        "commit": commit(code),
        "device": named(device),
        "dtype": dtype,
        "seed": seed,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    parts = [f'"{key}": {json.dumps(value, ensure_ascii=False, separators=(",", ":"))}' for key, value in (about | results).items()]
    path.write_text("{" + ",\n ".join(parts) + "}\n", "utf8")
    return path


def load(name: str) -> dict:
    """A record. FileNotFoundError that names those that there are."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        there = ", ".join(sorted(p.stem for p in FOLDER.glob("*.json"))) or "none (is the book's chapters/ folder there?)"
        raise FileNotFoundError(f"no record {name!r}: there is {there}")
    return json.loads(path.read_text("utf8"))


def said(name: str) -> str:
    """Where a record comes from, in a sentence for a caption (Markdown)."""
    r = load(name)
    day = datetime.date.fromisoformat(r["date"])
    threads = f", {r['threads']} thread{'s' * (r['threads'] != 1)}" if r["device"].startswith("CPU") else ""
    seed = "" if r["seed"] is None else f", seed {r['seed']}"
    return f"Recorded on {day.day} {day:%B %Y} on a {r['device']}{threads}{seed}, with torch {r['torch']}: `{r['command']}`."


def named(device: str) -> str:
    """A torch device in words: "CPU (x86_64)", "NVIDIA H200"."""
    kind = torch.device(device).type
    return torch.cuda.get_device_name(device) if kind == "cuda" else f"CPU ({platform.machine()})" if kind == "cpu" else kind.upper()


def commit(code: tuple = ()) -> str:
    """The commit of the code that runs, with "+changes" where a file of it differs from it; "" outside a checkout.

    The code is what has been imported of the library and the benchmarks, the program, and the modules named in `code`; the
    rest of the book may be at work meanwhile.
    """
    root = FOLDER.parents[1]

    def counts(name):
        return (name.split(".")[0] in ("ntklib", "benchmarks", "__main__") and not name.startswith("ntklib.book")) or name in code

    files = {m.__file__ for n, m in list(sys.modules.items()) if counts(n) and getattr(m, "__file__", None)}
    files = {f for f in files if Path(f).is_relative_to(root)}

    def git(*words):
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", *sorted(files)) if files else ""
        return git("rev-parse", "--short", "HEAD") + "+changes" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return ""
