"""The servers of gRPC's test service, each a program that is given a port."""
