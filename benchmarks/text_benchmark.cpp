// Text read through a stream over another process's memory, beside std::ifstream on a file in
// shared memory that has the same bytes.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <istream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "ucx/stream.hpp"
#include "ucxio_client.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t text_size = std::size_t{32} << 20U;

/// Lines of 1 to 15 numbers of 1 to 9 digits.
std::string make_text() {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < text_size) {
    for (auto left = random() % 15; left > 0; --left) {
      text += std::to_string(random() % 1000000000 >> random() % 27) + ' ';
    }
    text += std::to_string(random() % 1000) + '\n';
  }
  text.resize(text_size);
  text.back() = '\n';
  return text;
}

/// A file of `text` in shared memory, while this lives.
class shared_file {
 public:
  explicit shared_file(const std::string& text)
      : path_("/dev/shm/ucxio-text-benchmark." + std::to_string(::getpid())) {
    if (!(std::ofstream(path_, std::ios::binary) << text).flush()) {
      throw std::runtime_error("writing " + path_);
    }
  }
  shared_file(const shared_file&) = delete;
  shared_file& operator=(const shared_file&) = delete;
  ~shared_file() { ::unlink(path_.c_str()); }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// What a pass found in the text; the same for both streams, or one of them is wrong.
struct digest {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  friend bool operator==(const digest&, const digest&) = default;
};

/// Code that does not know what it reads from.
digest get_all(std::istream& in) {
  digest found;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    ++found.count;
    found.sum += static_cast<unsigned>(c);
  }
  return found;
}

digest extract_all(std::istream& in) {
  digest found;
  for (int number = 0; in >> number;) {
    ++found.count;
    found.sum += static_cast<unsigned>(number);
  }
  return found;
}

digest get_lines(std::istream& in) {
  digest found;
  for (std::string line; std::getline(in, line);) {
    ++found.count;
    found.sum += line.size() * 31 + static_cast<unsigned char>(line[0]);
  }
  return found;
}

using reader = digest (*)(std::istream&);

/// Both streams over the same text.
class bench {
 public:
  bench(owner_process& owner, const std::string& path)
      : owner_(owner),
        client_(owner, plane::tcp, owner.targets()[0]),
        remote_(client_.region()),
        file_(path, std::ios::binary) {}
  ~bench() { owner_.serve(party::ours); }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  double read_remote(reader read) {
    owner_.serve(party::ours);
    return pass(remote_, read);
  }
  double read_file(reader read) {
    owner_.serve(party::nobody);
    return pass(file_, read);
  }
  void require_equal_text(const std::string& text);

 private:
  static double pass(std::istream& in, reader read) {
    in.clear();
    in.seekg(0);
    const clock::time_point start = clock::now();
    benchmark::DoNotOptimize(read(in));
    return 1 / std::chrono::duration<double>(clock::now() - start).count();
  }

  owner_process& owner_;
  ucxio_client client_;
  ucx::istream remote_;
  std::ifstream file_;
};

/// Also that each reader finds the same in both.
void bench::require_equal_text(const std::string& text) {
  owner_.serve(party::ours);
  std::string copy(text.size(), '\0');
  remote_.read(copy.data(), static_cast<std::streamsize>(copy.size()));
  if (copy != text) throw std::runtime_error("the stream has another text");
  for (const reader read : {&get_all, &extract_all, &get_lines}) {
    remote_.clear();
    remote_.seekg(0);
    file_.clear();
    file_.seekg(0);
    if (read(remote_) != read(file_)) throw std::runtime_error("the streams disagree");
  }
}

void register_all(const std::shared_ptr<bench>& on, const std::string& text) {
  on->require_equal_text(text);
  const std::vector<std::pair<std::string, reader>> readers{
      {"text/get()", &get_all}, {"text/>>int", &extract_all}, {"text/getline", &get_lines}};
  for (const auto& [name, read] : readers) {
    comparison made;
    made.name = name;
    made.ours = {"ucx::istream", [on, read = read] { return on->read_remote(read); }};
    made.others.push_back({"std::ifstream", [on, read = read] { return on->read_file(read); }});
    made.by = measure::cost;
    made.target = 1.15;
    made.scale = static_cast<double>(text_size) / 1e9;
    made.unit = "GB/s";
    register_comparison(std::move(made));
  }
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const std::string text = make_text();
  owner_process owner({{plane::tcp, text.size(), [&](std::span<std::byte> bytes) {
                          std::memcpy(bytes.data(), text.data(), text.size());
                        }}});
  pin_to_core(reader_core);
  const shared_file file(text);
  const int status = run_comparisons(
      argc, argv, [&] { register_all(std::make_shared<bench>(owner, file.path()), text); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
