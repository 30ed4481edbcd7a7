#!/usr/bin/env bash
# Builds an object that the exporter puts into libraries: build.sh OUT.o amd64|cuda
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/c"
parts="common call io plan index source container describe"
flags="-std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -ffile-prefix-map=$PWD=. -mno-red-zone -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none"
if [ "$2" = cuda ]; then
  parts="common call io cuda source container describe"
  flags="$flags -DLORIS_CUDA"
fi
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
for f in $parts; do gcc $flags -c -o "$work/$f.o" "$f.c"; done
(cd "$work" && ld -r -o glue.o $(printf '%s.o ' $parts) && objcopy --strip-unneeded --remove-section=.note.GNU-stack glue.o)
mv "$work/glue.o" "$out"
