#!/usr/bin/env python3
"""Write what PyTorch computes for the math functions of aoti/internal/host.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0
    .venv/bin/python scripts/make_host_goldens.py > aoti/internal/host/testdata/goldens.json

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
            torch.int32: "i32", torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.float8_e4m3fn: "f8e4m3fn"}[t.dtype]
    data = t.contiguous().flatten()
    return {"dtype": kind, "dims": list(t.shape), "strides": list(t.stride()),
            "data": short(data.float() if data.element_size() == 1 and t.is_floating_point() else data) if t.is_floating_point() else data.long().tolist()}


def arg(x):
    if isinstance(x, torch.Tensor):
        return {"tensor": tensor(x)}
    if isinstance(x, Bools):
        return {"bools": [int(y) for y in x]}
    if isinstance(x, Floats):
        return {"floats": list(x)}
    if isinstance(x, Numbers):
        return {"numbers": list(x)}
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


class Bools(list):
    """A list of numbers of 32 bits."""


class Floats(list):
    """A list of doubles, which the C function takes by a pointer to it."""


class Numbers(list):
    """A list of optional doubles, which the C function takes by pointers."""


class Opt:
    """An optional number, which the C function takes by a pointer."""

    def __init__(self, value):
        self.value = value


def case(name, args, outs):
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    CASES.append({"name": name, "args": [arg(a) for a in args], "outs": [tensor(o) for o in outs]})


def named(name, args, outs):
    """A case of an op that has no C function: its arguments are named."""
    outs = list(outs) if isinstance(outs, (tuple, list)) else [outs]
    CASES.append({"name": "aten::" + name, "named": {k: arg(a) for k, a in args.items()}, "outs": [tensor(o) for o in outs]})


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


def windows(g):
    """Gradients of pooling and padding, and pooling with random windows."""
    for n, pool, last in ((2, "avg_pool2d", torch.channels_last), (3, "avg_pool3d", torch.channels_last_3d)):
        x = torch.randn(1, 2, *(5, 6, 5)[3 - n:], generator=g)
        for t in (x, x.to(memory_format=last)):
            for args in (([3] * n, [2] * n, [1] * n, True, False, None), ([2] * n, [], [0] * n, False, True, None),
                         ([3] * n, [2] * n, [1] * n, False, True, 5)):
                y = getattr(A, pool)(t, *args)
                d = torch.randn(y.shape, generator=g)
                opt = args[:5] + (args[5] and Opt(args[5]),)
                case(f"cpu_{pool}_backward", [d, t, *opt], getattr(A, pool + "_backward")(d, t, *args))
            name = f"_adaptive_avg_pool{n}d"
            d = torch.randn(1, 2, *(3, 4, 2)[:n], generator=g)
            case(f"cpu_{name}_backward", [d, t], getattr(A, name + "_backward")(d, t))
            y, k = getattr(A, f"adaptive_max_pool{n}d")(t, [3, 4, 2][:n])
            case(f"cpu_adaptive_max_pool{n}d_backward", [d, t, k], getattr(A, f"adaptive_max_pool{n}d_backward")(d, t, k))
            args = [3] * n, [2] * n, [1] * n, [1] * n, False
            name = f"max_pool{n}d_with_indices"
            y, k = getattr(A, name)(t, *args)
            d = torch.randn(y.shape, generator=g)
            case(f"cpu_{name}_backward", [d, t, *args, k], getattr(A, name + "_backward")(d, t, *args, k))
            name = f"fractional_max_pool{n}d"
            args = [2] * n, [3, 2, 3][:n], torch.rand(1, 2, n, generator=g)
            y, k = getattr(A, name)(t, *args)
            case(f"cpu_{name}", [t, *args], (y, k))
            d = torch.randn(y.shape, generator=g)
            case(f"cpu_{name}_backward", [d, t, *args[:2], k], getattr(A, name + "_backward")(d, t, *args[:2], k))
    for n, pad in ((1, [1, 2]), (2, [1, 2, 0, 3])):
        t = torch.randn(2, 3, *(4, 5)[2 - n:], generator=g)
        d = torch.randn(getattr(A, f"replication_pad{n}d")(t, pad).shape, generator=g)
        name = f"replication_pad{n}d_backward"
        case("cpu_" + name, [d, t, pad], getattr(A, name)(d, t, pad))


def gradients(g):
    """Gradients of distances, bags, losses, attention and convolutions."""
    x, y = torch.randn(2, 4, 3, generator=g), torch.randn(2, 5, 3, generator=g)
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        if p != float("inf"):  # JSON has no infinity
            d = torch.randn(2, 4, 5, generator=g)
            dist = A._cdist_forward(x, y, p, None)
            case("cpu__cdist_backward", [d, x, y, p, dist], A._cdist_backward(d, x, y, p, dist))
            d = torch.randn(6, generator=g)
            dist = A._pdist_forward(x[0], p)
            case("cpu__pdist_backward", [d, x[0], p, dist], A._pdist_backward(d, x[0], p, dist))
    table, idx, off = torch.randn(6, 3, generator=g), torch.tensor([1, 4, 1, 5, 0, 2]), torch.tensor([0, 2, 2, 5])
    weights = torch.rand(6, generator=g)
    for mode, padding, freq in ((0, -1, False), (0, 1, True), (1, -1, False), (1, 4, False), (2, -1, False)):
        per = weights if mode == 0 else None
        y, bags, sizes, most = A._embedding_bag(table, idx, off, freq, mode, False, per, False, padding)
        d = torch.randn(y.shape, generator=g)
        bags = torch.tensor([0, 0, 2, 2, 2, 3])  # the op leaves it out where it has no use for it
        case("cpu__embedding_bag_dense_backward", [d, idx, bags, sizes, most, 6, freq, mode, per, padding],
             A._embedding_bag_dense_backward(d, idx, bags, sizes, most, 6, freq, mode, per, padding))
        if per is not None:
            case("cpu__embedding_bag_per_sample_weights_backward", [d, table, idx, off, bags, mode, padding],
                 A._embedding_bag_per_sample_weights_backward(d, table, idx, off, bags, mode, padding))
    d, mask = torch.randn(3, 4, generator=g), torch.rand(3, 4, generator=g) > 0.5
    case("cpu_masked_scatter_backward", [d, mask, [2, 6]], A.masked_scatter_backward(d, mask, [2, 6]))
    a, t = torch.randn(4, 3, generator=g), torch.randn(4, 3, generator=g).sign()
    case("cpu_soft_margin_loss_backward", [torch.ones(()), a, t, 1], A.soft_margin_loss_backward(torch.ones(()), a, t, 1))
    case("cpu_soft_margin_loss_backward", [t, a, t, 0], A.soft_margin_loss_backward(t, a, t, 0))
    q, k, v = (torch.randn(2, n, 3, 4, generator=g).transpose(1, 2) for n in (5, 6, 6))
    mask = torch.randn(5, 6, generator=g)
    for causal, bias, scale in ((False, None, None), (True, None, None), (False, mask, 0.3)):
        out, lse = A._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=bias, scale=scale)
        d = torch.randn(out.shape, generator=g)
        case("cpu__scaled_dot_product_flash_attention_for_cpu_backward",
             [d, q, k, v, out, lse, 0.0, causal, bias, scale and Opt(scale)],
             A._scaled_dot_product_flash_attention_for_cpu_backward(d, q, k, v, out, lse, 0.0, causal, attn_mask=bias, scale=scale))
    for n, back, groups, stride, pad, dil in ((2, False, 2, 2, 1, 1), (1, False, 1, 1, 0, 2), (3, False, 1, 1, 1, 1), (2, True, 2, 2, 1, 1), (1, True, 1, 3, 0, 1)):
        x = torch.randn(2, 4, *(5, 4, 6)[3 - n:], generator=g, dtype=torch.float64)
        w = torch.randn(*((4, 6 // groups) if back else (6, 4 // groups)), *(3, 2, 3)[3 - n:], generator=g, dtype=torch.float64)
        conv = ([stride] * n, [pad] * n, [dil] * n, back, [0] * n, groups)
        d = torch.randn(A.convolution(x, w, None, *conv).shape, generator=g, dtype=torch.float64)
        case("cpu_convolution_backward", [d, x, w, [6], *conv, Bools([True, True, True])],
             A.convolution_backward(d, x, w, [6], *conv, [True, True, True]))


def samples(g):
    """Reading images between their pixels, and the gradients."""
    for n, name, align, scales in ((1, "linear", False, None), (1, "linear", True, None), (1, "linear", False, 1.6), (3, "trilinear", False, None),
                                   (3, "trilinear", True, None), (2, "bicubic", False, None), (2, "bicubic", True, None), (2, "bicubic", False, 1.6)):
        size, out = [1, 2] + [4, 3, 5][3 - n:], [7, 5, 8][3 - n:]
        d = torch.randn(1, 2, *out, generator=g, dtype=torch.float64)
        op, factors = f"upsample_{name}{n}d_backward", [scales] * n
        case("cpu_" + op, [d, out, size, align, *[s and Opt(s) for s in factors]], getattr(A, op)(d, out, size, align, *factors))
    for n in (2, 3):
        x = torch.randn(2, 2, *(3, 4, 5)[3 - n:], generator=g, dtype=torch.float64)
        p = torch.randn(2, *(2, 3, 4)[:n], n, generator=g, dtype=torch.float64) * 0.8
        for mode in range(3 if n == 2 else 2):
            for padding in range(3):
                for align in (False, True):
                    y = getattr(A, f"grid_sampler_{n}d")(x, p, mode, padding, align)
                    if n == 3:
                        case("cpu_grid_sampler_3d", [x, p, mode, padding, align], y)
                    d = torch.randn(y.shape, generator=g, dtype=torch.float64)
                    op = f"grid_sampler_{n}d_backward"
                    case("cpu_" + op, [d, x, p, mode, padding, align, Bools([True, True])],
                         getattr(A, op)(d, x, p, mode, padding, align, [True, True]))


def matrices(g):
    """Factors of matrices, and equations that they solve."""
    a = torch.randn(2, 4, 4, generator=g, dtype=torch.float64)
    b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    spd = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
    for upper in (False, True):
        f = torch.linalg.cholesky(spd, upper=upper)
        case("cpu_cholesky_solve", [b, f, upper], A.cholesky_solve(b, f, upper))
        case("cpu_cholesky_solve", [b[0], f, upper], A.cholesky_solve(b[0], f, upper))
        case("cpu_cholesky_inverse", [f, upper], A.cholesky_inverse(f, upper))
        for turned in (False, True):
            case("cpu_triangular_solve", [b, f.float().double(), upper, turned, turned], A.triangular_solve(b, f.float().double(), upper, turned, turned))
    for t in (a, b, b.mT.contiguous(), a[0]):
        qr, tau = A.geqrf(t)
        case("cpu_geqrf", [t], (qr, tau))
        lu, pivots = torch.linalg.lu_factor(t)
        case("cpu_lu_unpack", [lu, pivots, True, True], A.lu_unpack(lu, pivots, True, True))
    qr, tau = A.geqrf(b)
    c = torch.randn(2, 4, 5, generator=g, dtype=torch.float64)
    for turned in (False, True):
        case("cpu_ormqr", [qr, tau, c, True, turned], A.ormqr(qr, tau, c, True, turned))
        case("cpu_ormqr", [qr, tau, c.mT.contiguous(), False, turned], A.ormqr(qr, tau, c.mT.contiguous(), False, turned))


def factors(g):
    """torch.linalg, which libraries call by name."""
    a = torch.randn(2, 4, 4, generator=g, dtype=torch.float64)
    b = torch.randn(2, 4, 3, generator=g, dtype=torch.float64)
    spd = a @ a.mT + 4 * torch.eye(4, dtype=torch.float64)
    for t in (a, a[0], a.mT.contiguous()):
        named("linalg_inv_ex", {"A": t, "check_errors": False}, A.linalg_inv_ex(t))
        named("_linalg_det", {"A": t}, A._linalg_det(t))
        named("_linalg_slogdet", {"A": t}, A._linalg_slogdet(t))
    for t in (a, b, b.mT.contiguous()):
        named("linalg_lu_factor_ex", {"A": t, "pivot": True, "check_errors": False}, A.linalg_lu_factor_ex(t))
        named("linalg_lu", {"A": t, "pivot": True}, A.linalg_lu(t))
        for mode in ("reduced", "complete", "r"):
            named("linalg_qr", {"A": t, "mode": mode}, A.linalg_qr(t, mode))
    lu, pivots = torch.linalg.lu_factor(a)
    named("linalg_lu_solve", {"LU": lu, "pivots": pivots, "B": b, "left": True, "adjoint": False}, A.linalg_lu_solve(lu, pivots, b))
    qr, tau = A.geqrf(b)
    named("linalg_householder_product", {"input": qr, "tau": tau}, A.linalg_householder_product(qr, tau))
    for args in ((a, b, True), (a[0], b, True), (a, b.mT.contiguous(), False), (a, b[:, :, 0].contiguous(), True), (a[0], b[0, :, 0].contiguous(), True)):
        named("_linalg_solve_ex", dict(zip(("A", "B", "left"), args)), A._linalg_solve_ex(*args[:2], left=args[2]))
    for upper in (False, True):
        named("linalg_cholesky_ex", {"self": spd, "upper": upper, "check_errors": False}, A.linalg_cholesky_ex(spd, upper=upper))
        for left in (False, True):
            rhs = b if left else b.mT.contiguous()
            named("linalg_solve_triangular", {"self": spd, "B": rhs, "upper": upper, "left": left, "unitriangular": False},
                  A.linalg_solve_triangular(spd, rhs, upper=upper, left=left))


def counts(g):
    """Histograms, segments, scattered rows, scaled and grouped products."""
    x, w = torch.randn(40, generator=g), torch.rand(40, generator=g)
    for args in ((7, None, None, False), (7, [-1.0, 1.5], w, True), (10, [0.0, 1.0], None, False)):
        bins, limits, weight, density = args
        case("cpu_histogram_bin_ct", [x, bins, limits and Floats(limits), weight, density],
             A.histogram(x, bins, range=limits, weight=weight, density=density))
    pts = torch.randn(30, 2, generator=g)
    case("cpu__histogramdd_from_bin_cts", [pts, [4, 3], None, None, False], A._histogramdd_from_bin_cts(pts, [4, 3]))
    case("cpu__histogramdd_from_bin_cts", [pts, [4, 3], Floats([-1.0, 1.0, -2.0, 2.0]), w[:30], True],
         A._histogramdd_from_bin_cts(pts, [4, 3], range=[-1.0, 1.0, -2.0, 2.0], weight=w[:30], density=True))
    d = torch.randn(6, 3, generator=g)
    lengths, offsets = torch.tensor([2, 1, 3]), torch.tensor([0, 2, 3, 6])
    for how in ("sum", "mean", "max", "min", "prod"):
        y = torch.segment_reduce(d, how, lengths=lengths, axis=0)
        case("cpu_segment_reduce", [d, how, lengths, None, None, 0, False, None], y)
        case("cpu_segment_reduce", [d, how, None, None, offsets, 0, False, Opt(0.5)], torch.segment_reduce(d, how, offsets=offsets, axis=0, initial=0.5))
        up = torch.randn(y.shape, generator=g)
        case("cpu__segment_reduce_backward", [up, y, d, how, lengths, None, 0, None], A._segment_reduce_backward(up, y, d, how, lengths=lengths, axis=0))
    for t in (torch.randn(4, 3, generator=g), torch.randint(-9, 9, (4, 3), generator=g)):
        s = t.flip(0)[[0, 1, 3, 2, 0]]
        for how in ("prod", "mean", "amax", "amin"):
            for keep in (True, False):
                idx = torch.tensor([1, 3, 1, 3, 0])
                case("cpu_index_reduce", [t, 0, idx, s, how, keep], A.index_reduce(t, 0, idx, s, how, include_self=keep))
    a, b, c = torch.randn(3, 4, generator=g), torch.randn(3, 5, generator=g), torch.randn(2, 4, 5, generator=g)
    args = [1, 3], [1, 2], [0], [2, 3], 1
    case("cpu__trilinear", [a, b, c, *args], A._trilinear(a, b, c, *args))
    m, n = torch.randn(16, 32, generator=g), torch.randn(16, 32, generator=g).t()
    f8 = torch.float8_e4m3fn
    p, q, one = m.to(f8), n.t().to(f8).t(), torch.tensor(0.5)
    case("cpu__scaled_mm", [p, q, one, one * 3, None, None, Opt(6), False], A._scaled_mm(p, q, one, one * 3, out_dtype=torch.float32))
    m, n = torch.randn(8, 16, generator=g).bfloat16(), torch.randn(2, 16, 24, generator=g).bfloat16()
    ends = torch.tensor([3, 8], dtype=torch.int32)
    case("cpu__grouped_mm", [m, n, ends, None, None], A._grouped_mm(m, n, ends))
    case("cpu__grouped_mm", [n[:, :, :16].contiguous(), n, None, None, None], A._grouped_mm(n[:, :, :16].contiguous(), n))
    case("cpu__efficientzerotensor", [[2, 3], None, None, None, 0, None], torch.zeros(2, 3))


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
    for number, more in enumerate((ties, windows, gradients, samples, matrices, counts, factors)):
        more(torch.Generator().manual_seed(3 + number))
    case("cpu_hann_window", [7, None, None, None, 0, None], A.hann_window(7))
    print("[\n" + ",\n".join(json.dumps(c) for c in CASES) + "\n]")


if __name__ == "__main__":
    sys.exit(main())
