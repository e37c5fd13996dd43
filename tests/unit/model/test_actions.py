"""Test that what plans store of their actions has the texts that it always had, and comes back as it was."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from makewhole.compensation.execution.table_target import chunk_items
from makewhole.compensation.execution.targets import Chunk
from makewhole.compensation.freezing.payload_file import payload_table
from makewhole.model.actions import (
    Action,
    Before,
    BeforeProduce,
    BeforeQuarantine,
    BeforeRedeliver,
    BeforeRestore,
    BeforeReverse,
    BeforeUpsert,
    DisputedBy,
    Payload,
    PayloadExtra,
    ProduceExtra,
    canonical_text,
    read_before,
)
from makewhole.model.hops import Remedy
from makewhole.tables.effects import Effect, EffectKind
from makewhole.tables.items import (
    QuarantineExtra,
    QuarantineRows,
    RestoreExtra,
    RestoreRow,
    RowsExtra,
    UpsertExtra,
    UpsertRow,
)
from makewhole.tables.rows import TableRow

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
ROW = TableRow(table_oid=16_385, ctid="(0,1)", text='{"id": "é"}')
SECOND = TableRow(table_oid=16_385, ctid="(0,2)", text="{}", image="(é)", place="public.t(0,2)")
EFFECT = Effect(plan="p", target="t", chunk=0, seq=3, kind=EffectKind.MOVED, place="(0,1)", before="(é,)", after=None)

BEFORES: list[tuple[Before, str]] = [
    (BeforeProduce(place="kafka:flights"), '{"place":"kafka:flights"}'),
    (
        BeforeProduce(
            place="kafka:flights",
            absent_at=("flights",),
            once=("warehouse",),
            erasable=("warehouse",),
            puts_aside=("warehouse",),
            disputed_by=DisputedBy(starts=("outbox→flights",)),
            payload_from="ledger",
            origin="ledger",
        ),
        '{"absent_at":["flights"],"disputed_by":{"starts":["outbox\\u2192flights"]},"erasable":["warehouse"],'
        '"once":["warehouse"],"origin":"ledger","payload_from":"ledger","place":"kafka:flights",'
        '"puts_aside":["warehouse"]}',
    ),
    (
        BeforeRedeliver(
            place="kafka:flights",
            absent_at=("lake", "warehouse"),
            once=("lake",),
            groups=("audit", "loader"),
            repeats="flights",
            passed=("flights→lake",),
            records="0:1,1:2",
            disputed_by=DisputedBy(ends=("a→b",), starts=("b→c",), doubts=True),
            accepted_by=("flights→warehouse",),
            payload_from="archive",
            origin="flights/1/2",
        ),
        '{"absent_at":["lake","warehouse"],"accepted_by":["flights\\u2192warehouse"],"disputed_by":{"doubts":true,'
        '"ends":["a\\u2192b"],"starts":["b\\u2192c"]},"groups":["audit","loader"],"once":["lake"],'
        '"origin":"flights/1/2","passed":["flights\\u2192lake"],"payload_from":"archive","place":"kafka:flights",'
        '"records":"0:1,1:2","repeats":"flights"}',
    ),
    (BeforeRedeliver(place="kafka:retry", groups=()), '{"groups":[],"place":"kafka:retry"}'),
    (
        BeforeUpsert(place='pg:"ä\x7f\\', repeats="flights", rows=(), payload_from="broker", locks_table=True),
        '{"locks_table":true,"payload_from":"broker","place":"pg:\\"\\u00e4\\u007f\\\\","repeats":"flights","rows":[]}',
    ),
    (BeforeUpsert(place="pg:🛫", rows=("(0,1)",)), '{"place":"pg:\\ud83d\\udeeb","rows":["(0,1)"]}'),
    (
        BeforeQuarantine(place="pg:dw.t", unknown_to=("flights", "outbox"), rows=("(0,1)", "(0,2)")),
        '{"place":"pg:dw.t","rows":["(0,1)","(0,2)"],"unknown_to":["flights","outbox"]}',
    ),
    (
        BeforeReverse(
            place="kafka:back",
            unknown_to=("flights",),
            rows=("(0,1)",),
            payload_from="template",
            origin="template",
            of="pg:dw.t",
            of_identity="5/16385",
            copy={"table_oid": 16_385, "ctid": "(0,1)", "sha256": "0a", "rows": 2, "time": "2024-01-01"},
            reversal_key_hash="0b",
        ),
        '{"copy":{"ctid":"(0,1)","rows":2,"sha256":"0a","table_oid":16385,"time":"2024-01-01"},"of":"pg:dw.t",'
        '"of_identity":"5/16385","origin":"template","payload_from":"template","place":"kafka:back",'
        '"reversal_key_hash":"0b","rows":["(0,1)"],"unknown_to":["flights"]}',
    ),
    (
        BeforeReverse(place="kafka:back", rows=(), of="kafka:flights", copy={"partition": 0, "offset": 7}),
        '{"copy":{"offset":7,"partition":0},"of":"kafka:flights","place":"kafka:back","rows":[]}',
    ),
    (
        BeforeRestore(place="pg:dw.t", undoes=0, kind="inserted"),
        '{"kind":"inserted","place":"pg:dw.t","undoes":0}',
    ),
]

EXTRAS: list[tuple[PayloadExtra, str]] = [
    (PayloadExtra(), "{}"),
    (PayloadExtra(origin="flights/1/2"), '{"origin":"flights/1/2"}'),
    (ProduceExtra(origin="ledger", partition_count=12), '{"origin":"ledger","partition_count":12}'),
    (
        UpsertExtra(origin="ledger", columns=("a",), expected=(("a", "string", None),), rows=()),
        '{"columns":["a"],"expected":[["a","string",null]],"origin":"ledger","rows":[]}',
    ),
    (
        UpsertExtra(columns=(), expected=(), moment="at", left=("ä",), locks_table=True, rows=(ROW,)),
        '{"columns":[],"expected":[],"left":["\\u00e4"],"locks_table":true,"moment":"at","rows":[{"ctid":"(0,1)",'
        '"image":null,"place":null,"table_oid":16385,"text":"{\\"id\\": \\"\\u00e9\\"}"}]}',
    ),
    (
        QuarantineExtra(keeps=0, rows=(SECOND,)),
        '{"keeps":0,"rows":[{"ctid":"(0,2)","image":"(\\u00e9)","place":"public.t(0,2)","table_oid":16385,'
        '"text":"{}"}]}',
    ),
    (RowsExtra(origin="template", rows=()), '{"origin":"template","rows":[]}'),
    (
        RestoreExtra(effect=EFFECT),
        '{"effect":{"after":null,"before":"(\\u00e9,)","chunk":0,"kind":"moved","place":"(0,1)","plan":"p","seq":3,'
        '"target":"t"}}',
    ),
]


def action(seq: int, before: Before) -> Action:
    return Action(seq=seq, hop="a→b", target="b", key=f"K{seq}", key_hash="0", before=before)


@pytest.mark.parametrize(("before", "text"), BEFORES)
def test_what_is_known_before_an_action_has_one_text_and_comes_back(before: Before, text: str) -> None:
    assert action(0, before).before_text == text
    assert read_before(before.remedy.value, text) == before


def test_every_remedy_is_among_them() -> None:
    assert {before.remedy for before, _ in BEFORES} == set(Remedy) - {Remedy.REPORT}


def test_a_line_has_the_backslashes_of_its_texts_twice() -> None:
    written = Action(seq=1, chunk=2, hop="a→b", target="b", key="\t\\", key_hash="0", before=BeforeUpsert(place="é"))
    assert written.line() == '1\t2\tupsert\ta→b\tb\t\\t\\\\\t0\t{"place":"\\\\u00e9"}\n'.encode()


@pytest.mark.parametrize(("extra", "text"), EXTRAS)
def test_the_extra_of_a_payload_has_one_text_and_comes_back(extra: PayloadExtra, text: str) -> None:
    assert canonical_text(extra.fields) == text
    assert msgspec.json.decode(text, type=type(extra)) == extra


def test_a_chunk_of_several_remedies_has_the_items_of_its_extras_in_order() -> None:
    upsert = UpsertExtra(columns=("a",), expected=(("a", "string", "1"),), moment="a", left=("b",), rows=(ROW,))
    actions: list[tuple[Before, PayloadExtra]] = [
        (BeforeUpsert(place=""), upsert),
        (BeforeQuarantine(place=""), QuarantineExtra(keeps=1, rows=(ROW, SECOND))),
        (BeforeQuarantine(place=""), QuarantineExtra(keeps=0, rows=(ROW,))),
        (BeforeUpsert(place=""), UpsertExtra(columns=(), expected=(), rows=())),
        (BeforeRestore(place="", undoes=0, kind="moved"), RestoreExtra(effect=EFFECT)),
    ]
    rows = [{"seq": seq, "remedy": before.remedy.value, "key": f"K{seq}"} for seq, (before, _) in enumerate(actions)]
    payloads = payload_table([(seq, Payload(value=b"{}", extra=extra)) for seq, (_, extra) in enumerate(actions)])
    known: dict[str, Any] = {"key_columns": ("id",), "value": "{}"}
    assert chunk_items(Chunk(number=0, rows=pa.Table.from_pylist(rows), columns=payloads), ("id",)) == [
        UpsertRow(
            seq=0,
            key="K0",
            columns=("a",),
            before=(ROW,),
            expected=(("a", "string", "1"),),
            moment="a",
            left=("b",),
            **known,
        ),
        QuarantineRows(seq=1, key="K1", survivor=ROW, extras=(SECOND,)),
        QuarantineRows(seq=2, key="K2", survivor=None, extras=(ROW,)),
        UpsertRow(seq=3, key="K3", columns=(), before=(), **known),
        RestoreRow(seq=4, key="K4", effect=EFFECT),
    ]


def test_what_statements_and_frames_read_out_of_the_text_are_fields() -> None:
    read = {
        name
        for folder, kind, pattern in (
            ("sql", "*.sql", r"\bbefore::jsonb ->>? '(\w+)'"),
            ("plugins/makewhole/compensation", "*.py", r"(?:said|json_path_match)\(\"\$\.(\w+)\"\)"),
        )
        for path in (ROOT / folder).rglob(kind)
        for name in re.findall(pattern, path.read_text(encoding="utf-8"))
    }
    assert {"locks_table", "reversal_key_hash", "of_identity", "copy", "undoes", "puts_aside", "place"} <= read
    assert read <= {field.name for before, _ in BEFORES for field in fields(before)}
