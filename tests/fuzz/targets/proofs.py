"""Fuzz what proves a window: anchors of a chain, and the archive for an auditor. Whatever is changed is refused."""

import hashlib
import io
import json
import struct
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

from makewhole.compensation.freezing.plan_hash import plan_hash
from makewhole.export import window_archive as archive
from makewhole.export.check_window import CheckedExport, check_export
from makewhole.export.window_archive import written_archive
from makewhole.model.errors import CorruptionError, RefusedError
from makewhole.signing.keys import sha256_of
from makewhole.window.certifying.certificate_chain import anchor_bytes
from makewhole.window.certifying.certificate_check import check_chain, read_anchor
from tests.fuzz.mutations import mutated, one_byte_changed
from tests.unit.window.test_certificate_check import RING, chain, entry, evidence

_PLAN, _PAYLOAD = "demo-2-1", hashlib.sha256(b"payload").hexdigest()
_ACTIONS = b"1\tO1\tinsert\n2\tO2\tinsert\n"
_MANIFESTS = {"orders": {"rows": 5, "sha256": {"a.parquet": "00"}}, "outbox": {"rows": 6}}
_FINDINGS = [{"key": f"O{number}", "verdict": "missing", "cause": "lost"} for number in range(2)]
_ODD: tuple[Any, ...] = (None, True, -1, 0, 1, 2, 10**30, 1.5, "", "x", "\ud800", [], {}, [1], {"by": 1}, "0" * 64)


def _plan_sha256() -> str:
    digest = plan_hash("demo", 2, _PAYLOAD)
    digest.update(_ACTIONS)
    return str(digest.hexdigest())


def _links() -> list[Any]:
    first = entry(1, None, 1)
    manifests = {point: {"manifest_sha256": sha256_of(manifest)} for point, manifest in _MANIFESTS.items()}
    second = entry(
        2,
        first.sha256,
        2,
        decided_by={"snapshots": manifests},
        how={
            "findings": {"missing:lost": 2},
            "plan": {"id": _PLAN, "sha256": _plan_sha256(), "approval": {"by": "oncall"}},
        },
        accepted={"findings": 1, "acceptances": [{"until": "2999-01-01T00:00:00+00:00"}]},
        handed_over={"keys": 3},
    )
    return [first, second]


class Anchors:
    """The newest anchor of a chain."""

    def __init__(self) -> None:
        self._links = chain(3)
        self._content = anchor_bytes(self._links[2])

    def draw(self, random: Random) -> bytes:
        """Return an anchor that is changed in its bytes, or in a field."""
        match random.randrange(4):
            case 0:
                return one_byte_changed(self._content, random)
            case 1:
                return mutated(self._content, random, [anchor_bytes(link) for link in self._links])
            case 2:
                return json.dumps(json.loads(self._content), indent=random.choice((None, 0, 1, 2))).encode()
            case _:
                return json.dumps(_with_odd_value(json.loads(self._content), random)).encode()

    def check(self, content: bytes) -> None:
        """Hold the check of a chain to a problem, unless the anchor is as it was written."""
        given = evidence(self._links)
        anchors = [*given.anchors[:2], read_anchor("/s/000003.json", 3, content)]
        problems = check_chain(replace(given, anchors=anchors)).problems
        assert bool(problems) == (content != self._content), problems
        "\n".join(problems).encode()
        check_chain(replace(given, anchors=[*anchors, given.anchors[2], read_anchor("/s/4.json", 4, content)]))


def _with_odd_value(document: Any, random: Random) -> Any:
    """Return a document in which one value, however deep, is another one, or is gone."""
    if isinstance(document, dict) and document and random.randrange(6):
        name = random.choice(list(document))
        if not random.randrange(8):
            return {key: value for key, value in document.items() if key != name}
        return document | {name: _with_odd_value(document[name], random)}
    if isinstance(document, list) and document and random.randrange(6):
        at = random.randrange(len(document))
        return [*document[:at], _with_odd_value(document[at], random), *document[at + 1 :]]
    return random.choice(_ODD)


def _members() -> dict[str, bytes]:
    links = _links()
    names = ("ordinal", "number", "revision", "digest", "body", "previous", "sha256", "uri", "kind", "revokes")
    entries = [{name: asdict(link)[name] for name in (*names, "signed_by", "signature")} for link in links]
    plan = {
        "id": _PLAN,
        "sha256": _plan_sha256(),
        "payload_sha256": _PAYLOAD,
        "approval": {"by": "oncall", "decision": "approved"},
    }
    documents: Mapping[str, Any] = {
        archive.CHAIN: {"pipeline": "demo", "entries": entries},
        archive.STATES: [{"number": number, "revision": 1, "state": "certified"} for number in (1, 2)],
        archive.WINDOW: {"pipeline": "demo", "window": 2, "revision": 1},
        archive.MANIFESTS: _MANIFESTS,
        archive.GATE: [],
        archive.PLAN: plan,
    }
    members = {name: json.dumps(document, indent=1).encode() for name, document in documents.items()}
    members |= {f"{archive.ANCHORS}{link.ordinal:06d}.json": anchor_bytes(link) for link in links}
    members[archive.FINDINGS] = b"".join(json.dumps(finding).encode() + b"\n" for finding in _FINDINGS)
    return members | {archive.ACTIONS: _ACTIONS, archive.README: b"# demo\n", archive.PUBLIC_KEYS: b"---\n"}


