"""Test the chain of certificates against an insider who writes in the journal, and has no key.

Every fraud is made by SQL in a real journal; what has to notice it is `makewhole certificate verify`, which has the
public key alone.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg2.extras import Json

from makewhole.journal import certificates
from makewhole.journal.database import connect
from makewhole.model.errors import CorruptionError
from makewhole.model.window import WindowState
from makewhole.signing.keys import SigningKey, sha256_of
from makewhole.window.certifying.certificate_chain import anchor_bytes, require_none_ahead
from tests.world.certified import CertifiedPipeline

pytestmark = pytest.mark.integration


@pytest.fixture
def demo(journal: str, tmp_path: Path) -> CertifiedPipeline:
    return CertifiedPipeline(journal=journal, folder=tmp_path)


def make_chain_again(demo: CertifiedPipeline, key: SigningKey | None) -> None:
    """Make every entry again with another end, linked, hashed, and signed with a key of the insider's or not at all;
    and its file, too."""
    previous = None
    for entry in demo.entries():
        body = {**entry.body, "end": "2013-02-01T00:00:00+00:00", "previous": previous}
        body["signed_by"] = None if key is None else key.public.id
        signature = None if key is None else key.sign(body)
        demo.sql(
            "update makewhole.certificate set body = %s, sha256 = %s, previous = %s, signed_by = %s, signature = %s "
            "where ordinal = %s",
            *(Json(body), sha256_of(body), previous, body["signed_by"], signature, entry.ordinal),
        )
        written = replace(entry, body=body, sha256=sha256_of(body), signature=signature)
        (demo.anchors / f"{entry.ordinal:06d}.json").write_bytes(anchor_bytes(written))
        previous = sha256_of(body)


def test_an_untouched_chain_is_sound_and_needs_the_public_key_alone(demo: CertifiedPipeline) -> None:
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
    first = demo.entries()[0]
    demo.sql("delete from makewhole.certificate where ordinal = 2")
    demo.rewrite(3, ordinal=2, previous=first.sha256)
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


# A missing tail


@pytest.mark.parametrize("covers_up", [False, True])
def test_a_tail_that_is_missing_is_missed(demo: CertifiedPipeline, covers_up: bool) -> None:
    for number in (1, 2, 3):
        demo.close(number)
    last = demo.entries()[-1]
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
    head = demo.entries()[-1]
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
    assert len(demo.entries()) == 1


def test_a_journal_from_before_a_certificate_is_missed_and_one_that_grew_meanwhile_is_not(
    demo: CertifiedPipeline,
) -> None:
    demo.close(1)
    with connect(demo.journal) as journal:
        before = certificates.last(journal, "demo")
        demo.close(2)

        require_none_ahead(journal, demo.storage, "demo", before, "Nothing was written")  # read before it grew

        demo.sql("delete from makewhole.certificate where ordinal = 2")
        with pytest.raises(CorruptionError, match=r"entry 2 .* the journal ends before it: .* Nothing was written\."):
            require_none_ahead(journal, demo.storage, "demo", before, "Nothing was written")


# A chain made again


@pytest.mark.parametrize("is_signed", [False, True])
def test_a_chain_made_again_with_its_files_carries_no_signature_of_ours(
    demo: CertifiedPipeline, is_signed: bool
) -> None:
    for number in (1, 2):
        demo.close(number)
    insider = SigningKey.new()
    make_chain_again(demo, insider if is_signed else None)

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


def test_a_chain_made_again_in_the_journal_alone_is_not_what_stands_beside_the_files(demo: CertifiedPipeline) -> None:
    demo.close(1)
    kept = (demo.anchors / "000001.json").read_text()
    make_chain_again(demo, None)
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
    make_chain_again(demo, SigningKey.new())
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
