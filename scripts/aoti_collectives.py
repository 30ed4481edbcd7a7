"""Writes aoti/testdata/tensor_parallel and collectives: packages of programs that compute on two ranks together.

    .venv/bin/python scripts/aoti_collectives.py            # the environment of aoti_fixtures.py

NAME.pt2 is for all ranks; what differs by rank are weights and inputs. NAME.R.safetensors holds, for rank R, inputs
`in0`, …, what PyTorch computes with the package on two processes over gloo, `out0`, …, and the same of the module in
float64, `ref0`, …. NAME.weights.R.safetensors are the weights, which the package leaves out. The metadata are those of
aoti_fixtures.py.
"""

import json
import os
import pathlib
import tempfile

import aoti_fixtures as fixtures  # isort: skip (it says where Inductor keeps its files, before PyTorch is imported)
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives  # noqa: F401 (it registers the ops)
from safetensors.torch import save_file
from torch import nn
from torch._inductor.package import load_package

RANKS = 2
GROUP = "0"  # PyTorch's name of the group of all ranks
functional = torch.ops._c10d_functional


def wait(x):
    return functional.wait_tensor(x)


class Block(nn.Module):
    """A transformer layer of which each rank has half of the heads and of the hidden units."""

    def __init__(self, width=32, heads=4, hidden=64):
        super().__init__()
        self.heads, self.head = heads // RANKS, width // heads
        mine = self.heads * self.head
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * mine)
        self.out = nn.Linear(mine, width, bias=False)
        self.up = nn.Linear(width, hidden // RANKS)
        self.down = nn.Linear(hidden // RANKS, width, bias=False)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, self.head).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, -1)
        x = x + wait(functional.all_reduce(self.out(y), "sum", GROUP))
        y = self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return x + wait(functional.all_reduce(y, "sum", GROUP))


class Collectives(nn.Module):
    """Every collective that AOTInductor compiles to a call."""

    def forward(self, x, n):
        y = x.exp()
        size = RANKS
        reduced = [wait(functional.all_reduce(y + i, how, GROUP)) for i, how in enumerate(("avg", "max", "min"))]
        some = [wait(t) for t in functional.all_reduce_coalesced([y * 2, y[0] - 1], "sum", GROUP)]
        gathered = wait(functional.all_gather_into_tensor(y, size, GROUP))
        several = [wait(t) for t in functional.all_gather_into_tensor_coalesced([y[1], n], size, GROUP)]
        scattered = wait(functional.reduce_scatter_tensor(y.sin(), "sum", size, GROUP))
        pieces = [wait(t) for t in functional.reduce_scatter_tensor_coalesced([y.cos(), y[:2].t()], "sum", size, GROUP)]
        root = wait(functional.broadcast(y - 3, 1, GROUP))
        half = y.shape[0] // size
        swapped = wait(functional.all_to_all_single(y.t().contiguous().t() + 1, [half] * size, [half] * size, GROUP))
        return *reduced, *some, gathered, *several, scattered, *pieces, root, swapped


def tensor_parallel(rank):
    torch.manual_seed(10 + rank)
    module = Block()
    for norm in (module.norm1, module.norm2):  # equal on all ranks
        torch.manual_seed(20)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    torch.manual_seed(30)
    inputs = (torch.randn(2, 5, 32),)
    return module, inputs, {"x": {0: torch.export.Dim("n", min=1, max=64)}}


def collectives(rank):
    torch.manual_seed(40 + rank)
    return Collectives(), (torch.randn(4, 6), torch.arange(3) + 10 * rank), None


CASES = {"tensor_parallel": tensor_parallel, "collectives": collectives}
CONFIG = {"aot_inductor.package_constants_in_so": False}


def compile_package(module, inputs, dynamic, path):
    program = torch.export.export(module, inputs, dynamic_shapes=dynamic)
    with tempfile.TemporaryDirectory() as work:
        raw = pathlib.Path(work) / path.name
        config = {**fixtures.PORTABLE, **CONFIG}
        torch._inductor.aoti_compile_and_package(program, package_path=str(raw), inductor_configs=config)
        fixtures.repack(raw, path)


@torch.no_grad()
def make(rank, name, folder):
    module, inputs, dynamic = CASES[name](rank)
    module.eval()
    path = folder / f"{name}.pt2"
    if rank == 0:
        compile_package(module, inputs, dynamic, path)
    dist.barrier()
    runner = load_package(str(path), "model")
    if weights := {key: value.clone() for key, value in module.state_dict().items()}:
        runner.load_constants(weights, check_full_update=True)
    found = fixtures.tensors("in", inputs) | fixtures.tensors("out", runner(*inputs))
    if weights:
        save_file(weights, str(folder / f"{name}.weights.{rank}.safetensors"))
    found |= fixtures.tensors("ref", module.double()(*fixtures.widened(inputs)))
    about = {
        "torch": torch.__version__.split("+")[0],
        "what": " ".join(type(module).__doc__.split()),
        "symbols": json.dumps(fixtures.symbols(path)),
    }
    save_file(found, str(folder / f"{name}.{rank}.safetensors"), metadata=about)
    print(f"{name}, rank {rank}: {path.stat().st_size} bytes, error {fixtures.measure(found):.2g}", flush=True)


def main(rank, store):
    fixtures.prepare()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    for name in CASES:
        make(rank, name, fixtures.TESTDATA)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(main, (os.path.join(folder, "store"),), RANKS)
