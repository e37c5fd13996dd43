"""Check the chain of a pipeline with public keys alone: signatures, order, anchors, and the windows in the journal.

Everything that is wrong is returned as a sentence that names the entry or the window. The chain, its anchors and the
windows are given; nothing is read here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from makewhole.journal.certificates import ChainEntry, EntryKind, RevisionEnd
from makewhole.model.window import WindowState
from makewhole.signing.keys import KeyRing, canonical_bytes, sha256_of
from makewhole.window.certifying.certificate_chain import anchor_bytes, is_signed

_NOT_IN_THE_BODY = ("sha256", "signature")


@dataclass(frozen=True, kw_only=True)
class Head:
    """The newest entry of a chain as another system has kept it, an asset event for example."""

    ordinal: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """A file of the chain beside the files. `document` None: it cannot be read. `ordinal` is that of its name."""

    name: str
    ordinal: int
    content: bytes
    document: Mapping[str, Any] | None

    @property
    def body(self) -> dict[str, Any]:
        return {name: value for name, value in (self.document or {}).items() if name not in _NOT_IN_THE_BODY}

    @property
    def sha256(self) -> str:
        return sha256_of(self.body)

    def is_signed(self, ring: KeyRing) -> bool:
        """Return whether a believed key has signed it."""
        document = self.document or {}
        signed_by, signature = document.get("signed_by"), document.get("signature")
        texts_only = isinstance(signed_by, str) and isinstance(signature, str)
        return texts_only and ring.has_signed(self.body, str(signed_by), str(signature))


def read_anchor(name: str, ordinal: int, content: bytes) -> Anchor:
    """Return the anchor that a file holds."""
    try:
        document = json.loads(content)
        canonical_bytes(document)  # JSON has more than a signature can be over: NaN, half a character
    except (ValueError, RecursionError):
        document = None
    is_object = isinstance(document, dict)
    return Anchor(name=name, ordinal=ordinal, content=content, document=document if is_object else None)


@dataclass(frozen=True, kw_only=True)
class ChainEvidence:
    """Everything that a check needs: the chain in the journal, its anchors, the windows, and the believed keys."""

    entries: Sequence[ChainEntry]
    anchors: Sequence[Anchor]
    ends: Sequence[RevisionEnd]
    ring: KeyRing
    heads: Sequence[Head] = ()


@dataclass(frozen=True, kw_only=True)
class HandedOver:
    """The keys in flight that the newest certified window left to the next one: of these its certificate proves
    nothing."""

    window: int
    keys: int


@dataclass(frozen=True, kw_only=True)
class CheckedChain:
    """The result. `signed_from` is the first signed entry; None when no entry is signed, or none could be checked.

    `problems` say that the chain was bent, or that it is damaged; `uncertified` name the windows up to the last
    certified one that have no standing certificate, as the journal itself says. `handed_over` is of the newest window
    whose certificate stands; None without one. `accepted`: how many findings the certificates that stand leave as they
    are, by a person's word. `unchecked` are the ids of the keys whose signatures were not checked, because no public
    key was given at all: then nothing is proven.
    """

    signed_from: int | None
    problems: list[str] = field(default_factory=list)
    uncertified: list[str] = field(default_factory=list)
    handed_over: HandedOver | None = None
    accepted: int = 0
    unchecked: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Return whether the chain was not bent; windows that are honestly open do not make it unsound."""
        return not self.problems

    @property
    def is_complete(self) -> bool:
        """Return whether it is sound and proves every window up to the last certified one."""
        return self.is_sound and not self.uncertified


def check_chain(evidence: ChainEvidence) -> CheckedChain:
    """Check a chain; it is sound when nothing is wrong, which without any signature proves little."""
    problems = [*order_problems(evidence.entries), *_signature_problems(evidence), *_anchor_problems(evidence)]
    problems += _head_problems(evidence)
    windows = _WindowsOfChain.of(evidence)
    problems += windows.problems()
    signed = [entry.ordinal for entry in evidence.entries if entry.signed_by is not None]
    return CheckedChain(
        signed_from=min(signed, default=None),
        problems=problems,
        uncertified=windows.uncertified(),
        handed_over=windows.handed_over(),
        accepted=sum(certificate.accepted for certificate in windows.standing()),
        unchecked=() if evidence.ring.keys else _signers(evidence.entries),
    )


def _signers(entries: Sequence[ChainEntry]) -> tuple[str, ...]:
    return tuple(sorted({entry.signed_by for entry in entries if entry.signed_by is not None}))


def order_problems(entries: Sequence[ChainEntry]) -> list[str]:
    """Return what is wrong with the numbers, links, hashes and columns of entries, given oldest first."""
    problems, previous = [], None
    for at, entry in enumerate(entries, start=1):
        if entry.ordinal != at:
            problems.append(f"{entry.name}: number {at} of the chain is missing")
        if entry.previous != previous or entry.body.get("previous") != previous:
            problems.append(f"{entry.name}: does not continue the one before it")
        if sha256_of(dict(entry.body)) != entry.sha256 or entry.body.get("digest") != entry.digest:
            problems.append(f"{entry.name}: its content was changed after it was issued")
        elif wrong := _differing_columns(entry):
            problems.append(f"{entry.name}: its row in the journal has another {', '.join(wrong)} than its content")
        previous = entry.sha256
    return problems


