#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The first process of the guest. Says what the machine has, then `ready`, and waits for one line:
#   SECONDS FOLDER COMMAND…   the time, since 1970; in /nvm, the DAX file system, FOLDER
#                             (MODE-NUMBER) is kept or made; the others of its mode are removed
# PURPOSE=format, from the kernel's command line: gives the NVDIMM a namespace that DAX can map.
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib HOME=/tmp PERDURE_TEST_ACKNOWLEDGE=1
# With its default transports MPICH 4.0.2 hung in MPI_Finalize here, in a quarter of the jobs.
export UCX_TLS=self,tcp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
for module in /modules/*; do insmod "$module"; done
wait_for() {  # devices appear a little after their modules
  tries=0
  while [ ! -e "$1" ] && [ $tries -lt 500 ]; do tries=$((tries + 1)); usleep 20000; done
  [ -e "$1" ] || { echo "failed: $1 did not appear"; poweroff -f; }
}
wait_for /dev/pmem0
bus=/sys/bus/nd

echo  # ends the line of the firmware
# A raw namespace has no struct pages, and ext4 refuses dax on it.
if [ "$PURPOSE" = format ]; then
  echo namespace0.0 > $bus/drivers/nd_pmem/unbind
  cd $bus/devices/pfn0.0
  echo ram > mode && echo 2097152 > align && cat /proc/sys/kernel/random/uuid > uuid &&
    echo namespace0.0 > namespace && echo pfn0.0 > $bus/drivers/nd_pmem/bind && echo formatted
  poweroff -f
fi

hostname guest
ip link set lo up
echo "kernel: $(uname -r)"
echo "persistence_domain: $(cat $bus/devices/region0/persistence_domain)"
echo "instructions:$(for name in clwb clflushopt clflush; do
  grep -qw $name /proc/cpuinfo && echo -n " $name"; done)"
echo ready
read -r seconds folder command
# Guests go on from the memory of one, with its clock and its boot; each is to be a boot of its own.
date -s "@$seconds" > /dev/null || { echo "failed: no time"; poweroff -f; }
cat /proc/sys/kernel/random/uuid > /tmp/boot_id
mount -o bind /tmp/boot_id /proc/sys/kernel/random/boot_id || { echo "failed: boot"; poweroff -f; }
mount -t ext4 -o dax=always /dev/pmem0 /nvm || { echo "failed: mount"; dmesg | tail; poweroff -f; }
grep -q ' /nvm ext4 .*dax=always' /proc/mounts || echo "failed: /nvm is mounted without dax"
for old in /nvm/"${folder%-*}"-*; do [ "$old" = "/nvm/$folder" ] || rm -rf "$old"; done
mkdir -p "/nvm/$folder"
sync
echo mounted
cd /tmp
eval "$command"
echo "ended $?"
umount /nvm && echo unmounted
poweroff -f
