// SPDX-License-Identifier: BSD-3-Clause
//
// For tests: files in a folder that is gone with its test, and the error that a reader throws.
#pragma once

#include <functional>
#include <string>

#include "arcs.hpp"
#include "temporary_directory.hpp"

namespace graphs {

class TestFolder : public perdure_test::TemporaryDirectory {
 public:
  std::string write(const std::string& name, const std::string& text) const {
    perdure_test::write_file(*this / name, text);
    return *this / name;
  }
};

// The sentence of the InputError that `read` throws; empty if it throws none.
inline std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace graphs
