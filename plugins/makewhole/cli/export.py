"""Run `makewhole export`, which writes the archive of a window for an auditor, and check such an archive by itself."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from makewhole.cli.documents import chosen_windows, finding_document, shown_values, window_document
from makewhole.cli.environment import AsJson, Exit, console, printable, reporting_errors, service_environment
from makewhole.export.check_window import CheckedExport, check_export
from makewhole.export.write_window import WindowExport, export_window
from makewhole.journal.database import connect
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.lake.storage import Storage
from makewhole.model.text import counted, size
from makewhole.signing.key_files import PUBLIC_KEYS_VARIABLE, believed_keys

_console = console()


def export(
    pipeline: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    window: Annotated[int, typer.Option("--window", help="Number of the window.", show_default=False)],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The archive that is written.", show_default=False)
    ],
    revision: Annotated[
        int | None, typer.Option(help="This revision; the newest when not given.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Write one archive of a window for an auditor: the chain of certificates with its anchors, what was read, counts,
    the gate, findings, and the plan with its approval. It is a ZIP file that its owner alone may read.

    `makewhole certificate verify --export FILE --public-key FILE` checks it without journal and connections.
    """
    with service_environment(), connect() as journal:
        chosen = next(chosen_windows(journal, pipeline, window, revision))
        shown, stored = shown_values(pipeline), StoredFindings(window=chosen)
        findings = (finding_document(chosen, finding, shown=shown) for finding in stored.in_order(journal))
        exported = WindowExport(
            window=chosen,
            document=window_document(journal, chosen),
            findings=findings,
            ring=believed_keys(),
        )
        export_window(journal, Storage.from_environment(), exported, output)
    size_bytes = output.stat().st_size
    if json:
        document = {"pipeline": pipeline, "window": chosen.number, "revision": chosen.revision, "file": str(output)}
        typer.echo(json_format.dumps({**document, "size_bytes": size_bytes}))
        return
    _console.print(f"{chosen.label}: {output}, {size(size_bytes)}")
    _console.print(f"check it by itself: makewhole certificate verify --export {output} --public-key public.pem")


def verify_export(path: Path, public_keys: Sequence[str], *, as_json: bool) -> None:
    """Check an archive, print what was found, and end with the exit code of that."""
    with reporting_errors():
        checked = check_export(path, believed_keys(public_keys))
        code = _exit_of(checked)
    if as_json:
        typer.echo(json_format.dumps(_document(checked), ensure_ascii=False))
    else:
        for problem in (*checked.problems, *checked.chain.problems):
            _console.print(Text(printable(problem), style="red"))
        _console.print(Text(printable(_sentence(checked, code))))
    if code is not Exit.CERTIFIED:
        raise typer.Exit(code)


def _exit_of(checked: CheckedExport) -> Exit:
    if checked.problems or not checked.chain.is_sound:
        return Exit.GAPS_REMAIN
    if checked.chain.signed_from is None or checked.chain.unchecked:
        return Exit.NOT_KNOWN
    is_signed = checked.certificate is not None and checked.certificate.signed_by is not None
    return Exit.CERTIFIED if is_signed else Exit.OPEN_WINDOWS


def _sentence(checked: CheckedExport, code: Exit) -> str:
    if checked.pipeline is None:
        return "NOT sound: the archive is not as it was written"
    name = f"{checked.pipeline} window {checked.window} (revision {checked.revision})"
    if code is Exit.GAPS_REMAIN:
        return f"{name}: NOT sound"
    if code is Exit.NOT_KNOWN:
        signers = ", ".join(checked.chain.unchecked)
        why = f"signed by {signers}, and no public key was given" if signers else "nothing of its chain is signed"
        return (
            f"{name}: not proven: {why}. Give one from whoever you trust for it: --public-key FILE, or "
            f"{PUBLIC_KEYS_VARIABLE}"
        )
    if checked.certificate is None or code is Exit.OPEN_WINDOWS:
        return f"{name}: the archive is sound, and no certificate stands for this window"
    entries = counted(len(checked.evidence.entries), "entry", "entries")
    accepted = f", with {checked.certificate.accepted:,} accepted" if checked.certificate.accepted else ""
    return (
        f"{name}: sound, certificate {checked.certificate.ordinal} in a chain of {entries} signed by "
        f"{checked.certificate.signed_by}{accepted}"
    )


def _document(checked: CheckedExport) -> dict[str, Any]:
    certificate = checked.certificate
    return {
        "pipeline": checked.pipeline,
        "window": checked.window,
        "revision": checked.revision,
        "ok": _exit_of(checked) is Exit.CERTIFIED,
        "sound": not checked.problems and checked.chain.is_sound,
        "certificate": None if certificate is None else certificate.ordinal,
        "sha256": None if certificate is None else certificate.sha256,
        "keys": sorted(checked.evidence.ring.keys),
        "unchecked": list(checked.chain.unchecked),
        "problems": [*checked.problems, *checked.chain.problems],
    }
