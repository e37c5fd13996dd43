"""Test which URIs of assets DAGs may wait for."""

import pytest
from airflow.sdk import Asset

from makewhole.orchestration import task_ids

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "named", [task_ids.certified_asset, task_ids.revoked_asset, task_ids.published_asset, task_ids.self_check_asset]
)
def test_every_asset_of_ours_keeps_its_uri(named: object) -> None:
    assert callable(named)
    name, uri = named("orders")
    assert Asset(name=name, uri=uri).uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        "makewhole://certifed/orders",
        "makewhole://certified",
        "makewhole://certified/Orders",
        "makewhole://certified/orders/window",
        "makewhole://certified/orders?window=3",
        "makewhole://orders",
    ],
)
def test_an_asset_that_would_never_have_an_event_is_refused_where_a_dag_names_it(uri: str) -> None:
    with pytest.raises(ValueError, match="is no asset of makewhole, and would never have an event; there are"):
        Asset(name="mistaken", uri=uri)
