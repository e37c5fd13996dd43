"""Write the page on which another person approves an acceptance: counts, the reason, and never a key or a value."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from makewhole.compensation.acceptance.ask import Asked
from makewhole.compensation.approval.page import ApprovalPage, escaped
from makewhole.compensation.approval.rights import Groups, others_of, rights_of
from makewhole.journal import acceptances, windows
from makewhole.journal.database import connect
from makewhole.model.acceptance import AcceptedFinding
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted
from makewhole.model.window import Window

_LINES_MOST = 30


@dataclass(frozen=True, kw_only=True)
class AwaitedAnswer:
    """Who may answer, in words, and until when an answer is awaited."""

    who: str
    until: datetime


def acceptance_request(pipeline: Pipeline, asked: Asked, groups: Groups) -> dict[str, str]:
    """Return id, hash and page of an acceptance for an XCom: no keys, no values."""
    with connect() as journal:
        findings = acceptances.findings_of(journal, asked.acceptance.id)
        window = windows.load(journal, pipeline.name, asked.acceptance.window, asked.acceptance.revision)
    answer = AwaitedAnswer(
        who=who_may(pipeline, asked, groups), until=asked.acceptance.asked_at + pipeline.approval.expires
    )
    page = acceptance_page(asked, findings, window, answer)
    return {
        "pipeline": pipeline.name,
        "acceptance": asked.acceptance.id,
        "sha256": asked.acceptance.sha256,
        "subject": page.subject,
        "body": page.body,
    }


def who_may(pipeline: Pipeline, asked: Asked, groups: Groups) -> str:
    """Return who may answer, in words."""
    people = others_of(rights_of(pipeline.approval, groups), asked.acceptance.asked_by)
    return ", ".join(people) or f"anybody who may run this DAG, but for {asked.acceptance.asked_by}"


def acceptance_page(
    asked: Asked, findings: Sequence[AcceptedFinding], window: Window, answer: AwaitedAnswer
) -> ApprovalPage:
    """Return the page as Airflow and `makewhole accept --approve` show it."""
    acceptance, times = asked.acceptance, f"up to {_minute(window.end)}"
    until = "without an end" if acceptance.until is None else f"until {_minute(acceptance.until)}"
    stay = "stays as it is" if acceptance.findings == 1 else "stay as they are"
    if window.start is not None:
        times = f"from {_minute(window.start)} {times}"
    kinds = Counter((item.hop, item.verdict.value, item.cause.value) for item in findings)
    lines = [
        f"- {counted(number, 'finding')} on {escaped(hop)}: {verdict}, {cause}"
        for (hop, verdict, cause), number in kinds.most_common(_LINES_MOST)
    ]
    paragraphs = [
        f"{escaped(acceptance.asked_by)} asks that {counted(acceptance.findings, 'finding')} of window "
        f"{acceptance.window} (revision {acceptance.revision}, {times}) of {escaped(acceptance.pipeline)} {stay}, "
        f"{until}.",
        f"Why: {escaped(acceptance.reason)}",
        "\n".join(lines),
        *(escaped(sentence) for sentence in asked.left),
        f"See their keys: `makewhole findings {acceptance.pipeline} --window {acceptance.window}`",
        f"Acceptance `{acceptance.id}`, SHA-256 `{acceptance.sha256}`. The answer is bound to this content.",
        f"Who may answer: {escaped(answer.who)}. Who asked may not. Without an answer by {_minute(answer.until)} "
        "nothing is accepted.",
        "**Approve** signs this into the chain of certificates. What is accepted stays listed, and is open again when "
        f"its key is changed{'' if acceptance.until is None else ', its time is over'} or the acceptance is revoked. "
        "Nothing is written to any table or topic. **Reject** leaves it open.",
    ]
    return ApprovalPage(
        subject=f"Accept {counted(acceptance.findings, 'finding')} of {acceptance.pipeline} window {acceptance.window}",
        body="\n\n".join(paragraph for paragraph in paragraphs if paragraph),
    )


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
