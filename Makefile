# fraglab: `make help` lists the targets.
CC ?= gcc
MODE ?= release
BUILD ?= build/$(MODE)

WARNINGS = -Wpedantic -Wall -Wextra -Wshadow -Wundef -Wvla -Wconversion -Wsign-conversion \
           -Wcast-qual -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Werror
FLAGS_release = -O2
FLAGS_debug   = -O0 -g3 -DFRAG_SLOW_CHECKS
FLAGS_asan    = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DFRAG_SLOW_CHECKS
FLAGS_tsan    = -O1 -g -fsanitize=thread
ALL_CFLAGS = -std=c11 -D_DEFAULT_SOURCE -I. $(WARNINGS) $(FLAGS_$(MODE)) $(CFLAGS)
LIBS = -lzstd -lz -lxxhash -ljansson -lyaml -lm -lpthread

CORE = $(wildcard sim/base/*.c sim/*.c allocators/*.c traces/*.c)
CLI = $(wildcard sim/cli/*.c)
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))

all: fraglab

fraglab: $(BUILD)/fraglab
	cp $< $@

$(BUILD)/fraglab: $(call objects,$(CLI)) $(BUILD)/libfraglab.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libfraglab.a: $(call objects,$(CORE))
	rm -f $@ && ar rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/test_%: $(BUILD)/tests/test_%.o $(BUILD)/libfraglab.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

-include $(wildcard $(BUILD)/*/*.d $(BUILD)/*/*/*.d)
.PHONY: all
