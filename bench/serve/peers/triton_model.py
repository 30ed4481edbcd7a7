"""A model of Triton's Python backend: requests that it has batched run together."""
import json, os, sys

import numpy as np
import triton_python_backend_utils as pb

sys.path.append(os.environ["BENCH_SERVE_PEERS"])
import aoti  # noqa: E402


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.inputs = [i["name"] for i in config["input"]]
        self.output = config["output"][0]["name"]
        self.run = aoti.load(config["parameters"]["package"]["string_value"])

    def execute(self, requests):
        parts = [[pb.get_input_tensor_by_name(r, name).as_numpy() for name in self.inputs] for r in requests]
        arrays = [np.concatenate(p) if len(p) > 1 else np.ascontiguousarray(p[0]) for p in zip(*parts)]
        out, at, answers = self.run(*arrays), 0, []
        for p in parts:
            n = len(p[0])
            answers.append(pb.InferenceResponse([pb.Tensor(self.output, out[at : at + n])]))
            at += n
        return answers
