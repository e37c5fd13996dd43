"""Test what is found of tables and of their databases, each wrong in one way."""

import uuid

import pytest

from tests.integration.window.delivery.findings import BROKEN, RISK, UNKNOWN, Broken, claim, examined, found
from tests.world.windows import ReconciledShop

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


ALL_NULL = (
    "create function swallow() returns trigger language plpgsql as "
    "$$ begin if new.amount > 1000 then return null; end if; return new; end $$"
)
STAMPS = "create function stamp() returns trigger language plpgsql as $$ begin new.region := 'x'; return new; end $$"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["alter table warehouse set unlogged"], [(BROKEN, "persistence")]),
        (["alter table outbox set unlogged"], [(BROKEN, "persistence")]),
        (
            [ALL_NULL, "create trigger s before insert on warehouse for each row execute function swallow()"],
            [(RISK, "trigger s")],
        ),
        (
            [
                ALL_NULL,
                "create trigger s before insert on warehouse for each row execute function swallow()",
                "alter table warehouse disable trigger s",
            ],
            [],
        ),
        ([STAMPS, "create trigger s before insert on warehouse for each row execute function stamp()"], []),
        (
            ["create trigger s before update on warehouse for each row "
             "execute function suppress_redundant_updates_trigger()"],
            [(UNKNOWN, "trigger s")],
        ),
        (["create rule r as on insert to warehouse where new.amount > 9 do instead nothing"], [(RISK, "rule r")]),
        (["create rule r as on insert to warehouse do also notify orders"], []),
    ],
    ids=lambda value: str(value[-1])[:60] if value else "none",
)  # fmt: skip
def test_each_way_in_which_a_table_loses_rows_is_found(
    clean: ReconciledShop, statements: list[str], expected: list[Broken]
) -> None:
    for statement in statements:
        clean.sql(statement)

    assert found(clean) == expected


def test_a_database_and_a_role_that_do_not_wait_for_the_disk(clean: ReconciledShop) -> None:
    role, (name,) = f"loader_{uuid.uuid4().hex}", clean.sql("select current_database()")[0]
    clean.sql(f"create role {role}")
    clean.sql(f"alter role {role} in database {name} set synchronous_commit = off")
    try:
        (weakness, _) = examined(clean).weaknesses * 2
        assert (weakness.setting, weakness.value) == ("synchronous_commit", f"off for role {role}")
        clean.sql(f"alter database {name} set synchronous_commit = off")
        assert [item.value for item in examined(clean).weaknesses] == ["off", f"off for role {role}"]
        assert {item.remedy for item in examined(clean).weaknesses} == {
            f'alter database "{name}" set synchronous_commit = on',
            f'alter role "{role}" set synchronous_commit = on',
        }
    finally:
        clean.sql(f"alter role {role} in database {name} reset synchronous_commit")
        clean.sql(f"drop role {role}")


@pytest.mark.parametrize(
    ("statements", "is_unique"),
    [
        ([], False),
        (["create unique index on warehouse (id)"], True),
        (["create unique index on warehouse (id)", "alter table warehouse alter id set not null"], True),
        (
            ["create unique index on warehouse (id) where number > 0", "alter table warehouse alter id set not null"],
            False,
        ),
        (["create unique index on warehouse (id, number)", "alter table warehouse alter id set not null"], False),
        (["create index on warehouse (id)", "alter table warehouse alter id set not null"], False),
        (["alter table warehouse add primary key (id)"], True),
    ],
    ids=str,
)
def test_exactly_once_needs_a_unique_key_of_the_compared_key(
    clean: ReconciledShop, statements: list[str], is_unique: bool
) -> None:
    claim(clean, "exactly-once")
    for statement in statements:
        clean.sql(statement)

    assert ((BROKEN, "unique key") in found(clean)) is not is_unique
