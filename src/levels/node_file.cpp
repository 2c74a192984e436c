// SPDX-License-Identifier: BSD-3-Clause
//
// Node file: written front to back in pieces of up to write_bytes, so that each write is large and
// aligned. Whole chunks of image files are written from where they lie: copies of what nobody reads
// soon would take processor time and memory from the program. What is not whole goes through one
// buffer. An image does not change meanwhile
// (own_files.hpp, levels.K2), so its seal is known before; a bit that flips between the check of a
// chunk and its write is found when the node file is read.
#include "levels/node_file.hpp"
#include "base/quantity.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/checksum.hpp"
#include "levels/format_bytes.hpp"
#include "levels/node_file_format.hpp"
#include "pool/image.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t write_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t align_bytes = 4096;  // of what is written past a page cache
constexpr const char* name_prefix = "node-";
constexpr const char* unfinished_infix = ".new";

// Collects what is appended and writes it in large pieces.
class PieceWriter {
 public:
  PieceWriter(LevelWriter& file, const Watch& watch)
      : file_(file),
        watch_(watch),
        memory_(std::make_unique_for_overwrite<std::byte[]>(memory_bytes)),
        buffer_(aligned({memory_.get(), memory_bytes})) {}

  std::uint64_t offset() const { return written_ + filled_; }
  // The next `count` bytes, all to be filled by the caller before the next call.
  Result<std::span<std::byte>> room(std::uint64_t count) {
    if (count > write_bytes - filled_) PERDURE_TRY(write_whole_blocks());
    const auto place = buffer_.subspan(filled_, count);
    filled_ += count;
    return place;
  }
  Status append(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.substr(0, node_align_bytes);
      PERDURE_TRY_ASSIGN(const auto place, room(part.size()));
      std::memcpy(place.data(), part.data(), part.size());
      bytes.remove_prefix(part.size());
    }
    return Status::success();
  }
  // Zeros up to the next multiple of node_align_bytes.
  Status align() {
    PERDURE_TRY_ASSIGN(const auto place, room(align_up(offset(), node_align_bytes) - offset()));
    std::ranges::fill(place, std::byte{0});
    return Status::success();
  }
  // Bytes that stay where they are until it returns; not copied.
  Status append_in_place(std::span<const std::byte> bytes) {
    PERDURE_TRY(flush());
    return write(bytes);
  }
  Status flush() { return write(buffer_.first(std::exchange(filled_, 0))); }

 private:
  static constexpr std::uint64_t memory_bytes = write_bytes + align_bytes;

  // What is left of the buffer goes to its beginning.
  Status write_whole_blocks() {
    const std::uint64_t whole = filled_ / align_bytes * align_bytes;
    PERDURE_TRY(write(buffer_.first(whole)));
    std::memmove(buffer_.data(), buffer_.data() + whole, filled_ - whole);
    filled_ -= whole;
    return Status::success();
  }
  Status write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return Status::success();
    PERDURE_TRY(file_.append(bytes));
    written_ += bytes.size();
    return watch_ ? watch_(bytes.size()) : Status::success();
  }
  static std::span<std::byte> aligned(std::span<std::byte> memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.subspan((align_bytes - address % align_bytes) % align_bytes, write_bytes);
  }

  LevelWriter& file_;
  const Watch& watch_;
  std::unique_ptr<std::byte[]> memory_;  // only what is used of it becomes pages
  std::span<std::byte> buffer_;
  std::uint64_t filled_ = 0;
  std::uint64_t written_ = 0;
};

// The whole chunks of an image that lies in one place: in order, each checked before it is written.
// Returns how many bytes that was.
Result<std::uint64_t> append_in_place(PieceWriter& writer, const DrainedImage& image) {
  const std::uint64_t whole = image.in_place.size() / sealed_chunk_bytes * sealed_chunk_bytes;
  for (std::uint64_t at = 0; at < whole; at += write_bytes) {
    const auto piece = image.in_place.subspan(at, std::min(write_bytes, whole - at));
    for (std::uint64_t in = 0; in < piece.size(); in += sealed_chunk_bytes) {
      PERDURE_TRY(image.check(at + in));
    }
    PERDURE_TRY(writer.append_in_place(piece));
  }
  return whole;
}

Status append_image(PieceWriter& writer, const DrainedImage& image) {
  const std::uint64_t bytes = image.seal.header.payload_bytes;
  PERDURE_TRY(writer.align());
  PERDURE_TRY(writer.append(image.seal.head()));
  PERDURE_TRY_ASSIGN(std::uint64_t at, append_in_place(writer, image));
  for (; at < bytes; at += sealed_chunk_bytes) {
    PERDURE_TRY_ASSIGN(const auto place, writer.room(std::min(sealed_chunk_bytes, bytes - at)));
    PERDURE_TRY(image.read(at, place));
  }
  return writer.append(image.seal.tail());
}

