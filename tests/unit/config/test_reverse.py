"""Test `reverse`: a template is checked to its last leaf when the file is, and every problem is reported at once."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from makewhole.config.pipeline_file import load_pipeline
from makewhole.model.errors import ConfigurationError
from makewhole.model.hops import Remedy, Reverse

pytestmark = pytest.mark.unit

HEAD = """\
version: 2
pipeline: coupons
points:
  shop: {kind: ledger, connection: db, table: shop.coupons, key: coupon_id, time: at}
  coupons: {kind: topic, connection: log, topic: coupons, key: "$.coupon_id"}
  grants: {kind: store, connection: db, table: loyalty.grants, key: coupon_id, time: granted_at}
  reversals: {kind: topic, connection: log, topic: coupon-reversals, key: "$.coupon_id"}
hops:
  - {from: shop, to: coupons}
  - from: coupons
    to: grants
"""
TEMPLATE = """\
    compensation: {duplicate: reverse}
    reverse:
      to: reversals
      value: {type: coupon_reversed, coupon_id: "{{ key }}"}
"""


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_pipeline(path)
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_a_template_is_read_with_texts_to_render_and_with_values_as_they_are(write: Callable[..., Path]) -> None:
    pipeline = load_pipeline(
        write(
            HEAD
            + """\
    compensation: {duplicate: reverse, unexpected: reverse}
    reverse:
      to: reversals
      key: "{{ key }}"
      value:
        type: coupon_reversed
        amount: "{{ -row.amount }}"
        rate: 1.50
        big: 12345678901234567890.1
        manual: false
        note: null
        lines: [{of: "{{ row.coupon_id }}"}, 3]
      headers: {trace: "{{ finding.place }}"}
"""
        )
    )

    assert pipeline.hops[1].reverse == Reverse(
        to="reversals",
        key="{{ key }}",
        value={
            "type": "coupon_reversed",
            "amount": "{{ -row.amount }}",
            "rate": Decimal("1.50"),
            "big": Decimal("12345678901234567890.1"),
            "manual": False,
            "note": None,
            "lines": [{"of": "{{ row.coupon_id }}"}, Decimal(3)],
        },
        headers=(("trace", "{{ finding.place }}"),),
    )
    assert (pipeline.hops[1].remedies.duplicate, pipeline.hops[1].remedies.unexpected) == (Remedy.REVERSE,) * 2
    assert [point.name for point in pipeline.ordered_points()] == ["shop", "coupons", "grants"]


def test_a_remedy_of_the_pipeline_is_taken_by_the_hops_that_have_a_template(write: Callable[..., Path]) -> None:
    text = (
        HEAD + TEMPLATE.replace("    compensation: {duplicate: reverse}\n", "") + "compensation: {duplicate: reverse}\n"
    )

    hops = load_pipeline(write(text)).hops

    assert [hop.remedies.duplicate for hop in hops] == [Remedy.REPORT, Remedy.REVERSE]


def test_a_file_of_many_mistakes_reports_them_all(write: Callable[..., Path]) -> None:
    path = write(
        HEAD
        + """\
    compensation: {duplicate: reverse, unexpected: reverse}
    reverse:
      to: grants
      then: x
      key: "{{ key.__class__ }}"
      value:
        a: "{{ coupon }}"
        b: "{{ row.amount | int }}"
        c: "{{ row.amount"
        d: "{% if key %}x{% endif %}"
        e: "{{ finding.copie }}"
        f: ["{{ plan.id }}", "{{ key.upper() }}"]
        g: 1_000
        h: 2013-01-01
        i: "{{ row.amount * 0.5 }}"
        j: "{{ row['__init__'] }}"
        k: "{{ key is mapping }}"
        l: "{{ [key] }}"
      headers: {Makewhole-Plan: x, n: 5, "": "{{ source.nothing }}"}
