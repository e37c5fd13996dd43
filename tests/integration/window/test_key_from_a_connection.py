"""Test certificates signed with the key that Airflow keeps as the password of a connection."""

import json
from pathlib import Path

import pytest

from makewhole.config.connection_text import variable_of
from makewhole.model.errors import ConfigurationError
from makewhole.orchestration.deployment.connections import signing_key
from makewhole.signing.key_files import KEY_CONNECTION, KEY_VARIABLE
from makewhole.signing.keys import SigningKey
from tests.world.certified import CertifiedPipeline
from tests.world.environment import take_connection

pytestmark = pytest.mark.integration

SECRET = "no-key-and-yet-a-secret"


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def keep(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    """Have Airflow keep this as the password of the connection for signing."""
    described = json.dumps({"conn_type": "generic", "password": password})
    monkeypatch.setenv(variable_of(KEY_CONNECTION), described)


def test_a_window_is_certified_with_the_key_of_the_connection_and_verified_with_its_public_half(
    journal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SigningKey.new()
    keep(monkeypatch, made.pem())

    demo = CertifiedPipeline(journal=journal, folder=tmp_path, key=signing_key())
    closed = demo.close(1)

    assert closed.certificate is not None
    assert closed.certificate.signed_by == made.public.id
    verified = demo.verify()
    assert (verified.code, verified.problems, verified.document["keys"]) == (0, [], [made.public.id])
    other = tmp_path / "other.pem"
    other.write_text(SigningKey.new().public.pem())
    assert demo.verify("--public-key", str(other)).code == 1


def test_the_environment_goes_before_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SigningKey.new()
    keep(monkeypatch, SigningKey.new().pem())
    monkeypatch.setenv(KEY_VARIABLE, own.pem())
    assert signing_key().public.id == own.public.id


def test_a_connection_that_holds_no_key_is_named_and_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(monkeypatch, SECRET)
    with pytest.raises(ConfigurationError) as caught:
        signing_key()
    (problem,) = caught.value.problems
    assert (problem.file, problem.path) == ("Airflow connection", "makewhole_signing")
    assert problem.found.startswith("is not a signing key: ")
    assert SECRET not in str(caught.value)


def test_without_a_connection_and_a_variable_both_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    take_connection(monkeypatch, KEY_CONNECTION)
    with pytest.raises(
        ConfigurationError, match=r"MAKEWHOLE_SIGNING_KEY: is not set, .* Airflow connection makewhole_"
    ):
        signing_key()
