"""Writes internal/half/testdata/torch.csv and narrow.csv: what PyTorch makes of chosen float32 patterns, and what of all
16-bit ones.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0
    .venv/bin/python scripts/make_half_golden.py

Each line of torch.csv is a float32 pattern and the f16, bf16, float8_e4m3fn and float8_e5m2 patterns that torch's
Tensor.to gives for it, in hexadecimal. NaNs are left out: their payload depends on the processor.

Each line of narrow.csv is a 16-bit format, the first pattern of a run, and the float8_e4m3fn and float8_e5m2 patterns that
all patterns of the run give.
"""

import pathlib
import random

import torch

OUT = pathlib.Path(__file__).parent.parent / "internal/half/testdata/torch.csv"
NARROW = OUT.with_name("narrow.csv")


def patterns():
    rng = random.Random(1)
    seen = {0, 0x80000000, 1, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x007FFFFF, 0x00800000}
    for dtype, ints, bits in (
        (torch.float16, torch.int16, 16),
        (torch.bfloat16, torch.int16, 16),
        (torch.float8_e4m3fn, torch.uint8, 8),
        (torch.float8_e5m2, torch.uint8, 8),
    ):
        top = 1 << (bits - 1)
        # the ends of the range, and a few patterns between; for each the value,
        # the tie with the next and the float32 neighbours of that tie
        lows = {0, 1, 2, 3, top - 1} | {rng.randrange(top) for _ in range(12)}
        for low in sorted(lows | {h - 1 for h in lows if h} | {0x7BFF, 0x7F7F} & set(range(top))):
            pair = torch.tensor([low, min(low + 1, top - 1)]).to(ints).view(dtype).to(torch.float64)
            if not pair.isfinite().all():
                pair[1] = 2 * pair[0]
            for value in (pair[0], pair.mean()):
                p = int(value.to(torch.float32).view(torch.int32)) & 0xFFFFFFFF
                sign = rng.getrandbits(1) << 31
                seen |= {q | sign for q in (p - 1, p, p + 1) if 0 <= q < 0x7F800000}
    # around the largest values of the 8-bit formats
    for f in (448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65520.0, 65536.0):
        p = int(torch.tensor(f).view(torch.int32))
        seen |= {p - 1, p, p + 1}
    return sorted(seen)


def main():
    pats = patterns()
    signed = [p - (1 << 32) if p >> 31 else p for p in pats]
    x = torch.tensor(signed, dtype=torch.int32).view(torch.float32)
    assert not x.isnan().any()
    columns = [
        x.to(torch.float16).view(torch.int16).tolist(),
        x.to(torch.bfloat16).view(torch.int16).tolist(),
        x.to(torch.float8_e4m3fn).view(torch.uint8).tolist(),
        x.to(torch.float8_e5m2).view(torch.uint8).tolist(),
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with OUT.open("w") as f:
        f.write("f32,f16,bf16,e4m3fn,e5m2\n")
        for p, h, b, e4, e5 in zip(pats, *columns):
            f.write(f"{p:08x},{h & 0xFFFF:04x},{b & 0xFFFF:04x},{e4:02x},{e5:02x}\n")
    narrow()


def narrow():
    with NARROW.open("w") as f:
        f.write("from,first,e4m3fn,e5m2\n")
        for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16)):
            x = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16).view(dtype)
            last = None
            for p, pair in enumerate(zip(x.to(torch.float8_e4m3fn).view(torch.uint8).tolist(), x.to(torch.float8_e5m2).view(torch.uint8).tolist())):
                if pair != last:
                    f.write(f"{name},{p:04x},{pair[0]:02x},{pair[1]:02x}\n")
                last = pair


main()
