# SPDX-License-Identifier: MIT
#
# make help says what there is. A new source file is one line in its room's
# list below, in alphabetical order.

# ---- sources, one list for each room ----------------------------------------

BASE :=
BASE += backend/base/buf.c
BASE += backend/base/clock.c
BASE += backend/base/heap.c
BASE += backend/base/log.c
BASE += backend/base/loop.c

WIRE :=
WIRE += backend/wire/account.c
WIRE += backend/wire/account_conn.c
WIRE += backend/wire/account_creds.c
WIRE += backend/wire/account_expiry.c
WIRE += backend/wire/account_file.c
WIRE += backend/wire/account_prepare.c
WIRE += backend/wire/encode.c
WIRE += backend/wire/http.c
WIRE += backend/wire/http_answer.c
WIRE += backend/wire/http_try.c
WIRE += backend/wire/sign.c
WIRE += backend/wire/sign_date.c
WIRE += backend/wire/sign_sas.c
WIRE += backend/wire/token.c
WIRE += backend/wire/token_ask.c

DRIVERS :=
DRIVERS += backend/drivers/azure_body.c
DRIVERS += backend/drivers/azure_call.c
DRIVERS += backend/drivers/azure_dead.c
DRIVERS += backend/drivers/azure_error.c
DRIVERS += backend/drivers/azure_hunt.c
DRIVERS += backend/drivers/azure_move.c
DRIVERS += backend/drivers/azure_queue.c
DRIVERS += backend/drivers/azure_receive.c
DRIVERS += backend/drivers/azure_settle.c
DRIVERS += backend/drivers/azure_source.c
DRIVERS += backend/drivers/azure_xml.c
DRIVERS += backend/drivers/driver.c
DRIVERS += backend/drivers/registry.c
DRIVERS += backend/drivers/relay.c
DRIVERS += backend/drivers/relay_keep.c
DRIVERS += backend/drivers/relay_settle.c
DRIVERS += backend/drivers/relay_state.c
DRIVERS += backend/drivers/sqlite.c
DRIVERS += backend/drivers/sqlite_db.c
DRIVERS += backend/drivers/sqlite_file.c
DRIVERS += backend/drivers/sqlite_keep.c
DRIVERS += backend/drivers/sqlite_load.c
DRIVERS += backend/drivers/sqlite_mount.c
DRIVERS += backend/drivers/sqlite_ops.c
DRIVERS += backend/drivers/sqlite_schema.c
DRIVERS += backend/drivers/sqlite_settle.c
DRIVERS += backend/drivers/sqlite_wal.c
DRIVERS += backend/drivers/sqlite_watch.c
DRIVERS += backend/drivers/sqlite_worker.c

ENGINE :=
ENGINE += backend/engine/backoff.c
ENGINE += backend/engine/barrier.c
ENGINE += backend/engine/budget.c
ENGINE += backend/engine/claim.c
ENGINE += backend/engine/claim_record.c
ENGINE += backend/engine/dead.c
ENGINE += backend/engine/depth.c
ENGINE += backend/engine/draft.c
ENGINE += backend/engine/draft_name.c
ENGINE += backend/engine/ending.c
ENGINE += backend/engine/engine.c
ENGINE += backend/engine/errors.c
ENGINE += backend/engine/far.c
ENGINE += backend/engine/handling.c
ENGINE += backend/engine/histogram.c
ENGINE += backend/engine/idle.c
ENGINE += backend/engine/lease.c
ENGINE += backend/engine/ledger.c
ENGINE += backend/engine/message.c
ENGINE += backend/engine/outage.c
ENGINE += backend/engine/outbox.c
ENGINE += backend/engine/owner.c
ENGINE += backend/engine/peers.c
ENGINE += backend/engine/patience.c
ENGINE += backend/engine/poller.c
ENGINE += backend/engine/procfs.c
ENGINE += backend/engine/procs.c
ENGINE += backend/engine/run_end.c
ENGINE += backend/engine/sending.c
ENGINE += backend/engine/sent.c
ENGINE += backend/engine/share.c
ENGINE += backend/engine/store.c
ENGINE += backend/engine/window.c

# The part of fs/ that includes no FUSE header: unit tests link it.
LIBFS :=
LIBFS += fs/config.c
LIBFS += fs/config_args.c
LIBFS += fs/control.c
LIBFS += fs/name.c
LIBFS += fs/opt.c
LIBFS += fs/policy.c
LIBFS += fs/run.c
LIBFS += fs/run_args.c
LIBFS += fs/run_child.c
LIBFS += fs/run_guard.c
LIBFS += fs/run_show.c
LIBFS += fs/run_work.c

# The rest of fs/, without the announcer.
FS :=
FS += fs/announce.c
FS += fs/background.c
FS += fs/change.c
FS += fs/control_file.c
FS += fs/dir.c
FS += fs/entry.c
FS += fs/main.c
FS += fs/mount.c
FS += fs/next.c
FS += fs/node.c
FS += fs/ops.c
FS += fs/read.c
FS += fs/write.c
FS += fs/xattr.c

