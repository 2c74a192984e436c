// SPDX-License-Identifier: BSD-3-Clause
//
// Files of the program's own that go back with the state (perdure_file): a job that was killed
// anywhere, as often as one likes, ends with the file of one that was not, byte for byte. And what
// may be under the file's name instead.
// ctest: LABELS truth hostile TIMEOUT 300
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>

#include "perdure/perdure.h"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

// In place of libc's, for the library too: the data of a file may be lost on their way.
namespace {
std::string lost_file;  // whose data are
int syncs = 0;          // of all
}  // namespace
extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) {
  ++syncs;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::error_code ignored;
  if (!lost_file.empty() && std::filesystem::read_symlink(link, ignored) == lost_file) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace {

using perdure_test::TemporaryDirectory;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void add_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

bool said(const std::string& words) {
  const std::string message = perdure_last_error();
  const bool there = message.find(words) != std::string::npos;
  if (!there) std::fprintf(stderr, "the message was: %s\n", message.c_str());
  return there;
}

// How a job writes its lines.
enum class Way { stream, all_streams, descriptor };

// A job that writes a line in each step, and commits after some of them.
struct Job {
  std::string pool;
  std::string log;
  Way way = Way::stream;
  std::uint64_t steps = 40;
  bool background = false;

  // 0 if it came to its end.
  int run() const {
    perdure_pool* open = nullptr;
    std::uint64_t step = 0, version = 0;
    if (perdure_open(pool.c_str(), nullptr, &open) != 0) return 1;
    if (perdure_scalar(open, "iteration", &step, sizeof step) != 0) return 2;
    const std::uint64_t cells = 100;
    perdure_array* u = nullptr;
    if (perdure_array_open(open, "u", PERDURE_INT64, 1, &cells, PERDURE_COPY, nullptr, &u) != 0) {
      return 2;
    }
    const bool by_descriptor = way == Way::descriptor;
    const int fd = by_descriptor ? ::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;
    std::FILE* const stream = by_descriptor ? nullptr : std::fopen(log.c_str(), "a");
    std::FILE* const given = way == Way::stream ? stream : nullptr;
    if (perdure_file(open, log.c_str(), given) != 0) return 3;
    if (perdure_restart(open, &version) != 0) return 4;
    if (step == 0) write(fd, stream, "begins\n");
    bool begun = false;
    while (step < steps) {
      const std::string line = "step " + std::to_string(step) + std::string(step % 7, '.') + "\n";
      write(fd, stream, line.substr(0, 3));  // half a line is no line
      write(fd, stream, line.substr(3));
      ++step;
      if (step % 3 == 0 || step == steps) {
        begun = background;
        if ((background ? perdure_commit_begin(open) : perdure_commit(open, &version)) != 0) {
          return 6;
        }
      }
    }
    if (begun && perdure_commit_wait(open, &version) != 0) return 7;
    if (stream != nullptr && std::fclose(stream) != 0) return 8;
    if (fd >= 0) ::close(fd);
    return perdure_close(open) == 0 ? 0 : 9;
  }
  static void write(int fd, std::FILE* stream, const std::string& text) {
    if (stream != nullptr) std::fputs(text.c_str(), stream);
    if (fd >= 0 && ::write(fd, text.data(), text.size()) < 0) std::abort();
  }
};

// Starts `body` in a child. Its status: 128 + signal if one ended it.
int in_child(const std::function<int()>& body, std::uint64_t kill_after_us = 0) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  if (kill_after_us != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(kill_after_us));
    ::kill(child, SIGKILL);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class NotedFiles : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return place_.path() + "/" + name; }
  // What a job that nobody disturbs writes.
  std::string whole(const Job& like) {
    Job job = like;
    job.pool = at("calm");
    job.log = at("calm.txt");
    EXPECT_EQ(in_child([&] { return job.run(); }), 0);
    std::filesystem::remove_all(job.pool);
    return text_of(job.log);
  }
  // A pool with the file "log.txt", of which version 1 notes "one\n".
  void make_noted() {
    EXPECT_EQ(in_child([&] {
                perdure_pool* pool = nullptr;
                if (perdure_open(at("pool").c_str(), nullptr, &pool) != 0) return 1;
                if (perdure_file(pool, at("log.txt").c_str(), nullptr) != 0) return 2;
                if (perdure_restart(pool, nullptr) != 0) return 3;
                add_text(at("log.txt"), "one\n");
                if (perdure_commit(pool, nullptr) != 0) return 4;
                return perdure_close(pool);
              }),
              0);
  }
  // What naming the file and restarting give.
  int start(const std::string& log = "log.txt") {
    EXPECT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool_), 0) << perdure_last_error();
    const int named = perdure_file(pool_, at(log).c_str(), nullptr);
    std::uint64_t version = 0;
    return named != 0 ? named : perdure_restart(pool_, &version);
  }
  int commit() { return perdure_commit(pool_, nullptr); }
  void close() {
    if (pool_ != nullptr) perdure_close(pool_);
    pool_ = nullptr;
  }
  void TearDown() override { close(); }

  TemporaryDirectory place_;
  perdure_pool* pool_ = nullptr;
};

