#include "client/client_regions.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error_text.hpp"
#include "client/client_call.hpp"
#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"
#include "worker/core_access.hpp"
#include "worker/failed_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Makes a region of the answer, which may ask the system, or UCX: in the worker's round.
template <class Body>
class region_question final : public conversation {
 public:
  region_question(client_regions& regions, control_type type, Body body, std::string doing,
                  remote_region& made, std::function<failure(failure)> explain)
      : regions_(regions),
        type_(type),
        body_(std::move(body)),
        doing_(std::move(doing)),
        made_(made),
        explain_(std::move(explain)) {}

  void ask(client_session& session, client_session::question& asked) override {
    asked.answer_type = control_type::opened;
    session.ask(asked, type_, body_);
  }
  bool takes_in_round() const noexcept override { return true; }
  result<bool> take(std::span<const std::byte> answer) override {
    auto region = regions_.region_of(answer, body_.name, body_.wanted, doing_);
    if (!region) return std::move(region.why());
    made_ = *std::move(region);
    return true;
  }
  failure explain(failure why, std::span<const std::byte>) const override {
    return explain_(std::move(why));
  }

 private:
  client_regions& regions_;
  control_type type_;
  Body body_;
  std::string doing_;
  remote_region& made_;
  std::function<failure(failure)> explain_;
};

}  // namespace

template <class Body>
request client_regions::start_making(control_type type, Body body, std::string doing,
                                     remote_region& made, std::function<failure(failure)> explain,
                                     const io_options& options) {
  made = remote_region();  // what it posted is waited for here, and not in a round
  auto asks = std::make_unique<region_question<Body>>(*this, type, std::move(body), doing, made,
                                                      std::move(explain));
  return client_call::start(questions_, options, std::move(doing), std::move(asks));
}

template request client_regions::start_making(control_type, open_body, std::string, remote_region&,
                                              std::function<failure(failure)>, const io_options&);
template request client_regions::start_making(control_type, create_body, std::string,
                                              remote_region&, std::function<failure(failure)>,
                                              const io_options&);

request client_regions::start_open(std::string_view name, access wanted, remote_region& made,
                                   const io_options& options) {
  if (auto fit = known_server::check_name(name); !fit) return failed_request(std::move(fit.why()));
  const auto explain = [](failure why) {
    return known_server::of_unserved(std::move(why), "no regular file");
  };
  return start_making(control_type::open, open_body{std::string(name), wanted},
                      questions_.server().attempt("opening", name), made, explain, options);
}

result<remote_region> client_regions::open(std::string_view name, access wanted,
                                           const io_options& options) {
  remote_region made;
  const auto done = questions_.wait_for([&] { return start_open(name, wanted, made, options); });
  if (!done) return done.why();
  return made;
}

std::vector<open_result> client_regions::open_many(std::span<const std::string> names,
                                                   access wanted, const io_options& options) {
  constexpr std::size_t most = client_questions::most_at_once;
  std::vector<open_result> all;
  all.reserve(names.size());
  for (; !names.empty(); names = names.subspan(std::min(names.size(), most))) {
    const auto some = names.first(std::min(names.size(), most));
    const std::vector<client_questions::question> asked = ask_for(some, wanted, options);
    bool answers = true;
    for (std::size_t i = 0; i < some.size(); ++i) {
      answers = answers && asked[i].outcome != errc::timed_out;
      open_result& made = all.emplace_back();
      made.error = asked[i].outcome;
      if (!made.error) {
        auto opened = region_of(asked[i].answer, some[i], wanted, {});
        if (opened) {
          made.region = *std::move(opened);
          continue;
        }
        made.error = opened.why().code;
      }
      questions_.count_failures(1);
    }
    if (answers) continue;
    // A server that does not answer in time is not asked for the rest, which would take as long.
    const std::size_t left = names.size() - some.size();
    for (std::size_t i = 0; i < left; ++i) all.emplace_back().error = errc::timed_out;
    questions_.count_failures(left);
    break;
  }
  return all;
}

std::vector<client_questions::question> client_regions::ask_for(std::span<const std::string> names,
                                                                access wanted,
                                                                const io_options& options) {
  std::vector<client_questions::question> asked;
  for (const std::string& name : names) {
    std::error_code ec;
    known_server::check_name(name).or_tell(ec);
    asked.push_back({.answer_type = control_type::opened, .done = static_cast<bool>(ec)});
    asked.back().outcome = ec;
  }
  const auto body_of = [&](std::size_t i) { return open_body{names[i], wanted}; };
  questions_.ask_each(asked, control_type::open, body_of, questions_.deadline_after(options));
  return asked;
}

result<remote_region> client_regions::region_of(std::span<const std::byte> answer,
                                                std::string_view name, access wanted,
                                                const std::string& doing) {
  failure why{{}, doing};
  std::error_code& ec = why.code;
  const std::optional<opened_body> opened = decode_opened(answer);
  remote_region made;
  if (!opened || opened->described.name != name) ec = errc::protocol_error;
  remote_descriptor descriptor;
  if (!ec) descriptor = remote_descriptor::decode(opened->descriptor, ec);
  if (!ec) {
    // No more than was asked for: a mistake of the program shows here, as with a file.
    descriptor.granted = wanted;
    try {
      made = remote_region(endpoint_, descriptor);
    } catch (const error& failed) {
      why = {failed.code(), doing + ": " + text_of(failed)};
    }
  }
  // Only its owner can make something longer.
  if (!ec && opened->limit > 0 && made.transfer_method() != transfer_method::message)
    ec = errc::protocol_error;
  if (ec) {  // the server holds it for us, maybe
    const std::lock_guard guard(questions_.worker().lock());
    questions_.session().release_unwanted(answer);
    return why;
  }
  opens_.fetch_add(1, std::memory_order_relaxed);
  remote_region_core& core = *core_access::core(made);
  {
    const std::lock_guard guard(questions_.worker().lock());
    if (opened->described.type == entry_type::file) {
      core.extent().is_file(opened->identity, opened->described.generation,
                            questions_.server().knows(control_feature::measuring));
    }
    if (opened->limit > 0) {
      core.extent().grow_to(opened->limit);
      core.window().resize(opened->window);
    }
    if (opened->held) {
      core.when_released([through = questions_.teller(), region = descriptor.region] {
        if (*through == nullptr) return;
        try {
          (*through)->tell(control_type::release, release_body{region});
        } catch (const std::bad_alloc&) {  // the server has it open until this client leaves
        }
      });
    }
  }
  remember(descriptor.region, core_access::core(made));
  return made;
}

result<std::shared_ptr<remote_region_core>> client_regions::ours(const remote_region& file,
                                                                 const std::string& doing) const {
  const std::shared_ptr<remote_region_core>& core = core_access::core(file);
  if (core && &core->endpoint() == &questions_.connection()) return core;
  return failure{core ? errc::no_such_region : errc::closed, doing};
}

void client_regions::remember(std::uint64_t region,
                              const std::shared_ptr<remote_region_core>& opened) {
  const std::lock_guard guard(questions_.worker().lock());
  if (opened_.size() >= sweep_at_) {
    std::erase_if(opened_, [](const auto& each) { return each.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * opened_.size());
  }
  opened_.emplace(region, opened);
}

void client_regions::revoked(std::uint64_t region) {
  const auto [first, last] = opened_.equal_range(region);
  for (auto each = first; each != last; ++each) {
    if (const auto opened = each->second.lock()) opened->revoke();
  }
  opened_.erase(first, last);
}

}  // namespace ucx::detail
