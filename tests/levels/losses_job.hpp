// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose nodes are lost: a process with a thread for each rank, each on a node of its own,
// whose pool's directory is the node. All that it commits says which start of the job made it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/thread_group.hpp"
#include "group_file.hpp"
#include "levels/levels.hpp"
#include "levels/verify.hpp"
#include "mortal_group.hpp"
#include "pool/pool_directory.hpp"

namespace perdure {

namespace fs = std::filesystem;

constexpr int refused_code = 3;
constexpr int wrong_code = 4;

// What the parent learns of a job that was killed.
struct Seen {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> acknowledged;  // newest version whose commit returned anywhere
  std::atomic<std::uint64_t> whole;         // newest that was whole on all ranks
  std::atomic<std::uint64_t> restored;
  std::atomic<std::uint64_t> restored_start;  // which start had committed it
  std::atomic<std::uint64_t> opened;  // 1: the pool is open, and protected again if it was lost
  std::atomic<std::uint64_t> holds;   // 1: it has come to Job::hold_at
  std::atomic<std::uint64_t> go_on;
};

inline std::string number(std::uint64_t value) {
  return std::to_string(value);
}
inline unsigned long long ull(std::uint64_t value) {
  return value;
}

inline void raise(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t before = word.load();
  while (before < value && !word.compare_exchange_weak(before, value)) {
  }
}

struct Job {
  std::uint64_t start = 1;  // its number: what it commits is its own
  std::string root;
  std::string levels;
  std::vector<std::uint32_t> nodes;  // of each rank
  std::uint64_t steps = 12;
  std::uint64_t kill_at = 0;  // 0: never
  std::uint64_t hold_at = 0;  // call at which it waits for Seen::go_on; 0: never
  bool stand_still = false;   // and then all of it stands still, as one that was cut off
  bool file = false;          // a cached file is committed with the pool

  std::string file_path() const { return root + "/shared/file"; }
};

// A version, and which start committed it.
struct Made {
  std::uint64_t version = 0;
  std::uint64_t start = 0;
};

inline std::uint64_t word_of(std::uint32_t rank, const Made& made, std::uint64_t index) {
  return (made.version << 40U) ^ (made.start << 52U) ^ (std::uint64_t{rank} << 32U) ^
         (index * 2654435761U);
}

// Opens the file, which must have the version; an exit code.
inline int open_group_file(Pool& pool, const Job& job, std::uint64_t version,
                           std::unique_ptr<GroupFile>& file) {
  auto opened = GroupFile::open(pool.group(), pool, job.file_path());
  const std::string differs = opened.ok() ? opened.value()->wrong_at(version) : "";
  if (opened.ok() && differs.empty()) {
    file = opened.take();
    return agree(pool.group(), Status::success()).ok() ? 0 : refused_code;
  }
  std::fprintf(stderr, "rank %u: restored %llu, %s%s\n", pool.group().rank(), ull(version),
               opened.status().message().c_str(), differs.c_str());
  return opened.ok() ? wrong_code : refused_code;
}

// The arrays of a rank, more or fewer of them in each version, and of other sizes: of its own, one
// in each mode, and the first one always. In some versions an array is closed: then it has what it
// had in the one before.
class Arrays {
 public:
  static constexpr std::uint64_t arrays_max = 5;

