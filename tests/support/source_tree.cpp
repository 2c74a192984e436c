// SPDX-License-Identifier: BSD-3-Clause
#include "source_tree.hpp"

namespace perdure {

std::string source_file(const std::string& path) {
  return PERDURE_SOURCE_TREE "/" + path;
}

}  // namespace perdure
