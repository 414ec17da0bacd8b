"""Names in a table as the numbers of a known list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fanplan.core.arrays import Ints


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


@dataclass(frozen=True)
class Axis:
    """A column whose values are numbered by their position in ``values``."""

    column: str
    values: pa.Array

    def number(self, table: pa.Table) -> Ints:
        """Each row's number, or −1 if its value is unknown."""
        column = table[self.column].unify_dictionaries()
        if not pa.types.is_dictionary(column.type):
            return self.positions(column)
        column = whole(column)
        positions = np.append(self.positions(column.dictionary), np.int32(-1))
        result: Ints = positions[column.indices.fill_null(-1).to_numpy()]
        return result

    def positions(self, values: pa.Array | pa.ChunkedArray) -> Ints:
        found = pc.index_in(values.cast(self.values.type), value_set=self.values)
        result: Ints = found.fill_null(-1).to_numpy()
        return result

    def label(self, number: int) -> str:
        return f"{self.column} {self.values[int(number)].as_py()!r}"
