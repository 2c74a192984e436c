// SPDX-License-Identifier: BSD-3-Clause
//
// The driver's calls about streams, events, captures, modules and kernels.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "address.hpp"
#include "driver.hpp"
#include "ptx_run.hpp"

using fake::call;
using fake::current_context;
using fake::driver;
using fake::Lock;
using fake::Needs;
using fake::settings;
using fake::stream_of;

namespace fake {
namespace {

CudaEvent* event_of(CudaEventHandle handle) {
  const auto found = driver().events.find(handle);
  return found == driver().events.end() ? nullptr : found->second.get();
}

int make(CudaStreamHandle* handle, bool is_blocking, int priority) {
  auto stream = make_stream(*current_context());
  stream->is_blocking = is_blocking;
  stream->priority = std::clamp(priority, -5, 0);
  *handle = stream.get();
  driver().streams[stream.get()] = std::move(stream);
  return CUDA_OK;
}

int record(CudaEventHandle handle, CudaStreamHandle stream_handle) {
  CudaEvent* const found = event_of(handle);
  CudaStream* const stream = stream_of(stream_handle);
  if (found == nullptr || stream == nullptr) return CUDA_INVALID_HANDLE;
  if (found->context != stream->context) return CUDA_INVALID_HANDLE;
  const std::shared_ptr<CudaEvent> event = driver().events.at(found);
  event->capture = stream->capture;
  if (stream->capture) return submit(*stream, {});
  const std::uint64_t number = event->recorded + 1;
  const int code = submit(*stream, {[event, number] {
                                      const Lock lock(driver().lock);
                                      event->completed = std::max(event->completed, number);
                                    },
                                    nullptr});
  if (code == CUDA_OK) event->recorded = number;
  return code;
}

int let_wait(CudaStreamHandle stream_handle, CudaEventHandle handle) {
  CudaEvent* const found = event_of(handle);
  CudaStream* const stream = stream_of(stream_handle);
  if (found == nullptr || stream == nullptr) return CUDA_INVALID_HANDLE;
  const std::shared_ptr<CudaEvent> event = driver().events.at(found);
  if (event->capture && !stream->capture) stream->capture = event->capture;  // joins it
  if (stream->capture && event->capture != stream->capture) {
    stream->capture->is_invalid = true;
    return CUDA_CAPTURE_ISOLATION;
  }
  const std::uint64_t number = event->recorded;
  return submit(*stream, {[] {},
                          [event, number] {
                            return event->completed >= number || event->context->broken != CUDA_OK;
                          }});
}

int ask(CudaEventHandle handle, Lock* wait) {
  CudaEvent* const found = event_of(handle);
  if (found == nullptr) return CUDA_INVALID_HANDLE;
  if (found->capture) {
    found->capture->is_invalid = true;
    return CUDA_CAPTURED_EVENT;
  }
  const int code = unsafe_while_capturing();
  if (code != CUDA_OK) return code;
  const std::shared_ptr<CudaEvent> event = driver().events.at(found);
  const std::uint64_t number = event->recorded;
  const auto is_over = [&] {
    return event->completed >= number || event->context->broken != CUDA_OK;
  };
  if (wait != nullptr) driver().changed.wait(*wait, is_over);
  if (event->context->broken != CUDA_OK) return event->context->broken;
  return is_over() ? CUDA_OK : CUDA_NOT_READY;
}

int begin_capture(CudaStreamHandle handle, int mode) {
  CudaStream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_INVALID_HANDLE;
  if (mode < 0 || mode > 2) return CUDA_INVALID_VALUE;
  if (stream->is_null) return CUDA_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ILLEGAL_STATE;
  stream->capture = std::make_shared<Capture>();
  stream->capture->mode = mode;
  stream->capture->by = std::this_thread::get_id();
  stream->capture->origin = stream;
  driver().captures.emplace_back(stream->capture);
  return CUDA_OK;
}

int end_capture(CudaStreamHandle handle, CudaGraphHandle* graph) {
  CudaStream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_INVALID_HANDLE;
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return CUDA_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_CAPTURE_UNMATCHED;
  for (auto& [other, one] : driver().streams) {
    if (one->capture == capture) one->capture = nullptr;
  }
  for (auto& [other, event] : driver().events) {
    if (event->capture == capture) event->capture = nullptr;
  }
  std::erase_if(driver().captures, [&](const auto& weak) { return weak.lock() == capture; });
  if (capture->is_invalid) return CUDA_CAPTURE_INVALIDATED;
  auto made = std::make_unique<CudaGraph>();
  made->nodes = capture->nodes;
  *graph = made.get();
  driver().graphs[made.get()] = std::move(made);
  return CUDA_OK;
}

int is_capturing(CudaStreamHandle handle, int* status) {
  CudaStream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_INVALID_HANDLE;
  if (stream->is_null) {
    const auto& all = driver().streams;
    const bool another = std::any_of(all.begin(), all.end(), [&](const auto& one) {
      return one.second->is_blocking && one.second->context == stream->context &&
             one.second->capture != nullptr;
    });
    if (another) return CUDA_CAPTURE_IMPLICIT;
  }
  *status = !stream->capture ? 0 : stream->capture->is_invalid ? 2 : 1;
  return CUDA_OK;
}

// The memory that a kernel in a context may access.
class MemoryOfKernel : public Memory {
 public:
  explicit MemoryOfKernel(const CudaContext& context) : context_(context) {}

