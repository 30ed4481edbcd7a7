#!/usr/bin/env python3
"""Write the list of C functions that AOTInductor's artefacts may call.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0
    .venv/bin/python scripts/aoti_symbols.py > aoti/internal/host/symbols.txt

Each line is a header's short name, the function's name and its result and
arguments by kind. The kinds are those of aoti/internal/host/signature.go.
"""
import os
import re
import sys

import torch

BASE = os.path.join(os.path.dirname(torch.__file__), "include", "torch", "csrc", "inductor", "aoti_torch")
HEADERS = ["c/shim.h", "c/shim_deprecated.h", "c/shim_cpu.h", "generated/c_shim_cpu.h", "generated/c_shim_aten.h",
           "generated/c_shim_cuda.h"]

# C types by kind. A pointer that is followed by a length is a list.
KINDS = {
    "AtenTensorHandle": "tensor",
    "AtenTensorHandle*": "tensor?",
    "const AtenTensorHandle*": "tensor*",
    "const AtenTensorHandle**": "tensor?*",
    "AtenGeneratorHandle*": "generator?",
    "int64_t": "int",
    "int64_t*": "int?",
    "const int64_t*": "int*",
    "const int64_t**": "int*?",
    "int32_t": "bool",
    "int32_t*": "bool?",
    "const int32_t*": "bool*",
    "double": "float",
    "double*": "float?",
    "const double**": "float?*",
    "const char*": "str",
    "const char**": "str?",
    "float": "float32",
    "int": "bool",
    "bool": "bool8",
    "bool*": "outbool",
    "uint32_t": "uint32",
    "uint64_t": "uint64",
    "size_t": "size",
    "void": "void",
}

# Functions of PyTorch 2.6 that were named otherwise later, by the later name.
RENAMED = {"aoti_torch_cpu__qconv_pointwise_tensor": "aoti_torch_cpu__qconv2d_pointwise_tensor"}

# Ops that PyTorch has had for CUDA alone since packages exist, in headers that do not say so.
CUDA_ONLY = {
    "aoti_torch__scaled_dot_product_flash_attention",
    "aoti_torch__scaled_dot_product_flash_attention_v2",
    "aoti_torch__scaled_dot_product_efficient_attention",
}

PROTOTYPE = re.compile(r"AOTI_TORCH_EXPORT\s+([\w: ]+?\*?)\s*(\w+)\(([^;]*?)\);", re.S)


def kind(ctype, name):
    ctype = re.sub(r"\s*\*", "*", ctype.strip())
    if ctype == "AtenTensorHandle*" and re.fullmatch(r"ret\w*|out|new_handle", name):
        return "out"
    if ctype == "int64_t*" and re.fullmatch(r"ret\d", name):
        return "outint"
    if ctype == "const int32_t*" and name.endswith("dtype"):
        return "bool?"
    if not ctype.endswith("*"):
        ctype = ctype.removeprefix("const ")
    return KINDS.get(ctype, ctype.replace(" ", "_"))


def arguments(text):
    text = re.sub(r"//[^\n]*", "", text)
    out = []
    for arg in filter(None, (" ".join(a.split()) for a in text.split(","))):
        m = re.match(r"(.*?[\s*])(\w+)$", arg)
        ctype, name = (m.group(1), m.group(2)) if m else (arg, "")
        out.append(f"{name.rstrip('_')}:{kind(ctype, name)}")
    return out


def main():
    print("# Made by scripts/aoti_symbols.py from the headers of PyTorch", torch.__version__.split("+")[0])
    renamed = []
    for header in HEADERS:
        with open(os.path.join(BASE, header)) as f:
            text = f.read()
        cuda = re.findall(r"#ifdef USE_CUDA(.*?)#endif", text, re.S)
        seen = set()
        for m in PROTOTYPE.finditer(text):
            result, name, args = m.groups()
            if name in seen:
                continue
            seen.add(name)
            where = header.split("/")[-1]
            if name in CUDA_ONLY or any(name + "(" in block for block in cuda):
                where += ":cuda"
            print(where, name, kind(result, ""), *arguments(args))
            if name in RENAMED:
                renamed.append((where, RENAMED[name], kind(result, ""), *arguments(args)))
    for line in renamed:
        print(*line)


if __name__ == "__main__":
    sys.exit(main())
