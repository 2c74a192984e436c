// SPDX-License-Identifier: BSD-3-Clause
#include "levels/lineage.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/files.hpp"
#include "levels/format_bytes.hpp"
#include "levels/lease_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t origin_bytes_max =
    sizeof(OriginFormat) + std::uint64_t{ancestors_max} * sizeof(AncestorFormat);

std::uint64_t checksum_of(const OriginFormat& format, std::string_view rest) {
  return crc64(rest.data(), rest.size(), crc64(&format, offsetof(OriginFormat, checksum)));
}

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
  OriginFormat format{};
  std::string_view rest = bytes.value();
  const bool whole = take(rest, format) && format.magic == origin_magic &&
                     format.checksum == checksum_of(format, rest);
  if (whole && format.format_version > origin_version) {
    return newer_format(path, format.format_version, origin_version);
  }
  const bool sane = whole && rest.size() == format.ancestors * sizeof(AncestorFormat) &&
                    JobId{{format.lineage[0], format.lineage[1]}} == lineage;
  if (!sane) {
    return Status(Code::damaged, path,
                  " does not say what its versions were made from: it is damaged");
  }
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
  OriginFormat format{};
  format.magic = origin_magic;
  format.format_version = origin_version;
  format.ancestors = static_cast<std::uint32_t>(ancestors.size());
  std::copy_n(job.job_id.words, 2, format.job_id);
  std::copy_n(lineage_of(job).words, 2, format.lineage);
  std::string rest;
  for (const Ancestor& each : ancestors) {
    append(rest, AncestorFormat{{each.lineage.words[0], each.lineage.words[1]},
                                each.until.incarnation,
                                each.until.version});
  }
  format.checksum = checksum_of(format, rest);
  std::string bytes;
  append(bytes, format);
  return directory.replace_file(origin_name, bytes + rest);
}

Kinship kinship_of(const JobId& other, const Ancestors& ancestors, const JobId& lineage,
                   VersionId held) {
  if (other == lineage) return Kinship::same;
  const auto found = std::ranges::find(ancestors, lineage, &Ancestor::lineage);
  if (found == ancestors.end()) return Kinship::none;
  return is_newer(held, found->until) ? Kinship::fork : Kinship::continuation;
}

}  // namespace perdure
