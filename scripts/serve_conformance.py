"""Calls a server of the model `simple` by the clients that people have, and prints what
each call came to and how many answered as they should. See serve-conformance."""

import asyncio
import sys
import time

import numpy as np
import tritonclient.grpc as tg
import tritonclient.grpc.aio as tga
import tritonclient.http as th
import tritonclient.http.aio as tha
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

HTTP, GRPC = sys.argv[1:3]
A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.full((1, 16), 3, np.int32)
results = []


def call(name, fn):
    try:
        good = fn()
        results.append((name, "ok" if good is None or good else f"answers {good!r}"))
    except Exception as e:  # what went wrong is the result
        results.append((name, f"{type(e).__name__}: {e}"))


def refused(fn):
    try:
        fn()
    except InferenceServerException:
        return True
    return False


def inputs(m, binary=None):
    out = []
    for name, data in (("INPUT0", A), ("INPUT1", B)):
        i = m.InferInput(name, list(data.shape), "INT32")
        if binary is None:
            i.set_data_from_numpy(data)
        else:
            i.set_data_from_numpy(data, binary_data=binary)
        out.append(i)
    return out


def right(r, first="out0", second="out1"):
    return bool((r.as_numpy(first) == A + B).all() and (r.as_numpy(second) == A - B).all())


def common(tag, c, m):
    call(f"{tag} live", c.is_server_live)
    call(f"{tag} ready", c.is_server_ready)
    call(f"{tag} model ready", lambda: c.is_model_ready("simple"))
    call(f"{tag} model ready, version", lambda: c.is_model_ready("simple", "1"))
    call(f"{tag} server metadata", lambda: bool(c.get_server_metadata()))
    call(f"{tag} model metadata", lambda: bool(c.get_model_metadata("simple")))
    call(f"{tag} config", lambda: bool(c.get_model_config("simple")))
    call(f"{tag} index", lambda: bool(c.get_model_repository_index()))
    call(f"{tag} infer", lambda: right(c.infer("simple", inputs(m))))
    call(f"{tag} infer, version and id", lambda: right(c.infer("simple", inputs(m), model_version="1", request_id="7")))
    call(f"{tag} infer, outputs", lambda: right(c.infer("simple", inputs(m), outputs=[m.InferRequestedOutput("out0"), m.InferRequestedOutput("out1")])))
    call(f"{tag} infer, priority and timeout", lambda: right(c.infer("simple", inputs(m), priority=1, timeout=1_000_000)))
    call(f"{tag} unknown model", lambda: refused(lambda: c.infer("none", inputs(m))))
    call(f"{tag} missing input", lambda: refused(lambda: c.infer("simple", inputs(m)[:1])))
    call(f"{tag} statistics", lambda: bool(c.get_inference_statistics("simple")))
    call(f"{tag} statistics of all", lambda: bool(c.get_inference_statistics()))
    call(f"{tag} log settings", lambda: bool(c.get_log_settings()))
    call(f"{tag} change log settings", lambda: bool(c.update_log_settings({"log_verbose_level": 1})))
    call(f"{tag} trace settings", lambda: bool(c.get_trace_settings()))
    call(f"{tag} unload", lambda: c.unload_model("simple"))
    call(f"{tag} not ready", lambda: not c.is_model_ready("simple"))
    call(f"{tag} load", lambda: c.load_model("simple"))
    call(f"{tag} infer after load", lambda: right(c.infer("simple", inputs(m))))


def stream():
    got = []
    c = tg.InferenceServerClient(GRPC)
    c.start_stream(lambda result, error: got.append((result, error)))
    for n in range(3):
        c.async_stream_infer("simple", inputs(tg), request_id=str(n))
    c.async_stream_infer("none", inputs(tg))
    c.stop_stream()
    return len(got) == 4 and all(right(r) for r, e in got[:3]) and got[3][1] is not None


async def aio():
    async with tha.InferenceServerClient(HTTP) as h:
        a = right(await h.infer("simple", inputs(th)))
    async with tga.InferenceServerClient(GRPC) as g:
        b = right(await g.infer("simple", inputs(tg)))
    return a and b


def shared(c, m, name):
    """Both inputs from shared memory, one output into it and the other in the answer."""
    c.unregister_system_shared_memory()
    region = shm.create_shared_memory_region(name, "/" + name, 192)
    try:
        shm.set_shared_memory_region(region, [A, B])
        c.register_system_shared_memory(name, "/" + name, 192)
        ins = [m.InferInput(n, [1, 16], "INT32") for n in ("INPUT0", "INPUT1")]
        outs = [m.InferRequestedOutput(n) for n in ("out0", "out1")]
        for i, tensor in enumerate((*ins, outs[0])):
            tensor.set_shared_memory(name, 64, offset=64 * i)
        r = c.infer("simple", ins, outputs=outs)
        sum = shm.get_contents_as_numpy(region, np.int32, [1, 16], offset=128)
        good = bool((sum == A + B).all() and (r.as_numpy("out1") == A - B).all() and c.get_system_shared_memory_status())
        c.unregister_system_shared_memory(name)
        return good
    finally:
        shm.destroy_shared_memory_region(region)


for _ in range(300):
    try:
        if th.InferenceServerClient(HTTP).is_server_ready():
            break
    except Exception:
        pass
    time.sleep(0.1)

h = th.InferenceServerClient(HTTP)
common("http", h, th)
call("http infer, JSON", lambda: right(h.infer("simple", inputs(th, False), outputs=[th.InferRequestedOutput(n, binary_data=False) for n in ("out0", "out1")])))
for how in ("gzip", "deflate"):
    call(f"http infer, {how}", lambda: right(h.infer("simple", inputs(th), request_compression_algorithm=how, response_compression_algorithm=how)))
call("http async infer", lambda: right(h.async_infer("simple", inputs(th)).get_result()))
call("http shared memory: no regions", lambda: not h.get_system_shared_memory_status())
call("http shared memory", lambda: shared(h, th, "loris-conformance-http"))
g = tg.InferenceServerClient(GRPC)
common("grpc", g, tg)
one = tg.InferenceServerClient(HTTP)
call("grpc on the shared port", lambda: right(one.infer("simple", inputs(tg))))
for how in ("gzip", "deflate"):
    call(f"grpc infer, {how}", lambda: right(g.infer("simple", inputs(tg), compression_algorithm=how)))
call("grpc shared memory: no regions", lambda: not g.get_system_shared_memory_status().regions)
call("grpc shared memory", lambda: shared(g, tg, "loris-conformance-grpc"))
call("grpc stream", stream)
call("aio, both", lambda: asyncio.run(aio()))
bad = [(n, r) for n, r in results if r != "ok"]
for n, r in bad:
    print(f"{n}: {r}")
print(f"{len(results) - len(bad)} of {len(results)} calls answered as they should")
sys.exit(bool(bad))
