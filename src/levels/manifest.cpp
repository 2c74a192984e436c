// SPDX-License-Identifier: BSD-3-Clause
//
// Manifest: what becomes durable in which order, and what a crash leaves.
//
//   node file  1  NAME.new-… is written and synchronised              (node_file.cpp)
//              2  it is renamed to NAME, over nothing; the directory is synchronised
//   manifest   3  node files of all ranks are read, by their lists
//              4  the directory is synchronised: names that others gave in 2 may not be durable
//              5  manifest.new-… is written and synchronised
//              6  it is renamed to manifest; the directory is synchronised
//   removal    7  the manifest of a version that is older than `keep` others is removed; the
//                 directory is synchronised
//              8  its node files, and its directory
//
// A crash before 6 leaves no manifest, and whatever is there of node files is not believed: the
// versions before are untouched, as 7 comes after 6 of the versions that stay. A rename happens as
// a whole or not at all, so there is no crash in 2 or 6. After 6 all that the manifest names is
// durable (1, 2, 4) and is never written again: a node file is renamed over nothing (2), and is
// made anew only if it is damaged. A crash between 7 and 8 leaves node files without a manifest, as
// one before 6 does; 8 takes them at the next removal, since what is older than `keep` manifests
// goes whether it has one or not. Writers at the same time are at different names until 2 and 6,
// and each gives what the other would have given.
//
// A restore writes its mark before it returns on any rank, and versions that come after it have a
// higher incarnation. So a version that was abandoned stays so, also if its manifest is written
// after the mark, by a drain that was under way; and nothing newer is ever hidden by the mark.
#include "levels/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "levels/format_bytes.hpp"
#include "levels/lease.hpp"
#include "levels/node_file_format.hpp"
#include "levels/sealed.hpp"

