"""Read the `reverse` of a hop: the template of a compensating event, checked to its last leaf."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from yaml.nodes import MappingNode, SequenceNode

from makewhole.config.points import PointDraft, named_topic
from makewhole.config.template.expressions import read_leaf
from makewhole.config.tree import Section, YamlPlace, describe, is_empty
from makewhole.model.hops import Reverse
from makewhole.model.plan import LINEAGE_PREFIX

_KEYS = ("to", "key", "value", "headers")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_FIELDS_MOST = 1_000
_DEEPEST = 20
_EXAMPLE = "for example 'value: {type: coupon_reversed, coupon_id: \"{{ key }}\"}'"


def read_reverse(place: YamlPlace, drafts: Mapping[str, PointDraft]) -> Reverse | None:
    """Return the template at a place; None when something in it is wrong, which is then noted."""
    section = place.section()
    if section is None:
        return None
    noted = len(place.problems.listed())
    section.only(*_KEYS)
    to = section.need("to", "Name the topic point that reversals go to")
    key = section.get("key")
    name = named_topic(to, drafts) if to else None
    if to is not None and name is not None and not drafts[name].can_encode:
        to.complain(
            f"{name} has values of a format in which no record can be made", "Name a topic point whose values are JSON"
        )
    reverse = Reverse(
        to=name or "",
        key=(key.text(_leaf) if key else None) or Reverse.key,
        value=_read_value(section),
        headers=tuple(_read_headers(section)),
    )
    return reverse if len(place.problems.listed()) == noted else None


def _leaf(text: str) -> str:
    read_leaf(text)
    return text


def _read_headers(section: Section) -> Iterator[tuple[str, str]]:
    place = section.get("headers")
    for name, header in (place.section() if place else None) or ():
        if name.lower().startswith(LINEAGE_PREFIX):
            header.complain(f"{name!r} is a header that makewhole writes itself", "Give it another name")
        text = header.text(_leaf)
        if text is not None:
            yield name, text


def _read_value(section: Section) -> Mapping[str, Any]:
    place = section.need("value", f"Say what the reversal says, {_EXAMPLE}")
    if place is None:
        return {}
    if not isinstance(place.node, MappingNode) or not place.node.value:
        described = "empty" if isinstance(place.node, MappingNode) else describe(place.node)
        place.complain(f"is {described}; a reversal is a JSON object", f"Write its fields, {_EXAMPLE}")
        return {}
    return _Value(place).read()


class _Value:
    """A reader of the nodes below a place. A file can refer to its own nodes (`*name`), so that they could have no
    end."""

    def __init__(self, place: YamlPlace) -> None:
        self._place, self._left, self._is_endless = place, _FIELDS_MOST, False

    def read(self) -> Mapping[str, Any]:
        fields: Mapping[str, Any] = self._read(self._place, 0)
        if self._is_endless:
            found_so_far = f"has more than {_FIELDS_MOST:,} fields, or is nested more than {_DEEPEST} deep"
            self._place.complain(found_so_far, "Write fewer; a '*name' repeats all that it refers to")
        return fields

    def _read(self, place: YamlPlace, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            self._is_endless = True
            return None
        match place.node:
            case MappingNode():
                return {name: self._read(inner, depth + 1) for name, inner in Section(place)}
            case SequenceNode():
                return [self._read(element, depth + 1) for element in place.elements()]
            case _:
                return _scalar(place)


def _scalar(place: YamlPlace) -> Any:
    """Return a text as a template; null, booleans and plain numbers as themselves."""
    if is_empty(place.node):
        return None
    match describe(place.node):
        case "text":
            return place.text(_leaf)
        case "a boolean":
            return place.boolean()
        case "a number" if _NUMBER.fullmatch(place.node.value):
            return Decimal(place.node.value)
        case described:
            place.complain(f"is {described} that JSON would write otherwise", "Put it in quotes")
            return None
