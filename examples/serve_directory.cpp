// A directory that a server publishes, and a client that writes a file into it and reads it back:
// the file is there when it is whole, and not before.
#include <filesystem>
#include <iostream>
#include <string>

#include <ucx/client.hpp>
#include <ucx/fstream.hpp>
#include <ucx/server.hpp>
#include <ucx/url.hpp>

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const fs::path directory =
      argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path() / "ucxio-store";
  try {
    fs::create_directories(directory);
    ucx::server server;
    const auto store = server.publish_store(directory, {.prefix = "results", .writable = true});
    std::cout << store.url() << '\n';
    if (argc > 1) return std::cin.get() != '\n';  // others use it, until Enter

    const std::string name = "results/today/squares";
    ucx::client client = ucx::client::shared(ucx::url(server.url()));
    ucx::ofstream out(server.url(name));
    for (int i = 0; i < 1000; ++i) out << i * i << '\n';
    const bool early = client.exists(name);
    out.close();
    if (!out) std::cerr << out.error_message() << '\n';

    for (const ucx::entry& each : client.list_directory("results/today").entries) {
      std::cout << each.name << ", " << each.size << " bytes\n";
    }
    ucx::ifstream in(server.url(name));
    long last = 0;
    for (long square = 0; in >> square;) last = square;
    client.remove(name);
    return early || last != 999L * 999;
  } catch (const std::exception& failure) {
    std::cerr << "serve_directory: " << failure.what() << '\n';
    return 1;
  }
}
