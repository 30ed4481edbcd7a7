"""JAX on the CPU or a GPU: every function under jax.jit, state donated."""

import itertools
import os
from functools import partial

import common
from common import Data

FOLDER = os.path.dirname(os.path.abspath(__file__))
os.environ["JAX_PLATFORMS"] = common.DEVICE.partition(":")[0]

import jax  # noqa: E402  (it counts the processors when it is imported)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402


def start(mode, threads):
    if common.DEVICE != "cpu":
        jax.config.update("jax_default_matmul_precision", "highest")  # f32 means f32 in all systems
        jax.config.update("jax_default_device", jax.devices()[int(common.DEVICE.partition(":")[2] or 0)])
    return f"jax {jax.__version__}"


def arrays(tree):
    return jax.tree.map(jnp.asarray, tree)


latest = []


def later(results):
    """Keeps what a run makes, for finish, and returns it."""
    latest[:] = [results]
    return results


def finish():
    """Waits for the runs."""
    jax.block_until_ready(latest)


def function(make):
    """Makes a workload of make, which returns a function and its arguments."""

    def opened():
        fn, args = make()
        f, args = jax.jit(fn), arrays(args)
        return common.Stateless(lambda: later(f(*args)), np.asarray)

    return opened


def pointwise(n):
    def make():
        d = Data()
        args = d.floats(3, n), d.floats(1, n), d.floats(1, n)
        return lambda x, w, b: jnp.tanh(x * w + b) * jax.nn.sigmoid(x) + jax.nn.relu(x - w), args

    return make


def softmax():
    return lambda x: jax.nn.softmax(x, -1), [Data().floats(4, 4096, 1024)]


def norm(x, w, b):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * w + b


def layer_norm():
    d = Data()
    return norm, [d.floats(4, 4096, 1024), d.floats(1, 1024), d.floats(1, 1024)]


def matmul(*shapes):
    def make():
        d = Data()
        return jnp.matmul, [d.floats(1, *s) for s in shapes]

    return make


def convolve(x, w, stride, padding):
    return lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def conv():
    d = Data()
    return lambda x, w: convolve(x, w, 1, 1), [d.floats(1, 8, 64, 56, 56), d.floats(1 / 24, 64, 64, 3, 3)]


def linear(x, w, b):
    return x @ w.T + b


def attend(q, k, v, mask=None):
    s = jnp.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = jnp.where(mask, s, -jnp.inf)
    return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(s, -1), v)


def encode(x, weights):
    wqkv, bqkv, wo, bo, wu, bu, wd, bd, n1, c1, n2, c2 = weights
    heads = [h.reshape(4, 128, 8, 64).transpose(0, 2, 1, 3) for h in jnp.split(linear(x, wqkv, bqkv), 3, -1)]
    a = attend(*heads).transpose(0, 2, 1, 3).reshape(4, 128, 512)
    y = norm(x + linear(a, wo, bo), n1, c1)
    return norm(y + linear(jax.nn.relu(linear(y, wu, bu)), wd, bd), n2, c2)


def encoder():
    return encode, list(Data().encoder())


def see(x, convs, last):
    convs = iter(convs)

    def conv(x, stride, padding):
        w, scale, bias, mean, variance = next(convs)
        k = scale * lax.rsqrt(variance + 1e-5)
        return convolve(x, w, stride, padding) * k[:, None, None] + (bias - mean * k)[:, None, None]

    x = jax.nn.relu(conv(x, 2, 3))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for _, _, stride in common.BLOCKS:
        y = jax.nn.relu(conv(x, stride, 1))
        y = conv(y, 1, 1)
        x = jax.nn.relu(y + (conv(x, stride, 0) if stride != 1 else x))
    return linear(x.mean((2, 3)), *last)


def resnet():
    return see, list(Data().resnet())


def add_chain(x):
    y = x
    for _ in range(common.CHAIN):
        y = y + x
    return y


def chain_compiled():
    return add_chain, [Data().floats(1, common.CHAIN_SIZE)]


def first_compile(graph):
    """Makes a workload of graph, which computes the graph of a number."""

    def opened():
        x = jnp.asarray(Data().floats(1, common.CHAIN_SIZE))
        numbers = itertools.count(1)

        def run(number):
            return later(jax.jit(graph(number))(x))

        return common.Workload(lambda: run(next(numbers)), lambda: np.asarray(run(0)))

    return opened


def thousand_ops(number):
    subtract = common.first_compile_ops(number)

    def fn(x):
        y = x
        for s in subtract:
            y = y - x if s else y + x
            y = jax.nn.sigmoid(jnp.tanh(y) * x)
        return y

    return fn


