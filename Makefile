# rocefs: GNU make. `make help` lists the targets.
SHELL := /bin/bash
BUILD ?= build
ifeq ($(origin CXX),default)
CXX := g++
endif
PREFIX ?= /usr/local
CHAOS_MODE ?= asan
JOBS := $(shell nproc)

##@ Targets
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
PROVIDER_ABIS := 34 57 59 64
PROVIDERS := $(PROVIDER_ABIS:%=$(BUILD)/lib/librocefs-rdmav%.so)
all: $(BUILD)/bin/rocefs $(BUILD)/bin/mango-pccd $(BUILD)/bin/mango-ctl $(PROVIDERS) $(BUILD)/lib/libmango.so ## build everything into build/ (the default)
demo: packages ## mount, send a real file over a lossy link, prove that it arrived
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@tools/demo $(BUILD)/bin/rocefs
test: packages ## build and run all tests; ends with `N passed, N failed`
	@$(MAKE) --no-print-directory -s -j$(JOBS) all tests
	@test/run $(BUILD)
bench: packages ## measure, each figure beside its reference; BENCH=NAME for one of them
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(BUILD)/bin/rocefs $(BUILD)/test/rocefs_bench $(if $(LIBFABRIC),$(BUILD)/test/fi_write)
	@$(BUILD)/test/rocefs_bench $(BENCH)
fuzz: ## run every fuzz target for FUZZ_SECONDS (20) on top of its corpus, under sanitizers
	@tools/install-packages fuzz
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=fuzz CXX=clang++-14 BUILD=$(BUILD)/fuzz fuzzers
	@test/fuzz/run $(BUILD)/fuzz $(FUZZ_SECONDS)
mutations: packages ## delete each counter's increment in turn: which test notices?
	@test/mutations/counters
reference: all ## write tools/reference.md, the page of all files of the tree
	@tools/print-reference $(BUILD)/bin/rocefs > tools/reference.md
check: ## format, rooms, sizes, forbidden calls
	@test/house/check
asan: packages ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=asan BUILD=$(BUILD)/asan all tests
	@ROCEFS_TEST_LIMIT=1800 test/run $(BUILD)/asan
tsan: packages ## the tests under ThreadSanitizer
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=tsan BUILD=$(BUILD)/tsan all tests
	@ROCEFS_TEST_LIMIT=1800 test/run $(BUILD)/tsan
chaos: packages ## strangers, faults and killed workers at one mount for CHAOS_SECONDS (600); CHAOS_MODE=asan, tsan or release, CHAOS_SEED
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=$(CHAOS_MODE) BUILD=$(BUILD)/$(CHAOS_MODE) all
	@CHAOS_SECONDS=$(or $(CHAOS_SECONDS),600) test/chaos/run $(BUILD)/$(CHAOS_MODE)
