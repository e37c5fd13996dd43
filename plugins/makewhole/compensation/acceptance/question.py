"""Write the page on which another person says yes to an acceptance: counts, the reason, and never a key or a value."""

from collections import Counter
from collections.abc import Sequence

from makewhole.compensation.acceptance.ask import Asked, others_of
from makewhole.compensation.approval.page import ApprovalPage, escaped
from makewhole.compensation.approval.rights import Groups, rights_of
from makewhole.journal import acceptances
from makewhole.journal.database import connect
from makewhole.model.acceptance import AcceptedFinding
from makewhole.model.pipeline import Pipeline
from makewhole.model.text import counted

_LINES_MOST = 30


def acceptance_request(pipeline: Pipeline, asked: Asked, groups: Groups) -> dict[str, str]:
    """Return id, hash and page of an acceptance for an XCom: no keys, no values."""
    with connect() as journal:
        found = acceptances.findings_of(journal, asked.acceptance.id)
    page = acceptance_page(asked, found, who_may(pipeline, asked, groups))
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


def acceptance_page(asked: Asked, found: Sequence[AcceptedFinding], who: str) -> ApprovalPage:
    """Return the page as Airflow and `makewhole accept --approve` show it."""
    one = asked.acceptance
    until = "for good" if one.until is None else f"until {one.until:%Y-%m-%d %H:%M} UTC"
    kinds = Counter((item.hop, item.verdict.value, item.cause.value) for item in found)
    lines = [
        f"- {counted(number, 'finding')} on {escaped(hop)}: {verdict}, {cause}"
        for (hop, verdict, cause), number in kinds.most_common(_LINES_MOST)
    ]
    paragraphs = [
        f"{escaped(one.asked_by)} asks that {counted(one.findings, 'finding')} of window {one.window} (revision "
        f"{one.revision}) of {escaped(one.pipeline)} stay as they are, {until}.",
        f"Why: {escaped(one.reason)}",
        "\n".join(lines),
        *(escaped(sentence) for sentence in asked.left),
        f"See their keys: `makewhole findings {one.pipeline} --window {one.window}`",
        f"Acceptance `{one.id}`, SHA-256 `{one.sha256}`. The answer is bound to this content.",
        f"Who may answer: {escaped(who)}. Who asked may not.",
        "**Approve** signs them into the chain of certificates; they stay listed, and are open again when their key is "
        "changed, their time is over, or somebody revokes it. Nothing is written to any table or topic. **Reject** "
        "leaves them open.",
    ]
    return ApprovalPage(
        subject=f"Accept {counted(one.findings, 'finding')} of {one.pipeline} window {one.window}",
        body="\n\n".join(paragraph for paragraph in paragraphs if paragraph),
    )
