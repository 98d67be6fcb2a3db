#!/usr/bin/env bash
# Installs the Debian packages that are missing for a purpose, and does nothing when none is.
#   cmake/setup.sh build|tests|python|benchmarks|gpu|rdma|ci
# Needs root or sudo only when something is missing. What is optional (rdma) asks nobody for a password: it ends with 77
# where sudo would.
set -euo pipefail

# PACKAGE:COMMAND where a command of any origin will do, PACKAGE alone where the package must be there.
packages=(g++:c++ cmake:cmake ninja-build:ninja pkg-config:pkg-config libmsgpack-cxx-dev libxxhash-dev
  libucx-dev libssl-dev libcli11-dev libfmt-dev nlohmann-json3-dev
  libzstd-dev liblz4-dev)
case ${1:-} in
  build) ;;
  tests) packages+=(libgtest-dev libgmock-dev libboost-iostreams-dev libsqlite3-dev python3:python3 iproute2:ip) ;;
  python) packages+=(python3:python3 python3-dev python3-venv) ;;
  benchmarks) packages+=(libbenchmark-dev libboost-iostreams-dev) ;;
  gpu) packages+=(libgtest-dev libgmock-dev libbenchmark-dev libboost-iostreams-dev libsqlite3-dev python3-venv) ;;
  rdma) packages=(qemu-system-x86:qemu-system-x86_64 iproute2:rdma ibverbs-providers xz-utils:xz) ;;
  ci)
    packages+=(libgtest-dev libgmock-dev libbenchmark-dev libboost-dev libboost-iostreams-dev libsqlite3-dev g++:g++ clang:clang++
      libclang-rt-dev doxygen:doxygen python3-dev python3-venv ccache:ccache valgrind gdb:gdb zsh:zsh fish:fish iproute2:ip)
    ;;
  *) echo "usage: $0 build|tests|python|benchmarks|gpu|rdma|ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian system: these packages, or what they are called here, must be there: ${packages[*]%%:*}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  name=${package%%:*}
  if [ "$package" != "$name" ] && command -v "${package#*:}" >/dev/null; then continue; fi
  dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages, and neither root nor sudo to install them: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
  if [ "${1:-}" = rdma ]; then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
      echo "Missing packages, and sudo asks for a password to install them: ${missing[*]}" >&2
      exit 77
    fi
  fi
fi
echo "Installing: ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 30 "$log" >&2
  echo "Could not install: ${missing[*]}" >&2
  exit 1
fi
