#!/usr/bin/env python3
"""Write what PyTorch computes for the quantised functions of aoti/internal/host.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0
    .venv/bin/python scripts/make_quant_goldens.py > aoti/internal/host/testdata/quant_goldens.json

The form is that of make_host_goldens.py. Weights are not packed: [k, n] of layers, [out, in, kernel…] of convolutions.
"""
import itertools
import json
import sys

import torch
from make_host_goldens import A, CASES, Numbers, Opt, case

ONEDNN = torch.ops.onednn
CODES = {torch.uint8: 0, torch.int8: 1, torch.float32: 6, torch.bfloat16: 15}
UNARY = [
    ("none", [], ""), ("relu", [], ""), ("gelu", [], "none"), ("gelu", [], "tanh"), ("hardtanh", [-1.0, 2.5], ""),
    ("hardswish", [], ""), ("swish", [], ""), ("tanh", [], ""), ("leaky_relu", [0.125], ""),
]


def quantised(dtype, *dims):
    bounds = (0, 256) if dtype == torch.uint8 else (-128, 128)
    return torch.randint(*bounds, dims, dtype=dtype)


def weights(per_channel, n, *dims):
    return torch.randint(-127, 128, (n, *dims), dtype=torch.int8), torch.rand(n if per_channel else 1) * 0.01 + 0.001


def grid(dtype):
    return (1.0, 0) if dtype.is_floating_point else (0.37, 11)


def post(name, numbers, algorithm):
    return [name, Numbers(numbers), algorithm]


def linear(x, k, n, zero, dtype, unary=UNARY[0], bias=True, per_channel=True, other=None, binary=None, from_grid=(1.0, 0)):
    w, scales = weights(per_channel, n, k)
    b = torch.randn(n) if bias else None
    first = [x, torch.tensor(0.0173), torch.tensor(zero, dtype=torch.int32)]
    zeros = torch.zeros(scales.numel(), dtype=torch.int32)
    packed = ONEDNN.qlinear_prepack(w, list(x.shape))
    step, to = grid(dtype)
    if binary is None:
        out = ONEDNN.qlinear_pointwise.tensor(*first, packed, scales, zeros, b, step, to, dtype, *unary)
        case("cpu__qlinear_pointwise_tensor", first + [w.t(), scales, zeros, b, step, to, Opt(CODES[dtype]), *post(*unary)], out)
        return
    rest = [step, to, dtype, *from_grid, binary, 1.0]
    out = ONEDNN.qlinear_pointwise.binary_tensor(*first, packed, scales, zeros, other.clone(), b, *rest, *unary)
    rest[2] = Opt(CODES[dtype])
    case("cpu__qlinear_pointwise_binary_tensor", first + [w.t(), scales, zeros, other, b, *rest, *post(*unary)], out)


def linears():
    for unary in UNARY:
        linear(quantised(torch.uint8, 3, 20), 20, 9, 70, torch.uint8, unary)
    for dtype, bias, per_channel in itertools.product((torch.float32, torch.bfloat16, torch.uint8), (True, False), (True, False)):
        linear(quantised(torch.uint8, 2, 3, 17), 17, 7, 131, dtype, UNARY[1], bias, per_channel)
    linear(quantised(torch.int8, 4, 9), 9, 5, -17, torch.int8)
    linear(quantised(torch.int8, 4, 9), 9, 5, 0, torch.float32)
    for dtype in (torch.uint8, torch.float32, torch.bfloat16):
        for unary in UNARY[:2]:
            scale = (0.5, 100) if dtype == torch.uint8 else (1.0, 0)
            other = quantised(dtype, 3, 6) if dtype == torch.uint8 else torch.randn(3, 6).mul(20).to(dtype)
            linear(quantised(torch.uint8, 3, 12), 12, 6, 90, dtype, unary, other=other, binary="sum", from_grid=scale)
            if dtype.is_floating_point:
                linear(quantised(torch.uint8, 3, 12), 12, 6, 90, torch.uint8, unary, other=other, binary="add")


