#!/usr/bin/env bash
# Tries to break Loris for as long as is asked, 1 hour by default, and prints counts; docs/reliability.md
# says what each campaign does and has the counts of the last one. scripts/attack.sh 10m
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-1h} seed=${2:-$(date +%s)}
echo "seed $seed"
attack=$(mktemp -d)/attack
trap 'rm -r "$(dirname "$attack")"' EXIT
go build -o "$attack" ./internal/attack/cmd/attack
"$attack" files -time "$time" -seed "$seed"
"$attack" chaos -time "$time" -seed "$seed"
"$attack" restarts -time "$time" -seed "$seed"
"$attack" failures
"$attack" flat
# The storm again, where the compiler watches memory.
for watch in -race -asan; do
  go build "$watch" -o "$attack$watch" ./internal/attack/cmd/attack
  ASAN_OPTIONS=detect_leaks=0 "$attack$watch" chaos -only storm -time "$time" -seed "$seed"
done
for target in ./internal/graph:FuzzParse ./safetensors:FuzzRead ./safetensors:FuzzIndex ./internal/pt2:FuzzOpen ./internal/pt2:FuzzReadLibrary \
  ./internal/pt2:FuzzParseSource ./torchexport:FuzzProgram ./torchexport:FuzzExpr ./torchexport:FuzzPickle ./onnx:FuzzLoad \
  ./aoti/internal/host:FuzzParseBlocked ./internal/attack/hostile:Fuzz{CacheEntry,Checkpoint,Config,Tokenizer,Image,Run} \
  ./serve/internal/jsonread:FuzzSkip ./serve/internal/rest:FuzzInfer ./serve/internal/http1:FuzzHead; do
  go test "${target%:*}" -run '^$' -fuzz "^${target#*:}\$" -fuzztime 1000000x
done
