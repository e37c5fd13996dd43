"""Make a pair of keys as files, and read keys from the environment, which holds them or names their file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from makewhole.model.errors import ConfigurationError, Problem, RefusedError
from makewhole.private_files import FILE_MODE, make_private_folder
from makewhole.signing.keys import KeyRing, SigningKey, public_keys_from

PRIVATE_FILE, PUBLIC_FILE = "private.pem", "public.pem"
KEY_VARIABLE = "MAKEWHOLE_SIGNING_KEY"
PUBLIC_KEYS_VARIABLE = "MAKEWHOLE_SIGNING_PUBLIC_KEYS"
KEY_CONNECTION = "makewhole_signing"
FILE_PREFIX = "file:"

_HOW = (
    "Make one with `makewhole certificate keygen FOLDER` and give the service the private one: in the variable "
    f"{KEY_VARIABLE} (PEM, base64, or file:PATH), or as the password of the Airflow connection {KEY_CONNECTION}"
)


def make_key_files(folder: Path) -> SigningKey:
    """Make `private.pem`, which only its owner may read, and `public.pem` in a folder.

    Raises:
        RefusedError: there is a private key already; it is never overwritten.
    """
    make_private_folder(folder)
    key, private = SigningKey.new(), folder / PRIVATE_FILE
    try:
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError as error:
        raise RefusedError(
            f"{private} is a key already, and certificates may be signed with it; it was left as it is. To replace "
            "it, make the next one in another folder and keep this one's public key for `certificate verify`"
        ) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(key.pem())
        file.flush()
        os.fsync(file.fileno())
    _write_public(folder, key)
    return key


def ensure_key_files(folder: Path) -> SigningKey:
    """Return the key of a folder, made now when there is none; the public key is written beside it where it lacks."""
    if not (folder / PRIVATE_FILE).exists():
        return make_key_files(folder)
    key = read_signing_key(f"{FILE_PREFIX}{folder / PRIVATE_FILE}", "signing key", str(folder))
    if not (folder / PUBLIC_FILE).exists():
        _write_public(folder, key)
    return key


def _write_public(folder: Path, key: SigningKey) -> None:
    unfinished = folder / f"{PUBLIC_FILE}.unfinished"
    unfinished.write_text(key.public.pem(), encoding="utf-8")
    unfinished.replace(folder / PUBLIC_FILE)


def signing_key_from_environment() -> SigningKey:
    """Return the key that `MAKEWHOLE_SIGNING_KEY` holds, or names as `file:PATH`.

    Raises:
        ConfigurationError: the variable is not set, or holds no key. The message never quotes it.
    """
    text = os.environ.get(KEY_VARIABLE, "").strip()
    if not text:
        found = "is not set, so no certificate can be signed; nothing was written"
        _fail("environment", KEY_VARIABLE, found, _HOW)
    return read_signing_key(text, "environment", KEY_VARIABLE)


def read_signing_key(text: str, file: str, path: str) -> SigningKey:
    """Return the key that a text holds, or names as `file:PATH`. `file` and `path` are its place, for the message.

    Raises:
        ConfigurationError: it is no key; the text is not in the message.
    """
    try:
        return SigningKey.from_text(_content(text))
    except OSError as error:
        _fail(file, path, f"names a key file that cannot be read ({type(error).__name__})", _HOW)
    except ValueError as error:
        _fail(file, path, f"is not a signing key: {error}", _HOW)


def believed_keys(given: Sequence[str] = ()) -> KeyRing:
    """Return the public keys to verify with.

    `given` names PEM files. Without any: those of `MAKEWHOLE_SIGNING_PUBLIC_KEYS`; and without that the public half of
    the service's own key, where this process has it. May be empty: then no signature can be checked.

    Raises:
        ConfigurationError: one of them is no public key.
    """
    if given:
        texts = [(f"{FILE_PREFIX}{name}", "--public-key", name) for name in given]
    else:
        configured = os.environ.get(PUBLIC_KEYS_VARIABLE, "").strip()
        texts = [(configured, "environment", PUBLIC_KEYS_VARIABLE)] if configured else []
    ring = KeyRing()
    for text, file, path in texts:
        ring += _read_public_keys(text, file, path)
    if texts or not os.environ.get(KEY_VARIABLE, "").strip():
        return ring
    return KeyRing.of(signing_key_from_environment().public)


def _read_public_keys(text: str, file: str, path: str) -> KeyRing:
    remedy = (
        f"Give a PEM file of public keys: `makewhole certificate keygen` writes {PUBLIC_FILE} beside the private one"
    )
    try:
        return public_keys_from(_content(text))
    except OSError as error:
        _fail(file, path, f"names a file that cannot be read ({type(error).__name__})", remedy)
    except ValueError as error:
        _fail(file, path, f"is not a public key: {error}", remedy)


def _content(text: str) -> str:
    """Return the text itself, or what is in the file that it names."""
    return Path(text.removeprefix(FILE_PREFIX)).read_text("utf-8") if text.startswith(FILE_PREFIX) else text


def _fail(file: str, path: str, found: str, remedy: str) -> NoReturn:
    """Raise one problem. `from None`, since the original's message may quote a key."""
    raise ConfigurationError([Problem(file=file, path=path, found=found, remedy=remedy)]) from None
