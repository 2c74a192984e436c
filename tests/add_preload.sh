#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# add_preload.sh LIBRARY PROGRAM [ARGUMENT…]: PROGRAM with LIBRARY loaded in front of what its
# environment has loaded already. LIBRARY may be several, with colons between them.
LD_PRELOAD="$1${LD_PRELOAD:+:$LD_PRELOAD}"
shift
export LD_PRELOAD
exec "$@"
