"""Writes internal/npformat/testdata/numpy.json: arrays and what NumPy prints for them.

    python3 -m venv .venv && .venv/bin/pip install numpy==2.4.6
    .venv/bin/python scripts/make_npformat_golden.py

With arguments FILE N it writes N random cases more to FILE, for
`go test ./internal/npformat -args -golden FILE`.
"""

import json
import pathlib
import sys

import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "internal/npformat/testdata/numpy.json"
INF, NAN = float("inf"), float("nan")


def number(x):
    """JSON has no nan and inf, and Python's repr of a float64 is exact."""
    return str(x) if isinstance(x, float) and not np.isfinite(x) else x


def case(name, array, **options):
    """Data that counts up from 0 by a step is described, not listed."""
    array = np.asarray(array)
    flat = array.astype(np.float64 if array.dtype.kind == "f" else np.int64).ravel()
    c = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
    step = float(flat[1]) if flat.size > 1 else 0
    if flat.size > 60:
        assert np.array_equal((np.arange(flat.size) * step).astype(array.dtype), array.ravel()), name
        c["step"] = step
    else:
        c["data"] = [number(x) for x in flat.tolist()]
    if options:
        c["options"] = options
    c["want"] = np.array2string(array, **options)
    return c


def floats(dtype):
    def a(*values):
        return np.array(values, dtype=dtype)

    def arange(*shape, step=1.0):
        return (np.arange(int(np.prod(shape))) * step).astype(dtype).reshape(shape)

    yield "whole", a(1, 2, 3)
    yield "signs", a(-1, 0.5, -0.0, 0)
    yield "decimals", a([0.1, 0.25], [1 / 3, 100])
    yield "shortest digits", a(0.1, 0.2, 0.3)
    yield "long digits", a(1 / 3, 2 / 3, np.pi)
    yield "ratio above 1000", a(0.5, 501)
    yield "ratio of 1000", a(0.5, 500)
    yield "ratio that rounds to 1000", a(0.001, 1)
    yield "small", a(0.00009, 0.05)
    yield "at the small bound", a(0.0001, 0.05)
    yield "large", a(1e8, 1)
    yield "at the bound of float32", a(999999, 1e6)
    yield "below the bound of float32", a(999999, 1000)
    yield "exponents of one width", a(1e-10, 1e10)
    yield "rounding up to the next power", a(0.999999999999, 0.5)
    yield "nan and inf", a(1, NAN, INF)
    yield "minus inf", a(1.5, NAN, -INF)
    yield "minus inf with room", a(-100.25, -INF, 3)
    yield "nothing finite", a(NAN, INF)
    yield "nothing finite, minus", a(-INF, NAN)
    yield "nan in scientific", a(1e-10, NAN, -INF, 1)
    yield "zeros", a(0, 0)
    yield "scalar", a(2.5).reshape(())
    yield "scalar nan", a(NAN).reshape(())
    yield "scalar large", a(12345678).reshape(())
    yield "empty", a()
    yield "empty rows", a().reshape(3, 0)
    yield "lines", arange(40, step=0.5)
    yield "rows over lines", arange(2, 25, step=0.125)
    yield "three axes", arange(2, 2, 3)
    yield "five axes", arange(1, 2, 1, 2, 2)
    yield "at the threshold", arange(1000)
    yield "above the threshold", arange(1001)
    yield "summary of rows", arange(500, 3)
    yield "summary of columns", arange(3, 500, step=0.5)
    yield "summary of both", arange(100, 100)
    yield "summary of three axes", arange(10, 20, 30)
    yield "summary, one axis short", arange(6, 20, 30)


