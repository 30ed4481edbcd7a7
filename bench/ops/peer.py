"""The peer of bench/ops: calls ops of ATen in PyTorch, one at a time.

    python peer.py MODE THREADS FOLDER

MODE is eager or compile. It says "ready VERSION" and then answers requests, line by line:

    open            makes the call that FOLDER/call.json describes, with the operands of
                    FOLDER/operands, and writes its results to FOLDER/results: "ok DTYPE…", or "none"
                    if PyTorch has no such op or refuses, with the reason
    turn MS N       runs it for a while: "ok COUNT MEDIAN LEAST", nanoseconds
    close           forgets the call: "ok"
"""

import gc
import json
import os
import sys
import time

import numpy  # noqa: F401 -- results leave by it: without it each row would fail, and only then
import torch
import torch.nn.functional as F

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "c64": torch.complex64, "c128": torch.complex128,
}
NAMES = {v: k for k, v in DTYPES.items()}
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
BAGS = {"sum": 0, "mean": 1, "max": 2}


def pool(f):
    return lambda **a: f(a.pop("self"), **a, return_indices=True)


# Ops of other names or arguments in PyTorch than in ATen's table, and those whose overload the names do not choose.
SPECIAL = {
    "cast": lambda self, dtype: self.to(dtype),
    "cross_entropy": lambda self, target: F.cross_entropy(self, target),
    "nll_loss": lambda self, target: F.nll_loss(self, target),
    "interpolate": lambda self, **a: F.interpolate(self, **a),
    "affine_grid": F.affine_grid,
    "grid_sample": F.grid_sample,
    "bernoulli": lambda self, **_: torch.bernoulli(self),
    "normal": lambda size, dtype, **_: torch.randn(size, dtype=dtype),
    "uniform": lambda size, dtype, **_: torch.rand(size, dtype=dtype),
    "randint": lambda low, high, size, dtype, **_: torch.randint(low, high, size, dtype=dtype),
    "randperm": lambda n, **_: torch.randperm(n),
    "dropout": lambda self, p, train, **_: F.dropout(self, p, train),
    "batch_norm": lambda input, weight, bias, running_mean, running_var, **a: F.batch_norm(
        input, running_mean, running_var, weight, bias, **a),
    "group_norm": lambda input, **a: F.group_norm(input, **a),
    "rms_norm": lambda input, **a: F.rms_norm(input, **a),
    "embedding": lambda weight, indices: F.embedding(indices, weight),
    "embedding_bag": lambda input, weight, mode: F.embedding_bag(input, weight, mode=mode),
    "log_sigmoid": lambda self: F.logsigmoid(self),
    "trunc_divide": lambda self, other: torch.div(self, other, rounding_mode="trunc"),
    "split": lambda self, split_size, dim: torch.split(self, split_size[0], dim),
    "softsign": lambda self: F.softsign(self),
    "tanhshrink": lambda self: F.tanhshrink(self),
    "norm": lambda self: torch.norm(self),
    "cosine_similarity": lambda x1, x2: F.cosine_similarity(x1, x2),
    "max_pool_with_indices": lambda self, kernel_size, stride, padding, **_: F.max_pool2d(
        self, kernel_size, stride, padding, return_indices=True),
    "max_pool1d_with_indices": pool(F.max_pool1d),
    "threshold": lambda self, threshold, value: F.threshold(self, threshold, value),
    "take_along_dim": lambda self, indices: torch.take_along_dim(self.reshape(-1), indices.reshape(-1)),
    "arange": torch.arange,
    "segment_reduce": lambda data, reduce, lengths: torch.segment_reduce(data, reduce, lengths=lengths),
    "einsum": lambda equation, tensors: torch.einsum(equation, *tensors),
    "prod": lambda self: torch.prod(self),
    "linalg_multi_dot": lambda tensors: torch.linalg.multi_dot(tensors),
}


class NoSuchOp(Exception):
    pass


def function(name):
    if name in SPECIAL:
        return SPECIAL[name]
    for home in torch.ops.aten, torch, F:
        try:
            return getattr(home, name)
        except AttributeError:
            pass
    raise NoSuchOp(name)


def flat(y):
    return [t for x in y for t in flat(x)] if isinstance(y, (tuple, list)) else [y]


