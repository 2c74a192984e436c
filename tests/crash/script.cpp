// SPDX-License-Identifier: BSD-3-Clause
#include "script.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/testing/thread_group.hpp"
#include "script_job.hpp"

namespace perdure {
namespace {

using Image = std::vector<std::byte>;

std::vector<Line> commits(int count) {
  return std::vector<Line>(static_cast<std::size_t>(count), {Act::commit});
}

std::vector<Line> operator+(std::vector<Line> lines, const std::vector<Line>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

void complain(SweepResult& result, const ScriptOptions& options, const std::string& what) {
  if (result.wrong++ == 0) result.first_wrong = options.name + ": " + what;
}

class OneRank {
 public:
  explicit OneRank(const ScriptOptions& options) : options_(options) {}

  SweepResult run() {
    SoloGroup group;
    ScriptJob job(script_device(options_), group, options_);
    if (Status started = job.start(); !started.ok()) {
      complain(result_, options_, "the job can't start: " + started.message());
      return result_;
    }
    job.medium().on_fence = [&](CrashDevice& device) { crash_here(device, job.knowledge()); };
    job.on_return = [&] {
      // A saver may still be at work; its fence comes later.
      if (!options_.staged) crash_here(job.medium(), job.knowledge());
    };
    for (const Line& line : options_.lines) {
      Status done = job.perform(line);
      if (done.ok()) continue;
      complain(result_, options_,
               "line " + std::to_string(job.performed()) + " failed: " + done.message());
      break;
    }
    return result_;
  }

 private:
  void crash_here(CrashDevice& device, const Knowledge& knowledge) {
    ++result_.fences;
    const auto count = device.for_each_image(
        options_.model, options_.images_per_moment, options_.seed + result_.fences,
        [&](std::span<const std::byte> image) {
          ++result_.images;
          SoloGroup group;
          const std::string wrong = complaint(recover_script(options_, group, image), knowledge);
          if (!wrong.empty()) {
            complain(result_, options_, "at fence " + std::to_string(result_.fences) + " " + wrong);
          }
        });
    if (!count.exhaustive) ++result_.sampled;
  }

  const ScriptOptions& options_;
  SweepResult result_;
};

struct Moment {
  Agreements agreements;
  std::uint64_t line;
  Knowledge knowledge;
  std::vector<std::size_t> images;  // their numbers among all images of the rank
};

class Recorder {
 public:
  Recorder(const ScriptOptions& options, ThreadJob& exchange, std::uint32_t rank)
      : options_(options), group_(exchange, rank) {}

  void run() {
    ScriptJob job(script_device(options_), group_, options_);
    status = job.start();
    if (!status.ok()) return;
    job.medium().on_fence = [&](CrashDevice&) { record(job); };
    group_.on_enter = [&] { record(job); };
    job.on_return = [&] {
      if (!options_.staged) record(job);
    };
    for (const Line& line : options_.lines) {
      status = job.perform(line);
      if (!status.ok()) return;
    }
  }

  const Image& image(std::size_t number) const { return *images_[number]; }

  std::vector<Moment> moments;
  std::uint64_t sampled = 0;
  Status status;

 private:
  std::size_t number_of(std::span<const std::byte> image) {
    const auto [known, fresh] =
        numbers_.try_emplace(Image(image.begin(), image.end()), images_.size());
    if (fresh) images_.push_back(&known->first);
    return known->second;
  }
  void record(ScriptJob& job) {
    Moment moment{group_.agreements, job.performed(), job.knowledge(), {}};
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto count = job.medium().for_each_image(
        options_.model, options_.images_per_moment, options_.seed + moments.size(),
        [&](std::span<const std::byte> image) { moment.images.push_back(number_of(image)); });
    if (!count.exhaustive) ++sampled;
    moments.push_back(std::move(moment));
  }

  const ScriptOptions& options_;
  ThreadGroup group_;
  std::mutex mutex_;
  std::map<Image, std::size_t> numbers_;
  std::vector<const Image*> images_;
};

// Crashes at many pairs of moments leave the same two images, and what these recover to depends on
// nothing else. So it is found out once, and judged by what is known at each of the pairs.
class TwoRanks {
 public:
  explicit TwoRanks(const ScriptOptions& options) : options_(options) {}

  SweepResult run() {
    ThreadJob exchange(2);
    Recorder zero(options_, exchange, 0);
    Recorder one(options_, exchange, 1);
    std::thread thread([&] { one.run(); });
    zero.run();
    thread.join();
    for (const Recorder* rank : {&zero, &one}) {
      if (!rank->status.ok()) {
        complain(result_, options_, "the undisturbed run failed: " + rank->status.message());
      }
      result_.fences += rank->moments.size();
      result_.sampled += rank->sampled;
    }
    for (const Moment& m0 : zero.moments) {
      for (const Moment& m1 : one.moments) {
        if (consistent_cut(m0.agreements, m1.agreements)) crash_at(m0, m1);
      }
    }
    for (const auto& [images, moments] : crashes_) {
      const Pair found = recover(zero.image(images.first), one.image(images.second));
      for (const auto& [m0, m1] : moments) judge(found, *m0, *m1);
    }
    return result_;
  }

 private:
  using Pair = std::array<Found, 2>;

  // Each image of one rank meets one of the other, all of both at least once.
  void crash_at(const Moment& m0, const Moment& m1) {
    const std::size_t pairs = std::max(m0.images.size(), m1.images.size());
    for (std::size_t i = 0; i < pairs; ++i) {
      crashes_[{m0.images[i % m0.images.size()], m1.images[(i * 7 + i / 3) % m1.images.size()]}]
          .emplace_back(&m0, &m1);
    }
  }

  Pair recover(const Image& image0, const Image& image1) const {
    ThreadJob exchange(2);
    Pair found;
    const auto recover_rank = [&](std::uint32_t rank, const Image& image) {
      ThreadGroup group(exchange, rank);
      found[rank] = recover_script(options_, group, image);
    };
    std::thread thread([&] { recover_rank(1, image1); });
    recover_rank(0, image0);
    thread.join();
    return found;
  }

  void judge(const Pair& found, const Moment& m0, const Moment& m1) {
    ++result_.images;
    const std::string wrong = complaint_of(found, m0, m1);
    if (wrong.empty()) return;
    complain(result_, options_,
             "in lines " + std::to_string(m0.line + 1) + " and " + std::to_string(m1.line + 1) +
                 " " + wrong);
  }

  static std::string complaint_of(const Pair& found, const Moment& m0, const Moment& m1) {
    std::string wrong = complaint(found[0], joined(m0.knowledge, m1.knowledge));
    if (wrong.empty()) wrong = complaint(found[1], joined(m1.knowledge, m0.knowledge));
    if (!wrong.empty()) return wrong;
    if (found[0].version != found[1].version) return "the ranks came back with other versions";
    if (found[0].working_copies == found[1].working_copies) return "";
    return "the ranks have other working copies";
  }

  const ScriptOptions& options_;
  SweepResult result_;
  std::map<std::pair<std::size_t, std::size_t>,
           std::vector<std::pair<const Moment*, const Moment*>>>
      crashes_;
};

}  // namespace

namespace {

// The same scripts with the catalogue in a tree, or in one whenever the third array is there. And
// trees that are three pages deep, of which each commit changes little.
void add_trees(std::vector<ScriptOptions>& scripts) {
  const std::vector<ScriptOptions> in_slots = scripts;
  for (ScriptOptions script : in_slots) {
    script.name += ", tree";
    script.slot_bytes = 256;
    scripts.push_back(script);
    const bool changes = std::any_of(script.lines.begin(), script.lines.end(),
                                     [](const Line& line) { return line.act == Act::open; });
    if (!changes) continue;
    script.name += " and slot";
    script.slot_bytes = script.staged ? 512 : 640;
    scripts.push_back(script);
  }
  const std::vector<Line> idle = {{Act::commit}, {Act::rest},  {Act::rest},   {Act::commit},
                                  {Act::open},   {Act::rest},  {Act::commit}, {Act::erase},
                                  {Act::rest},   {Act::commit}};
  const std::vector<Line> back = {{Act::commit},     {Act::rest},   {Act::rest},
                                  {Act::restore, 1}, {Act::rest},   {Act::commit},
                                  {Act::restore, 3}, {Act::commit}, {Act::rest}};
  scripts.push_back({"idle arrays, keep 1", ArrayMode::log, false, false, 1, idle});
  scripts.push_back({"idle arrays, keep 3", ArrayMode::log, false, false, 3, idle});
  scripts.push_back({"idle arrays go back", ArrayMode::log, false, false, 3, back});
  for (const ScriptOptions& script : std::vector<ScriptOptions>(scripts.end() - 3, scripts.end())) {
    scripts.push_back(script);
    scripts.back().name += ", deep tree";
    scripts.back().slot_bytes = 256;
    scripts.back().others = 33;
  }
}

}  // namespace

namespace {

// Sizes, an array that comes and goes, versions that are gone back to, and commits, as they fall.
std::vector<Line> random_lines(std::uint64_t seed, std::uint32_t keep) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t end) { return random() % end; };
  std::vector<Line> lines{{Act::commit}, {Act::open}, {Act::commit}};
  std::uint64_t newest = 2;
  bool is_open = true;
  while (lines.size() < 18) {
    const std::uint64_t drawn = below(9);
    if (drawn < 3) lines.push_back({Act::resize, below(48)});
    if (drawn == 3 && !std::exchange(is_open, true)) lines.push_back({Act::open});
    if (drawn == 4 && std::exchange(is_open, false)) {
      lines.push_back({below(2) == 0 ? Act::close : Act::erase});
    }
    if (drawn == 5) lines.push_back({Act::restore, newest - (keep > 1 ? below(2) : 0)});
    if (drawn < 5) continue;
    lines.push_back({Act::commit});
    ++newest;
  }
  return lines;
}

}  // namespace

