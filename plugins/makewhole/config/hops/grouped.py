"""Read `group` of a hop: what a row counts and adds up that is made of all records of its key; and note what cannot be
judged beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from makewhole.config import values
from makewhole.config.hops.redelivery import Drafts
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop, Semantics
from makewhole.model.places.compared_columns import ColumnTypes
from makewhole.model.places.grouping import COUNT_TYPE, POSITION_IDENTITY, SEQUENCE_IDENTITY, SUM_DIGITS, Grouping
from makewhole.model.points import PointKind, can_look_up, has_log

GROUP = "group"
GROUP_KEYS = ("identity", "counts", "sums")
_OF_COPIES = ("compare", "redeliver", "redeliver_to", "reverse", "write", "leave")
_EXAMPLE = "for example 'group: {identity: line_id, counts: lines, sums: {total: \"decimal(12,2)\"}}'"


@dataclass(frozen=True, kw_only=True)
class GroupDraft:
    """A group as far as it could be read, and the columns of its rows with their types."""

    grouping: Grouping
    compare: ColumnTypes


def read_group(section: Section) -> GroupDraft | None:
    """Return the group of a hop; what is wrong is noted. None: the line is not there, or says nothing."""
    place = section.get(GROUP)
    inner = place.section() if place else None
    if place is None or inner is None:
        return None
    inner.only(*GROUP_KEYS)
    named = inner.need(
        "identity", f"Name the column by which a record is known that was sent again, or '{POSITION_IDENTITY}'"
    )
    identity, counts = named.text(_identity) if named else None, inner.get("counts")
    count = counts.text(values.logical_name) if counts else None
    sums = dict(_read_sums(inner.get("sums")))
    if counts is None and not sums:
        place.complain("counts nothing and adds nothing up", f"Name what a row holds of its records, {_EXAMPLE}")
    names = [name for name in (identity, count, *sums) if name is not None]
    for name in sorted({name for name in names if names.count(name) > 1}):
        place.complain(f"names {name} twice", "Give the identity, the count and each sum a name of its own")
    for line in _OF_COPIES:
        if (wrong := section.get_quietly(line)) is not None:
            wrong.complain(
                f"'{line}' is about a row that is a copy of a record, and '{GROUP}' makes a row of many",
                f"Take the line out; what is compared stands under '{GROUP}'",
            )
    return GroupDraft(
        grouping=Grouping(identity=None if identity == POSITION_IDENTITY else identity, counts=count, sums=tuple(sums)),
        compare={**({} if count is None else {count: COUNT_TYPE}), **sums},
    )


def _identity(text: str) -> str:
    """Parse what a record is known by when it was sent again: not its sequence, which is another one then."""
    if text == SEQUENCE_IDENTITY:
        raise values.UnfitError(
            f"'{SEQUENCE_IDENTITY}' numbers what a producer sent, and a record that was sent again has another number",
            f"Name a column of the record; where each record counts, write '{POSITION_IDENTITY}'. A column of that "
            "name takes another one under 'columns' of the topic",
        )
    return values.logical_name(text)


def _read_sums(place: YamlPlace | None) -> Iterator[tuple[str, str]]:
    for name, line in (place.section() if place else None) or ():
        try:
            values.logical_name(name)
        except values.UnfitError as unfit:
            line.complain(unfit.found, unfit.remedy)
        declared = line.text(_sum_type)
        if declared is not None:
            yield name, declared


def _sum_type(text: str) -> str:
    """Parse the type of a sum: one that can be added exactly."""
    declared = values.compare_type(text)
    if declared in ("int", "bigint"):
        return declared
    if not declared.startswith("decimal("):
        raise values.UnfitError(
            f"a {declared} cannot be added up exactly", "Declare the sum as bigint or as decimal(p,s)"
        )
    if int(declared.removeprefix("decimal(").split(",")[0]) > SUM_DIGITS:
        raise values.UnfitError(
            f"{values.shown(text)} has more digits than sums are added with",
            f"Write decimal(p,s) with p of {SUM_DIGITS} at most",
        )
    return declared


def note_grouped(hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts, top: Section) -> None:
    """Note what keeps a group from being judged: other ends than a topic and a store, other hops at these, and what
    takes a record for the row of its key."""
    for place, hop in hops:
        if hop.group is None:
            continue
        source, target = drafts[hop.source], drafts[hop.target]
        if source.kind is not PointKind.TOPIC or target.kind is not PointKind.STORE or has_log(target.point):
            place.complain(
                f"'{GROUP}' makes one row of a store of the records of a topic, and {hop.name} joins a {source.kind} "
                f"to a {target.kind}",
                f"Take '{GROUP}' out",
            )
        if hop.semantics is Semantics.UPSERT:
            place.complain(
                f"'semantics: {Semantics.UPSERT}' takes the latest record of a key, and '{GROUP}' all of them",
                "Take one of the two out",
            )
        _note_other_hops(place, hop, hops, drafts)
        _note_points(hop, drafts)
        if (history := top.get_quietly("history")) is not None:
            history.complain(
                f"forgets the keys of older windows, and {hop.name} adds up all records of a key",
                "Take the line out, or compare that hop in a pipeline file of its own",
            )


def _note_other_hops(place: YamlPlace, hop: Hop, hops: Sequence[tuple[YamlPlace, Hop]], drafts: Drafts) -> None:
    own = {name: _place_of(name, drafts) for name in (hop.source, hop.target)}
    for _, other in hops:
        sent_to = (other.redeliver_to, other.reverse.to if other.reverse else None)
        ends = {_place_of(name, drafts): name for name in (other.source, other.target, *sent_to) if name is not None}
        met = [name for name, at in own.items() if at in ends]
        if other is not hop and met:
            place.complain(
                f"{other.name} reads or writes {' and '.join(met)}, too, where a record or a row is one event; under "
                f"'{GROUP}' a key has many records",
                "Compare the two in pipeline files of their own",
            )


def _place_of(name: str, drafts: Mapping[str, object]) -> str:
    point = getattr(drafts.get(name), "point", None)
    return name if point is None else point.place


def _note_points(hop: Hop, drafts: Drafts) -> None:
    source, target = drafts[hop.source].point, drafts[hop.target].point
    beside = []
    if has_log(source):
        beside += [(hop.source, "explode")] if source.explode is not None else []
        beside += [(hop.source, "duplicates")] if source.duplicates is not None else []
        beside += [(hop.source, "publish")] if drafts[hop.source].publish is not None else []
    if can_look_up(target) and target.erased is not None:
        beside.append((hop.target, "erased"))
    for name, line in beside:
        drafts[name].place.complain(
            f"has '{line}', which takes a record or a row for one event, and {hop.name} makes a row of many records",
            f"Take '{line}' out, or '{GROUP}'",
        )
