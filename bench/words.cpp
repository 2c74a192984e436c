// SPDX-License-Identifier: BSD-3-Clause
#include "words.hpp"

#include <CLI/CLI.hpp>
#include <utility>

namespace perdure::bench {

struct Words::Reader {
  CLI::App app;
};

Words::Words(const char* about) : reader_(std::make_unique<Reader>()) {
  reader_->app.description(about);
}

Words::~Words() = default;

void Words::flag(const char* name, bool& value, const char* help) {
  reader_->app.add_flag(name, value, help);
}

void Words::text(const char* name, std::string& value, const char* help, Need need) {
  reader_->app.add_option(name, value, help)
      ->capture_default_str()
      ->required(need == Need::required);
}

void Words::one_of(const std::vector<std::string>& allowed, const char* name, std::string& value,
                   const char* help, Need need) {
  reader_->app.add_option(name, value, help)
      ->check(CLI::IsMember(allowed))
      ->required(need == Need::required);
}

void Words::directory(const char* name, std::string& value, const char* help) {
  reader_->app.add_option(name, value, help)->check(CLI::ExistingDirectory)->capture_default_str();
}

void Words::numbers_into(const char* name, const char* help, std::uint64_t least,
                         std::uint64_t most, int count, Into into) {
  reader_->app.add_option_function<std::vector<std::uint64_t>>(name, std::move(into), help)
      ->check(CLI::Range(least, most))
      ->expected(count);
}

std::optional<int> Words::parse(int argc, char** argv) {
  try {
    reader_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return reader_->app.exit(error);
  }
  return std::nullopt;
}

}  // namespace perdure::bench
