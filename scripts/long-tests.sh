#!/usr/bin/env bash
# Runs the suites that `go test work` shortens: what takes long and rarely fails. A test asks
# longtest.Enabled(); internal/arch checks that the package of each is listed here. Arguments are
# given to `go test`: scripts/long-tests.sh -run Conformance -v
set -euo pipefail
cd "$(dirname "$0")/.."
LORIS_LONG=1 go test -timeout 20m "$@" \
  . \
  ./aoti/container \
  ./aoti/export \
  ./backend/cpu \
  ./backend/cuda/internal/emit \
  ./backend/cuda/internal/steps \
  ./backend/internal/fuse \
  ./backend/ref \
  ./bench/workloads \
  ./examples/vision \
  ./internal/attack/chaos \
  ./internal/executor \
  ./graph \
  ./internal/kernels/attention \
  ./internal/kernels/conv \
  ./internal/kernels/gemm \
  ./internal/native \
  ./serve
