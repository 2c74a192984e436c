// SPDX-License-Identifier: BSD-3-Clause
//
// The service of parts among strangers: whoever doesn't know the job's token reads, writes and
// stops nothing, whatever he says, and a client tells an impostor nothing.
// ctest: NAME cache_hostile_test LABELS hostile
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "cache/testing/served_parts.hpp"

namespace perdure {
namespace {

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A process on a port that says what a test makes it say, to one client.
class Impostor {
 public:
  Impostor() : listener_(must(listen_at(loopback_host, address_))) {}
  const ServerAddress& address() const { return address_; }
  FileHandle await_client() {
    for (;;) {
      auto socket = accept_waiting(listener_);
      if (!socket.ok() || socket.value().fd() >= 0) return must(std::move(socket));
      ::usleep(1000);
    }
  }

 private:
  ServerAddress address_;
  FileHandle listener_;
};

template <typename Format>
void put(const FileHandle& socket, const Format& what) {
  Format copy = what;
  iovec piece{&copy, sizeof copy};
  (void)send_whole(socket, &piece, 1);
}

// What else came before the client ended the connection.
std::size_t bytes_until_end(const FileHandle& socket) {
  std::array<char, 4096> bytes;
  std::size_t sum = 0;
  for (;;) {
    const auto got = receive_some(socket, bytes.data(), bytes.size());
    if (!got.ok()) return sum;
    sum += got.value();
  }
}

TEST(Handshake, proves_the_token_for_one_connection_one_server_and_one_direction) {
  const auto challenge = must(new_challenge());
  const auto greeting = must(greeting_for(token, "node:1", challenge));
  EXPECT_TRUE(is_of_job(token, "node:1", challenge, greeting));
  EXPECT_FALSE(is_of_job(token, "node:2", challenge, greeting));
  EXPECT_FALSE(is_of_job(token, "node:1", must(new_challenge()), greeting));
  const auto welcome = welcome_for(token, "node:1", challenge, greeting);
  EXPECT_TRUE(is_of_job(token, "node:1", challenge, greeting, welcome));
  EXPECT_FALSE(is_of_job(token, "node:2", challenge, greeting, welcome));
  WelcomeFormat reflected{};
  std::copy_n(greeting.proof, proof_bytes, reflected.proof);
  EXPECT_FALSE(is_of_job(token, "node:1", challenge, greeting, reflected));
  const auto other = must(greeting_for(token, "node:1", challenge));
  EXPECT_FALSE(is_of_job(token, "node:1", challenge, other, welcome));
}

TEST(Handshake, notices_every_flipped_bit) {
  const auto challenge = must(new_challenge());
  const auto greeting = must(greeting_for(token, "node:1", challenge));
  const auto welcome = welcome_for(token, "node:1", challenge, greeting);
  for (std::size_t bit = 0; bit < sizeof greeting * 8; ++bit) {
    GreetingFormat wrong = greeting;
    reinterpret_cast<unsigned char*>(&wrong)[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
    EXPECT_FALSE(is_of_job(token, "node:1", challenge, wrong)) << bit;
  }
  for (std::size_t bit = 0; bit < sizeof welcome * 8; ++bit) {
    WelcomeFormat wrong = welcome;
    wrong.proof[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_FALSE(is_of_job(token, "node:1", challenge, greeting, wrong)) << bit;
  }
  for (std::size_t bit = 0; bit < sizeof token.bytes * 8; ++bit) {
    ServiceToken wrong = token;
    wrong.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_FALSE(is_of_job(wrong, "node:1", challenge, greeting)) << bit;
  }
}

TEST(Handshake, sends_the_token_in_no_message) {
  const auto secret = must(new_token());
  const auto challenge = must(new_challenge());
  const auto greeting = must(greeting_for(secret, "node:1", challenge));
  const auto welcome = welcome_for(secret, "node:1", challenge, greeting);
  std::string said(reinterpret_cast<const char*>(&challenge), sizeof challenge);
  said.append(reinterpret_cast<const char*>(&greeting), sizeof greeting);
  said.append(reinterpret_cast<const char*>(&welcome), sizeof welcome);
  for (std::size_t at = 0; at + 8 <= secret.bytes.size(); ++at) {
    const std::string piece(reinterpret_cast<const char*>(&secret.bytes[at]), 8);
    EXPECT_EQ(said.find(piece), std::string::npos) << at;
  }
}

TEST(Handshake, draws_another_token_and_challenge_each_time) {
  std::set<std::array<std::uint8_t, 32>> seen;
  for (int i = 0; i < 100; ++i) seen.insert(must(new_token()).bytes);
  for (int i = 0; i < 100; ++i) {
    std::array<std::uint8_t, 32> nonce{};
    std::copy_n(must(new_challenge()).nonce, nonce.size(), nonce.begin());
    seen.insert(nonce);
  }
  EXPECT_EQ(seen.size(), 200U);
}

TEST(HostileService, a_wrong_token_is_refused_and_told_nothing) {
  const Served served(1, LayoutKind::cyclic, counted(100));
  for (const std::size_t byte : {0U, 31U}) {
    ServiceToken wrong = token;
    wrong.bytes[byte] ^= 1U;
    const auto client = PartClient::connect(served.servers[0]->address(), wrong);
    EXPECT_EQ(client.status().code(), Code::io_error);
    EXPECT_TRUE(says(client.status(), "127.0.0.1:")) << client.status().message();
    Raw raw(served.servers[0]->address());
    const auto challenge = raw.challenge().value();
    const auto greeting =
        must(greeting_for(wrong, text_of(served.servers[0]->address()), challenge));
    raw.put(&greeting, sizeof greeting);
    EXPECT_FALSE(raw.get<std::uint8_t>());
  }
  EXPECT_EQ(served.read(0, 100), served.content);
}

TEST(HostileService, a_recorded_handshake_is_worth_nothing) {
  const Served served(2, LayoutKind::cyclic, counted(10000));
  const std::string address = text_of(served.servers[0]->address());
  Raw first(served.servers[0]->address());
  const auto recorded = must(greeting_for(token, address, first.challenge().value()));
  first.put(&recorded, sizeof recorded);
  EXPECT_TRUE(first.get<WelcomeFormat>());
  for (const auto& server : served.servers) {
    Raw again(server->address());
    EXPECT_TRUE(again.challenge());
    again.put(&recorded, sizeof recorded);
    EXPECT_FALSE(again.get<std::uint8_t>());
  }
  // What one server receives is of no use with another.
  Raw relayed(served.servers[1]->address());
  const auto greeting = must(greeting_for(token, address, relayed.challenge().value()));
  relayed.put(&greeting, sizeof greeting);
  EXPECT_FALSE(relayed.get<std::uint8_t>());
}

TEST(HostileService, requests_before_the_greeting_are_not_looked_at) {
  Served served(1, LayoutKind::cyclic, counted(100000));
  const auto before = served.content;
  for (const Verb verb : {Verb::write, Verb::set_size, Verb::try_lock, Verb::read}) {
    Raw raw(served.servers[0]->address());
    EXPECT_TRUE(raw.challenge());
    Bytes all(1000, 'x');
    const RequestFormat request{static_cast<std::uint32_t>(verb), 1, 0, 900, 7};
    std::memcpy(all.data(), &request, sizeof request);
    raw.try_to_put(all.data(), all.size());
    EXPECT_FALSE(raw.get<std::uint8_t>());
  }
  EXPECT_TRUE(must(served.clients[0]->try_lock(8)));
  EXPECT_EQ(must(served.clients[0]->size()), before.size());
  EXPECT_EQ(served.read(0, before.size()), before);
}

TEST(HostileService, garbage_of_any_length_ends_only_its_own_connection) {
  const Served served(1, LayoutKind::cyclic, counted(1000));
  std::mt19937_64 random(test_seed());
  for (int trial = 0; trial < 500; ++trial) {
    Raw raw(served.servers[0]->address());
    Bytes bytes = random_bytes(random() % 400, random);
    if (random() % 2 == 0 && bytes.size() >= 12) {  // the magic and the version are right
      GreetingFormat greeting{greeting_magic, protocol_version, 0, {}, {}};
      std::memcpy(bytes.data(), &greeting, 12);
    }
    raw.try_to_put(bytes.data(), bytes.size());
    if (bytes.size() < sizeof(GreetingFormat)) continue;
    EXPECT_TRUE(raw.challenge());
    EXPECT_FALSE(raw.get<std::uint8_t>());
  }
  EXPECT_EQ(served.read(0, 1000), served.content);
}

TEST(HostileService, who_says_nothing_takes_no_thread_and_shuts_nobody_out) {
  const Served served(1, LayoutKind::cyclic, counted(100000));
  EXPECT_EQ(served.read(0, 1).size(), 1U);  // its thread has begun
  const std::size_t threads = threads_of_this_process();
  std::vector<std::unique_ptr<Raw>> silent;
  for (std::size_t i = 0; i < 3 * Reception::waiting_max; ++i) {
    silent.push_back(std::make_unique<Raw>(served.servers[0]->address()));
    if (i % 2 == 0) silent.back()->try_to_put("P", 1);      // and one byte of a greeting
    EXPECT_EQ(served.read(i, 1).at(0), served.content[i]);  // who is in stays served
  }
  EXPECT_EQ(threads_of_this_process(), threads);
  const auto late = served.connect();  // and who belongs to the job still gets in
  EXPECT_EQ(must(late->size()), served.content.size());
  EXPECT_EQ(threads_of_this_process(), threads + 1);
}

TEST(HostileService, strangers_that_never_stop_coming_shut_nobody_out) {
  const Served served(1, LayoutKind::cyclic, counted(1000));
  std::atomic<bool> done{false};
  std::vector<std::thread> strangers;
  for (int t = 0; t < 2; ++t) {
    strangers.emplace_back([&] {
      std::vector<FileHandle> held;
      while (!done) {
        auto socket = connect_to(served.servers[0]->address(), 100);
        if (socket.ok()) held.push_back(socket.take());
        if (held.size() > 100) held.erase(held.begin());
      }
    });
  }
  for (int i = 0; i < 5; ++i) EXPECT_EQ(must(served.connect()->size()), 1000U);
  done = true;
  for (std::thread& stranger : strangers) stranger.join();
}

TEST(HostileService, clients_are_admitted_while_others_leave_in_the_middle_of_a_greeting) {
  const Served served(1, LayoutKind::cyclic, counted(1000));
  for (std::size_t bytes = 0; bytes < sizeof(GreetingFormat); ++bytes) {
    Raw raw(served.servers[0]->address());
    const auto greeting =
        must(greeting_for(token, text_of(served.servers[0]->address()), raw.challenge().value()));
    raw.put(&greeting, bytes);
  }
  EXPECT_EQ(must(served.connect()->size()), 1000U);
}

TEST(HostileService, a_client_tells_an_impostor_nothing) {
  for (const bool knows_protocol : {true, false}) {
    Impostor impostor;
    std::size_t told = 0;
    std::thread acts([&] {
      const FileHandle socket = impostor.await_client();
      ChallengeFormat challenge = must(new_challenge());
      if (!knows_protocol) challenge.magic ^= 1U;
      put(socket, challenge);
      put(socket, WelcomeFormat{});
      put(socket, AnswerFormat{});
      told = bytes_until_end(socket);
    });
    const auto client = PartClient::connect(impostor.address(), token);
    acts.join();
    EXPECT_EQ(client.status().code(), Code::foreign);
    EXPECT_TRUE(says(client.status(), "no process of this job")) << client.status().message();
    EXPECT_EQ(told, knows_protocol ? sizeof(GreetingFormat) : 0U);
  }
}

// As a process that took the port of a server that has died, and knows where another one listens.
TEST(HostileService, an_impostor_that_asks_another_server_for_the_answer_is_found_out) {
  const Served served(1, LayoutKind::cyclic, counted(1000));
  Impostor impostor;
  bool welcomed = true;
  std::thread acts([&] {
    const FileHandle client = impostor.await_client();
    Raw real(served.servers[0]->address());
    put(client, real.challenge().value());
    GreetingFormat greeting;
    must(receive_whole(client, &greeting, sizeof greeting));
    real.put(&greeting, sizeof greeting);
    const auto welcome = real.get<WelcomeFormat>();
    welcomed = welcome.has_value();
    put(client, welcome.value_or(WelcomeFormat{}));
    (void)bytes_until_end(client);
  });
  const auto client = PartClient::connect(impostor.address(), token);
  acts.join();
  EXPECT_FALSE(welcomed);
  EXPECT_EQ(client.status().code(), Code::foreign);
}

TEST(HostileService, another_version_of_the_protocol_is_told_so) {
  Impostor older;
  std::thread acts([&] {
    const FileHandle socket = older.await_client();
    ChallengeFormat challenge = must(new_challenge());
    challenge.protocol_version = 99;
    put(socket, challenge);
    (void)bytes_until_end(socket);
  });
  const auto client = PartClient::connect(older.address(), token);
  acts.join();
  EXPECT_EQ(client.status().code(), Code::unsupported);
  EXPECT_TRUE(says(client.status(), "use one build on all nodes")) << client.status().message();
}

TEST(HostileService, what_strangers_leave_behind_is_no_descriptor) {
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  };
  const std::size_t before = open_descriptors();
  {
    const Served served(1, LayoutKind::cyclic, counted(1000));
    for (int i = 0; i < 300; ++i) Raw(served.servers[0]->address()).try_to_put("x", 1);
    (void)served.connect();
    EXPECT_LT(open_descriptors(), before + 2 * Reception::waiting_max);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace perdure
