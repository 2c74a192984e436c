// SPDX-License-Identifier: BSD-3-Clause
//
// The state of capped clocks, left behind by somebody who means harm to whoever restores: root, in
// a job's prologue.
// ctest: NAME energy_hostile_test LABELS hostile
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "energy/frequency.hpp"
#include "energy/state_directory.hpp"
#include "energy/testing/fake_tree.hpp"
#include "energy/testing/hostile.hpp"
#include "test_seed.hpp"

namespace perdure::energy {
namespace {

namespace fs = std::filesystem;

const std::string policies = "sys/devices/system/cpu/cpufreq/";
const std::string secret = "root:$6$kept-from-everybody";
const std::string boot = "11111111-2222-3333-4444-555555555555";  // of the fake machine

class HostileJournal : public fake::HostileTest {
 protected:
  HostileJournal() : sysfs_(root_), control_(sysfs_, at("state")) {
    EXPECT_TRUE(fake::make_machine(sysfs_.tree(), "intel_pstate"));
    sysfs_.tree().set("secret", secret);
    before_ = limits();
  }
  std::vector<std::uint64_t> limits() {
    std::vector<std::uint64_t> found;
    for (const char* policy : {"policy0", "policy1"}) {
      for (const char* file : {"/scaling_min_freq", "/scaling_max_freq"}) {
        found.push_back(read_number(sysfs_, policies + policy + file).value_or(0));
      }
    }
    return found;
  }
  std::uint64_t offered(const char* file) {
    return read_number(sysfs_, policies + "policy0/" + file).value_or(0);
  }
  // A state directory of this user, as the command makes it, with this in it.
  void plant(const std::string& text) {
    fs::create_directories(at("state"));
    fs::permissions(at("state"), fs::perms::owner_all);
    std::ofstream(at("state/frequency.json"), std::ios::binary) << text;
  }
  // All that is reported of it.
  std::string restore() {
    const FrequencyReport report = control_.restore_stale();
    std::string reported = report.reason + "\n" + report.boost + "\n" + report.not_applied();
    for (const PolicyReport& policy : report.policies) reported += "\n" + policy.policy;
    return reported;
  }
  static bool is_printable(const std::string& reported) {
    return std::all_of(reported.begin(), reported.end(), [](unsigned char letter) {
      return letter == '\n' || (letter >= 0x20 && letter < 0x7f);
    });
  }
  static std::string limit(std::uint64_t original, std::uint64_t ours) {
    return R"({"original_kHz":)" + std::to_string(original) + R"(,"ours_kHz":[)" +
           std::to_string(ours) + "]}";
  }
  std::string journal(const std::string& name, const std::string& max, const std::string& min,
                      const std::string& owners = "",
                      const std::string& head = R"("boost_knob":"none","boost":0)") const {
    return R"({"schema":2,"kind":"perdure-frequency-journal","boot_id":")" + boot + "\"," + head +
           R"(,"policies":[{"name":")" + name + R"(","max":)" + max + R"(,"min":)" + min +
           R"(,"owners":[)" + owners + "]}]}";
  }

