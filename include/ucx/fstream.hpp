// Streams over URLs and local paths, as <fstream> has them for paths.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <istream>
#include <locale>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "ucx/stream.hpp"
#include "ucx/stream_options.hpp"
#include "ucx/version.hpp"

namespace ucx {

class client;

namespace detail {

/// Paths that the file streams of std take, too: those of <filesystem>, and Boost's.
template <class Path>
concept path = requires(Path& changed, const Path& asked) {
  { changed.make_preferred().filename() } -> std::same_as<Path>;
  { asked.c_str() } -> std::convertible_to<const char*>;
};

/// Names that the file streams of std take: texts and paths.
template <class Name>
concept file_name = std::convertible_to<const Name&, const char*> ||
    std::convertible_to<const Name&, const std::string&> || path<Name>;

}  // namespace detail

/// A `std::filebuf` that opens URLs of published names as well as local files. It has the members
/// of `std::filebuf` and, over a local path, its behaviour. `docs/reference/streams.md` has the
/// effect of each openmode on a region of fixed size, and how a URL differs from a path. The
/// caller's memory may be a device's (docs/how-to/gpu.md). If its driver fails, `error()` is
/// io_error. Bytes that were not copied can then still be read, or were not written.
/// Threads: one thread at a time, as for every streambuf.
class UCXIO_EXPORT filebuf : public std::streambuf {
 public:
  filebuf();
  filebuf(filebuf&& other);
  filebuf& operator=(filebuf&& other);
  /// Closes, and ignores the errors of `close()`.
  ~filebuf() override;

  void swap(filebuf& other);

  bool is_open() const noexcept { return by_url_ || local_.is_open(); }

  /// Opens a URL ("ucx://host:port/name": every text that begins with "ucx:" or "ucx+file:"), or a
  /// local path. Streams that are opened by URL share one connection to each server. Returns null
  /// after a failure, and `error()` tells why. For a path that is errno's error, or
  /// invalid_argument.
  /// Errors: for a URL those of `client` for connecting and opening; not_supported (the mode wants
  /// another size than the region has, or the locale converts); invalid_argument (the mode makes no
  /// sense, or something is open already).
  /// Cost: one round trip for a URL, and a connection for the first URL of a server.
  template <detail::file_name Name = std::string>
  filebuf* open(const Name& name, std::ios_base::openmode mode,
                const stream_options& options = {}) {
    if constexpr (std::convertible_to<const Name&, const char*>) {
      return open_named(name, mode, options);
    } else if constexpr (detail::path<Name>) {
      return open_named(name.c_str(), mode, options);
    } else {
      const std::string& text = name;
      return open_named(text.c_str(), mode, options);
    }
  }
  /// Opens the name `name` that the server of `from` publishes.
  filebuf* open(client& from, std::string_view name, std::ios_base::openmode mode,
                const stream_options& options = {});

  /// Flushes and closes, even if the flush fails. Returns null when nothing was open, or when some
  /// written bytes are not known to be visible.
  filebuf* close();

  /// Returns the cause of the last failure. The next operation that succeeds and reaches the file
  /// or server clears it. Characters that only come from the buffer, or go there, do not.
  std::error_code error() const noexcept;
  /// Returns `error()` as a text that names the file or URL; empty without an error.
  std::string error_message() const;

  /// Returns the bytes in flight and the windows; zeros for a local path.
  stream_statistics statistics() const noexcept { return remote_.statistics(); }

 protected:
  int_type underflow() override;
  int_type pbackfail(int_type c) override;
  std::streamsize xsgetn(char* into, std::streamsize count) override;
  std::streamsize showmanyc() override;
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* from, std::streamsize count) override;
  int sync() override;
  pos_type seekoff(off_type offset, std::ios_base::seekdir from,
                   std::ios_base::openmode which) override;
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override;
  /// Before a URL is opened, a `size` above 1 sets its `buffer_size`. `memory` is not used.
  std::streambuf* setbuf(char* memory, std::streamsize size) override;
  void imbue(const std::locale& wanted) override;

 private:
  class turn;
  class front_turn;

  /// The local file. Where std::filebuf calls a virtual member on itself, this class calls that
  /// member of `front`. A class derived from `front` may override it.
  class local_file final : public std::filebuf {
   public:
    explicit local_file(ucx::filebuf& front) noexcept : front_(front) {}
    local_file(ucx::filebuf& front, local_file&& other)
        : std::filebuf(std::move(other)), front_(front) {}
    local_file& operator=(local_file&& other) {
      std::filebuf::operator=(std::move(other));
      return *this;
    }

    // The members of std::filebuf itself.
    int_type own_underflow() { return std::filebuf::underflow(); }
    int_type own_overflow(int_type c) { return std::filebuf::overflow(c); }
    int own_sync() { return std::filebuf::sync(); }
    pos_type own_seekoff(off_type offset, std::ios_base::seekdir from,
                         std::ios_base::openmode which) {
      return std::filebuf::seekoff(offset, from, which);
    }

   protected:
    int_type underflow() override;
    int_type uflow() override;
    int_type overflow(int_type c) override;
    int sync() override;
    pos_type seekoff(off_type offset, std::ios_base::seekdir from,
                     std::ios_base::openmode which) override;

   private:
    ucx::filebuf& front_;
  };

