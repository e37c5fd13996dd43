"""Render the event that takes back an extra copy, from a checked template and from data that stay data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from makewhole.config.template import exact_json
from makewhole.config.template.expressions import Scope, TemplateLeaf, read_leaf
from makewhole.config.values import UnfitError, shown
from makewhole.model.errors import ActionRefusedError
from makewhole.model.hops import Reverse
from makewhole.model.pipeline import Pipeline
from makewhole.model.refusal import RefusalCode
from makewhole.model.verdict import Finding
from makewhole.model.window import Window


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """A reversal as a record."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Template:
    """A `reverse` of a pipeline file, compiled."""

    def __init__(self, reverse: Reverse) -> None:
        self._key = _text(reverse.key)
        self._value = _tree(reverse.value)
        self._headers = [(name, _text(text)) for name, text in reverse.headers]

    def render(self, scope: Scope) -> Rendered:
        """Render the reversal for these data.

        Raises:
            RefusedError: the data do not have what the template names, or it cannot be written as a record.
        """
        try:
            return Rendered(
                key=self._key(scope).encode(),
                value=exact_json.dumps(self._value(scope)).encode(),
                headers=tuple((name, text(scope).encode()) for name, text in self._headers),
            )
        except UnicodeEncodeError:  # not chained: it quotes the data
            raise ActionRefusedError.of(RefusalCode.UNFIT, "what the template gives is not Unicode text") from None


def names_of(reverse: Reverse) -> frozenset[str]:
    """Return the names that the template uses anywhere, such as `row`.

    Raises:
        RefusedError: it says what no template may.
    """
    return frozenset().union(*(_leaf(text).names for text in _texts(reverse)))


def scope_of(pipeline: Pipeline, window: Window, finding: Finding, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of a template for one extra copy. `data`: its `key`, `row`, `source`, and what `finding` says of
    it.

    The plan has no id yet: it is named after what is rendered here.
    """
    described = {"hop": finding.hop, "verdict": finding.verdict.value, "cause": finding.cause.value}
    return {
        **data,
        "finding": {**described, **data["finding"]},
        "window": {
            "number": window.number,
            "revision": window.revision,
            "start": None if window.start is None else window.start.isoformat(),
            "end": window.end.isoformat(),
        },
        "plan": {"pipeline": pipeline.name, "window": window.number, "revision": window.revision},
    }


def _leaf(text: str) -> TemplateLeaf:
    """Read a leaf, checked again: what it may say does not depend on how the template came here."""
    try:
        return read_leaf(text)
    except UnfitError as unfit:
        raise ActionRefusedError.of(RefusalCode.UNFIT, f"the template {unfit.found}. {unfit.remedy}") from None


def _text(text: str) -> Callable[[Scope], str]:
    """Read a leaf that has to be text: a list is written as keys are, a number digit by digit."""
    leaf = _leaf(text)

    def render(scope: Scope) -> str:
        value = leaf.value(scope)
        if value is None:
            raise ActionRefusedError.of(
                RefusalCode.UNFIT, f"the template {shown(leaf.text)} gives null, where a text has to be"
            )
        return value if isinstance(value, str) else exact_json.dumps(value)

    return render


def _tree(value: Any) -> Callable[[Scope], Any]:
    match value:
        case str():
            return _leaf(value).value
        case Mapping():
            fields = {name: _tree(inner) for name, inner in value.items()}
            return lambda scope: {name: inner(scope) for name, inner in fields.items()}
        case list():
            elements = [_tree(inner) for inner in value]
            return lambda scope: [inner(scope) for inner in elements]
        case _:
            return lambda _: value


def _texts(reverse: Reverse) -> Iterator[str]:
    yield reverse.key
    yield from (text for _, text in reverse.headers)
    yield from _leaves(reverse.value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        inner: Sequence[Any] = list(value.values()) if isinstance(value, Mapping) else value
        for part in inner:
            yield from _leaves(part)
