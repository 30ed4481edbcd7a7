"""Buffers that change, random numbers, folding, and where the weights are."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from aotimodels.case import Call, Case, every_generation, fixture, perceptron, settled


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        self.count.add_(1)
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.fc(x) - self.mean, self.count.clone()


@fixture
def counter():
    """Buffers that the model mutates: a counter and a running mean; three runs."""
    return Case(Counter(), (torch.randn(5, 4),), cases=((torch.randn(5, 4),), (torch.randn(5, 4),)))


class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()

    def train(self, mode=True):
        return super().train(True)


@fixture
def batch_norm_train():
    """Batch norm in training mode: statistics and num_batches_tracked change; two runs."""
    return Case(settled(Training()), (torch.randn(3, 2, 6, 6),), cases=((torch.randn(3, 2, 6, 6),),))


def draw(m, x):
    return (
        F.dropout(x, 0.4, training=True),
        torch.rand(3, 5),
        torch.randn(7),
        torch.randint(-3, 90, (11,)),
        torch.rand_like(x) < 0.5,
        x + torch.randn_like(x),
    )


@fixture
def random():
    """dropout, rand, randn, randint as Inductor draws them: seeds from the generator, Philox in the library; two runs."""
    x = torch.randn(4, 9)
    return Case(Call(draw), (x,), cases=((x,),), ref=False, seed=20)


@fixture
def random_fallback():
    """The same with fallback_random: each drawn by PyTorch's CPU generator (Mersenne twister)."""
    x = torch.randn(4, 9)
    doubles = {"dtype": torch.float64}

    def call(m, x):
        return *draw(m, x), torch.bernoulli(x.sigmoid()), torch.randperm(9), torch.rand(5, **doubles), torch.randn(20)

    return Case(Call(call), (x,), cases=((x,),), ref=False, seed=20, config={"fallback_random": True})


class Folding(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(12, 8))
        self.v = nn.Parameter(torch.randn(12, 8))
        self.bias = nn.Parameter(torch.randn(12))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        w = F.normalize(self.w, dim=1) * self.v.abs().amax(1, keepdim=True)
        self.seen.add_(x.sum())  # depends on the input: PyTorch itself folds `seen += 1` away
        return F.linear(x, w, self.bias.tanh()) + self.seen


@every_generation
@fixture
def folding():
    """Run-time constant folding over two parameters, and a buffer that the model mutates; two runs."""
    x = torch.randn(6, 8)
    return Case(Folding(), (x,), cases=((x,),), config={"aot_inductor.use_runtime_constant_folding": True})


def weights(**config):
    # Inductor writes constants of up to eight elements into the code, and then PyTorch's loader misses them.
    return Case(perceptron(16, 24, 12), (torch.randn(3, 16),), config={"aot_inductor." + k: v for k, v in config.items()})


@fixture
def weights_mmap():
    """Weights appended to the library, which maps its own file (force_mmap_weights)."""
    return weights(force_mmap_weights=True)


@fixture
def weights_blob():
    """Weights in a `.blob` beside the library (package_constants_on_disk_format="binary_blob")."""
    return weights(package_constants_on_disk_format="binary_blob")


@fixture
def weights_disk():
    """Weights in the archive's data/weights, a file each (package_constants_on_disk_format="pickle_weights")."""
    return weights(package_constants_in_so=False, package_constants_on_disk_format="pickle_weights")


@fixture
def weights_none():
    """No weights at all (package_constants_in_so=False): the caller supplies `constant.NAME` of the .safetensors."""
    return weights(package_constants_in_so=False)


@fixture
def several():
    """Two models in one archive: `model` and `double`, of float64."""
    more = {"double": Case(perceptron(16, 8, 4).double(), (torch.randn(3, 16, dtype=torch.float64),))}
    return Case(perceptron(16, 8, 4), (torch.randn(3, 16),), more=more)


@fixture
def exported():
    """The other kind of .pt2: torch.export.save, a graph and weights but no code."""
    return Case(perceptron(16, 8, 4), (torch.randn(3, 16),), archive="export")
