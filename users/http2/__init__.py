"""HTTP/2 as gRPC's unary calls need it: frames, header blocks, flow control, connections under gevent."""
