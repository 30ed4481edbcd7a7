"""A peer of bench/import --functions: runs functions of a file in PyTorch.

Arguments: eager or compile, the number of threads, and the file, which has CASES (see functions.py). It prints "ready
VERSION" and answers, line by line:

    list               "ok NAME…"
    write NAME BASE    exports the function to BASE.pt2 and writes its inputs and results to BASE.safetensors: "ok"
    open NAME BASE     "ok ERROR", the largest difference to those results over the largest element
    turn MS BATCH      "ok COUNT MEDIAN_NS LEAST_NS"
"""
import importlib.util, os, sys, time

mode, threads, file = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# What libraries print must not meet the answers.
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import torch
from safetensors.torch import load_file, save_file

torch.set_num_threads(threads)
torch.set_grad_enabled(False)
sys.path.insert(0, os.path.dirname(file))  # where cases.py is
spec = importlib.util.spec_from_file_location("functions", file)
functions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(functions)
leaves = torch.utils._pytree.tree_leaves


class Module(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def make(name):
    torch.manual_seed(0)
    return functions.CASES[name]()


def write(name, base):
    f, args = make(name)
    tensors = {f"in{i}": a.contiguous() for i, a in enumerate(args)}
    tensors |= {f"out{i}": o.contiguous().clone() for i, o in enumerate(leaves(f(*args)))}
    save_file(tensors, base + ".safetensors")
    torch.export.save(torch.export.export(Module(f), args), base + ".pt2")


def difference(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    largest = torch.where(b.isfinite(), b, 0).abs().max()
    return (torch.where(same, 0.0, (a - b).abs()).max() / largest.clamp(min=1e-300)).item()


def open_function(name, base):
    f, args = make(name)
    if mode == "compile":
        torch._dynamo.reset()
        f = torch.compile(f, dynamic=False)
    run = lambda: f(*args)
    run()
    wanted = load_file(base + ".safetensors")
    return run, max(difference(o, wanted[f"out{i}"]) for i, o in enumerate(leaves(run())))


def answer(word, rest):
    global run
    if word == "list":
        return " ".join(functions.CASES)
    if word == "write":
        return write(*rest)
    if word == "open":
        run = None
        run, worst = open_function(*rest)
        return worst
    times, end = [], time.perf_counter_ns() + int(rest[0]) * 1_000_000
    while not times or time.perf_counter_ns() < end:
        begin = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begin)
    return f"{len(times)} {sorted(times)[len(times) // 2]} {min(times)}"


print("ready", torch.__version__, file=out, flush=True)
run = None
for line in sys.stdin:
    word, *rest = line.split()
    try:
        text = answer(word, rest)
        print("ok", "" if text is None else text, file=out, flush=True)
    except Exception as e:
        print("error", " ".join(f"{type(e).__name__}: {e}".split())[:300], file=out, flush=True)
