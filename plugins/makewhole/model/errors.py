"""Define every exception that makewhole raises.

MakewholeError
├── TransientError            a retry may help: a server is away, a read came up short
│   ├── LeaseLostError        another runner took over; this one must stop at once
│   └── NotYetError           there is nothing to do but to wait; come back later
│       └── PlanPausedError   a person paused the plan; go on when it is resumed
└── PermanentError            a retry will not help: a person has to act
    ├── ConfigurationError    the pipeline file or the environment is wrong; carries every problem
    │   └── JudgedElsewhereError another Airflow judges the pipeline
    ├── RefusedError          an operation that would do harm was refused
    │   ├── ActionRefusedError  the same of one action of a plan, or of one finding; carries the refusal
    │   └── RequestRefusedError what was asked for cannot be, as it was asked: ask for something else
    └── CorruptionError       stored evidence does not agree with itself

A discrepancy between points is a result (a verdict), never an exception.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from makewhole.model.refusal import Refusal, RefusalCode

DEFECTS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    TypeError,
)
"""The errors that Python raises where the program is wrong: no retry brings the missing name or the right type."""


class MakewholeError(Exception):
    """The root of all. Its message says what happened, to which thing, and what to do now."""


class TransientError(MakewholeError):
    """An error after which a retry may help."""


class LeaseLostError(TransientError):
    """Another runner holds the lease; nothing more may be written by this one."""


class NotYetError(TransientError):
    """There is nothing to do now but to wait: whoever can come back later holds nothing meanwhile."""


class PlanPausedError(NotYetError):
    """The plan is paused; nothing more is written until a person resumes it."""


class PermanentError(MakewholeError):
    """An error after which a retry will not help."""


class RefusedError(PermanentError):
    """The operation would do harm, or its preconditions do not hold."""

    @property
    def refusal(self) -> Refusal:
        """Return it as the refusal of the action that cannot be done for it."""
        return Refusal.of_text(str(self))


class ActionRefusedError(RefusedError):
    """An action of a plan is not done, or a finding is not repaired. Carries the refusal, whose text is its message."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)  # as it is, so that it is pickled, too
        self._refusal = refusal

    @classmethod
    def of(cls, code: RefusalCode, text: str) -> Self:
        """Return the error of a refusal with this code and text."""
        return cls(Refusal(code, text))

    @property
    def refusal(self) -> Refusal:
        """Return the refusal that it was raised with."""
        return self._refusal


class RequestRefusedError(RefusedError):
    """A request that cannot be done as it was asked: another one may. Nothing stands still for it."""


class CorruptionError(PermanentError):
    """Stored evidence (manifest, payload file, plan, certificate) does not match its digest."""


class RemovedError(CorruptionError):
    """Files that were kept as long as the pipeline's `keep` says, and were removed since."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong in a file: where, what was found, what to write instead."""

    file: str
    path: str
    found: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.path}: {self.found}. {self.remedy}"


class ConfigurationError(PermanentError):
    """A configuration with mistakes. Carries all problems at once, so that one pass corrects them all."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type["ConfigurationError"], tuple[Sequence[Problem]]]:
        """Pickle the problems: an exception by itself pickles its message, of which no problem can be made again."""
        return type(self), (self.problems,)


class JudgedElsewhereError(ConfigurationError):
    """Another deployment of Airflow judges the pipeline: this one leaves it alone."""
