"""Write the file of a pipeline that goes from a ledger through a topic into a store."""

from collections.abc import Iterable, Mapping

import yaml

from makewhole.config.hops.remedies import VERDICTS, HopKinds
from makewhole.model.hops import Remedy, Semantics
from makewhole.model.points import PointKind

Settings = Mapping[str, str]
"""Key → value as YAML writes it on one line."""


def pipeline_file(
    name: str,
    *,
    points: Mapping[str, Settings],
    hops: Iterable[Settings],
    settings: Settings,
    columns: Mapping[str, str],
    is_observing: bool = False,
) -> str:
    """Return the YAML of a pipeline with these points (by name) and hops; `settings` are its other keys.

    What is missing and what is there twice is repaired, unless remedies are named, or the pipeline only observes. Rows
    are written whole: `columns` are those of every store, with their types.
    """
    hops = [_writing(hop, points, settings, columns) for hop in hops]
    if not is_observing:
        hops = [_repairing(hop, points, settings) for hop in hops]
    lines = ["version: 2", f"pipeline: {name}", *(f"{key}: {value}" for key, value in settings.items())]
    lines += ["points:", *(f"  {point}: {flow(of_point)}" for point, of_point in points.items())]
    lines += ["hops:", *(f"  - {flow(hop)}" for hop in hops)]
    return "\n".join(lines) + "\n"


def _writing(hop: Settings, points: Mapping[str, Settings], settings: Settings, columns: Mapping[str, str]) -> Settings:
    """Return a hop that names the columns of its store which are not compared."""
    target = points[hop["to"]]
    if _kind(target) is not PointKind.STORE or "write" in hop:
        return hop
    key = _names(target["key"]) if "key" in target else []
    known = [*yaml.safe_load(settings.get("compare", "{}")), *key, target.get("version")]
    known += (
        ["id"] if key and "columns" in target and "id" not in known else []
    )  # a store of other names has its key by one
    write = {name: f'"{kind}"' for name, kind in columns.items() if name not in known}
    return {**hop, "write": flow(write)} if write else hop


def _kind(point: Settings) -> PointKind:
    """Return the kind of a point; a dataset is a store."""
    return PointKind.STORE if point["kind"] == "dataset" else PointKind(point["kind"])


def _names(key: str) -> list[str]:
    parts = yaml.safe_load(key)
    return [parts] if isinstance(parts, str) else list(parts)


def _repairing(hop: Settings, points: Mapping[str, Settings], settings: Settings) -> Settings:
    """Return a hop that names the usual remedy where neither it nor the pipeline names one."""
    source, target = points[hop["from"]], points[hop["to"]]
    kinds = HopKinds(
        name="",
        source=_kind(source),
        target=_kind(target),
        semantics=Semantics(hop.get("semantics", "event")),
        has_version="version" in (source if source["kind"] == "topic" else target),
        has_template="reverse" in hop,
    )
    own, of_pipeline = (yaml.safe_load(level.get("compensation", "{}")) for level in (hop, settings))
    wanted = {name: Remedy(of_pipeline[name]) for name in VERDICTS if name in of_pipeline}
    unnamed = [
        name for name in VERDICTS if name not in own and not (name in wanted and kinds.can_do(wanted[name], name))
    ]
    usual = {name: _usual_remedy(kinds, name) for name in unnamed}
    added = {name: remedy.value for name, remedy in usual.items() if remedy is not None}
    return {**hop, "compensation": flow({**own, **added})} if added else hop


def _usual_remedy(kinds: HopKinds, verdict: str) -> Remedy | None:
    possible = kinds.possible(verdict)
    if verdict == "duplicate":
        return Remedy.QUARANTINE if kinds.target is PointKind.STORE else None
    if verdict != "missing":
        return None
    if kinds.semantics is Semantics.UPSERT and Remedy.UPSERT in possible:
        return Remedy.UPSERT
    if kinds.source is PointKind.TOPIC:
        return Remedy.REDELIVER if Remedy.REDELIVER in possible else None
    wanted = Remedy.PRODUCE if kinds.target is PointKind.TOPIC else Remedy.UPSERT
    return wanted if wanted in possible else None


def fed_by_ledgers(
    names: Iterable[str],
    *,
    hop: Settings,
    columns: Mapping[str, str],
    has_version: bool = False,
    **settings: str,
) -> str:
    """Return the YAML of a pipeline in which ledgers of these names feed the table `warehouse`, with no topic between
    them. `hop`: what each hop has; `settings`: keys of the pipeline beside those that every test has."""
    version = {"version": "version"} if has_version else {}
    ledgers: dict[str, Settings] = {name: ledger("db", name, **version) for name in names}
    return pipeline_file(
        "shop",
        points=ledgers | {"warehouse": store("db", "warehouse", **version)},
        hops=[{"from": name, "to": "warehouse", **hop} for name in ledgers],
        settings={"start": "earliest", "settle": "0s", "compare": '{amount: "decimal(8,2)"}', **settings},
        columns=columns,
    )


def flow(settings: Settings) -> str:
    """Return a mapping as YAML writes it on one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in settings.items()) + "}"


def ledger(connection: str, table: str, **settings: str) -> dict[str, str]:
    """Return a ledger with the key `id` and the time `at`, unless `settings` say otherwise."""
    return {"kind": "ledger", "connection": connection, "table": table, "key": "id", "time": "at"} | settings


def store(connection: str, table: str, **settings: str) -> dict[str, str]:
    """Return a store with the key `id` and the time `at`, unless `settings` say otherwise."""
    return ledger(connection, table, **settings) | {"kind": "store"}


def dataset(connection: str, table: str, **settings: str) -> dict[str, str]:
    """Return a dataset in Iceberg's format with the key `id` and the time `at`, unless `settings` say otherwise."""
    return store(connection, table, **settings) | {"kind": "dataset", "format": "iceberg"}


def topic(connection: str, name: str, **settings: str) -> dict[str, str]:
    """Return a topic whose key is the field `id` of the value, unless `settings` say otherwise."""
    return {"kind": "topic", "connection": connection, "topic": name, "key": '"$.id"'} | settings
