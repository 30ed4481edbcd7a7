"""Exports the programs of aoti/export/testdata and runs the packages in PyTorch.

    go build -o /tmp/loris ./cmd/loris/full && python scripts/aoti_export.py /tmp/loris [--inductor] [--seconds 10]
    LORIS_KEEP_PACKAGES=FOLDER go test ./aoti/export -run OfAllKinds && python scripts/aoti_export.py --packages FOLDER

It needs torch and nothing else. For each program: how far the results are from `loris run`, in units of the largest, through Python's
loader and through the C++ runner's binding; microseconds a run, of Inductor's package of the same model beside it where there is one
(--inductor; it takes half a minute each); bytes beyond the weights. Then runs beside updates and swaps, and whether a runner that is
deleted leaves a mapping. The second form runs packages that are there, each with the inputs and results beside it. It exits with 1 if
anything is off.
"""
import argparse, gc, glob, json, math, os, struct, subprocess, sys, tempfile, threading, time, zipfile

import torch
from torch._inductor import aoti_load_package

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32, "BOOL": torch.bool, "F16": torch.float16, "BF16": torch.bfloat16,
          "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "C64": torch.complex64}
NAMES = {v: k for k, v in DTYPES.items()}
LIR = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "bool": torch.bool, "f16": torch.float16, "bf16": torch.bfloat16}


def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8 : 8 + n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            raw = bytearray(data[8 + n + a : 8 + n + b])
            out[name] = (torch.frombuffer(raw, dtype=DTYPES[t["dtype"]]) if raw else torch.empty(0, dtype=DTYPES[t["dtype"]])).reshape(t["shape"])
    return out


