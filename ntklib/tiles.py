"""Work on a matrix in tiles that fit a core's cache, on as many threads as torch may use."""
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch


def run(work: Callable[[slice, slice], None], n: int, m: int, symmetric: bool, device: torch.device) -> None:
    """Call work(rows, columns) for tiles that cover an (n, m) matrix, or the lower half of a symmetric one.

    On a CPU a tile is the work of one thread: the barrier after each of torch's own parallel operations would
    cost as much as the operation.
    """
    threads = torch.get_num_threads()
    side = 4096 if device.type != "cpu" else 256 if n * m > threads * 2**18 else 128
    jobs = [(slice(i, min(i + side, n)), slice(j, min(j + side, m)))
            for i in range(0, n, side) for j in range(0, i + 1 if symmetric else m, side)]
    if device.type != "cpu" or threads == 1 or len(jobs) == 1:
        for job in jobs:
            work(*job)
        return
    try:
        with ThreadPoolExecutor(threads, "tile", torch.set_num_threads, (1,)) as pool:
            list(pool.map(lambda job: work(*job), jobs))             # the list raises what a worker raised
    finally:
        torch.set_num_threads(threads)       # the workers' setting is also the default of threads to come
