"""What the peers share: the numbers of the workloads and their sizes."""

import numpy as np

DEVICE = "cpu"  # main.py sets it before a system is imported

CHAIN, CHAIN_SIZE = 1000, 4
LAYERS, DIM, HEADS, SIZE, VOCAB, POSITIONS, CONTEXT, START = 12, 768, 12, 64, 50257, 1024, 256, 64
SMALL_LAYERS, SMALL_DIM, SMALL_HEADS, SMALL_VOCAB, SMALL_PLACES = 3, 128, 4, 256, 1024
SMALL_CONTEXT, SMALL_START = 256, 64
VARYING_LEAST, VARYING_COUNT = 16, 257
BLOCKS = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
DIGITS_BATCH, DIGITS_RATE, DIGITS_DROP = 64, 0.01, 0.3


class Data:
    """The same numbers as bench/workloads makes: element i of tensor k is a hash of both."""

    def __init__(self):
        self.tensor = 0

    def words(self, n):
        h = np.arange(n, dtype=np.uint32) + np.uint32(self.tensor * 0x9E3779B9 & 0xFFFFFFFF)
        self.tensor += 1
        h ^= h >> np.uint32(16)
        h *= np.uint32(0x85EBCA6B)
        h ^= h >> np.uint32(13)
        h *= np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
        return h

    def floats(self, scale, *dims):
        h = self.words(int(np.prod(dims)))
        x = (h >> np.uint32(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)
        return (x * np.float32(scale)).reshape(dims)

    def ints(self, n, below):
        return (self.words(n) % np.uint32(below)).astype(np.int64)

    def linear(self, inputs, outputs):
        scale = 1 / np.sqrt(inputs)
        return [self.floats(scale, outputs, inputs), self.floats(scale, outputs)]

    def norm(self, n):
        return [self.floats(0.1, n) + np.float32(1), self.floats(0.1, n)]

    def conv_norm(self, inputs, outputs, kernel):
        """Returns filters, scale, bias, mean and variance."""
        w = self.floats(np.sqrt(6 / (inputs * kernel * kernel)), outputs, inputs, kernel, kernel)
        (scale, bias), (variance, mean) = self.norm(outputs), self.norm(outputs)
        return [w, scale, bias, mean, variance]

    def perceptron(self, *sizes):
        params = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            params += self.linear(inputs, outputs)
        return params

    def encoder(self):
        """Returns x and the weights of the block."""
        x = self.floats(1, 4, 128, 512)
        qkv, out = self.linear(512, 1536), self.linear(512, 512)
        up, down = self.linear(512, 2048), self.linear(2048, 512)
        return x, qkv + out + up + down + self.norm(512) + self.norm(512)

    def resnet(self):
        """Returns the image, a list of convolutions with their norms in order of use, and the last layer."""
        x = self.floats(2, 1, 3, 224, 224)
        convs = [self.conv_norm(3, 64, 7)]
        for inputs, outputs, stride in BLOCKS:
            convs += [self.conv_norm(inputs, outputs, 3), self.conv_norm(outputs, outputs, 3)]
            if stride != 1:
                convs.append(self.conv_norm(inputs, outputs, 1))
        return x, convs, self.linear(512, 1000)

    def gpt2(self):
        """Returns the embeddings, the layers' weights, their caches, and the last norm."""
        words, places = self.floats(0.05, VOCAB, DIM), self.floats(0.05, POSITIONS, DIM)
        layers, caches = [], []
        for _ in range(LAYERS):
            one = self.norm(DIM) + self.linear(DIM, 3 * DIM) + self.linear(DIM, DIM)
            one += self.norm(DIM) + self.linear(DIM, 4 * DIM) + self.linear(4 * DIM, DIM)
            layers.append(one)
            caches.append([self.floats(1, HEADS, CONTEXT, SIZE), self.floats(1, HEADS, CONTEXT, SIZE)])
        return words, places, layers, caches, self.norm(DIM)

    def small_gpt(self):
        """Returns the embeddings, the last norm, and then each layer's weights."""

        def norm():
            return [self.floats(1, SMALL_DIM), self.floats(0.1, SMALL_DIM)]

        params = [self.floats(0.05, SMALL_VOCAB, SMALL_DIM), self.floats(0.05, SMALL_PLACES, SMALL_DIM)] + norm()
        for _ in range(SMALL_LAYERS):
            params += norm() + self.linear(SMALL_DIM, 3 * SMALL_DIM) + self.linear(SMALL_DIM, SMALL_DIM)
            params += norm() + self.linear(SMALL_DIM, 4 * SMALL_DIM) + self.linear(4 * SMALL_DIM, SMALL_DIM)
        return params

    def small_caches(self):
        """Returns each layer's keys and values, after small_gpt."""
        dims = SMALL_HEADS, SMALL_CONTEXT, SMALL_DIM // SMALL_HEADS
        return [[self.floats(1, *dims), self.floats(1, *dims)] for _ in range(SMALL_LAYERS)]

    def recurrent(self, gates, states):
        """Returns the input, the states and the weights of a layer."""
        x, n = self.floats(1, 100, 16, 256), gates * 256
        h = [self.floats(1, 1, 16, 256) for _ in range(states)]
        return x, h, [self.floats(1 / 16, *s) for s in ((n, 256), (n, 256), (n,), (n,))]


def varying_size(run):
    """Returns the batch and the length of a run."""
    return 1 + run // VARYING_COUNT, VARYING_LEAST + run * 100 % VARYING_COUNT


def small_token(run):
    """Returns the place and the token of a run."""
    return SMALL_START + run % (SMALL_CONTEXT - SMALL_START), run * 31 % SMALL_VOCAB


def gpt2_token(run):
    """Returns the place and the token of a run."""
    return START + run % (CONTEXT - START), run * 7919 % VOCAB


def digits(folder):
    """Returns the images and labels that bench/compare wrote."""
    pixels = np.fromfile(f"{folder}/digits.pixels", dtype="<f4").reshape(-1, 64)
    return pixels, np.fromfile(f"{folder}/digits.labels", dtype="<i8")


def batches(pixels, labels):
    for i in range(0, len(labels), DIGITS_BATCH):
        yield pixels[i : i + DIGITS_BATCH], labels[i : i + DIGITS_BATCH]


def first_compile_ops(number):
    """Says for each group of four ops whether it begins with a subtraction."""
    return [i < 32 and number >> i & 1 == 1 for i in range(CHAIN // 4)]


def first_small_ops(number):
    """Says for each of sixteen ops which of four it is."""
    return [number >> 2 * i & 3 for i in range(16)]


def functions(pointwise, softmax, layer_norm, matmul, encoder, conv, resnet):
    """Names the workloads that are functions; pointwise and matmul make those of given sizes."""
    return {
        "pointwise-1M": pointwise(1 << 20),
        "pointwise-16M": pointwise(1 << 24),
        "softmax": softmax,
        "layer-norm": layer_norm,
        "matmul-256": matmul((256, 256), (256, 256)),
        "matmul-1024": matmul((1024, 1024), (1024, 1024)),
        "matmul-2048": matmul((2048, 2048), (2048, 2048)),
        "matmul-batched": matmul((16, 256, 64), (16, 64, 256)),
        "encoder-block": encoder,
        "conv3x3": conv,
        "resnet18": resnet,
    }


class Workload:
    """A thing to run, and its results as a NumPy array of f32."""

    def __init__(self, run, results):
        self.run, self.results = run, results

    def forget(self):
        """Drops what the last run returned, so that the next does not hold both."""


class Stateless(Workload):
    """A function whose result is what is compared."""

    def __init__(self, call, to_numpy):
        self.call, self.to_numpy, self.out = call, to_numpy, None

    def forget(self):
        self.out = None

    def run(self):
        self.out = self.call()

    def results(self):
        return self.to_numpy(self.out).reshape(-1)
