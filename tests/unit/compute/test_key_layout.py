"""Check by which types keys are read, and which changes of them are refused."""

from itertools import combinations_with_replacement

import pytest

from makewhole.compute.key_layout import (
    KeyColumns,
    common_type,
    declaration,
    key_layout,
    require_same_keys,
    require_same_spelling,
    with_layout,
)
from makewhole.model.errors import ConfigurationError, RefusedError
from makewhole.model.hops import Hop, Remedies, Remedy
from makewhole.model.pipeline import Pipeline
from makewhole.model.points import KeyType, PointKind, TablePoint, TopicPoint
from makewhole.window.configuration import configuration_document

pytestmark = pytest.mark.unit

STRING, CHAR, BIGINT, DECIMAL, UUID, DATE = (
    KeyType.STRING,
    KeyType.CHAR,
    KeyType.BIGINT,
    KeyType.DECIMAL,
    KeyType.UUID,
    KeyType.DATE,
)
REPORT = Remedies(missing=Remedy.REPORT, duplicate=Remedy.REPORT, mismatched=Remedy.REPORT)


def pipeline(*declared: KeyType, key: tuple[str, ...] = ("id",), parts: int = 1) -> Pipeline:
    """Return ledger → topic → store, the ledger's key declared of these types."""
    ledger = TablePoint(
        name="ledger", kind=PointKind.LEDGER, connection="c", table="l", key=key[:parts], key_types=declared
    )
    store = TablePoint(name="store", kind=PointKind.STORE, connection="c", table="s", key=key[:parts])
    topic = TopicPoint(name="topic", connection="k", topic="t", key=tuple(f"$.{name}" for name in key[:parts]))
    aside = TopicPoint(name="aside", connection="k", topic="u", key=("kafka.key",))
    return Pipeline(
        name="p",
        points={point.name: point for point in (ledger, topic, store, aside)},
        hops=tuple(Hop(source=a, target=b, remedies=REPORT) for a, b in (("ledger", "topic"), ("topic", "store"))),
    )


def columns(ledger: str, store: str) -> KeyColumns:
    return {"ledger": (ledger,), "store": (store,)}


@pytest.mark.parametrize(
    ("ledger", "store", "kind"),
    [
        ("text", "character varying(12)", STRING),
        ("citext", "mood", STRING),
        ("mood", "mood", STRING),
        ("inet", "text", KeyType.INET),
        ("bigint", "integer", BIGINT),
        ("bigint", "numeric(10,2)", DECIMAL),
        ("double precision", "real", DECIMAL),
        ("smallint", "text", BIGINT),
        ("text", "smallint", BIGINT),
        ("text", "uuid", UUID),
        ("character(5)", "character(7)", CHAR),
        ("character(5)", "text", STRING),
        ("character(36)", "uuid", UUID),
        ("timestamp(3) with time zone", "timestamp without time zone", KeyType.TIMESTAMP),
        ("date", "text", DATE),
        ("boolean", "boolean", KeyType.BOOLEAN),
    ],
)
def test_points_that_hops_join_have_the_type_of_their_columns(ledger: str, store: str, kind: KeyType) -> None:
    assert key_layout(pipeline(), columns(ledger, store)) == dict.fromkeys(("ledger", "topic", "store"), (kind,))


