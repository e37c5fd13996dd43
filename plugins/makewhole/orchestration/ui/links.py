"""Link the page of a task to the result of its run and to the runbook. Each link is stored when the task has ended,
however it ended."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink

from makewhole.orchestration import task_ids
from makewhole.orchestration.ui.addresses import result_url, runbook_url
from makewhole.orchestration.ui.runbook import entry_of_task

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class _ResultLink(BaseOperatorLink):
    """A link to a part of the page with the result of the run."""

    part: str

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:  # noqa: ARG002
        """Return the address for the run of a task."""
        return result_url(ti_key.dag_id, ti_key.run_id, self.part)


class FindingsLink(_ResultLink):
    """The keys of the window by hop and verdict."""

    name, part = "Findings", "findings"


class PlanLink(_ResultLink):
    """The plan of the window."""

    name, part = "Plan", "plan"


class CertificateLink(_ResultLink):
    """The certificate of the window."""

    name, part = "Certificate", "certificate"


class RunbookLink(BaseOperatorLink):
    """The runbook, at the entry of the task; of `certify` at that of the window's state."""

    name = "Runbook"

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:  # noqa: ARG002
        """Return the address of the entry."""
        if ti_key.task_id == task_ids.CERTIFY:
            return result_url(ti_key.dag_id, ti_key.run_id, "runbook")
        return runbook_url(entry_of_task(ti_key.task_id))


LINKS: Sequence[type[BaseOperatorLink]] = (FindingsLink, PlanLink, CertificateLink, RunbookLink)
_RESULTS = {
    task_ids.PLAN: (PlanLink,),
    task_ids.COMPENSATE: (PlanLink,),
    task_ids.CERTIFY: (FindingsLink, PlanLink, CertificateLink),
}


def add_links(task: Any) -> None:
    """Give a task of a window its links: the runbook, and the parts of the result that it is about."""
    operator = getattr(task, "operator", task)
    links = (*_RESULTS.get(operator.task_id, ()), RunbookLink)
    operator.operator_extra_links = (*operator.operator_extra_links, *(link() for link in links))
