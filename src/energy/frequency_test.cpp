// SPDX-License-Identifier: BSD-3-Clause
//
// The clock of a fake machine: capped, given back, and left alone where it is another's.
#include "energy/frequency.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "energy/testing/fake_tree.hpp"
#include "temporary_directory.hpp"

namespace perdure::energy {
namespace {

const std::string policy0 = "sys/devices/system/cpu/cpufreq/policy0/";
const std::string policy1 = "sys/devices/system/cpu/cpufreq/policy1/";

class EachMachine : public testing::TestWithParam<const char*> {
 protected:
  EachMachine() : sysfs_(root_), control_(sysfs_, root_ + "/state") {
    EXPECT_TRUE(fake::make_machine(sysfs_.tree(), GetParam()));
    most_ = *read_number(sysfs_, policy0 + "cpuinfo_max_freq");
  }
  std::uint64_t max(const std::string& policy = policy0) {
    return read_number(sysfs_, policy + "scaling_max_freq").value_or(0);
  }
  std::uint64_t min() { return read_number(sysfs_, policy0 + "scaling_min_freq").value_or(0); }
  fake::FakeTree& tree() { return sysfs_.tree(); }
  bool journal_is_gone() const { return !std::filesystem::exists(root_ + "/state"); }

  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string& root_ = directory_.path();
  fake::FakeSysfs sysfs_;
  FrequencyControl control_;
  std::uint64_t most_ = 0;
};

std::string kind_text(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Kinds, EachMachine,
                         testing::Values("intel_pstate", "intel_cpufreq", "acpi-cpufreq",
                                         "amd-pstate-epp"),
                         kind_text);

TEST_P(EachMachine, is_capped_and_restored_and_nothing_stays) {
  const Owner owner = this_process();
  FrequencyReport report = control_.cap(owner, 1'400'000);
  EXPECT_TRUE(report.applied()) << report.not_applied();
  EXPECT_EQ(max(), 1'400'000U);
  EXPECT_EQ(max(policy1), 1'400'000U);
  control_.measure_effect(report);
  EXPECT_TRUE(report.applied());
  EXPECT_EQ(report.policies[0].effective_khz, 1'400'000U);
  report = control_.release(owner);
  EXPECT_TRUE(report.reason.empty()) << report.reason;
  EXPECT_EQ(max(), most_);
  EXPECT_EQ(max(policy1), most_);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, lowers_min_before_max_and_raises_it_after) {
  tree().set(policy0 + "scaling_min_freq", "1700000");
  const Owner owner = this_process();
  EXPECT_TRUE(control_.cap(owner, 1'000'000).applied());  // the tree refuses min > max
  EXPECT_EQ(max(), 1'000'000U);
  EXPECT_EQ(min(), 1'000'000U);
  EXPECT_TRUE(control_.release(owner).applied());
  EXPECT_EQ(max(), most_);
  EXPECT_EQ(min(), 1'700'000U);
}

TEST_P(EachMachine, has_the_least_of_two_caps_whoever_leaves_first) {
  for (const bool first_leaves_first : {true, false}) {
    for (const bool first_is_lower : {true, false}) {
      const Owner first = this_process();
      const Owner second = this_process();
      control_.cap(first, first_is_lower ? 1'000'000 : 1'400'000);
      control_.cap(second, first_is_lower ? 1'400'000 : 1'000'000);
      EXPECT_EQ(max(), 1'000'000U);
      control_.release(first_leaves_first ? first : second);
      EXPECT_EQ(max(), first_leaves_first == first_is_lower ? 1'400'000U : 1'000'000U);
      control_.release(first_leaves_first ? second : first);
      EXPECT_EQ(max(), most_);
      EXPECT_TRUE(journal_is_gone());
    }
  }
}

TEST_P(EachMachine, never_runs_faster_by_a_cap) {
  tree().set(policy0 + "scaling_max_freq", "1200000");
  const Owner owner = this_process();
  control_.cap(owner, 1'800'000);
  EXPECT_EQ(max(), 1'200'000U);
  control_.release(owner);
  EXPECT_EQ(max(), 1'200'000U);
}

TEST_P(EachMachine, keeps_what_somebody_else_has_set_since) {
  const Owner owner = this_process();
  control_.cap(owner, 1'400'000);
  tree().set(policy0 + "scaling_max_freq", "1300000");
  const FrequencyReport report = control_.release(owner);
  EXPECT_EQ(max(), 1'300'000U);
  EXPECT_EQ(max(policy1), most_);
  EXPECT_NE(report.not_applied().find("somebody else"), std::string::npos);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, is_restored_when_its_owner_has_died) {
  const pid_t child = ::fork();
  if (child == 0) {
    control_.cap(this_process(), 1'000'000);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(max(), 1'000'000U);
  control_.restore_stale();
  EXPECT_EQ(max(), most_);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, forgets_the_journal_of_another_boot) {
  control_.cap(this_process(), 1'000'000);
  tree().set("proc/sys/kernel/random/boot_id", "another");
  tree().set(policy0 + "scaling_max_freq", "1000000");  // the administrator's, after the boot
  control_.restore_stale();
  EXPECT_EQ(max(), 1'000'000U);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, goes_on_without_permission_and_says_so) {
  tree().behave("*/scaling_max_freq eacces");
  const FrequencyReport report = control_.cap(this_process(), 1'000'000);
  EXPECT_FALSE(report.applied());
  EXPECT_NE(report.not_applied().find("Permission denied"), std::string::npos);
  EXPECT_EQ(max(), most_);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, notices_a_write_that_is_accepted_and_ignored) {
  tree().behave("*policy0/scaling_max_freq ignore");
  const Owner owner = this_process();
  const FrequencyReport report = control_.cap(owner, 1'000'000);
  EXPECT_NE(report.policies[0].reason.find("accepted"), std::string::npos);
  EXPECT_EQ(report.policies[0].applied_khz, most_);
  EXPECT_EQ(report.policies[1].applied_khz, 1'000'000U);
  control_.release(owner);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, notices_a_clock_that_does_not_follow) {
  tree().behave("*policy0/scaling_max_freq uncapped");
  FrequencyReport report = control_.cap(this_process(), 1'000'000);
  EXPECT_TRUE(report.applied());
  control_.measure_effect(report);
  EXPECT_NE(report.policies[0].reason.find("but it runs at"), std::string::npos);
  EXPECT_TRUE(report.policies[1].reason.empty());
  control_.restore_stale();
}

TEST_P(EachMachine, knows_its_value_where_the_driver_rounds) {
  tree().behave("*/scaling_max_freq round 100000");
  const Owner owner = this_process();
  const FrequencyReport report = control_.cap(owner, 1'450'000);
  EXPECT_EQ(report.policies[0].applied_khz, 1'400'000U);
  control_.release(owner);
  EXPECT_EQ(max(), most_);
}

TEST_P(EachMachine, is_patient_with_a_busy_policy) {
  tree().behave("*policy0/scaling_max_freq ebusy 2");
  EXPECT_TRUE(control_.cap(this_process(), 1'000'000).applied());
}

TEST_P(EachMachine, outlives_a_policy_that_vanishes_and_restores_it_when_it_is_back) {
  const Owner owner = this_process();
  control_.cap(owner, 1'000'000);
  const std::string folder = root_ + "/" + policy1;
  const std::string aside = root_ + "/aside";
  std::filesystem::rename(folder.substr(0, folder.size() - 1), aside);
  const FrequencyReport report = control_.release(owner);
  EXPECT_EQ(max(), most_);
  EXPECT_NE(report.not_applied().find("vanished"), std::string::npos);
  EXPECT_FALSE(journal_is_gone());
  std::filesystem::rename(aside, folder.substr(0, folder.size() - 1));
  control_.restore_stale();
  EXPECT_EQ(max(policy1), most_);
  EXPECT_TRUE(journal_is_gone());
}

TEST_P(EachMachine, says_that_boost_was_changed_meanwhile) {
  const Owner owner = this_process();
  control_.cap(owner, 1'000'000);
  for (const char* path :
       {"sys/devices/system/cpu/cpufreq/boost", "sys/devices/system/cpu/intel_pstate/no_turbo"}) {
    if (const auto now = read_number(sysfs_, path)) tree().set(path, *now == 0 ? "1" : "0");
  }
  EXPECT_NE(control_.release(owner).boost.find("somebody else"), std::string::npos);
}

TEST_P(EachMachine, refuses_a_journal_that_is_none_and_leaves_it) {
  std::filesystem::create_directories(root_ + "/state");
  tree().set("state/frequency.json", "{\"kind\": 3");
  const FrequencyReport report = control_.cap(this_process(), 1'000'000);
  EXPECT_NE(report.reason.find("is no journal"), std::string::npos);
  EXPECT_EQ(max(), most_);
  EXPECT_FALSE(journal_is_gone());
}

TEST(FakeTree, refuses_what_a_kernel_refuses) {
  const std::string root = testing::TempDir() + "/perdure-fake";
  fake::FakeSysfs sysfs(root);
  ASSERT_TRUE(fake::make_machine(sysfs.tree(), "acpi-cpufreq"));
  EXPECT_EQ(sysfs.write(policy0 + "scaling_governor", "turbo"), EINVAL);
  EXPECT_EQ(sysfs.write(policy0 + "scaling_governor", "powersave"), 0);
  EXPECT_EQ(sysfs.write(policy0 + "scaling_setspeed", "1000000"), EINVAL);
  EXPECT_EQ(sysfs.write(policy0 + "scaling_min_freq", "1700000"), 0);
  EXPECT_EQ(sysfs.write(policy0 + "scaling_max_freq", "1000000"), EINVAL);
  EXPECT_EQ(sysfs.write(policy0 + "scaling_max_freq", "fast"), EINVAL);
  EXPECT_EQ(sysfs.write(policy0 + "scaling_cur_freq", "1000000"), EACCES);
  std::filesystem::remove_all(root);
}

TEST(NoMachine, without_policies_says_so) {
  const std::string root = testing::TempDir() + "/perdure-empty";
  std::filesystem::create_directories(root);
  fake::FakeSysfs sysfs(root);
  FrequencyControl control(sysfs, root + "/state");
  EXPECT_NE(control.cap(this_process(), 1'000'000).not_applied().find("no frequency policies"),
            std::string::npos);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace perdure::energy
