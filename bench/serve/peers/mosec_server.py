"""A server of mosec. A request is the inputs' bytes one after another, an answer the output's: MOSEC_INPUTS has their shapes."""
import json, os

import numpy as np
from mosec import Server, Worker

INPUTS = json.loads(os.environ["MOSEC_INPUTS"])  # [[dtype, dims of a row], …]


class Package(Worker):
    def __init__(self):
        super().__init__()
        import aoti

        self.run = aoti.load(os.environ["MOSEC_PACKAGE"])

    def deserialize(self, data):
        arrays, at = [], 0
        for dtype, dims in INPUTS:
            a = np.frombuffer(data, dtype, int(np.prod(dims)), at).reshape(dims)
            arrays.append(a)
            at += a.nbytes
        return arrays

    def serialize(self, data):
        return data.tobytes()

    def forward(self, data):
        return list(self.run(*(np.stack(a) for a in zip(*data))))


if __name__ == "__main__":
    server = Server()
    server.append_worker(Package, num=int(os.environ["MOSEC_INSTANCES"]), max_batch_size=64, max_wait_time=1)
    server.run()