namespace perdure {
namespace {

constexpr const char* manifest_name = "manifest";
constexpr std::string_view version_prefix = "version-";
constexpr std::string_view abandoned_prefix = "abandoned-";

// PREFIX-N.N...
template <typename... Numbers>
std::string numbered_name(std::string_view prefix, std::uint64_t first, Numbers... others) {
  std::string name = std::string(prefix) + std::to_string(first);
  ((name += "." + std::to_string(others)), ...);
  return name;
}

// Absent: numbered_name() never makes that of `count` numbers.
std::optional<std::vector<std::uint64_t>> parse_numbered_name(std::string_view prefix,
                                                              std::size_t count,
                                                              const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::vector<std::uint64_t> numbers(count);
  const char* const end = name.data() + name.size();
  const char* at = name.data() + prefix.size();
  for (std::uint64_t& number : numbers) {
    if (at == end || (*at == '0' && at + 1 != end && at[1] != '.')) return std::nullopt;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc()) return std::nullopt;
    at = parsed.ptr;
    if (&number == &numbers.back()) break;
    if (at == end || *at++ != '.') return std::nullopt;
  }
  if (at != end) return std::nullopt;
  return numbers;
}

// What a restore gave up.
struct Abandoned {
  VersionId held;
  std::uint64_t incarnation_max = 0;
  std::string name() const {
    return numbered_name(abandoned_prefix, held.version, held.incarnation, incarnation_max);
  }
  bool covers(VersionId id) const {
    return is_newer(id, held) && id.incarnation <= incarnation_max;
  }
};

std::string bytes_of(const Manifest& manifest) {
  std::string payload;
  for (const ManifestFile& file : manifest.files) {
    append(payload, ManifestFileFormat{file.node, static_cast<std::uint32_t>(file.ranks.size()),
                                       file.bytes, file.checksum});
    for (const std::uint32_t rank : file.ranks) append(payload, rank);
  }
  return sealed({SealedKind::manifest, manifest.job, 0, manifest.id}, payload);
}

// levels.V1: the files with their ranks, each rank of the job once; absent: that is not so.
std::optional<std::vector<ManifestFile>> parse_files(std::string_view rest, std::uint32_t ranks) {
  std::vector<ManifestFile> files;
  std::vector<bool> seen(ranks, false);
  std::uint64_t found = 0;
  while (!rest.empty()) {
    ManifestFileFormat format{};
    if (!take(rest, format)) return std::nullopt;
    ManifestFile file{format.node, format.bytes, format.checksum, {}};
    for (std::uint32_t j = 0; j < format.ranks; ++j) {
      std::uint32_t rank = 0;
      if (!take(rest, rank) || rank >= ranks || seen[rank]) return std::nullopt;
      seen[rank] = true;
      file.ranks.push_back(rank);
      ++found;
    }
    files.push_back(std::move(file));
  }
  if (found != ranks) return std::nullopt;
  return files;
}

constexpr std::uint64_t manifest_bytes_max =
    sealed_bytes(ranks_max * (sizeof(ManifestFileFormat) + sizeof(std::uint32_t)));

// Code::not_found if the version has none.
Result<Manifest> read_manifest(const LevelDirectory& version, const JobId& lineage, VersionId id) {
  const std::string path = version.path_of(manifest_name);
  PERDURE_TRY_ASSIGN(const auto bytes, version.read_file(manifest_name, manifest_bytes_max));
  PERDURE_TRY_ASSIGN(const auto whole, unseal(path, bytes, SealedKind::manifest, 0));
  const JobRecord& job = whole.header.job;
  auto files = parse_files(whole.payload, job.ranks);
  if (!files) return Status(Code::damaged, path, " does not name each rank once");
  if (lineage_of(job) == lineage && whole.header.id == id) {
    return Manifest{version.path(), job, id, std::move(*files)};
  }
  return Status(Code::foreign, path, " is that of version ", whole.header.id.version, " of job ",
                job_id_text(job.job_id), ", copied to another one's place; have it removed");
}

// What of a version's directory is ours, apart from the manifest.
bool is_version_file(const std::string& name) {
  return node_of_file(name) || is_unfinished_node_file(name) ||
         name.starts_with(std::string(manifest_name) + ".new-");
}

// Node files that were never finished, and manifests; of a version that has one they are of no use.
Status remove_unfinished(const LevelDirectory& version) {
  PERDURE_TRY_ASSIGN(const auto names, version.names());
  for (const std::string& name : names) {
    if (is_version_file(name) && !node_of_file(name)) PERDURE_TRY(version.remove_file(name));
  }
  return Status::success();
}

// levels.M2: the manifest first.
Status remove_version(const LevelDirectory& job, const std::string& name) {
  const auto opened = LevelDirectory::open(job.path_of(name));
  if (opened.status().code() == Code::not_found) return Status::success();  // by another process
  if (!opened.ok()) return opened.status();
  const LevelDirectory& version = opened.value();
  PERDURE_TRY(version.remove_file(manifest_name));
  PERDURE_TRY(version.sync());
  PERDURE_TRY_ASSIGN(const auto files, version.names());
  for (const std::string& file : files) {
    if (is_version_file(file)) PERDURE_TRY(version.remove_file(file));
  }
  (void)LevelDirectory::remove_folder(version.path());  // stays if the user keeps other files in it
  return Status::success();
}

// What a lineage's directory holds.
struct LineageDirectory {
  LevelDirectory directory;
  std::vector<std::pair<VersionId, std::string>> versions;  // newest first, with manifests or not
  std::vector<Abandoned> abandoned;

