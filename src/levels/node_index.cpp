// SPDX-License-Identifier: BSD-3-Clause
#include "levels/node_index.hpp"

#include <algorithm>
#include <cstring>

#include "levels/node_file_format.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t name_align_bytes = 8;

class Writer {
 public:
  template <typename T>
  void add(const T& value) {
    add_bytes(&value, sizeof value);
  }
  void add_bytes(const void* from, std::uint64_t count) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + count);
    bytes_.resize(align_up(bytes_.size(), name_align_bytes));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

void add_array(Writer& writer, const NodeArray& array) {
  NodeArrayFormat format{};
  format.type = static_cast<std::uint32_t>(array.shape.type);
  format.mode = static_cast<std::uint32_t>(array.shape.mode);
  format.checksums = array.shape.checksums ? 1 : 0;
  format.dimensions = static_cast<std::uint32_t>(array.shape.extents.size());
  std::ranges::copy(array.shape.extents, format.shape);
  if (array.box) {
    format.boxed = 1;
    std::ranges::copy(array.box->global_shape, format.global_shape);
    std::ranges::copy(array.box->first, format.first);
  }
  format.offset = array.offset;
  format.part = array.part;
  format.name_bytes = static_cast<std::uint32_t>(array.name.size());
  writer.add(format);
  writer.add_bytes(array.name.data(), array.name.size());
}

void add_scalar(Writer& writer, const ScalarEntry& scalar) {
  NodeScalarFormat format{};
  format.bytes = scalar.bytes.size();
  format.name_bytes = static_cast<std::uint32_t>(scalar.name.size());
  format.type = static_cast<std::uint32_t>(scalar.type);
  writer.add(format);
  writer.add_bytes(scalar.name.data(), scalar.name.size());
  writer.add_bytes(scalar.bytes.data(), scalar.bytes.size());
}

