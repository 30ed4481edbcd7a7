"""What the Python servers have in common: a package of AOTInductor, loaded by PyTorch for the threads that the environment says."""
import ctypes, os, pathlib

import torch

for library in ("libc10.so", "libtorch_cpu.so"):  # the packages do not name them
    ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / library), mode=ctypes.RTLD_GLOBAL)
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def load(path):
    """Returns the model as a function of numpy arrays to one."""
    package = torch._inductor.aoti_load_package(str(path))

    def run(*arrays):
        out = package(*(torch.from_numpy(a) for a in arrays))
        return (out if isinstance(out, torch.Tensor) else out[0]).numpy()

    run.package = package
    return run
