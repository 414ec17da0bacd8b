"""Rows of eight numbers as vectors: one instruction a row, where a loop does not become one."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from fanplan.core.bits import instruction

EIGHT = 8
"""Numbers in a row."""


def _places(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Where rows begin that are given by their numbers in an array."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    first = [builder.mul(row, ir.Constant(row.type, EIGHT)) for row in arguments[1:]]
    vector = ir.VectorType(ir.DoubleType(), EIGHT).as_pointer()
    return [builder.bitcast(builder.gep(array.data, [at]), vector) for at in first]


@instruction
def put_greater(_typing_context: Any, rows: Any, _a: Any, _b: Any, _out: Any) -> Any:
    """Row ``_out`` becomes the greater of the rows ``_a`` and ``_b``, number by number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = _places(context, builder, signature, arguments)
        a, b = (builder.load(place, align=8) for place in places[:2])
        greater = builder.select(builder.fcmp_ordered(">", a, b), a, b)
        builder.store(greater, places[2], align=8)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, types.int64), generate


@instruction
def none_greater(_typing_context: Any, rows: Any, _a: Any, _b: Any) -> Any:
    """Whether no number of row ``_a`` is greater than that of row ``_b``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places = _places(context, builder, signature, arguments)
        a, b = (builder.load(place, align=8) for place in places)
        above = builder.bitcast(builder.fcmp_ordered(">", a, b), ir.IntType(EIGHT))
        return builder.icmp_unsigned("==", above, ir.Constant(above.type, 0))

    return types.boolean(rows, types.int64, types.int64), generate
