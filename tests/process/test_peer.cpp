// The other process of the process tests: does what its standard input says, a line a command, and
// answers each with a line, "ok ..." or "error VALUE TEXT" (VALUE: of ucx::errc).
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device_lender.hpp"
#include "dying_calls.hpp"
#include "forked_end.hpp"
#include "peer_pipe.hpp"
#include "peer_words.hpp"
#include "support/basics/soon.hpp"
#include "support/bytes/hex.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/whole_file.hpp"
#include "support/process/own_namespace.hpp"
#include "support/process/process_memory.hpp"
#include "support/transports/echo_service.hpp"
#include "support/transports/network.hpp"
#include "support/transports/url_scheme.hpp"
#include "ucx/access.hpp"
#include "ucx/buffer.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/cstdio.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

/// What messages for handlers have.
constexpr std::uint64_t message_number = 1;
constexpr std::size_t message_header = 32;

class peer {
 public:
  peer(const std::string& plane, progress_mode mode)
      : context_(context_options_of(plane)), worker_(context_, options_of(mode)) {}

  /// Does one command and returns what to answer.
  std::string obey(std::istringstream& words) {
    std::string verb;
    words >> verb;
    const auto found = commands_.find(verb);
    if (found == commands_.end()) return "error 0 there is no command " + verb;
    return "ok " + (this->*found->second)(words);
  }

 private:
  using command = std::string (peer::*)(std::istringstream&);

  static worker_options options_of(progress_mode mode) {
    worker_options options;
    options.progress = mode;
    return patient(options);
  }

  std::string address(std::istringstream&) { return to_string(worker_.address()); }

  std::string listen(std::istringstream& words) {
    std::string where;
    words >> where;
    listener_ = std::make_unique<listener>(worker_, socket_address(where));
    return to_string(listener_->address());
  }

  /// beside: another listener of this process, over TCP; answers its address.
  std::string beside(std::istringstream&) {
    beside_context_.emplace(context_options_of("tcp"));
    beside_.emplace(*beside_context_, options_of(progress_mode::sleeping_thread));
    listener_ = std::make_unique<listener>(*beside_, any_port_of_network());
    return to_string(listener_->address());
  }

  /// allocate SIZE ACCESS SEED [device]: there, or of the host's memory.
  std::string allocate(std::istringstream& words) {
    std::size_t size = 0;
    std::string granted;
    std::uint64_t seed = 0;
    std::string where;
    words >> size >> granted >> seed >> where;
    regions_.push_back(where == "device"
                           ? memory_region::allocate(context_, size, access_of(granted), device_)
                           : memory_region::allocate(context_, size, access_of(granted)));
    copy_memory(regions_.back().bytes().data(), test::pattern(size, seed).data(), size);
    return to_hex(regions_.back().descriptor().encode());
  }

  /// lend SIZE SEED [device]: exposes memory that UCX knows nothing of, for reading; a device's for
  /// both.
  std::string lend(std::istringstream& words) {
    std::size_t size = 0;
    std::uint64_t seed = 0;
    std::string where;
    words >> size >> seed >> where;
    lent_ = test::pattern(size, seed);
    if (where == "device") {
      if (!pool_) pool_.emplace(device_);
      lent_on_device_ = buffer(*pool_, size);
      copy_memory(lent_on_device_.data(), lent_.data(), size);
      regions_.emplace_back(context_, lent_on_device_.bytes(), access::read_write);
    } else {
      regions_.emplace_back(context_, std::span<const std::byte>(lent_));
    }
    return to_hex(regions_.back().descriptor().encode());
  }

  /// share mapped|pooled|closed_mapped|closed_pooled SIZE SEED: exposes such memory of a device.
  std::string share(std::istringstream& words) {
    std::string what;
    std::size_t size = 0;
    std::uint64_t seed = 0;
    words >> what >> size >> seed;
    regions_.emplace_back(context_, lender_.make(what, size, seed), access::read_write);
    return to_hex(regions_.back().descriptor().encode());
  }
  /// unshare: the program gives that memory back, while it is exposed.
  std::string unshare(std::istringstream&) {
    lender_.free();
    return {};
  }

