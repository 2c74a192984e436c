// SPDX-License-Identifier: BSD-3-Clause
//
// files: what a name leads to is not trusted. Attacks are made by a second user where the test
// runs as root; otherwise those tests are skipped.
// ctest: NAME base_test
#include "base/files.hpp"
#include "temporary_directory.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

namespace perdure {
namespace {

namespace fs = std::filesystem;

constexpr uid_t stranger = 65533;

class Files : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("PERDURE_ANY_OWNER"); }
  void TearDown() override { ::unsetenv("PERDURE_ANY_OWNER"); }

  std::string at(const std::string& name) const { return (root_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(at(name), std::ios::binary).rdbuf();
    return text.str();
  }
  mode_t mode(const std::string& name) const {
    struct stat found{};
    EXPECT_EQ(::stat(at(name).c_str(), &found), 0);
    return found.st_mode & 07777U;
  }
  Directory own() const {
    auto directory = Directory::open(root_.string());
    EXPECT_TRUE(directory.ok()) << directory.status().message();
    return directory.take();
  }
  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const fs::path root_ = directory_.path();
};

// Does it as another user, in a process of its own.
void as_stranger(const std::function<bool()>& act, gid_t group = stranger) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool changed = ::setgroups(0, nullptr) == 0 && ::setresgid(group, group, group) == 0 &&
                         ::setresuid(stranger, stranger, stranger) == 0;
    ::umask(0);
    ::_exit(changed && act() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

// What an attacker may put under a name instead of a file.
void make_socket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
}

TEST_F(Files, a_made_file_is_for_this_user_only_whatever_the_umask_says) {
  for (const mode_t taken : {0U, 0277U, 0777U}) {
    const std::string under = "umask" + std::to_string(taken);
    const mode_t before = ::umask(taken);
    const auto made = Directory::make(at(under));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made.value().create_file("f").ok());
    EXPECT_TRUE(made.value().open_or_create("g").ok());
    EXPECT_TRUE(made.value().replace_file("h", "x").ok());
    EXPECT_TRUE(open_output(made.value().path_of("i")).ok());
    EXPECT_TRUE(Directory::make_below(made.value().path_of("a"), "b/c").ok());
    ::umask(before);
    for (const char* name : {"/f", "/g", "/h", "/i"}) EXPECT_EQ(mode(under + name), 0600U) << name;
    for (const char* name : {"", "/a", "/a/b", "/a/b/c"}) {
      EXPECT_EQ(mode(under + name), 0700U) << name;
    }
  }
}

TEST_F(Files, of_a_path_the_last_directory_alone_is_made) {
  const Status lacking = Directory::make(at("slip/of/keys")).status();
  EXPECT_EQ(lacking.code(), Code::io_error);
  EXPECT_NE(lacking.message().find("mkdir -p " + at("slip/of")), std::string::npos)
      << lacking.message();
  EXPECT_EQ(Directory::make_below(at("slip/of"), "keys").status().code(), Code::io_error);
  EXPECT_FALSE(fs::exists(at("slip")));
  EXPECT_TRUE(Directory::make(at("last")).ok());
  EXPECT_TRUE(Directory::make(at("last") + "/").ok());
}

// Who may write there could exchange what is below it.
TEST_F(Files, a_directory_below_one_where_every_user_may_write_is_refused_unless_that_is_sticky) {
  ASSERT_TRUE(Directory::make_below(at("all"), "own/pool").ok());
  for (const char* above : {"all", "all/own"}) {
    ASSERT_EQ(::chmod(at(above).c_str(), 0777), 0);
    const Status refused = Directory::open(at("all/own/pool")).status();
    EXPECT_EQ(refused.code(), Code::foreign);
    EXPECT_NE(refused.message().find("chmod +t"), std::string::npos) << refused.message();
    EXPECT_TRUE(Directory::open(at("all/own/pool"), Trust::anyone).ok());
    ASSERT_EQ(::chmod(at(above).c_str(), 01777), 0);
    EXPECT_TRUE(Directory::open(at("all/own/pool")).ok());
    ASSERT_EQ(::chmod(at(above).c_str(), 0770), 0);  // its group is trusted with that
    EXPECT_TRUE(Directory::open(at("all/own/pool")).ok());
  }
}

