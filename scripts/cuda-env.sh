#!/usr/bin/env bash
# Brings what the tests of the CUDA backend want on a machine without CUDA: the
# compiler NVRTC and CUDA's headers, from the Python packages that have them, and
# prints the variables to use them:
#
#   eval "$(scripts/cuda-env.sh)"
#
# Building with -tags cuda needs neither. Needs python3 with pip, once; later runs
# find everything in the cache (LORIS_CUDA_CACHE, by default a folder of
# ${XDG_CACHE_HOME:-$HOME/.cache}). pip refuses files with another sha256 than the
# ones below. Progress goes to standard error.
set -euo pipefail

nvrtc=12.9.86
runtime=12.9.79

fail() { echo "cuda-env.sh: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || fail "CUDA is for Linux here, not $(uname -s)"
case $(uname -m) in
x86_64)
  nvrtc_sha256=210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
  runtime_sha256=25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
  ;;
aarch64)
  nvrtc_sha256=096d4de6bda726415dfaf3198d4f5c522b8e70139c97feef5cd2ca6d4cd9cead
  runtime_sha256=83469a846206f2a733db0c42e223589ab62fd2fabac4432d2f8802de4bded0a4
  ;;
*) fail "there are no packages for $(uname -m)" ;;
esac

cache=${LORIS_CUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/loris/cuda}
dir=$cache/$nvrtc-$runtime-$(uname -m)

# fetch downloads and unpacks into a folder of its own, which is renamed when all
# of it is there: runs beside each other, or broken off, leave nothing half.
fetch() {
  command -v python3 >/dev/null || fail "python3 is needed to download (or set LORIS_LIBNVRTC and LORIS_CUDA_INCLUDE yourself)"
  python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip: install python3-pip (or set LORIS_LIBNVRTC and LORIS_CUDA_INCLUDE yourself)"
  mkdir -p "$cache"
  tmp=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  cat >"$tmp/requirements.txt" <<REQUIREMENTS
nvidia-cuda-nvrtc-cu12==$nvrtc --hash=sha256:$nvrtc_sha256
nvidia-cuda-runtime-cu12==$runtime --hash=sha256:$runtime_sha256
REQUIREMENTS
  echo "cuda-env.sh: downloading NVRTC $nvrtc and headers (90 MB) to $dir" >&2
  python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --no-cache-dir \
    --dest "$tmp" --requirement "$tmp/requirements.txt" >&2 || fail "the download failed"
  for wheel in "$tmp"/*.whl; do
    python3 -m zipfile -e "$wheel" "$tmp/all"
    rm "$wheel"
  done
  mkdir -p "$tmp/done"
  cp -R "$tmp/all/nvidia/cuda_runtime/include" "$tmp/done/include"
  cp "$tmp/all/nvidia/cuda_nvrtc/include/nvrtc.h" "$tmp/done/include/"
  rm -f "$tmp"/all/nvidia/cuda_nvrtc/lib/*.alt.* # a second build, which nothing here opens
  mv "$tmp/all/nvidia/cuda_nvrtc/lib" "$tmp/done/lib"
  mv -T "$tmp/done" "$dir" 2>/dev/null || [ -d "$dir" ] || fail "cannot write $dir"
}

[ -d "$dir" ] || fetch
[ -e "$dir/lib/libnvrtc.so.12" ] && [ -e "$dir/include/cuda.h" ] && [ -e "$dir/include/nvrtc.h" ] ||
  fail "$dir is damaged: remove it"

printf 'export LORIS_LIBNVRTC=%q\nexport LORIS_CUDA_INCLUDE=%q\n' "$dir/lib" "$dir/include"
