"""The table: for every op its ATen signature, the OpInfo entries that feed it, and how their calls become ours.

A signature lists the arguments in ATen's order with ATen's names and defaults. Kinds: Tensor, Tensor[], Tensor?[]
(a list with holes), Operand (a tensor, or a Python number in its place), Scalar (a number), int, float, bool, str,
dtype, int[N] (one int stands for N), float[N], Padding[N] (int[N] or "same"/"valid") and Sections (int or int[]).
Arguments of the first four kinds are inputs, the others attributes.
"""

from dataclasses import dataclass, field

import torch

from canon import Drop, Elsewhere, is_number, operands, parse_signature


@dataclass
class Row:
    """One op. `adapt(args, kwargs)` rewrites an OpInfo call to the order and names of `signature`."""

    op: str
    signature: str
    infos: list = None  # names of OpInfo entries, "name" or "name.variant"
    adapt: object = None
    fixed: dict = field(default_factory=dict)  # arguments that ATen wants and we leave out
    mutates: tuple = ()  # inputs that ATen updates in place
    constant: tuple = ()  # inputs that ATen does not differentiate
    limit: int = 400  # elements of the largest tensor
    cap: int = None  # cases per main dtype, when not the usual number
    check: object = None  # check(case) raises Drop for calls whose result is not defined

    def __post_init__(self):
        self.infos = [self.op] if self.infos is None else self.infos
        self.params = parse_signature(self.signature)
        self.operands = operands(self.params)


# Where our name covers what ATen spreads over several.
ATEN_NAMES = {"nll_loss": "nll_loss_nd", "max_dim": "max", "min_dim": "min"}
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reorder(*order):
    """Positional arguments in another order."""

    def adapt(args, kwargs):
        return [args[i] for i in order if i < len(args)] + list(args[len(order):]), kwargs

    return adapt


def spread(at):
    """`f(x, 1, 2, 3)` for `f(x, (1, 2, 3))`."""

    def adapt(args, kwargs):
        if len(args) > at and all(isinstance(a, int) for a in args[at:]):
            args = [*args[:at], tuple(args[at:])]
        return args, kwargs

    return adapt


def correction(args, kwargs):
    """std and var: `unbiased` (first positional or by name) becomes `correction`."""
    kwargs = dict(kwargs)
    if len(args) > 1 and isinstance(args[1], bool):
        kwargs["unbiased"], args = args[1], [args[0], *args[2:]]
    if len(args) > 2:
        raise Drop("positional unbiased after dim")
    if "unbiased" in kwargs and not kwargs.pop("unbiased"):
        kwargs["correction"] = 0
    if kwargs.get("correction") == 1:
        del kwargs["correction"]
    return args, kwargs


def scatter(args, kwargs):
    """scatter has a tensor form (src) and a number form (value); the deprecated reduce= is another op."""
    if kwargs.get("reduce") is not None:
        raise Drop("argument reduce (deprecated scatter.reduce)")
    if len(args) > 3 and is_number(args[3]):
        return args[:3], {**kwargs, "value": args[3]}
    return args, kwargs


def cast(args, kwargs):
    """Tensor.to: only the dtype matters."""
    wanted = [a for a in [*args[1:], *kwargs.values()] if isinstance(a, torch.dtype)]
    if kwargs.get("memory_format") is torch.channels_last:
        raise Drop("argument memory_format")
    return [args[0], wanted[0] if wanted else args[0].dtype], {}


def embedding(args, kwargs):
    """F.embedding: a negative padding_idx counts from the end; what changes the weight or the gradient's form is left out."""
    kwargs = dict(kwargs)
    if kwargs.pop("max_norm", None) is not None:
        raise Drop("argument max_norm (updates the weight in place)")
    kwargs.pop("norm_type", None)
    for name in ("scale_grad_by_freq", "sparse"):
        if kwargs.pop(name, False):
            raise Drop(f"argument {name}")
    if (idx := kwargs.get("padding_idx")) is not None and idx < 0:
        kwargs["padding_idx"] = idx + args[0].shape[0]
    return args, kwargs


