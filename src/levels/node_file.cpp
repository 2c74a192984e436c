// SPDX-License-Identifier: BSD-3-Clause
//
// Node file: written front to back in pieces of up to write_bytes, the header last, so that each
// write is large and aligned. They go past the page cache where the file system can do that, and
// whole chunks of image files from where they lie: copies of what nobody reads soon would take
// processor time and memory from the program. What is not whole goes through one buffer. An image
// does not change meanwhile (drain.hpp, levels.D2); a bit that flips between the check of a chunk
// and its write is found when the node file is read.
#include "levels/node_file.hpp"
#include "base/quantity.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/checksum.hpp"
#include "base/random.hpp"
#include "levels/node_file_format.hpp"
#include "levels/node_index.hpp"
#include "levels/sealed_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t write_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t direct_align_bytes = 4096;  // of O_DIRECT, on any file system
constexpr const char* name_prefix = "node-";
constexpr const char* unfinished_infix = ".new";

std::vector<NodeArray> arrays_of(const Catalogue& catalogue, const GlobalBoxes& boxes,
                                 const std::vector<std::uint64_t>& copy_offsets) {
  std::vector<NodeArray> arrays;
  std::size_t place = 0;
  for (const ArrayEntry& entry : catalogue.arrays) {
    NodeArray array{entry.name, entry.part, entry.shape, std::nullopt, copy_offsets[place++]};
    const auto box = boxes.find({entry.name, entry.part});
    if (box != boxes.end()) array.box = box->second;
    arrays.push_back(std::move(array));
  }
  return arrays;
}

// Collects what is appended and writes it in large pieces.
class PieceWriter {
 public:
  PieceWriter(const FileHandle& file, std::string path, const Watch& watch)
      : file_(file),
        path_(std::move(path)),
        watch_(watch),
        memory_(std::make_unique_for_overwrite<std::byte[]>(memory_bytes)),
        buffer_(aligned({memory_.get(), memory_bytes})),
        direct_(set_direct(true)) {}

