"""Compiles packages of AOTInductor for bench/aoti: an MLP, an encoder block and ResNet-18, with PyTorch's results.

    python3 bench/gpu/export.py OUT                 # for the first GPU
    python3 bench/gpu/export.py OUT --device cpu    # for the CPU
    python3 bench/gpu/export.py OUT --only 'mlp.*'

It needs torch, numpy, safetensors and g++. The models have the sizes and the numbers of bench/workloads; NAME.pt2 is
the package, NAME.safetensors its inputs `in0`, `in1`, … and the outputs of PyTorch without compilation, `out0`, ….
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import re
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH / "compare/peer"), str(BENCH / "aoti/peer")]

import common  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from common import Data  # noqa: E402
from loader import libraries, toolkit  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


class Model(torch.nn.Module):
    """A function of inputs and weights, which are parameters."""

    def __init__(self, fn, weights):
        super().__init__()
        self.fn = fn
        self.weights = torch.nn.ParameterList(torch.from_numpy(w) for w in weights)

    def forward(self, x):
        return self.fn(x, *self.weights)


def perceive(x, *params):
    for i in range(0, len(params), 2):
        x = F.linear(x, params[i], params[i + 1])
        x = torch.relu(x) if i < len(params) - 2 else x
    return x


def mlp():
    data = Data()
    params = data.perceptron(784, 512, 512, 10)
    return perceive, params, data.floats(1, 128, 784)


def encoder():
    import in_torch

    x, weights = Data().encoder()
    return in_torch.encode, weights, x


def resnet():
    import in_torch

    _, convs, last = Data().resnet()
    return in_torch.see, [w for c in convs for w in c] + last, Data().floats(2, 8, 3, 224, 224)


MODELS = {
    "mlp": (mlp, torch.float32), "mlp-bf16": (mlp, torch.bfloat16), "encoder": (encoder, torch.float32),
    "encoder-bf16": (encoder, torch.bfloat16), "resnet18": (resnet, torch.float32),
}  # fmt: skip


def prepare(device):
    """Makes this process able to compile for the device."""
    libraries(device.type == "cuda")
    if device.type != "cuda":
        return
    torch.cuda.set_device(device)
    torch.cuda.init()
    # f32 means f32 in all that is compared.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    from torch.utils import cpp_extension

    if home := toolkit():
        os.environ["CUDA_HOME"] = cpp_extension.CUDA_HOME = home
    # Packages are linked with -lcuda, by a name that machines do not have where nobody compiles.
    with open("/proc/self/maps") as maps:
        driver = re.search(r"/\S*/libcuda\.so\S*", maps.read())
    if driver:
        folder = tempfile.mkdtemp()
        os.symlink(driver[0], f"{folder}/libcuda.so")
        os.environ["LIBRARY_PATH"] = os.pathsep.join(filter(None, [os.environ.get("LIBRARY_PATH"), folder]))


def compile_package(program, path):
    """Compiles without libtorch where PyTorch and what it finds here allow that, else as is its default."""
    known = torch._inductor.config.get_config_copy()
    wanted = {"aot_inductor.link_libtorch": False, "aot_inductor.precompile_headers": False, "cpp.vec_isa_ok": True}
    wanted = {key: value for key, value in wanted.items() if key in known}
    try:
        torch._inductor.aoti_compile_and_package(program, package_path=path, inductor_configs=wanted)
        return "without libtorch"
    except Exception as error:
        print(f"{path} without libtorch: {type(error).__name__}: {error}"[:2000], file=sys.stderr, flush=True)
    torch._inductor.aoti_compile_and_package(program, package_path=path)
    return "with libtorch"


@torch.no_grad()
def make(name, device, out):
    begin = time.monotonic()
    device = torch.device(device)
    common.DEVICE = str(device)
    prepare(device)
    build, dtype = MODELS[name]
    fn, weights, x = build()
    module = Model(fn, weights).to(device, dtype).eval().requires_grad_(False)
    x = torch.from_numpy(x).to(device, dtype)
    want = module(x)
    how = compile_package(torch.export.export(module, (x,)), f"{out}/{name}.pt2")
    save_file({"in0": x.cpu().contiguous(), "out0": want.cpu().contiguous()}, f"{out}/{name}.safetensors")
    got = torch._inductor.aoti_load_package(f"{out}/{name}.pt2")(x)
    off = ((got - want).abs().max() / want.abs().max()).item()
    size = os.path.getsize(f"{out}/{name}.pt2")
    print(f"{name}: {size} bytes, {how}, in {time.monotonic() - begin:.0f} s; differs from eager by {off:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, help="folder to write to")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default=".", help="regular expression of the models to compile")
    parser.add_argument("--jobs", type=int, default=max(1, min(len(MODELS), (os.cpu_count() or 1) // 3)), help="models at a time")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"torch {torch.__version__} for {args.device}, {args.jobs} models at a time", flush=True)
    names = [name for name in MODELS if re.search(args.only, name)]
    failed = []
    with concurrent.futures.ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        runs = {name: pool.submit(make, name, args.device, str(args.out)) for name in names}
        for name, run in runs.items():
            try:
                run.result()
            except Exception as error:  # the other models may do better
                print(f"{name}: {type(error).__name__}: {error}"[:4000], file=sys.stderr, flush=True)
                failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
