"""PyTorch: eager, torch.compile, AOTInductor, and its lazy device; on the CPU or a GPU."""

import itertools
import os
import sys
import tempfile

import torch
import torch._lazy
import torch.nn.functional as F

import common
import large
from common import Data

MODE = "eager"
FOLDER = os.path.dirname(os.path.abspath(__file__))
DEVICE = torch.device(common.DEVICE)
CUDA = DEVICE.type == "cuda"
finish = torch.cuda.synchronize if CUDA else None


def start(mode, threads):
    global MODE
    MODE = mode
    torch.set_num_threads(threads)
    if CUDA:  # f32 means f32 in all systems
        torch.cuda.set_device(DEVICE)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    if MODE == "lazy":
        import torch._lazy.ts_backend as ts_backend

        ts_backend.init()
    return f"torch {torch.__version__}"


DTYPE = torch.float32  # of the workload's floats


def put(array):
    t = torch.from_numpy(array).to(DEVICE)
    return t.to(DTYPE) if t.is_floating_point() else t


def fetch(tensor):
    return tensor.detach().cpu().float().numpy()


class Module(torch.nn.Module):
    """A function of inputs and weights, which the module owns, as a model does."""

    def __init__(self, fn, weights):
        super().__init__()
        self.fn, self.n = fn, len(weights)
        for i, w in enumerate(weights):
            self.register_buffer(f"w{i}", put(w))

    def forward(self, *inputs):
        return self.fn(*inputs, *(getattr(self, f"w{i}") for i in range(self.n)))


def called(fn, inputs, weights=()):
    """Returns a function of the inputs in this peer's way."""
    module = Module(fn, weights).eval()
    if MODE == "eager":
        return module
    if MODE == "compile":
        torch._dynamo.reset()
        return torch.compile(module, fullgraph=True, dynamic=False)
    with torch.no_grad():
        program = torch.export.export(module, tuple(inputs))
    path = os.path.join(tempfile.mkdtemp(dir=FOLDER), "model.pt2")
    torch._inductor.aoti_compile_and_package(program, package_path=path)
    # loader.run takes and returns flat lists, without the tree of the Python call.
    loader = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
    return lambda *args: loader.run(list(args))[0]


def function(make):
    """Makes a workload of make, which returns a function, its inputs and its weights."""

    def opened():
        fn, inputs, weights = make()
        inputs = [put(x) for x in inputs]
        f = called(fn, inputs, weights)

        def call():
            with torch.inference_mode() if MODE == "eager" else torch.no_grad():
                return f(*inputs)

        return common.Stateless(call, fetch)

    return opened


def pointwise(n):
    def make():
        d = Data()
        inputs = d.floats(3, n), d.floats(1, n), d.floats(1, n)
        return lambda x, w, b: torch.tanh(x * w + b) * torch.sigmoid(x) + torch.relu(x - w), inputs, []

    return make


def softmax():
    return lambda x: torch.softmax(x, -1), [Data().floats(4, 4096, 1024)], []


def layer_norm():
    d = Data()
    x = d.floats(4, 4096, 1024)
    return lambda x, w, b: F.layer_norm(x, (1024,), w, b), [x], [d.floats(1, 1024), d.floats(1, 1024)]


def matmul(*shapes):
    def make():
        d = Data()
        return torch.matmul, [d.floats(1, *s) for s in shapes], []

    return make


def conv():
    d = Data()
    x = d.floats(1, 8, 64, 56, 56)
    return lambda x, w: F.conv2d(x, w, padding=1), [x], [d.floats(1 / 24, 64, 64, 3, 3)]


