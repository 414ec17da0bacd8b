"""From the text of a filter to its parse tree.

The grammar below is the whole language: what it does not name is not accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from fanplan.core.errors import shorten
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

# The words: names, values, comparison signs, keywords, brackets and commas.
WORD = re.compile(
    r"""\s*(?:
      (?P<NAME>    [^\W\d]\w* )
    | (?P<VALUE>   '[^']*(?:''[^']*)*'
                 | [-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.]) )
    | (?P<COMPARE> <> | != | <= | >= | [=<>] )
    | (?P<LPAR>    \( )
    | (?P<RPAR>    \) )
    | (?P<COMMA>   , )
    | (?P<QUOTED>  "(?:[^"]|"")+" )
    | (?P<END>     \Z )
    )""",
    re.VERBOSE,
)
KEYWORDS = {
    word.lower(): word
    for word in ("AND", "OR", "NOT", "TRUE", "FALSE", "BETWEEN", "IN", "LIKE", "ESCAPE")
}

MAX_DEPTH = 100
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@lru_cache(maxsize=1)  # One filter is asked for its attributes, then compiled in each space.
def parse(text: str | None) -> Node:
    """The tree of a filter; no filter, or a blank one, is TRUE. Linear in the text's length."""
    if text is None or not text.strip():
        return Constant(True)
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except UnexpectedToken as error:
        ended = error.token.type == "$END"
        stop = len(text) if ended else error.token.start_pos
        raise syntax_error(text, stop, broken=False) from None


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer=SelectorLexer, transformer=_TreeBuilder())


class SelectorLexer(Lexer):
    """One regular expression: half the time of a lexer made from the grammar."""

    def __init__(self, _configuration: Any) -> None: ...

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        """The words in order; positions count from 0. Raises SelectorError."""
        end = 0
        while match := WORD.match(text, end):
            kind = str(match.lastgroup)
            word, start, end = match[kind], match.start(kind), match.end()
            if kind == "END":
                return
            if kind == "NAME":
                kind = KEYWORDS.get(word.lower(), kind)
            elif kind == "QUOTED":
                kind, word = "NAME", word[1:-1].replace('""', '"')
            yield Token(kind, word, start)
        raise syntax_error(text, len(text) - len(text[end:].lstrip()), broken=True)


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


# ---- why a filter cannot be parsed, in words that name the construct and its position

# Words that begin a construct of SQL which selectors do not have.
WORDS = {
    "select exists any all some": "a subquery is not supported",
    "case when": "a CASE expression is not supported",
    "cast": "a function call is not supported",
    "is null": "IS NULL is not supported: every publication has all attributes of its topic",
    "as": "an alias is not supported",
    "true false": "TRUE and FALSE are not values of an attribute",
    "nan inf infinity": "NaN and infinity are not numbers that can be compared",
}


REASON_OF_WORD = {word: reason for words, reason in WORDS.items() for word in words.split()}


# Signs that can stand where the parser stopped; the first that matches is named.
SIGNS = (
    (r"--|/\*|#", "a comment is not supported"),
    (r"\|\||[-+*/%^&|~]", "arithmetic is not supported"),
    (r";", "a ';' is not supported: a filter is one expression"),
    (r"[?:@$]", "a parameter is not supported: write the value itself"),
    (r"\.(?![0-9])", "a '.' in a name is not supported: put the name in double quotes"),
)


# Signs that begin a word but do not make a whole one.
BROKEN = (
    (r"'", "a string has no closing quote"),
    (r'"', "a quoted name is empty or has no closing quote"),
    (r"[0-9.]", "a number is badly written"),
)


NEAR = 50  # characters to look at, either side: a filter can be very long


def syntax_error(text: str, stop: int, *, broken: bool) -> SelectorError:
    """The error for the place where the parser stopped: at no word at all, or at a wrong one."""
    before, rest = text[:stop].rstrip(), text[stop : stop + NEAR]
    last = re.split(r"\W", before[-NEAR:])[-1].lower()
    if last in REASON_OF_WORD:
        return SelectorError(REASON_OF_WORD[last], len(before) - len(last) + 1)
    if not rest:
        return SelectorError("the filter ends too early", len(text) + 1)
    return SelectorError(_reason(before, rest, SIGNS + BROKEN if broken else SIGNS), stop + 1)


def _reason(before: str, rest: str, signs: tuple[tuple[str, str], ...]) -> str:
    """What ``rest`` begins with, or what it is in the light of what stands before it."""
    for pattern, reason in signs:
        if re.match(pattern, rest):
            return reason
    found = shorten(re.findall(r"\w+|.", rest, re.DOTALL)[0])
    if found.lower() in REASON_OF_WORD:
        return REASON_OF_WORD[found.lower()]
    if found == "(" and re.search(r'[\w"]\Z', before):
        return "a function call is not supported"
    if re.search(r"[<>=]\Z", before) and re.match(r'[^\W\d]|"', rest):
        return (
            "an attribute is compared with a number or with a string in single quotes, "
            f"not with another attribute: {found}"
        )
    if re.search(r"[<>=]\Z", before) and re.match(r"[0-9.']", rest):
        return "a comparison needs an attribute on one side"
    return f"unexpected '{found}'"
