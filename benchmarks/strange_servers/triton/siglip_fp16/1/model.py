# mypy: ignore-errors
"""Means of blocks of pixels: a vector that is told by its picture, and whose length is not 1."""

import numpy as np
import triton_python_backend_utils as pb_utils
from tensors import array_of, tensor_of

BLOCKS, SIDE = 16, 24


class TritonPythonModel:
    """`pixel_values` [n, 384, 384, 3] to `image_embeds` [n, 768], `patch_tokens` [n, 16, 768]; all FP16."""

    def execute(self, requests):
        """Each request by itself."""
        return [respond(means(array_of(request, "pixel_values"))) for request in requests]


def means(pixels):
    """float32 [n, 16, 16, 3]: of blocks of 24 by 24 pixels."""
    blocks = pixels.reshape(len(pixels), BLOCKS, SIDE, BLOCKS, SIDE, 3)
    return blocks.mean(axis=(2, 4), dtype=np.float32)


def respond(blocks):
    """The vector is all means of a picture; a patch's tokens are 16 times those of its row."""
    rows = blocks.reshape(len(blocks), BLOCKS, 3 * BLOCKS)
    outputs = {"image_embeds": rows.reshape(len(rows), -1), "patch_tokens": np.tile(rows, (1, 1, BLOCKS))}
    made = [tensor_of(name, value.astype(np.float16)) for name, value in outputs.items()]
    return pb_utils.InferenceResponse(made)
