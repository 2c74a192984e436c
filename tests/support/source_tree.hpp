// SPDX-License-Identifier: BSD-3-Clause
//
// Files of the source tree that tests read, by their path in it. Threads: any. A test that includes
// it is linked with perdure_source_tree.
#pragma once

#include <string>

namespace perdure {

std::string source_file(const std::string& path);

}  // namespace perdure
