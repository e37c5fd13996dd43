"""Check what is said of how a copier commits its offsets."""

from typing import Any

import pytest

from makewhole.window.readers.copier_text import commits_text, copier_sentence

pytestmark = pytest.mark.unit

HARM = "a copier that dies before it has made both commits loses or repeats what lies between them"


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({"within": 1, "outside": 0}, "group `g` commits its offsets in its transactions (1 commit known)"),
        (
            {"within": 0, "outside": 1200},
            f"group `g` commits its offsets outside of any transaction (1,200 commits known): {HARM}",
        ),
        (
            {"within": 2, "outside": 3},
            f"group `g` has made 2 commits in transactions and 3 outside of any: {HARM}; an offset that was set by "
            "hand is one, too",
        ),
        (
            {"within": 0, "outside": 0},
            "no commit of group `g` that covers these records is known any more: Kafka keeps the newest alone",
        ),
        ({"unknown": "no right"}, "how group `g` commits its offsets is not known: no right"),
    ],
)
def test_a_sentence_says_how_the_group_commits(known: dict[str, Any], sentence: str) -> None:
    assert copier_sentence({"group": "g", **known}) == sentence


def test_commits_are_named_by_their_offsets_and_transactions() -> None:
    commits: list[dict[str, Any]] = [
        {"partition": 0, "lo": None, "hi": 7, "producer_id": None, "producer_epoch": None},
        {"partition": 1, "lo": 7, "hi": 9, "producer_id": 1000, "producer_epoch": 3},
    ]

    assert commits_text(commits) == (
        "[?, 7) of partition 0 outside of any transaction, [7, 9) of partition 1 in a transaction of producer 1000 "
        "epoch 3"
    )
