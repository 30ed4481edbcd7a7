"""What a fixture of aoti_fixtures.py is, and the tables of them: small ones, and larger ones for --large.

Every entry is a function that returns a Case. Its name is the fixture's name and its doc says what the fixture
exercises.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch
from torch import nn


@dataclasses.dataclass
class Case:
    """A model, its inputs and how to compile it.

    cases    further inputs, run after `inputs` in the same container (other sizes, or a next step of a stateful model)
    dynamic  dynamic_shapes of torch.export
    config   Inductor options over the portable ones
    ref      whether a float64 run of the module is a reference for the outputs
    seed     of torch.manual_seed before the first run, for models that draw random numbers
    run      whether PyTorch's loader can run the package; if not, the outputs are the module's own
    more     further models of the archive, by name
    archive  aoti (compiled), or export (torch.export.save)
    files    what else belongs beside the package, such as a tokenizer
    linked   whether the library names libtorch as one that it needs, as PyTorch's defaults have it
    """

    module: nn.Module
    inputs: tuple
    kwargs: dict = dataclasses.field(default_factory=dict)
    cases: tuple = ()
    dynamic: Any = None
    config: dict = dataclasses.field(default_factory=dict)
    ref: bool = True
    seed: int | None = None
    run: bool = True
    more: dict = dataclasses.field(default_factory=dict)
    archive: str = "aoti"
    files: tuple = ()
    linked: bool = False


FIXTURES: dict[str, Callable[[], Case]] = {}
LARGE: dict[str, Callable[[], Case]] = {}
RELEASES: dict[str, tuple[str, ...]] = {}


def fixture(build):
    FIXTURES[build.__name__] = build
    return build


def large(build):
    LARGE[build.__name__] = build
    return build


def made_by(*releases):
    """Marks a fixture that is made with these PyTorch releases, not with the newest only."""

    def mark(build):
        RELEASES[build.__name__] = releases
        return build

    return mark


every_generation = made_by("2.6", "2.11", "2.15")


class Call(nn.Module):
    """A function, and the modules that it uses, as a module."""

    def __init__(self, call, **modules):
        super().__init__()
        self.call = call
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *args, **kwargs):
        return self.call(self, *args, **kwargs)


def buffers(module, **tensors):
    for name, tensor in tensors.items():
        module.register_buffer(name, tensor)
    return module


def settled(module):
    """Moves batch-norm statistics and affine parameters off their initial zeros and ones."""
    with torch.no_grad():
        for m in module.modules():
            if isinstance(m, nn.modules.batchnorm._NormBase):
                m.running_mean.normal_(0, 0.3)
                m.running_var.uniform_(0.5, 1.5)
                m.weight.uniform_(0.5, 1.5)
                m.bias.normal_(0, 0.3)
    return module


def perceptron(inputs=64, hidden=128, outputs=10):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
