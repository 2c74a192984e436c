// SPDX-License-Identifier: BSD-3-Clause
//
// Histories of one job that is sent twice, to two sets of nodes with one drain.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "losses_job.hpp"

namespace perdure {

struct TwoRunsCounts {
  std::uint64_t trials = 0;
  std::uint64_t starts = 0;
  std::uint64_t killed = 0;
  std::uint64_t cut = 0;              // starts that stood still while the other one started
  std::uint64_t beside = 0;           // that went on meanwhile
  std::uint64_t refused_beside = 0;   // of two starts at a time
  std::uint64_t fenced = 0;           // starts that lost the drain while they lived
  std::uint64_t mixed = 0;            // on nodes of both
  std::uint64_t refused_rightly = 0;  // after a loss of nodes
  std::uint64_t wrong = 0;  // bytes of several starts, or of others than were acknowledged
  std::uint64_t refused = 0;
  std::uint64_t foreseen = 0;  // starts whose version verify knew before
};

// Judged is what holds whoever is how fast: a start on a set of nodes that is whole has what was
// acknowledged there; each has the bytes of one start alone; of two that live at a time one is
// refused or loses the drain.
class TwoRunsHistories {
 public:
  TwoRunsHistories(std::string root, std::string levels, std::uint32_t nodes, std::uint64_t steps,
                   std::array<Seen*, 2> seen)
      : root_(std::move(root)),
        levels_(std::move(levels)),
        count_(nodes),
        steps_(steps),
        seen_(seen) {}

  void history(std::mt19937_64& random, std::uint64_t calls) {
    reset();
    ++counts.trials;
    const auto draw = [&](std::uint64_t below) { return random() % below; };
    const auto moment = [&] { return 1 + draw(calls + calls / 8); };  // also after its end
    for (std::uint64_t left = 3 + draw(4); left > 0; --left) {
      const std::uint32_t set = draw(2) == 0 ? 0 : 1;
      switch (draw(6)) {
        case 0:
        case 1:
          two(set, draw(2) == 0, moment(), moment(), moment());
          break;
        case 2:
          mixed(random(), moment());
          break;
        case 3:
          lose(set, static_cast<std::uint32_t>(draw(count_)), draw(3) == 0);
          [[fallthrough]];
        default:
          alone(set, moment());
      }
    }
    for (const std::uint32_t set : {0U, 1U}) alone(set, 0);
  }

  TwoRunsCounts counts;

 private:
  // Nodes, and what was acknowledged on them.
  struct Set {
    std::vector<std::uint32_t> nodes;
    bool whole = true;
    Made acknowledged;
  };
  struct Running {
    Job job;
    Set* set = nullptr;  // null: nodes of both
    Seen* seen = nullptr;
    std::string log;
    pid_t child = 0;
  };

  void reset() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    text_.clear();
    starts_ = {};
    for (std::uint32_t set = 0; set < 2; ++set) {
      sets_[set] = {};
      for (std::uint32_t i = 0; i < count_; ++i) sets_[set].nodes.push_back(set * count_ + i);
    }
  }

  Running start(const std::vector<std::uint32_t>& nodes, Set* set, std::uint64_t kill_at,
                std::uint64_t hold_at = 0, bool stand_still = false) {
    Running running;
    running.job.start = starts_.next();
    running.job.root = root_;
    running.job.levels = levels_ + ";lease=1s;drain=" + root_ + "/drain";
    running.job.nodes = nodes;
    running.job.steps = steps_;
    running.job.kill_at = kill_at;
    running.job.hold_at = hold_at;
    running.job.stand_still = stand_still;
    running.set = set;
    running.seen = seen_[hold_at == 0 ? 0 : 1];
    running.log = root_ + "/log-" + number(running.job.start);
    running.seen->acknowledged = running.seen->whole = 0;
    ++counts.starts;
    text_ += "; start " + number(running.job.start) + " on";
    for (const std::uint32_t each : nodes) text_ += " " + number(each);
    if (kill_at != 0) text_ += " killed at " + number(kill_at);
    if (hold_at != 0) text_ += (stand_still ? " cut at " : " waits at ") + number(hold_at);
    running.child = start_job(running.job, *running.seen, running.log);
    return running;
  }

