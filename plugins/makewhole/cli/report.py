"""Run `makewhole windows`: show what the journal knows of them."""

import json as json_format
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from makewhole.cli.airflow_api import log_url
from makewhole.cli.documents import chosen_windows, window_document
from makewhole.cli.environment import AsJsonLines, console, print_table, printable, service_environment
from makewhole.compute.judge.copier_commits import COPIER
from makewhole.journal.database import connect
from makewhole.model.incident import IncidentKind
from makewhole.model.plan import PlanState
from makewhole.model.text import REPEATS, counted
from makewhole.model.verdict import Verdict
from makewhole.model.window import WindowState
from makewhole.orchestration.notices.waiting_items import lines_of, unopened_items
from makewhole.orchestration.task_ids import BEHIND_CERTIFICATE
from makewhole.window.readers.copier_text import copier_sentence
from makewhole.window.readers.partitions_missing import PARTITIONS, partitions_sentence
from makewhole.window.readers.sink_text import SINK, sink_sentences

PipelineName = Annotated[str, typer.Argument(help="Name of the pipeline.")]
WindowNumber = Annotated[int | None, typer.Option("--window", help="Only this window.", show_default=False)]
Last = Annotated[int, typer.Option("--last", min=0, help="So many of the newest windows; 0: all.")]
_LISTED = 100

_console = console()
_COLOURS = {
    WindowState.CERTIFIED: "green",
    WindowState.GAPS: "red",
    WindowState.ERROR: "red",
    WindowState.NOT_KNOWN: "yellow",
    WindowState.OPEN: "cyan",
}


def windows(
    pipeline: PipelineName, window: WindowNumber = None, last: Last = _LISTED, json: AsJsonLines = False
) -> None:
    """List the newest windows of a pipeline, oldest first, each in its newest revision; above them the run that could
    open none since, and why (with --json as `makewhole todo --json` has it: its `window` is null)."""
    with service_environment(), connect() as journal:
        chosen = chosen_windows(journal, pipeline, window, revision=None, most=last or None)
        documents = [window_document(journal, chosen_window) for chosen_window in chosen]
        unopened = [] if window is not None else unopened_items(journal, pipeline, log_url)
    if json:
        for document in [*(item.document() for item in unopened), *documents]:
            typer.echo(json_format.dumps(document, ensure_ascii=False))
        return
    for item in unopened:
        for line in lines_of(item, datetime.now(UTC)):
            _console.print(Text(printable(line)))
    if not documents:
        if not unopened:
            _console.print(f"{pipeline} has no window yet; `makewhole run {pipeline}` opens the first")
        return
    show_windows(_console, documents)
    if (first := documents[0]["window"]) > 1 and window is None:
        _console.print(f"{counted(first - 1, 'older window')} not listed; `--last 0` lists all")
    if window is not None:
        show_reused(_console, documents)
        show_looked_at(_console, documents)
        show_readers(_console, documents)
        show_accounts(_console, documents)


def show_windows(out: Console, documents: list[dict[str, Any]]) -> None:
    """Print one line a window: what was found, what is left, its certificate; below, why the others are not
    certified."""
    table = Table(box=None, pad_edge=False)
    for heading in ("window", "rev", "from", "to", "state", "found", "left", "handed over", "digest"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("from", "to", "state", "digest"))
    for document in documents:
        state = WindowState(document["state"])
        certificate = document["certificate"]
        table.add_row(
            str(document["window"]),
            str(document["revision"]),
            short_time(document["from"]),
            short_time(document["to"]),
            Text(_state(document), style=_COLOURS[state]),
            _gaps(document, "counts"),
            _gaps(document, "after"),
            f"{document['handed_over']['keys']:,}" if document["handed_over"]["keys"] else "none",
            certificate["digest"][:12] if certificate and certificate["revoked_by"] is None else "",
        )
    print_table(out, table)
    for document in documents:
        sentences = [
            *_handed_over(document),
            *_accepted(document),
            *_counted(document),
            *(said for incident in document["incidents"] for said in (incident["message"], *_repeated(incident))),
            *_what_waits(document),
        ]
        reason = document["reason"] or ""
        new = (said for said in sentences if said not in reason)
        for sentence in [*new, *([reason] if reason else []), *_logs(document)]:
            out.print(Text(printable(f"window {document['window']}: {sentence}")))
        if document["continuations"] and document["state"] != WindowState.CERTIFIED.value:
            number, last = len(document["continuations"]), document["continuations"][-1]
            text = f"was gone on with {number} {'time' if number == 1 else 'times'}, last by run {last['run']}"
            out.print(Text(printable(f"window {document['window']}: {text} at {short_time(last['at'])}")))
    if len(documents) == 1:
        show_reach(out, documents[0])
    show_older_open(out, documents[-1])


