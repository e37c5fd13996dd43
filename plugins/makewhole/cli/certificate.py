"""Run `makewhole certificate verify` and `certificate keygen`: check the proofs of a pipeline, make a key for them."""

import json as json_format
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from makewhole.cli.environment import AsJson, Exit, console, printable, reporting_errors, service_environment
from makewhole.cli.export import verify_export
from makewhole.journal import windows
from makewhole.journal.database import connect
from makewhole.lake.storage import Storage
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.model.text import counted
from makewhole.signing.key_files import (
    PRIVATE_FILE,
    PUBLIC_FILE,
    PUBLIC_KEYS_VARIABLE,
    believed_keys,
    make_key_files,
)
from makewhole.window.certifying.certificate_check import ChainEvidence, CheckedChain, HandedOver, Head, check_chain
from makewhole.window.certifying.chain_evidence import file_problems, read_evidence
from makewhole.window.certifying.erased_contents import erased_contents
from makewhole.window.context import find_pipeline

certificate_app = typer.Typer(no_args_is_help=True, help="The proofs that windows are closed.")
_console = console()

PublicKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--public-key",
        metavar="FILE",
        help="PEM file of a public key that is believed; several times for several.",
        show_default=False,
    ),
]
Heads = Annotated[
    list[str] | None,
    typer.Option(
        "--head",
        metavar="NUMBER:SHA256",
        help="An entry that the chain had, as an asset event of Airflow has kept it; several times for several.",
        show_default=False,
    ),
]


Exported = Annotated[
    Path | None,
    typer.Option(
        "--export", metavar="FILE", help="Check this archive of `makewhole export` by itself.", show_default=False
    ),
]


@certificate_app.command("verify")
def verify_certificates(
    pipeline: Annotated[str | None, typer.Argument(help="Name of the pipeline.", show_default=False)] = None,
    public_key: PublicKeys = None,
    head: Heads = None,
    files: Annotated[bool, typer.Option("--files", help="Hash every file of the snapshots again, too.")] = False,
    export: Exported = None,
    json: AsJson = False,
) -> None:
    """Check the chain of certificates with public keys alone: signatures, none missing, none changed, each as its
    anchor beside the files, and every certified window with one. Exit code 0: sound, 1: not, 3: nothing is proven
    (without any public key no signature is checked), 5: sound, and windows before the last certified one are open.

    With `--export`: that of an archive which `makewhole export` wrote, by itself, without journal and connections.
    Exit code 5: sound, and no certificate stands for its window."""
    if (pipeline is None) == (export is None) or (export is not None and (files or head)):
        raise typer.BadParameter("name a pipeline, or an archive with --export; --head and --files go with a pipeline")
    if export is not None:
        verify_export(export, public_key or [], as_json=json)
        return
    assert pipeline is not None
    with service_environment():
        heads = [_parsed_head(text) for text in head or []]
        ring = believed_keys(public_key or [])
        with connect() as journal:
            storage = Storage.from_environment()
            evidence = read_evidence(journal, storage, pipeline, ring, heads)
            if not (evidence.entries or evidence.anchors or heads or pipeline in windows.pipelines(journal)):
                find_pipeline(pipeline)  # a wrong name has proofs of nothing
            checked = check_chain(evidence)
            erased = erased_contents(journal, pipeline, ring)
            changed = list(file_problems(journal, storage, evidence.entries, erased)) if files else []
            checked = replace(checked, problems=[*checked.problems, *erased.problems, *changed])
    if json:
        document = _document(pipeline, evidence, checked) | {"erased": list(erased.sentences)}
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    else:
        _print(pipeline, evidence, checked)
        for sentence in erased.sentences:
            _console.print(Text(printable(sentence)))
    code = _exit_of(checked)
    if code is not Exit.CERTIFIED:
        raise typer.Exit(code)


def _parsed_head(text: str) -> Head:
    ordinal, _, sha256 = text.partition(":")
    if not (ordinal.isascii() and ordinal.isdigit() and len(sha256) == 64):
        raise ConfigurationError(
            [
                Problem(
                    file="command line",
                    path="--head",
                    found=f"{text!r} is no number with a hash",
                    remedy="Write it as 7:<64 hex digits>, as the asset event has them in `ordinal` and `sha256`",
                )
            ]
        )
    return Head(ordinal=int(ordinal), sha256=sha256)


