"""Makes the test vectors of internal/opinfo from PyTorch's OpInfo samples. See README.md beside this file."""

import argparse
import collections
import gzip
import itertools
import json
import math
import pathlib
import random
import sys
import warnings
import zlib

import torch
import torch.testing._internal.opinfo.core as core

# Smaller samples than PyTorch's own, before the other modules copy the sizes. M and L are not multiples of vector widths.
core.M, core.L = 6, 19

import numpy as np  # noqa: E402
from torch.testing import make_tensor  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import handmade  # noqa: E402
import special  # noqa: E402
from canon import DTYPES, NAMES, Case, Drop, Elsewhere, Scalar, bind  # noqa: E402
from evaluate import copies, evaluate  # noqa: E402
from table import ATEN_NAMES, rows  # noqa: E402

MAIN = (torch.float32, torch.float64, torch.int64)
CAP, CAP_OTHER = 10, 4
FORMAT = 1


def seed(*parts):
    n = zlib.crc32("/".join(parts).encode())
    torch.manual_seed(n)
    random.seed(n)
    np.random.seed(n)


def check_signatures(table):
    """Every name and default in the table must be ATen's, in some overload of the op."""
    for row in table:
        packet = getattr(torch.ops.aten, ATEN_NAMES.get(row.op, row.op))
        known = collections.defaultdict(list)
        for overload in packet.overloads():
            for a in getattr(packet, overload)._schema.arguments:
                known[a.name].append(a.default_value if a.has_default_value() else None)
        for p in row.params:
            if p.name not in known:
                raise SystemExit(f"{row.op}: ATen has no argument {p.name}")
            want = {"mean": 1}.get(p.default, p.default) if p.name == "reduction" else p.default
            found = known[p.name]
            listed = [[d] * (p.size or 1) if isinstance(d, int) and isinstance(want, list) else d for d in found]
            if not p.required and want is not None and want not in listed:
                raise SystemExit(f"{row.op}: default of {p.name} is {want}, ATen's is one of {listed}")


INFOS = {o.name + (f".{o.variant_test_name}" if o.variant_test_name else ""): o for o in op_db}


def supported(row, dtype):
    """The OpInfo entries of the row that have this dtype."""
    return [INFOS[entry] for entry in row.infos if dtype in INFOS[entry].dtypes]


def from_opinfo(row, dtype, drops):
    """Canonical cases from the OpInfo entries of the row, sample_inputs first, then reference_inputs."""
    for info in supported(row, dtype):
        for source in (info.sample_inputs, info.reference_inputs):
            try:
                for sample in source("cpu", dtype):
                    if (case := canonical(row, info, dtype, sample, drops)) is not None:
                        yield case
            except (RuntimeError, IndexError) as e:
                drops["generator stopped: " + str(e).splitlines()[0][:60]] += 1


def canonical(row, info, dtype, sample, drops):
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    try:
        a, k = row.adapt(list(args), dict(kwargs)) if row.adapt else (args, kwargs)
        bound = bind(row.params, a, k)
        if any(t.numel() > row.limit for t in tensors(bound)):
            raise Drop("too large")
        if row.operands and not any(isinstance(v, (torch.Tensor, list)) for k, v in bound.items() if k in row.operands):
            raise Drop("numbers only, no tensor")
    except Elsewhere:
        return None
    except Drop as e:
        drops[str(e)] += 1
        return None

    def original():
        plain = copies(dict(enumerate(args)), lambda t: t.detach().clone())
        named = copies(kwargs, lambda t: t.detach().clone())
        return info.op(*plain.values(), **named)

    return Case(row.op, dtype, bound, [n for n in bound if n in row.operands], original=original)


def tensors(bound):
    for v in bound.values():
        for t in v if isinstance(v, list) else [v]:
            if isinstance(t, torch.Tensor):
                yield t


def from_hand(row, dtype, drops):
    def mk(shape, dtype=dtype, **kw):
        return make_tensor(shape, dtype=dtype, device="cpu", **kw)

    if not supported(row, dtype):
        return
    sources = [special.specials(row.op, dtype, mk)]
    if row.op in handmade.BY_OP:
        sources.append(handmade.BY_OP[row.op](dtype, mk))
    for options, args in itertools.chain(*sources):
        try:
            bound = bind_named(row, args)
        except Drop as e:
            drops["handmade: " + str(e)] += 1
            continue
        yield Case(row.op, dtype, bound, [n for n in bound if n in row.operands], **options)


def bind_named(row, args):
    """Handmade arguments carry ATen's names already."""
    return bind(row.params, [], {k: v.value if isinstance(v, Scalar) else v for k, v in args.items()})