// The sealed list, before the images.
std::string list_of(const JobRecord& job, VersionId id, std::span<const DrainedImage> images) {
  std::uint64_t end = sealed_bytes(images.size() * sizeof(NodeImageFormat));
  std::string list;
  for (const DrainedImage& image : images) {
    const SealedHeader& header = image.seal.header;
    const std::uint64_t offset = align_up(end, node_align_bytes);
    const std::uint64_t bytes = sealed_bytes(header.payload_bytes);
    append(list, NodeImageFormat{header.rank, 0, offset, bytes, image.seal.format().checksum});
    end = offset + bytes;
  }
  return sealed({SealedKind::node, job, images.front().seal.header.rank, id}, list);
}

Status fill_file(LevelWriter& file, const std::string& list, std::span<const DrainedImage> images,
                 const Watch& watch) {
  PieceWriter writer(file, watch);
  PERDURE_TRY(writer.append(list));
  for (const DrainedImage& image : images) PERDURE_TRY(append_image(writer, image));
  return writer.flush();
}

// Whether the file that is there will do: it is whole.
Status check_there(const NodeFile& there, const std::string& path, const JobRecord& job,
                   VersionId id, std::span<const DrainedImage> images) {
  const bool same = same_lineage(there.job, job) && there.id == id;
  bool all = same;
  for (const DrainedImage& image : images) {
    const std::uint32_t rank = image.seal.header.rank;
    all = all && std::ranges::find(there.images, rank, &NodeImage::rank) != there.images.end();
  }
  if (all) return Status::success();
  return Status(Code::wrong_state, path,
                (same ? " holds other ranks of the version" : " is of another version or job"),
                "; have it removed, or choose another directory for the level");
}

// levels.V1: images of ranks of this job, in order, beside each other up to the end of the file.
std::optional<std::vector<NodeImage>> parse_list(std::string_view list, std::uint32_t ranks,
                                                 std::uint64_t file_bytes) {
  std::vector<NodeImage> images;
  std::uint64_t free_from = sealed_bytes(list.size());
  for (NodeImageFormat format{}; take(list, format);) {
    const bool sane = format.rank < ranks && (images.empty() || format.rank > images.back().rank) &&
                      format.offset % node_align_bytes == 0 && format.offset >= free_from &&
                      format.offset <= file_bytes && format.bytes <= file_bytes - format.offset;
    if (!sane) return std::nullopt;
    free_from = format.offset + format.bytes;
    images.push_back({format.rank, format.offset, format.bytes, format.checksum});
  }
  if (images.empty() || !list.empty() || free_from != file_bytes) return std::nullopt;
  return images;
}

// The seal of an image, if it is the one that the list has.
Result<Seal> read_image_seal(const LevelReader& reader, const std::string& path,
                             const NodeFile& file, const NodeImage& image) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return reader.read(image.offset + offset, out);
  };
  PERDURE_TRY_ASSIGN(auto seal, read_seal(path, image.bytes, SealedKind::image, image.rank, read));
  if (seal && seal->format().checksum == image.checksum &&
      sealed_bytes(seal->header.payload_bytes) == image.bytes && seal->header.id == file.id &&
      seal->header.job.job_id == file.job.job_id) {
    return std::move(*seal);
  }
  return Status(Code::damaged, path, ": from byte ", image.offset, " on is not the image of rank ",
                image.rank, " that it lists, or it is damaged");
}

// Bytes from `at` on of the file.
Status check_chunk(const std::string& path, std::uint64_t at, const Seal& seal,
                   std::uint64_t number, std::span<const std::byte> chunk) {
  if (crc64(chunk.data(), chunk.size()) == seal.checksums[number]) return Status::success();
  return Status(Code::damaged, path, ": bytes ", at, " to ", at + chunk.size() - 1, ", of rank ",
                seal.header.rank, ", do not have their checksum");
}

}  // namespace

Result<DrainedImage> image_of_file(const LevelFile& file) {
  const std::uint64_t bytes = file.payload().size();
  // Where head and body are.
  PERDURE_TRY(file.verify(0, std::min<std::uint64_t>(bytes, 4 * sealed_chunk_bytes)));
  PERDURE_TRY_ASSIGN(const auto contents, parse_image(file.payload()));
  const VersionId id = file.header().id;
  if (id_of(contents.catalogue) != id) {
    return Status(Code::damaged, file.path(), " says that it is version ", id.version,
                  ", and holds version ", contents.catalogue.version);
  }
  const auto read = [&file](std::uint64_t offset, std::span<std::byte> out) {
    return file.read_chunk(offset, out);
  };
  const auto check = [&file](std::uint64_t offset) { return file.verify(offset, 1); };
  return DrainedImage{file.seal(), read, file.payload(), check};
}

std::string node_file_name(std::uint32_t lowest_rank) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "%s%05u", name_prefix, lowest_rank);
  return name.data();
}

std::optional<std::uint32_t> node_of_file(const std::string& name) {
  if (!name.starts_with(name_prefix)) return std::nullopt;
  const auto rank = number_in<std::uint32_t>(name.substr(std::strlen(name_prefix)));
  return rank && name == node_file_name(*rank) ? rank : std::nullopt;
}

bool is_unfinished_node_file(const std::string& name) {
  const std::size_t infix = name.find(unfinished_infix);
  return infix != std::string::npos && node_of_file(name.substr(0, infix)).has_value();
}