  fake::FakeSysfs sysfs_;
  FrequencyControl control_;
  std::vector<std::uint64_t> before_;
};

TEST_F(HostileJournal, makes_nobody_read_a_file_that_it_names) {
  const std::string max = limit(1, before_[1]);
  const std::string min = limit(1, before_[0]);
  for (const char* head :
       {R"("boost_path":"secret","boost":"x")", R"("boost_knob":"secret","boost":0)",
        R"("boost_knob":"../../secret","boost":0)",
        R"("boost_knob":"none","boost":0,"boost_path":"secret")"}) {
    plant(journal("policy7", max, min, "", head));
    EXPECT_EQ(restore().find("root:"), std::string::npos) << head;
    std::string old = journal("policy7", max, min, "", head);
    old.replace(old.find("\"schema\":2"), 10, "\"schema\":1");
    plant(old);
    EXPECT_EQ(restore().find("root:"), std::string::npos) << head;
  }
}

TEST_F(HostileJournal, is_never_repeated_on_a_screen) {
  for (const std::string& text :
       {secret, "{\"" + secret, "\"" + secret + "\x1b]0;owned\x07", std::string("[\"\x1b[2J\""),
        journal("policy0\\u001b[31m", limit(1, 1), limit(1, 1)),
        journal("policy[red]", limit(1, 1), limit(1, 1)),
        std::string("{\"kind\":\"\x1b[2J"
                    "root:\",\"boot_id\":\"root:\"}")}) {
    plant(text);
    const std::string reported = restore();
    EXPECT_NE(reported.find("is no journal"), std::string::npos) << reported;
    EXPECT_EQ(reported.find("root:"), std::string::npos) << reported;
    EXPECT_TRUE(is_printable(reported)) << reported;
  }
  EXPECT_EQ(limits(), before_);
}

TEST_F(HostileJournal, that_is_no_regular_file_is_refused_at_once_and_so_is_such_a_lock) {
  for (const char* name : {"frequency.json", "lock"}) {
    const std::string path = at("state/") + name;
    const std::vector<std::function<void()>> plants = {
        [&] { ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0); },
        [&] { ASSERT_EQ(::mkdir(path.c_str(), 0777), 0); },
        [&] { fake::make_socket(path); },
        [&] { fs::create_symlink(at("secret"), path); },
        [&] { fs::create_symlink("/dev/zero", path); },
        [&] { fs::create_hard_link(at("secret"), path); }};
    for (const auto& put : plants) {
      fs::create_directories(at("state"));
      put();
      const std::string reported = restore();
      EXPECT_NE(reported.find(path), std::string::npos) << reported;
      EXPECT_EQ(reported.find("root:"), std::string::npos) << reported;
      EXPECT_FALSE(control_.cap(this_process(), 1'000'000).applied());
      fs::remove_all(at("state"));
    }
  }
  EXPECT_EQ(sysfs_.tree().get("secret"), secret);
  EXPECT_EQ(limits(), before_);
}

TEST_F(HostileJournal, is_never_written_through_a_link_that_waits_for_its_next_name) {
  fs::create_directories(at("state"));
  fs::create_symlink(at("secret"), at("state/frequency.json.new"));
  const Owner owner = this_process();
  EXPECT_TRUE(control_.cap(owner, 1'000'000).applied());
  control_.release(owner);
  EXPECT_EQ(sysfs_.tree().get("secret"), secret);
}

TEST_F(HostileJournal, makes_root_set_no_limit_that_the_machine_does_not_offer) {
  const std::uint64_t least = offered("cpuinfo_min_freq");
  const std::uint64_t most = offered("cpuinfo_max_freq");
  for (const std::uint64_t wanted : {std::uint64_t{0}, std::uint64_t{1}, most * 2, 100'000'000UL}) {
    plant(journal("policy0", limit(wanted, before_[1]), limit(wanted, before_[0])));
    restore();
    for (const std::uint64_t khz : limits()) {
      EXPECT_GE(khz, least);
      EXPECT_LE(khz, most);
    }
    EXPECT_FALSE(fs::exists(at("state")));
    for (const char* file : {"/scaling_max_freq", "/scaling_min_freq"}) {
      const bool is_min = std::string(file).find("min") != std::string::npos;
      sysfs_.tree().set(policies + "policy0" + file, std::to_string(before_[is_min ? 0 : 1]));
    }
  }
}

TEST_F(HostileJournal, names_policies_only) {
  for (const char* name : {"policy0/../../x", "policy", "policy0x", "policy-1", "boost", "",
                           "policy00000000000000000", "policy\\u0000", "policy0/"}) {
    plant(journal(name, limit(1'000'000, before_[1]), limit(1'000'000, before_[0])));
    EXPECT_NE(restore().find("is no journal"), std::string::npos) << name;
    EXPECT_TRUE(fs::exists(at("state/frequency.json")));
  }
  EXPECT_EQ(limits(), before_);
}