def features(case):
    """What makes a case different from others; the choice takes cases that add the most."""
    found = {("names", tuple(case.args))}
    shapes, flags = [], []
    for name, value in case.args.items():
        if name not in case.inputs:
            found.add(("attr", name, bucket(value)))
            if isinstance(value, (bool, str)):
                flags.append((name, value))
            continue
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, torch.Tensor):
                shapes.append(tuple(v.shape))
                found |= {("empty", name, v.numel() == 0), ("dtype", name, NAMES[v.dtype])}
            elif v is not None:
                found.add(("number", name, type(v.value).__name__, v.value < 0))
        if isinstance(value, list):
            found.add(("length", name, len(value)))
    found.add(("ranks", tuple(map(len, shapes))))
    found.add(("size", max((math.prod(s) for s in shapes), default=0).bit_length() // 2))
    found.add(("broadcast", len(set(shapes)) > 1, len(shapes)))
    found.add(("flags", tuple(flags)))
    return found


def bucket(v):
    if isinstance(v, list):
        kind = "none" if not v else "negative" if any(isinstance(x, (int, float)) and x < 0 for x in v) else "plain"
        return kind, len(v), len(set(map(str, v))) > 1
    if isinstance(v, int) and not isinstance(v, bool):
        return "int", max(-2, min(v, 3))
    return str(v)


def choose(row, dtype, drops):
    """Keeps the pinned cases and then, one by one, the candidate that adds the most new features."""
    seed(row.op, NAMES[dtype])
    pool, seen = [], set()
    for case in itertools.chain(from_hand(row, dtype, drops), from_opinfo(row, dtype, drops)):
        if (key := case.signature()) in seen:
            drops["duplicate"] += 1
            continue
        seen.add(key)
        pool.append((case, features(case)))
    cap = (row.cap or CAP) if dtype in MAIN else CAP_OTHER
    kept, covered = [], set()
    for case, _ in [p for p in pool if p[0].pinned]:
        keep(row, case, kept, drops)
    pool = [p for p in pool if not p[0].pinned]
    taken = 0
    while pool and taken < cap:
        best = max(range(len(pool)), key=lambda i: (len(pool[i][1] - covered), -i))
        case, found = pool.pop(best)
        if keep(row, case, kept, drops):
            covered |= found
            taken += 1
    drops["beyond the cap"] += len(pool)
    return kept


def keep(row, case, kept, drops):
    try:
        if row.check:
            row.check(case)
        evaluate(row, case)
    except Drop as e:
        drops[str(e)] += 1
        return False
    if case.no_gradient:
        drops["kept without gradients: " + case.no_gradient] += 1
    kept.append(case)
    return True


def write(path, op, cases):
    body = [json.dumps(c.json(), separators=(",", ":"), allow_nan=False) for c in cases]
    version = torch.__version__.split("+")[0]
    text = f'{{"format":{FORMAT},"torch":"{version}","op":"{op}","cases":[\n' + ",\n".join(body) + "\n]}\n"
    with open(path, "wb") as f, gzip.GzipFile(filename="", mode="wb", fileobj=f, compresslevel=9, mtime=0) as z:
        z.write(text.encode())
    return path.stat().st_size


def summary(done):
    """Counts by op and dtype, and what was left out and why, as Markdown."""
    names = list(DTYPES)
    out = ["# Test vectors by op", "", "Written by make_vectors.py.", ""]
    out += ["| op | cases | grads | wide | " + " | ".join(names) + " | bytes |", "|---" * (len(names) + 5) + "|"]
    total = collections.Counter()
    for op, cases, _, size in done:
        by = collections.Counter(NAMES[c.dtype] for c in cases)
        grads, wide = sum(bool(c.grads) for c in cases), sum(c.atol is not None for c in cases)
        out.append(f"| {op} | {len(cases)} | {grads} | {wide} | " + " | ".join(str(by[n] or "") for n in names) + f" | {size} |")
        total.update({**by, "cases": len(cases), "grads": grads, "wide": wide, "bytes": size})
    out.append(f"| **all {len(done)}** | {total['cases']} | {total['grads']} | {total['wide']} | "
               + " | ".join(str(total[n]) for n in names) + f" | {total['bytes']} |")
    out += ["", "`grads`: cases with gradients; `wide`: cases with a wider tolerance than the default.", "", "# Left out", ""]
    reasons = collections.defaultdict(collections.Counter)
    for op, _, drops, _ in done:
        for reason, n in drops.items():
            if n:
                reasons[reason][op] += n
    out += ["| reason | samples | ops |", "|---|---|---|"]
    for reason, ops in sorted(reasons.items(), key=lambda kv: -kv[1].total()):
        listed = ", ".join(f"{op} {n}" for op, n in sorted(ops.items())) if len(ops) <= 12 else f"{len(ops)} ops"
        out.append(f"| {reason.replace('|', '/')} | {ops.total()} | {listed} |")
    return "\n".join(out) + "\n"


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=here.parent.parent / "internal" / "opinfo" / "testdata")
    parser.add_argument("--op", action="append", help="only this op (repeatable); writes no summary")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    table = sorted(rows(), key=lambda r: r.op)
    check_signatures(table)
    options.out.mkdir(parents=True, exist_ok=True)
    done = []
    for row in table:
        if options.op and row.op not in options.op:
            continue
        drops = collections.Counter()
        cases = [c for dtype in DTYPES.values() for c in choose(row, dtype, drops)]
        if not cases:
            raise SystemExit(f"{row.op}: no cases")
        size = write(options.out / f"{row.op}.json.gz", row.op, cases)
        done.append((row.op, cases, drops, size))
        print(f"{row.op}: {len(cases)} cases, {size} bytes", file=sys.stderr)
    text = summary(done)
    if not options.op:
        (here / "SUMMARY.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
