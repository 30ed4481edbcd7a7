"""The workloads of bench/workloads/large.go and llama.go in PyTorch."""

import itertools
import math

import torch
import torch.nn.functional as F

import common
from common import Data


class Weights:
    """Makes the weights of a model in the order of bench/workloads."""

    def __init__(self):
        self.data, self.all = Data(), []

    def add(self, array):
        self.all.append(array)

    def pair(self, arrays):
        self.all += arrays

    def layer(self, dim):
        d = self.data
        for arrays in d.norm(dim), d.linear(dim, 3 * dim), d.linear(dim, dim), d.norm(dim), d.linear(dim, 4 * dim), d.linear(4 * dim, dim):
            self.all += arrays

    def conv_norm(self, inputs, outputs, size):
        self.add(self.data.floats(math.sqrt(6 / (inputs * size * size)), outputs, inputs, size, size))
        self.pair(self.data.norm(outputs))


class Model(torch.nn.Module):
    def __init__(self, weights, loss, put):
        super().__init__()
        self.params = torch.nn.ParameterList(put(w) for w in weights.all)
        self.loss = loss

    def forward(self, *inputs):
        return self.loss(iter(self.params), *inputs)


def heads(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


def transform(p, x, n, causal, approximate):
    n1, c1, wqkv, bqkv, wo, bo, n2, c2, wu, bu, wd, bd = itertools.islice(p, 12)
    norm = n1.shape
    q, k, v = F.linear(F.layer_norm(x, norm, n1, c1), wqkv, bqkv).chunk(3, -1)
    a = F.scaled_dot_product_attention(heads(q, n), heads(k, n), heads(v, n), is_causal=causal)
    x = x + F.linear(a.transpose(1, 2).flatten(2), wo, bo)
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, norm, n2, c2), wu, bu), approximate=approximate), wd, bd)


def gpt2(layers=12, dim=768, n=12, vocab=50257, batch=4, length=512):
    w = Weights()
    w.add(w.data.floats(0.05, vocab, dim)), w.add(w.data.floats(0.05, length, dim))
    for _ in range(layers):
        w.layer(dim)
    w.pair(w.data.norm(dim))
    text = torch.from_numpy(w.data.ints(batch * (length + 1), vocab)).reshape(batch, length + 1)

    def loss(p, x, y):
        words, places = next(p), next(p)
        t = F.embedding(x, words) + places
        for _ in range(layers):
            t = transform(p, t, n, True, "tanh")
        return F.cross_entropy(F.linear(F.layer_norm(t, (dim,), next(p), next(p)), words).flatten(0, 1), y)

    return w, loss, [text[:, :-1].contiguous(), text[:, 1:].flatten()]


