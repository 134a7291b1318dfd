"""Certificates made for a test: an authority, another one, and servers and clients good and bad."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

LONG_AGO = datetime.now(UTC) - timedelta(days=9)


@dataclass(frozen=True)
class Identity:
    """Files of a certificate, with those between it and its authority, and of its key."""

    cert: str
    key: str

    def server_context(self, client_ca: str = "") -> ssl.SSLContext:
        """Of a server of any protocol; one that demands certificates which `client_ca` has signed."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.cert, self.key)
        made.set_alpn_protocols(["h2", "http/1.1"])
        if client_ca:
            made.load_verify_locations(client_ca)
            made.verify_mode = ssl.CERT_REQUIRED
        return made


class Certificates:
    """In a folder: `ca` and `other_ca` are files of authorities; all but `stranger` are the first one's."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._own, other = folder, trustme.CA(), trustme.CA()
        self.ca, self.other_ca = str(folder / "ca.pem"), str(folder / "other-ca.pem")
        self._own.cert_pem.write_to_path(self.ca)
        other.cert_pem.write_to_path(self.other_ca)
        self.server = self._issued(self._own, "server", "localhost", "127.0.0.1")
        self.misnamed = self._issued(self._own, "misnamed", "elsewhere.example")
        self.expired = self._issued(self._own, "expired", "localhost", "127.0.0.1", not_after=LONG_AGO)
        self.client = self._issued(self._own, "client", "client.example")
        self.stranger = self._issued(other, "stranger", "client.example")

    def _issued(self, ca: trustme.CA, name: str, *names: str, not_after: datetime | None = None) -> Identity:
        dates = {"not_before": not_after - timedelta(days=1), "not_after": not_after} if not_after else {}
        made = ca.issue_cert(*names, **dates)
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        cert.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        key.write_bytes(made.private_key_pem.bytes())
        return Identity(str(cert), str(key))
