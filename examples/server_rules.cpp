// A server at a Unix socket that lets clients read, and write nothing but a directory of theirs:
// what the rules do not allow does not exist for a client.
#include <filesystem>
#include <iostream>
#include <random>
#include <string>

#include <ucx/access_rules.hpp>
#include <ucx/client.hpp>
#include <ucx/fstream.hpp>
#include <ucx/server.hpp>
#include <ucx/url.hpp>

int main() {
  namespace fs = std::filesystem;
  using ucx::access_right;
  const fs::path directory =
      fs::temp_directory_path() / ("ucxio-rules" + std::to_string(std::random_device()()));
  try {
    fs::create_directories(directory);
    ucx::access_rules rules = ucx::access_rules::parse(
        "allow anybody list,read,write,create inbox/**\n"
        "allow anybody list,read              public/**\n"
        "deny  anybody all                    **\n");  // the server's own user, too
    ucx::server server({.bind = "unix:", .rules = rules});
    const auto store = server.publish_store(directory, {.writable = true});

    ucx::client client{ucx::url(server.url())};
    std::cout << "the server knows this client as " << client.identity() << '\n';
    ucx::ofstream(server.url("inbox/note")) << "a note\n";
    ucx::ofstream refused(server.url("public/note"));
    refused << "a note\n";
    refused.close();
    for (const ucx::entry& each : client.list()) std::cout << each.name << '\n';

    server.set_rules(rules.allow("owner", access_right::all));  // too late: a line above decides
    std::error_code ec;
    client.remove("inbox/note", {}, ec);
    std::cout << "removing it: " << ec.message() << '\n';
    fs::remove_all(directory);
    return refused || !ec;
  } catch (const std::exception& failure) {
    std::cerr << "server_rules: " << failure.what() << '\n';
    return 1;
  }
}
