// SPDX-License-Identifier: BSD-3-Clause
//
// Loses nodes of a job whose versions are kept on several levels, and starts it again.
//
//   node_losses [--nodes N] [--scheme TEXT] [--every K] [--steps S] [--trials T | --all]
//               [--drain] [--file]
//
// A job is a process with a thread for each rank, each on a node of its own, whose pool's directory
// is the node. It ends at the n-th call into its group, as if all its processes had been killed at
// once; then the directories of some nodes are removed, and the job is started again, perhaps with
// its ranks on other nodes, perhaps killed again while it comes back, with another node lost. The
// last start must find the version that was promised, with its contents, on all ranks, or refuse
// where more was lost than the scheme bears. With --file a cached file is committed with the pool,
// whose parts are on the nodes and which itself is not lost: it must have that version too, or the
// job may ask what is to become of parts, and must end well when they are discarded.
//
// Prints one JSON line: trials, wrong, lost, refused, refused_rightly, asked. Exit code 1 if wrong,
// lost or refused is not 0.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/testing/thread_group.hpp"
#include "cache/part_directory.hpp"
#include "group_file.hpp"
#include "levels/levels.hpp"
#include "levels/manifest.hpp"
#include "mortal_group.hpp"
#include "pool/pool_directory.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t words_of_array = 700;
constexpr std::uint32_t spares = 2;
constexpr int refused_code = 3;
constexpr int wrong_code = 4;

// What the parent learns of a job that was killed.
struct Seen {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> acknowledged;  // newest version whose commit returned anywhere
  std::atomic<std::uint64_t> whole;         // newest that was whole on all ranks
  std::atomic<std::uint64_t> restored;
  std::atomic<std::uint64_t> opened;  // 1: the pool is open, and protected again if it was lost
};

std::string number(std::uint64_t value) {
  return std::to_string(value);
}
unsigned long long ull(std::uint64_t value) {
  return value;
}

void raise(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t before = word.load();
  while (before < value && !word.compare_exchange_weak(before, value)) {
  }
}

struct Job {
  std::string root;
  std::string levels;
  std::vector<std::uint32_t> nodes;  // of each rank
  std::uint64_t steps = 12;
  std::uint64_t kill_at = 0;  // 0: never
  bool file = false;          // a cached file is committed with the pool

  std::string file_path() const { return root + "/shared/file"; }
};

std::uint64_t word_of(std::uint32_t rank, std::uint64_t version, std::uint64_t index) {
  return (version << 40U) ^ (std::uint64_t{rank} << 32U) ^ (index * 2654435761U);
}

