"""Processes that take turns: one a peer, on the same inputs, in the same run.

While one works the others wait, so that a ratio of times taken side by side means something even on a machine
whose speed wanders. A ratio is the median over the rounds of (time of the peer / time of ntklib in the same
round).
"""

import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import venvs

FOLDER = Path(__file__).parent / "peers"
SCRIPTS = {
    "ntklib": "ours.py",
    "neural_tangents": "jax_neural_tangents.py",
    "nngeometry": "hooks_nngeometry.py",
    "curvlinops": "operator_curvlinops.py",
}


class Peer:
    """A peer's process, with one task prepared."""

    def __init__(self, peer: str, task: str, inputs: str, options: dict):
        self.process = subprocess.Popen(
            [venvs.python(peer), SCRIPTS[peer]],
            cwd=FOLDER,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.failed = self.ask(do="prepare", task=task, inputs=inputs, options=options).get("error")

    def ask(self, **order) -> dict:
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": "the process died (out of memory?)"}

    def run(self) -> dict:
        answer = {"error": self.failed} if self.failed else self.ask(do="run")
        self.failed = answer.get("error")
        return answer

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def race(
    entrants: dict[str, tuple[str, str]],
    inputs: dict[str, np.ndarray],
    options: dict,
    rounds: int,
    at: list[tuple] | None = None,
) -> dict[str, dict]:
    """For each name -> (peer, task): the times of its rounds, its peak of memory, entries `at` of its result.

    The first name is the yardstick of the ratios.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "inputs.npz")
        np.savez(path, **inputs)
        peers = {name: Peer(peer, task, path, options) for name, (peer, task) in entrants.items()}
    found = {name: {"seconds": [], "peak": 0} for name in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            answer = peer.run()
            if "error" not in answer:
                found[name]["seconds"].append(answer["seconds"])
                found[name]["peak"] = max(found[name]["peak"], answer["peak"])
    for name, peer in peers.items():
        if peer.failed:
            found[name]["error"] = peer.failed
        elif at is not None:
            found[name]["values"] = peer.ask(do="values", at=at)["values"]
        peer.close()
    yardstick = found[next(iter(peers))]["seconds"]
    for row in found.values():
        if row["seconds"]:
            ratios = [a / b for a, b in zip(row["seconds"], yardstick, strict=False)]
            row.update(
                median=statistics.median(row["seconds"]), best=min(row["seconds"]), ratio=statistics.median(ratios)
            )
    return found
