// SPDX-License-Identifier: BSD-3-Clause
//
// The report of perdure_ipv_close(): what was done for each object.
#include <nlohmann/json.hpp>

#include "base/ipv_builds.hpp"
#include "ipv/object_set.hpp"

namespace perdure {
namespace {

using Json = nlohmann::ordered_json;

Json object_report(const InPlaceObject& object) {
  const perdure_ipv_object_status status = object.status();
  Json json{{"name", object.name()},
            {"bytes", object.bytes()},
            {"asked", tier_name(object.asked())},
            {"tier", tier_name(object.tier())},
            {"ended", object.ended()},
            {"versions", status.versions},
            {"rows", status.rows},
            {"boxes", object.boxes()},
            {"boxes_refused", object.boxes_refused()},
            {"fresh_row_bytes", status.fresh_row_bytes},
            {"copied_bytes", status.copied_bytes},
            {"flushed_bytes", status.flushed_bytes},
            {"streamed_bytes", status.streamed_bytes},
            {"swaps", status.swaps},
            {"swap_ns", status.swap_ns},
            {"guard_faults", status.guard_faults},
            {"persist_ns", status.persist_ns},
            {"first_stores_ns", object.first_stores_ns()},
            {"pool_bytes", status.pool_bytes},
            {"dram_bytes", status.dram_bytes}};
  if (!object.onlooker().empty()) json["onlooker"] = object.onlooker();
  if (!object.why_copy().empty()) json["why_copy"] = object.why_copy();
  return json;
}

}  // namespace

std::string ipv_report(const ObjectSet& set, std::uint64_t version) {
  Json objects = Json::array();
  for (const auto& object : set.list().all()) objects.push_back(object_report(*object));
  Json builds = Json::array();
  for (const IpvBuild& build : ipv_builds()) {
    builds.push_back({{"source", build.source}, {"checked", build.checked}});
  }
  const Json report{{"version", version},
                    {"lag", set.lags() ? 1 : 0},
                    {"persistence_points", set.calls()},
                    {"commit_ns", set.pool().status().commit_ns},
                    {"builds", std::move(builds)},
                    {"objects", std::move(objects)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace perdure
