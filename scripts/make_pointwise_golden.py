"""Writes internal/ir/testdata/promote.txt and internal/ir/testdata/pointwise.txt: what PyTorch makes of pointwise ops.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy
    .venv/bin/python scripts/make_pointwise_golden.py

promote.txt has a line for each pair of dtypes and each pair of kinds of operands (dim: a tensor with
dimensions, zero: one without, wrapped: a plain number) with torch.result_type of them.

pointwise.txt has, for each op, a line "dtypes OP ATTRS" with the result dtype for operands of each dtype
("!" where PyTorch refuses), and blocks "case OP ATTRS DTYPE" of lines "operands -> result ; gradients".
Gradients are those of floating operands for the cotangent 1. ATTRS are name=value pairs or "-".
"""

import itertools
import pathlib
import warnings

import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
OUT = pathlib.Path(__file__).parent.parent / "internal/ir/testdata"

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
    "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}
NAMES = {v: k for k, v in DTYPES.items()}
inf, nan = float("inf"), float("nan")


def trunc_divide(x, y):
    return torch.div(x, y, rounding_mode="trunc")


def floor_divide(x, y):
    return torch.div(x, y, rounding_mode="floor")


def polygamma(x, n):
    return torch.polygamma(n, x)


# Where PyTorch's f64 has few right digits, or NaN in place of a limit: inputs that are left out.
INEXACT = {
    "i0": {inf, -inf}, "special_i1": {inf, -inf, 710.3, -710.3}, "polygamma": {inf, -inf, -1.5}, "special_erfcx": {30.0},
    "special_log_ndtr": {-710.3, -800.0, -inf},
}
# Its trigamma has ten digits.
INEXACT_GRADIENTS = {"digamma"}
SPECIAL = "special_i0e special_i1 special_i1e special_entr special_erfcx special_ndtr special_log_ndtr".split()
UNARY = """neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh
cosh tanh asinh acosh atanh sigmoid relu erf erfc erfinv floor ceil round trunc signbit isnan isinf isfinite logical_not
bitwise_not square frac isposinf isneginf sinc deg2rad rad2deg lgamma digamma i0""".split()
BINARY = """add sub mul div remainder fmod pow atan2 maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor
bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift hypot copysign xlogy fmax fmin logaddexp
logaddexp2 clamp_min clamp_max gcd lcm""".split()

# name, attributes, function, number of tensor operands
OPS = [(n, {}, getattr(torch, n), 1) for n in UNARY]
OPS += [(n, {}, getattr(torch, n), 2) for n in BINARY]
OPS += [
    ("trunc_divide", {}, trunc_divide, 2),
    ("floor_divide", {}, floor_divide, 2),
    ("silu", {}, F.silu, 1),
    ("mish", {}, F.mish, 1),
    ("softplus", {}, F.softplus, 1),
    ("softplus", {"beta": 2.5, "threshold": 3}, F.softplus, 1),
    ("log_sigmoid", {}, F.logsigmoid, 1),
    ("softsign", {}, F.softsign, 1),
    ("tanhshrink", {}, F.tanhshrink, 1),
    ("gelu", {}, F.gelu, 1),
    ("gelu", {"approximate": "tanh"}, F.gelu, 1),
    ("leaky_relu", {}, F.leaky_relu, 1),
    ("leaky_relu", {"negative_slope": 0.25}, F.leaky_relu, 1),
    ("elu", {}, F.elu, 1),
    ("elu", {"alpha": 0.5}, F.elu, 1),
    ("elu", {"alpha": 0.5, "scale": 1.5, "input_scale": 2}, torch._C._nn.elu, 1),
    ("celu", {"alpha": 2.5}, F.celu, 1),
    ("selu", {}, F.selu, 1),
    ("threshold", {"threshold": 0.5, "value": -3}, F.threshold, 1),
    ("hardtanh", {}, F.hardtanh, 1),
    ("hardtanh", {"min_val": -3, "max_val": 2}, F.hardtanh, 1),
    ("relu6", {}, F.relu6, 1),
    ("hardsigmoid", {}, F.hardsigmoid, 1),
    ("hardswish", {}, F.hardswish, 1),
    ("hardshrink", {}, F.hardshrink, 1),
    ("softshrink", {}, F.softshrink, 1),
    ("softshrink", {"lambd": 1}, F.softshrink, 1),
    ("clamp", {"min": -0.5, "max": 2}, torch.clamp, 1),
    ("clamp", {"min": 3, "max": 1}, torch.clamp, 1),
    ("clamp", {"max": 2}, torch.clamp, 1),
    ("clamp", {"min": 0.5}, torch.clamp, 1),
    ("clamp", {}, torch.clamp, 3),
    ("clamp_min", {"min": 0.5}, torch.clamp_min, 1),
    ("clamp_max", {"max": 0.5}, torch.clamp_max, 1),
    ("nan_to_num", {}, torch.nan_to_num, 1),
    ("nan_to_num", {"nan": 1.5, "posinf": 7.0, "neginf": -8.0}, torch.nan_to_num, 1),
    ("logit", {}, torch.logit, 1),
    ("logit", {"eps": 0.25}, torch.logit, 1),
    *((n, {}, getattr(torch.special, n.removeprefix("special_")), 1) for n in SPECIAL),
    ("polygamma", {"n": 3}, polygamma, 1),
    ("special_xlog1py", {}, torch.special.xlog1py, 2),
    ("lerp", {"weight": 0.25}, torch.lerp, 2),
    ("lerp", {"weight": 0.75}, torch.lerp, 2),
    ("addcmul", {"value": 2}, torch.addcmul, 3),
    ("addcdiv", {"value": -0.5}, torch.addcdiv, 3),
]

