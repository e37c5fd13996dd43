"""Read the `key` of a point: one name, a list of names, or names with their types."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from yaml.nodes import MappingNode, ScalarNode

from makewhole.config import values
from makewhole.config.tree import Section, YamlPlace
from makewhole.model.hops import Hop
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType

_OTHER_WORDS = {"int": KeyType.BIGINT, "integer": KeyType.BIGINT, "numeric": KeyType.DECIMAL, "text": KeyType.STRING}


@dataclass(frozen=True, kw_only=True)
class KeyDraft:
    """The parts of a key in order, and their types where the file declares them."""

    place: YamlPlace
    names: tuple[str, ...]
    types: tuple[KeyType, ...] = ()


def read_key(
    section: Section, parse: Callable[[str], str], short: Mapping[str, tuple[str, ...]] | None = None
) -> KeyDraft | None:
    """Return the key of a point; None when it is wrong, which is then noted. `short`: words that stand for a key."""
    place = section.need("key", "Say what identifies a business event, one name or a list of them")
    if place is None:
        return None
    if isinstance(place.node, ScalarNode) and place.node.value in (short or {}):
        return KeyDraft(place=place, names=(short or {})[place.node.value])
    if isinstance(place.node, MappingNode):
        return _read_typed(place, parse)
    names = place.words(parse)
    return KeyDraft(place=place, names=names) if names else None


def _read_typed(place: YamlPlace, parse: Callable[[str], str]) -> KeyDraft | None:
    section = place.section()
    names: list[str] = []
    types: list[KeyType] = []
    parts = list(section or ())
    for name, type_place in parts:
        try:
            names.append(parse(name))
        except values.UnfitError as unfit:
            type_place.complain(unfit.found, unfit.remedy)
        kind = type_place.text(key_type)
        if kind is not None:
            types.append(kind)
    if not parts:
        place.complain("names no part", "Name at least one, with its type: 'key: {id: bigint}'")
    if not parts or not len(parts) == len(names) == len(types):
        return None
    return KeyDraft(place=place, names=tuple(names), types=tuple(types))


def key_type(text: str) -> KeyType:
    """Parse the type of a part of a key."""
    try:
        return KeyType(text)
    except ValueError:
        allowed = values.allowed(text, [kind.value for kind in KeyType])
        intended = _OTHER_WORDS.get(text) or (KeyType.DECIMAL if text.startswith(("decimal(", "numeric(")) else None)
        remedy = f"Write '{intended.value}'" if intended else allowed
        raise values.UnfitError(f"{values.shown(text)} is not a type of keys", remedy) from None


def note_unlike_types(hops: Sequence[Hop], keys: Mapping[str, KeyDraft]) -> None:
    """Note points that hops join and whose keys are declared of different types: no key of one is one of the other."""
    for group in Pipeline(name="", points={}, hops=tuple(hops)).joined_points():
        typed = [name for name in group if name in keys and keys[name].types]
        for name in typed[1:]:
            first, other = keys[typed[0]], keys[name]
            for mine, its in zip(first.types, other.types, strict=False):
                if mine is not its:
                    other.place.complain(
                        f"is declared a {its.value}, and the key of {typed[0]}, which is the same, a {mine.value}",
                        "Declare the same types at both, or at one of them alone: it holds for all points that hops "
                        "join with it",
                    )
                    break