@pytest.mark.parametrize(
    ("ledger", "store"),
    [
        ("uuid", "bigint"),
        ("date", "timestamp with time zone"),
        ("boolean", "smallint"),
        ("timestamp with time zone", "text"),
        ("inet", "bigint"),
    ],
)
def test_types_that_no_value_has_both_are_named_as_a_pair(ledger: str, store: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        key_layout(pipeline(), columns(ledger, store))
    assert str(caught.value) == (
        f"pipeline file: points.store.key: ledger.id is of type {ledger} and store.id of type {store}: no value is "
        "both. Name columns that hold the same keys, or compare them as texts: `key: {id: string}`"
    )


def test_a_text_between_two_that_cannot_meet_does_not_hide_them() -> None:
    joined = pipeline()
    more = TablePoint(name="more", kind=PointKind.STORE, connection="c", table="m", key=("id",))
    hops = (*joined.hops, Hop(source="topic", target="more", remedies=REPORT))
    wide = Pipeline(name="p", points={**joined.points, "more": more}, hops=hops)
    with pytest.raises(ConfigurationError, match=r"ledger\.id is of type uuid and more\.id of type bigint"):
        key_layout(wide, {**columns("uuid", "text"), "more": ("bigint",)})
    with pytest.raises(ConfigurationError, match=r"store\.id is of type uuid and more\.id of type bigint"):
        key_layout(wide, {**columns("text", "uuid"), "more": ("bigint",)})


def test_whatever_the_order_two_types_have_the_same_common_one() -> None:
    for first, other in combinations_with_replacement([*KeyType, None], 2):
        assert common_type(first, other) is common_type(other, first)


def test_a_declaration_at_one_point_holds_for_all_that_hops_join_with_it() -> None:
    assert key_layout(pipeline(STRING), columns("bigint", "uuid"))["topic"] == (STRING,)
    assert key_layout(pipeline(BIGINT), columns("numeric(10,2)", "text"))["store"] == (BIGINT,)
    assert "aside" not in key_layout(pipeline(BIGINT), columns("bigint", "text"))
    with pytest.raises(ConfigurationError) as caught:
        key_layout(pipeline(UUID), columns("text", "bigint"))
    assert str(caught.value) == (
        "pipeline file: points.store.key: store.id is of type bigint, of which no value is a uuid. Name columns that "
        "hold the same keys, or compare them as texts: `key: {id: string}`"
    )


def test_topics_alone_have_texts_as_they_are_unless_a_type_is_declared() -> None:
    topics = {name: TopicPoint(name=name, connection="k", topic=name, key=("$.id",)) for name in ("a", "b")}
    hops = (Hop(source="a", target="b", remedies=REPORT),)
    assert key_layout(Pipeline(name="p", points=topics, hops=hops), {}) == {"a": (STRING,), "b": (STRING,)}


def test_every_part_has_its_own_type() -> None:
    both = pipeline(key=("id", "region"), parts=2)
    layout = key_layout(both, {"ledger": ("numeric", "text"), "store": ("bigint", "text")})
    assert layout == dict.fromkeys(("ledger", "topic", "store"), (DECIMAL, STRING))
    assert declaration(both.points["topic"], layout["topic"]) == 'key: {"$.id": decimal, "$.region": string}'


def test_a_layout_is_none_of_the_file() -> None:
    plain = pipeline()
    assert configuration_document(with_layout(plain, {"topic": (BIGINT,)})) == configuration_document(plain)
    assert "key_types" not in configuration_document(plain)["points"]["ledger"]
    assert configuration_document(pipeline(BIGINT))["points"]["ledger"]["key_types"] == ["bigint"]


@pytest.mark.parametrize(
    ("ledger", "store", "now", "is_same"),
    [
        ("text", "text", STRING, True),
        ("bigint", "integer", BIGINT, True),
        ("bigint", "numeric(20,0)", DECIMAL, True),
        ("uuid", "uuid", UUID, True),
        ("date", "date", DATE, True),
        ("boolean", "boolean", KeyType.BOOLEAN, True),
        ("character(5)", "character(5)", CHAR, True),
        ("numeric(10,2)", "numeric(10,2)", DECIMAL, False),
        ("numeric", "bigint", DECIMAL, False),
        ("double precision", "double precision", DECIMAL, False),
        ("bigint", "text", BIGINT, False),
        ("timestamp with time zone", "timestamp with time zone", KeyType.TIMESTAMP, False),
    ],
)
def test_windows_are_followed_only_by_keys_that_are_encoded_as_in_them(
    ledger: str, store: str, now: KeyType, is_same: bool
) -> None:
    of_type, as_texts = (dict.fromkeys(("ledger", "topic", "store"), (kind,)) for kind in (now, STRING))
    for before, after in ((as_texts, of_type), (of_type, as_texts)):
        if is_same:
            require_same_spelling(pipeline(), columns(ledger, store), before, after)
            continue
        with pytest.raises(RefusedError, match=r"To go on as before, write `key: \{id: \w+\}` at points\.ledger\."):
            require_same_spelling(pipeline(), columns(ledger, store), before, after)


def test_a_type_of_topics_alone_is_not_changed_in_operation() -> None:
    topics = {name: TopicPoint(name=name, connection="k", topic=name, key=("$.id",)) for name in ("a", "b")}
    joined = Pipeline(name="p", points=topics, hops=(Hop(source="a", target="b", remedies=REPORT),))
    by_number = {"a": (BIGINT,), "b": (BIGINT,)}
    with pytest.raises(RefusedError) as caught:
        require_same_spelling(joined, {}, {"a": (STRING,), "b": (STRING,)}, by_number)
    assert str(caught.value) == (
        "p: the windows before compared a.$.id as string, and this one would as bigint; keys that are kept from before "
        "(the key index, keys handed over) would not be found under their new spelling. To go on as before, write "
        '`key: {"$.id": string}` at points.a. To compare them as bigint, give the pipeline another name: it begins a '
        "history of its own, from `start:` on"
    )


def test_points_that_the_windows_before_did_not_have_are_held_to_nothing() -> None:
    decimal, both = dict.fromkeys(("ledger", "topic", "store"), (DECIMAL,)), columns("numeric", "numeric")
    require_same_spelling(pipeline(), both, {}, decimal)
    require_same_spelling(pipeline(), both, {"elsewhere": (STRING,)}, decimal)
    with pytest.raises(RefusedError, match=r'write `key: {"\$\.id": string}` at points\.topic\.'):
        require_same_spelling(pipeline(), both, {"topic": (STRING,)}, decimal)


def test_points_that_a_new_hop_joins_are_each_held_to_what_was_known_of_them() -> None:
    before = {"ledger": (STRING,), "topic": (STRING,), "store": (BIGINT,)}
    now = dict.fromkeys(before, (STRING,))
    require_same_spelling(pipeline(), columns("text", "bigint"), before, now)
    with pytest.raises(
        RefusedError, match=r"the windows before compared store\.id as bigint, and this one would as str"
    ):
        require_same_spelling(pipeline(), columns("text", "text"), before, now)


def test_a_key_that_waits_in_another_spelling_is_not_forgotten() -> None:
    layout = dict.fromkeys(("ledger", "topic"), (BIGINT, STRING))
    both = pipeline(key=("id", "region"), parts=2)
    require_same_keys(both, layout, [("topic", '["7","007"]'), ("aside", "x")])
    with pytest.raises(RefusedError) as caught:
        require_same_keys(both, layout, [("topic", '["007","a"]'), ("topic", '["x","a"]'), ("topic", '["7","a"]')])
    assert str(caught.value) == (
        "p: 2 keys of topic that the last window handed over are written otherwise than a key of type bigint, string "
        'is, and this window would not find them again. Write `key: {"$.id": string, "$.region": string}` at '
        "points.topic until they are judged"
    )


def test_keys_of_another_number_of_parts_are_refused() -> None:
    several = pipeline(key=("id", "region"), parts=2)
    now = dict.fromkeys(("ledger", "topic", "store"), (STRING, STRING))
    before = dict.fromkeys(("ledger", "topic", "store"), (STRING,))

    with pytest.raises(RefusedError) as refused:
        require_same_spelling(several, {}, before, now)

    assert "compared keys of 1 parts at ledger, and this one would of 2; what is kept" in str(refused.value)
    with pytest.raises(RefusedError, match=r"keys of 2 parts at ledger, and this one would of 1;"):
        require_same_spelling(pipeline(), {}, now, before)
    require_same_spelling(several, {}, {}, now)
