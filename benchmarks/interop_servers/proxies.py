"""Settings of proxies: each passes gRPC on, and /down.Service/ to a server that is not there."""

from __future__ import annotations

import json

NGINX = """
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
daemon off;
master_process off;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  client_max_body_size 0;
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ grpc_pass grpc://127.0.0.1:{upstream}; }}
    location /down.Service/ {{ grpc_pass grpc://127.0.0.1:{down}; }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend suite
  bind 127.0.0.1:{port} proto h2
  use_backend down if {{ path_beg /down.Service/ }}
  default_backend servers
backend servers
  server one 127.0.0.1:{upstream} proto h2
backend down
  retries 0
  server none 127.0.0.1:{down} proto h2
"""


def nghttpx(port: int, upstream: int, down: int) -> list[str]:
    """nghttpx's options."""
    backends = ((upstream, ""), (down, "/down.Service/"))
    passed = [f"--backend=127.0.0.1,{to};{path};proto=h2" for to, path in backends]
    return [f"--frontend=127.0.0.1,{port};no-tls", *passed, "--workers=1"]


def envoy(port: int, upstream: int, down: int) -> str:
    """Envoy's settings; JSON, which it reads, too."""
    routes = [
        {"match": {"prefix": prefix}, "route": {"cluster": cluster, "timeout": "60s"}}
        for prefix, cluster in (("/down.Service/", "down"), ("/", "upstream"))
    ]
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3"
        ".HttpConnectionManager",
        "stat_prefix": "suite",
        "codec_type": "HTTP2",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
                },
            }
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    listener = {"name": "suite", "address": place(port), "filter_chains": [{"filters": filters}]}
    clusters = [cluster("upstream", upstream), cluster("down", down)]
    return json.dumps({"static_resources": {"listeners": [listener], "clusters": clusters}})


def place(port: int) -> dict[str, object]:
    """A port of this machine, as Envoy has it."""
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def cluster(name: str, port: int) -> dict[str, object]:
    """A server that speaks HTTP/2, with as many calls at once as come."""
    options = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    limits = {"max_connections": 10_000, "max_pending_requests": 10_000, "max_requests": 10_000}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "circuit_breakers": {"thresholds": [limits]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": options,
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": place(port)}}]}],
        },
    }
