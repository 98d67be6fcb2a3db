#include "detail/device_region.hpp"

#include <utility>

#include "detail/context_core.hpp"
#include "detail/frame.hpp"
#include "detail/region_service.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

device_region::device_region(std::shared_ptr<context_core> context,
                             std::shared_ptr<device_memory> memory, access granted)
    : exposed_region(std::move(context), granted),
      place_(memory->place()),
      where_(memory->where()),
      memory_(std::move(memory)) {}

std::shared_ptr<device_region> device_region::make(std::shared_ptr<context_core> context,
                                                   std::shared_ptr<device_memory> memory,
                                                   access granted, std::string& what,
                                                   std::error_code& ec) {
  ec.clear();
  if (!context->has(feature::am)) {
    what = "exposing memory of a device: its context was made without feature::am";
    ec = errc::feature_disabled;
    return nullptr;
  }
  std::shared_ptr<device_region> made(
      new device_region(std::move(context), std::move(memory), granted));
  made->expose();
  return made;
}

device_region::~device_region() { close(); }

void device_region::release() noexcept {
  if (const std::shared_ptr<device_memory> memory = memory_.get()) memory->withdraw();
  memory_.reset();
}

void device_region::write(endpoint_core& from, const frame& asked,
                          std::span<const std::byte> payload) {
  const std::shared_ptr<device_memory> into = memory_.get();
  const std::error_code ec =
      into ? into->write(asked.offset, payload) : make_error_code(errc::revoked);
  region_service::answer_write(from, asked, ec);
}

}  // namespace ucx::detail