std::string text_of(const std::vector<Line>& lines) {
  constexpr std::array<const char*, 10> names{"commit",        "rest", "staged", "wait",  "restore",
                                              "erase_version", "open", "close",  "erase", "resize"};
  std::string text;
  for (const Line& line : lines) {
    text += sentence(text.empty() ? "" : ", ", names.at(static_cast<std::size_t>(line.act)));
    const bool has_number =
        line.act == Act::restore || line.act == Act::erase_version || line.act == Act::resize;
    if (has_number) text += sentence(" ", line.version);
  }
  return text;
}

std::vector<ScriptOptions> all_scripts(std::uint64_t seed) {
  const std::vector<Line> branches = commits(4) + std::vector<Line>{{Act::restore, 2}} +
                                     commits(2) + std::vector<Line>{{Act::restore, 4}} + commits(1);
  const std::vector<Line> deletions = commits(4) + std::vector<Line>{{Act::erase_version, 3}} +
                                      commits(1) + std::vector<Line>{{Act::restore, 4}} +
                                      std::vector<Line>{{Act::erase_version, 5}} + commits(2);
  const std::vector<Line> changes = {{Act::open},   {Act::commit}, {Act::commit}, {Act::close},
                                     {Act::commit}, {Act::commit}, {Act::open},   {Act::commit},
                                     {Act::erase},  {Act::commit}, {Act::open},   {Act::commit},
                                     {Act::erase},  {Act::open},   {Act::commit}, {Act::commit}};
  const std::vector<Line> staged = {{Act::staged}, {Act::staged}, {Act::open},   {Act::staged},
                                    {Act::staged}, {Act::wait},   {Act::commit}, {Act::close},
                                    {Act::staged}, {Act::staged}, {Act::wait},   {Act::staged},
                                    {Act::wait}};
  // Within the room that there is, beyond it, smaller and larger before a commit, and to nothing.
  const std::vector<Line> sizes = {
      {Act::commit},     {Act::resize, 9},  {Act::commit},     {Act::resize, 10}, {Act::commit},
      {Act::resize, 40}, {Act::resize, 44}, {Act::commit},     {Act::resize, 7},  {Act::resize, 20},
      {Act::resize, 7},  {Act::commit},     {Act::commit},     {Act::resize, 0},  {Act::commit},
      {Act::resize, 5},  {Act::commit},     {Act::restore, 8}, {Act::resize, 11}, {Act::commit},
      {Act::commit}};
  std::vector<ScriptOptions> scripts;
  for (const std::uint32_t keep : {1U, 3U}) {
    const std::string kept = ", keep " + std::to_string(keep);
    for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::twin, ArrayMode::log}) {
      const std::string text = std::string(mode_name(mode)) + kept;
      scripts.push_back({"commits, " + text, mode, false, false, keep, commits(5)});
      scripts.push_back({"arrays come and go, " + text, mode, false, false, keep, changes});
      std::vector<Line> back = sizes;
      if (keep > 1) back[back.size() - 4].version = 6;
      scripts.push_back({"sizes, " + text, mode, false, false, keep, back});
      if (keep == 1) continue;
      scripts.push_back({"branches, " + text, mode, false, false, keep, branches});
      scripts.push_back({"deletions, " + text, mode, false, false, keep, deletions});
    }
    scripts.push_back({"sizes, compared" + kept, ArrayMode::log, true, false, keep, sizes});
    scripts.push_back({"compared" + kept, ArrayMode::log, true, false, keep, changes});
    scripts.push_back({"staged, copy" + kept, ArrayMode::copy, false, true, keep, staged});
    scripts.push_back({"staged, compared" + kept, ArrayMode::log, true, true, keep, staged});
  }
  scripts.push_back({"branches, compared", ArrayMode::log, true, false, 3, branches});
  add_trees(scripts);
  for (const std::uint32_t keep : {1U, 3U}) {  // and of a catalogue that is a tree
    for (const ArrayMode mode : {ArrayMode::copy, ArrayMode::twin, ArrayMode::log}) {
      scripts.push_back({sentence("as it falls, ", mode_name(mode), ", keep ", keep), mode, false,
                         false, keep, random_lines(seed + scripts.size(), keep)});
      if (keep > 1) scripts.back().slot_bytes = 256;
    }
  }
  return scripts;
}

SweepResult sweep_script(const ScriptOptions& options) {
  return OneRank(options).run();
}

SweepResult sweep_script_of_two_ranks(const ScriptOptions& options) {
  return TwoRanks(options).run();
}

}  // namespace perdure
