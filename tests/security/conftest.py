"""The real servers, each closed to whoever has no certificate or no password."""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.servers.certificates import Certificates, make_certificates
from tests.servers.fixtures import taking_part
from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import administer, postgresql_server
from tests.servers.redis import redis_server
from tests.servers.server import Server

USER = "weald"
PASSWORD = "a password/with: every@thing?#%41 in it"  # noqa: S105  # of a server that lives for one test


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"), USER)


@pytest.fixture(scope="session")
def password_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secrets") / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture(scope="module")
def secure_kafka(
    request: pytest.FixtureRequest,
    server_folder: Callable[[str], Path],
    certificates: Certificates,
) -> Iterator[Server]:
    """An Apache Kafka that speaks TLS and asks who is there; topics ``events`` and its dlq."""
    folder = server_folder("secure-kafka")
    pem = folder / "server.pem"
    pem.write_text(certificates.server_pem)
    login = "org.apache.kafka.common.security"
    extra: dict[str, object] = {
        # As in most companies: the topic of the dead letters does not make itself.
        "auto.create.topics.enable": "false",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.authority,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.clients.plain.sasl.jaas.config": (
            f'{login}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        **{
            f"listener.name.clients.scram-sha-{bits}.sasl.jaas.config": (
                f"{login}.scram.ScramLoginModule required;"
            )
            for bits in (256, 512)
        },
    }
    users = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    with (
        taking_part(request.config, "Kafka") as note,
        kafka_broker(folder, protocol="SASL_SSL", extra=extra, users=users) as server,
    ):
        yield note(server)


@pytest.fixture(scope="module")
def secure_redis(
    request: pytest.FixtureRequest,
    server_folder: Callable[[str], Path],
    certificates: Certificates,
) -> Iterator[Server]:
    """A Redis on TLS alone, whose one user may touch Weald's keys and nothing else."""
    folder = server_folder("secure-redis")
    acl = folder / "users.acl"
    rights = "~weald:* +@connection +@read +@write +@scripting -@dangerous"
    acl.write_text(
        f"user default off\nuser {USER} on #{_sha256(PASSWORD)} resetchannels {rights}\n"
    )
    with taking_part(request.config, "Redis") as note:
        server = redis_server(folder)
        server.argv = [
            *server.argv,
            *("--tls-port", str(server.port), "--port", "0"),
            *("--tls-cert-file", str(certificates.server)),
            *("--tls-key-file", str(certificates.server_key)),
            *("--tls-ca-cert-file", str(certificates.authority)),
            *("--tls-auth-clients", "optional", "--aclfile", str(acl)),
        ]
        with server:
            yield note(server)


@pytest.fixture(scope="module")
def secure_postgresql(
    request: pytest.FixtureRequest, certificates: Certificates
) -> Iterator[Server]:
    """A PostgreSQL that lets its user in over TLS only, with a password or a certificate."""

    def prepare(data: Path, user: str | None) -> Mapping[str, str]:
        for source in (certificates.server, certificates.server_key, certificates.authority):
            target = data / source.name
            shutil.copy(source, target)
            target.chmod(0o600)
            if user is not None:
                shutil.chown(target, user)
        (data / "pg_hba.conf").write_text(
            "host all postgres 127.0.0.1/32 trust\n"
            f"hostssl all {USER} 127.0.0.1/32 scram-sha-256\n"
            f"hostssl all {USER}_by_certificate 127.0.0.1/32 cert map=people\n"
        )
        (data / "pg_ident.conf").write_text(f"people {USER} {USER}_by_certificate\n")
        return {
            "ssl": "on",
            "ssl_cert_file": certificates.server.name,
            "ssl_key_file": certificates.server_key.name,
            "ssl_ca_file": certificates.authority.name,
        }

    with taking_part(request.config, "PostgreSQL") as note, postgresql_server(prepare) as server:
        note(server)
        administer(server, f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        administer(server, f"CREATE ROLE {USER}_by_certificate LOGIN IN ROLE {USER}")
        administer(server, f"CREATE DATABASE {USER} OWNER {USER}")
        yield server


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
