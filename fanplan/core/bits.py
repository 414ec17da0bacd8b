"""Sets as bits in words of 64: element i is bit i % 64 of word i // 64. A row of words is a set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fanplan.core.arrays import Ints, Longs, Words
from fanplan.core.kernels import bare, compiled

LINE = 8
"""Words in a line: as many as a line of the cache or a vector register holds."""


def no_bits(rows: int, size: int) -> Words:
    """Empty sets of elements below a size."""
    return np.zeros((rows, (size + 63) // 64), dtype=np.uint64)


def bits_of_lists(starts: Longs, elements: Ints, size: int) -> Words:
    """Set r has the elements ``elements[starts[r]:starts[r + 1]]``."""
    bits = no_bits(len(starts) - 1, size)
    set_lists(bits, starts, elements)
    return bits


def bits_of_pairs(row: Ints | Longs, element: Ints | Longs, rows: int, size: int) -> Words:
    """Sets from pairs of a row and an element."""
    bits = no_bits(rows, size)
    set_pairs(bits, row, element)
    return bits


def pairs_of_bits(bits: Words) -> tuple[Ints, Ints]:
    """The pairs of a row and an element in it, ascending. Unpacks one row at a time."""
    octets = bits.astype("<u8", copy=False).view(np.uint8)
    rows = [np.flatnonzero(np.unpackbits(row, bitorder="little")) for row in octets]
    left = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    right = np.concatenate(rows) if rows else np.empty(0)
    return left.astype(np.int32), right.astype(np.int32)


@bare
def set_bit(words: Words, element: int) -> None:
    """Add an element to a set."""
    words[element >> 6] |= np.uint64(1) << np.uint64(element & 63)


@bare
def put_bit(words: Words, element: int, there: bool | int) -> None:
    """Add an element that is not in a set, or not: without a branch."""
    words[element >> 6] |= np.uint64(there) << np.uint64(element & 63)


@compiled
def clear_bit(words: Words, element: int) -> None:
    """Take an element out of a set."""
    words[element >> 6] &= ~(np.uint64(1) << np.uint64(element & 63))


@bare
def has_bit(words: Words, element: int) -> bool:
    """Whether an element is in a set."""
    return bool((words[element >> 6] >> np.uint64(element & 63)) & np.uint64(1))


@compiled
def set_lists(bits: Words, starts: Longs, elements: Ints) -> None:
    for row in range(len(starts) - 1):
        for element in elements[starts[row] : starts[row + 1]]:
            set_bit(bits[row], element)


@compiled
def set_pairs(bits: Words, row: Ints | Longs, element: Ints | Longs) -> None:
    for i in range(len(row)):
        set_bit(bits[row[i]], element[i])


@compiled
def bits_of(elements: Ints | Longs, width: int) -> Words:
    """One set, in so many words."""
    words = np.zeros(width, dtype=np.uint64)
    for element in elements:
        set_bit(words, element)
    return words


def instruction(generator: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call, given by the one that generates its machine instructions."""
    return cast("Callable[..., Any]", intrinsic(generator))


@instruction
def popcount(_typing_context: Any, _word: Any) -> Any:
    """How many bits of a word are set: one machine instruction."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@instruction
def lowest_bit(_typing_context: Any, _word: Any) -> Any:
    """The place of the lowest bit that is set: one machine instruction."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@instruction
def and_lines(
    _typing_context: Any, bits: Any, _start: Any, _step: Any, line: Any, _first: Any, _count: Any,
    out: Any,
) -> Any:  # fmt: skip
    """AND of the lines ``_start + _step * line[_first:_first + _count]`` to ``out``.

    Returns which of its words have bits. In trials eight times as fast as a loop over words, which
    does not become vector instructions.
    """
    number = types.int64
    signature = types.uint64(bits, number, number, line, number, number, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = [
            context.make_array(kind)(context, builder, value).data
            if kind.name[:5] == "array"
            else 0
            for kind, value in zip(signature.args, arguments, strict=True)
        ]
        word = ir.IntType(64)
        vector = ir.VectorType(word, LINE)
        together = cgutils.alloca_once_value(  # type: ignore[no-untyped-call]
            builder, ir.Constant(vector, [-1] * LINE)
        )
        with cgutils.for_range(builder, arguments[5]) as loop:
            at = builder.load(builder.gep(data[3], [builder.add(arguments[4], loop.index)]))
            at = builder.add(builder.mul(builder.sext(at, word), arguments[2]), arguments[1])
            at = builder.mul(at, ir.Constant(word, LINE))
            place = builder.bitcast(builder.gep(data[0], [at]), vector.as_pointer())
            found = builder.load(place, align=8)
            builder.store(builder.and_(builder.load(together), found), together)
        result = builder.load(together)
        builder.store(result, builder.bitcast(data[6], vector.as_pointer()), align=8)
        some = builder.icmp_unsigned("!=", result, ir.Constant(vector, [0] * LINE))
        return builder.zext(builder.bitcast(some, ir.IntType(LINE)), word)

    return signature, generate


@instruction
def prefetch(_typing_context: Any, rows: Any, _row: Any, _column: Any) -> Any:
    """Ask for the line of the cache with this element, which is needed soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = builder.extract_value(array.shape, 1)
        at = builder.add(builder.mul(arguments[1], width), arguments[2])
        place = builder.bitcast(builder.gep(array.data, [at]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        name = "llvm.prefetch.p0i8"
        asked = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, name
        )
        builder.call(asked, [place, flag(0), flag(2), flag(1)])
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64), generate


@bare
def common(one: Words, other: Words) -> int:
    """How many elements two sets have in common."""
    count = np.uint64(0)
    for word in range(len(other)):
        count += popcount(one[word] & other[word])
    return int(count)


@compiled
def mix(word: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64 (Steele et al. 2014): each bit moves every bit of the outcome."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
