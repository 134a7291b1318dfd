"""What benchmarks/interop.py is made of: gRPC's test service on others' servers, and proxies before it."""
