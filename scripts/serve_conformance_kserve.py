"""Calls a server of the model `simple` by kserve's clients, and prints how many calls answered as they should. See
serve-conformance. It is a process of its own: tritonclient registers messages of the same names."""

import asyncio
import sys

import kserve as k
import numpy as np
from kserve.protocol.infer_type import RequestedOutput

HTTP, GRPC = sys.argv[1:3]
A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.full((1, 16), 3, np.int32)
results = []


def call(name, fn):
    try:
        good = fn()
        results.append((name, "ok" if good else f"answers {good!r}"))
    except Exception as e:  # what went wrong is the result
        results.append((name, f"{type(e).__name__}: {e}"))


base = "http://" + HTTP


def inputs(binary):
    out = []
    for name, data in (("INPUT0", A), ("INPUT1", B)):
        i = k.InferInput(name, list(data.shape), "INT32")
        i.set_data_from_numpy(data, binary_data=binary)
        out.append(i)
    return out


def good(r):
    return all((o.as_numpy().ravel() == want.ravel()).all() for o, want in zip(r.outputs, (A + B, A - B)))


def rest(fn):
    return lambda: asyncio.run(fn(k.InferenceRESTClient(k.RESTConfig(protocol="v2"))))


def grpc(fn):
    async def run():
        return await fn(k.InferenceGRPCClient(GRPC))

    return lambda: asyncio.run(run())


async def unknown(c, *place):
    try:
        await c.infer(*place, k.InferRequest("none", inputs(False)), **({"model_name": "none"} if place else {}))
    except Exception as e:
        return "none" in str(e)
    return False


async def infer(c, binary, outputs=None):
    request = k.InferRequest("simple", inputs(binary), request_id="7", request_outputs=outputs)
    r = await c.infer(base, request, model_name="simple")
    return good(r) and r.id == "7"

asked = [RequestedOutput(n, {"binary_data": True}) for n in ("out0", "out1")]
call("kserve REST live", rest(lambda c: c.is_server_live(base)))
call("kserve REST ready", rest(lambda c: c.is_server_ready(base)))
call("kserve REST model ready", rest(lambda c: c.is_model_ready(base, "simple")))
call("kserve REST infer, JSON", rest(lambda c: infer(c, False)))
call("kserve REST infer, binary", rest(lambda c: infer(c, True)))
call("kserve REST infer, binary outputs", rest(lambda c: infer(c, True, asked)))
call("kserve REST unknown model", rest(lambda c: unknown(c, base)))


async def typed(c):
    return good(await c.infer(k.InferRequest("simple", inputs(False))))


async def raw(c):
    return good(await c.infer(k.InferRequest("simple", inputs(True))))

call("kserve gRPC live", grpc(lambda c: c.is_server_live()))
call("kserve gRPC ready", grpc(lambda c: c.is_server_ready()))
call("kserve gRPC model ready", grpc(lambda c: c.is_model_ready("simple")))
call("kserve gRPC infer, contents", grpc(typed))
call("kserve gRPC infer, raw", grpc(raw))
call("kserve gRPC unknown model", grpc(lambda c: unknown(c)))

bad = [(n, r) for n, r in results if r != "ok"]
for n, r in bad:
    print(f"{n}: {r}")
print(f"{len(results) - len(bad)} of {len(results)} calls of kserve's clients answered as they should")
sys.exit(bool(bad))
