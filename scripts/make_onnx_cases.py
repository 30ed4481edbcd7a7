"""Writes the models of onnx/testdata/cases: small graphs with inputs and the outputs that ONNX's
reference evaluator gives. Needs onnx 1.20.1 and numpy: python scripts/make_onnx_cases.py [NAME…]"""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = os.path.join(os.path.dirname(__file__), "..", "onnx", "testdata", "cases")
rng = np.random.default_rng(7)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def info(name, a, dims=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), dims if dims is not None else a.shape)


def case(name, nodes, inputs, outputs, inits=None, opset=22, dims=None, functions=(), imports=()):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    graph = helper.make_graph(
        nodes, name,
        [info(k, v, (dims or {}).get(k)) for k, v in inputs.items()],
        [helper.make_tensor_value_info(k, t, None) for k, t in outputs.items()],
        [numpy_helper.from_array(v, k) for k, v in (inits or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports], functions=list(functions), ir_version=10, producer_name="make_onnx_cases")
    got = ReferenceEvaluator(model).run(None, inputs)
    for o, v in zip(model.graph.output, got):
        o.CopyFrom(helper.make_tensor_value_info(o.name, o.type.tensor_type.elem_type, (dims or {}).get(o.name, np.shape(v))))
    onnx.checker.check_model(model)
    folder = os.path.join(FOLDER, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "test_data_set_0"))
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, values in ("input", inputs.values()), ("output", got):
        for i, v in enumerate(values):
            with open(os.path.join(folder, "test_data_set_0", f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(v)).SerializeToString())


n = helper.make_node
i64 = lambda *v: np.array(v, dtype=np.int64)