// Opens the file, which must have the version; an exit code.
int open_group_file(Pool& pool, const Job& job, std::uint64_t version,
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

// Arrays that only this rank has: as many as its number, in two modes.
class Blocks {
 public:
  Status open(Pool& pool) {
    rank_ = pool.group().rank();
    for (std::uint64_t i = 0; i < rank_; ++i) {
      const ArrayMode mode = i % 2 == 0 ? ArrayMode::copy : ArrayMode::twin;
      const ArrayShape shape{ArrayType::int64, mode, true, {40 + 9 * i}};
      PERDURE_TRY_ASSIGN(VersionedArray * array, pool.open_array("block " + number(i), shape, {}));
      arrays_.push_back(array);
    }
    return Status::success();
  }
  void change_to(std::uint64_t version) {
    for (VersionedArray* array : arrays_) {
      auto* words = reinterpret_cast<std::uint64_t*>(array->working());
      for (std::uint64_t k = 0; k < array->size_bytes() / 8; ++k) {
        words[k] = word_of(rank_, version, index_of(*array, k));
      }
    }
  }
  bool are_at(std::uint64_t version) const {
    bool same = true;
    for (const VersionedArray* array : arrays_) {
      const auto* words = reinterpret_cast<const std::uint64_t*>(array->consistent());
      for (std::uint64_t k = 0; k < array->size_bytes() / 8; ++k) {
        same = same && words[k] == word_of(rank_, version, index_of(*array, k));
      }
    }
    return same;
  }

 private:
  static std::uint64_t index_of(const VersionedArray& array, std::uint64_t k) {
    return array.size_bytes() * 1000 + k;
  }
  std::uint32_t rank_ = 0;
  std::vector<VersionedArray*> arrays_;
};

// Changes arrays and file, and commits; an exit code.
int run_steps(const Job& job, Seen& seen, Levels& levels, Pool& pool, std::uint64_t& version,
              std::span<std::uint64_t> data, Blocks& blocks, GroupFile* file) {
  const auto refuse = [&](const Status& status) {
    std::fprintf(stderr, "rank %u: %s\n", pool.group().rank(), status.message().c_str());
    return refused_code;
  };
  while (version < job.steps) {
    ++version;
    for (std::uint64_t i = 0; i < data.size(); ++i) {
      data[i] = word_of(pool.group().rank(), version, i);
    }
    blocks.change_to(version);
    const Status changed = file == nullptr ? Status::success() : file->change_to(version);
    if (!changed.ok()) return refuse(changed);
    const auto committed = pool.commit();
    if (committed.status().code() == Code::peer_failed) return refused_code;
    if (!committed.ok()) return refuse(committed.status());
    if (committed.value() != version) return wrong_code;
    raise(seen.acknowledged, version);
    raise(seen.whole, levels.whole().value_or(VersionId{}).version);
  }
  return 0;
}

// The directory that is the rank's node.
std::string make_node(const Job& job, std::uint32_t rank) {
  std::string node = job.root + "/node-" + number(job.nodes[rank]);
  fs::create_directories(node);
  fs::permissions(node, fs::perms::owner_all);
  return node;
}

// One rank; an exit code.
int run_rank(Group& group, const Job& job, Seen& seen) {
  const auto refuse = [&](const Status& status) {
    if (status.code() != Code::peer_failed) {
      std::fprintf(stderr, "rank %u: %s\n", group.rank(), status.message().c_str());
    }
    return refused_code;
  };
  const std::string directory = make_node(job, group.rank()) + "/pool";
  auto settings = parse_level_settings(job.levels);
  auto levels = Levels::create(group, directory, settings.take(), Trust::own);
  if (!levels.ok()) return refuse(levels.status());
  OpenOptions options;
  options.job_name = "losses";
  options.lock_wait_ms = 0;
  options.geometry = {16384, 4096, 4096, 2};
  options.pool.taker = levels.value().get();
  auto pool = levels.value()->open(options);
  if (!pool.ok()) return refuse(pool.status());
  const auto note_opened = [&] {
    if (group.rank() != 0) return;
    seen.acknowledged = pool.value()->status().version;
    seen.whole = levels.value()->whole().value_or(VersionId{}).version;
    seen.opened = 1;
  };
  if (!job.file) note_opened();
  // Lengths differ between ranks, and so do the arrays.
  const std::uint64_t words = words_of_array + 131 * group.rank();
  auto array =
      pool.value()->open_array("u", {ArrayType::int64, ArrayMode::copy, true, {words}}, {});
  if (!array.ok()) return refuse(array.status());
  std::uint64_t version = 0;
  Blocks blocks;
  if (Status made = blocks.open(*pool.value()); !made.ok()) return refuse(made);
  if (Status bound = pool.value()->bind_scalar("version", &version, sizeof version); !bound.ok()) {
    return refuse(bound);
  }
  const auto restored = pool.value()->restart();
  if (!restored.ok()) return refuse(restored.status());
  auto* const data = reinterpret_cast<std::uint64_t*>(array.value()->working());
  const auto wrong = [&](const char* what, std::uint64_t value) {
    std::fprintf(stderr, "rank %u: restored %llu, %s %llu\n", group.rank(), ull(restored.value()),
                 what, ull(value));
    return wrong_code;
  };
  if (version != restored.value()) return wrong("but the scalar says", version);
  for (std::uint64_t i = 0; version > 0 && i < words; ++i) {
    if (data[i] != word_of(group.rank(), version, i)) return wrong("but wrong is word", i);
  }
  if (version > 0 && !blocks.are_at(version)) return wrong("but wrong are blocks of", version);
  std::uint64_t both[] = {version, ~version};
  if (!group.all_max(both).ok() || both[0] != ~both[1]) return wrong("others have", both[0]);
  std::unique_ptr<GroupFile> file;
  if (job.file) {
    if (const int code = open_group_file(*pool.value(), job, version, file); code != 0) return code;
    note_opened();
  }
  // From here on what counts is the line of this version.
  if (group.rank() == 0) seen.restored = seen.acknowledged = version;
  const int code = run_steps(job, seen, *levels.value(), *pool.value(), version, {data, words},
                             blocks, file.get());
  if (code != 0) return code;
  if (file) {
    if (Status closed = file->close(); !closed.ok()) return refuse(closed);
    const bool same =
        bytes_of_file(job.file_path()) == GroupFileContents{group.ranks()}.at(version);
    if (!same) return wrong("but at last the file itself is wrong at", version);
  }
  levels.value()->close();
  return 0;
}

// The exit code of a job in a process of its own; what ranks say goes to `log`.
int run_job(const Job& job, Seen& seen, const std::string& log) {
  seen.calls = seen.opened = 0;
  seen.restored = UINT64_MAX;
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen(log.c_str(), "w", stderr) == nullptr) ::_exit(1);
    std::vector<std::uint32_t> nodes(job.nodes.size());  // numbered by rank, as MPI's are
    std::iota(nodes.begin(), nodes.end(), 0);
    ThreadJob threads(nodes);
    std::atomic<int> code{0};
    threads.run([&](ThreadGroup& own) {
      MortalGroup group(own, seen.calls, job.kill_at);
      const int rank_code = run_rank(group, job, seen);
      if (rank_code == 0) return;
      int none = 0;
      code.compare_exchange_strong(none, rank_code);
      threads.end();
    });
    std::fflush(stderr);
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Options {
  std::uint32_t nodes = 4;
  std::string scheme = "partner";
  std::uint64_t every = 3;
  std::uint64_t steps = 20;
  std::uint64_t trials = 50;
  bool all = false;
  bool drain = false;
  bool file = false;
};

struct Counts {
  std::uint64_t trials = 0;
  std::uint64_t wrong = 0;
  std::uint64_t lost = 0;
  std::uint64_t refused = 0;
  std::uint64_t refused_rightly = 0;
  std::uint64_t asked = 0;
  std::uint64_t kills = 0;
};

class Losses {
 public:
  Losses(const Options& options, Seen& seen) : options_(options), seen_(seen) {}

  // How many calls an undisturbed job makes.
  std::uint64_t calls_of_a_job() {
    reset();
    Job job = fresh_job();
    const int code = run_job(job, seen_, log());
    if (code != 0) complain("the undisturbed job ended with " + std::to_string(code));
    return seen_.calls;
  }

  // The job is killed at call `kill_at` and loses the nodes of `lost`. Its ranks move on by `turn`.
  void trial(std::uint64_t kill_at, std::uint32_t lost, std::uint32_t turn) {
    begin(options_.scheme + ", kill at " + number(kill_at) + ", lost " + number(lost) +
          ", turned by " + number(turn));
    if (!run(kill_at)) return;
    lose(lost);
    std::rotate(job_.nodes.begin(), job_.nodes.begin() + turn % options_.nodes, job_.nodes.end());
    (void)run(0);
  }

  // Several starts, each but the last killed, on nodes that change. Between them nodes are lost, or
  // go away with what they have and come back later.
  void history(std::mt19937_64& random, std::uint64_t calls) {
    const auto draw = [&](std::uint64_t below) {
      return static_cast<std::uint32_t>(random() % below);
    };
    begin(options_.scheme);
    const std::uint32_t starts = 2 + draw(4);
    for (std::uint32_t i = 1; i < starts; ++i) {
      const std::uint64_t kill_at = 1 + draw(i == 1 || draw(2) == 0 ? calls : calls / 2);
      text_ += "; nodes";
      for (const std::uint32_t node : job_.nodes) text_ += " " + number(node);
      text_ += " killed at " + number(kill_at);
      if (!run(kill_at)) return;
      for (std::uint32_t node = 0; node < names(); ++node) {
        if (away_.contains(node) && draw(2) == 0) come_back(node);
      }
      const std::uint32_t count = draw(3) == 0 ? draw(options_.nodes) : draw(2);
      for (std::uint32_t gone = 0; gone < count; ++gone) {
        const std::uint32_t node = job_.nodes[draw(options_.nodes)];
        if (draw(3) == 0 && away_.size() < spares) {
          go_away(node);
        } else {
          lose(1U << node);
        }
      }
      place(random, draw(3) == 0);
    }
    text_ += "; at last on";
    for (const std::uint32_t node : job_.nodes) text_ += " " + number(node);
    (void)run(0);
  }

  Counts counts;

 private:
  std::string log() const { return root_ + "/log"; }
  void reset() {
    fs::remove_all(root_);
    fs::create_directories(root_ + "/shared");
    std::ofstream(root_ + "/shared/file").flush();
    seen_.acknowledged = seen_.whole = seen_.restored = 0;
    lost_ = 0;
    away_.clear();
    job_ = fresh_job();
    before_ = job_.nodes;
  }
  void begin(const std::string& text) {
    reset();
    ++counts.trials;
    text_ = text;
  }
  std::uint32_t names() const { return options_.nodes + spares; }
  std::string path_of(std::uint32_t node) const { return root_ + "/node-" + number(node); }

  // One start of the job. False: there is nothing more to try.
  bool run(std::uint64_t kill_at) {
    job_.kill_at = kill_at;
    const bool there = holds_job([](std::uint32_t) { return true; });
    if (there && !holds_job([&](std::uint32_t node) { return is_used(node); })) return false;
    // What nodes have that it does not see counts as lost: bringing back may give it up.
    for (std::uint32_t rank = 0; rank < options_.nodes; ++rank) {
      if (!is_used(before_[rank])) lost_ |= 1U << rank;
    }
    const std::uint64_t least = promised();
    const int code = run_job(job_, seen_, log());
    if (code == refused_code) {
      note_refusal(least);
      return false;
    }
    if (code != 0 && (code != killed_code || kill_at == 0)) {
      wrong("the job ended with " + number(static_cast<unsigned>(code)));
      return false;
    }
    if (code == killed_code) ++counts.kills;
    if (said("there is no redundancy")) text_ += ", without redundancy from then on";
    check_restored(least);
    if (seen_.opened != 0) {
      lost_ = 0;
      before_ = job_.nodes;
    }
    return true;
  }

  bool is_used(std::uint32_t node) const {
    return std::find(job_.nodes.begin(), job_.nodes.end(), node) != job_.nodes.end();
  }
  template <typename Nodes>
  bool holds_job(const Nodes& nodes) const {
    for (std::uint32_t node = 0; node < names(); ++node) {
      if (nodes(node) && fs::exists(path_of(node) + "/pool/job")) return true;
    }
    return false;
  }
  // Where its ranks are next: as before, less what is away, or anywhere.
  void place(std::mt19937_64& random, bool anywhere) {
    std::vector<std::uint32_t> there;
    for (std::uint32_t node = 0; node < names(); ++node) {
      if (!away_.contains(node)) there.push_back(node);
    }
    std::shuffle(there.begin(), there.end(), random);
    if (anywhere) {
      job_.nodes.assign(there.begin(), there.begin() + options_.nodes);
      return;
    }
    for (std::uint32_t& node : job_.nodes) {
      for (std::size_t i = 0; away_.contains(node); ++i) {
        if (!is_used(there[i])) node = there[i];
      }
    }
  }

  Job fresh_job() const {
    Job job;
    job.root = root_;
    job.levels = "redundancy=" + options_.scheme + ";every=" + std::to_string(options_.every);
    if (options_.drain) job.levels += ";drain=" + root_ + "/drain";
    for (std::uint32_t node = 0; node < options_.nodes; ++node) job.nodes.push_back(node);
    job.steps = options_.steps;
    job.file = options_.file;
    return job;
  }
  // Ranks whose files may have been there.
  void note_lost(std::uint32_t node) {
    for (std::uint32_t rank = 0; rank < options_.nodes; ++rank) {
      if (before_[rank] == node || job_.nodes[rank] == node) lost_ |= 1U << rank;
    }
    if (holds_job([](std::uint32_t) { return true; })) return;
    // Nobody knows then that there was a pool, and who comes back is of another job.
    seen_.acknowledged = seen_.whole = 0;
    std::ofstream(root_ + "/shared/file", std::ios::trunc).flush();
    for (const std::uint32_t other : away_) fs::remove_all(path_of(other) + "-away");
  }
  void lose(std::uint32_t nodes) {
    text_ += ", lost";
    for (std::uint32_t node = 0; node < options_.nodes + spares; ++node) {
      if ((nodes >> node & 1) == 0) continue;
      text_ += " " + number(node);
      fs::remove_all(path_of(node));
      note_lost(node);
    }
  }
  void go_away(std::uint32_t node) {
    if (!fs::exists(path_of(node))) return;
    text_ += ", away " + number(node);
    fs::rename(path_of(node), path_of(node) + "-away");
    away_.insert(node);
    note_lost(node);
  }
  void come_back(std::uint32_t node) {
    text_ += ", back " + number(node);
    away_.erase(node);
    if (fs::exists(path_of(node) + "-away")) fs::rename(path_of(node) + "-away", path_of(node));
  }
  bool said(const std::string& words) const {
    const auto bytes = bytes_of_file(log());
    return std::string(bytes.begin(), bytes.end()).find(words) != std::string::npos;
  }
  void complain(const std::string& what) const {
    std::fprintf(stderr, "%s: %s\n", text_.c_str(), what.c_str());
    std::ifstream said(log());
    for (std::string line; std::getline(said, line);) std::fprintf(stderr, "  %s\n", line.c_str());
  }
  // Whether redundancy bears what was lost since the pool was last opened.
  bool borne() const {
    const auto scheme = parse_scheme(options_.scheme);
    std::vector<std::uint32_t> nodes(options_.nodes);
    for (std::uint32_t i = 0; i < options_.nodes; ++i) nodes[i] = i;
    const auto groups = failure_groups(nodes, scheme.value());
    return std::all_of(groups.value().begin(), groups.value().end(), [&](const auto& group) {
      const auto gone = std::count_if(group.begin(), group.end(),
                                      [&](auto member) { return (lost_ >> member & 1) != 0; });
      return gone <= static_cast<std::ptrdiff_t>(scheme.value().losses);
    });
  }
  // The version that a restart must not fall short of.
  std::uint64_t promised() const {
    const std::uint64_t on_nodes = borne() ? seen_.whole.load() : 0;
    return std::max(lost_ == 0 ? seen_.acknowledged.load() : on_nodes, drained());
  }
  std::uint64_t drained() const {
    if (!options_.drain) return 0;
    const auto found = find_versions(place_of_pool(root_ + "/drain", "pool"), std::nullopt);
    return found.ok() && !found.value().manifests.empty() ? found.value().manifests[0].id.version
                                                          : 0;
  }
  void check_restored(std::uint64_t least) {
    if (seen_.restored >= least) return;  // also if it was killed before it knew
    ++counts.lost;
    complain("restored " + number(seen_.restored) + ", promised was " + number(least) +
             " after the loss of ranks " + number(lost_));
  }
  // What `perdure cache discard` does on the nodes of the job.
  bool discard_parts() const {
    return std::ranges::all_of(job_.nodes, [this](std::uint32_t node) {
      const std::string pool = path_of(node) + "/pool";
      const auto found = list_parts(pool);
      return found.ok() && std::ranges::all_of(found.value(), [&pool](const FoundPart& part) {
               return discard_part(pool, part.file).ok();
             });
    });
  }
  // A part of an older life, or of a start that was killed while it opened the file, when there is
  // none of this life (group_recovery.hpp, R3). The file has all, so that is the answer.
  bool ends_if_parts_are_discarded(std::uint64_t least) {
    if (!said("`perdure cache discard`") || !discard_parts()) return false;
    job_.kill_at = 0;
    return run_job(job_, seen_, log()) == 0 && seen_.restored >= least;
  }
  void note_refusal(std::uint64_t least) {
    if (lost_ != 0 && least == 0) {
      ++counts.refused_rightly;
      return;
    }
    complain("refused, promised was " + number(least));
    if (ends_if_parts_are_discarded(least)) {
      ++counts.asked;
    } else {
      ++counts.refused;
      complain("nor did it end when its parts were discarded");
    }
  }
  void wrong(const std::string& what) {
    ++counts.wrong;
    complain(what);
  }
  const Options& options_;
  Seen& seen_;
  perdure_test::TemporaryDirectory directory_;
  const std::string root_ = directory_ / "job";
  std::string text_;
  Job job_;
  std::vector<std::uint32_t> before_;  // where its ranks were when the pool was last opened
  std::uint32_t lost_ = 0;             // ranks whose node was lost since
  std::set<std::uint32_t> away_;
};

// Every set of lost nodes at every call, or some of them.
void run_trials(const Options& options, Losses& losses) {
  const std::uint64_t calls = losses.calls_of_a_job();
  const std::uint32_t sets = 1U << options.nodes;
  if (options.all) {
    for (std::uint64_t kill_at = 1; kill_at <= calls; ++kill_at) {
      for (std::uint32_t lost = 0; lost < sets; ++lost) {
        losses.trial(kill_at, lost, lost % options.nodes);
      }
    }
    return;
  }
  std::mt19937_64 random(test_seed());
  for (std::uint64_t i = 0; i < options.trials; ++i) losses.history(random, calls);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Loses nodes of a job and starts it again");
  app.add_option("--nodes", options.nodes, "nodes, each of one rank")->check(CLI::Range(2, 12));
  app.add_option("--scheme", options.scheme, "partner, xor:G or rs:K+M");
  app.add_option("--every", options.every, "versions between those that are taken");
  app.add_option("--steps", options.steps, "commits of a job");
  app.add_option("--trials", options.trials, "how many, at random");
  app.add_flag("--drain", options.drain, "versions are also drained to a directory that stays");
  app.add_flag("--file", options.file, "a cached file is committed with the pool");
  app.add_flag("--all", options.all, "every set of nodes at every call");
  CLI11_PARSE(app, argc, argv);
  void* const shared =
      ::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Losses losses(options, *new (shared) Seen{});
  run_trials(options, losses);
  const Counts& c = losses.counts;
  std::printf(
      "{\"scheme\": \"%s\", \"nodes\": %u, \"trials\": %llu, \"kills\": %llu, \"wrong\": "
      "%llu, "
      "\"lost\": %llu, \"refused\": %llu, \"refused_rightly\": %llu, \"asked\": %llu}\n",
      options.scheme.c_str(), options.nodes, ull(c.trials), ull(c.kills), ull(c.wrong), ull(c.lost),
      ull(c.refused), ull(c.refused_rightly), ull(c.asked));
  return c.wrong + c.lost + c.refused == 0 && c.trials > 0 ? 0 : 1;
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  return perdure::run(argc, argv);
}
