// SPDX-License-Identifier: BSD-3-Clause
#include "pool/file_recovery.hpp"

#include <atomic>

namespace perdure {
namespace {

std::atomic<FileRecovery> known{nullptr};

}  // namespace

void set_file_recovery(FileRecovery recovery) {
  known = recovery;
}

FileRecovery file_recovery() {
  return known;
}

}  // namespace perdure
