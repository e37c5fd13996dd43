"""Answer requests for makewhole's pages: who may see the XComs of a DAG in Airflow sees its results."""

import re
from pathlib import Path
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from makewhole.orchestration.task_ids import CERTIFY, CLOSED_WINDOW, REASON_OF_FAILURE
from makewhole.orchestration.ui.html_pages import page_of_document, page_of_run
from makewhole.shipped import shipped

_DOCUMENT = re.compile(r"([\w-]+/)?[\w-]+\.md", re.ASCII)
_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'"}


def make_application() -> FastAPI:
    """Make the application. Who is not logged in gets a 401, who may not see the XComs of the DAG a 403."""
    application = FastAPI(dependencies=[Depends(get_user)], docs_url=None, redoc_url=None, openapi_url=None)
    may_see = Depends(requires_access_dag("GET", DagAccessEntity.XCOM))
    page = {"methods": ["GET"], "response_class": HTMLResponse}
    application.add_api_route("/dags/{dag_id}/runs/{run_id}", _run, dependencies=[may_see], **page)
    application.add_api_route("/docs/{name:path}", _document, **page)
    return application


def _run(dag_id: str, run_id: str, session: SessionDep) -> HTMLResponse:
    """Show what the tasks of a run left of its window."""
    from airflow.models.dagrun import DagRun
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    if session.scalar(select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)) is None:
        raise HTTPException(404, f"there is no run {run_id} of {dag_id}")
    wanted = (
        select(XComModel)
        .where(XComModel.dag_id == dag_id, XComModel.run_id == run_id)
        .where(XComModel.key.in_([CLOSED_WINDOW, REASON_OF_FAILURE]))
        .order_by(XComModel.timestamp)
    )
    closed: dict[str, Any] | None = None
    failures: dict[str, str] = {}
    for row in session.scalars(wanted):
        value = XComModel.deserialize_value(row)
        if row.key == CLOSED_WINDOW and row.task_id == CERTIFY:
            closed = value
        elif row.key == REASON_OF_FAILURE:
            failures[row.task_id] = str(value)
    return HTMLResponse(page_of_run(dag_id, run_id, closed, failures), headers=_HEADERS)


def _document(name: str) -> HTMLResponse:
    """Show a page of the documentation."""
    path = Path(shipped("docs"), name)
    if not _DOCUMENT.fullmatch(name) or not path.is_file():
        raise HTTPException(404, f"the documentation has no page {name}")
    return HTMLResponse(page_of_document(path.read_text(encoding="utf-8")), headers=_HEADERS)
