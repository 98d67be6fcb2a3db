// Sends the files of a checkpoint from one process to another through a pipe: nothing is stored on
// the way, and the receiver knows whether it has all of it. Run the ends on two machines, or on
// one:
//   checkpoint_pipe receive DIRECTORY [ADDRESS:PORT]    prints the URL for the other end
//   checkpoint_pipe send URL DIRECTORY
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <ucx/pipe_broker.hpp>
#include <ucx/pipe_stream.hpp>
#include <ucx/server.hpp>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// Returns whether so many bytes were there, and were written.
bool copy_bytes(std::istream& from, std::ostream& to, std::uint64_t count) {
  std::vector<char> piece(std::size_t{1} << 20U);
  while (count > 0) {
    const auto size = static_cast<std::streamsize>(std::min<std::uint64_t>(count, piece.size()));
    if (!from.read(piece.data(), size) || !to.write(piece.data(), size)) return false;
    count -= static_cast<std::uint64_t>(size);
  }
  return true;
}

void send(const std::string& url, const fs::path& directory) {
  ucx::opipestream out(url);  // waits for the other end
  if (!out) throw std::runtime_error(out.error_message());
  // What is thrown from here on ends the pipe in a way that the receiver does not take for the end.
  for (const fs::directory_entry& each : fs::recursive_directory_iterator(directory)) {
    if (!each.is_regular_file()) continue;
    std::ifstream file(each.path(), std::ios::binary);
    out << each.file_size() << ' ' << each.path().lexically_relative(directory).generic_string()
        << '\n';
    if (!copy_bytes(file, out, each.file_size())) {
      throw std::runtime_error(out ? each.path().string() + " was cut off" : out.error_message());
    }
  }
  out.close();  // the receiver's process has everything, or this failed
  if (!out) throw std::runtime_error(out.error_message());
}

/// The sender chooses names, but none outside of the directory.
bool is_inside(const fs::path& name) {
  return !name.empty() && name.is_relative() && std::ranges::find(name, "..") == name.end();
}

void receive(const fs::path& directory, const std::string& address) {
  ucx::server_options where;
  if (!address.empty()) where.bind = address;  // beyond this machine by a token: `ucxio token`
  ucx::server server(where);  // where the ends meet; the bytes do not go through it
  const ucx::pipe_broker broker(server);
  std::cout << server.url("checkpoint") << std::endl;
  ucx::ipipestream in(server.url("checkpoint"), {.connect_timeout = std::chrono::minutes(10)});
  if (!in) throw std::runtime_error(in.error_message());

  std::uint64_t size = 0;
  bool is_whole = true;
  for (std::string name; in >> size && in.get() == ' ' && std::getline(in, name);) {
    if (!is_inside(name)) throw std::runtime_error("no place for a file \"" + name + '"');
    const fs::path whole = directory / name;
    const fs::path part = whole.string() + ".part";
    fs::create_directories(whole.parent_path());
    std::ofstream file(part, std::ios::binary);
    is_whole = copy_bytes(in, file, size);
    file.close();
    if (!file) throw std::runtime_error("writing " + part.string() + " failed");
    if (!is_whole) break;
    fs::rename(part, whole);
    std::cout << name << ": " << size << " bytes" << std::endl;
  }
  if (in.bad()) throw std::runtime_error(in.error_message());  // not all of it came
  if (!is_whole || !in.eof()) throw std::runtime_error("what came is no checkpoint");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "send") {
      send(words[1], words[2]);
    } else if ((words.size() == 2 || words.size() == 3) && words[0] == "receive") {
      receive(words[1], words.size() == 3 ? words[2] : "");
    } else {
      std::cerr << "checkpoint_pipe receive DIRECTORY [ADDRESS:PORT]\n"
                   "checkpoint_pipe send URL DIRECTORY\n";
      return 2;
    }
  } catch (const std::exception& failed) {
    std::cerr << failed.what() << '\n';
    return 1;
  }
}
