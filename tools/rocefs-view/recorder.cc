#include "tools/rocefs-view/recorder.h"

#include <fcntl.h>
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/picture/recording.h"

namespace rocefs {
namespace {

Error file_error(const std::string& file) {
  const int code = errno;
  return errorf(code, "{}: {}", file, std::strerror(code));
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

// The first line of a recording, without its end; at most as much as 8,192 hosts need.
Result<std::string> first_line(int file, const std::string& name) {
  constexpr size_t kMost = 16 << 20;
  std::string text;
  char part[1 << 16];
  for (ssize_t size; (size = ::read(file, part, sizeof part)) != 0;) {
    if (size < 0) return file_error(name);
    text.append(part, static_cast<size_t>(size));
    if (const size_t end = text.find('\n'); end != text.npos) return text.substr(0, end);
    if (text.size() > kMost) break;
  }
  return errorf(EINVAL, "{}: no recording of rocefs view", name);
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::begin(const std::string& name, const std::string& shape,
                                                  Feed& feed) {
  Fd file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return file_error(name);
  if (!write_all(file.get(), recording_head(shape) + "\n")) return file_error(name);
  return std::unique_ptr<Recorder>(new Recorder(name, std::move(file), feed));
}

Recorder::Recorder(std::string name, Fd file, Feed& feed)
    : name_(std::move(name)), file_(std::move(file)), thread_([this, &feed] { run(feed); }) {}

// A full disk ends the recording, not the page.
void Recorder::run(Feed& feed) {
  Feed::Listener listener(feed, {});
  for (std::string message; !(message = listener.next()).empty();) {
    if (write_all(file_.get(), message + "\n")) continue;
    std::fprintf(stderr, "rocefs view: the recording ends: %s\n", file_error(name_).reason.c_str());
    return;
  }
}

Result<void> add_replay(PageServer& server, const std::string& name) {
  auto file = std::make_shared<Fd>(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!*file || ::fstat(file->get(), &status) != 0) return file_error(name);
  if (!S_ISREG(status.st_mode)) return errorf(EINVAL, "{}: not a file", name);
  Result<std::string> line = first_line(file->get(), name);
  if (!line) return line.error();
  std::optional<std::string> shape = shape_in(*line);
  if (!shape) return errorf(EINVAL, "{}: no recording of rocefs view", name);
  shape->insert(1, fmt::format("\"recording\":{},", json_string(name)));
  server.http().Get("/api/shape", [shape = std::move(*shape)](const httplib::Request&,
                                                              httplib::Response& response) {
    response.set_content(shape, kJsonType);
  });
  server.http().Get("/api/may-store", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("false", kJsonType);
  });
  // The file may still grow: its size is that of now.
  const auto begin = static_cast<off_t>(line->size() + 1);
  server.http().Get(
      "/api/recording", [file, begin](const httplib::Request&, httplib::Response& response) {
        struct stat now {};
        ::fstat(file->get(), &now);
        const auto size = static_cast<size_t>(std::max<off_t>(now.st_size - begin, 0));
        if (size == 0) return response.set_content("", "text/plain; charset=utf-8");
        response.set_content_provider(
            size, "text/plain; charset=utf-8",
            [file, begin](size_t offset, size_t length, httplib::DataSink& sink) {
              char part[1 << 16];
              const ssize_t got = ::pread(file->get(), part, std::min(length, sizeof part),
                                          begin + static_cast<off_t>(offset));
              return got > 0 && sink.write(part, static_cast<size_t>(got));
            });
      });
  return {};
}

}  // namespace rocefs
