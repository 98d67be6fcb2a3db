// Files of a store beside memory: reading, growing, and many small ones.
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
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t large = 64 * mib;
constexpr std::size_t small = 4096;
constexpr std::size_t small_files = 10'000;

/// Where temporary files are: in the system's page cache, as long as they are there. (In /dev/shm
/// the system itself reads and writes at a quarter of the rate: its pages are the small ones.)
class served_directory {
 public:
  served_directory()
      : path_(std::filesystem::temp_directory_path() /
              ("ucxio-benchmark-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_ / "small");
    std::vector<std::byte> bytes(large);
    fill_pattern(bytes);
    write("large", bytes.data(), bytes.size());
    for (std::size_t i = 0; i < small_files; ++i) {
      write("small/" + std::to_string(i), bytes.data(), small);
    }
  }
  ~served_directory() { std::filesystem::remove_all(path_); }
  served_directory(const served_directory&) = delete;
  served_directory& operator=(const served_directory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void write(const std::string& name, const std::byte* bytes, std::size_t size) const {
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    if (!out.flush())
      throw std::runtime_error("there is too little room for the files of this benchmark");
  }

  const std::filesystem::path path_;
};

/// What it reads and writes with; made when it is first used.
class bench {
 public:
  explicit bench(const server_process& server)
      : url_(server.url()), memory_(url_ + "/matrix"), file_(url_ + "/store/large") {}

  double read_memory() { return read(memory_); }
  double read_file() { return read(file_); }

  /// All of it, 1 MiB a call, up to where it is visible.
  double write_memory() {
    ofstream out(url_ + "/matrix", std::ios::in | std::ios::out);
    return repeat([&] {
      out.seekp(0);
      write(out);
      out.flush();
      check(out);
    });
  }
  /// As many bytes into a new file, which replaces the one before.
  double write_file() {
    return repeat([&] {
      ofstream out(url_ + "/store/new");
      write(out);
      out.close();
      check(out);
    });
  }

  /// Opens, reads and closes one after the other.
  double read_small() {
    return repeat([&] {
      ifstream in(url_ + "/store/small/" + std::to_string(next_++ % small_files));
      in.read(bytes_.data(), small);
      if (!in) throw std::runtime_error(in.error_message());
    });
  }

 private:
  template <class Stream>
  static void check(const Stream& used) {
    if (!used) throw std::runtime_error(used.error_message());
  }
  double read(ifstream& in) {
    in.seekg(0);
    std::size_t at = 0;
    const double rate = repeat([&] {
      if (at == large) in.seekg(static_cast<std::streamoff>(at = 0));
      in.read(bytes_.data(), mib);
      check_pattern(std::as_bytes(std::span(bytes_)), at);
      at += mib;
    });
    check(in);
    in.sync();  // what was read ahead arrives before the next pass, not in it
    in.seekg(0).get();
    return rate;
  }
  void write(ofstream& out) {
    for (std::size_t at = 0; at < large; at += mib) out.write(bytes_.data(), mib);
  }

  const std::string url_;
  ifstream memory_;
  ifstream file_;
  std::vector<char> bytes_ = std::vector<char>(mib);
  std::size_t next_ = 0;
};

void register_all(const server_process& server) {
  const auto on = std::make_shared<bench>(server);
  comparison reading;
  reading.name = "store/read 1MiB";
  reading.ours = {"file", [on] { return on->read_file(); }};
  reading.others = {{"memory", [on] { return on->read_memory(); }}};
  reading.target = 0.8;
  reading.scale = static_cast<double>(mib) / 1e9;
  reading.unit = "GB/s";
  register_comparison(reading);
  comparison writing = reading;
  writing.name = "store/write 64MiB";
  writing.ours = {"new file", [on] { return on->write_file(); }};
  writing.others = {{"memory", [on] { return on->write_memory(); }}};
  writing.scale = static_cast<double>(large) / 1e9;
  register_comparison(writing);
  comparison small_ones;
  small_ones.name = "store/open, read 4KiB, close";
  small_ones.ours = {"ucx::ifstream", [on] { return on->read_small(); }};
  small_ones.others = {{"20,000 files a second", [] { return 20'000.0; }}};
  small_ones.target = 1;
  small_ones.scale = 1e-3;
  small_ones.unit = "thousand files/s";
  register_comparison(small_ones);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  // Over the wire, although this is one host.
  ::setenv("UCXIO_TRANSFER_METHOD", "message", 0);
  const served_directory directory;
  const server_process server(large, server_process::memory::callers, ucx::access::read_write,
                              directory.path());
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(server); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
