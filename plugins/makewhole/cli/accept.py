"""Run `makewhole accept`: leave findings as they are by a person's word, answer for one, take one back, list them."""

import json as json_format
import uuid
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from makewhole.cli.airflow_api import Access, AirflowRefusedError, access, airflow
from makewhole.cli.documents import acceptance_document, window_document
from makewhole.cli.environment import Exit, console, exit_of, print_table, printable, service_environment
from makewhole.cli.plan.answer import Yes, send_answer
from makewhole.cli.plan.open_questions import question_about
from makewhole.cli.report import show_windows
from makewhole.cli.runs.follow import follow
from makewhole.cli.runs.paused import require_released
from makewhole.cli.runs.run import parse_time
from makewhole.compensation.acceptance.answer import require_revocable
from makewhole.compensation.acceptance.ask import AcceptRequest, check_request
from makewhole.compensation.acceptance.choose import Chosen
from makewhole.journal import acceptances, windows
from makewhole.journal.database import connect
from makewhole.model.acceptance import Acceptance, AcceptanceState, Selection, by_ids
from makewhole.model.errors import PermanentError, RefusedError
from makewhole.model.pipeline import Approval
from makewhole.model.text import counted
from makewhole.model.verdict import Cause
from makewhole.model.window import WindowState
from makewhole.orchestration.access import accept_dag_of
from makewhole.window.context import find_pipeline

_console = console()
_errors = console(stderr=True)
_FORBIDDEN = 403

_PipelineOrNone = Annotated[
    str | None, typer.Argument(metavar="[PIPELINE]", help="Name of the pipeline; alone it lists what is accepted.")
]
_FromWindow = Annotated[int | None, typer.Option("--window", help="The window of the findings.", show_default=False)]
_FindingIds = Annotated[
    list[str] | None,
    typer.Option(
        "--finding",
        metavar="ID",
        help="A finding by its id, or a key, as `makewhole findings` shows them; several times for several.",
        show_default=False,
    ),
]
_OfCause = Annotated[
    Cause | None,
    typer.Option(
        "--cause",
        metavar="CAUSE",
        help="All open findings of a cause, as `makewhole findings` shows it.",
        show_default=False,
    ),
]
_AllOpen = Annotated[bool, typer.Option("--all", help="All open findings of the window.")]
_WhyAccepted = Annotated[
    str | None, typer.Option("--reason", help="Why; it is signed into the certificate.", show_default=False)
]
_UntilWhen = Annotated[
    datetime | None,
    typer.Option(
        "--until",
        parser=parse_time,
        metavar="TIME",
        help="When they are open again; UTC unless it says otherwise. For good when not given.",
        show_default=False,
    ),
]


def _named(option: str, help_text: str) -> Any:
    return typer.Option(option, metavar="ID", help=help_text, show_default=False)


def accept(
    pipeline: _PipelineOrNone = None,
    window: _FromWindow = None,
    finding: _FindingIds = None,
    cause: _OfCause = None,
    is_all: _AllOpen = False,
    reason: _WhyAccepted = None,
    until: _UntilWhen = None,
    revoke: Annotated[str | None, _named("--revoke", "Take this acceptance back, with a --reason.")] = None,
    approve: Annotated[str | None, _named("--approve", "Approve what another person asks to accept.")] = None,
    reject: Annotated[str | None, _named("--reject", "Reject it.")] = None,
    yes: Yes = False,
    is_followed: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for the end.")] = True,
    json: Annotated[bool, typer.Option("--json", help="One JSON object; of a list, one a line.")] = False,
) -> None:
    """Accept findings of a judged window that cannot, or shall not, be repaired: by name, with a reason, signed into
    the chain. They stay listed, do not fail the gate, and are open again when their key changes, when --until has
    passed, or with --revoke. Nothing is written to any table or topic.

    Exit code: that of the window (0 certified, 1 gaps remain, 3 not known); 2: it cannot be accepted, and why.
    """
    answers = [given for given in (revoke, approve, reject) if given]
    if len(answers) > 1 or (answers and (finding or cause or is_all or until)):
        raise typer.BadParameter("--revoke, --approve and --reject stand alone, each with the id of an acceptance")
    if not answers and pipeline is None:
        raise typer.BadParameter("name the pipeline: makewhole accept PIPELINE")
    lists = not (answers or finding or cause or is_all or window)
    selection = None if answers or lists else _selection(finding or [], cause, window, is_all=is_all)
    code = None
    with service_environment():
        if approve or reject:
            _answer(str(approve or reject), "Approve" if approve else "Reject", is_sure=yes, json=json)
        elif revoke:
            code = _run(_revocation(revoke, reason or ""), is_followed=is_followed, json=json)
        elif selection is None or window is None:
            _list(str(pipeline), json=json)
        else:
            form = _form(str(pipeline), window, selection, reason or "", until)
            code = _run(form, is_followed=is_followed, json=json)
    if code is not None:
        raise typer.Exit(code)