  /// take_back: withdraws it, and writes something else there at once.
  std::string take_back(std::istringstream&) {
    regions_.pop_back();
    std::fill(lent_.begin(), lent_.end(), std::byte{0xFF});
    if (lent_on_device_.size() > 0) {
      copy_memory(lent_on_device_.data(), lent_.data(), lent_on_device_.size());
    }
    lender_.overwrite();
    return {};
  }

  /// holds SEED: whether the newest region does.
  std::string holds(std::istringstream& words) {
    std::uint64_t seed = 0;
    words >> seed;
    std::vector<std::byte> now(regions_.back().bytes().size());
    copy_memory(now.data(), regions_.back().bytes().data(), now.size());
    return holds_pattern(now, seed) ? "yes" : "no";
  }

  /// connect ADDRESS: of a worker or of a socket.
  std::string connect(std::istringstream& words) {
    std::string where;
    words >> where;
    if (where.find(':') != std::string::npos) {
      connection_ = std::make_unique<endpoint>(worker_, socket_address(where));
    } else {
      connection_ = std::make_unique<endpoint>(worker_, parse_worker_address(where));
      connection_->wait_connected();
    }
    return {};
  }

  /// disconnect: leaves in order.
  std::string disconnect(std::istringstream&) {
    connection_->close();
    return {};
  }

  /// knock ADDRESS: connects and leaves, without end; answers after the first time.
  std::string knock(std::istringstream& words) {
    std::string where;
    words >> where;
    for (bool first = true;;) {
      endpoint_options options;
      options.connect_timeout = std::chrono::seconds(1);
      std::error_code ec;
      const endpoint made(worker_, socket_address(where), std::move(options), ec);
      if (ec || !first) continue;
      first = false;
      std::cout << "ok" << std::endl;
    }
  }

  std::string open(std::istringstream& words) {
    std::string descriptor;
    words >> descriptor;
    region_ = std::make_unique<remote_region>(*connection_,
                                              remote_descriptor::decode(from_hex(descriptor)));
    return {};
  }

  /// read OFFSET SIZE SEED: whether the bytes are those.
  std::string read(std::istringstream& words) {
    std::uint64_t offset = 0;
    std::uint64_t seed = 0;
    std::size_t size = 0;
    words >> offset >> size >> seed;
    std::vector<std::byte> into(size);
    region_->read_at(offset, into);
    return holds_pattern(into, seed, offset) ? "yes" : "no";
  }

  /// listen_for SIZE: hears notifications of the newest region from now on. Each has to find its
  /// slot of SIZE bytes, the one of its number modulo the slots, filled with the pattern of that
  /// number.
  std::string listen_for(std::istringstream& words) {
    std::size_t size = 0;
    words >> size;
    regions_.back().on_notify([this, size](const notification& said) {
      const std::span<std::byte> bytes = regions_.back().bytes();
      const std::size_t slot = said.value % (bytes.size() / size);
      std::vector<std::byte> found(size);
      copy_memory(found.data(), bytes.subspan(slot * size, size).data(), size);
      if (!holds_pattern(found, said.value)) ++wrong_;
      ++heard_;
    });
    return {};
  }
  /// heard: how many notifications, and how many of them came before their data.
  std::string heard(std::istringstream&) {
    return std::to_string(heard_) + ' ' + std::to_string(wrong_);
  }
  /// tell SIZE COUNT: fills slots and notifies, COUNT times (0: without end); answers after the
  /// first.
  std::string tell(std::istringstream& words) {
    std::size_t size = 0;
    std::uint64_t count = 0;
    words >> size >> count;
    for (std::uint64_t i = 1; count == 0 || i <= count; ++i) {
      const std::vector<std::byte> filled = pattern(size, i);
      region_->post_write_at(i % (region_->size() / size) * size, filled);
      region_->notify(i);
      if (i == 1 && count == 0) std::cout << "ok" << std::endl;
    }
    return {};
  }

