// SPDX-License-Identifier: BSD-3-Clause
//
// Other nodes: the parts of a cached file that other nodes keep. This process connects to one when
// it first needs it; the leader of a node serves its part to the others.
//
// Threads: connect() and connected() from any; the others one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/cache_part.hpp"
#include "cache/part_client.hpp"
#include "cache/part_server.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/node_map.hpp"

namespace perdure {

class OtherNodes {
 public:
  // Of a file on so many nodes, of which this one is `own`.
  void begin(std::uint32_t nodes, std::uint32_t own);
  // Collective: the leaders serve, and all know where. `backing` and the part outlive the service.
  Status serve(MpiGroup& group, const NodeMap& map, CachePart& part, const BackingFile& backing,
               const ServiceToken& token);

  std::uint32_t own() const { return own_; }
  // Null: this process has not needed it.
  PartClient* connected(std::uint32_t node) const {
    return clients_of_[node].load(std::memory_order_acquire);
  }
  // `greet` is the first to use a new connection.
  Result<PartClient*> connect(std::uint32_t node, const std::function<Status(PartClient&)>& greet);
  // All are called; the first failure is that of all.
  Status for_each_connected(const std::function<Status(PartClient&)>& call) const;

  // What was sent to them is there.
  Status drain() const {
    return for_each_connected([](PartClient& there) { return there.drain(); });
  }

  bool is_serving() const { return server_ != nullptr; }
  // What others write from then on fails there. With `wait_ms` those that are connected have so
  // long to end.
  void end_service(std::uint32_t wait_ms);
  // No other node is reached any more, and none is served.
  void end();

 private:
  std::uint32_t own_ = 0;
  ServiceToken token_{};
  std::vector<ServerAddress> servers_;  // by node; empty on one node
  std::unique_ptr<PartServer> server_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PartClient>> clients_;  // by node
  std::vector<std::atomic<PartClient*>> clients_of_;  // the same, without the lock
};

}  // namespace perdure
