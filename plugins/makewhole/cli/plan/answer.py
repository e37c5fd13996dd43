"""Run `makewhole plan approve|reject`: answer for a plan that waits, through Airflow, as the person who calls it."""

import json as json_format
import sys
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.table import Table
from rich.text import Text

from makewhole.cli.airflow_api import (
    Access,
    AirflowApi,
    AirflowAwayError,
    AirflowRefusedError,
    access,
    airflow,
    is_undecided,
)
from makewhole.cli.environment import AsJson, console, printable, service_environment
from makewhole.cli.plan.control import PlanId, known_plan
from makewhole.cli.plan.open_questions import question_about
from makewhole.journal.database import connect
from makewhole.model.errors import PermanentError, RefusedError, TransientError
from makewhole.model.plan import PlanState

_console = console()
_errors = console(stderr=True)
_FORBIDDEN = 403
_PARTICIPLES = {"Approve": "approved", "Reject": "rejected"}

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask again after the summary was shown.")]


def approve(plan: PlanId, yes: Yes = False, json: AsJson = False) -> None:
    """Approve a plan that waits, after its summary is shown: what Airflow's page shows.

    The answer goes through Airflow, as if given on its page, and Airflow asks for the right to give it. At a terminal
    it is asked for once more. With --json the summary is in the object, and besides on standard error.
    """
    _answer(plan, "Approve", is_sure=yes, json=json)


def reject(plan: PlanId, yes: Yes = False, json: AsJson = False) -> None:
    """Reject a plan that waits: nothing is written, the window stays open."""
    _answer(plan, "Reject", is_sure=yes, json=json)


def _answer(plan: str, option: str, *, is_sure: bool, json: bool) -> None:
    with service_environment():
        _require_waiting(plan)
        person = access()
        with airflow(person) as api:
            question = question_about(api, plan)
            if question is None:
                raise RefusedError(f"no run of Airflow waits for an answer to plan {plan}; run the window again")
            send_answer(api, person, (f"plan {plan}", plan), question, option, is_sure=is_sure, json=json)


def send_answer(
    api: AirflowApi,
    person: Access,
    subject: tuple[str, str],
    question: dict[str, Any],
    option: str,
    *,
    is_sure: bool,
    json: bool,
) -> None:
    """Show a question of Airflow, ask once more at a terminal, answer it as a person, and print what was answered.
    `subject`: what it is about in words, and its id.

    Raises:
        PermanentError: this person may not answer.
    """
    name, identity = subject
    _show(_errors if json else _console, question)
    if not is_sure and sys.stdin.isatty():
        typer.confirm(f"{option} as {person.user}?", abort=True, err=json)
    _send(api, person, name, question, option)
    if json:
        document = {"id": identity, "answer": _PARTICIPLES[option], "by": person.user}
        document |= {field: question[field] for field in ("subject", "body")}
        typer.echo(json_format.dumps(document, ensure_ascii=False))
        return
    _console.print(f"{_PARTICIPLES[option]}: {name}")


def _require_waiting(plan: str) -> None:
    with connect() as journal:
        stored = known_plan(journal, plan)
    if stored.state is not PlanState.AWAITING_APPROVAL:
        why = f": {stored.reason}" if stored.reason else ""
        raise RefusedError(f"plan {plan} is {stored.state.value}{why} and waits for no answer")


def _show(out: Console, question: dict[str, Any]) -> None:
    """Print what Airflow's page shows, its Markdown drawn as there."""
    body = "\n".join(printable(line) for line in (question["body"] or "").split("\n"))
    out.print(Text(printable(question["subject"])), "", sep="\n")
    out.print(_FoldedMarkdown(body, hyperlinks=False), soft_wrap=False)  # a soft wrap would cut off lists
    out.print()


class _FoldedTable(TableElement):
    """A table of Markdown in which a word that is too long for its column goes on in the next line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class _FoldedMarkdown(Markdown):
    """Markdown of which nothing is cut off, however narrow the terminal is."""

    elements = {**Markdown.elements, "table_open": _FoldedTable}  # noqa: RUF012 - as the class above has it


def _send(api: AirflowApi, person: Access, name: str, question: dict[str, Any], option: str) -> None:
    task = question["task_instance"]
    path = f"/dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}/-1/hitlDetails"
    try:
        api.send("PATCH", path, {"chosen_options": [option], "params_input": {}})
    except (AirflowAwayError, AirflowRefusedError) as error:
        if is_undecided(error):
            page = f"{person.run_url(task['dag_id'], task['dag_run_id'])}/required_actions"
            raise TransientError(
                f"Airflow went away while it was given the answer for {name}, and may have taken it: {page} shows "
                "whether it still asks. If it does, answer again"
            ) from error
        if isinstance(error, AirflowAwayError) or error.status != _FORBIDDEN:
            raise
        names = ", ".join(user["name"] for user in question.get("assigned_users") or ())
        who = names or "those who have the right to answer in this DAG"
        raise PermanentError(f"{person.user} may not answer for {name}; {who} may. {error}") from error
