// The store that Plait keeps: it serves processes that know the secret; others get no answer, hold
// nobody up and end nothing.
#include "plait/world/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "plait/base/error.h"
#include "plait/world/launch.h"
#include "plait/world/rendezvous_server.h"
#include "tests/support/error_of.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::HasSubstr;

const Secret kSecret{1, 2, 3};

RendezvousAddress address_at(int port, const Secret& secret = kSecret) {
  return {.host = "127.0.0.1", .port = port, .prefix = "test", .secret = secret};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Opens a connection on which nothing has been said.
Socket stranger(int port) { return connect_to("127.0.0.1", port, steady_clock::now() + 2s); }

// Tells whether the other side ends the connection without a word.
bool is_closed(Socket& socket) {
  std::byte byte{};
  const auto text = error_of([&] { socket.receive({&byte, 1}, steady_clock::now() + 5s); });
  return text.find("the connection") != std::string::npos;
}

// Opens a connection and proves to know the secret.
Socket known(int port) {
  Socket socket = stranger(port);
  Nonces nonces{make_nonce(), {}};
  Proof proof;
  socket.send(kStoreMark);
  socket.send(nonces.client);
  socket.receive(nonces.server);
  socket.receive(proof);
  socket.send(store_proof(kSecret, 'c', nonces));
  return socket;
}

TEST(Rendezvous, KeepsWhatItIsTold) {
  const auto store = Rendezvous::serve(address_at(0));
  const auto other = Rendezvous::connect(address_at(store->port()), 2s);
  store->set("key", "value");
  EXPECT_EQ(other->get("key", 0ms), "value");
  EXPECT_EQ(other->get("no key", 20ms), std::nullopt);
  store->create("key", "another");
  store->create("made", "once");
  EXPECT_EQ(other->get_all({"made", "key"}), (std::vector<std::string>{"once", "value"}));
  EXPECT_THROW(other->get_all({"made", "no key"}), Error);
  EXPECT_EQ(other->replace("key", "other", "new"), "value");
  EXPECT_EQ(other->replace("key", "value", "new"), "new");
  EXPECT_EQ(store->add("count", 2), 2);
  EXPECT_EQ(other->add("count", -5), -3);
  const std::string large(10 << 20, 'x');
  store->set("large", large);
  EXPECT_EQ(other->get("large", 0ms), large);
}

TEST(Rendezvous, WakesThoseWhoWaitForAKey) {
  const auto store = Rendezvous::serve(address_at(0));
  const auto other = Rendezvous::connect(address_at(store->port()), 2s);
  std::thread setter([&] {
    std::this_thread::sleep_for(50ms);
    store->set("late", "value");
  });
  EXPECT_EQ(other->get("late", 20s), "value");
  setter.join();
}

TEST(Rendezvous, AnswersNobodyWithoutItsSecret) {
  const auto store = Rendezvous::serve(address_at(0));
  store->set("key", "value");
  Secret wrong = kSecret;
  wrong.back() ^= 1;
  EXPECT_THAT(error_of([&] { Rendezvous::connect(address_at(store->port(), wrong), 200ms); }),
              HasSubstr("another secret than this rank"));
  EXPECT_THROW(Rendezvous::connect(address_at(store->port(), Secret{}), 200ms), Error);
  // c10d's TCPStore tells everybody all keys: its greeting, then its operation 17.
  Socket c10d = stranger(store->port());
  c10d.send(bytes_of(std::string("\0\xce\xf7\x85\x3c\x11", 6) + std::string(50, '\x11')));
  EXPECT_TRUE(is_closed(c10d));
  // Sends the right greeting, a wrong proof, and an operation at once.
  Socket guess = stranger(store->port());
  guess.send(kStoreMark);
  guess.send(make_nonce());
  std::array<std::byte, sizeof(Nonce) + sizeof(Proof)> greeting;
  guess.receive(greeting);
  guess.send(bytes_of(std::string(8, 'x') + encode({"set", "test/key", "wrong"})));
  EXPECT_TRUE(is_closed(guess));
  EXPECT_EQ(store->get("key", 0ms), "value");
}

TEST(Rendezvous, IsNotHeldUpByStrangers) {
  const auto store = Rendezvous::serve(address_at(0));
  std::vector<Socket> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(stranger(store->port()));
    strangers.back().send(bytes_of("pl"));
  }
  const auto other = Rendezvous::connect(address_at(store->port()), 5s);
  other->set("key", "value");
  EXPECT_EQ(store->get("key", 0ms), "value");
  EXPECT_TRUE(is_closed(strangers[0]));  // the oldest of too many
}

TEST(Rendezvous, ClosesConnectionsWithMalformedMessages) {
  const auto store = Rendezvous::serve(address_at(0));
  for (const std::string& message :
       {encode({}), encode({"list"}), encode({"set", "key"}), encode({"get", "key", "soon"}),
        encode({"get", "", "1"}), encode({"add", "key", "1x"}), std::string(4, '\xff'),
        std::string("\x04\0\0\0\xff\0\0\0", 8), std::string("\x02\0\0\0\x01\0", 6),
        encode({"get", "key", "9000"}) + encode({"get", "key", "9000"})}) {
    Socket socket = known(store->port());
    socket.send(bytes_of(message));
    EXPECT_TRUE(is_closed(socket)) << message.size();
  }
  store->set("key", "value");
  EXPECT_EQ(store->get("key", 0ms), "value");
}

