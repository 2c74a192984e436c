// SPDX-License-Identifier: BSD-3-Clause
//
// The device table: what is compiled in is complete, and every mistake gets a clear message.
// ctest: NAME model_test
#include "model/device_table.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace perdure {
namespace {

std::string parse_error(const std::string& model) {
  const auto parsed = parse_device_table("{\"devices\": [" + model + "]}");
  EXPECT_FALSE(parsed.ok()) << model;
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), Code::invalid_argument);
  return parsed.status().message();
}

std::string spec_error(const std::string& spec) {
  const auto found = find_device(spec);
  EXPECT_FALSE(found.ok()) << spec;
  return found.ok() ? "" : found.status().message();
}

bool says(const std::string& message, const std::string& words) {
  return message.find(words) != std::string::npos;
}

TEST(DeviceTable, gives_every_row_a_name_a_description_a_level_and_a_source) {
  const auto table = device_table();
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_GE(table.value().size(), 14U);
  for (const MemoryModel& model : table.value()) {
    EXPECT_FALSE(model.name.empty());
    EXPECT_FALSE(model.description.empty()) << model.name;
    EXPECT_FALSE(model.assembly.empty()) << model.name;
    EXPECT_GE(model.source.size(), 10U) << model.name;
  }
}

TEST(DeviceTable, has_the_settings_of_the_one_sided_paper) {
  const MemoryModel normal = find_device("paper-nvm").take();
  EXPECT_EQ(normal.write_latency_ns, 150);
  EXPECT_EQ(normal.commit_latency_ns, 500);
  EXPECT_FALSE(normal.write_gb_per_s.has_value());
  EXPECT_EQ(find_device("paper-nvm-9.5").take().write_gb_per_s, 9.5);
  const MemoryModel worst = find_device("paper-nvm-worst").take();
  EXPECT_EQ(worst.read_latency_ns, 600);
  EXPECT_EQ(worst.commit_latency_ns, 2000);
  EXPECT_EQ(worst.write_gb_per_s, 9.5);
}

TEST(DeviceTable, has_dram_bandwidths_in_the_ratio_that_their_names_say) {
  const double eighth = find_device("dram-1/8").take().write_gb_per_s.value();
  const double thirtysecond = find_device("dram-1/32").take().write_gb_per_s.value();
  EXPECT_DOUBLE_EQ(eighth, 4 * thirtysecond);
  EXPECT_DOUBLE_EQ(eighth * 8, 59);
}

TEST(DeviceTable, keeps_the_energies_of_the_paging_paper_per_line) {
  const MemoryModel flash = find_device("paging-paper-flash").take();
  EXPECT_DOUBLE_EQ(flash.read_nj_per_line.value() * 64, 7000);
  EXPECT_DOUBLE_EQ(flash.write_nj_per_line.value() * 64, 12800);
  EXPECT_EQ(flash.granule_bytes, 4096U);
}

TEST(DeviceTable, has_the_machine_of_the_paging_paper_to_the_digit) {
  const DevicePreset preset = find_preset("hosogaya2008").take();
  const MemoryModel dram = find_device(preset.dram).take();
  const MemoryModel mram = find_device(preset.mram).take();
  const MemoryModel flash = find_device(preset.flash).take();
  EXPECT_EQ(dram.read_latency_ns, 22.5);
  EXPECT_EQ(dram.write_nj_per_line, 6.24);
  EXPECT_EQ(dram.standby_uw_per_mb, 867);
  EXPECT_EQ(mram.write_latency_ns, 15);
  EXPECT_EQ(mram.read_nj_per_line, 1.36);
  EXPECT_EQ(mram.write_nj_per_line, 2.6);
  EXPECT_EQ(mram.standby_uw_per_mb, 469);
  EXPECT_EQ(flash.read_latency_ns, 35000);
  EXPECT_EQ(flash.write_latency_ns, 64000);
  EXPECT_EQ(flash.access_bytes, 4096U);
  EXPECT_EQ(flash.endurance_writes, 1e5);
  EXPECT_FALSE(flash.derivation.empty());
}

TEST(DeviceTable, has_only_presets_whose_parts_are_there) {
  const auto presets = device_presets();
  ASSERT_TRUE(presets.ok()) << presets.status().message();
  for (const DevicePreset& preset : presets.value()) {
    EXPECT_TRUE(find_device(preset.dram).ok()) << preset.name;
    EXPECT_TRUE(find_device(preset.mram).ok()) << preset.name;
    EXPECT_TRUE(find_device(preset.flash).ok()) << preset.name;
  }
  EXPECT_TRUE(says(find_preset("hosogaya").status().message(), "hosogaya2008"));
}

TEST(DeviceTable, names_the_mistake_of_a_preset) {
  const auto error = [](const std::string& preset) {
    return parse_device_presets("{\"devices\": [], \"presets\": [" + preset + "]}")
        .status()
        .message();
  };
  EXPECT_TRUE(says(error("1"), "must be an object"));
  EXPECT_TRUE(says(error(R"({"name": "x"})"), "description is missing"));
  EXPECT_TRUE(says(error(R"({"name": "x", "description": "y", "dram": "a", "mram": "b",
                             "flash": 3})"),
                   "flash must be a string"));
  EXPECT_TRUE(says(error(R"({"name": "x", "description": "y", "dram": "a", "mram": "b",
                             "flash": "c", "more": "d"})"),
                   "only name"));
}

TEST(DeviceTable, takes_null_for_unknown) {
  const auto models = parse_device_table(
      R"({"devices": [{"name": "x", "assembly": "chip", "source": "s", "read_gb_per_s": null}]})");
  ASSERT_TRUE(models.ok()) << models.status().message();
  EXPECT_FALSE(models.value()[0].read_gb_per_s.has_value());
}