def _counted(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each topic that no hop joins: what was held to each other."""
    for topic in document.get("topics", ()):
        yield f"{topic['point']}: {counted(topic['keys'], 'key')} in {counted(topic['records'], 'record')}"


def _repeated(incident: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each of the first keys with several records in a topic that nothing feeds."""
    if incident["kind"] == IncidentKind.REPEATED_KEYS.value:
        for entry in incident["detail"]["first"]:
            places = ", ".join([*entry["before"], *entry["places"]])
            yield f"{entry['key']} of {incident['topic']}: {REPEATS[entry['repeat']]}, at {places}"


def reach_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the standing certificate of a window says of its reach; None without one, or from before it did."""
    certificate = document["certificate"]
    if certificate is None or certificate["revoked_by"] is not None:
        return None
    reach: dict[str, Any] | None = certificate["reach"]
    return reach


def show_reach(out: Console, document: dict[str, Any]) -> None:
    """Print from where on a certified window is proven, and what that cannot exclude."""
    reach = reach_of(document)
    if reach is None:
        return
    limits = "; ".join(limit["message"] for limit in reach["cannot_exclude"])
    text = f"window {document['window']}: proven from the {reach['from']} on. Not excluded: {limits}"
    out.print(Text(printable(text)))


def show_older_open(out: Console, document: dict[str, Any]) -> None:
    """Print how many windows before this one are open, since when, and with how many findings."""
    older = document["older_open"]
    if not older["windows"]:
        return
    since = "the beginning" if older["since"] is None else f"{short_time(older['since'])} UTC"
    are = "window is" if older["windows"] == 1 else "windows are"
    text = f"{older['windows']:,} older {are} open, since {since} (window {older['first_window']}): "
    out.print(Text(text + counted(older["findings"], "finding"), style="yellow"))


def _state(document: dict[str, Any]) -> str:
    """Return the state, and of a certified window that it is proven from the log alone, and with how many accepted."""
    reach = reach_of(document)
    is_certified = document["state"] == WindowState.CERTIFIED.value
    state = str(document["state"])
    if is_certified and reach is not None and reach["from"] == "log":
        state = f"{state}, from the log"
    accepted = (document["certificate"] or {}).get("accepted", 0)
    return f"{state}, with {accepted:,} accepted" if is_certified and accepted else state


def _accepted(document: dict[str, Any]) -> list[str]:
    """Return who accepted what, and what of it is open again, as sentences."""
    accepted = document["accepted"]
    sentences = [
        f"{counted(acceptance['findings'], 'finding')} accepted by {acceptance['by']}"
        + ("" if acceptance["until"] is None else f" until {short_time(acceptance['until'])} UTC")
        + f" ({acceptance['id']}): {acceptance['reason']}"
        for acceptance in accepted["acceptances"]
    ]
    again = [
        f"{counted(keys, 'accepted finding')} {'is' if keys == 1 else 'are'} open again: {why}"
        for why, keys in accepted["open_again"].items()
    ]
    certificate = document["certificate"]
    is_stale = again and certificate and certificate["revoked_by"] is None and document["state"] == "certified"
    return [*sentences, *again, *(["its certificate is revoked by the next run of the pipeline"] if is_stale else [])]


def _what_waits(document: dict[str, Any]) -> list[str]:
    """Return, of a window that is not certified, what happened to its plan and certificate; and which step broke. What
    the reason of the window says is not said again."""
    known = document["reason"] or ""
    is_certified = document["state"] == WindowState.CERTIFIED.value
    of_plan = [] if is_certified else _plan_sentences(document, known)
    of_chain = [] if is_certified else _revoked_sentences(document["revoked"], known)
    return [*of_plan, *of_chain, *(failure_sentence(failure, known) for failure in _failed_steps(document))]


def _failed_steps(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a window that broke and have not ended well since; of a certified window those that come
    behind its certificate: what broke before it was in the way no more."""
    is_certified = document["state"] == WindowState.CERTIFIED.value
    return [failed for failed in document["failed_steps"] if not is_certified or failed["step"] in BEHIND_CERTIFICATE]


def _logs(document: dict[str, Any]) -> list[str]:
    """Return where the log of each step is that broke."""
    return [f"the log of {failed['step']}: {failed['log']}" for failed in _failed_steps(document) if failed["log"]]


def _plan_sentences(document: dict[str, Any], known: str) -> list[str]:
    plan = document["plan"]
    if plan is None:
        return []
    if plan["state"] == PlanState.AWAITING_APPROVAL.value:
        until = "" if plan["asked_until"] is None else f" until {short_time(plan['asked_until'])} UTC"
        return [f"waits for approval of {plan['id']}{until}: makewhole plan approve {plan['id']}, or reject"]
    if plan["state"] in (PlanState.REFUSED.value, PlanState.REJECTED.value):
        return [_with_reason(f"plan {plan['id']} was {plan['state']}", plan["reason"], known)]
    if plan["state"] == PlanState.DONE.value and document["state"] == WindowState.GAPS.value:
        findings = f"makewhole findings {document['pipeline']} --window {document['window']}"
        return [f"plan {plan['id']} is done; why it left these gaps: {findings}"]
    return []


def _revoked_sentences(revoked: dict[str, Any] | None, known: str) -> list[str]:
    if revoked is None:
        return []
    number = f"its certificate {revoked['certificate']} was revoked by number {revoked['by']} of the chain"
    return [_with_reason(f"{number} at {short_time(revoked['at'])} UTC", revoked["reason"], known)]


def failure_sentence(failure: dict[str, Any], known: str = "") -> str:
    """Return which step broke, in which run, and why."""
    place = f"{failure['step']} did not end well in run {failure['run']} of {failure['dag']}"
    return _with_reason(place, failure["reason"].rstrip("."), known)


def _with_reason(sentence: str, reason: str | None, known: str) -> str:
    return sentence if reason is None or reason in known else f"{sentence}: {reason}"


def _handed_over(document: dict[str, Any]) -> list[str]:
    """Return what is handed over as a sentence, where anything is."""
    handed = document["handed_over"]
    if not handed["keys"]:
        return []
    keys = "1 key is" if handed["keys"] == 1 else f"{handed['keys']:,} keys are"
    return [
        f"{keys} in flight and handed over to the next window; the first waits since {short_time(handed['since'])} UTC"
    ]


def show_reused(out: Console, documents: list[dict[str, Any]]) -> None:
    """Print which points each window did not read again, and what showed that they are unchanged."""
    for document in documents:
        for line in document["reused"]:
            out.print(Text(printable(f"window {document['window']}: {line}")))


def show_looked_at(out: Console, documents: list[dict[str, Any]]) -> None:
    """Print at which keys of earlier windows each window looked again, by store and hop."""
    for document in documents:
        for store, hops in document["looked_at"].items():
            for hop, look in hops.items():
                out.print(Text(printable(f"window {document['window']}: {_looked(store, hop, look)}")))


def _looked(store: str, hop: str, look: dict[str, Any]) -> str:
    first, last = look["windows"] or (None, None)
    of_windows = f"window {first}" if first == last else f"windows {first} to {last}"
    seen = f"{counted(look['keys'], 'key')} of {of_windows}" if look["windows"] else "no key of an earlier window"
    left_out = sorted({*look["gone"], *look["read_with_other_configuration"]})
    without = f"; not at those of {', '.join(map(str, left_out))}, whose values are not there to compare"
    return f"looked again at {seen} in {store} ({hop})" + (without if left_out else "")


def show_readers(out: Console, documents: list[dict[str, Any]]) -> None:
    """Print how the groups that copy topics into topics commit their offsets, where Iceberg's sinks stand, and of which
    partitions nothing came."""
    for document in documents:
        for hop in document["hops"]:
            sentences = [copier_sentence(hop[COPIER])] if COPIER in hop else []
            sentences += sink_sentences(hop["to"], hop[SINK]) if SINK in hop else []
            if PARTITIONS in hop:
                sentences.append(partitions_sentence(hop["from"], hop["to"], hop[PARTITIONS]))
            for sentence in sentences:
                text = f"window {document['window']}: {hop['from']}→{hop['to']}: {sentence}"
                out.print(Text(printable(text)))


_ACCOUNT = ("data", "control", "aborted", "compacted", "expired", "undecodable")


def show_accounts(out: Console, documents: list[dict[str, Any]]) -> None:
    """Print the accounting of every range: the parts of a line add up to its span, or the snapshot would not exist."""
    accounts = [
        (point, row) for document in documents for point, rows in document["accounting"].items() for row in rows
    ]
    if not accounts:
        return
    table = Table(box=None, pad_edge=False)
    names = (*_ACCOUNT, *(("erasures",) if any(row.get("erasures") for _, row in accounts) else ()))
    for heading in ("topic", "offsets", "span", *names):
        table.add_column(heading, overflow="fold", justify="left" if heading in ("topic", "offsets") else "right")
    for point, row in accounts:
        lineage = f" lineage {row['lineage']}" if row["lineage"] else ""
        table.add_row(
            Text(printable(f"{point} {row['topic']}/{row['partition']}{lineage}")),
            Text(f"[{row['lo']}, {row['hi']})"),
            f"{row['span']:,}",
            *(Text(f"{row.get(name, 0):,}", style="red" if name == "expired" and row[name] else "") for name in names),
        )
    print_table(out, table)


def short_time(moment: str | None) -> str:
    """Return the day and the minute of a moment; of none, that there is no bound."""
    return "the beginning" if moment is None else moment[:16].replace("T", " ")


def _gaps(document: dict[str, Any], stage: str) -> str:
    names = [verdict.value for verdict in Verdict if verdict is not Verdict.MATCHED]
    totals = {name: sum((hop[stage] or hop["counts"])[name] for hop in document["hops"]) for name in names}
    return ", ".join(f"{count} {name}" for name, count in totals.items() if count) or "none"
