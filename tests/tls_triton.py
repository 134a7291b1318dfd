"""The real tritonserver with the null model, its gRPC over TLS that demands a client certificate.

    python tests/tls_triton.py GRPC_PORT HTTP_PORT CERT KEY CLIENT_CA

Its HTTP knows no TLS. It becomes tritonserver, so that it ends as that does.
"""

import os
import sys

from server.embedded.leftovers import prefix_for
from server.embedded.options import EmulationProfile
from server.net import choose_ports
from server.triton.repository import make_repository
from server.triton.tritonserver import (
    VARIABLE,
    find_wheel,
    make_backends,
    secret,
    triton_command,
    triton_environment,
)


def main(grpc: str, http: str, cert: str, key: str, client_ca: str) -> None:
    """Serve until ended."""
    wheel = find_wheel()
    (metrics,) = choose_ports("127.0.0.1", [0])
    repository, backends = (
        make_repository("emulated", 0, 1, EmulationProfile(0, 0).parameters()),
        make_backends(wheel),
    )
    command = triton_command(
        wheel, repository, backends, "127.0.0.1", [int(http), int(grpc), metrics], prefix_for("tls"), False
    )
    # What server/embedded/guard.py does, but where everybody may see it.
    command = [word.replace(f"${VARIABLE}", secret({})) for word in command]
    command += ["--grpc-use-ssl-mutual=true", f"--grpc-server-cert={cert}", f"--grpc-server-key={key}"]
    command += [f"--grpc-root-cert={client_ca}", "--log-info=false"]
    os.execve(command[0], command, triton_environment(wheel, backends, os.environ))


if __name__ == "__main__":
    main(*sys.argv[1:])