# A program of its own.
ANNOUNCER := fs/announcer.c

# ---- settings ---------------------------------------------------------------

VERSION := 0.1.0

CC ?= cc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
DESTDIR ?=
# SAN=address,undefined builds with sanitizers, beside the ordinary build.
SAN ?=
# WERROR=1 makes warnings errors.
WERROR ?=
# The test rings to run.
RINGS ?= unit fuzz contract fs fs-azure faults
# Where `make run` puts its queue and its mount.
DEMO ?= $(HOME)/spoolfs-demo

PKG_CONFIG ?= pkg-config
PKGS := sqlite3 libcjson libcurl libcrypto expat
PKGS_FUSE := fuse3

comma := ,
BUILD := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
LIBEXECDIR := $(PREFIX)/libexec/spoolfs

# Foreign headers are system headers: their warnings are not ours to mend.
pkg_cflags = $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null))
pkg_libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
PKG_CFLAGS := $(call pkg_cflags,$(PKGS) $(PKGS_FUSE))
PKG_LIBS := $(call pkg_libs,$(PKGS))
PKG_LIBS_FUSE := $(call pkg_libs,$(PKGS_FUSE))

SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)
ALL_CPPFLAGS := -D_GNU_SOURCE -DSPOOLFS_VERSION='"$(VERSION)"' \
	-DSPOOLFS_LIBEXECDIR='"$(LIBEXECDIR)"' -I. $(PKG_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu17 -Wall -Wextra -Wshadow -Wconversion -pthread \
	$(SAN_FLAGS) $(CFLAGS)
ALL_LDFLAGS := -pthread $(SAN_FLAGS) $(LDFLAGS)
COMPILE = $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS)

# ---- products ---------------------------------------------------------------

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(sort $(1)))

LIB_SRCS := $(BASE) $(WIRE) $(DRIVERS) $(ENGINE) $(LIBFS)
LIB_OBJS := $(call objects,$(LIB_SRCS))
FS_OBJS := $(call objects,$(FS))
ANNOUNCER_OBJS := $(call objects,$(ANNOUNCER))

# A program that has no sources yet is not built.
PROGRAMS := $(if $(FS),$(BUILD)/spoolfs) \
	$(if $(ANNOUNCER),$(BUILD)/spoolfs-announcer)

