// SPDX-License-Identifier: BSD-3-Clause
//
// Driver library: calls that are looked up in a library by their names.
#pragma once

#include <dlfcn.h>

namespace perdure {

class LookUp {
 public:
  explicit LookUp(void* library) : library_(library) {}
  template <typename Call>
  void optional(Call*& call, const char* name) const {
    call = reinterpret_cast<Call*>(::dlsym(library_, name));
  }
  template <typename Call>
  void needed(Call*& call, const char* name) {
    optional(call, name);
    if (call == nullptr) complete_ = false;
  }
  // Each that must be there was found.
  bool complete() const { return complete_; }

 private:
  void* library_;
  bool complete_ = true;
};

}  // namespace perdure
