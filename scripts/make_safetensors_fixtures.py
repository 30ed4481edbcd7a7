"""Writes the files under safetensors/testdata with the reference implementation.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0
    .venv/bin/python scripts/make_safetensors_fixtures.py

dtypes.safetensors holds one tensor of each dtype that Loris supports, a scalar and tensors without
elements; foreign.safetensors holds dtypes it does not support beside one that it does. The values are in
`supported`, and the Go test repeats them.
"""

import pathlib

import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).parent.parent / "safetensors/testdata"


def supported():
    inf, nan = float("inf"), float("nan")
    return {
        "bool": torch.tensor([True, False, True]),
        "u8": torch.tensor([[0, 1], [254, 255]], dtype=torch.uint8),
        "i8": torch.tensor([-128, 0, 127], dtype=torch.int8),
        "i16": torch.tensor([[-32768], [32767]], dtype=torch.int16),
        "i32": torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32),
        "i64": torch.tensor([-(2**63), 2**63 - 1], dtype=torch.int64),
        "f8_e4m3": torch.tensor([0.0, 1.5, -448.0], dtype=torch.float8_e4m3fn),
        "f8_e5m2": torch.tensor([0.5, -57344.0, inf], dtype=torch.float8_e5m2),
        "f16": torch.tensor([[1.0, -2.5, 65504.0]], dtype=torch.float16),
        "bf16": torch.tensor([1.0, -2.5, 2.0**100], dtype=torch.bfloat16),
        "f32": torch.tensor([[0.0, -0.0, 1.25], [inf, -inf, 1e-45]], dtype=torch.float32),
        "f64": torch.tensor([0.1, -1e300], dtype=torch.float64),
        "c64": torch.tensor([1 + 2j, complex(0, -0.5)], dtype=torch.complex64),
        "scalar": torch.tensor(3.5, dtype=torch.float32),
        "empty": torch.zeros(0, dtype=torch.float32),
        "empty.i64": torch.zeros(2, 0, 3, dtype=torch.int64),
        'name "quoted"\\\n\u00e9\u2028': torch.tensor([7], dtype=torch.uint8),
    }


def foreign():
    return {
        "u16": torch.tensor([1, 65535], dtype=torch.uint16),
        "u32": torch.tensor([1, 2**32 - 1], dtype=torch.uint32),
        "u64": torch.tensor([1], dtype=torch.uint64),
        "f4": torch.tensor([0x21], dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "f32": torch.tensor([1.0, 2.0], dtype=torch.float32),
    }


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    # One entry of metadata only: the reference writes several in a random order.
    save_file(supported(), OUT / "dtypes.safetensors", metadata={"format": "pt"})
    save_file(foreign(), OUT / "foreign.safetensors")
