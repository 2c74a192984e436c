// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/report.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace perdure::ipv_check {
namespace {

using nlohmann::json;

json site_json(const SiteTable& sites, SiteNumber number) {
  if (number == 0) return nullptr;
  const SiteText& site = sites[number];
  return {{"file", site.file},         {"line", site.line},           {"column", site.column},
          {"function", site.function}, {"nest_line", site.nest_line}, {"member", site.member}};
}

json run_json(const RunFacts& run, std::uint32_t iterations) {
  return {{"command", run.command},   {"rank", run.place.rank}, {"ranks", run.place.ranks},
          {"iterations", iterations}, {"marks", run.marks},     {"lost_accesses", run.lost}};
}

// Names come from files: whatever is no UTF-8 is replaced.
std::string text_of(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

constexpr const char* breach_names[] = {"none", "stored", "read", "walls"};  // ExchangeBreach

constexpr const char* kind_names[] = {"named", "variable", "scalar", "heap"};  // TrackedKind

json writers_json(const SiteTable& sites, const Tracked& tracked) {
  json writers = json::array();
  for (const auto& [number, writer] : tracked.writers) {
    json row = site_json(sites, number);
    row["first_iteration"] = writer.first_iteration;
    row["iterations"] = writer.iterations;
    writers.push_back(std::move(row));
  }
  return writers;
}

// Runs of bytes of the struct that are carried: a member each, or what is in none.
json parts_json(const Elements& elements) {
  json parts = json::array();
  const Elements::Counts& counts = elements.carried;
  std::vector<bool> listed(counts.size());
  const auto add = [&](std::uint64_t begin, std::uint64_t end, const json& name) {
    std::uint64_t carried = 0;
    for (std::uint64_t at = begin; at < end && at < counts.size(); ++at) {
      carried += counts[at];
      listed[at] = true;
    }
    if (carried == 0) return;
    parts.push_back(
        {{"member", name}, {"offset", begin}, {"bytes", end - begin}, {"carried_bytes", carried}});
  };
  for (const TypeText::Member& member : elements.type->members) {
    add(member.offset, member.offset + member.bytes, member.name);
  }
  for (std::uint64_t begin = 0; begin < counts.size(); ++begin) {
    std::uint64_t end = begin;
    while (end < counts.size() && !listed[end] && counts[end] != 0) ++end;
    if (end != begin) add(begin, end, nullptr);
  }
  std::sort(parts.begin(), parts.end(),
            [](const json& one, const json& two) { return one["offset"] < two["offset"]; });
  return parts;
}

json elements_json(const Elements& elements) {
  if (elements.type == nullptr || !elements.clear) return nullptr;
  return {{"struct", elements.type->name},
          {"bytes", elements.type->bytes},
          {"has_names", !elements.type->members.empty()},
          {"carried", parts_json(elements)}};
}

json tracked_json(const SiteTable& sites, const Tracked& tracked) {
  json frames = json::array();
  for (const Frame& frame : tracked.frames) {
    frames.push_back({{"module", frame.module}, {"offset", frame.offset}});
  }
  const ByteTotals& totals = tracked.totals;
  return {{"kind", kind_names[static_cast<std::size_t>(tracked.kind)]},
          {"name", tracked.name},
          {"file", tracked.file},
          {"line", tracked.line},
          {"frames", std::move(frames)},
          {"ordinal", tracked.ordinal},
          {"blocks", tracked.blocks},
          {"size_bytes", tracked.live_bytes_max},
          {"carried_bytes", totals.carried},
          {"alive_after_even_bytes", totals.alive_after[0]},
          {"alive_after_odd_bytes", totals.alive_after[1]},
          {"rewritten_bytes", totals.rewritten},
          {"read_only_bytes", totals.read_only},
          {"stored_bytes", totals.stored},
          {"unread_bytes", totals.unread},
          {"after_loop_bytes", totals.after_loop},
          {"stored_per_iteration_min_bytes", tracked.stored_min},
          {"stored_per_iteration_max_bytes", tracked.stored_max},
          {"kept_per_iteration_max_bytes", tracked.kept_max},
          {"elements", elements_json(tracked.elements)},
          {"carried_at", site_json(sites, tracked.carried_at)},
          {"first_writer", site_json(sites, tracked.first_writer)},
          {"first_writer_differs", tracked.first_differs},
          {"last_writer", site_json(sites, tracked.last_writer)},
          {"last_writer_differs", tracked.last_differs},
          {"writers", writers_json(sites, tracked)}};
}

bool is_touched(const Tracked& tracked) {
  const ByteTotals& totals = tracked.totals;
  return totals.stored != 0 || totals.read_only != 0;
}

json pair_json(const Exchange& pair, const std::map<const Tracked*, std::size_t>& places) {
  json breach = nullptr;
  if (pair.breach != ExchangeBreach::none) {
    breach = {{"rule", breach_names[static_cast<std::size_t>(pair.breach)]},
              {"byte", pair.byte ? json(*pair.byte) : json()}};
  }
  return {{"objects", {places.at(pair.after_odd), places.at(pair.after_even)}}, {"breach", breach}};
}

json violation_json(const Checker& checker, const Violation& violation) {
  const Breach& breach = violation.breach;
  const auto iteration = [](std::uint32_t number) {
    return number == never ? json() : json(number);
  };
  return {{"rule", rule_name(breach.rule)},
          {"object", violation.object},
          {"site", site_json(checker.sites(), violation.site)},
          {"array", breach.other ? json(*breach.other ? 2 : 1) : json()},
          {"offset", breach.offset},
          {"bytes", breach.bytes},
          {"first_iteration", violation.iteration},
          {"last_iteration", violation.last_iteration},
          {"count", violation.count},
          {"held_iteration", iteration(breach.held)},
          {"current_iteration", iteration(breach.current)},
          {"stored_at", site_json(checker.sites(), breach.stored_at)},
          {"row_begins", breach.row ? site_json(checker.sites(), *breach.row) : json()},
          {"text", checker.sentence(violation)}};
}

json shadow_json(const Shadow& shadow) {
  const Shadow::Counts& counts = shadow.counts();
  return {{"name", shadow.name()},
          {"size_bytes", shadow.bytes()},
          {"versions", counts.versions},
          {"rows", counts.rows},
          {"fresh_row_bytes", counts.fresh_row_bytes},
          {"copied_bytes", counts.copied_bytes},
          {"unannounced_stores", counts.unannounced}};
}

}  // namespace

std::string record_report(const Record& record, const RunFacts& run) {
  json report = run_json(run, record.iterations());
  report["mode"] = "record";
  report["objects"] = json::array();
  std::map<const Tracked*, std::size_t> places;
  for (const Tracked& tracked : record.tracked()) {
    if (!is_touched(tracked)) continue;
    places[&tracked] = report["objects"].size();
    report["objects"].push_back(tracked_json(record.sites(), tracked));
  }
  report["pairs"] = json::array();
  for (const Exchange& pair : record.pairs()) report["pairs"].push_back(pair_json(pair, places));
  return text_of(report);
}

std::string check_report(const Checker& checker, const RunFacts& run) {
  json report = run_json(run, checker.iterations());
  report["mode"] = "check";
  report["builds"] = json::array();
  for (const IpvBuild& build : run.builds) {
    report["builds"].push_back({{"hash", build.hash}, {"source", build.source}});
  }
  report["loads"] = checker.loads();
  report["stores"] = checker.stores();
  report["violation_count"] = checker.violation_count();
  report["violations"] = json::array();
  for (const Violation& violation : checker.violations()) {
    report["violations"].push_back(violation_json(checker, violation));
  }
  report["objects"] = json::array();
  for (const Shadow* shadow : checker.objects()) {
    report["objects"].push_back(shadow_json(*shadow));
  }
  return text_of(report);
}

}  // namespace perdure::ipv_check
