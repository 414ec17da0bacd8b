"""The words of a selector: names, values, comparison signs, keywords, brackets and commas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer

from fanplan.workload.selector.explain import explain

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
        raise explain(text, len(text) - len(text[end:].lstrip()), broken=True)
