"""Cases made by hand for ops whose OpInfo samples are too large, too few, or miss a form that models use."""

import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
BOOL = torch.bool


def to(dtype, mk):
    """Every pair of dtypes, within the range of both (a float outside an integer's range is undefined)."""
    signed = dtype not in (torch.uint8, torch.bool)
    for target in (BOOL, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, *FLOATS):
        values = [0, 1, 2, 100, 0.5, 1.75, 127]
        if signed and target not in (torch.uint8,):
            values += [-1, -0.5, -1.75, -100, -128]
        if dtype in FLOATS and (target in FLOATS or target == BOOL):
            values += [float("inf"), float("-inf"), float("nan"), 1e-40, 3e38, 65519.0, 65520.0, 1.00048828125, 1.00146484375, 1e-8]
        x = torch.tensor(values, dtype=torch.float64)
        yield {"pinned": True, "grad": False}, {"self": x.to(dtype), "dtype": target}
    if dtype == torch.float64:
        yield {"pinned": True}, {"self": mk((2, 3)), "dtype": torch.float32}
    if dtype == torch.int64:
        wrap = torch.tensor([2**31, 2**32 + 7, -(2**31) - 1, 300, -129, 2**53 + 1, 2**63 - 1, -(2**63)])
        for target in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float32, torch.float64):
            yield {"pinned": True}, {"self": wrap, "dtype": target}


def slice_(dtype, mk):
    x = mk((5, 6))
    for args in ({}, {"start": 2}, {"end": -1}, {"dim": 1, "start": 1, "end": 5, "step": 2}, {"dim": -1, "start": -4, "end": 100},
                 {"dim": 1, "start": 4, "end": 2}, {"dim": 0, "start": -100, "end": 3, "step": 3}):
        yield {}, {"self": x, **args}


def full(dtype, mk):
    yield {}, {"size": [2, 3], "fill_value": 1, "dtype": dtype}
    yield {}, {"size": [], "fill_value": 1, "dtype": dtype}
    yield {}, {"size": [0, 2], "fill_value": 1, "dtype": dtype}
    if dtype in FLOATS:
        for v in (float("inf"), float("nan"), -0.25):
            yield {}, {"size": [3], "fill_value": v, "dtype": dtype}
    # without a dtype it follows the number
    if dtype == torch.float32:
        yield {}, {"size": [2], "fill_value": 1.5}
    if dtype == torch.int64:
        yield {}, {"size": [2], "fill_value": 7}
    if dtype == BOOL:
        yield {}, {"size": [2], "fill_value": True}


def arange(dtype, mk):
    if dtype == torch.int64:
        yield {"pinned": True}, {"end": 5}
        yield {"pinned": True}, {"start": 5, "end": -4, "step": -3}
    if dtype == torch.float32:
        yield {"pinned": True}, {"start": 0.5, "end": 3.0}
        yield {"pinned": True}, {"start": 0, "end": 1, "step": 0.1}


def linspace(dtype, mk):
    if dtype == torch.float32:
        yield {"pinned": True}, {"start": 0, "end": 1, "steps": 7}
    yield {}, {"start": 10, "end": 1, "steps": 6, "dtype": dtype}


def cat(dtype, mk):
    yield {}, {"tensors": [mk((2, 3)), mk((2, 1)), mk((2, 0))], "dim": 1}
    yield {}, {"tensors": [mk((0,)), mk((2, 3))]}
    yield {}, {"tensors": [mk((1, 2, 2)), mk((3, 2, 2)), mk((2, 2, 2))], "dim": -3}
    if dtype in (torch.float64, torch.float32, torch.int64):
        yield {"pinned": True}, {"tensors": [mk((2,)), mk((3,), dtype=torch.int32), mk((1,), dtype=torch.float16)]}


def max_pool(dtype, mk):
    yield {}, {"self": mk((1, 2, 5, 6)), "kernel_size": [2, 3], "stride": [2, 1], "padding": [1, 1], "ceil_mode": True}
    yield {}, {"self": mk((2, 4, 5)), "kernel_size": 2, "dilation": 2}


def index_put(dtype, mk):
    i = torch.tensor
    yield {}, {"self": mk((4, 5)), "indices": [i([0, 2]), i([1, -1])], "values": mk((2,))}
    yield {}, {"self": mk((4, 5)), "indices": [None, i([3, 0])], "values": mk((4, 2))}
    yield {}, {"self": mk((4, 5)), "indices": [i([[0], [2]]), i([1, 3])], "values": mk(())}
    yield {}, {"self": mk((4, 3)), "indices": [i([1, 1, 3])], "values": mk((3, 3)), "accumulate": True}
    yield {}, {"self": mk((3, 4, 2)), "indices": [i([0, 2]), None, i([1, 0])], "values": mk((2, 4))}


