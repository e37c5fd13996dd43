"""Read the `hops` of a pipeline file: the points they join, their remedies and conditions."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from makewhole.config import values
from makewhole.config.hops.compared import compared_columns, note_compared_otherwise, read_compare
from makewhole.config.hops.control_topic import read_control_topic
from makewhole.config.hops.coordinates import note_coordinates, note_parts_of_coordinates, note_written_coordinates
from makewhole.config.hops.exploded_points import REMOVED, note_exploded
from makewhole.config.hops.grouped import GROUP, note_grouped, read_group
from makewhole.config.hops.hop_graph import (
    Ends,
    note_circle,
    note_doubled,
    note_mixed,
    note_reversed_twice,
    note_unjoined,
)
from makewhole.config.hops.progress import read_progress
from makewhole.config.hops.progress_of_topics import note_shared_progress, with_other_topics
from makewhole.config.hops.redelivery import note_shared
from makewhole.config.hops.remedies import VERDICTS, HopKinds, can_join, choose, note_useless, read_wanted
from makewhole.config.hops.where import ordered_texts, where
from makewhole.config.hops.written_columns import WrittenColumns, read_written_columns
from makewhole.config.hops.written_topics import WrittenTopics, check_written, read_written
from makewhole.config.key_types import note_unlike_types
from makewhole.config.points import PointDraft
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.delivery.claims import Delivery
from makewhole.model.hops import Hop, Remedy, Semantics
from makewhole.model.places.sink_progress import SinkProgress
from makewhole.model.points import PointKind

_KEYS = (
    "from",
    "to",
    "compare",
    "consumer_group",
    "control_topic",
    "delivery",
    "progress",
    "where",
    "semantics",
    REMOVED,
    GROUP,
    "compensation",
    "redeliver",
    "redeliver_to",
    "reverse",
    "write",
    "leave",
)


def read_hops(
    top: Section, drafts: Mapping[str, PointDraft], of_pipeline: Mapping[str, tuple[YamlPlace, Remedy]]
) -> tuple[Hop, ...]:
    """Return the hops that could be read, in file order; what is wrong is noted."""
    may_be_alone = bool(drafts) and all(draft.kind is PointKind.TOPIC for draft in drafts.values())
    if may_be_alone and not top.has("hops"):
        return ()
    place = top.need("hops", "Join the points, for example '- {from: outbox, to: flights}'")
    if place is None:
        return ()
    ends, kinds, hops = [], [], []
    written_topics: list[str | None] = []
    said: set[str] = set()
    elements = place.elements()
    for element in elements:
        section = element.section()
        if section is None:
            continue
        section.only(*_KEYS)
        ends.append(_read_ends(element, section, drafts))
        written = read_written(section, drafts)
        written_topics += written.names
        hop_kinds = _kinds_joined(ends[-1], drafts, _read_semantics(section))
        if hop_kinds is not None:
            has_template, is_grouped = written.reverse_place is not None, section.has(GROUP)
            hop_kinds = replace(hop_kinds, has_template=has_template, is_grouped=is_grouped)
            kinds.append(hop_kinds)
        columns = _read_columns(section, ends[-1], drafts, top)
        progress = _read_progress(section, ends[-1], drafts)
        _note_unordered(section, drafts, top)
        hop = _read_hop(section, ends[-1], hop_kinds, of_pipeline, written, columns)
        control_topic = _read_control_topic(section, ends[-1], drafts)
        compare, group = read_compare(section), read_group(section)
        delivery = _read_delivery(section)
        if hop is not None:
            hop = replace(hop, progress=progress, control_topic=control_topic, compare=compare, delivery=delivery)
            hop = hop if group is None else replace(hop, group=group.grouping, compare=group.compare)
            hops.append((element, hop))
            said |= {hop.name} if written.redelivery.is_said else set()
            check_written(written, hop, drafts)
            note_written_coordinates(written.names, element, drafts)
    if not elements and not may_be_alone and not place.problems.listed():
        place.complain("joins nothing", "Write at least one hop, for example '- {from: outbox, to: flights}'")
    note_doubled(ends)
    note_circle(ends)
    note_unjoined(ends, written_topics, drafts)
    note_unlike_types([hop for _, hop in hops], {name: draft.key for name, draft in drafts.items() if draft.key})
    note_mixed([hop for _, hop in hops], drafts)
    note_parts_of_coordinates(drafts)
    note_coordinates(hops, drafts)
    note_exploded(hops, drafts)
    note_grouped(hops, drafts, top)
    note_compared_otherwise(hops, drafts, top)
    note_reversed_twice(hops, drafts)
    note_shared(hops, drafts, said)
    note_shared_progress(hops, drafts)
    if len(kinds) == len(elements):
        note_useless(of_pipeline, tuple(kinds))
    return with_other_topics([hop for _, hop in hops], drafts)


def _read_ends(element: YamlPlace, section: Section, drafts: Mapping[str, PointDraft]) -> Ends:
    names: list[str | None] = []
    for key in ("from", "to"):
        place = section.need(key, f"Name a point. Allowed: {', '.join(sorted(drafts))}" if drafts else "Name a point")
        name = place.text(str) if place else None
        if place is not None and name is not None and name not in drafts:
            place.complain(f"{values.shown(name)} is not a point of this pipeline", values.allowed(name, drafts))
            name = None
        names.append(name)
    return Ends(place=element, source=names[0], target=names[1])


def _kinds_joined(ends: Ends, drafts: Mapping[str, PointDraft], semantics: Semantics) -> HopKinds | None:
    """Return the kinds a hop joins, None when they are not known or cannot be joined, which is then noted."""
    if ends.source is None or ends.target is None or ends.source == ends.target:
        return None
    source, target = drafts[ends.source], drafts[ends.target]
    name = f"{ends.source}→{ends.target}"
    if source.key_parts and target.key_parts and source.key_parts != target.key_parts:
        ends.place.complain(
            f"{name} joins a key of {source.key_parts} to a key of {target.key_parts} parts",
            "Give both points the same parts of the business key, in the same order",
        )
    if target.kind is PointKind.LEDGER:
        ends.place.complain(
            f"{name} leads into a ledger", "A ledger is where events begin: turn the hop round, or make it a store"
        )
        return None
    if source.kind is PointKind.STORE:
        ends.place.complain(f"{name} starts from a store", "Start the hop from a ledger or a topic")
        return None
    if source.kind is None or target.kind is None or not can_join(source.kind, target.kind):
        return None
    written = source if source.kind is PointKind.TOPIC else target
    return HopKinds(
        name=name,
        source=source.kind,
        target=target.kind,
        semantics=semantics,
        has_version=written.has_version,
        is_versioned=target.has_version,
        can_produce=target.can_encode,
        lacks_payload=target.needs_payload and not source.has_payload,
        is_by_coordinates=written.is_by_coordinates,
    )


def _read_columns(section: Section, ends: Ends, drafts: Mapping[str, PointDraft], top: Section) -> WrittenColumns:
    target = drafts.get(ends.target) if ends.target else None
    return read_written_columns(section, f"{ends.source}→{ends.target}", target, compared_columns(section, top))


def _note_unordered(section: Section, drafts: Mapping[str, PointDraft], top: Section) -> None:
    """Note texts that `where` puts in an order, where no table can give their column a type."""
    place = section.get_quietly("where")
    if place is None or any(draft.kind is not PointKind.TOPIC for draft in drafts.values()):
        return
    with suppress(values.UnfitError):
        for column in ordered_texts(str(place.node.value), compared_columns(section, top)):
            place.complain(
                f"{column} is put in an order, and nothing says that it is more than a text; texts have no order that "
                "all systems share",
                f"Declare it under 'compare', for example 'compare: {{{column}: timestamp}}', or name the values: "
                f"'{column} in (…)'",
            )


def _read_progress(section: Section, ends: Ends, drafts: Mapping[str, PointDraft]) -> SinkProgress | None:
    source, target = (drafts.get(name) if name else None for name in (ends.source, ends.target))
    return read_progress(section, f"{ends.source}→{ends.target}", source, target)


def _read_control_topic(section: Section, ends: Ends, drafts: Mapping[str, PointDraft]) -> str | None:
    target = drafts.get(ends.target) if ends.target else None
    return read_control_topic(section, f"{ends.source}→{ends.target}", target)


def _read_hop(
    section: Section,
    ends: Ends,
    kinds: HopKinds | None,
    of_pipeline: Mapping[str, tuple[YamlPlace, Remedy]],
    written: WrittenTopics,
    columns: WrittenColumns,
) -> Hop | None:
    group = section.get("consumer_group")
    condition = section.get("where")
    consumer_group = group.text(values.consumer_group) if group else None
    narrowed = condition.text(where) if condition else None
    own = section.get("compensation")
    own_section = own.section() if own else None
    if own_section is not None:
        own_section.only(*VERDICTS)
    of_hop = read_wanted(own_section)
    if kinds is None or ends.source is None or ends.target is None:
        return None
    if group is not None and kinds.source is not PointKind.TOPIC:
        group.complain(f"{kinds.name} starts from a {kinds.source}, which no consumer group reads", "Take the line out")
    return Hop(
        source=ends.source,
        target=ends.target,
        remedies=choose(kinds, of_pipeline, of_hop),
        semantics=kinds.semantics,
        consumer_group=consumer_group,
        where=narrowed,
        redeliver_to=written.redelivery.to,
        redeliver_despite=written.redelivery.despite,
        reverse=written.reverse,
        write=columns.write,
        leave=columns.leave,
    )


def _read_semantics(section: Section) -> Semantics:
    place = section.get("semantics")
    semantics = place.text(values.choice(Semantics, "a semantics")) if place else None
    return semantics or Semantics.EVENT


def _read_delivery(section: Section) -> Delivery | None:
    place = section.get("delivery")
    return place.text(values.choice(Delivery, "a delivery")) if place else None
