"""Canonical form of one call of an ATen op: names, kinds and defaults of the arguments, and their JSON encoding."""

import ast
import base64
import math
import re
from dataclasses import dataclass, field

import torch

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
NAMES = {v: k for k, v in DTYPES.items()}


class Drop(Exception):
    """A sample that is left out; the message is the category that the summary counts."""


class Elsewhere(Exception):
    """A sample that belongs to another row of the table (the same OpInfo entry feeds several ops)."""


@dataclass
class Scalar:
    """A Python number in the place of a tensor operand. Its kind (bool, int, float) matters for type promotion."""

    value: object


@dataclass
class Param:
    """One argument of a signature. `size` is the N of int[N]: a lone int stands for N equal ones."""

    name: str
    kind: str
    optional: bool
    size: int | None
    required: bool
    default: object
    keyword_only: bool


_PARAM = re.compile(r"^([A-Za-z]+(?:\[\d*\])?)(\?)?(\[\])? (\w+)(?:=(.+))?$")


def parse_signature(text):
    """Parses 'Tensor self, Operand other, *, Scalar alpha=1' into Params."""
    params, keyword_only = [], False
    for item in re.split(r",\s+(?![^\[]*\])", text):
        if item == "*":
            keyword_only = True
            continue
        m = _PARAM.match(item)
        if not m:
            raise ValueError(f"bad parameter {item!r} in {text!r}")
        kind, optional, many, name, default = m.groups()
        size = None
        sized = re.match(r"^(\w+)\[(\d*)\]$", kind)
        if sized:
            size = int(sized[2]) if sized[2] else None
            kind = sized[1] + "[]"
        if many:
            kind, optional = kind + "?[]", None
        value = ast.literal_eval(default) if default is not None else None
        params.append(Param(name, kind, bool(optional), size, default is None, value, keyword_only))
    for p in params:
        if not p.required:
            p.default = normalize(p, p.default)
    return params


def is_number(x):
    return isinstance(x, (bool, int, float))


def normalize(p, x):
    """Brings one argument into the canonical form of its kind; raises Drop when the argument is out of scope."""
    if x is None:
        if p.optional or not p.required:
            return None
        raise Drop(f"{p.name}=None")
    if p.kind == "Tensor":
        return tensor(x, p.name)
    if p.kind in ("Tensor[]", "Tensor?[]"):
        return [None if t is None and p.kind == "Tensor?[]" else tensor(t, p.name) for t in x]
    if p.kind == "Operand":
        return Scalar(number(x, p.name)) if is_number(x) or isinstance(x, complex) else tensor(x, p.name)
    if p.kind == "Scalar":
        return number(x, p.name)
    if p.kind == "float":
        return float(number(x, p.name))
    if p.kind == "int":
        return int(x)
    if p.kind == "bool":
        return bool(x)
    if p.kind == "str":
        if not isinstance(x, str):
            raise Drop(f"{p.name} of type {type(x).__name__}")
        return x
    if p.kind == "dtype":
        if x not in NAMES:
            raise Drop(f"dtype {x}")
        return x
    if p.kind == "float[]":
        return [float(v) for v in (x if isinstance(x, (list, tuple)) else [x] * p.size)]
    if p.kind == "Padding[]" and isinstance(x, str):
        return x
    if p.kind == "Sections" and isinstance(x, int):
        return x
    return int_list(p, x)


def int_list(p, x):
    """int[], int[N], Padding[N] and the list form of Sections."""
    if isinstance(x, int):
        return [x] * (p.size or 1)
    out = [int(v) for v in x]
    if len(out) == 1 and p.size and p.size > 1:
        out *= p.size
    return out


def number(x, name):
    if isinstance(x, complex):
        raise Drop(f"complex {name}")
    if isinstance(x, torch.Tensor):
        raise Drop(f"tensor as {name}")
    if not is_number(x):
        raise Drop(f"{name} of type {type(x).__name__}")
    return x


def tensor(x, name):
    """A detached contiguous copy, so that nothing depends on the strides of the sample."""
    if not isinstance(x, torch.Tensor):
        raise Drop(f"{name} of type {type(x).__name__}")
    if x.layout != torch.strided:
        raise Drop("sparse tensor")
    if x.dtype not in NAMES:
        raise Drop(f"tensor of {str(x.dtype).removeprefix('torch.')}")
    return x.detach().clone(memory_format=torch.contiguous_format).contiguous()