TEST_F(HostileJournal, with_numbers_that_are_none_is_refused_whole) {
  const auto owner = [](const std::string& pid, const std::string& cap) {
    return R"({"pid":)" + pid + R"(,"start_ticks":1,"pid_namespace":1,"serial":1,"lasting":true,)" +
           R"("cap_kHz":)" + cap + "}";
  };
  const std::string good = limit(1'000'000, before_[1]);
  std::vector<std::string> texts;
  for (const char* wrong :
       {"-1", "1e300", "1.5", "\"1\"", "null", "[]", "18446744073709551616", "100000001", "true"}) {
    texts.push_back(journal("policy0", good, good, owner(wrong, "1000000")));
    texts.push_back(journal("policy0", good, good, owner("1", wrong)));
    texts.push_back(journal(
        "policy0", R"({"original_kHz":)" + std::string(wrong) + R"(,"ours_kHz":[1]})", good));
    texts.push_back(
        journal("policy0", good, good, "", R"("boost_knob":"none","boost":)" + std::string(wrong)));
  }
  texts.push_back(journal("policy0", R"({"original_kHz":1,"ours_kHz":[]})", good));
  texts.push_back(journal("policy0", R"({"original_kHz":1,"ours_kHz":[1,2,3]})", good));
  for (const std::string& text : texts) {
    plant(text);
    EXPECT_NE(restore().find("is no journal"), std::string::npos) << text;
  }
  EXPECT_EQ(limits(), before_);
}

TEST_F(HostileJournal, that_is_huge_or_deep_is_refused) {
  plant(std::string(std::size_t{5} << 20U, ' '));
  EXPECT_NE(restore().find("larger than"), std::string::npos);
  plant(std::string(std::size_t{4} << 20U, '['));
  EXPECT_NE(restore().find("is no journal"), std::string::npos);
  fs::resize_file(at("state/frequency.json"), std::uintmax_t{1} << 40U);  // a hole
  EXPECT_NE(restore().find("larger than"), std::string::npos);
}

