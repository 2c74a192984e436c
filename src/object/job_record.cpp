#include "object/job_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/checksum.hpp"
#include "object/job_record_format.hpp"

namespace perdure {
namespace {

std::uint64_t record_checksum(const JobRecordFormat& format) {
  return crc64(&format, offsetof(JobRecordFormat, checksum));
}

// Writes all of it and makes it durable; the descriptor is closed in any case.
Status write_and_close(int file, const std::string& path, const JobRecordFormat& format) {
  Status status;
  const ssize_t written = ::write(file, &format, sizeof format);
  if (written < 0) {
    status = errno_status("writing " + path, errno);
  } else if (static_cast<std::size_t>(written) != sizeof format) {
    status = Status(Code::no_space, "writing " + path + ": only a part was written");
  } else if (::fsync(file) != 0) {
    status = errno_status("fsync of " + path, errno);
  }
  if (::close(file) != 0 && status.ok()) status = errno_status("closing " + path, errno);
  return status;
}

}  // namespace

std::string job_record_path(const std::string& directory) {
  return directory + "/job";
}

std::string rank_file_path(const std::string& directory, std::uint32_t rank) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "/rank-%05u", rank);
  return directory + name.data();
}

Result<JobRecord> read_job_record(const std::string& directory) {
  const std::string path = job_record_path(directory);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return Status(Code::not_found, directory + " holds no pool");
    return errno_status("opening " + path, errno);
  }
  JobRecordFormat format{};
  const ssize_t got = ::read(file, &format, sizeof format);
  ::close(file);
  const bool whole =
      got == static_cast<ssize_t>(sizeof format) && format.magic == job_record_magic &&
      format.checksum == record_checksum(format) && format.job_name[job_name_bytes - 1] == '\0' &&
      format.ranks > 0 && format.ranks <= ranks_max;
  if (!whole) {
    return Status(Code::damaged, path + " is not a job record or is damaged; `perdure pool check " +
                                     directory + "` shows what is left");
  }
  if (format.format_version > job_record_version) {
    return Status(Code::newer_format,
                  path + " has format " + std::to_string(format.format_version) +
                      ", this Perdure reads up to " + std::to_string(job_record_version));
  }
  return JobRecord{
      {{format.job_id[0], format.job_id[1]}}, format.job_name, format.ranks, format.created_ns};
}

Status write_job_record(const std::string& directory, const JobRecord& record, std::uint32_t rank) {
  JobRecordFormat format{};
  format.magic = job_record_magic;
  format.format_version = job_record_version;
  format.ranks = record.ranks;
  format.job_id[0] = record.job_id.words[0];
  format.job_id[1] = record.job_id.words[1];
  PERDURE_ASSERT(record.job_name.size() < job_name_bytes);
  std::memcpy(format.job_name, record.job_name.data(), record.job_name.size());
  format.created_ns = record.created_ns;
  format.checksum = record_checksum(format);
  const std::string temporary = rank_file_path(directory, rank) + ".job";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return errno_status("creating " + temporary, errno);
  Status status = write_and_close(file, temporary, format);
  if (status.ok() && ::rename(temporary.c_str(), job_record_path(directory).c_str()) != 0) {
    status = errno_status("renaming " + temporary, errno);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_directory(directory);
}

Status sync_directory(const std::string& directory) {
  const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return errno_status("opening " + directory, errno);
  const int failed = ::fsync(handle);
  const int error = errno;
  ::close(handle);
  return failed != 0 ? errno_status("fsync of " + directory, error) : Status::success();
}

}  // namespace perdure