install: all ## install into PREFIX (/usr/local), below DESTDIR
	@for program in rocefs mango-pccd mango-ctl; do \
	  there=$(DESTDIR)$(PREFIX)/bin/$$program; [ ! -e $$there ] || $$there --version 2>&1 | grep -q rocefs || \
	  { echo "rocefs: $$there is somebody else's: nothing is installed" >&2; exit 1; }; done
	install -D -m 0755 $(BUILD)/bin/rocefs $(DESTDIR)$(PREFIX)/bin/rocefs
	install -D -m 0755 $(BUILD)/bin/mango-pccd $(DESTDIR)$(PREFIX)/bin/mango-pccd
	install -D -m 0755 $(BUILD)/bin/mango-ctl $(DESTDIR)$(PREFIX)/bin/mango-ctl
	install -D -m 0644 tools/mango-ctl/mango-ctl.1 $(DESTDIR)$(PREFIX)/share/man/man1/mango-ctl.1
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(wildcard doc/man/*.1)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man3 $(wildcard doc/man/*.3)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(wildcard doc/man/*.5)
	install -D -m 0644 tools/mango-ctl/mango-ctl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mango-ctl
	install -d $(DESTDIR)$(PREFIX)/lib/rocefs
	install -m 0644 $(PROVIDERS) $(DESTDIR)$(PREFIX)/lib/rocefs
	install -D -m 0644 $(BUILD)/lib/libmango.so $(DESTDIR)$(PREFIX)/lib/libmango.so.1
	ln -sfn libmango.so.1 $(DESTDIR)$(PREFIX)/lib/libmango.so
	install -D -m 0644 pcc/api/libmango.h $(DESTDIR)$(PREFIX)/include/libmango.h
	install -D -m 0644 tools/containers/seccomp.json $(DESTDIR)$(PREFIX)/share/rocefs/seccomp.json
	install -d $(DESTDIR)$(PREFIX)/share/doc/rocefs/containers $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 0644 tools/containers/README.md $(DESTDIR)$(PREFIX)/share/doc/rocefs/containers
	sed 's|@PREFIX@|$(PREFIX)|' tools/rocefs@.service.in > $(DESTDIR)$(PREFIX)/lib/systemd/system/rocefs@.service
	sed 's|@PREFIX@|$(PREFIX)|' pcc/api/mango.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/mango.pc
clean: ## remove build/
	rm -rf $(BUILD)
packages: ## install the Debian packages that are missing
	@tools/install-packages
.PHONY: help all demo test bench fuzz fuzzers mutations reference check asan tsan chaos install clean packages tests
.DEFAULT_GOAL := all

# What is built how.
MODE ?= release
PACKAGES := fuse3 liburing fmt inih libisal
CPPFLAGS += -I. -DFUSE_USE_VERSION=312 $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
CXXFLAGS += -std=c++20 -g1 -pthread -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
LDLIBS += $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -pthread
FLAGS_release := -O2
# The sanitizers' own code makes g++ 12 see variables that may be uninitialised, and strings too short.
FLAGS_asan := -O2 -Wno-maybe-uninitialized -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_tsan := -O2 -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-tsan -fsanitize=thread -fno-omit-frame-pointer
FLAGS_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CXXFLAGS += $(FLAGS_$(MODE))
# What ships and what is measured has the packet path as one unit, so that the compiler sees through
# files and layers. Tests link the layers' libraries as they are: they are there sooner.
LTO_release := $(if $(findstring clang,$(CXX)),,-flto=auto)
LTO := $(LTO_$(MODE))

# The provider is loaded into other people's programs: no sanitizer in it, whatever the mode, and once
# loaded it stays, because libibverbs calls into it.
PROVIDER_CFLAGS := -std=gnu11 -O2 -g -fPIC -pthread -fvisibility=hidden -Wall -Wextra -Werror -Wshadow
PROVIDER_LDFLAGS := -shared -pthread -Wl,-z,defs,-z,now,-z,nodelete

# One library per room (test/house/rooms), which needs those before it; one test program per layer, which
# links only what the layer may include.
PACKET_ROOMS := rdma/wire rdma/packet rdma/cc rdma/transport rdma/fabric rdma/uplink rdma/nic rdma/network
RDMA_ROOMS := $(PACKET_ROOMS) rdma/tree rdma/traffic rdma/client rdma/cm
CORE_ROOMS := core/base core/process core/takeover core/loop core/tree core/config
MAD_ROOMS := mad_cc/mad mad_cc/net mad_cc/port mad_cc/umad mad_cc/sa mad_cc/files
LAYERS := $(CORE_ROOMS) $(RDMA_ROOMS) pcc/api pcc/run pcc/algorithms pcc/card $(MAD_ROOMS) fs
library = $(BUILD)/lib/$(subst /,_,$(1)).a
libraries = $(if $(1),$(call libraries,$(wordlist 2,99,$(1))) $(call library,$(firstword $(1))))
each = $(patsubst %.cc,$(BUILD)/%.o,$(wildcard $(1)/*.cc))
CORE_LIBRARIES := $(call libraries,$(CORE_ROOMS))
RDMA_LIBRARIES := $(call libraries,$(CORE_ROOMS) $(RDMA_ROOMS))
PCC_LIBRARIES := $(call libraries,pcc/api pcc/run pcc/algorithms pcc/card)
MAD_LIBRARIES := $(call libraries,$(MAD_ROOMS))
PACKET_PATH := core/loop/event_heap.cc core/loop/scheduler.cc $(wildcard $(PACKET_ROOMS:%=%/*.cc))

# The files of a layer are compiled by the dozen, as `#include`s of one unit: what they include takes
# two thirds of a file's time, and is then read but once. Apart are those whose own names (of a
# namespace without one) are another's too, and what is linked without the rest.
APART := core/tree/assignment.cc core/config/config.cc core/loop/io_ring.cc core/base/kstrto.cc core/base/units.cc rdma/traffic/flow_spec.cc rdma/traffic/half_flow.cc rdma/packet/icrc_solver.cc rdma/uplink/udp_sockets.cc \
  $(wildcard pcc/algorithms/*.cc) pcc/card/algorithm_info.cc pcc/card/messages.cc pcc/card/pcc_files.cc pcc/card/program_server.cc pcc/card/qp_files.cc \
  mad_cc/net/pma.cc mad_cc/port/mad_agents.cc mad_cc/umad/umad_reads.cc fs/mount_table.cc fs/bounded_look.cc \
  tools/rocefs/main.cc tools/rocefs/sim.cc tools/mango-ctl/mgmt.cc tools/mango-ctl/pcc.cc tools/mango-ctl/text_file.cc
PARTS := 1 2 3 4 5 6 7 8 9
together = $(filter-out $(APART),$(wildcard $(1)/*.cc))
dozen = $(wordlist $(word $(1),1 13 25 37 49 61 73 85 97),$(word $(1),12 24 36 48 60 72 84 96 108),$(2))
control = $(call dozen,$(2),$(filter-out $(PACKET_PATH),$(call together,$(1))))
packet = $(call dozen,$(2),$(filter $(PACKET_PATH),$(call together,$(1))))
units = $(foreach kind,control packet,$(foreach n,$(PARTS),$(if $(call $(kind),$(1),$(n)),$(1)/$(kind)$(n))))
objects = $(patsubst %.cc,$(BUILD)/%.o,$(filter $(APART),$(wildcard $(1)/*.cc))) $(patsubst %,$(BUILD)/%.o,$(call units,$(1)))
GROUPED := $(LAYERS) tools/rocefs tools/mango-ctl tools/mango-pccd

TESTS := core wire rdma client cm pcc mad_cc fs tools
TEST_LIBRARIES_core := $(CORE_LIBRARIES)
TEST_LIBRARIES_wire := $(call library,rdma/wire) $(CORE_LIBRARIES)
TEST_LIBRARIES_rdma := $(RDMA_LIBRARIES)
TEST_LIBRARIES_client := $(RDMA_LIBRARIES)
TEST_LIBRARIES_cm := $(RDMA_LIBRARIES)
TEST_LIBRARIES_pcc := $(PCC_LIBRARIES) $(RDMA_LIBRARIES)
TEST_LIBRARIES_mad_cc := $(MAD_LIBRARIES) $(call library,rdma/wire) $(CORE_LIBRARIES)
TEST_LIBRARIES_fs := $(call library,fs) $(CORE_LIBRARIES)
TEST_LIBRARIES_tools := $(filter-out %/main.o,$(call objects,tools/rocefs)) $(call library,fs) $(PCC_LIBRARIES) $(MAD_LIBRARIES) $(RDMA_LIBRARIES)
FUZZ_TARGETS := $(filter-out replay,$(patsubst test/fuzz/%.cc,%,$(wildcard test/fuzz/*.cc)))
fuzzers: $(FUZZ_TARGETS:%=$(BUILD)/test/fuzz/%_fuzz)
tests: $(TESTS:%=$(BUILD)/test/%_test)
tests: $(BUILD)/test/fuzz/replay $(BUILD)/test/provider/verbs_test $(BUILD)/test/abi/open $(addprefix $(BUILD)/test/lies/,liar.so program pcc_program)

.SECONDEXPANSION:
# Other flags or another compiler: everything is built anew.
STAMP := $(BUILD)/flags
FLAGS_NOW := $(CXX) $(CPPFLAGS) $(CXXFLAGS) $(LTO) $(PACKET_PATH) $(LDLIBS) $(CC) $(PROVIDER_CFLAGS)
$(shell mkdir -p $(BUILD); [ "$$(cat $(STAMP) 2>/dev/null)" = '$(FLAGS_NOW)' ] || echo '$(FLAGS_NOW)' > $(STAMP))

$(BUILD)/%.o: %.cc $(STAMP)
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

define unit_rules
$(BUILD)/$(1)/$(2)$(3).cc: FORCE
	@mkdir -p $$(@D) && printf '#include "%s"\n' $(call $(2),$(1),$(3)) >$$@.new
	@cmp -s $$@.new $$@ || cp $$@.new $$@
$(BUILD)/$(1)/$(2)$(3).o: $(BUILD)/$(1)/$(2)$(3).cc $(STAMP)
	$$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) $$(SUBOBJECTS) -MMD -MP -c -o $$@ $$<
endef
# To the compiler they are headers, whose own types nobody's should be made of.
SUBOBJECTS := $(if $(findstring clang,$(CXX)),,-Wno-subobject-linkage)
$(foreach layer,$(GROUPED),$(foreach kind,control packet,$(foreach n,$(PARTS),$(if $(call $(kind),$(layer),$(n)),$(eval $(call unit_rules,$(layer),$(kind),$(n)))))))

# Lines are enough to find a place by (-g1): descriptions of types take a quarter of the time. What
# reads command lines is all templates, and in no hurry; so are tests, but for those that measure.
$(BUILD)/test/%.o $(BUILD)/tools/mango-ctl/%.o: CXXFLAGS += -O1
$(BUILD)/test/bench/%.o: CXXFLAGS += -O2

ifneq ($(LTO),)
LDFLAGS += -fno-lto
PACKET_OBJECTS := $(patsubst %.cc,$(BUILD)/%.o,$(filter $(APART),$(PACKET_PATH))) \
  $(foreach layer,$(LAYERS),$(patsubst %,$(BUILD)/%.o,$(filter $(layer)/packet%,$(call units,$(layer)))))
$(PACKET_OBJECTS) $(call each,test/bench): CXXFLAGS += $(LTO) -ffat-lto-objects
$(BUILD)/bin/rocefs $(BUILD)/test/rocefs_bench: LDFLAGS := $(filter-out -fno-lto,$(LDFLAGS)) $(LTO)
endif

define layer_rules
$(call library,$(1)): $$(call objects,$(1))
	@mkdir -p $$(@D) && rm -f $$@
	$(AR) rcs $$@ $$^
endef
$(foreach layer,$(LAYERS),$(eval $(call layer_rules,$(layer))))

$(BUILD)/bin/rocefs: $(call objects,tools/rocefs) $(call library,fs) $(PCC_LIBRARIES) $(MAD_LIBRARIES) $(RDMA_LIBRARIES)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Plugins find the functions of libmango.h in it, whether it calls them itself or not.
$(BUILD)/bin/mango-pccd: $(call objects,tools/mango-pccd) $(PCC_LIBRARIES) $(CORE_LIBRARIES)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -Wl,--export-dynamic-symbol='mango_*' -o $@ $(filter %.o,$^) \
	  -Wl,--whole-archive $(call library,pcc/run) -Wl,--no-whole-archive $(PCC_LIBRARIES) $(CORE_LIBRARIES) $(LDLIBS)

# A client of the files: no layer is in it but a few words of core, and where rocefs is mounted.
# What it builds plugins with stands beside the programs, here as where they are installed.
$(BUILD)/bin/mango-ctl: $(call objects,tools/mango-ctl) $(BUILD)/fs/mount_table.o $(BUILD)/fs/bounded_look.o $(CORE_LIBRARIES) \
  | $(BUILD)/include/libmango.h
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs fmt 2>/dev/null)
$(BUILD)/include/%.h: pcc/api/%.h
	@mkdir -p $(@D) && ln -sf $(abspath $<) $@

$(BUILD)/rdma/provider/%.o: rdma/provider/%.c $(STAMP)
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE $(PROVIDER_CFLAGS) -MMD -MP -c -o $@ $<
# One library for each private ABI of libibverbs; they differ in how they register. The library that
# they need is, when they are linked, one that has but the names.
PROVIDER_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/register.c %/stub.c,$(wildcard rdma/provider/*.c)))
define provider_rules
$(BUILD)/rdma/provider/$(1)/%.o: rdma/provider/%.c $(STAMP)
	@mkdir -p $$(@D)
	$(CC) -I. -D_GNU_SOURCE $(PROVIDER_CFLAGS) -DROCEFS_ABI=$(1) -MMD -MP -c -o $$@ $$<
$(BUILD)/rdma/provider/$(1)/libibverbs.so.1: $(BUILD)/rdma/provider/$(1)/stub.o
	@echo 'IBVERBS_PRIVATE_$(1) { *; };' > $$(@D)/stub.map
	$(CC) -shared -nostdlib -Wl,-soname,libibverbs.so.1,--version-script=$$(@D)/stub.map -o $$@ $$<
$(BUILD)/lib/librocefs-rdmav$(1).so: $(PROVIDER_OBJECTS) $(BUILD)/rdma/provider/$(1)/register.o $(BUILD)/rdma/provider/$(1)/libibverbs.so.1
	@mkdir -p $$(@D)
	$(CC) $(PROVIDER_LDFLAGS) -o $$@ $$^
endef
$(foreach abi,$(PROVIDER_ABIS),$(eval $(call provider_rules,$(abi))))

# libmango is loaded into other people's programs too. It exports what libmango.h declares, needs
# nothing that they may not have, and stays: threads of it may be running.
MANGO_CXXFLAGS := -std=c++20 -O2 -g -fPIC -pthread -fvisibility=hidden -fvisibility-inlines-hidden -DFMT_HEADER_ONLY -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
MANGO_LDFLAGS := -shared -pthread -Wl,-soname,libmango.so.1 -Wl,-z,defs -Wl,--version-script=pcc/api/libmango.map -Wl,-z,now,-z,nodelete
$(BUILD)/pic/%.o: %.cc $(STAMP)
	@mkdir -p $(@D)
	$(CXX) -I. $(MANGO_CXXFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/pic/%.o: $(BUILD)/%.cc $(STAMP)
	@mkdir -p $(@D)
	$(CXX) -I. $(MANGO_CXXFLAGS) $(SUBOBJECTS) -MMD -MP -c -o $@ $<
$(BUILD)/lib/libmango.so: $(patsubst $(BUILD)/%,$(BUILD)/pic/%,$(call objects,pcc/api) $(call objects,pcc/run)) $(BUILD)/pic/core/base/clock.o $(BUILD)/pic/core/base/kstrto.o pcc/api/libmango.map
	@mkdir -p $(@D)
	$(CXX) $(MANGO_LDFLAGS) -o $@ $(filter %.o,$^) -ldl
	ln -sfn libmango.so $@.1

# The header as a program in C sees it.
$(BUILD)/test/pcc/%.o: test/pcc/%.c $(STAMP)
	@mkdir -p $(@D)
	$(CC) -Ipcc/api -std=c11 -pedantic -O2 -g -Wall -Wextra -Werror -Wshadow -MMD -MP -c -o $@ $<
$(BUILD)/test/pcc_test: $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/pcc/*.c))
# Plugins that it loads find the functions of libmango.h in it.
$(BUILD)/test/pcc_test: LDFLAGS += -Wl,--export-dynamic-symbol='mango_*'

# A verbs program as any other: of the provider it knows nothing.
$(BUILD)/test/provider/%.o: test/provider/%.c $(STAMP)
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE $(PROVIDER_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/test/provider/verbs_test: $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/provider/*.c))
	$(CC) -pthread -o $@ $^ -libverbs

# An engine that lies, preloaded into a program that uses it.
$(BUILD)/test/lies/liar.so: $(wildcard test/lies/liar*) $(STAMP)
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE $(PROVIDER_CFLAGS) -fvisibility=default -shared -o $@ $(filter %.c,$^) -ldl
$(BUILD)/test/lies/program: test/lies/program.c $(STAMP)
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE $(PROVIDER_CFLAGS) -o $@ $< -libverbs

$(BUILD)/test/lies/pcc_program: test/lies/pcc_program.c $(BUILD)/lib/libmango.so $(STAMP)
	@mkdir -p $(@D)
	$(CC) -Ipcc/api -D_GNU_SOURCE $(PROVIDER_CFLAGS) -o $@ $< -L$(BUILD)/lib -lmango -Wl,-rpath,'$$ORIGIN/../../lib'

# Other versions of libibverbs: `FIRST-VERSION ABI GROWTH COUNT SPEED` (test/abi/fake_libibverbs.c).
define fake_rules
$(BUILD)/test/abi/$(1)/libibverbs.so.1: test/abi/fake_libibverbs.c $(STAMP)
	@mkdir -p $$(@D)
	@echo 'IBVERBS_PRIVATE_$(2) { *; };' > $$(@D)/map
	$(CC) -I. -D_GNU_SOURCE $(PROVIDER_CFLAGS) -DROCEFS_ABI=$(2) -DGROWTH=$(3) -DCOUNT=$(4) -DSPEED=$(5) \
	  -shared -Wl,-soname,libibverbs.so.1,--version-script=$$(@D)/map -o $$@ $$<
$(BUILD)/test/abi/open: | $(BUILD)/test/abi/$(1)/libibverbs.so.1
endef
$(eval $(call fake_rules,44,34,0,76,0))
$(eval $(call fake_rules,57,57,0,76,0))
$(eval $(call fake_rules,59,59,3,79,0))
$(eval $(call fake_rules,62,59,4,81,1))
$(eval $(call fake_rules,64,64,6,83,1))
$(BUILD)/test/abi/open: test/abi/open.c $(STAMP)
	$(CC) $(PROVIDER_CFLAGS) -o $@ $<

# Catch2 is read once: it would take half the time of most tests. And eight tests are compiled at a
# time, because what they include takes most of the rest; those alone that add to a namespace of the
# product's, and what is no test.
CATCH := $(BUILD)/test/catch.h
$(CATCH).gch: test/catch.h $(STAMP)
	@mkdir -p $(@D) && cp $< $(CATCH)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -O1 -x c++-header -o $@ $(CATCH)
ALONE := $(shell grep -l '^namespace rocefs' test/*/*_test.cc)
grouped = $(filter-out $(ALONE),$(wildcard test/$(1)/*_test.cc))
group = $(wordlist $(word $(2),1 9 17 25 33 41 49 57 65),$(word $(2),8 16 24 32 40 48 56 64 72),$(call grouped,$(1)))
groups = $(foreach n,1 2 3 4 5 6 7 8 9,$(if $(call group,$(1),$(n)),$(n)))
test_objects = $(patsubst %.cc,$(BUILD)/%.o,$(filter-out $(call grouped,$(1)),$(wildcard test/$(1)/*.cc))) \
  $(foreach n,$(call groups,$(1)),$(BUILD)/test/$(1)/group$(n).o)

define group_rules
$(BUILD)/test/$(1)/group$(2).cc: FORCE
	@mkdir -p $$(@D) && test/group $(call group,$(1),$(2)) >$$@.new
	@cmp -s $$@.new $$@ || cp $$@.new $$@
$(BUILD)/test/$(1)/group$(2).o: $(BUILD)/test/$(1)/group$(2).cc $(STAMP)
	$$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) -MMD -MP -c -o $$@ $$<
endef
FORCE:

define test_rules
$(call test_objects,$(1)): private CPPFLAGS += -include $(CATCH)
$(call test_objects,$(1)): $(CATCH).gch
$(foreach n,$(call groups,$(1)),$(eval $(call group_rules,$(1),$(n))))
$(BUILD)/test/$(1)_test: $(call test_objects,$(1)) $(BUILD)/test/main.o $$(TEST_LIBRARIES_$(1))
	@mkdir -p $$(@D)
	$$(CXX) $$(CXXFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
$(foreach test,$(TESTS),$(eval $(call test_rules,$(test))))

# What the tests of cards load; nobody else's flags, for they are to crash as others' would.
PLUGINS := $(patsubst %.cc,$(BUILD)/%.so,$(wildcard test/pcc/plugins/*.cc))
$(BUILD)/test/pcc/plugins/%.so: test/pcc/plugins/%.cc pcc/api/libmango.h
	@mkdir -p $(@D)
	$(CXX) -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -I. -Wall -Wextra -Werror -o $@ $<
$(BUILD)/test/pcc_test: | $(BUILD)/bin/mango-pccd $(PLUGINS)

$(BUILD)/test/rocefs_bench: $(call each,test/bench) $(call library,fs) $(PCC_LIBRARIES) $(MAD_LIBRARIES) $(RDMA_LIBRARIES)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Where libfabric-dev is installed. Its headers are named as ours.
LIBFABRIC := $(shell pkg-config --libs libfabric 2>/dev/null)
$(BUILD)/test/fi_write: test/bench/libfabric/fi_write.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o $@ $< $(LIBFABRIC)

# By libFuzzer, and by hand over the corpus.
$(BUILD)/test/fuzz/%_fuzz: $(BUILD)/test/fuzz/%.o $(PCC_LIBRARIES) $(MAD_LIBRARIES) $(RDMA_LIBRARIES)
	$(CXX) $(CXXFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(BUILD)/test/fuzz/replays.cc: FORCE
	@mkdir -p $(@D) && test/fuzz/replays $(FUZZ_TARGETS:%=test/fuzz/%.cc) >$@.new
	@cmp -s $@.new $@ || cp $@.new $@
$(BUILD)/test/fuzz/replays.o: $(BUILD)/test/fuzz/replays.cc $(STAMP)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/test/fuzz/replay: $(BUILD)/test/fuzz/replay.o $(BUILD)/test/fuzz/replays.o $(PCC_LIBRARIES) $(MAD_LIBRARIES) $(RDMA_LIBRARIES)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
