#!/usr/bin/env bash
# Builds what a release has for one system: the whole command, built twice at two places and refused if
# the bytes differ, the list of its modules (SBOM, CycloneDX), their licences, and checksums.
#
#   scripts/release.sh OUT [VERSION]     GOOS, GOARCH and CGO_ENABLED as for go build
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/release.sh OUT [VERSION]} version=${2:-$(git describe --always)}
[ -z "$(git status --porcelain)" ] || { echo "the checkout has changes: commit them first" >&2; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
os=$(go env GOOS) arch=$(go env GOARCH) ext=$(go env GOEXE)
name=loris-$version-$os-$arch$ext

# The second build has another directory and an empty cache, so that neither may decide a byte.
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
git clone -q . "$work/again"
build() { go build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o "$1" ./cmd/loris/full; }
build "$out/$name"
(cd "$work/again" && GOCACHE="$work/cache" build "$work/$name")
cmp "$out/$name" "$work/$name" || { echo "two builds of the same source differ" >&2; exit 1; }
echo "$name: $(wc -c <"$out/$name") bytes, the same in two builds"

# These run here, whatever system the program is for.
host() { env -u GOOS -u GOARCH -u CGO_ENABLED go run "$@"; }
host ./scripts/sbom "$out/$name" "$version" >"$out/$name.cdx.json"
host ./scripts/notices ./cmd/loris/full >"$out/THIRD_PARTY_NOTICES.txt"
(cd "$out" && sha256sum "$name" "$name.cdx.json" THIRD_PARTY_NOTICES.txt >SHA256SUMS && cat SHA256SUMS)
