"""Suggest names for columns of a table that the lines of a hop cannot name as they are."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from makewhole.config import values

_UNFIT = re.compile(r"[^0-9A-Za-z_]+")
_LONGEST = 50


def names_for(columns: Mapping[str, str], taken: Iterable[str]) -> dict[str, str]:
    """Return a name for each column of a table that a pipeline file cannot name yet, by what it is called there.

    `columns`: what each is called so far, with its name in the table; of a part of a column that has its column in
    front, with a dot. `taken`: the names that others have.
    """
    used, names = set(taken), dict[str, str]()
    for called, column in columns.items():
        if called == column and _is_name(column):
            continue
        names[called] = next(name for name in _candidates(called, column) if name not in used)
        used.add(names[called])
    return names


def _candidates(called: str, column: str) -> Iterator[str]:
    """Yield names for a column, the shortest first: of a part its own, then the whole."""
    whole = _UNFIT.sub("_", column).strip("_")[:_LONGEST]
    last = _UNFIT.sub("_", column.rpartition(".")[2]).strip("_")[:_LONGEST]
    own = f"own_{whole}"
    first = [own] if called != column else [last, whole]
    yield from (name for name in (*first, own) if _is_name(name))
    yield from (f"{own}_{number}" for number in count(2))


def _is_name(text: str) -> bool:
    try:
        values.logical_name(text)
    except values.UnfitError:
        return False
    return True