def heads(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def encode(x, wqkv, bqkv, wo, bo, wu, bu, wd, bd, n1, c1, n2, c2):
    q, k, v = F.linear(x, wqkv, bqkv).chunk(3, -1)
    a = F.scaled_dot_product_attention(heads(q, 8), heads(k, 8), heads(v, 8))
    y = F.layer_norm(x + F.linear(a.transpose(1, 2).flatten(2), wo, bo), (512,), n1, c1)
    return F.layer_norm(y + F.linear(torch.relu(F.linear(y, wu, bu)), wd, bd), (512,), n2, c2)


def encoder():
    x, weights = Data().encoder()
    return encode, [x], weights


def see(x, *weights):
    """ResNet-18, its convolutions in order of use."""
    convs = iter([weights[i : i + 5] for i in range(0, len(weights) - 2, 5)])

    def conv(x, stride, padding):
        w, scale, bias, mean, variance = next(convs)
        return F.batch_norm(F.conv2d(x, w, stride=stride, padding=padding), mean, variance, scale, bias)

    x = F.max_pool2d(torch.relu(conv(x, 2, 3)), 3, 2, 1)
    for _, _, stride in common.BLOCKS:
        y = torch.relu(conv(x, stride, 1))
        y = conv(y, 1, 1)
        x = torch.relu(y + (conv(x, stride, 0) if stride != 1 else x))
    return F.linear(x.mean((2, 3)), *weights[-2:])


def resnet():
    x, convs, last = Data().resnet()
    return see, [x], [w for c in convs for w in c] + last


def add_chain(x):
    y = x
    for _ in range(common.CHAIN):
        y = y + x
    return y


def chain_recorded():
    x = put(Data().floats(1, common.CHAIN_SIZE))
    if MODE != "lazy":
        return common.Stateless(torch.inference_mode()(lambda: add_chain(x)), fetch)
    x = x.to("lazy")

    def run():
        y = add_chain(x)
        torch._lazy.mark_step(wait=True)
        return y

    return common.Stateless(run, fetch)


def first_compile(graph):
    """Makes a workload of graph, which computes the graph of a number."""

    def opened():
        if MODE != "compile":
            return None
        # A graph that an earlier run of this program has left on disk is not new.
        torch._inductor.config.force_disable_caches = True
        x = put(Data().floats(1, common.CHAIN_SIZE))
        numbers = itertools.count(1)

        def run(number):
            torch._dynamo.reset()
            return torch.compile(graph(number), dynamic=False)(x)

        return common.Workload(lambda: run(next(numbers)), lambda: fetch(run(0)))

    return opened


def thousand_ops(number):
    subtract = common.first_compile_ops(number)

    def fn(x):
        y = x
        for s in subtract:
            y = y - x if s else y + x
            y = torch.sigmoid(torch.tanh(y) * x)
        return y

    return fn


def sixteen_ops(number):
    which = [(torch.tanh, torch.sigmoid, torch.sin, torch.cos)[i] for i in common.first_small_ops(number)]

    def fn(x):
        for op in which:
            x = op(x)
        return x

    return fn


class Perceptron(torch.nn.Module):
    def __init__(self, params):
        super().__init__()
        self.params = torch.nn.ParameterList(put(p.copy()) for p in params)

    def forward(self, x, y, drop: float):
        n = len(self.params)
        for i in range(0, n, 2):
            x = F.linear(x, self.params[i], self.params[i + 1])
            if i < n - 2:
                x = torch.relu(x)
                if drop:
                    x = F.dropout(x, drop)
        return F.cross_entropy(x, y)


def trainer(params, optimizer):
    """Returns the model and its training step, both compiled where this peer does so."""
    model = Perceptron(params)
    opt = optimizer(model.parameters())
    loss_of, update = model, opt.step
    if MODE == "compile":
        torch._dynamo.reset()
        loss_of = torch.compile(model, fullgraph=True, dynamic=False)
        update = torch.compile(opt.step)

    def step(x, y, drop=0.0):
        opt.zero_grad()
        loss_of(x, y, drop).backward()
        update()

    return model, step


def last_weights(model):
    return fetch(model.params[-2]).reshape(-1)


def mlp():
    d = Data()
    params = d.perceptron(784, 512, 512, 10)
    x, y = put(d.floats(1, 128, 784)), put(d.ints(128, 10))
    fused = True if MODE == "eager" else None  # Inductor fuses by itself
    model, step = trainer(params, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, fused=fused))
    return common.Workload(lambda: step(x, y), lambda: last_weights(model))


def digits():
    pixels, labels = common.digits(FOLDER)
    list_of = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in common.batches(pixels, labels)]
    fused = True if MODE == "eager" else None

    def fresh():
        return trainer(Data().perceptron(64, 128, 64, 10), lambda p: torch.optim.Adam(p, lr=common.DIGITS_RATE, fused=fused))

    _, step = fresh()

    def epoch(step, drop):
        for x, y in list_of:
            step(x.to(DEVICE), y.to(DEVICE), drop)

    def results():
        model, step = fresh()
        epoch(step, 0.0)
        return last_weights(model)

    checked = results()  # first, because making a trainer forgets what was compiled
    _, step = fresh()
    return common.Workload(lambda: epoch(step, common.DIGITS_DROP), lambda: checked)