// In a child, which closes them; so nothing is printed there.
TEST_F(Files, what_is_opened_lies_above_standard_input_output_and_error) {
  write("f", "x");
  const Directory here = own();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int standard = 0; standard <= STDERR_FILENO; ++standard) ::close(standard);
    const auto above = [](const auto& opened) {
      return opened.ok() && opened.value().fd() > STDERR_FILENO;
    };
    const bool files = above(Directory::open(root_)) && above(here.create_file("made")) &&
                       above(here.open_or_create("new")) && above(here.open_or_create("new")) &&
                       above(here.open_file("f", FileAccess::read_write)) &&
                       above(open_input(at("f"))) && above(open_output(at("out"))) &&
                       above(open_output_stream(at("out")));
    const bool others =
        open_application_file(at("f"), O_RDWR).value().handle.fd() > STDERR_FILENO &&
        open_application_file(at("f"), O_RDWR, Links::refused).value().handle.fd() >
            STDERR_FILENO &&
        open_kernel_file("/proc/self/stat", O_RDONLY).fd() > STDERR_FILENO &&
        FileHandle(::socket(AF_UNIX, SOCK_STREAM, 0)).fd() > STDERR_FILENO;
    const bool free = ::fcntl(0, F_GETFD) < 0 && ::fcntl(1, F_GETFD) < 0 && ::fcntl(2, F_GETFD) < 0;
    ::_exit((files ? 0 : 1) + (others ? 0 : 2) + (free ? 0 : 4));
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Files, the_mode_of_a_found_directory_is_never_changed) {
  for (const mode_t wanted : {02755U, 01777U, 0500U, 0755U}) {
    ASSERT_EQ(::chmod(root_.c_str(), wanted), 0);
    EXPECT_TRUE(Directory::make(root_.string()).ok());
    EXPECT_EQ(mode(""), wanted);
  }
}

TEST_F(Files, a_directory_that_others_may_write_is_refused_unless_it_is_sticky_or_meant) {
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  const auto refused = Directory::open(root_.string());
  ASSERT_EQ(refused.status().code(), Code::foreign);
  EXPECT_NE(refused.status().message().find("chmod go-w"), std::string::npos);
  EXPECT_NE(refused.status().message().find("PERDURE_ANY_OWNER"), std::string::npos);
  EXPECT_TRUE(Directory::open(root_.string(), Trust::anyone).ok());
  ::setenv("PERDURE_ANY_OWNER", "1", 1);
  EXPECT_TRUE(Directory::open(root_.string(), trust_unless(false)).ok());
  ::setenv("PERDURE_ANY_OWNER", "0", 1);
  EXPECT_EQ(trust_unless(false), Trust::own);
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  EXPECT_TRUE(Directory::open(root_.string()).ok());
}

TEST_F(Files, a_group_that_may_write_is_refused_unless_it_is_the_users_own) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a directory to another group";
  ASSERT_EQ(::chown(root_.c_str(), 0, 12345), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 02775), 0);
  EXPECT_EQ(Directory::open(root_.string()).status().code(), Code::foreign);
  ASSERT_EQ(::chown(root_.c_str(), 0, 0), 0);  // the group "root" of the user "root"
  ASSERT_EQ(::chmod(root_.c_str(), 0775), 0);
  EXPECT_TRUE(Directory::open(root_.string()).ok());
}

TEST_F(Files, a_link_under_a_name_is_never_followed) {
  write("precious", "results of a month");
  fs::create_symlink(at("precious"), at("link"));
  fs::create_symlink(at("nothing"), at("dangling"));
  for (const char* name : {"link", "dangling"}) {
    EXPECT_EQ(own().open_file(name, FileAccess::read_write).status().code(), Code::foreign) << name;
    EXPECT_EQ(own().open_or_create(name).status().code(), Code::foreign) << name;
    EXPECT_EQ(own().create_file(name).status().code(), Code::wrong_state) << name;
    EXPECT_EQ(open_output(at(name)).status().code(), Code::foreign) << name;
  }
  fs::create_symlink(at("precious"), at("job.new"));
  EXPECT_TRUE(own().replace_file("job", "ours").ok());
  EXPECT_TRUE(own().replace_file("link", "ours").ok());  // the link itself is replaced
  EXPECT_EQ(read("precious"), "results of a month");
  EXPECT_EQ(read("link"), "ours");
  EXPECT_FALSE(fs::exists(at("nothing")));
}

