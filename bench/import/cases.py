"""What files of functions for bench/import --functions have in common.

Such a file has a dictionary CASES of names and functions without arguments, each of which returns a function of
tensors and its arguments. They are drawn after torch.manual_seed(0). A process reads one file, which fills this
CASES.
"""
import torch

CASES = {}


def rand(*dims, dtype=torch.float32):
    return torch.randn(*dims).to(dtype)


def uniform(*dims, dtype=torch.float32):
    return torch.rand(*dims).to(dtype)


def ints(high, *dims, dtype=torch.int64):
    return torch.randint(high, dims, dtype=dtype)


def simple(name, f, *make):
    CASES[name] = lambda: (f, tuple(m() for m in make))


def program(*make):
    """Makes a function that is too long for a line a case by its own name."""
    def named(f):
        simple(f.__name__, f, *make)
        return f
    return named


BF16, F16, F64 = torch.bfloat16, torch.float16, torch.float64