class Killed : public NotedFiles, public testing::WithParamInterface<std::tuple<Way, bool>> {};

TEST_P(Killed, at_random_times_a_job_ends_with_the_file_of_one_that_was_not) {
  Job job{at("pool"), at("log.txt"), std::get<0>(GetParam())};
  job.background = std::get<1>(GetParam());
  const std::string expected = whole(job);
  std::mt19937_64 random(perdure::test_seed());
  int kills = 0, ends = 0;
  for (int round = 0; round < 40; ++round) {
    const int ended = in_child([&] { return job.run(); }, 1 + random() % 5000);
    ASSERT_TRUE(ended == 0 || ended == 128 + SIGKILL) << ended << " in round " << round;
    kills += ended == 0 ? 0 : 1;
    if (ended != 0 && round % 5 != 4) continue;
    ASSERT_EQ(in_child([&] { return job.run(); }), 0) << "in round " << round;
    ASSERT_EQ(text_of(job.log), expected) << "in round " << round;
    ++ends;
    std::filesystem::remove_all(job.pool);
    std::filesystem::remove(job.log);
  }
  std::printf("%d kills, %d files compared\n", kills, ends);
  std::fflush(stdout);  // or a commit in a child writes it once more
  EXPECT_GT(ends, 0);
}

// The job kills itself in the commit: between noting and acknowledging, and on both sides.
TEST_P(Killed, at_each_point_of_a_commit_a_job_ends_with_the_file_of_one_that_was_not) {
  Job job{at("pool"), at("log.txt"), std::get<0>(GetParam())};
  job.background = std::get<1>(GetParam());
  const std::string expected = whole(job);
  for (const char* point : {"copy", "data", "slot", "state", "agreed"}) {
    for (const int step : {3, 21, 40}) {
      const std::string plan = "rank=0,iteration=" + std::to_string(step) + ",point=" + point;
      const int ended = in_child([&] {
        ::setenv("PERDURE_KILL", plan.c_str(), 1);
        return job.run();
      });
      ASSERT_EQ(ended, 128 + SIGKILL) << plan;
      ASSERT_EQ(in_child([&] { return job.run(); }), 0) << plan;
      ASSERT_EQ(text_of(job.log), expected) << plan;
      std::filesystem::remove_all(job.pool);
      std::filesystem::remove(job.log);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Killed,
                         testing::Combine(testing::Values(Way::stream, Way::all_streams,
                                                          Way::descriptor),
                                          testing::Bool()));

TEST_F(NotedFiles, lines_after_the_newest_version_go_at_a_restart) {
  make_noted();
  add_text(at("log.txt"), "two\n");
  EXPECT_EQ(start(), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "one\n");
}

TEST_F(NotedFiles, a_file_that_is_named_after_the_restart_goes_back_at_once) {
  make_noted();
  add_text(at("log.txt"), "two\n");
  ASSERT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool_), 0);
  ASSERT_EQ(perdure_restart(pool_, nullptr), 0);
  EXPECT_EQ(text_of(at("log.txt")), "one\ntwo\n");
  ASSERT_EQ(perdure_file(pool_, at("log.txt").c_str(), nullptr), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "one\n");
}

TEST_F(NotedFiles, before_the_first_version_a_file_has_the_length_that_it_was_named_with) {
  add_text(at("log.txt"), "of another job\n");
  ASSERT_EQ(start(), 0);
  add_text(at("log.txt"), "lost\n");
  close();  // nothing was committed
  ASSERT_EQ(start(), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "of another job\n");
}

