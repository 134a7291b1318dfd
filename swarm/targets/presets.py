"""The endpoints that the published studies asked, and what they had not: one model in some of its ways."""

FIVE = ("pytorch-http", "onnx-http", "onnx-grpc", "trt-http", "trt-grpc")
EVERY = (*FIVE, "gateway-http", "onnx-jpeg-*", "onnx-uint8-*")
"""What `--endpoints all` asks."""
