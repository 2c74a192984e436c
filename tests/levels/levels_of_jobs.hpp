// SPDX-License-Identifier: BSD-3-Clause
//
// A job on several nodes, of which each start is a process of its own, with a thread for each rank.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "levels/levels.hpp"
#include "mortal_group.hpp"
#include "pool/pool_directory.hpp"
#include "temporary_directory.hpp"

namespace perdure {

namespace fs = std::filesystem;

constexpr int refused_code = 3;

// What one start of the job does.
struct Start {
  std::vector<std::uint32_t> nodes = {0, 1};  // of each rank
  std::uint64_t restore = 0;                  // a version, instead of the newest one
  std::uint64_t commits = 0;
  std::uint64_t mark = 0;          // what its versions hold
  std::uint64_t kill_at = 0;       // call of the group; 0: never
  std::int64_t late = -1;          // a rank that comes late from every agreement
  bool hears_no_maxima = false;    // rank 0 gets no answer that it has not waited for at once
  bool hears_no_messages = false;  // nor what the others send of their images
  std::string log = {};            // where the process says what it has to say
  bool allow_older = false;
  bool take_last = false;  // the last of its versions is due for every level
  bool lines = false;      // each rank has a named file, with a line for each of its versions
  bool wait = false;       // after each commit, for levels; then the process ends at once
  std::vector<std::uint64_t> words = {100, 100, 100, 100};  // of each rank's array
  ArrayMode mode = ArrayMode::copy;
  std::function<void()> opened = nullptr;  // called by rank 0 when the pool has restarted
  // By rank 0 after each version; false: wrong.
  std::function<bool(const Levels&, std::uint64_t)> then = nullptr;
};

struct Found {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> version;  // with which the job began
  std::atomic<std::uint64_t> mark;
  std::atomic<std::uint64_t> marks[4];   // of each rank, with which it began
  std::atomic<std::uint64_t> committed;  // the newest that was acknowledged
};

class LevelsOfJobs : public testing::Test {
 protected:
  LevelsOfJobs() {
    found_ = new (::mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Found{};
  }
  ~LevelsOfJobs() override { ::munmap(found_, sizeof(Found)); }

  std::string node(std::uint32_t number) const { return root_ + "/" + std::to_string(number); }
  void lose(std::uint32_t number) const { fs::remove_all(node(number)); }
  void copy(std::uint32_t from, const std::string& to) const {
    fs::remove_all(root_ + "/" + to);
    fs::copy(node(from), root_ + "/" + to, fs::copy_options::recursive);
  }
  void put_back(const std::string& from, std::uint32_t to) const {
    lose(to);
    fs::rename(root_ + "/" + from, node(to));
  }
  void clear() const {
    for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
  }

  // The exit code of a process that runs the job.
  int run(const Start& start) {
    found_->calls = 0;
    const pid_t child = ::fork();
    if (child == 0) {
      if (!start.log.empty() && std::freopen(start.log.c_str(), "w", stderr) == nullptr) ::_exit(1);
      ThreadJob threads(start.nodes);
      std::atomic<int> code{0};
      threads.run([&](ThreadGroup& own) {
        MortalGroup group(own, found_->calls, start.kill_at, own.rank() == start.late);
        if (start.hears_no_maxima && own.rank() == 0) group.hear_no_maxima();
        if (start.hears_no_messages && own.rank() == 0) group.hear_no_messages();
        const Status done = run_rank(group, start);
        if (done.ok()) return;
        if (done.code() != Code::peer_failed) {
          std::fprintf(stderr, "rank %u: %s\n", group.rank(), done.message().c_str());
        }
        code = refused_code;
        threads.end();
      });
      std::fflush(stderr);
      ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string levels_ = "redundancy=partner;every=1;patience=20s";  // @: the rank's own node
  Found* found_ = nullptr;

 private:
  Status run_rank(Group& group, const Start& start) {
    const std::string place = node(start.nodes[group.rank()]);
    const PathParts parts = split_path(place);
    PERDURE_TRY(Directory::make_below(parts.directory, parts.name).status());
    std::string own = levels_;
    if (const auto at = own.find('@'); at != std::string::npos) own.replace(at, 1, place);
    PERDURE_TRY_ASSIGN(const auto settings, parse_level_settings(own));
    PERDURE_TRY_ASSIGN(auto levels, Levels::create(group, place + "/pool", settings, Trust::own));
    OpenOptions options;
    options.job_name = "job";
    options.lock_wait_ms = 0;
    options.keep = 3;
    options.geometry = {16384, 4096, 4096, 4};
    options.pool.taker = levels.get();
    options.pool.allow_older = start.allow_older;
    PERDURE_TRY_ASSIGN(auto pool, levels->open(options));
    PERDURE_TRY_ASSIGN(
        auto* array,
        pool->open_array("u", {ArrayType::int64, start.mode, true, {start.words[group.rank()]}},
                         {.marks = start.mode == ArrayMode::log}));
    if (start.words[group.rank()] == 100) {
      PERDURE_TRY(pool->set_box(*array, {{100 * group.ranks()}, {100 * group.rank()}}));
    }
    const std::string lines = place + "/lines";
    if (start.lines) PERDURE_TRY(pool->name_file(lines, nullptr));
    std::uint64_t version = start.restore;
    if (start.restore > 0) {
      PERDURE_TRY(pool->restore(start.restore));
    } else {
      PERDURE_TRY_ASSIGN(version, pool->restart());
    }
    const auto* const words = reinterpret_cast<const std::uint64_t*>(array->consistent());
    const std::uint64_t began = words[99];
    std::uint64_t written = words[98];
    if (start.lines && (fs::exists(lines) ? fs::file_size(lines) : 0) != written) {
      return {Code::damaged, lines + " has other lines than version " + std::to_string(version)};
    }
    if (group.rank() < std::size(found_->marks)) found_->marks[group.rank()] = began;
    if (group.rank() == 0) {
      found_->version = version;
      found_->mark = began;
      if (start.opened) start.opened();
    }
    for (std::uint64_t i = 0; i < start.commits; ++i) {
      if (start.mode == ArrayMode::log) PERDURE_TRY(array->mark(98 * 8, 16));
      if (start.lines) std::ofstream(lines, std::ios::app) << '\n';
      auto* const next = reinterpret_cast<std::uint64_t*>(array->working());
      next[98] = start.lines ? ++written : written;
      next[99] = start.mark;
      if (start.take_last && i + 1 == start.commits) levels->take_next();
      PERDURE_TRY_ASSIGN(const auto committed, pool->commit());
      found_->committed = committed;
      if (start.then && group.rank() == 0 && !start.then(*levels, committed)) {
        return {Code::wrong_state, "after version " + std::to_string(committed)};
      }
      if (!start.wait) continue;
      PERDURE_TRY_ASSIGN(const auto arrived, levels->wait());
      if (arrived != committed || levels->is_under_way()) {
        return {Code::wrong_state, "version " + std::to_string(arrived) + " has arrived"};
      }
    }
    if (start.wait && group.rank() == 0) ::_exit(0);
    levels->close();
    return Status::success();
  }

  perdure_test::TemporaryDirectory directory_{perdure_test::on_disk()};
  const std::string& root_ = directory_.path();
};

}  // namespace perdure