def vit(layers=12, dim=768, n=12, image=224, patch=16, classes=1000, batch=4):
    w = Weights()
    x, y = w.data.floats(1, batch, 3, image, image), w.data.ints(batch, classes)
    w.add(w.data.floats(0.05, dim, 3, patch, patch)), w.add(w.data.floats(0.05, dim))
    w.add(w.data.floats(0.05, 1, 1, dim)), w.add(w.data.floats(0.05, (image // patch) ** 2 + 1, dim))
    for _ in range(layers):
        w.layer(dim)
    w.pair(w.data.norm(dim)), w.pair(w.data.linear(dim, classes))

    def loss(p, x, y):
        t = F.conv2d(x, next(p), next(p), stride=patch).flatten(2).transpose(1, 2)
        t = torch.cat([next(p).expand(batch, 1, dim), t], 1) + next(p)
        for _ in range(layers):
            t = transform(p, t, n, False, "none")
        return F.cross_entropy(F.linear(F.layer_norm(t[:, 0], (dim,), next(p), next(p)), next(p), next(p)), y)

    return w, loss, [torch.from_numpy(x), torch.from_numpy(y)]


STAGES = [(3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)]


def resnet50(image=224, batch=4):
    w = Weights()
    x, y = w.data.floats(2, batch, 3, image, image), w.data.ints(batch, 1000)
    w.conv_norm(3, 64, 7)
    inputs = 64
    for blocks, width, _ in STAGES:
        for i in range(blocks):
            w.conv_norm(inputs, width, 1), w.conv_norm(width, width, 3), w.conv_norm(width, 4 * width, 1)
            if i == 0:
                w.conv_norm(inputs, 4 * width, 1)
            inputs = 4 * width
    w.pair(w.data.linear(inputs, 1000))

    def conv(p, x, stride):
        filters = next(p)
        y = F.conv2d(x, filters, stride=stride, padding=filters.shape[-1] // 2)
        return F.batch_norm(y, None, None, next(p), next(p), training=True)

    def loss(p, x, y):
        t = F.max_pool2d(torch.relu(conv(p, x, 2)), 3, 2, 1)
        for blocks, _, first in STAGES:
            for i in range(blocks):
                stride = first if i == 0 else 1
                u = torch.relu(conv(p, torch.relu(conv(p, t, 1)), stride))
                u = conv(p, u, 1)
                t = torch.relu(u + (conv(p, t, stride) if i == 0 else t))
        return F.cross_entropy(F.linear(t.mean((2, 3)), next(p), next(p)), y)

    return w, loss, [torch.from_numpy(x), torch.from_numpy(y)]


def trained(torch_peer, make, optimizer):
    """Makes a workload of training steps, whose result is the loss of the last."""

    def opened():
        weights, loss, inputs = make()
        model = Model(weights, loss, torch_peer.put)
        weights.all.clear()
        inputs = [x.to(torch_peer.DEVICE) for x in inputs]
        compiled = torch_peer.MODE == "compile"
        opt = optimizer(model.parameters(), None if compiled else True)
        loss_of, update = model, opt.step
        if compiled:
            torch._dynamo.reset()
            loss_of, update = torch.compile(model, fullgraph=True, dynamic=False), torch.compile(opt.step)
        last = []

        def step():
            opt.zero_grad()
            out = loss_of(*inputs)
            out.backward()
            update()
            last[:] = [out.detach()]

        return common.Workload(step, lambda: torch_peer.fetch(last[0]).reshape(-1))

    return opened


def attention():
    d = Data()
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [d.floats(1, 8, 8, 4096, 64) for _ in range(3)], []


def embedding(torch_peer, rows=1_000_000, dim=64, batch=4096):
    def opened():
        if torch_peer.MODE != "eager":
            return None  # torch.compile makes the gradient dense
        d = Data()
        table = torch.nn.Parameter(torch_peer.put(d.floats(1, rows, dim)))
        w, at = torch_peer.put(d.floats(1, dim)), torch_peer.put(d.ints(batch, rows))
        opt = torch.optim.SGD([table], lr=0.01)
        last = []

        def step():
            opt.zero_grad()
            loss = (F.embedding(at, table, sparse=True) * w).sum(1).square().mean()
            loss.backward()
            opt.step()
            last[:] = [loss.detach()]

        return common.Workload(step, lambda: torch_peer.fetch(last[0]).reshape(-1))

    return opened


def packed(w, group):
    """Returns weights as nn.QuantizeLinear rounds them, in the packing and the scales of PyTorch's product."""
    out, inputs = w.shape
    g = w.reshape(out, inputs // group, group)
    least, most = g.amin(2, keepdim=True).clamp(max=0), g.amax(2, keepdim=True).clamp(min=0)
    scale = (most - least) * (1 / 15)
    scale = torch.where(scale == 0, 1, scale)
    zero = torch.round(-least / scale)
    q = torch.clamp(torch.round(g / scale) + zero, 0, 15).to(torch.int32).reshape(out, inputs)
    scales = torch.cat([scale, (8 - zero) * scale], 2).transpose(0, 1).contiguous()  # [groups, out, 2]
    return torch.ops.aten._convert_weight_to_int4pack_for_cpu(q, 1), scales


class Llama(torch.nn.Module):
    def __init__(self, layers=22, dim=2048, n=32, hidden=5632, vocab=32000, context=256, group=128):
        super().__init__()
        d = Data()
        self.n, self.size, self.dim, self.group, self.context, self.vocab = n, dim // n, dim, group, context, vocab

        def linear(inputs, outputs):
            return packed(torch.from_numpy(d.floats(1 / math.sqrt(inputs), outputs, inputs)), group)

        def norm():
            return torch.from_numpy(d.norm(dim)[0])

        self.words = torch.from_numpy(d.floats(1, vocab, dim))
        self.layers = []
        for _ in range(layers):
            one = [norm()] + [linear(dim, dim) for _ in range(4)] + [norm()] + [linear(dim, hidden), linear(dim, hidden), linear(hidden, dim)]
            caches = [torch.from_numpy(d.floats(1, n, context, self.size)) for _ in range(2)]
            self.layers.append((one, caches))
        self.last, self.head = norm(), linear(dim, vocab)
        self.all = torch.arange(context)
        rates = torch.exp(torch.arange(self.size // 2) * (-2 * math.log(10000) / self.size))
        angles = self.all[:, None].float() * rates
        self.cos, self.sin = angles.cos(), angles.sin()

    def linear(self, x, w):
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, w[0], self.group, w[1])

    def rotated(self, x, place):
        a, b = x.view(self.n, 1, self.size).chunk(2, -1)
        c, s = self.cos[place], self.sin[place]
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    def forward(self, place, token):
        def rms(x, w):
            return F.rms_norm(x, (self.dim,), w, 1e-5)

        x = F.embedding(token, self.words)
        mask = (self.all <= place).view(1, 1, 1, -1)
        for (n1, q, k, v, out, n2, gate, up, down), (keys, values) in self.layers:
            y = rms(x, n1)
            keys.index_copy_(1, place, self.rotated(self.linear(y, k), place))
            values.index_copy_(1, place, self.linear(y, v).view(self.n, 1, self.size))
            a = F.scaled_dot_product_attention(self.rotated(self.linear(y, q), place)[None], keys[None], values[None], attn_mask=mask)
            x = x + self.linear(a.reshape(1, self.dim), out)
            y = rms(x, n2)
            x = x + self.linear(F.silu(self.linear(y, gate)) * self.linear(y, up), down)
        return self.linear(rms(x, self.last), self.head)


def llama(torch_peer):
    def opened():
        if torch_peer.MODE != "eager" or torch_peer.CUDA:
            return None
        model, runs = Llama().eval(), itertools.count()

        def run():
            i = next(runs)
            start = model.context // 4
            with torch.inference_mode():
                return model(torch.tensor([start + i % (model.context - start)]), torch.tensor([i * 7919 % model.vocab]))

        return common.Stateless(run, torch_peer.fetch)

    return opened


def workloads(torch_peer):
    """Returns the workloads by name."""

    def adamw(params, fused):
        return torch.optim.AdamW(params, lr=1e-4, fused=fused)

    def sgd(params, fused):
        return torch.optim.SGD(params, lr=0.001, momentum=0.9, fused=fused)

    return {
        "gpt2-train": trained(torch_peer, gpt2, adamw),
        "vit-train": trained(torch_peer, vit, adamw),
        "resnet50-train": trained(torch_peer, resnet50, sgd),
        "llama-decode-i4": llama(torch_peer),
        "attention-long": torch_peer.function(attention),
        "embedding-train": embedding(torch_peer),
    }
