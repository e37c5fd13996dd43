"""Test that a reversal is the template's text with the data in it: JSON stays JSON, numbers stay what they were."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makewhole.config.template import exact_json
from makewhole.config.template.reversal import Rendered, Template, names_of, scope_of
from makewhole.model.errors import RefusedError
from makewhole.model.hops import Reverse
from makewhole.model.pipeline import Pipeline
from makewhole.model.verdict import Cause, Finding, Verdict
from makewhole.model.window import Window

pytestmark = pytest.mark.unit

COUPON = Reverse(
    to="reversals",
    value={
        "type": "coupon_reversed",
        "coupon_id": "{{ key }}",
        "amount": "{{ -row.amount }}",
        "rate": Decimal("1.50"),
        "manual": False,
        "note": None,
        "why": ["copy {{ finding.copy }} of {{ finding.copies }}", {"cause": "{{ finding.cause }}"}],
        "window": "{{ window.number }}",
        "until": "{{ window.end }}",
        "source": "{{ source.value }}",
    },
    headers=(("trace", "{{ plan.pipeline }}/{{ plan.window }}.{{ plan.revision }}"), ("n", "{{ finding.copy }}")),
)


def scope(**data: Any) -> dict[str, Any]:
    given_data = {
        "key": "C-1",
        "row": {"amount": Decimal("10.50")},
        "source": {"value": {"id": Decimal("12345678901234567890.10")}},
        "finding": {"copies": 3, "copy": 2, "place": "grants/loyalty.grants/(0,2)"},
    }
    finding = Finding(
        hop="coupons→grants", key="C-1", key_hash="0" * 32, verdict=Verdict.DUPLICATE, cause=Cause.UPSTREAM_DUPLICATE
    )
    window = Window(
        pipeline="coupons",
        number=7,
        revision=2,
        start=None,
        end=datetime(2026, 1, 2, tzinfo=UTC),
        opened_at=datetime(2026, 1, 3, tzinfo=UTC),
        ranges={},
    )
    return scope_of(Pipeline(name="coupons", points={}, hops=()), window, finding, given_data | data)


def test_every_leaf_is_rendered_in_its_place_with_its_own_type() -> None:
    assert Template(COUPON).render(scope()) == Rendered(
        key=b"C-1",
        value=(
            b'{"type":"coupon_reversed","coupon_id":"C-1","amount":-10.50,"rate":1.50,"manual":false,"note":null,'
            b'"why":["copy 2 of 3",{"cause":"upstream_duplicate"}],"window":7,"until":"2026-01-02T00:00:00+00:00",'
            b'"source":{"id":12345678901234567890.10}}'
        ),
        headers=(("trace", b"coupons/7.2"), ("n", b"2")),
    )


def test_the_names_that_a_template_uses_are_known_without_rendering_it() -> None:
    assert names_of(COUPON) == {"key", "row", "finding", "window", "plan", "source"}
    assert names_of(Reverse(to="t", key="k", value={"a": [None, True, Decimal(1), {"b": "x {{ row.c }}"}]})) == {"row"}


def test_a_key_of_several_parts_is_the_text_that_keys_are_and_has_its_parts() -> None:
    reverse = Reverse(to="t", value={"shop": "{{ key[0] }}", "key": "{{ key }}"})

    rendered = Template(reverse).render(scope(key=["Zürich", 'a"b']))

    assert rendered.key == '["Zürich","a\\"b"]'.encode()
    assert rendered.value == '{"shop":"Zürich","key":["Zürich","a\\"b"]}'.encode()


@pytest.mark.parametrize(
    ("reverse", "data", "message"),
    [
        (
            Reverse(to="t", key="{{ row.id }}", value={"a": "x"}),
            {"row": {"id": None}},
            "unfit: the template '{{ row.id }}' gives null, where a text has to be",
        ),
        (
            Reverse(to="t", value={"a": "x"}, headers=(("h", "{{ row.id }}"),)),
            {"row": {"id": "\ud800"}},
            "unfit: what the template gives is not Unicode text",
        ),
        (
            Reverse(to="t", value={"a": "{{ row.id }}"}),
            {"row": {"id": "\ud800"}},
            "unfit: what the template gives is not Unicode text",
        ),
    ],
)
def test_what_cannot_be_written_as_a_record_is_refused(reverse: Reverse, data: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError) as caught:
        Template(reverse).render(scope(**data))

    assert str(caught.value) == message


HOSTILE = '{{ 7*7 }}{% raw %}","amount":-999999,"x":"\x1b[31m\r\nmakewhole-plan: x\x00</script>'


def test_data_stay_inside_the_text_that_they_are_put_into() -> None:
    rendered = Template(COUPON).render(scope(key=HOSTILE))

    assert rendered.key == HOSTILE.encode()
    value = json.loads(rendered.value)
    assert (value["coupon_id"], value["amount"], "x" in value) == (HOSTILE, -10.5, False)
    assert not {byte for byte in rendered.value if byte < 32}, "a control character is written as it is"


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.decimals(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_json_keeps_every_digit_and_every_character(value: Any) -> None:
    """Takes long where the machine has other work: what is drawn nests."""
    text = exact_json.dumps(value)

    assert exact_json.loads(text) == value
    assert exact_json.dumps(exact_json.loads(text)) == text


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "[" * 100_000, b"\xff", ""])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        exact_json.loads(text)


def test_numbers_beyond_pythons_own_limit_of_digits_are_read() -> None:
    assert exact_json.dumps(exact_json.loads("9" * 5_000)) == "9" * 5_000
