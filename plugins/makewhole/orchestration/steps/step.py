"""Turn the errors of a step into the end of its task: transient ones are retried, permanent ones fail it at once."""

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from airflow.sdk.exceptions import AirflowFailException

from makewhole.model.errors import NotYetError, PermanentError
from makewhole.orchestration.reschedule import rescheduled
from makewhole.orchestration.task_ids import POLL_SECONDS

logger = logging.getLogger(__name__)
StepFunction = TypeVar("StepFunction", bound=Callable[..., Any])


def step(function: StepFunction) -> StepFunction:
    """Wrap a step: an error of ours that is permanent fails the task without a retry, a wait gives its worker back."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except PermanentError as error:
            raise AirflowFailException(str(error)) from error
        except NotYetError as error:
            logger.info("%s; looking again in %.0f s", error, POLL_SECONDS)
            raise rescheduled() from error

    return run  # type: ignore[return-value]
