// The name of the libibverbs provider for RDMAV_DRIVERS (libibverbs/dynamic_driver.c).
#pragma once

#include <string>
#include <string_view>

namespace rocefs {

// Finds the provider: its absolute path without -rdmavNN.so, where NN is the private ABI of
// libibverbs. Looks in ../lib and ../lib/rocefs of `program`, the absolute path of rocefs, where a
// build and `make install` put it. Empty if there is none, or if the path has a separator of
// RDMAV_DRIVERS.
std::string find_provider(std::string_view program);

// The running program's.
std::string provider_of_program();

// List of drivers: `driver`, then the others in their order.
std::string with_driver(std::string_view driver, std::string_view others);

}  // namespace rocefs