  bool is_abandoned(VersionId id) const {
    return std::ranges::any_of(abandoned, [&](const Abandoned& mark) { return mark.covers(id); });
  }
};

// Code::not_found if there is none.
Result<LineageDirectory> open_lineage(const std::string& place, const JobId& lineage) {
  PERDURE_TRY_ASSIGN(auto opened, LevelDirectory::open(lineage_path(place, lineage)));
  LineageDirectory found{std::move(opened), {}, {}};
  PERDURE_TRY_ASSIGN(const auto names, found.directory.names());
  for (const std::string& name : names) {
    if (const auto id = version_of_name(name)) found.versions.emplace_back(*id, name);
    if (const auto mark = parse_numbered_name(abandoned_prefix, 3, name)) {
      found.abandoned.push_back({{(*mark)[1], (*mark)[0]}, (*mark)[2]});
    }
  }
  std::ranges::sort(found.versions,
                    [](const auto& one, const auto& other) { return other.first < one.first; });
  return found;
}

constexpr VersionId no_limit{UINT64_MAX, UINT64_MAX};

// Adds those up to `until`.
Status add_versions(const std::string& place, const JobId& lineage, VersionId until,
                    FoundVersions& versions) {
  const auto opened = open_lineage(place, lineage);
  if (opened.status().code() == Code::not_found) return Status::success();
  if (!opened.ok()) return opened.status();
  const LineageDirectory& found = opened.value();
  std::uint64_t& incarnation_max = versions.incarnation_max;
  for (const Abandoned& mark : found.abandoned) {
    incarnation_max = std::max(incarnation_max, mark.incarnation_max);
  }
  for (const auto& [id, name] : found.versions) {
    incarnation_max = std::max(incarnation_max, id.incarnation);
    if (found.is_abandoned(id) || until < id) continue;
    const auto version = LevelDirectory::open(found.directory.path_of(name));
    auto manifest = version.ok() ? read_manifest(version.value(), lineage, id)
                                 : Result<Manifest>(version.status());
    if (manifest.ok()) {
      versions.manifests.push_back(manifest.take());
    } else if (manifest.status().code() != Code::not_found) {
      versions.problems.push_back(manifest.status().message());
    }
  }
  return Status::success();
}

// What is older than `oldest`, and of an ancestor no later than `until`. An ancestor's directory
// goes with the last of its versions.
Status remove_older(const std::string& place, const JobId& lineage, VersionId until,
                    VersionId oldest) {
  const auto opened = open_lineage(place, lineage);
  if (opened.status().code() == Code::not_found) return Status::success();
  if (!opened.ok()) return opened.status();
  const LineageDirectory& found = opened.value();
  std::size_t left = found.versions.size();
  for (const auto& [id, name] : found.versions) {
    if (oldest <= id || until < id) continue;
    PERDURE_TRY(remove_version(found.directory, name));
    --left;
  }
  const bool over = left == 0 && until != no_limit;
  for (const Abandoned& mark : found.abandoned) {  // all that it concerns is older
    if (!over && mark.incarnation_max >= oldest.incarnation) continue;
    PERDURE_TRY(found.directory.remove_file(mark.name()));
  }
  if (!over) return found.directory.sync();
  PERDURE_TRY(found.directory.remove_file(origin_name));
  (void)LevelDirectory::remove_folder(found.directory.path());  // stays as above
  return Status::success();
}

}  // namespace

std::string place_of_pool(const std::string& level, const std::string& pool_directory) {
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(pool_directory, error);
  return level + "/" + (error ? split_path(pool_directory).name : path.filename().string());
}

std::string version_name(VersionId id) {
  return numbered_name(version_prefix, id.version, id.incarnation);
}

std::optional<VersionId> version_of_name(const std::string& name) {
  const auto numbers = parse_numbered_name(version_prefix, 2, name);
  if (!numbers) return std::nullopt;
  return VersionId{(*numbers)[1], (*numbers)[0]};
}

Result<FoundVersions> find_versions(const std::string& place, const std::optional<JobId>& lineage) {
  FoundVersions versions;
  JobId wanted;
  if (lineage) {
    wanted = *lineage;
  } else {
    PERDURE_TRY_ASSIGN(const auto newest, newest_lease(place));
    if (!newest) return versions;
    wanted = lineage_of(newest->job);
  }
  PERDURE_TRY_ASSIGN(versions.ancestors, read_ancestors(place, wanted));
  PERDURE_TRY(add_versions(place, wanted, no_limit, versions));
  for (const Ancestor& each : versions.ancestors) {
    PERDURE_TRY(add_versions(place, each.lineage, each.until, versions));
  }
  std::ranges::sort(versions.manifests,
                    [](const Manifest& one, const Manifest& other) { return other.id < one.id; });
  return versions;
}

bool has_manifest(const std::string& version_directory) {
  const auto version = LevelDirectory::open(version_directory);
  return version.ok() && version.value().open_file(manifest_name).ok();
}

Result<FoundImage> find_image(const Manifest& manifest, std::uint32_t rank) {
  PERDURE_TRY_ASSIGN(auto version, LevelDirectory::open(manifest.directory));
  for (const ManifestFile& file : manifest.files) {
    if (std::ranges::find(file.ranks, rank) == file.ranks.end()) continue;
    PERDURE_TRY_ASSIGN(auto held, read_node_file(version, file.node));
    const auto image = std::ranges::find(held.images, rank, &NodeImage::rank);
    if (!(held.job.job_id == manifest.job.job_id) || held.id != manifest.id ||
        held.bytes != file.bytes || held.checksum != file.checksum || image == held.images.end()) {
      return Status(Code::damaged, version.path_of(node_file_name(file.node)),
                    " is not the one that the manifest names");
    }
    const NodeImage its = *image;
    return FoundImage{std::move(version), std::move(held), its};
  }
  return Status(Code::not_found, manifest.directory, " holds ranks 0 to ", manifest.job.ranks - 1,
                ", not ", rank);
}

