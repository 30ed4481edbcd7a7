"""Cases made by hand for the pointwise ops: special values, integer extremes, ties, scalars and mixed dtypes."""

import math

import torch

from canon import Scalar
from table import UNARY

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

FLOAT_UNARY = [op for op in UNARY if op != "bitwise_not"] + ["relu", "silu", "softplus"]
FLOAT_BINARY = """add sub mul div remainder fmod pow atan2 copysign maximum minimum eq ne lt le gt ge logical_and
logical_or logical_xor""".split()
INT_BINARY = """add sub mul maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or
bitwise_xor""".split()
MIXED = "add sub mul div pow maximum eq lt where remainder atan2".split()
# Where the derivative jumps: subgradients as PyTorch chooses them.
KINKS = "abs sign relu".split()


def floats(dtype):
    """Signed zeros, infinities, NaN, subnormals, the smallest and largest values, halves (for rounding), near 1."""
    f = torch.finfo(dtype)
    positive = [0.0, 1.0, math.inf, f.smallest_normal, f.smallest_normal * f.eps, f.smallest_normal / 2, f.max, f.max / 2, f.eps,
                1 + f.eps, 1 - f.eps / 2, 0.5, 1.5, 2.5, 3.0, 0.1, 20.5, 100.0]
    return torch.tensor([s * v for v in positive for s in (1, -1)] + [math.nan], dtype=torch.float64).to(dtype)


def floats_short(dtype):
    """The pairs of a binary op square the count, so fewer."""
    f = torch.finfo(dtype)
    positive = [0.0, 1.0, math.inf, f.smallest_normal / 2, f.max, 0.5, 3.0]
    return torch.tensor([s * v for v in positive for s in (1, -1)] + [math.nan], dtype=torch.float64).to(dtype)


def extremes(dtype):
    i = torch.iinfo(dtype)
    values = [i.min, i.min + 1, 0, 1, 2, 3, 7, 100, i.max - 1, i.max] + ([-1, -2, -3, -7, -100] if i.min < 0 else [])
    return torch.tensor(sorted(set(values)), dtype=dtype)


def specials(op, dtype, mk):
    """Yields (options, arguments) for op at dtype; options are the flags of canon.Case."""
    pinned = {"pinned": True, "grad": False}
    if dtype in FLOATS:
        if op in FLOAT_UNARY:
            x = floats(dtype)
            if op == "signbit":
                x = torch.cat([x, -x[-1:]])  # NaN of both signs
            yield pinned, {"self": x}
        if op == "gelu":
            # At ±inf and near the largest value PyTorch's vector and scalar paths disagree.
            x = floats(dtype)
            yield pinned, {"self": x[(x.abs() <= 1000) | x.isnan()]}
            yield pinned, {"self": x, "approximate": "tanh"}
        if op in FLOAT_BINARY:
            x = floats_short(dtype)
            if op == "copysign":
                x = torch.cat([x, -x[-1:]])  # NaN of both signs
            second = "exponent" if op == "pow" else "other"
            yield pinned, {"self": x[:, None], second: x}
            if op == "div":
                for mode in ("floor", "trunc"):
                    yield pinned, {"self": x[:, None], "other": x, "rounding_mode": mode}
        if op == "clamp":
            x = floats_short(dtype)
            yield pinned, {"self": x, "min": Scalar(-1.0), "max": Scalar(0.5)}
            yield pinned, {"self": x, "min": Scalar(1.0), "max": Scalar(-1.0)}
            yield pinned, {"self": x[:, None, None], "min": x[None, ::3, None], "max": x[None, None, ::4]}
        if op == "where":
            x = floats_short(dtype)
            yield pinned, {"condition": torch.arange(x.numel()) % 2 == 0, "self": x, "other": x.flip(0)}
    elif dtype in INTS:
        yield from integer_specials(op, dtype, pinned)
    if dtype == torch.float64:
        yield from kinks(op)
    yield from scalars(op, dtype, mk)
    yield from mixed(op, dtype, mk)


def integer_specials(op, dtype, pinned):
    x = extremes(dtype)
    if op in ("neg", "abs", "sign", "square", "bitwise_not", "logical_not", "relu", "floor"):
        yield pinned, {"self": x}
    if op in INT_BINARY:
        yield pinned, {"self": x[:, None], "other": x}
    signed = torch.iinfo(dtype).min < 0
    if op in ("div", "remainder", "fmod"):
        # min / -1 is undefined in C and a zero divisor is an error
        divisors = x[(x != 0) & (x != -1)] if signed else x[x != 0]
        small = torch.tensor([-7, -6, -1, 0, 1, 6, 7], dtype=dtype) if signed else torch.tensor([0, 1, 6, 7], dtype=dtype)
        for mode in (None, "floor", "trunc") if op == "div" else (None,):
            extra = {"rounding_mode": mode} if mode else {}
            yield pinned, {"self": x[:, None], "other": divisors, **extra}
            if signed:
                yield pinned, {"self": small[:, None], "other": torch.tensor([-3, -1, 1, 3], dtype=dtype), **extra}
    if op == "pow":
        base = torch.tensor([-3, -2, -1, 0, 1, 2, 3, 10] if signed else [0, 1, 2, 3, 10], dtype=dtype)
        power = torch.tensor([-2, -1, 0, 1, 2, 3, 7] if signed else [0, 1, 2, 3, 7], dtype=dtype)
        if signed:  # an exact zero to a negative power is an error in some builds
            yield pinned, {"self": base[base != 0][:, None], "exponent": power}
            yield pinned, {"self": base[:, None], "exponent": power[power >= 0]}
        else:
            yield pinned, {"self": base[:, None], "exponent": power}
    if op in ("bitwise_left_shift", "bitwise_right_shift"):
        bits = torch.iinfo(dtype).bits
        amounts = torch.tensor([0, 1, 3, bits - 1, bits, bits + 1, 100], dtype=dtype)
        yield pinned, {"self": x[:, None], "other": amounts}


