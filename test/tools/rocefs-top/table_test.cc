#include "tools/rocefs-top/table.h"
#include "test/catch.h"
#include "test/tools/rocefs-top/sample_look.h"
#include "tools/rocefs-top/batch.h"
#include "tools/rocefs-top/totals.h"

using namespace rocefs;
using namespace rocefs::top;

namespace {

std::string cell(const Table& table, size_t row, const char* column) {
  return table.rows().at(row).cells[*column_named(table.screen(), column)].text;
}

}  // namespace

TEST_CASE("top: a path of the tree is a file of a record") {
  auto place = place_of("kernel/debug/rocefs/fabric/sw_0/ports/10/pfc/3/paused");
  REQUIRE(place);
  CHECK(place->screen == Screen::kQueues);
  CHECK(place->file == kPaused);
  CHECK(place->key == "sw_0/10/3");
  CHECK(place_of("class/infiniband/mb_0/ports/2/hw_counters/np_cnp_sent")->key == "mb_0/2");
  CHECK(place_of("kernel/debug/rocefs/loads/f/state")->key == "loads/f");
  CHECK_FALSE(place_of("kernel/debug/rocefs/links/a-b/loss"));
  CHECK_FALSE(place_of("kernel/debug/rocefs/links/a-b/c/rate"));
}

TEST_CASE("top: rates are per second of the mount's clock") {
  const Look before = sample_look(1'000'000, sample_files(1'000'000));
  const Look now = sample_look(3'000'000, sample_files(1'200'000));  // 200,000 octets in 2 ms
  Table devices(Screen::kDevices, before, now, false, false);
  CHECK(cell(devices, 0, "name") == "mb_0");
  CHECK(cell(devices, 0, "state") == "ACTIVE");
  CHECK(cell(devices, 0, "out") == "800 Mb/s");
  CHECK(cell(devices, 0, "out_packets") == "100K");
  CHECK(cell(devices, 0, "in") == "-");  // no such file here
  Table links(Screen::kLinks, before, now, false, false);
  CHECK(cell(links, 0, "rate") == "1.00 Gb/s");
  CHECK(cell(links, 0, "load") == "83.0%");  // 1000 + 38 octets a packet
  const Totals totals = totals_of(before, now);
  CHECK(*totals.out.per_s == Approx(1e8));
  CHECK(*totals.marked.per_s == Approx(1e5));
  CHECK(totals.running == 1);
}

TEST_CASE("top: where no time passes, counts are shown and nothing is divided") {
  const Look now = sample_look(5, sample_files(1'000'000), true);
  Table devices(Screen::kDevices, now, now, false, false);
  CHECK(devices.counts());
  CHECK(cell(devices, 0, "out") == "977 KB");
  CHECK(devices.title(*column_named(Screen::kDevices, "out_packets")) == "PKTS>");
  CHECK_FALSE(totals_of(now, now).out.per_s);
  CHECK(totals_of(now, now).out.all == 1e6);
  Table links(Screen::kLinks, now, now, false, false);
  CHECK(cell(links, 0, "load") == "-");
}

TEST_CASE("top: counts that began again, and new records, have no rate") {
  const Look before = sample_look(1000, sample_files(5000));
  const Look now = sample_look(2000, sample_files(1000));
  CHECK(cell(Table(Screen::kDevices, before, now, false, false), 0, "out") == "-");
  const Look empty = sample_look(1000, {});
  CHECK(cell(Table(Screen::kDevices, empty, now, false, false), 0, "out") == "-");
}

TEST_CASE("top: rows sort by numbers and by names with numbers in them") {
  const Look now = sample_look(5, sample_files(1000, "300"));
  Table queues(Screen::kQueues, now, now, false, false);
  REQUIRE(queues.rows().size() == 2);
  CHECK(cell(queues, 0, "port") == "2");  // before port 10
  queues.sort({*column_named(Screen::kQueues, "octets"), false});
  CHECK(cell(queues, 0, "octets") == "7 B");
  queues.sort(order_by(Screen::kQueues, *column_named(Screen::kQueues, "octets")));
  CHECK(cell(queues, 0, "octets") == "300 B");
  CHECK(cell(queues, 0, "paused") == "PAUSED");
  queues.sort({*column_named(Screen::kQueues, "marked"), false});
  CHECK(cell(queues, 1, "marked") == "-");  // no value: last in any order
}

TEST_CASE("top: a filter looks for texts, and idle rows can be left out") {
  const Look before = sample_look(5, sample_files(1000)), now = sample_look(9, sample_files(1000));
  Table queues(Screen::kQueues, before, now, false, false);
  queues.filter("nothing|SW_0/10");
  REQUIRE(queues.rows().size() == 1);
  CHECK(queues.rows()[0].key == "sw_0/10/0");
  queues.filter("absent");
  CHECK(queues.rows().empty());
  Table busy(Screen::kQueues, before, now, false, false);
  busy.drop_idle();
  REQUIRE(busy.rows().size() == 1);
  CHECK(busy.rows()[0].key == "sw_0/10/0");
  Table devices(Screen::kDevices, before, now, false, false);
  CHECK(devices.find("MB_", 0) == 0u);
  CHECK_FALSE(devices.find("other", 0));
}

TEST_CASE("top: a flow without a limit has no window, and its reason is printable") {
  SampleFiles files = sample_files(4096);
  files[14].second = "failed: \x1b[2J";
  const Look now = sample_look(5, files);
  Table flows(Screen::kFlows, now, now, false, false);
  CHECK(cell(flows, 0, "window") == "-");
  CHECK(cell(flows, 0, "throughput") == "4.00 KB");
  CHECK(cell(flows, 0, "cnps") == "3");
  CHECK(cell(flows, 0, "state") == "failed: ?[2J");
}

TEST_CASE("top: CSV has plain numbers, counts beside rates, and quotes") {
  SampleFiles later = sample_files(3000);
  later[14].second = "failed: a, \"b\"";
  const Look before = sample_look(1'000'000'000, sample_files(1000)),
             now = sample_look(3'000'000'000, later);
  const std::string heading = csv_heading(Screen::kFlows);
  CHECK(heading.starts_with("time_ns,interval_ns,name,kind,state,octets_per_s,octets,rate_bps,"));
  Table flows(Screen::kFlows, before, now, false, false);
  CHECK(csv_lines(flows, before, now)
            .starts_with("3000000000,2000000000,f,flow,\"failed: a, \"\"b\"\"\",1000,3000,,"));
  Table still(Screen::kFlows, now, now, false, false);
  CHECK(csv_lines(still, now, now)
            .starts_with("3000000000,0,f,flow,\"failed: a, \"\"b\"\"\",,3000,,"));
}
