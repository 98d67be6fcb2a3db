#!/usr/bin/env bash
# Runs a program on what looks like a machine of its own: run.py starts it in namespaces of its own, as their root.
#   own_machine.sh FOLDER SEEN... -- PROGRAM...
# Its network has node1, node7 and node8 (10.0.0.1, .7 and .8), which are all itself. Its /tmp, /data, /scratch, /shared,
# /var/log and /dev/shm are empty and end with it. FOLDER holds what is made; it and each folder SEEN are at their places.
set -euo pipefail
folder=$1
shift
seen=("$folder")
while [ "$1" != -- ]; do seen+=("$1") && shift; done
shift
root=$folder/root own="tmp data scratch shared"

ip link set lo up
# Further addresses of the loopback device are none by which UCX connects.
for node in 1 7 8; do
  ip link add "node$node" type veth peer name "peer$node"
  ip address add "10.0.0.$node/24" dev "node$node"
  ip link set "node$node" up
  ip link set "peer$node" up
done

mkdir -p "$root"
for entry in /*; do
  name=${entry#/}
  case " $own proc sys " in *" $name "*) continue ;; esac
  if [ -L "$entry" ]; then
    cp -P "$entry" "$root/$name"
  elif [ -d "$entry" ]; then
    mkdir "$root/$name"
    mount --rbind "$entry" "$root/$name"
  fi
done
for name in $own; do mkdir -m 1777 "$root/$name"; done
mkdir "$root/proc" "$root/sys"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/var/log"
for each in "${seen[@]}"; do
  if [ ! -e "$root$each" ]; then
    mkdir -p "$root$each"
    mount --bind "$each" "$root$each"
  fi
done
printf '127.0.0.1 localhost\n10.0.0.1 node1\n10.0.0.7 node7\n10.0.0.8 node8\n' >"$folder/hosts"
mount --bind "$folder/hosts" "$root/etc/hosts"

where=$PWD
exec chroot "$root" bash -c 'cd "$1" && shift && exec "$@"' bash "$where" "$@"