class GPT2(torch.nn.Module):
    def __init__(self):
        super().__init__()
        words, places, layers, caches, last = Data().gpt2()
        self.put("words", words), self.put("places", places)
        for i, one in enumerate(layers):
            for k, w in enumerate(one):
                self.put(f"l{i}_{k}", w)
            self.put(f"k{i}", caches[i][0]), self.put(f"v{i}", caches[i][1])
        self.put("last_w", last[0]), self.put("last_b", last[1])
        self.put_tensor("all", torch.arange(common.CONTEXT, device=DEVICE))

    def put(self, name, array):
        self.put_tensor(name, put(array))

    def put_tensor(self, name, t):
        self.register_buffer(name, t)

    def forward(self, place, token):
        x = F.embedding(token, self.words) + F.embedding(place, self.places)
        mask = (self.all <= place).view(1, 1, 1, -1)
        norm = (common.DIM,)
        for i in range(common.LAYERS):
            n1, c1, wqkv, bqkv, wo, bo, n2, c2, wu, bu, wd, bd = (getattr(self, f"l{i}_{k}") for k in range(12))
            q, k, v = F.linear(F.layer_norm(x, norm, n1, c1), wqkv, bqkv).view(3, common.HEADS, 1, common.SIZE).unbind()
            keys, values = getattr(self, f"k{i}"), getattr(self, f"v{i}")
            keys.index_copy_(1, place, k)
            values.index_copy_(1, place, v)
            a = F.scaled_dot_product_attention(q[None], keys[None], values[None], attn_mask=mask)
            x = x + F.linear(a.reshape(1, common.DIM), wo, bo)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, norm, n2, c2), wu, bu), approximate="tanh"), wd, bd)
        return F.linear(F.layer_norm(x, norm, self.last_w, self.last_b), self.words)


def gpt2():
    runs = itertools.count()
    # Compiling and exporting run nothing, so the caches are as they were.
    model = GPT2().eval()
    if MODE == "compile":
        torch._dynamo.reset()
        call = torch.compile(model, fullgraph=True, dynamic=False)
    elif MODE == "aoti":
        call = called(model, [torch.zeros(1, dtype=torch.int64, device=DEVICE) for _ in range(2)])
    else:
        call = model

    def run():
        place, token = common.gpt2_token(next(runs))
        with torch.no_grad():
            return call(torch.tensor([place], device=DEVICE), torch.tensor([token], device=DEVICE))

    return common.Stateless(run, fetch)


class SmallGPT(torch.nn.Module):
    def __init__(self, data):
        super().__init__()
        self.params = torch.nn.ParameterList(put(p.copy()) for p in data.small_gpt())

    def forward(self, tokens):
        def attend(_, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return self.body(F.embedding(tokens, self.params[0]) + self.params[1][: tokens.shape[-1]], attend)

    def body(self, x, attend):
        p = iter(self.params)
        words, _, last = next(p), next(p), (next(p), next(p))
        norm = (common.SMALL_DIM,)
        for i in range(common.SMALL_LAYERS):
            n1, c1, wqkv, bqkv, wo, bo, n2, c2, wu, bu, wd, bd = itertools.islice(p, 12)
            qkv = F.linear(F.layer_norm(x, norm, n1, c1), wqkv, bqkv).unflatten(-1, (3, common.SMALL_HEADS, -1))
            a = attend(i, *qkv.permute(2, 0, 3, 1, 4).unbind())
            x = x + F.linear(a.transpose(1, 2).flatten(2), wo, bo)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, norm, n2, c2), wu, bu)), wd, bd)
        return F.linear(F.layer_norm(x, norm, *last), words)


def gpt_train():
    d = Data()
    model = SmallGPT(d)
    text = put(d.ints(16 * 129, common.SMALL_VOCAB)).reshape(16, 129)
    x, y = text[:, :-1].contiguous(), text[:, 1:].flatten()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True if MODE == "eager" else None)

    def loss(x, y):
        return F.cross_entropy(model(x).flatten(0, 1), y)

    loss_of, update = loss, opt.step
    if MODE == "compile":
        torch._dynamo.reset()
        loss_of, update = torch.compile(loss, fullgraph=True, dynamic=False), torch.compile(opt.step)

    def step():
        opt.zero_grad()
        loss_of(x, y).backward()
        update()

    return common.Workload(step, lambda: fetch(model.params[0]).reshape(-1))


class DecodingGPT(SmallGPT):
    def __init__(self, data):
        super().__init__(data)
        for i, (k, v) in enumerate(data.small_caches()):
            self.register_buffer(f"k{i}", put(k)), self.register_buffer(f"v{i}", put(v))
        self.register_buffer("all", torch.arange(common.SMALL_CONTEXT, device=DEVICE))

    def forward(self, place, token):
        mask = (self.all <= place).view(1, 1, 1, -1)

        def attend(i, q, k, v):
            keys, values = getattr(self, f"k{i}"), getattr(self, f"v{i}")
            keys.index_copy_(1, place, k[0])
            values.index_copy_(1, place, v[0])
            return F.scaled_dot_product_attention(q, keys[None], values[None], attn_mask=mask)

        return self.body((F.embedding(token, self.params[0]) + F.embedding(place, self.params[1]))[None], attend)[0]