GRID = {
    1: [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 0.1, -0.7, 0.25, 0.75, 1.5, 2.5, -1.5, 3.75, -7.3, 12.5, 30.0, -30.0,
        1e-9, 5e-324, -1e-310, 710.3, -710.3, 800.0, -800.0, inf, -inf, nan],
    2: [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0, 1e-300, -1e300, inf, -inf, nan],
    3: [0.0, 1.0, -2.5, inf, nan],
}
INTS = {
    "bool": [0, 1],
    "u8": [0, 1, 2, 3, 7, 8, 200, 255],
    "i8": [-128, -7, -1, 0, 1, 2, 3, 8, 127],
    "i64": [-(2**63), -7, -2, -1, 0, 1, 2, 3, 64, 2**63 - 1],
}


def number(v):
    return repr(float(v)) if isinstance(v, float) else str(int(v))


def result(t):
    return number(t.item())


def attrs(kw):
    return ",".join(f"{k}={v}" for k, v in kw.items()) or "-"


def dtypes_line(name, kw, fn, n):
    out = []
    for short, dtype in DTYPES.items():
        try:
            r = NAMES[fn(*[torch.ones(2).to(dtype)] * n, **kw).dtype]
        except (RuntimeError, NotImplementedError):
            r = "!"
        out.append(f"{short}={r}")
    return f"dtypes {name} {attrs(kw)} {n} " + " ".join(out)


def float_case(name, kw, fn, n):
    lines = [f"case {name} {attrs(kw)} f64"]
    for point in itertools.product(GRID[n], repeat=n):
        if INEXACT.get(name, set()).intersection(point):
            continue
        xs = [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in point]
        y = fn(*xs, **kw)
        line = " ".join(map(number, point)) + " -> " + result(y)
        if y.requires_grad and name not in INEXACT_GRADIENTS:
            gs = torch.autograd.grad(y, xs, torch.ones_like(y), allow_unused=True)
            line += " ; " + " ".join("0.0" if g is None else result(g) for g in gs)
        lines.append(line)
    return lines


def int_case(name, kw, fn, n, short):
    lines = [f"case {name} {attrs(kw)} {short}"]
    for point in itertools.product(INTS[short], repeat=n):
        if n == 2 and point[0] == -(2**63) and point[1] == -1 and name in ("remainder", "fmod", "trunc_divide", "floor_divide"):
            continue  # not defined in C++
        if name in ("gcd", "lcm") and any(v < 0 and v == min(INTS[short]) for v in point):
            continue  # whose absolute value overflows
        xs = [torch.tensor([v], dtype=DTYPES[short]) for v in point]
        try:
            y = result(fn(*xs, **kw))
        except (RuntimeError, NotImplementedError) as e:
            if "ZeroDivisionError" not in str(e):
                return []
            y = "!"
        lines.append(" ".join(map(number, point)) + " -> " + y)
    return lines


def pointwise():
    lines = []
    for name, kw, fn, n in OPS:
        lines.append(dtypes_line(name, kw, fn, n))
        if not name.startswith("bitwise") and name not in ("gcd", "lcm"):
            lines += float_case(name, kw, fn, n)
        for short, dtype in INTS.items():
            x = torch.ones(1).to(DTYPES[short])
            try:
                kept = fn(*[x] * n, **kw).dtype in (x.dtype, torch.bool)
            except (RuntimeError, NotImplementedError):
                continue
            if name == "hardtanh" and short == "u8":
                continue  # the lower bound is not a u8
            if kept and n < 3:
                lines += int_case(name, kw, fn, n, short)
    return lines


def operand(kind, dtype):
    if kind == "wrapped":
        return torch.ones((), dtype=dtype).item()
    return torch.ones((2,) if kind == "dim" else (), dtype=dtype)


def promote():
    lines = []
    for ka, kb in itertools.product(("dim", "zero", "wrapped"), repeat=2):
        for (na, a), (nb, b) in itertools.product(DTYPES.items(), repeat=2):
            # plain numbers have three dtypes only
            if (ka == "wrapped" and na not in ("bool", "i64", "f32")) or (kb == "wrapped" and nb not in ("bool", "i64", "f32")):
                continue
            r = NAMES[torch.result_type(operand(ka, a), operand(kb, b))]
            if ka == kb == "dim":
                assert r == NAMES[torch.promote_types(a, b)]
            lines.append(f"{ka} {na} {kb} {nb} {r}")
    return lines


def main():
    OUT.mkdir(exist_ok=True)
    (OUT / "promote.txt").write_text("\n".join(promote()) + "\n")
    (OUT / "pointwise.txt").write_text("\n".join(pointwise()) + "\n")


if __name__ == "__main__":
    main()
