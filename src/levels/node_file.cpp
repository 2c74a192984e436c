// SPDX-License-Identifier: BSD-3-Clause
//
// Node file: written front to back in pieces of up to write_bytes, so that each write is large and
// aligned. They go past the page cache where the file system can do that, and whole chunks of image
// files from where they lie: copies of what nobody reads soon would take processor time and memory
// from the program. What is not whole goes through one buffer. An image does not change meanwhile
// (drain.hpp, levels.D2), so its seal is known before; a bit that flips between the check of a
// chunk and its write is found when the node file is read.
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
#include "levels/format_bytes.hpp"
#include "levels/node_file_format.hpp"
#include "pool/image.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t write_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t direct_align_bytes = 4096;  // of O_DIRECT, on any file system
constexpr const char* name_prefix = "node-";
constexpr const char* unfinished_infix = ".new";

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
  static constexpr std::uint64_t memory_bytes = write_bytes + direct_align_bytes;

  void end_direct() {
    if (std::exchange(direct_, false)) (void)set_direct(false);
  }
  // What is left of the buffer goes to its beginning.
  Status write_whole_blocks() {
    const std::uint64_t whole = filled_ / direct_align_bytes * direct_align_bytes;
    PERDURE_TRY(write(buffer_.first(whole)));
    std::memmove(buffer_.data(), buffer_.data() + whole, filled_ - whole);
    filled_ -= whole;
    return Status::success();
  }
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

Status fill_file(const FileHandle& file, const std::string& path, const std::string& list,
                 std::span<const DrainedImage> images, const Watch& watch) {
  PieceWriter writer(file, path, watch);
  PERDURE_TRY(writer.append(list));
  for (const DrainedImage& image : images) PERDURE_TRY(append_image(writer, image));
  PERDURE_TRY(writer.flush());
  if (::fsync(file.fd()) != 0) return errno_status("fsync " + path, errno);
  return Status::success();
}

// Whether the file that is there will do (levels.W2).
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

Status read_at(const FileHandle& file, const std::string& path, std::uint64_t offset,
               std::span<std::byte> out) {
  for (std::uint64_t done = 0; done < out.size();) {
    const ssize_t got =
        ::pread(file.fd(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status("read " + path, errno);
    if (got == 0) {
      return Status(Code::damaged, path, " ends at byte ", offset + done,
                    ", in the middle of what it should hold");
    }
    done += static_cast<std::uint64_t>(got);
  }
  return Status::success();
}

// levels.W3: images of ranks of this job, in order, beside each other up to the end of the file.
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
Result<Seal> read_image_seal(const FileHandle& handle, const std::string& path,
                             const NodeFile& file, const NodeImage& image) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return read_at(handle, path, image.offset + offset, out);
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
  const std::uint32_t lowest = images.front().seal.header.rank;
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
      fill_file(file, directory.path_of(fresh), list_of(job, id, images), images, watch);
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
  const auto file_bytes = static_cast<std::uint64_t>(end);
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return read_at(file, path, offset, out);
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

Result<NodeImageReader> NodeImageReader::open(const Directory& directory, const NodeFile& file,
                                              const NodeImage& image) {
  const std::string name = node_file_name(file.images.front().rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(auto handle, directory.open_file(name, FileAccess::read));
  PERDURE_TRY_ASSIGN(Seal seal, read_image_seal(handle, path, file, image));
  return NodeImageReader(std::move(handle), path, image.offset + sealed_payload_offset,
                         std::move(seal));
}

Status NodeImageReader::load(std::uint64_t chunk) {
  const std::uint64_t at = chunk * sealed_chunk_bytes;
  loaded_.reset();
  chunk_.resize(std::min(sealed_chunk_bytes, seal_.header.payload_bytes - at));
  PERDURE_TRY(read_at(file_, path_, begin_ + at, chunk_));
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
    const Directory& directory, const NodeFile& file, const NodeImage& image,
    const std::function<Status(const SealedHeader& header)>& begin,
    const std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>& take) {
  const std::string name = node_file_name(file.images.front().rank);
  const std::string path = directory.path_of(name);
  PERDURE_TRY_ASSIGN(const auto handle, directory.open_file(name, FileAccess::read));
  PERDURE_TRY_ASSIGN(const Seal seal, read_image_seal(handle, path, file, image));
  PERDURE_TRY(begin(seal.header));
  const std::uint64_t payload = image.offset + sealed_payload_offset;
  std::vector<std::byte> chunk(std::min(sealed_chunk_bytes, seal.header.payload_bytes));
  for (std::uint64_t at = 0; at < seal.header.payload_bytes; at += chunk.size()) {
    chunk.resize(std::min(sealed_chunk_bytes, seal.header.payload_bytes - at));
    PERDURE_TRY(read_at(handle, path, payload + at, chunk));
    PERDURE_TRY(check_chunk(path, payload + at, seal, at / sealed_chunk_bytes, chunk));
    take(at, chunk);
  }
  return Status::success();
}

}  // namespace perdure
