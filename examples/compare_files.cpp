// Is a copy what its original is? Their owner hashes the original: none of it is fetched.
//   compare_files ucxs://node7:7471/weights /data/model.bin
// Without arguments: a server in this process, and a file beside a copy with one other byte.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <ucx/client.hpp>
#include <ucx/content_digest.hpp>
#include <ucx/server.hpp>

/// Prints which parts of 1 MiB differ, and returns how many.
int compare(const ucx::url& original, const std::filesystem::path& copy) {
  ucx::client client(original);
  ucx::remote_region region = client.open(original.name());
  const std::vector<ucx::content_digest> there = client.digest(region, {.length = region.size()});
  std::ifstream in(copy, std::ios::binary);
  std::vector<char> part(1 << 20U);
  int differences = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    const auto got = static_cast<std::size_t>(in.gcount());
    if (ucx::digest_of(std::as_bytes(std::span(part).first(got))) == there[i]) continue;
    std::cout << "they differ in MiB " << i << '\n';
    ++differences;
  }
  if (in.peek() != std::char_traits<char>::eof()) std::cout << "the copy is longer\n";
  return differences;
}

int main(int argc, char** argv) {
  if (argc > 2) return compare(ucx::url(argv[1]), argv[2]) > 0;
  const auto folder =
      std::filesystem::temp_directory_path() / ("files" + std::to_string(std::random_device()()));
  std::filesystem::create_directory(folder);
  std::string content(3 << 20U, 'x');
  std::ofstream(folder / "original") << content;
  content[1'500'000] = 'y';
  std::ofstream(folder / "copy") << content;
  ucx::server server;
  const ucx::publication store = server.publish_store(folder, {.prefix = "files"});
  const int differences = compare(ucx::url(store.url() + "/original"), folder / "copy");
  std::filesystem::remove_all(folder);
  return differences == 1 ? 0 : 1;
}