TEST_F(NotedFiles, a_file_that_is_named_late_has_its_first_length_in_versions_of_before) {
  perdure_options options{};
  options.keep = 3;
  ASSERT_EQ(perdure_open(at("pool").c_str(), &options, &pool_), 0);
  ASSERT_EQ(perdure_restart(pool_, nullptr), 0);
  add_text(at("log.txt"), "zero\n");
  ASSERT_EQ(commit(), 0);
  ASSERT_EQ(perdure_file(pool_, at("log.txt").c_str(), nullptr), 0);
  add_text(at("log.txt"), "one\n");
  ASSERT_EQ(commit(), 0);
  add_text(at("log.txt"), "two\n");
  ASSERT_EQ(commit(), 0);
  ASSERT_EQ(perdure_restore(pool_, 2), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "zero\none\n");
  ASSERT_EQ(perdure_restore(pool_, 1), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "zero\n");
  // What was cut can't come back, and is not taken for it.
  add_text(at("log.txt"), "another\n");
  EXPECT_EQ(perdure_restore(pool_, 3), PERDURE_E_DAMAGED);
  EXPECT_TRUE(said("version 3 notes 13 bytes of")) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "zero\nanother\n");
  EXPECT_EQ(commit(), 0) << perdure_last_error();  // all is as it was
}

TEST_F(NotedFiles, a_discarded_pool_forgets_how_long_a_file_was) {
  ASSERT_EQ(start(), 0);
  close();
  add_text(at("log.txt"), "by hand\n");
  perdure_options options{};
  options.flags = PERDURE_DISCARD;
  ASSERT_EQ(perdure_open(at("pool").c_str(), &options, &pool_), 0);
  ASSERT_EQ(perdure_file(pool_, at("log.txt").c_str(), nullptr), 0);
  ASSERT_EQ(perdure_restart(pool_, nullptr), 0);
  EXPECT_EQ(text_of(at("log.txt")), "by hand\n");
}

TEST_F(NotedFiles, a_file_that_is_gone_is_named_with_its_length) {
  make_noted();
  std::filesystem::remove(at("log.txt"));
  EXPECT_EQ(start(), PERDURE_E_NOT_FOUND);
  EXPECT_TRUE(said("version 1 notes 4 bytes of") && said("is not there; bring it back"));
}

TEST_F(NotedFiles, a_file_that_is_too_short_is_refused_and_stays) {
  make_noted();
  std::filesystem::resize_file(at("log.txt"), 3);
  EXPECT_EQ(start(), PERDURE_E_DAMAGED);
  EXPECT_TRUE(said("version 1 notes 4 bytes of") && said("has 3"));
  EXPECT_EQ(text_of(at("log.txt")), "one");
  close();
  add_text(at("log.txt"), "\nand more\n");  // it was brought back
  EXPECT_EQ(start(), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "one\n");
}

TEST_F(NotedFiles, another_file_of_that_name_is_refused_and_stays) {
  make_noted();
  std::ofstream(at("log.txt")) << "a thesis\n";
  EXPECT_EQ(start(), PERDURE_E_DAMAGED);
  EXPECT_TRUE(said("it was changed, or is another one"));
  EXPECT_EQ(text_of(at("log.txt")), "a thesis\n");
}

TEST_F(NotedFiles, a_file_noted_empty_is_known_by_its_directory) {
  std::filesystem::create_directory(at("a"));
  std::filesystem::create_directory(at("b"));
  const auto in_directory = [&](const std::string& name) {
    return in_child([&] {
      perdure_pool* pool = nullptr;
      if (::chdir(at(name).c_str()) != 0) return 1;
      if (perdure_open(at("pool").c_str(), nullptr, &pool) != 0) return 2;
      if (perdure_file(pool, "log.txt", nullptr) != 0) return 3;
      const int code = perdure_restart(pool, nullptr);
      if (code != 0) return code == PERDURE_E_FOREIGN && said("it may be another one") ? 4 : 5;
      return perdure_commit(pool, nullptr) == 0 ? perdure_close(pool) : 6;
    });
  };
  ASSERT_EQ(in_directory("a"), 0);
  add_text(at("b/log.txt"), "of another job\n");
  EXPECT_EQ(in_directory("b"), 4);
  EXPECT_EQ(text_of(at("b/log.txt")), "of another job\n");
  EXPECT_EQ(in_directory("a"), 0);
}

