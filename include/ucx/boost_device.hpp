#pragma once

// This, boost_mapped.hpp and boost_stream.hpp are the only headers that include Boost:
// Boost.Iostreams 1.70 or newer, which is yours to find. The library itself does without.
#include <boost/iostreams/categories.hpp>
#include <ios>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>

#include "ucx/boost_stream.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/filebuf.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/remote_streambuf.hpp"
#include "ucx/stream_options.hpp"

namespace ucx {

namespace detail {

/// What the copies of a device share: the bytes, and a failure that Boost has to be told.
///
/// Boost ignores how a flush ended that belongs to a seek or a close, or is behind a filter; and
/// its buffers keep what they could not hand over, and hand it over again before they do something
/// else. But after a failed write our position is the first byte that is not known to be visible:
/// there those bytes do not belong. So a failed write or flush is repeated, and nothing is written,
/// until a seek: by then Boost has dropped its bytes. A failure that was told only once may have
/// been ignored: then the seek tells it, and the next one goes.
class device_core {
 public:
  device_core(std::ios_base::openmode mode, const stream_options& options, std::error_code& ec,
              const remote_region& region)
      : name_(region.description()), region_(region, mode, options, ec), bytes_(region_) {}
  device_core(std::ios_base::openmode mode, const stream_options& options, std::error_code& ec,
              const std::string& name)
      : name_(name), bytes_(file_) {
    if (file_.open(name, mode | std::ios_base::binary, options) == nullptr) ec = file_.error();
  }
  device_core(std::ios_base::openmode mode, const stream_options& options, std::error_code& ec,
              client& from, std::string_view name)
      : name_(name), bytes_(file_) {
    if (file_.open(from, name, mode, options) == nullptr) ec = file_.error();
  }
  device_core(const device_core&) = delete;
  device_core& operator=(const device_core&) = delete;
  ~device_core() = default;

  bool is_open() const noexcept { return region_.is_open() || file_.is_open(); }

  std::streamsize read(char* into, std::streamsize count) {
    require_open("reading");
    const std::streamsize got = bytes_.sgetn(into, count);
    // Also of nothing: a restriction reads that at its end, and takes 0 for "not now".
    return got != 0 ? got : -1;
  }

  std::streamsize write(const char* from, std::streamsize count) {
    require_open("writing");
    if (failed_) repeat_failure();
    if (bytes_.sputn(from, count) < count) fail_until_seek();
    return count;
  }

  void flush() {
    require_open("flushing");
    const bool visible = bytes_.pubsync() == 0;
    if (failed_) repeat_failure();
    if (!visible) fail_until_seek();
  }

  std::streampos seek(std::streamoff offset, std::ios_base::seekdir from) {
    require_open("seeking in");
    if (failed_ && !told_twice_) repeat_failure();
    failed_.reset();
    const std::streampos reached = bytes_.pubseekoff(offset, from);
    if (reached == std::streampos(std::streamoff(-1))) throw failure(error());
    return reached;
  }

  void close() {
    if (!is_open()) return;
    std::error_code ec;
    if (by_name()) {
      if (file_.close() == nullptr) ec = file_.error();
    } else {
      region_.close(ec);
    }
    if (ec && !failed_) failed_ = failure(ec);
    if (failed_) throw ucx::error(*failed_);
  }

  std::error_code error() const noexcept {
    if (failed_) return failed_->code();
    return by_name() ? file_.error() : region_.error();
  }

  std::string error_message() const {
    if (failed_) return failed_->what();
    return by_name() ? file_.error_message() : region_.error_message();
  }

  ucx::error opening_failure(std::error_code why) const {
    return by_name() ? failure(why) : ucx::error(why, "opening a device over " + name_);
  }

 private:
  bool by_name() const noexcept { return &bytes_ == &file_; }

  void require_open(const char* what) const {
    if (!is_open()) {
      throw ucx::error(errc::closed, std::string(what) + " a closed device over " + name_);
    }
  }
  ucx::error failure(std::error_code why) const {
    std::string text = error_message();
    // The exception adds what its code says.
    const std::string ending = ": " + why.message();
    if (text.ends_with(ending)) text.resize(text.size() - ending.size());
    return {why, text};
  }
  [[noreturn]] void fail_until_seek() {
    failed_ = failure(error());
    told_twice_ = false;
    throw ucx::error(*failed_);
  }
  [[noreturn]] void repeat_failure() {
    told_twice_ = true;
    throw ucx::error(*failed_);
  }

  const std::string name_;
  remote_streambuf region_;
  filebuf file_;
  std::streambuf& bytes_;  // the one of the two that was opened
  std::optional<ucx::error> failed_;
  bool told_twice_ = false;
};

}  // namespace detail

/// What the devices of Boost.Iostreams have in common, over a peer's region; over what a server
/// publishes, by URL or by name; and over a local path, as `filebuf` opens them.
/// `docs/reference/streams.md` is the contract. A device is a handle: its copies, of which Boost
/// makes many, are one device with one position, and a move copies. The last one closes, and
/// reports nothing. Errors: whatever fails throws `ucx::error`; what writes and flushes return,
/// Boost would ignore. Threads: one thread at a time for all copies of a device together, and as
/// the worker's.
template <std::ios_base::openmode mode>
class boost_device {
 public:
  using char_type = char;

