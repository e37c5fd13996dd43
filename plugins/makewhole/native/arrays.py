"""Name the types of arrays that hold a column of many rows."""

from typing import Any

import numpy as np
import numpy.typing as npt

UInt8s = npt.NDArray[np.uint8]
UInt16s = npt.NDArray[np.uint16]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ArrowArray = Any
"""A `pyarrow.Array`: pyarrow's type stubs do not know binary columns and views."""