class Archives:
    """An archive of a window: its bytes, or its members as they may have been written again. The first byte says
    whether the digests in it are those of its members."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self._members, self._path = _members(), folder / "fuzzed.zip"
        self._whole = self._written(self._members)
        self._sound = [json.loads(self._members[name]) for name in (archive.CHAIN, archive.MANIFESTS)]

    def _written(self, members: Mapping[str, bytes]) -> bytes:
        path = self._path.with_name("whole.zip")
        path.unlink(missing_ok=True)
        with written_archive(path) as writer:
            for name, content in members.items():
                writer.add_lines(name, content.splitlines(keepends=True))
        return path.read_bytes()

    def draw(self, random: Random) -> bytes:
        """Return an archive with damaged bytes, or with a member that is another one."""
        match random.randrange(6):
            case 0 | 1:
                return one_byte_changed(self._whole, random)
            case 2:
                return mutated(self._whole, random)
            case 3:
                return self._again(random)
            case _:
                name = random.choice(list(self._members))
                return self._written({**self._members, name: self._other(name, random)})

    def _other(self, name: str, random: Random) -> bytes:
        """Return another content of a member, which a forger makes fit the digests."""
        content = self._members[name]
        if random.randrange(2) or not name.endswith(".json"):
            return mutated(content, random, list(self._members.values()))
        return json.dumps(_with_odd_value(json.loads(content), random)).encode()

    def _again(self, random: Random) -> bytes:
        """Return the members written by another program, one of them damaged or named twice."""
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self._whole)) as whole, zipfile.ZipFile(made, "w") as into:
            names = whole.namelist()
            damaged = random.choice(names)
            for name in names:
                content = whole.read(name)
                into.writestr(name, mutated(content, random) if name == damaged else content)
        return made.getvalue()

    def check(self, content: bytes) -> None:
        """Hold the check to a refusal, unless all that is signed is as it was."""
        self._path.write_bytes(content)
        try:
            checked = check_export(self._path, RING)
        except (RefusedError, CorruptionError) as error:
            assert content != self._whole, error
            str(error).encode()
            return
        sentences = [*checked.problems, *checked.chain.problems, *checked.chain.uncertified]
        "\n".join(sentences).encode()
        is_sound = not sentences and checked.certificate is not None
        assert is_sound or content != self._whole, sentences
        if is_sound:
            self._require_as_signed(content, checked)

    def _require_as_signed(self, content: bytes, checked: CheckedExport) -> None:
        assert (checked.pipeline, checked.window, checked.revision) in [("demo", 1, 1), ("demo", 2, 1)]
        with zipfile.ZipFile(io.BytesIO(content)) as opened:
            members = {name: opened.read(name) for name in opened.namelist()}
        bodies = [chained["body"] for chained in json.loads(members[archive.CHAIN])["entries"]]
        assert bodies == [chained["body"] for chained in self._sound[0]["entries"]]
        for name in members:
            if name.startswith(archive.ANCHORS):
                assert members[name] == self._members[name], name
        if checked.window == 2:
            assert json.loads(members[archive.MANIFESTS]) == self._sound[1]
            assert members[archive.ACTIONS] == _ACTIONS
        if {name: member for name, member in members.items() if name != archive.CONTENTS} == self._members:
            self._require_container(content)

    def _require_container(self, content: bytes) -> None:
        """Hold the bytes around the members to those that were written: what differs is how a member is packed."""
        whole, with_changes = (_without_packed(proof) for proof in (self._whole, content))
        assert with_changes == whole, "bytes of the archive outside of its members differ"


def _without_packed(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        spans = []
        for member in opened.infolist():
            names = struct.unpack_from("<HH", content, member.header_offset + 26)
            start = member.header_offset + 30 + sum(names)
            spans.append((start, start + member.compress_size))
    kept, at = [], 0
    for start, end in spans:
        kept.append(content[at:start])
        at = end
    return b"".join([*kept, content[at:]])


def proofs() -> Mapping[str, Callable[[], Any]]:
    """Return the targets."""
    return {"anchors": Anchors, "archives": Archives}
