"""Hold what makewhole said and did of a window of routes to what was true: each difference is a sentence."""

from collections.abc import Iterator

from tests.histories.routes.events import LEDGERS, TABLE_OF, TOPICS, Link, place_of
from tests.histories.routes.held import Held, Seen

_NOT_PROVEN = {"pending", "undecidable"}


def differences(seen: Seen) -> list[str]:
    """Return everything that makewhole said or did in a window and that was not right."""
    wrong = [*_of_verdicts(seen), *_of_end(seen), *seen.unnamed]
    if seen.before is not None and seen.after is not None:
        wrong += _of_repair(seen.before, seen.after)
    return [f"window of day {seen.day} ({seen.state}): {difference}" for difference in wrong]


def _of_verdicts(seen: Seen) -> Iterator[str]:
    held = seen.moments[0]
    for link in held.history.links:
        for number in sorted(held.numbers()):
            verdict, cause = seen.found.get((link, number), (None, None))
            right = _right(seen, held, link, number)
            if not seen.is_about(link, number):
                right = right | {None}
            if verdict not in right:
                shown = f"right is {' or '.join(sorted(map(str, right)))}. {_shown(held, number)}"
                yield f"{'→'.join(link)}, {number}: said {verdict} ({cause}), {shown}"


def _right(seen: Seen, held: Held, link: Link, number: int) -> set[str | None]:
    """Return the right verdicts; where it is not known what a group has read, what is not there may yet come."""
    right = held.right(link, number)
    if "duplicate" in right and seen.is_of_earlier(held, link[1], number):
        right |= {None}  # a repeat is a finding of the window that it lies in
    if link in seen.unreached and "missing" in right:
        return {*(right - {"missing"}), *_NOT_PROVEN}
    return right


def _of_end(seen: Seen) -> Iterator[str]:
    held = seen.moments[0]
    wrong = [
        (link, number)
        for link in held.history.links
        for number in held.numbers()
        if seen.is_about(link, number) and _right(seen, held, link, number) - {None}
    ]
    if seen.state == "certified":
        for link, number in wrong:
            if not any(moment.is_whole(link, number) for moment in seen.moments):
                yield f"certified over {number} on {'→'.join(link)}. {_shown(seen.moments[-1], number)}"
        return
    if seen.state not in ("gaps", "not_known"):
        yield f"the window came to no end: {seen.reason}"
    if not seen.reason:
        yield "there is no reason"
    if not wrong and not seen.unreached and all(seen.is_about(*place) for place in seen.found):
        yield f"nothing is wrong, and it is not certified: {seen.reason}"


# What it did


def _of_repair(before: Held, after: Held) -> Iterator[str]:
    if not before.history.is_repairing and before.copies != after.copies:
        yield "the pipeline only reports, and something was written"
    for number in sorted(before.numbers() | after.numbers()):
        shown = f"{_shown(before, number)} → {_shown(after, number)}"
        for point in dict.fromkeys(place_of(point) for link in before.history.links for point in link):
            if before.all_of(point, number) != after.all_of(point, number):
                texts = _of_topic if point in TOPICS else _of_rows
                yield from (f"{number} at {point}: {text}. {shown}" for text in texts(before, after, point, number))


def _of_topic(before: Held, after: Held, point: str, number: int) -> Iterator[str]:
    had = before.all_of(point, number)
    sent = [copy for copy in after.all_of(point, number) if copy not in had]
    gaps = [link for link in before.history.links if link[0] == point and "missing" in before.right(link, number)]
    if len(sent) != 1:
        yield f"{len(sent)} records of it were sent"
    if had and not (before.history.redelivers and gaps):
        yield "was sent, and was there"
    due = next(iter(before.values(point, number))) if had else before.due(point, number)
    if {copy.values for copy in sent} != {due} or before.is_disputed(point, number):
        yield "was sent with what its sources do not say, or do not agree on"


def _of_rows(before: Held, after: Held, point: str, number: int) -> Iterator[str]:
    old, new, due = before.of(point, number), after.of(point, number), before.due(point, number)
    if point in LEDGERS:
        yield "the ledger was written to"
    points = [name for name, table in TABLE_OF.items() if table == point]
    links = [link for link in before.history.links if link[1] in points]
    if not any(before.right(link, number) - {None} for link in links):
        yield "was right, and was written to"
    if not new and before.expected(point, number):
        yield "has no row any more, and its source has it"
    if new and len(new) >= len(old) and [copy.values for copy in new] != [due]:
        yield "has not what its sources say, or was written although they do not agree"
    had, has = {copy.values for copy in old}, {copy.values for copy in new}
    if new and len(new) < len(old) and due in had - has:
        yield "lost its right row"


def _shown(held: Held, number: int) -> str:
    points = dict.fromkeys(place_of(point) for link in held.history.links for point in link)
    return ", ".join(f"{point} {[copy.values for copy in held.of(point, number)]}" for point in points)
