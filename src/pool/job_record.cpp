// SPDX-License-Identifier: BSD-3-Clause
#include "pool/job_record.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/quantity.hpp"
#include "pool/catalogue.hpp"
#include "pool/job_record_format.hpp"

namespace perdure {
namespace {

// A newer format may be longer.
constexpr std::uint64_t job_record_bytes_max = 4096;

std::uint64_t record_checksum(const JobRecordFormat& format) {
  return crc64(&format, offsetof(JobRecordFormat, checksum));
}

constexpr const char* fresh_suffix = ".new";
constexpr const char* next_suffix = ".next";

}  // namespace

std::string job_record_path(const std::string& directory) {
  return directory + "/" + job_record_name;
}

std::string rank_file_name(std::uint32_t rank) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "rank-%05u", rank);
  return name.data();
}

std::string fresh_rank_file_name(std::uint32_t rank) {
  return rank_file_name(rank) + fresh_suffix;
}

std::string next_rank_file_name(std::uint32_t rank) {
  return rank_file_name(rank) + next_suffix;
}

std::string fresh_record_name(std::uint32_t rank) {
  return std::string(job_record_name) + fresh_suffix + rank_file_name(rank).substr(4);
}

std::string rank_file_path(const std::string& directory, std::uint32_t rank) {
  return directory + "/" + rank_file_name(rank);
}

std::optional<std::uint32_t> rank_of_file(const std::string& name) {
  if (!name.starts_with("rank-")) return std::nullopt;
  const auto rank = number_in<std::uint32_t>(name.substr(std::strlen("rank-")));
  return rank && name == rank_file_name(*rank) ? rank : std::nullopt;
}

std::optional<std::uint32_t> rank_of_next_file(const std::string& name) {
  if (!name.ends_with(next_suffix)) return std::nullopt;
  return rank_of_file(name.substr(0, name.size() - std::strlen(next_suffix)));
}

bool is_unfinished(const std::string& name) {
  const bool fresh = name.ends_with(fresh_suffix);
  if (fresh && rank_of_file(name.substr(0, name.size() - std::strlen(fresh_suffix)))) return true;
  const std::string prefix = std::string(job_record_name) + fresh_suffix;
  return name.starts_with(prefix) && rank_of_file("rank" + name.substr(prefix.size())).has_value();
}

PoolPlace place_of(const Directory& directory) {
  PoolPlace place;
  std::error_code error;
  const std::string path = std::filesystem::weakly_canonical(directory.path(), error).string();
  if (!error) place.path_checksum = crc64(path.data(), path.size());
  struct stat found{};
  if (::fstat(directory.fd(), &found) == 0) {
    place.device = found.st_dev;
    place.inode = found.st_ino;
  }
  return place;
}

Result<JobRecord> read_job_record(const Directory& directory) {
  const std::string path = directory.path_of(job_record_name);
  auto file = directory.open_file(job_record_name, FileAccess::read);
  if (file.status().code() == Code::not_found) {
    return Status(Code::not_found, directory.path(), " holds no pool");
  }
  if (!file.ok()) return file.status();
  PERDURE_TRY_ASSIGN(auto bytes, read_rest(file.value(), path, job_record_bytes_max));
  JobRecordFormat format{};
  std::memcpy(&format, bytes.data(), std::min(sizeof format, bytes.size()));
  const bool known = bytes.size() >= sizeof format.magic + sizeof format.format_version &&
                     format.magic == job_record_magic;
  if (known && bytes.size() < sizeof format && format.format_version < job_record_version) {
    return Status(Code::unsupported, path, " was written by an older Perdure, format ",
                  format.format_version, "; finish the job with the Perdure that made it");
  }
  const bool whole =
      known && bytes.size() >= sizeof format && format.checksum == record_checksum(format) &&
      format.job_name[job_name_bytes - 1] == '\0' && format.ranks > 0 && format.ranks <= ranks_max;
  if (!whole) {
    return Status(Code::damaged, path, " is not a job record or is damaged; `perdure pool check ",
                  directory.path(), "` shows what is left");
  }
  if (format.format_version > job_record_version) {
    return newer_format(path, format.format_version, job_record_version);
  }
  return JobRecord{{{format.job_id[0], format.job_id[1]}},
                   format.job_name,
                   format.ranks,
                   format.created_ns,
                   {format.place.path_checksum, format.place.device, format.place.inode},
                   {},
                   format.generation};
}

Status check_place(const JobRecord& record, const Directory& directory) {
  if (record.place.allows(place_of(directory))) return Status::success();
  return Status(Code::foreign, "the pool ", directory.path(), " (job ", quoted(record.job_name),
                ", ", job_id_text(record.job_id),
                ") was made in another directory: it was moved or copied, or another pool was put "
                "in the place of this one; if it is the right one, `perdure pool adopt ",
                directory.path(), "`");
}

std::string job_record_bytes(const JobRecord& record, const PoolPlace& place) {
  JobRecordFormat format{};
  format.magic = job_record_magic;
  format.format_version = job_record_version;
  format.ranks = record.ranks;
  format.job_id[0] = record.job_id.words[0];
  format.job_id[1] = record.job_id.words[1];
  PERDURE_ASSERT(record.job_name.size() < job_name_bytes);
  std::memcpy(format.job_name, record.job_name.data(), record.job_name.size());
  format.created_ns = record.created_ns;
  format.place = {place.path_checksum, place.device, place.inode};
  format.generation = record.generation;
  format.checksum = record_checksum(format);
  return {reinterpret_cast<const char*>(&format), sizeof format};
}

Status write_job_record(const Directory& directory, const JobRecord& record, std::uint32_t rank) {
  return directory.replace_file(job_record_name, job_record_bytes(record, place_of(directory)),
                                rank_file_name(rank).substr(4));
}

}  // namespace perdure
