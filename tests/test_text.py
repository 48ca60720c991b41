from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ntklib.book import text


@pytest.mark.parametrize(("source", "words"), [
    (r"$\theta^{(l)}=g(\theta)$", "θ^(l) = g(θ)"),
    (r"$\frac{z^2}{3\pi}$", "z^2/(3π)"),
    (r"$\frac12\sqrt{2x}$, $71.4^\circ$", "1/2√(2x), 71.4°"),
    (r"$\beta\cos g+(1-\beta)\cos\theta$", "β cos g+(1−β) cos θ"),
    (r"$2\,\operatorname{atan2}(\|u-v\|,\|u+v\|)$", "2 atan2(‖u−v‖,‖u+v‖)"),
    (r"$\mathbb{E}[\sigma_a(u)^2]\le 1$", "𝔼[σ_a(u)^2] ≤ 1"),
    (r"$g''(0)$ and $m^{-1/2}$ and $x_1^2$", "g″(0) and m^(−1/2) and x_1^2"),
    (r"$\theta_{\text{in}}\to 0$", "θ_in → 0"),
    ("**bold**, *it*, `a<b` and $a<b$", "bold, it, a<b and a < b"),
    ("a\nb\n\n- c\n- d\n\n3. e", "a b\n- c\n- d\n3. e"),
    ("$$x=1$$\n\n```python\nf(x)\n```", "x = 1\nf(x)"),
])
def test_plain_words(source, words):
    assert text.plain(source) == words


@pytest.mark.parametrize("latex", [r"\foo x", r"a & b", r"\frac{a", r"x^", r"\sqrt", ""])
def test_a_formula_that_cannot_be_converted_is_refused_by_name(latex):
    with pytest.raises(ValueError, match="cannot convert"):
        text.mathml(latex)


THIN = '<mspace width="0.167em" />'


@pytest.mark.parametrize(("latex", "part"), [
    (r"\operatorname{relu}(u)", "<mrow><mtext>relu</mtext><mo"),
    (r"\operatorname{atan2}(u)", "<mtext>atan2</mtext><mo"),
    (r"\max(t)", "<mtext>max</mtext><mo"), (r"\cos z", f"<mrow><mtext>cos</mtext>{THIN}<mi>z</mi></mrow>"),
    (r"a\cos(z)", f"<mi>a</mi>{THIN}<mtext>cos</mtext><mo"),
    (r"(a)\cos z", f")</mo>{THIN}<mtext>cos</mtext>{THIN}<mi>"),
    (r"\frac12\sin z", f"</mfrac>{THIN}<mtext>sin"), (r"(\sin z", "(</mo><mtext>sin"),
    (r"1+\sin z", "+</mo><mtext>sin"),
    (r"\theta_{\text{in}}", "<mrow><mtext>in</mtext></mrow>"),
])
def test_a_name_is_one_word_with_space_to_its_operand_alone(latex, part):
    assert part in text.mathml(latex)


def test_a_formula_is_mathml():
    assert 'display="block"' in text.html("$$a=1$$")
    assert 'display="inline"' in text.inline("$a=1$")


def test_a_comma_stays_with_its_formula():
    assert text.inline("$a$, b").startswith('<span style="white-space:nowrap"><math')
    assert "nowrap" not in text.inline("$a$ and $b$ c")
    assert text.inline("$a$ and $b$.").count("nowrap") == 1


@given(st.text(alphabet="<>&\"'ab =/!-", max_size=30))
def test_html_in_a_text_is_shown_and_not_obeyed(source):
    ElementTree.fromstring(f"<div>{text.html(source).replace('<br>', '').replace('<hr>', '')}</div>")
    assert not any(f"<{tag}" in text.html(source) for tag in ("a>", "b>", "ab", "script"))
