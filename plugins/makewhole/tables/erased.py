"""Put together what stores say of keys that were deleted on purpose."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from makewhole.model.points import TablePoint
from makewhole.tables.tables import Tables

AskErased = Callable[[TablePoint, Iterable[str]], Mapping[str, str]]
"""Ask a store which of some keys were erased; each of them with what says so."""


def erased_everywhere(stores: Sequence[TablePoint], ask: AskErased, keys: Iterable[str]) -> dict[str, str]:
    """Return those of the keys that every one of these stores names as erased, each with what says so; none where a
    store says nothing of it. Raises what `ask` does."""
    if not stores or any(store.erased is None for store in stores):
        return {}
    said: dict[str, list[str]] = {key: [] for key in keys}
    for store in stores:
        reasons = ask(store, said)
        said = {key: [*before, f"{store.name}: {reasons[key]}"] for key, before in said.items() if key in reasons}
    return {key: "; ".join(parts) for key, parts in said.items()}


def erased_in_table(tables: Tables, point: TablePoint, keys: Iterable[str]) -> dict[str, str]:
    """Return those of the keys that a table or a column says were erased from a store, each with what says so. Raises
    what `Tables.erased_keys` does."""
    erased = tables.erased_keys(point, keys)
    return {} if point.erased is None else dict.fromkeys(erased, point.erased.description)
