"""Indexing, sorting, dtypes, transcendental functions, and ops that a host may have to refuse."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from aotimodels.case import Call, Case, fixture


@fixture
def indexing():
    """Sort, topk, scatter, scatter_reduce, index_put, gather, cumsum, cumprod, argmax, searchsorted."""

    def call(m, x, ids, rows):
        values, order = x.sort(dim=1, stable=True, descending=True)
        best, where = x.topk(3, dim=1)
        put = x.index_put((rows, ids[0, : rows.shape[0]]), torch.ones(()).to(x.dtype), accumulate=True)
        ones = torch.zeros_like(x).scatter(1, ids, x).scatter_add(1, ids, x * 2)
        reduced = x.scatter_reduce(1, ids, x.flip(1), "amax")
        sums = x.cumsum(1), x.abs().cumprod(0), x.logcumsumexp(1)
        edges = torch.searchsorted(x[0].sort()[0], x[1])
        return values, order, best, where, put, ones, reduced, *sums, x.gather(1, ids), x.argmax(1), x.argmin(), edges

    ids = torch.stack([torch.randperm(10) for _ in range(4)])
    return Case(Call(call), (torch.randn(4, 10), ids, torch.tensor([0, 2, 2, 3])))


@fixture
def selection():
    """Ops with C entry points of their own: kthvalue, cummax, cummin, median, mode, masked_scatter, histc, cdist."""

    def call(m, x, mask, ids):
        found = torch.kthvalue(x, 2, dim=1), torch.cummax(x, 1), torch.cummin(x, 0), torch.median(x), torch.mode(ids, 1)
        return *found, x.masked_scatter(mask, x.flip(0)), torch.histc(x, 5, -2, 2), torch.cdist(x, x[:2])

    args = torch.randn(4, 9), torch.rand(4, 9) > 0.5, torch.randint(0, 4, (4, 9))
    return Case(Call(call), args)


@fixture
def nonzero():
    """Outputs whose size depends on values: nonzero, masked_select, carried through further ops."""

    def call(m, x, mask):
        hits = mask.nonzero()
        torch._check(hits.shape[0] >= 0)
        return hits, torch.masked_select(x, mask), hits.to(torch.float32).sum(0), mask.sum()

    x = torch.randn(6, 7)
    none = torch.zeros(6, 7, dtype=torch.bool)
    return Case(Call(call), (x, x > 0.4), cases=((x, none),))


@fixture
def integers():
    """int64, int32, int16, int8, uint8 and bool: arithmetic, division, shifts, bitwise, comparisons, reductions."""

    def call(m, a, b, c, d, e, flag):
        whole = a // (b.abs() + 1), a % (b.abs() + 1), torch.div(a, b.abs() + 1, rounding_mode="trunc"), a << 2, b >> 1
        logic = flag ^ (a > 0), ~flag, flag.any(), flag.all()
        return *whole, c + c, d * d, e + e, e & 15, *logic, a.sum(), b.prod(), e.sum(), d.amax()

    def ints(dtype, lo=-100, hi=100):
        return torch.randint(lo, hi, (5, 6), dtype=dtype)

    args = ints(torch.int64), ints(torch.int32, -4, 4), ints(torch.int16), ints(torch.int8), ints(torch.uint8, 0, 255)
    return Case(Call(call), (*args, torch.rand(5, 6) > 0.5), ref=False)


@fixture
def halves():
    """bfloat16 and float16: linear layers, matrix products, reductions, soft-max, casts."""

    def call(m, x, y):
        products = m.b(x).relu(), torch.softmax(m.h(y), -1), x @ x.t(), y.float() @ y.float().t()
        return *products, (x.float() + y.float()).to(torch.bfloat16), y.sum(0)

    module = Call(call, b=nn.Linear(32, 16).bfloat16(), h=nn.Linear(32, 16).half())
    return Case(module, (torch.randn(6, 32).bfloat16(), torch.randn(6, 32).half()))


@fixture
def doubles():
    """float64: matrix products, transcendental functions in vector form, statistics."""

    def call(m, x):
        y = m.fc(x)
        return y, y.exp().log1p(), y.sin() * y.cos(), y.tanh(), torch.erf(y), x @ x.mT, y.std(0), torch.var_mean(y, 1)[1]

    return Case(Call(call, fc=nn.Linear(20, 24).double()), (torch.randn(9, 20, dtype=torch.float64),))


@fixture
def vector_math():
    """Every transcendental function that Inductor vectorises, over float32: Sleef's names in the library."""
    unary = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
    unary += "erf erfc sqrt rsqrt sigmoid lgamma".split()

    def call(m, x, y):
        inside, above = x.tanh() * 0.99, x.abs() + 1.01
        args = dict.fromkeys("log log2 log10 log1p sqrt rsqrt lgamma acosh".split(), above)
        args |= dict.fromkeys("asin acos atanh".split(), inside)
        out = [getattr(torch, name)(args.get(name, x)) for name in unary]
        out += [above**y, torch.atan2(x, y), torch.hypot(x, y), torch.fmod(x, y), torch.copysign(x, y)]
        return *out, F.gelu(x), F.softplus(x)

    return Case(Call(call), (torch.randn(3, 37) * 3, torch.randn(3, 37)))


