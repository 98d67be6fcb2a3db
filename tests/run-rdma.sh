#!/usr/bin/env bash
# Runs the tests over RDMA: in two virtual machines on one wire, each with a soft-RoCE device, so that UCX's verbs
# transports are used where there is no such hardware.
#   tests/run-rdma.sh [--suite NAME] [--quick|--whole] [--part NAME[:WHAT]]... [BUILD]
#     --suite NAME bookworm (UCX 1.13.1, Linux 6.1) or trixie (UCX 1.18.1, Linux 6.12): the release of Debian that the
#                  machines have, this system's by default
#     --quick      what a change to RDMA must pass, in ten minutes at most (default); .ci/run has the part `smoke`
#     --whole      all, in an hour or two
#     --part NAME  this part alone, of tests/rdma/NAME.sh: smoke, hosts, cases. Of its steps, those that WHAT names:
#                  hosts:VERB, cases:PROGRAM or cases:PROGRAM:FILTER, as cases:fabric:Listener.*
#     BUILD        a build, which is taken as it is; without one build/dev is built
# Ends with 0 when all passed, and with 77, saying why, where QEMU, the kernel or a static busybox can not be had.
#
# The machines have this system's /usr, the repository and BUILD, read-only; the kernel is Debian's, whose package is
# fetched once. Of another suite they have its kernel and /usr, also fetched once, and this system's libraries that BUILD
# needs and that suite lacks. The environment: UCXIO_RDMA_CACHE is where it is kept (build/rdma); UCXIO_RDMA_ACCELERATOR=kvm
# is quicker than `tcg` (default), where it works; LD_LIBRARY_PATH may name another UCX.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
own_suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
kind=quick parts=() suite=$own_suite
while [ $# -gt 0 ]; do
  case $1 in
    --quick) kind=quick ;;
    --whole) kind=whole ;;
    --suite)
      case ${2:-} in bookworm | trixie) ;; *) usage ;; esac
      suite=$2
      shift
      ;;
    --part)
      case ${2:-} in smoke | hosts | hosts:* | cases | cases:*) ;; *) usage ;; esac
      parts+=("$2")
      shift
      ;;
    -*) usage ;;
    *) break ;;
  esac
  shift
