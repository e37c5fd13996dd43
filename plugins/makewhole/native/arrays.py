"""Name the types of arrays that hold a column of many rows."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

UInt8s = npt.NDArray[np.uint8]
UInt16s = npt.NDArray[np.uint16]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
IntPs = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

ArrowArray = Any
"""A `pyarrow.Array`: pyarrow's type stubs do not know binary columns and views."""

_Element = TypeVar("_Element", bound=np.generic)


def read_only(column: npt.NDArray[_Element]) -> npt.NDArray[_Element]:
    """Return a column as the one type of array for which a loop is compiled that does not write to it."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view