  // Those that the newest version has.
  Status open(Pool& pool) {
    rank_ = pool.group().rank();
    PERDURE_TRY(pool.bind_scalar("arrays are of", held_, sizeof held_));
    for (std::uint64_t i = 0; i < count(); ++i) {
      const ArrayShape* const held = pool.held_shape(name_of(i));
      if (held != nullptr) PERDURE_TRY(open(pool, i, held->extents[0]));
    }
    return Status::success();
  }
  Status change_to(Pool& pool, const Made& made) {
    for (std::uint64_t i = 0; i < count(); ++i) {
      if (is_closed_at(made.version, i)) {
        PERDURE_TRY(close(pool, i, false));
      } else {
        PERDURE_TRY(resize(pool, i, words_at(made, i)));
        held_[i] = made;
      }
    }
    for (const auto& [i, array] : arrays_) store(*array, made, i);
    return Status::success();
  }
  // What no version gets. Nothing is removed for it; while a version is under way its twin arrays
  // stay as they are.
  Status spoil(Pool& pool, const Made& made) {
    for (const auto& [i, array] : arrays_) {
      if (pool.commit_pending() && array->mode() == ArrayMode::twin) continue;
      const std::uint64_t words = std::max<std::uint64_t>(words_at(made, i), 1);
      PERDURE_TRY(pool.before_write(*array));
      PERDURE_TRY(pool.resize_array(*array, {words}, nullptr));
      store(*array, made, i);
    }
    return Status::success();
  }
  bool are_at(const Made& made) const {
    for (std::uint64_t i = 0; i < count(); ++i) {
      const auto found = arrays_.find(i);
      const std::uint64_t expected = last_stored(made.version, i);
      const bool is_own = expected != made.version || held_[i].start == made.start;
      if (held_[i].version != expected || !is_own) return false;
      if ((found != arrays_.end()) != (words_at(held_[i], i) != 0)) return false;
    }
    return std::ranges::all_of(arrays_, [&](const auto& each) {
      const auto& [i, array] = each;
      const auto* const words = reinterpret_cast<const std::uint64_t*>(array->consistent());
      if (array->size_bytes() != 8 * words_at(held_[i], i)) return false;
      for (std::uint64_t k = 0; k < array->size_bytes() / 8; ++k) {
        if (words[k] != word(held_[i], i, k)) return false;
      }
      return true;
    });
  }

 private:
  std::uint64_t count() const { return 2 + rank_ % (arrays_max - 1); }
  static std::string name_of(std::uint64_t i) { return "array " + number(i); }
  std::uint64_t word(const Made& made, std::uint64_t i, std::uint64_t k) const {
    return word_of(rank_, made, 10000 * i + k);
  }
  // 0: the version has not got it. Most fit where it was, some are beyond it.
  std::uint64_t words_at(const Made& made, std::uint64_t i) const {
    if (made.version == 0) return 0;
    const std::uint64_t drawn = word(made, i, 9999) * 0x9e3779b97f4a7c15U >> 33U;
    if (i > 0 && drawn % 4 == 0) return 0;
    const std::uint64_t most = drawn % 7 == 0 ? 3000 : 90;
    return (i == 0 ? 700 : 1) + drawn / 7 % most;
  }
  bool is_closed_at(std::uint64_t version, std::uint64_t i) const {
    const std::uint64_t drawn = word({version, 0}, i, 9998) * 0x9e3779b97f4a7c15U >> 33U;
    return i > 0 && version > 0 && drawn % 5 == 0;
  }
  std::uint64_t last_stored(std::uint64_t version, std::uint64_t i) const {
    while (is_closed_at(version, i)) --version;
    return version;
  }
  void store(VersionedArray& array, const Made& made, std::uint64_t i) const {
    auto* const words = reinterpret_cast<std::uint64_t*>(array.working());
    for (std::uint64_t k = 0; k < array.size_bytes() / 8; ++k) words[k] = word(made, i, k);
  }
  Status close(Pool& pool, std::uint64_t i, bool erase) {
    const auto found = arrays_.find(i);
    if (found == arrays_.end()) return Status::success();
    PERDURE_TRY(pool.close_array(found->second, erase));
    arrays_.erase(found);
    return Status::success();
  }
  // 0: it goes.
  Status resize(Pool& pool, std::uint64_t i, std::uint64_t words) {
    const ArrayShape* const held = pool.held_shape(name_of(i));
    if (!arrays_.contains(i) && held != nullptr) PERDURE_TRY(open(pool, i, held->extents[0]));
    if (words == 0) return close(pool, i, true);
    if (!arrays_.contains(i)) return open(pool, i, words);
    return pool.resize_array(*arrays_[i], {words}, nullptr);
  }
  Status open(Pool& pool, std::uint64_t i, std::uint64_t words) {
    constexpr ArrayMode modes[] = {ArrayMode::copy, ArrayMode::twin, ArrayMode::log};
    const ArrayShape shape{ArrayType::int64, modes[i % 3], true, {words}};
    ArrayOptions options;
    options.of_program = true;
    PERDURE_TRY_ASSIGN(arrays_[i], pool.open_array(name_of(i), shape, options));
    return Status::success();
  }

