"""The real tritonserver with the null model, its gRPC over TLS that demands a client certificate.

    python tests/tls_triton.py GRPC_PORT HTTP_PORT CERT KEY CLIENT_CA

Its HTTP knows no TLS. It becomes tritonserver, so that it ends as that does.
"""

import os
import sys

from server.embedded.leftovers import prefix_for
from server.embedded.options import EmulationProfile
from server.net import choose_ports
from server.triton import tritonserver
from server.triton.repository import make_repository


def main(grpc: str, http: str, cert: str, key: str, client_ca: str) -> None:
    """Serve until ended."""
    wheel = tritonserver.find_wheel()
    (metrics,) = choose_ports("127.0.0.1", [0])
    repository = make_repository("emulated", 0, 1, EmulationProfile(0, 0).parameters())
    backends, ports = tritonserver.make_backends(wheel), [int(http), int(grpc), metrics]
    where = (repository, backends, "127.0.0.1", ports, prefix_for("tls"), False)
    command = tritonserver.triton_command(wheel, *where)
    # What server/embedded/guard.py does, but where everybody may see it.
    command = [word.replace(f"${tritonserver.VARIABLE}", tritonserver.secret({})) for word in command]
    command += ["--grpc-use-ssl-mutual=true", f"--grpc-server-cert={cert}", f"--grpc-server-key={key}"]
    command += [f"--grpc-root-cert={client_ca}", "--log-info=false"]
    os.execve(command[0], command, tritonserver.triton_environment(wheel, backends, os.environ))


if __name__ == "__main__":
    main(*sys.argv[1:])
