"""Makes the test vectors of torchvision's ops and of those that PyTorch composes in Python, in the format of README.md
beside this file. Needs torchvision besides PyTorch.

nms_static           torchvision.ops.nms, filled up to a size
roi_align            with and without a number of samples
deform_conv2d        groups, parts of the offsets, mask and bias
local_response_norm  torch.nn.functional.local_response_norm
histogram            torch.histogram with the edges of its bins
"""

import argparse
import pathlib

import torch
import torchvision

from canon import Case
from evaluate import cotangent, excess
from make_vectors import write

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64


def case(op, f, inputs, attrs):
    """A case of op whose results, and in f64 gradients, are those of f(**inputs, **attrs)."""
    dtype = next(iter(inputs.values())).dtype
    c = Case(op, dtype, {**inputs, **attrs}, list(inputs), grad=False)
    def flat(out):
        return [t.detach().contiguous() for t in (out if isinstance(out, (tuple, list)) else [out])]

    c.outputs = flat(f(**inputs, **attrs))
    if dtype in (F16, BF16, F32) and c.outputs[0].is_floating_point():
        exact = flat(f(**{k: v.to(F64) for k, v in inputs.items()}, **attrs))
        c.atol = max([a for a in (excess(g, w.to(g.dtype)) for g, w in zip(c.outputs, exact) if g.numel()) if a], default=None)
    if dtype == F64:
        leaves = {k: v.clone().requires_grad_() for k, v in inputs.items()}
        out = f(**leaves, **attrs)
        if isinstance(out, torch.Tensor) and out.requires_grad:
            g = cotangent(op, 0, out)
            found = torch.autograd.grad(out, list(leaves.values()), g, allow_unused=True)
            c.grads = [(k, None, t.contiguous()) for k, t in zip(leaves, found) if t is not None and k != "rois"]
            c.cotangents = [g]
    return c


def nms():
    g = torch.Generator().manual_seed(11)

    def f(dets, scores, iou_threshold, size, fill_value=-1):
        kept = torchvision.ops.nms(dets, scores, iou_threshold)[:size]
        return torch.nn.functional.pad(kept, (0, size - len(kept)), value=fill_value)

    for n, dtype in ((1, F32), (7, F32), (40, F32), (40, F64)):
        corner = torch.rand(n, 2, generator=g) * 8
        boxes = torch.cat([corner, corner + 1 + torch.rand(n, 2, generator=g) * 6], 1).to(dtype)
        scores = torch.randperm(n, generator=g).to(dtype) / n
        for threshold, attrs in ((0.5, {}), (0.1, {"fill_value": 0}), (0.9, {})):
            yield case("nms_static", f, {"dets": boxes, "scores": scores}, {"iou_threshold": threshold, "size": n, **attrs})
        yield case("nms_static", f, {"dets": boxes, "scores": scores}, {"iou_threshold": 0.3, "size": 3})
    same = torch.tensor([[0, 0, 2, 2], [0, 0, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1]], dtype=F32)
    yield case("nms_static", f, {"dets": same, "scores": torch.tensor([0.5, 0.5, 0.9, 0.5])}, {"iou_threshold": 0.5, "size": 5})
    yield case("nms_static", f, {"dets": torch.zeros(0, 4), "scores": torch.zeros(0)}, {"iou_threshold": 0.5, "size": 2})


def roi():
    g = torch.Generator().manual_seed(12)

    def f(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio=-1, aligned=False):
        return torch.ops.torchvision.roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)

    for dtype in (F32, F64, F16):
        for attrs in ({"sampling_ratio": 2}, {"sampling_ratio": 2, "aligned": True}, {"sampling_ratio": 1}, {}, {"aligned": True}):
            x = torch.randn(2, 3, 6, 5, generator=g).to(dtype)
            at = torch.rand(4, 4, generator=g) * 5 - 0.5
            corners = torch.cat([torch.minimum(at[:, :2], at[:, 2:]), torch.maximum(at[:, :2], at[:, 2:])], 1)
            rois = torch.cat([torch.tensor([[0.0], [1], [1], [0]]), corners], 1)
            if dtype == F16:  # where a bin begins must not depend on rounding
                rois = (rois * 4).round() / 4
            yield case("roi_align", f, {"input": x, "rois": rois.to(dtype)}, {"spatial_scale": 1.0, "pooled_height": 2, "pooled_width": 3, **attrs})
    x, rois = torch.randn(1, 2, 8, 8, generator=g), torch.tensor([[0, 3, 2, 25, 29], [0, -9, -9, -5, -5], [0, 8, 8, 6, 6]], dtype=F32)
    for dtype in (F32, F64):
        for aligned in (False, True):
            yield case("roi_align", f, {"input": x.to(dtype), "rois": rois.to(dtype)}, {"spatial_scale": 0.25, "pooled_height": 3, "pooled_width": 2, "sampling_ratio": 2, "aligned": aligned})
    yield case("roi_align", f, {"input": x, "rois": torch.zeros(0, 5)}, {"spatial_scale": 1.0, "pooled_height": 2, "pooled_width": 2})


