#!/busybox sh
# The first process of a virtual machine of tests/run-rdma.sh: makes the RDMA device, mounts what is
# shared, and runs the parts of the test, or obeys. /job has NUMBER, PARTS, MOUNTS, ENVIRONMENT and DIRECTORY.
/busybox --install -s /applets
PATH=/applets
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /tmp /run /root
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
stty -F /dev/ttyS1 raw -echo
stty -F /dev/ttyS2 raw -echo
end() { echo "$1" >/dev/ttyS2; sleep 0.2; echo o >/proc/sysrq-trigger; sleep 60; }
exec </dev/null >/dev/ttyS1 2>&1
while read -r module; do
  insmod "/modules/$module" || echo "the module $module can not be loaded"
done </modules/order
read -r number </job/number
ip link set lo up
ip link set eth0 mtu 4200
ip link set eth0 up
ip address add "192.0.2.$number/24" dev eth0
ip address add "192.0.2.$number$number/24" dev eth0 label eth0:also
while read -r tag directory; do
  mkdir -p "$directory"
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose "$tag" "$directory" ||
    { echo "$directory can not be mounted"; end 125; }
done </job/mounts
for link in bin sbin lib lib64; do [ -e "/$link" ] || ln -s "usr/$link" "/$link"; done
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/applets
read -r directory </job/directory
cd "$directory" || end 125
. tests/rdma/device.sh
make_device || { echo "no RDMA device can be made"; end 125; }
ulimit -l unlimited
export HOME=/root LC_ALL=C.UTF-8
. /job/environment
build=$(cat /job/build)
if [ "$number" = 2 ]; then
  sh tests/rdma/obey.sh 2 "$build" forever
  end 1
fi
failed=0
while read -r part what; do
  UCXIO_RDMA_ONLY=$what sh "tests/rdma/$part.sh" 1 "$build" || failed=1
done </job/parts
end $failed
