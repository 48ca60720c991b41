"""What is timed, and what is right: mpmath for analytic kernels, explicit gradients in float64 for networks."""

import math

import mpmath as mp
import numpy as np

from benchmarks.race import race

D = 784
NEAR = 1e-6  # the chord of one planted pair


def points(n: int, seed: int = 0, near: float = NEAR) -> np.ndarray:
    """Random unit vectors; the first two are `near` apart."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    step = generator.standard_normal(D)
    X[1] = X[0] + near * step / np.linalg.norm(step)
    return X


def images(n: int, seed: int = 0) -> np.ndarray:
    """Non-negative points round 50 directions, as correlated as pictures are."""
    generator = np.random.default_rng(seed)
    X = np.maximum(generator.standard_normal((n, 50)) @ generator.standard_normal((50, D)), 0)
    return X + 0.3 * generator.random((n, D))


def ntk(x: np.ndarray, y: np.ndarray, depth: int) -> tuple[mp.mpf, mp.mpf]:
    """The ReLU kernel and its deficit (L + 1)|x||y| - K, in 50 digits."""
    with mp.workdps(50):
        x, y = [mp.mpf(float(v)) for v in x], [mp.mpf(float(v)) for v in y]
        size = mp.sqrt(mp.fdot(x, x) * mp.fdot(y, y))
        rho = total = min(mp.fdot(x, y) / size, mp.mpf(1))
        for _ in range(depth):
            angle = mp.acos(rho)
            rho = min(rho + (mp.sin(angle) - angle * rho) / mp.pi, mp.mpf(1))
            total = total * (1 - angle / mp.pi) + rho
        return size * total, size * (depth + 1 - total)


def grams(n: int, depth: int, rounds: int) -> list[dict]:
    X = points(n)
    at = [(0, 0), (n // 2, n // 2), (0, 1)] + [(i, n - 1 - i) for i in range(2, 8)]
    found = race(
        {
            "ntklib": ("ntklib", "gram"),
            "neural-tangents": ("neural_tangents", "gram"),
            "X X^T alone": ("ntklib", "product"),
        },
        {"X": X},
        {"depth": depth},
        rounds,
        at,
    )
    exact = [ntk(X[i], X[j], depth) for i, j in at]
    for name, row in found.items():
        if name != "X X^T alone" and "values" in row:
            values = [mp.mpf(v) for v in row.pop("values")]
            deficit = [float(abs((k + d - v) / d - 1)) for v, (k, d) in zip(values[2:], exact[2:], strict=True)]
            row["diagonal error"] = max(float(abs(v - k)) for v, (k, _) in zip(values[:2], exact[:2], strict=True))
            row["deficit error, 1e-6 apart"], row["deficit error, others"] = deficit[0], max(deficit[1:])
        row.pop("values", None)
    return [{"what": "analytic NTK", "n": n, "L": depth, "who": name, **row} for name, row in found.items()]


def first_calls(depth: int) -> list[dict]:
    found = race({"ntklib": ("ntklib", "first_call")}, {"X": points(300)}, {"depth": depth}, 3)
    seconds = found["ntklib"]["seconds"]
    return [
        {
            "what": "first call in a process, interpolant and all",
            "n": 300,
            "L": depth,
            "who": "ntklib",
            "median": seconds[0],
            "best": min(seconds[1:]),
        }
    ]


def kappas(n: int, rounds: int, depth: int = 3) -> list[dict]:
    """From the points, Gram included; eigvalsh is handed its matrix."""
    found = race(
        {
            "ntklib, from X": ("ntklib", "kappa"),
            "ntklib, from K": ("ntklib", "kappa_of_matrix"),
            "torch.linalg.eigvalsh(K)": ("ntklib", "eigvalsh"),
        },
        {"X": images(n)},
        {"depth": depth},
        rounds,
        [(0,), (1,)],
    )
    right = found["ntklib, from X"].get("values")
    for row in found.values():
        low, high = row.pop("values", (math.nan, math.nan))
        row["lambda_min, against the first row"] = abs(low / right[0] - 1)
        row["lambda_max, against the first row"] = abs(high / right[1] - 1)
    return [{"what": "kappa of the NTK", "n": n, "L": depth, "who": name, **row} for name, row in found.items()]


def kappa_accuracy(chord: float, depth: int = 3, n: int = 16) -> list[dict]:
    X = points(n, near=chord)
    with mp.workdps(50):
        K = mp.matrix(n, n)
        for i in range(n):
            for j in range(i + 1):
                K[i, j] = K[j, i] = ntk(X[i], X[j], depth)[0]
        exact = min(mp.eigsy(K, eigvals_only=True))
    found = race(
        {
            "ntklib": ("ntklib", "kappa"),
            "eigvalsh of ntklib's K": ("ntklib", "eigvalsh"),
            "eigvalsh of neural-tangents' K": ("neural_tangents", "kappa"),
        },
        {"X": X},
        {"depth": depth},
        1,
        [(0,)],
    )
    return [
        {
            "what": f"lambda_min of 16 points, two {chord:g} apart",
            "n": n,
            "L": depth,
            "who": name,
            "relative error": float(abs(row["values"][0] / exact - 1)) if "values" in row else None,
        }
        for name, row in found.items()
    ]


def network(n: int, width: int, depth: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    sizes = [D, *[width] * depth, 1]
    weights = {
        f"W{k}": generator.standard_normal((sizes[k + 1], sizes[k]), dtype=np.float32) for k in range(depth + 1)
    }
    return {"X": points(n).astype(np.float32), **weights}


def gradients(inputs: dict[str, np.ndarray], rows: list[int]) -> np.ndarray:
    """df/dW of the network at some points, every entry of it, in float64."""
    W = [inputs[f"W{k}"].astype(np.float64) for k in range(len(inputs) - 1)]
    scale, found = math.sqrt(2 / W[-1].shape[1]), []
    for x in inputs["X"][rows].astype(np.float64):
        a, z = [x], []
        for w in W[:-1]:
            z.append(w @ a[-1])
            a.append(scale * np.maximum(z[-1], 0))
        delta, parts = np.ones(1), []
        for k in range(len(W) - 1, -1, -1):
            parts.append(np.outer(delta, a[k]).ravel())
            if k:
                delta = scale * (z[k - 1] > 0) * (delta @ W[k])
        found.append(np.concatenate(parts))
    return np.array(found)


def empiricals(n: int, width: int, depth: int, rounds: int, others: dict) -> list[dict]:
    inputs, rows = network(n, width, depth), [0, 1, 2, n // 2, n - 1]
    at = [(i, j) for i in rows for j in rows]
    found = race({"ntklib": ("ntklib", "empirical"), **others}, inputs, {}, rounds, at)
    J = gradients(inputs, rows)
    exact = (J @ J.T).ravel()
    for row in found.values():
        if "values" in row:
            row["error / max K"] = float(np.abs(np.array(row.pop("values")) - exact).max() / exact.max())
    return [
        {"what": f"empirical NTK, width {width}, float32", "n": n, "L": depth, "who": name, **row}
        for name, row in found.items()
    ]


def shared_layer() -> list[dict]:
    generator = np.random.default_rng(0)
    inputs = {
        "X": generator.standard_normal((16, 20)),
        "W": generator.standard_normal((20, 20)) / 4,
        "V": generator.standard_normal((1, 20)),
    }
    at = [(i, j) for i in range(16) for j in range(16)]
    found = race(
        {
            "torch.func": ("ntklib", "twice_exact"),
            "ntklib": ("ntklib", "twice"),
            "nngeometry": ("nngeometry", "twice"),
        },
        inputs,
        {},
        1,
        at,
    )
    exact = np.array(found.pop("torch.func")["values"])
    return [
        {
            "what": "empirical NTK, a layer used twice",
            "n": 16,
            "L": 2,
            "who": name,
            "error": row.get("error"),
            "error / max K": float(np.abs(np.array(row["values"]) - exact).max() / exact.max())
            if "values" in row
            else None,
        }
        for name, row in found.items()
    ]
