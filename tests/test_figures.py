"""One colour per concept: legible on both pages, told apart by colour-blind readers."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from ntklib.book import figures
from ntklib.book.figures import PALETTE, Still, concept, css_variables, themed

GROUPS = [("linear", "relu", "leaky", "gradient", "measured"), ("sp", "wn", "bn", "ln", "gmp"), ("ink", "gmp", "metric")]
# Machado, Oliveira and Fernandes 2009, severity 1: protanopia and deuteranopia, on linear RGB
BLIND = [
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
]


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    la, lb = (float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)


def lab(rgb):
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ rgb
        / [0.9505, 1, 1.089]
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("mode", PALETTE)
def test_a_label_in_any_concepts_colour_reads_at_4_5_to_1(mode):
    p = PALETTE[mode]
    low = {
        k: round(contrast(v, p["paper"]), 2)
        for k, v in p.items()
        if k not in ("paper", "faint") and contrast(v, p["paper"]) < 4.5
    }
    assert not low


@pytest.mark.parametrize("mode", PALETTE)
@pytest.mark.parametrize("group", GROUPS)
def test_concepts_that_meet_in_a_figure_differ_for_every_reader(mode, group):
    for matrix in [np.eye(3), *BLIND]:
        colours = {k: lab(np.clip(matrix @ linear(PALETTE[mode][k]), 0, 1)) for k in group}
        near = {
            (a, b): round(float(np.linalg.norm(colours[a] - colours[b])))
            for a, b in itertools.combinations(group, 2)
            if np.linalg.norm(colours[a] - colours[b]) < 12
        }  # about five just noticeable differences
        assert not near


def test_light_and_dark_name_the_same_concepts():
    assert PALETTE["light"].keys() == PALETTE["dark"].keys()
    assert css_variables().count("light-dark(") == len(PALETTE["light"])


def test_an_unknown_concept_is_refused_by_name():
    with pytest.raises(KeyError, match="no concept 'rleu' in the palette: choose one of ink"):
        concept("rleu")


def test_themed_turns_colours_into_variables_and_ids_into_its_own():
    out = themed(
        '<?xml?><svg><clipPath id="c7"/><path clip-path="url(#c7)" fill="#0b64a0" style="stroke: #0B64A0"/></svg>',
        "f",
    )
    assert 'fill="var(--c-relu)"' in out
    assert "stroke: var(--c-relu)" in out
    assert 'id="f-0"' in out
    assert "url(#f-0)" in out
    assert out.startswith("<svg aria-hidden")


def test_a_still_is_deterministic():
    import matplotlib

    matplotlib.use("agg")
    from ntklib.book.explorables.angles import wedge_figure

    one, two = wedge_figure(), wedge_figure()
    assert isinstance(one, Still)
    assert one._repr_html_() == two._repr_html_()
    assert "var(--c-relu)" in one._repr_html_()
    assert repr(one).startswith("Figure wedge: The plane")


def test_no_text_of_a_still_is_black_on_a_dark_page():
    """A text without a colour is black in an SVG; one that is written outside the book's style would be."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    ax.set_axis_off()
    ax.text(0.5, 0.5, r"$\theta$ here")
    ax.text(0.5, 0.2, "there", color=PALETTE["light"]["relu"])
    svg = Still(fig, id="f", alt="", caption="")._repr_html_()
    texts = re.findall(r"<text[^>]*>|<g style=[^>]*>", svg)
    assert len(texts) == 2
    assert all("fill: var(--c-" in t for t in texts), texts


def test_prose_uses_the_colours_of_the_figures():
    css = (Path(figures.__file__).parent / "static" / "book.css").read_text()
    used = set(re.findall(r"--ntk-(\w+)", (Path(__file__).parents[1] / "chapters" / "notation.md").read_text()))
    assert used == set(PALETTE["light"]) - {"ink", "faint", "paper"}
    for name in used:
        assert f"--ntk-{name}: light-dark({PALETTE['light'][name]}, {PALETTE['dark'][name]});" in css


def test_a_drawn_sphere_leans_its_pole_towards_the_reader():
    pole, front, side = figures.leaning(np.eye(3))
    assert np.allclose([pole @ front, pole @ side, front @ side], 0)
    assert np.allclose(side, [1, 0, 0])                         # theta = (90, 90) degrees: to the right
    assert pole[1] > 0.8
    assert pole[2] == pytest.approx(np.sin(np.radians(figures.LEAN)))      # the pole is in sight
