#!/usr/bin/env bash
# Runs the tests of the packages that have assembly for arm64: as they are on such a machine, else under
# qemu-user (apt-get install qemu-user). Emulated they take some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
run=()
[ "$(uname -m)" = aarch64 ] || run=("$(command -v qemu-aarch64 || command -v qemu-aarch64-static)") ||
  { echo "arm64-tests: there is no qemu-aarch64: apt-get install qemu-user" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GOARCH=arm64 CGO_ENABLED=0
test() { # PACKAGE ARGUMENT...
  go vet "./$1"
  go test -c -o "$folder/test" "./$1"
  (cd "$1" && shift && "${run[@]}" "$folder/test" -test.short "$@")
}
test internal/kernels/vec
test internal/ir -test.run 'Pow'
test internal/native/a64
test internal/native/code
test internal/native -test.skip 'TestNothingOutsideIsTouched'
LORIS_NATIVE_GUARD=1 test internal/native -test.run 'TestNothingOutsideIsTouched'
# What starts itself in another process, which would need the emulator, too, is run as that process; what
# asks how goroutines share the work, or for allocations, is the same on all machines.
test internal/kernels/gemm -test.skip 'TestNothingBeyondOperands|TestThreadsSameBits|TestSteadyState'
LORIS_GEMM_GUARD=1 test internal/kernels/gemm -test.run 'TestNothingBeyondOperands'
