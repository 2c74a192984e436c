#include "trace/recorder/recorder.hpp"

#include <unistd.h>

#include <bit>

#include "base/clock.hpp"

namespace perdure::trace {

Result<std::unique_ptr<Recorder>> Recorder::create(const RecorderOptions& options,
                                                   const std::string& path) {
  auto writer = Writer::create(path, options.header);
  if (!writer.ok()) return writer.status();
  return std::unique_ptr<Recorder>(new Recorder(options, writer.take()));
}

Recorder::Recorder(const RecorderOptions& options, std::unique_ptr<Writer> writer)
    : options_(options),
      page_shift_(static_cast<unsigned>(std::countr_zero(options.header.page_bytes))),
      process_(::getpid()),
      writer_(std::move(writer)),
      began_ns_(monotonic_ns()) {}

Stream& Recorder::begin_thread() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    Stream& stream = *idle_.back();
    idle_.pop_back();
    return stream;
  }
  const auto number = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back(
      std::make_unique<Stream>(options_.header, page_shift_, number, make_room, this));
  return *streams_.back();
}

void Recorder::end_thread(Stream& stream) {
  const std::lock_guard lock(mutex_);
  drain(stream);
  idle_.push_back(&stream);
}

// Of all threads, so that they are merged in steps of one ring.
void Recorder::make_room(void* context) {
  auto& self = *static_cast<Recorder*>(context);
  const std::lock_guard lock(self.mutex_);
  self.drain_all();
}

void Recorder::drain_all() {
  for (const auto& stream : streams_) drain(*stream);
}

// A child that was made past fork() (vfork, clone) has the file, but no business in it.
bool Recorder::is_ours() const {
  return is_open_ && ::getpid() == process_;
}

void Recorder::drain(Stream& stream) {
  if (!is_ours() || (options_.marked_only && region_.empty())) {
    stream.drain([](std::uint64_t, bool) {});
    return;
  }
  stream.drain([&](std::uint64_t page, bool is_write) {
    writer_->append(page, is_write ? 0 : 1, is_write ? 1 : 0, stream.number());
  });
}

Status Recorder::begin_region(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return Status::success();
  if (!region_.empty()) {
    return {Code::wrong_state, "region '" + name + "' begins inside of '" + region_ + "'"};
  }
  if (name.empty() || name.size() > 255) {
    return {Code::invalid_argument, "a region's name has 1 to 255 bytes"};
  }
  drain_all();
  writer_->begin_region(name);
  region_ = name;
  return Status::success();
}

Status Recorder::end_region() {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return Status::success();
  if (region_.empty()) return {Code::wrong_state, "no region is there to be ended"};
  drain_all();
  writer_->end_region();
  region_.clear();
  return Status::success();
}

Status Recorder::finish() {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return Status::success();
  drain_all();
  is_open_ = false;
  if (!region_.empty()) writer_->end_region();
  Ending ending;
  ending.compute_ns = options_.compute_ns;
  if (options_.times) ending.elapsed_ns = monotonic_ns() - began_ns_;
  return writer_->finish(ending);
}

}  // namespace perdure::trace
