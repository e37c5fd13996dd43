"""Judge by a pipeline file that is new, and not right yet (row 39)."""

from collections.abc import Sequence
from typing import Any

import yaml

from makewhole.compensation.plan_window import plan_window
from makewhole.compensation.planning.unanswered import Unanswered, read_unanswered
from makewhole.journal.database import connect
from makewhole.model.window import WindowState
from makewhole.window.context import WindowContext
from tests.lab import naive
from tests.lab.judged import Happened, Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import Order, orders
from tests.world.shop import LEDGER_HOP, STORE_HOP
from tests.world.windows import Found


@scenario(
    row=39,
    name="A new pipeline file that is not right yet",
    happens=(
        "Some orders are lost. Others are kept out of the store on purpose, and the first pipeline file does not know "
        "that: its first findings are in part the file's own mistake."
    ),
    made=(
        "The loader takes orders of the EU only. The file names neither that filter nor a remedy; then it gets "
        "`where`, and the lines that switch on the remedies, as they were reported."
    ),
    why=(
        "A file that names no remedy observes. Of what it found it says what would be done and which line switches "
        "that on: `missing: produce`, `missing: upsert`, `duplicate: quarantine`. Nothing is written before that."
    ),
    covered_by=("tests/integration/spark/test_observing.py",),
)
def new_pipeline_file(lab: Lab) -> Outcome:
    shop = lab.shop
    shop.open_shop(is_observing=True, hop={"consumer_group": shop.group})
    made = orders(range(lab.random.randint(60, 100)))
    wanted = [order for order in made if order["region"] == "EU"]
    chosen = lab.random.sample(wanted, 15)
    unsent, lost, twice = chosen[:3], chosen[3:12], chosen[12:]
    sent = [order for order in made if order not in unsent]
    shop.trade(made, unsent=unsent, unloaded=[order for order in made if order not in wanted or order in lost])
    shop.write("warehouse", twice)
    shop.commit_group(shop.group, len(sent))
    kept_out = [order for order in sent if order not in wanted]
    answer = _written_by_a_script(shop)
    before = _contents(shop)

    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is None
    first = Window(
        label="as it is new",
        judged=shop.verified(context),
        expected=_expected(
            WindowState.GAPS,
            sent,
            {LEDGER_HOP: _never_sent(unsent), STORE_HOP: _at_the_store([*lost, *kept_out], twice)},
        ),
    )
    assert _contents(shop) == before
    unanswered = _unanswered(shop, context)
    lines = ["missing: produce", "missing: upsert", "duplicate: quarantine"]
    assert [(hop.suggestion.line, hop.keys) for hop in unanswered] == list(
        zip(lines, (len(unsent), len(lost) + len(kept_out), len(twice)), strict=True)
    ), unanswered

    _correct(shop, unanswered)
    context = shop.judge_and_ask_the_gate()
    assert plan_window(context).plan is not None
    shop.repair(context)
    shop.write("warehouse", unsent)
    shop.commit_group(shop.group, len(sent) + len(unsent) + 1)  # behind the marker of the repair's transaction
    second = Window(
        label="with `where` and these lines",
        judged=shop.verified(context),
        expected=_expected(
            WindowState.CERTIFIED,
            sent,
            {LEDGER_HOP: _never_sent(unsent), STORE_HOP: _at_the_store(lost, twice)},
            kept_out,
            incidents=(("filter_changed", None, None, None),),
        ),
    )
    assert shop.sql("select id from warehouse order by number") == [(order["id"],) for order in wanted]
    truth = (
        f"Here {len(unsent)} of {len(made)} orders are not sent, {len(lost)} lost at the store and {len(twice)} there "
        f"twice. {len(kept_out)} are kept out on purpose."
    )
    return Outcome(truth=truth, naive=(answer,), windows=(first, second))


def _never_sent(some: Sequence[Order]) -> Found:
    return {order["id"]: ("missing", "never_produced") for order in some}


def _at_the_store(lost: Sequence[Order], twice: Sequence[Order]) -> Found:
    verdicts = {order["id"]: ("missing", "committed_before_written") for order in lost}
    return verdicts | {order["id"]: ("duplicate", "written_before_committed") for order in twice}


def _expected(
    state: WindowState,
    sent: Sequence[Order],
    verdicts: dict[str, Found],
    kept_out: Sequence[Order] = (),
    incidents: tuple[Happened, ...] = (),
) -> Judged:
    return Judged(
        state=state.value,
        accounting={"span": len(sent), "data": len(sent)},
        matched={LEDGER_HOP: len(sent), STORE_HOP: len(sent) - len(verdicts[STORE_HOP]) - len(kept_out)},
        found=verdicts,
        incidents=incidents,
        reason=None if state is WindowState.CERTIFIED else "",
    )


def _contents(shop: LabShop) -> dict[str, Any]:
    """Return what stands in anybody's system: rows, records, and tables of makewhole's own in the target database."""
    tables = {table: shop.sql(f"select * from {table} order by id, at") for table in ("outbox", "warehouse")}
    own = shop.sql("select count(*) from pg_namespace where nspname = 'makewhole'")
    return {**tables, "own": own, "orders": shop.read()}


def _unanswered(shop: LabShop, context: WindowContext) -> list[Unanswered]:
    with connect(shop.journal) as journal:
        return read_unanswered(journal, shop.pipeline, context.window, context.connections)


def _correct(shop: LabShop, unanswered: Sequence[Unanswered]) -> None:
    """Write the filter and the lines that were suggested into the file."""
    written = yaml.safe_load(shop.file.read_text())
    hops = {f"{hop['from']}→{hop['to']}": hop for hop in written["hops"]}
    hops[STORE_HOP]["where"] = "region = 'EU'"
    for unanswered_hop in unanswered:
        assert unanswered_hop.suggestion.line is not None
        hops[unanswered_hop.hop].setdefault("compensation", {}).update(yaml.safe_load(unanswered_hop.suggestion.line))
    shop.file.write_text(yaml.safe_dump(written))


def _written_by_a_script(shop: LabShop) -> Naive:
    """Return what a script writes that inserts, on a copy of the table, whatever the store lacks."""
    shop.sql("create table copy (like warehouse); insert into copy table warehouse")
    shop.sql("insert into copy select * from outbox where not exists (select from copy where copy.id = outbox.id)")
    foreign = shop.sql("select count(*) from copy where region <> 'EU'")[0][0]
    shop.sql("drop table copy")
    answer = naive.NaiveAnswer(
        check="a script that compares, and inserts what the store lacks",
        text=f"{foreign} rows that were kept out on purpose",
        conclusion=f"{foreign} written that must not be there",
    )
    in_ledger = shop.sql("select count(*) from outbox where region <> 'EU'")[0][0]
    return Naive(answer=answer, expected=f"{in_ledger} written that must not be there")
