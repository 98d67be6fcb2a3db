#include "region/remote/region_question.hpp"

#include <utility>

#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"

namespace ucx::detail {

void region_question::enter(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                            std::uint64_t length, clock::time_point deadline,
                            unsigned further_references) {
  region_ = std::move(region);
  offset_ = offset;
  length_ = length;
  peer_question::enter(region_->endpoint(), deadline, further_references);
}

frame region_question::question(opcode code) const noexcept {
  const remote_descriptor& target = region_->descriptor();
  frame asked;
  asked.code = code;
  asked.session = endpoint()->session().number();
  asked.request = id();
  asked.region = target.region;
  asked.incarnation = target.incarnation;
  asked.generation = target.generation;
  return asked;
}

std::string region_question::describe() const {
  return std::to_string(length_) + " bytes at offset " + std::to_string(offset_) + " of " +
         region_->description();
}

}  // namespace ucx::detail
