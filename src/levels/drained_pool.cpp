// SPDX-License-Identifier: BSD-3-Clause
#include "levels/drained_pool.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "levels/lease.hpp"
#include "levels/node_file.hpp"
#include "pool/stored_array.hpp"

namespace perdure {
namespace {

// Newest first, each number once: of two the later one counts, as in a restart.
Result<FoundVersions> versions_of(const std::string& place) {
  PERDURE_TRY_ASSIGN(auto found, find_versions(place, std::nullopt));
  std::set<std::uint64_t> seen;
  std::erase_if(found.manifests,
                [&seen](const Manifest& each) { return !seen.insert(each.id.version).second; });
  return found;
}

Status read_whole(const Manifest& manifest, std::uint32_t rank) {
  PERDURE_TRY_ASSIGN(const FoundImage found, find_image(manifest, rank));
  return read_node_image(
      found.version, found.file, found.image, [](auto&) { return Status::success(); },
      [](auto, auto) {});
}

// What a report says of an image.
struct HeldImage {
  std::string path;
  std::uint64_t bytes = 0;
  Catalogue catalogue;
};

Result<HeldImage> look_at(const Manifest& manifest, std::uint32_t rank, bool verify_data) {
  PERDURE_TRY_ASSIGN(OpenImage image, open_image(manifest, rank));
  if (verify_data) PERDURE_TRY(read_whole(manifest, rank));
  return HeldImage{image.reader.path(), image.bytes, std::move(image.contents.catalogue)};
}

// As a slot would have it.
void add_image(RankReport& rank, HeldImage image) {
  Catalogue& catalogue = image.catalogue;
  const auto slot = static_cast<std::uint32_t>(rank.slots.size());
  rank.judgement.offers.push_back(
      {catalogue.version, catalogue.parent, catalogue.incarnation, slot, false, true});
  rank.complete_versions.push_back(catalogue.version);
  rank.file_bytes += image.bytes;
  if (!rank.newest) {
    rank.path = std::move(image.path);
    rank.newest = catalogue.version;
    rank.catalogue = catalogue;
    rank.usable = true;
  }
  rank.slots.push_back({std::nullopt, std::move(catalogue), ""});
}

// Whether all ranks have it. One that a job removes meanwhile is not there.
bool add_version(PoolReport& report, const Manifest& manifest, bool verify_data) {
  std::vector<Result<HeldImage>> images;
  for (const RankReport& rank : report.ranks) {
    images.push_back(look_at(manifest, rank.rank, verify_data));
  }
  const bool whole = std::ranges::all_of(images, [](const auto& image) { return image.ok(); });
  if (!whole && !has_manifest(manifest.directory)) return false;
  for (std::size_t i = 0; i < images.size(); ++i) {
    RankReport& rank = report.ranks[i];
    if (images[i].ok()) {
      add_image(rank, images[i].take());
    } else {
      rank.findings.push_back({Severity::damage, images[i].status().message()});
    }
  }
  return whole;
}

}  // namespace

Result<OpenImage> open_image(const Manifest& manifest, std::uint32_t rank) {
  PERDURE_TRY_ASSIGN(const FoundImage found, find_image(manifest, rank));
  PERDURE_TRY_ASSIGN(auto reader, NodeImageReader::open(found.version, found.file, found.image));
  std::vector<std::byte> front;
  const auto read = [&reader](std::uint64_t offset, std::span<std::byte> out) {
    return reader.read(offset, out.size(), out.data());
  };
  PERDURE_TRY_ASSIGN(auto contents, parse_image_front(reader.payload_bytes(), read, front));
  return OpenImage{std::move(reader), std::move(contents), std::move(front), found.image.bytes};
}

bool is_drained_pool(const std::string& directory) {
  const auto opened = LevelDirectory::open(directory);
  if (!opened.ok()) return false;
  const auto names = opened.value().names();
  if (!names.ok() || std::ranges::find(names.value(), job_record_name) != names.value().end()) {
    return false;
  }
  const auto lease = newest_lease(directory);
  return lease.ok() && lease.value().has_value();
}

Result<PoolReport> inspect_drained_pool(const std::string& place, const InspectOptions& options) {
  PERDURE_TRY_ASSIGN(const auto newest, newest_lease(place));
  if (!newest) return Status(Code::not_found, "nothing was drained to ", place);
  PERDURE_TRY_ASSIGN(const FoundVersions found, versions_of(place));
  PoolReport report;
  report.directory = place;
  if (const auto opened = Directory::open(place, Trust::anyone); opened.ok()) {
    report.owner = opened.value().owner();
  }
  report.job = found.manifests.empty() ? newest->job : found.manifests.front().job;
  for (const std::string& problem : found.problems) {
    report.findings.push_back({Severity::damage, problem});
  }
  for (std::uint32_t rank = 0; rank < report.job.ranks && !found.manifests.empty(); ++rank) {
    report.ranks.emplace_back().rank = rank;
  }
  for (const Manifest& manifest : found.manifests) {
    if (manifest.job.ranks != report.job.ranks) break;  // of before the job got other ranks
    if (!add_version(report, manifest, options.verify_data)) continue;
    const Catalogue& first = *report.ranks.front().slots.back().body;
    report.versions.push_back({first.version, first.parent, first.committed_ns, false});
    if (!report.version) report.version = first.version;
  }
  return report;
}

Result<DumpedArray> read_drained_array(const std::string& place, std::uint32_t rank,
                                       const std::string& name, std::uint32_t part,
                                       std::uint64_t version) {
  PERDURE_TRY_ASSIGN(const FoundVersions found, versions_of(place));
  const auto manifest =
      std::ranges::find(found.manifests, version, [](auto& each) { return each.id.version; });
  const auto gone = [&] {
    return Status(Code::busy, place, ": version ", version, " is no longer there, as newer ones ",
                  "were drained; read one of these, or have more kept with drain_keep");
  };
  if (manifest == found.manifests.end()) return gone();
  auto opened = open_image(*manifest, rank);
  if (opened.status().code() == Code::not_found && rank < manifest->job.ranks) return gone();
  PERDURE_TRY_ASSIGN(OpenImage image, std::move(opened));
  std::size_t index = 0;
  for (const ArrayEntry& entry : image.contents.catalogue.arrays) {
    const std::uint64_t offset = image.contents.copy_offsets[index++];
    if (entry.name != name || entry.part != part) continue;
    const auto read = [&image](std::uint64_t at, std::uint64_t count, std::byte* to) {
      return image.reader.read(at, count, to);
    };
    DumpedArray dumped{version, entry.shape, std::vector<std::byte>(entry.size_bytes), "", 0};
    auto array = StoredArray::in_image(read, image.reader.path(), entry, offset);
    PERDURE_TRY(array.read(0, entry.size_bytes, dumped.bytes.data()));
    return dumped;
  }
  return Status(Code::not_found, "version ", version, " of rank ", rank, " has no array ",
                quoted(name));
}

}  // namespace perdure
