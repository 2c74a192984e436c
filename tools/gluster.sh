#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A GlusterFS of two bricks on this machine, for benchmarks and tests of files on a parallel file
# system. Needs root, /dev/fuse, and Debian's glusterfs-server and glusterfs-client, which it
# installs where they are missing.
#
#   tools/gluster.sh start [DIRECTORY]   bricks, daemon and mount below DIRECTORY (build/gluster)
#   tools/gluster.sh stop [DIRECTORY]    unmounts, ends the daemons, removes DIRECTORY
#
# Example: tools/gluster.sh start
#          PERDURE_GLUSTER=$PWD/build/gluster/mount ./perdure bench matpower
#          tools/gluster.sh stop
#
# The daemon listens on 127.0.0.2 only (it takes 127.0.0.1 for no address of a brick) and keeps its
# state below DIRECTORY, so that a GlusterFS of the machine's own is not touched; it refuses to
# start beside one.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:-} place=${2:-build/gluster}
volume=perdure

say() { echo "gluster: $*"; }
fail() {
  echo "gluster: $*" >&2
  exit 1
}

run_gluster() { gluster --mode=script --log-file="$place/log/cli.log" "$@"; }

install_packages() {
  command -v glusterd >/dev/null && command -v mount.glusterfs >/dev/null && return
  say "installing glusterfs-server and glusterfs-client"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    glusterfs-server glusterfs-client >/dev/null
}

start_daemon() {
  cat >"$place/glusterd.vol" <<EOF
volume management
    type mgmt/glusterd
    option working-directory $place/state
    option transport-type socket
    option transport.socket.bind-address 127.0.0.2
    option transport.socket.listen-port 24007
    option ping-timeout 0
    option event-threads 1
    option max-port 60999
end-volume
EOF
  glusterd --volfile="$place/glusterd.vol" --log-file="$place/log/glusterd.log" \
    --pid-file="$place/glusterd.pid"
  for _ in $(seq 50); do
    run_gluster volume list >/dev/null 2>&1 && return
    sleep 0.2
  done
  fail "the daemon does not answer; see $place/log/glusterd.log"
}

start() {
  [ "$(id -u)" = 0 ] || fail "mounting needs root"
  [ -c /dev/fuse ] || fail "there is no /dev/fuse: GlusterFS can't be mounted here"
  [ ! -e "$place" ] || fail "$place exists; stop it first: tools/gluster.sh stop $place"
  install_packages
  pgrep -x -r D,R,S glusterd >/dev/null &&
    fail "a glusterd runs already; this one would be its second"
  mkdir -p "$place"/{brick0,brick1,mount,log,state}
  place=$(cd "$place" && pwd)
  start_daemon
  run_gluster volume create "$volume" "127.0.0.2:$place/brick0" "127.0.0.2:$place/brick1" force \
    >/dev/null
  run_gluster volume start "$volume" >/dev/null
  mount -t glusterfs -o "log-file=$place/log/mount.log" "127.0.0.2:/$volume" "$place/mount" ||
    fail "mounting failed; see $place/log/mount.log"
  say "two bricks, mounted at $place/mount; export PERDURE_GLUSTER=$place/mount"
}

# Ends what runs with this place on its command line, and nothing else.
stop() {
  [ -e "$place" ] || fail "there is no $place"
  place=$(cd "$place" && pwd)
  [ -e "$place/glusterd.vol" ] || fail "$place was not made by tools/gluster.sh start"
  ! mountpoint -q "$place/mount" || umount "$place/mount" || umount -l "$place/mount"
  for _ in $(seq 50); do
    pkill -f "gluster.*$place/" || break
    sleep 0.2
  done
  rm -rf "$place"
  say "stopped, and removed $place"
}

case $action in
  start | stop) "$action" ;;
  *)
    sed -n '4,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p'
    exit 2 ;;
esac
