#!/usr/bin/env bash
# Runs the suites that `go test work` shortens: what takes long and rarely fails. A test asks
# longtest.Enabled(); internal/arch checks that the package of each is listed here. With --ci those of
# CUDA's code are left out, which take minutes and change only where that code does; LORIS_LONG=1 go
# test -tags cuda ./backend/cuda is another, which needs scripts/cuda-env.sh. Other arguments
# are given to `go test`: scripts/long-tests.sh -run Conformance -v
set -euo pipefail
cd "$(dirname "$0")/.."
cuda=(
  ./backend/cuda/internal/emit \
  ./backend/cuda/internal/steps \
)
if [ "${1:-}" = --ci ]; then
  shift
  cuda=()
fi
LORIS_LONG=1 go test -timeout 20m "$@" \
  . \
  ./aoti/container \
  ./aoti/export \
  ./backend/cpu \
  "${cuda[@]}" \
  ./backend/internal/fuse \
  ./backend/ref \
  ./bench/serve \
  ./bench/workloads \
  ./examples/vision \
  ./internal/attack/chaos \
  ./internal/attack/restarts \
  ./internal/executor \
  ./graph \
  ./internal/kernels/attention \
  ./internal/kernels/conv \
  ./internal/kernels/gemm \
  ./internal/native \
  ./serve
