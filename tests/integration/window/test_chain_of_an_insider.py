"""Test the chain of certificates against an insider who writes in the journal, and has no key.

Every fraud is made by SQL in a real journal; what has to notice it is `makewhole certificate verify`, which has the
public key alone.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from psycopg2.extras import Json

from makewhole.journal import certificates
from makewhole.journal.certificates import ChainEntry
from makewhole.journal.database import connect
from makewhole.lake.storage import Storage
from makewhole.model.errors import CorruptionError
from makewhole.model.window import WindowState
from makewhole.signing.keys import SigningKey, sha256_of
from tests.world.certified import CertifiedPipeline

pytestmark = pytest.mark.integration


@pytest.fixture
def demo(journal: str, tmp_path: Path) -> CertifiedPipeline:
    return CertifiedPipeline(journal=journal, folder=tmp_path)


def entries(demo: CertifiedPipeline) -> list[ChainEntry]:
    with connect(demo.journal) as journal:
        return certificates.chain(journal, "demo")


def rewrite(demo: CertifiedPipeline, at: int, **changes: Any) -> None:
    """Change the body of an entry and its hash, as somebody does who knows how the hash is made."""
    body = {**next(one for one in entries(demo) if one.ordinal == at).body, **changes}
    demo.sql(
        "update makewhole.certificate set body = %s, sha256 = %s where ordinal = %s",
        Json(body),
        sha256_of(body),
        at,
    )


def make_chain_anew(demo: CertifiedPipeline, key: SigningKey | None) -> None:
    """Make every entry anew with another end, linked, hashed, and signed with a key of the insider's or not at all; and
    its file, too."""
    previous = None
    for one in entries(demo):
        body = {**one.body, "end": "2013-02-01T00:00:00+00:00", "previous": previous}
        body["signed_by"] = None if key is None else key.public.id
        signature = None if key is None else key.sign(body)
        demo.sql(
            "update makewhole.certificate set body = %s, sha256 = %s, previous = %s, signed_by = %s, signature = %s "
            "where ordinal = %s",
            *(Json(body), sha256_of(body), previous, body["signed_by"], signature, one.ordinal),
        )
        content = {**body, "sha256": sha256_of(body), "signature": signature}
        (demo.anchors / f"{one.ordinal:06d}.json").write_text(json.dumps(content))
        previous = sha256_of(body)


def test_a_chain_that_nobody_touched_is_sound_and_needs_the_public_key_alone(demo: CertifiedPipeline) -> None:
    for number in (1, 2, 3):
        demo.close(number)

    verified = demo.verify("--files")

    assert (verified.code, verified.problems, verified.document["uncertified"]) == (0, [], [])
    assert (verified.document["signed_from"], verified.document["keys"]) == (1, [demo.key.public.id])


# A hole in the numbers


def test_a_window_that_is_gone_leaves_a_hole(demo: CertifiedPipeline) -> None:
    demo.close(1)
    assert demo.close(2, missing=1).state is WindowState.GAPS
    demo.close(3)
    for table in ("snapshot", "hop_result", "gate_report", "window"):
        demo.sql(f"delete from makewhole.{table} where number = 2")

    verified = demo.verify()

    assert (verified.code, verified.problems) == (1, ["window 2 is missing from the journal: windows have no holes"])


def test_a_certificate_that_is_gone_leaves_a_hole_however_the_others_are_linked(demo: CertifiedPipeline) -> None:
    for number in (1, 2, 3):
        demo.close(number)
    first = entries(demo)[0]
    demo.sql("delete from makewhole.certificate where ordinal = 2")
    rewrite(demo, 3, ordinal=2, previous=first.sha256)
    demo.sql("update makewhole.certificate set ordinal = 2, previous = %s where ordinal = 3", first.sha256)
    demo.sql("update makewhole.window set state = 'gaps' where number = 2")

    verified = demo.verify()

    issued = json.loads((demo.anchors / "000002.json").read_text())["sha256"]
    assert verified.code == 1
    assert verified.problems[:2] == [
        f"certificate 2 (window 3): its signature is not that of key {demo.key.public.id} over this content",
        f"certificate 2 (window 3): is not what was issued: {demo.anchors}/000002.json beside the files is a "
        f"certificate of window 2 revision 1 with hash {issued[:12]}",
    ]
    assert verified.problems[2].startswith("number 3 is missing from the journal: ")
    assert verified.document["uncertified"] == ["window 2 has no certificate that stands; the journal has it as gaps"]


def test_a_window_that_was_never_certified_is_named_and_verify_is_not_content(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2, missing=1)
    demo.close(3)

    verified = demo.verify()

    assert (verified.code, verified.problems) == (1, [])
    assert verified.document["uncertified"] == ["window 2 has no certificate that stands; the journal has it as gaps"]


# A missing tail


@pytest.mark.parametrize("covers_up", [False, True])
def test_a_tail_that_is_missing_is_missed(demo: CertifiedPipeline, covers_up: bool) -> None:
    for number in (1, 2, 3):
        demo.close(number)
    last = entries(demo)[-1]
    demo.sql("delete from makewhole.certificate where ordinal = 3")
    if covers_up:
        demo.sql("update makewhole.window set state = 'gaps' where number = 3")

    verified = demo.verify()

    assert verified.code == 1
    assert verified.problems[0] == (
        f"number 3 is missing from the journal: {demo.anchors}/000003.json, signed by a key that was given, stands "
        f"beside the files (a certificate of window 3 revision 1 with hash {last.sha256[:12]})"
    )
    assert verified.problems[1:] == (
        [] if covers_up else ["window 3 revision 1 is certified in the journal and has no certificate"]
    )


def test_a_tail_whose_file_is_gone_too_is_missed_by_the_head_that_an_asset_event_kept(demo: CertifiedPipeline) -> None:
    for number in (1, 2):
        demo.close(number)
    head = entries(demo)[-1]
    demo.sql("delete from makewhole.certificate where ordinal = 2")
    demo.sql("update makewhole.window set state = 'open' where number = 2")
    (demo.anchors / "000002.json").unlink()

    assert demo.verify().code == 0
    verified = demo.verify("--head", f"2:{head.sha256}")

    assert (verified.code, verified.problems) == (
        1,
        [
            f"number 2 with hash {head.sha256[:12]} was kept as the head of the chain, and the journal has no entry of "
            "that number"
        ],
    )


def test_nothing_is_certified_on_top_of_a_tail_that_is_missing(demo: CertifiedPipeline) -> None:
    for number in (1, 2):
        demo.close(number)
    demo.sql("delete from makewhole.certificate where ordinal = 2")
    window = demo.judge(3)

    with pytest.raises(
        CorruptionError, match=r"demo: entry 2 of the chain .* and the journal ends before it"
    ) as caught:
        demo.certify(window)

    assert "Nothing was certified" in str(caught.value)
    assert demo.sql("select state from makewhole.window where number = 3") == [("open",)]
    assert len(entries(demo)) == 1


# A chain made anew


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_chain_made_anew_with_its_files_carries_no_signature_of_ours(
    demo: CertifiedPipeline, is_signed: bool
) -> None:
    for number in (1, 2):
        demo.close(number)
    insider = SigningKey.new()
    make_chain_anew(demo, insider if is_signed else None)

    verified = demo.verify()

    if is_signed:
        assert (verified.code, verified.problems) == (
            1,
            [
                f"certificate {at} (window {at}): signed with key {insider.public.id}, which is none of those given "
                f"({demo.key.public.id})"
                for at in (1, 2)
            ],
        )
    else:
        assert (verified.code, verified.document["signed_from"]) == (3, None)  # never taken for signed


def test_a_chain_made_anew_in_the_journal_alone_is_not_what_stands_beside_the_files(demo: CertifiedPipeline) -> None:
    demo.close(1)
    kept = (demo.anchors / "000001.json").read_text()
    make_chain_anew(demo, None)
    (demo.anchors / "000001.json").write_text(kept)

    verified = demo.verify()

    assert verified.code == 1
    assert verified.problems == [
        f"certificate 1 (window 1): is not what was issued: {demo.anchors}/000001.json beside the files is a "
        f"certificate of window 1 revision 1 with hash {json.loads(kept)['sha256'][:12]}"
    ]
    with pytest.raises(
        CorruptionError, match=r"certificate 1 \(window 1\) in the journal is not the one .* differs from"
    ):
        demo.close(2)


def test_a_key_of_the_insiders_own_is_not_believed_on_the_way_either(demo: CertifiedPipeline) -> None:
    demo.close(1)
    make_chain_anew(demo, SigningKey.new())
    (demo.anchors / "000001.json").unlink()

    with pytest.raises(CorruptionError, match="it carries no signature of a key of ours, and there is no"):
        demo.close(2)
    assert not (demo.anchors / "000001.json").exists()


def test_every_column_that_the_signature_covers_is_compared_with_it(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.judge(2)
    demo.sql("update makewhole.certificate set number = 2")

    verified = demo.verify()

    assert "certificate 1 (window 2): its row in the journal has another window than its content" in verified.problems


# A certified window without its certificate


def test_a_window_that_was_made_certified_by_hand_has_no_certificate(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(2, missing=1)
    demo.sql("update makewhole.window set state = 'certified', reason = null where number = 2")

    verified = demo.verify()

    assert (verified.code, verified.problems) == (
        1,
        ["window 2 revision 1 is certified in the journal and has no certificate"],
    )


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
    assert (verified.code, verified.problems, verified.document["revocations"]) == (1, [], 1)
    assert verified.document["uncertified"] == ["window 1 has no certificate that stands; the journal has it as gaps"]
    demo.close(1, 3)
    assert demo.verify().code == 0


def test_a_certificate_that_stands_though_a_later_revision_ended_with_gaps_is_named(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.judge(1, 2, missing=1)
    demo.sql("update makewhole.window set state = 'gaps', reason = '1 missing' where revision = 2")

    verified = demo.verify()

    assert (verified.code, verified.problems) == (
        1,
        ["certificate 1 (window 1): stands, though revision 2 ended with gaps; it was not revoked"],
    )


def test_a_revocation_that_is_taken_out_is_missed(demo: CertifiedPipeline) -> None:
    demo.close(1)
    demo.close(1, 2, missing=1)
    demo.sql("delete from makewhole.certificate where kind = 'revocation'")
    for table in ("snapshot", "hop_result", "gate_report", "window"):
        demo.sql(f"delete from makewhole.{table} where revision = 2")

    verified = demo.verify()

    assert verified.code == 1
    assert [problem.split(":")[0] for problem in verified.problems] == ["number 2 is missing from the journal"]
    assert "a revocation of window 1 revision 1" in verified.problems[0]


def test_a_revision_that_ends_late_is_not_certified_against_a_later_one_with_gaps(demo: CertifiedPipeline) -> None:
    slow = demo.judge(1)
    demo.close(1, 2, missing=1)

    closed = demo.certify(slow)

    assert (closed.state, closed.certificate) == (WindowState.NOT_KNOWN, None)


# Edges


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
    last = entries(demo)[-1]
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
    assert len(entries(demo)) == 2
    assert demo.verify().problems == [
        f"{entries(demo)[1].name}: its file {demo.anchors}/000002.json is not there: it was removed, or `certify` was "
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
    rewrite(demo, 1, decided_by={**decided_by, "configuration": asdict(demo.pipeline)["gate"]})
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
