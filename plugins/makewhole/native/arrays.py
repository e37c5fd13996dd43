"""The kinds of arrays that many rows are worked on in at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ArrowArray = Any
"""A `pyarrow.Array`, whose type stubs know nothing of binary columns and views."""