TEST_F(Files, publishing_replaces_nothing_and_renames_what_is_new) {
  write("fresh", "second");
  write("name", "first");
  EXPECT_EQ(own().publish_file("fresh", "name").code(), Code::wrong_state);
  EXPECT_EQ(read("name"), "first");
  EXPECT_TRUE(own().publish_file("fresh", "other").ok());
  EXPECT_EQ(read("other"), "second");
  EXPECT_FALSE(fs::exists(at("fresh")));
  EXPECT_EQ(own().publish_file("fresh", "third").code(), Code::io_error);
}

TEST_F(Files, a_second_name_of_a_file_is_refused) {
  write("precious", "results");
  fs::create_hard_link(at("precious"), at("job"));
  EXPECT_EQ(own().open_file("job", FileAccess::read_write).status().code(), Code::foreign);
  EXPECT_EQ(open_output(at("job")).status().code(), Code::foreign);
  EXPECT_EQ(read("precious"), "results");
}

TEST_F(Files, whatever_is_no_regular_file_is_an_error_at_once) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(at("directory").c_str(), 0700), 0);
  make_socket(at("socket"));
  std::vector<std::string> names = {"fifo", "directory", "socket"};
  if (::mknod(at("device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) names.push_back("device");
  for (const std::string& name : names) {
    for (const FileAccess access : {FileAccess::read, FileAccess::write, FileAccess::read_write}) {
      EXPECT_EQ(own().open_file(name, access).status().code(), Code::foreign) << name;
    }
    EXPECT_EQ(own().open_or_create(name).status().code(), Code::foreign) << name;
    EXPECT_EQ(open_input(at(name)).status().code(), Code::foreign) << name;
    EXPECT_EQ(open_output(at(name)).status().code(), Code::foreign) << name;
    EXPECT_FALSE(open_application_file(at(name), O_RDWR).ok()) << name;
    EXPECT_EQ(open_measured(at(name), FileAccess::write).status().code(), Code::foreign) << name;
    EXPECT_NE(own().open_file(name, FileAccess::read).status().message().find(at(name)),
              std::string::npos);
  }
}

TEST_F(Files, a_path_without_links_is_opened_where_links_are_refused) {
  write("file", "bytes");
  ASSERT_EQ(::mkdir(at("place").c_str(), 0700), 0);
  write("place/file", "bytes");
  ASSERT_EQ(::symlink("file", at("link").c_str()), 0);
  ASSERT_EQ(::symlink("place", at("way").c_str()), 0);
  for (const char* name : {"file", "place/file"}) {
    EXPECT_TRUE(open_application_file(at(name), O_RDWR, Links::refused).ok()) << name;
  }
  for (const char* name : {"link", "way/file"}) {
    EXPECT_TRUE(open_application_file(at(name), O_RDWR).ok()) << name;
    EXPECT_FALSE(open_application_file(at(name), O_RDWR, Links::refused).ok()) << name;
  }
}

TEST_F(Files, what_another_user_planted_is_refused_and_named) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to act as a second user";
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  const std::string file = at("job");
  const std::string folder = at("pool");
  const std::string link = at("link");
  fs::create_directory(at("mine"));
  ::chmod(root_.c_str(), 01777);
  as_stranger([&] {
    std::ofstream(file) << "planted";
    return ::mkdir(folder.c_str(), 0777) == 0 && ::symlink(at("mine").c_str(), link.c_str()) == 0;
  });
  const auto planted = own().open_file("job", FileAccess::read);
  ASSERT_EQ(planted.status().code(), Code::foreign);
  EXPECT_NE(planted.status().message().find("belongs to user 65533"), std::string::npos)
      << planted.status().message();
  EXPECT_EQ(Directory::open(folder).status().code(), Code::foreign);
  EXPECT_EQ(Directory::open(folder + "/").status().code(), Code::foreign);
  EXPECT_EQ(Directory::make(folder).status().code(), Code::foreign);
  EXPECT_EQ(Directory::open(link).status().code(), Code::foreign);
  EXPECT_EQ(Directory::open(link + "/").status().code(), Code::foreign);
  EXPECT_EQ(open_output(file).status().code(), Code::foreign);
  EXPECT_EQ(read("job"), "planted");
}

TEST_F(Files, a_directory_given_to_a_group_is_shared_by_its_members_and_nobody_else) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to act as members of a group";
  constexpr gid_t members = 12345;
  ASSERT_EQ(::chown(root_.c_str(), 0, members), 0);
  ASSERT_EQ(::chmod(root_.c_str(), 02770), 0);
  const mode_t before = ::umask(077);
  EXPECT_TRUE(Directory::open(root_.string(), Trust::group).value().replace_file("f", "x").ok());
  ::umask(before);
  EXPECT_EQ(mode("f"), 0660U);
  const auto take_part = [&] {
    auto shared = Directory::open(root_.string(), Trust::group);
    ::umask(077);
    return shared.ok() && shared.value().open_or_create("f").ok() &&
           shared.value().open_or_create("theirs").ok() &&
           ::symlink("/etc/passwd", at("link").c_str()) == 0 &&
           ::mkfifo(at("fifo").c_str(), 0666) == 0;
  };
  as_stranger(take_part, members);
  EXPECT_EQ(mode("theirs"), 0660U);
  const auto shared = Directory::open(root_.string(), Trust::group).take();
  EXPECT_TRUE(shared.open_or_create("theirs").ok());
  fs::create_hard_link(at("f"), at("second"));
  for (const char* name : {"link", "fifo", "second"}) {
    EXPECT_EQ(shared.open_file(name, FileAccess::read).status().code(), Code::foreign) << name;
    EXPECT_EQ(shared.open_or_create(name).status().code(), Code::foreign) << name;
  }
  for (const mode_t wanted : {02777U, 01777U}) {
    ASSERT_EQ(::chmod(root_.c_str(), wanted), 0);
    EXPECT_EQ(Directory::open(root_.string(), Trust::group).status().code(), Code::foreign);
  }
}

