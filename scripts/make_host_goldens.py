#!/usr/bin/env python3
"""Write what PyTorch computes for the math functions of aoti/host.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0
    .venv/bin/python scripts/make_host_goldens.py > aoti/host/testdata/goldens.json

Each case is a function of the C shim (without aoti_torch_), its arguments and
its results with their strides: compiled models rely on the strides.
"""
import json
import sys

import torch

A = torch.ops.aten
CASES = []


def short(t):
    """As many digits as tell single floats apart."""
    return [float(f"{v:.9g}") for v in t.flatten().double().tolist()]


def tensor(t):
    if t.is_complex():
        return {"dtype": "c" + str(t.element_size() * 8), "dims": list(t.shape), "strides": list(t.stride()),
                "data": short(torch.view_as_real(t.resolve_conj().contiguous()))}
    kind = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "i64",
            torch.int32: "i32", torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8"}[t.dtype]
    data = t.contiguous().flatten()
    return {"dtype": kind, "dims": list(t.shape), "strides": list(t.stride()),
            "data": short(data) if t.is_floating_point() else data.long().tolist()}


def arg(x):
    if isinstance(x, torch.Tensor):
        return {"tensor": tensor(x)}
    if isinstance(x, Opt):
        return {"optional": x.value}
    if isinstance(x, list) and x and any(isinstance(y, torch.Tensor) for y in x):
        return {"tensors": [None if y is None else tensor(y) for y in x]}
    if isinstance(x, list):
        return {"ints": x}
    if isinstance(x, bool):
        return {"bool": x}
    if isinstance(x, int):
        return {"int": x}
    if isinstance(x, float):
        return {"float": x}
    if isinstance(x, str):
        return {"text": x}
    return {}


class Opt:
    """An optional number, which the C function takes by a pointer."""

    def __init__(self, value):
        self.value = value


def case(name, args, outs):
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    CASES.append({"name": name, "args": [arg(a) for a in args], "outs": [tensor(o) for o in outs]})


def ties(g):
    """Equal elements, whose order follows from the algorithm, and integers that a double does not hold."""
    few = torch.randint(0, 5, (3, 70), generator=g)
    for t in (few, few.float(), few[:, :66].t(), few.repeat(1, 9)):
        for k, dim, largest, kept in ((1, 1, True, True), (3, -1, False, True), (2, 0, True, True), (2, -1, True, False)):
            case("cpu_topk", [t, k, dim, largest, kept], A.topk(t, k, dim, largest, kept))
        case("cpu_kthvalue", [t, 3, 1, False], A.kthvalue(t, 3, 1, False))
        case("cpu_mode", [t, 1, False], A.mode(t, 1, False))
    for t in (few, few.float()):
        case("cpu_topk", [t, 40, 1, True, True], A.topk(t, 40, 1, True, True))


