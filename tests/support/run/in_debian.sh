#!/usr/bin/env bash
# Runs commands in a fresh Debian of its own, in a clone of what is committed here.
#   tests/support/run/in_debian.sh SUITE COMMAND...      SUITE: bookworm or trixie
# Needs root, and installs debootstrap. The system is a folder below build/, which is removed at the end. Its packages
# come from the mirror of this system. It has the settings of this system's package clients, and its network.
set -euo pipefail
suite=$1
shift
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
base=$top/build/debian-$suite
root=$base.$$
[ "$(id -u)" = 0 ] || { echo "in_debian.sh: only root can make a system" >&2; exit 1; }
command -v debootstrap >/dev/null ||
  { apt-get update -q && apt-get install -y -q --no-install-recommends debootstrap; } >/dev/null
# The mirror that apt has here, if apt knows one; else debootstrap's own.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -E '/debian/?$' | head -n 1 || true)

if [ ! -e "$base/made" ]; then
  rm -rf --one-file-system "$base"
  mkdir -p "$base"
  debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$base" ${mirror:+"$mirror"} >"$base.log" 2>&1 ||
    { tail -n 5 "$base.log" >&2; exit 1; }
  touch "$base/made"
fi
trap 'rm -rf --one-file-system "$root"' EXIT
cp -a "$base" "$root"
for file in resolv.conf hosts pip.conf; do
  [ ! -e "/etc/$file" ] || cp -L "/etc/$file" "$root/etc/$file"
done
for folder in apt/apt.conf.d apt/auth.conf.d ssl/certs; do
  [ ! -d "/etc/$folder" ] || { mkdir -p "$root/etc/$folder" && cp -a "/etc/$folder/." "$root/etc/$folder/"; }
done
git clone -q "$top" "$root/root/ucxio"

# What the clients of package registries go by.
settings=()
while IFS= read -r each; do settings+=("$each"); done < <(env | grep -E '^(PIP_|SSL_CERT_|REQUESTS_CA|https?_proxy|no_proxy)' || true)

# With processes and mounts of its own, which end with it.
export root
unshare --mount --pid --fork --kill-child --propagation private bash -euc '
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  settings=$1
  shift
  for command in "$@"; do
    echo "== $command"
    # shellcheck disable=SC2086 # one word each
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive $settings \
      chroot "$root" bash -c "cd /root/ucxio && $command" </dev/null
  done
' in_debian "${settings[*]}" "$@"
