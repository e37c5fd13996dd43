"""Choose the findings of a window that a person names, and report of the others why they cannot be accepted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from makewhole.journal import windows
from makewhole.journal.findings import window_findings
from makewhole.journal.findings.stored_findings import StoredFindings
from makewhole.journal.findings.window_findings import JudgedFinding
from makewhole.journal.results import hop_results
from makewhole.model.acceptance import ACCEPTABLE, ACCEPTED, Selection, finding_id
from makewhole.model.errors import RefusedError
from makewhole.model.text import counted
from makewhole.model.verdict import NOT_KNOWN, Finding, Verdict
from makewhole.model.window import Window, WindowState
from makewhole.sql import PgConnection

_REASONS_MOST = 5
_OPEN = ("open", "refused")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The findings of `window` that a person may accept. `left`: how many others were named, by the reason why they
    cannot be accepted."""

    window: Window
    findings: Sequence[Finding]
    left: Mapping[str, int] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Return what cannot be accepted, and why."""
        return [f"{counted(number, 'finding')} cannot be accepted: {why}" for why, number in self.left.items()]


def judged_window(journal: PgConnection, pipeline: str, number: int) -> Window:
    """Return the newest revision of a window, which was judged to its end.

    Raises:
        RefusedError: there is no such window, or it is not judged; what has to happen first is in the message.
    """
    newest = windows.newest(journal, pipeline, number=number)
    if not newest:
        there_are = windows.count(journal, pipeline)
        raise RefusedError(
            f"{pipeline} has no window {number}; there are {there_are}, see `makewhole windows {pipeline}`"
        )
    window = newest[0]
    if window.state is WindowState.OPEN:
        raise RefusedError(f"{window.label} is being judged; nothing can be accepted before its run has ended")
    if window.state is WindowState.ERROR or not hop_results.results(journal, window):
        raise RefusedError(
            f"{window.label} was not judged to its end ({window.reason or window.state.value}), so it is not known "
            f"what is wrong; nothing can be accepted before it is: makewhole run {pipeline}"
        )
    return window


def choose(journal: PgConnection, window: Window, selection: Selection) -> Chosen:
    """Return the findings of a judged window that a selection names and a person may accept.

    Raises:
        RefusedError: a name is of no finding, or none of those that are named can be accepted.
    """
    taken, left = list[Finding](), Counter[str]()
    unknown = set(selection.names)
    for item in StoredFindings(window=window).in_order(journal):
        if not selection.takes(item.finding):
            continue
        unknown -= {finding_id(item.finding.hop, item.finding.key_hash), item.finding.key}
        why = _why_not(item)
        if why is None:
            taken.append(item.finding)
        elif not (selection.is_all and _is_settled(item)):
            left[why] += 1
    if unknown:
        raise RefusedError(_unknown_sentence(window, sorted(unknown)))
    if selection.is_all:
        left.update(_left_out(journal, window))
    return _required(Chosen(window=window, findings=taken, left=dict(left.most_common(_REASONS_MOST))), selection)


def without(chosen: Chosen, reasons: Mapping[tuple[str, str], str], selection: Selection) -> Chosen:
    """Return the choice without some findings (hop and key hash), each with the reason why it cannot be accepted."""
    kept = [finding for finding in chosen.findings if (finding.hop, finding.key_hash) not in reasons]
    left = Counter(chosen.left) + Counter(reasons.values())
    return _required(Chosen(window=chosen.window, findings=kept, left=dict(left.most_common(_REASONS_MOST))), selection)


def _required(chosen: Chosen, selection: Selection) -> Chosen:
    """Return a choice of at least one finding, and of all that were named one by one.

    Raises:
        RefusedError: it is not.
    """
    if chosen.findings and not (selection.names and chosen.left):
        return chosen
    label = chosen.window.label
    if chosen.left:
        raise RefusedError(f"{label}: nothing was accepted. {'. '.join(chosen.sentences())}")
    by_cause = "" if selection.cause is None else f" of cause {selection.cause.value}"
    raise RefusedError(
        f"{label} has no open finding{by_cause}: there is nothing to accept; see `makewhole findings "
        f"{chosen.window.pipeline} --window {chosen.window.number}`"
    )


def _is_settled(item: JudgedFinding) -> bool:
    """Return whether a finding asks for nothing: it is not reported as left out where all are to be accepted."""
    return item.finding.verdict is Verdict.ERASED or item.outcome not in (*_OPEN, ACCEPTED)


def _why_not(item: JudgedFinding) -> str | None:
    """Return why a finding cannot be accepted; None: it can."""
    verdict = item.finding.verdict
    if item.outcome == ACCEPTED:
        return f"accepted already, {item.reason}"
    if verdict in NOT_KNOWN:
        meaning = "still in flight and judged by the next window" if verdict is Verdict.PENDING else item.finding.cause
        return f"{verdict.value} ({meaning}): what is not known cannot be accepted, only what is known to be wrong"
    if verdict not in ACCEPTABLE:
        return f"{verdict.value}: nothing is wrong with it"
    if item.outcome not in _OPEN:
        return f"{item.outcome} already"
    return None


def _left_out(journal: PgConnection, window: Window) -> dict[str, int]:
    """Count what the journal did not take of a window with very many findings."""
    beyond = sum(
        number
        for (_, verdict), number in window_findings.count_left_out(journal, window).items()
        if verdict in ACCEPTABLE
    )
    why = "the journal keeps no more of a window than it has; find out what broke, and run the window again"
    return {why: beyond} if beyond else {}


def _unknown_sentence(window: Window, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_REASONS_MOST]) + (
        f" and {len(names) - _REASONS_MOST} more" * (len(names) > _REASONS_MOST)
    )
    return (
        f"{window.label} has no finding {shown}; nothing was accepted. `makewhole findings {window.pipeline} --window "
        f"{window.number}` shows their ids and keys; a finding of another window is accepted with that --window"
    )