def _selection(findings: list[str], cause: Cause | None, window: int | None, *, is_all: bool) -> Selection:
    """Return the findings that are named, in one way, of one window."""
    if window is None:
        raise typer.BadParameter("name the window of the findings: --window N")
    if sum((bool(findings), cause is not None, is_all)) != 1:
        raise typer.BadParameter("name what is accepted in one way: --finding ID, --cause CAUSE or --all")
    return Selection(names=tuple(findings), cause=cause)


def _form(pipeline: str, window: int, selection: Selection, reason: str, until: datetime | None) -> dict[str, Any]:
    """Return the form of the run, after the journal was asked whether there is anything to accept. Findings are in it
    by their ids: Airflow keeps forms, and no erasure of a key reaches them."""
    request = AcceptRequest(
        pipeline=pipeline,
        window=window,
        selection=selection,
        reason=reason,
        until=until,
        asked_by=access().user,
        run=uuid.uuid4().hex,
    )
    with connect() as journal:
        chosen = check_request(journal, find_pipeline(pipeline), request)
    _show_chosen(chosen)
    return {
        "pipeline": pipeline,
        "window": window,
        **by_ids(selection, chosen.findings).to_json_dict(),
        "all": selection.is_all,
        "reason": reason,
        "until": None if until is None else until.isoformat(),
        "revoke": None,
    }


def _show_chosen(chosen: Chosen) -> None:
    """Print what is accepted, and what cannot be."""
    _errors.print(f"{chosen.window.label}: {counted(len(chosen.findings), 'finding')} to accept")
    for sentence in chosen.sentences():
        _errors.print(Text(printable(sentence), style="yellow"))


def _revocation(acceptance: str, reason: str) -> dict[str, Any]:
    with connect() as journal:
        known = acceptances.get(journal, acceptance)
    # Whether this person may is asked where the rights are: by the run.
    require_revocable(known, access().user, reason, Approval(), {})
    form = {"pipeline": known.pipeline, "window": known.window, "findings": None, "cause": None, "all": False}
    return form | {"reason": reason, "until": None, "revoke": acceptance}


def _run(form: dict[str, Any], *, is_followed: bool, json: bool) -> Exit | None:
    """Start the run, follow it, and print what became of it; return the code of its window."""
    out, where, dag = console(stderr=json), access(), accept_dag_of(find_pipeline(form["pipeline"]))
    with airflow(where) as api:
        api.wait_for_dag(dag)
        require_released(api, where, dag)
        run_id = _trigger(api, where, dag, form)
        out.print(f"run {run_id}: {where.run_url(dag, run_id)}")
        if is_followed:
            follow(api, dag, run_id, out, where)
    document = _document(form, run_id)
    if json:
        typer.echo(json_format.dumps(document, ensure_ascii=False))
    elif is_followed:
        _show(out, document, where.run_url(dag, run_id))
    return _exit_of(document, is_revocation=bool(form["revoke"])) if is_followed else None


def _trigger(api: Any, where: Access, dag: str, form: dict[str, Any]) -> str:
    try:
        return str(api.trigger(dag, form))
    except AirflowRefusedError as error:
        if error.status != _FORBIDDEN:
            raise
        raise PermanentError(
            f"{where.user} may not accept anything: Airflow does not let them start the DAG {dag}. Ask a person "
            f"who may. {error}"
        ) from error


