"""A peer of bench/aoti: PyTorch's Python loader of AOTInductor packages.

Arguments and protocol are those of runner.cpp; without arguments it prints what
building runner.cpp needs: include folders, the library folder and the C++ ABI.
"""

import ctypes
import os
import sys
import time

import torch

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip


def read_input(line):
    dtype, sizes, path = line.rstrip("\n").split("\t")
    dims = [int(d) for d in sizes.split(",") if d]
    with open(path, "rb") as f:
        data = bytearray(f.read())
    if not data:
        return torch.empty(dims, dtype=DTYPES[dtype])
    return torch.frombuffer(data, dtype=DTYPES[dtype]).reshape(dims).clone()


def describe():
    from torch.utils import cpp_extension

    for folder in cpp_extension.include_paths():
        print("include", folder)
    print("lib", cpp_extension.library_paths()[0])
    print("cxx11", int(torch._C._GLIBCXX_USE_CXX11_ABI))
    print("version", torch.__version__)


def main(package, threads, manifest):
    torch.set_num_threads(int(threads))
    # Packages that were not linked with libtorch find it only in the global scope.
    ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
    with open(manifest) as f:
        inputs = [read_input(line) for line in f]
    begin = time.perf_counter_ns()
    # loader.run takes and returns flat lists, as the C++ runner does.
    loader = torch._C._aoti.AOTIModelPackageLoader(package, "model", False, 1, -1)
    load = time.perf_counter_ns() - begin
    loader.run(inputs)
    print("ready", load, flush=True)
    for request in sys.stdin:
        end = time.perf_counter_ns() + int(request.split()[1]) * 1_000_000
        times = []
        while not times or time.perf_counter_ns() < end:
            t0 = time.perf_counter_ns()
            loader.run(inputs)
            times.append(time.perf_counter_ns() - t0)
        times.sort()
        print(len(times), times[len(times) // 2], times[0], flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        describe()
    else:
        main(*sys.argv[1:])