  bool is_derived() const noexcept;
  std::streambuf& inner() noexcept;
  void lend_areas() noexcept;
  void take_areas() noexcept;
  local_file&& local_to_move() noexcept;
  template <class Failed, class Member, class... Arguments>
  auto pass(Failed failed, Member member, Arguments... arguments);
  template <class Failed, class Remote, class Local, class... Arguments>
  auto pass_to(Failed failed, Remote by_url, Local by_path, Arguments... arguments);
  bool hand_over();
  bool write_foreign_area();

  bool begin_open(std::string_view name);
  filebuf* not_opened() noexcept;
  filebuf* open_named(const char* name, std::ios_base::openmode mode,
                      const stream_options& options);
  filebuf* open_path(const char* name, std::ios_base::openmode mode);
  template <class Connect>
  filebuf* open_published(std::string_view name, std::ios_base::openmode mode,
                          const stream_options& options, Connect&& connect);
  filebuf* close_path();
  filebuf* close_published();
  std::streamsize read_staged(char* into, std::streamsize count);
  std::streamsize write_staged(const char* from, std::streamsize count);
  void fail(std::error_code why, std::string_view text = {});
  void fail_by_errno();

  // One of them is open at a time. Between two calls its areas are in this object, where the fast
  // paths of std::streambuf use them. During a call they are in the inner buffer.
  local_file local_;
  remote_streambuf remote_;
  bool by_url_ = false;

  std::size_t wanted_buffer_size_ = 0;  // from setbuf; 0: the size in the options
  std::string name_;
  std::error_code error_;
  std::string error_text_;  // of error_, where it says more than its message
};

inline void swap(filebuf& a, filebuf& b) { a.swap(b); }

/// The class of `ifstream`, `ofstream` and `fstream`; no others are made of it. Each has the
/// constructors and members of the class with its name in std, for URLs and for local paths.
/// Further ones take options for URLs, or a client and a name that its server publishes. A stream
/// that can not open sets failbit, and `error()` tells why. Each derives from `Base`, not from
/// std::ifstream and the like: a function that is to take either takes a std::istream&.
/// `docs/reference/streams.md` is the contract.
template <class Base, std::ios_base::openmode mode>
class UCXIO_EXPORT basic_file_stream : public Base {
 public:
  basic_file_stream();
  /// Opens a URL or a local path. A name is a text, or a path of std::filesystem or Boost.
  explicit basic_file_stream(const char* name, std::ios_base::openmode how = mode,
                             const stream_options& options = {})
      : basic_file_stream() {
    open(name, how, options);
  }
  template <detail::file_name Name = std::string>
  explicit basic_file_stream(const Name& name, std::ios_base::openmode how = mode,
                             const stream_options& options = {})
      : basic_file_stream() {
    open(name, how, options);
  }
  /// Opens the name `name` that the server of `from` publishes.
  basic_file_stream(client& from, std::string_view name, std::ios_base::openmode how = mode,
                    const stream_options& options = {});
  basic_file_stream(basic_file_stream&& other);
  basic_file_stream& operator=(basic_file_stream&& other);
  /// Closes. Written bytes are then visible, or lost with the connection: call `close()` to know.
  ~basic_file_stream() override;

  void swap(basic_file_stream& other);
  filebuf* rdbuf() const noexcept { return const_cast<filebuf*>(&buffer_); }
  bool is_open() const noexcept { return buffer_.is_open(); }
  /// Opens, and clears the state, or sets failbit. An `ifstream` adds `in` to the mode, an
  /// `ofstream` adds `out`.
  template <detail::file_name Name = std::string>
  void open(const Name& name, std::ios_base::openmode how = mode,
            const stream_options& options = {}) {
    show_opened(buffer_.open(name, completed(how), options));
  }
  void open(client& from, std::string_view name, std::ios_base::openmode how = mode,
            const stream_options& options = {});
  /// Flushes and closes. Sets failbit if nothing was open, if closing fails, or if some written
  /// bytes are not known to be visible.
  void close();

  /// Returns why failbit or badbit is set.
  std::error_code error() const noexcept { return buffer_.error(); }
  /// Returns the error as a text that names the file or URL.
  std::string error_message() const { return buffer_.error_message(); }

 private:
  static constexpr std::ios_base::openmode completed(std::ios_base::openmode how) noexcept {
    return mode == (std::ios_base::in | std::ios_base::out) ? how : how | mode;
  }
  void show_opened(const filebuf* opened);

  filebuf buffer_;
};

/// Reads a URL or a local file as a `std::ifstream` does.
using ifstream = basic_file_stream<std::istream, std::ios_base::in>;
/// Writes a URL, in place, or a local file as a `std::ofstream` does.
using ofstream = basic_file_stream<std::ostream, std::ios_base::out>;
/// Reads and writes a URL, in place, or a local file as a `std::fstream` does: one joint position.
using fstream = basic_file_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

extern template class basic_file_stream<std::istream, std::ios_base::in>;
extern template class basic_file_stream<std::ostream, std::ios_base::out>;
extern template class basic_file_stream<std::iostream, std::ios_base::in | std::ios_base::out>;

template <class Base, std::ios_base::openmode mode>
void swap(basic_file_stream<Base, mode>& a, basic_file_stream<Base, mode>& b) {
  a.swap(b);
}

}  // namespace ucx
