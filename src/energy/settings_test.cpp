// SPDX-License-Identifier: BSD-3-Clause
//
// Profiles and plans: what is chosen, what is refused; and which device a path lies on.
#include "energy/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "energy/session.hpp"
#include "energy/storage.hpp"
#include "energy/testing/fake_tree.hpp"

namespace perdure::energy {
namespace {

std::string profile_with(const std::string& points, const std::string& device = "\"sda\"") {
  return R"({"schema":1,"kind":"perdure-energy-profile","fingerprint":{"device":{"name":)" +
         device + R"(}},"points":[)" + points + "]}";
}

std::string point(const std::string& op, const std::string& freq, int writers, double low,
                  double mean, double high, const std::string& energy = "null") {
  return R"({"op":")" + op + R"(","freq_kHz":)" + freq + R"(,"writers":)" +
         std::to_string(writers) + R"(,"bandwidth_MBps":{"mean":)" + std::to_string(mean) +
         R"(,"low":)" + std::to_string(low) + R"(,"high":)" + std::to_string(high) +
         R"(},"energy_J_per_MB":)" + energy + "}";
}

Settings best(const std::string& points, IoKind kind = IoKind::write) {
  auto profile = parse_profile(profile_with(points), "it");
  EXPECT_TRUE(profile.ok()) << profile.status().message();
  const auto settings = best_settings(profile.value(), kind);
  EXPECT_TRUE(settings.has_value());
  return settings.value_or(Settings{});
}

TEST(Profile, gives_the_fastest_point_where_no_energy_is_known) {
  const Settings settings = best(point("write", "null", 1, 90, 100, 110) + "," +
                                 point("write", "null", 2, 190, 200, 210) + "," +
                                 point("write", "null", 8, 120, 130, 140));
  EXPECT_EQ(settings.writers, 2U);
  EXPECT_FALSE(settings.freq_khz.has_value());
}

TEST(Profile, gives_fewest_writers_where_the_intervals_overlap) {
  EXPECT_EQ(best(point("write", "null", 1, 180, 195, 205) + "," +
                 point("write", "null", 4, 190, 200, 210))
                .writers,
            1U);
}

TEST(Profile, gives_fewest_writers_where_noise_hides_the_best) {
  EXPECT_EQ(best(point("write", "null", 1, 1685, 2445, 3205) + "," +
                 point("write", "null", 2, 2096, 2446, 2796) + "," +
                 point("write", "null", 8, 1898, 2098, 2298))
                .writers,
            1U);
}

TEST(Profile, gives_the_least_energy_where_all_points_have_it) {
  const Settings settings = best(
      point("write", "2100000", 1, 490, 500, 510, R"({"mean":0.9,"low":0.85,"high":0.95})") + "," +
      point("write", "1400000", 2, 440, 450, 460, R"({"mean":0.6,"low":0.58,"high":0.62})"));
  EXPECT_EQ(settings.freq_khz, 1'400'000U);
  EXPECT_EQ(settings.writers, 2U);
}

TEST(Profile, keeps_read_and_write_apart) {
  const std::string points =
      point("write", "null", 2, 1, 2, 3) + "," + point("read", "null", 4, 1, 2, 3);
  EXPECT_EQ(best(points, IoKind::read).writers, 4U);
  EXPECT_EQ(best(points, IoKind::write).writers, 2U);
}

TEST(Profile, that_is_none_is_refused_with_a_sentence) {
  const std::pair<std::string, const char*> wrong[] = {
      {"", "is no perdure-energy-profile"},
      {"{", "is no perdure-energy-profile"},
      {"[]", "kind"},
      {R"({"schema":1,"kind":"perdure-energy-plan"})", "kind"},
      {profile_with(""), "no points"},
      {profile_with(point("write", "null", 0, 1, 2, 3)), "writers"},
      {profile_with(point("erase", "null", 1, 1, 2, 3)), "op"},
      {profile_with(point("write", "-5", 1, 1, 2, 3)), "freq_kHz"},
      {profile_with(point("write", "null", 1, 1, -2, 3)), "mean is negative"},
      {profile_with(point("write", "\"fast\"", 1, 1, 2, 3)), "number"},
      {profile_with(point("write", "null", 1, 4, 2, 3)), "interval"},
      {profile_with(point("write", "null", 1, 1, 2, 3, R"({"mean":1,"low":2})")), "interval"},
  };
  for (const auto& [text, part] : wrong) {
    const auto profile = parse_profile(text, "it.json");
    ASSERT_FALSE(profile.ok()) << text;
    EXPECT_NE(profile.status().message().find(part), std::string::npos)
        << profile.status().message();
  }
  std::string newer = profile_with(point("write", "null", 1, 1, 2, 3));
  newer.replace(newer.find("\"schema\":1"), 10, "\"schema\":2");
  EXPECT_EQ(parse_profile(newer, "it").status().code(), Code::newer_format);
  newer.replace(newer.find("\"schema\":2"), 10, "\"schema\":1e300");
  EXPECT_EQ(parse_profile(newer, "it").status().code(), Code::newer_format);
}

TEST(Plan, has_settings_for_each_level) {
  const auto plan = parse_plan(
      R"({"schema":1,"kind":"perdure-energy-plan","interval_s":3600.5,"levels":[
        {"name":"local","every":1,"path":null,"write":{"freq_kHz":1400000,"writers":2},
         "read":{"freq_kHz":null,"writers":4}},
        {"name":"global","every":10,"path":"/pfs/x","write":{"freq_kHz":null,"writers":1},
         "read":{"freq_kHz":null,"writers":1}}],"more":{}})",
      "it");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan.value().interval_s, 3600.5);
  EXPECT_EQ(plan.value().levels[0].write.freq_khz, 1'400'000U);
  EXPECT_EQ(plan.value().levels[1].every, 10U);
  EXPECT_EQ(plan.value().levels[1].path, "/pfs/x");
}