def deform():
    g = torch.Generator().manual_seed(13)

    def f(input, offset, weight, bias=None, mask=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
        return torchvision.ops.deform_conv2d(input, offset, weight, bias, list(stride), list(padding), list(dilation), mask)

    def mk(*shape):
        return torch.randn(shape, generator=g)

    for dtype in (F32, F64):
        for n, channels, groups, parts, kernel, attrs, more in (
            (1, 2, 1, 1, (2, 2), {}, ()),
            (2, 4, 2, 1, (3, 2), {"padding": [1, 0]}, ("bias",)),
            (2, 4, 1, 2, (1, 3), {"stride": [2, 1], "padding": [0, 1]}, ("bias", "mask")),
            (1, 4, 4, 4, (2, 2), {"dilation": [2, 1], "padding": [1, 1]}, ("mask",)),
        ):
            x, w = mk(n, channels, 6, 5), mk(4, channels // groups, *kernel)
            s, p, d = (attrs.get(k, v) for k, v in (("stride", [1, 1]), ("padding", [0, 0]), ("dilation", [1, 1])))
            oh, ow = ((x.shape[2 + i] + 2 * p[i] - d[i] * (kernel[i] - 1) - 1) // s[i] + 1 for i in range(2))
            taps = kernel[0] * kernel[1]
            inputs = {"input": x, "offset": mk(n, 2 * parts * taps, oh, ow) * 2, "weight": w}
            if "bias" in more:
                inputs["bias"] = mk(4)
            if "mask" in more:
                inputs["mask"] = mk(n, parts * taps, oh, ow).sigmoid()
            yield case("deform_conv2d", f, {k: v.to(dtype) for k, v in inputs.items()}, attrs)


def response():
    g = torch.Generator().manual_seed(14)
    f = torch.nn.functional.local_response_norm
    for dtype in (F32, F64):
        for shape, attrs in (((2, 5, 3), {"size": 3}), ((1, 6, 2, 3), {"size": 4, "alpha": 0.5}), ((2, 3, 2, 2, 2), {"size": 5, "alpha": 0.1, "beta": 0.5, "k": 2.0}),
                             ((2, 4, 0), {"size": 2}), ((1, 4, 3), {"size": 1, "alpha": 0.3})):
            yield case("local_response_norm", f, {"input": torch.randn(shape, generator=g).to(dtype)}, attrs)


def histogram():
    g = torch.Generator().manual_seed(15)

    def f(self, bins, weight=None, density=False):
        return torch.histogram(self.detach(), bins.detach(), weight=None if weight is None else weight.detach(), density=density)

    for dtype in (F32, F64):
        x = torch.randn(5, 7, generator=g).to(dtype)
        edges = torch.tensor([-1.5, -1, 0, 0.25, 2], dtype=dtype)
        for attrs in ({}, {"density": True}):
            yield case("histogram", f, {"self": x, "bins": edges}, attrs)
            yield case("histogram", f, {"self": x, "bins": edges, "weight": torch.rand(5, 7, generator=g).to(dtype)}, attrs)
        yield case("histogram", f, {"self": edges, "bins": edges}, {})
        yield case("histogram", f, {"self": torch.zeros(0, dtype=dtype), "bins": edges}, {})
        yield case("histogram", f, {"self": torch.tensor([float("nan"), float("inf"), -float("inf"), 1], dtype=dtype), "bins": edges}, {})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("--out", type=pathlib.Path, default=here.parents[1] / "internal/opinfo/testdata")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    for cases in (nms(), roi(), deform(), response(), histogram()):
        cases = list(cases)
        op = cases[0].op
        print(op, len(cases), write(out / f"{op}.json.gz", op, cases))


if __name__ == "__main__":
    main()
