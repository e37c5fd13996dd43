"""Test that a sink's own progress, where the file names it, says what is lost and what is on its way."""

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.compensation.execution.run_plan import compensate_window
from makewhole.compensation.plan_window import plan_window
from makewhole.journal import incidents
from makewhole.journal.database import connect
from makewhole.model.errors import ConfigurationError
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incidents.settlements import settled_by
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.world.orders import orders
from tests.world.pipeline_file import flow
from tests.world.shop import STORE_HOP
from tests.world.topics import add_partitions
from tests.world.windows import Found, ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

WAITING, LOST = ("pending", "not_yet_consumed"), ("missing", "committed_before_written")
MADE = orders(range(10))
BEHIND = MADE[6:]
COLUMNS = {"table": "sink_offsets", "partition": "part", "offset": "next_offset"}


@pytest.fixture
def shop(shop: ReconciledShop) -> ReconciledShop:
    """A shop whose sink keeps its offsets in a table beside the store, with those of other sinks and topics."""
    shop.sql("create table sink_offsets (sink text, topic text, part int, next_offset bigint)")
    return shop


def describe(shop: ReconciledShop, *, group: str | None = "loader", **progress: str) -> None:
    of_group = {} if group is None else {"consumer_group": group}
    shop.describe(hop={**of_group, "progress": flow({**COLUMNS, **progress})})


def keep(shop: ReconciledShop, offset: float | None, part: int = 0, sink: str = "wh", topic: str | None = None) -> None:
    """Add a row of the sink's progress."""
    shop.sql("insert into sink_offsets values (%s, %s, %s, %s)", sink, topic or shop.topic, part, offset)


def all_of(verdict: tuple[str, str]) -> Found:
    return {order["id"]: verdict for order in BEHIND}


def happened(shop: ReconciledShop, context: WindowContext) -> list[Incident]:
    with connect(shop.journal) as journal:
        return incidents.of(journal, context.window)


def test_what_a_sink_has_not_reached_by_its_own_progress_waits_whatever_its_group_says(shop: ReconciledShop) -> None:
    describe(shop)
    shop.trade(MADE, unloaded=BEHIND)
    shop.commit_group("loader", 10)
    keep(shop, 6)

    first, closed = shop.whole_way()

    assert (shop.found(first, STORE_HOP), closed.state) == (all_of(WAITING), WindowState.CERTIFIED)
    assert happened(shop, first) == []
    evidence = shop.evidence(first, STORE_HOP, "O6")
    assert (evidence["progress"], evidence["progress_offsets"]) == ("next_offset of sink_offsets", {"0": 6})
    assert "group" not in evidence
    lines = CliRunner().invoke(app, ["findings", "shop"], env={"COLUMNS": "400"}, catch_exceptions=False).stdout
    assert lines.count("not_yet_consumed, sink at 0:6 by next_offset of sink_offsets") == 4

    later = orders(range(100, 104), 1)
    shop.trade(later, unloaded=later[1:])
    second, closed = shop.whole_way(1)
    (stalled,) = happened(shop, second)
    assert (stalled.kind, stalled.lo, stalled.detail["committed"]) == (IncidentKind.CONSUMER_STALLED, 6, 6)
    assert closed.state is WindowState.CERTIFIED


def test_what_a_sink_has_passed_is_lost_though_its_group_is_late_and_is_sent_until_it_is_set_back(
    shop: ReconciledShop,
) -> None:
    describe(shop)
    shop.trade(MADE, unloaded=BEHIND)
    shop.commit_group("loader", 2)
    keep(shop, 10)
    context, closed = shop.whole_way()
    assert (shop.found(context, STORE_HOP), closed.state) == (all_of(LOST), WindowState.GAPS)
    frozen = plan_window(context)
    assert [(action.key, action.before.passed, action.before.records) for action in frozen.actions] == [
        (f"O{number}", (STORE_HOP,), f"0:{number}") for number in range(6, 10)
    ]
    shop.sql("update sink_offsets set next_offset = 8")
    before = len(shop.read())

    compensate_window(context, lambda _: None)

    sent = [record.key_text for record in shop.read()[before:]]
    assert sent == ["O6", "O7"]
    waits = (
        "its record still stands in front of the sink of warehouse (next_offset of sink_offsets), which would load it "
        "a second time when it goes on; mend the consumer, then run this window again"
    )
    refused = shop.journal_sql(
        "select key, outcome_reason from makewhole.action where outcome = 'refused' order by key"
    )
    assert refused == [("O8", waits), ("O9", waits)]