  std::byte* place(std::uint64_t at, std::size_t size_bytes, bool to_store) override {
    if (at < begin_ || at >= end_) find(at);
    if (at < begin_ || at >= end_ || end_ - at < size_bytes) return nullptr;
    return to_store && !may_store_ ? nullptr : alias_ + (at - begin_);
  }

 private:
  // Its memory does not go while the kernel runs, as who gives it back waits for that.
  void find(std::uint64_t at) {
    const Lock lock(driver().lock);
    const Range* const range = driver().ranges.find(at);
    begin_ = end_ = 0;
    if (range == nullptr && settings().host_tables) {  // as the processor would
      constexpr std::uint64_t page_bytes = 4096;
      begin_ = at;
      end_ = (at / page_bytes + 1) * page_bytes;
      alias_ = at_address(at);
      may_store_ = true;
    }
    if (range == nullptr) return;
    if (range->kind == Kind::of_device && range->context != &context_) return;
    if (range->kind == Kind::registered && settings().other_addresses) return;
    std::size_t follow = 0;
    alias_ = Ranges::look(*range, at, &follow);
    // Private memory that is registered: at the program's own address.
    if (alias_ == nullptr) alias_ = at_address(at);
    begin_ = at;
    end_ = at + follow;
    may_store_ = range->may_store;
  }

  const CudaContext& context_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::byte* alias_ = nullptr;
  bool may_store_ = false;
};

void run_in_stream(CudaContext& context, const CudaModule& module, const PtxKernel& kernel,
                   const Launch& launch) {
  int code = CUDA_OK;
  try {
    MemoryOfKernel memory(context);
    run_kernel(module.text, kernel, launch, memory);
    return;
  } catch (const AccessError& wrong) {
    code = wrong.is_misaligned ? CUDA_MISALIGNED_ADDRESS : CUDA_ILLEGAL_ADDRESS;
    std::fprintf(stderr, "fake CUDA driver: %s\n", wrong.what());
  } catch (const PtxError& wrong) {
    code = CUDA_LAUNCH_FAILED;
    std::fprintf(stderr, "fake CUDA driver: %s\n", wrong.what());
  }
  const Lock lock(driver().lock);
  break_context(context, code);
}

int launch(CudaFunctionHandle handle, std::uint32_t blocks, std::uint32_t threads,
           CudaStreamHandle stream_handle, void** arguments) {
  const auto found = driver().functions.find(handle);
  CudaStream* const stream = stream_of(stream_handle);
  if (found == driver().functions.end() || stream == nullptr) return CUDA_INVALID_HANDLE;
  const std::shared_ptr<CudaModule> module = found->second;
  if (module->context != stream->context || current_context() != stream->context) {
    return CUDA_INVALID_HANDLE;
  }
  const PtxKernel* const kernel = handle->kernel;
  if (blocks == 0 || threads == 0 || threads > kernel->threads_max) return CUDA_INVALID_VALUE;
  if (kernel->parameters != 0 && arguments == nullptr) return CUDA_INVALID_VALUE;
  if (settings().skips(handle->name)) return submit(*stream, {[] {}, nullptr});
  auto words = std::make_shared<std::vector<std::uint64_t>>(kernel->parameters);
  for (std::size_t i = 0; i < words->size(); i++) {
    std::memcpy(&(*words)[i], arguments[i], sizeof(std::uint64_t));
  }
  return submit(*stream, {[context = stream->context, module, kernel, blocks, threads, words] {
                            run_in_stream(*context, *module, *kernel,
                                          {blocks, threads, *words, settings().draw()});
                          },
                          nullptr});
}

int load(CudaModuleHandle* handle, const char* text) {
  auto module = std::make_shared<CudaModule>();
  module->context = current_context();
  try {
    module->text = read_ptx(text);
  } catch (const PtxError& wrong) {
    std::fprintf(stderr, "fake CUDA driver: the module is not taken: %s\n", wrong.what());
    return CUDA_INVALID_PTX;
  }
  *handle = module.get();
  driver().modules[module.get()] = std::move(module);
  return CUDA_OK;
}

int function_of(CudaFunctionHandle* handle, CudaModuleHandle module_handle, const char* name) {
  const auto found = driver().modules.find(module_handle);
  if (found == driver().modules.end()) return CUDA_INVALID_HANDLE;
  const std::shared_ptr<CudaModule>& module = found->second;
  const auto kernel = module->text.kernels.find(name);
  if (kernel == module->text.kernels.end()) return CUDA_NOT_FOUND;
  for (const auto& function : module->functions) {
    if (function->kernel == &kernel->second) {
      *handle = function.get();
      return CUDA_OK;
    }
  }
  auto made = std::make_unique<CudaFunction>();
  made->module = module.get();
  made->kernel = &kernel->second;
  made->name = name;
  *handle = made.get();
  driver().functions[made.get()] = module;
  module->functions.push_back(std::move(made));
  return CUDA_OK;
}

}  // namespace
}  // namespace fake

