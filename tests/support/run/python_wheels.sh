#!/usr/bin/env bash
# Builds the sdist of the Python package, and from it the wheel for an interpreter. Checks the wheel's name, installs it
# into a new environment, and runs the command and an example there, and has fsspec find its schemes.
#   tests/support/run/python_wheels.sh [PYTHON]        PYTHON: python3, or another interpreter, 3.11 or newer
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=${1:-python3}
number=$("$python" -c 'import sys; print("%d%d" % sys.version_info[:2])')
# nanobind has no stable interface before 3.12, and builds another kind without a word.
name='ucxio-*-cp312-abi3-linux_x86_64.whl'
if [ "$number" = 311 ]; then name='ucxio-*-cp311-cp311-linux_x86_64.whl'; fi
place=$PWD/build/wheels-$number

rm -rf "$place"
mkdir -p "$place"
"$python" -m venv "$place/builder"
"$place/builder/bin/pip" install --quiet --disable-pip-version-check build
"$place/builder/bin/python" -m build --sdist --outdir "$place" python
"$place/builder/bin/pip" wheel --disable-pip-version-check --no-deps --wheel-dir "$place" "$place"/ucxio-*.tar.gz
# shellcheck disable=SC2086 # a pattern
ls "$place"/$name

if [ "$number" != 311 ]; then "$python" -m zipfile -l "$place"/ucxio-*.whl | grep 'ucxio/_core\.abi3\.so'; fi

"$python" -m venv "$place/user"
"$place/user/bin/pip" install --quiet --disable-pip-version-check numpy "$(ls "$place"/ucxio-*.whl)[fsspec]"
needed=$(readelf -d "$place"/user/lib/python*/site-packages/ucxio/_core*.so | grep NEEDED)
echo "$needed"
if grep -qE 'cuda|libpython|libucxio' <<<"$needed"; then echo "the extension needs what is not everywhere" >&2 && exit 1; fi
cd "$place"
XDG_CONFIG_HOME=$place/config user/bin/python ../../python/examples/serve_array.py
user/bin/ucxio --version
user/bin/python -c 'import fsspec; print(*map(fsspec.get_filesystem_class, ["ucxs", "ucx", "ucx+tcp", "ucx+unix", "ucx+file"]))'
