"""Makes the test vectors of the 8-bit floats and of products that give another dtype than their operands'. See README.md
beside this file; OpInfo has no samples of these.

to_f8        casts of all codes of the 8-bit floats to every dtype, and to the 8-bit floats of what is special in f32, f64 and
             the integers; scripts/make_half_golden.py has all of f16 and bf16
_scaled_mm   scales by tensor and by row, bias, every dtype of the result
_int_mm      i8 and u8
"""

import argparse
import math
import pathlib

import torch

import canon
from canon import Case
from make_vectors import write

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
NARROW = (E4M3, E5M2)
canon.NAMES |= {E4M3: "f8e4m3fn", E5M2: "f8e5m2"}
INTS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def case(op, dtype, inputs, attrs, outputs, **options):
    c = Case(op, dtype, {**inputs, **attrs}, list(inputs), grad=False, **options)
    c.outputs = outputs
    return c


def ties(dtype):
    """All values of an 8-bit float that are finite, the middles between them, and the next floats on both sides of those."""
    v = torch.arange(256, dtype=torch.uint8).view(dtype).double()
    v = v[v.isfinite()].unique()
    top = v[-1] + (v[-1] - v[-2])
    mid = (torch.cat([v, top[None]])[1:] + v) / 2
    mid = torch.cat([mid, -mid])
    return v, mid


def wide(dtype):
    """f32 or f64 that round in all ways."""
    inf = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-30, 1e30, -1e30], dtype=torch.float64)
    parts = [inf.to(dtype)]
    for narrow in NARROW:
        v, mid = ties(narrow)
        mid = mid.to(dtype)
        far = torch.tensor(math.inf, dtype=dtype)
        parts += [v.to(dtype), mid, torch.nextafter(mid, far), torch.nextafter(mid, -far)]
    if dtype == torch.float64:  # rounded to f32 first
        parts.append(ties(E4M3)[1] * (1 + 2.0**-40))
    return torch.cat(parts)


def casts():
    # torch.full refuses what a dtype cannot hold, so integers are made as i64.
    integers = torch.tensor([0, 1, -1, 7, 17, 18, 19, 100, 240, 255, 447, 448, 463, 464, 465, 480, 57343, 61439, 61440, 65535, 2**31, -(2**40) - 1])
    for narrow in NARROW:
        codes = torch.arange(256, dtype=torch.uint8).view(narrow)
        for to in (torch.bool, *INTS, torch.float16, torch.bfloat16, torch.float32, torch.float64, *NARROW):
            x = codes
            if to in INTS:
                x = codes[codes.float().isfinite()]  # the rest is undefined in C
                if to != torch.int64 and to != torch.int32:
                    x = x[x.float().abs() <= (128 if to != torch.int16 else 32768)]
                    x = x[(x.float() >= 0) | torch.tensor(to != torch.uint8)]
                    if to == torch.int16:
                        x = x[x.float() < 32768]
                    if to == torch.int8:
                        x = x[x.float() < 128]
            yield case("to_f8", narrow, {"self": x}, {"dtype": to}, [x.to(to)])
        for x in (wide(torch.float32), wide(torch.float64), torch.tensor([False, True])):
            yield case("to_f8", x.dtype, {"self": x}, {"dtype": narrow}, [x.to(narrow)])
        for d in INTS:
            i = torch.iinfo(d)
            x = integers[(integers >= i.min) & (integers <= i.max)].to(d)
            yield case("to_f8", d, {"self": x}, {"dtype": narrow}, [x.to(narrow)])
        for d in (torch.float16, torch.bfloat16):
            yield case("to_f8", d, {"self": wide(torch.float32).to(d)}, {"dtype": narrow}, [wide(torch.float32).to(d).to(narrow)])


def scaled():
    g = torch.Generator().manual_seed(8)

    def mk(*shape):
        return torch.randn(shape, generator=g)

    def few(*shape):  # scales are powers of two, so that nothing depends on the order of roundings
        return torch.randint(-3, 4, shape, generator=g).float().exp2()

    def one(x, y, attrs=None, rows=False, scale=None, **tensors):
        m, n = x.shape[0], y.shape[1]
        a, b = (few(m, 1), few(1, n)) if rows else (few(), few()) if scale is None else scale
        inputs = {"self": x, "mat2": y, "scale_a": a, "scale_b": b, **tensors}
        out = torch._scaled_mm(x, y, a, b, **tensors, **(attrs or {}))
        # Sums of other order may round an 8-bit result to the other side.
        worst = {E4M3: 2.0**-4, E5M2: 2.0**-3}.get(out.dtype)
        atol = None if worst is None else worst * 2 * out.float().abs().max().item()
        return case("_scaled_mm", x.dtype, inputs, attrs or {}, [out], atol=atol)

    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    for p, q in ((E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)):
        x, y = mk(5, 16).to(p), mk(16, 7).to(q)
        yield one(x, y, {"out_dtype": f32})
        yield one(x, y, {"out_dtype": bf16}, bias=mk(7).bfloat16())
        yield one(x, y, {"out_dtype": f32}, rows=True)
    x, y, v = mk(32, 48).to(E4M3), mk(16, 48).to(E4M3).t(), mk(16)
    yield one(x, y)
    for out in (f32, f16, bf16):
        yield one(x, y, {"out_dtype": out})
        yield one(x, y, {"out_dtype": out}, bias=v.to(out))
        yield one(x, y, {"out_dtype": out, "use_fast_accum": True}, rows=True, bias=v)
    for out in NARROW:
        yield one(x, y, {"out_dtype": out}, scale_result=torch.tensor(4.0))
        yield one(x, y, {"out_dtype": out}, rows=True, bias=v.half())
    yield one(x, y, {"out_dtype": f32}, scale_result=torch.tensor(3.0), scale=(few(1), few(1, 1)))
    yield one(mk(0, 16).to(E4M3), mk(16, 4).to(E4M3), {"out_dtype": f32})
    yield one(mk(3, 0).to(E4M3), mk(0, 4).to(E4M3), {"out_dtype": f32}, bias=mk(4))
    yield one(mk(1, 16).to(E5M2), mk(16, 1).to(E4M3), {"out_dtype": f16}, rows=True)


def integers():
    g = torch.Generator().manual_seed(9)
    for d in (torch.int8, torch.uint8):
        for m, k, n in ((3, 8, 5), (32, 48, 16), (1, 300, 1), (4, 0, 2), (0, 3, 2)):
            i = torch.iinfo(d)
            x = torch.randint(i.min, i.max + 1, (m, k), generator=g, dtype=torch.int32).to(d)
            y = torch.randint(-128, 128, (k, n), generator=g, dtype=torch.int32).to(torch.int8)
            yield case("_int_mm", d, {"self": x, "mat2": y}, {}, [torch._int_mm(x, y)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("--out", type=pathlib.Path, default=here.parents[1] / "internal/opinfo/testdata")
    out = parser.parse_args().out
    for op, cases in (("to_f8", casts()), ("_scaled_mm", scaled()), ("_int_mm", integers())):
        cases = list(cases)
        print(op, len(cases), write(out / f"{op}.json.gz", op, cases))


if __name__ == "__main__":
    main()
