// SPDX-License-Identifier: BSD-3-Clause
//
// The service of parts: every verb against a plain array of bytes, several clients, strangers,
// requests that can't be right, and what happens when one side ends.
#include "cache/part_server.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "cache/testing/served_parts.hpp"

namespace perdure {
namespace {

void serve_random_calls(Served& served, std::mt19937_64& random) {
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t offset = random() % 110000;
    const std::uint64_t bytes = 1 + random() % (step % 10 == 0 ? 50000 : 3000);
    if (random() % 2 == 0) {
      served.write(offset, random_bytes(bytes, random), static_cast<Acknowledge>(random() % 3));
    } else if (offset < served.content.size()) {
      const std::uint64_t run = std::min<std::uint64_t>(bytes, served.content.size() - offset);
      const auto from = served.content.begin() + static_cast<std::ptrdiff_t>(offset);
      ASSERT_EQ(served.read(offset, run), Bytes(from, from + static_cast<std::ptrdiff_t>(run)));
    }
  }
  served.write_back();
  EXPECT_EQ(read_file(served.directory / "file"), served.content);
}

TEST(PartServer, random_reads_and_writes_over_all_layouts_lose_no_byte_nor_the_tail) {
  std::mt19937_64 random(test_seed());
  for (const std::uint32_t nodes : {1U, 2U, 3U}) {
    for (const LayoutKind kind : {LayoutKind::cyclic, LayoutKind::parts}) {
      Served served(nodes, kind, random_bytes(100001, random));
      serve_random_calls(served, random);
      Served full(nodes, kind, random_bytes(100001, random), 4096, random());
      serve_random_calls(full, random);
      for (const auto& part : full.parts) EXPECT_GT(part->through_bytes(), 0U);
    }
  }
}

TEST(PartServer, an_untouched_file_of_odd_size_keeps_its_last_byte_over_three_parts) {
  for (const LayoutKind kind : {LayoutKind::cyclic, LayoutKind::parts}) {
    Served served(3, kind, counted(1000001));
    EXPECT_EQ(served.read(1000000, 1).at(0), served.content.back());
    served.write_back();
    EXPECT_EQ(read_file(served.directory / "file"), served.content);
  }
}

TEST(PartServer, reads_and_writes_of_many_mebibytes_are_cut_in_chunks) {
  Served served(1, LayoutKind::cyclic, {}, 65536);
  const Bytes large = counted((5U << 20U) + 12345);
  served.write(777, large, Acknowledge::sync);
  EXPECT_EQ(served.read(777, large.size()), large);
  served.write(1, large, Acknowledge::async);
  EXPECT_EQ(served.read(0, served.content.size()), served.content);
}

TEST(PartServer, blocks_as_small_as_a_cache_line_twice_are_sent_in_many_pieces) {
  Served served(1, LayoutKind::cyclic, counted(300000), 128);
  EXPECT_EQ(served.read(0, 300000), served.content);
}

TEST(PartServer, sizes_travel_and_a_cut_file_reads_as_zeros_behind_its_end) {
  const Served served(1, LayoutKind::cyclic, counted(10000));
  PartClient& client = *served.clients[0];
  EXPECT_EQ(must(client.size()), 10000U);
  must(client.grow_size(20000));
  EXPECT_EQ(must(client.size()), 20000U);
  must(client.set_size(5000));
  EXPECT_EQ(must(client.size()), 5000U);
  Bytes expected(served.content.begin(), served.content.begin() + 5000);
  expected.resize(10000);
  EXPECT_EQ(served.read(0, 10000), expected);
  EXPECT_EQ(client.set_size(~0ULL).code(), Code::invalid_argument);
  EXPECT_EQ(must(client.size()), 5000U);
}

TEST(PartServer, writing_back_tells_how_much_was_written) {
  Served served(1, LayoutKind::cyclic, counted(100000));
  served.write(8192, Bytes(4096, 9), Acknowledge::sync);
  const WriteBackTally tally = must(served.clients[0]->write_back(3, true));
  EXPECT_EQ(tally.bytes, 4096U);
  EXPECT_EQ(tally.writes, 1U);
  EXPECT_EQ(must(served.clients[0]->write_back(3, true)).bytes, 0U);
  served.write(0, Bytes(10, 1), Acknowledge::sync);
  must(served.clients[0]->persist());
  EXPECT_GT(served.parts[0]->unsaved_bytes(false), 0U);
}

TEST(PartServer, shared_pointers_are_added_to_by_several_clients_at_once) {
  const Served served(1, LayoutKind::cyclic, {});
  const int slot = must(served.clients[0]->take_pointer());
  EXPECT_NE(must(served.clients[0]->take_pointer()), slot);
  must(served.clients[0]->store_pointer(slot, 1000));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto client = served.connect();
      for (int i = 0; i < 200; ++i) (void)must(client->add_to_pointer(slot, i % 2 == 0 ? 10 : -3));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(must(served.clients[0]->add_to_pointer(slot, 5)), 1000U + 4 * 100 * 7);
  EXPECT_EQ(must(served.clients[0]->load_pointer(slot)), 1005U + 4 * 100 * 7);
  must(served.clients[0]->give_pointer(slot));
  EXPECT_EQ(must(served.clients[0]->take_pointer()), slot);
  for (int left = 62; left > 0; --left) EXPECT_GE(must(served.clients[0]->take_pointer()), 0);
  EXPECT_EQ(must(served.clients[0]->take_pointer()), -1);
  EXPECT_EQ(served.clients[0]->give_pointer(64).code(), Code::invalid_argument);
  EXPECT_EQ(served.clients[0]->load_pointer(-1).status().code(), Code::invalid_argument);
}

TEST(PartServer, the_lock_has_one_owner_and_only_that_one_unlocks) {
  const Served served(1, LayoutKind::cyclic, {});
  const auto other = served.connect();
  EXPECT_TRUE(must(served.clients[0]->try_lock(7)));
  EXPECT_FALSE(must(other->try_lock(8)));
  EXPECT_EQ(other->unlock(8).code(), Code::wrong_state);
  must(served.clients[0]->unlock(7));
  EXPECT_TRUE(must(other->try_lock(8)));
  EXPECT_EQ(other->try_lock(0).status().code(), Code::invalid_argument);
}

TEST(PartServer, the_lock_of_a_client_whose_connection_ended_is_free) {
  const Served served(1, LayoutKind::cyclic, {});
  auto dying = served.connect();
  ASSERT_TRUE(must(dying->try_lock(7)));
  EXPECT_FALSE(must(served.clients[0]->try_lock(8)));
  dying.reset();
  while (!must(served.clients[0]->try_lock(8))) ::usleep(100);
  must(served.clients[0]->unlock(8));
}

TEST(PartServer, several_clients_write_disjoint_ranges_while_others_write_back) {
  Served served(1, LayoutKind::cyclic, Bytes(400000, 1), 4096);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto client = served.connect();
      std::mt19937_64 random(t);
      for (unsigned i = 0; i < 100; ++i) {
        const std::uint64_t at = t * 50000 + i * 500;
        must(client->write(at, Bytes(500, static_cast<unsigned char>(t + i)).data(), 500,
                           static_cast<Acknowledge>(random() % 3)));
        if (i % 20 == t) (void)must(client->write_back(t, true));
      }
      must(client->drain());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned t = 0; t < 6; ++t) {
    for (unsigned i = 0; i < 100; ++i) {
      std::fill_n(served.content.begin() + t * 50000 + i * 500, 500,
                  static_cast<unsigned char>(t + i));
    }
  }
  EXPECT_EQ(served.read(0, 400000), served.content);
  served.write_back();
  EXPECT_EQ(read_file(served.directory / "file"), served.content);
}

