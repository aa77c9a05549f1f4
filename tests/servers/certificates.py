"""Certificates for servers and clients of one test, made on the spot: nothing secret is kept."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: an authority, what it vouched for, and an authority that nobody asked for."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    stranger: Path

    @property
    def server_pem(self) -> str:
        """Key and certificate of the server in one text."""
        return self.server_key.read_text() + self.server.read_text()


def make_certificates(folder: Path, client: str) -> Certificates:
    """Make an authority, a server of 127.0.0.1 and a client of that name."""
    authority_key, authority = _authority("Weald's tests")
    _, stranger = _authority("Somebody else")
    files = {"authority": authority, "stranger": stranger}
    paths = {name: _write(folder / f"{name}.pem", made) for name, made in files.items()}
    for name, common in (("server", "localhost"), ("client", client)):
        key = ec.generate_private_key(ec.SECP256R1())
        made = _vouched(common, key, (authority_key, authority))
        paths[name] = _write(folder / f"{name}.pem", made)
        paths[f"{name}_key"] = folder / f"{name}.key"
        paths[f"{name}_key"].touch(mode=0o600)
        paths[f"{name}_key"].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return Certificates(**paths)


def _write(path: Path, certificate: x509.Certificate) -> Path:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return path


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _begun(subject: str, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _authority(common: str) -> tuple[Key, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        _begun(common, _name(common), key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return key, made


def _vouched(common: str, key: Key, by: tuple[Key, x509.Certificate]) -> x509.Certificate:
    authority_key, authority = by
    names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _begun(common, authority.subject, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