def gpt_decode():
    runs = itertools.count()
    call = model = DecodingGPT(Data()).eval()
    if MODE == "compile":
        torch._dynamo.reset()
        call = torch.compile(model, fullgraph=True, dynamic=False)

    def run():
        place, token = common.small_token(next(runs))
        with torch.inference_mode() if MODE == "eager" else torch.no_grad():
            return call(torch.tensor([place], device=DEVICE), torch.tensor([token], device=DEVICE))

    return common.Stateless(run, fetch)


def gpt_varying():
    runs = itertools.count()
    model = SmallGPT(Data()).eval()
    call = model
    if MODE == "compile":
        torch._dynamo.reset()
        call = torch.compile(model, fullgraph=True, dynamic=True)

    def run():
        batch, length = common.varying_size(next(runs))
        tokens = (torch.arange(batch * length, device=DEVICE) * 31 % common.SMALL_VOCAB).reshape(batch, length)
        with torch.inference_mode() if MODE == "eager" else torch.no_grad():
            return call(tokens)[:, -1]

    return common.Stateless(run, fetch)


def gru_gradients():
    x, h, weights = Data().recurrent(3, 1)
    x, h, weights = put(x), put(h[0]), [put(w).requires_grad_() for w in weights]

    def gradients(x, h, *weights):
        y, _ = torch.gru(x, h, weights, True, 1, 0.0, True, False, False)
        return y.square().mean()

    loss_of = gradients
    if MODE == "compile":
        torch._dynamo.reset()
        loss_of = torch.compile(gradients, fullgraph=True, dynamic=False)

    def run():
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss_of(x, h, *weights), weights)])

    return common.Stateless(run, fetch)


def lstm():
    x, states, weights = Data().recurrent(4, 2)
    return lambda x, h, c, *w: torch.lstm(x, (h, c), w, True, 1, 0.0, False, False, False)[0], [x, *states], weights


def peak(workload):
    """The largest sum of allocations less frees in a run, from the profiler's records."""
    if CUDA or MODE not in ("eager", "compile"):
        return None
    workload.run()
    workload.forget()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as p:
        workload.run()
    events = [e for e in p.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = most = 0
    for e in sorted(events, key=lambda e: e.start_ns()):
        live += e.nbytes()
        most = max(most, live)
    return most


def limits():
    """The most of products and of copies from memory to memory, in FLOP and bytes a second, on a GPU."""
    if not CUDA:
        return None
    a = torch.randn(8192, 8192, device=DEVICE)
    x, y = torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE), torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE)

    def least(f):
        times = []
        for _ in range(10):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            f()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        return min(times)

    return 2 * 8192**3 / least(lambda: a @ a), 2 * (1 << 30) / least(lambda: y.copy_(x))


FUNCTIONS = common.functions(pointwise, softmax, layer_norm, matmul, encoder, conv, resnet)
FUNCTIONS["chain-compiled"] = lambda: (add_chain, [Data().floats(1, common.CHAIN_SIZE)], [])
FUNCTIONS["lstm-inference"] = lstm


def rounded(make):
    """Makes a workload whose numbers are bfloat16."""

    def opened():
        global DTYPE
        DTYPE = torch.bfloat16
        try:
            return make()
        finally:
            DTYPE = torch.float32

    return opened


WORKLOADS = {name: function(make) for name, make in FUNCTIONS.items()}
WORKLOADS |= {"gpt2-decode": gpt2, "chain-recorded": chain_recorded, "first-compile": first_compile(thousand_ops), "first-compile-small": first_compile(sixteen_ops)}
if "torch-aoti" not in sys.argv:  # which exports no training
    WORKLOADS |= {"mlp-step": mlp, "digits-epoch": digits, "digits-compiled": digits}
    WORKLOADS |= large.workloads(sys.modules[__name__])
    WORKLOADS |= {"gpt-train": gpt_train, "gpt-decode": gpt_decode, "gpt-varying": gpt_varying, "gru-gradients": gru_gradients}
WORKLOADS |= {f"{name}-bf16": rounded(WORKLOADS[name]) for name in ("mlp-step", "encoder-block") if name in WORKLOADS}
if "torch-lazy" in sys.argv:  # which is slow elsewhere, or falls back to the CPU
    WORKLOADS = {"chain-recorded": chain_recorded}
