#!/usr/bin/env bash
# Prints the interpreter of a virtual environment below build/ that has what the Python package needs to be built and
# tested. Makes it where there is none.
#   tests/support/run/python_venv.sh [PYTHON]        PYTHON: python3, or another interpreter, 3.11 or newer
# Ends with 77 where the interpreter is older, or has no headers.
set -euo pipefail
cd "$(dirname "$0")/../../.."
python=${1:-python3}
packages=(nanobind==3.1.0 scikit-build-core==1.1.2 numpy==2.4.6 pytest==9.2.0 mypy==2.4.1 ruff==0.17.6 uvloop==0.22.1
  # What people open URLs with (python/tests/test_fsspec*.py); torch is too large, and tested by hand.
  fsspec==2026.9.0 pandas==3.1.1 pyarrow==26.0.1 zarr==3.1.6 h5py==3.16.0 pillow==13.0.0)

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python $version is older than 3.11" >&2; exit 77; }
[ -e "$headers/Python.h" ] || { echo "Python $version has no headers" >&2; exit 77; }

venv=$PWD/build/python-$version
if [ "$(cat "$venv/packages" 2>/dev/null)" != "${packages[*]}" ]; then
  [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 10 --timeout 60 --only-binary :all: "${packages[@]}" >&2
  echo "${packages[*]}" >"$venv/packages"
fi
echo "$venv/bin/python"
