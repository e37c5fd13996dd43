"""Run PostgreSQL servers of a test's own: a standby that lags, one that forgets what it committed."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import psutil
from psycopg2.extensions import parse_dsn

from makewhole.stack.ports import LOOPBACK, free_ports
from makewhole.stack.postgres_server import PostgresServer, server_binaries, server_user


def standby_of(
    primary: PostgresServer, folder: Path, *, lag: str, settings: Mapping[str, str] = MappingProxyType({})
) -> PostgresServer:
    """Start a standby that replays each commit of its primary so much later."""
    access = parse_dsn(primary.dsn("postgres"))
    folder.mkdir()
    (folder / "access.json").write_text(json.dumps({"port": free_ports(1)[0], "password": access["password"]}))
    standby = PostgresServer(folder, is_durable=False, settings={"recovery_min_apply_delay": lag, **settings})
    user = server_user()
    data = folder / "data"
    data.mkdir(mode=0o700)
    if user:
        shutil.chown(data, user, user)
    done = subprocess.run(
        [
            str(server_binaries() / "pg_basebackup"),
            "-D",
            str(data),
            "-d",
            primary.dsn("postgres"),
            "-X",
            "stream",
            "-R",
        ],
        cwd=data,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        user=user,
        group=user,
        extra_groups=[] if user else None,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    standby.start()
    return standby


def primary_and_standby(folder: Path, ends: ExitStack, prepared: int) -> tuple[str, str]:
    """Start a primary that takes so many prepared transactions, and a standby that follows it at once; return their
    DSNs."""
    settings = {"max_prepared_transactions": str(prepared)}
    primary = PostgresServer(folder / "primary", is_durable=False, settings=settings)
    ends.callback(primary.stop)
    primary.start()
    standby = standby_of(primary, folder / "standby", lag="0", settings=settings)
    ends.callback(standby.stop)
    return primary.dsn("postgres"), standby.dsn("postgres")


def hold_wal_back(server: PostgresServer) -> None:
    """Stop the process that writes out what was committed without waiting for the disk."""
    for child in _children(server):
        if "walwriter" in " ".join(child.cmdline()):
            child.suspend()
            return
    raise AssertionError(f"no process of the server at {LOOPBACK}:{server.port} writes its log")


def kill(server: PostgresServer) -> None:
    """Kill the postmaster, and what it started, with SIGKILL."""
    children = _children(server)
    psutil.Process(server.process.pid()).kill()
    for child in children:
        if child.is_running():
            child.kill()
    psutil.wait_procs(children, timeout=20)


def _children(server: PostgresServer) -> list[psutil.Process]:
    pid = server.process.pid()
    assert pid is not None
    return psutil.Process(pid).children(recursive=True)
