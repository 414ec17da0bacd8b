"""Lines of CSV and JSON to values, compiled: for rows that are plainly right.

A row that is anything but plain is left to `formats`, which says what is wrong with it, or that
nothing is: quotes within quotes, escapes, nested objects, numbers with blanks around. So what is
here may refuse any row, but must never read one differently.

Each wanted column is a *slot*. A text is where its bytes begin in the block and how many they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fanplan.core.arrays import Bools, Floats, Ints, Longs
from fanplan.core.kernels import bare, compiled

TEXT, NUMBER, WHOLE, TIME, NOTHING = 0, 1, 2, 3, 4
"""Kinds of slots; a row that has a value for the last is not plain."""
MISSING, FINE, HARD, OTHER, ZONED, LOCAL = 0, 1, 2, 3, 4, 5
"""What a value is: not there; read; a number that needs an exact reader; none; ISO 8601 times."""
EXACT = 1 << 53
POWERS = 10.0 ** np.arange(23)
"""A product or quotient of a whole number below 2^53 and one of these is rounded once: exact."""
MOST_DIGITS, MOST_EXPONENT, WHOLE_DIGITS = 18, 290, 15
SPACE, QUOTE, COMMA, MINUS, POINT, ZERO, NINE = 32, 34, 44, 45, 46, 48, 57
COLON, BACKSLASH, OPEN, CLOSE = 58, 92, 123, 125
NEWLINE, RETURN = 10, 13


class Scanned(NamedTuple):
    """Values by slot and line; ``plain`` says which lines are, ``blank`` which are no rows."""

    plain: Bools
    blank: Bools
    start: Ints
    length: Ints
    status: np.ndarray
    number: Floats


class Keys(NamedTuple):
    """Names in lower case, one after the other: key k is ``text[starts[k]:starts[k + 1]]``."""

    text: np.ndarray
    starts: Longs


@compiled
def _scan_room(slots: int, lines: int) -> Scanned:
    return Scanned(
        np.zeros(lines, np.bool_),
        np.zeros(lines, np.bool_),
        np.zeros((slots, lines), np.int32),
        np.zeros((slots, lines), np.int32),
        np.zeros((slots, lines), np.int8),
        np.zeros((slots, lines)),
    )


def _plain_bytes(*signs: int) -> np.ndarray:
    """For each byte, whether a text goes on with it: control characters and these signs end it."""
    plain = np.ones(256, np.bool_)
    plain[:SPACE] = plain[list(signs)] = False
    return plain


UNQUOTED, QUOTED, ESCAPED = (
    _plain_bytes(QUOTE, COMMA),
    _plain_bytes(QUOTE),
    _plain_bytes(QUOTE, BACKSLASH),
)


@bare
def _text_end(data: np.ndarray, at: int, stop: int, plain: Bools, ascii_only: bool) -> int:
    """Where the first byte is that is not plain."""
    most = 127 if ascii_only else 255
    while at < stop and plain[data[at]] and data[at] <= most:
        at += 1
    return at


@compiled
def scan_csv(
    data: np.ndarray, starts: Longs, ends: Longs, slot_of: Ints, kinds: Ints, ascii_only: bool
) -> Scanned:
    """Lines ``starts`` to ``ends``, whose n-th field belongs to slot ``slot_of[n]``, if not −1."""
    out = _scan_room(len(kinds), len(starts))
    for row in range(len(starts)):
        at, stop = starts[row], _without_end(data, starts[row], ends[row])
        out.blank[row] = at == stop
        out.plain[row] = at < stop and _csv_line(
            data, at, stop, slot_of, ascii_only, out.start, out.length, row
        )
    _read_slots(data, kinds, out)
    return out


@bare
def _without_end(data: np.ndarray, at: int, stop: int) -> int:
    while stop > at and (data[stop - 1] == NEWLINE or data[stop - 1] == RETURN):
        stop -= 1
    return stop


@bare
def _csv_line(
    data: np.ndarray, at: int, stop: int, slot_of: Ints, ascii_only: bool,
    start: Ints, length: Ints, row: int,
) -> bool:  # fmt: skip
    """Note where fields are; whether the line is plain."""
    fields = len(slot_of)
    for field in range(fields):
        quoted = at < stop and data[at] == QUOTE
        first = at + quoted
        end = _text_end(data, first, stop, QUOTED if quoted else UNQUOTED, ascii_only)
        at = end
        if quoted:
            if end == stop or data[end] != QUOTE:
                return False
            at += 1
        if at < stop and data[at] != COMMA:
            return False
        if (at == stop) != (field + 1 == fields):
            return False
        at += 1
        slot = slot_of[field]
        if slot >= 0:
            start[slot, row], length[slot, row] = first, end - first
    return True


@compiled
def _read_slots(data: np.ndarray, kinds: Ints, out: Scanned) -> None:
    """Read what is no text, slot by slot."""
    for slot in range(len(kinds)):
        if kinds[slot] != TEXT:
            start, length = out.start[slot], out.length[slot]
            _read_slot(
                data, start, length, kinds[slot], out.status[slot], out.number[slot], out.plain
            )


@bare
def _read_slot(
    data: np.ndarray, start: Ints, length: Ints, kind: int,
    status: np.ndarray, number: Floats, plain: Bools,
) -> None:  # fmt: skip
    """Note the values of plain rows; a row that has something else is plain no more."""
    for row in range(len(plain)):
        if plain[row] and length[row] > 0:
            at = start[row]
            status[row], number[row] = _value(data, at, at + length[row], kind)
            plain[row] = kind != NOTHING and (kind == NUMBER or status[row] != OTHER)


@bare
def _value(data: np.ndarray, at: int, stop: int, kind: int) -> tuple[int, float]:
    if kind == WHOLE:
        return _whole(data, at, stop)
    status, number = read_number(data, at, stop)
    if kind == TIME and status == OTHER:
        return iso_8601(data, at, stop)
    return status, number


@bare
def _is_digit(byte: int) -> bool:
    return ZERO <= byte <= NINE


@bare
def _whole(data: np.ndarray, at: int, stop: int) -> tuple[int, float]:
    if stop - at > WHOLE_DIGITS:
        return OTHER, 0.0
    number = 0
    for place in range(at, stop):
        if not _is_digit(data[place]):
            return OTHER, 0.0
        number = 10 * number + data[place] - ZERO
    return FINE, float(number)


@bare
def read_number(data: np.ndarray, at: int, stop: int) -> tuple[int, float]:
    """A decimal number and what it is; HARD if one operation of floats cannot give it exactly."""
    negative = data[at] == MINUS
    if negative or data[at] == ord("+"):
        at += 1
    mantissa, digits, seen, after = np.int64(0), 0, 0, 0
    point = False
    while at < stop:
        byte = data[at]
        if _is_digit(byte):
            seen += 1
            after += point
            digits += int(mantissa > 0 or byte != ZERO)
            if digits <= MOST_DIGITS:
                mantissa = 10 * mantissa + byte - ZERO
        elif byte == POINT and not point:
            point = True
        else:
            break
        at += 1
    exponent, fine = _exponent(data, at, stop)
    if seen == 0 or not fine:
        return OTHER, 0.0
    exponent -= after
    if digits > MOST_DIGITS or mantissa >= EXACT or not -22 <= exponent <= 22:
        most = max(abs(exponent), abs(exponent + digits))
        return (HARD if most < MOST_EXPONENT else OTHER), 0.0
    value = mantissa / POWERS[-exponent] if exponent < 0 else mantissa * POWERS[exponent]
    return FINE, -value if negative else value


@bare
def _exponent(data: np.ndarray, at: int, stop: int) -> tuple[int, bool]:
    """The number behind an e, 0 if there is nothing; whether all was understood."""
    if at == stop:
        return 0, True
    if data[at] | 32 != ord("e"):
        return 0, False
    at += 1
    negative = at < stop and data[at] == MINUS
    if negative or (at < stop and data[at] == ord("+")):
        at += 1
    if not 0 < stop - at <= 4:
        return 0, False
    value = 0
    for place in range(at, stop):
        if not _is_digit(data[place]):
            return 0, False
        value = 10 * value + data[place] - ZERO
    return (-value if negative else value), True


DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
SIGNS = np.frombuffer(b"0000-00-00T00:00:00", np.uint8)


@bare
def iso_8601(data: np.ndarray, at: int, stop: int) -> tuple[int, float]:
    """Seconds of ``2024-05-01T12:30:00[.123456][Z]``; other ways to write a time are not plain."""
    if stop - at < len(SIGNS):
        return OTHER, 0.0
    for place in range(len(SIGNS)):
        byte, sign = data[at + place], SIGNS[place]
        fits = _is_digit(byte) if sign == ZERO else byte == sign
        if not fits and not (place == 10 and byte == SPACE):
            return OTHER, 0.0
    year = 100 * _two(data, at) + _two(data, at + 2)
    month, day = _two(data, at + 5), _two(data, at + 8)
    hour, minute, second = _two(data, at + 11), _two(data, at + 14), _two(data, at + 17)
    if not 1900 <= year < 2200 or not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        return OTHER, 0.0
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= DAYS[month] + leap:
        return OTHER, 0.0
    at += len(SIGNS)
    micros, zoned = np.int64(0), stop > at and data[stop - 1] == ord("Z")
    stop -= zoned
    if at < stop:
        if data[at] != POINT or not 1 <= stop - at - 1 <= 6:
            return OTHER, 0.0
        for place in range(at + 1, at + 7):
            digit = data[place] if place < stop else ZERO
            if not _is_digit(digit):
                return OTHER, 0.0
            micros = 10 * micros + digit - ZERO
    seconds = ((_days(int(year), int(month), int(day)) * 24 + hour) * 60 + minute) * 60 + second
    return (ZONED if zoned else LOCAL), (seconds * 1_000_000 + micros) / 1e6


@bare
def _two(data: np.ndarray, at: int) -> np.int64:
    return np.int64(data[at] - ZERO) * 10 + np.int64(data[at + 1] - ZERO)


@bare
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970. Years begin in March, so that a leap day is the last of its year."""
    years, months = year - (month <= 2), (month + 9) % 12
    leaps = years // 4 - years // 100 + years // 400
    return 365 * years + leaps + (153 * months + 2) // 5 + day - 1 - 719468


