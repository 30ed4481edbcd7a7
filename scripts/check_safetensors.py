"""Reads a file that Loris wrote with the reference implementation and compares every tensor.

    go test ./safetensors -run TestWriteMatchesReference -args -out /tmp/go.safetensors
    .venv/bin/python scripts/check_safetensors.py /tmp/go.safetensors
"""

import sys

import torch
from make_safetensors_fixtures import supported
from safetensors import safe_open

with safe_open(sys.argv[1], "pt") as f:
    want = supported()
    assert f.metadata() == {"format": "pt"}, f.metadata()
    assert set(f.keys()) == set(want), f.keys()
    for name, tensor in want.items():
        got = f.get_tensor(name)
        assert got.dtype == tensor.dtype and got.shape == tensor.shape, name
        same = got.contiguous().flatten().view(torch.uint8).equal(tensor.contiguous().flatten().view(torch.uint8))
        assert same, name
        print(f"{name!r}: {got.dtype} {list(got.shape)} equal")
