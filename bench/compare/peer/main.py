"""A peer of bench/compare: runs its workloads in one system, one at a time.

    python main.py SYSTEM THREADS [DEVICE]

It says "ready VERSION" and then answers requests, line by line:

    open NAME RUNS FILE   make the workload, run it RUNS times, write its results to
                          FILE as f32: "ok", "none" if it has no such workload, or "error TEXT"
    turn MILLISECONDS N   run it for a while, waiting after each N runs: "ok COUNT MEDIAN
                          LEAST", in nanoseconds a run
    peak                  the most bytes of tensors in a run, beyond those before it:
                          "ok BYTES", or "none" if the system does not say
    limits                what the device can do: "ok FLOP BYTES", a second, or "none"
    close                 forget the workload: "ok"
"""

import gc
import importlib
import os
import sys
import time


def pin(threads):
    """Has the process use as many processors as threads, before a system counts them."""
    for name in "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS":
        os.environ[name] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def turn(run, finish, milliseconds, batch):
    end = time.perf_counter_ns() + milliseconds * 1_000_000
    times = []
    while not times or time.perf_counter_ns() < end:
        begin = time.perf_counter_ns()
        for _ in range(batch):
            run()
        finish()
        times.append((time.perf_counter_ns() - begin) // batch)
    times.sort()
    return f"ok {len(times)} {times[len(times) // 2]} {times[0]}"


def opened(system, name, runs, path):
    """Returns the workload after its first runs, whose results are in the file."""
    make = system.WORKLOADS.get(name)
    if make is None:
        return None
    workload = make()
    for _ in range(runs):
        workload.run()
    workload.results().astype("<f4").tofile(path)
    return workload


def serve(system, out):
    workload = None
    # Of systems whose runs may return before they are done.
    finish = getattr(system, "finish", None) or (lambda: None)
    for line in sys.stdin:
        request = line.split()
        try:
            if request[0] == "open":
                workload = opened(system, request[1], int(request[2]), request[3])
                answer = "ok" if workload else "none"
            elif request[0] == "turn":
                answer = turn(workload.run, finish, int(request[1]), int(request[2]))
            elif request[0] == "peak":
                peak = system.peak(workload) if hasattr(system, "peak") else None
                answer = "none" if peak is None else f"ok {peak}"
            elif request[0] == "limits":
                limits = system.limits() if hasattr(system, "limits") else None
                answer = "none" if limits is None else "ok {} {}".format(*limits)
            else:
                workload = None
                gc.collect()
                answer = "ok"
        except Exception as e:  # the next workload may do better
            workload = None
            answer = "error " + " ".join(f"{type(e).__name__}: {e}".split())[:500]
        print(answer, file=out, flush=True)


def main(name, threads, device="cpu"):
    # What libraries print must not meet the answers.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    pin(int(threads))
    import common  # not before pin, as it needs NumPy

    common.DEVICE = device
    module, _, mode = name.partition("-")
    system = importlib.import_module(f"in_{module}")
    print("ready", system.start(mode, int(threads)), file=out, flush=True)
    serve(system, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