def sort(dtype, mk):
    """Ties keep their order when stable; NaN sorts last."""
    if dtype in FLOATS:
        x = torch.tensor([2.0, float("nan"), 1.0, 2.0, float("inf"), 1.0, float("-inf"), 0.0], dtype=torch.float64).to(dtype)
    else:
        x = torch.tensor([1, 0, 1, 1, 0, 0, 1]).to(dtype)
    for descending in (False, True):
        yield {"pinned": True}, {"self": x, "stable": True, "descending": descending}


def topk(dtype, mk):
    x = torch.tensor([[5, 1, 4, 2, 3], [9, 7, 8, 6, 0]]).to(dtype)
    if dtype != BOOL:
        yield {}, {"self": x, "k": 2, "largest": False}
        yield {}, {"self": x, "k": 3}
        yield {}, {"self": x, "k": 1, "dim": 0}
        yield {}, {"self": x, "k": 0}


def order(dtype, mk):
    """argmax, argmin and cummax: ties, and NaN, which is larger than anything."""
    x = torch.tensor([[1, 3, 3, 0], [2, 2, 1, 2]]).to(dtype)
    yield {"pinned": True}, {"self": x, "dim": 1}
    if dtype in FLOATS:
        y = torch.tensor([[1, float("nan"), 3], [float("-inf"), float("inf"), float("nan")]], dtype=torch.float64).to(dtype)
        yield {"pinned": True, "grad": False}, {"self": y, "dim": 1}


def extremum(dtype, mk):
    if dtype in FLOATS:
        y = torch.tensor([[1, float("nan"), 3], [float("-inf"), float("inf"), 0]], dtype=torch.float64).to(dtype)
        yield {"pinned": True, "grad": False}, {"self": y, "dim": [1]}


def wide_sum(dtype, mk):
    """Integer sums are i64; bytes that would overflow their own dtype."""
    if dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, BOOL):
        yield {"pinned": True}, {"self": torch.full((300,), 1 if dtype == BOOL else torch.iinfo(dtype).max, dtype=dtype)}
    if dtype in FLOATS:
        yield {"pinned": True, "grad": False}, {"self": torch.full((300,), 0.1, dtype=dtype)}
    yield {}, {"self": mk((2, 3)), "dtype": torch.float32}
    yield {}, {"self": mk((2, 3, 2)), "dim": [0, -1], "keepdim": True}


def logsumexp(dtype, mk):
    if dtype in FLOATS:
        inf = float("inf")
        x = torch.tensor([[1.0, 2.0, 3.0], [-inf, -inf, -inf], [inf, 0.0, 1.0], [100.0, 101.0, 99.0]], dtype=torch.float64)
        yield {"pinned": True, "grad": False}, {"self": x.to(dtype), "dim": [-1]}


def softmax(dtype, mk):
    if dtype in FLOATS:
        inf = float("inf")
        x = torch.tensor([[1.0, 2.0, 3.0], [-inf, 0.0, 1.0], [100.0, 101.0, 99.0], [-inf, -inf, -inf]], dtype=torch.float64)
        yield {"pinned": True, "grad": False}, {"self": x.to(dtype), "dim": -1}


def eye(dtype, mk):
    yield {}, {"n": 3, "dtype": dtype}
    yield {}, {"n": 2, "m": 5, "dtype": dtype}
    if dtype == torch.float32:
        yield {"pinned": True}, {"n": 3}


def one_hot(dtype, mk):
    yield {}, {"self": torch.tensor([0, 2, 1, 2])}
    yield {}, {"self": torch.tensor([[0, 2], [1, 3]]), "num_classes": 5}


def unsqueeze(dtype, mk):
    for dim in (0, 1, 2, -1, -3):
        yield {}, {"self": mk((2, 3)), "dim": dim}


