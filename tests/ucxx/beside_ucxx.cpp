// One process uses UCXX and ucxio on one UCP context; a second one has UCXX alone.
//   beside_ucxx own|borrowed
// The first one's ucxio has a worker of its own, or borrows UCXX's.
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <ucxx/api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ucx/endpoint.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace {

constexpr std::size_t size = 65536;
constexpr std::uint64_t features =
    UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
constexpr unsigned longest = 60;  // seconds that each process may take
const std::string first_line = "kept by UCXX";
const std::string written = "written by ucxio";

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

void tell(int to, const std::string& text) {
  const std::uint64_t said = text.size();
  expect(::send(to, &said, sizeof said, MSG_NOSIGNAL) == sizeof said &&
             ::send(to, text.data(), said, MSG_NOSIGNAL) == static_cast<ssize_t>(said),
         "the other process is gone");
}

std::string hear(int from) {
  std::uint64_t said = 0;
  expect(::recv(from, &said, sizeof said, MSG_WAITALL) == sizeof said, "the other one is gone");
  std::string text(said, '\0');
  expect(::recv(from, text.data(), said, MSG_WAITALL) == static_cast<ssize_t>(said),
         "the other process is gone");
  return text;
}

/// A UCXX worker and its endpoint to the other process.
struct ucxx_side {
  explicit ucxx_side(int talk) {
    tell(talk, std::string(ucxx::AddressBuilder(worker).build()->getStringView()));
    peer = hear(talk);
    endpoint = worker->endpointBuilder(ucxx::AddressBuilder(peer).build())
                   .endpointErrorHandling(false)
                   .build();
  }
  void wait(const std::shared_ptr<ucxx::Request>& started) const {
    while (!started->isCompleted()) worker->progress();
    started->checkError();
  }
  void send(const std::string& text) const {
    wait(endpoint->tagSendBuilder(text.data(), text.size(), ucxx::Tag{7}).build());
  }
  std::string receive(std::size_t length) const {
    std::string text(length, '\0');
    wait(endpoint->tagRecvBuilder(text.data(), length, ucxx::Tag{7}, ucxx::TagMaskFull).build());
    return text;
  }

  std::shared_ptr<ucxx::Context> context = ucxx::contextBuilder(features).build();
  std::shared_ptr<ucxx::Worker> worker = context->workerBuilder().build();
  std::shared_ptr<ucxx::Endpoint> endpoint;
  std::string peer;  // its worker's address
};

/// Has UCXX alone: memory with a key, and messages by tag.
void own(int talk) {
  const ucxx_side side(talk);
  const auto memory = side.context->memoryHandleBuilder(size).build();
  char* const base = reinterpret_cast<char*>(memory->getBaseAddress());
  std::fill_n(base, size, '.');
  std::memcpy(base, (first_line + '\n').data(), first_line.size() + 1);
  void* packed = nullptr;
  std::size_t length = 0;
  expect(ucp_rkey_pack(side.context->getHandle(), memory->getHandle(), &packed, &length) == UCS_OK,
         "UCX packs no key");
  tell(talk, std::string(static_cast<const char*>(packed), length));
  ucp_rkey_buffer_release(packed);
  tell(talk, std::to_string(memory->getBaseAddress()));
  expect(side.receive(5) == "first", "another message came first");
  side.send("second");
  expect(side.receive(5) == "third", "another message came third");
  expect(std::string_view(base, written.size()) == written, "the bytes were not written");
  side.send("fourth");
  expect(hear(talk) == "over", "the user said no end");
}

void check_stream(ucx::iostream& stream) {
  std::string line;
  expect(static_cast<bool>(std::getline(stream, line)) && line == first_line, "another line");
  stream.seekp(0);
  expect(static_cast<bool>((stream << written).flush()), "the write failed");
}

enum class worker_of { ucxio, ucxx };

/// A program of UCXX's that begins to use ucxio, on its UCP context.
void use(int talk, worker_of driven) {
  const ucxx_side side(talk);
  const std::string key = hear(talk);
  const std::uint64_t base = std::stoull(hear(talk));
  side.send("first");
  {
    const ucx::context context = ucx::context::adopt(side.context->getHandle(), {});
    ucx::worker worker =
        driven == worker_of::ucxio
            ? ucx::worker(context)
            : ucx::worker::adopt(context, side.worker->getHandle(), ucx::ownership::borrow);
    const auto there = ucx::worker_address::from_native(std::as_bytes(std::span(side.peer)));
    ucx::endpoint connection(worker, there, {.plain_peer = true});
    connection.wait_connected();
    const auto memory = ucx::remote_descriptor::of_key(base, size, std::as_bytes(std::span(key)),
                                                       ucx::access::read_write);
    ucx::iostream stream(ucx::remote_region(connection, memory, {.trusted_peer = true}));
    check_stream(stream);
    side.send("third");  // UCXX's progress, while all of ours is there
  }
  expect(side.receive(6) == "second", "another message came second");
  expect(side.receive(6) == "fourth", "another message came fourth");
  tell(talk, "over");
}

template <class Task>
int outcome_of(const char* who, const Task& task) {
  ::alarm(longest);
  try {
    task();
    return 0;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s: %s\n", who, failed.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto driven = argv[1] == std::string_view("own") ? worker_of::ucxio : worker_of::ucxx;
  int talk[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, talk) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(talk[0]);
    std::_Exit(outcome_of("the owner", [&] { own(talk[1]); }));
  }
  ::close(talk[1]);
  const int result = outcome_of("the user", [&] { use(talk[0], driven); });
  ::close(talk[0]);
  int ended = 0;
  ::waitpid(child, &ended, 0);
  if (ended != 0) std::fprintf(stderr, "the owner ended with %d\n", ended);
  return result == 0 && ended == 0 ? 0 : 1;
}
