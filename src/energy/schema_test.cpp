// SPDX-License-Identifier: BSD-3-Clause
//
// Plans and profiles of tests/schemas: the good ones are read, and what a case takes away or
// mistypes is refused. tests/python/test_schemas.py reads the same cases, and the schemas.
// ctest: NAME energy_settings_test
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "energy/settings.hpp"
#include "source_tree.hpp"

namespace perdure::energy {
namespace {

using Json = nlohmann::json;

Json document(const std::string& name) {
  std::ifstream file(source_file("tests/schemas/" + name + ".json"));
  EXPECT_TRUE(file.is_open()) << name;
  return Json::parse(file);
}

Status read(const std::string& kind, const Json& json) {
  return kind == "plan" ? parse_plan(json.dump(), "it").status()
                        : parse_profile(json.dump(), "it").status();
}

TEST(Schema, good_documents_are_read_as_they_are) {
  const auto plan = parse_plan(document("plan").dump(), "it");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan.value().levels.at(1).every, 5U);
  EXPECT_EQ(plan.value().levels.at(0).write.freq_khz, 1'400'000U);
  EXPECT_EQ(plan.value().works_s.size(), 2U);
  const auto profile = parse_profile(document("profile").dump(), "it");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile.value().points.at(1).bandwidth.mean, 900);
}

TEST(Schema, what_the_library_needs_and_is_missing_or_mistyped_is_refused) {
  int refused = 0;
  for (const Json& each : document("cases")) {
    if (each["by"] == "commands") continue;
    const std::string kind = each["document"];
    const Json::json_pointer at(each["at"].get<std::string>());
    Json changed = document(kind);
    if (each.contains("is")) {
      changed[at] = each["is"];
    } else {
      changed[at.parent_pointer()].erase(at.back());
    }
    EXPECT_FALSE(read(kind, changed).ok()) << each.dump();
    ++refused;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace perdure::energy