Status read_image(const Manifest& manifest, std::uint32_t rank, LevelFile& to) {
  PERDURE_TRY_ASSIGN(const FoundImage found, find_image(manifest, rank));
  SealedHeader header;
  PERDURE_TRY(read_node_image(
      found.version, found.file, found.image,
      [&](const SealedHeader& its) {
        header = its;
        return to.begin(header.payload_bytes);
      },
      [&to](std::uint64_t offset, std::span<const std::byte> bytes) { to.write(offset, bytes); }));
  header.job = manifest.job;  // of the lineage that goes on from it
  return to.complete(header);
}

Status abandon_versions(const std::string& place, const JobId& lineage, VersionId held,
                        std::uint64_t incarnation_max) {
  PERDURE_TRY_ASSIGN(const auto directory, make_in_place(place, job_id_text(lineage)));
  return directory.replace_file(Abandoned{held, incarnation_max}.name(), "");
}

Status remove_old_versions(const std::string& place, const JobId& lineage, std::uint32_t keep) {
  PERDURE_TRY_ASSIGN(const auto versions, find_versions(place, lineage));
  if (keep == 0 || versions.manifests.size() < keep) return Status::success();
  const VersionId oldest = versions.manifests[keep - 1].id;
  for (const Ancestor& each : versions.ancestors) {
    PERDURE_TRY(remove_older(place, each.lineage, each.until, oldest));
  }
  return remove_older(place, lineage, no_limit, oldest);
}

Result<LevelDirectory> make_version(const std::string& place, const JobId& lineage, VersionId id) {
  return make_in_place(place, job_id_text(lineage) + "/" + version_name(id));
}

Status ManifestWriter::read_new_files(const LevelDirectory& directory) {
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  Status problem;
  for (const std::string& name : names) {
    const auto node = node_of_file(name);
    if (!node || files_.contains(*node)) continue;
    auto file = read_node_file(directory, *node);
    if (file.status().code() == Code::not_found) continue;
    Status status = file.status();
    if (file.ok() && (!same_lineage(file.value().job, job_) || file.value().id != id_ ||
                      file.value().job.ranks != job_.ranks)) {
      status = Status(Code::damaged, directory.path_of(name), " is of another version or job");
    }
    if (!status.ok()) {
      problem = status;
      continue;
    }
    ManifestFile entry{*node, file.value().bytes, file.value().checksum, {}};
    for (const NodeImage& image : file.value().images) entry.ranks.push_back(image.rank);
    files_.emplace(*node, std::move(entry));
  }
  return problem;
}

Manifest ManifestWriter::manifest() const {
  Manifest manifest{"", job_, id_, {}};
  std::set<std::uint32_t> taken;
  for (const auto& [node, file] : files_) {
    ManifestFile entry = file;
    std::erase_if(entry.ranks, [&](std::uint32_t rank) { return !taken.insert(rank).second; });
    if (!entry.ranks.empty()) manifest.files.push_back(std::move(entry));
  }
  return manifest;
}

bool ManifestWriter::has(std::uint32_t rank) const {
  return std::ranges::any_of(files_, [rank](const auto& each) {
    const auto& ranks = each.second.ranks;
    return std::ranges::find(ranks, rank) != ranks.end();
  });
}

std::uint32_t ManifestWriter::missing() const {
  std::uint64_t there = 0;
  for (const ManifestFile& file : manifest().files) there += file.ranks.size();
  return job_.ranks - static_cast<std::uint32_t>(there);
}

Result<bool> ManifestWriter::try_write() {
  PERDURE_TRY_ASSIGN(
      const auto directory,
      LevelDirectory::open(lineage_path(place_, lineage_of(job_)) + "/" + version_name(id_)));
  const auto there = read_manifest(directory, lineage_of(job_), id_);
  if (there.ok()) return true;
  if (there.status().code() != Code::not_found && there.status().code() != Code::damaged) {
    return there.status();
  }
  const Status read = read_new_files(directory);
  if (missing() > 0) return read.ok() ? Result<bool>(false) : Result<bool>(read);
  PERDURE_TRY(directory.sync());  // levels.M1: the names that other nodes gave
  PERDURE_TRY(directory.replace_file(manifest_name, bytes_of(manifest())));
  (void)remove_unfinished(directory);  // takes space, and nothing else
  return true;
}

}  // namespace perdure
