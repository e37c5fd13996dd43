"""Make certificates for one test run: an authority, and what it signs, as PEM files."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_ONE_DAY = timedelta(days=1)


class Authority:
    """Signs certificates for `127.0.0.1`. `certificate` is its own, as a file that clients and brokers trust."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        own = self._builder(self._subject, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._own = own.sign(self._key, hashes.SHA256())
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(_pem(self._own))

    def sign(self, name: str) -> tuple[Path, Path]:
        """(certificate file, key file) of a party on loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = self._builder(_name(name), key.public_key()).add_extension(address, critical=False)
        certificate, secret = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        kind, no_password = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, no_password))
        return certificate, secret

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._subject).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - _ONE_DAY).not_valid_after(now + _ONE_DAY)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