Status damaged(const std::string& what) {
  return Status(Code::damaged, "its index is damaged: ", what);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  Result<std::span<const std::byte>> take(std::uint64_t count) {
    if (count > rest_.size()) return damaged("it is too short");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(std::min<std::uint64_t>(align_up(count, name_align_bytes), rest_.size()));
    return taken;
  }
  template <typename T>
  Result<T> take() {
    PERDURE_TRY_ASSIGN(const auto bytes, take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  Result<std::string> take_name(std::uint32_t count) {
    if (count > name_bytes_max) return damaged("a name is too long");
    PERDURE_TRY_ASSIGN(const auto bytes, take(count));
    std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!check_name(name).ok()) return damaged("a name is not UTF-8");
    return name;
  }

 private:
  std::span<const std::byte> rest_;
};

Result<ArrayShape> shape_of(const NodeArrayFormat& format) {
  const bool sane = format.type >= static_cast<std::uint32_t>(ArrayType::byte) &&
                    format.type <= static_cast<std::uint32_t>(ArrayType::complex128) &&
                    format.mode >= static_cast<std::uint32_t>(ArrayMode::copy) &&
                    format.mode <= static_cast<std::uint32_t>(ArrayMode::log) &&
                    format.checksums <= 1 && format.dimensions >= 1 &&
                    format.dimensions <= dimensions_max && format.boxed <= 1;
  if (!sane) return damaged("an array's shape can't be right");
  return ArrayShape{static_cast<ArrayType>(format.type),
                    static_cast<ArrayMode>(format.mode),
                    format.checksums == 1,
                    {format.shape, format.shape + format.dimensions}};
}

Result<NodeArray> parse_array(Reader& reader, std::uint64_t image_bytes) {
  PERDURE_TRY_ASSIGN(const auto format, reader.take<NodeArrayFormat>());
  NodeArray array;
  PERDURE_TRY_ASSIGN(array.shape, shape_of(format));
  const auto bytes = checked_bytes(array.shape);
  if (!bytes.ok()) return damaged(bytes.status().message());
  if (format.offset > image_bytes || bytes.value() > image_bytes - format.offset) {
    return damaged("an array lies outside of its image");
  }
  array.offset = format.offset;
  array.part = format.part;
  if (format.boxed == 1) {
    array.box = {{format.global_shape, format.global_shape + format.dimensions},
                 {format.first, format.first + format.dimensions}};
  }
  PERDURE_TRY_ASSIGN(array.name, reader.take_name(format.name_bytes));
  return array;
}

Result<ScalarEntry> parse_scalar(Reader& reader) {
  PERDURE_TRY_ASSIGN(const auto format, reader.take<NodeScalarFormat>());
  ScalarEntry scalar;
  PERDURE_TRY_ASSIGN(scalar.name, reader.take_name(format.name_bytes));
  if (format.bytes > scalar_bytes_max) return damaged("a scalar is too long");
  PERDURE_TRY_ASSIGN(const auto bytes, reader.take(format.bytes));
  scalar.type = known_scalar_type(format.type);
  scalar.bytes.assign(bytes.begin(), bytes.end());
  return scalar;
}

Result<NodeImage> parse_image_entry(Reader& reader, std::uint64_t index_offset) {
  PERDURE_TRY_ASSIGN(const auto format, reader.take<NodeImageFormat>());
  const bool inside = format.offset % node_align_bytes == 0 && format.offset <= index_offset &&
                      format.bytes <= index_offset - format.offset && format.bytes > 0;
  if (!inside) return damaged("an image lies outside of the file");
  NodeImage image;
  image.rank = format.rank;
  image.offset = format.offset;
  image.bytes = format.bytes;
  PERDURE_TRY_ASSIGN(const auto table, reader.take(8 * chunks_of(format.bytes)));
  image.checksums.resize(chunks_of(format.bytes));
  std::memcpy(image.checksums.data(), table.data(), table.size());
  for (std::uint32_t i = 0; i < format.arrays; ++i) {
    PERDURE_TRY_ASSIGN(auto array, parse_array(reader, format.bytes));
    image.arrays.push_back(std::move(array));
  }
  for (std::uint32_t i = 0; i < format.scalars; ++i) {
    PERDURE_TRY_ASSIGN(auto scalar, parse_scalar(reader));
    image.scalars.push_back(std::move(scalar));
  }
  return image;
}

}  // namespace

std::vector<std::byte> build_node_index(std::span<const NodeImage> images) {
  Writer writer;
  for (const NodeImage& image : images) {
    writer.add(NodeImageFormat{image.rank, static_cast<std::uint32_t>(image.arrays.size()),
                               static_cast<std::uint32_t>(image.scalars.size()), 0, image.offset,
                               image.bytes});
    writer.add_bytes(image.checksums.data(), 8 * image.checksums.size());
    for (const NodeArray& array : image.arrays) add_array(writer, array);
    for (const ScalarEntry& scalar : image.scalars) add_scalar(writer, scalar);
  }
  return writer.take();
}

Result<std::vector<NodeImage>> parse_node_index(std::span<const std::byte> index,
                                                std::uint32_t images, std::uint32_t ranks,
                                                std::uint64_t index_offset) {
  Reader reader(index);
  std::vector<NodeImage> parsed;
  std::uint64_t free_from = node_align_bytes;
  for (std::uint32_t i = 0; i < images; ++i) {
    PERDURE_TRY_ASSIGN(auto image, parse_image_entry(reader, index_offset));
    if (image.rank >= ranks || (i > 0 && image.rank <= parsed.back().rank)) {
      return damaged("its ranks are not in order");
    }
    if (image.offset < free_from) return damaged("two images have bytes in common");
    free_from = image.offset + image.bytes;
    parsed.push_back(std::move(image));
  }
  if (parsed.empty() || !reader.empty()) return damaged("it is not as long as it should be");
  return parsed;
}

}  // namespace perdure
