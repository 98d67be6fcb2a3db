// The library's own sockets, in the clear and by TLS, beside bare sockets, bare TLS and UCX's TCP.
//   carrier_benchmark [--clients=N]: so many idle clients by TLS
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <ios>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bare_tls.hpp"
#include "comparison.hpp"
#include "matrix_server.hpp"
#include "network.hpp"
#include "raw_ucx.hpp"
#include "socket_client.hpp"
#include "socket_owner.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10U;
constexpr std::size_t mib = kib << 10U;
constexpr std::size_t matrix = 128 * mib;
constexpr std::size_t word = 8;
/// Far enough apart that no read is ahead of the next.
constexpr std::size_t stride = 64 * kib + 64;
constexpr std::chrono::seconds usual_linger{10};

/// Both sides' token, and the Unix socket.
class folder {
 public:
  folder()
      : path_(std::filesystem::temp_directory_path() /
              ("ucxio-carrier-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
    token_ = token_file(file("tokens")).create("reader");
  }
  ~folder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::filesystem::path file(const char* name) const { return path_ / name; }
  const std::string& token() const noexcept { return token_; }

 private:
  const std::filesystem::path path_;
  std::string token_;
};

context_options by(const char* transport, const std::filesystem::path& tokens = {}) {
  context_options made;
  made.transports = {transport};
  made.token_file = tokens;
  return made;
}

/// The processes that serve.
struct owners {
  explicit owners(const folder& files)
      : clear(by("socket"), anywhere, matrix),
        secure(by("tls", files.file("tokens")), anywhere, matrix),
        crowded(by("tls", files.file("tokens")), anywhere, mib),
        of_ucx(by("ucx"), anywhere, matrix),
        mapped_by_ucx(by("ucx"), anywhere, matrix, matrix_server::memory::allocated),
        passed(by("socket"), "unix:" + files.file("server.sock").string(), matrix,
               matrix_server::memory::allocated) {}

  const std::string anywhere = tested_network().owner_address + ":0";
  socket_owner bare{matrix};
  bare_tls_owner bare_tls{matrix};
  matrix_server clear;
  matrix_server secure;
  matrix_server crowded;
  matrix_server of_ucx;
  matrix_server mapped_by_ucx;
  matrix_server passed;
};

/// Reads the matrix by URL, from its beginning to its end, round and round.
class url_reader {
 public:
  explicit url_reader(const std::string& server) : in_(server + "/matrix"), into_(mib) {
    if (!in_) throw std::runtime_error(in_.error_message());
  }
  double read(std::size_t call) {
    return repeat([&] {
      if (at_ + call > matrix) in_.seekg(static_cast<std::streamoff>(at_ = 0));
      const std::span<std::byte> into = std::span(into_).first(call);
      in_.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(call));
      if (!in_) throw std::runtime_error("a stream has failed");
      check_pattern(into, at_);
      at_ += call;
    });
  }

 private:
  ifstream in_;
  std::size_t at_ = 0;
  std::vector<std::byte> into_;
};

/// Reads some bytes here and there.
class word_reader {
 public:
  explicit word_reader(const std::string& server)
      : client_(client::shared(url(server))), region_(client_.open("matrix")) {}
  double read() {
    return repeat([&] {
      at_ = (at_ + stride) % (matrix - word);
      region_.read_at(at_, into_);
    });
  }

 private:
  client client_;
  remote_region region_;
  std::uint64_t at_ = 0;
  std::array<std::byte, word> into_ = {};
};

/// What is used for the first time in a pass that only warms up.
template <class Made, class... Arguments>
std::function<Made&()> later(Arguments... arguments) {
  const auto made = std::make_shared<std::optional<Made>>();
  return [made, arguments...]() -> Made& {
    if (!*made) made->emplace(arguments...);
    return **made;
  };
}

contender reader_of(const char* name, const matrix_server& server, std::size_t call) {
  const auto reader = later<url_reader>(server.url());
  return {name, [reader, call] { return reader().read(call); }};
}

using connected = std::function<std::unique_ptr<byte_connection>()>;

contender bare_reader(const char* name, const connected& connect, std::size_t call) {
  const auto made = std::make_shared<std::unique_ptr<socket_client>>();
  return {name, [made, connect, call] {
            if (!*made) *made = std::make_unique<socket_client>(matrix, connect());
            return (*made)->read(call, pass_time());
          }};
}

connected tls_by(const owners& all, tls_loop loop) {
  return [&all, loop] { return connect_tls(all.bare_tls.address(), loop); };
}

std::string shown(std::size_t call) {
  return call >= mib ? std::to_string(call / mib) + "MiB" : std::to_string(call / kib) + "KiB";
}

comparison of_rates(const std::string& name, std::size_t call, double target) {
  comparison made;
  made.name = "carrier/" + name + "/" + shown(call);
  made.target = target;
  made.scale = static_cast<double>(call) / 1e9;
  made.unit = "GB/s";
  return made;
}