def stable(args, kwargs):
    """sort: stable=False is the default; check_sort sees to it that the order of ties does not matter then."""
    kwargs = dict(kwargs)
    if not kwargs.get("stable"):
        kwargs.pop("stable", None)
    return args, kwargs


def check_sort(case):
    args = {k: v for k, v in case.args.items() if k != "stable"}
    if not same_bits(torch.ops.aten.sort(**args)[1], torch.ops.aten.sort(**args, stable=True)[1]):
        raise Drop("unstable order of equal values")


def check_topk(case):
    """Which of several equal values topk returns, and in which order without sorted, is not defined."""
    if not case.args.get("sorted", True):
        raise Drop("argument sorted=False (order not defined)")
    t = case.args["self"]
    if t.ndim and t.numel():
        s = t.sort(dim=case.args.get("dim", -1)).values.movedim(case.args.get("dim", -1), -1)
        if (s[..., 1:] == s[..., :-1]).any():
            raise Drop("equal values (choice not defined)")


def check_distinct(case):
    """Which of several equal elements of a line is chosen is not defined."""
    t = case.args["self"]
    if t.ndim and t.numel():
        dim = case.args.get("dim", -1)
        s = t.sort(dim=dim).values.movedim(dim, -1)
        if (s[..., 1:] == s[..., :-1]).any():
            raise Drop("equal values (choice not defined)")


def check_median(case):
    if "dim" not in case.args:
        raise Drop("no argument dim (ATen has no index then)")
    check_distinct(case)


def segments(args, kwargs):
    """segment_reduce: unsafe leaves the checks out, which changes no value."""
    if args[0].ndim > 1:
        raise Drop("several dimensions (PyTorch's result differs from call to call)")
    return args, {k: v for k, v in kwargs.items() if k != "unsafe" and v is not None}


def check_bincount(case):
    """The table's result has minlength elements, ATen's more where numbers are larger."""
    t = case.args["self"]
    if t.numel() and int(t.max()) >= case.args.get("minlength", 0):
        raise Drop("minlength decides the shape")


def check_unique_writes(case):
    """Which of several writes to one element wins is not defined."""
    index, dim = case.args["index"], case.args["dim"]
    if index.ndim and index.numel():
        s = index.sort(dim=dim).values.movedim(dim, -1)
        if (s[..., 1:] == s[..., :-1]).any():
            raise Drop("repeated index (which write wins is not defined)")


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(torch.nan_to_num(a.double()), torch.nan_to_num(b.double()))


def columns(args, kwargs):
    """F.unfold has defaults for what follows the kernel's size; ATen's op has none."""
    defaults = {"dilation": 1, "padding": 0, "stride": 1}
    return args, {k: v for k, v in defaults.items() if k not in list(defaults)[: len(args) - 2]} | kwargs


def adaptive_max(args, kwargs):
    """F.adaptive_max_pool; ATen's op returns the indices, too."""
    kwargs = dict(kwargs)
    kwargs.pop("return_indices", None)
    return adaptive(args, kwargs)


def max_pool(args, kwargs):
    kwargs = dict(kwargs)
    if kwargs.pop("return_indices", False):
        raise Drop("argument return_indices (another op)")
    return drop_none(args, kwargs)


def list_of_all(args, kwargs):
    return [list(args)], kwargs


def tensordot(args, kwargs):
    """torch.tensordot takes the dimensions as one argument."""
    dims = kwargs.get("dims", 2)
    if isinstance(dims, int):
        dims = [list(range(args[0].ndim - dims, args[0].ndim)), list(range(dims))]
    return [args[0], args[1], *dims], {}


def instance_norm(args, kwargs):
    """F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, …)."""
    kwargs = {"use_input_stats": True, "momentum": 0.1, "eps": 1e-5, **kwargs}
    args = [*args, None, None, None, None][:5]
    if kwargs["use_input_stats"] and (args[1] is not None or "running_mean" in kwargs):
        raise Drop("running statistics that are updated")
    return [args[0], args[3], args[4], args[1], args[2]], kwargs


def by_hand(args, kwargs):
    """For ops of which the OpInfo entry gives the dtypes only."""
    raise Elsewhere


def drop_none(args, kwargs):
    return args, {k: v for k, v in kwargs.items() if v is not None}


