"""Make the task that reports revoked certificates at the end of a run."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import AssetAlias, task

from makewhole.model.time_limits import TimeLimits
from makewhole.orchestration import task_ids
from makewhole.orchestration.steps import watermark
from makewhole.orchestration.steps.asset_events import asset_of


def report_watermark(last: Any, names: Sequence[str], *, is_chosen: bool = False) -> None:
    """Wire the task that reports revoked certificates behind the last one of a run, whatever became of that. It is a
    teardown of Airflow's, so that the last one still decides whether the run is a good one. `is_chosen`: a form names
    which of these pipelines the run is of, or it certifies in another task than `certify`."""
    revoked = [asset_of(task_ids.revoked_asset(name)) for name in names]
    certified = [asset_of(task_ids.certified_asset(name)) for name in names]
    # A task that ends well has an event of each asset among its outlets, and of an alias only what it says.
    aliases = [AssetAlias(name=task_ids.REVOKED_ALIAS), AssetAlias(name=task_ids.CERTIFIED_ALIAS)]
    reported = task(
        task_id=task_ids.REPORT_WATERMARK,
        execution_timeout=TimeLimits().certify,
        inlets=[*revoked, *certified] if is_chosen else revoked,
        outlets=aliases if is_chosen else revoked,
    )(watermark.report)(has_certificates=is_chosen)
    last >> reported.as_teardown()
