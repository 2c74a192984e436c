// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_share.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perdure {
namespace {

constexpr std::uint64_t bytes_max = std::uint64_t{1} << 60;  // of a file: no offset overflows

Status damaged(const std::string& what) {
  return Status(Code::damaged, "a version's share of a cached file is damaged: ", what);
}

}  // namespace

PartShare PartShare::of(const CachePart& part, std::uint64_t file_bytes, std::uint32_t share,
                        std::uint32_t shares) {
  const PartHeaderFormat& header = part.header();
  PartShare made;
  PartShareFormat& format = made.format_;
  format.magic = part_share_magic;
  std::copy_n(header.instance, 2, format.instance);
  format.file_bytes = file_bytes;
  format.block_bytes = header.block_bytes;
  format.part_blocks = header.part_blocks;
  format.layout = header.layout;
  format.nodes = header.nodes;
  format.node = header.node;
  format.share = share;
  format.shares = shares;
  return made;
}

Result<PartShare> PartShare::parse(std::span<const std::byte> head) {
  PartShare parsed;
  PartShareFormat& format = parsed.format_;
  if (head.size() != sizeof format) return damaged("its head has another length");
  std::memcpy(&format, head.data(), sizeof format);
  const bool sane = format.magic == part_share_magic && std::has_single_bit(format.block_bytes) &&
                    format.block_bytes >= grains_per_block && format.block_bytes <= bytes_max &&
                    format.file_bytes <= bytes_max &&
                    format.layout <= static_cast<std::uint32_t>(LayoutKind::parts) &&
                    format.nodes > 0 &&
                    format.part_blocks <= bytes_max / format.block_bytes / format.nodes &&
                    format.node < format.nodes && format.share < format.shares;
  if (!sane) return damaged("its head can't be right");
  return parsed;
}

Layout PartShare::layout() const {
  return {LayoutKind{format_.layout}, format_.nodes, format_.block_bytes, format_.part_blocks};
}

std::vector<std::byte> PartShare::head() const {
  std::vector<std::byte> bytes(sizeof format_);
  std::memcpy(bytes.data(), &format_, sizeof format_);
  return bytes;
}

// Later blocks of a part are later in the file, so only the last one can be cut by its end.
std::uint64_t PartShare::bytes() const {
  const std::uint64_t blocks = part_blocks_for(layout(), format_.node, format_.file_bytes);
  if (blocks <= format_.share) return 0;
  const std::uint64_t mine = (blocks - 1 - format_.share) / format_.shares + 1;
  const std::uint64_t last = format_.share + (mine - 1) * format_.shares;
  const std::uint64_t begin = file_block_of(layout(), {format_.node, last}) * format_.block_bytes;
  const std::uint64_t left = format_.file_bytes - std::min(begin, format_.file_bytes);
  return (mine - 1) * format_.block_bytes + std::min(left, format_.block_bytes);
}

PartShare::Run PartShare::run_at(std::uint64_t offset) const {
  Run run;
  run.block = format_.share + offset / format_.block_bytes * format_.shares;
  run.within = offset % format_.block_bytes;
  run.file_offset =
      file_block_of(layout(), {format_.node, run.block}) * format_.block_bytes + run.within;
  run.bytes = format_.block_bytes - run.within;
  return run;
}

Status PartShare::read(CachePart& part, std::uint64_t version, std::uint64_t offset,
                       std::span<std::byte> out) const {
  while (!out.empty()) {
    const Run run = run_at(offset);
    const std::size_t count = std::min<std::uint64_t>(run.bytes, out.size());
    PERDURE_TRY(part.read_at(version, run.block, run.within, out.first(count)));
    out = out.subspan(count);
    offset += count;
  }
  return Status::success();
}

Status PartShare::write(const BackingFile& file, std::span<const std::byte> bytes) const {
  if (bytes.size() != this->bytes()) return damaged("it has another length than its head says");
  for (std::uint64_t offset = 0; offset < bytes.size();) {
    const Run run = run_at(offset);
    const std::uint64_t count = std::min(run.bytes, bytes.size() - offset);
    PERDURE_TRY(file.write(run.file_offset, bytes.data() + offset, count));
    offset += count;
  }
  return Status::success();
}

}  // namespace perdure
