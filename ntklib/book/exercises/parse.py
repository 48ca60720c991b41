"""Reading a number as a student types it: "0.5", "1/2", "pi/3", "2 sqrt(3)", "71.4°". Nothing is run as code.

The page has the same grammar in static/exercise.js; a test reads the same strings with both.

    sum := product (("+" | "-") product)*
    product := sign (("*" | "/" | nothing, before a name or a bracket) sign)*
    sign := ("+" | "-") sign | power
    power := atom ("^" sign)?
    atom := number | "pi" | function atom | "(" sum ")"      functions: sqrt, sin, arccos, ln, ...; angles in radians
"""
import math
import re

_TOKEN = re.compile(r"\s*(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|(?P<word>[a-zπ√]+)|\*\*|[-+*/^()])")
_SAME = {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/"}
_FUNCTIONS = {"sqrt": math.sqrt, "√": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "exp": math.exp,
              "ln": math.log, "log": math.log, "asin": math.asin, "arcsin": math.asin, "acos": math.acos,
              "arccos": math.acos, "atan": math.atan, "arctan": math.atan}
_NAMES = ("pi", "π", *_FUNCTIONS)
COMMA = "Decimals take a point here, not a comma: 0.5 instead of 0,5."


def number(text: str, units: tuple[str, ...] = ()) -> float:
    """The value of `text`, which may end in one of `units`. ValueError with a sentence for the reader.

    >>> number("1/2"), number(" 2sqrt(9) "), number("60°", units=("°", "degrees"))
    (0.5, 6.0, 60.0)
    """
    s = "".join(_SAME.get(c, c) for c in text.strip().lower())
    if not s:
        raise ValueError("Type a number first.")
    if len(s) > 200:
        raise ValueError("That is too long: a number, or a short expression.")
    if "," in s:
        raise ValueError(COMMA)
    for unit in sorted(units, key=len, reverse=True):
        if s.endswith(unit) and s != unit:
            s = s[:-len(unit)]
            break
    value = _Reader(s).read()
    if not math.isfinite(value):
        raise ValueError(f"{text.strip()} is not a finite number.")
    return value


class _Reader:
    def __init__(self, s: str):
        self.tokens, at = [], 0
        while at < len(s.rstrip()):
            m = _TOKEN.match(s, at)
            if not m or (m["word"] and m["word"] not in _NAMES):
                bad = m["word"] if m else s[at:].strip()[0]
                raise ValueError(f"I cannot read “{bad}”: type a number such as 0.5, 1/2, pi/3 or sqrt(2).")
            self.tokens.append(m[0].strip())
            at = m.end()

    def read(self) -> float:
        try:
            value = self.sum()
        except ZeroDivisionError:
            raise ValueError("That divides by zero.") from None
        except (OverflowError, RecursionError):
            raise ValueError("That is not a finite number.") from None
        if self.tokens:
            raise ValueError(f"I do not understand “{self.tokens[0]}” there.")
        return value

    def next(self, *wanted: str) -> str | None:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else None

    def sum(self) -> float:
        value = self.product()
        while sign := self.next("+", "-"):
            value += self.product() if sign == "+" else -self.product()
        return value

    def product(self) -> float:
        value = self.signed()
        while self.tokens:
            if self.next("/"):
                value /= self.signed()
            elif self.next("*") or self.tokens[0] in ("(", *_NAMES):
                value *= self.signed()
            else:
                break
        return value

    def signed(self) -> float:
        if sign := self.next("+", "-"):
            return self.signed() if sign == "+" else -self.signed()
        base = self.atom()
        if not self.next("^", "**"):
            return base
        value = base ** self.signed()
        if isinstance(value, complex):
            raise ValueError("That is not a real number.")
        return value

    def atom(self) -> float:
        if not self.tokens:
            raise ValueError("Something is missing at the end.")
        token = self.tokens.pop(0)
        if token in ("pi", "π"):
            return math.pi
        if token in _FUNCTIONS:
            value = self.atom()
            try:
                return _FUNCTIONS[token](value)
            except (ValueError, OverflowError):
                raise ValueError("That is not a real number.") from None
        if token == "(":
            value = self.sum()
            if not self.next(")"):
                raise ValueError("A bracket is not closed.")
            return value
        try:
            return float(token)
        except ValueError:
            raise ValueError(f"I do not understand “{token}” there.") from None
