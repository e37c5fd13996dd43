"""Test what commands and tasks say of a journal whose schema is not the one that this makewhole needs."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from makewhole.cli.main import app
from makewhole.journal import database as database_module
from makewhole.journal.database import migrate
from makewhole.journal.deployment import schema_version
from makewhole.journal.deployment.schema_version import require_current
from makewhole.model.errors import ConfigurationError
from makewhole.sql import sql_root
from makewhole.stack.postgres_server import server_binaries
from tests.world.sql import run_sql

pytestmark = pytest.mark.integration

NEEDED = int(max((sql_root() / "migrations").glob("*.sql")).name[:4])
Command = Callable[..., Result]


@pytest.fixture
def makewhole(database: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command against an empty database."""
    monkeypatch.setenv("MAKEWHOLE_JOURNAL_DSN", database)
    monkeypatch.setattr(schema_version, "_current", set())
    return lambda *arguments: CliRunner().invoke(app, [*arguments], env={"COLUMNS": "400"})


def test_without_a_schema_a_command_says_what_to_run_and_migrate_makes_it(makewhole: Command) -> None:
    refused = makewhole("todo")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"could not: journal: schema: has no schema, and this makewhole needs {NEEDED}. Run `makewhole migrate` as the "
        "schema's owner\n"
    )
    checked = makewhole("migrate", "--check")
    assert (checked.exit_code, checked.stdout) == (
        2,
        f"the journal has no schema, and this makewhole needs {NEEDED}. Run `makewhole migrate` as the schema's "
        "owner\n",
    )

    done = makewhole("migrate", "--json")

    applied = [path.stem for path in sorted((sql_root() / "migrations").glob("*.sql"))]
    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {"found": NEEDED, "needed": NEEDED, "is_current": True, "applied": applied},
    )
    assert makewhole("migrate").stdout == f"the journal is at {NEEDED}, as this makewhole needs it\n"
    assert makewhole("migrate", "--check").exit_code == 0
    assert makewhole("todo").stdout == "nothing waits for a person\n"


def test_the_sql_that_is_printed_makes_the_schema_by_psql(makewhole: Command, database: str, tmp_path: Path) -> None:
    script = tmp_path / "migrate.sql"
    script.write_text(makewhole("migrate", "--sql").stdout)
    assert run_sql(database, "select to_regclass('makewhole.window')") == [(None,)]
    command = [str(server_binaries() / "psql"), database, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

    assert migrate(database) == []  # the digests that it wrote are those of the files
    assert makewhole("migrate", "--sql").stdout == f"-- the journal is at {NEEDED}, as this makewhole needs it\n"


def test_an_older_and_a_newer_journal_are_refused(
    makewhole: Command, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(database)
    shutil.copytree(sql_root(), tmp_path / "sql")
    (tmp_path / "sql" / "migrations" / f"{NEEDED + 1:04d}_more.sql").write_text("create table makewhole.more (n int);")
    with monkeypatch.context() as patched:
        patched.setattr(database_module, "sql_root", lambda: tmp_path / "sql")
        with pytest.raises(ConfigurationError, match=f"is at {NEEDED}, and this makewhole needs {NEEDED + 1}. Run"):
            require_current()
        assert makewhole("migrate").stdout.startswith(f"applied {NEEDED + 1:04d}_more\n")
        assert makewhole("todo").exit_code == 0
    schema_version._current.clear()

    refused = makewhole("todo")

    assert (refused.exit_code, refused.stderr) == (
        2,
        f"could not: journal: schema: is at {NEEDED + 1}, and this makewhole knows {NEEDED}: a newer one has migrated "
        "it. Install that version here\n",
    )
    newer = makewhole("migrate")
    assert (newer.exit_code, "a newer one has migrated it" in newer.stdout) == (2, True)


def test_a_statement_that_the_schema_does_not_fit_says_how_to_look(journal: str) -> None:
    run_sql(journal, "alter table makewhole.step_failure drop column reason")
    with (
        pytest.raises(ConfigurationError, match="makewhole migrate --check") as refused,
        database_module.connect(journal) as session,
        session.cursor() as cursor,
    ):
        cursor.execute("select reason from makewhole.step_failure")
    assert 'column "reason" does not exist' in str(refused.value)
