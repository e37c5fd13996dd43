"""Build the wheel of this checkout, and install it beside an Airflow as docs/deploy.md says, once for the tests that
need it."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.integration.stack.deployment import Deployment, Page

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True, timeout=120)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="package")
def page() -> Page:
    """The page that says how makewhole is installed."""
    return Page.read(CHECKOUT / "docs" / "deploy.md")


@pytest.fixture(scope="package")
def fresh_install(wheel: Path, page: Page, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """An environment that had Airflow and nothing else, after the first block of the page. Takes minutes, most of them
    pip's."""
    folder = tmp_path_factory.mktemp("installed")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=120)
    deployment = Deployment(folder=folder, venv=venv, places={"makewhole-0.1.0-py3-none-any.whl": str(wheel)})
    deployment.run(f"pip install apache-airflow=={version('apache-airflow')}", timeout=1800)
    install, compile_ahead = page.blocks[0]
    deployment.run(install, timeout=1800)
    deployment.start(compile_ahead.partition("&")[0])
    yield deployment
    deployment.end()
