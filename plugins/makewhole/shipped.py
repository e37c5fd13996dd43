"""Find the files that go with the code: the statements of SQL, the entry points of Spark, Airflow's DAG files,
the documentation."""

from importlib import resources
from pathlib import Path

_IN_WHEEL = {"sql": "_sql", "spark/jobs": "_jobs", "dags": "_dags", "docs": "_docs"}


def shipped(folder: str) -> Path:
    """Return a folder of the checkout, `sql`, `spark/jobs`, `dags` or `docs`; or the copy in an installed wheel."""
    root = Path(__file__).resolve().parents[2]
    is_checkout = (root / "spark" / "makewhole_spark").is_dir()
    return root / folder if is_checkout else Path(str(resources.files("makewhole") / _IN_WHEEL[folder]))
