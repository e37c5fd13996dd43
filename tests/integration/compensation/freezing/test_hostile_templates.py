"""Test that a template that reaches out is refused, and hostile data are written as data."""

from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.model.refusal import Refusal, RefusalCode
from tests.integration.compensation.hostile import COUPON, duplicate, prepare
from tests.integration.compensation.world import PlanWorld

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.mark.parametrize(
    ("leaf", "refusal"),
    [
        (
            "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            Refusal(
                RefusalCode.UNFIT,
                "the template \"{{ ''.__class__.__mro__[1].__subclasses__() }}\" calls something. Write fields of "
                "data, such as {{ row.amount }}",
            ),
        ),
        (
            "{{ row.__class__ }}",
            Refusal(
                RefusalCode.UNFIT,
                "the template '{{ row.__class__ }}' asks for '__class__'. Name a field of data: there is nothing "
                "else to reach",
            ),
        ),
        (
            "{% for x in row %}{{ x }}{% endfor %}",
            Refusal(
                RefusalCode.UNFIT,
                "the template '{% for x in row %}{{ x }}{% endfor %}' has a statement. Write fields of data, such "
                "as {{ row.amount }}",
            ),
        ),
        (
            "{{ lipsum.__globals__ }}",
            Refusal(
                RefusalCode.UNFIT,
                "the template '{{ lipsum.__globals__ }}' asks for '__globals__'. Name a field of data: there is "
                "nothing else to reach",
            ),
        ),
        (
            "{{ row | attr('__class__') }}",
            Refusal(
                RefusalCode.UNFIT,
                "the template \"{{ row | attr('__class__') }}\" uses the filter 'attr'. Allowed: abs, default, "
                "lower, string, trim, upper",
            ),
        ),
    ],
)
@pytest.mark.parametrize("place", ["key", "value", "headers"])
def test_a_template_that_reaches_out_is_refused_however_it_came_here(
    world: PlanWorld, leaf: str, refusal: Refusal, place: str
) -> None:
    """The check of the file refuses it, too: tests/unit/config/test_reverse.py."""
    changes: dict[str, Any] = {"key": leaf, "value": {"a": [{"b": leaf}]}, "headers": (("h", leaf),)}
    world.load_again("K1", copies=2)
    prepare(world, replace(COUPON, **{place: changes[place]}))
    frozen = world.freeze([duplicate(world, "K1")])

    assert (frozen.plan, [refused.refusal for refused in frozen.refusals]) == (None, [refusal])


HOSTILE = [
    "{{ 7 * 7 }}",
    "{% raw %}{{ key.__class__ }}{% endraw %}",
    "{# gone? #}",
    "\x1b[31mred\x1b[2J",
    'a\r\nmakewhole-plan: x","delay":-9999,"x":"',
    "‮gnirts",
    "</script><script>alert(1)</script>",
    "=cmd()|' /C calc'!A0",
]


def test_data_are_written_as_data_wherever_the_template_puts_them(
    world: PlanWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In keys, values and headers: never rendered, never evaluated, never the end of a field or of a line."""
    value = {"id": "{{ key }}", "delay": "{{ row.delay }}", "note": "{{ row.note }}", "all": "<{{ row.note }}>"}
    topic = prepare(world, replace(COUPON, value=value, headers=(("note", "{{ row.note }}"),)))
    for key in HOSTILE:
        world.load_again(key, copies=2)
        world.sql("update dw.departures set note = id where id = %s", key)
    frozen = world.freeze_plan([duplicate(world, key) for key in HOSTILE])
    world.run(frozen.plan.id)

    records = world.records(topic)
    assert frozen.refusals == ()
    assert sorted(record.key_text for record in records) == sorted(HOSTILE)
    for record in records:
        key = record.key_text
        assert record.document == {"id": key, "delay": 1.0, "note": key, "all": f"<{key}>"}
        assert record.header_texts["note"] == key
        assert [name for name, _ in record.headers] == [
            "note",
            "makewhole-reverses",
            "makewhole-plan",
            "makewhole-window",
            "makewhole-seq",
            "makewhole-origin",
            "makewhole-chunk",
        ]
        assert not any(byte < 32 for byte in record.value or b"")

    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", world.journal)
    shown = CliRunner().invoke(app, ["plan", "show", frozen.plan.id]).stdout
    assert "x1b" in shown
    assert not {"\x1b", "\r", "‮"} & set(shown)


def test_a_refusal_names_the_template_and_no_data(world: PlanWorld, caplog: pytest.LogCaptureFixture) -> None:
    prepare(world, replace(COUPON, value={"id": "{{ row.gone }}"}))
    world.load_again("SECRET-KEY", copies=2)
    frozen = world.freeze([duplicate(world, "SECRET-KEY")])

    assert [refused.refusal for refused in frozen.refusals] == [
        Refusal(
            RefusalCode.UNFIT, "the template '{{ row.gone }}' names what the data do not have, or have not of that kind"
        )
    ]
    assert "SECRET" not in caplog.text
