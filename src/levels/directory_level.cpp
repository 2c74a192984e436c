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
constexpr const char* record_name = "job";
constexpr const char* rank_prefix = "rank-";

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

// Durable under a name that others see only when it is whole.
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

Status copy_files(const LevelFiles& files, const std::string& copy, IoToken* token) {
  const TokenScope scope(token, IoKind::write);
  PERDURE_TRY_ASSIGN(const auto directory, Directory::make(copy, trust_unless(false)));
  PERDURE_TRY(copy_file(files.rank_file, directory, fs::path(files.rank_file).filename()));
  return directory.replace_file(record_name, files.job_record, writer_text());
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
    const bool record = file == record_name || file.starts_with(std::string(record_name) + ".new");
    if (record || file.starts_with(rank_prefix)) (void)copy.value().remove_file(file);
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

std::string place_in(const std::string& level, const std::string& pool) {
  return level + "/" + fs::path(pool).filename().string();
}

}  // namespace

Result<std::optional<LevelCopy>> newest_copy(const std::string& level, const std::string& pool) {
  const std::optional<LevelCopy> none;
  const auto place = Directory::open(place_in(level, pool), trust_unless(false));
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
  return std::optional<LevelCopy>({place.value().path_of(target.value()), *version});
}

Status copy_to_level(Group& group, const LevelFiles& files, const std::string& level,
                     std::uint64_t version, const Status& ready, IoToken* token) {
  const std::string place = place_in(level, files.pool);
  const std::string copy_name = copy_prefix + std::to_string(version);
  PERDURE_TRY(agree(group, ready));
  PERDURE_TRY(agree(group, copy_files(files, place + "/" + copy_name, token)));
  PERDURE_TRY(agree(group, point_to(place, copy_name)));
  remove_older(place, version);
  return Status::success();
}

}  // namespace perdure
