"""Test the archive of a window: what is in it, that it is checked by itself, and that no change goes unnoticed."""

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from makewhole.cli.main import app
from makewhole.export import window_archive as archive
from makewhole.model.window import WindowState
from makewhole.signing.key_files import make_key_files, signing_key_from_environment
from tests.integration.spark.test_keep import UPSERT, repaired
from tests.world.orders import orders
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Members = dict[str, bytes]


@pytest.fixture
def exported(shop: ReconciledShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The archive of a window that was repaired, the second of two, and the public key; nothing of the service is known
    any more."""
    shop.describe(compensation=UPSERT)
    shop.trade(orders(range(5)))
    shop.whole_way(0)
    made = orders(range(100, 105), 1)
    shop.trade(made, unloaded=made[:2])
    repaired(shop, 1)
    return export(shop, tmp_path, monkeypatch)


def export(shop: ReconciledShop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Export window 2, then forget the service."""
    file, public = folder / "window-2.zip", folder / "auditor.pem"
    public.write_text(signing_key_from_environment().public.pem())
    answer = CliRunner().invoke(app, ["export", "shop", "--window", "2", "-o", str(file), "--json"])
    assert (answer.exit_code, json.loads(answer.output)["size_bytes"]) == (0, file.stat().st_size)
    for name in [name for name in os.environ if name.startswith(("MAKEWHOLE_", "AIRFLOW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MAKEWHOLE_HOME", str(folder / "nowhere"))
    return file, public


def verify(file: Path, *keys: Path) -> tuple[int, str]:
    options = [part for key in keys for part in ("--public-key", str(key))]
    answer = CliRunner().invoke(app, ["certificate", "verify", "--export", str(file), *options])
    return answer.exit_code, " ".join(answer.output.split())


def members(file: Path) -> Members:
    with zipfile.ZipFile(file) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def write(file: Path, content: Members, *, is_consistent: bool) -> Path:
    """Write an archive again, with the digests of what is in it if the forger thinks of them."""
    if is_consistent:
        digests = {name: hashlib.sha256(content[name]).hexdigest() for name in sorted({*content} - {archive.CONTENTS})}
        content = {**content, archive.CONTENTS: json.dumps({"format": 1, "sha256": digests}, indent=1).encode()}
    forged = file.with_name("forged.zip")
    with zipfile.ZipFile(forged, "w") as into:
        writer = archive.ArchiveWriter(into=into)
        for name, line in content.items():
            writer.add_lines(name, [line])
    return forged


def test_an_auditor_checks_a_window_with_nothing_but_the_archive_and_a_key(
    exported: tuple[Path, Path], tmp_path: Path
) -> None:
    file, public = exported
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = members(file)
    assert [*content] == [
        "README.md",
        "chain.json",
        "anchors/000001.json",
        "anchors/000002.json",
        "windows.json",
        "window.json",
        "manifests.json",
        "gate.json",
        "findings.jsonl",
        "plan.json",
        "actions.tsv",
        "public.pem",
        "contents.json",
    ]
    assert content["public.pem"] == public.read_bytes()
    assert b"makewhole certificate verify --export window-2.zip --public-key public.pem" in content["README.md"]
    findings = [json.loads(line) for line in content["findings.jsonl"].splitlines()]
    assert [(finding["key"], finding["verdict"], finding["outcome"]) for finding in findings] == [
        ("O100", "missing", "repaired"),
        ("O101", "missing", "repaired"),
    ]
    plan = json.loads(content["plan.json"])
    assert (plan["state"], plan["counts"], plan["approval"]["decision"]) == ("done", {"upsert": 2}, "not_needed")

    code, text = verify(file, public)
    assert (code, text.startswith("shop window 2 (revision 1): sound, certificate 2 in a chain of 2 entries")) == (
        0,
        True,
    )
    code, text = verify(file)
    assert (code, "and no public key was given" in text) == (3, True)
    make_key_files(tmp_path / "other")
    code, text = verify(file, tmp_path / "other" / "public.pem")
    assert (code, "which is none of those given" in text) == (1, True)


def body_of(content: Members, change: Callable[[dict[str, object]], None]) -> bytes:
    chain = json.loads(content["chain.json"])
    change(chain["entries"][1]["body"])
    return json.dumps(chain).encode()


FORGED: dict[str, tuple[str, Callable[[Members], bytes], str]] = {
    "a certificate": (
        "chain.json",
        lambda content: body_of(content, lambda body: body.update(reach={"from": "ledger"})),
        "certificate 2 (window 2): its content was changed after it was issued",
    ),
    "an anchor": (
        "anchors/000002.json",
        lambda content: content["anchors/000001.json"],
        "is not what was issued",
    ),
    "a manifest": (
        "manifests.json",
        lambda content: content["manifests.json"].replace(b'"rows": 5', b'"rows": 4'),
        "manifests.json: the manifest of orders is not the one that was certified",
    ),
    "findings": (
        "findings.jsonl",
        lambda content: content["findings.jsonl"].splitlines(keepends=True)[0],
        "findings.jsonl: has 1 findings that are missing, and the certificate 2",
    ),
    "an action": (
        "actions.tsv",
        lambda content: content["actions.tsv"].replace(b"O100", b"O999"),
        "is not what plan shop-2-",
    ),
    "an approval": (
        "plan.json",
        lambda content: json.dumps(json.loads(content["plan.json"]) | {"approval": {"by": "eve"}}).encode(),
        "is not the one that was certified",
    ),
    "a plan": (
        "plan.json",
        lambda content: json.dumps(json.loads(content["plan.json"]) | {"sha256": "0" * 64}).encode(),
        "is not the one that was certified",
    ),
    "a state": (
        "windows.json",
        lambda content: content["windows.json"].replace(b"certified", b"gaps"),
        "stands, though",
    ),
}


def test_no_change_goes_unnoticed(exported: tuple[Path, Path]) -> None:
    file, public = exported
    whole = members(file)
    for what, (name, forge, says) in FORGED.items():
        forged = {**whole, name: forge(whole)}
        assert forged[name] != whole[name], what
        code, text = verify(write(file, forged, is_consistent=True), public)
        assert (code, says in text) == (1, True), (what, text)
    for name in whole:
        if name == archive.CONTENTS:
            continue
        code, text = verify(write(file, {**whole, name: whole[name] + b"\n"}, is_consistent=False), public)
        assert (code, f"{name}: is not what was written: its SHA-256 is another one" in text) == (1, True), (name, text)
    code, text = verify(write(file, {**whole, "more.txt": b"x"}, is_consistent=False), public)
    assert (code, "more.txt: is in the archive, and contents.json does not name it" in text) == (1, True)
    without = {name: member for name, member in whole.items() if name != "plan.json"}
    code, text = verify(write(file, without, is_consistent=True), public)
    assert (code, "plan.json: is not there, and the certificate names plan" in text) == (1, True)
    code, text = verify(write(file, {**whole, "window.json": b"[]"}, is_consistent=True), public)
    assert (code, "is not as an archive of a window is written" in text) == (4, True)
    other = file.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as into:
        for name, content in whole.items():
            into.writestr(name, content)
    code, text = verify(other, public)
    assert (code, "is not packed as it was written: there are other bytes around the files in it" in text) == (1, True)
    code, text = verify(write(file, {"x": b"y"}, is_consistent=False), public)
    assert (code, "is no archive of a window: it has no contents.json" in text) == (2, True)


def test_a_file_that_is_there_is_left_as_it_is_and_a_wrong_name_is_refused(
    exported: tuple[Path, Path], tmp_path: Path
) -> None:
    file, public = exported
    code, text = verify(public, public)
    assert (code, "is no archive of a window (BadZipFile)" in text) == (2, True)
    code, text = verify(tmp_path / "none.zip", public)
    assert (code, "is no archive of a window (FileNotFoundError)" in text) == (2, True)
    before = file.read_bytes()
    with pytest.raises(Exception, match="is there already, and was left as it is"), archive.written_archive(file):
        pass
    assert (file.read_bytes(), [path.name for path in tmp_path.iterdir() if "unfinished" in path.name]) == (before, [])


def test_a_window_with_gaps_is_exported_and_has_no_certificate(
    shop: ReconciledShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.trade(orders(range(5)))
    shop.whole_way(0)
    made = orders(range(100, 105), 1)
    shop.trade(made, unloaded=made[:2])
    assert shop.whole_way(1)[1].state is WindowState.GAPS
    file, public = export(shop, tmp_path, monkeypatch)
    code, text = verify(file, public)
    assert (code, text) == (
        5,
        "shop window 2 (revision 1): the archive is sound, and no certificate stands for this window",
    )
    assert "plan.json" not in members(file)
