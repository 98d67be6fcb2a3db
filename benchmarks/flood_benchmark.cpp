// What is left for a server's other clients while one of them asks without a pause.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "flood_process.hpp"
#include "network.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t matrix = 64 * mib;
/// More than a client has that waits for its answers, and as many as a server bears.
constexpr std::size_t unanswered = 3000;

/// What is hashed, and where files are to be created.
class small_store {
 public:
  small_store()
      : path_(std::filesystem::temp_directory_path() /
              ("ucxio-flood-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    std::ofstream out(path_ / "file", std::ios::binary);
    if (!(out << std::string(mib, 'x')).flush()) throw std::runtime_error("no room for a file");
  }
  ~small_store() { std::filesystem::remove_all(path_); }
  small_store(const small_store&) = delete;
  small_store& operator=(const small_store&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  const std::filesystem::path path_;
};

/// One client, and its bad neighbour.
struct neighbours {
  neighbours(server_process& server, flood_process& flood)
      : reader(server.url()), region(reader.open("matrix")), into(mib), flood(flood) {
    flood.connect(server.url());
  }

  void read(std::size_t size) {
    at = at + size > matrix ? 0 : at;
    region.read_at(at, std::span(into).first(size));
    check_pattern(std::span(into).first(size), at);
    at += size;
  }
  double pass(flood_process::question asked, std::size_t size) {
    flood.ask(asked);
    const std::size_t before = flood.answers();
    const double rate = repeat([&] { read(size); });
    const bool flooded = asked == flood_process::question::none || flood.answers() > before;
    flood.ask(flood_process::question::none);
    if (!flooded) throw std::runtime_error("the server answers the flood no more");
    return rate;
  }

  client reader;
  remote_region region;
  std::vector<std::byte> into;
  std::uint64_t at = 0;
  flood_process& flood;
};

void compare(neighbours& all, const std::string& name, flood_process::question asked,
             std::size_t size, double scale, const std::string& unit) {
  register_comparison(
      {.name = "flood/" + name,
       .ours = {"flooded", [&all, asked, size] { return all.pass(asked, size); }},
       .others = {{"in peace",
                   [&all, size] { return all.pass(flood_process::question::none, size); }}},
       .target = 0.8,
       .scale = scale,
       .unit = unit});
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  // Over the wire, although the server's memory could be read in place.
  ::setenv("UCXIO_TRANSFER_METHOD", "message", 0);
  const small_store store;
  server_process server(matrix, server_process::memory::callers, ucx::access::read, store.path());
  flood_process flood(unanswered);
  pin_to_core(reader_core);
  std::unique_ptr<neighbours> all;
  const int status = run_comparisons(argc, argv, [&] {
    using question = flood_process::question;
    all = std::make_unique<neighbours>(server, flood);
    for (const auto& [asked, name] : {std::pair(question::list, "list"),
                                      {question::open, "open"},
                                      {question::hash, "hash"},
                                      {question::create, "create"}}) {
      compare(*all, std::string("8 bytes, ") + name, asked, 8, 1, "1/s");
      compare(*all, std::string("1 MiB, ") + name, asked, mib, mib * 1e-9, "GB/s");
    }
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
