# rocefs: GNU make. `make help` lists the targets.
SHELL := /bin/bash
BUILD ?= build
CXX ?= g++
ifeq ($(origin CXX),default)
CXX := g++
endif
MODE ?= release

PACKAGES := fuse3 liburing fmt inih libisal
CPPFLAGS += -I. -DFUSE_USE_VERSION=312 $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
CXXFLAGS += -std=c++20 -g -pthread -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor
LDLIBS += $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -pthread

ifeq ($(MODE),release)
CXXFLAGS += -O2
else ifeq ($(MODE),asan)
CXXFLAGS += -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else ifeq ($(MODE),tsan)
CXXFLAGS += -O1 -fsanitize=thread -fno-omit-frame-pointer
endif

LAYERS := core rdma/wire rdma fs
lib = $(BUILD)/lib$(subst /,_,$(1)).a
objects = $(patsubst %.cc,$(BUILD)/%.o,$(wildcard $(1)/*.cc))

all: $(BUILD)/bin/rocefs
.PHONY: all
.SECONDEXPANSION:

$(BUILD)/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

define layer
$(call lib,$(1)): $$(call objects,$(1))
	@rm -f $$@
	$(AR) rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer,$(l))))

RDMA_LIBS := $(call lib,rdma) $(call lib,rdma/wire) $(call lib,core)

$(BUILD)/bin/rocefs: $(call objects,tools/rocefs) $(call lib,fs) $(RDMA_LIBS)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# One test program per layer, so that each links only what it may include.
TEST_LIBS_core := $(call lib,core)
TEST_LIBS_wire := $(call lib,rdma/wire) $(call lib,core)
TEST_LIBS_rdma := $(RDMA_LIBS)
TEST_LIBS_fs := $(call lib,fs) $(call lib,core)
define test_program
$(BUILD)/test/$(1)_test: $$(call objects,test/$(1)) $(BUILD)/test/main.o $$(TEST_LIBS_$(1))
	@mkdir -p $$(@D)
	$$(CXX) $$(CXXFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
TESTS := core wire rdma fs
$(foreach t,$(TESTS),$(eval $(call test_program,$(t))))

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
