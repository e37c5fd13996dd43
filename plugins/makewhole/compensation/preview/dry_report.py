"""What a dry run says: of each kind of action at each target how many would be done, and a few of them in full."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from makewhole.kafka.replay_records import Header
from makewhole.model.plan import Action, Plan
from makewhole.postgres.write.dry_run import RowChange


class Forecast(StrEnum):
    """What would become of an action now."""

    WOULD = "would be done"
    REFUSED = "refused"
    WAITS = "waits"
    """For an earlier action on the same key."""
    DONE = "done already"


@dataclass(frozen=True, kw_only=True)
class DryRunPart:
    """The actions of one kind at one target. `forecasts` add up to `actions`; `reasons` counts the refusals by reason,
    `payload_from` where what they write was taken from when the plan was frozen."""

    remedy: str
    target: str
    place: str
    actions: int
    forecasts: Mapping[Forecast, int]
    reasons: Mapping[str, int]
    payload_from: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class RecordToSend:
    """A record as it would be sent. `partition` None: the partitioner's choice; `timestamp_ms` None: the moment of
    sending. `fields` are the names at the top of a JSON object, None where the value is none."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp_ms: int | None
    fields: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One action: `shown` is what it would do to a table, or the record that it would send."""

    action: Action
    forecast: Forecast
    reason: str | None
    shown: RowChange | RecordToSend


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """`stopped_by` says why the plan as a whole would not start now; None: it would."""

    plan: Plan
    stopped_by: str | None
    parts: tuple[DryRunPart, ...]
    samples: tuple[Sample, ...]

    def count(self, forecast: Forecast) -> int:
        """Of all actions."""
        return sum(part.forecasts[forecast] for part in self.parts)