def _differing_columns(entry: ChainEntry) -> list[str]:
    """Return the columns that differ from the signed body, which has all of them since certificates are signed."""
    columns = {
        "ordinal": entry.ordinal,
        "window": entry.number,
        "revision": entry.revision,
        "kind": entry.kind.value,
        "revokes": entry.revokes,
        "signed_by": entry.signed_by,
    }
    body = {"signed_by": None, "kind": EntryKind.CERTIFICATE.value, "revokes": None, **entry.body}
    return [name for name, value in columns.items() if name in body and body[name] != value]


def _signature_problems(evidence: ChainEvidence) -> list[str]:
    problems, first_signed = [], None
    for entry in evidence.entries:
        if entry.signed_by is None:
            if first_signed is not None:
                problems.append(f"{entry.name}: is not signed, and number {first_signed} before it is")
            continue
        first_signed = first_signed or entry.ordinal
        if not evidence.ring.keys:
            continue  # without any key no signature is wrong, and none is right
        if entry.signed_by not in evidence.ring.keys:
            problems.append(
                f"{entry.name}: signed with key {entry.signed_by}, which is none of those given "
                f"({', '.join(sorted(evidence.ring.keys)) or 'none'})"
            )
        elif not is_signed(entry, evidence.ring):
            problems.append(f"{entry.name}: its signature is not that of key {entry.signed_by} over this content")
    return problems


def _anchor_problems(evidence: ChainEvidence) -> list[str]:
    """Compare the journal with the files: each entry with its anchor, and anchors of which the journal has no entry."""
    problems = []
    entries = {entry.ordinal: entry for entry in evidence.entries}
    by_number: dict[int, list[Anchor]] = {}
    for anchor in evidence.anchors:
        by_number.setdefault(anchor.ordinal, []).append(anchor)
    for ordinal, entry in entries.items():
        problems += _other_problems(entry, by_number.pop(ordinal, []), evidence.ring)
    for ordinal, anchors in sorted(by_number.items()):
        for anchor in anchors:
            what = "signed by a key that was given" if anchor.is_signed(evidence.ring) else "not signed by a given key"
            problems.append(
                f"number {ordinal} is missing from the journal: {anchor.name}, {what}, stands beside the files "
                f"({_subject(anchor)})"
            )
    return problems


def _other_problems(entry: ChainEntry, anchors: Sequence[Anchor], ring: KeyRing) -> list[str]:
    same = [anchor for anchor in anchors if anchor.document is not None and anchor.sha256 == entry.sha256]
    if same:
        others = [anchor for anchor in anchors if anchor not in same and anchor.is_signed(ring)]
        return [
            *(f"{entry.name}: another entry with its number is signed, too: {anchor.name}" for anchor in others),
            *(
                f"{entry.name}: {anchor.name} has its content, and is not byte for byte what was written: its hash, "
                "its signature or its form is another one"
                for anchor in same
                if entry.signed_by is not None and anchor.content != anchor_bytes(entry)
            ),
        ]
    if not anchors:
        return [
            f"{entry.name}: its file {entry.uri} is not there: it was removed, or `certify` was killed before it "
            "wrote it; the next `certify` of this pipeline writes it then"
        ]
    if all(anchor.document is None for anchor in anchors):
        return [f"{entry.name}: its file {entry.uri} cannot be read"]
    return [
        f"{entry.name}: is not what was issued: {anchor.name} beside the files is {_subject(anchor)}"
        for anchor in anchors
    ]


def _subject(anchor: Anchor) -> str:
    body = anchor.body
    kind = body.get("kind", "certificate")
    return f"a {kind} of window {body.get('window')} revision {body.get('revision')} with hash {anchor.sha256[:12]}"


def _head_problems(evidence: ChainEvidence) -> list[str]:
    known = {entry.ordinal: entry.sha256 for entry in evidence.entries}
    return [
        f"number {head.ordinal} with hash {head.sha256[:12]} was kept as the head of the chain, and the journal has "
        + ("no entry of that number" if head.ordinal not in known else f"another one, {known[head.ordinal][:12]}")
        for head in evidence.heads
        if known.get(head.ordinal) != head.sha256
    ]


