#!/usr/bin/env bash
# Makes the Python environments of the servers that bench/serve compares with, in DIR/triton, DIR/mlserver and DIR/mosec.
# They see the torch of another environment, given by its site-packages, so that all run the same code.
#
#     bench/serve/peers/setup.sh DIR .venv-torch/lib/python3.11/site-packages
#
# Triton's build of that wheel has a stub for Python 3.11 among others, and needs numpy 1. 800 MB, of which Triton is 370.
set -euo pipefail
dir=$1 torch=$(cd "$2" && pwd)
environment() {
  python3 -m venv "$dir/$1"
  "$dir/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"
  echo "$torch" >"$(echo "$dir/$1"/lib/python3*/site-packages)/torch.pth"
}
environment triton nvidia-pytriton==0.7.0 'numpy<2'
environment mlserver mlserver==1.7.1
environment mosec mosec==0.9.8 numpy
site=$(echo "$dir"/triton/lib/python3*/site-packages)
version=$("$dir/triton/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
cp "$site/pytriton/tritonserver/python_backend_stubs/$version/triton_python_backend_stub" "$site/pytriton/tritonserver/backends/python/"
