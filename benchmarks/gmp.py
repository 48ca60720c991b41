"""GmP layers against nn.Linear and torch's weight_norm: time, memory and accuracy, in one process.

    python -m benchmarks.gmp [--quick] [--threads 1] [--batches 32 128 ...] [--record NAME]

The layers take turns, a step of each a round. A ratio is the median, over the quietest quarter of the rounds,
of (time of the layer / time of nn.Linear in the same round). Each layer ends in a ReLU. With one thread it is
CPU time that is taken, which other work on the machine disturbs least.
"""
import argparse
import shlex
import statistics
import sys
import time
from functools import partial

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from ntklib.book import records
from ntklib.gmp import GmPLinear, from_module, geometric, unit
from ntklib.sphere import from_angles, to_angles

SIZES = ((1024, 1024, 128, 2.5), (4096, 4096, 1024, 1.4), (4096, 4096, 128, None), (10_000, 1024, 128, None))


def layers(n: int, m: int) -> dict[str, nn.Module]:
    return {"nn.Linear": nn.Sequential(nn.Linear(n, m), nn.ReLU()),
            "weight_norm": nn.Sequential(weight_norm(nn.Linear(n, m)), nn.ReLU()),
            "geometric": nn.Sequential(geometric(nn.Linear(n, m)), nn.ReLU()),
            "GmPLinear": GmPLinear(n, m)}


def step(layer: nn.Module, x: torch.Tensor) -> None:
    layer.zero_grad()
    layer(x).sum().backward()


@torch.no_grad()
def infer(layer: nn.Module, x: torch.Tensor) -> None:
    layer(x)


def seconds(f, device: str) -> float:
    wait = torch.cuda.synchronize if device == "cuda" else int
    clock = time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    wait()
    start = clock()
    f()
    wait()
    return clock() - start


def speed(n: int, m: int, batch: int, target: float | None, rounds: int, device: str) -> list[dict]:
    """Forward and backward; then inference, where the directions are kept."""
    x = torch.randn(batch, n, generator=torch.Generator().manual_seed(0)).to(device)
    peers = {name: layer.to(device) for name, layer in layers(n, m).items()}
    rows = []
    for what in ("train", "infer"):
        for layer in peers.values():
            layer.train(what == "train")
        f = step if what == "train" else infer
        for layer in peers.values():
            f(layer, x)                                                   # warm up
        taken = {name: [] for name in peers}
        for _ in range(rounds):
            for name, layer in peers.items():
                taken[name].append(seconds(partial(f, layer, x), device))
        quiet = sorted(range(rounds), key=lambda k: sum(t[k] for t in taken.values()))[:-(-rounds // 4)]
        for name in list(peers)[1:]:
            ratios = [taken[name][k] / taken["nn.Linear"][k] for k in quiet]
            goal = target if (name, what) == ("GmPLinear", "train") else None
            rows.append({"what": f"{what} {n}->{m}, batch {batch}", "layer": name,
                         "ms": 1e3 * statistics.median(taken[name][k] for k in quiet),
                         "x nn.Linear": statistics.median(ratios),
                         "of the minima": min(taken[name]) / min(taken["nn.Linear"]), "target": goal})
    return rows


def peak_bytes(f, device: str) -> int:
    """The most that f holds at one time, above what was there before."""
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        f()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(profile_memory=True) as profile:
        f()
    held = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


def memory(n: int, m: int, batch: int, device: str) -> list[dict]:
    """Weight-sized buffers above those of nn.Linear, whose step itself needs one, the gradient."""
    x, peaks = torch.randn(batch, n, device=device), {}
    for name, layer in layers(n, m).items():
        layer = layer.to(device)
        step(layer, x)
        layer.zero_grad()
        peaks[name, "train"] = peak_bytes(partial(step, layer, x), device)
        layer.eval()
        with torch.no_grad():
            layer(x)
            peaks[name, "eval"] = peak_bytes(partial(infer, layer, x), device)
    rows = []
    for name in ("weight_norm", "geometric", "GmPLinear"):
        for mode, goal in (("train", 3.0), ("eval", 0.0)):
            extra = (peaks[name, mode] - peaks["nn.Linear", mode]) / (4 * n * m)
            rows.append({"what": f"memory {n}->{m}, {mode}", "layer": name, "extra buffers": extra,
                         "target": goal if name == "GmPLinear" else None})
    return rows


def accuracy(n: int = 10_000, units: int = 8) -> list[dict]:
    """Euclidean error of float32 directions against w/|w| in float64."""
    w = torch.randn(units, n, generator=torch.Generator().manual_seed(1))
    exact = w.double() / w.double().norm(dim=1, keepdim=True)
    theta = to_angles(w)[1]
    one = torch.ones(units, 1)
    plain = torch.cat([one, theta.sin()], 1).cumprod(1) * torch.cat([theta.cos(), one], 1)
    module = nn.Linear(n, units, bias=False)
    module.load_state_dict({"weight": w})
    latitude = torch.pi / 2 - to_angles(w.double())[1]
    found = {"GmPLinear": from_module(module).direction(), "unit(float32 latitude)": unit(latitude.float()),
             "from_angles(float32 theta)": from_angles(theta), "plain float32 product of theta": plain}
    return [{"what": f"float32 error of u, n = {n}", "layer": name,
             "error": (u.double() - exact).norm(dim=1).max().item(),
             "target": 1e-6 if name == "GmPLinear" else None} for name, u in found.items()]


def main(quick: bool = False) -> list[dict]:
    """All figures as rows; quick leaves out the sizes that take minutes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = accuracy() + memory(1024, 1024, 128, device)
    for n, m, batch, target in SIZES[:1] if quick else SIZES:
        rows += speed(n, m, batch, target, 20 if quick else 12 if n * m * batch > 1e9 else 80, device)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the small size alone, seconds")
    parser.add_argument("--threads", type=int, help="as many as torch takes by default")
    parser.add_argument("--batches", type=int, nargs="+", help="only the speed of 1024 -> 1024, at these batch sizes")
    parser.add_argument("--record", metavar="NAME", help="keep the rows as chapters/records/NAME.json")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = main(options.quick) if not options.batches else [
        row for batch in options.batches for row in speed(1024, 1024, batch, None, 20, device)]
    if options.record:
        command = shlex.join(["python", "-m", "benchmarks.gmp", *sys.argv[1:]])
        records.save(options.record, {"rows": rows}, command=command, dtype="float32", device=device)
    for row in rows:
        figures = {k: v for k, v in row.items() if k not in ("what", "layer") and v is not None}
        print(f"{row['what']:34} {row['layer']:32}", "  ".join(f"{k} {v:.3g}" for k, v in figures.items()))
