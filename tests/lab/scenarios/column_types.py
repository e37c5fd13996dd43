"""Have columns of types whose values have several texts, and one text that is no value (rows 62 and 63)."""

import json

import psycopg2

from makewhole.model.window import WindowState
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_OBSERVED = {"write": "{}", "compensation": "{missing: report, duplicate: report, mismatched: report}"}
_COVERED = ("tests/integration/spark/test_column_types.py", "tests/integration/postgres/test_type_families.py")


@scenario(
    row=62,
    name="A text among amounts",
    happens=(
        "A store keeps amounts in a text column, and a loader writes `n/a` into one of them. A query that casts the "
        "column ends with an error, for all rows, each night."
    ),
    made="The store's amounts are texts. One row says `n/a` where its record has an amount; `compare` names a decimal.",
    why=(
        "What a type cannot read is compared as it is: it is the difference of its own row. The other rows are judged "
        "as ever, and no later window waits."
    ),
    covered_by=_COVERED,
)
def text_among_amounts(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop(hop=_OBSERVED)
    shop.sql("alter table warehouse alter column amount type text")
    made = orders(range(lab.random.randint(20, 60)))
    bad = lab.random.choice(made)["id"]
    shop.write("outbox", made)
    shop.send(made)
    shop.load()
    shop.sql("update warehouse set amount = 'n/a' where id = %s", bad)
    answer = _by_a_cast(shop)
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.GAPS.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made) - 1},
            found={STORE_HOP: {bad: ("mismatched", "value_differs")}},
            reason="",
        ),
    )
    return Outcome(truth=f"Here one of {len(made)} amounts is none.", naive=(answer,), windows=(window,))


def _by_a_cast(shop: LabShop) -> Naive:
    """Return what a query says that casts the column."""
    try:
        text = str(shop.sql("select sum(amount::numeric) from warehouse")[0][0])
    except psycopg2.Error as error:
        text = type(error).__name__
    return Naive(
        answer=naive.NaiveAnswer(check="select sum(amount::numeric) from warehouse", text=text, conclusion="nothing"),
        expected="nothing",
    )


@scenario(
    row=63,
    name="Values that have a text in JSON and another one in their column",
    happens=(
        "A producer sends what `to_json` makes of its rows: objects, arrays, moments with a `T`. The store has columns "
        "of the same types, and their texts are others. Nothing is wrong."
    ),
    made=(
        "A `jsonb`, an array, an `inet`, a moment and a number of each order go from the ledger's columns by `to_json` "
        "into the topic, and from there into the same types; `compare` names them all as `string`."
    ),
    why=(
        "A column is read in its own type where its texts have several spellings, and a record is read by the same "
        "function. So what PostgreSQL itself writes for a value equals the value."
    ),
    covered_by=_COVERED,
)
def several_texts(lab: Lab) -> Outcome:
    names = ("document", "list", "address", "moment", "rate")
    compare = "{" + ", ".join(f"{name}: string" for name in names) + "}"
    shop = lab.shop.open_shop(hop=_OBSERVED, compare=compare)
    for table in ("outbox", "warehouse"):
        shop.sql(
            f"alter table {table} add document jsonb, add list text[], add address inet, add moment timestamptz, "
            "add rate double precision"
        )
    made = orders(range(lab.random.randint(20, 60)))
    shop.write("outbox", made)
    shop.sql(
        "update outbox set document = jsonb_build_object('n', number * 1.50, 'a', array[number, null]), "
        "list = array['a b', null, number::text], address = '10.0.0.0'::inet + number, moment = at + interval '1 us', "
        "rate = number * 1e20"
    )
    for (record,) in shop.sql("select to_json(o)::text from outbox as o order by number"):
        shop.send_raw(record.encode())
    shop.sql("insert into warehouse select * from outbox")
    answers = tuple(_by_text(shop, name, len(made)) for name in names[:4])
    window = Window(
        judged=shop.day(),
        expected=Judged(
            state=WindowState.CERTIFIED.value,
            accounting={"span": len(made), "data": len(made)},
            matched={LEDGER_HOP: len(made), STORE_HOP: len(made)},
        ),
    )
    return Outcome(truth=f"Here {len(made)} orders are whole.", naive=answers, windows=(window,))


def _by_text(shop: LabShop, name: str, count: int) -> Naive:
    """Compare the texts of a column with those of the records."""
    texts: dict[str, str] = dict(shop.sql(f"select id, {name}::text from warehouse"))
    records = {record.document["id"]: record.document[name] for record in shop.read()}
    same = sum(texts[key] == (value if isinstance(value, str) else json.dumps(value)) for key, value in records.items())
    return Naive(
        answer=naive.NaiveAnswer(
            check=f"`{name}::text` of the store and `{name}` of the records",
            text=f"{same} of {count} are the same text",
            conclusion=naive.compared(count, same),
        ),
        expected=f"{count} lost",
    )
