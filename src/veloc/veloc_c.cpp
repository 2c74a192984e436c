// SPDX-License-Identifier: BSD-3-Clause
//
// perdure/veloc/veloc.h over Client: turns exceptions into VELOC_FAILURE and a sentence, no more.
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "perdure/veloc/veloc.h"
#include "veloc/client.hpp"
#include "veloc/failure.hpp"

using perdure_veloc::Client;
using perdure_veloc::Failure;
using perdure_veloc::Ranks;

namespace {

// Not destroyed when the process ends: closing its pools takes all ranks, and MPI.
Client* client = nullptr;

int report(const char* sentence) {
  const std::string rank = client != nullptr ? "rank " + std::to_string(client->rank()) + ": " : "";
  std::fprintf(stderr, "perdure veloc: %s%s\n", rank.c_str(), sentence);
  return VELOC_FAILURE;
}

template <typename Body>
int guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    return report(error.what());
  }
}

// What `body` returns, called with the client: a bool, a number or nothing.
template <typename Body>
int with_client(const Body& body) noexcept {
  return guarded([&] {
    if (client == nullptr) throw Failure("VELOC_Init must be called first");
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return VELOC_SUCCESS;
    } else if constexpr (std::is_same_v<decltype(body()), bool>) {
      return body() ? VELOC_SUCCESS : VELOC_FAILURE;
    } else {
      return body();
    }
  });
}

std::string text(const char* given, const char* what) {
  if (given == nullptr) throw Failure(std::string(what) + " is needed");
  return given;
}

// All processes read the file, and agree that they could.
int init(std::unique_ptr<Ranks> ranks, const char* config_file) {
  if (client != nullptr) throw Failure("VELOC_Init was called already");
  perdure_veloc::Config config;
  std::string wrong;
  try {
    config = perdure_veloc::read_config(text(config_file, "the path of a configuration"));
  } catch (const Failure& failure) {
    wrong = failure.what();
  }
  const bool any = ranks->any(!wrong.empty());
  if (!wrong.empty()) throw Failure(wrong);
  if (any) throw Failure("another process cannot read its configuration");
  client = new Client(std::move(ranks), config);
  return VELOC_SUCCESS;
}

}  // namespace

extern "C" {

int VELOC_Init(MPI_Comm comm, const char* config_file) {
  return guarded([&] { return init(std::make_unique<Ranks>(comm), config_file); });
}

int VELOC_Init_single(unsigned int unique_id, const char* config_file) {
  return guarded([&] { return init(std::make_unique<Ranks>(unique_id), config_file); });
}

// Closing the pools waits for what is on its way, up to the patience of docs/levels.md.
int VELOC_Finalize(int drain) {
  return with_client([&] {
    const std::unique_ptr<Client> last(std::exchange(client, nullptr));
    last->finish(drain != 0);
  });
}

int VELOC_Mem_protect(int id, void* memory, size_t count, size_t base_size) {
  return with_client([&] {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, base_size, &bytes)) throw Failure("a region is too large");
    client->protect(id, memory, bytes);
  });
}

int VELOC_Mem_unprotect(int id) {
  return with_client([&] { client->unprotect(id); });
}

int VELOC_Mem_clear(void) {
  return with_client([] { client->clear(); });
}

int VELOC_Route_file(const char* original, char* routed) {
  return with_client([&] {
    if (routed == nullptr) throw Failure("a place for the name is needed");
    const std::string path = client->route(text(original, "the name of a file"));
    std::memcpy(routed, path.c_str(), path.size() + 1);
  });
}

int VELOC_Checkpoint_begin(const char* name, int version) {
  return with_client([&] { client->checkpoint_begin(text(name, "a name"), version); });
}

int VELOC_Checkpoint_selective(int mode, int* ids, int id_count) {
  return with_client([&] { client->checkpoint_some(mode, ids, id_count); });
}

int VELOC_Checkpoint_mem(void) {
  return VELOC_Checkpoint_selective(VELOC_CKPT_ALL, nullptr, 0);
}

int VELOC_Checkpoint_end(int success) {
  return with_client([&] { return client->checkpoint_end(success != 0); });
}

// A version is durable in scratch when VELOC_Checkpoint_end has returned. What is waited for is its
// way to other nodes and to the persistent directory.
int VELOC_Checkpoint_wait(void) {
  return with_client([] { client->wait(); });
}

int VELOC_Checkpoint_finished(void) {
  return with_client([] { return client->has_finished() ? 1 : 0; });
}

int VELOC_Checkpoint(const char* name, int version) {
  (void)
      VELOC_Checkpoint_wait();  // what another level failed with is said, and harms no version here
  if (VELOC_Checkpoint_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
  const int written = VELOC_Checkpoint_mem();
  return VELOC_Checkpoint_end(written == VELOC_SUCCESS ? 1 : 0);
}

int VELOC_Restart_test(const char* name, int max_version) {
  return with_client([&] { return client->restart_test(text(name, "a name"), max_version); });
}

int VELOC_Restart_begin(const char* name, int version) {
  return with_client([&] { client->restart_begin(text(name, "a name"), version); });
}

int VELOC_Recover_size(int id) {
  return with_client([&] { return client->recover_size(id); });
}

int VELOC_Recover_selective(int mode, int* ids, int id_count) {
  return with_client([&] { client->recover_some(mode, ids, id_count); });
}

int VELOC_Recover_mem(void) {
  return VELOC_Recover_selective(VELOC_RECOVER_ALL, nullptr, 0);
}

int VELOC_Restart_end(int success) {
  return with_client([&] { return client->restart_end(success != 0); });
}

int VELOC_Restart(const char* name, int version) {
  if (VELOC_Restart_begin(name, version) != VELOC_SUCCESS) return VELOC_FAILURE;
  const int read = VELOC_Recover_mem();
  return VELOC_Restart_end(read == VELOC_SUCCESS ? 1 : 0);
}

}  // extern "C"