# A convolutional network whose flattening is computed from the shape, as PyTorch's exporter writes it.
case("convnet", [
    n("Conv", ["x", "conv.weight", "conv.bias"], ["c"], pads=[1, 1, 1, 1], name="/conv/Conv"),
    n("BatchNormalization", ["c", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["b"], name="/bn/BatchNormalization"),
    n("Relu", ["b"], ["r"]),
    n("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
    n("Shape", ["p"], ["s"]),
    n("Constant", [], ["zero"], value=numpy_helper.from_array(i64(0))),
    n("Gather", ["s", "zero"], ["batch"]),
    n("Constant", [], ["rest"], value=numpy_helper.from_array(i64(-1))),
    n("Concat", ["batch", "rest"], ["shape"], axis=0),
    n("Reshape", ["p", "shape"], ["flat"]),
    n("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], transB=1, name="/fc/Gemm"),
], {"x": f(2, 1, 8, 8)}, {"logits": T.FLOAT}, {
    "conv.weight": f(4, 1, 3, 3), "conv.bias": f(4), "bn.weight": f(4), "bn.bias": f(4), "bn.running_mean": f(4),
    "bn.running_var": np.abs(f(4)) + 0.5, "fc.weight": f(10, 64) * 0.1, "fc.bias": f(10),
}, dims={"x": ["batch", 1, 8, 8], "logits": ["batch", 10]})

# Self-attention written with matrix products, a mask made by Where and shapes by arithmetic.
case("attention_block", [
    n("MatMul", ["x", "wq"], ["q"]), n("MatMul", ["x", "wk"], ["k"]), n("MatMul", ["x", "wv"], ["v"]),
    n("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), n("MatMul", ["q", "kt"], ["scores"]),
    n("Shape", ["x"], ["dims"]), n("Gather", ["dims", "last"], ["width"]), n("Cast", ["width"], ["widthf"], to=T.FLOAT),
    n("Sqrt", ["widthf"], ["root"]), n("Div", ["scores", "root"], ["scaled"]),
    n("Where", ["mask", "scaled", "low"], ["masked"]), n("Softmax", ["masked"], ["p"], axis=-1), n("MatMul", ["p", "v"], ["y"]),
    n("LayerNormalization", ["y", "gain", "offset"], ["out"], axis=-1),
], {"x": f(2, 5, 8), "mask": np.tril(np.ones((5, 5), dtype=bool))}, {"out": T.FLOAT}, {
    "wq": f(8, 8), "wk": f(8, 8), "wv": f(8, 8), "last": i64(2), "low": np.array(-1e9, dtype=np.float32), "gain": f(8), "offset": f(8),
}, dims={"x": ["batch", "time", 8], "mask": ["time", "time"], "out": ["batch", "time", 8]})

case("slice_steps", [n("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])], {"x": f(4, 7)}, {"y": T.FLOAT},
     {"starts": i64(3, 6), "ends": i64(-10, 0), "axes": i64(0, 1), "steps": i64(-1, -2)})

case("pad_modes", [n("Pad", ["x", "pads"], ["a"], mode="reflect"), n("Pad", ["a", "pads"], ["b"], mode="edge"), n("Pad", ["b", "pads"], ["y"], mode="wrap")],
     {"x": f(3, 4)}, {"y": T.FLOAT}, {"pads": i64(1, 2, 1, 0)})

case("scatter_nd_add", [n("ScatterND", ["x", "at", "u"], ["y"], reduction="add")],
     {"x": f(4, 3), "at": i64(0, 3, 0).reshape(3, 1), "u": f(3, 3)}, {"y": T.FLOAT})

case("narrow_integers", [n("Add", ["x", "y"], ["s"]), n("Cast", ["s"], ["f"], to=T.FLOAT), n("Cast", ["f"], ["b"], to=T.BFLOAT16), n("Cast", ["b"], ["out"], to=T.FLOAT)],
     {"x": np.array([65535, 7, 40000], dtype=np.uint16), "y": np.array([1, 8, 40000], dtype=np.uint16)}, {"s": T.UINT16, "out": T.FLOAT})

# A function of the model with an attribute, called twice.
case("functions", [n("scaled", ["x"], ["a"], domain="own", by=2.0), n("scaled", ["a"], ["y"], domain="own", by=-0.5)], {"x": f(3)}, {"y": T.FLOAT},
     functions=[helper.make_function("own", "scaled", ["x"], ["y"], [
         (lambda c: (c.attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)), c)[1])(n("Constant", [], ["by"])),
         n("Mul", ["x", "by"], ["y"])], [helper.make_opsetid("", 22)], ["by"])],
     imports=[helper.make_opsetid("own", 1)])

# A loop whose count is known from a shape: powers of a matrix, each of which is kept.
body = helper.make_graph(
    [n("Identity", ["go"], ["go_on"]), n("MatMul", ["m", "x"], ["next"]), n("Constant", [], ["rows"], value=numpy_helper.from_array(i64(0))), n("ReduceSum", ["next", "rows"], ["total"], keepdims=0)], "body",
    [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("go", T.BOOL, []), helper.make_tensor_value_info("m", T.FLOAT, [3, 3])],
    [helper.make_tensor_value_info("go_on", T.BOOL, []), helper.make_tensor_value_info("next", T.FLOAT, [3, 3]), helper.make_tensor_value_info("total", T.FLOAT, [3])])
case("loop_counted", [
    n("Shape", ["x"], ["dims"]), n("Gather", ["dims", "first"], ["count"]), n("Loop", ["count", "yes", "x"], ["power", "totals"], body=body),
], {"x": f(3, 3) * 0.5}, {"power": T.FLOAT, "totals": T.FLOAT}, {"first": np.array(0, dtype=np.int64), "yes": np.array(True)})

then = helper.make_graph([n("Neg", ["x"], ["t"])], "then", [], [helper.make_tensor_value_info("t", T.FLOAT, [4])])
other = helper.make_graph([n("Exp", ["x"], ["e"])], "else", [], [helper.make_tensor_value_info("e", T.FLOAT, [4])])
case("branch_on_data", [n("ReduceSum", ["x"], ["s"], keepdims=0), n("Less", ["s", "zero"], ["less"]), n("If", ["less"], ["y"], then_branch=then, else_branch=other)],
     {"x": -np.abs(f(4))}, {"y": T.FLOAT}, {"zero": np.array(0, dtype=np.float32)})
