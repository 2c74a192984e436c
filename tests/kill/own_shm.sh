#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# own_shm.sh COMMAND …: runs it with a /dev/shm of its own, for tests that look at what is left
# there. Needs root; where that is not so, such tests run alone instead (CMakeLists.txt).
exec unshare --mount sh -c 'mount -t tmpfs -o mode=1777 shm /dev/shm && exec "$@"' own_shm "$@"