def write(path, tensors):
    head, body = {}, b""
    for name, t in tensors.items():
        raw = t.contiguous().view(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        head[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)


def parameters(path):
    for line in open(path):
        if " = parameter " in line:
            name, typ = line.split('"')[1], line.split(":")[1].strip()
            dtype, dims = typ.split("[")
            dims = [int(d) for d in dims.rstrip("]").split(",") if d.strip()]
            yield name, LIR[dtype], dims


def sample(name, dtype, dims):
    if not dtype.is_floating_point:
        return torch.randint(0, 2, dims).to(dtype)
    return torch.randn(dims).to(dtype) / math.sqrt(math.prod(dims[1:-1]) * dims[0] if name.startswith("w") and len(dims) > 1 else 1)


def mlp(p):
    return lambda x: torch.softmax(torch.relu(x @ p["w1"] + p["wb1"]) @ p["w2"] + p["wb2"], -1)


def norm(p):
    def f(x):
        y = torch.softmax(torch.nn.functional.layer_norm(x, [96], p["w.gain"], p["w.bias"], 1e-5), -1)
        return y, y.sum([0, 1]), x.mean(), x.argmax(-1)
    return f


def large(p):
    def f(x):
        y = torch.softmax(torch.exp(torch.tanh(x)), -1) * p["w.gain"]
        return y, y.sum(), x.amax(0)
    return f


def encoder(p):
    F = torch.nn.functional
    def f(x):
        heads = lambda w: (n @ w).reshape(2, 16, 4, 16).permute(0, 2, 1, 3)
        n = F.layer_norm(x, [64], p["w.gain"], p["w.bias"])
        a = F.scaled_dot_product_attention(heads(p["w.q"]), heads(p["w.k"]), heads(p["w.v"]))
        r = x + a.permute(0, 2, 1, 3).reshape(2, 16, 64) @ p["w.o"] * 0.1
        return r + F.gelu(F.layer_norm(r, [64], p["w.gain"], p["w.bias"]) @ (p["w.up"] * 0.1)) @ (p["w.down"] * 0.1)
    return f


def conv(p):
    F = torch.nn.functional
    def f(x):
        y = F.max_pool2d(torch.relu(F.conv2d(x, p["w.conv1"], p["w.bias1"], padding=1)), 2)
        return F.max_pool2d(torch.relu(F.conv2d(y, p["w.conv2"], padding=1)), 2).reshape(2, 1152) @ p["w.linear"]
    return f


MODELS = {"mlp": mlp, "norm": norm, "large": large, "encoder": encoder, "conv": conv}


def micros(f, seconds=0.7):
    for _ in range(20):
        f()
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(20):
            f()
        best = min(best, (time.perf_counter() - start) / 20 * 1e6)
    return best


def inductor(model, weights, ins, out):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for k, v in weights.items():
                self.register_parameter(k.replace(".", "_"), torch.nn.Parameter(v, requires_grad=False))

        def forward(self, *x):
            return model({k: getattr(self, k.replace(".", "_")) for k in weights})(*x)

    return torch._inductor.aoti_compile_and_package(torch.export.export(M(), tuple(ins)), package_path=out)


def library(pkg, folder):
    with zipfile.ZipFile(pkg) as z:
        name = next(n for n in z.namelist() if n.endswith(".so"))
        return z.extract(name, folder)


def off(got, want):
    got = [got] if torch.is_tensor(got) else list(got)
    assert len(got) == len(want)
    worst = 0.0
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, (g.shape, w.shape, g.dtype, w.dtype)
        worst = max(worst, ((g.double() - w.double()).abs().max() / w.double().abs().max().clamp_min(1e-30)).item())
    return worst


def swap_test(so, ins, weights, seconds):
    r = torch._C._aoti.AOTIModelContainerRunnerCpu(so, 1)
    names = {v: k for k, v in r.get_constant_names_to_original_fqns().items()}
    sets = [{names[k]: v * s for k, v in weights.items()} for s in (1.0, 0.5)]
    wants = []
    for s in sets:
        r.update_constant_buffer(s, True, True)
        r.swap_constant_buffer()
        wants.append(r.run(ins)[0])
    end, counts = time.time() + seconds, [0, 0]
    def runs():
        while time.time() < end:
            y = r.run(ins)[0]
            counts[0] += 1
            counts[1] += not any(torch.allclose(y, w, rtol=1e-4, atol=1e-6) for w in wants)
    threads = [threading.Thread(target=runs) for _ in range(8)]
    [t.start() for t in threads]
    updates = 0
    before = None
    while time.time() < end:
        r.update_constant_buffer(sets[updates % 2], True, True)
        r.swap_constant_buffer()
        updates += 1
        if updates == 50:
            before = memory()
    [t.join() for t in threads]
    grown = memory() - before if before else 0
    mapped = lambda: sum(so in line for line in open("/proc/self/maps"))
    there = mapped()
    del r
    gc.collect()
    print(f"swap test: {counts[0]} runs in 8 threads beside {updates} updates and swaps in {seconds} s: {counts[1]} torn; memory grew by {grown >> 10} KiB; "
          f"mappings {there} before and {mapped()} after the runner was deleted")
    return counts[1] == 0 and mapped() == 0


def numbered(tensors, prefix):
    return [t for _, t in sorted((int(k[len(prefix):]), t) for k, t in tensors.items() if k.startswith(prefix))]


def ulps(got, want):
    """The largest difference of floats in units in the last place of the largest; infinite where anything else differs."""
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype)
    if not (want.dtype.is_floating_point or want.dtype.is_complex):
        return 0.0 if torch.equal(got, want) else math.inf
    epsilon = torch.finfo(want.dtype).eps
    wide = torch.complex128 if want.dtype.is_complex else torch.float64
    got, want = got.to(wide).flatten(), want.to(wide).flatten()
    same = (got == want) | (got.isnan() & want.isnan())
    finite = want.abs()[want.isfinite()]
    if same.all():
        return 0.0
    return ((got - want).abs()[~same].max() / finite.max().clamp_min(1e-300) / epsilon).item()