# ---- JSON


@compiled
def scan_json(
    data: np.ndarray, starts: Longs, ends: Longs, keys: Keys, kinds: Ints, ascii_only: bool
) -> Scanned:
    """Lines of one flat object each, whose keys are those of the slots; others are passed over."""
    out = _scan_room(len(kinds), len(starts))
    seen = np.zeros(len(kinds), np.int64)
    for row in range(len(starts)):
        at, stop = starts[row], _without_end(data, starts[row], ends[row])
        out.blank[row] = at == stop
        out.plain[row] = _json_line(
            data, at, stop, keys, ascii_only, out.start, out.length, row, seen
        )
    _read_slots(data, kinds, out)
    return out


@bare
def _blanks(data: np.ndarray, at: int, stop: int) -> int:
    while at < stop and (data[at] == SPACE or data[at] == 9):
        at += 1
    return at


@bare
def _json_line(
    data: np.ndarray, at: int, stop: int, keys: Keys, ascii_only: bool,
    start: Ints, length: Ints, row: int, seen: Longs,
) -> bool:  # fmt: skip
    at, expected = _blanks(data, at, stop), 0
    if at == stop or data[at] != OPEN:
        return False
    while True:
        at, expected = _json_member(
            data, at + 1, stop, keys, ascii_only, start, length, row, seen, expected
        )
        if at < 0 or at == stop:
            return False
        if data[at] == CLOSE:
            return _blanks(data, at + 1, stop) == stop
        if data[at] != COMMA:
            return False