def attention(dtype, mk):
    """Small enough to read: masks of both kinds, causal, a scale, fewer key heads than query heads."""
    q, k, v = mk((2, 2, 3, 4), low=-2, high=2), mk((2, 2, 5, 4), low=-2, high=2), mk((2, 2, 5, 4), low=-2, high=2)
    keep = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]], dtype=BOOL)
    yield {}, {"query": q, "key": k, "value": v}
    yield {}, {"query": q, "key": k, "value": v, "scale": 0.125}
    yield {}, {"query": q, "key": q, "value": q.flip(0), "is_causal": True}
    yield {}, {"query": q, "key": k, "value": v, "attn_mask": keep}
    yield {}, {"query": q, "key": k, "value": v, "attn_mask": mk((2, 1, 3, 5), low=-1, high=1)}
    yield {}, {"query": mk((1, 4, 3, 4)), "key": mk((1, 2, 3, 4)), "value": mk((1, 2, 3, 4)), "enable_gqa": True}


def batch_norm(dtype, mk):
    """Mixed statistics: absent weight and bias in evaluation, momentum in training."""
    x = mk((3, 2, 4), low=-2, high=2)
    mean, var = mk((2,), low=-1, high=1), mk((2,), low=0.5, high=2)
    rest = {"momentum": 0.1, "eps": 1e-5}
    yield {}, {"input": x, "running_mean": mean, "running_var": var, "training": False, **rest}
    yield {}, {"input": x, "weight": mk((2,)), "bias": mk((2,)), "running_mean": mean, "running_var": var, "training": True, **rest}
    yield {}, {"input": x, "weight": mk((2,)), "training": True, **rest}


def layer_norm(dtype, mk):
    yield {}, {"input": mk((3, 19), low=-2, high=2), "normalized_shape": [19], "weight": mk((19,)), "bias": mk((19,))}
    yield {}, {"input": mk((2, 3, 4), low=-2, high=2), "normalized_shape": [3, 4]}


def rms_norm(dtype, mk):
    yield {}, {"input": mk((3, 19), low=-2, high=2), "normalized_shape": [19], "weight": mk((19,)), "eps": 1e-6}


def group_norm(dtype, mk):
    yield {}, {"input": mk((2, 6, 3), low=-2, high=2), "num_groups": 3, "weight": mk((6,)), "bias": mk((6,))}


def native_group_norm(dtype, mk):
    sizes = {"N": 2, "C": 6, "HxW": 3, "group": 3, "eps": 1e-5}
    yield {}, {"input": mk((2, 6, 3), low=-2, high=2), "weight": mk((6,)), "bias": mk((6,)), **sizes}
    yield {}, {"input": mk((2, 6, 3), low=-2, high=2), **sizes}


def native_layer_norm_backward(dtype, mk):
    x, w = mk((3, 19), low=-2, high=2), mk((19,))
    for args in ({"weight": w, "bias": mk((19,))}, {"weight": w}, {}):
        _, mean, rstd = torch.ops.aten.native_layer_norm(x, [19], args.get("weight"), args.get("bias"), 1e-5)
        yield {"grad": False}, {"grad_out": mk((3, 19)), "input": x, "normalized_shape": [19], "mean": mean, "rstd": rstd, **args}


def native_group_norm_backward(dtype, mk):
    x, w = mk((2, 6, 3), low=-2, high=2), mk((6,))
    _, mean, rstd = torch.ops.aten.native_group_norm(x, w, None, 2, 6, 3, 3, 1e-5)
    yield {"grad": False}, {"grad_out": mk((2, 6, 3)), "input": x, "mean": mean, "rstd": rstd, "weight": w, "N": 2, "C": 6, "HxW": 3, "group": 3}


def native_batch_norm(dtype, mk):
    x, rest = mk((3, 2, 4), low=-2, high=2), {"momentum": 0.1, "eps": 1e-5}
    running = {"running_mean": mk((2,), low=-1, high=1), "running_var": mk((2,), low=0.5, high=2)}
    for training in (False, True):
        yield {"grad": False}, {"input": x, "weight": mk((2,)), "bias": mk((2,)), **running, "training": training, **rest}


def native_batch_norm_inference(dtype, mk):
    for (_, args) in native_batch_norm(dtype, mk):
        del args["training"]
        yield {"grad": False}, args


def embedding_backward(dtype, mk):
    i = torch.tensor([[1, 3, 1], [0, 1, 3]])
    for padding, scale in ((-1, False), (1, False), (-1, True)):
        yield {"grad": False}, {"grad_output": mk((2, 3, 2)), "indices": i, "num_weights": 5, "padding_idx": padding, "scale_grad_by_freq": scale}


def native_softmax(dtype, mk):
    for dim in (0, -1):
        yield {}, {"self": mk((3, 5), low=-2, high=2), "dim": dim, "half_to_float": False}