TEST(Rendezvous, ListensAtItsAddressAlone) {
  const auto store = Rendezvous::serve(address_at(0));
  EXPECT_THROW(connect_to("127.0.0.2", store->port(), steady_clock::now() + 2s), Error);
  const auto elsewhere = Rendezvous::serve(address_at(0), "0.0.0.0");
  connect_to("127.0.0.2", elsewhere->port(), steady_clock::now() + 2s);
  EXPECT_THAT(error_of([&] { Rendezvous::serve({.host = "192.0.2.1", .port = 4000}); }),
              HasSubstr("the store at 192.0.2.1:4000: nothing can listen there"));
}

// The first rank of a world without a launcher keeps the store.
TEST(Rendezvous, OfTheFirstRankListensAtTheMastersAddress) {
  WorldConfig config;
  config.size = 2;
  config.master_port = free_port();
  config.join_timeout = 1s;
  std::thread first([&] { EXPECT_THROW(World::join(config), Error); });
  Rendezvous::connect(rendezvous_address(config), 900ms);
  EXPECT_THROW(connect_to("127.0.0.2", config.master_port, steady_clock::now() + 900ms), Error);
  first.join();
}

TEST(Secret, ProvesByTheKnownFunction) {
  Secret secret;
  std::array<std::byte, 15> message;
  for (std::uint8_t i = 0; i < secret.size(); ++i) secret[i] = i;
  for (std::uint8_t i = 0; i < message.size(); ++i) message[i] = std::byte{i};
  EXPECT_EQ(proof_of(secret, message), 0xa129ca6149be45e5u);  // of the paper, appendix A
}

class SecretOfEnvironment : public testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("PLAIT_SECRET");
    ::unsetenv("PLAIT_SECRET_FILE");
    ::unlink(path_.c_str());
  }
  void write(const std::string& text, mode_t mode) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
    ::setenv("PLAIT_SECRET_FILE", path_.c_str(), 1);
  }
  static std::string error() {
    return error_of([] { secret_from_environment(); });
  }
  const std::string path_ = testing::TempDir() + "secret";
  const Secret secret_ = make_secret();
};

TEST_F(SecretOfEnvironment, IsReadFromAVariableOrAPrivateFile) {
  EXPECT_EQ(secret_from_environment(), Secret{});
  ::setenv("PLAIT_SECRET", to_text(secret_).c_str(), 1);
  EXPECT_EQ(secret_from_environment(), secret_);
  ::unsetenv("PLAIT_SECRET");
  write(to_text(secret_) + "\n", 0600);
  EXPECT_EQ(secret_from_environment(), secret_);
}

TEST_F(SecretOfEnvironment, IsRefusedIfItIsNone) {
  for (const char* text :
       {"abc", "0123456789abcdef0123456789abcdeg", "00000000000000000000000000000000",
        "+123456789abcdef0123456789abcdef"}) {
    ::setenv("PLAIT_SECRET", text, 1);
    EXPECT_THAT(error(), HasSubstr("PLAIT_SECRET must hold 32 hexadecimal digits")) << text;
  }
  ::unsetenv("PLAIT_SECRET");
  write(to_text(secret_) + "0", 0600);
  EXPECT_THAT(error(), HasSubstr("hexadecimal digits"));
  write(to_text(secret_), 0640);
  EXPECT_THAT(error(), HasSubstr("nobody else may read"));
  ::setenv("PLAIT_SECRET_FILE", "/nowhere", 1);
  EXPECT_THAT(error(), HasSubstr("/nowhere cannot be opened: No such file"));
}

const PlainProgram tells_secret("tells secret", [] {
  const std::string secret = std::getenv("PLAIT_SECRET");
  std::ifstream file("/proc/self/cmdline");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  expect(line.find(secret) == std::string::npos, "no secret in the command line");
  say(fmt::format("secret {}", secret));
  return 0;
});

TEST(Secret, IsMadeAnewByTheLauncher) {
  std::vector<std::string> found;
  for (int i = 0; i < 2; ++i) {
    Job job({"tells secret", 1});
    found.push_back(job.await("secret "));
    EXPECT_EQ(found.back().size(), 32u);
    EXPECT_EQ(job.wait().code, 0);
  }
  EXPECT_NE(found[0], found[1]);
}

// Others may have put these values into the store: no rank ends of them.
const RankProgram overwrites("overwrites", [](World& world) {
  const auto store = Rendezvous::connect(rendezvous_address(*world_from_environment()), 2s);
  world.barrier();
  if (world.rank() == 0)
    for (const char* loss : {"x\nis lost", "99999999999\nis lost", "-7\nis lost", "1"}) {
      store->set("lost", loss);
      for (int i = 0; i < 60; ++i) {  // longer than between two heartbeats
        for (const char* heartbeat : {"7 x phase", "7", "", "7 99999999999999999999999 phase"})
          store->set("world0/alive/1", heartbeat);
        std::this_thread::sleep_for(5ms);
      }
    }
  world.barrier();
  store->set("lost", "-");
});

TEST(Liveness, SurvivesMalformedValues) {
  const auto outcome = run_job({"overwrites", 2, 5000});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

}  // namespace
}  // namespace plait::test
