# SPDX-License-Identifier: BSD-3-Clause
"""Starts the loopback device of a new network, then becomes a command: unshare -n THIS COMMAND…"""

import fcntl
import os
import socket
import struct
import sys

IFF_UP, SIOCSIFFLAGS = 1, 0x8914
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
    fcntl.ioctl(some, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
os.execvp(sys.argv[1], sys.argv[1:])