def main():
    torch.manual_seed(1)
    x = torch.randn(3, 4, 5)
    turned = x.permute(2, 0, 1)
    img = torch.randn(2, 3, 6, 5)
    last = img.to(memory_format=torch.channels_last)
    ints = torch.randint(-9, 9, (4, 6))
    for t in (x, turned, ints.double()):
        case("cpu_abs", [t], A.abs(t))
        case("cpu_cumsum", [t, 1, None], A.cumsum(t, 1))
        case("cpu_cumprod", [t, -1, None], A.cumprod(t, -1))
        case("cpu_cummax", [t, 0], A.cummax(t, 0))
        case("cpu_cummin", [t, 1], A.cummin(t, 1))
        case("cpu_logcumsumexp", [t, 0], A.logcumsumexp(t, 0))
        case("cpu_sort", [t, 1, True], A.sort(t, 1, True))
        case("cpu_topk", [t, 2, 1, True, True], A.topk(t, 2, 1, True, True))
        case("cpu_kthvalue", [t, 2, 1, False], A.kthvalue(t, 2, 1, False))
        case("cpu_mode", [t, 1, True], A.mode(t, 1, True))
        case("cpu_median", [t], A.median(t))
        case("cpu_nanmedian", [t], A.nanmedian(t))
        case("cpu_nonzero", [t > 0], A.nonzero(t > 0))
        case("cpu_masked_select", [t, t > 0.5], A.masked_select(t, t > 0.5))
        case("cpu_add_Tensor", [t, t, 2.0], A.add(t, t, alpha=2))
        case("cpu_mul_Scalar", [t, 2.5], A.mul(t, 2.5))
        case("cpu_pow_Tensor_Scalar", [t, 2.0], A.pow(t, 2.0))
        case("cpu_histc", [t, 7, -1.0, 1.0], A.histc(t, 7, -1.0, 1.0))
        case("cpu_angle", [t], A.angle(t))
    case("cpu_add_Scalar", [ints, 2.0, 1.0], A.add(ints, 2.0))
    case("cpu_gcd", [ints, ints.flip(0)], A.gcd(ints, ints.flip(0)))
    case("cpu_cumsum", [ints, 0, None], A.cumsum(ints, 0))
    case("cpu_kthvalue", [ints.float(), 3, 1, True], A.kthvalue(ints.float(), 3, 1, True))
    idx = torch.tensor([[0, 2], [3, -1]])
    case("cpu_index_Tensor", [x, [None, idx]], A.index(x, [None, idx]))
    case("cpu_index_Tensor", [x, [torch.tensor([0, 2]), None, torch.tensor([1, 4])]],
         A.index(x, [torch.tensor([0, 2]), None, torch.tensor([1, 4])]))
    case("cpu_index_Tensor", [x, [x[:, :, 0] > 0]], A.index(x, [x[:, :, 0] > 0]))
    case("cpu_index_put", [turned, [torch.tensor([0, 0, 4])], torch.ones(3, 3, 4), True],
         A.index_put(turned, [torch.tensor([0, 0, 4])], torch.ones(3, 3, 4), True))
    case("cpu_masked_scatter", [x, x > 0, torch.arange(60.0)], A.masked_scatter(x, x > 0, torch.arange(60.0)))
    case("cpu_nonzero_static", [x[0] > 0, 25, -1], A.nonzero_static(x[0] > 0, size=25, fill_value=-1))
    seq = torch.sort(torch.randn(3, 8)).values
    want = torch.randn(3, 5)
    case("cpu_searchsorted_Tensor", [seq, want, False, True, None, None], A.searchsorted(seq, want, right=True))
    case("cpu_bucketize_Tensor", [x, seq[0].contiguous(), True, False], A.bucketize(x, seq[0].contiguous(), out_int32=True))
    case("cpu_repeat_interleave_Tensor", [torch.tensor([2, 0, 3]), None], A.repeat_interleave(torch.tensor([2, 0, 3])))
    for t in (img, last):
        case("cpu_max_pool2d_with_indices", [t, [3, 2], [2, 1], [1, 0], [1, 1], False],
             A.max_pool2d_with_indices(t, [3, 2], [2, 1], [1, 0], [1, 1], False))
        case("cpu_avg_pool2d", [t, [3, 2], [2, 1], [1, 0], False, True, None], A.avg_pool2d(t, [3, 2], [2, 1], [1, 0], False, True))
        case("cpu__adaptive_avg_pool2d", [t, [3, 2]], A._adaptive_avg_pool2d(t, [3, 2]))
        case("cpu_adaptive_max_pool2d", [t, [4, 3]], A.adaptive_max_pool2d(t, [4, 3]))
        case("cpu_pad", [t, [1, 2, 0, 1], "constant", Opt(0.5)], A.pad(t, [1, 2, 0, 1], "constant", 0.5))
        case("cpu_cat", [[t, t], 1], A.cat([t, t], 1))
        case("cpu_convolution", [t, torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(2)), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1],
             A.convolution(t, torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(2)), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
    case("cpu_permute", [x, [2, 0, 1]], A.permute(x, [2, 0, 1]))
    case("cpu_slice_Tensor", [x, 2, Opt(1), Opt(-1), 2], A.slice(x, 2, 1, -1, 2))
    case("cpu_narrow", [x, 1, 1, 2], A.narrow(x, 1, 1, 2))
    case("cpu_squeeze_dim", [x[:1], 0], A.squeeze(x[:1], 0))
    case("cpu_reshape", [turned, [4, -1]], A.reshape(turned, [4, -1]))
    z = torch.complex(x, x.flip(0))
    case("cpu_view_as_real", [z], A.view_as_real(z))
    case("cpu_abs", [z], A.abs(z))
    case("cpu_mul_Tensor", [z, z], A.mul(z, z))
    case("cpu_add_Tensor", [z, x, 1.0], A.add(z, x))
    case("cpu__fft_r2c", [x, [2], 0, True], A._fft_r2c(x, [2], 0, True))
    case("cpu__fft_r2c", [x[0], [1], 1, False], A._fft_r2c(x[0], [1], 1, False))
    case("cpu__fft_c2c", [z[0], [1], 2, False], A._fft_c2c(z[0], [1], 2, False))
    case("cpu__cdist_forward", [x, x[:, :2], 2.0, None], A._cdist_forward(x, x[:, :2], 2.0, None))
    case("cpu__cdist_forward", [x, x[:, :2], 3.0, None], A._cdist_forward(x, x[:, :2], 3.0, None))
    case("cpu__pdist_forward", [x[0], 1.0], A._pdist_forward(x[0], 1.0))
    case("cpu_addmv", [torch.ones(4), x[0], torch.ones(5), 2.0, 3.0], A.addmv(torch.ones(4), x[0], torch.ones(5), beta=2, alpha=3))
    case("cpu_addbmm", [x[0, :, :4], x, x.transpose(1, 2).contiguous(), 1.0, 0.5],
         A.addbmm(x[0, :, :4], x, x.transpose(1, 2).contiguous(), beta=1, alpha=0.5))
    case("cpu_scatter_reduce_two_out", [torch.zeros(3, 5), torch.ones(3, 5), 1, torch.tensor([[0, 0, 4]]), torch.ones(1, 3), "sum", True],
         [])
    CASES[-1]["outs"] = [tensor(A.scatter_reduce(torch.ones(3, 5), 1, torch.tensor([[0, 0, 4]]), torch.ones(1, 3), "sum"))]
    ties(torch.Generator().manual_seed(3))
    case("cpu_hann_window", [7, None, None, None, 0, None], A.hann_window(7))
    print("[\n" + ",\n".join(json.dumps(c) for c in CASES) + "\n]")


if __name__ == "__main__":
    sys.exit(main())
