"""Test the check of a chain on entries, anchors and windows that are given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from makewhole.journal.certificates import ChainEntry, EntryKind, RevisionEnd
from makewhole.model.window import WindowState
from makewhole.signing.keys import KeyRing, SigningKey, sha256_of
from makewhole.window.certifying.certificate_chain import anchor_bytes
from makewhole.window.certifying.certificate_check import ChainEvidence, check_chain, order_problems, read_anchor

pytestmark = pytest.mark.unit

KEY = SigningKey.new()
RING = KeyRing.of(KEY.public)


def entry(ordinal: int, previous: str | None, number: int, key: SigningKey | None = KEY, **more: Any) -> ChainEntry:
    signed_by = None if key is None else key.public.id
    body = {
        "pipeline": "demo",
        "ordinal": ordinal,
        "previous": previous,
        "window": number,
        "revision": 1,
        "name": "ü",
        "digest": f"{number}",
        "signed_by": signed_by,
        **more,
    }
    return ChainEntry(
        ordinal=ordinal,
        number=number,
        revision=body["revision"],
        digest=f"{number}",
        body=body,
        previous=previous,
        sha256=sha256_of(body),
        uri=f"/s/{ordinal:06d}.json",
        kind=EntryKind(more.get("kind", "certificate")),
        revokes=more.get("revokes"),
        signed_by=signed_by,
        signature=None if key is None else key.sign(body),
    )


def chain(length: int, key: SigningKey | None = KEY) -> list[ChainEntry]:
    links: list[ChainEntry] = []
    for ordinal in range(1, length + 1):
        links.append(entry(ordinal, links[-1].sha256 if links else None, ordinal, key))
    return links


def evidence(
    links: Sequence[ChainEntry],
    issued: Sequence[ChainEntry] | None = None,
    states: Mapping[tuple[int, int], WindowState] | None = None,
) -> ChainEvidence:
    """Entries in the journal, those whose files stand beside it (the same), and windows (each certified)."""
    files = [read_anchor(link.uri, link.ordinal, anchor_bytes(link)) for link in (links if issued is None else issued)]
    ends = states or {(link.number, link.revision): WindowState.CERTIFIED for link in links}
    return ChainEvidence(
        entries=links,
        anchors=files,
        ends=[RevisionEnd(number=number, revision=revision, state=state) for (number, revision), state in ends.items()],
        ring=RING,
    )


def test_a_sound_chain_has_no_problems() -> None:
    assert (check_chain(evidence([])).problems, check_chain(evidence([])).signed_from) == ([], None)
    checked = check_chain(evidence(chain(4)))
    assert (checked.problems, checked.uncertified, checked.signed_from) == ([], [], 1)


def test_a_link_that_was_changed_is_found() -> None:
    links = chain(3)
    links[1] = replace(links[1], body={**links[1].body, "window": 7})

    assert order_problems(links) == ["certificate 2 (window 2): its content was changed after it was issued"]


def test_a_link_that_was_changed_with_its_hash_breaks_the_next_and_its_signature() -> None:
    issued = chain(3)
    body = {**issued[1].body, "name": "u"}
    links = [issued[0], replace(issued[1], body=body, sha256=sha256_of(body)), issued[2]]

    assert order_problems(links) == ["certificate 3 (window 3): does not continue the one before it"]
    assert check_chain(evidence(links, issued)).problems[1:] == [
        f"certificate 2 (window 2): its signature is not that of key {KEY.public.id} over this content",
        "certificate 2 (window 2): is not what was issued: /s/000002.json beside the files is a certificate of window "
        f"2 revision 1 with hash {issued[1].sha256[:12]}",
    ]


def test_a_link_that_was_taken_out_is_missed() -> None:
    links = chain(3)
    del links[1]

    assert order_problems(links) == [
        "certificate 3 (window 3): number 2 of the chain is missing",
        "certificate 3 (window 3): does not continue the one before it",
    ]


def test_an_anchor_is_held_to_every_byte_that_was_written() -> None:
    links = chain(1)
    content = anchor_bytes(links[0])
    problem = (
        "certificate 1 (window 1): /s/000001.json has its content, and is not byte for byte what was written: its "
        "hash, its signature or its form is another one"
    )
    for changed, problems in [
        (content, []),
        (content + b" ", [problem]),
        (content.replace(b'"signature": "', b'"signature": "A'), [problem]),
        (
            content.replace(b'"window": 1', b'"window": NaN'),
            ["certificate 1 (window 1): its file /s/000001.json cannot be read"],
        ),
    ]:
        given = replace(evidence(links), anchors=[read_anchor("/s/000001.json", 1, changed)])
        assert check_chain(given).problems == problems


def test_a_link_in_another_place_is_found() -> None:
    assert len(order_problems(chain(2)[::-1])) == 4


def test_a_tail_that_is_missing_is_missed() -> None:
    links = chain(3)

    assert check_chain(evidence(links[:2], links)).problems == [
        "number 3 is missing from the journal: /s/000003.json, signed by a key that was given, stands beside the files "
        f"(a certificate of window 3 revision 1 with hash {links[2].sha256[:12]})"
    ]


def test_a_file_that_cannot_be_read_is_named() -> None:
    proof = evidence(chain(1))
    damaged = replace(proof, anchors=[read_anchor("/s/000001.json", 1, b"{")])

    assert check_chain(damaged).problems == ["certificate 1 (window 1): its file /s/000001.json cannot be read"]


def test_two_signed_entries_of_one_number_are_a_fork() -> None:
    links = chain(2)
    other = replace(entry(2, links[0].sha256, 9), uri="/s/000002-other.json")

    assert check_chain(evidence(links, [*links, other])).problems == [
        "certificate 2 (window 2): another entry with its number is signed, too: /s/000002-other.json"
    ]


def test_without_any_key_no_signature_is_wrong_and_none_is_believed() -> None:
    checked = check_chain(replace(evidence(chain(1)), ring=KeyRing()))

    assert (checked.problems, checked.unchecked) == ([], (KEY.public.id,))
    assert check_chain(evidence(chain(1))).unchecked == ()
    assert check_chain(replace(evidence(chain(1, key=None)), ring=KeyRing())).unchecked == ()


def test_without_any_key_a_bent_chain_is_found_all_the_same() -> None:
    links = chain(3)
    del links[1]

    assert check_chain(replace(evidence(links), ring=KeyRing())).problems != []


def test_a_chain_without_any_signature_is_not_taken_for_signed() -> None:
    checked = check_chain(evidence(chain(2, key=None)))

    assert (checked.problems, checked.signed_from) == ([], None)


def revoked(because: str = "revoked_sha256") -> list[ChainEntry]:
    first = chain(1)[0]
    body: dict[str, Any] = {"kind": "revocation", "revokes": 1, because: first.sha256}
    return [first, entry(2, first.sha256, 1, **body)]


def test_a_revoked_certificate_leaves_its_window_uncertified_and_the_chain_sound() -> None:
    states = {(1, 1): WindowState.CERTIFIED, (1, 2): WindowState.GAPS}

    checked = check_chain(evidence(revoked(), states=states))

    assert checked.problems == []
    assert checked.uncertified == ["window 1 has no certificate that stands; the journal has it as gaps"]


@pytest.mark.parametrize(
    ("links", "states", "problem"),
    [
        (
            chain(1),
            {(1, 1): WindowState.CERTIFIED, (1, 2): WindowState.GAPS},
            "certificate 1 (window 1): stands, though revision 2 ended with gaps; it was not revoked",
        ),
        (
            chain(1),
            {(1, 1): WindowState.GAPS},
            "certificate 1 (window 1): stands, though the journal has revision 1 as gaps; it was not revoked",
        ),
        (
            revoked(),
            {(1, 1): WindowState.CERTIFIED},
            "window 1 revision 1 is certified in the journal, and its certificate 1 is revoked by number 2",
        ),
        (
            revoked("something_else"),
            {(1, 1): WindowState.GAPS},
            "revocation 2 (window 1): revokes number 1, which is not the certificate that it names",
        ),
        (
            chain(1),
            {(1, 1): WindowState.CERTIFIED, (2, 1): WindowState.CERTIFIED},
            "window 2 revision 1 is certified in the journal and has no certificate",
        ),
        (
            chain(1),
            {(1, 1): WindowState.CERTIFIED, (3, 1): WindowState.OPEN},
            "window 2 is missing from the journal: windows have no holes",
        ),
    ],
)
def test_windows_and_certificates_that_contradict_each_other_are_named(
    links: list[ChainEntry], states: dict[tuple[int, int], WindowState], problem: str
) -> None:
    assert check_chain(evidence(links, states=states)).problems == [problem]


def test_a_window_that_is_judged_again_right_now_keeps_its_certificate() -> None:
    states = {(1, 1): WindowState.CERTIFIED, (1, 2): WindowState.OPEN, (2, 1): WindowState.OPEN}

    checked = check_chain(evidence(chain(1), states=states))

    assert (checked.problems, checked.uncertified) == ([], [])


def accepted_until(moment: str | None) -> dict[str, Any]:
    return {"accepted": {"findings": 2, "acceptances": [{"id": "a", "until": moment}]}}


def test_a_chain_says_how_many_findings_are_accepted_and_which_longer_than_they_were_to_be() -> None:
    lasting = entry(1, None, 1, **accepted_until(None))
    over = entry(2, lasting.sha256, 2, **accepted_until("2020-01-31T00:00:00+00:00"))

    checked = check_chain(evidence([lasting, over]))

    assert (checked.problems, checked.accepted, checked.is_complete) == ([], 4, False)
    assert checked.uncertified == [
        "window 2 is certified with findings accepted until 2020-01-31T00:00:00+00:00, which has passed: they are open "
        "again, and the next run of the pipeline revokes its certificate"
    ]


def test_every_certificate_of_a_revision_that_was_opened_again_has_to_be_revoked() -> None:
    first = entry(1, None, 1)
    second = entry(2, first.sha256, 1, **accepted_until(None))
    revocation = entry(
        3, second.sha256, 1, kind="revocation", revokes=2, revoked_sha256=second.sha256, because={"revision": 1}
    )
    states = {(1, 1): WindowState.GAPS}

    checked = check_chain(evidence([first, second, revocation], states=states))

    assert checked.problems == [
        "certificate 1 (window 1): stands, though the journal has revision 1 as gaps; it was not revoked"
    ]
    assert checked.accepted == 0
