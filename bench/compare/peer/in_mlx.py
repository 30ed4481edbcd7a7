"""MLX on the CPU: lazy arrays, evaluated at the end of each run."""

import itertools
import os
from importlib.metadata import version

import mlx.core as mx
import numpy as np

import common
from common import Data

FOLDER = os.path.dirname(os.path.abspath(__file__))


def start(mode, threads):
    mx.set_default_device(mx.cpu)
    return f"mlx {version('mlx')}"


def arrays(tree):
    if isinstance(tree, np.ndarray):
        return mx.array(tree)
    return [arrays(t) for t in tree]


def function(make):
    def opened():
        fn, args = make()
        args = arrays(list(args))
        mx.eval(args)

        def call():
            y = fn(*args)
            mx.eval(y)
            return y

        return common.Stateless(call, np.array)

    return opened


def relu(x):
    return mx.maximum(x, 0)


def pointwise(n):
    def make():
        d = Data()
        args = d.floats(3, n), d.floats(1, n), d.floats(1, n)
        return lambda x, w, b: mx.tanh(x * w + b) * mx.sigmoid(x) + relu(x - w), args

    return make


def softmax():
    return lambda x: mx.softmax(x, -1), [Data().floats(4, 4096, 1024)]


def norm(x, w, b):
    return mx.fast.layer_norm(x, w, b, 1e-5)


def layer_norm():
    d = Data()
    return norm, [d.floats(4, 4096, 1024), d.floats(1, 1024), d.floats(1, 1024)]


def matmul(*shapes):
    def make():
        d = Data()
        return mx.matmul, [d.floats(1, *s) for s in shapes]

    return make


def last_channels(w):
    """Images and filters have their channels last."""
    return np.ascontiguousarray(np.moveaxis(w, 1, -1))


def conv():
    d = Data()
    args = last_channels(d.floats(1, 8, 64, 56, 56)), last_channels(d.floats(1 / 24, 64, 64, 3, 3))
    return lambda x, w: mx.moveaxis(mx.conv2d(x, w, padding=1), -1, 1), args


def linear(x, w, b):
    return mx.addmm(b, x, w.T)


def attend(q, k, v, mask=None):
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5, mask=mask)


def encode(x, weights):
    wqkv, bqkv, wo, bo, wu, bu, wd, bd, n1, c1, n2, c2 = weights
    heads = [h.reshape(4, 128, 8, 64).transpose(0, 2, 1, 3) for h in mx.split(linear(x, wqkv, bqkv), 3, -1)]
    a = attend(*heads).transpose(0, 2, 1, 3).reshape(4, 128, 512)
    y = norm(x + linear(a, wo, bo), n1, c1)
    return norm(y + linear(relu(linear(y, wu, bu)), wd, bd), n2, c2)


def encoder():
    return encode, list(Data().encoder())


def see(x, convs, last):
    convs = iter(convs)

    def conv(x, stride, padding):
        w, scale, bias, mean, variance = next(convs)
        k = scale * mx.rsqrt(variance + 1e-5)
        return mx.conv2d(x, w, stride=stride, padding=padding) * k + (bias - mean * k)

    x = mx.pad(relu(conv(x, 2, 3)), [(0, 0), (1, 1), (1, 1), (0, 0)])
    size = 56
    parts = [x[:, i : i + 2 * size : 2, j : j + 2 * size : 2] for i in range(3) for j in range(3)]
    x = parts[0]
    for p in parts[1:]:
        x = mx.maximum(x, p)
    for _, _, stride in common.BLOCKS:
        y = relu(conv(x, stride, 1))
        y = conv(y, 1, 1)
        x = relu(y + (conv(x, stride, 0) if stride != 1 else x))
    return linear(x.mean((1, 2)), *last)


def resnet():
    x, convs, last = Data().resnet()
    return see, [last_channels(x), [[last_channels(c[0])] + c[1:] for c in convs], last]


