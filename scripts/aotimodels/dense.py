"""Dense layers, shapes, convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from aotimodels.case import Call, Case, buffers, every_generation, fixture, made_by, perceptron, settled


@every_generation
@fixture
def mlp():
    """Two linear layers, fixed sizes, weights in the library."""
    return Case(perceptron(), (torch.randn(8, 64),))


@made_by("2.6")
@fixture
def checked():
    """Input checks compiled in by debug_compile, as 2.6 has them; later releases always have them."""
    return Case(perceptron(12, 16, 4), (torch.randn(3, 12),), config={"aot_inductor.debug_compile": True})


@fixture
def mlp_linked():
    """The same as PyTorch links by default (libtorch among the needed libraries) and compiled for two threads."""
    return Case(perceptron(16, 24, 6), (torch.randn(3, 16),), config={"cpp.threads": 2}, linked=True)


@fixture
def dynamic_batch():
    """A dynamic batch from 1 to 1024, with a softmax; run with 8, 1 and 33 rows."""
    rows = [torch.randn(n, 24) for n in (8, 1, 33)]
    net = nn.Sequential(perceptron(24, 32, 6), nn.Softmax(-1))
    return Case(net, (rows[0],), cases=((rows[1],), (rows[2],)), dynamic=({0: Dim("batch", min=1, max=1024)},))


@fixture
def dynamic_ranges():
    """Two inputs that share dynamic sizes: batch 1 to 16, sequence 2 to 64, and one of twice the sequence."""
    batch, half = Dim("batch", min=1, max=16), Dim("half", min=2, max=64)

    def call(m, x, mask, long):
        return (m.fc(x) * mask[..., None]).sum(1), (long.reshape(long.shape[0], -1, 2).mean(-1) + mask).cumsum(1)

    def inputs(b, s):
        return torch.randn(b, s, 8), (torch.rand(b, s) > 0.3).float(), torch.randn(b, 2 * s)

    dynamic = ({0: batch, 1: half}, {0: batch, 1: half}, {0: batch, 1: 2 * half})
    return Case(
        Call(call, fc=nn.Linear(8, 5)), inputs(3, 7), cases=(inputs(1, 2), inputs(16, 64)), dynamic={"args": dynamic}
    )


@fixture
def structure():
    """Nested inputs and outputs (tuple, dict, keyword), a 0-d input, an unused one, and a call spec that names them."""

    def call(m, pair, named, *, scale):
        a, b = pair
        return {"sum": a + b * scale, "parts": [named["x"].exp(), (named["x"] - a,)]}

    args = ((torch.randn(3, 4), torch.randn(4)), {"x": torch.randn(3, 4), "unused": torch.zeros(2)})
    return Case(Call(call), args, kwargs={"scale": torch.tensor(1.5)})


@fixture
def aliases():
    """Outputs that are an input, a view, a parameter, a view of a buffer, one tensor twice; an empty and a strided input."""

    def call(m, x, empty, strided):
        y = x + m.w
        return x, x[1:, :2], m.w, m.b[::2], y, y, torch.cat([empty, y]), strided * 2, strided

    module = buffers(Call(call), b=torch.randn(6))
    module.w = nn.Parameter(torch.randn(4))
    return Case(module, (torch.randn(3, 4), torch.empty(0, 4), torch.randn(5, 3).t()))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)
        self.n1 = nn.BatchNorm2d(16)
        self.depth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 24, 1)
        self.n2 = nn.BatchNorm2d(24)
        self.wide = nn.Conv2d(24, 24, (3, 5), padding=(2, 2), dilation=(2, 1), groups=2)
        self.up = nn.ConvTranspose2d(24, 8, 3, stride=2, padding=1, output_padding=1)
        self.skip = nn.Conv2d(24, 24, 1)

    def forward(self, x):
        x = F.relu(self.n1(self.stem(x)))
        x = F.hardswish(self.n2(self.point(F.silu(self.depth(x)))))
        x = F.relu(self.wide(x) + self.skip(x))
        return self.up(x), F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1).flatten(1)


@every_generation
@fixture
def conv():
    """1×1, 3×3, depthwise, grouped, dilated, strided and transposed convolutions, batch norm, pooling."""
    return Case(settled(Conv()), (torch.randn(2, 3, 20, 20),))


@fixture
def conv_freezing():
    """The same with freezing: batch norm folded, weights packed for oneDNN (_convolution_pointwise, _binary_)."""
    return Case(settled(Conv()), (torch.randn(2, 3, 20, 20),), config={"freezing": True})


@fixture
def conv_rows():
    """A dynamic batch of small images, for many of which a convolution has other algorithms than for one; run with 2, 15 and 1."""
    module = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
    rows = [torch.randn(n, 32, 4, 4) for n in (2, 15, 1)]  # Inductor has other code from 16 on
    return Case(module, (rows[0],), cases=((rows[1],), (rows[2],)), dynamic=({0: Dim("rows", min=1, max=64)},))


@fixture
def conv_1d_3d():
    """1-d and 3-d convolutions and pooling, reflection padding, bilinear and nearest upsampling."""

    def call(m, x, y):
        y = F.max_pool3d(F.relu(m.c3(y)), 2)
        x = F.interpolate(F.pad(x, (1, 2), mode="reflect")[:, :, None], scale_factor=(1, 2), mode="nearest")
        return m.c1(x[:, :, 0]), y, F.interpolate(y[:, :, 0], size=(7, 9), mode="bilinear", align_corners=False)

    module = Call(call, c1=nn.Conv1d(4, 6, 5, stride=2, padding=2), c3=nn.Conv3d(2, 4, 3, padding=1))
    return Case(module, (torch.randn(2, 4, 15), torch.randn(1, 2, 6, 8, 8)))


@fixture
def linear_freezing():
    """Linear layers with freezing: oneDNN's packed linear and its activations."""
    net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 48), nn.Sigmoid(), nn.Linear(48, 16))
    return Case(net, (torch.randn(12, 32),), config={"freezing": True})


@fixture
def autotune():
    """Inductor's own C++ GEMM (max_autotune, freezing): no matrix product is asked of the host."""
    config = {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    return Case(perceptron(64, 96, 32), (torch.randn(16, 64),), config=config)
