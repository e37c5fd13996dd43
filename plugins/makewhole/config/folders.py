"""Where pipeline files are looked for."""

import os
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]


def pipeline_folders() -> tuple[Path, ...]:
    """`dags/pipelines` of the checkout (an installed wheel has none), then the folders in `MAKEWHOLE_PIPELINES`."""
    own = _CHECKOUT / "dags" / "pipelines"
    extra = os.environ.get("MAKEWHOLE_PIPELINES", "").split(os.pathsep)
    folders = [own] if own.is_dir() else []
    folders += [Path(folder).expanduser() for folder in extra if folder.strip()]
    return tuple(dict.fromkeys(folders))
