"""Names as tokens of subjects: what a token cannot hold is escaped, and read back.

Letters and digits of ASCII, ``_`` and ``-`` stand for themselves, every other byte of UTF-8 is
``%`` and two hexadecimal digits; a lone ``%`` is the empty name. So a token is also fit for the
name of a file, a level of an MQTT topic and a DDS partition.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from fanplan.core.errors import InputError, Problem
from fanplan.workload.topics import WILDCARDS, TopicSyntax, tokens

PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
EMPTY = "%"


def token(name: str) -> str:
    """A name as one token."""
    return "".join(chr(b) if b in PLAIN else f"%{b:02X}" for b in name.encode()) or EMPTY


def name_of(text: str) -> str:
    """The name that a token stands for; no two stand for the same one."""
    try:
        name = "" if text == EMPTY else unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        name = ""
    if token(name) != text:
        raise InputError(Problem(repr(text), "is not a name that Fanplan wrote", "Send no others"))
    return name


def subject(topic: str, syntax: TopicSyntax) -> str:
    """A topic as a NATS subject: its tokens, each escaped."""
    return ".".join(map(token, tokens(topic, syntax)))


def topic_of(text: str, syntax: TopicSyntax) -> str:
    """The topic that a subject stands for."""
    between = WILDCARDS[syntax].separator if syntax in WILDCARDS else ""
    return between.join(map(name_of, text.split(".")))