def adaptive(args, kwargs):
    """adaptive pooling: None keeps the size of that dimension."""
    size = args[1]
    if isinstance(size, (tuple, list)):
        dims = args[0].shape[-len(size):]
        size = [d if s is None else s for s, d in zip(size, dims)]
    return [args[0], size], kwargs


def batch_norm(args, kwargs):
    """F.batch_norm(input, running_mean, running_var, weight, bias, …), whose flags have defaults that ATen's have not."""
    args = [*args, None, None, None, None][:5]
    order = [args[0], args[3], args[4], args[1], args[2]]
    return order, {"training": False, "momentum": 0.1, "eps": 1e-5, **kwargs}


def attention(args, kwargs):
    if kwargs.get("dropout_p", 0.0) != 0.0:
        raise Drop("argument dropout_p (random)")
    return args, kwargs


def loss(args, kwargs):
    if len(args) > 2:
        raise Drop("positional weight")
    if kwargs.pop("size_average", None) is not None or kwargs.pop("reduce", None) is not None:
        raise Drop("argument size_average or reduce (deprecated)")
    return args, kwargs


def kl_div(args, kwargs):
    """F.kl_div divides the sum of ATen's kl_div itself for batchmean."""
    if kwargs.get("reduction") == "batchmean":
        raise Drop("batchmean (not ATen's)")
    return loss(args, kwargs)


def interpolate(mode, rank):
    """F.interpolate and F.upsample_*: one op per mode and rank in ATen (its vec overloads)."""

    def adapt(args, kwargs):
        args, kwargs = list(args), dict(kwargs)
        x = args[0]
        if x.ndim != rank + 2 or kwargs.pop("mode", mode) != mode:
            raise Elsewhere
        if x.dtype == torch.uint8 and mode != "nearest":
            raise Drop("u8 bilinear (fixed point)")
        size = args[1] if len(args) > 1 else kwargs.pop("size", None)
        factor = kwargs.pop("scale_factor", None)
        align = kwargs.pop("align_corners", None)
        if not kwargs.get("antialias"):
            kwargs.pop("antialias", None)
        if kwargs.pop("recompute_scale_factor", None):
            size = [int(d * factor) for d in x.shape[2:]]
            factor = None
        out = {} if size is None else {"output_size": size}
        if factor is not None:
            out["scale_factors"] = factor
        if mode != "nearest":
            out["align_corners"] = bool(align)
        return [x], {**kwargs, **out}

    return adapt


def upsample_bilinear(args, kwargs):
    """F.upsample_bilinear is interpolate with align_corners=True."""
    if "align_corners" not in kwargs:
        kwargs = {**kwargs, "align_corners": True}
    return interpolate("bilinear", 2)(args, kwargs)


def swap_einsum(args, kwargs):
    return [args[1], args[0]], kwargs


def check_finite(case):
    """PyTorch's power series give NaN at infinity."""
    if case.args["self"].is_floating_point() and not case.args["self"].isfinite().all():
        raise Drop("an infinite operand, whose limit PyTorch does not give")


def check_poles(case):
    """PyTorch's trigamma takes the sine of a rounded multiple of pi, which is not 0 at poles."""
    x = case.args["self"].double()
    if ((x <= 0) & (x == x.round())).any():
        raise Drop("a pole, where PyTorch's trigamma is a large number")


UNARY = """neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan
sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv floor ceil round trunc frac signbit isnan isinf isfinite logical_not
bitwise_not lgamma""".split()

SPECIAL = "i0e i1e entr erfcx ndtr log_ndtr".split()

BINARY = """mul remainder fmod atan2 copysign maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm""".split()

POOL_ND = "Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, "
CONV = "Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, Padding[{n}] padding=0, int[{n}] dilation=1, int groups=1"
CONV_T = (
    "Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1, int[{n}] padding=0, int[{n}] output_padding=0, "
    "int groups=1, int[{n}] dilation=1"
)