@bare
def _json_member(
    data: np.ndarray, at: int, stop: int, keys: Keys, ascii_only: bool,
    start: Ints, length: Ints, row: int, seen: Longs, expected: int,
) -> tuple[int, int]:  # fmt: skip
    """Where a key and its value end, −1 if they are not plain, and the slot to expect next."""
    at = _blanks(data, at, stop)
    if at == stop or data[at] != QUOTE:
        return -1, 0
    end = _quoted_end(data, at + 1, stop, True)
    colon = _blanks(data, end + 1, stop)
    if end < 0 or colon == stop or data[colon] != COLON:
        return -1, 0
    slot, expected = _key_slot(data, at + 1, end, keys, expected)
    at = _blanks(data, colon + 1, stop)
    quoted = at < stop and data[at] == QUOTE
    first = at + quoted
    end = _quoted_end(data, first, stop, ascii_only) if quoted else _bare_end(data, at, stop)
    if end < 0:
        return -1, 0
    if slot >= 0:
        word = not quoted and data[first] > NINE
        # A value that is there already, or true or false, is not plain.
        if seen[slot] == row + 1 or (word and data[first] != ord("n")):
            return -1, 0
        seen[slot] = row + 1
        start[slot, row], length[slot, row] = first, 0 if word else end - first
    return _blanks(data, end + quoted, stop), expected


@bare
def _quoted_end(data: np.ndarray, at: int, stop: int, ascii_only: bool) -> int:
    """Where the quote is that ends a text; −1 if the text is not plain."""
    end = _text_end(data, at, stop, ESCAPED, ascii_only)
    return end if end < stop and data[end] == QUOTE else -1


LITERALS = np.frombuffer(b"null true false", np.uint8)