def softmax_backward(log):
    def make(dtype, mk):
        y = mk((3, 5), low=-2, high=2).softmax(-1)
        yield {"grad": False}, {"grad_output": mk((3, 5)), "output": y.log() if log else y, "dim": -1, "input_dtype": dtype}

    return make


def diff(dtype, mk):
    yield {"pinned": True}, {"self": mk((2, 4)), "n": 0}
    yield {"pinned": True}, {"self": mk((2, 4)), "n": 5}
    yield {"pinned": True}, {"self": mk((2, 4)), "n": 2, "dim": 0, "prepend": mk((1, 4)), "append": mk((2, 4))}


def as_strided(dtype, mk):
    """A transposed stretch, windows, a broadcast, and nothing."""
    x = mk((4, 5))
    for size, stride, offset in (([3, 2], [1, 3], 2), ([3, 4], [2, 1], 1), ([2, 3], [0, 4], 3), ([0, 3], [3, 1], 0), ([], [], 19)):
        yield {"pinned": True}, {"self": x, "size": size, "stride": stride, "storage_offset": offset}


def slice_scatter(dtype, mk):
    x = mk((5, 6))
    yield {"pinned": True}, {"self": x, "src": mk((5, 3)), "dim": 1, "end": 6, "step": 2}
    yield {"pinned": True}, {"self": x, "src": mk((2, 6)), "start": 1, "end": 5, "step": 3}
    yield {"pinned": True}, {"self": x, "src": mk((0, 6)), "start": 3, "end": 3}
    yield {"pinned": True}, {"self": x, "src": mk((5, 6)), "dim": -1}


def instance_norm(dtype, mk):
    x, rest = mk((2, 3, 4), low=-2, high=2), {"momentum": 0.1, "eps": 1e-5}
    yield {}, {"input": x, "weight": mk((3,)), "bias": mk((3,)), "use_input_stats": True, **rest}
    running = {"running_mean": mk((3,), low=-1, high=1), "running_var": mk((3,), low=0.5, high=2)}
    yield {}, {"input": x, **running, "use_input_stats": False, **rest}


def weight_norm(dtype, mk):
    yield {}, {"v": mk((3, 4, 2)), "g": mk((3, 1, 1))}
    yield {}, {"v": mk((3, 4, 2)), "g": mk((1, 1, 2)), "dim": 2}


def fake_quantize(dtype, mk):
    x = mk((3, 4), low=-3, high=3)
    if dtype in (torch.float32, torch.float16):
        one = {"scale": torch.tensor([0.1]), "zero_point": torch.tensor([3], dtype=torch.int32)}
        yield {}, {"self": x, **one, "quant_min": 0, "quant_max": 25}


def fake_quantize_channels(dtype, mk):
    x = mk((3, 4), low=-3, high=3)
    if dtype in (torch.float32, torch.float16):
        for axis, n in ((0, 3), (1, 4)):
            each = {"scale": mk((n,), dtype=torch.float32, low=0.05, high=0.2), "zero_point": torch.arange(n, dtype=torch.int32)}
            yield {}, {"self": x, **each, "axis": axis, "quant_min": -20, "quant_max": 20}


def stft(dtype, mk):
    """The parts as a last dimension: vectors hold no complex numbers."""
    if dtype in (torch.float32, torch.float64):
        x, w = mk((2, 20), low=-2, high=2), mk((6,), low=0.5, high=1)
        rest = {"return_complex": False, "pad_mode": "reflect"}
        yield {}, {"self": x, "n_fft": 8, "center": True, "onesided": True, **rest}
        yield {}, {"self": x[0], "n_fft": 8, "hop_length": 3, "win_length": 6, "window": w, "center": False, "normalized": True, "onesided": False, **rest}
        yield {}, {"self": x, "n_fft": 7, "hop_length": 2, "center": True, "pad_mode": "constant", "onesided": True, "return_complex": False}


def lstsq(dtype, mk):
    if dtype in (torch.float32, torch.float64):
        for m, n in ((5, 3), (3, 5)):
            yield {"grad": False}, {"self": mk((2, m, n), low=-2, high=2), "b": mk((2, m, 2)), "driver": "gelsd"}


def cond(dtype, mk):
    if dtype in (torch.float32, torch.float64):
        yield {}, {"self": mk((2, 3, 3), low=-2, high=2)}


def linalg_norm(dtype, mk):
    if dtype in (torch.float32, torch.float64):
        for args in ({}, {"dim": [1]}, {"dim": [0, 2], "keepdim": True}):
            yield {}, {"self": mk((2, 3, 4), low=-2, high=2), **args}


