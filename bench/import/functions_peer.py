"""A peer of bench/import --functions: runs functions of a file in PyTorch.

Arguments: eager or compile, the number of threads, the file, which has CASES (see functions.py), and "gradients" if
a run also takes the gradients of all inputs of floats, of the results' products with the cotangents that write draws.
It prints "ready VERSION" and answers, line by line:

    list               "ok NAME…"
    write NAME BASE    exports the function to BASE.pt2 and writes its inputs, cotangents and results to
                       BASE.safetensors: "ok", or "none" if nothing that it returns has a gradient
    open NAME BASE     "ok ERROR", the largest difference to those results over the largest element
    turn MS BATCH      "ok COUNT MEDIAN_NS LEAST_NS"
"""
import importlib.util, os, sys, time

mode, threads, file, gradients = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:] == ["gradients"]
# What libraries print must not meet the answers.
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import torch
from safetensors.torch import load_file, save_file

torch.set_num_threads(threads)
torch.set_grad_enabled(gradients)
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


class NoGradient(Exception):
    pass


def floats(tensors):
    return [t for t in tensors if t.is_floating_point()]


def with_gradients(f, args, cotangents):
    """A run of f whose results are those of f and the gradients of the floats among args, None where there are none."""
    wrt = [a.requires_grad_() for a in floats(args)]

    def run():
        outs = leaves(f(*args))
        pairs = [(o, c) for o, c in zip(floats(outs), cotangents) if o.requires_grad]
        if not pairs or not wrt:
            raise NoGradient("nothing that it returns has a gradient")
        return outs + list(torch.autograd.grad([o for o, _ in pairs], wrt, [c for _, c in pairs], allow_unused=True))

    return run


def write(name, base):
    f, args = make(name)
    with torch.no_grad():
        outs = leaves(f(*args))
        torch.export.save(torch.export.export(Module(f), args), base + ".pt2")
    tensors = {f"in{i}": a.contiguous() for i, a in enumerate(args)}
    if gradients:
        cotangents, wrt = [torch.randn_like(o) for o in floats(outs)], floats(args)
        tensors |= {f"cotangent{i}": c.contiguous() for i, c in enumerate(cotangents)}
        outs = with_gradients(f, args, cotangents)()
        outs[-len(wrt):] = [torch.zeros_like(a) if g is None else g for a, g in zip(wrt, outs[-len(wrt):])]
    tensors |= {f"out{i}": o.detach().contiguous().clone() for i, o in enumerate(outs)}
    save_file({k: t.detach() for k, t in tensors.items()}, base + ".safetensors")


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
    wanted = load_file(base + ".safetensors")
    run = lambda: f(*args)
    if gradients:
        run = with_gradients(f, args, [wanted[f"cotangent{i}"] for i in range(len(wanted)) if f"cotangent{i}" in wanted])
    run()
    outs = run() if gradients else leaves(run())
    return run, max(difference(o.detach(), wanted[f"out{i}"]) for i, o in enumerate(outs) if o is not None)  # None is of no gradient


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
    except NoGradient as e:
        print("none", e, file=out, flush=True)
    except Exception as e:
        print("error", " ".join(f"{type(e).__name__}: {e}".split())[:300], file=out, flush=True)
