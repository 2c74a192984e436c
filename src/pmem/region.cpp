// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/region.hpp"

#include <bit>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "pmem/media_guard.hpp"
#include "pmem/region_format.hpp"

namespace perdure {
namespace {

std::uint64_t header_checksum(const RegionHeaderFormat& header) {
  return crc64(&header, offsetof(RegionHeaderFormat, checksum));
}

Status damaged(const Device& device, const std::string& what) {
  return Status(
      Code::damaged, device.describe().name, ": ", what,
      "; it is not a pool of Perdure or its header is damaged (see `perdure pool check`)");
}

// State words are stored at once, and arrays are accessed as what they hold: both need their
// alignment.
bool aligned(const RegionHeaderFormat& header) {
  return std::has_single_bit(header.align_bytes) && header.align_bytes >= 8 &&
         header.align_bytes <= (1U << 30) && header.slot_bytes % 8 == 0 &&
         header.slot_offset % header.align_bytes == 0 &&
         header.data_offset % header.align_bytes == 0;
}

Status check_offsets(const Device& device, const RegionHeaderFormat& header) {
  const bool sane = aligned(header) && header.slot_bytes >= 256 &&
                    header.slot_bytes <= slot_bytes_max && header.block_bytes >= 8 &&
                    header.block_bytes <= (1U << 30) && header.slot_offset >= sizeof(header) &&
                    header.slot_offset <= (1U << 30) && header.slots >= 2 &&
                    header.slots <= slots_max &&
                    header.data_offset >= header.slot_offset + header.slots * header.slot_bytes &&
                    header.ranks >= 1 && header.ranks <= ranks_max && header.rank < header.ranks &&
                    header.job_name[job_name_bytes - 1] == '\0';
  if (!sane) return damaged(device, "the header's offsets can't be right");
  if (header.data_offset > device.size_bytes()) {
    return damaged(device, sentence("the file ends at byte ", device.size_bytes(),
                                    ", before its slots do (", header.data_offset, "): truncated"));
  }
  return Status::success();
}

Region region_of(const RegionHeaderFormat& header) {
  Region region;
  region.identity.job_id = JobId{{header.job_id[0], header.job_id[1]}};
  region.identity.job_name = header.job_name;
  region.identity.rank = header.rank;
  region.identity.ranks = header.ranks;
  region.identity.generation = header.generation;
  region.identity.image_incarnation = header.image_incarnation;
  region.identity.image_version = header.image_version;
  region.identity.image_shares = header.image_shares;
  region.identity.lineage = JobId{{header.lineage[0], header.lineage[1]}};
  region.geometry = Geometry{header.slot_bytes, header.align_bytes, header.block_bytes,
                             static_cast<std::uint32_t>(header.slots)};
  region.created_ns = header.created_ns;
  region.slot_offset = header.slot_offset;
  region.data_offset = header.data_offset;
  return region;
}

}  // namespace

JobId random_job_id() {
  std::random_device device;
  const auto word = [&device] {
    return (static_cast<std::uint64_t>(device()) << 32) | static_cast<std::uint64_t>(device());
  };
  return JobId{{word(), word() | 1}};  // never zero
}

std::string job_id_text(const JobId& id) {
  char text[33];
  std::snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, id.words[0], id.words[1]);
  return text;
}

std::optional<JobId> job_id_of(const std::string& text) {
  JobId id;
  const char* const at = text.data();
  const bool parsed = text.size() == 32 &&
                      std::from_chars(at, at + 16, id.words[0], 16).ec == std::errc() &&
                      std::from_chars(at + 16, at + 32, id.words[1], 16).ec == std::errc();
  if (!parsed || job_id_text(id) != text) return std::nullopt;
  return id;
}

Result<Region> format_region(Device& device, const RegionIdentity& identity,
                             const Geometry& geometry) {
  if (identity.job_name.size() >= job_name_bytes) {
    return Status(Code::invalid_argument, "the job name has ", identity.job_name.size(),
                  " bytes; at most ", job_name_bytes - 1, " are kept");
  }
  if (identity.ranks > ranks_max) {
    return Status(Code::invalid_argument, "the job has ", identity.ranks,
                  " ranks; a pool is for at most ", ranks_max);
  }
  RegionHeaderFormat header{};
  header.magic = region_magic;
  header.format_version = region_format_version;
  header.rank = identity.rank;
  header.ranks = identity.ranks;
  header.align_bytes = geometry.align_bytes;
  header.job_id[0] = identity.job_id.words[0];
  header.job_id[1] = identity.job_id.words[1];
  std::memcpy(header.job_name, identity.job_name.data(), identity.job_name.size());
  header.created_ns = wall_clock_ns();
  header.slot_offset = align_up(sizeof header, geometry.align_bytes);
  header.slot_bytes = geometry.slot_bytes;
  header.data_offset =
      align_up(header.slot_offset + geometry.slots * geometry.slot_bytes, geometry.align_bytes);
  header.block_bytes = geometry.block_bytes;
  header.slots = geometry.slots;
  header.generation = identity.generation;
  header.image_incarnation = identity.image_incarnation;
  header.image_version = identity.image_version;
  header.image_shares = identity.image_shares;
  header.lineage[0] = identity.lineage.words[0];
  header.lineage[1] = identity.lineage.words[1];
  header.checksum = header_checksum(header);
  PERDURE_TRY(device.resize(header.data_offset));
  device.store(0, &header, sizeof header);
  device.flush(0, sizeof header);
  PERDURE_TRY(device.fence());
  return region_of(header);
}

Status set_generation(Device& device, std::uint64_t generation) {
  PERDURE_TRY(check_region(device).status());
  RegionHeaderFormat header;
  std::memcpy(&header, device.base(), sizeof header);
  header.generation = generation;
  header.checksum = header_checksum(header);
  device.store(0, &header, sizeof header);
  device.flush(0, sizeof header);
  return device.fence();
}

Result<Region> check_region(const Device& device) {
  if (device.size_bytes() < sizeof(RegionHeaderFormat)) {
    return damaged(device, "only " + std::to_string(device.size_bytes()) + " bytes long");
  }
  if (first_unreadable(device.base(), sizeof(RegionHeaderFormat))) {
    return damaged(device, "the header can't be read");
  }
  RegionHeaderFormat header;
  std::memcpy(&header, device.base(), sizeof header);
  if (header.magic != region_magic) return damaged(device, "no magic number");
  const bool whole = header.checksum == header_checksum(header);
  if (whole && header.format_version > region_format_version) {
    return newer_format(device.describe().name, header.format_version, region_format_version);
  }
  if (!whole) return damaged(device, "the header's checksum is wrong");
  if (header.format_version < region_format_version) {
    return Status(Code::unsupported, device.describe().name, ": made by an older Perdure, format ",
                  header.format_version, "; this one reads format ", region_format_version,
                  ": finish the job with the Perdure that made it");
  }
  PERDURE_TRY(check_offsets(device, header));
  return region_of(header);
}

}  // namespace perdure
