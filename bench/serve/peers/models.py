"""Compiles the models of bench/serve with AOTInductor: an MLP, ResNet-18 and the encoder of MiniLM.

    python bench/serve/peers/models.py DIR [mlp resnet18 minilm]

It needs torch, numpy and safetensors. DIR/NAME.pt2 is the package, with a number of rows that varies and code for one thread;
DIR/NAME.safetensors has inputs of one row, and what PyTorch computes with them (in0, …, out0). Weights are random; those of the
MLP are in DIR/mlp.weights-1.safetensors and -2 again, by the names of the package's constants and the second time doubled, for
updates under load.
"""
import ctypes, pathlib, sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim

sys.path.append(str(pathlib.Path(__file__).parents[3] / "scripts"))
from aotimodels.case import settled  # noqa: E402
from aotimodels.large import Bert, ResNet18  # noqa: E402


class MiniLM(nn.Module):
    """BERT of 6 layers and 384 features; the mean over the kept tokens, of unit length."""

    def __init__(self):
        super().__init__()
        self.bert = Bert(384, 6, 12)

    def forward(self, input_ids, attention_mask):
        x = self.bert(input_ids, attention_mask)
        keep = attention_mask[..., None].to(x.dtype)
        return nn.functional.normalize((x * keep).sum(1) / keep.sum(1).clamp(min=1e-9), dim=1)


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)), lambda n: (torch.randn(n, 64),)


def resnet18():
    return settled(ResNet18()), lambda n: (torch.randn(n, 3, 224, 224),)


def minilm():
    return MiniLM(), lambda n: (torch.randint(0, 30522, (n, 32)), (torch.arange(32).repeat(n, 1) < 24).long())


def main(out, names):
    out.mkdir(parents=True, exist_ok=True)
    for library in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / library), mode=ctypes.RTLD_GLOBAL)
    for name in names:
        torch.manual_seed(0)
        module, inputs = globals()[name]()
        module.eval()
        rows = Dim("rows", min=1, max=256)
        many = inputs(2)
        program = torch.export.export(module, many, dynamic_shapes=tuple({0: rows} for _ in many))
        config = {"cpp.threads": 1, "aot_inductor.link_libtorch": False, "cpp.vec_isa_ok": True}
        torch._inductor.aoti_compile_and_package(program, package_path=str(out / f"{name}.pt2"), inductor_configs=config)
        one = inputs(1)
        with torch.no_grad():
            tensors = {f"in{i}": x.contiguous() for i, x in enumerate(one)} | {"out0": module(*one).contiguous()}
        save_file(tensors, out / f"{name}.safetensors")
        if name == "mlp":
            for i in (1, 2):
                save_file({k: (v * i).contiguous() for k, v in module.state_dict().items()}, out / f"mlp.weights-{i}.safetensors")
        print(name, (out / f"{name}.pt2").stat().st_size)


main(pathlib.Path(sys.argv[1]), sys.argv[2:] or ["mlp", "resnet18", "minilm"])