  std::uint64_t offset() const { return written_ + filled_; }
  // The next `count` bytes, all to be filled by the caller before the next call.
  Result<std::span<std::byte>> room(std::uint64_t count) {
    if (count > write_bytes - filled_) PERDURE_TRY(flush());
    const auto place = buffer_.subspan(filled_, count);
    filled_ += count;
    return place;
  }
  Status append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<std::size_t>(bytes.size(), node_align_bytes));
      PERDURE_TRY_ASSIGN(const auto place, room(part.size()));
      std::ranges::copy(part, place.begin());
      bytes = bytes.subspan(part.size());
    }
    return Status::success();
  }
  // Bytes that stay where they are until it returns; not copied.
  Status append_in_place(std::span<const std::byte> bytes) {
    PERDURE_TRY(flush());
    return write(bytes);
  }
  Status flush() { return write(buffer_.first(std::exchange(filled_, 0))); }
  // What follows may be of any length.
  void end_direct() {
    if (std::exchange(direct_, false)) (void)set_direct(false);
  }

 private:
  static constexpr std::uint64_t memory_bytes = write_bytes + direct_align_bytes;

  Status write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return Status::success();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (bytes.size() % direct_align_bytes != 0) end_direct();
    Status status = write_all(file_, path_, text);
    if (!status.ok() && direct_) {  // on some file systems only the first write says so
      end_direct();
      if (::lseek(file_.fd(), static_cast<off_t>(written_), SEEK_SET) < 0) return status;
      status = write_all(file_, path_, text);
    }
    PERDURE_TRY(status);
    written_ += bytes.size();
    return watch_ ? watch_(bytes.size()) : Status::success();
  }
  static std::span<std::byte> aligned(std::span<std::byte> memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.subspan((direct_align_bytes - address % direct_align_bytes) % direct_align_bytes,
                          write_bytes);
  }
  bool set_direct(bool on) const {
    const int flags = ::fcntl(file_.fd(), F_GETFL);
    return ::fcntl(file_.fd(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }

  const FileHandle& file_;
  std::string path_;
  const Watch& watch_;
  std::unique_ptr<std::byte[]> memory_;  // only what is used of it becomes pages
  std::span<std::byte> buffer_;
  bool direct_;
  std::uint64_t filled_ = 0;
  std::uint64_t written_ = 0;
};

// The whole chunks of an image that lies in one place: in order, each checked before it is written.
Status append_in_place(PieceWriter& writer, const DrainedImage& image,
                       std::vector<std::uint64_t>& checksums) {
  const std::uint64_t whole = image.in_place.size() / sealed_chunk_bytes * sealed_chunk_bytes;
  for (std::uint64_t at = 0; at < whole; at += write_bytes) {
    const auto piece = image.in_place.subspan(at, std::min(write_bytes, whole - at));
    for (std::uint64_t in = 0; in < piece.size(); in += sealed_chunk_bytes) {
      PERDURE_TRY_ASSIGN(const std::uint64_t checksum, image.check(at + in));
      checksums.push_back(checksum);
    }
    PERDURE_TRY(writer.append_in_place(piece));
  }
  return Status::success();
}

Result<NodeImage> append_image(PieceWriter& writer, const DrainedImage& image) {
  NodeImage entry{image.rank, writer.offset(), image.bytes, {}, image.arrays, image.scalars};
  PERDURE_TRY(append_in_place(writer, image, entry.checksums));
  for (std::uint64_t at = entry.checksums.size() * sealed_chunk_bytes; at < image.bytes;
       at += sealed_chunk_bytes) {
    PERDURE_TRY_ASSIGN(const auto place, writer.room(sealed_chunk_bytes));
    const auto part = place.first(std::min(sealed_chunk_bytes, image.bytes - at));
    PERDURE_TRY_ASSIGN(const std::uint64_t checksum, image.read(at, part));
    entry.checksums.push_back(checksum);
    std::fill(place.begin() + std::ssize(part), place.end(), std::byte{0});
  }
  return entry;
}

NodeFileFormat header_of(const JobRecord& job, VersionId id, std::size_t images) {
  NodeFileFormat format{};
  format.magic = node_file_magic;
  format.format_version = node_file_version;
  put_origin(format, job, id);
  format.images = static_cast<std::uint32_t>(images);
  return format;
}

std::uint64_t checksum_of(const NodeFileFormat& format) {
  return crc64(&format, offsetof(NodeFileFormat, checksum));
}

Status fill_file(const FileHandle& file, const std::string& path, NodeFileFormat header,
                 std::span<const DrainedImage> images, const Watch& watch) {
  PieceWriter writer(file, path, watch);
  PERDURE_TRY_ASSIGN(const auto head, writer.room(node_align_bytes));  // for the header
  std::ranges::fill(head, std::byte{0});
  std::vector<NodeImage> entries;
  for (const DrainedImage& image : images) {
    PERDURE_TRY_ASSIGN(auto entry, append_image(writer, image));
    entries.push_back(std::move(entry));
  }
  const std::vector<std::byte> index = build_node_index(entries);
  if (index.size() > node_index_bytes_max) {
    return Status(Code::unsupported, path, " would have an index of ", index.size(),
                  " bytes; use fewer arrays or fewer ranks on a node");
  }
  header.index_offset = writer.offset();
  header.index_bytes = index.size();
  header.index_checksum = crc64(index.data(), index.size());
  header.checksum = checksum_of(header);
  PERDURE_TRY(writer.flush());  // of whole chunks, while it goes past the page cache
  PERDURE_TRY(writer.append(index));
  PERDURE_TRY(writer.flush());
  writer.end_direct();
  if (::lseek(file.fd(), 0, SEEK_SET) != 0) return errno_status("seek in " + path, errno);
  PERDURE_TRY(write_all(file, path, {reinterpret_cast<const char*>(&header), sizeof header}));
  if (::fsync(file.fd()) != 0) return errno_status("fsync " + path, errno);
  return Status::success();
}

// Whether the file that is there will do (levels.W2).
Status check_there(const NodeFile& there, const std::string& path, const JobRecord& job,
                   VersionId id, std::span<const DrainedImage> images) {
  const bool same = same_lineage(there.job, job) && there.id == id;
  bool all = same;
  for (const DrainedImage& image : images) {
    all =
        all && std::ranges::find(there.images, image.rank, &NodeImage::rank) != there.images.end();
  }
  if (all) return Status::success();
  return Status(Code::wrong_state, path,
                (same ? " holds other ranks of the version" : " is of another version or job"),
                "; have it removed, or choose another directory for the level");
}

Result<std::vector<std::byte>> read_at(const FileHandle& file, const std::string& path,
                                       std::uint64_t offset, std::uint64_t count) {
  std::vector<std::byte> bytes(count);
  std::uint64_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(file.fd(), bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status("read " + path, errno);
    if (got == 0) {
      return Status(Code::damaged, path, " ends at byte ", offset + done,
                    ", in the middle of what it should hold");
    }
    done += static_cast<std::uint64_t>(got);
  }
  return bytes;
}

Status check_header(const NodeFileFormat& format, const std::string& path,
                    std::uint64_t file_bytes) {
  const bool ours = format.magic == node_file_magic && format.checksum == checksum_of(format);
  if (ours && format.format_version > node_file_version) {
    return newer_format(path, format.format_version, node_file_version);
  }
  const bool sane =
      ours && format.format_version == node_file_version && has_origin(format) &&
      format.index_bytes <= node_index_bytes_max && format.index_bytes <= file_bytes &&
      format.index_offset == file_bytes - format.index_bytes && format.images <= format.ranks;
  if (sane) return Status::success();
  return Status(Code::damaged, path, " is not a node file or is damaged");
}

}  // namespace

