#!/usr/bin/env bash
# Tests and measures the CUDA backend on a GPU, and leaves one report.
#
#	bench/gpu/run.sh build          on a machine with Go: makes bench/gpu/bin.tar.gz
#	bench/gpu/run.sh [PART ...]     on the machine with the GPU, which needs no Go: runs
#	                                the parts, all by default, one after another
#
# The working tree and that file are all that has to be there; where Go is, the
# second command builds by itself. The peers want a Python with torch, and jax if it
# shall be one (GPU_PYTHON, by default python3); the parts packages and swap are of what
# export left in OUT, which wants safetensors and g++, too. The report and what each part printed go to
# the folder OUT (by default bench/gpu/out). A part ends after its own time, in
# seconds, at the latest; what it had printed until then is kept.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
bin=$root/bench/gpu/bin
out=${OUT:-$root/bench/gpu/out}
python=${GPU_PYTHON:-python3}

# The parts, the most important ones first: name, seconds, command.
parts() {
  cat <<PARTS
machine 60 nvidia-smi; $bin/loris devices
driver 120 cd backend/cuda/internal/driver && $bin/driver.test -test.v -test.run 'TestOnFakeAndReal'
kernels 300 cd backend/cuda/internal/emit && LORIS_LONG=1 $bin/emit.test -test.v
conformance 540 cd backend/cuda && LORIS_LONG=1 LORIS_TEST_GPU=1 $bin/cuda.test -test.v -test.run TestOnGPU
collectives 300 cd backend/cuda && NCCL_MULTI_RANK_GPU_ENABLE=1 LORIS_TEST_GPU=1 $bin/cuda.test -test.v -test.run 'TestCollectives\$'
digits 120 $bin/loris train digits --device cuda --out $out/digits
bandwidth 120 cd backend/cuda/internal/emit && $bin/emit.test -test.run '^\$' -test.bench GPU
steps 120 cd bench/gpu && $bin/gpu.test -test.run '^\$' -test.bench . -test.benchmem
compare 600 $bin/compare --device cuda --threads 4 --python $python --peers eager,compile,jax
export 420 $python bench/gpu/export.py $out/packages
packages 420 $bin/aoti --device cuda --threads 4 --python $python $out/packages/*.pt2
exported 420 $bin/aoti --export --device cuda --threads 4 --python $python
swap 60 $bin/aoti --device cuda --threads 4 --swap 10s $out/packages/{mlp,encoder}.pt2
sanitizer 600 cd backend/cuda && LORIS_TEST_GPU=1 compute-sanitizer --error-exitcode 9 $bin/cuda.test -test.run TestOnGPU
PARTS
}

build() {
  mkdir -p "$bin"
  local flags=(-tags cuda -trimpath -ldflags '-s -w')
  go build "${flags[@]}" -o "$bin/loris" ./cmd/loris &&
    go build "${flags[@]}" -o "$bin/compare" ./bench/compare &&
    go build "${flags[@]}" -o "$bin/aoti" ./bench/aoti || return
  for package in backend/cuda backend/cuda/internal/driver backend/cuda/internal/emit bench/gpu; do
    go test -c "${flags[@]}" -o "$bin/${package##*/}.test" "./$package" || return
  done
}

if [ "${1:-}" = build ]; then build && tar -czf "$bin.tar.gz" -C "$bin" . && du -h "$bin.tar.gz"; exit; fi
if command -v go >/dev/null; then
  build || exit
elif [ -e "$bin.tar.gz" ]; then
  mkdir -p "$bin" && tar -xzf "$bin.tar.gz" -C "$bin" || exit
else
  echo "run.sh: there is no $bin.tar.gz: run 'bench/gpu/run.sh build' where Go is, and bring it here" >&2
  exit 1
fi

# Python's packages have CUDA's libraries where nobody else looks for them.
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)
from_python() { # VARIABLE LIBRARY
  local found
  found=$(ls -d "$packages"/nvidia/*/lib/"$2".so.1[23] 2>/dev/null | tail -n 1)
  if [ -z "${!1:-}" ] && [ -n "$found" ]; then export "$1=$found"; fi
}
from_python LORIS_LIBNVRTC libnvrtc
from_python LORIS_LIBCUBLASLT libcublasLt
nccl=$(ls "$packages"/nvidia/nccl/lib/libnccl.so.2 2>/dev/null)
if [ -z "${LORIS_LIBNCCL:-}" ] && [ -n "$nccl" ]; then export LORIS_LIBNCCL=$nccl; fi

mkdir -p "$out"
report=$out/report.txt
: >"$report"
failed=0
while read -r name seconds command; do
  [ $# -eq 0 ] || [[ " $* " = *" $name "* ]] || continue
  begin=$SECONDS
  timeout --kill-after=5 "$seconds" bash -c "$command" >"$out/$name.txt" 2>&1 </dev/null
  status=$?
  case $status in 0) said=ok ;; 124 | 137) said="out of time" ;; *) said="exit $status" ;; esac
  [ "$status" -eq 0 ] || failed=1
  {
    printf '== %s: %s, %d s: %s\n' "$name" "$said" $((SECONDS - begin)) "$command"
    tail -n 40 "$out/$name.txt"
    echo
  } | tee -a "$report"
done < <(parts)
exit $failed