done
[ $# -le 1 ] || usage
[ ${#parts[@]} -gt 0 ] || parts=(smoke hosts cases)
build=${1:-build/dev}
cache=${UCXIO_RDMA_CACHE:-build/rdma}
accelerator=${UCXIO_RDMA_ACCELERATOR:-tcg}
longest=540 # seconds for the machines, their start included
[ $kind = quick ] || longest=7200
# Those that the kernel does not find by itself: the order does not matter.
modules=(virtio_pci virtio_net 9p 9pnet_virtio crc32_generic ib_uverbs rdma_ucm rdma_rxe)

not_run() {
  echo "run-rdma: $*: NOTHING WAS RUN"
  exit 77
}

fail() {
  echo "run-rdma: $*"
  exit 1
}

work='' machines=()
finish() {
  local each
  for each in "${machines[@]}"; do kill "$each" 2>/dev/null || true; done
  for each in "${machines[@]}"; do wait "$each" 2>/dev/null || true; done
  [ -z "$work" ] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
work=$(mktemp -d "${TMPDIR:-/tmp}/ucxio-rdma.XXXXXX")

# Runs a function that ends at the first command that fails, with 77 where a package can not be had, and tells in
# `fetched` how it went: within a condition `set -e` would be off.
fetch() { # FUNCTION
  set +e
  (
    set -e
    "$1"
  )
  fetched=$?
  set -e
}

apt_options=()

download() { # FOLDER PACKAGE
  (cd "$1" && apt-get "${apt_options[@]}" -q download "$2") >"$work/download" 2>&1 || { cat "$work/download"; return 1; }
}

# What the machines run, and needs no more than it says: a system without these is not used.
suite_packages=(dash bash coreutils grep sed util-linux iproute2 ibverbs-providers libibverbs1 libucx0 python3 libc-bin)

# Has apt look at another suite, past this system's packages: it asks the mirror that this system uses.
look_at_suite() {
  local apt=$work/apt mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk -v own="$own_suite" '$2 == own && !found++ { print $1 }')
  [ -n "$mirror" ] || exit 77
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
  : >"$apt/status"
  echo "deb $mirror $suite main" >"$apt/sources"
  apt_options=(-o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
    -o "Dir::Etc::sourcelist=$apt/sources" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root)
  apt-get "${apt_options[@]}" -q update >"$work/update" 2>&1 || { cat "$work/update"; exit 77; }
}

has_suite() { # FOLDER
  has_kernel "$1/kernel" && [ -s "$1/root/etc/libibverbs.d/rxe.driver" ] && [ -e "$1/root/usr/bin/sh" ]
}

# Fetches another suite's packages and what they depend on, and unpacks them; keeps them in $cache/$suite.
fetch_suite() {
  local new=$work/suite each link
  look_at_suite
  apt-get "${apt_options[@]}" -q -y --no-install-recommends --download-only install "${suite_packages[@]}" >"$work/packages" 2>&1 ||
    { cat "$work/packages"; exit 77; }
  mkdir -p "$new/root/usr"/{bin,sbin,lib,lib64}
  for link in bin sbin lib lib64; do ln -s "usr/$link" "$new/root/$link"; done
  for each in "$work"/apt/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$each" | tar -x --keep-directory-symlink -C "$new/root"
  done
  [ -e "$new/root/usr/bin/sh" ] || ln -s dash "$new/root/usr/bin/sh"
  rm -rf "$new"/root/usr/share/{doc,man,locale} "$work/apt/cache/archives"
  fetch_kernel_into "$new/kernel"
  has_suite "$new"
  keep "$new" "$suite"
}

# Puts a folder that is whole into the cache.
keep() { # FOLDER NAME
  mkdir -p "$cache"
  rm -rf "$cache/new" "${cache:?}/$2"
  mv -T "$1" "$cache/new"
  mv -T "$cache/new" "$cache/$2"
}

has_kernel() { # FOLDER
  [ -s "$1/vmlinuz" ] && [ -s "$1/modules/order" ] && [ -s "$1/modules/rdma_rxe.ko" ]
}

# Fetches the kernel of this system's release; keeps its image and its modules in $cache/kernel.
fetch_kernel() {
  fetch_kernel_into "$work/kernel"
  keep "$work/kernel" kernel
}

fetch_kernel_into() { # FOLDER
  local package new=$1
  package=$(apt-cache "${apt_options[@]}" depends linux-image-amd64 | awk '/Depends: linux-image-/ && !found++ { print $2 }') || exit 77
  [ -n "$package" ] || exit 77
  mkdir "$new"
  download "$new" "$package" || exit 77
  dpkg-deb -x "$new"/linux-image-*.deb "$new/all"
  cp "$new"/all/boot/vmlinuz-* "$new/vmlinuz"
  find "$new/all" -name '*.ko*' >"$new/modules.txt"
  mkdir "$new/modules"
  take_modules "$new"
  rm -rf "$new/all" "$new"/*.deb "$new/modules.txt"
  has_kernel "$new"
}

# The machines have no libraries before they have this system's /usr.
is_static() { # PROGRAM
  [[ $(LC_ALL=C ldd "$1" 2>&1) =~ 'not a dynamic executable'|'statically linked' ]]
}

# Fetches a busybox that needs no libraries, and leaves the one that is installed alone.
fetch_busybox() {
  local new=$work/busybox
  mkdir "$new"
  download "$new" busybox-static || exit 77
  dpkg-deb -x "$new"/busybox-static_*.deb "$new/all"
  mv "$(find "$new/all" -name busybox -type f -perm -u+x)" "$new/busybox"
  rm -rf "$new/all" "$new"/*.deb
  is_static "$new/busybox"
  keep "$new" busybox
}

# Takes the modules and what they depend on, in an order in which they can be loaded.
take_modules() { # FOLDER
  local each
  : >"$1/modules/order"
  for each in "${modules[@]}"; do take_module "$1" "$each"; done
}

take_module() { # FOLDER NAME
  local folder=$1 name=${2//-/_} file each
  ! grep -qx "$name.ko" "$folder/modules/order" || return 0
  # One that is built into the kernel has no file.
  file=$(grep -E "/${name//_/[-_]}\.ko(\.xz)?$" "$folder/modules.txt" | head -n 1) || return 0
  case $file in
    *.xz) xz -dc "$file" >"$folder/modules/$name.ko" ;;
    *) cp "$file" "$folder/modules/$name.ko" ;;
  esac
  for each in $(tr '\0' '\n' <"$folder/modules/$name.ko" | sed -n 's/^depends=//p' | tr ',' ' '); do
    take_module "$folder" "$each"
  done
  echo "$name.ko" >>"$folder/modules/order"
}

shared=() places=()
share() { # DIRECTORY [WHERE]
  local path each
  path=$(realpath "$1") || return 0
  for each in "${places[@]}"; do
    [[ ${2:-$path}/ != "$each"/* ]] || return 0
  done
  shared+=("$path")
  places+=("${2:-$path}")
}

# Copies the libraries that the build's programs find in this system, and the machines' suite does not have.
lend_libraries() { # FOLDER
  local name path
  mkdir -p "$1"
  for path in "$build"/bin/ucxio*; do ldd "$path" 2>/dev/null || true; done |
    awk '$2 == "=>" && $3 ~ "^/" { print $1, $3 }' | sort -u |
    while read -r name path; do
      [[ $path == "$(realpath "$build")"/* || -e $system/usr/lib/x86_64-linux-gnu/$name ]] || cp -L "$path" "$1/$name"
    done
}

# Makes the first file system of machine NUMBER.
make_initrd() { # NUMBER
  local root=$work/$1/root i each
  mkdir -p "$root"/{applets,proc,sys,dev,etc,job,modules}
  cp "$busybox" "$root/busybox"
  cp "$kernel"/modules/* "$root/modules/"
  cp tests/rdma/machine.sh "$root/init"
  chmod 755 "$root/init"
  cp -r "$system/etc/libibverbs.d" "$root/etc/"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  echo "$1" >"$root/job/number"
  pwd -P >"$root/job/directory"
  for each in "${parts[@]}"; do echo "${each/:/ }"; done >"$root/job/parts"
  realpath "$build" >"$root/job/build"
  for i in "${!shared[@]}"; do echo "share$i ${places[i]}"; done >"$root/job/mounts"
  echo "export UCXIO_RDMA_KIND=$kind" >"$root/job/environment"
  each=${LD_LIBRARY_PATH:-}
  if [ -n "$system" ]; then
    lend_libraries "$root/libraries"
    each+=${each:+:}/libraries
  fi
  { [ -z "$each" ] || printf 'export LD_LIBRARY_PATH=%q\n' "$each"; } >>"$root/job/environment"
  (cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/$1/initrd"
}

start() { # NUMBER
  local number=$1 folder=$work/$1 other=$((3 - $1)) devices=() i
  for i in "${!shared[@]}"; do
    devices+=(-virtfs "local,path=${shared[i]//,/,,},mount_tag=share$i,security_model=none,readonly=on,multidevs=remap")
  done
  # The wire has two ends: a packet is a datagram between two sockets of the file system, whose paths may not be long. In
  # a session of its own, so that a terminal's signals come to this script alone.
  (cd "$work" && exec setsid qemu-system-x86_64 -accel "$accelerator" -cpu max -smp 2 -m 1536 -M q35 -nodefaults -no-user-config \
    -display none -no-reboot -kernel "$kernel/vmlinuz" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off nokaslr tsc=unstable random.trust_cpu=on" \
    -serial "file:$folder/console" -serial "file:$folder/out" -serial "file:$folder/status" \
    -netdev "dgram,id=wire,local.type=unix,local.path=wire$number,remote.type=unix,remote.path=wire$other" \
    -device "virtio-net-pci,netdev=wire,mac=52:54:00:00:00:0$number,host_mtu=9000" \
    "${devices[@]}") </dev/null >"$folder/qemu" 2>&1 &
  machines[number]=$!
}

show() { # NUMBER FILE
  [ ! -s "$work/$1/$2" ] || sed "s/^/machine $1, $2: /" "$work/$1/$2"
}

if [ $# -eq 0 ]; then
  cmake --preset dev >"$work/configured" 2>&1 || { cat "$work/configured"; exit 1; }
  cmake --build build/dev --target ucxio-rdma-{peer,messages} ucxio-tool ucxio-{test,plain}-peer ucxio-{conformance,fabric,process,tool}-tests
fi
[ "$(uname -m)" = x86_64 ] || not_run "the machines are x86_64"
cmake/setup.sh rdma >"$work/packages" 2>&1 || not_run "$(tr '\n' ' ' <"$work/packages")"
mkdir -p "$cache"
cache=$(realpath "$cache") work=$(realpath "$work") fetched=0
system='' kernel=$cache/kernel # of the machines
if [ "$suite" != "$own_suite" ]; then
  has_suite "$cache/$suite" || fetch fetch_suite
  [ $fetched != 77 ] || not_run "the packages of $suite can not be fetched"
  [ $fetched = 0 ] || fail "the packages of $suite lack what is needed"
  system=$cache/$suite/root kernel=$cache/$suite/kernel
elif ! has_kernel "$cache/kernel"; then
  fetch fetch_kernel
  [ $fetched != 77 ] || not_run "the kernel's package can not be fetched"
  [ $fetched = 0 ] || fail "the kernel's package lacks what is needed"
fi
busybox=$(command -v busybox || true)
if [ -z "$busybox" ] || ! is_static "$busybox"; then
  busybox=$cache/busybox/busybox
  [ -x "$busybox" ] || fetch fetch_busybox
  [ $fetched != 77 ] || not_run "the package busybox-static can not be fetched"
  [ $fetched = 0 ] || fail "the package busybox-static lacks what is needed"
fi
share "$system/usr" /usr
share .
share "$build"
IFS=: read -ra libraries <<<"${LD_LIBRARY_PATH:-}"
for each in "${libraries[@]}"; do share "$each"; done
for number in 1 2; do make_initrd $number; done
began=$SECONDS
# Cases are of one machine.
[[ "${parts[*]/cases*/}" != *[a-z]* ]] || start 2
: >"$work/1/out"
start 1
tail -n +1 -f "$work/1/out" &
shown=$!
machines+=("$shown")

while kill -0 "${machines[1]}" 2>/dev/null && [ ! -s "$work/1/status" ] && [ $((SECONDS - began)) -lt $longest ]; do sleep 0.2; done
sleep 1.5 # what was written last
result=$(tr -dc '0-9' <"$work/1/status" 2>/dev/null) || true
kill "$shown"
if [ "${result:-none}" = 0 ] && ! grep -q FAILED "$work/1/out"; then
  echo "run-rdma: all passed, $((SECONDS - began)) s"
  exit 0
fi
show 1 qemu
show 2 qemu
show 2 out
for number in 1 2; do
  [ ! -s "$work/$number/console" ] || tail -n 15 "$work/$number/console" | sed "s/^/machine $number, console: /"
done
if [ $((SECONDS - began)) -ge $longest ]; then
  echo "run-rdma: FAILED: not ended after $longest s"
else
  echo "run-rdma: FAILED (${result:-the machine ended without an answer})"
fi
exit 1
