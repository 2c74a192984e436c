#include "levels/directory_level.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <vector>

#include "base/agreement.hpp"
#include "base/files.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t chunk_bytes = std::size_t{4} << 20U;
constexpr const char* link_name = "current";
constexpr const char* copy_prefix = "version-";

std::string writer_text() {
  return "-" + std::to_string(::getpid());
}

// The version of a copy by its name.
std::optional<std::uint64_t> version_of(const std::string& name) {
  if (!name.starts_with(copy_prefix)) return std::nullopt;
  const char* const digits = name.data() + std::char_traits<char>::length(copy_prefix);
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), version);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return version;
}

// Durable, under a name that others see only when it is whole.
Status copy_file(const std::string& from, const Directory& to, const std::string& name) {
  const std::string fresh = name + ".new" + writer_text();
  PERDURE_TRY_ASSIGN(const auto source, open_file(from, FileAccess::read, trust_unless(false)));
  PERDURE_TRY(to.remove_file(fresh));
  PERDURE_TRY_ASSIGN(const auto target, to.create_file(fresh));
  std::vector<char> chunk(chunk_bytes);
  for (;;) {
    const ssize_t count = ::read(source.fd(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("read " + from, errno);
    if (count == 0) break;
    PERDURE_TRY(
        write_all(target, to.path_of(fresh), {chunk.data(), static_cast<std::size_t>(count)}));
  }
  if (::fsync(target.fd()) != 0) return errno_status("sync " + to.path_of(fresh), errno);
  return to.rename_file(fresh, name);
}

Status point_to(const std::string& place, const std::string& copy_name) {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(place, trust_unless(false)));
  return directory.replace_link(link_name, copy_name, writer_text());
}

// What a copy consists of, finished or not; whatever else is in its directory stays.
void remove_copy(const Directory& place, const std::string& name) {
  const auto copy = Directory::open(place.path_of(name), trust_unless(false));
  if (!copy.ok()) return;
  const auto files = copy.value().names();
  if (!files.ok()) return;
  for (const std::string& file : files.value()) {
    const bool record =
        file == job_record_name || file.starts_with(job_record_name + std::string(".new"));
    if (record || file.starts_with("rank-")) (void)copy.value().remove_file(file);
  }
  (void)place.remove_directory(name);
}

// Older ones only: another rank may be at a newer one already. Ranks that share the directory do
// this at a time: what another has removed is no failure.
void remove_older(const std::string& place, std::uint64_t version) {
  const auto directory = Directory::open(place, trust_unless(false));
  if (!directory.ok()) return;
  const auto names = directory.value().names();
  if (!names.ok()) return;
  for (const std::string& name : names.value()) {
    const auto number = version_of(name);
    if (number && *number < version) remove_copy(directory.value(), name);
  }
}

}  // namespace

std::string DirectoryLevel::path_of(std::uint64_t version) const {
  return place_ + "/" + copy_prefix + std::to_string(version);
}

Result<std::optional<LevelVersion>> DirectoryLevel::newest() const {
  const std::optional<LevelVersion> none;
  const auto place = Directory::open(place_, trust_unless(false));
  if (place.status().code() == Code::not_found) return none;
  if (!place.ok()) return place.status();
  const auto target = place.value().read_link(link_name);
  if (target.status().code() == Code::not_found) return none;
  if (!target.ok()) return target.status();
  const auto version = version_of(target.value());
  if (!version) {
    return Status(Code::foreign, place.value().path_of(link_name) +
                                     " does not lead to a copy that Perdure made; choose another "
                                     "directory for the level");
  }
  PERDURE_TRY_ASSIGN(auto newest, held(*version));
  return std::optional<LevelVersion>(std::move(newest));
}

Result<LevelVersion> DirectoryLevel::held(std::uint64_t version) const {
  PERDURE_TRY_ASSIGN(const auto copy, Directory::open(path_of(version), trust_unless(false)));
  PERDURE_TRY_ASSIGN(auto job, read_job_record(copy));
  return LevelVersion{copy.path(), version, std::move(job)};
}

// What it makes is a pool, which may be opened where it is or anywhere else.
Status DirectoryLevel::copy_pool(const std::string& rank_file, const JobRecord& job,
                                 const std::string& to, IoKind kind) const {
  const TokenScope scope(token_, kind);
  PERDURE_TRY_ASSIGN(const auto directory, Directory::make(to, trust_unless(false)));
  PERDURE_TRY(copy_file(rank_file, directory, rank_file_name(group_.rank())));
  return directory.replace_file(job_record_name, job_record_bytes(job, {}), writer_text());
}

Status DirectoryLevel::keep(const KeptPool& pool, std::uint64_t version) {
  const std::string copy = path_of(version);
  PERDURE_TRY(agree(group_, check_free(pool, version)));
  PERDURE_TRY(agree(group_, copy_pool(pool.rank_file, pool.job, copy, IoKind::write)));
  PERDURE_TRY(agree(group_, point_to(place_, fs::path(copy).filename())));
  remove_older(place_, version);
  return Status::success();
}

Result<LevelVersion> DirectoryLevel::check_fetch(std::uint64_t version,
                                                 const std::string& directory) const {
  const auto to = Directory::open(directory, trust_unless(false));
  if (!to.ok() && to.status().code() != Code::not_found) return to.status();
  if (to.ok() && to.value().holds(job_record_name)) {
    return Status(Code::wrong_state, directory + " holds a pool; move it away, or fetch version " +
                                         std::to_string(version) + " to another directory");
  }
  PERDURE_TRY_ASSIGN(const auto last, newest());
  if (last && version <= last->version) {
    if (auto found = held(version); found.status().code() != Code::not_found) return found;
  }
  return Status(Code::not_found, place_ + " holds no version " + std::to_string(version) +
                                     "; its newest is " +
                                     (last ? std::to_string(last->version) : "none"));
}

Status DirectoryLevel::fetch(std::uint64_t version, const std::string& directory) {
  const auto from = check_fetch(version, directory);
  PERDURE_TRY(agree(group_, from.status()));
  const std::string rank_file = rank_file_path(from.value().place, group_.rank());
  return agree(group_, copy_pool(rank_file, from.value().job, directory, IoKind::read));
}

}  // namespace perdure
