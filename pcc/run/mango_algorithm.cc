// The functions of libmango.h that an algorithm calls, and mango_status_str().
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "pcc/api/libmango.h"
#include "pcc/run/call.h"
#include "pcc/run/handle.h"

using namespace rocefs;

namespace {

// Reports misuse once in the life of the program.
void complain(const char* function) {
  static std::atomic_flag said;
  if (said.test_and_set()) return;
  std::fprintf(stderr, "libmango: %s() was called outside of an algorithm\n", function);
}

// Writes one line, whatever the text contains.
void log_line(mango_log_level_e level, std::string_view text) {
  if (PccCall* call = PccCall::current()) return call->log(level, text);
  if (PccHandle* handle = PccHandle::preparing()) return handle->log(level, text);
  std::fprintf(stderr, "libmango: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace

extern "C" {

unsigned int mango_pcc_window_current(void) {
  if (PccCall* call = PccCall::current()) return call->window();
  complain(__func__);
  return 0;
}

void mango_pcc_window_update(unsigned int new_window) {
  if (PccCall* call = PccCall::current()) return call->set_window(new_window);
  complain(__func__);
}

unsigned int mango_pcc_event_get_val(mango_pcc_event_e event) {
  if (PccCall* call = PccCall::current()) return call->event_value(event);
  complain(__func__);
  return 0;
}

mango_status_e mango_pcc_event_request(mango_pcc_event_e event) {
  try {
    if (PccCall* call = PccCall::current()) return call->request(event);
  } catch (...) {
    return MANGO_STATUS_NO_MEMORY;
  }
  complain(__func__);
  return MANGO_STATUS_BAD_STATE;
}

void mango_pcc_log(mango_log_level_e level, const char* fmt, ...) {
  if (!fmt || level < MANGO_LOG_LEVEL_ERROR || level > MANGO_LOG_LEVEL_DEBUG) return;
  std::array<char, 512> line;
  va_list arguments;
  va_start(arguments, fmt);
  int length = std::vsnprintf(line.data(), line.size(), fmt, arguments);
  va_end(arguments);
  if (length < 0) return;
  std::string_view text(line.data(), std::min<size_t>(length, line.size() - 1));
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (char& c : std::span(line).first(text.size())) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  try {
    log_line(level, text);
  } catch (...) {  // no memory for it
  }
}

const char* mango_status_str(mango_status_e status) {
  switch (status) {
    case MANGO_STATUS_OK:
      return "success";
    case MANGO_STATUS_ERROR:
      return "error";
    case MANGO_STATUS_INVALID_PARAM:
      return "invalid parameter";
    case MANGO_STATUS_NO_MEMORY:
      return "out of memory";
    case MANGO_STATUS_NOT_FOUND:
      return "not found";
    case MANGO_STATUS_ALREADY_OPENED:
      return "there already";
    case MANGO_STATUS_NOT_OPENED:
      return "not opened";
    case MANGO_STATUS_BUSY:
      return "busy";
    case MANGO_STATUS_NOT_SUPPORTED:
      return "not supported";
    case MANGO_STATUS_TIMEOUT:
      return "timed out";
    case MANGO_STATUS_NO_DEVICE:
      return "no such device";
    case MANGO_STATUS_PERMISSION:
      return "permission denied";
    case MANGO_STATUS_IO:
      return "input/output error";
    case MANGO_STATUS_LIMIT:
      return "too many or too large";
    case MANGO_STATUS_BAD_STATE:
      return "not in this state";
    case MANGO_STATUS_PLUGIN:
      return "unusable plugin";
  }
  return "unknown status";
}

}  // extern "C"
