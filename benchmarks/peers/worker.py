"""What every peer's process does: wait for a line of JSON, do it, answer with one.

`serve({"task": setup})`: setup(inputs, **options) returns f, and f() the result as a NumPy array. Needs
nothing but NumPy, so that it runs in every peer's own environment.
"""

import json
import re
import resource
import sys
import time
import traceback

import numpy as np


def memory(field: str) -> int:
    """VmRSS, or VmHWM, the peak, in bytes; where /proc is missing, the peak of the whole process."""
    try:
        with open("/proc/self/status") as status:
            return 1024 * int(re.search(field + r":\s+(\d+)", status.read()).group(1))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w") as control:
            control.write("5")
    except OSError:
        pass


def serve(tasks: dict) -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print must not look like an answer
    f = result = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "prepare":
                f = result = None
                inputs = np.load(order["inputs"]) if order["inputs"] else {}
                f = tasks[order["task"]]({k: inputs[k] for k in inputs}, **order["options"])
                answer = {}
            elif order["do"] == "run":
                result = None
                reset_peak()
                before, start = memory("VmRSS"), time.perf_counter()
                result = f()
                answer = {"seconds": time.perf_counter() - start, "peak": memory("VmHWM") - before}
            else:  # some entries of the last result
                result = np.asarray(result)
                answer = {"values": [float(result[tuple(i)]) for i in order["at"]], "shape": result.shape}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}", "where": traceback.format_exc()[-800:]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
