// SPDX-License-Identifier: BSD-3-Clause
//
// Own blocks: that the blocks of a file are its own, and stores go to them. Where files share
// blocks (copies by reference, snapshots), or a file system writes each change elsewhere, a store
// needs new room, and raises SIGBUS on a full device.
//
// Failure: a Status that names the file; Code::no_space where the device has no room for them.
#pragma once

#include <string>

#include "base/status.hpp"

namespace perdure {

// Of a new file, before it has bytes: Btrfs is to write its changes in place. Elsewhere nothing.
Status write_in_place(int fd, const std::string& path);

// Gives the file blocks of its own for those that it shares with others, which on Btrfs reads and
// writes them. Nothing where none is shared, or the file system does not say.
Status unshare_blocks(int fd, const std::string& path);

}  // namespace perdure
