"""Test that an archive of classes is another one where its Java or its jars are, and takes the place of the former."""

import sys
from pathlib import Path

import pytest

from makewhole.stack import class_archive
from makewhole.stack.class_archive import Program, has_archive, recording, sharing

pytestmark = pytest.mark.unit


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own, with a Java and a jar."""
    folder = tmp_path / "jars"
    folder.mkdir()
    for file in (tmp_path / "java", folder / "spark-core.jar"):
        file.write_text("classes")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(class_archive, "java", lambda: str(tmp_path / "java"))
    monkeypatch.setattr(class_archive, "_jars", lambda _: folder)
    return folder


def record() -> None:
    with recording(Program.SPARK) as [option, *_]:
        Path(option.partition("=")[2]).write_text("archive")


def archives(jars: Path) -> list[str]:
    return [path.name for path in (jars.parent / "share" / "makewhole").iterdir()]


def test_an_archive_is_used_as_long_as_java_and_the_jars_are_those_that_it_was_made_of(jars: Path) -> None:
    assert not has_archive(Program.SPARK)
    record()
    assert has_archive(Program.SPARK)
    assert any(option.startswith("-XX:SharedArchiveFile=") for option in sharing(Program.SPARK))


@pytest.mark.parametrize("changed", ["another java", "a jar more", "another jar of its name", "moved"])
def test_an_archive_that_java_would_refuse_is_not_given_to_it_and_is_made_again(
    jars: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    record()
    if changed == "another java":
        (jars.parent / "java").write_text("a newer one")
    if changed == "a jar more":
        (jars / "more.jar").write_text("classes")
    if changed == "another jar of its name":
        (jars / "spark-core.jar").write_text("other classes")
    if changed == "moved":
        moved = jars.rename(jars.with_name("elsewhere"))
        monkeypatch.setattr(class_archive, "_jars", lambda _: moved)
    before = archives(jars)

    assert not has_archive(Program.SPARK)
    assert sharing(Program.SPARK) == []
    record()
    assert has_archive(Program.SPARK)
    assert len(archives(jars)) == 1
    assert archives(jars) != before


def test_a_recording_that_failed_leaves_the_archive_that_was_there(jars: Path) -> None:
    record()
    before = archives(jars)
    (jars / "more.jar").write_text("classes")
    with recording(Program.SPARK):
        pass
    assert archives(jars) == before
