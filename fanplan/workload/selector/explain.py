"""Why a filter cannot be parsed, in words that name the construct and its position."""

from __future__ import annotations

import re

from fanplan.workload.selector.tree import SelectorError, shorten

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


def explain(text: str, stop: int, *, broken: bool) -> SelectorError:
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
