"""Take certified windows out of the journal, as a user does who may write there (row 45)."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg2.extras import Json
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.journal import certificates
from makewhole.journal.certificates import ChainEntry
from makewhole.journal.database import connect
from makewhole.model.errors import CorruptionError
from makewhole.model.window import WindowState
from makewhole.signing.key_files import KEY_VARIABLE, signing_key_from_environment
from makewhole.signing.keys import sha256_of
from tests.lab import naive
from tests.lab.judged import Judged
from tests.lab.scenario import Lab, Naive, Outcome, Window, scenario
from tests.lab.shop import LabShop
from tests.world.orders import orders
from tests.world.shop import LEDGER_HOP, STORE_HOP

_CHAIN_TESTS = ("tests/integration/window/test_chain_of_an_insider.py",)
_TAKE_OUT = """\
do $$
declare place text;
begin
    set local session_replication_role = replica;  -- foreign keys are not asked
    for place in select format('%I.%I', table_schema, table_name) from information_schema.columns
        where table_schema = 'makewhole' and column_name = 'number' and table_name not in (
            select table_name from information_schema.views where table_schema = 'makewhole')
    loop
        execute format('delete from %s where number = {number}', place);
    end loop;
end $$"""


@scenario(
    row=45,
    name="The newest window is deleted, with its certificate",
    happens=(
        "A person who may write in the journal takes the last night out, with all its rows, so that it is judged again "
        "under kinder circumstances. What is left is a journal of fewer windows, and every one of them is in order."
    ),
    made="Three days are certified; every row that the journal has of the third window is deleted.",
    why=(
        "Every entry of the chain stands beside the files, too, where the journal's writer does not reach, and is "
        "signed: the public key alone tells that a number is missing. Nothing is certified on top of it."
    ),
    covered_by=_CHAIN_TESTS,
)
def newest_deleted(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    third = _three_days(lab)
    _take_out(shop, 3)
    answer = _by_hand(shop, left=2)
    expected = _refuted(third.expected, ["number 3 is missing from the journal"])
    window = replace(third, judged=_verified(shop, third.judged), expected=expected)
    with pytest.raises(CorruptionError, match="Nothing was certified"):
        shop.day(2)
    return Outcome(truth="Here two of three windows are left.", naive=answer, windows=(window,))


@scenario(
    row=45,
    name="A window is taken out of the chain, and the chain closed again",
    happens=(
        "The same with a window in the middle: its rows are deleted, and the certificate behind it is linked to the "
        "one before it, with a new hash. Whoever knows how the hash is made can do that."
    ),
    made=(
        "Three days are certified; every row of the second window is deleted, and the third certificate gets another "
        "number, another `previous` and the hash of what it then says."
    ),
    why=(
        "A hash proves nothing that its maker cannot make again. The signature does, over all of what decided; windows "
        "have no holes, and what was issued stands beside the files."
    ),
    covered_by=_CHAIN_TESTS,
)
def taken_out_of_the_chain(lab: Lab) -> Outcome:
    shop = lab.shop.open_shop()
    third = _three_days(lab)
    first = _chain(shop)[0]
    _take_out(shop, 2)
    _link(shop, _chain(shop)[-1], first)
    problems = [
        f"certificate 2 (window 3): its signature is not that of key {signing_key_from_environment().public.id} over "
        "this content",
        "certificate 2 (window 3): is not what was issued",
        "number 3 is missing from the journal",
        "window 2 is missing from the journal: windows have no holes",
    ]
    return Outcome(
        truth="Here the first and the third of three windows are left.",
        naive=_by_hand(shop, left=2),
        windows=(replace(third, judged=_verified(shop, third.judged), expected=_refuted(third.expected, problems)),),
    )


def _three_days(lab: Lab) -> Window:
    """Certify three days; return the last of them. Their chain is sound."""
    shop, answers = lab.shop, []
    days = [orders(range(100 * day, 100 * day + lab.random.randint(10, 50)), day) for day in range(3)]
    for day, made in enumerate(days):
        shop.trade(made)
        answers.append(shop.day(day))
    assert [answer.state for answer in answers] == [WindowState.CERTIFIED.value] * 3
    sound = _verified(shop, answers[-1])
    assert sound.messages == ("`certificate verify` exits with 0",), sound.messages
    count = len(days[-1])
    expected = Judged(
        state=WindowState.CERTIFIED.value,
        accounting={"span": count, "data": count},
        matched={LEDGER_HOP: count, STORE_HOP: count},
    )
    return Window(label="the third day", judged=answers[-1], expected=expected)


def _take_out(shop: LabShop, number: int) -> None:
    """Delete every row that the journal has of a window."""
    shop.journal_sql(_TAKE_OUT.format(number=number))


def _chain(shop: LabShop) -> list[ChainEntry]:
    with connect(shop.journal) as journal:
        return certificates.chain(journal, "shop")


def _link(shop: LabShop, last: ChainEntry, before: ChainEntry) -> None:
    """Make an entry the next one after another."""
    body = {**last.body, "ordinal": before.ordinal + 1, "previous": before.sha256}
    shop.journal_sql(
        "update makewhole.certificate set ordinal = %s, previous = %s, body = %s, sha256 = %s where ordinal = %s",
        *(before.ordinal + 1, before.sha256, Json(body), sha256_of(body), last.ordinal),
    )


def _verified(shop: LabShop, answer: Judged) -> Judged:
    """Add what `makewhole certificate verify` says, in an environment that has no private key."""
    public = shop.folder / "public.pem"
    public.write_text(signing_key_from_environment().public.pem(), encoding="utf-8")
    command = ["certificate", "verify", "shop", "--json", "--public-key", str(public)]
    result = CliRunner().invoke(app, command, env={KEY_VARIABLE: None}, catch_exceptions=False)
    anchors = Path(os.environ["MAKEWHOLE_STORAGE"]) / "shop" / "certificates"
    problems = [text.split(f": {anchors}")[0] for text in json.loads(result.stdout)["problems"]]
    return replace(answer, messages=(f"`certificate verify` exits with {result.exit_code}", *problems))


def _refuted(expected: Judged, problems: Sequence[str]) -> Judged:
    return replace(expected, messages=("`certificate verify` exits with 1", *problems))


def _by_hand(shop: LabShop, left: int) -> tuple[Naive, ...]:
    """Ask the journal itself: the states of its windows, and whether its hashes fit each other."""
    windows = shop.journal_sql("select count(*), count(*) filter (where state = 'certified') from makewhole.window")[0]
    chain = _chain(shop)
    links = [None, *(entry.sha256 for entry in chain)]
    fitting = sum(
        (entry.previous, entry.sha256) == (before, sha256_of(entry.body))
        for before, entry in zip(links, chain, strict=False)
    )
    assert windows[0] == len(chain) == left
    return tuple(
        Naive(
            answer=naive.NaiveAnswer(
                check=check,
                text=f"{left} {things}, {fitting_things} {fit}",
                conclusion=naive.WELL if fitting_things == left else f"{left - fitting_things} of {left} wrong",
            ),
            expected=naive.WELL,
        )
        for check, things, fitting_things, fit in (
            ("the states of the windows in the journal", "windows", windows[1], "certified"),
            ("the hash of every certificate, and that of the one before", "certificates", fitting, "fit"),
        )
    )
