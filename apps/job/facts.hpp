// SPDX-License-Identifier: BSD-3-Clause
//
// Facts: lines of JSON with the keys of every benchmark here, and what the run was.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace job {

using Json = nlohmann::ordered_json;

struct Quartiles {
  double low = 0, median = 0, high = 0;
  std::size_t samples = 0;
};

class Facts {
 public:
  Facts(std::string bench, std::string name, Json about)
      : bench_(std::move(bench)), name_(std::move(name)), about_(std::move(about)) {}

  void print(const char* metric, const Json& value, const char* unit,
             const Json& more = Json::object()) const {
    Json line{{"bench", bench_},   {"case", name_},   {"metric", metric}, {"value", value},
              {"unit", unit},      {"low", value},    {"high", value},    {"n", 1},
              {"target", nullptr}, {"holds", nullptr}};
    line.update(about_);
    line.update(more);
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  void print(const char* metric, const Quartiles& of) const {
    if (of.samples == 0) return;
    print(metric, of.median, "s", {{"low", of.low}, {"high", of.high}, {"n", of.samples}});
  }

 private:
  std::string bench_, name_;
  Json about_;
};

}  // namespace job
