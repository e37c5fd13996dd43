"""Find whether Airflow has taken up a pipeline: an on-call form is of it. Ask Airflow to read the DAG files now, and
report its import errors instead of waiting for what they prevent."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from makewhole.cli.airflow_api import AirflowApi, AirflowRefusedError
from makewhole.config.pipeline_file import pipeline_files, pipeline_folders, read_files
from makewhole.model.errors import ConfigurationError, Problem, TransientError
from makewhole.orchestration.task_ids import ONCALL_DAG

_ONCALL_FILE, _PIPELINE_FILES = "makewhole_oncall.py", "makewhole_pipeline_files.py"
_READ_FIRST = (_ONCALL_FILE, "makewhole_reconcile.py", "makewhole_continue.py", _PIPELINE_FILES)
_POLL_SECONDS = 0.5
_LONGEST_SECONDS = 120.0
_GRACE_SECONDS = 10.0
"""How long the API server may go on to show a form that the DAG processor has replaced."""
_FIRST_GRACE_SECONDS = 45.0
"""The same for the form without a pipeline, which may be new itself: Airflow stores a DAG again only half a minute
after it has stored it (`[core] min_serialized_dag_update_interval`)."""
_PROCESSOR = "DagProcessorJob"
_FIRST_READING = timedelta(seconds=60)
_NO_DAGS = Problem(
    file="Airflow",
    path="DAGs",
    found="has none of makewhole, or none that you may see, though it has read its DAG files",
    remedy="Put makewhole's DAGs into its setting `[dag_processor] dag_bundle_config_list`, one more item: "
    '{"name": "makewhole", "classpath": "makewhole.orchestration.bundle.MakewholeBundle", "kwargs": {}}, and start its '
    "DAG processor again",
)


@dataclass(frozen=True, kw_only=True)
class RefusedFile:
    """Why Airflow could not read a file of DAGs, and when it tried."""

    file: str
    text: str
    at: str


def wait_for_pipeline(
    api: AirflowApi, pipeline: str, dag: str = ONCALL_DAG, longest_seconds: float = _LONGEST_SECONDS
) -> None:
    """Return when Airflow has the on-call form of the pipeline; files that are new are read now. `dag` has the form: of
    several pipelines, which it names, or of this one alone. `longest_seconds`: how long the DAG processor may take
    before it counts as one that does not run.

    Raises:
        ConfigurationError: Airflow refuses the DAG file or the pipeline file, has read its pipeline files again and
            this one is not among them, or has long read its DAG files and has none of ours.
        TransientError: Airflow does not read the files.
    """
    names, parsed = _form_names(api, pipeline, dag), _parsed_at(api)
    if pipeline in names:
        return
    _require_any(api)
    was_asked, refused = _ask_to_parse(api), import_error_of(api, pipeline)
    started = since_parsed = asked = time.monotonic()
    while pipeline not in (names := _form_names(api, pipeline, dag)):
        error = import_error_of(api, pipeline)
        if error is not None and (not was_asked or error != refused or time.monotonic() - started > _GRACE_SECONDS):
            raise ConfigurationError([_refused(error)])
        if not names:
            _require_any(api)
            if was_asked and time.monotonic() - asked > _GRACE_SECONDS:
                _ask_to_parse(api)
                asked = time.monotonic()
        if not was_asked or _parsed_at(api) == parsed or error is not None:
            since_parsed = time.monotonic()
        if time.monotonic() - since_parsed > (_GRACE_SECONDS if names else _FIRST_GRACE_SECONDS):
            raise ConfigurationError([_not_there(pipeline, dag, names)])
        if time.monotonic() - started > longest_seconds:
            known = ", ".join(names) or "none"
            raise TransientError(
                f"Airflow does not know {pipeline} yet (it knows {known}), and has not read its DAG files for "
                f"{longest_seconds:.0f} s; look whether its DAG processor runs (of a local stack: `makewhole status`)"
            )
        time.sleep(_POLL_SECONDS)


def _require_any(api: AirflowApi) -> None:
    """Return where Airflow shows a DAG of ours, or may do so soon.

    Raises:
        ConfigurationError: neither.
    """
    if not _our_dags(api) and not any(map(_is_ours, _import_errors(api))) and _has_long_read(api):
        raise ConfigurationError([_NO_DAGS])


def _is_ours(error: dict[str, Any]) -> bool:
    return PurePosixPath(str(error["filename"])).name.startswith("makewhole_")


def _has_long_read(api: AirflowApi) -> bool:
    """Return whether a DAG processor lives that began longer ago than it takes to read the files of ours; False where
    the user may not see that."""
    try:
        jobs = api.get("/jobs", job_type=_PROCESSOR, is_alive="true", order_by="-start_date", limit=1)["jobs"]
    except AirflowRefusedError as error:
        if error.status != 403:
            raise
        return False
    began = [datetime.fromisoformat(job["start_date"]) for job in jobs]
    return bool(began) and datetime.now(UTC) - max(began) > _FIRST_READING


def import_error_of(api: AirflowApi, pipeline: str | None = None) -> RefusedFile | None:
    """Return why Airflow cannot read the file of the on-call form; or the file of the pipeline, where one is named."""
    own = _file_of(pipeline) if pipeline is not None else None
    for error in _import_errors(api):
        name, text = PurePosixPath(str(error["filename"])).name, str(error["stack_trace"])
        if name == _ONCALL_FILE or (own is not None and name == _PIPELINE_FILES and own in text):
            return RefusedFile(file=name, text=text, at=str(error["timestamp"]))
    return None


def _import_errors(api: AirflowApi) -> list[dict[str, Any]]:
    """Return all import errors; none where the user may not see them."""
    try:
        return api.get_all("/importErrors", "import_errors")
    except AirflowRefusedError as error:
        if error.status != 403:
            raise
        return []


def _file_of(pipeline: str) -> str | None:
    """Return the name of the file of a pipeline, without its folder: Airflow may have it in another one."""
    files = read_files(pipeline_files(pipeline_folders()))
    return next((file.path.name for file in files if file.name == pipeline), None)


def _form_names(api: AirflowApi, pipeline: str, dag: str) -> tuple[str, ...]:
    """Return the pipelines that the on-call form offers; none where there is no form. The form of one pipeline has no
    list of them."""
    if dag != ONCALL_DAG:
        return tuple(pipeline for shown in _our_dags(api) if shown["dag_id"] == dag and not shown["is_stale"])
    try:
        details = api.get(f"/dags/{ONCALL_DAG}/details")
    except AirflowRefusedError as error:
        if error.status != 404:
            raise
        return ()
    return tuple(details["params"]["pipeline"]["schema"]["enum"])


def _parsed_at(api: AirflowApi) -> str | None:
    """Return when the file with the on-call forms was last read; None: never, as far as this user may see."""
    times = (dag["last_parsed_time"] for dag in _our_dags(api) if PurePosixPath(dag["fileloc"]).name == _ONCALL_FILE)
    return max(times, default=None)


def _our_dags(api: AirflowApi) -> list[dict[str, Any]]:
    return api.get_all("/dags", "dags", dag_id_pattern="makewhole_", exclude_stale="false")


def _ask_to_parse(api: AirflowApi) -> bool:
    """Ask Airflow to read the DAG files that name pipelines before all others; return whether it will. Who may not edit
    DAGs cannot ask."""
    tokens = {PurePosixPath(dag["fileloc"]).name: dag["file_token"] for dag in _our_dags(api)}
    return all([_asked(api, token) for token in _wanted(tokens)] or [False])


def _wanted(tokens: dict[str, str]) -> Iterator[str]:
    yield from (tokens[name] for name in _READ_FIRST if name in tokens)


def _asked(api: AirflowApi, token: str) -> bool:
    try:
        api.send("PUT", f"/parseDagFile/{quote(token, safe='')}")
    except AirflowRefusedError as error:
        return error.status == 409  # the same was asked for before, and is not done yet
    return True


def _refused(error: RefusedFile) -> Problem:
    lines = [line.strip() for line in error.text.strip().splitlines()]
    start = next((at for at, line in enumerate(lines) if line.startswith("makewhole.model.errors.")), len(lines) - 1)
    text = "; ".join(line for line in lines[start:] if line)
    return Problem(
        file="Airflow",
        path=error.file,
        found=f"is refused, with this import error: {text}",
        remedy="Mend it where Airflow reads it; `makewhole check` lists all of a pipeline file at once",
    )


def _not_there(pipeline: str, dag: str, names: tuple[str, ...]) -> Problem:
    return Problem(
        file="Airflow",
        path=dag,
        found=f"has no pipeline {pipeline}; it has {', '.join(names) or 'none'}",
        remedy="Put the pipeline file into a folder that MAKEWHOLE_PIPELINES names for Airflow's DAG processor and "
        "workers, not only here",
    )