"""
    )
    data = "Write fields of data, such as {{ row.amount }}"
    assert problems_of(path) == [
        "hops[1].reverse.to (line 14): 'grants' is a store, and records go to topics. Allowed: coupons, reversals",
        "hops[1].reverse.then (line 15): is not a key here. Allowed: headers, key, to, value",
        "hops[1].reverse.key (line 16): '{{ key.__class__ }}' asks for '__class__'. Name a field of data: there is "
        "nothing else to reach",
        "hops[1].reverse.value.a (line 18): '{{ coupon }}' names 'coupon'. Allowed: finding, key, plan, row, source, "
        "window",
        "hops[1].reverse.value.b (line 19): '{{ row.amount | int }}' uses the filter 'int'. Allowed: abs, default, "
        "lower, string, trim, upper",
        "hops[1].reverse.value.c (line 20): '{{ row.amount' is not a template: unexpected end of template, expected "
        f"'end of print statement'. {data}",
        "hops[1].reverse.value.d (line 21): '{% if key %}x{% endif %}' has a statement. " + data,
        "hops[1].reverse.value.e (line 22): '{{ finding.copie }}' asks 'finding' for 'copie'. Allowed: cause, copies, "
        "copy, hop, place, verdict. Did you mean 'copies'?",
        "hops[1].reverse.value.f[0] (line 23): '{{ plan.id }}' asks 'plan' for 'id'. A plan is named after what it "
        "writes: the record carries the id in its header makewhole-plan",
        "hops[1].reverse.value.f[1] (line 23): '{{ key.upper() }}' calls something. " + data,
        "hops[1].reverse.value.g (line 24): is a number that JSON would write otherwise. Put it in quotes",
        "hops[1].reverse.value.h (line 25): is a special value that JSON would write otherwise. Put it in quotes",
        "hops[1].reverse.value.i (line 26): '{{ row.amount * 0.5 }}' computes with 0.5, which is not exact. Write a "
        "whole number",
        "hops[1].reverse.value.j (line 27): \"{{ row['__init__'] }}\" asks for '__init__'. Name a field of data: there "
        "is nothing else to reach",
        "hops[1].reverse.value.k (line 28): '{{ key is mapping }}' uses the test 'mapping'. Allowed: defined, none, "
        "undefined",
        "hops[1].reverse.value.l (line 29): '{{ [key] }}' uses what templates leave out (List). " + data,
        "hops[1].reverse.headers.Makewhole-Plan (line 30): 'Makewhole-Plan' is a header that makewhole writes itself. "
        "Give it another name",
        "hops[1].reverse.headers.n (line 30): is a number, not text. Put it in quotes",
        "hops[1].reverse.headers. (line 30): '{{ source.nothing }}' asks 'source' for 'nothing'. Allowed: headers, "
        "key, offset, partition, timestamp_ms, value",
    ]


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (
            TEMPLATE[TEMPLATE.index("    reverse:") :],
            "",
            [
                "points.reversals (line 7): is joined by no hop. Join it with a hop, or take it out: nothing would "
                "look at it",
                "hops[1].compensation.duplicate (line 12): 'reverse' needs a template, and coupons→grants has none. "
                "Write one beside the hop's compensation: 'reverse: {to: POINT, value: {…}}'",
            ],
        ),
        (
            "{duplicate: reverse}",
            "{duplicate: quarantine}",
            [
                "hops[1].reverse (line 13): no verdict of coupons→grants is answered by reverse. Write 'duplicate: "
                "reverse' in its compensation, or take the template out"
            ],
        ),
        (
            "      to: reversals\n",
            "",
            ["hops[1].reverse.to (line 13): is missing. Name the topic point that reversals go to"],
        ),
        (
            "to: reversals",
            "to: reversal",
            [
                "hops[1].reverse.to (line 14): 'reversal' is not a point of this pipeline. Allowed: coupons, "
                "reversals. Did you mean 'reversals'?"
            ],
        ),
        (
            '      value: {type: coupon_reversed, coupon_id: "{{ key }}"}\n',
            "",
            [
                "hops[1].reverse.value (line 13): is missing. Say what the reversal says, for example 'value: {type: "
                "coupon_reversed, coupon_id: \"{{ key }}\"}'"
            ],
        ),
        (
            '{type: coupon_reversed, coupon_id: "{{ key }}"}',
            "[coupon_reversed]",
            [
                "hops[1].reverse.value (line 15): is a list; a reversal is a JSON object. Write its fields, for "
                "example 'value: {type: coupon_reversed, coupon_id: \"{{ key }}\"}'"
            ],
        ),
        (
            '{type: coupon_reversed, coupon_id: "{{ key }}"}',
            "&all {type: *all}",
            [
                "line 1: holds itself once its aliases (`*name`) are written out. Write out what the aliases stand for"
            ],
        ),
        (
            '{type: coupon_reversed, coupon_id: "{{ key }}"}',
            "{a: &a [x, x, x, x, x, x, x, x, x, x], b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a], "
            "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b], d: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]}",
            [
                "hops[1].reverse.value (line 15): has more than 1,000 fields, or is nested more than 20 deep. Write "
                "fewer; a '*name' repeats all that it refers to"
            ],
        ),
        (
            "{duplicate: reverse}",
            "{missing: reverse}",
            [
                "hops[1].compensation.missing (line 12): 'reverse' is not possible for missing keys from a topic to a "
                "store. Allowed: redeliver, report, upsert"
            ],
        ),
        (
            "    compensation: {duplicate: reverse}\n",
            "    semantics: upsert\n    compensation: {duplicate: reverse}\n",
            [
                "hops[1].compensation.duplicate (line 13): 'reverse' is not possible for duplicate keys from a topic "
                "to a store under upsert. Allowed: quarantine, report"
            ],
        ),
        (
            TEMPLATE,
            TEMPLATE.replace("duplicate: reverse", "unexpected: reverse").replace("{{ key }}", "{{ source.value.id }}"),
            [
                "hops[1].reverse (line 13): uses 'source', and an unexpected key has none. Use 'row' and 'key', or "
                "answer only duplicates by reverse"
            ],
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(
    write: Callable[..., Path], old: str, new: str, messages: list[str]
) -> None:
    text = HEAD + TEMPLATE
    assert old in text
    lines = problems_of(write(text.replace(old, new, 1)))
    # The topic has hops of two semantics then, which is reported as well.
    assert [message for message in lines if "both semantics" not in message] == messages


def test_a_wish_of_the_pipeline_that_no_hop_has_a_template_for_is_refused(write: Callable[..., Path]) -> None:
    text = HEAD.replace(
        '  reversals: {kind: topic, connection: log, topic: coupon-reversals, key: "$.coupon_id"}\n', ""
    )
    assert problems_of(write(text + "compensation: {duplicate: reverse}\n")) == [
        "compensation.duplicate (line 11): 'reverse' needs a template, and no hop of duplicate keys has one. Write one "
        "beside the hop's compensation: 'reverse: {to: POINT, value: {…}}'"
    ]


INLINE = 'compensation: {duplicate: reverse}, reverse: {to: reversals, value: {of: "{{ key }}"}}'


def test_one_repetition_is_not_reversed_at_two_points_that_it_passes(write: Callable[..., Path]) -> None:
    text = HEAD.replace("to: coupons}", f"to: coupons, {INLINE}}}") + TEMPLATE

    assert problems_of(write(text)) == [
        "hops[1] (line 10): coupons→grants and shop→coupons would both reverse one repetition, which is at both their "
        "ends. Reverse it once: on the hop to the point where the harm is done"
    ]


def test_one_row_is_not_reversed_as_two_points(write: Callable[..., Path]) -> None:
    again = "  again: {kind: store, connection: db, table: loyalty.grants, key: coupon_id}\n"
    text = HEAD.replace("hops:\n", again + "hops:\n") + TEMPLATE + f"  - {{from: coupons, to: again, {INLINE}}}\n"

    assert problems_of(write(text)) == [
        "hops[2] (line 17): coupons→again and coupons→grants would both reverse one repetition, which is at both their "
        "ends. Reverse it once: on the hop to the point where the harm is done"
    ]
    text = text.replace("table: loyalty.grants, key: coupon_id}", "table: loyalty.mails, key: coupon_id}")
    other = write(text.replace("{duplicate: reverse}", "{missing: report, duplicate: reverse}"))
    assert len(load_pipeline(other).hops) == 3
