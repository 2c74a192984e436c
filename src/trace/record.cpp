// SPDX-License-Identifier: BSD-3-Clause
#include "trace/record.hpp"

namespace perdure::trace {

const char* filter_mode_name(FilterMode mode) {
  switch (mode) {
    case FilterMode::none:
      return "none";
    case FilterMode::paper:
      return "paper";
    case FilterMode::modern:
      return "modern";
  }
  return "unknown";
}

}  // namespace perdure::trace
