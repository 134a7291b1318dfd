"""Why gRPC falls behind on few connections."""