def rows():
    F = "nn.functional."
    out = [Row(op, "Tensor self") for op in UNARY]
    out += [Row("special_" + op, "Tensor self", ["special." + op]) for op in SPECIAL]
    out += [Row(op, "Operand self, Operand other") for op in BINARY]
    out += [
        Row("relu", "Tensor self", [F + "relu"]),
        Row("silu", "Tensor self", [F + "silu"]),
        Row("gelu", "Tensor self, *, str approximate='none'", [F + "gelu"]),
        Row("softplus", "Tensor self, Scalar beta=1, Scalar threshold=20", [F + "softplus"]),
        Row("to", "Tensor self, dtype dtype", adapt=cast),
        # binary and ternary
        Row("add", "Operand self, Operand other, *, Scalar alpha=1"),
        Row("sub", "Operand self, Operand other, *, Scalar alpha=1"),
        Row(
            "div",
            "Operand self, Operand other, *, str? rounding_mode=None",
            ["div.no_rounding_mode", "div.floor_rounding", "div.trunc_rounding"],
            cap=10,
        ),
        Row("pow", "Operand self, Operand exponent"),
        Row("special_xlog1py", "Tensor self, Tensor other", ["special.xlog1py"]),
        Row("polygamma", "Tensor self, int n", [f"polygamma.polygamma_n_{n}" for n in range(5)], cap=8, check=check_poles),
        Row("digamma", "Tensor self", check=check_poles),
        Row("i0", "Tensor self", check=check_finite),
        Row("special_i1", "Tensor self", ["special.i1"], check=check_finite),
        Row("where", "Tensor condition, Operand self, Operand other", adapt=reorder(1, 0, 2)),
        Row("clamp", "Tensor self, Operand? min=None, Operand? max=None"),
        Row("lerp", "Tensor self, Tensor end, Operand weight"),
        Row("addcmul", "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1"),
        Row("addcdiv", "Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1"),
        # reductions and scans
        Row("sum", "Tensor self, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None"),
        Row("prod", "Tensor self, int? dim=None, bool keepdim=False, *, dtype? dtype=None"),
        Row("mean", "Tensor self, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None"),
        Row("amax", "Tensor self, int[1] dim=[], bool keepdim=False"),
        Row("amin", "Tensor self, int[1] dim=[], bool keepdim=False"),
        Row("argmax", "Tensor self, int? dim=None, bool keepdim=False"),
        Row("max_dim", "Tensor self, int dim, bool keepdim=False", ["max.reduction_with_dim"], cap=6),
        Row("min_dim", "Tensor self, int dim, bool keepdim=False", ["min.reduction_with_dim"], cap=6),
        Row("argmin", "Tensor self, int? dim=None, bool keepdim=False"),
        Row("any", "Tensor self, int[1]? dim=None, bool keepdim=False"),
        Row("all", "Tensor self, int[1]? dim=None, bool keepdim=False"),
        Row("logsumexp", "Tensor self, int[1] dim, bool keepdim=False"),
        Row("var", CORRECTION, ["var", "var.unbiased"], adapt=correction),
        Row("std", CORRECTION, ["std", "std.unbiased"], adapt=correction),
        Row("std_mean", CORRECTION, ["std_mean", "std_mean.unbiased"], adapt=correction),
        Row(
            "linalg_vector_norm",
            "Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None",
            ["linalg.vector_norm"],
            cap=12,
        ),
        Row("cumsum", "Tensor self, int dim, *, dtype? dtype=None"),
        Row("cumprod", "Tensor self, int dim, *, dtype? dtype=None"),
        Row("cummax", "Tensor self, int dim"),
    ]
    return out + shape_rows() + index_rows() + neural_rows(F)


CORRECTION = "Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"


