// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes in and out: files, pipes, and memory for tests.
//
// Threads: one at a time. Failure: errors of the operating system, with the name of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace perdure::trace {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual const std::string& name() const = 0;  // for messages
  // Fills `to` unless the stream ends before; the number of bytes that were read.
  virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
  // The number of bytes, or nothing where one can't seek: in a pipe.
  virtual std::optional<std::uint64_t> size_bytes() const = 0;
  virtual Status seek(std::uint64_t offset) = 0;  // only where size_bytes() has a value
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual const std::string& name() const = 0;
  virtual Status write(std::span<const std::byte> from) = 0;
  virtual Status close() = 0;  // once, after the last write
};

// A file, a named pipe, or "-" for the standard streams.
Result<std::unique_ptr<ByteSource>> open_source(const std::string& path);
Result<std::unique_ptr<ByteSink>> open_sink(const std::string& path);

// Memory. The bytes must live as long as the source; `seekable` false behaves like a pipe.
std::unique_ptr<ByteSource> memory_source(std::span<const std::byte> bytes, bool seekable = true);
std::unique_ptr<ByteSink> memory_sink(std::vector<std::byte>& bytes);

}  // namespace perdure::trace