TEST_F(NotedFiles, a_descriptor_that_would_leave_a_hole_is_refused) {
  make_noted();
  add_text(at("log.txt"), "two\n");
  const int fd = ::open(at("log.txt").c_str(), O_WRONLY);
  ::lseek(fd, 0, SEEK_END);
  EXPECT_EQ(start(), PERDURE_E_STATE);
  EXPECT_TRUE(said("would write at byte 8") && said("open it to append"));
  EXPECT_EQ(text_of(at("log.txt")), "one\ntwo\n");
  ::close(fd);
  close();
  const int append = ::open(at("log.txt").c_str(), O_WRONLY | O_APPEND);
  EXPECT_EQ(start(), 0) << perdure_last_error();
  EXPECT_EQ(::write(append, "new\n", 4), 4);
  ::close(append);
  EXPECT_EQ(text_of(at("log.txt")), "one\nnew\n");
}

TEST_F(NotedFiles, what_is_no_file_of_the_users_own_is_refused) {
  ASSERT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool_), 0);
  const auto refused = [&](const std::string& name, int code) {
    return perdure_file(pool_, at(name).c_str(), nullptr) == code;
  };
  add_text(at("mine.txt"), "mine\n");
  std::filesystem::create_symlink(at("mine.txt"), at("link"));
  EXPECT_TRUE(refused("link", PERDURE_E_FOREIGN)) << perdure_last_error();
  EXPECT_TRUE(said("a symbolic link"));
  std::filesystem::create_symlink(at("nowhere"), at("dangling"));
  EXPECT_TRUE(refused("dangling", PERDURE_E_FOREIGN)) << perdure_last_error();
  std::filesystem::create_hard_link(at("mine.txt"), at("second"));
  EXPECT_TRUE(refused("second", PERDURE_E_FOREIGN)) << perdure_last_error();
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(refused("fifo", PERDURE_E_FOREIGN)) << perdure_last_error();
  std::filesystem::create_directory(at("folder"));
  EXPECT_TRUE(refused("folder", PERDURE_E_FOREIGN)) << perdure_last_error();
  EXPECT_TRUE(refused("no/where", PERDURE_E_NOT_FOUND)) << perdure_last_error();
  EXPECT_TRUE(refused("", PERDURE_E_INVALID)) << perdure_last_error();
  EXPECT_EQ(perdure_file(pool_, nullptr, nullptr), PERDURE_E_INVALID);
  EXPECT_EQ(perdure_file(pool_, std::string(5000, 'a').c_str(), nullptr), PERDURE_E_INVALID);
  if (::geteuid() == 0) {
    add_text(at("theirs.txt"), "theirs\n");
    ASSERT_EQ(::chown(at("theirs.txt").c_str(), 65533, 65533), 0);
    EXPECT_TRUE(refused("theirs.txt", PERDURE_E_FOREIGN)) << perdure_last_error();
  }
  EXPECT_EQ(text_of(at("mine.txt")), "mine\n");
  EXPECT_EQ(perdure_restart(pool_, nullptr), 0);
  EXPECT_EQ(commit(), 0);  // a name that was refused is no part of a version
}

TEST_F(NotedFiles, a_link_that_was_put_in_the_place_of_the_file_fails_the_commit) {
  ASSERT_EQ(start(), 0);
  add_text(at("log.txt"), "one\n");
  ASSERT_EQ(commit(), 0);
  add_text(at("victim"), "victim\n");
  std::filesystem::remove(at("log.txt"));
  EXPECT_EQ(commit(), PERDURE_E_NOT_FOUND);
  EXPECT_TRUE(said("was removed while the job writes it"));
  std::filesystem::create_symlink(at("victim"), at("log.txt"));
  EXPECT_EQ(commit(), PERDURE_E_FOREIGN);
  std::filesystem::remove(at("log.txt"));
  add_text(at("log.txt"), "rotated\n");
  EXPECT_EQ(commit(), 0) << perdure_last_error();
  close();
  add_text(at("log.txt"), "lost\n");
  ASSERT_EQ(start(), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at("log.txt")), "rotated\n");
  EXPECT_EQ(text_of(at("victim")), "victim\n");
}

TEST_F(NotedFiles, of_any_bytes_in_their_path_are_found_again) {
  const std::string name = "l\xc3\xb6g \x01\xff\n.txt";
  ASSERT_EQ(start(name), 0) << perdure_last_error();
  add_text(at(name), "one\n");
  ASSERT_EQ(commit(), 0);
  close();
  add_text(at(name), "two\n");
  ASSERT_EQ(start(name), 0) << perdure_last_error();
  EXPECT_EQ(text_of(at(name)), "one\n");
}