TEST_F(Files, a_link_of_ones_own_to_a_directory_is_fine) {
  fs::create_directory(at("scratch"));
  fs::create_directory_symlink(at("scratch"), at("link"));
  auto directory = Directory::open(at("link"));
  ASSERT_TRUE(directory.ok()) << directory.status().message();
  EXPECT_TRUE(directory.value().create_file("f").ok());
  EXPECT_TRUE(fs::exists(at("scratch/f")));
}

TEST_F(Files, a_replaced_file_is_whole_and_leaves_nothing_beside_it) {
  write("f.new", "of a process that died");
  EXPECT_TRUE(own().replace_file("f", "one").ok());
  EXPECT_TRUE(own().replace_file("f", "two", "-7").ok());
  EXPECT_EQ(read("f"), "two");
  EXPECT_EQ(own().names().value(), std::vector<std::string>{"f"});
}

TEST_F(Files, a_name_that_is_not_there_is_told_from_one_that_cannot_be_used) {
  EXPECT_EQ(own().open_file("none", FileAccess::read).status().code(), Code::not_found);
  EXPECT_EQ(Directory::open(at("none")).status().code(), Code::not_found);
  EXPECT_EQ(open_file(at("none/f"), FileAccess::read).status().code(), Code::not_found);
  EXPECT_TRUE(own().remove_file("none").ok());
  EXPECT_TRUE(remove_file(at("none/f")).ok());
  write("f", "x");
  EXPECT_EQ(Directory::open(at("f")).status().code(), Code::invalid_argument);
  EXPECT_EQ(Directory::open(at("f/")).status().code(), Code::invalid_argument);
}

TEST_F(Files, no_more_is_read_than_a_file_of_its_kind_may_have) {
  write("f", std::string(1000, 'x'));
  auto file = own().open_file("f", FileAccess::read);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(read_rest(file.value(), "f", 999).status().code(), Code::damaged);
  auto again = own().open_file("f", FileAccess::read);
  EXPECT_EQ(read_rest(again.value(), "f", 1000).value().size(), 1000U);
}

TEST(ProcessStat, is_there_as_long_as_the_process) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const std::string directory = "/proc/" + std::to_string(child);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto own = read_process_stat("/proc/self");
  const auto zombie = read_process_stat(directory);
  ASSERT_TRUE(own.has_value() && zombie.has_value());
  EXPECT_FALSE(own->has_ended());
  EXPECT_TRUE(zombie->has_ended());
  EXPECT_GE(zombie->start_ticks, own->start_ticks);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(read_process_stat(directory).has_value());
}

}  // namespace
}  // namespace perdure