Result<DrainedImage> image_of_file(const LevelFile& file) {
  const std::uint64_t bytes = file.payload().size();
  // Where head, body and boxes stand.
  PERDURE_TRY(file.verify(0, std::min<std::uint64_t>(bytes, 4 * sealed_chunk_bytes)));
  PERDURE_TRY_ASSIGN(const auto contents, parse_image(file.payload()));
  const Catalogue& catalogue = contents.catalogue;
  const VersionId id = file.header().id;
  if (id_of(catalogue) != id) {
    return Status(Code::damaged, file.path(), " says that it is version ", id.version,
                  ", and holds version ", catalogue.version);
  }
  DrainedImage image;
  image.rank = file.header().rank;
  image.bytes = bytes;
  image.arrays = arrays_of(catalogue, contents.boxes, contents.copy_offsets);
  image.scalars = catalogue.scalars;
  image.read = [&file](std::uint64_t offset, std::span<std::byte> out) {
    return file.read_chunk(offset, out);
  };
  image.in_place = file.payload();
  image.check = [&file](std::uint64_t offset) { return file.check_chunk(offset); };
  return image;
}

DrainedImage image_of_ring(std::uint32_t rank, const Image& image, const Catalogue& catalogue) {
  DrainedImage drained;
  drained.rank = rank;
  drained.bytes = image.size_bytes();
  drained.arrays = arrays_of(catalogue, {}, image.copy_offsets());
  drained.scalars = catalogue.scalars;
  drained.read = [&image](std::uint64_t offset, std::span<std::byte> out) -> Result<std::uint64_t> {
    PERDURE_TRY(image.read(offset, out));
    return crc64(out.data(), out.size());
  };
  return drained;
}

