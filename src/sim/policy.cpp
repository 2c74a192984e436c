// SPDX-License-Identifier: BSD-3-Clause
#include "sim/policy.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/quantity.hpp"

namespace perdure::sim {
namespace {

std::string short_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Status check_value(const PolicyEntry& entry, const PolicyOption& option, const std::string& value) {
  const std::string where = "policy " + entry.name + ": " + option.name + "=" + value + ": ";
  if (!option.choices.empty()) {
    if (std::ranges::find(option.choices, value) != option.choices.end()) {
      return Status::success();
    }
    return Status(Code::invalid_argument, where, "it must be one of ", listed(option.choices));
  }
  const auto number = number_in<double>(value);
  if (number && *number >= option.least && *number <= option.most) return Status::success();
  return Status(Code::invalid_argument, where, "it must be a number from ",
                short_number(option.least), " to ", short_number(option.most));
}

}  // namespace

double OptionValues::number(const std::string& name) const {
  const auto value = number_in<double>(values.at(name));
  PERDURE_ASSERT(value.has_value());
  return *value;
}

Result<const PolicyEntry*> find_policy(const std::string& name) {
  for (const PolicyEntry* entry : policies()) {
    if (entry->name == name) return entry;
  }
  return Status(Code::not_found, "no policy is called '", name, "'; known are ",
                listed(policies(), &PolicyEntry::name));
}

Result<OptionValues> check_options(const PolicyEntry& entry,
                                   const std::map<std::string, std::string>& given) {
  OptionValues options;
  for (const PolicyOption& option : entry.options) {
    options.values[option.name] = option.default_value;
  }
  for (const auto& [name, value] : given) {
    const auto option = std::ranges::find(entry.options, name, &PolicyOption::name);
    if (option == entry.options.end()) {
      return Status(Code::invalid_argument, "policy ", entry.name, " has no option ", name,
                    (entry.options.empty() ? "; it has none" : "; known are "),
                    listed(entry.options, &PolicyOption::name));
    }
    PERDURE_TRY(check_value(entry, *option, value));
    options.values[name] = value;
  }
  return options;
}

}  // namespace perdure::sim
