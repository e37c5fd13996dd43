"""Sum up what was last judged of a key on each hop: where it was lost, repeated or changed, in one sentence."""

from makewhole.journal.key_history import Judgement
from makewhole.journey.trace import Journey
from makewhole.model.text import counted
from makewhole.model.verdict import Verdict


def last_judged(journey: Journey) -> list[Judgement]:
    """Return the newest verdict on each hop that has one, hops in the order of the pipeline.

    A later window in which the key is not takes back nothing. A newer revision of the same window does: what it does
    not say any more of the key does not hold any more.
    """
    newest: dict[str, Judgement] = {}
    standing = [item for item in journey.judgements if item not in journey.superseded]
    for item in sorted(standing, key=lambda item: (item.window, item.revision)):
        newest[item.hop] = item
    places = {stop.point: at for at, stop in enumerate(journey.stops)}
    return sorted(newest.values(), key=lambda item: [places.get(end, len(places)) for end in item.hop.split("→")[::-1]])


def last_judged_text(journey: Journey) -> str:
    """Return the sentence: what is not matched by hop and window, with what became of it; how many hops matched. Empty
    where nothing was judged."""
    judged = last_judged(journey)
    unmatched = [item for item in judged if item.verdict != Verdict.MATCHED.value]
    parts = [_text(item) for item in unmatched]
    matched = len(judged) - len(unmatched)
    if matched:
        parts.append(f"matched on {counted(matched, 'hop')}")
    return "; ".join(parts)


def _text(item: Judgement) -> str:
    window = f"{item.window}" + (f".{item.revision}" if item.revision > 1 else "")
    return f"{item.verdict} on {item.hop} (window {window})" + (f", {item.outcome}" if item.outcome else "")
