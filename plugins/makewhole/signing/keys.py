"""Sign a document with a private key, and check a signature with public ones (Ed25519, RFC 8032).

What is signed is the document as canonical JSON, behind a line that says what it is, so that a signature made for
something else is none of a certificate.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_PURPOSE = b"makewhole certificate\n"
_KEY_BYTES = 32
_PEM_END = "-----END PUBLIC KEY-----"


def canonical_bytes(document: Any) -> bytes:
    """Return a document as canonical JSON: names in order, no spaces, UTF-8. Numbers in it are whole."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256_of(document: Any) -> str:
    """Return the SHA-256 of a document's canonical bytes, in hex."""
    return hashlib.sha256(canonical_bytes(document)).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """A private key. Its text never shows in a representation or a message."""

    private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def new(cls) -> "SigningKey":
        """Make a key."""
        return cls(private=Ed25519PrivateKey.generate())

    @classmethod
    def from_text(cls, text: str) -> "SigningKey":
        """Read a key: PEM of a PKCS8 key without a password, or its 32 bytes in base64.

        Raises:
            ValueError: it is neither.
        """
        if "-----BEGIN" not in text:
            return cls(private=Ed25519PrivateKey.from_private_bytes(_raw(text)))
        try:
            private = serialization.load_pem_private_key(text.strip().encode(), password=None)
        except (ValueError, TypeError) as error:
            raise ValueError("it cannot be read as PEM of a PKCS8 key without a password") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError("it is a key of another kind than Ed25519")
        return cls(private=private)

    @property
    def public(self) -> "PublicKey":
        return PublicKey(public=self.private.public_key())

    def pem(self) -> str:
        """Return the key as PEM of PKCS8, for its file alone."""
        form, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.private.private_bytes(form, kind, serialization.NoEncryption()).decode()

    def sign(self, document: Mapping[str, Any]) -> str:
        """Return the signature of a document, in base64."""
        return base64.b64encode(self.private.sign(_PURPOSE + canonical_bytes(document))).decode()


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """A public key. `id` names it in certificates: the first 16 hex digits of the SHA-256 of its 32 bytes."""

    public: Ed25519PublicKey

    @property
    def id(self) -> str:
        raw = self.public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return hashlib.sha256(raw).hexdigest()[:16]

    def pem(self) -> str:
        """Return the key as PEM."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.public.public_bytes(serialization.Encoding.PEM, form).decode()

    def has_signed(self, document: Mapping[str, Any], signature: str) -> bool:
        """Return whether a signature is this key's, of exactly this document."""
        try:
            raw = base64.b64decode(signature, validate=True)
            self.public.verify(raw, _PURPOSE + canonical_bytes(document))
        except (InvalidSignature, ValueError):
            return False
        return base64.b64encode(raw).decode() == signature  # its last letter has bits to spare


@dataclass(frozen=True, kw_only=True)
class KeyRing:
    """The public keys that are believed, by their ids; several while a key is replaced by the next."""

    keys: Mapping[str, PublicKey] = field(default_factory=dict)

    @classmethod
    def of(cls, *keys: PublicKey) -> "KeyRing":
        """Return a ring of keys."""
        return cls(keys={key.id: key for key in keys})

    def __add__(self, other: "KeyRing") -> "KeyRing":
        return KeyRing(keys={**self.keys, **other.keys})

    def has_signed(self, document: Mapping[str, Any], signed_by: str, signature: str) -> bool:
        """Return whether a document carries the signature of the believed key that it names."""
        key = self.keys.get(signed_by)
        return key is not None and key.has_signed(document, signature)


def public_keys_from(text: str) -> KeyRing:
    """Read public keys: one or more in PEM, or 32 bytes in base64, with commas between several.

    Raises:
        ValueError: one of them is neither.
    """
    if "PRIVATE KEY" in text:
        raise ValueError("it is a private key; give the public one")
    if "-----BEGIN" not in text:
        raws = [_raw(part) for part in text.split(",")]
        return KeyRing.of(*(PublicKey(public=Ed25519PublicKey.from_public_bytes(raw)) for raw in raws))
    blocks = [f"{block.strip()}\n{_PEM_END}\n" for block in text.split(_PEM_END) if block.strip()]
    return KeyRing.of(*(_public_from_pem(block) for block in blocks))


def _public_from_pem(text: str) -> PublicKey:
    try:
        public = serialization.load_pem_public_key(text.encode())
    except ValueError as error:
        raise ValueError("it cannot be read as PEM of a public key") from error
    if not isinstance(public, Ed25519PublicKey):
        raise ValueError("it is a key of another kind than Ed25519")
    return PublicKey(public=public)


def _raw(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise ValueError("it is neither PEM nor 32 bytes in base64")
    return raw
