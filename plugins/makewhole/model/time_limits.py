"""Hold the longest time that one try of each step of a window may take."""

from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class TimeLimits:
    """The longest time that one try of each step may take. A wait for a person, or for the settle time, is not in it.

    The defaults are far above what a healthy step takes: they end what hangs, not what is long.
    """

    open_window: timedelta = timedelta(hours=1)
    snapshot: timedelta = timedelta(hours=12)
    reconcile: timedelta = timedelta(hours=12)
    validate: timedelta = timedelta(hours=4)
    plan: timedelta = timedelta(hours=4)
    compensate: timedelta = timedelta(days=1)
    verify: timedelta = timedelta(hours=12)
    certify: timedelta = timedelta(hours=1)

    @property
    def publish(self) -> timedelta:
        """The limit of publishing a window, which reads as much as its snapshot does."""
        return self.snapshot

    @property
    def longest(self) -> timedelta:
        """The limit of the step that may take longest: of every single statement, too."""
        limits: list[timedelta] = [getattr(self, item.name) for item in fields(self)]
        return max(limits)


DEFAULT_LIMITS = TimeLimits()
