// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/other_nodes.hpp"

#include <array>
#include <utility>

#include "base/agreement.hpp"
#include "base/environment.hpp"
#include "mpi/mpi_library.hpp"

namespace perdure {

void OtherNodes::begin(std::uint32_t nodes, std::uint32_t own) {
  own_ = own;
  clients_.resize(nodes);
  clients_of_ = std::vector<std::atomic<PartClient*>>(nodes);
}

Status OtherNodes::serve(MpiGroup& group, const NodeMap& map, CachePart& part,
                         const BackingFile& backing, const ServiceToken& token) {
  token_ = token;
  std::array<char, address_text_bytes> own{};
  Status status;
  if (map.leads()) {
    const std::string chosen = environment("PERDURE_CACHE_HOST");
    const std::string place = chosen.empty() && map.one_machine ? loopback_host : chosen;
    auto server = PartServer::start(part, backing, token_, place);
    status = server.status();
    if (server.ok()) {
      server_ = server.take();
      text_of(server_->address()).copy(own.data(), own.size() - 1);
    }
  }
  std::vector<char> all;
  PERDURE_TRY(agree(group, status));
  PERDURE_TRY(gather_all(group.comm(), own.data(), own.size(), all));
  for (const std::uint32_t leader : map.leaders) {
    auto address = parse_address(&all[leader * own.size()]);
    if (!address.ok()) return address.status();  // all ranks have the same
    servers_.push_back(address.take());
  }
  return Status::success();
}

Result<PartClient*> OtherNodes::connect(std::uint32_t node,
                                        const std::function<Status(PartClient&)>& greet) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (clients_[node] == nullptr) {
    PERDURE_TRY_ASSIGN(auto client, PartClient::connect(servers_[node], token_));
    PERDURE_TRY(greet(*client));
    clients_[node] = std::move(client);
    clients_of_[node].store(clients_[node].get(), std::memory_order_release);
  }
  return clients_[node].get();
}

Status OtherNodes::for_each_connected(const std::function<Status(PartClient&)>& call) const {
  Status status;
  for (const std::atomic<PartClient*>& client : clients_of_) {
    PartClient* const at = client.load(std::memory_order_acquire);
    if (at == nullptr) continue;
    const Status called = call(*at);
    if (status.ok()) status = called;
  }
  return status;
}

void OtherNodes::end_service(std::uint32_t wait_ms) {
  if (server_ == nullptr) return;
  (void)server_->wait_for_clients(wait_ms);
  server_.reset();
}

void OtherNodes::end() {
  clients_.clear();
  server_.reset();
}

}  // namespace perdure