def generic():
    for dtype in (np.float64, np.float32, np.float16):
        tag = np.dtype(dtype).name + " "
        for name, array in floats(dtype):
            if dtype == np.float16 and (not np.isfinite(array).all() and "inf" not in name and "nan" not in name or array.size > 60):
                continue  # values beyond float16
            yield tag + name, array, {}
    tiny, big = np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max
    yield "float64 ends", np.array([tiny, big, -big]), {}
    yield "float32 ends", np.array([1e-45, 3.4028235e38], dtype=np.float32), {}
    x = np.array([1.23456789012345, -0.000123456, 12.5])
    for options in (
        {"precision": 4},
        {"precision": 0},
        {"precision": 17},
        {"suppress_small": True},
        {"suppress_small": True, "precision": 3},
        {"separator": ", "},
        {"separator": ","},
        {"separator": ", ", "prefix": "array(", "suffix": ")"},
        {"max_line_width": 20},
        {"max_line_width": 1},
    ):
        yield f"options {options}", x, options
    yield "suppressed to zero", np.array([1e-12, -1e-12, 1.0]), {"suppress_small": True}
    yield "suppressed but large", np.array([1e-12, 1e9]), {"suppress_small": True}
    wide = (np.arange(60) * 0.25).reshape(3, 20)
    yield "wrapped rows of an array()", wide, {"separator": ", ", "prefix": "array(", "suffix": ")"}
    yield "narrow lines", wide, {"max_line_width": 30}
    yield "edge items", np.arange(100 * 100).reshape(100, 100), {"edgeitems": 1, "threshold": 10}
    yield "more edge items", np.arange(40), {"edgeitems": 10, "threshold": 10}
    yield "summary over lines", np.arange(2000) * 1.5, {"max_line_width": 20, "separator": ", "}
    yield "int", np.array([[1, -20], [300, 4]]), {}
    yield "int ends", np.array([-(2**63), 2**63 - 1]), {}
    yield "int32", np.array([7, -7], dtype=np.int32), {}
    yield "uint8", np.array([[0, 255]], dtype=np.uint8), {}
    yield "int scalar", np.array(-5), {}
    yield "int summary", np.arange(5000).reshape(50, 100), {}
    yield "int lines", np.arange(60), {}
    yield "bool", np.array([[True, False], [False, False]]), {}
    yield "bool scalar", np.array(True), {}
    yield "bool scalar false", np.array(False), {}
    yield "bool lines", np.arange(30) % 3 == 0, {}
    yield "empty int", np.zeros((0, 2), dtype=np.int64), {}


def random(count, seed=1):
    """Arrays of random bit patterns, and of values of similar size."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        dtype = (np.float64, np.float32, np.float16)[i % 3]
        bits = {8: np.uint64, 4: np.uint32, 2: np.uint16}[np.dtype(dtype).itemsize]
        n = int(rng.integers(1, 6))
        if rng.random() < 0.4:
            array = rng.integers(0, np.iinfo(bits).max, n, dtype=bits, endpoint=True).view(dtype)
        else:
            scale = 10.0 ** rng.integers(-4, 5)
            array = np.round(rng.standard_normal(n) * scale, int(rng.integers(0, 12))).astype(dtype)
        options = {}
        if rng.random() < 0.5:
            options = {"precision": int(rng.integers(0, 18)), "suppress_small": bool(rng.integers(2))}
        yield f"random {i}", array, options


def layouts(count, seed=2):
    """Integers in random shapes, to test lines and summaries."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        shape = rng.integers(1, (13, 9, 7, 5)[: int(rng.integers(1, 5))])
        options = {
            "max_line_width": int(rng.integers(1, 60)),
            "threshold": int(rng.integers(0, 100)),
            "edgeitems": int(rng.integers(1, 5)),
            "separator": str(rng.choice([" ", ", ", ",", "; "])),
            "prefix": str(rng.choice(["", "array("])),
            "suffix": str(rng.choice(["", ")"])),
        }
        yield f"layout {i}", np.arange(int(np.prod(shape))).reshape(shape), options


def write(path, cases):
    lines = [json.dumps(case(name, array, **options)) for name, array, options in cases]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if len(sys.argv) > 1:
    n = int(sys.argv[2])
    write(pathlib.Path(sys.argv[1]), [*random(n, seed=3), *layouts(n, seed=4)])
else:
    OUT.parent.mkdir(parents=True, exist_ok=True)
    write(OUT, [*generic(), *random(60), *layouts(25)])
