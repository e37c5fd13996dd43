"""Run publications of the lab's shop: to their end, or until a call ends the process."""

import importlib
from contextlib import suppress
from typing import Any
from unittest import mock

from makewhole.journal.database import connect
from makewhole.window.context import WindowContext
from makewhole_spark.publish.publish_window import publish_windows
from tests.lab.scenario import Lab
from tests.lab.shop import LabShop
from tests.world.pipeline_file import topic

KILLS = (
    "makewhole.journal.publications.decide",
    "makewhole.publishing.place.show",
    "makewhole.journal.publications.note_visible",
    "makewhole.kafka.replay.ReplayWriter.write",
    "makewhole.journal.publications.note_sent",
)
"""The calls behind which something is kept of what is published, in their order."""


class EndedError(BaseException):
    """Stands for the end of the process."""


def open_publishing(lab: Lab, *, partitions: int = 1, **pipeline: Any) -> LabShop:
    """Open a shop whose topic is published to the folder `once` and into a topic."""
    shop = lab.shop
    once = once_topic(shop)
    lab.cluster.create_topic(once, partitions=partitions, min_isr=2, settings={})
    lab.ends.callback(lab.cluster.delete_topic, once)
    shop.format = {"publish": f"{{path: {shop.folder / 'once'}, topic: once}}"}
    tolerance = {"duplicate": "1000", "conflict": "1000", "mismatched": "1000", "unexpected": "1000"}
    points = {"once": topic("log", once)}
    return shop.open_shop(partitions=partitions, more_points=points, tolerance=tolerance, **pipeline)


def once_topic(shop: LabShop) -> str:
    """Return the topic into which the shop's topic is published."""
    return f"{shop.topic}-once"


def publish(shop: LabShop, context: WindowContext) -> None:
    """Publish what is left."""
    with connect(shop.journal) as journal:
        publish_windows(shop.carrier, journal, context)


def publish_and_end(shop: LabShop, context: WindowContext, place: str, *, is_after: bool) -> None:
    """Publish until a call ends the process; the call may not come any more."""
    owner, _, name = place.rpartition(".")
    target = _resolved(owner)
    real = getattr(target, name)

    def call(*args: object, **kwargs: object) -> None:
        if is_after:
            real(*args, **kwargs)
        raise EndedError

    with mock.patch.object(target, name, call), suppress(EndedError):
        publish(shop, context)


def _resolved(name: str) -> Any:
    """Return a module, or a class of one, by its name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, owner = name.rpartition(".")
        return getattr(importlib.import_module(module), owner)