Status write_node_file(const LevelDirectory& directory, const JobRecord& job, VersionId id,
                       std::span<const DrainedImage> images, const Watch& watch) {
  const std::uint32_t lowest = images.front().seal.header.rank;
  const std::string name = node_file_name(lowest);
  const auto there = read_node_file(directory, lowest);
  if (there.ok()) return check_there(there.value(), directory.path_of(name), job, id, images);
  if (there.status().code() != Code::not_found && there.status().code() != Code::damaged) {
    return there.status();
  }
  // Before it is filled, which takes long: another writer may have published a whole one by then.
  if (there.status().code() == Code::damaged) {
    const Status removed = directory.remove_file(name);
    if (!removed.ok() && removed.code() != Code::not_found) return removed;
  }
  const Status status = directory.publish_file(name, [&](LevelWriter& file) {
    return fill_file(file, list_of(job, id, images), images, watch);
  });
  if (status.ok()) return status;
  const auto others = read_node_file(directory, lowest);
  if (!others.ok()) return status;
  return check_there(others.value(), directory.path_of(name), job, id, images);
}

Result<NodeFile> read_node_file(const LevelDirectory& directory, std::uint32_t lowest_rank) {
  const std::string name = node_file_name(lowest_rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(const auto file, directory.open_file(name));
  PERDURE_TRY_ASSIGN(const std::uint64_t file_bytes, file->size_bytes());
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return file->read(offset, out);
  };
  PERDURE_TRY_ASSIGN(const auto seal,
                     read_seal(path, file_bytes, SealedKind::node, lowest_rank, read));
  const Status damaged(Code::damaged, path, " is not a node file or is damaged");
  if (!seal || seal->header.payload_bytes > seal->header.job.ranks * sizeof(NodeImageFormat)) {
    return damaged;
  }
  std::string bytes(sealed_bytes(seal->header.payload_bytes), '\0');
  PERDURE_TRY(read(0, std::as_writable_bytes(std::span(bytes))));
  PERDURE_TRY_ASSIGN(const auto list, unseal(path, bytes, SealedKind::node, lowest_rank));
  auto images = parse_list(list.payload, list.header.job.ranks, file_bytes);
  if (!images || images->front().rank != lowest_rank) return damaged;
  return NodeFile{list.header.job, list.header.id, file_bytes, seal->format().checksum,
                  std::move(*images)};
}

Result<NodeImageReader> NodeImageReader::open(const LevelDirectory& directory, const NodeFile& file,
                                              const NodeImage& image) {
  const std::string name = node_file_name(file.images.front().rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(auto reader, directory.open_file(name));
  PERDURE_TRY_ASSIGN(Seal seal, read_image_seal(*reader, path, file, image));
  return NodeImageReader(std::move(reader), path, image.offset + sealed_payload_offset,
                         std::move(seal));
}

Status NodeImageReader::load(std::uint64_t chunk) {
  const std::uint64_t at = chunk * sealed_chunk_bytes;
  loaded_.reset();
  chunk_.resize(std::min(sealed_chunk_bytes, seal_.header.payload_bytes - at));
  PERDURE_TRY(file_->read(begin_ + at, chunk_));
  PERDURE_TRY(check_chunk(path_, begin_ + at, seal_, chunk, chunk_));
  loaded_ = chunk;
  return Status::success();
}

Status NodeImageReader::read(std::uint64_t offset, std::uint64_t count, std::byte* to) {
  PERDURE_ASSERT(offset + count <= seal_.header.payload_bytes);
  while (count > 0) {
    const std::uint64_t chunk = offset / sealed_chunk_bytes;
    if (loaded_ != chunk) PERDURE_TRY(load(chunk));
    const std::uint64_t within = offset % sealed_chunk_bytes;
    const std::uint64_t bytes = std::min<std::uint64_t>(count, chunk_.size() - within);
    std::memcpy(to, chunk_.data() + within, bytes);
    offset += bytes;
    count -= bytes;
    to += bytes;
  }
  return Status::success();
}

Status read_node_image(
    const LevelDirectory& directory, const NodeFile& file, const NodeImage& image,
    const std::function<Status(const SealedHeader& header)>& begin,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& take) {
  const std::string name = node_file_name(file.images.front().rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(const auto reader, directory.open_file(name));
  PERDURE_TRY_ASSIGN(const Seal seal, read_image_seal(*reader, path, file, image));
  PERDURE_TRY(begin(seal.header));
  const std::uint64_t payload = image.offset + sealed_payload_offset;
  std::vector<std::byte> chunk(std::min(sealed_chunk_bytes, seal.header.payload_bytes));
  for (std::uint64_t at = 0; at < seal.header.payload_bytes; at += chunk.size()) {
    chunk.resize(std::min(sealed_chunk_bytes, seal.header.payload_bytes - at));
    PERDURE_TRY(reader->read(payload + at, chunk));
    PERDURE_TRY(check_chunk(path, payload + at, seal, at / sealed_chunk_bytes, chunk));
    take(at, chunk);
  }
  return Status::success();
}

}  // namespace perdure
