#!/usr/bin/env bash
# Kills a program that compiles into a cache on disk, again and again, at a random
# moment of its life, and then has the cache verified: whatever the moment, every
# entry is whole. The cache is cleared between the kills, so that each start has
# something to write. Starts that end before the kill are not counted.
#
#	scripts/cache_kills.sh [KILLS]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/loris" ./cmd/loris
train() { "$dir/loris" train digits --epochs 1 --batch 400 --hidden 16 --out "$dir/out" --cache="$dir/cache"; }
begin=$(date +%s%N)
train >/dev/null
life=$((($(date +%s%N) - begin) / 1000000)) # milliseconds
killed=0 starts=0
while [ "$killed" -lt "$kills" ]; do
  [ "$starts" -lt $((10 * kills)) ] || { echo "only $killed of $starts starts could be killed"; exit 1; }
  starts=$((starts + 1))
  "$dir/loris" cache clear --dir "$dir/cache"
  train >/dev/null 2>&1 &
  pid=$!
  sleep "$(awk -v ms=$((RANDOM * life / 32768)) 'BEGIN { print ms / 1000 }')"
  kill -9 "$pid" 2>/dev/null || true
  status=0
  wait "$pid" 2>/dev/null || status=$?
  [ "$status" -ne 137 ] || killed=$((killed + 1)) # others were done before
  "$dir/loris" cache verify --dir "$dir/cache" >"$dir/verify" || { cat "$dir/verify"; exit 1; }
done
echo "$killed of $starts starts were killed within $life ms, the others had ended; the cache was whole each time"
train | grep disk
train | grep disk
"$dir/loris" cache verify --dir "$dir/cache"