TEST_F(NotedFiles, a_file_is_one_process_s_and_named_once) {
  ASSERT_EQ(start(), 0);
  add_text(at("log.txt"), "one\n");
  ASSERT_EQ(commit(), 0);
  EXPECT_EQ(perdure_file(pool_, at("log.txt").c_str(), nullptr), 0);  // again is no mistake
  EXPECT_EQ(perdure_file(pool_, at("./log.txt").c_str(), nullptr), PERDURE_E_BUSY);
  EXPECT_TRUE(said("in this process already"));
  EXPECT_EQ(in_child([&] {
              perdure_pool* other = nullptr;
              if (perdure_open(at("other").c_str(), nullptr, &other) != 0) return 1;
              const int code = perdure_file(other, at("log.txt").c_str(), nullptr);
              return code == PERDURE_E_BUSY && said("Each rank has files of its own") ? 0 : 2;
            }),
            0);
}

TEST_F(NotedFiles, a_stream_of_another_file_is_refused) {
  std::FILE* const other = std::fopen(at("other.txt").c_str(), "a");
  ASSERT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool_), 0);
  EXPECT_EQ(perdure_file(pool_, at("log.txt").c_str(), other), PERDURE_E_INVALID);
  EXPECT_TRUE(said("the stream is not open on"));
  std::fclose(other);
}

TEST_F(NotedFiles, no_version_notes_bytes_that_the_medium_has_lost) {
  for (const bool background : {false, true}) {
    ASSERT_EQ(start(), 0) << perdure_last_error();
    add_text(at("log.txt"), "one\n");
    ASSERT_EQ(commit(), 0);
    const std::string noted = text_of(at("log.txt"));
    add_text(at("log.txt"), "lost\n");
    lost_file = at("log.txt");
    if (background) {
      EXPECT_EQ(perdure_commit_begin(pool_), 0);
    }
    EXPECT_EQ(background ? perdure_commit_wait(pool_, nullptr) : commit(), PERDURE_E_IO);
    EXPECT_TRUE(said("what was written to it last may be lost"));
    lost_file.clear();  // the kernel has forgotten: it would say that all is well
    EXPECT_EQ(commit(), PERDURE_E_IO);
    close();
    ASSERT_EQ(start(), 0) << perdure_last_error();
    EXPECT_EQ(text_of(at("log.txt")), noted);
    close();
  }
}

TEST_F(NotedFiles, a_file_that_did_not_grow_is_not_written_again) {
  ASSERT_EQ(start(), 0);
  add_text(at("log.txt"), "one\n");
  ASSERT_EQ(commit(), 0);
  const int before = syncs;
  ASSERT_EQ(commit(), 0);
  EXPECT_EQ(syncs, before);
  add_text(at("log.txt"), "two\n");
  ASSERT_EQ(commit(), 0);
  EXPECT_EQ(syncs, before + 1);
}

// As fflush(NULL) would, for ever.
TEST_F(NotedFiles, a_commit_with_a_stream_does_not_wait_for_a_thread_that_reads) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::FILE* const input = ::fdopen(pipe[0], "r");
  std::thread reader([input] { (void)std::fgetc(input); });
  std::FILE* const log = std::fopen(at("log.txt").c_str(), "a");
  ASSERT_EQ(perdure_open(at("pool").c_str(), nullptr, &pool_), 0);
  ASSERT_EQ(perdure_file(pool_, at("log.txt").c_str(), log), 0) << perdure_last_error();
  ASSERT_EQ(perdure_restart(pool_, nullptr), 0);
  std::fputs("one\n", log);
  EXPECT_EQ(commit(), 0);
  EXPECT_EQ(text_of(at("log.txt")), "one\n");
  ::close(pipe[1]);
  reader.join();
  std::fclose(input);
  close();
  std::fclose(log);
}

TEST_F(NotedFiles, a_stream_that_can_not_be_written_fails_the_commit) {
  std::FILE* const full = std::fopen("/dev/full", "a");
  ASSERT_EQ(start(), 0);
  ASSERT_EQ(commit(), 0);
  std::fputs("never\n", full);
  EXPECT_EQ(commit(), PERDURE_E_NO_SPACE) << perdure_last_error();
  std::fclose(full);
  EXPECT_EQ(commit(), 0) << perdure_last_error();
}

}  // namespace
