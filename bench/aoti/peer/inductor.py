"""Compiles programs in Loris's text form with AOTInductor: inductor.py STEM...

Each STEM.lir, with its weights in STEM.weights, becomes STEM.inductor.pt2, unless one of the same text is there. Ops
are called by their names, which are ATen's. Parameters that are called "in0", "in1", … are the model's inputs.
"""
import json
import os
import re
import struct
import sys
import time

import torch

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[%@][\w.]+|-?[\d.]+(?:e[-+]?\d+)?|-?inf|[\w]+|[(){}\[\],=:])')
LOWER = {"F32": "f32", "F64": "f64", "F16": "f16", "BF16": "bf16", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "U8": "u8", "BOOL": "bool"}


def read(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head, body = json.loads(f.read(n)), f.read()
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            dtype = DTYPES[LOWER[t["dtype"]]]
            out[name] = torch.frombuffer(bytearray(body[a:b]), dtype=dtype).reshape(t["shape"]) if b > a else torch.empty(t["shape"], dtype=dtype)
    return out


class Value(str):
    """The name of a value."""


class Parser:
    """Reads a program to a list of calls: names of results, op, arguments by position and by name."""

    def __init__(self, text):
        text = "\n".join(line.split("#")[0] for line in text.splitlines())
        self.tokens, self.at = TOKEN.findall(text), 0
        self.params, self.calls, self.temporaries = [], [], 0
        while self.next() != "{":
            pass
        while self.peek() != "return":
            self.instruction()
        self.next()
        self.returns = [self.argument()]
        while self.take(","):
            if self.peek() == "}":
                break
            self.returns.append(self.argument())

    def peek(self, n=0):
        return self.tokens[self.at + n]

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, token):
        found = self.peek() == token
        self.at += found
        return found

    def instruction(self):
        names = [self.next()[1:]]
        while self.take(","):
            names.append(self.next()[1:])
        assert self.next() == "="
        if self.peek() == "parameter":
            self.next()
            self.params.append((names[0], json.loads(self.next())))
            self.types()
            return
        self.call(names)
        self.types()

    def types(self):
        if self.take(":"):
            while True:
                self.next()
                while self.next() != "]":
                    pass
                if not (self.peek() == "," and self.peek(1) in DTYPES):
                    return
                self.next()

    def call(self, names):
        op = self.next()
        assert self.next() == "(", op
        args, named = [], {}
        while not self.take(")"):
            if self.peek(1) == "=":
                key = self.next()
                self.next()
                named[key] = self.argument()
            else:
                args.append(self.argument())
            self.take(",")
        self.calls.append((names, op, args, named))

    def argument(self):
        token = self.peek()
        if token == "[":
            self.next()
            items = []
            while not self.take("]"):
                items.append(self.argument())
                self.take(",")
            return items
        if self.peek(1) == "(":
            name = f"nested{self.temporaries}"
            self.temporaries += 1
            self.call([name])
            return Value(name)
        self.next()
        if token[0] == "%":
            return Value(token[1:])
        if token[0] == '"':
            return json.loads(token)
        words = {"true": True, "True": True, "false": False, "False": False, "None": None, "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
        if token in words:
            return words[token]
        if token in DTYPES:
            return DTYPES[token]
        return int(token) if re.fullmatch(r"-?\d+", token) else float(token)


def cast(x, dtype):
    return x.to(dtype)


def batch_norm(input, weight, bias, mean, var, training=False, momentum=0.1, eps=1e-5):
    assert not training
    return torch.nn.functional.batch_norm(input, mean, var, weight, bias, False, 0.1, eps), mean, var


def max_pool_with_indices(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    pool = getattr(torch.nn.functional, f"max_pool{len(kernel_size)}d")
    return pool(x, kernel_size, stride or None, padding, dilation, ceil_mode, True)


SPECIAL = {
    "cast": cast, "max_pool_with_indices": max_pool_with_indices, "batch_norm": batch_norm,
    "full": lambda size, fill_value, dtype=None: torch.full(size, fill_value, dtype=dtype),
}  # fmt: skip


def evaluate(parser, values):
    values = dict(values)

    def of(a):
        if isinstance(a, Value):
            return values[a]
        return [of(x) for x in a] if isinstance(a, list) else a

    for names, op, args, named in parser.calls:
        f = SPECIAL.get(op) or getattr(torch.ops.aten, op)
        out = f(*[of(a) for a in args], **{k: of(v) for k, v in named.items()})
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        values.update(zip(names, out))
    return [of(r) for r in parser.returns]


class Program(torch.nn.Module):
    def __init__(self, parser, weights):
        super().__init__()
        self.parser = parser
        self.inputs = sorted((int(name[2:]), value) for value, name in parser.params if name.startswith("in"))
        self.weights = {value: name for value, name in parser.params if name.startswith("w")}
        for value, name in self.weights.items():
            self.register_buffer(name, weights[name])

    def forward(self, *x):
        values = {value: getattr(self, name) for value, name in self.weights.items()}
        values.update({value: x[i] for i, value in self.inputs})
        return tuple(evaluate(self.parser, values))


def compile(stem):
    text = open(stem + ".lir").read()
    out, copy = stem + ".inductor.pt2", stem + ".inductor.lir"
    if os.path.exists(out) and os.path.exists(copy) and open(copy).read() == text:
        return
    example = read(stem + ".safetensors")
    inputs = tuple(example[f"in{i}"] for i in range(sum(name.startswith("in") for name in example)))
    begin = time.perf_counter()
    try:
        with torch.no_grad():
            model = Program(Parser(text), read(stem + ".weights"))
            torch._inductor.aoti_compile_and_package(torch.export.export(model, inputs), package_path=out)
    except Exception as e:
        print(f"Inductor compiles no {os.path.basename(stem)}: {type(e).__name__}: {str(e).strip().splitlines()[:1]}", flush=True)
        return
    open(copy, "w").write(text)
    print(f"Inductor took {time.perf_counter() - begin:.1f} s for {os.path.basename(stem)}", flush=True)


if __name__ == "__main__":
    for stem in sys.argv[1:]:
        compile(stem)