def window(dtype, mk):
    for n, periodic in ((7, True), (7, False), (8, True), (2, False), (1, True), (0, False)):
        yield {"pinned": True}, {"window_length": n, "periodic": periodic, "dtype": dtype}


def kaiser(dtype, mk):
    for n, periodic, beta in ((7, True, 12.0), (8, False, 5.5), (9, True, 0.0)):
        yield {"pinned": True}, {"window_length": n, "periodic": periodic, "beta": beta, "dtype": dtype}


def matmul(dtype, mk):
    """Past the width of a vector register on every side."""
    yield {}, {"self": mk((9, 17), low=-2, high=2), "other": mk((17, 19), low=-2, high=2)}


def scatter(dtype, mk):
    yield {}, {"self": mk((3, 5)), "dim": 0, "index": torch.tensor([[0, 1, 2, 0, 1], [2, 0, 1, 1, 2]]), "src": mk((2, 5))}
    yield {}, {"self": mk((3, 5)), "dim": -1, "index": torch.tensor([[4, 1], [0, 0], [2, 3]]), "value": 1}


def huber(dtype, mk):
    yield {}, {"self": mk((3, 4)), "target": mk((3, 4)), "delta": 0.5}


def cross_entropy(dtype, mk):
    x, target = mk((4, 3), low=-2, high=2), torch.tensor([0, 2, -100, 1])
    yield {"pinned": True}, {"self": x, "target": target, "label_smoothing": 0.1, "weight": mk((3,), low=0.5, high=2)}
    yield {"pinned": True}, {"self": x, "target": x.softmax(1), "label_smoothing": 0.2, "reduction": "sum"}
    yield {"pinned": True}, {"self": mk((3,), low=-2, high=2), "target": torch.tensor(1)}


def nll(dtype, mk):
    yield {}, {"self": mk((4, 3), low=-3, high=0), "target": torch.tensor([0, 2, -100, 1]), "weight": mk((3,), low=0.5, high=2)}


def bmm(dtype, mk):
    yield {}, {"self": mk((2, 3, 4)), "mat2": mk((2, 4, 5))}
    yield {}, {"self": mk((3, 2, 0)), "mat2": mk((3, 0, 2))}
    yield {}, {"self": mk((0, 2, 3)), "mat2": mk((0, 3, 2))}
    yield {}, {"self": mk((1, 5, 9), low=-2, high=2), "mat2": mk((1, 9, 17), low=-2, high=2)}


def vectors(second):
    def make(dtype, mk):
        for n, m in ((0, 0), (1, 1), (19, 19), (4, 3) if second == "vec2" else (33, 33)):
            yield {}, {"self": mk((n,), low=-2, high=2), second: mk((m,), low=-2, high=2)}

    return make


def index_select(dtype, mk):
    yield {}, {"self": mk((3, 4, 2)), "dim": -2, "index": torch.tensor([3, 0, 3])}
    yield {}, {"self": mk((3, 4)), "dim": 0, "index": torch.tensor([], dtype=torch.int64)}
    yield {}, {"self": mk((3, 4)), "dim": 1, "index": torch.tensor([2, 1], dtype=torch.int32)}


def gather(dtype, mk):
    yield {}, {"self": mk((3, 4, 2)), "dim": -2, "index": torch.tensor([[[3, 0]], [[1, 1]]])}


def scan(dtype, mk):
    yield {}, {"self": mk((3, 19)), "dim": -1}
    yield {}, {"self": mk((3, 4)), "dim": -2}
    yield {}, {"self": mk((2, 0)), "dim": 1}


def embedding(dtype, mk):
    yield {}, {"weight": mk((4, 3)), "indices": torch.tensor([[1, 1], [3, 0]], dtype=torch.int32)}
    yield {}, {"weight": mk((4, 3)), "indices": torch.tensor([1, 2, 1]), "padding_idx": 1}


def reduce(dims, extras=({},)):
    """Rows longer than a vector register, several dimensions, and (where defined) none at all to reduce."""

    def make(dtype, mk):
        x = mk((3, 19), low=-3, high=3) if dtype in (torch.int8, torch.uint8) or dtype in FLOATS else mk((3, 19))
        for extra in extras:
            yield {}, {"self": x, "dim": [1] if dims else 1, **extra}
            yield {}, {"self": x, "dim": [0] if dims else 0, "keepdim": True, **extra}
        if dims:
            yield {}, {"self": mk((2, 3, 4, 2)), "dim": [1, -1]}
        yield {}, {"self": mk((2, 0, 3)), "dim": [1] if dims else 1}  # PyTorch refuses where there is no identity

    return make


