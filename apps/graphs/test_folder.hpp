// SPDX-License-Identifier: BSD-3-Clause
//
// For tests: a folder that is gone with its test, and the seed of a random one.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "arcs.hpp"

namespace graphs {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "graphs-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

// PERDURE_TEST_SEED, or `standard`; printed, so that a failure can be repeated.
inline std::uint64_t test_seed(std::uint64_t standard) {
  const char* text = std::getenv("PERDURE_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : standard;
  std::printf("PERDURE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

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
