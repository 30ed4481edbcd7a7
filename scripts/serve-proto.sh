#!/usr/bin/env bash
# Writes the Go code of the .proto files of serve beside them. Needs python3 with
# pip and Go; both compilers come in the versions below and go when it is done.
set -euo pipefail
cd "$(dirname "$0")/../serve/internal/pb"

grpcio_tools=1.85.1
protoc_gen_go=v1.36.12

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install --quiet --disable-pip-version-check "grpcio-tools==$grpcio_tools"
GOBIN="$tmp/bin" GOFLAGS= GOWORK=off go install "google.golang.org/protobuf/cmd/protoc-gen-go@$protoc_gen_go"
PATH="$tmp/bin:$PATH" "$tmp/venv/bin/python" -m grpc_tools.protoc --proto_path=. --go_out=. --go_opt=paths=source_relative \
	inference/model_config.proto inference/service.proto weights/weights.proto
