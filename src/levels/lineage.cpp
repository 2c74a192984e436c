// SPDX-License-Identifier: BSD-3-Clause
#include "levels/lineage.hpp"

#include <algorithm>

#include "base/files.hpp"
#include "levels/format_bytes.hpp"
#include "levels/lease_format.hpp"
#include "levels/sealed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t origin_bytes_max =
    sealed_bytes(std::uint64_t{ancestors_max} * sizeof(AncestorFormat));

}  // namespace

std::string lineage_path(const std::string& place, const JobId& lineage) {
  return place + "/" + job_id_text(lineage);
}

Result<Ancestors> read_ancestors(const std::string& place, const JobId& lineage) {
  const auto directory = LevelDirectory::open(lineage_path(place, lineage));
  if (directory.status().code() == Code::not_found) return Ancestors{};
  if (!directory.ok()) return directory.status();
  const std::string path = directory.value().path_of(origin_name);
  const auto bytes = directory.value().read_file(origin_name, origin_bytes_max);
  if (bytes.status().code() == Code::not_found) return Ancestors{};
  if (!bytes.ok()) return bytes.status();
  const auto whole = unseal(path, bytes.value(), SealedKind::origin, 0);
  if (whole.status().code() == Code::newer_format) return whole.status();
  if (!whole.ok() || lineage_of(whole.value().header.job) != lineage ||
      whole.value().payload.size() % sizeof(AncestorFormat) != 0) {
    return Status(Code::damaged, path,
                  " does not say what its versions were made from: it is damaged");
  }
  std::string_view rest = whole.value().payload;
  Ancestors ancestors;
  for (AncestorFormat each{}; take(rest, each);) {
    ancestors.push_back({{{each.lineage[0], each.lineage[1]}}, id_of(each)});
  }
  return ancestors;
}

Result<LevelDirectory> make_in_place(const std::string& place, const std::string& below) {
  const PathParts parts = split_path(place);
  return LevelDirectory::make_below(parts.directory, parts.name + "/" + below);
}

Status write_ancestors(const std::string& place, const JobRecord& job, const Ancestors& ancestors) {
  PERDURE_TRY_ASSIGN(const auto directory, make_in_place(place, job_id_text(lineage_of(job))));
  std::string payload;
  for (const Ancestor& each : ancestors) {
    append(payload, AncestorFormat{{each.lineage.words[0], each.lineage.words[1]},
                                   each.until.incarnation,
                                   each.until.version});
  }
  return directory.replace_file(origin_name, sealed({SealedKind::origin, job, 0, {}}, payload));
}

Kinship kinship_of(const JobId& other, const Ancestors& ancestors, const JobId& lineage,
                   VersionId held) {
  if (other == lineage) return Kinship::same;
  const auto found = std::ranges::find(ancestors, lineage, &Ancestor::lineage);
  if (found == ancestors.end()) return Kinship::none;
  return is_newer(held, found->until) ? Kinship::fork : Kinship::continuation;
}

}  // namespace perdure
