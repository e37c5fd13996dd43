"""Hold the result of a dry run: counts by kind of action and target, and a few actions in full."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from makewhole.kafka.replay_records import Header
from makewhole.model.plan import Action, Plan
from makewhole.postgres.write.dry_run import RowChange


class Forecast(StrEnum):
    """The outcome that an action would have now."""

    WOULD = "would be done"
    REFUSED = "refused"
    WAITS = "waits"
    """An earlier action is about the same key."""
    DONE = "done already"


@dataclass(frozen=True, kw_only=True)
class DryRunPart:
    """The actions of one kind at one target. `forecasts` add up to `actions`; `reasons` counts the refusals by reason,
    `payload_from` the actions by the source of their payload."""

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
    sending. `fields`: names at the top of a JSON object; None: the value is no object."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp_ms: int | None
    fields: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One action and its forecast. `shown`: its change of a table, or the record that it would send."""

    action: Action
    forecast: Forecast
    reason: str | None
    shown: RowChange | RecordToSend


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The forecast of a plan. `stopped_by`: the reason why the plan as a whole would not start now; None: it would."""

    plan: Plan
    stopped_by: str | None
    parts: tuple[DryRunPart, ...]
    samples: tuple[Sample, ...]

    def count(self, forecast: Forecast) -> int:
        """Return the number of actions with this forecast."""
        return sum(part.forecasts[forecast] for part in self.parts)