# Tests are found by name, never registered. A source with a header of its own
# is no program but what the programs of its folder share.
TEST_SRCS := $(sort $(wildcard tests/unit/*.c tests/contract/*.c))
TEST_SHARED := $(filter $(TEST_SRCS),\
	$(patsubst %.h,%.c,$(wildcard tests/unit/*.h tests/contract/*.h)))
TEST_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(TEST_SHARED),$(TEST_SRCS)))
TEST_OBJS := $(call objects,$(TEST_SRCS))

# Fuzz targets: each on its own, with what looks for inputs: libFuzzer, or the
# few that fuzz.c makes of the seeds.
FUZZER := $(findstring fuzzer,$(SAN))
FUZZ_SRCS := $(sort $(wildcard tests/fuzz/*.c))
FUZZ_SHARED := $(filter $(FUZZ_SRCS),$(patsubst %.h,%.c,$(wildcard tests/fuzz/*.h)))
FUZZ_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(FUZZ_SHARED),$(FUZZ_SRCS)))
FUZZ_OBJS := $(call objects,$(FUZZ_SRCS))

# What measures spoolfs contains nothing of it.
BENCH_SRCS := $(sort $(wildcard tests/bench/*.c))
BENCH_SHARED := $(filter $(BENCH_SRCS),$(patsubst %.h,%.c,$(wildcard tests/bench/*.h)))
BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(BENCH_SHARED),$(BENCH_SRCS)))
BENCH_OBJS := $(call objects,$(BENCH_SRCS))

ALL_OBJS := $(LIB_OBJS) $(FS_OBJS) $(ANNOUNCER_OBJS) $(TEST_OBJS) $(FUZZ_OBJS) \
	$(BENCH_OBJS)

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all run test check bench soak fuzz lint fmt install uninstall clean help \
	deps test-programs fuzz-programs bench-programs FORCE

all: $(PROGRAMS)

$(BUILD)/spoolfs: $(LIB_OBJS) $(FS_OBJS)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS_FUSE) $(PKG_LIBS) -lm $(LDLIBS)

$(BUILD)/spoolfs-announcer: $(ANNOUNCER_OBJS)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# As an archive, so that a test contains what it tests and no more.
$(BUILD)/libspoolfs.a: $(call objects,$(TEST_SHARED)) $(LIB_OBJS)
	@rm -f $@
	$(AR) rcs $@ $^

$(TEST_PROGRAMS): $(BUILD)/%: $(BUILD)/obj/%.o $(BUILD)/libspoolfs.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS) -lm $(LDLIBS)

$(FUZZ_PROGRAMS): $(BUILD)/%: $(BUILD)/obj/%.o \
		$(if $(FUZZER),,$(call objects,$(FUZZ_SHARED))) $(BUILD)/libspoolfs.a
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(if $(FUZZER),-fsanitize=fuzzer) -o $@ $^ $(PKG_LIBS) \
		-lm $(LDLIBS)

$(BENCH_PROGRAMS): $(BUILD)/%: $(BUILD)/obj/%.o $(call objects,$(BENCH_SHARED))
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS_FUSE) -lm $(LDLIBS)

$(ALL_OBJS): $(BUILD)/obj/%.o: %.c $(BUILD)/flags | deps
	@mkdir -p $(@D)
	$(COMPILE) $(if $(WERROR),-Werror) -MMD -MP -c -o $@ $<

# Objects made with other flags are made anew.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(COMPILE))' >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

deps:
	@$(PKG_CONFIG) --exists --print-errors $(PKGS) $(PKGS_FUSE) || \
		{ echo 'scripts/bootstrap run installs what is missing' >&2; exit 1; }

test-programs: $(TEST_PROGRAMS) $(FUZZ_PROGRAMS)

fuzz-programs: $(FUZZ_PROGRAMS)

bench-programs: $(BENCH_PROGRAMS)

# ---- what people call -------------------------------------------------------

# These install what they need first, so what make read about the packages at
# its start may be out of date: hence the second make.
run:
	@scripts/bootstrap run
	@$(MAKE) --no-print-directory all
	@scripts/run $(BUILD) '$(DEMO)'

test:
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory all test-programs
	@scripts/test $(BUILD) $(RINGS)

check: all test-programs
	@scripts/check-includes
	@scripts/check-sizes
	@scripts/check-man $(BUILD)
	@scripts/test $(BUILD) unit contract

# In a build directory of its own. FUZZ_S seconds for each of FUZZ_TARGETS (all).
fuzz:
	@scripts/bootstrap fuzz
	@$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined \
		fuzz-programs
	@scripts/fuzz build/san-fuzzer-no-link-address-undefined $(FUZZ_TARGETS)

lint:
	@scripts/bootstrap lint
	@$(MAKE) --no-print-directory all
	@scripts/lint $(BUILD)

fmt:
	git ls-files -z '*.[ch]' | xargs -0 clang-format -i

bench:
	@scripts/bootstrap bench
	@$(MAKE) --no-print-directory all bench-programs
	@scripts/bench $(BUILD)

# SPOOLFS_SOAK_SECONDS of each of SOAK_PARTS (all).
soak:
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory all
	@scripts/soak $(BUILD) $(SOAK_PARTS)

MANDIR := $(PREFIX)/share/man

install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(LIBEXECDIR)' \
		'$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(MANDIR)/man7'
	install -m 755 $(BUILD)/spoolfs '$(DESTDIR)$(PREFIX)/bin/'
	install -m 755 $(BUILD)/spoolfs-announcer '$(DESTDIR)$(LIBEXECDIR)/'
	install -m 644 fs/spoolfs.1 '$(DESTDIR)$(MANDIR)/man1/'
	install -m 644 fs/spoolfs.7 '$(DESTDIR)$(MANDIR)/man7/'

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/spoolfs' \
		'$(DESTDIR)$(LIBEXECDIR)/spoolfs-announcer' \
		'$(DESTDIR)$(MANDIR)/man1/spoolfs.1' \
		'$(DESTDIR)$(MANDIR)/man7/spoolfs.7'
	rmdir '$(DESTDIR)$(LIBEXECDIR)' 2>/dev/null || true

clean:
	rm -rf build

help:
	@echo 'make              build spoolfs and its announcer in $(BUILD)'
	@echo 'make run          mount an embedded queue at DEMO ($(DEMO)/Q)'
	@echo 'make test         all tests; RINGS="unit fs" selects'
	@echo 'make check        the quick part: unit, contract, includes, sizes, manual'
	@echo 'make bench        measure it'
	@echo 'make soak         try to break it, SPOOLFS_SOAK_SECONDS for each way to'
	@echo 'make fuzz         look for inputs that break a parser, FUZZ_S seconds each'
	@echo 'make lint fmt     look at the sources; format them'
	@echo 'make install      to DESTDIR and PREFIX ($(PREFIX)); and uninstall'
	@echo 'make clean        remove build/'
	@echo
	@echo 'SAN=address,undefined   with sanitizers, in a build directory of its own'
	@echo 'WERROR=1                warnings are errors'
	@echo 'CC CFLAGS CPPFLAGS LDFLAGS LDLIBS are yours'

-include $(ALL_OBJS:.o=.d)
