#!/usr/bin/env bash
# Runs all tests under the race detector, and those of the AOTI host's C under the address sanitizer:
# what .ci/run has no time for. Takes about half an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
# Leaks are counted by the tests themselves: the sanitizer's own search for them
# fails in processes that have unloaded libraries.
ASAN_OPTIONS=detect_leaks=0 go test -asan ./aoti/... ./internal/openmp
go test -race -timeout 60m work
