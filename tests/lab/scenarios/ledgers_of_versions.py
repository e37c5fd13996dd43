"""Fill a table from ledgers, with no topic between them: a loader that is set back (row 73), an older version that
comes later (row 74), and a filter that changes (row 75)."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import BORN, COLUMNS, DAY, Order, orders
from tests.world.pipeline_file import fed_by_ledgers

_FIRST, _SECOND = "outbox→warehouse", "archive→warehouse"
_CERTIFIED, _NOT_KNOWN = WindowState.CERTIFIED.value, WindowState.NOT_KNOWN.value
_STALE = ("mismatched", "stale_version")
_REPAIRS = "{limits: {share: 1.0}, missing: upsert, mismatched: upsert, unexpected: quarantine}"
_TOMORROW = (BORN + DAY + timedelta(hours=2)).isoformat()


@scenario(
    row=73,
    name="Two ledgers fill one table, and a loader is set back",
    happens=(
        "Two systems keep versions of the same orders, numbered together, and a table has the later of both. A loader "
        "is set back, and writes what its own system has over the rows of yesterday."
    ),
    made=(
        "A day of orders in two ledgers, of some both have a version; the table has the later ones, and is certified. "
        "On the next day a script writes lower versions over some rows. `semantics: upsert`, `mismatched: upsert`."
    ),
    why=(
        "A row is held to the latest version of all sources of its table, whichever has it. The hop whose source has "
        "that one finds the row, and gives it back."
    ),
    covered_by=("tests/integration/spark/test_versions_of_two_sources.py",),
)
def set_back_between_two_ledgers(lab: Lab) -> Outcome:
    shop = _two_ledgers(lab)
    lower, higher = _certified_day(lab, shop)
    first = Window(label="the first day", judged=_closed(shop, 0), expected=_matched(lower, higher))
    today = _traded(shop, 1)
    chosen = lab.random.sample(higher, 6)
    below = [order for order in lower if order["id"] in {chosen_order["id"] for chosen_order in chosen}]
    shop.upsert("warehouse", [order | {"at": _TOMORROW} for order in below])
    answer = naive.rows(shop.count("outbox") + shop.count("archive") - len(higher), shop.count("warehouse"))
    context = shop.judge_and_repair(1)
    assert shop.rows([order["id"] for order in chosen]) == {order["id"]: (2, order["amount"]) for order in chosen}
    second = Window(
        label="the second day",
        judged=shop.verified(context),
        expected=replace(_matched(today, today), found={_SECOND: {order["id"]: _STALE for order in chosen}}),
    )
    return Outcome(
        truth=f"Here both have {len(higher)} orders, and 6 rows are set back to the version of the other ledger.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second),
    )


@scenario(
    row=74,
    name="An older version comes later, from the other ledger",
    happens=(
        "A system that was away catches up: a day later it has versions that are older than what the other one said "
        "the day before. Its loader knows no versions, and writes them over the newer rows."
    ),
    made=(
        "A day of orders with version 2 in one ledger, certified; on the next day the other ledger has version 1 of "
        "some, which a script writes over the rows. `semantics: upsert`, `mismatched: upsert`."
    ),
    why=(
        "Of versions the latest of all windows and sources counts. The window that has the older one finds the rows, "
        "and repairs none: its source does not have what they should hold. The reason names the source, and running "
        "the first day again repairs them."
    ),
    covered_by=("tests/integration/spark/test_versions_of_two_sources.py",),
)
def older_version_later(lab: Lab) -> Outcome:
    shop = _two_ledgers(lab)
    others, higher = _certified_day(lab, shop, are_shared=False)
    first = Window(label="the first day", judged=_closed(shop, 0), expected=_matched(others, higher))
    today = _traded(shop, 1)
    chosen = lab.random.sample(higher, 6)
    older = [order | {"version": 1, "amount": "0.25", "at": _TOMORROW} for order in chosen]
    shop.write("outbox", older)
    shop.upsert("warehouse", older)
    answer = naive.rows(shop.count("outbox") + shop.count("archive") - len(older), shop.count("warehouse"))
    stale = {order["id"]: _STALE for order in chosen}
    second = Window(
        label="the second day",
        judged=shop.verified_with_outcomes(shop.judge_and_repair(1)),
        expected=Judged(
            state=WindowState.GAPS.value,
            reason=f"{_FIRST}: 6 keys mismatched, 0 allowed",
            accounting={},
            matched={_FIRST: len(today), _SECOND: len(today)},
            found={_FIRST: stale},
            messages=(f"{_FIRST}: 6 refused (`stale`)",),
        ),
    )
    again = Window(
        label="the first day again",
        judged=shop.verified(shop.judge_and_repair(0)),
        expected=replace(_matched(others, higher[6:]), found={_SECOND: stale}),
    )
    assert shop.rows([order["id"] for order in chosen]) == {order["id"]: (2, order["amount"]) for order in chosen}
    last = Window(
        label="the second day again",
        judged=_closed(shop, 1),
        expected=_matched([*today, *older], today),
    )
    return Outcome(
        truth="Here 6 older versions come a day later, and are in the table.",
        naive=(Naive(answer=answer, expected=naive.WELL),),
        windows=(first, second, again, last),
    )


@scenario(
    row=75,
    name="The filter of a ledger changes, and old rows of it are touched",
    happens=(
        "A table that took the orders of the EU is to take those of the US from now on. The day after, a job writes a "
        "column of the ledger that nothing compares, in old rows, too. Who looks at them with the new filter finds "
        "old orders of the US missing, and those of the EU to be too many."
    ),
    made=(
        "A day with `where: \"region = 'EU'\"` on a hop from a ledger into a table, certified. Then `region = 'US'`; "
        "all rows of the ledger are written, and those of the table loaded again. `late: 3d`, `missing: upsert` and "
        "`unexpected: quarantine`."
    ),
    why=(
        "The rows of the day before come once more, and what its window read of them says that the filter kept them "
        "out then, or let them pass. They are undecidable by the change of the file; nothing is written, and nothing "
        "is moved aside. Running that day again judges it by the new filter."
    ),
    covered_by=("tests/integration/spark/test_changed_filters_of_ledgers.py",),
)
def filter_of_a_ledger(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    shop.sql("alter table outbox add status text")
    _filtered(shop, "EU")
    made = orders(range(lab.random.randint(40, 80)))
    shop.write("outbox", made)
    shop.write("warehouse", _of("EU", made))
    passing = len(_of("EU", made))
    first = Window(
        label="the first day",
        judged=_closed(shop, 0),
        expected=Judged(state=_CERTIFIED, accounting={}, matched={_FIRST: passing}),
    )
    _filtered(shop, "US")
    shop.sql("update outbox set status = 'billed'")
    shop.sql("update warehouse set at = at + interval '1 day'")
    today = orders(range(500, 500 + lab.random.randint(10, 30)), 1)
    shop.write("outbox", today)
    shop.write("warehouse", _of("US", today))
    right = len(_of("US", today))
    should = int(shop.sql("select count(*) from outbox where region = 'US'")[0][0])
    answer = naive.rows(should, shop.count("warehouse"))
    before = shop.sql("select * from warehouse order by id")
    context = shop.judge_and_repair(1)
    assert shop.sql("select * from warehouse order by id") == before
    changed = {order["id"]: ("undecidable", "filter_changed") for order in made}
    second = Window(
        label="the second day",
        judged=shop.verified(context),
        expected=Judged(
            state=_NOT_KNOWN,
            reason=f"not proven: {_FIRST}: {len(made)} keys undecidable, 0 allowed",
            accounting={},
            matched={_FIRST: right},
            found={_FIRST: changed},
            incidents=(("filter_changed", None, None, None), ("slice_shrunk", None, None, None)),
        ),
    )
    return Outcome(
        truth=f"Here {len(made)} old orders are touched, {passing} of them of the EU; {right} new ones are of the US.",
        naive=(Naive(answer=answer, expected=naive.compared(should, passing + right)),),
        windows=(first, second),
    )


def _two_ledgers(lab: Lab) -> LabShop:
    shop = lab.shop.open_shop(is_upsert=True, has_version=True)
    shop.sql("create table archive (like outbox)")
    text = fed_by_ledgers(
        ["outbox", "archive"],
        hop={"semantics": "upsert"},
        columns=COLUMNS,
        has_version=True,
        late="1h",
        compensation=_REPAIRS,
    )
    shop.file.write_text(text)
    return shop


def _certified_day(lab: Lab, shop: LabShop, *, are_shared: bool = True) -> tuple[list[Order], list[Order]]:
    """Write a day: first versions into one ledger, second ones into the other, of the same orders or (`are_shared`
    false) of others; return both."""
    numbers = range(lab.random.randint(40, 60)) if are_shared else range(100, 120)
    lower = [order | {"version": 1} for order in orders(numbers)]
    higher = [order | {"version": 2, "amount": f"{order['number']}.75"} for order in orders(range(20))]
    shop.write("outbox", lower)
    shop.write("archive", higher)
    shop.write("warehouse", [*higher, *(lower[len(higher) :] if are_shared else lower)])
    return lower, higher


def _traded(shop: LabShop, day: int) -> list[Order]:
    """Write orders of a day into both ledgers and the table; return those of one ledger."""
    first, second = ([order | {"version": 1} for order in orders(range(at, at + 20), day)] for at in (500, 600))
    shop.write("outbox", first)
    shop.write("archive", second)
    shop.write("warehouse", [*first, *second])
    return first


def _matched(first: list[Order], second: list[Order]) -> Judged:
    matched = {_FIRST: len(first), _SECOND: len(second)}
    return Judged(state=_CERTIFIED, accounting={}, matched=matched)


def _filtered(shop: LabShop, region: str) -> None:
    hop = {"where": f"\"region = '{region}'\""}
    text = fed_by_ledgers(
        ["outbox"], hop=hop, columns=COLUMNS, late="3d", compensation=_REPAIRS.replace(" mismatched: upsert,", "")
    )
    shop.file.write_text(text)


def _of(region: str, made: Iterable[Order]) -> list[Order]:
    return [order for order in made if order["region"] == region]


def _closed(shop: LabShop, day: int) -> Judged:
    return shop.close(shop.open(day))