TEST_F(HostileJournal, whatever_its_bytes_are_only_sets_limits_that_the_machine_offers) {
  std::mt19937_64 random(test_seed());
  const std::string good = journal("policy0", limit(1'000'000, before_[1]), limit(900'000, 1));
  const std::uint64_t least = offered("cpuinfo_min_freq");
  const std::uint64_t most = offered("cpuinfo_max_freq");
  const std::string letters = "0123456789{}[]\",:-.eE\\u \x1b";
  for (int trial = 0; trial < 1000; ++trial) {
    std::string text = good;
    for (std::uint64_t change = 1 + random() % 3; change > 0; --change) {
      const std::size_t place = random() % text.size();
      if (random() % 4 == 0) text.erase(place, 1 + random() % 8);
      if (place < text.size()) text[place] = letters[random() % letters.size()];
    }
    plant(text);
    const std::string reported = restore();
    ASSERT_TRUE(is_printable(reported)) << text;
    for (const std::uint64_t khz : limits()) {
      ASSERT_GE(khz, least) << text;
      ASSERT_LE(khz, most) << text;
    }
    fs::remove_all(at("state"));
  }
}

TEST_F(HostileJournal, of_another_user_is_refused) {
  if (!fake::may_be_another()) GTEST_SKIP() << "needs root, to act as a second user";
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  ASSERT_TRUE(fake::as_another(fake::stranger, [&] {
    return ::mkdir(at("state").c_str(), 0777) == 0 && ::chmod(at("state").c_str(), 0777) == 0;
  }));
  EXPECT_NE(restore().find("belongs to user 65533"), std::string::npos);
  EXPECT_FALSE(control_.cap(this_process(), 1'000'000).applied());
  EXPECT_EQ(limits(), before_);
}

// As docs/energy.md tells administrators to set a node up.
class GroupOfUsers : public HostileJournal {
 protected:
  void SetUp() override {
    if (!fake::may_be_another()) GTEST_SKIP() << "needs root, to act as members of a group";
    ASSERT_EQ(::mkdir(at("state").c_str(), 0700), 0);
    ASSERT_EQ(::chown(at("state").c_str(), 0, fake::members), 0);
    ASSERT_EQ(::chmod(at("state").c_str(), 02770), 0);
    for (const char* policy : {"policy0", "policy1"}) {
      for (const char* file : {"/scaling_min_freq", "/scaling_max_freq"}) {
        const std::string path = at(policies + policy + file);
        ASSERT_EQ(::chown(path.c_str(), 0, fake::members), 0);
        ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
      }
    }
  }
};

TEST_F(GroupOfUsers, share_one_journal_whatever_their_umask_is) {
  const mode_t umask_before = ::umask(077);
  const Owner owner = this_process();
  EXPECT_TRUE(control_.cap(owner, 1'400'000).applied());
  EXPECT_TRUE(fake::as_another(fake::members, [&] {
    return control_.cap(this_process(), 1'000'000).applied();  // and it ends
  }));
  EXPECT_EQ(limits()[1], 1'000'000U);
  EXPECT_TRUE(
      fake::as_another(fake::members, [&] { return control_.restore_stale().reason.empty(); }));
  EXPECT_EQ(limits()[1], 1'400'000U);
  control_.release(owner);
  EXPECT_EQ(limits(), before_);
  ::umask(umask_before);
}

TEST_F(GroupOfUsers, cannot_make_root_wait_nor_read_nor_write_what_is_not_theirs) {
  ASSERT_EQ(::chmod(at("secret").c_str(), 0600), 0);
  const std::string forged = journal("policy0", limit(1, before_[1]), limit(1, before_[0]), "",
                                     R"("boost_path":"secret","boost":"")");
  const std::string path = at("state/frequency.json");
  const std::vector<std::function<bool()>> attacks = {
      [&] { return ::mkfifo(path.c_str(), 0666) == 0; },
      [&] { return ::symlink(at("secret").c_str(), path.c_str()) == 0; },
      [&] { return ::symlink(at("secret").c_str(), (path + ".new").c_str()) == 0; },
      [&] { return ::symlink(at("secret").c_str(), at("state/lock").c_str()) == 0; },
      [&] { return (std::ofstream(path) << forged).good(); }};
  for (const auto& attack : attacks) {
    ASSERT_TRUE(fake::as_another(fake::members, attack));
    EXPECT_EQ(restore().find("root:"), std::string::npos);
    EXPECT_EQ(sysfs_.tree().get("secret"), secret);
    for (const auto& entry : fs::directory_iterator(at("state"))) fs::remove(entry.path());
  }
}

TEST_F(GroupOfUsers, who_keep_the_lock_delay_root_until_its_timeout_only) {
  std::array<int, 2> answer{};
  ASSERT_EQ(::pipe(answer.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::setresgid(fake::members, fake::members, fake::members);
    (void)::setresuid(fake::stranger, fake::stranger, fake::stranger);
    const auto lock = StateLock::take(at("state"), 1000);
    (void)!::write(answer[1], lock.ok() ? "y" : "n", 1);
    ::pause();
  }
  char taken = 0;
  ASSERT_EQ(::read(answer[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  FrequencyControl hasty(sysfs_, at("state"), 50);
  EXPECT_NE(hasty.restore_stale().reason.find("held by another process"), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// A process with a PID namespace of its own, as a container's, that holds a cap.
class Container {
 public:
  template <typename Body>
  explicit Container(const Body& body) {
    std::array<int, 2> held{};
    if (::pipe(ready_.data()) != 0 || ::pipe(held.data()) != 0) return;
    outer_ = ::fork();
    if (outer_ != 0) {
      for (const int fd : {ready_[1], held[0], held[1]}) ::close(fd);
      return;
    }
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
    const pid_t inner = ::fork();
    if (inner == 0) {
      body();
      (void)!::write(held[1], "h", 1);
      ::pause();
    }
    ::close(held[1]);
    char letter = 0;
    if (::read(held[0], &letter, 1) != 1) ::_exit(1);
    (void)!::write(ready_[1], &inner, sizeof inner);
    ::waitpid(inner, nullptr, 0);
    ::_exit(0);
  }
  // Until the cap is held.
  bool is_up() { return ::read(ready_[0], &inner_, sizeof inner_) == sizeof inner_; }
  void end() {
    ::kill(inner_, SIGKILL);
    ::waitpid(outer_, nullptr, 0);
  }

 private:
  std::array<int, 2> ready_{};
  pid_t outer_ = -1;
  pid_t inner_ = -1;
};

// Sandboxes exist whose process 1 nobody may look at. This process stands in for it, in a mount
// namespace of its own.
bool stand_in_for_first_process() {
  const std::string self = "/proc/" + std::to_string(::getpid());
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(self.c_str(), "/proc/1", nullptr, MS_BIND, nullptr) == 0;
}

bool sees_all_processes() {
  std::error_code error;
  const auto is_first = [&](const char* link) {
    return fs::read_symlink(link, error) == "pid:[4026531836]";
  };
  if (!fake::may_be_another() || !is_first("/proc/self/ns/pid")) return false;
  return is_first("/proc/1/ns/pid") || stand_in_for_first_process();
}

TEST_F(HostileJournal, of_a_container_that_ended_is_given_back_and_not_before) {
  if (!sees_all_processes()) GTEST_SKIP() << "needs root in the first PID namespace of the node";
  Container container([&] { control_.cap(this_process(), 1'000'000); });
  ASSERT_TRUE(container.is_up());
  restore();
  EXPECT_EQ(limits()[1], 1'000'000U);
  container.end();
  ASSERT_TRUE(fake::as_another(fake::stranger, [&] {  // who may not look, does not guess
    return Processes().is_alive({1, 1, 4026539999U, 1, false});
  }));
  restore();
  EXPECT_EQ(limits(), before_);
  EXPECT_FALSE(fs::exists(at("state")));
}

// A folder that looks like /proc.
class FakeProc : public fake::HostileTest {
 protected:
  void put(const std::string& process, const std::string& target) const {
    fs::create_directories(at(process + "/ns"));
    fs::remove(at(process + "/ns/pid"));
    fs::create_symlink(target, at(process + "/ns/pid"));
  }
  bool is_alive(std::uint64_t pid_namespace) const {
    return Processes(root_).is_alive({4711, 5, pid_namespace, 1, false});
  }
};

TEST_F(FakeProc, a_namespace_is_dead_only_if_every_process_is_seen_and_none_is_in_it) {
  put("self", "pid:[4026531836]");
  put("1", "pid:[4026531836]");
  put("70", "pid:[4026532000]");
  EXPECT_TRUE(is_alive(4026532000U));
  EXPECT_FALSE(is_alive(4026532001U));
  fs::create_directories(at("71"));  // it ended while it was looked at
  EXPECT_FALSE(is_alive(4026532001U));
  fs::create_directories(at("72/ns"));
  std::ofstream(at("72/ns/pid")) << "can't be read as a link";
  EXPECT_TRUE(is_alive(4026532001U));
  put("72", "pid:[4026532000");
  EXPECT_TRUE(is_alive(4026532001U));
  put("72", "pid:[4026532000]");
  EXPECT_FALSE(is_alive(4026532001U));
  fs::remove_all(at("1"));  // hidden, by a mount of /proc with hidepid
  EXPECT_TRUE(is_alive(4026532001U));
  put("1", "pid:[4026532000]");
  EXPECT_TRUE(is_alive(4026532001U));
  put("1", "pid:[4026531836]");
  put("self", "pid:[4026532000]");  // in a container, which sees its own only
  EXPECT_TRUE(is_alive(4026532001U));
}

}  // namespace
}  // namespace perdure::energy