def sixteen_ops(number):
    which = [(jnp.tanh, jax.nn.sigmoid, jnp.sin, jnp.cos)[i] for i in common.first_small_ops(number)]

    def fn(x):
        for op in which:
            x = op(x)
        return x

    return fn


def loss_of(params, x, y, drop, key):
    n = len(params)
    for i in range(0, n, 2):
        x = linear(x, params[i], params[i + 1])
        if i < n - 2:
            x = jax.nn.relu(x)
            if drop:
                key, this = jax.random.split(key)
                x = jnp.where(jax.random.bernoulli(this, 1 - drop, x.shape), x / (1 - drop), 0)
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def sgd_step(params, momenta, x, y):
    grads = jax.grad(loss_of)(params, x, y, 0.0, None)
    momenta = [0.9 * m + g for m, g in zip(momenta, grads)]
    return [p - 0.01 * m for p, m in zip(params, momenta)], momenta


def mlp():
    d = Data()
    params = arrays(d.perceptron(784, 512, 512, 10))
    state = [params, [jnp.zeros_like(p) for p in params]]
    x, y = jnp.asarray(d.floats(1, 128, 784)), jnp.asarray(d.ints(128, 10), dtype=jnp.int32)

    def run():
        state[:] = sgd_step(*state, x, y)
        later(state)

    return common.Workload(run, lambda: np.asarray(state[0][-2]).reshape(-1))


@partial(jax.jit, donate_argnums=(0,), static_argnums=(3,))
def adam_step(state, x, y, drop):
    params, first, second, count, key = state
    key, this = jax.random.split(key)
    grads = jax.grad(loss_of)(params, x, y, drop, this)
    count = count + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads)]
    rate, root = common.DIGITS_RATE / (1 - 0.9**count), jnp.sqrt(1 - 0.999**count)
    params = [p - rate * m / (jnp.sqrt(v) / root + 1e-8) for p, m, v in zip(params, first, second)]
    return params, first, second, count, key


def digits():
    pixels, labels = common.digits(FOLDER)
    labels = labels.astype(np.int32)

    def fresh():
        params = arrays(Data().perceptron(64, 128, 64, 10))
        zeros = [jnp.zeros_like(p) for p in params]
        return params, zeros, [jnp.zeros_like(p) for p in params], jnp.float32(0), jax.random.key(1)

    def epoch(state, drop):
        for x, y in common.batches(pixels, labels):
            state = adam_step(state, x, y, drop)
        return later(state)

    state = [fresh()]

    def run():
        state[0] = epoch(state[0], common.DIGITS_DROP)

    return common.Workload(run, lambda: np.asarray(epoch(fresh(), 0.0)[0][-2]).reshape(-1))


@partial(jax.jit, donate_argnums=(0,))
def decode(caches, weights, place, token):
    words, places, layers, last = weights
    x = (words[token] + places[place])[None]
    mask = jnp.arange(common.CONTEXT) <= place
    kept = []
    for (n1, c1, wqkv, bqkv, wo, bo, n2, c2, wu, bu, wd, bd), (keys, values) in zip(layers, caches):
        q, k, v = linear(norm(x, n1, c1), wqkv, bqkv).reshape(3, common.HEADS, 1, common.SIZE)
        keys = lax.dynamic_update_slice_in_dim(keys, k, place, 1)
        values = lax.dynamic_update_slice_in_dim(values, v, place, 1)
        kept.append([keys, values])
        x = x + linear(attend(q, keys, values, mask).reshape(1, common.DIM), wo, bo)
        x = x + linear(jax.nn.gelu(linear(norm(x, n2, c2), wu, bu), approximate=True), wd, bd)
    return kept, norm(x, *last) @ words.T


def gpt2():
    words, places, layers, caches, last = Data().gpt2()
    weights, state = arrays([words, places, layers, last]), [arrays(caches)]
    runs = itertools.count()

    def run():
        state[0], logits = decode(state[0], weights, *map(np.int32, common.gpt2_token(next(runs))))
        return later(logits)

    return common.Stateless(run, np.asarray)


FUNCTIONS = common.functions(pointwise, softmax, layer_norm, matmul, encoder, conv, resnet)
FUNCTIONS["chain-compiled"] = chain_compiled

WORKLOADS = {name: function(make) for name, make in FUNCTIONS.items()}
WORKLOADS |= {"mlp-step": mlp, "digits-epoch": digits, "digits-compiled": digits, "gpt2-decode": gpt2, "first-compile": first_compile(thousand_ops), "first-compile-small": first_compile(sixteen_ops)}