FAKE_EXPORTED int cuStreamCreate(CudaStreamHandle* stream, unsigned flags) {
  return call("cuStreamCreate", Needs::context, [&](Lock&) {
    return fake::make(stream, (flags & CUDA_STREAM_NON_BLOCKING) == 0, 0);
  });
}
FAKE_EXPORTED int cuStreamCreateWithPriority(CudaStreamHandle* stream, unsigned flags,
                                             int priority) {
  return call("cuStreamCreateWithPriority", Needs::context, [&](Lock&) {
    return fake::make(stream, (flags & CUDA_STREAM_NON_BLOCKING) == 0, priority);
  });
}
FAKE_EXPORTED int cuStreamDestroy_v2(CudaStreamHandle stream) {
  return call("cuStreamDestroy_v2", Needs::context, [&](Lock&) {
    const auto found = driver().streams.find(stream);
    if (found == driver().streams.end() || found->second->is_gone) return CUDA_INVALID_HANDLE;
    found->second->is_gone = true;  // what is in it is still done
    driver().changed.notify_all();
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuStreamSynchronize(CudaStreamHandle handle) {
  return call("cuStreamSynchronize", Needs::context, [&](Lock& lock) -> int {
    CudaStream* const stream = stream_of(handle);
    if (stream == nullptr) return CUDA_INVALID_HANDLE;
    int code = fake::refuse_while_captured(*stream);
    if (code == CUDA_OK) code = fake::unsafe_while_capturing();
    return code != CUDA_OK ? code : fake::wait_for(lock, *stream);
  });
}
FAKE_EXPORTED int cuStreamQuery(CudaStreamHandle handle) {
  return call("cuStreamQuery", Needs::context, [&](Lock&) -> int {
    CudaStream* const stream = stream_of(handle);
    if (stream == nullptr) return CUDA_INVALID_HANDLE;
    int code = fake::refuse_while_captured(*stream);
    if (code == CUDA_OK) code = fake::unsafe_while_capturing();
    if (code != CUDA_OK) return code;
    return stream->done == stream->submitted ? CUDA_OK : CUDA_NOT_READY;
  });
}
FAKE_EXPORTED int cuStreamGetCtx(CudaStreamHandle handle, CudaContextHandle* context) {
  return call("cuStreamGetCtx", Needs::context, [&](Lock&) -> int {
    const CudaStream* const stream = stream_of(handle);
    if (stream == nullptr) return CUDA_INVALID_HANDLE;
    *context = stream->context;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuStreamWaitEvent(CudaStreamHandle stream, CudaEventHandle event, unsigned) {
  return call("cuStreamWaitEvent", Needs::context,
              [&](Lock&) { return fake::let_wait(stream, event); });
}
FAKE_EXPORTED int cuStreamBeginCapture_v2(CudaStreamHandle stream, int mode) {
  return call("cuStreamBeginCapture_v2", Needs::context,
              [&](Lock&) { return fake::begin_capture(stream, mode); });
}
FAKE_EXPORTED int cuStreamEndCapture(CudaStreamHandle stream, CudaGraphHandle* graph) {
  return call("cuStreamEndCapture", Needs::context,
              [&](Lock&) { return fake::end_capture(stream, graph); });
}
FAKE_EXPORTED int cuThreadExchangeStreamCaptureMode(int* mode) {
  return call("cuThreadExchangeStreamCaptureMode", Needs::initialised, [&](Lock&) {
    if (mode == nullptr || *mode < 0 || *mode > 2) return CUDA_INVALID_VALUE;
    std::swap(*mode, fake::capture_mode_of_thread());
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuStreamIsCapturing(CudaStreamHandle stream, int* status) {
  return call("cuStreamIsCapturing", Needs::context,
              [&](Lock&) { return fake::is_capturing(stream, status); });
}
FAKE_EXPORTED int cuGraphDestroy(CudaGraphHandle graph) {
  return call("cuGraphDestroy", Needs::initialised, [&](Lock&) {
    return driver().graphs.erase(graph) == 1 ? CUDA_OK : CUDA_INVALID_VALUE;
  });
}
FAKE_EXPORTED int cuLaunchHostFunc(CudaStreamHandle handle, void (*function)(void*),
                                   void* argument) {
  return call("cuLaunchHostFunc", Needs::context, [&](Lock&) -> int {
    CudaStream* const stream = stream_of(handle);
    if (stream == nullptr) return CUDA_INVALID_HANDLE;
    return fake::submit(*stream, {[function, argument] { function(argument); }, nullptr});
  });
}

FAKE_EXPORTED int cuEventCreate(CudaEventHandle* event, unsigned) {
  return call("cuEventCreate", Needs::context, [&](Lock&) {
    auto made = std::make_shared<CudaEvent>();
    made->context = current_context();
    *event = made.get();
    driver().events[made.get()] = std::move(made);
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuEventDestroy_v2(CudaEventHandle event) {
  return call("cuEventDestroy_v2", Needs::context, [&](Lock&) {
    return driver().events.erase(event) == 1 ? CUDA_OK : CUDA_INVALID_HANDLE;
  });
}
FAKE_EXPORTED int cuEventRecord(CudaEventHandle event, CudaStreamHandle stream) {
  return call("cuEventRecord", Needs::context, [&](Lock&) { return fake::record(event, stream); });
}
FAKE_EXPORTED int cuEventSynchronize(CudaEventHandle event) {
  return call("cuEventSynchronize", Needs::context,
              [&](Lock& lock) { return fake::ask(event, &lock); });
}
FAKE_EXPORTED int cuEventQuery(CudaEventHandle event) {
  return call("cuEventQuery", Needs::context, [&](Lock&) { return fake::ask(event, nullptr); });
}

FAKE_EXPORTED int cuModuleLoadData(CudaModuleHandle* module, const void* text) {
  return call("cuModuleLoadData", Needs::context,
              [&](Lock&) { return fake::load(module, static_cast<const char*>(text)); });
}
FAKE_EXPORTED int cuModuleUnload(CudaModuleHandle module) {
  return call("cuModuleUnload", Needs::context, [&](Lock&) {
    const auto found = driver().modules.find(module);
    if (found == driver().modules.end()) return CUDA_INVALID_HANDLE;
    for (const auto& function : found->second->functions) {
      driver().functions.erase(function.get());
    }
    driver().modules.erase(found);
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuModuleGetFunction(CudaFunctionHandle* function, CudaModuleHandle module,
                                      const char* name) {
  return call("cuModuleGetFunction", Needs::context,
              [&](Lock&) { return fake::function_of(function, module, name); });
}
FAKE_EXPORTED int cuLaunchKernel(CudaFunctionHandle function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned shared_bytes, CudaStreamHandle stream,
                                 void** arguments, void** extra) {
  return call("cuLaunchKernel", Needs::context, [&](Lock&) -> int {
    // The kernels of these tests have one dimension and no shared memory.
    const bool is_flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    if (!is_flat || shared_bytes != 0 || extra != nullptr) return CUDA_INVALID_VALUE;
    return fake::launch(function, grid_x, block_x, stream, arguments);
  });
}
