"""The chapters of the book that exist, in the order of the table of contents.

Each has a module of its name in `explorables/`, `exercises/` and `claims/`, and a notebook under `chapters/`.
"""
CHAPTERS = ("angles", "depth", "gradient", "linear", "tangent", "pairs", "points", "boundaries", "jumps", "coordinates", "metric", "theorem", "layer")
