"""Name the deployment of Airflow that this process belongs to, and keep it from pipelines that another one judges."""

import os
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow.sdk import Variable

from makewhole.orchestration.provider import OPTIONS
from makewhole.orchestration.ui.addresses import base_url

if TYPE_CHECKING:
    from makewhole.journal.deployment.pipeline_owners import Deployment
    from makewhole.sql import PgConnection

_VARIABLE = "makewhole_deployment"
_DESCRIPTION = (
    "The name by which makewhole's journal knows this Airflow. Of a pipeline one Airflow alone judges windows."
)
_DIGITS = 12


def claim(pipeline: str) -> None:
    """Note that this deployment judges a pipeline.

    Raises:
        JudgedElsewhereError: another one does; with what to do.
    """
    from makewhole.journal.database import connect
    from makewhole.journal.deployment import pipeline_owners

    with connect() as journal:
        pipeline_owners.claim(journal, pipeline, _this_deployment(journal))


def require_own(pipeline: str) -> None:
    """Return where no other deployment judges a pipeline.

    Raises:
        JudgedElsewhereError: one does; with what to do.
    """
    from makewhole.journal.database import connect
    from makewhole.journal.deployment import pipeline_owners

    with connect() as journal:
        pipeline_owners.require_own(journal, pipeline, _this_deployment(journal))


def _this_deployment(journal: "PgConnection") -> "Deployment":
    """Return the name that the configuration has, or the one that a variable in Airflow's own database keeps: chosen at
    random by the first task that asks."""
    from makewhole.journal.deployment.pipeline_owners import Deployment, wait_for_names

    name = os.environ.get(OPTIONS["deployment"].variable, "").strip() or Variable.get(_VARIABLE, default=None)
    if not name:
        wait_for_names(journal)
        name = Variable.get(_VARIABLE, default=None)
    if not name:
        name = uuid4().hex[:_DIGITS]
        Variable.set(_VARIABLE, name, _DESCRIPTION)
    return Deployment(name=str(name), address=base_url())