TEST(PartServer, one_client_may_be_used_by_several_threads) {
  Served served(1, LayoutKind::cyclic, Bytes(100000, 1));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 200; ++i) {
        const Bytes mine(100, static_cast<unsigned char>(t * 50 + i));
        must(served.clients[0]->write(t * 20000 + i * 100, mine.data(), 100, Acknowledge::async));
        Bytes got(100);
        must(served.clients[0]->read(t * 20000 + i * 100, got.data(), 100));
        EXPECT_EQ(got, mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PartServer, more_async_writes_than_socket_buffers_hold_neither_block_nor_reorder) {
  Served served(1, LayoutKind::cyclic, {}, 65536);
  std::mt19937_64 random(test_seed());
  for (unsigned i = 0; i < 20000; ++i) {
    served.write(random() % 5000, Bytes(1 + random() % 100, static_cast<unsigned char>(i)),
                 Acknowledge::async);
  }
  for (unsigned i = 0; i < 40; ++i) {
    served.write(random() % 100000, Bytes(900000, static_cast<unsigned char>(i)),
                 Acknowledge::async);
  }
  EXPECT_EQ(served.read(0, served.content.size()), served.content);
}

TEST(PartServer, the_error_of_an_async_write_comes_with_the_next_drain_and_once) {
  const Served served(2, LayoutKind::cyclic, counted(100000));
  const Bytes some(100, 1);
  PartClient& client = *served.clients[0];
  for (int i = 0; i < 3000; ++i) must(client.write(4096, some.data(), 100, Acknowledge::async));
  must(client.write(0, some.data(), 100, Acknowledge::async));
  const Status status = client.drain();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_TRUE(says(status, "kept by node 1, not by node 0")) << status.message();
  must(client.drain());
  EXPECT_EQ(served.read(0, 100), some);
  EXPECT_EQ(served.read(4096, 100),
            Bytes(served.content.begin() + 4096, served.content.begin() + 4196));
}

TEST(PartServer, ranges_of_other_nodes_and_beyond_all_files_are_refused_whole) {
  const Served served(2, LayoutKind::cyclic, counted(100000));
  Bytes some(20000, 1);
  PartClient& client = *served.clients[0];
  EXPECT_EQ(client.write(0, some.data(), 5000, Acknowledge::sync).code(), Code::invalid_argument);
  EXPECT_EQ(client.read(4000, some.data(), 97).code(), Code::invalid_argument);
  EXPECT_EQ(client.read(~0ULL - 10, some.data(), 20).code(), Code::invalid_argument);
  EXPECT_EQ(served.read(0, 100000), served.content);
}

TEST(PartServer, oversized_and_unknown_requests_are_answered_and_end_the_connection) {
  const Served served(1, LayoutKind::cyclic, counted(100));
  const auto verb = [](Verb v) { return static_cast<std::uint32_t>(v); };
  for (const RequestFormat& request :
       {RequestFormat{verb(Verb::write), 0, 0, payload_bytes_max + 1, 0},
        RequestFormat{verb(Verb::read), 0, 0, ~0ULL, 0}, RequestFormat{99, 0, 0, 0, 0},
        RequestFormat{0, 0, 0, 0, 0}}) {
    Raw raw(*served.servers[0], token);
    raw.put(&request, sizeof request);
    EXPECT_EQ(raw.answer().value().code, static_cast<int>(Code::invalid_argument));
    EXPECT_FALSE(raw.answer());
  }
  Raw raw(*served.servers[0], token);
  const RequestFormat odd{verb(Verb::write), 77, 0, 3, 0};
  raw.put(&odd, sizeof odd);
  raw.put("abc", 3);
  EXPECT_EQ(raw.answer().value().code, static_cast<int>(Code::invalid_argument));
  const RequestFormat good{verb(Verb::read), 0, 0, 100, 0};
  raw.put(&good, sizeof good);
  EXPECT_EQ(raw.answer().value().payload_bytes, 100U);
}

TEST(PartServer, requests_in_any_pieces_are_understood) {
  const Served served(1, LayoutKind::cyclic, counted(100));
  Raw raw(*served.servers[0], token);
  const RequestFormat request{static_cast<std::uint32_t>(Verb::write), 1, 10, 5, 0};
  Bytes all(sizeof request + 5, 'x');
  std::memcpy(all.data(), &request, sizeof request);
  for (const unsigned char& byte : all) raw.put(&byte, 1);
  EXPECT_EQ(raw.answer().value().code, 0);
  EXPECT_EQ(served.read(10, 5), Bytes(5, 'x'));
}

TEST(PartServer, a_client_whose_server_stopped_is_told_at_every_call) {
  Served served(1, LayoutKind::cyclic, counted(100));
  const auto other = served.connect();
  const Bytes some(100, 1);
  must(other->write(0, some.data(), 100, Acknowledge::async));
  served.servers[0].reset();
  EXPECT_EQ(served.clients[0]->size().status().code(), Code::io_error);
  const Status again = served.clients[0]->write(0, some.data(), 1, Acknowledge::async);
  EXPECT_EQ(again.code(), Code::io_error);
  EXPECT_TRUE(says(again, "recover")) << again.message();
  Status last = Status::success();
  for (int i = 0; i < 100 && last.ok(); ++i) {
    last = other->write(0, Bytes(100000, 1).data(), 100, Acknowledge::async);
    if (last.ok()) last = other->drain();
  }
  EXPECT_EQ(last.code(), Code::io_error);
}

TEST(PartServer, stops_while_clients_are_in_the_middle_of_calls) {
  for (int round = 0; round < 10; ++round) {
    Served served(1, LayoutKind::cyclic, counted(1000000), 65536);
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, client = std::shared_ptr<PartClient>(served.connect())] {
        Bytes some(500000, 3);
        Status status = Status::success();
        while (status.ok()) {
          status = client->write(0, some.data(), some.size(), Acknowledge::async);
          if (status.ok()) status = client->read(1000, some.data(), some.size());
        }
        failures += status.code() == Code::io_error ? 1 : 0;
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Raw half(*served.servers[0], token);  // a peer in the middle of a request
    half.put("abc", 3);
    served.servers[0].reset();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 4);
  }
}