def conv(x, n, kernel, zero, dtype, unary=UNARY[0], bias=True, per_channel=True, stride=1, padding=0, dilation=1, groups=1, accum=None):
    rank = x.dim() - 2
    w, scales = weights(per_channel, n, x.shape[1] // groups, *[kernel] * rank)
    b = torch.randn(n) if bias else None
    shape = [[stride] * rank, [padding] * rank, [dilation] * rank]
    packed = ONEDNN.qconv_prepack(w, scales, 0.0173, zero, *shape, groups, list(x.shape))
    first = [x, torch.tensor(0.0173), torch.tensor(zero, dtype=torch.int32)]
    zeros = torch.zeros(scales.numel(), dtype=torch.int32)
    plain = w.unsqueeze(2) if rank == 1 else w
    step, to = grid(dtype)
    if accum is None:
        out = ONEDNN.qconv_pointwise.tensor(*first, packed, scales, zeros, b, *shape, groups, step, to, dtype, *unary)
        args = first + [plain, scales, zeros, b, *shape, groups, step, to, Opt(CODES[dtype]), *post(*unary)]
        case("cpu__qconv_pointwise_tensor", args, out)
        return
    from_grid = (1.0, 0) if dtype.is_floating_point else (0.6, 90)
    rest = [step, to, dtype, *from_grid, "sum", 1.0]
    args = first + [plain, scales, zeros, accum.clone(memory_format=torch.preserve_format), b, *shape, groups, *rest, *post(*unary)]
    args[args.index(dtype, 11)] = Opt(CODES[dtype])
    args[-4] = Opt(1.0)
    out = ONEDNN.qconv2d_pointwise.binary_tensor(*first, packed, scales, zeros, accum, b, *shape, groups, *rest, *unary)
    case("cpu__qconv2d_pointwise_binary_tensor", args, out)


def convs():
    for unary in (UNARY[0], UNARY[1], UNARY[4], UNARY[5], UNARY[6]):
        conv(quantised(torch.uint8, 1, 3, 5, 6), 4, 3, 40, torch.uint8, unary, padding=1)
    for dtype in (torch.float32, torch.bfloat16):
        conv(quantised(torch.uint8, 2, 4, 5, 6), 6, 3, 140, dtype, UNARY[1], bias=False, per_channel=False, stride=2, padding=2, dilation=2)
    conv(quantised(torch.uint8, 2, 4, 5, 6).contiguous(memory_format=torch.channels_last), 6, 1, 3, torch.uint8)
    conv(quantised(torch.uint8, 1, 6, 5, 5), 9, 2, 77, torch.uint8, groups=3)
    conv(quantised(torch.uint8, 1, 6, 5, 5), 6, 3, 77, torch.uint8, padding=1, groups=6)
    conv(quantised(torch.uint8, 2, 3, 11), 4, 3, 40, torch.uint8, UNARY[1], padding=1, stride=2)
    conv(quantised(torch.uint8, 1, 2, 4, 5, 6), 3, 2, 40, torch.float32, padding=1)
    for dtype in (torch.uint8, torch.float32, torch.bfloat16):
        for unary in UNARY[:2]:
            accum = quantised(dtype, 1, 4, 5, 6) if dtype == torch.uint8 else torch.randn(1, 4, 5, 6).to(dtype)
            accum = accum.contiguous(memory_format=torch.channels_last)
            conv(quantised(torch.uint8, 1, 3, 5, 6), 4, 3, 40, dtype, unary, padding=1, accum=accum)


def int4s():
    q = torch.randint(0, 16, (16, 64), dtype=torch.int32)
    packed = A._convert_weight_to_int4pack_for_cpu(q, 1)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x, scales = torch.randn(3, 64).to(dtype), (torch.rand(2, 16, 2) * 0.05).to(dtype)
        out = A._weight_int4pack_mm_for_cpu(x, packed, 32, scales)
        case("cpu__weight_int4pack_mm_cpu_tensor", [x, packed, torch.tensor(32), scales], out)
    for dtype, block, bias in ((torch.float32, 64, True), (torch.float32, 32, False), (torch.bfloat16, 64, True)):
        w, scales = torch.randint(0, 256, (10, 32), dtype=torch.uint8), torch.rand(10, 64 // block) * 0.1
        b = torch.randn(10) if bias else None
        packed = A._dyn_quant_pack_4bit_weight(w, scales, b, block, 64, 10)
        case("cpu__dyn_quant_pack_4bit_weight", [w, scales, b, block, 64, 10], packed)
        x = torch.randn(4, 64).to(dtype)
        case("cpu__dyn_quant_matmul_4bit", [x, packed, block, 64, 10], A._dyn_quant_matmul_4bit(x, packed, block, 64, 10))


def observers():
    for rows, even, watch, rounds in itertools.product((False, True), (False, True), (0, 1), (0, 1)):
        n = 3 if rows else 1
        state = [-torch.rand(n), torch.rand(n) + 0.2, torch.full((n,), 0.02), torch.full((n,), 5, dtype=torch.int32)]
        bounds = (-128, 127) if even else (0, 255)
        x = torch.randn(3, 2, 4)
        on = [torch.tensor([watch]), torch.tensor([rounds])]
        args = [x, *on, *state, 0.01, *bounds, 0, rows, even]
        outs = A._fused_moving_avg_obs_fq_helper_functional(*args)
        case("cpu__fused_moving_avg_obs_fq_helper_functional", args, outs)


def main():
    CASES.clear()
    torch.manual_seed(7)
    linears()
    convs()
    int4s()
    observers()
    print("[\n" + ",\n".join(json.dumps(c) for c in CASES) + "\n]")


if __name__ == "__main__":
    sys.exit(main())