@fixture
def fourier():
    """Real Fourier transforms, whose complex values stay inside."""

    def call(m, x):
        y = torch.fft.rfft(x)
        return torch.fft.irfft(y * torch.exp(-y.abs()), n=x.shape[-1]), y.abs(), torch.view_as_real(torch.fft.fft(x))

    return Case(Call(call), (torch.randn(3, 24),))


@fixture
def complex_output():
    """A complex64 input and output."""
    z = torch.randn(4, dtype=torch.complex64)
    return Case(Call(lambda m, x, z: (torch.fft.rfft(x), z * 2, z.conj() + 1)), (torch.randn(3, 16), z))


@fixture
def parallel():
    """Two OpenMP threads: parallel loops, parallel reductions, barriers."""

    def call(m, x, y):
        return x.sum(), (x * y).exp().tanh(), x.amax(1), torch.softmax(x, 0), F.layer_norm(y, (256,)), y.argmax()

    return Case(Call(call), (torch.randn(16, 256), torch.randn(16, 256)), config={"cpp.threads": 2})


@fixture
def proxy_known():
    """An op with no C entry point, through the proxy executor, that a host can have: bincount."""

    def call(m, x, ids):
        return torch.bincount(ids, minlength=8), torch.bincount(ids, weights=x, minlength=2).sum()

    return Case(Call(call), (torch.randn(5), torch.tensor([0, 3, 3, 7, 1])))


@fixture
def proxy_refused():
    """Ops through the proxy executor that a host must refuse by name: linalg.eigvals and linalg.ldl_factor."""
    return Case(Call(lambda m, x: (torch.linalg.eigvals(x), torch.linalg.ldl_factor(x)[0] + 1)), (torch.randn(4, 4),))


@fixture
def linalg():
    """Factors of matrices and equations, through the proxy executor: inv, det, solve, cholesky, qr, eigvalsh, lu."""

    def call(m, x, b):
        spd = x @ x.mT + torch.eye(4)
        low, info = torch.linalg.cholesky_ex(spd)
        solved = torch.linalg.solve(x, b), torch.linalg.solve_triangular(low, b, upper=False), torch.cholesky_solve(b, low)
        return torch.linalg.inv(x), torch.linalg.det(x) + 1, low, info, *solved, *torch.linalg.qr(x), torch.linalg.eigvalsh(spd), *torch.linalg.lu(x)

    return Case(Call(call), (torch.randn(3, 4, 4), torch.randn(3, 4, 2)))


@torch.library.custom_op("loris::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


@scaled.register_fake
def _(x, by):
    return torch.empty_like(x)


@fixture
def custom_shim():
    """A custom op with a C entry point of its own, aoti_torch_cpu_scaled, which the host's user registers."""
    shim = "AOTITorchError aoti_torch_cpu_scaled(AtenTensorHandle x, double by, AtenTensorHandle* ret0)"
    config = {"aot_inductor.custom_ops_to_c_shims": {torch.ops.loris.scaled.default: [shim]}}
    return Case(Call(lambda m, x: torch.ops.loris.scaled(x + 1, 2.5) - 1), (torch.randn(3, 5),), config=config, run=False)


@fixture
def custom_proxy():
    """The same custom op through the proxy executor."""
    return Case(Call(lambda m, x: torch.ops.loris.scaled(x + 1, 2.5) - 1), (torch.randn(3, 5),))


@fixture
def branches():
    """torch.cond and while_loop: subgraphs chosen at run time."""
    from torch._higher_order_ops.while_loop import while_loop

    def call(m, x):
        y = torch.cond(x.sum() > 0, lambda a: a.sin() + 1, lambda a: a.cos() - 1, (x,))
        n, z = while_loop(lambda n, a: n < 4, lambda n, a: (n + 1, a * 0.5 + y), (torch.zeros((), dtype=torch.int64), x))
        return y, n, z

    x = torch.randn(5).abs()
    return Case(Call(call), (x,), cases=((-x,),))


@fixture
def bounds():
    """A run that can fail inside the library: an index out of range and an assertion; the case stored is a good one."""

    def call(m, x, ids):
        torch._assert_async((x > -9).all(), "x must stay above -9")
        return x[ids]

    return Case(Call(call), (torch.randn(6, 3), torch.tensor([5, 0, 2])))


@fixture
def parallel_bounds():
    """Two OpenMP threads, and a run that can fail inside its only and last parallel loop: an index out of range."""
    return Case(Call(lambda m, x, ids: x[ids]), (torch.randn(64, 256), torch.randint(0, 64, (96,))), config={"cpp.threads": 2})


@fixture
def training_norms():
    """Layer, group, instance and RMS norms with the usual activations and losses."""

    def call(m, x, y):
        norms = m.group(x), F.instance_norm(x), F.rms_norm(x, (6,))
        acts = tuple(f(x) for f in (F.gelu, F.silu, F.mish, F.elu, F.softplus, F.logsigmoid, F.hardtanh))
        return *norms, *acts, F.cross_entropy(x.mean((2, 3)), y), F.log_softmax(x, 1), F.smooth_l1_loss(x, x.roll(1, 0))

    return Case(Call(call, group=nn.GroupNorm(2, 8)), (torch.randn(3, 8, 6, 6), torch.tensor([1, 7, 0])))
