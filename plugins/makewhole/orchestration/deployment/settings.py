"""Take what the section `[makewhole]` of Airflow's configuration says, and the journal's connection, into the
environment of this process, where every part of makewhole reads them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import conf

from makewhole.config.pipeline_file import pipeline_folders
from makewhole.orchestration.provider import OPTIONS, SECTION


def export_options() -> None:
    """Put the options that are set into the environment. Variables that exist are left as they are: they go before."""
    for name, option in OPTIONS.items():
        text = str(conf.get(SECTION, name, fallback="")).strip()
        if text and not os.environ.get(option.variable, "").strip():
            os.environ[option.variable] = text


def configured_folders() -> tuple[Path, ...]:
    """Return the folders of pipeline files that this Airflow reads."""
    export_options()
    return pipeline_folders()


def export_settings(context: Mapping[str, Any] | None = None) -> None:  # noqa: ARG001 - as Airflow calls it
    """Put the options and, where no URI says where the journal is, its connection into the environment: before each
    task (`pre_execute`). The driver of Spark that the task starts has them, too."""
    from makewhole.journal.deployment.address import VARIABLE, journal_connection
    from makewhole.orchestration.deployment.connections import export

    export_options()
    if not os.environ.get(VARIABLE):
        export(journal_connection())
