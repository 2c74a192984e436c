// SPDX-License-Identifier: BSD-3-Clause
#include "base/fact.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace perdure {
namespace {

using Json = nlohmann::ordered_json;

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

}  // namespace

Fact of_samples(Fact fact, std::vector<double> samples) {
  fact.n = samples.size();
  if (samples.empty()) return fact;
  std::ranges::sort(samples);
  fact.value = quantile(samples, 0.5);
  fact.low = quantile(samples, 0.25);
  fact.high = quantile(samples, 0.75);
  return fact;
}

Fact at_most(double target, Fact fact) {
  fact.target = target;
  if (fact.value.has_value()) fact.holds = *fact.value <= target;
  return fact;
}

Fact at_least(double target, Fact fact) {
  fact.target = target;
  if (fact.value.has_value()) fact.holds = *fact.value >= target;
  return fact;
}

std::string fact_line(const Fact& fact) {
  Json line;
  line["bench"] = fact.bench;
  line["case"] = fact.name;
  line["metric"] = fact.metric;
  line["value"] = or_null(fact.value);
  line["unit"] = fact.unit;
  line["low"] = or_null(fact.low);
  line["high"] = or_null(fact.high);
  line["n"] = fact.n;
  line["target"] = or_null(fact.target);
  line["holds"] = or_null(fact.holds);
  for (const auto& [key, said] : fact.more) {
    std::visit([&, &name = key](const auto& value) { line[name] = value; }, said);
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print_fact(const Fact& fact) {
  std::printf("%s\n", fact_line(fact).c_str());
  std::fflush(stdout);
}

}  // namespace perdure
