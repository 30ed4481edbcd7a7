"""Loads weights that Loris saved into PyTorch's modules, strictly.

    go test ./nn -run TestSaveLoad -args -out /tmp/weights.safetensors
    .venv/bin/python scripts/check_nn_weights.py /tmp/weights.safetensors
"""

import sys

import torch
from safetensors.torch import load_file
from torch import nn


class Model(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 2, 3),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.Linear(4, 3, dtype=torch.bfloat16),
            nn.LayerNorm(3, dtype=torch.float64),
            nn.MultiheadAttention(4, 2, batch_first=True),
        )


weights = load_file(sys.argv[1])
model = Model()
for name, have in model.state_dict().items():
    assert weights[name].dtype == have.dtype, name
print(model.load_state_dict(weights, strict=True))
for name, t in weights.items():
    print(f"{name}: {t.dtype} {list(t.shape)} {t.flatten()[:2].tolist()}")
