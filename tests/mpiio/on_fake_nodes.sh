#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# on_fake_nodes.sh NODES PROGRAM [ARGUMENT…]: one rank of an MPI job, which is to believe that it
# runs on node rank % NODES. PERDURE_NODE_ID names the node.
set -eu
nodes=$1
shift
rank=${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}
PERDURE_NODE_ID=$((rank % nodes))
export PERDURE_NODE_ID
exec "$@"
