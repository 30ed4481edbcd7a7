"""Exports samples of every op that PyTorch's own tests know (op_db), with inputs and results.

    .venv/bin/python scripts/torchexport-ops/make.py DIR [--dtypes float32,int64,bool] [--samples 4] [--only NAME,...] [--decompose]
    go run ./scripts/torchexport-ops DIR

needs torch, numpy and expecttest. Each case is DIR/CASE.pt2 and DIR/CASE.safetensors. What does not
export, and what gives other results each time, is left out and counted.
"""

import argparse
import collections
import contextlib
import json
import os
import struct
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

NAMES = {
    torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64",
}


def save(path, tensors):
    header, at, parts = {}, 0, []
    for name, t in tensors.items():
        t = t.detach().resolve_conj().resolve_neg().contiguous()
        data = t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


class Case(torch.nn.Module):
    """One sample of an op: the tensors are inputs, the rest is constant."""

    def __init__(self, op, sample):
        super().__init__()
        self.op = op
        self.flat, self.spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.at = [i for i, x in enumerate(self.flat) if isinstance(x, torch.Tensor)]

    def inputs(self):
        return [self.flat[i].detach().clone() for i in self.at]

    def forward(self, *tensors):
        flat = list(self.flat)
        for i, t in zip(self.at, tensors):
            flat[i] = t
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return [x for x in pytree.tree_leaves(self.op(*args, **kwargs)) if isinstance(x, torch.Tensor)]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) or torch.allclose(x, y, equal_nan=True) for x, y in zip(a, b))


def make(path, case, decompose):
    """Writes a case and returns None, or why there is none."""
    ins = case.inputs()
    if not ins:
        return "no inputs"
    if any(t.dtype not in NAMES or t.layout != torch.strided for t in ins):
        return "input of another dtype or layout"
    want, again = case(*case.inputs()), case(*case.inputs())
    if not want or any(t.dtype not in NAMES or t.layout != torch.strided for t in want):
        return "result of another dtype or layout"
    if not same(want, again):
        return "random"
    program = torch.export.export(case, tuple(ins), strict=False)
    if any(torch.Tag.nondeterministic_seeded in getattr(n.target, "tags", ()) for n in program.graph.nodes):
        return "random"
    ins = case.inputs()
    want = [t.clone() for t in case(*ins)]
    want += [t for t, before in zip(ins, case.inputs()) if t.shape != before.shape or not torch.allclose(t, before, rtol=0, atol=0, equal_nan=True)]  # a program returns what it changed
    if decompose:
        program = program.run_decompositions()
    torch.export.save(program, path + ".pt2")
    tensors = {f"in{i}": t for i, t in enumerate(case.inputs())}
    tensors.update({f"out{i}": t for i, t in enumerate(want)})
    save(path + ".safetensors", tensors)


def pick(samples, n):
    samples = list(samples)
    step = max(1, len(samples) // n)
    return samples[::step][:n]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--dtypes", default="float32,int64,bool")
    p.add_argument("--samples", type=int, default=4)
    p.add_argument("--only", default="")
    p.add_argument("--decompose", action="store_true")
    o = p.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    os.makedirs(o.dir, exist_ok=True)
    only = set(o.only.split(",")) - {""}
    left, made = collections.Counter(), 0
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if only and op.name not in only:
            continue
        for dtype in (getattr(torch, d) for d in o.dtypes.split(",")):
            if dtype not in op.supported_dtypes("cpu"):
                continue
            try:
                torch.manual_seed(1)
                samples = pick(op.sample_inputs("cpu", dtype), o.samples)
            except Exception as e:
                left[f"sample: {type(e).__name__}"] += 1
                continue
            for k, sample in enumerate(samples):
                path = os.path.join(o.dir, f"{name}-{NAMES[dtype].lower()}-{k}")
                try:
                    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
                        why = make(path, Case(op.op, sample), o.decompose)
                except Exception as e:
                    why = f"export: {type(e).__name__}"
                if why:
                    left[why] += 1
                else:
                    made += 1
        print(name, made, flush=True, file=sys.stderr)
    print(f"{made} cases made; left out: " + ", ".join(f"{n} {why}" for why, n in left.most_common()))


main()