def test_a_sink_of_many_in_one_table_and_the_last_offset_done(shop: ReconciledShop) -> None:
    describe(shop, group=None, topic="topic", where="\"sink = 'wh'\"", means="last")
    shop.trade(MADE, unloaded=BEHIND)
    keep(shop, 5)
    keep(shop, 9, sink="lake")
    keep(shop, 9, topic="another")
    keep(shop, 9, part=7)

    context, closed = shop.whole_way()

    assert (shop.found(context, STORE_HOP), closed.state) == (all_of(WAITING), WindowState.CERTIFIED)
    assert shop.evidence(context, STORE_HOP, "O6")["progress_offsets"] == {"0": 6}


@pytest.mark.parametrize(
    ("rows", "said", "remedy"),
    [
        ([], "sink_offsets has no row where part = 0 and ", "look at what sink_offsets has: if its sink writes"),
        ([6, 10], "sink_offsets has 2 rows where part = 0 and ", "write `where: \"COLUMN = 'VALUE'\"` with the column"),
        ([None], "next_offset of sink_offsets has no value where part = 0 and ", "stop the sink, find out how far"),
        ([-3], "next_offset of sink_offsets is -3 where part = 0 and ", "stop the sink, find out how far"),
        ([99], "next_offset of sink_offsets is 99 for ", "a sink that asks for such an offset goes by its auto.offset"),
        ([2], "next_offset of sink_offsets is 2 for ", "a sink that asks for such an offset goes by its auto.offset"),
    ],
)
def test_a_progress_that_cannot_be_says_nothing(
    shop: ReconciledShop, rows: list[int | None], said: str, remedy: str
) -> None:
    """Whatever the group says: the file prefers the sink's own progress. Nothing is sent."""
    describe(shop, topic="topic")
    shop.trade(MADE, unloaded=BEHIND)
    shop.delete_records({0: 4})
    shop.commit_group("loader", 10)
    for offset in rows:
        keep(shop, offset)

    context, closed = shop.whole_way()

    assert closed.state is WindowState.NOT_KNOWN
    assert said in (closed.reason or "")
    (happening,) = [
        incident for incident in happened(shop, context) if incident.kind is not IncidentKind.BEGINNING_GONE
    ]
    is_beyond = rows in ([99], [2])
    kind = IncidentKind.PROGRESS_OUT_OF_RANGE if is_beyond else IncidentKind.PROGRESS_UNKNOWN
    assert (happening.kind, happening.lo, happening.detail["records"]) == (kind, 4, 6)
    assert remedy in settled_by(happening)
    assert shop.found(context, STORE_HOP) == all_of(WAITING)
    assert plan_window(context).plan is None


def test_a_partition_that_is_not_read_is_not_known_and_the_others_are(shop: ReconciledShop) -> None:
    """Odd orders lie in the second partition."""
    add_partitions(shop.admin, shop.topic, 2)
    shop.partitions = 2
    describe(shop, group=None)
    shop.trade(MADE, unloaded=[MADE[2], MADE[7], MADE[9]])
    keep(shop, 5)

    context, closed = shop.whole_way()

    assert shop.found(context, STORE_HOP) == {"O2": LOST, "O7": WAITING, "O9": WAITING}
    (happening,) = happened(shop, context)
    assert (happening.kind, happening.partition) == (IncidentKind.PROGRESS_UNKNOWN, 1)
    assert closed.state is WindowState.NOT_KNOWN


def test_a_table_that_holds_no_progress_is_refused_when_the_window_is_opened(shop: ReconciledShop) -> None:
    describe(shop, table="sink_offset")
    with pytest.raises(ConfigurationError) as nowhere:
        shop.ask()
    assert [f"{problem.path}: {problem.found}" for problem in nowhere.value.problems] == [
        "hops orders→warehouse.progress.table: there is no table sink_offset in the database of warehouse (connection "
        "db)"
    ]

    shop.sql("alter table sink_offsets alter next_offset type text, add at timestamptz")
    describe(shop, partition="partition", topic="at", where='"sink = 5"')
    with pytest.raises(ConfigurationError) as unfit:
        shop.ask()
    assert [(problem.path, problem.found) for problem in unfit.value.problems] == [
        ("hops orders→warehouse.progress.partition", "sink_offsets has no column partition"),
        (
            "hops orders→warehouse.progress.offset",
            "sink_offsets.next_offset is of type text, which holds no offset",
        ),
        (
            "hops orders→warehouse.progress.topic",
            "sink_offsets.at is of type timestamp with time zone, which holds no topic's name",
        ),
        (
            "hops orders→warehouse.progress.where",
            "sink_offsets.sink is of type text, which is not compared with 5",
        ),
    ]
    assert unfit.value.problems[0].remedy == "It has: at, next_offset, part, sink, topic"
