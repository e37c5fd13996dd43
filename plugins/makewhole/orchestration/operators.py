"""Submit the Spark jobs of a window, and ask a person about a plan or an acceptance: extended operators of Airflow.

DAG files import this module, so what the steps need is imported when they run.
"""

from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, Context
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowTaskTimeout

from makewhole.model.errors import RefusedError, TransientError
from makewhole.orchestration import task_ids
from makewhole.orchestration.notices.tasks import notify_of_run
from makewhole.orchestration.steps import publishing, window_of_run
from makewhole.orchestration.steps.recorded_failure import forget_failure, record_failure, step_place, step_reason

_PERMANENT = "Error code is: 64."
_NOT_SUBMITTED = (ValueError, NameError, FileNotFoundError, PermissionError, AirflowNotFoundException)
"""The errors of a connection or an environment by which Spark cannot be submitted: YARN in cluster mode, a Kubernetes
without its provider, no spark-submit."""
_NO_REASON = (
    "the application of Spark ended without a reason in the journal; the log of the task has one, in the line that "
    "starts with `ERROR makewhole`, or what spark-submit says of how it could not start"
)


def require_job(application: str) -> None:
    """Return when the file of a job is there.

    Raises:
        FileNotFoundError: it is not.
    """
    if not Path(application).is_file():
        raise FileNotFoundError(f"there is no job {application}; install makewhole again, its wheel has the jobs")


class SparkStep(SparkSubmitOperator):
    """A Spark job of one window, submitted through `spark_default`. The pipeline is read when the task runs.

    The application goes on with the steps after it. A task whose step is committed submits nothing.
    """

    def execute(self, context: Context) -> None:
        """Submit the job, unless its step is committed.

        Raises:
            AirflowFailException: the job ended with the exit code of permanent errors.
        """
        opened = window_of_run.opened_window(context)
        outcome = window_of_run.committed_step(self.task_id, context)
        forget_failure(step_place(context))  # what is there after the application has ended is of this try
        if outcome is not None:
            self.log.info("%s: %s", opened["label"], outcome)
            self.log.info("%s: this is committed, nothing was submitted", opened["label"])
            return
        self.application_args = [
            *("--pipeline", opened["pipeline"]),
            *("--window", str(opened["window"])),
            *("--revision", str(opened["revision"])),
            *("--through", task_ids.SPARK_STEPS[-1]),
            *("--asked-by", context["ti"].run_id),
            *("--dag", context["ti"].dag_id),
        ]
        try:
            require_job(self.application)
            super().execute(context)
        except _NOT_SUBMITTED as error:
            self._end_refused(context, opened["label"], error)
        except (AirflowException, AirflowTaskTimeout) as error:
            self._end_failed(context, opened["label"], error)

    def _end_refused(self, context: Context, label: str, error: BaseException) -> None:
        """Fail the task of a job that could not be submitted for what a person has to correct.

        Raises:
            AirflowFailException: always; with the reason, which is kept in the journal.
        """
        refused = RefusedError(
            f"{self.task_id} of {label}: Spark could not be submitted: {error or type(error).__name__}. Correct the "
            "connection spark_default, or what this worker has of Spark; `makewhole check --live` says what to write"
        )
        record_failure(step_place(context), refused)
        raise AirflowFailException(str(refused)) from error

    def _end_failed(self, context: Context, label: str, error: BaseException) -> None:
        """Return when the application broke after it had committed this step: what broke is a later one's.

        Raises:
            AirflowFailException: the job ended with the exit code of permanent errors.
        """
        if _PERMANENT in str(error):
            raise AirflowFailException(f"{self.task_id} of {label}: {self._reason(context)}") from error
        if isinstance(error, AirflowTaskTimeout):
            self.on_kill()
        if window_of_run.committed_step(self.task_id, context) is None:
            raise self._retried(context, label, error) from error
        self.log.warning(
            "%s: %s is committed. The application broke while it went on with a later step, whose own task does it "
            "again and shows what is wrong: %s",
            *(label, self.task_id, str(error) or type(error).__name__),
        )

    def _retried(self, context: Context, label: str, error: BaseException) -> BaseException:
        """Return what to raise for an application that may succeed when it is tried again: with the reason that it
        left, or as it came, which is kept as the reason then."""
        known = step_reason(context)
        if known is not None and not isinstance(error, AirflowTaskTimeout):
            return AirflowException(f"{self.task_id} of {label}: {known}")
        if known is None:
            record_failure(step_place(context), TransientError(f"{_NO_REASON} ({str(error) or type(error).__name__})"))
        return error

    def _reason(self, context: Context) -> str:
        """Return the reason that the application left in the journal."""
        return step_reason(context) or _NO_REASON


class PublishStep(SparkStep):
    """The Spark job that publishes a certified window, and the event that says so."""

    def execute(self, context: Context) -> None:
        """Publish the window, and report it to the asset; skipped where the pipeline publishes nothing."""
        publishing.require_published_points(context)
        super().execute(context)
        publishing.announce(context)


_SHOWN = "{{ (ti.xcom_pull(task_ids='plan', key='approval') or {}).get('%s', '') }}"
"""A part of what the task `plan` asks about; empty where it left nothing, which `answers.question_of` says in words."""


class PlanApproval(ApprovalOperator):
    """A question to a person about the plan of a run; who may answer, and for how long, comes from the pipeline.

    The answer goes to the journal before anything downstream runs, bound to the hash of the plan that was shown.
    """

    @classmethod
    def of_planned(cls) -> "PlanApproval":
        """Make the task that asks about the plan which the task `plan` of the same run froze."""
        return cls(
            task_id=task_ids.APPROVE,
            subject=_SHOWN % "subject",
            body=_SHOWN % "body",
            defaults=cls.REJECT,
        )

    def execute(self, context: Context) -> Any:
        """Ask, with the pipeline's time limit and list of people; or use the answer that is in the journal."""
        answers = self.answers()
        recorded = answers.recorded_answer(context)
        if recorded is not None:
            return super().execute_complete(context, recorded)
        approvers = answers.read_approvers(context)
        self.response_timeout = approvers.expires
        self.assigned_users = [{"id": name, "name": name} for name in approvers.people] or None
        answers.note_question(context, approvers)
        notify_of_run(context)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record the answer, then go on or skip as Airflow's operator does."""
        self.answers().copy_answer(context, event)
        return super().execute_complete(context, event)

    def answers(self) -> Any:
        """Return the module that reads who may answer, and copies the answer to the journal."""
        from makewhole.orchestration import answers

        return answers


class AcceptanceApproval(PlanApproval):
    """The question to another person about findings that one asks to accept."""

    def answers(self) -> Any:
        """Return the module of answers to acceptances."""
        from makewhole.orchestration import acceptance_answers

        return acceptance_answers
