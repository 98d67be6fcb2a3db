// A server's memory, mapped by a stream in another process, beside memory of the process itself.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <istream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "ucx/access.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t size = 64 * mib;
constexpr std::size_t seeks = 1000;  // a pass counts these as one call

/// The same bytes twice: at the server, and here.
class bench {
 public:
  bench() {
    if (server_.open("matrix").transfer_method() != transfer_method::mapped)
      throw std::runtime_error("not mapped");
    fill_pattern(std::as_writable_bytes(std::span(here_)));
    stream_.str(here_);
    in_.read(into_.data(), static_cast<std::streamsize>(mib));  // all pages are there
    for (std::size_t at = 0; at < size; at += mib) take(in_, at);
    check_pattern(std::as_bytes(std::span(into_)), size - mib);
  }

  double read(std::istream& from) {
    std::size_t at = 0;
    return repeat([&] {
      if (at == size) from.seekg(static_cast<std::streamoff>(at = 0));
      from.read(into_.data(), static_cast<std::streamsize>(mib));
      at += mib;
      if (!from) throw std::runtime_error("reading failed");
    });
  }
  double read_remote() {
    in_.clear();
    in_.seekg(0);
    return read(in_);
  }
  double copy_local() {
    std::size_t at = 0;
    return repeat([&] {
      if (at == size) at = 0;
      std::memcpy(into_.data(), here_.data() + at, mib);
      benchmark::DoNotOptimize(into_.data());
      benchmark::ClobberMemory();
      at += mib;
    });
  }
  template <class Reader>
  double read_all(std::istream& from, Reader reader) {
    return repeat([&] {
      from.clear();
      from.seekg(0);
      benchmark::DoNotOptimize(reader(from));
    });
  }
  /// Eight bytes at a time, far apart.
  double seek_remote() {
    return repeat([&] {
      in_.clear();
      for (std::size_t i = 0; i < seeks; ++i) {
        in_.seekg(static_cast<std::streamoff>(place(i)));
        in_.read(into_.data(), 8);
      }
    });
  }
  double pick_local() {
    return repeat([&] {
      for (std::size_t i = 0; i < seeks; ++i) {
        std::memcpy(into_.data(), here_.data() + place(i), 8);
        benchmark::ClobberMemory();
      }
    });
  }

  std::istream& remote() { return in_; }
  std::istream& local() { return stream_; }

 private:
  static std::size_t place(std::size_t number) noexcept {
    return number * (mib + 4160) % (size - 8);
  }
  void take(std::istream& from, std::size_t at) {
    from.seekg(static_cast<std::streamoff>(at));
    from.read(into_.data(), static_cast<std::streamsize>(mib));
  }

  server_process owner_{size, server_process::memory::allocated};
  client server_{owner_.url()};
  ifstream in_{owner_.url() + "/matrix"};
  std::string here_ = std::string(size, '\0');
  std::istringstream stream_;
  std::string into_ = std::string(mib, '\0');
};

/// A program's memory at its server, which is read where it lies.
class lent_memory {
 public:
  explicit lent_memory(server_process::memory whose) : owner_(size, whose) {}

  /// Every mebibyte of it, round and round.
  double read() {
    open();
    return repeat([&] {
      region_->read_at(at_, into_);
      check_pattern(into_, at_);
      at_ = (at_ + mib) % size;
    });
  }

 private:
  void open() {
    if (region_) return;
    server_.emplace(owner_.url());
    region_.emplace(server_->open("matrix"));
    if (region_->transfer_method() != transfer_method::cma)
      throw std::runtime_error(region_->why_not(transfer_method::cma));
  }

  server_process owner_;
  std::optional<client> server_;
  std::optional<remote_region> region_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> into_ = std::vector<std::byte>(mib);
};

/// The same in pages of both kinds.
struct pages {
  lent_memory small{server_process::memory::callers};
  lent_memory huge{server_process::memory::callers_huge};
};

std::uint64_t get_all(std::istream& in) {
  std::uint64_t sum = 0;
  for (int c = in.get(); c != EOF; c = in.get()) sum += static_cast<unsigned>(c);
  return sum;
}

std::uint64_t bump_all(std::istream& in) {
  std::uint64_t sum = 0;
  std::streambuf& from = *in.rdbuf();
  for (int c = from.sbumpc(); c != EOF; c = from.sbumpc()) sum += static_cast<unsigned>(c);
  return sum;
}

std::uint64_t get_lines(std::istream& in) {
  std::uint64_t sum = 0;
  for (std::string line; std::getline(in, line);) sum += line.size();
  return sum;
}

void register_pages(const std::shared_ptr<pages>& of) {
  comparison read;
  read.name = "in place/read/1MiB, huge pages";
  read.ours = {"huge pages", [of] { return of->huge.read(); }};
  read.others = {{"4 KiB pages", [of] { return of->small.read(); }}};
  read.target = 1;
  read.scale = static_cast<double>(mib) / 1e9;
  read.unit = "GB/s";
  register_comparison(read);
}

void register_all(const std::shared_ptr<bench>& on) {
  comparison copy;
  copy.name = "mapped/read/1MiB";
  copy.ours = {"ucx::ifstream::read", [on] { return on->read_remote(); }};
  copy.others = {{"memcpy, local", [on] { return on->copy_local(); }}};
  copy.target = 0.95;
  copy.scale = static_cast<double>(mib) / 1e9;
  copy.unit = "GB/s";
  register_comparison(copy);
  const std::vector<std::pair<std::string, std::uint64_t (*)(std::istream&)>> readers{
      {"mapped/get()", &get_all}, {"mapped/sbumpc()", &bump_all}, {"mapped/getline", &get_lines}};
  for (const auto& [name, reader] : readers) {
    comparison made;
    made.name = name;
    made.ours = {"ucx::ifstream",
                 [on, reader = reader] { return on->read_all(on->remote(), reader); }};
    made.others = {{"std::istringstream",
                    [on, reader = reader] { return on->read_all(on->local(), reader); }}};
    made.by = measure::cost;
    made.target = 1.05;
    made.scale = static_cast<double>(size) / 1e9;
    made.unit = "GB/s";
    register_comparison(std::move(made));
  }
  comparison seek;
  seek.name = "mapped/1000 times seek+read/8B";
  seek.ours = {"ucx::ifstream", [on] { return on->seek_remote(); }};
  seek.others = {{"memcpy, local", [on] { return on->pick_local(); }}};
  seek.by = measure::excess;
  seek.target = 0.1;  // a tenth of a microsecond each
  register_comparison(seek);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const auto of = std::make_shared<pages>();  // they fork, before UCX is used here
  const auto on = std::make_shared<bench>();
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] {
    register_all(on);
    register_pages(of);
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
