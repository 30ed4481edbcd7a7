"""Writes optim/testdata/optim.safetensors: trajectories of PyTorch's optimisers, gradient clipping and schedules.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0
    .venv/bin/python scripts/make_optim_goldens.py

`x`, `y`, `w` and `b` are a small linear regression, in f64. `CASE/w` and `CASE/b` hold the parameters before
each of 10 steps and after the last, in f32; `CASE/f64/…` the same in f64. `clip/…` are gradients before and
after clipping. `lr/NAME` are the rates of a schedule at the steps 0, 1, ….
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch import optim
from torch.optim import lr_scheduler

OUT = pathlib.Path(__file__).parent.parent / "optim/testdata/optim.safetensors"
STEPS = 10
tensors = {}



class Lion(optim.Optimizer):
    """Lion as its paper defines it."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(beta1 * m + (1 - beta1) * p.grad))
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


CASES = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "sgd_decay": lambda p: optim.SGD(p, lr=0.05, weight_decay=0.1),
    "sgd_momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9),
    "sgd_dampening": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "sgd_nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01),
    "sgd_maximize": lambda p: optim.SGD(p, lr=0.01, momentum=0.5, maximize=True),
    "adam": lambda p: optim.Adam(p, lr=0.1),
    "adam_decay": lambda p: optim.Adam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "adam_amsgrad": lambda p: optim.Adam(p, lr=0.3, betas=(0.4, 0.5), amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, lr=0.1),
    "adamw_decay": lambda p: optim.AdamW(p, lr=0.1, betas=(0.7, 0.9), weight_decay=0.3),
    "adamw_amsgrad": lambda p: optim.AdamW(p, lr=0.3, betas=(0.4, 0.5), amsgrad=True),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01),
    "rmsprop_centered": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-4, weight_decay=0.1, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "adagrad_decay": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, eps=1e-3),
    "lion": lambda p: Lion(p, lr=0.02),
    "lion_decay": lambda p: Lion(p, lr=0.02, betas=(0.8, 0.9), weight_decay=0.1),
    "adafactor": lambda p: optim.Adafactor(p, lr=0.1),
    "adafactor_decay": lambda p: optim.Adafactor(p, lr=0.5, beta2_decay=-0.5, d=1.5, eps=(1e-4, 1e-2), weight_decay=0.1),
    "groups": lambda p: optim.AdamW([dict(params=p[:1], weight_decay=0.2), dict(params=p[1:], lr=0.025)], lr=0.1, weight_decay=0.0),
}


def trajectory(name, make, dtype, schedule=None):
    x, y = tensors["x"].to(dtype), tensors["y"].to(dtype)
    w, b = (tensors[n].to(dtype).clone().requires_grad_() for n in ("w", "b"))
    opt = make([w, b])
    sched = schedule(opt) if schedule else None
    path = [(w.detach().clone(), b.detach().clone())]
    for _ in range(STEPS):
        opt.zero_grad()
        torch.nn.functional.mse_loss(x @ w + b, y).backward()
        opt.step()
        if sched:
            sched.step()
        path.append((w.detach().clone(), b.detach().clone()))
    for i, n in enumerate("wb"):
        tensors[f"{name}/{n}"] = torch.stack([p[i] for p in path])


def clipping():
    grads = [torch.randn(3, 2), torch.randn(4)]
    for i, g in enumerate(grads):
        tensors[f"clip/{i}"] = g.clone()
    for name, bound in {"norm": 0.5, "loose": 50.0}.items():
        ps = [torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
        for p, g in zip(ps, grads):
            p.grad = g.clone()
        tensors[f"clip/{name}/total"] = torch.nn.utils.clip_grad_norm_(ps, bound).detach().clone()
        for i, p in enumerate(ps):
            tensors[f"clip/{name}/{i}"] = p.grad
    for i, g in enumerate(grads):
        tensors[f"clip/value/{i}"] = g.clamp(-0.4, 0.4)


def rates(name, steps, make, lr=0.2):
    opt = optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    sched = make(opt)
    out = []
    for i in range(steps):
        out.append(sched.get_last_lr()[0])
        opt.step()
        if i < steps - 1:
            sched.step()
    tensors[f"lr/{name}"] = torch.tensor(out, dtype=torch.float64)


def schedules():
    rates("step", 12, lambda o: lr_scheduler.StepLR(o, 4, 0.5))
    rates("cosine", 11, lambda o: lr_scheduler.CosineAnnealingLR(o, 10, 0.01))
    rates("linear", 9, lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 6))
    rates(
        "warmup_cosine",
        14,
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.25, 1.0, 3), lr_scheduler.CosineAnnealingLR(o, 10, 0.0)], [3]
        ),
    )
    rates("one_cycle", 20, lambda o: lr_scheduler.OneCycleLR(o, 0.2, 20))


def main():
    torch.manual_seed(30)
    tensors["x"] = torch.randn(5, 3, dtype=torch.float64)
    tensors["y"] = torch.randn(5, 2, dtype=torch.float64)
    tensors["w"] = torch.randn(3, 2, dtype=torch.float64)
    tensors["b"] = torch.randn(2, dtype=torch.float64)
    for name, make in CASES.items():
        trajectory(name, make, torch.float32)
        trajectory(f"{name}/f64", make, torch.float64)
    trajectory("sgd_cosine", CASES["sgd_momentum"], torch.float32, lambda o: lr_scheduler.CosineAnnealingLR(o, 10))
    clipping()
    schedules()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, OUT)
    print(f"{len(tensors)} tensors, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
