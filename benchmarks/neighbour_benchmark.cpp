// What is left for a client of a server by TLS while another one does its worst.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bad_neighbour.hpp"
#include "comparison.hpp"
#include "matrix_server.hpp"
#include "network.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/token_file.hpp"
#include "ucx/url.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10U;
constexpr std::size_t matrix = 64 * kib * kib;

/// The files of the tokens: the server's, each client's, and one that no server knows.
class tokens {
 public:
  tokens()
      : folder_(std::filesystem::temp_directory_path() /
                ("ucxio-neighbours-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    token_file servers(file("server"));
    token_file others(file("other"));
    for (const char* each : {"good", "bad"}) {
      token_file(file(each)).add("127.0.0.1", servers.create(each));
    }
    token_file(file("wrong")).add("127.0.0.1", others.create("bad"));
  }
  ~tokens() {
    std::error_code ec;
    std::filesystem::remove_all(folder_, ec);
  }
  tokens(const tokens&) = delete;
  tokens& operator=(const tokens&) = delete;
  std::string file(const std::string& whose) const { return folder_ / whose; }

 private:
  const std::filesystem::path folder_;
};

/// The client that is measured.
class reader {
 public:
  reader(const std::string& url, const std::string& token, bad_neighbour& beside)
      : client_(ucx::url(url), options(token)),
        region_(client_.open("matrix")),
        beside_(beside),
        into_(kib * kib) {}

  double pass(bad_neighbour::habit habit, std::size_t size) {
    beside_.begin(habit);
    const double rate = repeat([&] {
      at_ = at_ + size > matrix ? 0 : at_;
      region_.read_at(at_, std::span(into_).first(size));
      at_ += size;
    });
    beside_.begin(bad_neighbour::habit::rest);
    return rate;
  }

 private:
  static client_options options(const std::string& token) {
    client_options made;
    made.context.token_file = token;
    made.context.share_memory = false;
    return made;
  }

  client client_;
  remote_region region_;
  bad_neighbour& beside_;
  std::vector<std::byte> into_;
  std::uint64_t at_ = 0;
};

void compare(reader& good, const std::string& name, bad_neighbour::habit habit, std::size_t size,
             double scale, const std::string& unit) {
  register_comparison(
      {.name = "neighbour/" + name,
       .ours = {"beside it", [&good, habit, size] { return good.pass(habit, size); }},
       .others = {{"in peace",
                   [&good, size] { return good.pass(bad_neighbour::habit::rest, size); }}},
       .target = 0.8,
       .scale = scale,
       .unit = unit});
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  using habit = bad_neighbour::habit;
  const tokens all;
  const matrix_server server({.transports = {"tls"}, .token_file = all.file("server")},
                             "127.0.0.1:0", matrix);
  bad_neighbour beside;
  pin_to_core(reader_core);
  std::unique_ptr<reader> good;
  const int status = run_comparisons(argc, argv, [&] {
    beside.meet(server.url(), all.file("bad"), all.file("wrong"));
    good = std::make_unique<reader>(server.url(), all.file("good"), beside);
    for (const auto& [what, name] : {std::pair(habit::read, "reads"),
                                     {habit::stat, "questions"},
                                     {habit::stop, "stops"},
                                     {habit::open, "opens"},
                                     {habit::shake, "shakes hands"}}) {
      compare(*good, std::string("8 bytes, it ") + name, what, 8, 1, "1/s");
      compare(*good, std::string("64 KiB, it ") + name, what, 64 * kib, 64 * kib * 1e-9, "GB/s");
    }
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