def shape_rows():
    return [
        Row("reshape", "Tensor self, int[] shape", adapt=spread(1)),
        Row("permute", "Tensor self, int[] dims", adapt=spread(1)),
        Row("expand", "Tensor self, int[] size", adapt=spread(1)),
        Row("squeeze", "Tensor self, int[1]? dim=None", ["squeeze", "squeeze.multiple"]),
        Row("unsqueeze", "Tensor self, int dim"),
        Row("slice", "Tensor self, int dim=0, int? start=None, int? end=None, int step=1"),
        Row("select", "Tensor self, int dim, int index"),
        Row("cat", "Tensor[] tensors, int dim=0"),
        Row("stack", "Tensor[] tensors, int dim=0"),
        Row(
            "split",
            "Tensor self, Sections split_size, int dim=0",
            ["split", "split.list_args", "split_with_sizes"],
        ),
        Row("chunk", "Tensor self, int chunks, int dim=0"),
        Row("flip", "Tensor self, int[] dims"),
        Row("roll", "Tensor self, int[1] shifts, int[1] dims=[]"),
        Row(
            "pad",
            "Tensor self, int[] pad, str mode='constant', float? value=None",
            [f"nn.functional.pad.{m}" for m in ("constant", "reflect", "replicate", "replicate_negative")],
            cap=14,
        ),
        Row("repeat", "Tensor self, int[] repeats", adapt=spread(1)),
        Row("tril", "Tensor self, int diagonal=0"),
        Row("triu", "Tensor self, int diagonal=0"),
        Row("diagonal", "Tensor self, int offset=0, int dim1=0, int dim2=1"),
        Row("as_strided", "Tensor self, int[] size, int[] stride, int? storage_offset=None"),
        Row("slice_scatter", "Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1", cap=6),
        Row("select_scatter", "Tensor self, Tensor src, int dim, int index", cap=6),
        Row("diagonal_scatter", "Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1", cap=6),
        Row("tile", "Tensor self, int[] dims", adapt=spread(1), cap=5),
        Row("rot90", "Tensor self, int k=1, int[] dims=[0, 1]", cap=6),
        Row("meshgrid", "Tensor[] tensors, *, str indexing", ["meshgrid.list_of_tensors"], cap=4),
        Row("block_diag", "Tensor[] tensors", adapt=list_of_all, cap=4),
        Row("tril_indices", "int row, int col, int offset=0, *, dtype? dtype=None", ["tril_indices"], cap=6),
        Row("triu_indices", "int row, int col, int offset=0, *, dtype? dtype=None", ["triu_indices"], cap=6),
        Row("hann_window", WINDOW, ["signal.windows.hann"], adapt=by_hand),
        Row("hamming_window", WINDOW, ["signal.windows.hamming"], adapt=by_hand),
        Row("blackman_window", WINDOW, ["signal.windows.blackman"], adapt=by_hand),
        Row("bartlett_window", WINDOW, ["signal.windows.bartlett"], adapt=by_hand),
        Row("kaiser_window", WINDOW.replace("periodic", "periodic, float beta"), ["signal.windows.kaiser"], adapt=by_hand),
        Row("diff", "Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None"),
        Row("one_hot", "Tensor self, int num_classes=-1", ["nn.functional.one_hot"]),
        Row("arange", "Scalar? start=None, Scalar? end=None, Scalar? step=None, *, dtype? dtype=None", adapt=arange),
        Row("linspace", "Scalar start, Scalar end, int steps, *, dtype? dtype=None"),
        Row("full", "int[] size, Scalar fill_value, *, dtype? dtype=None"),
        Row("eye", "int n, int? m=None, *, dtype? dtype=None"),
    ]


def arange(args, kwargs):
    """arange(end), arange(start, end) and arange(start, end, step); step 1 is the default."""
    kwargs = dict(kwargs)
    names = ("end",) if len(args) == 1 and "end" not in kwargs else ("start", "end", "step")
    kwargs.update(zip(names, args))
    if is_number(kwargs.get("step")) and type(kwargs["step"]) is int and kwargs["step"] == 1:
        del kwargs["step"]
    return [], kwargs


