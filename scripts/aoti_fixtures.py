"""Writes aoti/testdata: packages compiled by AOTInductor and what PyTorch computes with them.

    python3 -m venv .venv && .venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0 torchao==0.18.0
    .venv/bin/python scripts/aoti_fixtures.py                       # all of this PyTorch's fixtures
    .venv/bin/python scripts/aoti_fixtures.py --only mlp,conv       # some of them
    .venv/bin/python scripts/aoti_fixtures.py --large --out DIR     # real models, tens to hundreds of MB each

With torch==2.6.0 or torch==2.11.0 (a virtual environment each) it writes the fixtures of those generations, whose
names end in _2_6 and _2_11. It needs g++ (12 made the committed ones) and strip.

NAME.pt2 is the package: AVX2 code (x86-64-v3), one thread unless the fixture is about threads, no libtorch, libraries
stripped, members deflated. NAME.safetensors holds, for the first run, the flattened inputs `in0`, `in1`, …, PyTorch's
outputs `out0`, … and float64 outputs `ref0`, …; further runs of the same container, in order, are `case1.in0`, …;
further models of the archive are `MODEL/in0`, …; `constant.NAME` are weights that the package leaves out. A complex
reference is stored as pairs of float64. The metadata are strings: torch, what, seed, symbols (what the library asks of
its host), strides (JSON, of the inputs that aren't contiguous), run (`eager`: outputs are not from the package itself).
"""

import argparse
import copy
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib

os.environ["AOT_INDUCTOR_ENABLE_LINE_TABLES"] = "0"
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(tempfile.gettempdir(), "aoti_fixtures"))

import torch  # noqa: E402
import torch._inductor  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch._inductor.package import load_package, package_aoti  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from aotimodels import dense, large, ops, quantised, sequence, state  # noqa: E402, F401 (they fill the tables)
from aotimodels.case import FIXTURES, LARGE, RELEASES  # noqa: E402

VERSION = ".".join(torch.__version__.split("+")[0].split(".")[:2])
NEWEST = "2.15"
TESTDATA = pathlib.Path(__file__).parent.parent / "aoti/testdata"

PORTABLE = {
    "cpp.simdlen": 256,
    "cpp.vec_isa_ok": True,  # its probe library fails to load without libtorch, and the code would not be vectorised
    "cpp.march": "x86-64-v3",
    "cpp.threads": 1,
    "aot_inductor.compile_wrapper_opt_level": "Os",
    "aot_inductor.link_libtorch": False,
}


NATIVE = {"aot_inductor.link_libtorch": False, "cpp.vec_isa_ok": True}


def options(case, threads=None):
    """The Inductor options of a case, less those that this PyTorch does not have; native ones for a number of threads."""
    wanted = {**PORTABLE, **case.config} if threads is None else {**NATIVE, **case.config, "cpp.threads": threads}
    if case.linked:
        del wanted["aot_inductor.link_libtorch"]
    known = torch._inductor.config.get_config_copy()
    return {key: value for key, value in wanted.items() if key in known}


def prepare():
    """Makes this process able to load libraries that don't name libtorch, and older releases compile small AVX2 code."""
    lib = pathlib.Path(torch.__file__).parent / "lib"
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(lib / name), mode=ctypes.RTLD_GLOBAL)
    if "cpp.march" in torch._inductor.config.get_config_copy():
        return
    from torch._inductor import cpp_builder

    flags = cpp_builder._get_optimization_cflags
    instead = {"march=native": "march=x86-64-v3", "O0": "O2", "g": "g0"}  # debug_compile asks for O0 and g

    def portable(*args, **kwargs):
        found = flags(*args, **kwargs)
        lists = found if isinstance(found, tuple) else (found,)
        for each in lists:
            each[:] = [instead.get(flag, flag) for flag in each]
        return found

    cpp_builder._get_optimization_cflags = portable


def export(case):
    module = copy.deepcopy(case.module)  # folding runs parts of it, with their side effects
    return torch.export.export(module, case.inputs, case.kwargs, dynamic_shapes=case.dynamic)


def compile_package(case, path, threads):
    if case.archive == "export":
        torch.export.save(export(case), path)
        return
    if not case.more:
        torch._inductor.aoti_compile_and_package(export(case), package_path=str(path), inductor_configs=options(case, threads))
        return
    files = {}
    for name, model in {"model": case, **case.more}.items():
        config = {**options(model), "aot_inductor.package": True}
        files[name] = torch._inductor.aot_compile(export(model).module(), model.inputs, model.kwargs, options=config)
    package_aoti(str(path), files)


def stripped(library):
    """The library without its symbol table; weights that are appended to it stay, aligned as its loader asks."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "lib.so"
        path.write_bytes(library)
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
        code = path.read_bytes()
    headers = int.from_bytes(library[40:48], "little")
    end = headers + int.from_bytes(library[58:60], "little") * int.from_bytes(library[60:62], "little")
    align = 1 << 14
    appended = library[-(-end // align) * align :]
    if not appended:
        return code
    return code + bytes(-len(code) % align) + appended


def scrubbed(source):
    """The generated source without the compiler's command lines, which are long and name local paths."""
    source = re.sub(rb"(?m)^// (Compile|Link) cmd\n// .*\n?", b"", source)
    return re.sub(rb"(?m)^(// Triton kernels are embedded as comments in ).*/", rb"\1", source)


