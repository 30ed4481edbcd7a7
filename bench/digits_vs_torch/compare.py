"""Trains the perceptron of a folder that the Go program wrote, and prints the loss of each step as JSON.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0
    go run ./bench/digits_vs_torch --python .venv/bin/python
"""

import json
import pathlib
import sys

import torch


def load(path):
    """Reads a safetensors file: the length of a header, the header in JSON, the data."""
    raw = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    out = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        out[name] = torch.frombuffer(raw[start + begin : start + end], dtype=dtypes[t["dtype"]]).reshape(t["shape"])
    return out


def main():
    folder, lr = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    weights, batches = load(folder / "weights.safetensors"), load(folder / "batches.safetensors")
    layers = []
    while f"{len(layers)}.weight" in weights:
        out, inputs = weights[f"{len(layers)}.weight"].shape
        layers += [torch.nn.Linear(inputs, out), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    model.load_state_dict(weights)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    losses = []
    for i in range(len(batches) // 2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batches[f"x{i}"]), batches[f"y{i}"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps({"torch": torch.__version__, "losses": losses}))


main()
