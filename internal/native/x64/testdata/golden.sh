#!/bin/sh
# Makes golden.txt anew with GNU as and objdump: one instruction a line, its
# bytes, a tab and its text.
set -e
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go test .. -run TestGoldens -listing "$tmp/list.txt"
while IFS= read -r line; do
	printf '%s\n' "$line" >"$tmp/one.s"
	as --64 -o "$tmp/one.o" "$tmp/one.s"
	objcopy -O binary -j .text "$tmp/one.o" "$tmp/one.bin"
	printf '%s\t%s\n' "$(od -An -v -tx1 "$tmp/one.bin" | tr -d ' \n')" "$line"
done <"$tmp/list.txt" >golden.txt
