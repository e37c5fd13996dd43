"""What is expected of the logs themselves: that nothing happened to them which leaves the window unproven."""

from collections.abc import Sequence

from makewhole.gate.planned import Number, Role
from makewhole.gate.suite import HopSuite
from makewhole.model.incident import Incident, IncidentKind
from makewhole.model.incident_text import told
from makewhole.model.pipeline import Pipeline

_BLOCKING = (IncidentKind.TRUNCATED, IncidentKind.TOPIC_RECREATED, IncidentKind.HANGING_TRANSACTION)
_TOLD_AT_MOST = 3


def incident_suite(pipeline: Pipeline, incidents: Sequence[Incident]) -> HopSuite:
    """One number per kind that can block. Offsets that could never be read are counted with their point already."""
    numbers = tuple(
        _number(kind, [one for one in incidents if one.kind is kind and one.blocks(pipeline) and not one.is_partial])
        for kind in _BLOCKING
    )
    return HopSuite(hop="logs", numbers=numbers)


def _number(kind: IncidentKind, found: Sequence[Incident]) -> Number:
    listed = "; ".join(told(one) for one in found[:_TOLD_AT_MOST])
    more = f"; and {len(found) - _TOLD_AT_MOST} more" if len(found) > _TOLD_AT_MOST else ""
    return Number(
        name=kind.value,
        value=len(found),
        at_most=0,
        sentence=f"{listed}{more}" if found else f"nothing is {kind.value}",
        role=Role.FINDING,
    )
