// SPDX-License-Identifier: BSD-3-Clause
//
// publish: of several that publish one name one succeeds, also where the file system can't rename
// over nothing. A program of its own: it defines system calls, which pretend such file systems.
// ctest: LABELS truth ALONE
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

#include "base/files.hpp"
#include "temporary_directory.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

// What the calls below do.
int rename_error = 0;                // of a rename over nothing; 0: it is done
int link_error = 0;                  // the same of a link
bool link_is_sent_twice = false;     // as NFS does when an answer is lost
std::function<void()> before_taken;  // just before a name is taken, once
std::function<void()> before_unlink;

void call_once(std::function<void()>& hook) {
  if (const auto now = std::exchange(hook, nullptr)) now();
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace perdure

extern "C" {

int renameat2(int old_folder, const char* from, int folder, const char* to,
              unsigned flags) noexcept {
  using Call = int (*)(int, const char*, int, const char*, unsigned);
  errno = perdure::rename_error;
  if (errno != 0) return -1;
  perdure::call_once(perdure::before_taken);
  return perdure::real<Call>("renameat2")(old_folder, from, folder, to, flags);
}

int renameat(int old_folder, const char* from, int folder, const char* to) noexcept {
  using Call = int (*)(int, const char*, int, const char*);
  perdure::call_once(perdure::before_taken);
  return perdure::real<Call>("renameat")(old_folder, from, folder, to);
}

int linkat(int old_folder, const char* from, int folder, const char* to, int flags) noexcept {
  using Call = int (*)(int, const char*, int, const char*, int);
  perdure::call_once(perdure::before_taken);
  errno = perdure::link_error;
  if (errno != 0) return -1;
  const int done = perdure::real<Call>("linkat")(old_folder, from, folder, to, flags);
  if (done != 0 || !perdure::link_is_sent_twice) return done;
  return perdure::real<Call>("linkat")(old_folder, from, folder, to, flags);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  using Call = int (*)(int, const char*, int);
  perdure::call_once(perdure::before_unlink);
  return perdure::real<Call>("unlinkat")(folder, name, flags);
}

}  // extern "C"

namespace perdure {
namespace {

// By what a rename over nothing fails with; 0: it does not.
class Publish : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { rename_error = GetParam(); }
  void TearDown() override {
    rename_error = link_error = 0;
    link_is_sent_twice = false;
    before_taken = before_unlink = nullptr;
  }

  Directory own() const { return Directory::open(directory_.path()).take(); }
  void write(const std::string& name, const std::string& text) const {
    const FileHandle file = own().create_file(name).take();
    EXPECT_TRUE(write_all(file, name, text).ok());
  }
  std::string read(const std::string& name) const {
    const auto file = own().open_file(name, FileAccess::read);
    return file.ok() ? read_rest(file.value(), name, 100).value() : file.status().message();
  }

  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
};

TEST_P(Publish, what_is_published_has_its_name_alone_and_replaces_nothing) {
  write("name.new-1", "first");
  EXPECT_TRUE(own().publish_file("name.new-1", "name").ok());
  EXPECT_EQ(own().names().value(), std::vector<std::string>{"name"});
  write("name.new-2", "second");
  EXPECT_EQ(own().publish_file("name.new-2", "name").code(), Code::wrong_state);
  EXPECT_EQ(read("name"), "first");
  EXPECT_EQ(own().publish_file("name.new-3", "other").code(), Code::io_error);
}

TEST_P(Publish, a_name_that_another_run_takes_at_the_last_moment_is_that_ones) {
  write("name.new-1", "first");
  write("name.new-2", "second");
  Status others;
  before_taken = [&] { others = own().publish_file("name.new-2", "name"); };
  EXPECT_EQ(own().publish_file("name.new-1", "name").code(), Code::wrong_state);
  EXPECT_TRUE(others.ok()) << others.message();
  EXPECT_EQ(read("name"), "second");
}

TEST_P(Publish, of_many_that_publish_one_name_one_succeeds) {
  for (int round = 0; round < 50; ++round) {
    const std::string name = std::to_string(round);
    std::atomic<int> published{-1};
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; ++writer) {
      const std::string fresh = name + ".new-" + std::to_string(writer);
      write(fresh, std::to_string(writer));
      writers.emplace_back([this, fresh, name, writer, &published] {
        const Status status = own().publish_file(fresh, name);
        EXPECT_TRUE(status.ok() || status.code() == Code::wrong_state) << status.message();
        EXPECT_EQ(status.ok() ? published.exchange(writer) : -1, -1);
      });
    }
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(read(name), std::to_string(published));
  }
}

INSTANTIATE_TEST_SUITE_P(FileSystems, Publish, testing::Values(0, EINVAL, ENOSYS, EOPNOTSUPP));

class PublishByLink : public Publish {};

TEST_P(PublishByLink, a_file_is_read_while_it_has_both_names_and_if_its_writer_died_then) {
  write("name.new-1", "first");
  std::string seen;
  before_unlink = [&] { seen = read("name"); };
  EXPECT_TRUE(own().publish_file("name.new-1", "name").ok());
  EXPECT_EQ(seen, "first");
  fs::create_hard_link(directory_ / "name", directory_ / "name.new-1");
  EXPECT_EQ(read("name"), "first");
  EXPECT_TRUE(own().replace_file("name", "second").ok());
  EXPECT_EQ(read("name"), "second");
}

TEST_P(PublishByLink, a_second_name_that_is_another_files_is_refused_as_before) {
  write("precious", "results");
  fs::create_hard_link(directory_ / "precious", directory_ / "name");
  const auto code = [&] { return own().open_file("name", FileAccess::read_write).status().code(); };
  EXPECT_EQ(code(), Code::foreign);
  fs::create_hard_link(directory_ / "precious", directory_ / "name.new-1");
  EXPECT_EQ(code(), Code::foreign);
  write("name.new-2", "of another writer");
  EXPECT_EQ(code(), Code::foreign);
}

// Whoever may also take names away could do that between their count and that of the file's links.
TEST_P(PublishByLink, a_second_name_is_refused_where_a_group_may_take_names_away) {
  write("name", "first");
  fs::create_hard_link(directory_ / "name", directory_ / "name.new-1");
  EXPECT_EQ(read("name"), "first");
  const Directory shared = Directory::open(directory_.path(), Trust::group).take();
  EXPECT_EQ(shared.open_file("name", FileAccess::read).status().code(), Code::foreign);
}

TEST_P(PublishByLink, a_link_that_nfs_asked_for_twice_is_made) {
  link_is_sent_twice = true;
  write("name.new-1", "first");
  const Status published = own().publish_file("name.new-1", "name");
  EXPECT_TRUE(published.ok()) << published.message();
  EXPECT_EQ(own().names().value(), std::vector<std::string>{"name"});
}

TEST_P(PublishByLink, where_there_are_no_links_either_nothing_is_published) {
  for (const int error : {EPERM, ENOSYS, EOPNOTSUPP}) {
    link_error = error;
    write("name.new-1", "first");
    const Status published = own().publish_file("name.new-1", "name");
    EXPECT_EQ(published.code(), Code::unsupported);
    EXPECT_NE(published.message().find("choose a directory"), std::string::npos);
    EXPECT_FALSE(own().holds("name"));
    EXPECT_TRUE(own().remove_file("name.new-1").ok());
  }
  link_error = EIO;
  write("name.new-1", "first");
  EXPECT_EQ(own().publish_file("name.new-1", "name").code(), Code::io_error);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, PublishByLink, testing::Values(EINVAL));

}  // namespace
}  // namespace perdure
