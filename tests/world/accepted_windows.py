"""Make windows with a finding that a person accepts, and read what became of them."""

from collections.abc import Sequence

from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.compensation.acceptance.carry_out import OpenedWindowAgain
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.model.gate import GateAnswer
from makewhole.model.window import Window
from makewhole.signing.key_files import believed_keys
from makewhole.window.certifying.certificate_check import CheckedChain, check_chain
from makewhole.window.certifying.chain_evidence import read_evidence
from makewhole.window.context import WindowContext
from tests.world.acceptances import opened_again
from tests.world.orders import Order, orders
from tests.world.windows import ReconciledShop

WRONG = "O4"
OBSERVE = {"missing": "report", "duplicate": "report", "mismatched": "report", "limits": "{share: 1.0}"}


def context_hash(shop: ReconciledShop, context: WindowContext, key: str) -> str:
    """Return the hash of a key with a finding in the first window."""
    rows = shop.journal_sql("select key_hash from makewhole.finding where number = %s and key = %s", 1, key)
    return str(rows[0][0])


def invoke(*words: str) -> Result:
    """Run a command on a wide terminal."""
    return CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "300"})


def found_text() -> str:
    """Return what `makewhole findings` prints, on one line."""
    return " ".join(invoke("findings", "shop").stdout.split())


def wrong_record(shop: ReconciledShop, *, is_described: bool = False) -> WindowContext:
    """Take the first window to its gate; the topic holds a record that differs from the ledger, and the store agrees
    with the topic."""
    if not is_described:
        shop.describe(compensation=OBSERVE)
    made = orders(range(10))
    shop.write("outbox", made)
    wrong = [{**order, "amount": "99.00"} if order["id"] == WRONG else order for order in made]
    shop.send(wrong)
    shop.write("warehouse", wrong)
    context = shop.judge_and_ask_the_gate()
    assert gate(shop, context) is GateAnswer.FAIL
    return context


def next_window(
    shop: ReconciledShop, written: Sequence[Order] = (), *, sends: Sequence[Order] = ()
) -> list[OpenedWindowAgain]:
    """Take the second window to its end, as a run does: what does not hold is opened again before it is certified."""
    shop.trade(orders(range(20, 25), day=1))
    shop.write("outbox", written)
    shop.send(sends)
    context = shop.judge_and_ask_the_gate(1)
    again = opened_again(shop)
    shop.certify(context)
    return again


def gate(shop: ReconciledShop, context: WindowContext) -> GateAnswer:
    """Return the last answer of the gate about a window."""
    rows = shop.journal_sql(
        "select answer from makewhole.gate_report where number = %s and revision = %s order by stage desc limit 1",
        context.window.number,
        context.window.revision,
    )
    return GateAnswer(rows[0][0])


def newest(shop: ReconciledShop) -> list[Window]:
    """Return the newest revisions, the oldest window first."""
    with connect(shop.journal) as journal:
        return windows.newest(journal, "shop")[::-1]


def checked(shop: ReconciledShop, context: WindowContext) -> CheckedChain:
    """Check the chain of certificates."""
    with connect(shop.journal) as journal:
        return check_chain(read_evidence(journal, context.storage, "shop", believed_keys()))
