// SPDX-License-Identifier: BSD-3-Clause
//
// Loses nodes of a job whose versions are kept on several levels, and starts it again.
//
//   node_losses [--nodes N] [--scheme TEXT] [--every K] [--steps S] [--trials T | --all]
//               [--drain] [--file] [--two-runs]
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
// What a start gave up for lack of a node must not come back with that node. With --two-runs the
// histories are those of two_runs_histories.hpp.
//
// Prints one JSON line: trials, wrong, lost, refused, refused_rightly, asked, and more. Exit code 1
// if wrong, lost or refused is not 0.
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
#include <string>
#include <vector>

#include "base/testing/thread_group.hpp"
#include "cache/part_directory.hpp"
#include "levels/levels.hpp"
#include "levels/manifest.hpp"
#include "losses_job.hpp"
#include "pool/pool_directory.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"
#include "two_runs_histories.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t spares = 2;

struct Options {
  std::uint32_t nodes = 4;
  std::string scheme = "partner";
  std::uint64_t every = 3;
  std::uint64_t steps = 20;
  std::uint64_t trials = 50;
  bool all = false;
  bool drain = false;
  bool file = false;
  bool two_runs = false;
};

struct Counts {
  std::uint64_t trials = 0;
  std::uint64_t wrong = 0;
  std::uint64_t lost = 0;
  std::uint64_t refused = 0;
  std::uint64_t refused_rightly = 0;
  std::uint64_t asked = 0;
  std::uint64_t kills = 0;
  std::uint64_t given_up = 0;  // that came back by right
  std::uint64_t foreseen = 0;  // starts whose version verify knew before
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