def alpha(dtype, mk):
    if dtype != BOOL:
        yield {"pinned": True}, {"self": mk((2, 3)), "other": mk((3,)), "alpha": 0.5 if dtype in FLOATS else 3}


def mean(dtype, mk):
    """Accumulated and returned in a wider type than that of the elements."""
    yield {"pinned": True}, {"self": mk((2, 3)), "dtype": torch.float64}


def max_pool1d(dtype, mk):
    yield {"pinned": True}, {"self": mk((2, 3, 11)), "kernel_size": 3, "stride": 2, "padding": 1, "dilation": 2}


def conv3d(dtype, mk):
    rest = {"stride": [1, 2, 1], "padding": [1, 0, 1], "dilation": [1, 1, 2], "groups": 2}
    yield {"pinned": True}, {"input": mk((1, 2, 3, 4, 5)), "weight": mk((4, 1, 2, 2, 2)), "bias": mk((4,)), **rest}


def conv_transpose3d(dtype, mk):
    rest = {"stride": [1, 2, 1], "padding": [0, 1, 0], "output_padding": [0, 1, 0], "groups": 2}
    yield {"pinned": True}, {"input": mk((1, 2, 2, 3, 2)), "weight": mk((2, 2, 2, 2, 3)), "bias": mk((4,)), **rest}


def both(*makers):
    def make(dtype, mk):
        for m in makers:
            yield from m(dtype, mk)

    return make


BY_OP = {
    "to": to, "slice": slice_, "full": full, "arange": arange, "linspace": linspace, "cat": cat, "max_pool2d": max_pool,
    "index_put": index_put, "sort": sort, "topk": topk, "argmax": both(order, reduce(False)),
    "argmin": both(order, reduce(False)), "cummax": both(order, scan), "amax": both(extremum, reduce(True)),
    "amin": both(extremum, reduce(True)), "sum": both(wide_sum, reduce(True)), "logsumexp": both(logsumexp, reduce(True)),
    "mean": both(mean, reduce(True)), "prod": reduce(False), "any": reduce(True), "all": reduce(True),
    "var": reduce(True, ({"correction": 0}, {"correction": 1.5})), "std": reduce(True, ({"correction": 0},)),
    "linalg_vector_norm": reduce(True, ({}, {"ord": 1}, {"ord": float("inf")}, {"ord": 3.5})), "softmax": softmax, "log_softmax": softmax, "eye": eye,
    "one_hot": one_hot, "unsqueeze": unsqueeze, "scaled_dot_product_attention": attention, "batch_norm": batch_norm,
    "layer_norm": layer_norm, "rms_norm": rms_norm, "group_norm": group_norm, "matmul": matmul, "scatter": scatter,
    "huber_loss": huber, "cross_entropy_loss": cross_entropy, "nll_loss": nll, "bmm": bmm, "dot": vectors("tensor"),
    "outer": vectors("vec2"), "index_select": index_select, "gather": gather, "cumsum": scan, "cumprod": scan,
    "embedding": embedding, "add": alpha, "sub": alpha, "max_pool1d": max_pool1d, "conv3d": conv3d,
    "conv_transpose3d": conv_transpose3d, "native_group_norm": native_group_norm,
    "native_layer_norm_backward": native_layer_norm_backward, "native_group_norm_backward": native_group_norm_backward,
    "_native_batch_norm_legit_functional": native_batch_norm, "_native_batch_norm_legit_no_training": native_batch_norm_inference,
    "embedding_dense_backward": embedding_backward, "_softmax": native_softmax, "_log_softmax": native_softmax,
    "_softmax_backward_data": softmax_backward(False), "_log_softmax_backward_data": softmax_backward(True),
    "stft": stft, "linalg_lstsq": lstsq, "linalg_cond": cond, "linalg_norm": linalg_norm, "instance_norm": instance_norm, "_weight_norm": weight_norm, "fake_quantize_per_tensor_affine": fake_quantize,
    "fake_quantize_per_channel_affine": fake_quantize_channels, "hann_window": window, "hamming_window": window,
    "blackman_window": window, "bartlett_window": window, "kaiser_window": kaiser, "diff": diff, "as_strided": as_strided, "slice_scatter": slice_scatter, "max_dim": both(order, reduce(False)),
    "min_dim": both(order, reduce(False)),
}
