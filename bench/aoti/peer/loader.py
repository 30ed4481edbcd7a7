"""A peer of bench/aoti: PyTorch's Python loader of AOTInductor packages.

Arguments and protocol are those of runner.cpp. With a device alone it prints what building runner.cpp needs: include folders, the library folder and the C++ ABI.
"""

import ctypes
import glob
import os
import shutil
import sys
import time

import torch

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip


def read_input(line, device):
    dtype, sizes, path = line.rstrip("\n").split("\t")
    dims = [int(d) for d in sizes.split(",") if d]
    with open(path, "rb") as f:
        data = bytearray(f.read())
    if not data:
        return torch.empty(dims, dtype=DTYPES[dtype], device=device)
    return torch.frombuffer(data, dtype=DTYPES[dtype]).reshape(dims).clone().to(device)


def toolkit():
    """The folder of CUDA's headers: of the compiler's toolkit, or of packages beside torch; None if there is none."""
    from torch.utils import cpp_extension

    places = [cpp_extension.CUDA_HOME or "", os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc") or "")))]
    places += sorted(glob.glob("/usr/local/cuda*") + glob.glob("/opt/cuda*"))
    for folder in sys.path:
        places += glob.glob(f"{folder}/nvidia/cu[0-9]*") + glob.glob(f"{folder}/triton/backends/nvidia")
    for place in places:
        # The package of the runtime alone has not all that its headers include.
        if place and all(os.path.exists(f"{place}/include/{name}") for name in ("cuda_runtime_api.h", "crt/host_config.h")):
            return place
    return None


def describe(device):
    from torch.utils import cpp_extension

    for folder in cpp_extension.include_paths():
        print("include", folder)
    if torch.device(device).type == "cuda" and (home := toolkit()):
        print("include", f"{home}/include")
    print("lib", cpp_extension.library_paths()[0])
    print("cxx11", int(torch._C._GLIBCXX_USE_CXX11_ABI))
    print("version", torch.__version__)


def libraries(cuda):
    """Packages that were not linked with libtorch find it only in the global scope."""
    for name in ("libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so")[: 3 if cuda else 1]:
        ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name), mode=ctypes.RTLD_GLOBAL)


def turn(run, finish, milliseconds, batch):
    end = time.perf_counter_ns() + milliseconds * 1_000_000
    times = []
    while not times or time.perf_counter_ns() < end:
        t0 = time.perf_counter_ns()
        for _ in range(batch):
            run()
        finish()
        times.append((time.perf_counter_ns() - t0) // batch)
    times.sort()
    return f"{len(times)} {times[len(times) // 2]} {times[0]}"


def save(outputs, path):
    with open(path, "wb") as f:
        for t in outputs:
            f.write(t.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())


def main(package, threads, manifest, device):
    torch.set_num_threads(int(threads))
    device = torch.device(device)
    cuda = device.type == "cuda"
    libraries(cuda)
    finish, index = lambda: None, -1
    if cuda:
        index = device.index or 0
        torch.cuda.set_device(index)
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        finish = torch.cuda.synchronize
    with open(manifest) as f:
        inputs = [read_input(line, device) for line in f]
    begin = time.perf_counter_ns()
    # loader.run takes and returns flat lists, as the C++ runner does. On a GPU a loader for several callers would wait
    # for each run before the next; one for a single caller does not.
    make = torch._C._aoti.AOTIModelPackageLoader
    try:
        loader = make(package, "model", cuda, 1, index)
    except TypeError:  # PyTorch 2.6
        loader = make(package, "model")
    load = time.perf_counter_ns() - begin
    first = loader.run(inputs)
    finish()
    print("ready", load, flush=True)
    for request in sys.stdin:
        word, *args = request.split()
        if word == "save":
            save(first, request.split(maxsplit=1)[1].strip())
            first = None
            print("saved", flush=True)
        else:
            print(turn(lambda: loader.run(inputs), finish, int(args[0]), int(args[1])), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        describe(sys.argv[1])
    else:
        main(*sys.argv[1:])
