"""Read `self_check` of a pipeline file, and add to the file what such a pipeline always has: points, hops, remedies."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta

import yaml
from yaml.nodes import MappingNode

from makewhole.config import values
from makewhole.config.policy import below
from makewhole.config.tree import Section, key_text
from makewhole.model.self_check.settings import LEDGER_POINT, STORE_POINT, TOPIC_POINT, SelfCheck

SELF_CHECK = "self_check"
LEAST_RECORDS, MOST_RECORDS, MOST_FAULTS = 100, 100_000, 20
SHORTEST_KEPT = timedelta(days=3)
"""Longer than `late` and `pending.max_age` together, as far back as rows are looked for."""
_CHOSEN = ("version", "pipeline", "description", "schedule", "until", "settle", "retry_for", "time_limits", "keep")
_CHOSEN_KEYS = (*_CHOSEN, "notify", "access", SELF_CHECK)
_FILE = """\
description: Faults that makewhole plants, finds and repairs, to check itself
schedule: "20 5 * * *"
start: earliest
settle: 10s
keep: {{archives: 30d, attempts: 7d, findings: 90d, quarantine: 30d, effects: 30d}}
compare: {{amount: "decimal(12,2)"}}
points:
  {ledger}:
    kind: ledger
    connection: "{at.postgres}"
    table: {at.schema}.{ledger}
    key: id
    time: sent_at
    payload: payload
    record_key: id
  {topic}: {{kind: topic, connection: "{at.kafka}", topic: "{at.topic}", value: json, key: "$.id"}}
  {store}: {{kind: store, connection: "{at.postgres}", table: {at.schema}.{store}, key: id, time: sent_at}}
hops:
  - {{from: {ledger}, to: {topic}, compensation: {{missing: produce, duplicate: report}}}}
  - from: {topic}
    to: {store}
    consumer_group: "{at.group}"
    compensation: {{missing: redeliver, duplicate: quarantine, mismatched: upsert, unexpected: quarantine}}
compensation:
  limits: {{actions: {actions}, share: 1.0}}
  approval: {{above_actions: {actions}, by: [admin]}}
"""


def with_self_check(top: Section) -> tuple[Section, SelfCheck | None]:
    """Return the file with what a self-check's pipeline always has beside its own keys, and the settings; the file as
    it is, and None, where it has no `self_check`."""
    section = below(top, SELF_CHECK, *(item.name for item in fields(SelfCheck)))
    if section is None:
        return top, None
    for word, place in top:
        if word not in _CHOSEN_KEYS:
            place.complain(
                f"cannot stand beside `{SELF_CHECK}`, which says it",
                f"Take it out; beside it stand {', '.join(_CHOSEN_KEYS)}",
            )
    settings = _read(section)
    return _with_rest(top, settings), settings


def _read(section: Section) -> SelfCheck:
    """Return the settings; good ones in the place of those with problems, which are noted."""
    default = SelfCheck(kafka="kafka_default", postgres="postgres_default")
    kafka = section.need("kafka", "Name the connection of the Kafka that the scratch topic is made in")
    postgres = section.need("postgres", "Name the connection of the PostgreSQL that the scratch tables are made in")
    topic, schema, keep = section.get("topic"), section.get("schema"), section.get("keep")
    return SelfCheck(
        kafka=(kafka.text(values.connection_id) if kafka else None) or default.kafka,
        postgres=(postgres.text(values.connection_id) if postgres else None) or default.postgres,
        topic=(topic.text(values.topic) if topic else None) or default.topic,
        schema=(schema.text(values.name) if schema else None) or default.schema,
        records=_number(section, "records", values.at_least(LEAST_RECORDS), MOST_RECORDS, default.records),
        faults=_number(section, "faults", values.at_least(1), MOST_FAULTS, default.faults),
        keep=(keep.text(_kept) if keep else None) or default.keep,
    )


def _number(section: Section, key: str, parse: Callable[[str], int], most: int, default: int) -> int:
    place = section.get(key)
    number = place.whole(parse) if place else None
    if place is not None and number is not None and number > most:
        place.complain(f"is more than {most}", f"Write {most} at most: a self-check is small")
        return default
    return default if number is None else number


def _kept(text: str) -> timedelta:
    """Return how long rows are kept.

    Raises:
        UnfitError: that is too short.
    """
    kept = values.positive_duration(text)
    if kept < SHORTEST_KEPT:
        raise values.UnfitError(
            f"is less than {values.written_duration(SHORTEST_KEPT)}, as far back as windows look for rows",
            f"Write at least '{values.written_duration(SHORTEST_KEPT)}'",
        )
    return kept


def _with_rest(top: Section, settings: SelfCheck) -> Section:
    names = {"ledger": LEDGER_POINT, "topic": TOPIC_POINT, "store": STORE_POINT}
    # Five kinds of faults; of a duplicate or a mismatch one action each, of what a topic misses two at most.
    text = _FILE.format(at=settings, actions=10 * settings.faults, **names)
    rest = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(rest, MappingNode)
    written = [(key, node) for key, node in top.place.node.value if key_text(key) != SELF_CHECK]
    known = {key_text(key) for key, _ in written}
    added = [(key, node) for key, node in rest.value if key_text(key) not in known]
    node = MappingNode(rest.tag, [*written, *added], top.place.node.start_mark, top.place.node.end_mark)
    return Section(replace(top.place, node=node))
