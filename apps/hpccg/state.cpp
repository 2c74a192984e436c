// SPDX-License-Identifier: BSD-3-Clause
#include "state.hpp"

#include "disk_state.hpp"
#include "memory_state.hpp"
#include "pool_state.hpp"
#include "window_state.hpp"

namespace hpccg {

std::unique_ptr<State> make_state(const Grid& grid, const Options& options) {
  switch (options.protection) {
    case Protection::none:
      return std::make_unique<MemoryState>(grid);
    case Protection::memcpy:
      return std::make_unique<MemcpyState>(grid);
    case Protection::disk:
      return std::make_unique<DiskState>(grid, options.disk_dir);
    case Protection::copy:
    case Protection::async:
    case Protection::twin:
    case Protection::log:
      break;
  }
  if (options.windows) return std::make_unique<WindowState>(grid, options);
  return std::make_unique<PoolState>(grid, options);
}

}  // namespace hpccg
