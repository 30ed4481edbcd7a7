"""Evaluates canonical cases with torch.ops.aten: outputs, gradients, and how far low precision is from exact."""

import math
import zlib

import torch

from canon import NAMES, Drop, Scalar
from table import ATEN_NAMES, REDUCTIONS

# torch.testing.assert_close's defaults: (rtol, atol).
TOLERANCE = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
}
# An absolute error above this many relative tolerances of the largest result means that the case tests nothing.
WORST = 4


def call(row, args):
    """Runs the ATen op of that name with these arguments (tensors are passed as they are)."""
    args = {k: v.value if isinstance(v, Scalar) else v for k, v in args.items()}
    if "reduction" in args:
        args["reduction"] = REDUCTIONS[args["reduction"]]
    args.update(row.fixed)
    if isinstance(args.get("self"), (bool, int, float)) and row.op != "where":
        # A number first has no ATen overload: torch wraps the number.
        first, second, *rest = args
        return getattr(torch, row.op)(args[first], args[second], **{k: args[k] for k in rest})
    for p in row.params:
        if p.optional and p.required:
            args.setdefault(p.name, None)
    return getattr(torch.ops.aten, ATEN_NAMES.get(row.op, row.op))(**args)


def flat(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def copies(args, convert=lambda t: t.clone()):
    return {
        k: convert(v)
        if isinstance(v, torch.Tensor)
        else [convert(x) if isinstance(x, torch.Tensor) else x for x in v]
        if isinstance(v, list)
        else v
        for k, v in args.items()
    }


def evaluate(row, case):
    """Fills in outputs, mutated inputs, gradients and atol; raises Drop when PyTorch refuses."""
    args = copies(case.args)
    try:
        case.outputs = [t.contiguous() for t in flat(call(row, args))]
    except (RuntimeError, IndexError, TypeError, NotImplementedError) as e:
        raise Drop("PyTorch refuses: " + first_line(e)) from e
    for t in case.outputs:
        if t.dtype not in NAMES:
            raise Drop(f"result of {t.dtype}")
        if t.numel() > row.limit and not case.pinned:
            raise Drop("too large")
    if case.args.get("training"):
        case.mutated = {name: args[name] for name in row.mutates if name in args}
    if case.original is not None:
        verify(case)
    if case.dtype == torch.float64 and case.grad:
        gradients(row, case)
    case.atol = atol(row, case)


def first_line(e):
    text = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
    return text[:80]


def verify(case):
    """The canonical call must give exactly what the OpInfo call gave."""
    want = flat(case.original())
    got = case.outputs
    same = len(want) == len(got) and all(
        g.dtype == w.dtype and g.shape == w.shape and torch.equal(g.isnan(), w.isnan()) and torch.equal(g.nan_to_num(), w.nan_to_num())
        for g, w in zip(got, want)
    )
    if not same:
        raise AssertionError(f"{case.op}: canonical call differs from the OpInfo call: {case.signature()}")


def gradients(row, case):
    """Gradients of sum(output * cotangent) with respect to every f64 input."""
    args = copies(case.args)
    leaves = []
    for name in case.inputs:
        if name in row.mutates or name in row.constant:
            continue
        value = args[name]
        for i, t in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(t, torch.Tensor) and t.dtype == torch.float64:
                leaves.append((name, i if isinstance(value, list) else None, t.requires_grad_()))
    if not leaves:
        return
    try:
        outs = flat(call(row, args))
        pairs = [(o, cotangent(case.op, i, o)) if o.requires_grad else (o, None) for i, o in enumerate(outs)]
        live = [(o, c) for o, c in pairs if c is not None]
        if not live:
            return
        wrt = [t for *_, t in leaves]
        found = torch.autograd.grad([o for o, _ in live], wrt, [c for _, c in live], allow_unused=True)
    except (RuntimeError, NotImplementedError) as e:
        case.no_gradient = first_line(e)
        return
    case.grads = [(n, i, g.contiguous()) for (n, i, _), g in zip(leaves, found) if g is not None]
    case.cotangents = [c for _, c in pairs] if case.grads else []


def cotangent(op, index, out):
    """Fixed values of a few bits (multiples of 1/4 in ±2, never 0): they compress well and lose no test strength."""
    g = torch.Generator().manual_seed(zlib.crc32(f"{op}/{index}/{tuple(out.shape)}".encode()))
    x = torch.randint(1, 9, out.shape, generator=g) * (torch.randint(0, 2, out.shape, generator=g) * 2 - 1)
    return x.to(out.dtype) / 4


def atol(row, case):
    """None when the result is within the default tolerance of the exact one (computed in f64), else a wider atol.

    The exact result is computed on the same inputs in f64 and rounded once. Where PyTorch rounds intermediate results,
    an implementation that does not is as good, so the case says by how much it may differ.
    """
    low = {t.dtype for t in case.outputs} & {torch.float16, torch.bfloat16, torch.float32}
    if not low or not any(t.is_floating_point() for t in case.tensors()):
        return None
    args = copies(case.args, lambda t: t.double() if t.is_floating_point() else t.clone())
    if isinstance(args.get("dtype"), torch.dtype) and args["dtype"].is_floating_point and row.op != "to":
        args["dtype"] = torch.float64
    try:
        exact = flat(call(row, args))
    except RuntimeError:  # the op takes no f64, as fake quantisation
        return None
    atols = [excess(g, w.to(g.dtype)) for g, w in zip(case.outputs, exact) if g.dtype in low and g.numel()]
    return max([a for a in atols if a], default=None)


def excess(got, want):
    """The atol that got needs to pass as want, or None when the default will do."""
    rtol, default = TOLERANCE[got.dtype]
    got, want = got.double(), want.double()
    finite = got.isfinite() & want.isfinite()
    if not torch.equal(got.nan_to_num(nan=1e-99)[~finite], want.nan_to_num(nan=1e-99)[~finite]):
        raise Drop("overflow or NaN depends on intermediate precision")
    if not finite.any():
        return None
    got, want = got[finite], want[finite]
    need = ((got - want).abs() - rtol * want.abs()).max().item()
    if need <= default:
        return None
    if need > WORST * rtol * want.abs().max().item():
        raise Drop("ill-conditioned at this precision")
    return round_up(need * 1.25)


def round_up(x):
    """Two significant digits, upwards."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(x / unit) * unit:.2g}")