void register_rates(const owners& all) {
  for (const std::size_t call : {4 * kib, 64 * kib, mib}) {
    comparison clear = of_rates("read in the clear", call, 1);
    clear.ours = reader_of("ucx+tcp", all.clear, call);
    clear.others = {bare_reader(
        "socket", [&all] { return connect_socket(all.bare.address()); }, call)};
    register_comparison(clear);
    comparison beside_ucx = of_rates("read in the clear, UCX's TCP", call, 1);
    beside_ucx.ours = clear.ours;
    beside_ucx.others = {reader_of("ucx", all.of_ucx, call)};
    register_comparison(beside_ucx);
    comparison cost = of_rates("read by TLS, in the clear", call, 0);
    cost.ours = reader_of("ucxs", all.secure, call);
    cost.others = {clear.ours};
    register_comparison(cost);
  }
  comparison best = of_rates("read by TLS, best loop", mib, 0.95);
  best.ours = reader_of("ucxs", all.secure, mib);
  best.others = {bare_reader("records", tls_by(all, tls_loop::records), mib),
                 bare_reader("read ahead", tls_by(all, tls_loop::read_ahead), mib),
                 bare_reader("batches", tls_by(all, tls_loop::batches), mib)};
  register_comparison(best);
  comparison first = of_rates("read by TLS, first loop", mib, 1.15);
  first.ours = best.ours;
  first.others = {best.others.front()};
  register_comparison(first);
  comparison passed = of_rates("read of passed memory, mapped", mib, 0.95);
  passed.ours = reader_of("ucx+unix", all.passed, mib);
  passed.others = {reader_of("ucx", all.mapped_by_ucx, mib)};
  register_comparison(passed);
}

/// In milliseconds more than by hand.
comparison of_times(const std::string& name, double target) {
  comparison made;
  made.name = "carrier/" + name;
  made.by = measure::excess;
  made.target = target;
  return made;
}

void register_words(const owners& all) {
  comparison words = of_times("read by TLS/8B", 0.003);
  const auto ours = later<word_reader>(all.secure.url());
  words.ours = {"ucxs", [ours] { return ours().read(); }};
  const auto bare = std::make_shared<std::unique_ptr<socket_client>>();
  words.others = {{"records", [bare, &all] {
                     if (!*bare) {
                       *bare = std::make_unique<socket_client>(
                           matrix, connect_tls(all.bare_tls.address(), tls_loop::records));
                     }
                     std::array<std::byte, word> into = {};
                     std::uint64_t at = 0;
                     return repeat([&] {
                       at = (at + stride) % (matrix - word);
                       (*bare)->read_one(at, into);
                     });
                   }}};
  register_comparison(words);
}

void open_and_read(const std::string& name) {
  ifstream in(name);
  if (in.get() == EOF) throw std::runtime_error(in.error_message());
}

void register_opening(const owners& all) {
  const std::string name = all.secure.url() + "/matrix";
  comparison first = of_times("first stream by TLS", 3);
  first.ours = {"ucxs", [name] {
                  client::set_shared_idle_timeout(std::chrono::nanoseconds(0));
                  const double rate = repeat([&] { open_and_read(name); });
                  client::set_shared_idle_timeout(usual_linger);
                  return rate;
                }};
  first.others = {{"handshake and read", [&all] {
                     return repeat([&] {
                       socket_client made(matrix,
                                          connect_tls(all.bare_tls.address(), tls_loop::records));
                       std::array<std::byte, word> into = {};
                       made.read_one(0, into);
                     });
                   }}};
  register_comparison(first);
  comparison second = of_times("second stream by TLS", 0.3);
  second.by = measure::time;
  second.ours = {"ucxs", [name] {
                   const client kept = client::shared(url(name));
                   return repeat([&] { open_and_read(name); });
                 }};
  const auto words = later<word_reader>(all.secure.url());
  second.others = {{"read of 8 bytes", [words] { return words().read(); }}};
  register_comparison(second);
}

/// Clients that have opened the matrix and read of it, and do nothing.
void register_idling(const owners& all, std::size_t count) {
  benchmark::RegisterBenchmark(
      ("ratio/carrier/" + std::to_string(count) + " idle clients by TLS").c_str(),
      [&all, count](benchmark::State& state) {
        const ucx::context parent(by("tls"));
        ucx::worker driver(parent, {.heartbeat_timeout = std::chrono::minutes(1)});
        std::vector<client> clients;
        clients.reserve(count + 1);
        std::array<std::byte, word> into = {};
        for ([[maybe_unused]] auto once : state) {
          double before = 0;
          while (clients.size() <= count) {
            client::start_connect(driver, url(all.crowded.url()), clients.emplace_back()).wait();
            clients.back().open("matrix").read_at(0, into);
            if (clients.size() == 1) before = all.crowded.resident_kilobytes();
          }
          const double each =
              (all.crowded.resident_kilobytes() - before) / static_cast<double>(count);
          state.counters["rate"] = each;
          state.SetLabel("kB at the server for each");
          state.SetIterationTime(1);
        }
      })
      ->Iterations(1)
      ->UseManualTime();
}

/// Takes the option out of the arguments.
std::size_t take_clients(int& argc, char** argv) {
  constexpr std::string_view option = "--clients=";
  std::size_t count = 1000;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view given = argv[i];
    if (given.starts_with(option)) {
      count = std::stoul(std::string(given.substr(option.size())));
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return count;
}

/// Each client has a descriptor here and one at its server.
void raise_descriptors() {
  ::rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const std::size_t clients = take_clients(argc, argv);
  raise_descriptors();
  const folder files;
  const owners all(files);
  // Streams by URL show it.
  ::setenv("UCXIO_TOKEN", files.token().c_str(), 1);
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] {
    register_opening(all);  // the first stream of all needs that nothing else is open
    register_words(all);
    register_rates(all);
    register_idling(all, clients);
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
