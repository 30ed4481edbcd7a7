#!/usr/bin/env bash
# Runs the tests of the packages that have assembly for arm64: as they are on such a machine, else under
# qemu-user (apt-get install qemu-user). Emulated they take a minute or two.
set -euo pipefail
cd "$(dirname "$0")/.."
run=()
[ "$(uname -m)" = aarch64 ] || run=("$(command -v qemu-aarch64 || command -v qemu-aarch64-static)") ||
  { echo "arm64-tests: there is no qemu-aarch64: apt-get install qemu-user" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GOARCH=arm64 CGO_ENABLED=0
for package in internal/kernels/vec internal/kernels/gemm; do
  go vet "./$package"
  go test -c -o "$folder/test" "./$package"
  # That test starts itself in another process, which needs the emulator, too, so it is run apart, as
  # that process.
  (cd "$package" && "${run[@]}" "$folder/test" -test.short -test.skip 'TestNothingBeyondOperands|TestThreadsSameBits|TestSteadyState')
  (cd "$package" && LORIS_GEMM_GUARD=1 "${run[@]}" "$folder/test" -test.run 'TestNothingBeyondOperands')
done
