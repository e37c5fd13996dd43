"""Test the chain of certificates as it honestly grows: open windows, revocations, an unsigned past, another key."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from psycopg2.extras import Json

from makewhole.lake.storage import Storage
from makewhole.model.window import WindowState
from makewhole.signing.keys import SigningKey, sha256_of
from tests.world.certified import CertifiedPipeline

pytestmark = pytest.mark.integration


@pytest.fixture
def demo(journal: str, tmp_path: Path) -> CertifiedPipeline:
    return CertifiedPipeline(journal=journal, folder=tmp_path)


# Windows that are open


def test_a_window_that_was_never_certified_is_named_and_verify_is_not_content(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2, missing=1)
    demo.close(3)

    verified = demo.verify()

    assert (verified.code, verified.problems) == (5, [])
    assert (verified.document["ok"], verified.document["sound"]) == (False, True)
    assert verified.document["uncertified"] == ["window 2 has no certificate that stands; the journal has it as gaps"]


# A later revision that ended with gaps


def test_a_later_revision_with_gaps_revokes_the_certificate_by_an_entry_of_its_own(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2)
    closed = demo.close(1, 2, missing=1)

    verified = demo.verify()

    (revocation,) = closed.revoked
    assert (revocation.ordinal, revocation.revokes, revocation.body["because"]) == (
        3,
        1,
        {"revision": 2, "state": "gaps", "reason": "1 missing"},
    )
    assert (verified.code, verified.problems, verified.document["revocations"]) == (5, [], 1)
    assert verified.document["uncertified"] == ["window 1 has no certificate that stands; the journal has it as gaps"]
    demo.close(1, 3)
    assert demo.verify().code == 0


def test_a_revision_that_ends_late_is_not_certified_against_a_later_one_with_gaps(demo: CertifiedPipeline) -> None:
    slow = demo.judge(1)
    demo.close(1, 2, missing=1)

    closed = demo.certify(slow)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)


# An unsigned past, and another key


def test_an_unsigned_past_is_continued_and_verify_says_from_where_on_the_chain_is_signed(
    demo: CertifiedPipeline,
) -> None:
    unsigned_past(demo)
    demo.close(3)

    verified = demo.verify()

    assert (verified.code, verified.problems, verified.document["signed_from"]) == (0, [], 3)


def test_an_unsigned_past_alone_is_not_proven(demo: CertifiedPipeline) -> None:
    unsigned_past(demo)

    verified = demo.verify()

    assert (verified.code, verified.problems, verified.document["signed_from"]) == (3, [], None)


def test_an_unsigned_entry_after_a_signed_one_is_named(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.judge(2)
    last = demo.entries()[-1]
    insert_unsigned(demo, 2, 2, last.sha256, name="000002.json")
    demo.sql("update makewhole.window set state = 'certified' where number = 2")

    verified = demo.verify()

    assert (verified.code, verified.problems) == (
        1,
        ["certificate 2 (window 2): is not signed, and number 1 before it is"],
    )


def test_a_key_is_replaced_and_both_are_believed(demo: CertifiedPipeline) -> None:
    demo.close(1)
    old, demo.key = demo.key, SigningKey.new()
    demo.close(2)
    both = demo.folder / "both.pem"
    both.write_text(old.public.pem() + demo.key.public.pem())

    assert demo.verify("--public-key", str(both)).code == 0
    assert demo.verify().problems == [
        f"certificate 1 (window 1): signed with key {old.public.id}, which is none of those given "
        f"({demo.key.public.id})"
    ]


@pytest.mark.parametrize("missing", [0, 1])
def test_an_anchor_that_a_killed_attempt_left_out_is_written_by_the_next(
    demo: CertifiedPipeline, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    demo.close(1)
    window = demo.judge(1, 2, missing=missing)
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "write_once", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            demo.certify(window)
    assert len(demo.entries()) == 2
    assert demo.verify().problems == [
        f"{demo.entries()[1].name}: its file {demo.anchors}/000002.json is not there: it was removed, or `certify` was "
        "killed before it wrote it; the next `certify` of this pipeline writes it then"
    ]

    demo.certify(window)

    assert demo.verify().problems == []


def test_a_file_of_a_snapshot_that_was_changed_is_found_by_its_sha256(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2)
    changed = demo.folder / "demo/window=2/revision=1/b/part"
    changed.write_text("c")
    demo.sql("""update makewhole.snapshot set manifest = '{"sha256": {}}' where number = 1 and point = 'a'""")

    assert demo.verify().problems == []
    assert demo.verify("--files").problems == [
        "certificate 1 (window 1): the manifest of the snapshot of a is not the one that was certified",
        f"certificate 2 (window 2): {changed} is not what was written: its SHA-256 is another one",
    ]


def test_what_decided_is_in_what_is_signed(demo: CertifiedPipeline) -> None:
    closed = demo.close(1)

    assert closed.certificate is not None
    decided_by = closed.certificate.body["decided_by"]
    assert decided_by["configuration"]["gate"]["missing"] == 0
    assert sorted(decided_by["judging_sha256_by_step"]) == [
        "gate, reconciled",
        "open_window",
        "reconcile of a→b",
        "snapshot of a",
        "snapshot of b",
    ]
    assert {point: part["files"] for point, part in decided_by["snapshots"].items()} == {"a": 1, "b": 1}
    demo.rewrite(1, decided_by={**decided_by, "configuration": asdict(demo.pipeline)["gate"]})
    assert any("its signature is not that of key" in problem for problem in demo.verify().problems)


def unsigned_past(demo: CertifiedPipeline) -> None:
    """Put two certificates into the journal and beside the files, as they were before they were signed."""
    previous = None
    for number in (1, 2):
        demo.judge(number)
        demo.sql("update makewhole.window set state = 'certified' where number = %s", number)
        previous = insert_unsigned(demo, number, number, previous, f"{number:06d}-window-{number}-revision-1.json")
    # What an attempt left behind that died: the next one wrote its own file.
    (demo.anchors / "000002-window-1-revision-2.json").write_text('{"ordinal": 2}')


def insert_unsigned(demo: CertifiedPipeline, ordinal: int, number: int, previous: str | None, name: str) -> str:
    body = {"version": 1, "window": number, "ordinal": ordinal, "revision": 1, "digest": "0", "previous": previous}
    sha256 = sha256_of(body)
    demo.sql(
        "insert into makewhole.certificate (pipeline, number, revision, ordinal, digest, body, previous, sha256, uri) "
        "values ('demo', %s, 1, %s, '0', %s, %s, %s, %s)",
        *(number, ordinal, Json(body), previous, sha256, f"{demo.anchors}/{name}"),
    )
    demo.anchors.mkdir(parents=True, exist_ok=True)
    (demo.anchors / name).write_text(json.dumps({**body, "sha256": sha256}))
    return sha256
