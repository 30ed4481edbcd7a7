"""All-reduce and training steps by DistributedDataParallel, on gloo."""

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from measure import RANK, SIZES, WORLD, Data, measure, runs


def parameter(x):
    return torch.nn.Parameter(torch.from_numpy(x.copy()))


class Perceptron(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.p = torch.nn.ParameterList()
        for i, o in ((784, 512), (512, 512), (512, 10)):
            self.p.append(parameter(d.floats(i**-0.5, o, i)))
            self.p.append(parameter(d.floats(i**-0.5, o)))
        rows = 128 // WORLD
        part = slice(RANK * rows, (RANK + 1) * rows)
        self.x, self.y = torch.from_numpy(d.floats(1, 128, 784)[part]), torch.from_numpy(d.ints(128, 10)[part])

    def forward(self):
        h = self.x
        for i in range(0, len(self.p), 2):
            h = F.linear(h, self.p[i], self.p[i + 1])
            if i + 2 < len(self.p):
                h = torch.relu(h)
        return F.cross_entropy(h, self.y)


class Encoder(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        rows = 4 // WORLD
        part = slice(RANK * rows, (RANK + 1) * rows)
        self.x, self.target = (torch.from_numpy(d.floats(1, 4, 128, 512)[part]) for _ in range(2))
        self.p = torch.nn.ParameterList()
        for i, o in ((512, 1536), (512, 512), (512, 2048), (2048, 512)):
            self.p.append(parameter(d.floats(i**-0.5, o, i)))
            self.p.append(parameter(d.floats(i**-0.5, o)))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(512) for _ in range(2))

    def forward(self):
        def split(t):
            return t.unflatten(-1, (8, -1)).transpose(1, 2)

        p = self.p
        q, k, v = (split(t) for t in F.linear(self.x, p[0], p[1]).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        h = self.norms[0](self.x + F.linear(a, p[2], p[3]))
        h = self.norms[1](h + F.linear(torch.relu(F.linear(h, p[4], p[5])), p[6], p[7]))
        return ((h - self.target) ** 2).mean()


def training(name, model):
    model = DistributedDataParallel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)

    def step():
        opt.zero_grad()
        model().backward()
        opt.step()

    measure("train/" + name, "-", 5, 20, step)


torch.set_num_threads(1)
dist.init_process_group("gloo")
if sys.argv[1] == "train":
    training("encoder", Encoder(Data()))
    training("mlp", Perceptron(Data()))
else:
    for size in SIZES:
        x = torch.zeros(size // 4)
        measure(f"all_reduce/{size}", "-", *runs(size), lambda: dist.all_reduce(x))
dist.destroy_process_group()