def _document(form: dict[str, Any], run_id: str) -> dict[str, Any]:
    with connect() as journal:
        if form["revoke"]:
            acceptance: Acceptance | None = acceptances.get(journal, form["revoke"])
        else:
            acceptance = acceptances.by_request(journal, form["pipeline"], run_id)
        [window] = windows.newest(journal, form["pipeline"], number=form["window"])
        return {
            "run": run_id,
            "acceptance": None if acceptance is None else acceptance_document(acceptance),
            "window": window_document(journal, window),
        }


def _exit_of(document: dict[str, Any], *, is_revocation: bool) -> Exit:
    """Return the code of a run: what its window is; that nothing was accepted, or revoked, is never a success."""
    acceptance = document["acceptance"]
    if acceptance is None:
        return Exit.COULD_NOT_RUN
    expected = AcceptanceState.REVOKED if is_revocation else AcceptanceState.STANDING
    if acceptance["state"] != expected.value:
        return Exit.COULD_NOT_RUN if is_revocation else Exit.GAPS_REMAIN
    return exit_of(WindowState(document["window"]["state"]))


def _show(out: Console, document: dict[str, Any], url: str) -> None:
    acceptance = document["acceptance"]
    if acceptance is None:
        out.print(f"nothing was accepted; the log of the task `plan` says why: {url}")
        return
    out.print(Text(printable(_line(acceptance))))
    show_windows(out, [document["window"]])
    certificate = document["window"]["certificate"]
    if certificate and certificate["revoked_by"] is None:
        out.print(f"certificate: {certificate['uri']}")


def _line(document: dict[str, Any]) -> str:
    """Return an acceptance in one line."""
    until = "" if document["until"] is None else f" until {document['until'][:16].replace('T', ' ')} UTC"
    answer = "not answered yet" if document["decided_by"] is None else f"answered by {document['decided_by']}"
    what = f"acceptance {document['id']}: {counted(document['findings'], 'finding')} of window {document['window']}"
    ended = f"; revoked by {document['revoked_by']}: {document['revoked_because']}" if document["revoked_by"] else ""
    return f"{what}, {document['state']}{until}, asked by {document['asked_by']}, {answer}: {document['reason']}{ended}"


def _list(pipeline: str, *, json: bool) -> None:
    """Print every acceptance of a pipeline."""
    with connect() as journal:
        rows = [acceptance_document(acceptance) for acceptance in acceptances.of_pipeline(journal, pipeline)]
        if not rows:
            find_pipeline(pipeline)
    if json:
        for row in rows:
            typer.echo(json_format.dumps(row, ensure_ascii=False))
        return
    if not rows:
        _console.print(f"{pipeline}: nothing was accepted")
        return
    table = Table(box=None, pad_edge=False)
    headings = ("id", "window", "findings", "state", "asked by", "answered by", "until", "reason")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        until = "for good" if row["until"] is None else row["until"][:16].replace("T", " ")
        cells = (row["id"], row["window"], row["findings"], row["state"], row["asked_by"], row["decided_by"] or "")
        table.add_row(*(Text(printable(str(cell))) for cell in (*cells, until, row["reason"])))
    print_table(_console, table)


def _answer(acceptance: str, option: str, *, is_sure: bool, json: bool) -> None:
    """Answer for what another person asks to accept, through Airflow, as the person who calls this."""
    with connect() as journal:
        known = acceptances.get(journal, acceptance)
    if known.state is not AcceptanceState.AWAITING_APPROVAL:
        raise RefusedError(f"acceptance {acceptance} is {known.state.value} and waits for no answer")
    person = access()
    with airflow(person) as api:
        question = question_about(api, acceptance)
        if question is None:
            raise RefusedError(f"no run of Airflow waits for an answer to acceptance {acceptance}; ask again")
        subject = (f"acceptance {acceptance}", acceptance)
        send_answer(api, person, subject, question, option, is_sure=is_sure, json=json)
