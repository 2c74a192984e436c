// SPDX-License-Identifier: BSD-3-Clause
//
// A text file in a directory of its own, which goes with it. Threads: one at a time.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "temporary_directory.hpp"

namespace perdure_test {

class TextFile {
 public:
  std::string path() const { return directory_.path() + "/lines"; }
  std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  void remove() const { std::filesystem::remove(path()); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace perdure_test
