// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/checker.hpp"

#include <algorithm>
#include <limits>

#include "ipv_check/check_shadow.hpp"
#include "ipv_check/pair_shadow.hpp"

namespace perdure::ipv_check {
namespace {

// What Site::reserved holds: the range that the site's last access fell into, its number or -1,
// and in which state of the table that was.
enum Kept : unsigned { kept_begin, kept_end, kept_range, kept_changes };

std::string iteration_text(std::uint32_t iteration) {
  if (iteration == never) return "nothing that the program stored";
  return iteration == 0 ? "the initial value"
                        : "the value of iteration " + std::to_string(iteration);
}

std::string held_text(const Breach& breach) {
  if (breach.held == breach.current) return iteration_text(breach.held) + ", not the newest";
  return iteration_text(breach.held) + ", not " + iteration_text(breach.current);
}

const char* array_text(bool other) {
  return other ? " (the second array)" : " (the first array)";
}

std::string bytes_text(const Breach& breach) {
  return sentence(breach.bytes, (breach.bytes == 1 ? " byte" : " bytes"), " at ", breach.offset);
}

}  // namespace

Status Checker::open(unsigned every) {
  if (is_open_) {
    return {Code::busy, "perdure_ipv_open: the process has objects already; close them first"};
  }
  is_open_ = true;
  every_ = every == 0 ? 1 : every;
  return Status::success();
}

Status Checker::check_new(const std::string& name, const void* address, std::size_t bytes) const {
  if (!is_open_) return {Code::wrong_state, "perdure_ipv_object: call perdure_ipv_open() before"};
  if (name.empty() || (address == nullptr && bytes != 0)) {
    return {Code::invalid_argument, "perdure_ipv_object: it has no name or no address"};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  for (const Range& range : ranges_) {
    if (begin < range.end && range.begin < begin + bytes) {
      return Status(Code::invalid_argument, "perdure_ipv_object: ", name, " overlaps ",
                    range.shadow->name());
    }
  }
  if (objects_.count(name) != 0) {
    return Status(Code::invalid_argument, "perdure_ipv_object: there is a ", name, " already");
  }
  return Status::success();
}

Status Checker::add(const std::string& name, void* address, std::size_t bytes) {
  PERDURE_TRY(check_new(name, address, bytes));
  put(std::make_unique<CheckShadow>(name, static_cast<std::byte*>(address), bytes));
  return Status::success();
}

Status Checker::add_pair(const std::string& name, void* a, void* b, std::size_t bytes) {
  PERDURE_TRY(check_new(name, a, bytes));
  PERDURE_TRY(check_new(name, b, bytes));
  const auto one = reinterpret_cast<std::uintptr_t>(a), two = reinterpret_cast<std::uintptr_t>(b);
  if (bytes == 0 || std::max(one, two) - std::min(one, two) < bytes) {
    return Status(Code::invalid_argument, "perdure_ipv_pair: the arrays of ", name,
                  " overlap, or have no byte");
  }
  put(std::make_unique<PairShadow>(name, static_cast<std::byte*>(a), static_cast<std::byte*>(b),
                                   bytes));
  return Status::success();
}

void Checker::put(std::unique_ptr<Shadow> shadow) {
  for (const bool other : {false, true}) {
    const std::uintptr_t begin = shadow->begin(other);
    if (shadow->bytes() == 0) break;
    ranges_.push_back({begin, begin + shadow->bytes(), shadow.get(), other});
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
  ++changes_;
  if (is_active_) shadow->start();
  objects_[shadow->name()] = std::move(shadow);
}

// What was seen at the place of before is reported under the name, too.
Status Checker::resize(const std::string& name, void* address, std::size_t bytes, void* other) {
  if (!is_active_) {
    return {Code::wrong_state, "perdure_ipv_resize: call perdure_ipv_restart() before"};
  }
  const auto place = objects_.find(name);
  if (place == objects_.end()) {
    return Status(Code::not_found, "perdure_ipv_resize: no object is called ", name);
  }
  if (pins_[name] != 0) {
    return Status(Code::wrong_state, "perdure_ipv_resize: ", name, " is pinned");
  }
  Shadow* const before = place->second.get();
  if ((dynamic_cast<PairShadow*>(before) != nullptr) != (other != nullptr)) {
    return Status(Code::invalid_argument, "perdure_ipv_resize: ", name,
                  ": perdure_ipv_resize_pair() is for pairs, and for nothing else");
  }
  closed_.push_back(std::move(place->second));
  objects_.erase(place);
  std::erase_if(ranges_, [before](const Range& range) { return range.shadow == before; });
  ++changes_;
  return other == nullptr ? add(name, address, bytes) : add_pair(name, address, other, bytes);
}

Status Checker::restart() {
  if (!is_open_ || is_active_) {
    return {Code::wrong_state, "perdure_ipv_restart: once, after perdure_ipv_open()"};
  }
  is_active_ = true;
  for (const auto& [name, shadow] : objects_) shadow->start();
  return Status::success();
}

Status Checker::persist(SiteNumber site, std::uint64_t* version) {
  if (!is_active_) {
    return {Code::wrong_state, "perdure_ipv_persist: call perdure_ipv_restart() before"};
  }
  const bool commits = iteration() % every_ == 0;
  for (const auto& [name, shadow] : objects_) {
    shadow->persist(commits, found_);
    report(*shadow, site);
  }
  if (commits) ++version_;
  if (version != nullptr) *version = version_;
  ++complete_;
  return Status::success();
}

Status Checker::close(SiteNumber site) {
  if (!is_open_) return {Code::wrong_state, "perdure_ipv_close: nothing is open"};
  for (auto& [name, shadow] : objects_) {
    shadow->leave(found_);
    report(*shadow, site);
    closed_.push_back(std::move(shadow));
  }
  objects_.clear();
  pins_.clear();
  ranges_.clear();
  ++changes_;
  is_active_ = is_open_ = false;
  return Status::success();
}

Result<Shadow*> Checker::find(const std::string& name) const {
  const auto place = objects_.find(name);
  if (place == objects_.end()) {
    return Status{Code::not_found, "perdure_ipv_status: no object is called ", name};
  }
  return place->second.get();
}

Result<void*> Checker::alive(const std::string& name) const {
  const auto place = objects_.find(name);
  const auto* const pair =
      place == objects_.end() ? nullptr : dynamic_cast<const PairShadow*>(place->second.get());
  if (pair != nullptr) return static_cast<void*>(pair->alive());
  return Status(Code::not_found, "perdure_ipv_alive: no pair is called ", name);
}

Status Checker::pin(const void* address, bool pins) {
  const Shadow* shadow = object_at(reinterpret_cast<std::uintptr_t>(address));
  if (shadow == nullptr) {
    return {Code::not_found, "perdure_ipv_pin: no object holds this address"};
  }
  if (dynamic_cast<const PairShadow*>(shadow) != nullptr) {
    return Status(Code::wrong_state, "perdure_ipv_pin: ", shadow->name(), " is a pair");
  }
  unsigned& count = pins_[shadow->name()];
  if (!pins && count == 0) {
    return Status(Code::wrong_state, "perdure_ipv_unpin: ", shadow->name(), " is not pinned");
  }
  count += pins ? 1U : ~0U;
  return Status::success();
}

Checker::Range Checker::range_of(std::uintptr_t address) const {
  const auto next = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
  Range gap;
  gap.end = next == ranges_.end() ? std::numeric_limits<std::uintptr_t>::max() : next->begin;
  if (next == ranges_.begin()) return gap;
  const Range& before = *std::prev(next);
  if (address < before.end) return before;
  gap.begin = before.end;
  return gap;
}

Shadow* Checker::object_at(std::uintptr_t address) const {
  return range_of(address).shadow;
}

// Calls use(shadow, other, offset, bytes) for what of an access belongs to an object.
template <typename Use>
void Checker::for_pieces(std::uintptr_t address, std::uint64_t bytes, Site& site, Use use) {
  if (!is_active_) return;
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    // In its lower half the table's state; in bit 32, whether it is the other place of two.
    std::uint64_t& kept = site.reserved[kept_changes];
    if (static_cast<std::uint32_t>(kept) != changes_ || address < site.reserved[kept_begin] ||
        address >= site.reserved[kept_end]) {
      const Range range = range_of(address);
      site.reserved[kept_begin] = range.begin;
      site.reserved[kept_end] = range.end;
      site.reserved[kept_range] = reinterpret_cast<std::uintptr_t>(range.shadow);
      kept = changes_ | std::uint64_t{range.other} << 32U;
    }
    const std::uintptr_t stop = std::min<std::uintptr_t>(end, site.reserved[kept_end]);
    const auto place = static_cast<std::uintptr_t>(site.reserved[kept_range]);
    if (place != 0) {
      Shadow& shadow = *reinterpret_cast<Shadow*>(place);
      const bool other = kept >> 32U != 0;
      use(shadow, other, address - static_cast<std::uintptr_t>(site.reserved[kept_begin]),
          stop - address);
      if (!found_.empty()) report(shadow, number_of(site));
    }
    address = stop;
  }
}

void Checker::load(std::uintptr_t address, std::uint64_t bytes, Site& site) {
  for_pieces(address, bytes, site,
             [&](Shadow& shadow, bool other, std::size_t offset, std::size_t count) {
               ++loads_;
               shadow.load(other, offset, count, found_);
             });
}

void Checker::store(std::uintptr_t address, std::uint64_t bytes, Site& site) {
  for_pieces(address, bytes, site,
             [&](Shadow& shadow, bool other, std::size_t offset, std::size_t count) {
               ++stores_;
               shadow.store(other, offset, count, number_of(site), iteration(), found_);
             });
}

// The object of the box, whose offsets become those of the object; null if it is no object's, or
// not wholly.
Shadow* Checker::object_of_box(RowBox& box) const {
  if (!is_active_ || box.is_empty()) return nullptr;
  const std::uintptr_t begin = box.first, end = box.end();
  for (const auto& [name, shadow] : objects_) {
    const std::uintptr_t first = shadow->begin(false), last = first + shadow->bytes();
    if (begin < first || end > last || begin >= last) continue;
    box.first -= first;
    return shadow.get();
  }
  return nullptr;
}

std::optional<std::ptrdiff_t> Checker::row_begin(const RowBox& box, SiteNumber site) {
  RowBox within = box;
  Shadow* shadow = object_of_box(within);
  if (shadow == nullptr) return std::nullopt;
  return shadow->row_begin(within, site);
}

void Checker::row_end(const RowBox& box, SiteNumber site) {
  RowBox within = box;
  Shadow* shadow = object_of_box(within);
  if (shadow == nullptr) return;
  shadow->row_end(within, found_);
  report(*shadow, site);
}

void Checker::nest_end(std::uintptr_t address, SiteNumber site) {
  Shadow* shadow = is_active_ ? object_at(address) : nullptr;
  if (shadow == nullptr) return;
  shadow->nest_end(found_);
  report(*shadow, site);
}

std::pair<std::uintptr_t, std::uintptr_t> Checker::extent(std::uintptr_t address) const {
  const Shadow* shadow = is_active_ ? object_at(address) : nullptr;
  if (shadow == nullptr) return {0, 0};
  return {shadow->begin(false), shadow->begin(false) + shadow->bytes()};
}

void Checker::plain(std::uintptr_t address) {
  Shadow* shadow = is_active_ ? object_at(address) : nullptr;
  if (shadow != nullptr) shadow->plain();
}

// Calls use(shadow, other, offset, bytes).
template <typename Use>
void Checker::for_objects(std::uintptr_t address, std::size_t bytes, Use use) {
  if (!is_active_) return;
  for (const Range& range : ranges_) {
    const std::uintptr_t from = std::max(address, range.begin);
    const std::uintptr_t to = std::min(address + bytes, range.end);
    if (from < to) use(*range.shadow, range.other, from - range.begin, to - from);
  }
}

void Checker::touch(std::uintptr_t address, std::size_t bytes, SiteNumber site) {
  for_objects(address, bytes,
              [&](Shadow& shadow, bool other, std::size_t offset, std::size_t count) {
                shadow.plain();
                shadow.store(other, offset, count, site, iteration(), found_);
                report(shadow, site);
              });
}

void Checker::flush_promised(std::uintptr_t address, std::size_t bytes) {
  for_objects(address, bytes, [](Shadow& shadow, bool, std::size_t offset, std::size_t count) {
    shadow.flush_promised(offset, count);
  });
}

const Violation* Violations::add(const Shadow& shadow, SiteNumber site, std::uint32_t iteration,
                                 const Breach& breach) {
  ++count_;
  const auto [place, is_new] = known_.try_emplace({breach.rule, &shadow, site}, all_.size());
  if (is_new) return &all_.emplace_back(shadow.name(), site, iteration, iteration, 1, breach);
  Violation& violation = all_[place->second];
  ++violation.count;
  violation.last_iteration = iteration;
  return nullptr;
}

void Checker::report(const Shadow& shadow, SiteNumber site) {
  for (const Breach& breach : found_) {
    const Violation* const added = violations_.add(shadow, site, iteration(), breach);
    if (added != nullptr) tell_(sentence(*added));
  }
  found_.clear();
}

std::string Checker::sentence(const Violation& violation) const {
  const Breach& breach = violation.breach;
  const SiteText& site = sites_[violation.site];
  std::string text = site.place() + ": ";
  if (!site.function.empty() && site.line != 0) text += "in " + site.function + ", ";
  text += "iteration " + std::to_string(violation.iteration) + ": " + rule_text(breach.rule) +
          ": " + violation.object + (breach.other ? array_text(*breach.other) : "") + ", " +
          bytes_text(breach);
  if (!site.member.empty()) text += " (" + site.member + ")";
  switch (breach.rule) {
    case Rule::stale_read:
    case Rule::wrong_version_read:
    case Rule::stale_commit:
    case Rule::row_not_stored:
      text += "; there is " + held_text(breach);
      if (breach.stored_at != 0) text += ", stored at " + sites_[breach.stored_at].place();
      break;
    case Rule::not_overwritten:
    case Rule::read_before_store:
      text += "; iteration " + std::to_string(breach.current) + " stored there at " +
              sites_[breach.stored_at].place();
      break;
    default:
      break;
  }
  if (breach.row) text += "; the row begins at " + sites_[*breach.row].place();
  return text;
}

std::vector<const Shadow*> Checker::objects() const {
  std::vector<const Shadow*> all;
  for (const auto& shadow : closed_) all.push_back(shadow.get());
  for (const auto& [name, shadow] : objects_) all.push_back(shadow.get());
  return all;
}

std::pair<std::uintptr_t, std::uintptr_t> Checker::reach() const {
  if (!is_active_ || ranges_.empty()) return {0, 0};
  return {ranges_.front().begin, ranges_.back().end};
}

std::pair<std::uintptr_t, std::uintptr_t> Checker::bounds() const {
  std::pair<std::uintptr_t, std::uintptr_t> bounds{0, 0};
  for (const Range& range : ranges_) {
    if (!is_active_ || range.other) continue;
    if (bounds.first == 0) bounds.first = range.begin;
    bounds.second = range.end;
  }
  return bounds;
}

}  // namespace perdure::ipv_check
