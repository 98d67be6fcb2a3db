#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "commands/commands.hpp"
#include "commands/listening_options.hpp"
#include "copying/rate_limit.hpp"
#include "output/exit_code.hpp"
#include "output/output.hpp"
#include "output/printable.hpp"
#include "output/progress_line.hpp"
#include "output/size_option.hpp"
#include "output/transfer_counters.hpp"
#include "process/interruption.hpp"
#include "ucx/error.hpp"
#include "ucx/pipe_broker.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/server.hpp"

namespace ucx::tool {
namespace {

/// The name of a pipe whose own end listens.
constexpr const char* own_name = "pipe";

/// While it waits it looks so often whether the other side of the input or output is there.
constexpr std::chrono::milliseconds look_around{500};

/// Time to carry a line to another machine by hand.
constexpr std::chrono::minutes default_meeting{5};

/// The size of a pipe of the system, if that lets it grow: reads and writes are fewer, and larger.
constexpr int pipe_capacity = 1 << 20;

struct pipe_command {
  std::string where;
  listening_options listening;
  bool quiet = false;
  std::size_t others = 1;
  bool drop = false;
  std::uint64_t window = pipe_options().window;
  std::uint64_t rate = 0;
  progress_mode progress = progress_mode::automatic;
};

/// The counters of an end of a pipe, and the line that shows them.
struct watched_end {
  transfer_counters& counters;
  progress_line& line;
};

pipe_options options_of(const pipe_command& command, const client_settings& settings) {
  const client_options asked = settings.options();
  pipe_options chosen;
  chosen.context = asked.context;
  chosen.connect_timeout = default_meeting;
  if (settings.timeout_seconds) chosen.connect_timeout = asked.worker.connect_timeout;
  chosen.window = command.window;
  return chosen;
}

/// Where the ends meet: at somebody's server, or at one of this process's own, for as long as this
/// lives.
class meeting_place {
 public:
  /// `opposite` is what the other side is to call.
  meeting_place(const pipe_command& command, const client_settings& settings,
                const std::string& opposite, progress_line& line) {
    if (!command.where.empty()) {
      where_ = url_with_name(command.where);
      return;
    }
    serve(command.listening, settings);
    broker_.emplace(*server_);
    where_ = url(server_->url(own_name));
    check_own_end(settings);
    line.say(note_of_no_tls(command.listening, server_->url()));
    if (!command.quiet) {
      line.say(fmt::format("ucxio: waiting; at the other end: ucxio pipe {} {}\n", opposite,
                           printable(shell_word(ucx::to_string(where_)))));
    }
  }
  const url& where() const noexcept { return where_; }

 private:
  void serve(const listening_options& listening, const client_settings& settings) {
    server_options chosen;
    chosen.bind = place_of(listening, settings.peer_users);
    chosen.insecure = listening.insecure;
    chosen.context = settings.options().context;
    chosen.context.transports = transports_of(listening);
    server_.emplace(chosen);
  }

  /// The own end is let in by a token, too. Where it has none, no other end is to be called.
  void check_own_end(const client_settings& settings) const {
    if (server_->url().starts_with("ucxs:")) const client own = settings.connect(where_);
  }

  std::optional<server> server_;
  std::optional<pipe_broker> broker_;
  url where_;
};

/// Returns whether there is something to read, or the input has ended, within `limit`.
bool input_is_ready(std::chrono::milliseconds limit) {
  ::pollfd input = {STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, static_cast<int>(limit.count())) != 0;
}

/// Reads what there is; 0 at the end.
std::size_t read_input(std::span<char> into) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, into.data(), into.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN) {
      input_is_ready(look_around);
    } else if (errno != EINTR) {
      throw failure(exit_code::failure,
                    "cannot read the standard input: " +
                        std::error_code(errno, std::generic_category()).message());
    }
  }
}

[[noreturn]] void fail(std::error_code why, std::string said) {
  // A reader that leaves because its disk is full tells it where it runs.
  if (why == errc::broken_pipe) said += "; that end knows why";
  throw failure(exit_code_of(why), said);
}

[[noreturn]] void fail(const pipe_streambuf& pipe) { fail(pipe.error(), pipe.error_message()); }

/// Copies the standard input: what is there goes at once, together as far as a message can hold it.
void send_all(pipe_streambuf& pipe, const pipe_command& command, transfer_counters& counters) {
  rate_limit limit(command.rate);
  ::fcntl(STDIN_FILENO, F_SETPIPE_SZ, pipe_capacity);
  for (;;) {
    const bool is_idle = !input_is_ready(std::chrono::milliseconds(0));
    // Bytes that go slowly do not wait for more besides.
    if ((is_idle || command.rate > 0) && pipe.pubsync() != 0) fail(pipe);
    while (is_idle && !input_is_ready(look_around)) {
      pipe.consumed();  // hears whether the reader is there still
      if (pipe.error()) fail(pipe);
    }
    const std::span<char> room = pipe.prepare();
    const std::size_t count = read_input(room.first(limit.piece(room.size())));
    if (count == 0) break;
    limit.take(count, {});
    pipe.commit(count);
    counters.bytes += count;
  }
  pipe.close();
  const std::size_t left = pipe.readers();
  if (left >= command.others) return;
  throw failure(exit_code::partial,
                fmt::format("{} of {} readers {} dropped", command.others - left, command.others,
                            command.others - left == 1 ? "was" : "were"));
}

