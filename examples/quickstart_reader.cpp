// The reader of quickstart.sh: reads another process's memory as a std::istream, copies it to its
// standard output, and writes a report back.
//   quickstart_reader CARD pieces|lines
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ucx/stream.hpp>

namespace {

using sink = std::function<void(std::string_view)>;

// Neither of these two knows where the bytes are.
void by_pieces(std::istream& in, const sink& take) {
  std::string piece(std::size_t{1} << 20U, '\0');
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    take(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  } while (in);
}

void by_lines(std::istream& in, const sink& take) {
  std::string line;
  while (std::getline(in, line)) {
    if (!in.eof()) line += '\n';  // the last line may go without
    take(line);
  }
}

struct counts {
  std::size_t lines = 0;
  std::size_t longest = 0;
  std::size_t bytes = 0;
};

counts measure(std::istream& in, bool lines) {
  counts seen;
  const auto begin = std::chrono::steady_clock::now();
  (lines ? by_lines : by_pieces)(in, [&](std::string_view part) {
    if (part.ends_with('\n')) ++seen.lines;
    seen.longest = std::max(seen.longest, part.size());
    seen.bytes += part.size();
  });
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::cerr << "process " << getpid() << " read " << (lines ? "line by line:" : "1 MiB pieces:")
            << std::fixed << std::setprecision(3) << ' ' << double(seen.bytes) / 1e6 << " MB in "
            << time.count() << " s, " << double(seen.bytes) / 1e9 / time.count() << " GB/s\n";
  return seen;
}

std::vector<std::byte> load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("can not read " + path.string());
  std::vector<std::byte> bytes;
  for (char byte; file.get(byte);) bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

int read(const std::filesystem::path& card, bool lines) {
  const ucx::context context({.transports = {"tcp"}, .devices = {"lo"}});
  const ucx::worker worker(context);
  const ucx::endpoint owner(worker, ucx::worker_address::decode(load(card / "address")));
  const ucx::remote_region data(owner, ucx::remote_descriptor::decode(load(card / "data")));

  ucx::istream in(data);
  in.exceptions(std::ios_base::badbit);  // a failed transfer throws a ucx::error, which says why
  const counts seen = measure(in, lines);
  in.clear();
  in.seekg(0);
  (lines ? by_lines : by_pieces)(in, [](std::string_view part) { std::cout << part; });
  if (!std::cout.flush()) throw std::runtime_error("can not write to the standard output");
  if (!lines) return 0;

  const ucx::remote_region report(owner, ucx::remote_descriptor::decode(load(card / "report")));
  ucx::ostream out(report);
  out << seen.lines << " lines, the longest of " << seen.longest << " bytes\n";
  out.close();  // what was written is in the owner's memory now, or `out` says that it is not
  if (!out) throw ucx::error(out.error(), "writing the report");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 3 ? argv[2] : "";
  if (how != "pieces" && how != "lines") {
    std::cerr << "usage: quickstart_reader CARD pieces|lines\n";
    return 2;
  }
  try {
    return read(argv[1], how == "lines");
  } catch (const std::exception& failure) {
    std::cerr << "quickstart_reader: " << failure.what() << '\n';
    return 1;
  }
}