def repack(source, target):
    """Copies an archive with its libraries stripped, and deflated unless they are large."""
    small = os.path.getsize(source) < 4 << 20
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename.endswith(".so"):
                data = stripped(data)
            elif member.filename.endswith(".cpp"):
                data = scrubbed(data)
            info = zipfile.ZipInfo(member.filename, (1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            new.writestr(info, data, zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED, 9)


def symbols(package):
    """The names that the libraries of a package leave to their host: the shim, vector mathematics, OpenMP."""
    names = set()
    with zipfile.ZipFile(package) as archive, tempfile.NamedTemporaryFile() as file:
        for member in archive.namelist():
            if not member.endswith(".so"):
                continue
            pathlib.Path(file.name).write_bytes(archive.read(member))
            out = subprocess.run(["nm", "-D", "--undefined-only", file.name], check=True, capture_output=True, text=True)
            names.update(re.findall(r"\b(?:aoti_torch|Sleef|GOMP|omp)_\w+", out.stdout))
    return sorted(names)


def tensors(prefix, tree):
    leaves = [leaf for leaf in pytree.tree_leaves(tree) if leaf is not None]
    leaves = [leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf) for leaf in leaves]
    return {f"{prefix}{i}": leaf.detach().clone().contiguous() for i, leaf in enumerate(leaves)}


def widened(tree):
    def widen(leaf):
        if not isinstance(leaf, torch.Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
            return leaf
        return leaf.to(torch.complex128 if leaf.is_complex() else torch.float64)

    return pytree.tree_map(widen, tree)


def reference(case):
    """Float64 outputs of every run."""
    module = copy.deepcopy(case.module).double()
    for inputs in (case.inputs, *case.cases):
        out = module(*widened(inputs), **widened(case.kwargs))
        yield pytree.tree_map(lambda t: torch.view_as_real(t) if t.is_complex() else t, out)


def record(case, call, prefix=""):
    """Runs the compiled model, and the module in float64, over all cases."""
    if case.seed is not None:
        torch.manual_seed(case.seed)
    found = {}
    refs = reference(case) if case.ref else None
    for i, inputs in enumerate((case.inputs, *case.cases)):
        at = prefix + (f"case{i}." if i else "")
        found |= tensors(at + "in", (copy.deepcopy(inputs), case.kwargs))
        found |= tensors(at + "out", call(*inputs, **case.kwargs))
        if refs is not None:
            found |= tensors(at + "ref", next(refs))
    return found


def loaded(case, path, model="model"):
    if not case.run or case.archive == "export":
        return copy.deepcopy(case.module)
    runner = load_package(str(path), model)
    if case.config.get("aot_inductor.package_constants_in_so") is False:
        runner.load_constants(case.module.state_dict(), check_full_update=True)
    return runner


def describe(name, case, path):
    doc = (FIXTURES | LARGE)[name].__doc__
    leaves = pytree.tree_leaves((case.inputs, case.kwargs))
    strides = {f"in{i}": t.stride() for i, t in enumerate(leaves) if not t.is_contiguous()}
    about = {"torch": torch.__version__.split("+")[0], "what": " ".join(doc.split()), "symbols": json.dumps(symbols(path))}
    if case.seed is not None:
        about["seed"] = str(case.seed)
    if strides:
        about["strides"] = json.dumps(strides)
    if not case.run or case.archive == "export":
        about["run"] = "eager"
    return about


def measure(found):
    """The largest error of PyTorch's own outputs against the reference."""
    worst = 0.0
    for key, ref in found.items():
        if not re.search(r"\bref\d+$", key) or not ref.numel():
            continue
        out = found[key.replace("ref", "out")]
        out = torch.view_as_real(out) if out.is_complex() else out
        worst = max(worst, (out.double() - ref.double()).abs().max().item())
    return worst


@torch.no_grad()
def make(name, build, folder, threads=None):
    """Makes one fixture: portable and small, or for this machine and a number of threads."""
    torch.manual_seed(zlib.crc32(name.encode()))
    case = build()
    case.module.eval()
    for model in case.more.values():
        model.module.eval()
    label = name if VERSION == NEWEST else f"{name}_{VERSION.replace('.', '_')}"
    if threads is not None:
        label += f"_native{threads}"
        torch.set_num_threads(threads)
    target = folder / f"{label}.pt2"
    with tempfile.TemporaryDirectory() as work:
        raw = pathlib.Path(work) / f"{label}.pt2"
        compile_package(case, raw, threads)
        repack(raw, target)
    found = record(case, loaded(case, target))
    for model, other in case.more.items():
        found |= record(other, loaded(other, target, model), f"{model}/")
    if case.config.get("aot_inductor.package_constants_in_so") is False:
        found |= {f"constant.{key}": value.clone() for key, value in case.module.state_dict().items()}
    for file in case.files:
        shutil.copy(file, folder)
    save_file(found, str(folder / f"{label}.safetensors"), metadata=describe(name, case, target))
    print(f"{label}: {target.stat().st_size} bytes, error {measure(found):.2g}", flush=True)


def chosen(args):
    table = LARGE if args.large else FIXTURES
    names = args.only.split(",") if args.only else list(table)
    return {name: table[name] for name in names if args.only or args.large or VERSION in RELEASES.get(name, (NEWEST,))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--out", type=pathlib.Path, default=TESTDATA, help="folder to write to (aoti/testdata)")
    parser.add_argument("--large", action="store_true", help="the larger models, which are not committed")
    parser.add_argument("--list", action="store_true", help="print the names and what each exercises")
    parser.add_argument("--native", type=int, metavar="THREADS", help="for this machine's ISA, and names that end so")
    args = parser.parse_args()
    table = chosen(args)
    if args.list:
        for name, build in table.items():
            print(f"{name:18} {' '.join(build.__doc__.split())}")
        return
    prepare()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, build in table.items():
        try:
            make(name, build, args.out, args.native)
        except Exception as error:  # one model that fails must not lose the others
            print(f"{name}: {type(error).__name__}: {error}"[:2000], file=sys.stderr, flush=True)
            failed.append(name)
        torch._dynamo.reset()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
