"""Hold the fields of the values that a ledger gives against those of the records that stand in its topic: pure.

What is compared is compared by value, elsewhere. Of all other fields it counts whether they are there, and of which
JSON type they are: a reader of the topic takes them as it always had them.
"""

from collections.abc import Collection, Mapping, Sequence

from makewhole.compute.json_fields import NULL
from makewhole.model.hops import Hop
from makewhole.model.points import TablePoint
from makewhole.model.refusal import Refusal, RefusalCode

FieldsOfPair = tuple[Mapping[str, str] | None, Mapping[str, str] | None]
"""The fields of a record in the topic, and of the one that the ledger gives for its key, each with its JSON type; None:
it is no JSON object."""


def field_objection(
    hop: Hop, point: TablePoint, pairs: Sequence[FieldsOfPair], compared: Collection[str]
) -> Refusal | None:
    """Return why the values of the ledger's records do not look like those of the topic, with the line to write; None:
    they do, or that is not known. `compared`: fields whose types may differ."""
    known = [(in_topic, given) for in_topic, given in pairs if in_topic is not None and given is not None]
    if not known:
        return None
    of_all = set.intersection(*({*in_topic} for in_topic, _ in known))
    given_by_any = {name for _, given in known for name in given}
    absent = sorted(of_all - given_by_any - {*point.leave_fields})
    if absent:
        return Refusal(
            RefusalCode.UNFIT,
            f"all of the last {len(known)} records in {hop.target} have the fields {', '.join(absent)}, and "
            f"that of {hop.source} would not; {_lines(point, absent)}",
        )
    for name in sorted(given_by_any - {*compared, *point.leave_fields}):
        in_topic, given = (_types(name, fields) for fields in zip(*known, strict=True))
        if in_topic and given and not in_topic & given:
            return Refusal(
                RefusalCode.UNFIT,
                f"the field {name} is a {' or '.join(sorted(in_topic))} in the last records in {hop.target}, "
                f"and that of {hop.source} would be a {' or '.join(sorted(given))}; {_lines(point, [name])}",
            )
    return None


def _types(name: str, values: Sequence[Mapping[str, str]]) -> set[str]:
    """Return the types that a field has in some values; null is of any."""
    return {fields[name] for fields in values if name in fields} - {NULL}


def _lines(point: TablePoint, names: Sequence[str]) -> str:
    column = "a column" if point.payload is None else f"another column than {point.payload}"
    return (
        f"name {column} that holds the whole value under 'payload' at point {point.name}, or write 'leave_fields: "
        f"[{', '.join(names)}]' there if the readers of the topic need them not"
    )