  /// churn read|write SIZE DEPTH: transfers without end, DEPTH at a time; answers after the first.
  std::string churn(std::istringstream& words) {
    std::string kind;
    std::size_t size = 0;
    std::size_t depth = 0;
    words >> kind >> size >> depth;
    const std::uint64_t pieces = region_->size() / size;
    std::vector<std::vector<std::byte>> buffers(depth, std::vector<std::byte>(size));
    std::deque<request> in_flight;
    for (std::uint64_t i = 0;; ++i) {
      std::vector<std::byte>& buffer = buffers[i % depth];
      if (in_flight.size() == depth) {
        in_flight.front().wait();
        in_flight.pop_front();
      }
      const std::uint64_t offset = i % pieces * size;
      in_flight.push_back(kind == "read" ? region_->start_read_at(offset, buffer)
                                         : region_->start_write_at(offset, buffer));
      if (i == depth) std::cout << "ok" << std::endl;
    }
  }

  /// send tag|handler SIZE SEED [halves]: starts to send a message, which may lie in two halves;
  /// one for a handler has a header of the same pattern.
  std::string send(std::istringstream& words) {
    std::string kind;
    std::size_t size = 0;
    std::uint64_t seed = 0;
    std::string halves;
    words >> kind >> size >> seed >> halves;
    memories_.push_back(pattern(size, seed));
    const std::span<const std::byte> bytes = memories_.back();
    const std::array parts{bytes.first(size / 2), bytes.subspan(size / 2)};
    std::span<const std::span<const std::byte>> runs(&bytes, 1);
    if (!halves.empty()) runs = parts;
    requests_.push_back(
        kind == "tag" ? connection_->start_send(seed, runs)
                      : connection_->start_send(
                            active_message{message_number, pattern(message_header, seed)}, runs));
    return {};
  }
  /// keep: has a handler from now on that keeps the messages it is given.
  std::string keep(std::istringstream&) {
    worker_.on_message(message_number, [this](message came) {
      const std::lock_guard guard(mutex_);
      kept_.push_back(std::move(came));
    });
    return {};
  }
  /// hold tag|handler: waits until a message is there, and keeps it; answers how long it is.
  std::string hold(std::istringstream& words) {
    std::string kind;
    words >> kind;
    for (int tries = 0; tries < 20'000; ++tries) {
      {
        const std::lock_guard guard(mutex_);
        if (kind == "tag") {
          std::optional<message> taken = worker_.take(tag_match::any());
          if (taken) kept_.push_back(std::move(*taken));
        }
        if (!kept_.empty()) {
          held_ = std::move(kept_.front());
          kept_.pop_front();
          return std::to_string(held_.length());
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    throw std::runtime_error("no message came");
  }
  /// fetch: starts to receive what is held.
  std::string fetch(std::istringstream&) {
    memories_.emplace_back(static_cast<std::size_t>(held_.length()));
    requests_.push_back(held_.start_receive(memories_.back()));
    return {};
  }
  /// echo: sends what comes with a tag back, from now on.
  std::string echo(std::istringstream&) {
    echo_.emplace(worker_);
    return {};
  }
  /// serve_calls: the functions of dying_calls.hpp.
  std::string serve_calls(std::istringstream&) { return calls_.emplace(worker_).names(); }
  /// connections: how many the worker has.
  std::string connections(std::istringstream&) { return std::to_string(worker_.connections()); }

  /// become USER: a number; what this process does from now on it does as that user.
  std::string become(std::istringstream& words) {
    ::uid_t user = 0;
    words >> user;
    if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0) {
      throw std::runtime_error("this process can not become another user");
    }
    return {};
  }
  /// way: how the bytes of what was opened move, and why not otherwise.
  std::string way(std::istringstream&) {
    return std::string(to_string(region_->transfer_method())) + ' ' +
           (region_->transfer_method() == transfer_method::message
                ? region_->why_not(transfer_method::cma)
                : "");
  }

  std::string files(std::istringstream&) {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::to_string(std::distance(begin(open), end(open)) - 1);
  }

  std::string resident(std::istringstream&) { return std::to_string(resident_memory()); }

  /// leave_files NUMBER: opens files until only so many more can be. What a limit leaves free
  /// depends on which numbers are in use, and not only on how many.
  std::string leave_files(std::istringstream& words) {
    int left = 0;
    words >> left;
    constexpr ::rlim_t few = 256;
    ::rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = few;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    // Again until there is no room: UCX closes what it had open for a moment only.
    bool room = true;
    for (int looks = 0; room && looks < 10; ++looks) {
      room = false;
      for (int file = ::dup(STDIN_FILENO); file >= 0; file = ::dup(STDIN_FILENO)) {
        files_held_.push_back(file);
        room = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    for (; left > 0 && !files_held_.empty(); --left) {
      ::close(files_held_.back());
      files_held_.pop_back();
    }
    return {};
  }
  /// free_files: ends what leave_files began.
  std::string free_files(std::istringstream&) {
    for (const int file : files_held_) ::close(file);
    files_held_.clear();
    return {};
  }

  /// another context|worker|listener: made and dropped again.
  std::string another(std::istringstream& words) {
    std::string what;
    words >> what;
    if (what == "context") {
      const context made(context_options_of("tcp"));
    } else if (what == "worker") {
      const worker made(context_, options_of(progress_mode::sleeping_thread));
    } else {
      const listener made(worker_, any_port_of_network());
    }
    return {};
  }

  /// serve [HOST:PORT [WORKERS]]: a server there, or on a port of the system's choice; answers its
  /// URL.
  std::string serve(std::istringstream& words) {
    server_options options;
    words >> options.bind >> options.workers;
    options.workers = std::max<std::size_t>(options.workers, 1);
    server_.emplace(served_there(options));
    return server_->url();
  }
  /// serve_by SCHEME FOLDER: a server for such a URL, which has a broker; answers that.
  std::string serve_by(std::istringstream& words) {
    url_scheme scheme;
    words >> scheme.name >> scheme.folder;
    broker_.reset();
    server_.emplace(scheme.server());
    broker_.emplace(*server_);
    return server_->url();
  }
  /// hide: no process may look at this one from here on.
  std::string hide(std::istringstream&) {
    ::prctl(PR_SET_DUMPABLE, 0);
    return {};
  }
  /// publish NAME SIZE SEED
  std::string publish(std::istringstream& words) {
    std::string name;
    std::size_t size = 0;
    std::uint64_t seed = 0;
    words >> name >> size >> seed;
    memories_.push_back(pattern(size, seed));
    publications_.push_back(
        server_->publish(name, std::span<std::byte>(memories_.back()), access::read_write));
    return {};
  }
  /// provide NAME SIZE SEED: as publish, in memory that the server allocates.
  std::string provide(std::istringstream& words) {
    std::string name;
    std::size_t size = 0;
    std::uint64_t seed = 0;
    words >> name >> size >> seed;
    publications_.push_back(server_->allocate(name, size, access::read_write));
    fill_pattern(publications_.back().bytes(), seed);
    return {};
  }
  /// publish_store DIRECTORY [LONGEST]: for everybody to write; this process no longer files than
  /// so.
  std::string publish_store(std::istringstream& words) {
    std::string directory;
    ::rlimit longest = {};
    words >> directory;
    words >> longest.rlim_cur;
    longest.rlim_max = longest.rlim_cur;
    if (words) ::setrlimit(RLIMIT_FSIZE, &longest);
    publications_.push_back(server_->publish_store(directory, {.writable = true}));
    return {};
  }
  /// publish_file NAME PATH
  std::string publish_file(std::istringstream& words) {
    std::string name;
    std::string path;
    words >> name >> path;
    publications_.push_back(server_->publish_file(name, path, access::read));
    return {};
  }
  /// write_files URL: files of a store without end, each a `whole_file`; answers after the first.
  std::string write_files(std::istringstream& words) {
    std::string where;
    words >> where;
    return write_whole_files(where, [] { std::cout << "ok" << std::endl; });
  }
  /// memory_store WITHIN: a store in memory there.
  std::string memory_store(std::istringstream& words) {
    std::string within;
    words >> within;
    publications_.push_back(server_->allocate_store({.quota = 100'000}, within));
    return {};
  }
  /// leave_open URL: a file of C's that the end of this process closes.
  std::string leave_open(std::istringstream& words) {
    std::string where;
    words >> where;
    std::FILE* const left = open_file(where, "w");
    if (left == nullptr || std::fputs("left open", left) == EOF) return "no file";
    return {};
  }
  std::string unpublish(std::istringstream& words) {
    std::string name;
    words >> name;
    for (publication& each : publications_) {
      if (each.name() == name) each.close();
    }
    return {};
  }
  /// clients: how many the server has now.
  std::string clients(std::istringstream&) { return std::to_string(server_->statistics().clients); }

  std::string client_of(std::istringstream& words) {
    std::string where;
    words >> where;
    client_.emplace(where);
    return {};
  }
  /// list: how many names there are.
  std::string list(std::istringstream&) { return std::to_string(client_->list().size()); }
  /// open_name NAME ACCESS: for `read` and `churn`.
  std::string open_name(std::istringstream& words) {
    std::string name;
    std::string wanted;
    words >> name >> wanted;
    region_ = std::make_unique<remote_region>(client_->open(name, access_of(wanted)));
    return {};
  }
  /// ask_on URL: connects, lists and opens without end, and answers after the first.
  std::string ask_on(std::istringstream& words) {
    std::string where;
    words >> where;
    for (bool first = true;; first = false) {
      client asking(where);
      asking.list();
      asking.open("churned", access::read);
      if (first) std::cout << "ok" << std::endl;
    }
  }

  /// pipe ...: one end of a pipe, see peer_pipe.hpp.
  std::string pipe(std::istringstream& words) { return pipe_.obey(words); }

  /// pipe_over in|out|both: the same, over the connection that the next message comes by.
  std::string pipe_over(std::istringstream& words) {
    std::string direction;
    words >> direction;
    std::optional<message> came;
    soon([&] { return (came = worker_.take(tag_match::any())).has_value(); });
    pipe_.open_over(worker_, came.value().peer(), direction);
    return {};
  }

  /// until_exit URL: a stream that the end of this process closes.
  std::string until_exit(std::istringstream& words) {
    static std::optional<ifstream> left;
    std::string where;
    words >> where;
    left.emplace(where);
    return std::to_string(left->get());
  }
  /// glance URL: opens a stream, reads a byte, and closes it.
  std::string glance(std::istringstream& words) {
    std::string where;
    words >> where;
    return std::to_string(ifstream(where).get());
  }
  /// fork_off HOW: has a child end so (forked_end.hpp), which has all that there is here.
  std::string fork_off(std::istringstream& words) {
    std::string how;
    words >> how;
    return test::fork_off(how);
  }

  static const std::map<std::string, command> commands_;

  context context_;
  worker worker_;
  std::optional<context> beside_context_;
  std::optional<worker> beside_;
  std::unique_ptr<listener> listener_;
  static constexpr memory_place device_{memory_kind::cuda, 0};
  std::vector<std::byte> lent_;
  std::optional<memory_pool> pool_;  // of the device
  buffer lent_on_device_;
  device_lender lender_;
  std::vector<memory_region> regions_;
  std::unique_ptr<endpoint> connection_;
  std::unique_ptr<remote_region> region_;
  std::optional<server> server_;
  std::optional<pipe_broker> broker_;
  std::deque<std::vector<std::byte>> memories_;
  std::vector<int> files_held_;
  std::deque<publication> publications_;
  std::optional<client> client_;
  std::atomic<int> heard_{0};
  std::atomic<int> wrong_{0};
  std::mutex mutex_;
  std::deque<message> kept_;
  message held_;
  std::deque<request> requests_;
  std::optional<echo_service> echo_;
  std::optional<dying_calls> calls_;
  peer_pipe pipe_;
};

const std::map<std::string, peer::command> peer::commands_{{"address", &peer::address},
                                                           {"listen", &peer::listen},
                                                           {"beside", &peer::beside},
                                                           {"allocate", &peer::allocate},
                                                           {"lend", &peer::lend},
                                                           {"share", &peer::share},
                                                           {"unshare", &peer::unshare},
                                                           {"take_back", &peer::take_back},
                                                           {"holds", &peer::holds},
                                                           {"connect", &peer::connect},
                                                           {"disconnect", &peer::disconnect},
                                                           {"knock", &peer::knock},
                                                           {"open", &peer::open},
                                                           {"read", &peer::read},
                                                           {"churn", &peer::churn},
                                                           {"listen_for", &peer::listen_for},
                                                           {"heard", &peer::heard},
                                                           {"tell", &peer::tell},
                                                           {"send", &peer::send},
                                                           {"keep", &peer::keep},
                                                           {"hold", &peer::hold},
                                                           {"fetch", &peer::fetch},
                                                           {"echo", &peer::echo},
                                                           {"serve_calls", &peer::serve_calls},
                                                           {"connections", &peer::connections},
                                                           {"become", &peer::become},
                                                           {"way", &peer::way},
                                                           {"files", &peer::files},
                                                           {"resident", &peer::resident},
                                                           {"leave_files", &peer::leave_files},
                                                           {"free_files", &peer::free_files},
                                                           {"another", &peer::another},
                                                           {"serve", &peer::serve},
                                                           {"serve_by", &peer::serve_by},
                                                           {"hide", &peer::hide},
                                                           {"publish", &peer::publish},
                                                           {"provide", &peer::provide},
                                                           {"publish_store", &peer::publish_store},
                                                           {"publish_file", &peer::publish_file},
                                                           {"write_files", &peer::write_files},
                                                           {"memory_store", &peer::memory_store},
                                                           {"leave_open", &peer::leave_open},
                                                           {"unpublish", &peer::unpublish},
                                                           {"clients", &peer::clients},
                                                           {"client", &peer::client_of},
                                                           {"list", &peer::list},
                                                           {"open_name", &peer::open_name},
                                                           {"ask_on", &peer::ask_on},
                                                           {"pipe", &peer::pipe},
                                                           {"pipe_over", &peer::pipe_over},
                                                           {"until_exit", &peer::until_exit},
                                                           {"glance", &peer::glance},
                                                           {"fork_off", &peer::fork_off}};

}  // namespace
}  // namespace ucx::test

/// ucxio-test-peer tcp|shared|local caller|polling|sleeping
int main(int argc, char** argv) {
  using ucx::progress_mode;
  // Never outlives the test, even one that was killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string plane = argc > 1 ? argv[1] : "tcp";
  const std::string mode = argc > 2 ? argv[2] : "sleeping";
  if (plane == "alone" && !ucx::test::raise_loopback()) return 1;
  std::unique_ptr<ucx::test::peer> peer;
  std::string line = "start";
  do {
    std::istringstream words(line);
    std::string answer;
    try {
      if (peer) {
        answer = peer->obey(words);
      } else {
        peer = std::make_unique<ucx::test::peer>(plane, mode == "caller" ? progress_mode::caller
                                                        : mode == "polling"
                                                            ? progress_mode::polling_thread
                                                            : progress_mode::sleeping_thread);
        answer = "ok " + std::to_string(::getpid());
      }
    } catch (const ucx::error& failed) {
      answer = "error " + std::to_string(failed.code().value()) + ' ' + failed.what();
    } catch (const std::exception& failed) {
      answer = std::string("error 0 ") + failed.what();
    }
    std::cout << answer << std::endl;
  } while (peer && std::getline(std::cin, line) && line != "quit");
}