  /// Opens `region`. Sends nothing. Lifetime and Errors: as `remote_streambuf`'s.
  explicit boost_device(const remote_region& region, const stream_options& options = {}) {
    open_or_throw(options, region);
  }
  boost_device(const remote_region& region, const stream_options& options, std::error_code& ec) {
    open(options, ec, region);
  }
  /// Opens a URL or a local path. Errors and Cost: as `filebuf::open`'s.
  explicit boost_device(const std::string& name, const stream_options& options = {}) {
    open_or_throw(options, name);
  }
  boost_device(const std::string& name, const stream_options& options, std::error_code& ec) {
    open(options, ec, name);
  }
  /// Opens what the server of `from` publishes as `name`. Errors and Cost: as `filebuf::open`'s.
  boost_device(client& from, std::string_view name, const stream_options& options = {}) {
    open_or_throw(options, from, name);
  }
  boost_device(client& from, std::string_view name, const stream_options& options,
               std::error_code& ec) {
    open(options, ec, from, name);
  }

  /// Returns whether it was opened, and no copy was closed.
  bool is_open() const noexcept { return core_->is_open(); }

  /// Flushes, then lets go of what is open, for all copies; later operations fail with
  /// `errc::closed`. Idempotent.
  /// Errors: that of a write or flush that no seek has followed, also where it was told before;
  /// else the first failure that was not told.
  void close() { core_->close(); }
  void close(std::error_code& ec) {
    ec.clear();
    try {
      core_->close();
    } catch (const std::system_error& failure) {
      ec = failure.code();
    }
  }

  /// Returns the cause of the last failure, where a stream of Boost's has only set badbit; cleared
  /// by the next operation that succeeds. Ask any copy: `stream->error()`, or your own.
  std::error_code error() const noexcept { return core_->error(); }
  /// Returns that as a text that says what was tried, and on what; empty without an error.
  std::string error_message() const { return core_->error_message(); }

  /// Makes what was written visible at the peer, and drops what was read ahead, which may be older
  /// than what the peer has now. Returns true.    Errors: what failed in earlier writes.
  bool flush() { return core_->flush(), true; }
  /// Goes to `offset` from the beginning, the position or the end, and returns where that is. Sends
  /// nothing. Errors: out_of_range, and the position is what it was; a failed write or flush that
  /// was told only once.
  std::streampos seek(std::streamoff offset, std::ios_base::seekdir from) {
    return core_->seek(offset, from);
  }

  /// Returns how many bytes a buffer of Boost's should hold, in front of those of `stream_options`.
  std::streamsize optimal_buffer_size() const noexcept { return 4096; }

 protected:
  // Copies only, so that one that was moved from is a device, too.
  boost_device(const boost_device&) = default;
  boost_device& operator=(const boost_device&) = default;
  ~boost_device() = default;

  std::shared_ptr<detail::device_core> core_;

 private:
  template <class... From>
  void open(const stream_options& options, std::error_code& ec, From&... from) {
    ec.clear();
    core_ = std::make_shared<detail::device_core>(mode, options, ec, from...);
  }
  template <class... From>
  void open_or_throw(const stream_options& options, From&... from) {
    std::error_code ec;
    open(options, ec, from...);
    if (ec) throw core_->opening_failure(ec);
  }
};

/// Reads, as a Boost Source that seeks: input_seekable, closable, flushable, optimally buffered.
class remote_source : public boost_device<std::ios_base::in> {
 public:
  struct category : boost::iostreams::input_seekable,
                    boost::iostreams::device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  using boost_device::boost_device;

  /// Reads `count` bytes at the position; fewer at the end of the data, and there returns -1.
  /// Errors: those of a transfer; the position is what it was, and the same call a retry.
  std::streamsize read(char* into, std::streamsize count) { return core_->read(into, count); }
};

/// Writes in place, as a Boost Sink that seeks: output_seekable, closable, flushable, optimally
/// buffered. A local file is emptied.
class remote_sink : public boost_device<std::ios_base::out> {
 public:
  struct category : boost::iostreams::output_seekable,
                    boost::iostreams::device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  using boost_device::boost_device;

  /// Writes all `count` bytes at the position, and returns `count`.
  /// Completes: when `from` can be used again; visible at the peer after flush() or close().
  /// Errors: no_space, after what fits was taken; what failed in earlier writes, and then the
  /// position is the first byte that is not known to be visible. Until a seek, write, flush and
  /// close throw the same again.
  std::streamsize write(const char* from, std::streamsize count) {
    return core_->write(from, count);
  }
};

/// Reads and writes in place, as a Boost SeekableDevice with one position: seekable, closable,
/// flushable, optimally buffered. A local file must exist.
class remote_device : public boost_device<std::ios_base::in | std::ios_base::out> {
 public:
  struct category : boost::iostreams::seekable_device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  using boost_device::boost_device;

  /// As those of `remote_source` and `remote_sink`.
  std::streamsize read(char* into, std::streamsize count) { return core_->read(into, count); }
  std::streamsize write(const char* from, std::streamsize count) {
    return core_->write(from, count);
  }
};

}  // namespace ucx
