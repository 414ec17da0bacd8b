"""From the text of a filter to its parse tree.

The grammar below is the whole language: what it does not name is not accepted.
"""

from __future__ import annotations

import math
import re
from functools import cache

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedToken

from fanplan.workload.selector.explain import explain
from fanplan.workload.selector.tokens import SelectorLexer
from fanplan.workload.selector.tree import (
    And,
    Between,
    Compare,
    Constant,
    In,
    Like,
    Literal,
    Node,
    Not,
    Or,
    SelectorError,
    shorten,
)

GRAMMAR = """
?start: either

?either: both ("OR" both)*
?both: item ("AND" item)*
?item: "NOT" item                                           -> negation
     | "(" either ")"
     | "TRUE"                                               -> true
     | "FALSE"                                              -> false
     | NAME COMPARE VALUE                                   -> compare
     | VALUE COMPARE NAME                                   -> compare_flipped
     | NAME "BETWEEN" VALUE "AND" VALUE                     -> between
     | NAME "NOT" "BETWEEN" VALUE "AND" VALUE               -> not_between
     | NAME "IN" "(" VALUE ("," VALUE)* ")"                 -> one_of
     | NAME "NOT" "IN" "(" VALUE ("," VALUE)* ")"           -> none_of
     | NAME "LIKE" VALUE ["ESCAPE" VALUE]                   -> like
     | NAME "NOT" "LIKE" VALUE ["ESCAPE" VALUE]             -> not_like

%declare NAME COMPARE VALUE
"""

MAX_DEPTH = 100
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse(text: str | None) -> Node:
    """The tree of a filter; no filter, or a blank one, is TRUE. Linear in the text's length."""
    if text is None or not text.strip():
        return Constant(True)
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except UnexpectedToken as error:
        ended = error.token.type == "$END"
        raise explain(text, len(text) if ended else error.token.start_pos, broken=False) from None


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer=SelectorLexer, transformer=_TreeBuilder())


def _nested(kind: type[Not | And | Or], items: tuple[Node, ...]) -> Node:
    """Build a node above others; a bound on the depth keeps every later walk safe."""
    depth = 1 + max(item.depth for item in items)
    if depth > MAX_DEPTH:
        raise SelectorError(f"the filter is nested more than {MAX_DEPTH} levels deep", 1)
    return kind(items, depth)


def _like_pattern(pattern: Literal, escape: Literal | None) -> re.Pattern[str]:
    """``%`` stands for any characters, ``_`` for one; the escape character takes one literally.

    What stands between two ``%`` is taken where it is found first and never tried again, so that
    no pattern takes long.
    """
    first, *others = _like_segments(pattern, _escape_character(escape))
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{segment})" for segment in others[:-1])
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)


def _like_segments(pattern: Literal, escape: str) -> list[str]:
    """The regular expressions between the ``%`` of a pattern."""
    segments, rest = [""], iter(_string(pattern))
    for character in rest:
        if character == escape:
            literally = next(rest, None)
            if literally is None:
                raise SelectorError(
                    "the LIKE pattern ends with its escape character", pattern.position
                )
            segments[-1] += re.escape(literally)
        elif character == "%":
            segments.append("")
        else:
            segments[-1] += "." if character == "_" else re.escape(character)
    return segments


def _escape_character(escape: Literal | None) -> str:
    if escape is None:
        return ""
    if len(_string(escape)) != 1:
        raise SelectorError("ESCAPE needs exactly one character", escape.position)
    return _string(escape)


def _string(literal: Literal) -> str:
    if isinstance(literal.value, float):
        raise SelectorError("LIKE needs a string in single quotes", literal.position)
    return literal.value


def _at(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _literal(token: Token) -> Literal:
    if token.value[0] == "'":
        return Literal(token.value[1:-1].replace("''", "'"), _at(token))
    number = float(token.value) + 0.0  # -0.0 becomes 0.0
    if not math.isfinite(number):
        raise SelectorError(f"the number {shorten(token)} is too large", _at(token))
    return Literal(number, _at(token))


@v_args(inline=True)
class _TreeBuilder(Transformer[Token, Node]):
    """Called by the parser bottom-up, with the parts of one rule."""

    def either(self, *items: Node) -> Node:
        return _nested(Or, items)

    def both(self, *items: Node) -> Node:
        return _nested(And, items)

    def negation(self, item: Node) -> Node:
        return item.items[0] if isinstance(item, Not) else _nested(Not, (item,))

    def true(self) -> Node:
        return Constant(True)

    def false(self) -> Node:
        return Constant(False)

    def compare(self, name: Token, operator: Token, value: Token) -> Node:
        plain = "<>" if operator == "!=" else operator.value
        return Compare(name.value, _at(name), plain, _literal(value))

    def compare_flipped(self, value: Token, operator: Token, name: Token) -> Node:
        return self.compare(name, operator.update(value=FLIPPED.get(operator, operator)), value)

    def between(self, name: Token, low: Token, high: Token) -> Node:
        return Between(name.value, _at(name), _literal(low), _literal(high))

    def one_of(self, name: Token, *values: Token) -> Node:
        return In(name.value, _at(name), tuple(map(_literal, values)))

    def like(self, name: Token, pattern: Token, escape: Token | None) -> Node:
        escape_literal = None if escape is None else _literal(escape)
        return Like(name.value, _at(name), _like_pattern(_literal(pattern), escape_literal))

    def not_between(self, name: Token, low: Token, high: Token) -> Node:
        return self.negation(self.between(name, low, high))

    def none_of(self, name: Token, *values: Token) -> Node:
        return self.negation(self.one_of(name, *values))

    def not_like(self, name: Token, pattern: Token, escape: Token | None) -> Node:
        return self.negation(self.like(name, pattern, escape))
