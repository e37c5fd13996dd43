"""People and groups may answer as the policy says, and never everybody by mistake."""

import pytest

from makewhole.compensation.approval.rights import rights_of
from makewhole.model.errors import RefusedError
from makewhole.model.pipeline import Approval

pytestmark = pytest.mark.unit

GROUPS = {"payments": ("anna", "ben"), "empty": ()}


def test_groups_are_their_people() -> None:
    rights = rights_of(Approval(by=("oncall", "group:payments", "anna")), GROUPS)
    assert rights.people == ("oncall", "anna", "ben")
    assert [rights.allow(name) for name in ("anna", "ben", "oncall")] == [True] * 3
    assert [rights.allow(name) for name in ("payments", "group:payments", "Anna", "", "empty")] == [False] * 5
    assert str(rights) == "oncall, group:payments (anna, ben), anna"


def test_no_name_is_anybody() -> None:
    rights = rights_of(Approval(), GROUPS)
    assert (rights.people, rights.allow("whoever"), str(rights)) == ((), True, "")


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_group_without_people_is_refused_and_no_right_for_anybody(name: str) -> None:
    with pytest.raises(RefusedError) as caught:
        rights_of(Approval(by=("oncall", f"group:{name}")), GROUPS)
    assert str(caught.value) == (
        f"compensation.approval.by names group {name}, and the file of MAKEWHOLE_GROUPS has no person in it; no answer "
        "is possible. Write the group there, or name people in the pipeline file"
    )