def run_packages(folder):
    """Runs packages on the inputs beside them; the results must be those beside them, to 8 units in the last place of the largest."""
    print(f"PyTorch {torch.__version__}\n\n| package | outputs | off, units in the last place |\n|---|---|---|")
    good = True
    for path in sorted(glob.glob(os.path.join(folder, "*.pt2"))):
        tensors = read(path[:-3] + "safetensors")
        name = os.path.basename(path)[:-4]
        try:
            with torch.no_grad():
                got = aoti_load_package(path)(*numbered(tensors, "in"))
            got, want = [got] if torch.is_tensor(got) else list(got), numbered(tensors, "out")
            assert len(got) == len(want), (len(got), len(want))
            worst = max((ulps(g, w) for g, w in zip(got, want)), default=0.0)
            print(f"| {name} | {len(want)} | {worst:.1f} |", flush=True)
            good = good and worst <= 8
        except Exception as e:
            print(f"| {name} | | {type(e).__name__}: {str(e)[:200]} |", flush=True)
            good = False
    sys.exit(not good)


def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4096


def main():
    a = argparse.ArgumentParser()
    a.add_argument("loris", nargs="?")
    a.add_argument("--packages", metavar="FOLDER")
    a.add_argument("--inductor", action="store_true")
    a.add_argument("--seconds", type=float, default=10)
    a = a.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    if a.packages:
        run_packages(a.packages)
    if not a.loris:
        sys.exit("which loris?")
    good = True
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads\n\n| program | export ms | bytes beyond weights | off, Python | off, C++ | µs a run, C++ | Inductor's µs | its compile s |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for program in sorted(glob.glob("aoti/export/testdata/*.lir")):
            name = os.path.basename(program)[:-4]
            at = lambda x: os.path.join(folder, name + x)
            params = {n: sample(n, d, s) for n, d, s in parameters(program)}
            weights = {k: v for k, v in params.items() if k.startswith("w")}
            ins = [v for k, v in params.items() if not k.startswith("w")]
            write(at(".all"), params)
            write(at(".weights"), weights)
            subprocess.run([a.loris, "run", program, "--in", at(".all"), "--out", at(".want")], check=True)
            start = time.perf_counter()
            subprocess.run([a.loris, "aoti", "export", program, "-o", at(".pt2")] + (["--weights", at(".weights")] if weights else []), check=True, stdout=subprocess.DEVNULL)
            took = (time.perf_counter() - start) * 1e3
            want = [t for _, t in sorted(read(at(".want")).items(), key=lambda item: int(item[0][3:]))]
            python = off(aoti_load_package(at(".pt2"))(*ins), want)
            r = torch._C._aoti.AOTIModelContainerRunnerCpu(library(at(".pt2"), at(".d")), 1)
            cpp = off(r.run(ins), want)
            ours, theirs, compiled = micros(lambda: r.run(ins)), float("nan"), float("nan")
            if a.inductor and name in MODELS:
                start = time.perf_counter()
                pkg = inductor(MODELS[name], weights, ins, at(".inductor.pt2"))
                compiled = time.perf_counter() - start
                i = torch._C._aoti.AOTIModelContainerRunnerCpu(library(pkg, at(".i")), 1)
                theirs = micros(lambda: i.run(ins))
                ours = min(ours, micros(lambda: r.run(ins)))
            beyond = os.path.getsize(at(".pt2")) - sum(v.numel() * v.element_size() for v in weights.values())
            print(f"| {name} | {took:.0f} | {beyond} | {python:.1e} | {cpp:.1e} | {ours:.1f} | {theirs:.1f} | {compiled:.1f} |", flush=True)
            good = good and max(python, cpp) < 5e-6
            if name == "mlp":
                swap = (glob.glob(at(".d") + "/**/*.so", recursive=True)[0], ins, weights)
            del r
        good = swap_test(*swap, a.seconds) and good
    sys.exit(not good)


if __name__ == "__main__":
    main()
