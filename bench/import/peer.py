"""A peer of bench/import: runs the models of a folder in onnxruntime or PyTorch.

Arguments: the system (onnxruntime or torch), the number of threads, and cpu if processor time counts. It prints "ready VERSION" and answers
"open BASE" (BASE.pt2, BASE.onnx and BASE.safetensors) with "ok LOAD_NS ERROR", the largest difference to the outputs
of the file over the largest element, and "turn MS BATCH" with "ok COUNT MEDIAN_NS LEAST_NS".
"""
import sys, time

system, threads = sys.argv[1], int(sys.argv[2])
clock = time.process_time_ns if sys.argv[3:] == ["cpu"] else time.perf_counter_ns
import torch
from safetensors.torch import load_file

torch.set_num_threads(threads)
torch.set_grad_enabled(False)
if system == "onnxruntime":
    import onnxruntime


def open_model(base):
    tensors = load_file(base + ".safetensors")
    ins = [tensors[f"in{i}"] for i in range(len(tensors)) if f"in{i}" in tensors]
    begin = time.perf_counter_ns()
    if system == "torch":
        model = torch.export.load(base + ".pt2").module()
        run = lambda: torch.utils._pytree.tree_leaves(model(*ins))
    else:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        model = onnxruntime.InferenceSession(base + ".onnx", options, providers=["CPUExecutionProvider"])
        feed = {a.name: t.numpy() for a, t in zip(model.get_inputs(), ins)}
        run = lambda: [torch.from_numpy(o) for o in model.run(None, feed)]
    load = time.perf_counter_ns() - begin
    worst = max(((o - tensors[f"out{i}"]).abs().max() / tensors[f"out{i}"].abs().max()).item() for i, o in enumerate(run()))
    return run, load, worst


print("ready", onnxruntime.__version__ if system == "onnxruntime" else torch.__version__, flush=True)
run = None
for line in sys.stdin:
    word, *rest = line.rstrip("\n").split(" ", 1)
    try:
        if word == "open":
            run = None
            run, load, worst = open_model(rest[0])
            print("ok", load, worst, flush=True)
        else:
            times, end = [], time.perf_counter_ns() + int(rest[0].split()[0]) * 1_000_000
            while not times or time.perf_counter_ns() < end:
                begin = clock()
                run()
                times.append(clock() - begin)
            print("ok", len(times), sorted(times)[len(times) // 2], min(times), flush=True)
    except Exception as e:
        print("error", str(e).replace("\n", " ")[:300], flush=True)