TEST(Plan, whose_upper_level_has_no_path_is_refused) {
  const auto plan = parse_plan(
      R"({"schema":1,"kind":"perdure-energy-plan","interval_s":1,"levels":[
        {"name":"local","every":1,"path":null},{"name":"global","every":2,"path":null}]})",
      "it");
  EXPECT_NE(plan.status().message().find("level global has no path"), std::string::npos);
}

TEST(Storage, of_a_partition_and_of_a_volume_is_the_disk) {
  const std::string root = testing::TempDir() + "/perdure-storage";
  fake::FakeSysfs sysfs(root);
  ASSERT_TRUE(fake::make_machine(sysfs.tree(), "acpi-cpufreq"));
  EXPECT_EQ(disks_of(sysfs, 8, 0), std::vector<std::string>{"sda"});
  EXPECT_EQ(disks_of(sysfs, 8, 1), std::vector<std::string>{"sda"});
  EXPECT_EQ(disks_of(sysfs, 253, 0), std::vector<std::string>{"sda"});
  EXPECT_TRUE(disks_of(sysfs, 253, 1).empty());
  std::filesystem::remove_all(root);
}

TEST(Storage, of_shared_memory_is_memory_and_of_what_is_to_come_that_of_its_folder) {
  const auto storage = storage_of(machine(), "/dev/shm/to/come/pool");
  ASSERT_TRUE(storage.ok());
  EXPECT_TRUE(storage.value().is_memory);
  EXPECT_EQ(storage.value().name, ":memory");
}

TEST(Session, caps_the_clock_while_it_is_held_and_counts) {
  const std::string root = testing::TempDir() + "/perdure-session";
  ::setenv("PERDURE_KEEPER", "off", 1);
  ::setenv("PERDURE_ENERGY_STATE", (root + "/state").c_str(), 1);
  fake::FakeSysfs sysfs(root);
  ASSERT_TRUE(fake::make_machine(sysfs.tree(), "intel_pstate"));
  const std::string limit = "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq";
  Storage storage;
  storage.name = "session-test";
  {
    EnergySession session(sysfs, storage, {"/x", std::nullopt, Settings{1'200'000, 1}, 1000});
    {
      const TokenScope scope(&session, IoKind::write);
      EXPECT_TRUE(holds_token());
      EXPECT_EQ(sysfs.tree().get(limit), "1200000");
    }
    EXPECT_FALSE(holds_token());
    EXPECT_EQ(sysfs.tree().get(limit), "3700000");
    {
      const TokenScope scope(&session, IoKind::read);
    }  // nothing was asked for
    EXPECT_EQ(session.facts().capped, 1U);
    EXPECT_EQ(session.facts().tokens.taken, 1U);
  }
  EXPECT_FALSE(std::filesystem::exists(root + "/state"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace perdure::energy
