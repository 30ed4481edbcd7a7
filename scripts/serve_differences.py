"""Sends the same requests over HTTP to two servers of the model `simple`, Triton and Loris, and lists where they differ in
the status or in the outputs. scripts/serve-differences runs both.

    python scripts/serve_differences.py TRITON_HOST:PORT LORIS_HOST:PORT

INPUT0 and INPUT1 are INT32[-1,16]; OUTPUT0 is their sum and OUTPUT1 their difference."""

import http.client
import json
import struct
import sys
import zlib

X = list(range(16))
RAW = struct.pack("<16i", *X)
MODEL = "/v2/models/simple"


def body(inputs, **more):
    return json.dumps({"inputs": inputs, **more})


def tensor(name, data=X, shape=(1, 16), datatype="INT32", **more):
    return {"name": name, "shape": list(shape), "datatype": datatype, "data": data, **more}


def binary(text, data, length=None):
    return text.encode() + data, {"Inference-Header-Content-Length": str(len(text) if length is None else length)}


BOTH = [tensor("INPUT0"), tensor("INPUT1")]
BYTES = [{"name": n, "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": 64}} for n in ("INPUT0", "INPUT1")]
GOOD = body(BOTH)
CASES = {
    "live": ("GET", "/v2/health/live"),
    "ready": ("GET", "/v2/health/ready"),
    "server metadata": ("GET", "/v2"),
    "server metadata, slash": ("GET", "/v2/"),
    "model metadata": ("GET", MODEL),
    "model metadata, version": ("GET", MODEL + "/versions/1"),
    "model metadata, version that is not there": ("GET", MODEL + "/versions/9"),
    "model metadata, version that is no number": ("GET", MODEL + "/versions/v1"),
    "model metadata, no such model": ("GET", "/v2/models/none"),
    "model ready": ("GET", MODEL + "/ready"),
    "model ready, no such model": ("GET", "/v2/models/none/ready"),
    "config": ("GET", MODEL + "/config"),
    "statistics": ("GET", MODEL + "/stats"),
    "statistics of all": ("GET", "/v2/models/stats"),
    "index": ("POST", "/v2/repository/index"),
    "index, ready": ("POST", "/v2/repository/index", '{"ready": true}'),
    "load": ("POST", "/v2/repository/models/simple/load", "{}"),
    "load, no such model": ("POST", "/v2/repository/models/none/load", "{}"),
    "log settings": ("GET", "/v2/logging"),
    "trace settings": ("GET", "/v2/trace/setting"),
    "no such path": ("GET", "/v2/nothing"),
    "wrong method": ("GET", MODEL + "/infer"),
    "infer": ("POST", MODEL + "/infer", GOOD),
    "infer, id": ("POST", MODEL + "/infer", body(BOTH, id="7")),
    "infer, nested data": ("POST", MODEL + "/infer", body([tensor("INPUT0", [X]), tensor("INPUT1", [X])])),
    "infer, one output": ("POST", MODEL + "/infer", body(BOTH, outputs=[{"name": "OUTPUT1"}])),
    "infer, output that is not there": ("POST", MODEL + "/infer", body(BOTH, outputs=[{"name": "OUTPUT9"}])),
    "infer, classification": ("POST", MODEL + "/infer", body(BOTH, outputs=[{"name": "OUTPUT0", "parameters": {"classification": 2}}])),
    "infer, binary": ("POST", MODEL + "/infer", *binary(body(BYTES, parameters={"binary_data_output": True}), RAW + RAW)),
    "infer, binary cut off": ("POST", MODEL + "/infer", *binary(body(BYTES), RAW)),
    "infer, binary with more": ("POST", MODEL + "/infer", *binary(body(BYTES), RAW + RAW + RAW)),
    "infer, JSON longer than the body": ("POST", MODEL + "/infer", *binary(body(BYTES), RAW + RAW, 99999)),
    "infer, deflate": ("POST", MODEL + "/infer", zlib.compress(GOOD.encode()), {"Content-Encoding": "deflate"}),
    "infer, unknown coding": ("POST", MODEL + "/infer", GOOD, {"Content-Encoding": "br"}),
    "infer, malformed JSON": ("POST", MODEL + "/infer", GOOD[:-1]),
    "infer, empty body": ("POST", MODEL + "/infer", ""),
    "infer, no inputs": ("POST", MODEL + "/infer", "{}"),
    "infer, an input is missing": ("POST", MODEL + "/infer", body(BOTH[:1])),
    "infer, an input twice": ("POST", MODEL + "/infer", body(BOTH + BOTH[:1])),
    "infer, unknown input": ("POST", MODEL + "/infer", body(BOTH + [tensor("INPUT9")])),
    "infer, wrong datatype": ("POST", MODEL + "/infer", body([tensor("INPUT0", datatype="FP32"), BOTH[1]])),
    "infer, no such datatype": ("POST", MODEL + "/infer", body([tensor("INPUT0", datatype="INT31"), BOTH[1]])),
    "infer, wrong shape": ("POST", MODEL + "/infer", body([tensor("INPUT0", X[:8], (1, 8)), BOTH[1]])),
    "infer, negative shape": ("POST", MODEL + "/infer", body([tensor("INPUT0", shape=(-1, 16)), BOTH[1]])),
    "infer, fewer elements": ("POST", MODEL + "/infer", body([tensor("INPUT0", X[:8]), BOTH[1]])),
    "infer, more elements": ("POST", MODEL + "/infer", body([tensor("INPUT0", X + X), BOTH[1]])),
    "infer, a fraction for INT32": ("POST", MODEL + "/infer", body([tensor("INPUT0", [0.5] * 16), BOTH[1]])),
    "infer, too large for INT32": ("POST", MODEL + "/infer", body([tensor("INPUT0", [1 << 40] * 16), BOTH[1]])),
    "infer, text for INT32": ("POST", MODEL + "/infer", body([tensor("INPUT0", ["a"] * 16), BOTH[1]])),
    "infer, no such model": ("POST", "/v2/models/none/infer", GOOD),
    "infer, no such version": ("POST", MODEL + "/versions/9/infer", GOOD),
}


def ask(address, method, path, content=None, headers=()):
    c = http.client.HTTPConnection(address, timeout=30)
    try:
        c.request(method, path, content, dict(headers))
        r = c.getresponse()
        data = r.read()
        length = r.getheader("Inference-Header-Content-Length")
        text = data[: int(length)] if length else data
        try:
            value = json.loads(text)
        except ValueError:
            value = text.decode(errors="replace")
        return r.status, value, data[len(text) :]
    finally:
        c.close()


def brief(status, value):
    text = value["error"] if isinstance(value, dict) and set(value) == {"error"} else json.dumps(value)
    return f"{status} {text[:110]}"


def essence(status, value, tail):
    """What must be alike: the status, and of an answer of a model the outputs with their data."""
    outputs = value.get("outputs", []) if isinstance(value, dict) and "model_name" in value else []
    return status, [(o["name"], o["datatype"], o["shape"], o.get("data")) for o in outputs], tail


same = different = 0
for name, request in CASES.items():
    answers = [ask(address, *request) for address in sys.argv[1:3]]
    if essence(*answers[0]) == essence(*answers[1]):
        same += 1
        continue
    different += 1
    print(name, *(f"    {brief(status, value)}" for status, value, _ in answers), sep="\n")
print(f"{same} requests were answered alike, {different} differently")
