"""The real service in the real uvicorn over TLS, with a model that is the first unit vector; no gevent here.

python tests/tls_service.py PORT --cert FILE --key FILE [--client-ca FILE]
"""

import argparse
import ssl

import numpy as np
import uvicorn

from server.service.app import create_app
from server.settings import Settings


class UnitEmbedder:
    """Any picture's embedding is the first unit vector."""

    model, weights, weights_sha256, dim, device = "unit", "none", "0", 512, "cpu"

    def load(self) -> None:
        """Nothing to load."""

    def embed(self, pixels: np.ndarray) -> np.ndarray:
        made = np.zeros((len(pixels), self.dim), dtype=np.float32)
        made[:, 0] = 1
        return made


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    for option in ("--cert", "--key", "--client-ca"):
        parser.add_argument(option)
    options = parser.parse_args()
    uvicorn.run(
        create_app(UnitEmbedder(), Settings()),
        port=options.port,
        log_level="warning",
        ssl_certfile=options.cert,
        ssl_keyfile=options.key,
        ssl_ca_certs=options.client_ca,
        ssl_cert_reqs=ssl.CERT_REQUIRED if options.client_ca else ssl.CERT_NONE,
    )


if __name__ == "__main__":
    main()