def kinks(op):
    """f64 with gradients, exactly on ties and corners."""
    x = torch.tensor([-1.0, -0.0, 0.0, 0.5, 1.0], dtype=torch.float64)
    y = torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0], dtype=torch.float64)
    keep = {"pinned": True}
    if op in KINKS:
        yield keep, {"self": x}
    if op in ("maximum", "minimum"):
        yield keep, {"self": x, "other": y}
    if op == "clamp":
        yield keep, {"self": x, "min": Scalar(-1.0), "max": Scalar(0.5)}
        yield keep, {"self": x, "min": y, "max": y + 0.5}
    if op in ("amax", "amin"):
        yield keep, {"self": torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], dtype=torch.float64), "dim": [1]}
    if op in ("l1_loss", "mse_loss", "huber_loss"):
        yield keep, {"self": x, "target": y, "reduction": "sum"}
    if op == "prod":
        yield keep, {"self": torch.tensor([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], dtype=torch.float64), "dim": 1}
    if op == "linalg_vector_norm":
        yield keep, {"self": torch.zeros(2, 3, dtype=torch.float64), "dim": [1]}
    if op == "max_pool1d":
        yield keep, {"self": torch.tensor([[1.0, 1.0, 1.0, 0.0, 2.0, 2.0]], dtype=torch.float64), "kernel_size": 3, "stride": 1}
    if op == "pow":
        yield keep, {"self": torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64), "exponent": Scalar(2)}
        yield keep, {"self": torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64), "exponent": Scalar(0.5)}
        yield keep, {"self": Scalar(2.0), "exponent": torch.tensor([-1.0, 0.0, 3.0], dtype=torch.float64)}


def scalars(op, dtype, mk):
    """Python numbers as operands, of every kind against every dtype."""
    if op in ("add", "sub", "mul", "div", "remainder", "fmod", "eq", "lt", "ge", "where", "masked_fill"):
        values = [2, 2.5] if dtype != torch.bool else [True, 2, 2.5]
        if dtype == torch.uint8 and op in ("add", "sub", "mul"):
            values.append(-3)
    elif op in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        values = [2] if dtype != torch.bool else [True]
    elif op == "pow":
        values = [0, 2, 3] + ([0.5, -1, -0.5, 2.5] if dtype in FLOATS else [0.5])
    elif op == "clamp":
        for kwargs in ({"min": 0}, {"max": 1.5}, {"min": -1, "max": 2}):
            yield {}, {"self": mk((2, 3)), **{k: Scalar(v) for k, v in kwargs.items()}}
        return
    else:
        return
    for v in values:
        if op == "where":
            yield {}, {"condition": torch.tensor([True, False, True]), "self": mk((3,)), "other": Scalar(v)}
            yield {}, {"condition": torch.tensor([True, False, True]), "self": Scalar(v), "other": mk((3,))}
        elif op == "masked_fill":
            if not (isinstance(v, float) and dtype not in FLOATS):
                yield {}, {"self": mk((2, 3)), "mask": torch.tensor([True, False, True]), "value": Scalar(v)}
        elif op == "pow":
            yield {}, {"self": mk((2, 3), low=1, high=4), "exponent": Scalar(v)}
            if v == 2:
                yield {}, {"self": Scalar(v), "exponent": mk((2, 3), low=0, high=4)}
        else:
            yield {}, {"self": mk((2, 3)), "other": Scalar(v)}
    if op in ("add", "sub", "mul", "div", "remainder"):
        yield {}, {"self": Scalar(3), "other": mk((2, 3), low=1, high=9, exclude_zero=True)}


def mixed(op, dtype, mk):
    """Operands of different dtypes, including a 0-d tensor, which does not promote within its own kind."""
    if op not in MIXED:
        return
    i32, i64, f32, f64 = torch.int32, torch.int64, torch.float32, torch.float64
    partners = {
        torch.uint8: [torch.int8, i32],
        torch.int8: [torch.int16, f32],
        torch.int16: [i64],
        torch.int32: [i64, f32, torch.bool],
        torch.int64: [torch.float16, f64, torch.uint8],
        torch.float16: [torch.bfloat16, f32, i64],
        torch.bfloat16: [f64, torch.bool],
        torch.float32: [f64, i64, torch.float16],
        torch.float64: [f32, torch.int8],
        torch.bool: [i32, f32],
    }[dtype]
    second = "exponent" if op == "pow" else "other"
    for n, partner in enumerate(partners):
        for shape in ((3,), ()) if n == 0 else ((3,),):
            args = {"self": mk((2, 3), low=1, high=4), second: mk(shape, low=1, high=4, dtype=partner)}
            if op == "where":
                args["condition"] = torch.tensor([True, False, True])
            yield {"pinned": True}, args