TEST(DeviceSpec, overrides_quantities_of_a_row) {
  const auto found = find_device("paper-nvm,commit_latency_ns=2000,write_gb_per_s=9.5");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found.value().commit_latency_ns, 2000);
  EXPECT_EQ(found.value().write_gb_per_s, 9.5);
  EXPECT_EQ(found.value().write_latency_ns, 150);
}

TEST(DeviceSpec, lists_the_known_names_when_the_name_is_unknown) {
  const std::string message = spec_error("papernvm");
  EXPECT_TRUE(says(message, "'papernvm'") && says(message, "paper-nvm-worst")) << message;
  EXPECT_EQ(find_device("").status().code(), Code::not_found);
}

TEST(DeviceSpec, lists_the_known_keys_when_a_key_is_unknown) {
  const std::string message = spec_error("dram,commit_latency=2000");
  EXPECT_TRUE(says(message, "'commit_latency'") && says(message, "commit_latency_ns")) << message;
  EXPECT_TRUE(says(spec_error("dram,granule_bytes=64"), "unknown key"));
  EXPECT_TRUE(says(spec_error("dram,"), "unknown key ''"));
}

TEST(DeviceSpec, refuses_values_that_are_not_sensible_numbers) {
  EXPECT_TRUE(says(spec_error("dram,read_latency_ns=fast"), "a number"));
  EXPECT_TRUE(says(spec_error("dram,read_latency_ns=1x"), "a number"));
  EXPECT_TRUE(says(spec_error("dram,read_latency_ns="), "a number"));
  EXPECT_TRUE(says(spec_error("dram,read_latency_ns"), "a number"));
  EXPECT_TRUE(says(spec_error("dram,read_latency_ns=-1"), "not negative"));
  EXPECT_TRUE(says(spec_error("dram,read_latency_ns=nan"), "finite"));
  EXPECT_TRUE(says(spec_error("dram,write_gb_per_s=0"), "more than 0"));
}

TEST(DeviceTable, names_the_row_and_the_key_of_a_mistake) {
  const std::string head = R"({"name": "x", "assembly": "chip", "source": "s")";
  EXPECT_TRUE(says(parse_error(head + R"(, "colour": 1})"), "(x): unknown key colour"));
  EXPECT_TRUE(says(parse_error(head + R"(, "read_latency_ns": "1"})"), "must be a number"));
  EXPECT_TRUE(says(parse_error(head + R"(, "read_latency_ns": -1})"), "not negative"));
  EXPECT_TRUE(says(parse_error(head + R"(, "write_gb_per_s": 0})"), "more than 0"));
  EXPECT_TRUE(says(parse_error(head + R"(, "description": 3})"), "must be a string"));
  EXPECT_TRUE(says(parse_error(head + R"(, "granule_bytes": 48})"), "power of two"));
  EXPECT_TRUE(says(parse_error(head + R"(, "granule_bytes": -64})"), "power of two"));
  EXPECT_TRUE(says(parse_error(head + R"(, "access_bytes": 48})"), "access_bytes must be"));
  EXPECT_TRUE(says(parse_error(head + "}, " + head + "}"), "twice"));
}

TEST(DeviceTable, names_what_a_row_lacks) {
  EXPECT_TRUE(says(parse_error(R"({"assembly": "chip", "source": "s"})"), "name is missing"));
  EXPECT_TRUE(says(parse_error(R"({"name": "x", "assembly": "chip"})"), "source is missing"));
  EXPECT_TRUE(says(parse_error(R"({"name": "x", "source": "s"})"), "assembly must be"));
  EXPECT_TRUE(says(parse_error(R"({"name": "", "assembly": "chip", "source": "s"})"), "is empty"));
  EXPECT_TRUE(says(parse_error(R"({"name": "a,b", "assembly": "chip", "source": "s"})"), "','"));
  EXPECT_TRUE(says(parse_error("7"), "must be an object"));
}

TEST(DeviceTable, refuses_documents_of_another_form) {
  for (const char* json :
       {"", "[]", "{}", "{\"devices\": 3}", "{\"devices\": [}", "{\"devices\": [], \"more\": 1}"}) {
    const auto parsed = parse_device_table(json);
    ASSERT_FALSE(parsed.ok()) << json;
    EXPECT_TRUE(says(parsed.status().message(), "device table: ")) << parsed.status().message();
  }
}

// The table is parsed once per process, so the environment is set in a process of its own.
TEST(DeviceTable, takes_more_rows_from_the_file_that_the_environment_names) {
  const std::string path = ::testing::TempDir() + "perdure_devices_test.json";
  std::ofstream(path) << R"({"devices": [
    {"name": "mine", "assembly": "module", "source": "test", "write_gb_per_s": 3},
    {"name": "dram", "assembly": "module", "source": "test", "write_gb_per_s": 4}]})";
  const auto in_other_process = [&] {
    ::setenv("PERDURE_DEVICES", path.c_str(), 1);
    const bool added = find_device("mine").ok() && find_device("paper-nvm").ok();
    std::_Exit(added && find_device("dram").take().write_gb_per_s == 4 ? 0 : 1);
  };
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(in_other_process(), ::testing::ExitedWithCode(0), "");
  std::remove(path.c_str());
}

TEST(DeviceTable, reports_a_file_that_can_not_be_read) {
  const auto in_other_process = [] {
    ::setenv("PERDURE_DEVICES", "/nonexistent/devices.json", 1);
    std::_Exit(device_table().status().code() == Code::not_found ? 0 : 1);
  };
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(in_other_process(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace perdure
