// SPDX-License-Identifier: BSD-3-Clause
//
// Words of a benchmark's command line: what is said of an option, and into which variable it goes.
// CLI11 reads them, in words.cpp alone: it takes a compiler 15 s in each source that
// is optimised.
//
// Threads: one. Failure: parse() says what is wrong on standard error, and gives the exit code.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace perdure::bench {

class Words {
 public:
  explicit Words(const char* about);
  ~Words();
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  enum class Need { optional, required };

  void flag(const char* name, bool& value, const char* help);
  void text(const char* name, std::string& value, const char* help, Need need = Need::optional);
  void one_of(const std::vector<std::string>& allowed, const char* name, std::string& value,
              const char* help, Need need = Need::optional);
  void directory(const char* name, std::string& value, const char* help);  // that exists

  template <std::integral T>
  void number(const char* name, T& value, const char* help, std::uint64_t least = 0,
              std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
    numbers_into(name, help, least, most, 1, [&value](const std::vector<std::uint64_t>& given) {
      value = static_cast<T>(given.at(0));
    });
  }
  template <std::integral T>
  void numbers(const char* name, std::vector<T>& values, const char* help, std::uint64_t least,
               std::uint64_t most) {
    numbers_into(name, help, least, most, -1, [&values](const std::vector<std::uint64_t>& given) {
      values.clear();
      for (const std::uint64_t one : given) values.push_back(static_cast<T>(one));
    });
  }

  // What the program ends with at once, if it was asked for help or wrongly called.
  std::optional<int> parse(int argc, char** argv);

 private:
  using Into = std::function<void(const std::vector<std::uint64_t>&)>;
  void numbers_into(const char* name, const char* help, std::uint64_t least, std::uint64_t most,
                    int count, Into into);

  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace perdure::bench
