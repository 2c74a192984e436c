// SPDX-License-Identifier: BSD-3-Clause
#include "parts/part_facts.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "parts/part_layout.hpp"
#include "pmem/file_device.hpp"

namespace perdure {

PartFact fact_of(const PartHeaderFormat& header, const PartStateFormat& state) {
  PartFact fact;
  fact.path = header.path;
  std::copy_n(header.instance, 2, fact.instance);
  fact.node = header.node;
  fact.nodes = header.nodes;
  fact.pool_version = header.pool_version;
  fact.pool_incarnation = header.pool_incarnation;
  fact.next_incarnation = header.next_incarnation;
  fact.noted = std::max(state.sized_versions[0], state.sized_versions[1]);
  fact.prepared = state.prepared;
  fact.in_use = state.in_use == part_in_use;
  fact.fresh = state.in_use == part_fresh;
  return fact;
}

// The pool is at the version after which the part began to change, or at the next one, for which
// all was durable here when it was committed (part_versions.hpp, cache.P8).
bool holds_version(const PartFact& part, const PoolVersion& version) {
  if (part.noted == 0) return true;  // its making was cut short: nobody has used it
  const std::uint64_t newest = part.noted - 1;
  const bool same_number =
      version.version == newest || (version.version > newest && part.prepared == version.version);
  if (!same_number || version.incarnation == 0 || part.next_incarnation == 0) return same_number;
  if (part.fresh && version.version == part.pool_version &&
      version.image_incarnation > part.pool_incarnation &&
      version.image_incarnation < part.next_incarnation) {
    return true;  // parts.F1
  }
  return version.incarnation ==
         (version.version == part.pool_version ? part.pool_incarnation : part.next_incarnation);
}

bool is_of_line(const PartFact& part, const PoolVersion& version) {
  return part.next_incarnation == version.incarnation ||
         (part.pool_version == version.version && part.pool_incarnation == version.incarnation);
}

std::string missing_parts(const std::vector<PartFact>& parts, const PoolVersion& version) {
  for (const PartFact& part : parts) {
    if (!part.in_use || !is_of_line(part, version)) continue;
    const std::string file = "the cached file " + part.path + " is committed with the pool";
    if (!holds_version(part, version)) {
      return file + ", and its part of node " + std::to_string(part.node) + " is not of version " +
             std::to_string(version.version);
    }
    std::set<std::uint32_t> there;
    for (const PartFact& other : parts) {
      if (std::equal(other.instance, other.instance + 2, part.instance)) there.insert(other.node);
    }
    for (std::uint32_t node = 0; node < part.nodes; ++node) {
      if (there.contains(node)) continue;
      return file + ", and the part that node " + std::to_string(node) + " of " +
             std::to_string(part.nodes) + " kept of it is on no node of this job";
    }
  }
  return "";
}

bool is_part_name(const std::string& name) {
  return name.ends_with(".part") || name.ends_with(".part.undo");
}

std::vector<PartFact> find_group_parts(const Directory& directory, const std::uint64_t (&job)[2],
                                       Trust trust) {
  std::vector<PartFact> found;
  const auto names = directory.names();
  for (const std::string& name : names.ok() ? names.value() : std::vector<std::string>()) {
    if (!name.ends_with(".part")) continue;
    const auto device = open_file_device(directory.path_of(name),
                                         {.read_only = true, .trust = trust, .shared = true});
    if (!device.ok()) continue;
    const auto header = read_part_header(*device.value());
    if (!header.ok() || !std::equal(job, job + 2, header.value().pool_job)) continue;
    PartStateFormat state;
    std::memcpy(&state, device.value()->base() + header.value().state_offset, sizeof state);
    found.push_back(fact_of(header.value(), state));
  }
  return found;
}

}  // namespace perdure
