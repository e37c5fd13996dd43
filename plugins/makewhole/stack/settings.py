"""Keep what a local stack needs between `down` and `up`: folders, Airflow's ports, secrets, passwords."""

import base64
import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from makewhole.model.errors import CorruptionError
from makewhole.private_files import FILE_MODE
from makewhole.stack.ports import free_ports

USERS = {"admin": "admin", "oncall": "op", "viewer": "viewer"}  # name: role in Airflow's simple authentication


@dataclass(frozen=True, kw_only=True)
class AirflowSettings:
    """The ports, secrets and passwords of Airflow. Chosen once; only the ports can change."""

    api_port: int
    worker_log_port: int
    trigger_log_port: int
    jwt_secret: str = field(repr=False)
    secret_key: str = field(repr=False)
    fernet_key: str = field(repr=False)
    passwords: dict[str, str] = field(repr=False)


def project_root() -> Path:
    """Return the checkout that this code runs from: it holds `dags/` and `plugins/`."""
    return Path(__file__).resolve().parents[3]


def home_folder() -> Path:
    """Return the folder of the stack: `$MAKEWHOLE_HOME`, or `.makewhole` in the checkout."""
    configured = os.environ.get("MAKEWHOLE_HOME")
    return Path(configured).resolve() if configured else project_root() / ".makewhole"


def load(home: Path) -> AirflowSettings | None:
    """Return the settings of the stack in `home`; None when there was never one.

    Raises:
        CorruptionError: the file is there and cannot be read.
    """
    try:
        return AirflowSettings(**json.loads(_file(home).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise CorruptionError(
            f"{_file(home)} is damaged; end the stack with `makewhole down`, remove that file, and `makewhole up` "
            "makes a new one (data stay, passwords and the address of Airflow change)"
        ) from error


def load_or_create(home: Path) -> AirflowSettings:
    """Return the settings of the stack in `home`, chosen now when there was never one."""
    settings = load(home)
    if settings is None:
        settings = AirflowSettings(
            **_new_ports(),
            jwt_secret=secrets.token_urlsafe(48),
            secret_key=secrets.token_urlsafe(32),
            fernet_key=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            passwords={user: secrets.token_urlsafe(12) for user in USERS},
        )
        write_private(_file(home), asdict(settings))
    return settings


def change_ports(home: Path) -> None:
    """Choose other ports for Airflow; for a stopped one only."""
    settings = load(home)
    if settings is not None:
        write_private(_file(home), {**asdict(settings), **_new_ports()})


def write_private(path: Path, content: Any) -> None:
    """Write JSON that only its owner may read: whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=FILE_MODE)
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def _new_ports() -> dict[str, int]:
    names = ("api_port", "worker_log_port", "trigger_log_port")
    return dict(zip(names, free_ports(len(names)), strict=True))


def _file(home: Path) -> Path:
    return home / "settings.json"