void send(const pipe_command& command, const client_settings& settings,
          const watched_end& watched) {
  pipe_options options = options_of(command, settings);
  options.readers = command.others;
  if (command.drop) options.slow_reader = slow_reader_policy::drop;
  const meeting_place place(command, settings, "receive", watched.line);
  pipe_streambuf pipe(place.where(), std::ios_base::out, options);
  watched.line.restart();
  try {
    send_all(pipe, command, watched.counters);
  } catch (const error& failed) {
    fail(failed.code(), failed.what());
  }
}

/// Copies to the standard output what comes, as soon as it comes.
void receive(const pipe_command& command, const client_settings& settings,
             const watched_end& watched) {
  pipe_options options = options_of(command, settings);
  options.writers = command.others;
  options.timeout = look_around;
  const meeting_place place(command, settings, "send", watched.line);
  pipe_streambuf pipe(place.where(), std::ios_base::in, options);
  watched.line.restart();
  rate_limit limit(command.rate);
  ::fcntl(STDOUT_FILENO, F_SETPIPE_SZ, pipe_capacity);
  for (;;) {
    std::span<const char> came;
    try {
      came = pipe.available();
    } catch (const error& failed) {
      if (failed.code() != errc::timed_out) fail(pipe);
      if (output_is_closed()) throw output_closed();
      continue;
    }
    if (came.empty()) break;
    came = came.first(limit.piece(came.size()));
    limit.take(came.size(), {});
    write_out({came.data(), came.size()});
    pipe.consume(came.size());
    watched.counters.bytes += came.size();
  }
  pipe.close();
  close_output();
}

/// Runs one end. A terminal that shows what is sent, or is typed on, shows nothing else.
template <class End>
void run_end(const pipe_command& command, const client_settings& settings, int data, End&& end) {
  transfer_counters counters;
  run_watched(command.progress, counters, ::isatty(data) == 0, [&](progress_line& line) {
    end(command, settings, watched_end{counters, line});
  });
}

void describe(CLI::App& end, const std::shared_ptr<pipe_command>& command,
              client_settings& shared) {
  CLI::Option* where = end.add_option(
      "URL", command->where,
      "where to meet: a name of your choice at a server that was started with --pipes,\n"
      "or what the other end has printed. Without it this end listens");
  for (CLI::Option* each : add_listening_options(end, command->listening)) {
    each->excludes(where);
    each->description("without URL: " + each->get_description());
  }
  end.add_flag("-q,--quiet", command->quiet, "do not say on stderr what to call at the other end");
  add_rate(end, command->rate);
  add_progress(end, command->progress);
  add_client_options(end, shared);
  end.get_option("--token-file")
      ->excludes(end.get_option("--socket"))
      ->excludes(end.get_option("--ucx"));
  end.get_option("--timeout")
      ->description("how long to wait for the other end to come (default: 300)");
}

void check_others(const pipe_command& command, const char* option) {
  if (command.others > 0 && command.others <= pipe_options::max_peers) return;
  throw failure(exit_code::usage, fmt::format("{}: {} is not between 1 and {}", option,
                                              command.others, pipe_options::max_peers));
}

void add_send(CLI::App& pipe, client_settings& shared) {
  const auto command = std::make_shared<pipe_command>();
  CLI::App& end = *pipe.add_subcommand("send", "Send the standard input");
  describe(end, command, shared);
  end.add_option("--readers", command->others,
                 "wait for so many readers, 1 to 1024; each gets everything")
      ->type_name("N");
  end.add_flag(
      "--drop-slow", command->drop,
      "of several readers, drop those that are lost, or hold the others up for 5 seconds;\n"
      "where one was dropped it ends with 11");
  end.footer(
      "Example:\n"
      "  ucxio pipe send ucxs://127.0.0.1:7471/any/name < model");
  end.callback([command, &shared] {
    check_others(*command, "--readers");
    run_end(*command, shared, STDIN_FILENO, send);
  });
}

void add_receive(CLI::App& pipe, client_settings& shared) {
  const auto command = std::make_shared<pipe_command>();
  CLI::App& end = *pipe.add_subcommand("receive", "Write what is sent to the standard output");
  describe(end, command, shared);
  end.add_option("--writers", command->others,
                 "wait for so many writers, 1 to 1024, and read all of them")
      ->type_name("N");
  add_size(end, "--window", command->window,
           "bytes of each writer at most that wait here to be written, 64K to 1G "
           "(default: 8M)");
  end.footer(
      "Example:\n"
      "  ucxio pipe receive --bind 10.0.0.7:7471 > model");
  end.callback([command, &shared] {
    check_others(*command, "--writers");
    if (command->window < pipe_options::min_window || command->window > pipe_options::max_window) {
      throw failure(exit_code::usage, "--window: not between 64K and 1G");
    }
    run_end(*command, shared, STDOUT_FILENO, receive);
  });
}

}  // namespace

void add_pipe(CLI::App& program, client_settings& shared) {
  CLI::App& pipe = *program.add_subcommand("pipe", "Send the standard input to another process");
  pipe.require_subcommand(1);
  add_send(pipe, shared);
  add_receive(pipe, shared);
  pipe.footer(
      "Bytes go straight from one end to the other, as soon as they are there, and are never\n"
      "stored. The receiving end fails unless the sending one has sent everything.\n\n"
      "Examples:\n"
      "  ucxio pipe receive --bind 10.0.0.7:7471 | tar x   says what to call there:\n"
      "  tar c model | ucxio pipe send ucxs://10.0.0.7:7471/pipe\n\n"
      "  ucxio serve --pipes --bind 127.0.0.1:7471\n"
      "  ucxio pipe receive ucxs://127.0.0.1:7471/any/name > model\n"
      "  ucxio pipe send ucxs://127.0.0.1:7471/any/name < model");
}

}  // namespace ucx::tool
