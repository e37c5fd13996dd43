"""Test `erase`: a key goes from every place, others stay, certificates hold, and nothing brings it back."""

import pytest

from makewhole.erasure.erase_key import Erased, EraseRequest, ErasureContext, erase_key, holdings_of
from makewhole.journal.database import JournalSession, connect
from makewhole.lake.storage import Storage
from makewhole.signing.key_files import believed_keys, signing_key_from_environment
from makewhole.window.certifying.certificate_check import check_chain
from makewhole.window.certifying.chain_evidence import file_problems, read_evidence
from makewhole.window.certifying.erased_contents import erased_contents
from makewhole.window.context import connections_of
from tests.integration.spark.test_keep import UPSERT, repaired
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def request_of(shop: ReconciledShop, key: str) -> EraseRequest:
    return EraseRequest(pipeline=shop.pipeline, key=key, asked_by="dana", reason="request 17")


def erased(shop: ReconciledShop, key: str) -> Erased:
    """Erase a key as the command does."""
    with JournalSession(shop.journal) as journal:
        return erase_key(context_of(shop, journal), request_of(shop, key))


def context_of(shop: ReconciledShop, journal: JournalSession) -> ErasureContext:
    return ErasureContext(
        journal=journal,
        storage=Storage.from_environment(),
        connections=connections_of(shop.pipeline),
        signing_key=signing_key_from_environment(),
    )


def verified(shop: ReconciledShop) -> list[str]:
    """Return what is wrong with the chain, its anchors, its files and the erasures."""
    storage = Storage.from_environment()
    with connect(shop.journal) as journal:
        ring = believed_keys()
        evidence = read_evidence(journal, storage, "shop", ring)
        known = erased_contents(journal, "shop", ring)
        changed = file_problems(journal, storage, evidence.entries, known)
        return [*check_chain(evidence).problems, *known.problems, *changed]


def places_of(shop: ReconciledShop, text: str, key_hash: str) -> list[str]:
    """Return every place in storage, journal and targets where a key's text or hash is, by brute force."""
    storage = Storage.from_environment()
    found = []
    halves = [int(key_hash[:16], 16).to_bytes(8, "little"), int(key_hash[16:], 16).to_bytes(8, "little")]
    for file in storage.files_below("shop"):
        content = storage.read_bytes(file.path)
        if text.encode() in content or key_hash.encode() in content:
            found.append(file.path)
        elif file.path.endswith(".parquet"):
            frame = storage.read_parquet([file.path])
            assert frame is not None
            if any(text in str(row) or key_hash in str(row) for row in frame.rows()) or (
                "key_hi" in frame.columns
                and any(
                    (high, low) == tuple(int.from_bytes(half, "little") for half in halves)
                    for high, low in frame.select("key_hi", "key_lo").rows()
                )
            ):
                found.append(file.path)
    for run, schema in ((shop.journal_sql, "makewhole"), (shop.sql, "makewhole")):
        tables = run("select table_name from information_schema.tables where table_schema = %s", schema)
        for (table,) in tables:
            rows = run(f"select count(*) from makewhole.{table} as t where t::text like %s", f"%{text}%")
            hashes = run(f"select count(*) from makewhole.{table} as t where t::text like %s", f"%{key_hash}%")
            if rows != [(0,)] or hashes != [(0,)]:
                found.append(table)
    return sorted(found)


def test_a_key_goes_everywhere_and_the_certificates_stand(shop: ReconciledShop) -> None:
    shop.describe(compensation=UPSERT)
    made = orders(range(900_101, 900_106))
    shop.trade(made, unloaded=made[:2])
    shop.write("warehouse", [made[3]])
    repaired(shop)
    shop.trade(orders(range(100, 105), 1))
    shop.whole_way(1)
    key = request_of(shop, "O900101").erased
    before = {place.split("/")[-2] if "/" in place else place for place in places_of(shop, key.text, key.hash)}
    assert {"finding", "planned_action", "effect"} <= before
    rows = shop.sql("select * from warehouse order by 1, 2")

    outcome = erased(shop, "O900101")

    assert places_of(shop, key.text, key.hash) == []
    assert (outcome.stays, outcome.rows_at_targets) == ((), 1)
    assert shop.sql("select * from warehouse order by 1, 2") == rows
    assert places_of(shop, "O900102", request_of(shop, "O900102").erased.hash) != []
    assert verified(shop) == []
    with JournalSession(shop.journal) as journal:
        again = holdings_of(context_of(shop, journal), key)
    assert again.is_empty
