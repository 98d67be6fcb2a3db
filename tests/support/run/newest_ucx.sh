#!/usr/bin/env bash
# Prints the prefix of the newest UCX that is tested: the PyPI package libucx-cu13, in a virtual environment below
# build/, which it makes where there is none.
#   tests/support/run/newest_ucx.sh [PACKAGE...]    installs these PyPI packages beside it, too
#   tests/support/run/newest_ucx.sh --fetched       fetches nothing; ends with 1 where it is not there
#   tests/support/run/newest_ucx.sh --version       prints its version
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=1.22.0
venv=$PWD/build/ucx-$version

case ${1-} in
  --version)
    echo $version
    exit
    ;;
  --fetched) [ -x "$venv/bin/python" ] || exit 1 ;;
  *)
    [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >&2
    "$venv/bin/pip" install --quiet --no-deps --only-binary :all: "libucx-cu13==$version" "$@" >&2
    ;;
esac
prefix=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/libucx
[ -e "$prefix/lib/libucp.so" ] && echo "$prefix"
