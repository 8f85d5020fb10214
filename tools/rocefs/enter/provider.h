// How libibverbs is told of our provider (RDMAV_DRIVERS; libibverbs/dynamic_driver.c).
#pragma once

#include <string>
#include <string_view>

namespace rocefs {

// Our provider as a driver's name: its absolute path without -rdmavNN.so, the number being that of
// libibverbs' private ABI. It is looked for where a build and where `make install` put it, seen
// from `program`, the absolute path of rocefs. Empty if there is none, or if the path has a
// character that separates names.
std::string find_provider(std::string_view program);

// A list of drivers with `driver` in it, once, and the others in their order.
std::string with_driver(std::string_view driver, std::string_view others);

}  // namespace rocefs