TEST(PartServer, answers_while_the_owner_computes) {
  const Served served(1, LayoutKind::cyclic, counted(10000));
  std::atomic<bool> done{false};
  std::thread owner([&] {
    for (volatile std::uint64_t sum = 0; !done.load(std::memory_order_relaxed);) sum = sum + 1;
  });
  for (unsigned i = 0; i < 200; ++i) EXPECT_EQ(served.read(i, 1).at(0), served.content[i]);
  done = true;
  owner.join();
}

std::int64_t cpu_time_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * std::int64_t{1000000} +
         used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

TEST(PartServer, uses_no_processor_while_it_is_idle) {
  Served served(1, LayoutKind::cyclic, counted(10000));
  std::vector<std::unique_ptr<PartClient>> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(served.connect());
  served.write(0, counted(5000), Acknowledge::sync);
  const std::int64_t before = cpu_time_us();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(cpu_time_us() - before, 10000);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(PartServer, leaves_no_descriptor_open) {
  const std::size_t before = open_descriptors();
  {
    const Served served(2, LayoutKind::cyclic, counted(10000));
    for (int i = 0; i < 200; ++i) (void)must(served.connect()->size());
    // Those of ended connections go with the next ones.
    EXPECT_LT(open_descriptors(), before + 100);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(PartServer, many_clients_at_once_are_all_served) {
  Served served(1, LayoutKind::cyclic, Bytes(300000, 0));
  std::vector<std::unique_ptr<PartClient>> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(served.connect());
  const Bytes some(1000, 5);
  for (unsigned i = 0; i < 300; ++i) {
    must(clients[i]->write(std::uint64_t{i} * 1000, some.data(), 1000, Acknowledge::async));
  }
  for (const auto& client : clients) must(client->drain());
  EXPECT_EQ(served.read(0, 300000), Bytes(300000, 5));
}

TEST(PartServer, a_host_that_is_not_here_is_refused_with_the_remedy) {
  const Served served(1, LayoutKind::cyclic, {});
  const auto server = PartServer::start(*served.parts[0], *served.backing, token, "192.0.2.1");
  EXPECT_TRUE(says(server.status(), "PERDURE_CACHE_HOST")) << server.status().message();
  const auto own = must(PartServer::start(*served.parts[0], *served.backing, token, ""));
  EXPECT_EQ(own->address().host, own_host());
  for (const char* every : {"0.0.0.0", "::"}) {
    const auto refused = PartServer::start(*served.parts[0], *served.backing, token, every);
    EXPECT_TRUE(says(refused.status(), "every interface")) << refused.status().message();
  }
}

TEST(ServerAddress, has_a_text_and_back) {
  const ServerAddress address{"node-17.cluster", 40123};
  EXPECT_EQ(text_of(address), "node-17.cluster:40123");
  EXPECT_EQ(must(parse_address("node-17.cluster:40123")).host, address.host);
  EXPECT_EQ(must(parse_address("node-17.cluster:40123")).port, address.port);
  for (const char* text : {"", "a", ":1", "a:", "a:0", "a:65536", "a:1x", "a:-1"}) {
    EXPECT_EQ(parse_address(text).status().code(), Code::invalid_argument) << text;
  }
  EXPECT_FALSE(parse_address(std::string(70, 'a') + ":1").ok());
}

}  // namespace
}  // namespace perdure
