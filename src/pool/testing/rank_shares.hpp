// SPDX-License-Identifier: BSD-3-Clause
//
// What each of another number of ranks gets of a version, as redistribution.hpp promises it: the
// model of it. What the new ranks say of each array is drawn; what they must find then is worked
// out element by element from the lives of the old ones.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pool/testing/rank_life.hpp"

namespace perdure {

using RankLives = std::vector<RankLife*>;

// Of all ranks of a run.
struct SharePlan {
  std::uint64_t version = 0;    // that is gone on from
  std::set<std::string> names;  // of the arrays that it has
  bool lacks = false;           // something is read by hand
  RankLives old;
};

class ShareOut {
 public:
  // The new ranks' lives have just begun, with arrays of the same names.
  ShareOut(std::mt19937_64& random, std::uint64_t version, RankLives old, RankLives lives)
      : random_(random), lives_(std::move(lives)) {
    plan_.version = version;
    plan_.old = std::move(old);
  }
  SharePlan share() {
    for (std::size_t i = 0; i < lives_[0]->arrays().size(); ++i) share_array(i);
    for (std::size_t i = 0; i < lives_[0]->scalars().size(); ++i) share_scalar(i);
    share_files();
    return plan_;
  }

 private:
  struct Part {
    const Words& words;
    LifeBox box;
  };
  using Parts = std::vector<Part>;

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

  Parts parts_of(std::size_t array) const {
    Parts parts;
    for (RankLife* const life : plan_.old) {
      const LifeArray& member = life->array(array);
      const auto held = member.versions.find(plan_.version);
      if (held == member.versions.end()) continue;
      const auto box = member.boxes.find(plan_.version);
      parts.push_back({held->second, box == member.boxes.end() ? LifeBox() : box->second});
    }
    return parts;
  }

  void share_array(std::size_t array) {
    const Parts parts = parts_of(array);
    if (parts.empty()) return;
    plan_.names.insert(lives_[0]->array(array).name);
    std::vector<LifeShare> shares;
    if (may_lie(parts) && !one_in(3)) {
      shares = by_boxes(parts);
    } else if (are_alike(parts) && !one_in(3)) {
      shares.assign(lives_.size(), {RankRule::same, parts[0].words, {}});
    } else if (one_in(4)) {
      plan_.lacks = true;
      for (std::size_t i = 0; i < lives_.size(); ++i) {
        shares.push_back({RankRule::by_hand, Words(below(RankLife::most_words)), {}});
      }
    } else {
      shares = by_rows(parts);
    }
    give(array, std::move(shares));
  }
  // A rank without a share of rows or boxes, or that needs none, may leave the array alone.
  void give(std::size_t array, std::vector<LifeShare> shares) {
    const std::size_t surely = below(shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const bool divided = shares[i].first || shares[i].rule == RankRule::rows;
      const bool may_lack = !divided || shares[i].contents.empty();
      if (i != surely && may_lack && one_in(3)) continue;
      lives_[i]->array(array).share = std::move(shares[i]);
    }
  }

  // Ends of as many pieces of `count` as there are ranks.
  std::vector<std::uint64_t> cuts(std::uint64_t count) {
    std::vector<std::uint64_t> ends{count};
    while (ends.size() < lives_.size()) ends.push_back(below(count + 1));
    std::ranges::sort(ends);
    return ends;
  }
  std::vector<LifeShare> by_rows(const Parts& parts) {
    Words all;
    for (const Part& part : parts) all.insert(all.end(), part.words.begin(), part.words.end());
    std::vector<LifeShare> shares;
    auto from = all.begin();
    for (const std::uint64_t end : cuts(all.size())) {
      const auto to = all.begin() + static_cast<std::ptrdiff_t>(end);
      shares.push_back({RankRule::rows, Words(from, to), {}});
      from = to;
    }
    return shares;
  }

  bool are_alike(const Parts& parts) const {
    return parts.size() == plan_.old.size() &&
           std::ranges::all_of(parts, [&](auto& part) { return part.words == parts[0].words; });
  }
  static bool may_lie(const Parts& parts) {
    return std::ranges::all_of(parts, [](auto& part) { return part.box.has_value(); }) &&
           std::ranges::any_of(parts, [](auto& part) { return !part.words.empty(); });
  }
  // Cells of the lowest rank count, those that nobody had are zero, and pieces overlap.
  std::vector<LifeShare> by_boxes(const Parts& parts) {
    Words cells(RankLife::global_words);
    std::uint64_t first = RankLife::global_words;
    std::uint64_t end = 0;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->words.empty()) continue;
      std::ranges::copy(part->words, cells.begin() + static_cast<std::ptrdiff_t>(*part->box));
      first = std::min(first, *part->box);
      end = std::max(end, *part->box + part->words.size());
    }
    first -= std::min(first, below(20));
    end += below(20);
    std::vector<LifeShare> shares;
    std::uint64_t from = first;
    for (const std::uint64_t cut : cuts(end - first)) {
      const std::uint64_t to = first + cut + below(10);
      from -= std::min(from, below(10));
      const auto begin = cells.begin() + static_cast<std::ptrdiff_t>(from);
      shares.push_back(
          {RankRule::none, Words(begin, begin + static_cast<std::ptrdiff_t>(to - from)), from});
      from = first + cut;
    }
    return shares;
  }

  // One that is not the same on all of them is not taken over.
  void share_scalar(std::size_t scalar) {
    const auto value_of = [&](RankLife* life) {
      const auto& versions = life->scalars()[scalar].versions;
      const auto held = versions.find(plan_.version);
      return held == versions.end() ? std::nullopt : std::optional(held->second);
    };
    const auto value = value_of(plan_.old[0]);
    const bool alike =
        std::ranges::all_of(plan_.old, [&](RankLife* life) { return value_of(life) == value; });
    for (RankLife* const life : lives_) {
      LifeScalar& mine = life->scalars()[scalar];
      mine.may_be_bound = alike;
      if (alike && value) mine.versions[plan_.version] = *value;
    }
  }

  // Each is some rank's, which may have several, or a new one.
  void share_files() {
    for (RankLife* const life : plan_.old) {
      for (const LifeFile& file : life->files()) {
        LifeFile& mine = lives_[below(lives_.size())]->files().emplace_back();
        mine.lines = file.lines;
        const auto held = file.versions.find(plan_.version);
        if (held != file.versions.end()) mine.versions[plan_.version] = held->second;
      }
    }
    for (RankLife* const life : lives_) {
      if (life->files().empty() && one_in(2)) life->files().emplace_back();
    }
  }

  std::mt19937_64& random_;
  RankLives lives_;
  SharePlan plan_;
};

}  // namespace perdure