  // A node is away in one start, and had by the next one, which has not got the one that took its
  // place; each start is killed.
  void exchange(std::mt19937_64& random, std::uint64_t calls) {
    begin(options_.scheme);
    const auto node = static_cast<std::uint32_t>(random() % options_.nodes);
    const std::uint64_t first = calls / 3 + random() % (calls / 2);
    const std::uint64_t second = calls / 4 + random() % (calls / 2);
    text_ += ", killed at " + number(first);
    if (!run(first)) return;
    go_away(node);
    job_.nodes[node] = options_.nodes;
    text_ += "; killed at " + number(second);
    if (!run(second)) return;
    come_back(node);
    go_away(options_.nodes);
    job_.nodes[node] = node;
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
    starts_ = {};
    line_ = {};
    went_on_.clear();
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
    job_.start = starts_.next();
    const auto said_before = foreseen(job_, options_.drain);
    const int code = run_job(job_, seen_, log());
    check_foreseen(said_before);
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
    check_line();
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
    if (!options_.drain) line_ = {};
    std::ofstream(root_ + "/shared/file", std::ios::trunc).flush();
    for (const std::uint32_t other : away_) fs::remove_all(path_of(other) + "-away");
  }
  void lose(std::uint32_t nodes) {
    text_ += ", lost";
    for (std::uint32_t node = 0; node < options_.nodes + spares; ++node) {
      if ((nodes >> node & 1) == 0) continue;
      text_ += " " + number(node);
      fs::remove_all(path_of(node));
      went_on_.erase(node);
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
    if (options_.scheme == "off") return lost_ == 0;
    const auto scheme = parse_scheme(options_.scheme);
    std::vector<std::uint32_t> nodes(options_.nodes);
    for (std::uint32_t i = 0; i < options_.nodes; ++i) nodes[i] = i;
    const auto groups = failure_groups(nodes, scheme.value());
    return std::all_of(groups.value().begin(), groups.value().end(), [&](const auto& group) {
      const auto gone = std::count_if(group.begin(), group.end(),
                                      [&](auto member) { return (lost_ >> member & 1) != 0; });
      Scheme its = scheme.value();
      its.group_size = static_cast<std::uint32_t>(group.size());
      return gone <= static_cast<std::ptrdiff_t>(its.losses());
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
  // verify.hpp and restart.hpp agree.
  void check_foreseen(std::optional<std::uint64_t> version) {
    if (!version || seen_.restored == UINT64_MAX) return;
    ++counts.foreseen;
    if (*version == seen_.restored) return;
    wrong("verify foresaw version " + number(*version) + ", restored was " +
          number(seen_.restored));
  }
  // What a start gave up for lack of nodes does not come back beside one of those that went on. If
  // those that were away have all of it by themselves, it does, and where there is a drain that is
  // reported. A later start than that of the line gave up the line itself, rightly, as its nodes
  // were lost; a version that it made and was killed before it acknowledged may be there.
  void check_line() {
    if (seen_.restored == UINT64_MAX) return;
    const Made restored{seen_.restored, seen_.restored_start};
    const bool is_ahead = starts_.is_in(line_, restored);
    if (!is_ahead && !starts_.is_in(restored, line_) && restored.start < line_.start) {
      ++counts.given_up;
      const bool alone = std::ranges::none_of(
          job_.nodes, [this](std::uint32_t node) { return went_on_.contains(node); });
      const bool reported = !options_.drain || said("without these nodes");
      if (!alone || !reported) {
        wrong("restored " + number(restored.version) + " of start " + number(restored.start) +
              ", which start " + number(line_.start) + " gave up");
      }
    }
    starts_.restarted(job_.start, restored);
    if (seen_.acknowledged <= restored.version && !is_ahead) return;
    line_ = restored;
    if (seen_.acknowledged > restored.version) line_ = {seen_.acknowledged, job_.start};
    went_on_ = std::set<std::uint32_t>(job_.nodes.begin(), job_.nodes.end());
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
  // none of this life (group_recovery.hpp, cache.R3). The file has all, so that is the answer.
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
  Starts starts_;
  Made line_;                        // the newest that was acknowledged
  std::set<std::uint32_t> went_on_;  // nodes of the start that made it
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
  for (std::uint64_t i = 0; i < options.trials; ++i) {
    if (i % 4 == 3) {
      losses.exchange(random, calls);
    } else {
      losses.history(random, calls);
    }
  }
}

int run_two(const Options& options, std::uint64_t calls, std::array<Seen*, 2> seen) {
  const perdure_test::TemporaryDirectory directory;
  const std::string levels = "redundancy=" + options.scheme + ";every=" + number(options.every);
  TwoRunsHistories runs(directory / "job", levels, options.nodes, options.steps, seen);
  std::mt19937_64 random(test_seed());
  for (std::uint64_t i = 0; i < options.trials; ++i) runs.history(random, calls);
  const TwoRunsCounts& c = runs.counts;
  std::printf(
      "{\"scheme\": \"%s\", \"nodes\": %u, \"trials\": %llu, \"starts\": %llu, \"kills\": %llu, "
      "\"cut\": %llu, \"beside\": %llu, \"refused_beside\": %llu, \"fenced\": %llu, \"mixed\": "
      "%llu, "
      "\"refused_rightly\": %llu, \"wrong\": %llu, \"refused\": %llu, \"foreseen\": %llu}\n",
      options.scheme.c_str(), 2 * options.nodes, ull(c.trials), ull(c.starts), ull(c.killed),
      ull(c.cut), ull(c.beside), ull(c.refused_beside), ull(c.fenced), ull(c.mixed),
      ull(c.refused_rightly), ull(c.wrong), ull(c.refused), ull(c.foreseen));
  return c.wrong + c.refused == 0 && c.trials > 0 ? 0 : 1;
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
  app.add_flag("--two-runs", options.two_runs,
               "the job is also sent twice, to two sets of nodes with one drain");
  app.add_flag("--all", options.all, "every set of nodes at every call");
  CLI11_PARSE(app, argc, argv);
  void* const shared =
      ::mmap(nullptr, 2 * sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Seen* const seen = static_cast<Seen*>(shared);
  Losses losses(options, *new (seen) Seen{});
  if (options.two_runs)
    return run_two(options, losses.calls_of_a_job(), {seen, new (seen + 1) Seen{}});
  run_trials(options, losses);
  const Counts& c = losses.counts;
  std::printf(
      "{\"scheme\": \"%s\", \"nodes\": %u, \"trials\": %llu, \"kills\": %llu, \"wrong\": "
      "%llu, "
      "\"lost\": %llu, \"refused\": %llu, \"refused_rightly\": %llu, \"asked\": %llu, "
      "\"given_up\": %llu, \"foreseen\": %llu}\n",
      options.scheme.c_str(), options.nodes, ull(c.trials), ull(c.kills), ull(c.wrong), ull(c.lost),
      ull(c.refused), ull(c.refused_rightly), ull(c.asked), ull(c.given_up), ull(c.foreseen));
  return c.wrong + c.lost + c.refused == 0 && c.trials > 0 ? 0 : 1;
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  return perdure::run(argc, argv);
}
