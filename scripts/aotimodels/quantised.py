"""Models of 8-bit and 4-bit integers. They need torchao (0.18.0 with PyTorch 2.15); PyTorch 2.6 has the same inside."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from .case import Call, Case, fixture, made_by, settled


def quantised(module, inputs, dynamic=False):
    """The module with its layers as X86InductorQuantizer quantises them, for the ranges of the inputs."""
    try:
        import torchao.quantization.pt2e as pt2e
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    except ImportError:
        import torch.ao.quantization as pt2e
        from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torch.ao.quantization.quantizer import x86_inductor_quantizer as x86
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
    export = torch.export.export_for_training if torch.__version__ < "2.7" else torch.export.export
    with torch.no_grad():
        prepared = prepare_pt2e(export(module.eval(), inputs).module(), quantizer)
        for _ in range(2):
            prepared(*inputs)
        converted = convert_pt2e(prepared)
    pt2e.allow_exported_model_train_eval(converted)
    return converted


FROZEN = {"freezing": True}


@made_by("2.6", "2.15")
@fixture
def quantised_linear():
    """Linear layers of 8-bit integers (PT2E): relu, gelu, a sum, a sum with relu, no bias, results as u8 and f32."""

    def call(m, x):
        y = m.b(F.relu(m.a(x)))
        y = F.relu(m.c(y) + x)
        y = m.d(F.gelu(m.c2(y))) + y
        return m.e(y), y

    module = Call(
        call,
        a=nn.Linear(32, 48),
        b=nn.Linear(48, 32, bias=False),
        c=nn.Linear(32, 32),
        c2=nn.Linear(32, 70),
        d=nn.Linear(70, 32),
        e=nn.Linear(32, 10),
    )
    inputs = (torch.randn(9, 32),)
    return Case(quantised(module, inputs), inputs, cases=((3 * torch.randn(9, 32),),), config=FROZEN, ref=False)


@fixture
def quantised_dynamic():
    """Linear layers whose inputs are quantised by the range that they have in each run."""
    net = nn.Sequential(nn.Linear(40, 24), nn.ReLU(), nn.Linear(24, 12))
    inputs = (torch.randn(5, 40),)
    return Case(quantised(net, inputs, dynamic=True), inputs, cases=((7 * torch.randn(5, 40),),), config=FROZEN, ref=False)


class QuantisedConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.depth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 24, 1)
        self.skip = nn.Conv2d(16, 24, 1, bias=False)
        self.group = nn.Conv2d(24, 24, 3, padding=2, dilation=2, groups=4)
        self.last = nn.Conv2d(24, 8, 5)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        y = F.hardtanh(self.depth(x), 0, 6)
        x = F.relu(self.point(y) + self.skip(x))
        x = self.group(x) + x
        x = F.relu(self.last(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), x


@made_by("2.6", "2.15")
@fixture
def quantised_conv():
    """Convolutions of 8-bit integers (PT2E): strided, depthwise, grouped and dilated, 1×1; relu, relu6, sums."""
    inputs = (torch.randn(2, 3, 15, 14),)
    module = settled(QuantisedConv())
    return Case(quantised(module, inputs), inputs, cases=((2 * torch.randn(2, 3, 15, 14),),), config=FROZEN, ref=False)


@fixture
def int4():
    """Weights of 4 bits in groups (weight_int4pack_mm), over float32 and bfloat16; 16 rows, which all processors pack alike."""

    def call(m, x, y):
        product = torch.ops.aten._weight_int4pack_mm_for_cpu
        return product(x, m.packed, 32, m.scales), product(y, m.packed, 32, m.halves)

    module = Call(call)
    weight = torch.randint(0, 16, (16, 64), dtype=torch.int32)
    module.register_buffer("packed", torch.ops.aten._convert_weight_to_int4pack_for_cpu(weight, 1))
    module.register_buffer("scales", torch.rand(2, 16, 2) * 0.1)
    module.register_buffer("halves", module.scales.bfloat16())
    return Case(module, (torch.randn(5, 64), torch.randn(3, 64, dtype=torch.bfloat16)), ref=False)


@fixture
def int4_dynamic():
    """Weights of 4 bits times inputs that are quantised by row (dyn_quant_matmul_4bit), packed in the run."""

    def call(m, x):
        pack, product = torch.ops.aten._dyn_quant_pack_4bit_weight, torch.ops.aten._dyn_quant_matmul_4bit
        whole = pack(m.weight, m.scale, m.bias, 64, 64, 12)
        groups = pack(m.weight, m.scales, None, 32, 64, 12)
        return product(x, whole, 64, 64, 12), product(x, groups, 32, 64, 12)

    module = Call(call)
    module.register_buffer("weight", torch.randint(0, 256, (12, 32), dtype=torch.uint8))
    module.register_buffer("scale", torch.rand(12, 1) * 0.1)
    module.register_buffer("scales", (torch.rand(12, 2) * 0.1).bfloat16())
    module.register_buffer("bias", torch.randn(12))
    return Case(module, (torch.randn(5, 64),), ref=False)