def chain_recorded():
    def add_chain(x):
        y = x
        for _ in range(common.CHAIN):
            y = y + x
        return y

    return add_chain, [Data().floats(1, common.CHAIN_SIZE)]


def loss_of(params, x, y, drop):
    n = len(params)
    for i in range(0, n, 2):
        x = linear(x, params[i], params[i + 1])
        if i < n - 2:
            x = relu(x)
            if drop:
                x = mx.where(mx.random.bernoulli(1 - drop, x.shape), x / (1 - drop), 0)
    return (mx.logsumexp(x, -1) - mx.take_along_axis(x, y[:, None], -1)[:, 0]).mean()


def mlp():
    d = Data()
    params = arrays(d.perceptron(784, 512, 512, 10))
    state = [params, [mx.zeros_like(p) for p in params]]
    x, y = mx.array(d.floats(1, 128, 784)), mx.array(d.ints(128, 10))

    def run():
        params, momenta = state
        grads = mx.grad(loss_of)(params, x, y, 0)
        momenta = [0.9 * m + g for m, g in zip(momenta, grads)]
        state[:] = [p - 0.01 * m for p, m in zip(params, momenta)], momenta
        mx.eval(state)

    return common.Workload(run, lambda: np.array(state[0][-2]).reshape(-1))


def digits():
    pixels, labels = common.digits(FOLDER)

    def fresh():
        params = arrays(Data().perceptron(64, 128, 64, 10))
        return params, [mx.zeros_like(p) for p in params], [mx.zeros_like(p) for p in params], 0

    def step(state, x, y, drop):
        params, first, second, count = state
        grads = mx.grad(loss_of)(params, mx.array(x), mx.array(y), drop)
        count += 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, grads)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads)]
        rate, root = common.DIGITS_RATE / (1 - 0.9**count), (1 - 0.999**count) ** 0.5
        params = [p - rate * m / (mx.sqrt(v) / root + 1e-8) for p, m, v in zip(params, first, second)]
        mx.eval(params, first, second)
        return params, first, second, count

    def epoch(state, drop):
        for x, y in common.batches(pixels, labels):
            state = step(state, x, y, drop)
        return state

    state = [fresh()]

    def run():
        state[0] = epoch(state[0], common.DIGITS_DROP)

    return common.Workload(run, lambda: np.array(epoch(fresh(), 0)[0][-2]).reshape(-1))


def gpt2():
    words, places, layers, caches, last = (arrays(t) for t in Data().gpt2())
    mx.eval(words, places, layers, caches, last)
    runs, positions = itertools.count(), mx.arange(common.CONTEXT)

    def run():
        place, token = common.gpt2_token(next(runs))
        x = (words[token] + places[place])[None]
        mask = positions[None, None, None] <= place
        for (n1, c1, wqkv, bqkv, wo, bo, n2, c2, wu, bu, wd, bd), cache in zip(layers, caches):
            q, k, v = linear(norm(x, n1, c1), wqkv, bqkv).reshape(3, common.HEADS, 1, common.SIZE)
            for kept, new in zip(cache, (k, v)):
                kept[:, place : place + 1] = new
            a = attend(q[None], cache[0][None], cache[1][None], mask)
            x = x + linear(a.reshape(1, common.DIM), wo, bo)
            u = linear(norm(x, n2, c2), wu, bu)
            u = 0.5 * u * (1 + mx.tanh(0.7978845608028654 * (u + 0.044715 * u * u * u)))
            x = x + linear(u, wd, bd)
        logits = norm(x, *last) @ words.T
        mx.eval(logits, caches)
        return logits

    return common.Stateless(run, np.array)


FUNCTIONS = common.functions(pointwise, softmax, layer_norm, matmul, encoder, conv, resnet)
FUNCTIONS["chain-recorded"] = chain_recorded

WORKLOADS = {name: function(make) for name, make in FUNCTIONS.items()}
WORKLOADS |= {"mlp-step": mlp, "digits-epoch": digits, "digits-compiled": digits, "gpt2-decode": gpt2}
