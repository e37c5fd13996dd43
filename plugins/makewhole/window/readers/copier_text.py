"""Describe how the copier of a topic commits its offsets: in its transactions, or outside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from makewhole.model.text import counted


def copier_sentence(known: Mapping[str, Any]) -> str:
    """Return what is known of a copier as one sentence without its full stop; `known` is kept with a hop's result."""
    name = known["group"]
    if "unknown" in known:
        return f"how group `{name}` commits its offsets is not known: {known['unknown']}"
    within, outside = known["within"], known["outside"]
    if not within and not outside:
        return f"no commit of group `{name}` that covers these records is known any more: Kafka keeps the newest alone"
    if not outside:
        return f"group `{name}` commits its offsets in its transactions ({counted(within, 'commit')} known)"
    loses = "a copier that dies before it has made both commits loses or repeats what lies between them"
    if not within:
        known_commits = counted(outside, "commit")
        return f"group `{name}` commits its offsets outside of any transaction ({known_commits} known): {loses}"
    return (
        f"group `{name}` has made {counted(within, 'commit')} in transactions and {outside:,} outside of any: {loses}; "
        "an offset that was set by hand is one, too"
    )


def commits_text(commits: Sequence[Mapping[str, Any]]) -> str:
    """Return which commits cover a key's records, each with its offsets and its transaction."""
    return ", ".join(_commit(commit) for commit in commits)


def _commit(commit: Mapping[str, Any]) -> str:
    begin = "?" if commit["lo"] is None else commit["lo"]
    offsets = f"[{begin}, {commit['hi']}) of partition {commit['partition']}"
    if commit["producer_id"] is None:
        return f"{offsets} outside of any transaction"
    return f"{offsets} in a transaction of producer {commit['producer_id']} epoch {commit['producer_epoch']}"
