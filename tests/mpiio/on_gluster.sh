#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# on_gluster.sh COMMAND [ARGUMENT…]: runs same_file.sh or another test with its files on the
# GlusterFS that PERDURE_GLUSTER names (tools/gluster.sh start); skips without one.
set -eu
if [ -z "${PERDURE_GLUSTER:-}" ]; then
  echo "skipped: PERDURE_GLUSTER names no GlusterFS; tools/gluster.sh start makes one"
  exit 77
fi
if ! grep -qs " $PERDURE_GLUSTER fuse.glusterfs " /proc/mounts; then
  echo "on_gluster.sh: PERDURE_GLUSTER=$PERDURE_GLUSTER is no mounted GlusterFS" >&2
  exit 1
fi
PERDURE_FILES_DIR=$PERDURE_GLUSTER
export PERDURE_FILES_DIR
exec "$@"
