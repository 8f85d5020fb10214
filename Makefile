# rocefs: GNU make. `make help` lists the targets.
SHELL := /bin/bash
BUILD ?= build
ifeq ($(origin CXX),default)
CXX := g++
endif
# Of programs, packages and pages. Only core/version is compiled again when it changes.
VERSION := 0.1.0
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
UNITDIR ?= $(PREFIX)/lib/systemd/system
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
as_word = '$(subst ','\'',$(1))'
INSTALLATION = $(foreach name,DESTDIR PREFIX LIBDIR UNITDIR ZSHDIR VERSION,$(name)=$(call as_word,$($(name)))) tools/installation
CHAOS_MODE ?= asan
JOBS := $(shell nproc)
ifeq ($(shell echo __SIZEOF_POINTER__ | $(CXX) $(CXXFLAGS) -E -P -x c++ - 2>/dev/null),4)
$(error rocefs is for 64-bit machines, and `$(CXX) $(CXXFLAGS)' compiles for 32 bits)
endif
# A line for each step; V=1 shows the commands.
ifeq ($(V),)
MAKEFLAGS += --silent
endif
ifndef BEGUN
BEGUN := $(shell date +%s)
endif
export BEGUN
say = @printf '%4d s  %s\n' $$(($$(printf '%(%s)T' -1) - $(BEGUN))) '$(1)'

##@ Targets
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile
PROVIDER_ABIS := 34 57 59 64
PROVIDERS := $(PROVIDER_ABIS:%=$(BUILD)/lib/librocefs-rdmav%.so)
EXAMPLES := $(patsubst tools/examples/%.cc,$(BUILD)/examples/%.so,$(filter-out %/own_pollers.cc,$(wildcard tools/examples/*.cc)))
MANUAL := $(BUILD)/share/man/man1/mango-ctl.1
PAGES := $(wildcard doc/man/*.[0-9]) $(MANUAL)
HTML := $(foreach page,$(PAGES),$(BUILD)/share/doc/rocefs/html/$(notdir $(page)).html)
all: $(BUILD)/bin/rocefs $(BUILD)/bin/rocefs-view $(BUILD)/bin/rocefs-top $(BUILD)/bin/mango-pccd $(BUILD)/bin/mango-ctl $(MANUAL) $(PROVIDERS) $(BUILD)/lib/libmango.so $(EXAMPLES) ## build everything into build/ (the default)
demo: packages ## mount, send a real file over a lossy link, prove that it arrived
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=quick BUILD=$(BUILD)/quick $(BUILD)/quick/bin/rocefs
	@tools/demo $(BUILD)/quick/bin/rocefs
	@printf 'from the checkout to here: %d s\n' $$(($$(printf '%(%s)T' -1) - $(BEGUN)))
test: packages ## build and run all tests; ends with `N passed, N failed`
	@$(MAKE) --no-print-directory -s -j$(JOBS) all tests
	@test/run $(BUILD)
html: packages ## the manual pages as HTML, in build/share/doc/rocefs/html
	@$(MAKE) --no-print-directory -s -j$(JOBS) $(HTML)
bench: packages ## measure, each figure beside its reference; BENCH=NAME for one of them
	@$(MAKE) --no-print-directory -s -j$(JOBS) all $(BUILD)/test/rocefs_bench $(BUILD)/test/both_ends $(if $(LIBFABRIC),$(BUILD)/test/fi_write)
	@$(BUILD)/test/rocefs_bench $(BENCH)
fuzz: ## run every fuzz target for FUZZ_SECONDS (20) on top of its corpus, under sanitizers
	@tools/install-packages fuzz
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=fuzz CXX=clang++-14 BUILD=$(BUILD)/fuzz fuzzers
	@test/fuzz/run $(BUILD)/fuzz $(FUZZ_SECONDS)
mutations: packages ## delete each counter's increment in turn: which test notices?
	@test/mutations/counters
pyverbs: ## rdma-core's own tests of libibverbs and librdmacm: PYVERBS_TESTS=DIR, its folder tests/; RDMA_CORE=DIR, a build tree of it
	@tools/install-packages pyverbs
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@test/programs/pyverbs $(BUILD) host $(PYVERBS_TESTS) $(RDMA_CORE)
	@test/programs/pyverbs $(BUILD) enter $(PYVERBS_TESTS) $(RDMA_CORE)
unit-test: ## rdma-unit-test, Google's tests of libibverbs: RDMA_UNIT_TEST=DIR, where its program unit_test was built
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@test/programs/unit-test $(BUILD) $(RDMA_UNIT_TEST)
fabtests: ## libfabric's own tests of its verbs provider: FABTESTS=DIR, where they are built; FABTESTS_NAMES="NAME…" runs some
	@tools/install-packages fabtests
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@test/programs/fabtests $(BUILD) $(FABTESTS) $(FABTESTS_NAMES)
programs: ## programs of others as Debian ships them: UCX, MPI, libfabric, fio, qperf, rsockets, QEMU; PROGRAMS="NAME…" runs some
	@tools/install-packages programs
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@test/programs/programs $(BUILD) $(PROGRAMS)
browser: packages ## the tests that need Chromium or Prometheus: rocefs view, reports; screenshots in build/test/view
	@tools/install-packages browser
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@test/run $(BUILD) view metrics sim_report
reference: all ## write tools/reference.md, the page of all files of the tree
	@tools/print-reference $(BUILD)/bin/rocefs > tools/reference.md
check: ## format, rooms, sizes, comments, forbidden calls
	@test/house/check
asan: packages ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=asan BUILD=$(BUILD)/asan all tests
	@ROCEFS_TEST_LIMIT=1800 test/run $(BUILD)/asan
tsan: packages ## the tests under ThreadSanitizer
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=tsan BUILD=$(BUILD)/tsan all tests
	@ROCEFS_TEST_LIMIT=1800 test/run $(BUILD)/tsan
chaos: packages ## programs, faults and killed workers at one mount for CHAOS_SECONDS (600); CHAOS_MODE=asan, tsan or release, CHAOS_SEED
	@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=$(CHAOS_MODE) BUILD=$(BUILD)/$(CHAOS_MODE) all
	@CHAOS_SECONDS=$(or $(CHAOS_SECONDS),600) test/chaos/run $(BUILD)/$(CHAOS_MODE)
install: all ## install into PREFIX (/usr/local), below DESTDIR
	@$(INSTALLATION) install $(BUILD)
uninstall: ## remove what `make install` has put into PREFIX
	@$(INSTALLATION) remove
deb: ## Debian packages, in build/deb
	@tools/install-packages deb
	@tools/make-deb $(BUILD)/deb
deb-test: deb ## install them in a fresh Debian, run the README's tour and the CI recipes, remove them
	@tools/install-packages deb-test
	@test/packages/run $(BUILD)/deb
	@test/packages/recipes $(BUILD)/deb
deb-same: deb ## build them once more, elsewhere and later, and compare each octet
	@test/packages/same $(BUILD)/deb
image-test: ## build the container image by Podman, run it by runc: alone, two on one wire, as the containers of a pod
	@tools/install-packages image-test
	@mkdir -p $(BUILD)/image
	@test/packages/image $(BUILD)/image
aarch64: packages ## cross-build for aarch64; the unit tests under qemu-user
	@tools/install-packages aarch64
	@tools/cross-root arm64 $(BUILD)/aarch64/root
	@$(CROSS) $(MAKE) --no-print-directory -s -j$(JOBS) BUILD=$(BUILD)/aarch64 LTO_release= $(CROSS_TOOLS) EMULATOR="$(EMULATOR_aarch64)" all unit-tests
	@CXX='aarch64-linux-gnu-g++ --sysroot=$(ROOT)' test/emulated $(BUILD)/aarch64 $(firstword $(EMULATOR_aarch64)) $(ROOT)
clean: ## remove build/
	rm -rf $(BUILD)
packages: ## install the Debian packages that are missing
	@tools/install-packages
.PHONY: help all demo test html bench fuzz fuzzers mutations pyverbs unit-test fabtests programs browser reference check asan tsan chaos install uninstall deb deb-test deb-same image-test aarch64 clean packages tests unit-tests
.DEFAULT_GOAL := all

# A build for another machine: its packages are unpacked below ROOT, and its programs run by an emulator.
ROOT = $(abspath $(BUILD))/aarch64/root
CROSS = PKG_CONFIG_SYSROOT_DIR='$(ROOT)' PKG_CONFIG_LIBDIR='$(ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(ROOT)/usr/share/pkgconfig'
CROSS_TOOLS = CXX='$(CCACHE) aarch64-linux-gnu-g++ --sysroot=$(ROOT)' CC='$(CCACHE) aarch64-linux-gnu-gcc --sysroot=$(ROOT)'
EMULATOR_aarch64 = qemu-aarch64-static -L $(ROOT)
EMULATOR ?=

# What is built how.
MODE ?= release
PACKAGES := fuse3 liburing fmt inih libisal
# Flags of a packager; libraries for other people's programs have them and none of ours.
GIVEN_CPPFLAGS := $(CPPFLAGS)
GIVEN_CXXFLAGS := $(CXXFLAGS)
GIVEN_LDFLAGS := $(LDFLAGS)
CPPFLAGS += -I. -DFUSE_USE_VERSION=312 $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
CXXFLAGS += -std=c++20 -g1 -pthread -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
LDLIBS += $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -pthread
FLAGS_release := -O2
# Compiled soon, for a first look: no warnings, which the plain build has, and no collector of
# garbage below 1 GB of memory, which takes a tenth.
FLAGS_quick := -O0 -g0 -w $(if $(findstring clang,$(CXX)),,--param ggc-min-heapsize=1000000)
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
PROVIDER_CFLAGS := $(GIVEN_CPPFLAGS) $(CFLAGS) -std=gnu11 -O2 -g -fPIC -pthread -fvisibility=hidden -Wall -Wextra -Werror -Wshadow
PROVIDER_LDFLAGS := $(GIVEN_LDFLAGS) -shared -pthread -Wl,-z,defs,-z,now,-z,nodelete

# The rooms, lowest first, and what each may include, from test/house/rooms. NEED_room: that room and
# all rooms that it reaches.
$(shell mkdir -p $(BUILD); sed -n 's/^\([a-z][^:]*\): *\(.*\)/ROOMS += \1\nNEED_\1 := $$(sort \1 $$(foreach room,\2,$$(NEED_$$(room))))/p' test/house/rooms >$(BUILD)/rooms.mk)
ROOMS :=
include $(BUILD)/rooms.mk

# What programs say of this build. No other unit knows it.
VERSION_STAMP := $(BUILD)/version
comma := ,
null :=
space := $(null) $(null)
LIBRARY_VERSIONS = $(foreach package,$(PACKAGES),$(package) $(shell pkg-config --modversion $(package) 2>/dev/null)|)
VERSION_FLAGS := -DROCEFS_VERSION='"$(VERSION)"' -DROCEFS_PROVIDER_ABIS='"$(PROVIDER_ABIS)"' \
  -DROCEFS_LIBRARIES='"$(subst |,,$(subst | ,$(comma) ,$(strip $(LIBRARY_VERSIONS))))"'
VERSION_NOW := $(subst ',,$(subst ",,$(VERSION_FLAGS)))
$(shell [ "$$(cat $(VERSION_STAMP) 2>/dev/null)" = '$(VERSION_NOW)' ] || echo '$(VERSION_NOW)' > $(VERSION_STAMP))

# The files of a room are one unit of compilation: reading what they include takes two thirds of a
# file's time. Names of unnamed namespaces are therefore unique in a room. A program's main.cc stands
# alone, so that tests can be linked with the rest.
in_unit = $(filter-out %/main.cc,$(wildcard $(1)/*.cc))
objects = $(foreach room,$(1),$(if $(call in_unit,$(room)),$(BUILD)/$(room)/unit.o) $(patsubst %.cc,$(BUILD)/%.o,$(wildcard $(room)/main.cc)))

# One library per room, but for those of programs, and of C.
LIBRARY_ROOMS := $(filter-out tools/% rdma/provider rdma/uapi,$(ROOMS))
library = $(BUILD)/lib/$(subst /,_,$(1)).a
highest_first = $(if $(1),$(call highest_first,$(wordlist 2,999,$(1))) $(firstword $(1)))
# The libraries that files of these rooms are linked with, in the linker's order.
libraries = $(foreach room,$(call highest_first,$(filter $(foreach one,$(1),$(NEED_$(one))),$(LIBRARY_ROOMS))),$(call library,$(room)))
PACKET_ROOMS := core/loop rdma/wire rdma/packet rdma/cc rdma/transport rdma/fabric rdma/uplink rdma/nic rdma/network

# One test program per layer, which is linked with what the layer may include. Wire, client and cm, rooms
# of rdma, have programs of their own.
TESTS := core wire rdma client cm pcc mad_cc fs tools
NEEDED_BY_core := $(filter core/%,$(ROOMS))
NEEDED_BY_wire := rdma/wire core/config
NEEDED_BY_rdma := $(filter rdma/%,$(ROOMS))
NEEDED_BY_client := $(NEEDED_BY_rdma)
NEEDED_BY_cm := $(NEEDED_BY_rdma)
NEEDED_BY_pcc := $(filter pcc/%,$(ROOMS)) $(NEEDED_BY_rdma)
NEEDED_BY_mad_cc := $(filter mad_cc/%,$(ROOMS)) core/config
NEEDED_BY_fs := fs
NEEDED_BY_tools := tools/page tools/picture tools/watch tools/rocefs-top tools/rocefs-view $(filter tools/rocefs tools/rocefs/%,$(ROOMS))
FUZZ_TARGETS := $(filter-out replay,$(patsubst test/fuzz/%.cc,%,$(wildcard test/fuzz/*.cc)))
fuzzers: $(FUZZ_TARGETS:%=$(BUILD)/test/fuzz/%_fuzz)
unit-tests: $(TESTS:%=$(BUILD)/test/%_test)
tests: unit-tests
tests: $(HTML) $(BUILD)/test/fuzz/replay $(BUILD)/test/provider/verbs_test $(BUILD)/test/abi/open $(addprefix $(BUILD)/test/lies/,liar.so program pcc_program)

.SECONDEXPANSION:
# Other flags or another compiler: everything is built anew.
STAMP := $(BUILD)/flags
FLAGS_NOW := $(CXX) $(CPPFLAGS) $(CXXFLAGS) $(LTO) $(PACKET_ROOMS) $(LDLIBS) $(CC) $(PROVIDER_CFLAGS) $(LTO_PATHS)
$(shell mkdir -p $(BUILD); [ "$$(cat $(STAMP) 2>/dev/null)" = '$(FLAGS_NOW)' ] || echo '$(FLAGS_NOW)' > $(STAMP))

$(BUILD)/%.o: %.cc $(STAMP)
	$(call say,$*)
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

define unit_rules
$(BUILD)/$(1)/unit.cc: FORCE
	@mkdir -p $$(@D) && printf '#include "%s"\n' $(call in_unit,$(1)) >$$@.new
	@cmp -s $$@.new $$@ || cp $$@.new $$@
$(BUILD)/$(1)/unit.o: $(BUILD)/$(1)/unit.cc $(STAMP)
	$$(call say,$(1))
	$$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) $$(SUBOBJECTS) -MMD -MP -c -o $$@ $$<
endef
# To the compiler they are headers, whose own types nobody's should be made of.
SUBOBJECTS := $(if $(findstring clang,$(CXX)),,-Wno-subobject-linkage)
$(foreach room,$(ROOMS),$(eval $(call unit_rules,$(room))))
$(BUILD)/core/version/unit.o: private CPPFLAGS += $(VERSION_FLAGS)
$(BUILD)/core/version/unit.o: $(VERSION_STAMP)

# Lines are enough to find a place by (-g1): descriptions of types take a quarter of the time. What
# reads command lines is all templates, and in no hurry; so are tests, but for those that measure.
$(BUILD)/test/%.o $(BUILD)/tools/mango-ctl/%.o: CXXFLAGS += -O1
$(BUILD)/test/bench/%.o: CXXFLAGS += -O2
BENCH_OBJECTS := $(patsubst %.cc,$(BUILD)/%.o,$(wildcard test/bench/*.cc))

ifneq ($(LTO),)
LDFLAGS += -fno-lto
# The compiler would number what it passes on by chance, and two builds would differ.
$(call objects,$(PACKET_ROOMS)) $(BENCH_OBJECTS): private CXXFLAGS += $(LTO) -ffat-lto-objects -frandom-seed=$@
# Of a packager: g++ 12 passes the build's directory on to the linker beside each relative path.
LTO_PATHS ?=
$(call objects,$(PACKET_ROOMS)) $(BENCH_OBJECTS): private CPPFLAGS += $(LTO_PATHS)
$(BUILD)/bin/rocefs $(BUILD)/test/rocefs_bench: private LDFLAGS := $(filter-out -fno-lto,$(LDFLAGS)) $(LTO) -frandom-seed=rocefs
endif

define library_rules
$(call library,$(1)): $(call objects,$(1))
	@mkdir -p $$(@D) && rm -f $$@
	$(AR) rcs $$@ $$^
endef
$(foreach room,$(LIBRARY_ROOMS),$(eval $(call library_rules,$(room))))

ROCEFS_ROOMS := tools/page tools/picture $(filter tools/rocefs tools/rocefs/%,$(ROOMS))
$(BUILD)/bin/rocefs: $(call objects,$(ROCEFS_ROOMS)) $(call libraries,$(ROCEFS_ROOMS))
	$(call say,$(@F))
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# A client of the files, in a terminal.
CURSES := $(shell pkg-config --libs ncursesw 2>/dev/null)
$(BUILD)/bin/rocefs-top: $(call objects,tools/rocefs-top tools/picture tools/watch) $(call libraries,tools/rocefs-top)
	$(call say,$(@F))
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(CURSES) $(shell pkg-config --libs fmt inih 2>/dev/null)

# Plugins find the functions of libmango.h in it, whether it calls them itself or not.
$(BUILD)/bin/mango-pccd: $(call objects,tools/mango-pccd) $(call libraries,tools/mango-pccd)
	$(call say,$(@F))
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -Wl,--export-dynamic-symbol='mango_*',--export-dynamic-symbol='rocefs_pcc_*' -o $@ $(filter %.o,$^) \
	  -Wl,--whole-archive $(call library,pcc/run) -Wl,--no-whole-archive $(filter-out $(call library,pcc/run),$(filter %.a,$^)) $(LDLIBS)

# A client of the files. The headers that it builds plugins with stand beside the programs, here as
# where they are installed.
$(BUILD)/bin/mango-ctl: $(call objects,tools/mango-ctl) $(call libraries,tools/mango-ctl) | $(BUILD)/include/libmango.h $(BUILD)/include/rocefs_pcc.h $(BUILD)/include/rocefs_pcc_test.h
	$(call say,$(@F))
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs fmt 2>/dev/null)
# The commands of its manual page come from its table.
$(MANUAL): tools/mango-ctl/mango-ctl.1.in $(BUILD)/bin/mango-ctl
	@mkdir -p $(@D)
	$(EMULATOR) $(BUILD)/bin/mango-ctl --print-manual >$(BUILD)/tools/mango-ctl/commands.roff
	sed -e '/^@COMMANDS@$$/{r $(BUILD)/tools/mango-ctl/commands.roff' -e 'd;}' $< >$@
# The page is part of the programs that show or write it.
$(BUILD)/tools/page/unit.o: $(wildcard tools/page/*.js tools/page/*.css tools/page/*.html)
$(BUILD)/bin/rocefs-view: $(call objects,tools/page tools/picture tools/watch tools/rocefs-view) $(call libraries,tools/rocefs-view)
	$(call say,$(@F))
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs cpp-httplib fmt inih 2>/dev/null)
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
MANGO_CXXFLAGS := $(GIVEN_CPPFLAGS) $(GIVEN_CXXFLAGS) -std=c++20 -O2 -g -fPIC -pthread -fvisibility=hidden -fvisibility-inlines-hidden -DFMT_HEADER_ONLY -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
MANGO_LDFLAGS := $(GIVEN_LDFLAGS) -shared -pthread -Wl,-soname,libmango.so.1 -Wl,-z,defs -Wl,--version-script=pcc/api/libmango.map -Wl,-z,now,-z,nodelete
$(BUILD)/pic/%.o: %.cc $(STAMP)
	@mkdir -p $(@D)
	$(CXX) -I. $(MANGO_CXXFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/pic/%.o: $(BUILD)/%.cc $(STAMP)
	@mkdir -p $(@D)
	$(CXX) -I. $(MANGO_CXXFLAGS) $(SUBOBJECTS) -MMD -MP -c -o $@ $<
$(BUILD)/lib/libmango.so: $(patsubst $(BUILD)/%,$(BUILD)/pic/%,$(call objects,pcc/api pcc/run)) $(BUILD)/pic/core/base/clock.o $(BUILD)/pic/core/base/kstrto.o pcc/api/libmango.map
	@mkdir -p $(@D)
	$(CXX) $(MANGO_LDFLAGS) -o $@ $(filter %.o,$^) -ldl
	ln -sfn libmango.so $@.1

# Plugins of the scenarios, built as cross-build does.
$(BUILD)/examples/%.so: tools/examples/%.cc pcc/api/libmango.h pcc/api/rocefs_pcc.h
	@mkdir -p $(@D)
	$(CXX) $(GIVEN_CPPFLAGS) $(GIVEN_CXXFLAGS) -std=c++20 -O2 -g -Wall -Wextra -Werror -shared -fPIC -Ipcc/api $(GIVEN_LDFLAGS) -o $@ $<

# References to other pages of ours become links.
PAGE_NAMES := $(subst $(space),|,$(basename $(notdir $(PAGES))))
TO_HTML = @mkdir -p $(@D) && sed 's/@VERSION@/$(VERSION)/' $< | mandoc -T html | sed -E 's@<b>($(PAGE_NAMES))</b>\(([1-9])\)@<a href="\1.\2.html">&</a>@g' >$@
$(BUILD)/share/doc/rocefs/html/%.html: doc/man/%
	$(TO_HTML)
$(BUILD)/share/doc/rocefs/html/%.html: $(BUILD)/share/man/man1/%
	$(TO_HTML)

# The header as a program in C sees it.
$(BUILD)/test/pcc/%.o: test/pcc/%.c $(STAMP)
	@mkdir -p $(@D)
	$(CC) -Ipcc/api -std=c11 -pedantic -O2 -g -Wall -Wextra -Werror -Wshadow -MMD -MP -c -o $@ $<
$(BUILD)/test/pcc_test: $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/pcc/*.c))
# Plugins that it loads find the functions of libmango.h in it.
$(BUILD)/test/pcc_test: LDFLAGS += -Wl,--export-dynamic-symbol='mango_*',--export-dynamic-symbol='rocefs_pcc_*'

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

# Catch2 is read once: it would take half the time of most tests. The tests of a folder are one unit,
# because what they include takes most of the rest: test/group gives each a namespace of its own. Alone
# stands what adds to a namespace of the product's, and what is no test.
CATCH := $(BUILD)/test/catch.h
$(CATCH).gch: test/catch.h $(STAMP)
	@mkdir -p $(@D) && cp $< $(CATCH)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -O1 -x c++-header -o $@ $(CATCH)
ALONE := $(shell grep -lr --include='*_test.cc' '^namespace rocefs' test)
# A program's folders: its own and those below, but for another program's.
TEST_FOLDERS := $(patsubst %/,%,$(sort $(dir $(wildcard test/*/*_test.cc test/*/*/*_test.cc))))
test_root = $(firstword $(wildcard test/rdma/$(1)) test/$(1))
test_roots := $(foreach test,$(TESTS),$(call test_root,$(test)))
test_folders = $(filter $(call test_root,$(1)) $(filter-out $(test_roots),$(filter $(call test_root,$(1))/%,$(TEST_FOLDERS))),$(TEST_FOLDERS))
grouped = $(filter-out $(ALONE),$(wildcard $(1)/*_test.cc))
folder_objects = $(patsubst %.cc,$(BUILD)/%.o,$(filter-out $(call grouped,$(1)),$(wildcard $(1)/*.cc))) \
  $(if $(call grouped,$(1)),$(BUILD)/$(1)/group.o)
test_objects = $(foreach folder,$(call test_folders,$(1)),$(call folder_objects,$(folder)))

define group_rules
$(BUILD)/$(1)/group.cc: FORCE
	@mkdir -p $$(@D) && test/group $(call grouped,$(1)) >$$@.new
	@cmp -s $$@.new $$@ || cp $$@.new $$@
$(BUILD)/$(1)/group.o: $(BUILD)/$(1)/group.cc $(STAMP)
	$$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach folder,$(TEST_FOLDERS),$(eval $(call group_rules,$(folder))))
FORCE:

define test_rules
$(call test_objects,$(1)): private CPPFLAGS += -include $(CATCH)
$(call test_objects,$(1)): $(CATCH).gch
$(BUILD)/test/$(1)_test: $(call test_objects,$(1)) $(call libraries,$(NEEDED_BY_$(1)))
	@mkdir -p $$(@D)
	$$(CXX) $$(CXXFLAGS) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) $$(filter %.a,$$^) -lCatch2WithMain $$(LDLIBS)
endef
$(foreach test,$(TESTS),$(eval $(call test_rules,$(test))))
$(BUILD)/test/tools_test: $(filter-out %/main.o,$(call objects,$(ROCEFS_ROOMS) tools/watch tools/rocefs-top tools/rocefs-view))
$(BUILD)/test/tools_test: private LDLIBS += $(CURSES) $(shell pkg-config --libs cpp-httplib 2>/dev/null)

# What the tests of cards load; nobody else's flags, for they are to crash as others' would.
PLUGINS := $(patsubst %.cc,$(BUILD)/%.so,$(wildcard test/pcc/plugins/*.cc))
$(BUILD)/test/pcc/plugins/%.so: test/pcc/plugins/%.cc pcc/api/libmango.h
	@mkdir -p $(@D)
	$(CXX) -std=c++20 -O1 -fPIC -shared -fvisibility=hidden -I. -Wall -Wextra -Werror -o $@ $<
$(BUILD)/test/pcc_test: | $(BUILD)/bin/mango-pccd $(PLUGINS)

$(BUILD)/test/rocefs_bench: $(BENCH_OBJECTS) $(call libraries,$(LIBRARY_ROOMS))
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/test/both_ends: test/bench/verbs/both_ends.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o $@ $< -libverbs

# Where libfabric-dev is installed. Its headers are named as ours.
LIBFABRIC := $(shell pkg-config --libs libfabric 2>/dev/null)
$(BUILD)/test/fi_write: test/bench/libfabric/fi_write.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o $@ $< $(LIBFABRIC)

# By libFuzzer, and by hand over the corpus. A parser of a program's room is linked as it is.
FUZZED_OBJECTS := $(call objects,tools/picture tools/rocefs/netlink)
$(BUILD)/test/fuzz/%_fuzz: $(BUILD)/test/fuzz/%.o $(FUZZED_OBJECTS) $(call libraries,$(LIBRARY_ROOMS))
	$(CXX) $(CXXFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(BUILD)/test/fuzz/replays.cc: FORCE
	@mkdir -p $(@D) && test/fuzz/replays $(FUZZ_TARGETS:%=test/fuzz/%.cc) >$@.new
	@cmp -s $@.new $@ || cp $@.new $@
$(BUILD)/test/fuzz/replays.o: $(BUILD)/test/fuzz/replays.cc $(STAMP)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/test/fuzz/replay: $(BUILD)/test/fuzz/replay.o $(BUILD)/test/fuzz/replays.o $(FUZZED_OBJECTS) $(call libraries,$(LIBRARY_ROOMS))
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Not those of other builds.
-include $(shell find $(BUILD) $(foreach other,aarch64 asan deb fuzz image package quick release root tsan,-path $(BUILD)/$(other) -prune -o) -name '*.d' -type f -print 2>/dev/null)