@bare
def _bare_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where a number or a word such as ``null`` ends; −1 if it is neither."""
    for first, size in ((0, 4), (5, 4), (10, 5)):
        if at + size <= stop and data[at] == LITERALS[first]:
            for k in range(size):
                if data[at + k] != LITERALS[first + k]:
                    return -1
            return at + size
    return _number_end(data, at, stop)


@bare
def _number_end(data: np.ndarray, at: int, stop: int) -> int:
    """Where a number ends as JSON writes them: no plus, no zero in front, digits at each point."""
    at += at < stop and data[at] == MINUS
    end = _digits_end(data, at, stop)
    if end == at or (data[at] == ZERO and end > at + 1):
        return -1
    if end < stop and data[end] == POINT:
        at = end + 1
        end = _digits_end(data, at, stop)
        if end == at:
            return -1
    if end < stop and data[end] | 32 == ord("e"):
        at = end + 1
        at += at < stop and (data[at] == MINUS or data[at] == ord("+"))
        end = _digits_end(data, at, stop)
        if end == at:
            return -1
    return end


@bare
def _digits_end(data: np.ndarray, at: int, stop: int) -> int:
    while at < stop and _is_digit(data[at]):
        at += 1
    return at


@bare
def _key_slot(data: np.ndarray, at: int, stop: int, keys: Keys, expected: int) -> tuple[int, int]:
    """The slot of a key, −1 if none wants it, and the one to expect next: objects are alike."""
    count = len(keys.starts) - 1
    slot = expected - 1
    for _ in range(count):
        slot = slot + 1 if slot + 1 < count else 0
        first, size = keys.starts[slot], keys.starts[slot + 1] - keys.starts[slot]
        if size == stop - at:
            same = True
            for k in range(size):
                byte = data[at + k]
                lower = byte + 32 if ord("A") <= byte <= ord("Z") else byte
                if lower != keys.text[first + k]:
                    same = False
                    break
            if same:
                return slot, slot + 1
    return -1, expected


# ---- texts


@compiled
def encode_texts(data: np.ndarray, start: Ints, length: Ints) -> tuple[Ints, Longs]:
    """Codes of the texts of rows, −1 of empty ones, and a row for each different text."""
    size = 1024
    table = np.full(size, -1, np.int32)
    hashes = np.empty(size, np.uint64)
    codes, firsts, count = np.empty(len(start), np.int32), np.empty(size, np.int64), 0
    for row in range(len(start)):
        at, long = start[row], length[row]
        if long == 0:
            codes[row] = -1
            continue
        key = np.uint64(14695981039346656037)
        for k in range(long):
            key = (key ^ np.uint64(data[at + k])) * np.uint64(1099511628211)
        place = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(size - 1))
        while table[place] >= 0:
            other = firsts[table[place]]
            if hashes[table[place]] == key and _same(data, at, long, start[other], length[other]):
                break
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place], hashes[count], firsts[count] = count, key, row
            count += 1
        codes[row] = table[place]
        if 2 * count > size:
            size, table, hashes, firsts = _larger(size, hashes, firsts, count)
    return codes, firsts[:count]


@bare
def _same(data: np.ndarray, at: int, long: int, other: int, length: int) -> bool:
    k = 0
    while k < long and long == length and data[at + k] == data[other + k]:
        k += 1
    return k == long == length


@compiled
def _larger(
    size: int, hashes: np.ndarray, firsts: Longs, count: int
) -> tuple[int, Ints, np.ndarray, Longs]:
    """A table of four times the size with the same texts."""
    size *= 4
    table = np.full(size, -1, np.int32)
    more, rows = np.empty(size, np.uint64), np.empty(size, np.int64)
    more[:count], rows[:count] = hashes[:count], firsts[:count]
    for n in range(count):
        place = np.int64((more[n] ^ (more[n] >> np.uint64(32))) & np.uint64(size - 1))
        while table[place] >= 0:
            place = (place + 1) & (size - 1)
        table[place] = n
    return size, table, more, rows


@compiled
def gather(data: np.ndarray, start: Ints, length: Ints) -> tuple[Ints, np.ndarray]:
    """Texts one after the other, and where each begins."""
    offsets = np.zeros(len(start) + 1, np.int32)
    for n in range(len(start)):
        offsets[n + 1] = offsets[n] + length[n]
    content = np.empty(offsets[-1], np.uint8)
    for n in range(len(start)):
        content[offsets[n] : offsets[n + 1]] = data[start[n] : start[n] + length[n]]
    return offsets, content
