"""Put an event into an asset, whether the task names the asset or an alias of it."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset, AssetAlias


def asset_of(name_and_uri: tuple[str, str]) -> Asset:
    """Return an asset by its name and URI."""
    name, uri = name_and_uri
    return Asset(name=name, uri=uri)


def update_asset(events: Any, name_and_uri: tuple[str, str], alias: str, extra: Mapping[str, Any]) -> None:
    """Put an event into an asset; Airflow takes the one of the two that the task has."""
    asset = asset_of(name_and_uri)
    events[asset].extra = dict(extra)
    events[AssetAlias(name=alias)].add(asset, extra=dict(extra))
