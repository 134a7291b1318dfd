"""The KServe V2 protocol over gRPC: Triton, and every other server of `inference.GRPCInferenceService`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from users.codecs.base import Answer, PreparedRequest, id_place
from users.codecs.v2 import SharedInputs, V2Codec, absent, numbers_of, raw, rows
from users.inputs.images import ImageSet


class V2Grpc(V2Codec):
    """A serialised `ModelInferRequest`: of a float32 picture [3, 224, 224], 602,112 bytes on the wire."""

    name, wire = "v2-grpc", "grpc"
    path = "/inference.GRPCInferenceService/ModelInfer"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """One raw tensor an input, or the place where it lies."""
        endpoint = self.endpoint
        request = ModelInferRequest(model_name=endpoint.model, model_version=endpoint.version, id=request_id)
        if self.shared:
            self._refer(request, indices, self.shared)
        else:
            for one, tensor in self.tensors(images, indices):
                request.inputs.add(name=one.name, datatype=one.dtype, shape=tensor.shape)
                request.raw_input_contents.append(raw(tensor))
        request.outputs.add(name=endpoint.contract.output)
        body = request.SerializeToString()
        return PreparedRequest(
            body, indices, id_at=id_place(body, request_id), dimension=endpoint.contract.dimension
        )

    def _refer(self, request: Any, indices: tuple[int, ...], shared: SharedInputs) -> None:
        for one in self.endpoint.contract.inputs:
            place = shared.place(one, indices)
            put = request.inputs.add(name=one.name, datatype=one.dtype, shape=self.shape_of(one, indices))
            put.parameters["shared_memory_region"].string_param = place.region
            put.parameters["shared_memory_byte_size"].int64_param = place.size
            put.parameters["shared_memory_offset"].int64_param = place.offset

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """From raw bytes, as Triton answers, or from typed contents, as MLServer does."""
        contract = self.endpoint.contract
        response = ModelInferResponse.FromString(bytes(answer.body))
        names = [output.name for output in response.outputs]
        if contract.output not in names:
            raise absent(contract.output, names)
        at = names.index(contract.output)
        output, raws = response.outputs[at], response.raw_output_contents
        vector: NDArray[Any]
        if len(raws) == len(names):
            vector = np.frombuffer(raws[at], numbers_of(output.datatype))
        else:
            vector = np.array(typed(output.contents), np.float32)
        return rows(vector, output.shape, contract)


def typed(contents: Any) -> Sequence[float]:
    """The numbers of an output that are not in raw bytes, if any."""
    found: Sequence[float] = contents.fp32_contents or contents.fp64_contents
    return found
