"""A model of MLServer, which batches requests before predict."""
import os, sys

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse

sys.path.append(os.environ["BENCH_SERVE_PEERS"])
import aoti  # noqa: E402


class Package(MLModel):
    async def load(self) -> bool:
        self.run = aoti.load(self.settings.parameters.uri)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        arrays = [np.ascontiguousarray(NumpyCodec.decode_input(i)) for i in payload.inputs]
        out = NumpyCodec.encode_output("OUTPUT__0", self.run(*arrays))
        return InferenceResponse(model_name=self.name, id=payload.id, outputs=[out])