def index_rows():
    return [
        Row("gather", "Tensor self, int dim, Tensor index"),
        Row(
            "scatter",
            "Tensor self, int dim, Tensor index, Tensor? src=None, Scalar? value=None",
            adapt=scatter,
            check=check_scatter,
        ),
        Row("scatter_add", "Tensor self, int dim, Tensor index, Tensor src"),
        Row(
            "scatter_reduce",
            "Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True",
            [f"scatter_reduce.{r}" for r in ("sum", "prod", "mean", "amax", "amin")],
            cap=14,
        ),
        Row("index_select", "Tensor self, int dim, Tensor index"),
        Row("take_along_dim", "Tensor self, Tensor indices, int? dim=None"),
        Row("masked_fill", "Tensor self, Tensor mask, Operand value"),
        Row("embedding", "Tensor weight, Tensor indices, int padding_idx=-1", ["nn.functional.embedding"], adapt=embedding),
        Row("index_put", "Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False", check=check_index_put),
        Row("sort", "Tensor self, int dim=-1, bool descending=False, *, bool? stable=None", adapt=stable, check=check_sort),
        Row("topk", "Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True", check=check_topk),
        Row("kthvalue", "Tensor self, int k, int dim=-1, bool keepdim=False", check=check_distinct),
        Row("mode", "Tensor self, int dim=-1, bool keepdim=False", check=check_distinct),
        Row("median", "Tensor self, int? dim=None, bool keepdim=False", check=check_median),
        Row("nanmedian", "Tensor self, int? dim=None, bool keepdim=False", check=check_median),
        Row("cummin", "Tensor self, int dim"),
        Row("logcumsumexp", "Tensor self, int dim"),
        Row("searchsorted", "Tensor sorted_sequence, Operand self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None"),
        Row("bucketize", "Operand self, Tensor boundaries, *, bool out_int32=False, bool right=False"),
        Row("masked_scatter", "Tensor self, Tensor mask, Tensor source"),
        Row(
            "index_reduce",
            "Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True",
            [f"index_reduce.{r}" for r in ("prod", "mean", "amax", "amin")],
            cap=14,
        ),
        Row(
            "segment_reduce",
            "Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, float? initial=None",
            [f"_segment_reduce.{r}" for r in ("lengths", "offsets")],
            adapt=segments,
            cap=24,
        ),
        Row("nonzero_static", "Tensor self, *, int size, int fill_value=-1"),
        Row("histc", "Tensor self, int bins=100, float min=0, float max=0"),
        Row("bincount", "Tensor self, Tensor? weights=None, int minlength=0", check=check_bincount),
        Row("matmul", "Tensor self, Tensor other", limit=600),
        Row("addmm", "Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1", ["addmm", "addmm.decomposed"]),
        Row("bmm", "Tensor self, Tensor mat2", ["bmm", "bmm.triton_optimized"], limit=600),
        Row("baddbmm", "Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1", limit=600),
        Row("mm", "Tensor self, Tensor mat2"),
        Row("mv", "Tensor self, Tensor vec", limit=600),
        Row("addmv", "Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1"),
        Row("linear", "Tensor input, Tensor weight, Tensor? bias=None", ["nn.functional.linear"]),
        Row("dot", "Tensor self, Tensor tensor"),
        Row("outer", "Tensor self, Tensor vec2"),
        Row("inner", "Tensor self, Tensor other", cap=4),
        Row("tensordot", "Tensor self, Tensor other, int[] dims_self, int[] dims_other", cap=4, adapt=tensordot),
        Row("addr", "Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1", cap=4),
        Row("trace", "Tensor self", cap=4),
        Row("linalg_cross", "Tensor self, Tensor other, *, int dim=-1", ["linalg.cross"], cap=4),
        Row("dist", "Tensor self, Tensor other, Scalar p=2", cap=6),
        Row("stft", "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center, "
            "str pad_mode, bool normalized=False, bool? onesided=None, bool? return_complex=None", adapt=by_hand),
        Row("linalg_lstsq", "Tensor self, Tensor b, float? rcond=None, *, str? driver=None", ["linalg.lstsq"], adapt=by_hand),
        Row("linalg_cond", "Tensor self", ["linalg.cond"], adapt=by_hand),
        Row("linalg_norm", "Tensor self, int[1]? dim=None, bool keepdim=False", ["linalg.norm"], adapt=by_hand),
        Row("isclose", "Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False"),
        Row("isin", "Tensor elements, Tensor test_elements, *, bool invert=False", cap=4),
        Row("index_fill", "Tensor self, int dim, Tensor index, Operand value", cap=4),
        Row("einsum", "str equation, Tensor[] tensors", adapt=swap_einsum),
    ]


def check_scatter(case):
    if "src" in case.args:
        check_unique_writes(case)


