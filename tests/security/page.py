"""A page of somebody else's, open in a browser on the operator's machine.

    python tests/security/page.py CHROMIUM < SCRIPT

Serves a page with that script on a port of its own, opens it, and ends once the browser has.
"""

import http.server
import subprocess
import sys
import threading
import time

A_WHILE_S = 3.0
"""What the page takes to load, in which its script does what it can."""


def main() -> None:
    """Print what the page shows at its end."""
    body = f"<body><script>{sys.stdin.read()}</script><img src='/slow'></body>"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/":
                time.sleep(A_WHILE_S)
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode() if self.path == "/" else b"")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        chromium, *options = sys.argv[1:]
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", *options, "--dump-dom", url]
        print(subprocess.run(command, capture_output=True, text=True, timeout=60).stdout)
        server.shutdown()


if __name__ == "__main__":
    main()
