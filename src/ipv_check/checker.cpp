// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/checker.hpp"

#include <algorithm>
#include <limits>

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

Status Checker::add(const std::string& name, void* address, std::size_t bytes) {
  if (!is_open_) return {Code::wrong_state, "perdure_ipv_object: call perdure_ipv_open() before"};
  if (name.empty() || (address == nullptr && bytes != 0)) {
    return {Code::invalid_argument, "perdure_ipv_object: it has no name or no address"};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  for (const auto& [other, shadow] : objects_) {
    if (begin < shadow->new_begin() + shadow->bytes() && shadow->new_begin() < begin + bytes) {
      return Status(Code::invalid_argument, "perdure_ipv_object: ", name, " overlaps ", other);
    }
  }
  if (objects_.count(name) != 0) {
    return Status(Code::invalid_argument, "perdure_ipv_object: there is a ", name, " already");
  }
  auto shadow = std::make_unique<CheckShadow>(name, static_cast<std::byte*>(address), bytes);
  if (bytes != 0) {
    ranges_.push_back({begin, begin + bytes, shadow.get(), false});
    ranges_.push_back({shadow->old_begin(), shadow->old_begin() + bytes, shadow.get(), true});
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
  ++changes_;
  objects_[name] = std::move(shadow);
  return Status::success();
}

// What was seen at the place of before is reported under the name, too.
Status Checker::resize(const std::string& name, void* address, std::size_t bytes) {
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
  CheckShadow* const before = place->second.get();
  closed_.push_back(std::move(place->second));
  objects_.erase(place);
  std::erase_if(ranges_, [before](const Range& range) { return range.shadow == before; });
  ++changes_;
  return add(name, address, bytes);
}

Status Checker::restart() {
  if (!is_open_ || is_active_) {
    return {Code::wrong_state, "perdure_ipv_restart: once, after perdure_ipv_open()"};
  }
  is_active_ = true;
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
    shadow->persist(false, found_);
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

Result<CheckShadow*> Checker::find(const std::string& name) const {
  const auto place = objects_.find(name);
  if (place == objects_.end()) {
    return Status{Code::not_found, "perdure_ipv_status: no object is called ", name};
  }
  return place->second.get();
}

Status Checker::pin(const void* address, bool pins) {
  const CheckShadow* shadow = object_at(reinterpret_cast<std::uintptr_t>(address));
  if (shadow == nullptr) {
    return {Code::not_found, "perdure_ipv_pin: no object holds this address"};
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

CheckShadow* Checker::object_at(std::uintptr_t address) const {
  const Range range = range_of(address);
  return range.is_old ? nullptr : range.shadow;
}

// Calls use(shadow, is_old, offset, bytes) for what of an access belongs to an object.
template <typename Use>
void Checker::for_pieces(std::uintptr_t address, std::uint64_t bytes, Site& site, Use use) {
  if (!is_active_) return;
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    // In its lower half the table's state; in bit 32, whether the range is of an old copy.
    std::uint64_t& kept = site.reserved[kept_changes];
    if (static_cast<std::uint32_t>(kept) != changes_ || address < site.reserved[kept_begin] ||
        address >= site.reserved[kept_end]) {
      const Range range = range_of(address);
      site.reserved[kept_begin] = range.begin;
      site.reserved[kept_end] = range.end;
      site.reserved[kept_range] = reinterpret_cast<std::uintptr_t>(range.shadow);
      kept = changes_ | std::uint64_t{range.is_old} << 32U;
    }
    const std::uintptr_t stop = std::min<std::uintptr_t>(end, site.reserved[kept_end]);
    const auto place = static_cast<std::uintptr_t>(site.reserved[kept_range]);
    if (place != 0) {
      CheckShadow& shadow = *reinterpret_cast<CheckShadow*>(place);
      const bool is_old = kept >> 32U != 0;
      use(shadow, is_old, address - static_cast<std::uintptr_t>(site.reserved[kept_begin]),
          stop - address);
      if (!found_.empty()) report(shadow, number_of(site));
    }
    address = stop;
  }
}

void Checker::load(std::uintptr_t address, std::uint64_t bytes, Site& site) {
  for_pieces(address, bytes, site,
             [&](CheckShadow& shadow, bool is_old, std::size_t offset, std::size_t count) {
               ++loads_;
               shadow.load(is_old, offset, count, found_);
             });
}

void Checker::store(std::uintptr_t address, std::uint64_t bytes, Site& site) {
  for_pieces(address, bytes, site,
             [&](CheckShadow& shadow, bool is_old, std::size_t offset, std::size_t count) {
               ++stores_;
               shadow.store(is_old, offset, count, number_of(site), iteration(), found_);
             });
}

// The object of the box, whose offsets become those of the object; null if it is no object's, or
// not wholly.
CheckShadow* Checker::object_of_box(RowBox& box) const {
  if (!is_active_ || box.is_empty()) return nullptr;
  const std::uintptr_t begin = box.first, end = box.end();
  for (const auto& [name, shadow] : objects_) {
    const std::uintptr_t first = shadow->new_begin(), last = first + shadow->bytes();
    if (begin < first || end > last || begin >= last) continue;
    box.first -= first;
    return shadow.get();
  }
  return nullptr;
}

std::optional<std::ptrdiff_t> Checker::row_begin(const RowBox& box, SiteNumber site) {
  RowBox within = box;
  CheckShadow* shadow = object_of_box(within);
  if (shadow == nullptr) return std::nullopt;
  return shadow->row_begin(within, site);
}

void Checker::row_end(const RowBox& box, SiteNumber site) {
  RowBox within = box;
  CheckShadow* shadow = object_of_box(within);
  if (shadow == nullptr) return;
  shadow->row_end(within, found_);
  report(*shadow, site);
}

void Checker::nest_end(std::uintptr_t address, SiteNumber site) {
  CheckShadow* shadow = is_active_ ? object_at(address) : nullptr;
  if (shadow == nullptr) return;
  shadow->nest_end(found_);
  report(*shadow, site);
}

std::pair<std::uintptr_t, std::uintptr_t> Checker::extent(std::uintptr_t address) const {
  const CheckShadow* shadow = is_active_ ? object_at(address) : nullptr;
  if (shadow == nullptr) return {0, 0};
  return {shadow->new_begin(), shadow->new_begin() + shadow->bytes()};
}

void Checker::plain(std::uintptr_t address) {
  CheckShadow* shadow = is_active_ ? object_at(address) : nullptr;
  if (shadow != nullptr) shadow->plain();
}

template <typename Use>
void Checker::for_objects(std::uintptr_t address, std::size_t bytes, Use use) {
  if (!is_active_) return;
  const std::uintptr_t end = address + bytes;
  for (const auto& [name, shadow] : objects_) {
    const std::uintptr_t first = shadow->new_begin();
    const std::uintptr_t from = std::max(address, first);
    const std::uintptr_t to = std::min(end, first + shadow->bytes());
    if (from < to) use(*shadow, from - first, to - from);
  }
}

void Checker::touch(std::uintptr_t address, std::size_t bytes, SiteNumber site) {
  for_objects(address, bytes, [&](CheckShadow& shadow, std::size_t offset, std::size_t count) {
    shadow.plain();
    shadow.store(false, offset, count, site, iteration(), found_);
    report(shadow, site);
  });
}

void Checker::flush_promised(std::uintptr_t address, std::size_t bytes) {
  for_objects(address, bytes, [](CheckShadow& shadow, std::size_t offset, std::size_t count) {
    shadow.flush_promised(offset, count);
  });
}

void Checker::report(const CheckShadow& shadow, SiteNumber site) {
  for (const Breach& breach : found_) report_one(shadow, site, breach);
  found_.clear();
}

void Checker::report_one(const CheckShadow& shadow, SiteNumber site, const Breach& breach) {
  ++violation_count_;
  const auto [place, is_new] = known_.try_emplace({breach.rule, &shadow, site}, violations_.size());
  if (is_new) {
    violations_.push_back({shadow.name(), site, iteration(), iteration(), 1, breach});
    tell_(sentence(violations_.back()));
    return;
  }
  Violation& violation = violations_[place->second];
  ++violation.count;
  violation.last_iteration = iteration();
}

std::string Checker::sentence(const Violation& violation) const {
  const Breach& breach = violation.breach;
  const SiteText& site = sites_[violation.site];
  std::string text = site.place() + ": ";
  if (!site.function.empty() && site.line != 0) text += "in " + site.function + ", ";
  text += "iteration " + std::to_string(violation.iteration) + ": " + rule_text(breach.rule) +
          ": " + violation.object + ", " + bytes_text(breach);
  if (!site.member.empty()) text += " (" + site.member + ")";
  switch (breach.rule) {
    case Rule::stale_read:
    case Rule::wrong_version_read:
    case Rule::stale_commit:
    case Rule::row_not_stored:
      text += "; there is " + held_text(breach);
      if (breach.stored_at != 0) text += ", stored at " + sites_[breach.stored_at].place();
      break;
    default:
      break;
  }
  if (breach.row) text += "; the row begins at " + sites_[*breach.row].place();
  return text;
}

std::vector<const CheckShadow*> Checker::objects() const {
  std::vector<const CheckShadow*> all;
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
    if (!is_active_ || range.is_old) continue;
    if (bounds.first == 0) bounds.first = range.begin;
    bounds.second = range.end;
  }
  return bounds;
}

}  // namespace perdure::ipv_check