@dataclass(frozen=True, kw_only=True)
class _WindowsOfChain:
    """The certificates of a chain, the newest of each revision, and the windows in the journal."""

    entries: Mapping[int, ChainEntry]
    revoked: Mapping[int, int]
    issued: Sequence[ChainEntry]
    certificates: Mapping[tuple[int, int], ChainEntry]
    states: Mapping[tuple[int, int], WindowState]

    @classmethod
    def of(cls, evidence: ChainEvidence) -> "_WindowsOfChain":
        issued = [entry for entry in evidence.entries if entry.kind is EntryKind.CERTIFICATE]
        return cls(
            entries={entry.ordinal: entry for entry in evidence.entries},
            revoked={entry.revokes: entry.ordinal for entry in evidence.entries if entry.revokes is not None},
            issued=issued,
            certificates={(entry.number, entry.revision): entry for entry in issued},
            states={(end.number, end.revision): end.state for end in evidence.ends},
        )

    def problems(self) -> list[str]:
        """Return where the windows in the journal and the certificates contradict each other."""
        return [
            *self._certified_without(),
            *self._standing_though_refuted(),
            *self._wrong_revocations(),
            *self._unknown_windows(),
        ]

    def _certified_without(self) -> list[str]:
        newest = dict(sorted(self.states))
        wrong = []
        for (number, revision), state in sorted(self.states.items()):
            if state is not WindowState.CERTIFIED:
                continue
            entry = self.certificates.get((number, revision))
            if entry is None:
                wrong.append(f"window {number} revision {revision} is certified in the journal and has no certificate")
            elif entry.ordinal in self.revoked and newest[number] == revision:
                wrong.append(
                    f"window {number} revision {revision} is certified in the journal, and its {entry.kind.value} "
                    f"{entry.ordinal} is revoked by number {self.revoked[entry.ordinal]}"
                )
        return wrong

    def _standing_though_refuted(self) -> list[str]:
        """Return the signed certificates that stand though their window was opened again; older ones are history."""
        wrong = []
        for entry in sorted(self.issued, key=lambda issued: (issued.number, issued.revision, issued.ordinal)):
            number, revision = entry.number, entry.revision
            if entry.ordinal in self.revoked or entry.signed_by is None:
                continue
            state = self.states.get((number, revision))
            later = [
                at
                for (of, at), end in self.states.items()
                if of == number and at > revision and end is WindowState.GAPS
            ]
            if later:
                wrong.append(f"{entry.name}: stands, though revision {max(later)} ended with gaps; it was not revoked")
            elif state is not None and state is not WindowState.CERTIFIED:
                wrong.append(
                    f"{entry.name}: stands, though the journal has revision {revision} as {state.value}; it was "
                    "not revoked"
                )
        return wrong

    def _wrong_revocations(self) -> list[str]:
        wrong = []
        for revoked, by in sorted(self.revoked.items()):
            entry, revocation = self.entries.get(revoked), self.entries[by]
            is_certificate = entry is not None and entry.kind is EntryKind.CERTIFICATE and revoked < by
            if not is_certificate or entry is None or revocation.body.get("revoked_sha256") != entry.sha256:
                wrong.append(f"{revocation.name}: revokes number {revoked}, which is not the certificate that it names")
        return wrong

    def _unknown_windows(self) -> list[str]:
        """Return the numbers up to the last window of which the journal knows nothing."""
        numbers = {number for number, _ in self.states} | {number for number, _ in self.certificates}
        known = {number for number, _ in self.states}
        unknown = [number for number in range(1, max(numbers, default=0) + 1) if number not in known]
        return [f"window {number} is missing from the journal: windows have no holes" for number in unknown]

    def uncertified(self) -> list[str]:
        """Return the windows up to the last certified one without a standing certificate, and their state."""
        standing = {number for (number, _), entry in self.certificates.items() if entry.ordinal not in self.revoked}
        last = max((number for number, _ in self.certificates), default=0)
        states = {number: state for (number, _), state in sorted(self.states.items())}
        return [
            f"window {number} has no certificate that stands; the journal has it as {states[number].value}"
            for number in range(1, last + 1)
            if number not in standing and number in states and states[number] is not WindowState.CERTIFIED
        ] + [sentence for certificate in self.standing() for sentence in _overdue(certificate)]

    def standing(self) -> list[ChainEntry]:
        """Return the newest certificate of each revision, as far as it is not revoked."""
        return [entry for _, entry in sorted(self.certificates.items()) if entry.ordinal not in self.revoked]

    def handed_over(self) -> HandedOver | None:
        """Return what the newest window whose certificate stands left to the next one."""
        standing = [place for place, entry in self.certificates.items() if entry.ordinal not in self.revoked]
        if not standing:
            return None
        newest = max(standing)
        return HandedOver(window=newest[0], keys=self.certificates[newest].handed_over)


def _overdue(entry: ChainEntry) -> list[str]:
    """Return which findings a certificate leaves as they are until a moment that has passed."""
    body_part = entry.body.get("accepted")
    words = body_part.get("acceptances") if isinstance(body_part, Mapping) else None
    moments = [word.get("until") for word in words or () if isinstance(word, Mapping)]
    now = datetime.now(UTC)
    return [
        f"window {entry.number} is certified with findings accepted until {moment}, which has passed: they are open "
        "again, and the next run of the pipeline revokes its certificate"
        for moment in dict.fromkeys(moment for moment in moments if isinstance(moment, str))
        if datetime.fromisoformat(moment) <= now
    ]