def _exit_of(checked: CheckedChain) -> Exit:
    if not checked.is_sound:
        return Exit.GAPS_REMAIN
    if checked.signed_from is None or checked.unchecked:
        return Exit.NOT_KNOWN
    return Exit.CERTIFIED if checked.is_complete else Exit.OPEN_WINDOWS


def _document(pipeline: str, evidence: ChainEvidence, checked: CheckedChain) -> dict[str, Any]:
    last = evidence.entries[-1] if evidence.entries else None
    return {
        "pipeline": pipeline,
        "certificates": sum(entry.revokes is None for entry in evidence.entries),
        "revocations": sum(entry.revokes is not None for entry in evidence.entries),
        "ok": checked.is_complete and not checked.unchecked,
        "unchecked": list(checked.unchecked),
        "sound": checked.is_sound,
        "signed_from": checked.signed_from,
        "keys": sorted(evidence.ring.keys),
        "head": None if last is None else {"ordinal": last.ordinal, "sha256": last.sha256},
        "accepted": checked.accepted,
        "handed_over": None if checked.handed_over is None else vars(checked.handed_over),
        "problems": checked.problems,
        "uncertified": checked.uncertified,
    }


def _print(pipeline: str, evidence: ChainEvidence, checked: CheckedChain) -> None:
    for problem in checked.problems:
        _console.print(Text(printable(problem), style="red"))
    for sentence in checked.uncertified:
        _console.print(Text(printable(sentence), style="yellow"))
    certificates = counted(sum(entry.revokes is None for entry in evidence.entries), "certificate")
    revoked = sum(entry.revokes is not None for entry in evidence.entries)
    counts = f"{certificates}, {counted(revoked, 'revocation')}" if revoked else certificates
    accepted = f", with {checked.accepted:,} accepted" if checked.accepted else ""
    _console.print(f"{pipeline}: {counts}{accepted}, {_verdict(evidence, checked)}")
    if checked.unchecked:
        _console.print(Text(printable(_key_to_give(pipeline, checked.unchecked))))
    if checked.handed_over is not None and checked.handed_over.keys:
        _console.print(_waiting(checked.handed_over))


def _key_to_give(pipeline: str, signers: Sequence[str]) -> str:
    """Return the line to run, or to set, so that signatures are checked."""
    return (
        f"signed by {', '.join(signers)}. Give the public key, which `makewhole certificate keygen` wrote beside the "
        f"private one: makewhole certificate verify {pipeline} --public-key {PUBLIC_FILE}; or, for every call: "
        f"export {PUBLIC_KEYS_VARIABLE}=file:/path/to/{PUBLIC_FILE}"
    )


def _verdict(evidence: ChainEvidence, checked: CheckedChain) -> str:
    if checked.problems:
        return "NOT sound"
    if not evidence.entries:
        return "nothing is proven yet"
    if checked.unchecked:
        return "not proven: no public key was given, so no signature was checked"
    if checked.signed_from is None:
        return "none is signed: who issued them is not proven"
    left = f"; {counted(len(checked.uncertified), 'window')} before the last one open" if checked.uncertified else ""
    if checked.signed_from > 1:
        return (
            f"sound; signed from number {checked.signed_from} on, whose hash vouches for those before as they were "
            f"then{left}"
        )
    return f"sound, signed by {', '.join(sorted({str(entry.signed_by) for entry in evidence.entries}))}{left}"


def _waiting(handed: HandedOver) -> str:
    are = "key is" if handed.keys == 1 else "keys are"
    return f"window {handed.window}: {handed.keys:,} {are} in flight and handed over to the next window; not proven"


@certificate_app.command("keygen")
def make_key(
    folder: Annotated[Path, typer.Argument(help="Folder for the two files; a key in it is never overwritten.")],
    json: AsJson = False,
) -> None:
    """Make a key that signs certificates: private.pem, for the service alone, and public.pem, for everybody."""
    with reporting_errors():
        key = make_key_files(folder)
    private, public = folder / PRIVATE_FILE, folder / PUBLIC_FILE
    if json:
        typer.echo(json_format.dumps({"id": key.public.id, "private": str(private), "public": str(public)}))
        return
    _console.print(f"key {key.public.id}")
    _console.print(f"private: {private}; give it to the service with MAKEWHOLE_SIGNING_KEY=file:{private}")
    _console.print(f"public:  {public}; `makewhole certificate verify PIPELINE --public-key {public}` needs it alone")
