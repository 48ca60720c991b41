"""Each peer in an environment of its own, pinned, made once under benchmarks/.venvs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent / ".venvs"
# Plain `pip install neural-tangents` takes a JAX that it cannot be imported with; 0.5.3 is the newest that works.
# torch must be named where a package wants torchvision, or pip brings another torch; torchvision itself is not needed.
PINS = {
    "neural_tangents": ["neural-tangents==0.6.5", "jax==0.5.3", "jaxlib==0.5.3"],
    "nngeometry": ["nngeometry==0.4", "torch==2.13.0"],
    "curvlinops": ["curvlinops-for-pytorch==3.0.1", "torch==2.13.0"],
}


def python(peer: str) -> str:
    """The peer's interpreter; installs it the first time, which takes minutes and up to 3 GB."""
    if peer == "ntklib":
        return sys.executable
    folder = ROOT / peer
    done, pins = folder / "pins.txt", "\n".join(PINS[peer])
    if not done.exists() or done.read_text() != pins:
        print(f"installing {', '.join(PINS[peer])} into {folder} (once)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--no-cache-dir", *PINS[peer]], check=True)
        subprocess.run([folder / "bin" / "pip", "uninstall", "--quiet", "--yes", "torchvision"], check=True)
        done.write_text(pins)
    return str(folder / "bin" / "python")


def versions(peer: str, packages: list[str]) -> dict[str, str]:
    """What is installed there."""
    code = "import sys; from importlib.metadata import version; print(*(version(p) for p in sys.argv[1:]))"
    said = subprocess.run([python(peer), "-c", code, *packages], check=True, capture_output=True, text=True).stdout
    return dict(zip(packages, said.split(), strict=True))
