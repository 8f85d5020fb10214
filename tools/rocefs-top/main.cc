// rocefs-top: what a mount does, in a terminal or as tables. `rocefs top` starts it.
#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "core/process/mount_table.h"
#include "core/process/standard_files.h"
#include "core/version/version.h"
#include "tools/rocefs-top/look_reader.h"
#include "tools/rocefs-top/options.h"
#include "tools/rocefs-top/session.h"
#include "tools/watch/mount_files.h"

using namespace rocefs;
using namespace rocefs::top;

int main(int argc, char** argv) {
  reserve_standard_files();
  std::setlocale(LC_CTYPE, "");
  Result<TopOptions> options = parse_top(argc, argv);
  if (!options) {
    refuse(options.error().reason, 2);
    std::fputs("Try 'rocefs top --help'.\n", stderr);
    return 2;
  }
  if (options->help || options->version) {
    if (options->help) std::fputs(kTopUsage, stdout);
    if (options->version) std::printf("rocefs %s\n", kVersion);
    return flush_standard_output("rocefs top", 0);
  }
  Result<std::string> mount_point = chosen_mount(options->mount_point);
  if (!mount_point) return refuse(mount_point.error().reason, 1);
  Result<MountFiles> files = MountFiles::open(*mount_point);
  if (!files) return refuse(files.error().reason, 1);
  LookReader reader(*files);
  return options->batch ? print_tables(reader, *mount_point, *options)
                        : show_in_terminal(reader, *mount_point, *options);
}
