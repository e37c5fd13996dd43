"""Check that the lock is up to date with pyproject.toml. Reads two files and makes no request."""

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

_ROOT = Path(__file__).resolve().parent.parent
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?==(?P<version>[^ ;\\]+)", re.MULTILINE)


def problems() -> list[str]:
    """Return every way in which the lock does not answer what pyproject.toml asks for."""
    text = (_ROOT / ".ci" / "requirements.lock").read_text(encoding="utf-8")
    pins = {canonicalize_name(pin["name"]): Version(pin["version"]) for pin in _PIN.finditer(text)}
    found = [complaint for asked in _asked_for() if (complaint := _complaint(asked, pins))]
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    found += [f"{block.split()[0]} has no hash" for block in blocks if "==" in block and "--hash=sha256:" not in block]
    if re.search(r"^\s*(--index-url|--extra-index-url|--find-links)|@ https?:", text, flags=re.MULTILINE):
        found.append("the lock names an address; it must not")
    return found


def _asked_for() -> list[Requirement]:
    """Return what is asked for, but for what an override of uv keeps out."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    overridden = {Requirement(line).name for line in project["tool"]["uv"]["override-dependencies"]}
    extras = project["project"]["optional-dependencies"].values()
    lines = [*project["project"]["dependencies"], *chain(*extras), *project["dependency-groups"]["dev"]]
    left_out = {*overridden, project["project"]["name"]}
    return [asked for line in lines if (asked := Requirement(line)).name not in left_out]


def _complaint(asked: Requirement, pins: dict[str, Version]) -> str | None:
    pinned = pins.get(canonicalize_name(asked.name))
    if pinned is None:
        return f"{asked.name} is not in the lock"
    if not asked.specifier.contains(pinned, prereleases=True):
        return f"{asked} is asked for, {pinned} is locked"
    return None


if __name__ == "__main__":
    complaints = problems()
    for complaint in complaints:
        print(f"lock: {complaint}; run `make lock`", file=sys.stderr)
    sys.exit(1 if complaints else 0)
