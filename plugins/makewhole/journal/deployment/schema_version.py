"""Hold the schema of a journal to what this makewhole needs: which migrations it has, and which it lacks."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from makewhole.journal.database import connect, migration_files
from makewhole.journal.deployment.address import journal_dsn
from makewhole.model.errors import ConfigurationError, Problem
from makewhole.sql import PgConnection, single_value, sql_root, statements_of

_run = statements_of("migration")
_GRANT = re.compile(r"^grant ([a-z, ]+?) on\s+(makewhole\.[^;]+?)\s+to ", re.MULTILINE)
_current: set[str] = set()
"""The URIs of the journals that this process has found to fit: a journal is not taken back while it works."""


@dataclass(frozen=True, kw_only=True)
class SchemaVersion:
    """The version of a journal, 0 without a schema, and the one that this makewhole needs. `pending` are the files that
    lie between."""

    found: int
    needed: int
    pending: Sequence[Path]

    @property
    def is_current(self) -> bool:
        """Return whether the journal is as this makewhole needs it."""
        return self.found == self.needed

    def sentence(self) -> str:
        """Return in a sentence which version there is, and what to do."""
        if self.is_current:
            return f"the journal is at {self.found}, as this makewhole needs it"
        at = "has no schema" if not self.found else f"is at {self.found}"
        if self.found > self.needed:
            return (
                f"the journal {at}, and this makewhole knows {self.needed}: a newer one has migrated it. Install that "
                "version here"
            )
        return (
            f"the journal {at}, and this makewhole needs {self.needed}. Run `makewhole migrate` as the schema's owner"
        )


def schema_version(journal: PgConnection) -> SchemaVersion:
    """Return which version a journal has, and what is missing."""
    files = {int(path.name[:4]): path for path in migration_files()}
    has_schema = single_value(_run(journal, "has_schema"))
    version = int(single_value(_run(journal, "version"))) if has_schema else 0
    pending = [path for number, path in sorted(files.items()) if number > version]
    return SchemaVersion(found=version, needed=max(files), pending=pending)


def require_current(dsn: str | None = None) -> None:
    """Return when the journal has the schema that this makewhole needs; asked once in a process.

    Raises:
        ConfigurationError: it has an older one, a newer one, or none.
        TransientError: it does not answer.
    """
    uri = dsn or journal_dsn()
    if uri in _current:
        return
    with connect(uri) as journal:
        version = schema_version(journal)
    if not version.is_current:
        found, _, remedy = version.sentence().partition(". ")
        found = found.removeprefix("the journal ")
        raise ConfigurationError([Problem(file="journal", path="schema", found=found, remedy=remedy)])
    _current.add(uri)


def migration_script(pending: Sequence[Path]) -> str:
    """Return the SQL that applies migrations, in one transaction, for people who apply it themselves."""
    parts = ["begin;"]
    for path in pending:
        text = path.read_text(encoding="utf-8")
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        values = f"{int(path.name[:4])}, '{path.stem}', '{sha256}'"
        parts += [text, f"insert into makewhole.migration (version, name, sha256) values ({values});"]  # noqa: S608
    return "\n".join([*parts, "commit;"])


def missing_rights(dsn: str | None = None) -> Problem | None:
    """Return which rights on the journal's tables its user does not have that `sql/grants` gives to the service; None:
    it has all of them.

    Raises:
        TransientError: the journal does not answer.
    """
    script = (sql_root() / "grants" / "journal_application.sql").read_text(encoding="utf-8")
    needed = [
        (table.strip(), right.strip())
        for rights, tables in _GRANT.findall(script)
        for table in tables.split(",")
        for right in rights.split(",")
    ]
    tables, rights = map(list, zip(*needed, strict=True))
    with connect(dsn) as journal:
        missing = [row.missing for row in _run(journal, "missing_rights", tables=tables, rights=rights)]
        user = journal.info.user
    if not missing:
        return None
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return Problem(
        file="journal",
        path="schema makewhole",
        found=f"user {user} has no right to {', '.join(missing[:3])}{more}",
        remedy=f"Run as the schema's owner: psql -v role={user} -f sql/grants/journal_application.sql",
    )
