"""Write the file of a pipeline that goes from a ledger through a topic into a store."""

from collections.abc import Iterable, Mapping

Settings = Mapping[str, str]
"""Key → value as YAML writes it on one line."""


def pipeline_file(name: str, *, points: Mapping[str, Settings], hops: Iterable[Settings], settings: Settings) -> str:
    """Return the YAML of a pipeline with these points (by name) and hops; `settings` are its other keys."""
    lines = ["version: 1", f"pipeline: {name}", *(f"{key}: {value}" for key, value in settings.items())]
    lines += ["points:", *(f"  {point}: {flow(of_point)}" for point, of_point in points.items())]
    lines += ["hops:", *(f"  - {flow(hop)}" for hop in hops)]
    return "\n".join(lines) + "\n"


def flow(settings: Settings) -> str:
    """Return a mapping as YAML writes it on one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"


def ledger(connection: str, table: str, **settings: str) -> dict[str, str]:
    """Return a ledger with the key `id` and the time `at`, unless `settings` say otherwise."""
    return {"kind": "ledger", "connection": connection, "table": table, "key": "id", "time": "at"} | settings


def store(connection: str, table: str, **settings: str) -> dict[str, str]:
    """Return a store with the key `id` and the time `at`, unless `settings` say otherwise."""
    return ledger(connection, table, **settings) | {"kind": "store"}


def topic(connection: str, name: str, **settings: str) -> dict[str, str]:
    """Return a topic whose key is the field `id` of the value, unless `settings` say otherwise."""
    return {"kind": "topic", "connection": connection, "topic": name, "key": '"$.id"'} | settings