def check_index_put(case):
    """Without accumulate two writes to one element may land in either order; a gradient would see the same."""
    index = [t for t in case.args["indices"] if t is not None]
    if case.args.get("accumulate") or len(index) != 1 or index[0].dtype == torch.bool:
        return
    if index[0].unique().numel() != index[0].numel():
        raise Drop("repeated index (which write wins is not defined)")


def neural_rows(F):
    out = []
    for n in (1, 2, 3):
        out.append(Row(f"conv{n}d", CONV.format(n=n), [f"{F}conv{n}d"], limit=700))
        out.append(Row(f"conv_transpose{n}d", CONV_T.format(n=n), [f"{F}conv_transpose{n}d"], limit=700))
        out.append(Row(f"upsample_nearest{n}d", UPSAMPLE.format(n=n, align=""), [F + "interpolate.nearest", F + "upsample_nearest"],
                       adapt=interpolate("nearest", n), cap=5))
    for n in (1, 2, 3):
        pool, divisor = POOL_ND.format(n=n), ", int? divisor_override=None" if n > 1 else ""
        out += [
            Row(f"max_pool{n}d", pool + f"int[{n}] dilation=1, bool ceil_mode=False", [f"{F}max_pool{n}d"], adapt=max_pool),
            Row(f"avg_pool{n}d", pool + "bool ceil_mode=False, bool count_include_pad=True" + divisor, [f"{F}avg_pool{n}d"],
                adapt=drop_none),
            Row(f"adaptive_avg_pool{n}d", f"Tensor self, int[{n}] output_size", [f"{F}adaptive_avg_pool{n}d"],
                adapt=adaptive, limit=600),
            Row(f"adaptive_max_pool{n}d", f"Tensor self, int[{n}] output_size", [f"{F}adaptive_max_pool{n}d"],
                adapt=adaptive_max, limit=600, cap=6),
        ]
    out += [
        Row("glu", "Tensor self, int dim=-1", [F + "glu"], cap=6),
        Row("prelu", "Tensor self, Tensor weight", [F + "prelu"], cap=6),
        Row("instance_norm", INSTANCE_NORM, [F + "instance_norm"], adapt=instance_norm, fixed={"cudnn_enabled": False}, cap=6),
        Row("bilinear", "Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None", [F + "bilinear"], cap=4),
        Row("_weight_norm", "Tensor v, Tensor g, int dim=0", [F + "linear"], adapt=by_hand),
        Row("fake_quantize_per_tensor_affine", "Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max",
            [F + "linear"], adapt=by_hand, constant=("scale",)),
        Row("fake_quantize_per_channel_affine", "Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max",
            [F + "linear"], adapt=by_hand, constant=("scale",)),
        Row("pixel_shuffle", "Tensor self, int upscale_factor", [F + "pixel_shuffle"], cap=4),
        Row("pixel_unshuffle", "Tensor self, int downscale_factor", [F + "pixel_unshuffle"], cap=4),
        Row("channel_shuffle", "Tensor self, int groups", [F + "channel_shuffle"], cap=4),
        Row("im2col", "Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride", [F + "unfold"],
            adapt=columns, cap=5),
        Row("pdist", "Tensor self, float p=2", [F + "pdist"], cap=6),
        Row("soft_margin_loss", PLAIN_LOSS, [F + "soft_margin_loss"], adapt=loss),
        Row("addbmm", "Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1", limit=600),
    ]
    return out + [
        Row("upsample_bilinear2d", UPSAMPLE.format(n=2, align=", bool align_corners"), [F + "interpolate.bilinear"],
            adapt=interpolate("bilinear", 2)),
        Row("upsample_linear1d", UPSAMPLE.format(n=1, align=", bool align_corners"), [F + "interpolate.linear"],
            adapt=interpolate("linear", 1)),
        Row("upsample_trilinear3d", UPSAMPLE.format(n=3, align=", bool align_corners"), [F + "interpolate.trilinear"],
            adapt=interpolate("trilinear", 3), cap=6),
        Row("softmax", "Tensor self, int dim, dtype? dtype=None", ["softmax", "softmax.with_dtype"]),
        Row("log_softmax", "Tensor self, int dim, dtype? dtype=None", ["log_softmax", "log_softmax.with_dtype"]),
        Row("layer_norm", "Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05",
            [F + "layer_norm"]),
        Row("native_layer_norm", "Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps", ["native_layer_norm"], cap=4),
        Row("native_group_norm", "Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps",
            [F + "group_norm"], adapt=by_hand),
        Row("native_layer_norm_backward", "Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
            "Tensor? weight, Tensor? bias", [F + "layer_norm"], adapt=by_hand, fixed={"output_mask": [True] * 3}),
        Row("native_group_norm_backward", "Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, int HxW, "
            "int group", [F + "group_norm"], adapt=by_hand, fixed={"output_mask": [True] * 3}),
        Row("_native_batch_norm_legit_functional", BATCH_NORM, [F + "batch_norm"], adapt=by_hand),
        Row("_native_batch_norm_legit_no_training", BATCH_NORM.replace("bool training, ", "").replace("? running", " running"),
            [F + "batch_norm"], adapt=by_hand),
        Row("embedding_dense_backward", "Tensor grad_output, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq",
            [F + "embedding"], adapt=by_hand),
        Row("_softmax", "Tensor self, int dim, bool half_to_float", ["softmax"], adapt=by_hand),
        Row("_log_softmax", "Tensor self, int dim, bool half_to_float", ["log_softmax"], adapt=by_hand),
        Row("_softmax_backward_data", SOFTMAX_BACKWARD, ["softmax"], adapt=by_hand),
        Row("_log_softmax_backward_data", SOFTMAX_BACKWARD, ["log_softmax"], adapt=by_hand),
        Row("rms_norm", "Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None", [F + "rms_norm"]),
        Row("group_norm", "Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05",
            [F + "group_norm"]),
        Row("batch_norm", BATCH_NORM, [F + "batch_norm"], adapt=batch_norm, fixed={"cudnn_enabled": False},
            mutates=("running_mean", "running_var")),
        Row("scaled_dot_product_attention", ATTENTION, [F + "scaled_dot_product_attention"], adapt=attention, cap=10),
        Row("cross_entropy_loss", LOSS + ", int ignore_index=-100, float label_smoothing=0.0", [F + "cross_entropy"], adapt=loss,
            cap=14, constant=("weight",)),
        Row("nll_loss", LOSS + ", int ignore_index=-100", [F + "nll_loss"], adapt=loss, cap=10, constant=("weight",)),
        Row("mse_loss", PLAIN_LOSS, [F + "mse_loss"], adapt=loss),
        Row("l1_loss", PLAIN_LOSS, [F + "l1_loss"], adapt=loss),
        Row("huber_loss", PLAIN_LOSS + ", float delta=1.0", [F + "huber_loss"], adapt=loss),
        Row("smooth_l1_loss", PLAIN_LOSS + ", float beta=1.0", [F + "smooth_l1_loss"], adapt=loss),
        Row("kl_div", PLAIN_LOSS + ", *, bool log_target=False", [F + "kl_div"], adapt=kl_div),
        Row("binary_cross_entropy", LOSS, [F + "binary_cross_entropy"], adapt=loss, constant=("weight",)),
        Row("cosine_similarity", "Tensor x1, Tensor x2, int dim=1, float eps=1e-08", [F + "cosine_similarity"]),
        Row("binary_cross_entropy_with_logits",
            "Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, str reduction='mean'",
            [F + "binary_cross_entropy_with_logits"], adapt=loss, constant=("weight", "pos_weight")),
    ]


UPSAMPLE = "Tensor input, int[{n}]? output_size{align}, float[{n}]? scale_factors"
WINDOW = "int window_length, bool periodic, *, dtype? dtype=None"
INSTANCE_NORM = (
    "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps"
)
SOFTMAX_BACKWARD = "Tensor grad_output, Tensor output, int dim, dtype input_dtype"
BATCH_NORM = (
    "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps"
)
ATTENTION = (
    "Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
    "float? scale=None, bool enable_gqa=False"
)
PLAIN_LOSS = "Tensor self, Tensor target, str reduction='mean'"
LOSS = "Tensor self, Tensor target, Tensor? weight=None, str reduction='mean'"
