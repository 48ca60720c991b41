"""Markdown with $maths$, for the text that the book prints outside Sphinx: widgets, tables, verdicts.

    html(source)     paragraphs, lists and displayed formulas
    inline(source)   one line, without a paragraph round it
    plain(source)    the same words in Unicode, for a terminal, an alt text or a stored notebook output

A formula becomes MathML: MathJax typesets it on a page, the browser itself in JupyterLab. Raw HTML in the
source is shown, not obeyed. ValueError for a formula that cannot be converted.
"""
import re
from functools import cache
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

_OPERATOR = re.compile(r"\\operatorname\{(\w+)\}")     # latex2mathml spells its argument out letter by letter
# a formula that was typeset is a box of its own, and a line could break between it and its comma
_TAIL = re.compile(r"(<math(?:(?!</math>).)*</math>[,.;:!?)]+)")
_RELATIONS = set("=≠<>≤≥≈→↦∈∼≪≫")
_ARITY = {"mfrac": 2, "msup": 2, "msub": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3}
_MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", _MATHML)


@cache
def mathml(latex: str, display: bool = False) -> str:
    """A formula as a `<math>` element."""
    try:
        source = convert(_OPERATOR.sub(r"\\text{\1}", latex), display="block" if display else "inline")
        tree = ElementTree.fromstring(source)
    except Exception as e:                              # the converter's errors do not name the formula
        raise ValueError(f"cannot convert the formula {latex!r}: {type(e).__name__} {e}".rstrip()) from e
    if any(len(e) != _ARITY.get(_tag(e), len(e)) for e in tree.iter()):
        raise ValueError(f"cannot convert the formula {latex!r}: a fraction, power or index lacks a part")
    unknown = [t for t in tree.itertext() if "\\" in t]
    if unknown:
        raise ValueError(f"cannot convert {unknown[0]!r} in the formula {latex!r}: "
                         "write it with commands that latex2mathml knows")
    _space_names(tree)
    return ElementTree.tostring(tree, encoding="unicode")


def _space_names(row: ElementTree.Element) -> None:
    """Set "cos", "relu", "max" as text, with the thin space to an operand that browsers leave out."""
    before, spaced = None, []
    for e in row:
        _space_names(e)
        if _is_name(e):
            e.tag = f"{{{_MATHML}}}mtext"
        if before is not None and _tag(row) not in _ARITY and (
                (_is_name(before) and _is_operand(e)) or (_is_operand(before, ")]‖") and _is_name(e))):
            spaced.append(ElementTree.Element(f"{{{_MATHML}}}mspace", width="0.167em"))
        spaced.append(e)
        before = e
    row[:] = spaced


def _is_name(e: ElementTree.Element) -> bool:
    return _tag(e) in ("mi", "mo", "mtext") and bool(re.fullmatch(r"[A-Za-z]\w+", e.text or ""))


def _is_operand(e: ElementTree.Element, closing: str = "") -> bool:
    return _tag(e) not in ("mo", "mspace") or (e.text or " ") in closing


def html(source: str) -> str:
    """Block HTML of a Markdown text."""
    return _keep_together(_markdown().render(source).strip())


def inline(source: str) -> str:
    """HTML of a Markdown line, for use inside a paragraph, a label or a table cell."""
    return _keep_together(_markdown().renderInline(source))


def _keep_together(html: str) -> str:
    return _TAIL.sub(r'<span style="white-space:nowrap">\1</span>', html)


def plain(source: str) -> str:
    """The text without its markup: formulas linear in Unicode, a line for each paragraph and list item."""
    lines, bullet = [], ""
    for token in _markdown().parse(source):
        if token.type == "list_item_open":
            bullet = f"{token.info}. " if token.info else "- "
        elif token.type == "inline":
            lines.append(bullet + "".join(map(_words, token.children)))
            bullet = ""
        elif token.content:                             # a code block or a displayed formula
            lines.append(_words(token).rstrip())
    return "\n".join(lines)


def _words(token) -> str:
    if token.type.startswith("math"):
        text = _linear(ElementTree.fromstring(mathml(token.content.strip())))
        return re.sub(r"\s+", " ", text).strip()
    return " " if token.type in ("softbreak", "hardbreak") else token.content


@cache
def _markdown() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False}).enable("table")
    dollarmath_plugin(md, double_inline=True, allow_labels=False)
    for kind, display in (("math_inline", False), ("math_inline_double", True), ("math_block", True)):
        md.renderer.rules[kind] = _rule(display)
    return md


def _rule(display: bool):
    def rule(tokens, i, options, env):
        out = mathml(tokens[i].content.strip(), display)
        return f'<span class="ntk-display">{out}</span>' if display else out
    return rule


# ---- MathML as a line of Unicode ---------------------------------------------------------------------
def _tag(e: ElementTree.Element) -> str:
    return e.tag.rsplit("}", 1)[-1]


def _linear(e: ElementTree.Element) -> str:
    tag, text = _tag(e), e.text or ""
    match tag:
        case "mfrac":
            return "/".join(_parenthesised(_linear(part)) for part in e)
        case "msup" | "msub" | "msubsup" | "munder" | "munderover" | "mover":
            base, *scripts = e
            marks = {"msup": "^", "mover": "^", "msub": "_", "munder": "_"}.get(tag, "_^")
            tail = "".join(m + _parenthesised(_linear(s)) for m, s in zip(marks, scripts, strict=True))
            return _linear(base) + re.sub(r"\^([∘′″])", r"\1", tail).replace("∘", "°")
        case "msqrt":
            return "√" + _parenthesised("".join(map(_linear, e)))
        case "mspace" if e.get("width", "").startswith("-"):
            return ""
        case "mspace":
            return " "
        case "mo" if text in _RELATIONS:
            return f" {text} "
        case "mo" if text == "\u2061":
            return " "
    return text + "".join(map(_linear, e))


def _parenthesised(s: str) -> str:
    """`s`, in brackets unless it is one number, one symbol or one word."""
    s = s.strip()
    return s if re.fullmatch(r"(\d[\d.]*|\w|[A-Za-z]+)[°′″]?(\^\w)?|[∘′″]|\(\w+\)", s) else f"({s})"