Result<std::string> writer_text() {
  JobId drawn;
  PERDURE_TRY(fill_random(&drawn, sizeof drawn));
  return "-" + job_id_text(drawn);
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

Status write_node_file(const Directory& directory, const JobRecord& job, VersionId id,
                       std::span<const DrainedImage> images, const Watch& watch) {
  const std::uint32_t lowest = images.front().rank;
  const std::string name = node_file_name(lowest);
  const auto there = read_node_file(directory, lowest);
  if (there.ok()) return check_there(there.value(), directory.path_of(name), job, id, images);
  if (there.status().code() != Code::not_found && there.status().code() != Code::damaged) {
    return there.status();
  }
  PERDURE_TRY_ASSIGN(const std::string writer, writer_text());
  const std::string fresh = name + unfinished_infix + writer;
  PERDURE_TRY_ASSIGN(const auto file, directory.create_file(fresh));
  Status status =
      fill_file(file, directory.path_of(fresh), header_of(job, id, images.size()), images, watch);
  if (status.ok() && there.status().code() == Code::damaged) status = directory.remove_file(name);
  if (status.ok()) status = directory.publish_file(fresh, name);
  if (status.ok()) return status;
  (void)directory.remove_file(fresh);  // the first failure counts
  const auto others = read_node_file(directory, lowest);
  if (!others.ok()) return status;
  return check_there(others.value(), directory.path_of(name), job, id, images);
}

Result<NodeFile> read_node_file(const Directory& directory, std::uint32_t lowest_rank) {
  const std::string name = node_file_name(lowest_rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(const auto file, directory.open_file(name, FileAccess::read));
  const off_t end = ::lseek(file.fd(), 0, SEEK_END);
  if (end < 0) return errno_status("seek in " + path, errno);
  PERDURE_TRY_ASSIGN(const auto head, read_at(file, path, 0, sizeof(NodeFileFormat)));
  NodeFileFormat format;
  std::memcpy(&format, head.data(), sizeof format);
  PERDURE_TRY(check_header(format, path, static_cast<std::uint64_t>(end)));
  PERDURE_TRY_ASSIGN(const auto index,
                     read_at(file, path, format.index_offset, format.index_bytes));
  if (crc64(index.data(), index.size()) != format.index_checksum) {
    return Status(Code::damaged, path, ": its index does not have its checksum");
  }
  auto images = parse_node_index(index, format.images, format.ranks, format.index_offset);
  if (!images.ok()) return Status(Code::damaged, path, ": ", images.status().message());
  if (images.value().front().rank != lowest_rank) {
    return Status(Code::damaged, path, " begins with rank ", images.value().front().rank,
                  ", which is not the one in its name");
  }
  return NodeFile{job_of(format), id_of(format), static_cast<std::uint64_t>(end),
                  format.index_checksum, images.take()};
}

Status read_node_image(
    const Directory& directory, std::uint32_t lowest_rank, const NodeImage& image,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& take) {
  const std::string name = node_file_name(lowest_rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(const auto file, directory.open_file(name, FileAccess::read));
  for (std::uint64_t piece = 0; piece < image.bytes; piece += write_bytes) {
    const std::uint64_t count = std::min(write_bytes, image.bytes - piece);
    PERDURE_TRY_ASSIGN(const auto bytes, read_at(file, path, image.offset + piece, count));
    for (std::uint64_t at = 0; at < count; at += sealed_chunk_bytes) {
      const auto chunk = std::span(bytes).subspan(at, std::min(sealed_chunk_bytes, count - at));
      const std::uint64_t begin = piece + at;
      if (crc64(chunk.data(), chunk.size()) != image.checksums[begin / sealed_chunk_bytes]) {
        return Status(Code::damaged, path, ": bytes ", image.offset + begin, " to ",
                      image.offset + begin + chunk.size() - 1, ", of rank ", image.rank,
                      ", do not have their checksum");
      }
    }
    take(piece, bytes);
  }
  return Status::success();
}

}  // namespace perdure
