"""Test keys and signatures: what is accepted as a key, what a signature is good for, and that no message quotes one."""

import base64
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from makewhole.model.errors import ConfigurationError, RefusedError
from makewhole.signing.key_files import (
    KEY_VARIABLE,
    PUBLIC_KEYS_VARIABLE,
    believed_keys,
    ensure_key_files,
    make_key_files,
    signing_key_from_environment,
)
from makewhole.signing.keys import KeyRing, SigningKey, canonical_bytes, public_keys_from

pytestmark = pytest.mark.unit

# RFC 8032, section 7.1, test 1
SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
DOCUMENT = {"window": 1, "name": "ü", "previous": None}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (KEY_VARIABLE, PUBLIC_KEYS_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def key() -> SigningKey:
    return SigningKey.from_text(base64.b64encode(SECRET).decode())


def test_the_key_is_the_one_of_the_standard_in_every_form(key: SigningKey) -> None:
    ring = public_keys_from(base64.b64encode(bytes.fromhex(PUBLIC)).decode())

    assert list(ring.keys) == [key.public.id] == [SigningKey.from_text(key.pem()).public.id]
    assert list(public_keys_from(key.public.pem()).keys) == [key.public.id]
    assert key.public.id == "21fe31dfa154a261"


def test_a_signature_holds_for_exactly_the_document_and_the_key(key: SigningKey) -> None:
    signature, ring = key.sign(DOCUMENT), KeyRing.of(key.public)

    assert ring.has_signed(dict(reversed(DOCUMENT.items())), key.public.id, signature)
    assert not ring.has_signed({**DOCUMENT, "window": 2}, key.public.id, signature)
    assert not ring.has_signed({**DOCUMENT, "window": "1"}, key.public.id, signature)
    assert not KeyRing.of(SigningKey.new().public).has_signed(DOCUMENT, key.public.id, signature)
    for nonsense in ("", "ü", signature[:-4], signature + "AAAA"):
        assert not ring.has_signed(DOCUMENT, key.public.id, nonsense)


def test_what_was_signed_for_another_purpose_is_no_signature_of_a_certificate(key: SigningKey) -> None:
    plain = base64.b64encode(key.private.sign(canonical_bytes(DOCUMENT))).decode()

    assert not key.public.has_signed(DOCUMENT, plain)


def test_several_public_keys_are_believed_while_one_is_replaced(key: SigningKey) -> None:
    following = SigningKey.new()

    ring = public_keys_from(key.public.pem() + following.public.pem())

    assert ring.keys.keys() == {key.public.id, following.public.id}
    assert ring.has_signed(DOCUMENT, following.public.id, following.sign(DOCUMENT))


def test_the_private_key_is_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    made = make_key_files(tmp_path / "keys")
    private, public = tmp_path / "keys" / "private.pem", tmp_path / "keys" / "public.pem"

    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert list(public_keys_from(public.read_text()).keys) == [made.public.id]
    with pytest.raises(RefusedError, match=r"private\.pem is a key already.*it was left as it is"):
        make_key_files(tmp_path / "keys")
    assert ensure_key_files(tmp_path / "keys").public.id == made.public.id


def test_a_public_key_that_was_not_written_any_more_is_written_later(tmp_path: Path) -> None:
    made = make_key_files(tmp_path)
    (tmp_path / "public.pem").unlink()

    ensure_key_files(tmp_path)

    assert (tmp_path / "public.pem").read_text() == made.public.pem()


def test_the_environment_holds_the_key_or_names_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = make_key_files(tmp_path)
    for text in (f"file:{tmp_path}/private.pem", made.pem()):
        monkeypatch.setenv(KEY_VARIABLE, text)
        assert signing_key_from_environment().public.id == made.public.id


OTHER_KIND = generate_private_key(SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is not set, so no certificate can be signed; nothing was written"),
        ("c2VjcmV0", "is not a signing key: it is neither PEM nor 32 bytes in base64"),
        ("sécret!", "is not a signing key: it is neither PEM nor 32 bytes in base64"),
        ("-----BEGIN PRIVATE KEY-----\nc2VjcmV0", "is not a signing key: it cannot be read as PEM of a PKCS8 key"),
        (OTHER_KIND.decode(), "is not a signing key: it is a key of another kind than Ed25519"),
        ("file:/nowhere/secret.pem", "names a key file that cannot be read (FileNotFoundError)"),
    ],
)
def test_what_is_no_key_is_reported_with_how_to_make_one_and_never_quoted(
    monkeypatch: pytest.MonkeyPatch, text: str, complaint: str
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, text)

    with pytest.raises(ConfigurationError) as caught:
        signing_key_from_environment()

    message = str(caught.value)
    assert message.startswith(f"environment: MAKEWHOLE_SIGNING_KEY: {complaint}")
    assert "`makewhole certificate keygen FOLDER`" in message
    assert "c2VjcmV0" not in message and "sécret" not in message
    assert caught.value.__cause__ is None


def test_a_key_shows_nowhere(key: SigningKey) -> None:
    assert base64.b64encode(SECRET).decode() not in repr(key)
    assert "private" not in repr(key)


def test_what_is_believed_is_what_was_given_or_configured_or_the_key_of_this_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, configured, own = (make_key_files(tmp_path / name) for name in ("given", "configured", "own"))
    assert believed_keys() == KeyRing()

    monkeypatch.setenv(KEY_VARIABLE, own.pem())
    assert set(believed_keys().keys) == {own.public.id}
    monkeypatch.setenv(PUBLIC_KEYS_VARIABLE, f"file:{tmp_path}/configured/public.pem")
    assert set(believed_keys().keys) == {configured.public.id}
    assert set(believed_keys([f"{tmp_path}/given/public.pem"]).keys) == {given.public.id}


def test_a_private_key_given_for_a_public_one_is_refused(tmp_path: Path) -> None:
    make_key_files(tmp_path)

    with pytest.raises(ConfigurationError, match="is not a public key: it is a private key; give the public one"):
        believed_keys([f"{tmp_path}/private.pem"])