  std::uint32_t rank_ = 0;
  std::map<std::uint64_t, VersionedArray*> arrays_;
  Made held_[arrays_max]{};  // which made the contents of each that a version has
};

// One rank refuses; false: it was a version all the same.
inline bool fails_to_commit(Pool& pool, const Made& made, Arrays& arrays) {
  if (!arrays.spoil(pool, {made.version + 1000, made.start}).ok()) return false;
  const bool refuses = made.version % pool.group().ranks() == pool.group().rank();
  const Status ready = refuses ? Status(Code::io_error, "refused") : Status::success();
  return !pool.commit(ready).ok();
}

// Some versions in two steps, between which arrays get other sizes and contents.
inline Result<std::uint64_t> commit(Pool& pool, const Made& made, Arrays& arrays, bool has_file) {
  if (has_file || made.version % 3 != 0) return pool.commit();
  const Status begun = pool.commit_begin();
  const Status spoilt =
      begun.ok() ? arrays.spoil(pool, {made.version + 2000, made.start}) : Status::success();
  auto committed = pool.commit_wait();
  PERDURE_TRY(spoilt);
  return committed;
}

// Changes arrays and file, and commits; an exit code.
inline int run_steps(const Job& job, Seen& seen, Levels& levels, Pool& pool, Made& made,
                     Arrays& arrays, GroupFile* file) {
  const auto refuse = [&](const Status& status) {
    std::fprintf(stderr, "rank %u: %s\n", pool.group().rank(), status.message().c_str());
    return refused_code;
  };
  while (made.version < job.steps) {
    made = {made.version + 1, job.start};
    if (made.version % 4 == 0 && !fails_to_commit(pool, made, arrays)) return wrong_code;
    if (Status changed = arrays.change_to(pool, made); !changed.ok()) return refuse(changed);
    if (file != nullptr) {
      if (Status changed = file->change_to(made.version); !changed.ok()) return refuse(changed);
    }
    const auto committed = commit(pool, made, arrays, file != nullptr);
    if (committed.status().code() == Code::peer_failed) return refused_code;
    if (!committed.ok()) return refuse(committed.status());
    if (committed.value() != made.version) return wrong_code;
    raise(seen.acknowledged, made.version);
    raise(seen.whole, levels.whole().value_or(VersionId{}).version);
  }
  return 0;
}

// The directory that is the rank's node.
inline std::string make_node(const Job& job, std::uint32_t rank) {
  std::string node = job.root + "/node-" + number(job.nodes[rank]);
  fs::create_directories(node);
  fs::permissions(node, fs::perms::owner_all);
  return node;
}

inline OpenOptions options_of_losses(Levels& levels) {
  OpenOptions options;
  options.job_name = "losses";
  options.geometry = {16384, 4096, 4096, 2};
  options.pool.taker = &levels;
  return options;
}

inline int refused(const Group& group, const Status& status) {
  if (status.code() != Code::peer_failed) {
    std::fprintf(stderr, "rank %u: %s\n", group.rank(), status.message().c_str());
  }
  return refused_code;
}

// One rank; an exit code.
inline int run_rank(Group& group, const Job& job, Seen& seen) {
  const auto refuse = [&](const Status& status) { return refused(group, status); };
  const std::string directory = make_node(job, group.rank()) + "/pool";
  auto settings = parse_level_settings(job.levels);
  auto levels = Levels::create(group, directory, settings.take(), Trust::own);
  if (!levels.ok()) return refuse(levels.status());
  auto pool = levels.value()->open(options_of_losses(*levels.value()));
  if (!pool.ok()) return refuse(pool.status());
  const auto note_opened = [&] {
    if (group.rank() != 0) return;
    seen.acknowledged = pool.value()->status().version;
    seen.whole = levels.value()->whole().value_or(VersionId{}).version;
    seen.opened = 1;
  };
  if (!job.file) note_opened();
  Made made;
  Arrays arrays;
  if (Status had = arrays.open(*pool.value()); !had.ok()) return refuse(had);
  if (Status bound = pool.value()->bind_scalar("version", &made, sizeof made); !bound.ok()) {
    return refuse(bound);
  }
  const auto restored = pool.value()->restart();
  if (!restored.ok()) return refuse(restored.status());
  const auto wrong = [&](const char* what, std::uint64_t value) {
    std::fprintf(stderr, "rank %u: restored %llu, %s %llu\n", group.rank(), ull(restored.value()),
                 what, ull(value));
    return wrong_code;
  };
  if (made.version != restored.value()) return wrong("but the scalar says", made.version);
  if (!arrays.are_at(made)) return wrong("but wrong are the arrays of", made.version);
  std::uint64_t all[] = {made.version, ~made.version, made.start, ~made.start};
  if (!group.all_max(all).ok()) return refused_code;
  if (all[0] != ~all[1]) return wrong("others have", all[0]);
  if (all[2] != ~all[3]) return wrong("others have it of start", all[2]);
  std::unique_ptr<GroupFile> file;
  if (job.file) {
    if (const int code = open_group_file(*pool.value(), job, made.version, file); code != 0)
      return code;
    note_opened();
  }
  // From here on what counts is the line of this version.
  if (group.rank() == 0) {
    seen.restored_start = made.start;
    seen.restored = seen.acknowledged = made.version;
  }
  const int code = run_steps(job, seen, *levels.value(), *pool.value(), made, arrays, file.get());
  if (code != 0) return code;
  if (file) {
    if (Status closed = file->close(); !closed.ok()) return refuse(closed);
    const bool same =
        bytes_of_file(job.file_path()) == GroupFileContents{group.ranks()}.at(made.version);
    if (!same) return wrong("but at last the file itself is wrong at", made.version);
  }
  levels.value()->close();
  return 0;
}

// A process that runs the job; what ranks say goes to `log`.
inline pid_t start_job(const Job& job, Seen& seen, const std::string& log) {
  seen.calls = seen.opened = seen.holds = seen.go_on = seen.restored_start = 0;
  seen.restored = UINT64_MAX;
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (std::freopen(log.c_str(), "w", stderr) == nullptr) ::_exit(1);
  std::vector<std::uint32_t> nodes(job.nodes.size());  // numbered by rank, as MPI's are
  std::iota(nodes.begin(), nodes.end(), 0);
  ThreadJob threads(nodes);
  std::atomic<int> code{0};
  const auto hold = [&] {
    seen.holds = 1;
    if (job.stand_still) ::raise(SIGSTOP);
    while (seen.go_on == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  threads.run([&](ThreadGroup& own) {
    MortalGroup group(own, seen.calls, job.kill_at);
    if (job.hold_at != 0) group.call_at(job.hold_at, hold);
    const int rank_code = run_rank(group, job, seen);
    if (rank_code == 0) return;
    int none = 0;
    code.compare_exchange_strong(none, rank_code);
    threads.end();
  });
  std::fflush(stderr);
  ::_exit(code);
}

inline int code_of_job(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline int run_job(const Job& job, Seen& seen, const std::string& log) {
  return code_of_job(start_job(job, seen, log));
}

// The version that `perdure pool verify` says a start would find; none: it says nothing.
inline std::optional<std::uint64_t> foreseen(const Job& job, bool drain) {
  std::vector<std::string> directories;
  for (const std::uint32_t node : job.nodes) {
    const std::string path = job.root + "/node-" + number(node) + "/pool";
    if (fs::exists(path)) directories.push_back(path);
  }
  VerifyOptions options;
  if (drain) options.drains.push_back(job.root + "/drain");
  const auto report = verify_levels(directories, options);
  if (!report.ok()) return std::nullopt;
  return report.value().now.id.version;
}

// What each start had committed it made from what another one had: a tree.
class Starts {
 public:
  // The number of the next one.
  std::uint64_t next() { return ++last_; }
  void restarted(std::uint64_t start, const Made& from) { from_[start] = from; }
  // Whether `one` is in the history of `other`.
  bool is_in(const Made& one, Made other) const {
    while (one.start != other.start) {
      const auto found = from_.find(other.start);
      if (found == from_.end()) return one.version == 0;
      other = found->second;
    }
    return one.version <= other.version;
  }

 private:
  std::map<std::uint64_t, Made> from_;
  std::uint64_t last_ = 0;
};

}  // namespace perdure
