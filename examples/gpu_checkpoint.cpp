// A buffer in the memory of a GPU that becomes a file of another node, and is filled from that file
// again. Nothing of it is built with CUDA.
//   gpu_checkpoint [URL]    # of a store that may be written; else of one of its own
#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucx/buffer.hpp>
#include <ucx/fstream.hpp>
#include <ucx/memory_resources.hpp>
#include <ucx/server.hpp>

void save(const ucx::buffer& weights, const std::string& url) {
  ucx::ofstream out(url, std::ios::binary);
  out << "weights " << weights.size() << '\n';  // the processor's, as ever
  out.write(reinterpret_cast<const char*>(weights.data()), std::streamsize(weights.size()));
  out.close();  // here the file gets its name, or does not
  if (!out) throw std::runtime_error(out.error_message());
}

void load(ucx::buffer& weights, const std::string& url) {
  ucx::ifstream in(url, std::ios::binary);
  std::string word;
  std::size_t announced = 0;
  in >> word >> announced;
  in.ignore();
  if (announced != weights.size()) throw std::runtime_error(url + " holds something else");
  in.read(reinterpret_cast<char*>(weights.data()), std::streamsize(announced));
  if (!in) throw std::runtime_error(in.error_message());
}

int main(int argc, char** argv) try {
  const std::vector<char> content(std::size_t{16} << 20U, 'w');
  ucx::memory_pool gpu({ucx::memory_kind::cuda, 0});
  ucx::buffer weights(gpu, content.size());
  ucx::copy_memory(weights.data(), content.data(), content.size());
  std::optional<ucx::server> server;
  std::optional<ucx::publication> store;
  if (argc == 1) {
    const auto directory = std::filesystem::temp_directory_path() / "ucxio-checkpoints";
    std::filesystem::create_directories(directory);
    store = server.emplace().publish_store(directory, {.prefix = "checkpoints", .writable = true});
  }
  const std::string url = (argc > 1 ? argv[1] : store->url()) + "/step1000.pt";
  save(weights, url);
  ucx::buffer again(gpu, content.size());
  load(again, url);
  std::vector<char> seen(content.size());
  ucx::copy_memory(seen.data(), again.data(), seen.size());
  std::cout << url << ": " << (seen == content ? "the same\n" : "not the same\n");
  return seen == content ? 0 : 1;
} catch (const std::exception& failure) {
  std::cerr << "gpu_checkpoint: " << failure.what() << '\n';
  const auto* const known = dynamic_cast<const ucx::error*>(&failure);
  return known != nullptr && known->code() == ucx::errc::not_supported ? 77 : 1;  // 77: no GPU
}