  // What it found, and what it had acknowledged by its end. `beside`: another one may have lived.
  void end(const Running& running, bool beside = false) {
    const int code = code_of_job(running.child);
    const Seen& seen = *running.seen;
    if (code == killed_code) ++counts.killed;
    if (said(running, "was taken over by")) ++counts.fenced;
    if (code == refused_code && seen.restored == UINT64_MAX) return note_refusal(running, beside);
    if (code != 0 && code != killed_code)
      wrong(running, "it ended with " + number(static_cast<unsigned>(code)));
    if (seen.restored == UINT64_MAX) return;
    const Made restored{seen.restored, seen.restored_start};
    starts_.restarted(running.job.start, restored);
    if (running.set == nullptr) return;
    Set& set = *running.set;
    if (set.whole && !starts_.is_in(set.acknowledged, restored)) {
      wrong(running, "it restarted with " + text_of(restored) + ", acknowledged there was " +
                         text_of(set.acknowledged));
    }
    const bool more = seen.acknowledged > restored.version;
    set.acknowledged = more ? Made{seen.acknowledged, running.job.start} : restored;
    set.whole = true;
  }

  void alone(std::uint32_t set, std::uint64_t kill_at) {
    Job job;
    job.root = root_;
    job.nodes = sets_[set].nodes;
    const auto version = foreseen(job, true);
    const Running running = start(sets_[set].nodes, &sets_[set], kill_at);
    end(running);
    if (!version || running.seen->restored == UINT64_MAX) return;
    ++counts.foreseen;
    if (*version == running.seen->restored) return;
    wrong(running, "verify foresaw version " + number(*version) + ", restored was " +
                       number(running.seen->restored));
  }

  // The first lives while another one starts; or stands still, as if it were cut off, and goes on
  // after the other one has taken it for dead.
  void two(std::uint32_t set, bool stand_still, std::uint64_t at, std::uint64_t kill_at,
           std::uint64_t other_at) {
    ++(stand_still ? counts.cut : counts.beside);
    const Running first = start(sets_[set].nodes, &sets_[set], at + kill_at, at, stand_still);
    siginfo_t seen{};
    if (stand_still) {
      ::waitid(P_PID, static_cast<id_t>(first.child), &seen, WEXITED | WSTOPPED | WNOWAIT);
    }
    while (!stand_still && first.seen->holds == 0 && seen.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::waitid(P_PID, static_cast<id_t>(first.child), &seen, WEXITED | WNOHANG | WNOWAIT);
    }
    Set& other = sets_[1 - set];
    end(start(other.nodes, &other, other_at), true);
    first.seen->go_on = 1;
    ::kill(first.child, SIGCONT);
    end(first, true);
  }

  // A job that got some nodes of each.
  void mixed(std::uint64_t which, std::uint64_t kill_at) {
    ++counts.mixed;
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < count_; ++i) {
      Set& set = sets_[which >> i & 1U];
      nodes.push_back(set.nodes[i]);
      set.whole = false;
    }
    end(start(nodes, nullptr, kill_at), true);
  }

  void lose(std::uint32_t set, std::uint32_t which, bool all) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!all && i != which) continue;
      text_ += "; lost " + number(sets_[set].nodes[i]);
      fs::remove_all(root_ + "/node-" + number(sets_[set].nodes[i]));
    }
    sets_[set].whole = false;
  }

  static std::string text_of(const Made& made) {
    return "version " + number(made.version) + " of start " + number(made.start);
  }
  bool said(const Running& running, const std::string& words) const {
    const auto bytes = bytes_of_file(running.log);
    return std::string(bytes.begin(), bytes.end()).find(words) != std::string::npos;
  }
  void complain(const Running& running, const std::string& what) const {
    std::fprintf(stderr, "%s: of start %llu: %s\n", text_.c_str(), ull(running.job.start),
                 what.c_str());
    std::ifstream log(running.log);
    for (std::string line; std::getline(log, line);) std::fprintf(stderr, "  %s\n", line.c_str());
  }
  void wrong(const Running& running, const std::string& what) {
    ++counts.wrong;
    complain(running, what);
  }
  void note_refusal(const Running& running, bool beside) {
    if (beside) {
      ++counts.refused_beside;
    } else if (running.set == nullptr || !running.set->whole) {
      ++counts.refused_rightly;
    } else {
      ++counts.refused;
      complain(running, "it was refused");
    }
  }
  std::string root_;
  std::string levels_;
  std::uint32_t count_;
  std::uint64_t steps_;
  std::array<Seen*, 2> seen_;
  std::array<Set, 2> sets_;
  Starts starts_;
  std::string text_;
};

}  // namespace perdure
