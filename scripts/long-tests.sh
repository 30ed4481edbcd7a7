#!/usr/bin/env bash
# Runs the suites that `go test work` shortens: what takes long and rarely fails. A test asks
# longtest.Enabled(); internal/arch checks that the package of each is listed here. With --ci those
# alone run that test what many goroutines do; the others hold kernels and machine code against the
# reference, more of the same as the short suites do, and run each week and where that code changes.
# LORIS_LONG=1 go test -tags cuda ./backend/cuda is another, which needs scripts/cuda-env.sh. Other
# arguments are given to `go test`: scripts/long-tests.sh -run Conformance -v
set -euo pipefail
cd "$(dirname "$0")/.."
kernels=(
  ./aoti/export
  ./backend/cpu
  ./backend/cuda/internal/emit
  ./backend/cuda/internal/steps
  ./backend/internal/fuse
  ./internal/ref
  ./bench/workloads
  ./examples/vision
  ./internal/graph
  ./internal/cxx
  ./internal/kernels/attention
  ./internal/kernels/conv
  ./internal/kernels/gemm
  ./internal/native
)
if [ "${1:-}" = --ci ]; then
  shift
  kernels=()
fi
LORIS_LONG=1 go test -timeout 20m "$@" \
  . \
  ./aoti/container \
  ./bench/serve \
  ./internal/attack/chaos \
  ./internal/attack/restarts \
  ./internal/executor \
  ./serve \
  "${kernels[@]}"