# Arguments that say where and how to allocate or run; they mean nothing for the value.
_IGNORED = {
    "device": lambda v: True,
    "requires_grad": lambda v: not v,
    "non_blocking": lambda v: True,
    "copy": lambda v: True,
    "layout": lambda v: v in (None, torch.strided),
    "memory_format": lambda v: v in (None, torch.preserve_format, torch.contiguous_format),
    "pin_memory": lambda v: not v,
    "sparse_grad": lambda v: not v,
}


def bind(params, args, kwargs):
    """Resolves a call to {name: canonical value} in the order of the signature; absent and default arguments are omitted."""
    kwargs = dict(kwargs)
    for name, harmless in _IGNORED.items():
        if name in kwargs and not any(p.name == name for p in params):
            if not harmless(kwargs.pop(name)):
                raise Drop(f"argument {name}")
    positional = [p for p in params if not p.keyword_only]
    if len(args) > len(positional):
        raise Drop("too many positional arguments")
    raw = dict(zip((p.name for p in positional), args))
    for name, value in kwargs.items():
        if not any(p.name == name for p in params):
            raise Drop(f"argument {name}")
        if name in raw:
            raise Drop(f"argument {name} given twice")
        raw[name] = value
    out = {}
    for p in params:
        if p.name not in raw:
            if p.required and not p.optional:
                raise Drop(f"argument {p.name} missing")
            continue
        value = normalize(p, raw[p.name])
        if value is None or (not p.required and same(value, p.default)):
            continue
        out[p.name] = value
    return out


def same(a, b):
    return not isinstance(a, (torch.Tensor, Scalar)) and a == b


@dataclass
class Case:
    """One canonical call. Operands (tensors and scalars in their place) become inputs, the rest attributes."""

    op: str
    dtype: torch.dtype
    args: dict
    inputs: list  # names of args that are operands
    pinned: bool = False  # always kept
    grad: bool = True
    original: object = None  # () -> result of the unchanged OpInfo call
    outputs: list = field(default_factory=list)
    mutated: dict = field(default_factory=dict)
    cotangents: list = field(default_factory=list)
    grads: list = field(default_factory=list)  # (input name, index in a list or None, tensor)
    no_gradient: str = ""  # why PyTorch gave none
    atol: float | None = None  # when the default is too tight

    def tensors(self):
        for name in self.inputs:
            value = self.args[name]
            for t in value if isinstance(value, list) else [value]:
                if isinstance(t, torch.Tensor):
                    yield t

    def attrs(self):
        return {k: v for k, v in self.args.items() if k not in self.inputs}

    def signature(self):
        """Equal for two cases that differ in tensor contents only (pinned cases are never duplicates of others)."""
        return repr({k: describe(v) for k, v in self.args.items()}) + (str(id(self)) if self.pinned else "")

    def json(self):
        out = {"dtype": NAMES[self.dtype], "inputs": {n: encode_input(self.args[n]) for n in self.inputs}}
        if attrs := self.attrs():
            out["attrs"] = {k: encode_attr(v) for k, v in attrs.items()}
        out["outputs"] = [encode_tensor(t) for t in self.outputs]
        if self.mutated:
            out["mutated"] = {k: encode_tensor(t) for k, t in self.mutated.items()}
        if self.grads:
            out["cotangents"] = [None if t is None else encode_tensor(t) for t in self.cotangents]
            out["grads"] = [
                {"input": n, **({} if i is None else {"index": i}), "grad": encode_tensor(t)} for n, i, t in self.grads
            ]
        if self.atol is not None:
            out["atol"] = self.atol
        return out


def operands(params):
    return {p.name for p in params if p.kind in ("Tensor", "Tensor[]", "Tensor?[]", "Operand")}


def describe(v):
    if isinstance(v, torch.Tensor):
        return NAMES[v.dtype], tuple(v.shape)
    if isinstance(v, Scalar):
        return type(v.value).__name__, v.value
    if isinstance(v, list):
        return [describe(x) for x in v]
    return type(v).__name__, str(v)


def encode_tensor(t):
    data = t.detach().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes() if t.numel() else b""
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data": base64.b64encode(data).decode()}


def encode_number(x):
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"}
    return x


def encode_input(v):
    if isinstance(v, Scalar):
        return {"scalar": encode_number(v.value)}
    if isinstance(v, list):
        return [None if t is None else encode_tensor(t) for t in v]
    return encode_tensor(v)


def encode_attr(v):
    if isinstance(v, torch.dtype):
        return {"dtype": NAMES[v]}
    if isinstance(v, list):
        return [encode_number(x) for x in v]
    return encode_number(v)
