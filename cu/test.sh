#!/usr/bin/env bash
# Tests package cu without a GPU: with CUDA's headers (LORIS_CUDA_INCLUDE, see
# scripts/cuda-env.sh) and a libcuda made of the stand-in of backend/cuda, of
# testdata/standin.c, and of empty functions for the rest that gorgonia.org/cu
# links to. Needs gcc and g++. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")"

if [ -z "${LORIS_CUDA_INCLUDE:-}" ]; then
  echo "LORIS_CUDA_INCLUDE is not set: eval \"\$(scripts/cuda-env.sh)\"" >&2
  exit 1
fi
# The same place each time, for it is part of what Go keeps builds by.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/loris
mkdir -p "$cache/cu" "$cache/fakecuda/cu"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
driver=$PWD/../backend/cuda/internal/driver
standin=$PWD/../backend/cuda/internal/fakecuda/testdata

export GOWORK=off # this module is not in go.work
# The names of the functions as the headers have them, with the versions.
go mod download gorgonia.org/cu
binding=$(go list -m -f '{{.Dir}}' gorgonia.org/cu)
{
  echo '#include <cuda.h>'
  cat "$binding"/*.go "$binding"/batch.c | grep -oE '\bcu[A-Z][A-Za-z0-9]*' | sort -u | sed 's/.*/WANTED & /'
} | gcc -E -P -I "$LORIS_CUDA_INCLUDE" - | sed -n 's/^WANTED \([A-Za-z0-9_]*\).*/\1/p' | sort -u |
  sed 's/.*/__attribute__((weak)) unsigned &(void) { return 801; }/' >"$tmp/rest.c"

gcc -shared -fPIC -O1 -std=gnu11 -w -pthread -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -I "$driver" -I "$standin" \
  -o "$tmp/libcuda.so.1" "$standin"/*.c testdata/standin.c "$tmp/rest.c" -lm -ldl
mv "$tmp/libcuda.so.1" "$cache/cu/libcuda.so.1"
ln -sf libcuda.so.1 "$cache/cu/libcuda.so"

export CGO_CFLAGS="-I$LORIS_CUDA_INCLUDE" CGO_LDFLAGS="-L$cache/cu"
export LD_LIBRARY_PATH=$cache/cu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LORIS_LIBCUDA=$cache/cu/libcuda.so.1 LORIS_LIBNVRTC=$cache/cu/libcuda.so.1 LORIS_LIBCUBLASLT=$cache/cu/libcuda.so.1
export CU_STANDIN_HEADERS=$standin CU_STANDIN_CACHE=$cache/fakecuda/cu
go vet -tags cuda ./...
go test -tags cuda "$@" ./...
