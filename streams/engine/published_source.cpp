#include "engine/published_source.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/laned_source.hpp"
#include "engine/region_source.hpp"
#include "engine/reopening_source.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::detail {
namespace {

using std::ios_base;

/// Returns how a file of a store is made for `mode`; nothing where it has to exist.
std::optional<creation> creation_for(ios_base::openmode mode) noexcept {
  if ((mode & ios_base::app) != 0) return creation::append;
  if ((mode & noreplace) != 0) return creation::exclusive;
  if ((mode & ios_base::trunc) != 0) return creation::replace;
  if ((mode & directions) == ios_base::out) return creation::overwrite;
  return std::nullopt;
}

access access_of(ios_base::openmode mode) noexcept {
  if ((mode & directions) == directions) return access::read_write;
  return (mode & ios_base::in) != 0 ? access::read : access::write;
}

std::unique_ptr<byte_source> open_existing(client&& through, std::string_view name, access wanted,
                                           const io_options& each) {
  remote_region region = through.open(name, wanted, each);
  return std::make_unique<region_source>(std::move(region), std::move(through), each);
}

std::unique_ptr<byte_source> open_once(client&& through, std::string_view name,
                                       ios_base::openmode mode, const io_options& each) {
  const std::optional<creation> how = creation_for(mode);
  if (how) {
    const create_options made{.mode = *how, .readable = (mode & ios_base::in) != 0};
    try {
      remote_region file = through.create(name, made, each);
      return std::make_unique<region_source>(std::move(file), std::move(through), each,
                                             *how != creation::append);
    } catch (const error& failed) {
      if (failed.code() != errc::not_supported) throw;
    }
    // A server from before there were stores has only what is written in place.
    if (*how != creation::overwrite) {
      throw error(errc::not_supported,
                  "what is published by name has a fixed size, and a directory is no file: trunc, "
                  "app and noreplace can not be had");
    }
  }
  return open_existing(std::move(through), name, access_of(mode), each);
}

/// Returns `opened` over as many lanes as are wanted and can be had, where they are of use. The
/// first that can not be had, or leads to something else by now, ends the attempt: the next would
/// cost as much.
std::unique_ptr<byte_source> over_lanes(std::unique_ptr<byte_source> opened, const client& through,
                                        std::string_view name, access wanted,
                                        const stream_options& options, const io_options& each) {
  const bool follows = options.follow_timeout > options.follow_timeout.zero();
  const bool writes = includes(wanted, access::write);
  if (options.connections < 2 || follows || writes || opened->in_place()) return opened;
  std::vector<std::unique_ptr<byte_source>> lanes;
  try {
    while (lanes.size() < options.connections) {
      auto lane = open_existing(further_client(through, lanes.size() + 1), name, wanted, each);
      if (lane->content() != opened->content() || lane->size() != opened->size()) break;
      lanes.push_back(std::move(lane));
    }
  } catch (const error&) {  // as of a server that has as many clients as it takes
  }
  if (lanes.size() < 2) return opened;
  return std::make_unique<laned_source>(std::move(opened), std::move(lanes));
}

/// Returns what has to be the same for a stream to go on.
reopening_source::use use_of(const byte_source& opened, ios_base::openmode mode,
                             const stream_options& options) noexcept {
  using use = reopening_source::use;
  if (opened.is_unnamed()) return use::makes_new;
  if ((mode & ios_base::app) != 0) return use::appends;
  if ((mode & ios_base::out) != 0) return use::edits;
  return options.follow_timeout > options.follow_timeout.zero() ? use::follows : use::reads;
}

}  // namespace

std::unique_ptr<byte_source> open_published(const std::function<client()>& connect,
                                            std::string_view name, ios_base::openmode mode,
                                            const stream_options& options) {
  const io_options each{options.timeout, options.verify, options.cuda_stream};
  const client through = connect();
  std::unique_ptr<byte_source> opened = over_lanes(open_once(through.share(), name, mode, each),
                                                   through, name, access_of(mode), options, each);
  if (options.reconnect_timeout <= options.reconnect_timeout.zero()) return opened;
  const reopening_source::use how = use_of(*opened, mode, options);
  // A file that `app` made, or found, is there by now. If it is not any more, it is not made anew.
  auto again = [connect, kept = std::string(name), wanted = access_of(mode), options, each] {
    const client found = connect();
    return over_lanes(open_existing(found.share(), kept, wanted, each), found, kept, wanted,
                      options, each);
  };
  return std::make_unique<reopening_source>(std::move(opened), std::string(name), how,
                                            std::move(again), options.reconnect_timeout);
}

}  // namespace ucx::detail
