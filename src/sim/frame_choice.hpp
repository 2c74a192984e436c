// SPDX-License-Identifier: BSD-3-Clause
//
// Where a page goes while there are free frames: the option that policies over both memories share.
#pragma once

#include "sim/policy.hpp"

namespace perdure::sim {

inline PolicyOption fill_option() {
  return {.name = "fill",
          .default_value = "mram",
          .description = "which memory is filled first, while frames are free",
          .choices = {"mram", "dram"}};
}

class FrameChoice {
 public:
  explicit FrameChoice(const PolicySetup& setup)
      : first_(setup.options.is("fill", "mram") ? Place::mram : Place::dram) {}

  bool any(const Memory& memory) const { return memory.any_free(); }
  // Only if there is any.
  Place free(const Memory& memory) const {
    if (memory.free(first_) != 0) return first_;
    return first_ == Place::mram ? Place::dram : Place::mram;
  }

 private:
  Place first_;
};

}  // namespace perdure::sim
