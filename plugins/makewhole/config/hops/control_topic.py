"""Read `control_topic` of a hop: that of the Kafka Connect sink which loads an Iceberg table."""

from makewhole.config import values
from makewhole.config.points import PointDraft
from makewhole.config.tree import Section
from makewhole.model.points import can_look_up

_ICEBERG = "iceberg"


def read_control_topic(section: Section, name: str, target: PointDraft | None) -> str | None:
    """Return its name; what is wrong is noted. `name` is the hop's."""
    place = section.get("control_topic")
    if place is None:
        return None
    point = None if target is None else target.point
    if point is not None and not (can_look_up(point) and point.dataset and point.dataset.format == _ICEBERG):
        place.complain(
            f"{name} leads into no Iceberg table, and only the sink of one has a control topic",
            "Take the line out, or make the target a 'kind: dataset' with 'format: iceberg'",
        )
    if section.get_quietly("consumer_group") is None:
        place.complain(
            "says nothing of how far a sink is without the group of its tasks",
            "Name the group, 'consumer_group: connect-NAME' with the name of the connector",
        )
    if section.get_quietly("progress") is not None:
        place.complain("is beside 'progress', and a sink has one progress", "Take one of the two lines out")
    return place.text(values.topic)
