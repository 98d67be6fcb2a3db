// The other process of the process tests: does what its standard input says, a line a command, and
// answers each with a line, "ok ..." or "error VALUE TEXT" (VALUE: of ucx::errc).
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/hex.hpp"
#include "support/pattern.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

context_options context_options_of(const std::string& plane) {
  context_options options;
  if (plane == "shared") {
    options.transports = {"posix", "cma", "self"};
    options.features = feature::rma | feature::wakeup;
  } else {
    options.transports = {"tcp"};
    options.devices = {"lo"};
  }
  return options;
}

access access_of(const std::string& word) {
  if (word == "read") return access::read;
  return word == "write" ? access::write : access::read_write;
}

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
    return options;
  }

  std::string address(std::istringstream&) { return to_string(worker_.address()); }

  std::string listen(std::istringstream& words) {
    std::string where;
    words >> where;
    listener_ = std::make_unique<listener>(worker_, socket_address(where));
    return to_string(listener_->address());
  }

  /// allocate SIZE ACCESS SEED
  std::string allocate(std::istringstream& words) {
    std::size_t size = 0;
    std::string granted;
    std::uint64_t seed = 0;
    words >> size >> granted >> seed;
    regions_.push_back(memory_region::allocate(context_, size, access_of(granted)));
    fill_pattern(regions_.back().bytes(), seed);
    return to_hex(regions_.back().descriptor().encode());
  }

  /// holds SEED: whether the newest region does.
  std::string holds(std::istringstream& words) {
    std::uint64_t seed = 0;
    words >> seed;
    return holds_pattern(regions_.back().bytes(), seed) ? "yes" : "no";
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

  std::string files(std::istringstream&) {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::to_string(std::distance(begin(open), end(open)) - 1);
  }

  std::string resident(std::istringstream&) {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t pages = 0;
    statm >> total >> pages;
    return std::to_string(pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  }

  std::string limit_files(std::istringstream& words) {
    ::rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    words >> limit.rlim_cur;
    ::setrlimit(RLIMIT_NOFILE, &limit);
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
      const listener made(worker_, socket_address("127.0.0.1:0"));
    }
    return {};
  }

  static const std::map<std::string, command> commands_;

  context context_;
  worker worker_;
  std::unique_ptr<listener> listener_;
  std::vector<memory_region> regions_;
  std::unique_ptr<endpoint> connection_;
  std::unique_ptr<remote_region> region_;
};

const std::map<std::string, peer::command> peer::commands_{{"address", &peer::address},
                                                           {"listen", &peer::listen},
                                                           {"allocate", &peer::allocate},
                                                           {"holds", &peer::holds},
                                                           {"connect", &peer::connect},
                                                           {"open", &peer::open},
                                                           {"read", &peer::read},
                                                           {"churn", &peer::churn},
                                                           {"files", &peer::files},
                                                           {"resident", &peer::resident},
                                                           {"limit_files", &peer::limit_files},
                                                           {"another", &peer::another}};

}  // namespace
}  // namespace ucx::test

/// ucxio-test-peer tcp|shared caller|polling|sleeping
int main(int argc, char** argv) {
  using ucx::progress_mode;
  // Never outlives the test, even one that was killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string plane = argc > 1 ? argv[1] : "tcp";
  const std::string mode = argc > 2 ? argv[2] : "sleeping";
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
  } while (peer && std::getline(std::cin, line));
}
