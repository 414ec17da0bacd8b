"""NEW."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


Longs = NDArray[np.int64]


Floats = NDArray[np.float64]


NONE = -1
