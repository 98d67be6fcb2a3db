// A server over the real transport that breaks the rules: ucxio-untruthful-server LIE [NAME].
// Prints its URL, and serves until its standard input ends. A lie is one of
//   version      it is of another version
//   names        it publishes NAME, which is given in hexadecimal digits, and may be no name
//   gone         it lists "gone" and "there", and the first of them cannot be opened any more
//   silent       it greets, and answers nothing else; it prints a line for each such question
//   mute         the same, but that it describes what it is asked about, as short files
//   endless      it has always more to list
//   bottomless   it has a directory in which there is always more
//   enormous     it publishes "enormous", and says that it goes to the end of the address space
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connection/channel.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "support/bytes/hex.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace detail;

/// What the server says, whoever asks.
struct tale {
  std::error_code greeting;
  welcome_body welcome;
  std::vector<entry> names;
  std::string gone;
  bool is_endless = false;
  bool is_bottomless = false;
  bool is_silent = false;
  bool is_mute = false;
  remote_descriptor descriptor;
};

tale tale_of(const std::string& lie, const std::string& name, const remote_descriptor& honest) {
  tale told;
  told.descriptor = honest;
  if (lie == "version") {
    told.greeting = errc::version_mismatch;
    ++told.welcome.version;
  }
  if (lie == "names") told.names = {{.name = name}};
  if (lie == "gone") told.names = {{.name = told.gone = "gone"}, {.name = "there"}};
  told.is_bottomless = lie == "bottomless";
  told.is_endless = lie == "endless" || told.is_bottomless;
  told.is_silent = lie == "silent";
  told.is_mute = lie == "mute";
  if (told.is_mute || told.is_bottomless) told.welcome.features = control_feature::all;
  if (lie == "enormous") told.names = {{.name = "enormous"}};
  // More could not be written into a descriptor.
  const bool enormous = lie == "enormous";
  told.descriptor.size = enormous ? ~honest.address : honest.size;
  for (entry& each : told.names) each.size = told.descriptor.size;
  return told;
}

class session final : public channel_receiver {
 public:
  session(endpoint_core& peer, const tale& told) : channel_(peer), told_(told) {}

  void received(std::span<const std::byte> message) override {
    const std::optional<control_header> asked = decode_control(message);
    if (!asked) return;
    const bool is_answered =
        asked->type == control_type::hello || (told_.is_mute && asked->type == control_type::stat);
    if (asked->type == control_type::bye) return;
    if ((told_.is_silent || told_.is_mute) && !is_answered) {
      std::printf("unanswered: %d\n", static_cast<int>(asked->type));
      std::fflush(stdout);
      return;
    }
    control_header answer;
    answer.request = asked->request;
    switch (asked->type) {
      case control_type::hello:
        answer.type = control_type::welcome;
        if (told_.greeting) answer.status = error_status(told_.greeting);
        return channel_.send(encode_control(answer, told_.welcome));
      case control_type::list:
        answer.type = control_type::listed;
        if (told_.is_endless) {
          const auto asked_for = decode_list(message).value_or(list_body{}).directory;
          return channel_.send(
              encode_control(answer, listed_body{next_names(asked_for.value_or("")), true}));
        }
        return channel_.send(encode_control(answer, listed_body{told_.names, false}));
      case control_type::stat:
        answer.type = control_type::described;
        return describe(answer, decode_stat(message).value_or(stat_body{}).name);
      case control_type::open:
        return open(answer, decode_open(message).value_or(open_body{}).name);
      default:
        return;
    }
  }
  void ended(std::error_code) noexcept override {}

 private:
  /// Returns a page of the longest names.
  std::vector<entry> next_names(const std::string& directory) {
    std::vector<entry> page;
    for (std::size_t room = channel_.longest() - 64; room > 1200; room -= 1100) {
      std::string number = std::to_string(++last_);
      number.insert(0, 20 - number.size(), '0');
      // What lies in a directory has the name of a file at most.
      const std::size_t length = directory.empty() ? 1000 : 200;
      if (!directory.empty()) number.insert(0, directory + '/');
      page.push_back({.name = number + std::string(length, 'n')});
    }
    return page;
  }
  void describe(const control_header& answer, const std::string& name) {
    entry described{.name = name, .type = entry_type::file, .size = 10};
    if (told_.is_bottomless) described.type = entry_type::directory;
    if (!told_.is_mute && !told_.is_bottomless) described = told_.names.front();
    channel_.send(encode_control(answer, described_body{described}));
  }
  void open(control_header answer, const std::string& name) {
    answer.type = control_type::opened;
    if (name == told_.gone) {
      answer.status = error_status(errc::no_such_name);
      return channel_.send(encode_control(answer));
    }
    entry described = told_.names.front();
    described.name = name;
    channel_.send(encode_control(answer, opened_body{described, told_.descriptor.encode()}));
  }

  endpoint_channel channel_;
  const tale& told_;
  std::uint64_t last_ = 0;
};

class untruthful final : public control_server {
 public:
  explicit untruthful(tale told) : told_(std::move(told)) {}
  void accept(endpoint_core& peer) override {
    sessions_.push_back(std::make_unique<session>(peer, told_));
    peer.control().set_receiver(sessions_.back().get());
  }

 private:
  tale told_;
  std::vector<std::unique_ptr<session>> sessions_;
};

int serve(const std::string& lie, const std::string& name) {
  context_options options;
  options.transports = {"tcp"};
  options.devices = {"lo"};
  const context parent(options);
  std::array<std::byte, 16> memory = {};
  const memory_region region(parent, std::span<std::byte>(memory), access::read);
  untruthful liar(tale_of(lie, name, region.descriptor()));
  const worker driver(parent, {.progress = progress_mode::sleeping_thread});
  worker_core& core = *core_access::core(driver);
  {
    const std::lock_guard guard(core.lock());
    core.set_control_server(&liar);
  }
  const listener listening(driver, socket_address("127.0.0.1:0"));
  std::printf("%s\n", to_string(url("127.0.0.1", listening.address().port())).c_str());
  std::fflush(stdout);
  char nothing = 0;
  while (::read(STDIN_FILENO, &nothing, 1) > 0) {
  }
  std::_Exit(0);
}

std::string text_of(const std::string& hex) {
  const std::vector<std::byte> bytes = from_hex(hex);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace
}  // namespace ucx::test

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return ucx::test::serve(argv[1], argc > 2 ? ucx::test::text_of(argv[2]) : std::string());
}