class Call:
    def __init__(self, folder, mode):
        with open(os.path.join(folder, "call.json")) as f:
            spec = json.load(f)
        with open(os.path.join(folder, "operands"), "rb") as f:
            self.operands = bytearray(f.read() or b"\0" * 16)
        self.wrt, args = [], {}
        for a in spec["args"]:
            if "tensor" in a:
                args[a["name"]] = self.tensor(a["tensor"])
            elif "list" in a:
                args[a["name"]] = [self.tensor(t) for t in a["list"]]
            elif "dtype" in a:
                args[a["name"]] = DTYPES[a["dtype"]]
            else:
                args[a["name"]] = a["value"]
        special = spec["op"] in SPECIAL
        if not special and isinstance(args.get("reduction"), str):
            args["reduction"] = REDUCTIONS[args["reduction"]]
        self.sources = {t.untyped_storage().data_ptr() for v in args.values() for t in flat(v) if isinstance(t, torch.Tensor) and t.numel()}
        self.cotangents = [self.tensor(t) for t in spec["cotangents"] or []]
        self.sources |= {t.untyped_storage().data_ptr() for t in self.cotangents}
        self.fn = self.forward(function(spec["op"]), args)
        self.params = self.wrt
        if mode == "compile":
            torch._dynamo.reset()
            self.fn = torch.compile(self.fn, dynamic=False)

    def forward(self, op, args):
        def contiguous(t):
            # A view is copied: what it is compared with is a tensor of its own. Results of torch.compile do not say that they are.
            if isinstance(t, torch.Tensor) and (t._is_view() or not t.is_contiguous() or t.untyped_storage().data_ptr() in self.sources):
                return t.clone(memory_format=torch.contiguous_format)
            return t

        self.contiguous = contiguous
        if self.cotangents:
            return lambda: flat(op(**args))
        return lambda: [contiguous(t) for t in flat(op(**args))]

    def tensor(self, t):
        n = 1
        for d in t["dims"]:
            n *= d
        x = torch.frombuffer(self.operands, dtype=DTYPES[t["dtype"]], count=n, offset=t["offset"]) if n else torch.empty(0, dtype=DTYPES[t["dtype"]])
        x = x.reshape(t["dims"]).clone()
        if t["layout"] == "transposed":
            x = x.t()
        elif t["layout"] == "expanded":
            x = x.expand(t["full"])
        if t["grad"]:
            x = x.detach().requires_grad_()
            self.wrt.append(x)
        return x

    def run(self):
        if not self.cotangents:
            with torch.no_grad():
                self.out = self.fn()
            return
        outs = self.fn()
        live = [t for t in outs if t.is_floating_point()]
        pairs = [(t, c) for t, c in zip(live, self.cotangents) if t.requires_grad]
        if not pairs:
            raise NoSuchOp("no gradient")
        grads = torch.autograd.grad([t for t, _ in pairs], self.params, [c for _, c in pairs], allow_unused=True)
        with torch.no_grad():
            self.out = [self.contiguous(t) for t in [*outs, *grads]]

    def results(self, path):
        names = []
        with open(path, "wb") as f:
            for t in self.out:
                if t is None:
                    raise NoSuchOp("no gradient of an operand")
                t = torch.as_tensor(t).detach().resolve_conj().resolve_neg().contiguous()
                names.append(NAMES[t.dtype])
                f.write(memoryview(t.reshape(-1).view(torch.uint8).numpy()) if t.numel() else b"")
        return " ".join(names)


def turn(call, milliseconds):
    end = time.perf_counter_ns() + milliseconds * 1_000_000
    times = []
    while not times or time.perf_counter_ns() < end:
        begin = time.perf_counter_ns()
        call.run()
        times.append(time.perf_counter_ns() - begin)
    times.sort()
    return f"ok {len(times)} {times[len(times) // 2]} {times[0]}"


def serve(mode, folder, out):
    call = None
    for line in sys.stdin:
        request = line.split()
        try:
            if request[0] == "open":
                call = None
                call = Call(folder, mode)
                call.run()
                call.run()
                answer = "ok " + call.results(os.path.join(folder, "results"))
            elif request[0] == "turn":
                answer = turn(call, int(request[1]))
            else:
                call = None
                gc.collect()
                answer = "ok"
        except Exception as e:
            call = None
            answer = "error " + " ".join(f"{type(e).__name__}: {e}".split())[:300]
        print(answer, file=out, flush=True)


def main(mode, threads, folder):
    # What libraries print must not meet the answers.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    print("ready", f"torch {torch.__version__}", file=out, flush=True)
    serve(mode, folder, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
