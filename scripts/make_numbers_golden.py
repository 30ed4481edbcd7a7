"""Writes testdata/numbers.txt: what PyTorch makes of integers and of Python numbers beside them that their
dtype cannot hold.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy
    .venv/bin/python scripts/make_numbers_golden.py

A line is "OP DTYPE NUMBERS -> RESULT-DTYPE ELEMENTS", where the tensor has the elements of the line "tensor DTYPE ELEMENTS"; "!"
stands for an error. OP has "r" before it where the number is the first operand. What C leaves undefined is left out: floats that
an i64 cannot hold.
"""

import pathlib
import warnings

import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
OUT = pathlib.Path(__file__).parent.parent / "testdata/numbers.txt"
DTYPES = {"u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
NAMES = {**{v: k for k, v in DTYPES.items()}, torch.bool: "bool", torch.float32: "f32", torch.float64: "f64"}
INTS = [-(2**63), -(2**40), -(2**31) - 1, -32769, -300, -256, -255, -129, -1, 3, 127, 128, 200, 255, 256, 300, 32768, 2**31, 2**32,
        2**40 + 1, 2**63 - 1]
FLOATS = [-1e30, -300.0, -1.5, 2.5, 127.5, 255.5, 300.0, 3e9, 1e30]
BOUNDS = [-(2**40), -300, -129, -1, 3, 200, 256, 300, 2**40]
inf, nan = float("inf"), float("nan")


def elements(dtype):
    i = torch.iinfo(dtype)
    values = [i.min, 1, 5, 100, i.max] + ([-7] if i.min < 0 else [])
    return torch.tensor(values, dtype=dtype)


def zero_d(fn):
    return lambda x, n: fn(x, torch.tensor(n))


TWO = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "remainder": torch.remainder, "fmod": torch.fmod,
    "floor_divide": lambda x, n: torch.div(x, n, rounding_mode="floor"),
    "trunc_divide": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
    "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    "maximum": zero_d(torch.maximum), "minimum": zero_d(torch.minimum), "pow": torch.pow,
    "clamp_min": torch.clamp_min, "clamp_max": torch.clamp_max,
}
BITS = {
    "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
    "bitwise_left_shift": torch.bitwise_left_shift, "bitwise_right_shift": torch.bitwise_right_shift,
}
REVERSED = {
    "sub": lambda n, x: n - x, "remainder": lambda n, x: torch.remainder(n, x), "pow": torch.pow,
    "floor_divide": lambda n, x: torch.div(torch.tensor(n), x, rounding_mode="floor"),
}
FILLS = {
    "full_like": torch.full_like,
    "where": lambda x, n: torch.where(x == 5, n, x),
    "masked_fill": lambda x, n: torch.masked_fill(x, x == 5, n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "threshold_value": lambda x, n: F.threshold(x, 5, n),
    "threshold": lambda x, n: F.threshold(x, n, 9),
    "full": lambda x, n: torch.full([2], n, dtype=x.dtype),
}


def text(n):
    return {inf: "inf", -inf: "-inf"}.get(n, "nan" if n != n else repr(n))


def main():
    lines = []

    def case(op, x, numbers, fn):
        try:
            r = fn()
            got = f"{NAMES[r.dtype]} " + " ".join(text(v) for v in r.flatten().tolist())
        except (RuntimeError, TypeError):
            got = "!"
        lines.append(f"{op} {NAMES[x.dtype]} {' '.join(text(n) for n in numbers)} -> {got}")

    for name, dtype in DTYPES.items():
        x = elements(dtype)
        lines.append(f"tensor {name} " + " ".join(str(v) for v in x.tolist()))
        for n in INTS:
            for op, fn in {**TWO, **BITS, **FILLS}.items():
                # C leaves open the smallest number divided by -1
                if (n + 1) % 2 ** torch.iinfo(dtype).bits == 0 and op in ("remainder", "fmod", "floor_divide", "trunc_divide"):
                    continue
                case(op, x, [n], lambda: fn(x, n))
            for op, fn in REVERSED.items():
                if op == "remainder" or op == "floor_divide":
                    if torch.iinfo(dtype).min < 0:
                        continue
                    y = x[x != 0]
                    case("r" + op, x, [n], lambda: fn(n, y))
                    continue
                case("r" + op, x, [n], lambda: fn(n, x))
        for n in FLOATS + [inf, -inf, nan]:
            for op, fn in FILLS.items():
                if op in ("where", "addcmul", "threshold"):
                    continue
                if dtype == torch.int64 and abs(n) >= 2**63:
                    continue
                case(op, x, [n], lambda: fn(x, n))
        for lo in BOUNDS:
            for hi in BOUNDS:
                case("clamp", x, [lo, hi], lambda: torch.clamp(x, lo, hi))
                case("hardtanh", x, [lo, hi], lambda: torch._C._nn.hardtanh(x, lo, hi))
                if lo <= hi:
                    case("hardtanh", x, [float(lo), float(hi)], lambda: torch._C._nn.hardtanh(x, float(lo), float(hi)))
        for n in INTS:
            case("linspace", x, [n, 3], lambda: torch.linspace(n, 3, 2, dtype=dtype))
            case("constant_pad_nd", x, [n], lambda: torch.constant_pad_nd(x, (1, 0), n))
            if abs(n) < 2**53:  # which a float holds
                case("pad", x, [n], lambda: torch.ops.aten.pad(x, (1, 0), "constant", n))
    OUT.write_text("\n".join(lines) + "\n")


main()
