# fraglab: `make help` lists the targets.
VERSION = 0.1.0

ifeq ($(origin CC),default)
CC = gcc
endif
MODE ?= release
BUILD ?= build/$(MODE)$(if $(filter gcc,$(notdir $(CC))),,-$(notdir $(CC)))
PREFIX ?= /usr/local
DESTDIR ?=
# V=1 shows the commands.
V ?= 0
quiet = $(if $(filter 1,$(V)),,@echo '  $(1)  $@';)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

WARNINGS = -Wpedantic -Wall -Wextra -Wshadow -Wundef -Wvla -Wconversion -Wsign-conversion \
           -Wcast-qual -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Werror
FLAGS_release = -O3 $(replay_flags) $(cold_flags)
FLAGS_debug   = -O0 -g3 -DFRAG_SLOW_CHECKS
FLAGS_asan    = -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DFRAG_SLOW_CHECKS
FLAGS_tsan    = -O1 -g1 -fsanitize=thread
# No object is made: what the compiler says of the code is all that is asked for (make syntax).
FLAGS_syntax  = -fsyntax-only
ALL_CFLAGS = -std=c11 -D_DEFAULT_SOURCE -I. $(WARNINGS) $(FLAGS_$(MODE)) $(CFLAGS)
# A policy from a shared object calls the device functions of the program: -rdynamic.
ALL_LDFLAGS = -rdynamic $(LDFLAGS)
LIBS = -lzstd -lz -lxxhash -ljansson -lyaml -lsqlite3 -lm -lpthread -ldl

# In the replay, and where events are made, small records are written field by field: put together in a
# vector register first, they are there some cycles later, and the next event waits for them.
$(BUILD)/allocators/%.o $(BUILD)/sim/replay/replay.o $(BUILD)/traces/fgt/fgt_events.o: replay_flags = -fno-tree-slp-vectorize
# What works once a command, not once an event, is compiled to be small.
$(BUILD)/cli/%.o $(BUILD)/api/%.o: cold_flags = -Os
$(BUILD)/plots/%.o $(BUILD)/report/%.o $(BUILD)/studies/%.o: cold_flags = -O2
# Tests call what is fast, and are compiled often.
$(BUILD)/tests/%.o: cold_flags = -O1
$(BUILD)/tests/benchmarks/%.o: cold_flags =

# ---- CUDA=no: no GPU module; yes: the toolkit's headers must be there to check it against; auto: if they are.
CUDA ?= auto
ifeq ($(filter no yes auto,$(CUDA)),)
$(error CUDA=$(CUDA) is none of no, yes, auto)
endif
# The folder of cuda_runtime_api.h: CUDA_HOME, CUDA_PATH, that of nvcc, pkg-config's, or the system's own.
cuda_homes = $(CUDA_HOME) $(CUDA_PATH) $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc 2>/dev/null))) \
             $(shell pkg-config --list-all 2>/dev/null | sed -n 's/^\(cudart-[^ ]*\) .*/\1/p' | sort -V | tail -n 1 | xargs -r pkg-config --variable=cudaroot) \
             /usr/local/cuda /usr
CUDA_INCLUDE := $(if $(filter no,$(CUDA)),,$(patsubst %/cuda_runtime_api.h,%,$(firstword $(wildcard $(cuda_homes:%=%/include/cuda_runtime_api.h)))))
ifeq ($(CUDA)$(CUDA_INCLUDE),yes)
$(error CUDA=yes, but no cuda_runtime_api.h is found; name the toolkit with CUDA_HOME=)
endif
cuda_check = $(if $(CUDA_INCLUDE),$(BUILD)/cuda_abi.stamp)
gpu_targets = $(if $(filter no,$(CUDA)),,$(BUILD)/fraglab_cuda.so $(BUILD)/libfraglab_torch.so)
# The recorder that is preloaded needs no toolkit either; the one that CUPTI carries needs cupti.h.
cupti_homes = $(CUDA_INCLUDE) $(CUDA_INCLUDE:%/include=%/extras/CUPTI/include)
CUPTI_INCLUDE := $(patsubst %/cupti.h,%,$(firstword $(wildcard $(cupti_homes:%=%/cupti.h))))
CUPTI_LIBRARIES := $(patsubst %/libcupti.so,%,$(firstword $(wildcard $(foreach place,lib64 lib lib/x86_64-linux-gnu,$(CUPTI_INCLUDE:%/include=%/$(place)/libcupti.so)))))
record_targets = $(if $(filter no,$(CUDA)),,$(BUILD)/libfraglab_record.so $(if $(CUPTI_LIBRARIES),$(BUILD)/libfraglab_cupti.so))

# ---- MPI=no: sweeps work on one machine; yes: an MPI library must be there; auto: if there is one.
MPI ?= auto
ifeq ($(filter no yes auto,$(MPI)),)
$(error MPI=$(MPI) is none of no, yes, auto)
endif
mpi_package := $(if $(filter no,$(MPI)),,$(firstword $(foreach name,ompi-c mpich,$(shell pkg-config --exists $(name) 2>/dev/null && echo $(name)))))
ifeq ($(MPI)$(mpi_package),yes)
$(error MPI=yes, but pkg-config knows neither ompi-c nor mpich (Debian: libopenmpi-dev or libmpich-dev))
endif
MPI_CFLAGS = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(mpi_package)))
MPI_LIBS = $(shell pkg-config --libs $(mpi_package))
mpi_targets = $(if $(mpi_package),$(BUILD)/fraglab_mpi.so)

# The C files of folders and of all below them.
sources = $(sort $(shell find $(1) -name '*.c'))
CORE = $(call sources,base messages sim planner allocators traces workload studies)
API = $(call sources,api)
FIGURES = $(call sources,plots report)
CLI = $(call sources,cli) $(FIGURES) $(BUILD)/report/page/page_parts.c
GPU = $(filter-out %_check.c,$(wildcard gpu_replay/device/*.c))
TORCH_LIBRARY = $(wildcard gpu_replay/torch/*.c)
TESTS = $(wildcard tests/*/test_*.c)
FUZZERS = $(filter-out %/fuzz_main.c,$(wildcard tests/fuzz/fuzz_*.c))
# Everything else in tests/ helps the tests: one archive, linked to each.
SUPPORT = $(sort $(shell find tests -name '*.c' ! -name 'test_*' ! -name bench.c ! -name make_snapshot.c ! -path 'tests/programs/*' ! -path 'tests/fuzz/*' ! -path 'tests/data/*'))
objects = $(patsubst %.c,$(BUILD)/%.o,$(patsubst $(BUILD)/%,%,$(1)))
# Programs lie flat in $(BUILD)/tests, whatever the folder of their source.
test_programs = $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(TESTS)))
fuzz_programs = $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(FUZZERS)))
# libFuzzer brings its own main: `make fuzz` empties this.
fuzz_main = $(BUILD)/tests/fuzz/fuzz_main.o
test_libraries = $(BUILD)/libsupport.a $(BUILD)/libcli.a $(BUILD)/libgpu.a $(BUILD)/libfraglab.a

all: fraglab library

fraglab: $(BUILD)/fraglab $(gpu_targets) $(record_targets) $(mpi_targets)
	@for file in $^; do name=$$(basename $$file); [ -f $$file ] || continue; \
	 case $$name in *.stamp) ;; *) cp $$file $$name.tmp && mv $$name.tmp $$name;; esac; done
	$(if $(gpu_targets),,@rm -f fraglab_cuda.so libfraglab_torch.so)
	$(if $(mpi_targets),,@rm -f fraglab_mpi.so)

$(BUILD)/fraglab: $(call objects,$(CLI)) $(BUILD)/libfraglab.a
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# The module that drives a GPU needs no toolkit: it opens libcudart when it runs. Where the real
# headers are found its declarations are compared with them.
$(BUILD)/fraglab_cuda.so: $(call objects,$(GPU)) $(cuda_check)
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) -ldl
$(BUILD)/cuda_abi.stamp: gpu_replay/device/cuda_abi_check.c gpu_replay/device/cuda_abi.h
	@mkdir -p $(@D)
	$(call quiet,CHECK)$(CC) $(ALL_CFLAGS) $(if $(CUDA_INCLUDE),-isystem $(CUDA_INCLUDE)) -fsyntax-only $< && touch $@
# The one part that is linked to MPI.
$(BUILD)/fraglab_mpi.so: $(BUILD)/cluster/mpi_ranks.o
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -o $@ $^ $(MPI_LIBS)
$(BUILD)/cluster/%.o: ALL_CFLAGS += -D_GNU_SOURCE -fPIC $(MPI_CFLAGS)
# Recorders go into other people's programs: always optimised (a call of theirs must stay a jump), never
# with a sanitizer.
RECORD_CFLAGS = -std=c11 -D_DEFAULT_SOURCE -I. $(WARNINGS) -O2 -g -fPIC -fvisibility=hidden -MMD -MP
$(BUILD)/libfraglab_record.so: $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_cupti.c,$(wildcard gpu_replay/recorder/*.c)))
	$(call quiet,LINK)$(CC) -shared -o $@ $^ -ldl -lpthread
$(BUILD)/libfraglab_cupti.so: $(BUILD)/gpu_replay/recorder/record_cupti.o $(BUILD)/gpu_replay/recorder/record_log.o
	$(call quiet,LINK)$(CC) -shared -o $@ $^ -L$(CUPTI_LIBRARIES) -Wl,-rpath,$(CUPTI_LIBRARIES) -lcupti -lpthread
$(BUILD)/gpu_replay/recorder/%.o: gpu_replay/recorder/%.c | setup
	@mkdir -p $(@D)
	$(call quiet,CC  )$(CC) $(RECORD_CFLAGS) $(if $(findstring cupti,$<),-isystem $(CUPTI_INCLUDE) -isystem $(CUDA_INCLUDE)) -c -o $@ $<

# Serves a running PyTorch: everything it needs of fraglab is inside, and nothing but its own
# functions shows.
$(BUILD)/libfraglab_torch.so: $(call objects,$(TORCH_LIBRARY) $(GPU)) $(BUILD)/libfraglab.a gpu_replay/torch/torch_exports.map
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,--as-needed -Wl,--version-script=$(filter %.map,$^) -o $@ $(filter %.o %.a,$^) $(LIBS)

# ---- libfraglab: include/fraglab.h over all of it, for other programs. Only what api/fraglab.map names shows, in the archive too.
LIBRARY = $(BUILD)/library
library_objects = $(call objects,$(CORE) $(API) $(FIGURES)) $(BUILD)/report/page/page_parts.o
# STATIC=no: without the archive, which the tools of another architecture cannot make.
library: $(LIBRARY)/libfraglab.so $(if $(filter no,$(STATIC)),,$(LIBRARY)/libfraglab.a)
$(LIBRARY)/libfraglab.so.0: $(library_objects) api/fraglab.map
	@mkdir -p $(@D)
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libfraglab.so.0 -Wl,-Bsymbolic-functions -Wl,--as-needed -Wl,--version-script=api/fraglab.map -o $@ $(filter %.o,$^) $(LIBS)
$(LIBRARY)/libfraglab.so: $(LIBRARY)/libfraglab.so.0
	@ln -sf libfraglab.so.0 $@
# One object, which shows what the shared library shows; its other names meet nobody's.
$(LIBRARY)/libfraglab.a: $(library_objects) $(LIBRARY)/libfraglab.so.0
	$(call quiet,AR  )rm -f $@ && ld -r -o $(LIBRARY)/fraglab.o $(library_objects) && \
	    nm -D --defined-only $(LIBRARY)/libfraglab.so.0 | awk '$$2 != "A" { sub(/@.*/, "", $$3); print $$3 }' > $(LIBRARY)/shown && \
	    objcopy --keep-global-symbols=$(LIBRARY)/shown $(LIBRARY)/fraglab.o && ar rcs $@ $(LIBRARY)/fraglab.o

# The program shows shared objects only what headers mark for them (`#pragma GCC visibility`): what policies and modules call.
# The same objects make the program and the shared objects; within the program a call of a shown function stays a plain call.
PIC ?= -fPIC -fno-semantic-interposition
$(call objects,$(CORE) $(API) $(CLI) $(GPU) $(TORCH_LIBRARY)): ALL_CFLAGS += -fvisibility=hidden
$(call objects,$(CORE) $(API) $(FIGURES) $(GPU) $(TORCH_LIBRARY)) $(BUILD)/report/page/page_parts.o: ALL_CFLAGS += -D_GNU_SOURCE $(PIC)
$(BUILD)/libfraglab.a: $(call objects,$(CORE))
$(BUILD)/libcli.a: $(call objects,$(filter-out cli/main.c,$(CLI)))
$(BUILD)/libsupport.a: $(call objects,$(SUPPORT))
# For tests alone: the program opens the module.
$(BUILD)/libgpu.a: $(call objects,$(GPU))
$(BUILD)/lib%.a:
	@mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# What was compiled by another Makefile, perhaps with other flags, is compiled again.
$(BUILD)/%.o: %.c Makefile | setup
	@mkdir -p $(@D)
	$(call quiet,CC  )$(CC) $(ALL_CFLAGS) $(if $(filter sim/version.c,$<),$(version_flags)) -MMD -MP -c -o $@ $<

define test_program
$(BUILD)/tests/$(basename $(notdir $(1))): $(BUILD)/$(1:.c=.o)
endef
$(foreach source,$(TESTS) $(FUZZERS) tests/benchmarks/bench.c tests/benchmarks/make_snapshot.c tests/fuzz/policy_fuzzer.c,$(eval $(call test_program,$(source))))
$(test_programs): $(test_libraries)
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -lcmocka $(LIBS)

# Of the library, with host memory that fails on demand.
$(BUILD)/libapi.a: $(call objects,$(API))
library_tests = $(filter $(BUILD)/tests/test_library%,$(test_programs))
$(library_tests) $(foreach name,study program sweep setup,$(BUILD)/tests/test_$(name)_answers): $(BUILD)/libapi.a
$(library_tests) $(filter $(BUILD)/tests/test_%_answers,$(test_programs)): ALL_LDFLAGS += $(foreach name,malloc calloc realloc free,-Wl,--wrap=$(name))

# Opens these when it runs.
$(BUILD)/tests/test_torch_allocator $(BUILD)/tests/test_torch_threads: | $(BUILD)/libfraglab_torch.so software-cuda

$(fuzz_programs): $(fuzz_main) $(BUILD)/libsupport.a $(BUILD)/libfraglab.a
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(fuzz_flags) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

$(BUILD)/tests/bench $(BUILD)/tests/make_snapshot $(BUILD)/tests/policy_fuzzer: $(test_libraries)
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

# ---- the software CUDA: NVIDIA's libraries as shared objects that account and compute nothing.
# One folder for each major version; state is in the one libcuda.so.1 that both reach.
SOFTWARE = $(BUILD)/software-cuda
software_core = $(addprefix gpu_replay/software/soft_,core.c settings.c card.c processes.c report.c shadow.c philox.c symbol.c ipc.c rest.c torch.c text.c arena.c handles.c memory.c vmm.c pool.c stream.c order.c host.c) \
                gpu_replay/software/graphs/soft_graph.c \
                $(wildcard gpu_replay/software/driver/soft_driver*.c) \
                base/error.c base/bytes.c base/memory.c base/scope.c base/system/pages.c base/system/spill.c
software_runtime = $(wildcard gpu_replay/software/runtime/soft_*.c)
# Hidden pieces of fraglab in them must not meet those of the program: what is not listed stays inside.
software_link = $(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) $(if $(filter asan tsan,$(MODE)),,-Wl,-z,defs) -o $@ $(filter %.o %.so.1,$^)
software_objects = $(patsubst %.c,$(SOFTWARE)/$(1)/%.o,$(2))
software_libraries = $(foreach major,12 13,$(addprefix $(SOFTWARE)/$(major)/,libcudart.so.$(major) libcuda.so.1 libcuda.so libnvidia-ml.so.1 libfraglab-objects.so.1))

# The stand-ins of the other libraries. Each has a table of calls, of which C is made, and may have C by hand: NAME.c, NAME_*.c, NAME/*.c, and what standin_shared_NAME lists. An
# entry of this list is 12/libcublas.so.12:cublas.
standins_folder = gpu_replay/software/libraries
standin_shared_cudnn = sim/device/convolution_workspace.c
standin_list := $(shell awk '/^library / { name = $$2 } /^soname / { print $$2 "/" $$3 ":" name }' $(wildcard gpu_replay/software/libraries/tables/*.calls))
standins = $(foreach entry,$(standin_list),$(SOFTWARE)/$(firstword $(subst :, ,$(entry))))
standin_generate = awk -v major=$(1) -v what=$(2) -f $(standins_folder)/generate.awk $(standins_folder)/imports.tsv $(3) > $@.tmp && mv $@.tmp $@
standin_flags = -fPIC -D_GNU_SOURCE -DFRAG_CUDART=$(1) -I$(SOFTWARE)/standins/$(1)

software-cuda: $(software_libraries) $(standins) $(foreach major,12 13,$(SOFTWARE)/$(major)/preload $(SOFTWARE)/$(major)/sources)
	@echo "$(SOFTWARE)/12 and $(SOFTWARE)/13"

define software_compile
@mkdir -p $(@D)
$(call quiet,CC  )$(CC) $(ALL_CFLAGS) -fPIC $(1) -MMD -MP -c -o $@ $<
endef
$(SOFTWARE)/core/%.o: %.c | setup
	$(call software_compile)
$(SOFTWARE)/runtime12/%.o: %.c | setup
	$(call software_compile,-DFRAG_CUDART=12)
$(SOFTWARE)/runtime13/%.o: %.c | setup
	$(call software_compile,-DFRAG_CUDART=13)

$(SOFTWARE)/libcuda.so.1: $(call software_objects,core,$(software_core)) gpu_replay/software/driver/cuda.map
	$(software_link) -Wl,--version-script=gpu_replay/software/driver/cuda.map -Wl,-z,nodelete -lm -lpthread -ldl
$(SOFTWARE)/libnvidia-ml.so.1: $(call software_objects,core,gpu_replay/software/driver/soft_nvml.c) $(SOFTWARE)/libcuda.so.1 gpu_replay/software/driver/nvml.map
	$(software_link) -Wl,--version-script=gpu_replay/software/driver/nvml.map '-Wl,-rpath,$$ORIGIN'
$(SOFTWARE)/core/gpu_replay/software/host_objects.o: ALL_CFLAGS += -D_GNU_SOURCE
$(SOFTWARE)/libfraglab-objects.so.1: $(call software_objects,core,gpu_replay/software/host_objects.c)
	$(software_link) -ldl
$(SOFTWARE)/12/libcudart.so.12: $(call software_objects,runtime12,$(software_runtime)) $(SOFTWARE)/libcuda.so.1 gpu_replay/software/runtime/cudart12.map
	@mkdir -p $(@D)
	$(software_link) -Wl,--version-script=gpu_replay/software/runtime/cudart12.map '-Wl,-rpath,$$ORIGIN'
$(SOFTWARE)/13/libcudart.so.13: $(call software_objects,runtime13,$(software_runtime)) $(SOFTWARE)/libcuda.so.1 gpu_replay/software/runtime/cudart13.map
	@mkdir -p $(@D)
	$(software_link) -Wl,--version-script=gpu_replay/software/runtime/cudart13.map '-Wl,-rpath,$$ORIGIN'
# A digest of all that the libraries are made of: beside them, and in ./fraglab, which says so when the two are not of one tree.
software_sources = $(sort $(wildcard gpu_replay/software/* gpu_replay/software/*/* gpu_replay/software/*/*/*) $(filter base/%,$(software_core)) $(standin_shared_cudnn))
software_digest = $(shell cat $(filter %.c %.h %.map %.calls %.tsv %.awk,$(software_sources)) | cksum | cut -d' ' -f1)
$(BUILD)/software.stamp: FORCE
	@mkdir -p $(@D); new=$(software_digest); [ "$$new" = "$$(cat $@ 2>/dev/null)" ] || echo "$$new" > $@
$(BUILD)/cli/dryrun/dryrun_parts.o: ALL_CFLAGS += -DFRAG_BUILD_SOFTWARE='"$(shell cat $(BUILD)/software.stamp)"'
$(BUILD)/cli/dryrun/dryrun_parts.o: $(BUILD)/software.stamp
$(SOFTWARE)/12/sources $(SOFTWARE)/13/sources: $(BUILD)/software.stamp $(software_libraries) $(standins)
	@cp $(BUILD)/software.stamp $@
# What LD_PRELOAD must name, in this order: the driver first, all state is there.
$(SOFTWARE)/%/preload: Makefile $(wildcard $(standins_folder)/tables/*.calls)
	@mkdir -p $(@D)
	@printf '%s\n' libcuda.so.1 libfraglab-objects.so.1 libcudart.so.$* libnvidia-ml.so.1 $(patsubst $*/%,%,$(filter $*/%,$(foreach entry,$(standin_list),$(firstword $(subst :, ,$(entry)))))) > $@
# major, soname, name
define standin
$(SOFTWARE)/standins/$(1)/$(3)_calls.h: $(standins_folder)/tables/$(3).calls $(standins_folder)/generate.awk $(standins_folder)/imports.tsv
	@mkdir -p $$(@D)
	@$$(call standin_generate,$(1),header,$$<)
$(SOFTWARE)/standins/$(1)/$(3)_calls.c: $(standins_folder)/tables/$(3).calls $(standins_folder)/generate.awk $(standins_folder)/imports.tsv
	@mkdir -p $$(@D)
	@$$(call standin_generate,$(1),code,$$<)
$(SOFTWARE)/standins/$(1)/$(3).map: $(standins_folder)/tables/$(3).calls $(standins_folder)/generate.awk $(standins_folder)/imports.tsv
	@mkdir -p $$(@D)
	@$$(call standin_generate,$(1),map,$$<)
$(SOFTWARE)/standins/$(1)/$(3)_calls.o: $(SOFTWARE)/standins/$(1)/$(3)_calls.c $(SOFTWARE)/standins/$(1)/$(3)_calls.h | setup
	$$(call software_compile,$(call standin_flags,$(1)))
$(patsubst %.c,$(SOFTWARE)/standins/$(1)/%.o,$(wildcard $(standins_folder)/$(3).c $(standins_folder)/$(3)_*.c $(standins_folder)/$(3)/*.c)): $(SOFTWARE)/standins/$(1)/$(3)_calls.h
$(SOFTWARE)/$(1)/$(2): $(SOFTWARE)/standins/$(1)/$(3)_calls.o $(patsubst %.c,$(SOFTWARE)/standins/$(1)/%.o,$(wildcard $(standins_folder)/standin.c $(standins_folder)/standin_version.c $(standins_folder)/$(3).c $(standins_folder)/$(3)_*.c $(standins_folder)/$(3)/*.c) $(standin_shared_$(3))) $(SOFTWARE)/standins/$(1)/$(3).map $(SOFTWARE)/libcuda.so.1
	@mkdir -p $$(@D)
	$$(call quiet,LINK)$$(CC) $$(ALL_CFLAGS) $$(LDFLAGS) -shared -Wl,-soname,$(2) $(if $(filter asan tsan,$(MODE)),,-Wl,-z,defs) -o $$@ $$(filter %.o %.so.1,$$^) -Wl,--version-script=$(SOFTWARE)/standins/$(1)/$(3).map '-Wl,-rpath,$$$$ORIGIN' -lpthread -lm
endef
standin_word = $(word $(2),$(subst /, ,$(subst :, ,$(1))))
$(foreach entry,$(standin_list),$(eval $(call standin,$(call standin_word,$(entry),1),$(call standin_word,$(entry),2),$(call standin_word,$(entry),3))))
$(SOFTWARE)/standins/12/%.o: %.c | setup
	$(call software_compile,$(call standin_flags,12))
$(SOFTWARE)/standins/13/%.o: %.c | setup
	$(call software_compile,$(call standin_flags,13))
# A test calls every function of every table; the calls are made of the tables too.
define standin_test
$(SOFTWARE)/standins/$(1)/$(2)_test.c: $(standins_folder)/tables/$(2).calls $(standins_folder)/generate.awk $(standins_folder)/imports.tsv
	@mkdir -p $$(@D)
	@$$(call standin_generate,$(1),test,$$<)
$(SOFTWARE)/standins/$(1)/$(2)_test.o: $(SOFTWARE)/standins/$(1)/$(2)_test.c $(SOFTWARE)/standins/$(1)/$(2)_calls.h | setup
	$$(call software_compile,$(call standin_flags,$(1)) -O0)
$(BUILD)/tests/test_standins: $(SOFTWARE)/standins/$(1)/$(2)_test.o
endef
$(foreach entry,$(standin_list),$(eval $(call standin_test,$(call standin_word,$(entry),1),$(call standin_word,$(entry),3))))
standin_test_names = $(foreach entry,$(standin_list),frag_test_$(call standin_word,$(entry),3)_$(call standin_word,$(entry),1))
$(SOFTWARE)/standins/tests.c: Makefile $(wildcard $(standins_folder)/tables/*.calls)
	@mkdir -p $(@D)
	@{ echo '#include "tests/gpu_replay/standin_calls.h"'; printf 'extern const frag_test_library %s;\n' $(standin_test_names); \
	   echo 'const frag_test_library *const frag_test_libraries[] = {'; printf '&%s, ' $(standin_test_names); echo '0};'; } > $@
standin_objects = $(foreach entry,$(standin_list),$(patsubst %.c,$(SOFTWARE)/standins/$(call standin_word,$(entry),1)/%.o,$(foreach name,$(call standin_word,$(entry),3), \
                  $(name)_calls.c $(name)_test.c $(wildcard $(standins_folder)/$(name).c $(standins_folder)/$(name)_*.c $(standins_folder)/$(name)/*.c))))
$(SOFTWARE)/standins/tests.o: $(SOFTWARE)/standins/tests.c | setup
	$(call software_compile)
$(BUILD)/tests/test_standins: $(SOFTWARE)/standins/tests.o | software-cuda
# The same file in both folders, so that a process loads it once.
$(SOFTWARE)/12/%.so.1: $(SOFTWARE)/%.so.1
	@mkdir -p $(@D) && ln -sf ../$(@F) $@
$(SOFTWARE)/13/%.so.1: $(SOFTWARE)/%.so.1
	@mkdir -p $(@D) && ln -sf ../$(@F) $@
# What a compiler looks for behind -lcuda; Triton builds its launchers so.
$(SOFTWARE)/12/libcuda.so $(SOFTWARE)/13/libcuda.so: %/libcuda.so: %/libcuda.so.1
	@ln -sf libcuda.so.1 $@

# ---- programs that tests/gpu_replay/record.bats records, on both software CUDAs, and what prints a device log
cupti_soname = $(notdir $(firstword $(wildcard $(CUPTI_LIBRARIES)/libcupti.so.[0-9][0-9])))
record_programs = $(BUILD)/tests/programs/recorded-12 $(BUILD)/tests/programs/recorded-13 $(BUILD)/tests/programs/device_log_lines $(BUILD)/tests/programs/layered \
                  $(if $(CUPTI_LIBRARIES),$(BUILD)/tests/programs/injected $(BUILD)/tests/programs/$(cupti_soname))
.PHONY: record-programs record-cost
record-programs: fraglab $(record_programs) $(software_libraries)
$(BUILD)/tests/programs/recorded-%: $(BUILD)/tests/programs/recorded.o $(software_libraries)
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< -L$(SOFTWARE)/$* -l:libcudart.so.$* -l:libcuda.so.1 -Wl,-rpath-link,$(SOFTWARE) -lpthread -ldl
$(BUILD)/tests/programs/layers/lib%.so: tests/programs/%.c tests/programs/layers.h
	@mkdir -p $(@D)
	$(call quiet,LINK)$(CC) $(RECORD_CFLAGS) -fvisibility=default -shared -o $@ $<
$(BUILD)/tests/programs/layered: $(BUILD)/tests/programs/layered.o $(BUILD)/tests/programs/layers/libouter.so $(BUILD)/tests/programs/layers/libinner.so
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< -L$(@D)/layers -Wl,--no-as-needed -louter -linner '-Wl,-rpath,$$ORIGIN/layers' -ldl
# Where CUPTI is, a stand-in for it calls the other recorder back.
$(BUILD)/tests/programs/cupti_stand_in.o $(BUILD)/tests/programs/injected.o: ALL_CFLAGS += -fPIC -isystem $(CUPTI_INCLUDE) -isystem $(CUDA_INCLUDE)
$(BUILD)/tests/programs/$(cupti_soname): $(BUILD)/tests/programs/cupti_stand_in.o
	@echo '$(cupti_soname) { *; };' > $@.map
	$(call quiet,LINK)$(CC) -shared -Wl,-soname,$(cupti_soname) -Wl,--version-script=$@.map -o $@ $<
$(BUILD)/tests/programs/injected: $(BUILD)/tests/programs/injected.o
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< -ldl
$(BUILD)/tests/programs/device_log_lines: $(BUILD)/tests/programs/device_log_lines.o $(BUILD)/libfraglab.a
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What the recorder costs a program, per call.
record-cost: $(BUILD)/tests/programs/call_cost $(BUILD)/libfraglab_record.so
	@bash tests/benchmarks/record_cost.sh $(BUILD)/tests/programs
$(BUILD)/tests/programs/null/libcudart.so.12: tests/programs/null_cudart.c
	@mkdir -p $(@D)
	$(call quiet,LINK)$(CC) $(RECORD_CFLAGS) -fvisibility=default -shared -Wl,-soname,libcudart.so.12 -o $@ $<
$(BUILD)/tests/programs/call_cost: $(BUILD)/tests/programs/call_cost.o $(BUILD)/libfraglab.a $(BUILD)/tests/programs/null/libcudart.so.12
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# ---- the page of `fraglab report`: its template, style and scripts become arrays in the program. The page
# allows exactly this style and this script to be used, by their hashes.
PAGE_SCRIPTS = $(addprefix report/page/,columns.js intervals.js model.js page_source.js state.js format.js theme.js \
               colours.js axis.js stack.js timeline.js minimap.js places.js map.js $(addprefix flame/,stack_tree.js flame_layout.js flame.js) \
               describe.js pin.js search.js event_list.js tables.js panels.js explorer.js controls.js pickle.js snapshot_source.js \
               second.js page.js)
$(BUILD)/report/page/page_parts.c: report/page/page.html report/page/page.css $(PAGE_SCRIPTS) report/page_piece.js report/page/embed.sh
	@mkdir -p $(@D)
	$(call quiet,EMBED)cat $(PAGE_SCRIPTS) > $@.js && sh report/page/embed.sh report/page/page.html report/page/page.css $@.js report/page_piece.js > $@.tmp && mv $@.tmp $@ && rm $@.js
$(BUILD)/report/page/page_parts.o: $(BUILD)/report/page/page_parts.c | setup
	$(call quiet,CC  )$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- the viewer: the library as WebAssembly, in one page (docs/viewer.md). viewer/build.sh calls this with the compiler for it.
viewer_sources = $(filter-out base/formats/sqlite_file.c base/system/process.c api/api_figure.c,$(CORE) $(API) $(call sources,report viewer))
$(BUILD)/viewer.wasm: $(call objects,$(viewer_sources)) $(BUILD)/report/page/page_parts.o
	$(call quiet,LINK)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ -lzstd -lz -lxxhash -ljansson -lyaml -lm
viewer:
	@MAKE="$(MAKE)" JOBS="$(JOBS)" bash viewer/build.sh $(SOURCES)
# Reading and simulating for another system, with the compiler of the wheel: does it build? (docs/release.md)
macos-proof:
	@MAKE="$(MAKE)" JOBS="$(JOBS)" bash packaging/cross.sh aarch64-macos $(SOURCES)
# Needs node and Chromium; what is missing is skipped with a reason.
viewer-test: fraglab viewer
	@bats tests/viewer/viewer.bats

# Version, commit and its date reach one file, which is compiled anew when they change.
# What `git archive` and so a tarball of a forge writes into VERSION.commit; a clone asks git.
archived_commit := $(filter-out $$Format%,$(shell sed -n 's/^commit //p' VERSION.commit 2>/dev/null))
archived_date := $(filter-out $$Format%,$(shell sed -n 's/^date //p' VERSION.commit 2>/dev/null))
COMMIT = $(or $(archived_commit),$(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null),unknown)
# Of the man page; the same for everyone who builds one commit.
COMMIT_DATE = $(if $(SOURCE_DATE_EPOCH),$(shell date -u -d @$(SOURCE_DATE_EPOCH) +%Y-%m-%d),$(or $(archived_date),$(shell TZ=UTC0 git log -1 --format=%cd --date=short-local 2>/dev/null)))
version_flags = -DFRAG_BUILD_VERSION='"$(VERSION)"' -DFRAG_BUILD_COMMIT='"$(shell cat $(BUILD)/version.stamp | cut -d" " -f2)"' \
                -DFRAG_BUILD_DATE='"$(COMMIT_DATE)"' \
                -DFRAG_BUILD_MODE='"$(MODE)"' -DFRAG_BUILD_COMPILER='"$(notdir $(CC))"' \
                -DFRAG_BUILD_DATA_FOLDER='"$(PREFIX)/share/fraglab"'
$(BUILD)/sim/version.o: $(BUILD)/version.stamp
$(BUILD)/version.stamp: FORCE
	@mkdir -p $(@D); new="$(VERSION) $(COMMIT) $(PREFIX) $(COMMIT_DATE)"; \
	[ "$$new" = "$$(cat $@ 2>/dev/null)" ] || echo "$$new" > $@

# ---- what must be installed first; `sh setup.sh` says what is missing and gets it
# SETUP=no: nothing is looked for; the compiler's flags say where the libraries are.
setup:
	@$(if $(filter no,$(SETUP)),:,CC="$(CC)" sh setup.sh build)
setup-harness:
	@CC="$(CC)" sh setup.sh harness
# WITH=all (or names) also installs what only some tests use: a browser, MPI, a second compiler.
setup-test:
	@CC="$(CC)" WITH="$(WITH)" sh setup.sh test

debug asan tsan:
	+@$(MAKE) --no-print-directory MODE=$@ build/$@/fraglab
	@echo "build/$@/fraglab"

# ---- tests
test-programs: $(test_programs) $(BUILD)/tests/policy_fuzzer software-cuda golden-logs
# They load the software CUDA from beside them.
$(addprefix $(BUILD)/tests/test_,cuda_contract cuda_device cudnn nccl software_cuda software_garbage software_report software_shadow software_streams): | $(software_libraries)
$(BUILD)/tests/test_cudnn: | $(SOFTWARE)/12/libcudnn.so.9
$(BUILD)/tests/test_nccl: | $(SOFTWARE)/12/libnccl.so.2
# Generated traces against dry runs of the same workloads: TORCH, a release that is there (FRAG_DRYRUN_VENV), and CASES, or DRAWN of them, by SEED and of FAMILIES.
workloads-truth: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@$(if $(DRAWN),DRAWN="$(DRAWN) $(or $(SEED),1) $(FAMILIES)") sh tests/workload/truth.sh ./fraglab $(or $(TORCH),2.9.1) $(CASES)
# Generated peaks beside those that others measured on real GPUs and published.
published: all
	@python3 tests/workload/published.py ./fraglab
# Plans against dry runs at the capacity that they were made for: PYTHON with torch 2.9.1 and what else program.py imports, PAIRS, SEED, FAMILIES.
plan-truth: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@python3 tests/workload/plan_truth.py ./fraglab $(PYTHON) $(or $(PAIRS),24) $(or $(SEED),1) $(FAMILIES)
# What guides say, judged: with PYTHON (torch 2.9.1, torchvision, transformers, peft, bitsandbytes) the dry runs anew, of claims with one
# of the words in CLAIMS; the page from the rows in any case.
claims: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@$(if $(PYTHON),python3 tests/workload/claims/claims.py measure ./fraglab $(PYTHON) $(CLAIMS))
	@python3 tests/workload/claims/claims.py page > docs/claims.md.tmp && mv docs/claims.md.tmp docs/claims.md
fuzz-programs: $(fuzz_programs)
# What the program does not hold, for another compiler's warnings: make CC=clang MODE=syntax syntax
syntax: $(call objects,$(API) $(GPU) $(TORCH_LIBRARY) $(SUPPORT) $(TESTS) $(FUZZERS) tests/fuzz/fuzz_main.c tests/fuzz/policy_fuzzer.c) $(standin_objects) \
        $(call software_objects,core,$(software_core) gpu_replay/software/driver/soft_nvml.c gpu_replay/software/host_objects.c) \
        $(call software_objects,runtime12,$(software_runtime)) $(call software_objects,runtime13,$(software_runtime))

test: setup-test
	@JOBS=$(JOBS) MAKE="$(MAKE)" sh tests/all.sh

# The five-minute loop: builds, runs the unit tests whose programs changed since they last passed, and checks the tree's rules.
check: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=release fraglab test-programs
	@bash tests/house/check.sh build/release/tests $(patsubst $(BUILD)/%,build/release/%,$(test_programs))

# For editors and tools: how each C file is compiled; where each name is.
compile_commands.json: FORCE
	@bash tests/house/compile_commands.sh "$(MAKE)" > $@.tmp && mv $@.tmp $@
our_code = $(sort $(shell git ls-files '*.c' '*.h'))
tags: FORCE
	@command -v ctags >/dev/null || { echo "ctags is not installed (Debian, Ubuntu: universal-ctags)" >&2; exit 1; }
	ctags -f $@ $(our_code)
format:
	@command -v clang-format >/dev/null || { echo "clang-format is not installed (Debian, Ubuntu: clang-format)" >&2; exit 1; }
	clang-format -i $(our_code)
# clang-tidy over everything but tests; .clang-tidy says which checks, and why others are left out.
tidy: compile_commands.json
	@command -v clang-tidy >/dev/null || { echo "clang-tidy is not installed (Debian, Ubuntu: clang-tidy)" >&2; exit 1; }
	@sed -n 's/.*"file": "\([^"]*\)".*/\1/p' compile_commands.json | grep -v '^tests/' | xargs -P$(JOBS) -n8 clang-tidy -p . --quiet 2>/dev/null

# With libFuzzer where clang has it: FUZZ_SECONDS for each target, starting from tests/fuzz/corpus/.
FUZZ_SECONDS ?= 60
fuzz:
	@CC=clang sh setup.sh fuzz
	@MAKE="$(MAKE)" JOBS=$(JOBS) sh tests/fuzz/fuzz.sh $(FUZZ_SECONDS)

# Every policy with its options over random traces: EVENTS (1e7, say) in each of both builds.
fuzz-policies: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=release build/release/tests/policy_fuzzer
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=asan build/asan/tests/policy_fuzzer
	build/release/tests/policy_fuzzer --events $(or $(EVENTS),1e7) --seed $(or $(SEED),1) --keep build/policy_fuzzer.trace
	build/asan/tests/policy_fuzzer --events $(or $(EVENTS),1e7) --seed $(or $(SEED),1) --keep build/policy_fuzzer.trace

# Would the tests notice a wrong operator? COUNT changes at random, at most SECONDS; ONLY=regular expression for paths;
# QUICK=1: of the command-line tests only those of the folder; AGAIN=output of an earlier run: what it did not notice.
# UNREACHED=1: only lists the lines with an operator that no unit test and no golden log runs.
mutants: setup-harness
	@python3 tests/fuzz/mutants.py --count $(or $(COUNT),60) --seed $(or $(SEED),1) --seconds $(or $(SECONDS),3600) --jobs $(JOBS) --only "$(ONLY)" --change "$(CHANGE)" $(if $(QUICK),--quick) $(if $(AGAIN),--again "$(AGAIN)") $(if $(UNREACHED),--unreached)

# After a change on purpose: every pinned text is written anew, to be read in the diff; NAME-golden writes one kind.
PINNED = help results statistics fields explain answers docs
golden-update: fraglab setup-harness
	+@MAKE="$(MAKE)" bash tests/house/golden_update.sh $(PINNED)
$(PINNED:%=%-golden): %-golden: fraglab setup-harness
	+@MAKE="$(MAKE)" bash tests/house/golden_update.sh $*

# Do recordings predict the other runs of their programs? tests/data/predictions/README.md says what
# FOLDER holds. The table goes to stdout.
predictions: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=release build/release/tests/test_predictions >&2
	@build/release/tests/test_predictions "$(or $(FOLDER),$(error FOLDER= is missing))"

# Of recordings that ran out of memory: are the settings that explain says would have fitted those that did?
explain-truth: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=release build/release/tests/test_explain_truth >&2
	@build/release/tests/test_explain_truth "$(or $(FOLDER),$(error FOLDER= is missing))"

# The tables of docs/own-policy.md: of the bundled recordings, or of those in FOLDER.
evidence: fraglab
	@bash tests/benchmarks/evidence.sh peaks $(FOLDER:%=%/*.zst)
	@echo
	@bash tests/benchmarks/evidence.sh capacity $(FOLDER:%=%/*.zst)

# Policies against logs of the libraries themselves: the bundled ones, or any folder of them.
golden: fraglab golden-logs
	./fraglab verify --against golden $(or $(DIR),build/golden tests/data/golden-peers)
golden-logs:
	@sh tests/golden_logs.sh

# PyTorch's own allocator of any release, over the software CUDA: golden logs of fresh seeds, or of
# the bundled ones. Gets the wheel with pip.
ORACLE_OUT = $(or $(OUT),build/oracle/golden)
oracle: fraglab golden-logs software-cuda
	python3 gpu_replay/oracle/oracle.py --torch "$(or $(TORCH),$(error TORCH= is missing, such as TORCH=2.9.1))" \
	    --first-seed "$(or $(SEEDS),1)" --out "$(ORACLE_OUT)" --build build/oracle --software "$(SOFTWARE)" \
	    --only "$(ONLY)" --jobs "$(JOBS)" $(if $(WHEELS),--wheels "$(WHEELS)")
	./fraglab verify --against golden "$(ORACLE_OUT)"

# A dry run: PyTorch itself trains on fraglab's policies over software CUDA, with no GPU; its wheel (1 GB) comes from the package
# index. Exit code 77 of the script: it cannot be had.
torch-dryrun: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@sh gpu_replay/dryrun/dryrun.sh build/release $(or $(TORCH),2.9.1) $(FOLDER) || [ $$? = 77 ]

# Dry runs of the programs in tests/dryrun on releases of PyTorch, TORCH=2.9.1,2.15.0; says the size of what it fetches first.
dryrun-test: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@sh tests/dryrun/dryrun_test.sh ./fraglab $(or $(TORCH),2.9.1) $(PROGRAMS) || [ $$? = 77 ]

# How long dry runs take, and how much host memory; RUNS of each.
dryrun-bench: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@sh tests/dryrun/dryrun_bench.sh ./fraglab $(or $(TORCH),2.9.1) $(or $(RUNS),3) || [ $$? = 77 ]

# Dry runs against peaks that others measured on real cards, and against their recordings; says the size of what it fetches first.
# SERIES=word: those with it in their name.
truth: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@status=0; for part in truth recordings; do \
	    sh tests/truth/$$part.sh ./fraglab "$(SERIES)" || [ $$? = 77 ] || status=1; \
	done; exit $$status

# Programs that leak, and that look as if they did, as dry runs. PYTHON: one that has PyTorch.
leaks-truth: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@sh tests/dryrun/leaks_test.sh ./fraglab $(or $(PYTHON),python3)

# Known regressions of PyTorch and packages, found by running a script under two releases. PROGRAMS: their names; FRAG_DRYRUN_VENV: ready releases.
regressions-truth: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab software-cuda
	@sh tests/regressions/regressions.sh ./fraglab $(PROGRAMS) || [ $$? = 77 ]

# pytest --fraglab on tests of timm, whose source it fetches into build/foreign. PYTHON: one that has PyTorch for CUDA, pytest and timm. REPEATS of one of them.
foreign-tests: setup
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release fraglab library software-cuda
	@python3 tests/python/foreign/foreign.py $(or $(PYTHON),python3) $(or $(REPEATS),100) || [ $$? = 77 ]

# Wrong arguments to every function of the Python package, CALLS of each from 8 threads, over the library with sanitizers.
hostile-calls: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=asan library
	@LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 \
	    FRAGLAB_LIBRARY=build/asan/library/libfraglab.so.0 FRAG_PYTHON_CALLS=$(or $(CALLS),1000) python3 tests/python/test_api.py Hostile

# Does a policy keep the contract? POLICY is a name or a shared object, with options as after --policy.
conformance: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) $(BUILD)/tests/test_conformance
	@$(BUILD)/tests/test_conformance "$(or $(POLICY),$(error POLICY= is missing, such as POLICY=./mine.so))" $(ALIGN)

bench: setup-harness
	+@$(MAKE) --no-print-directory -j$(JOBS) MODE=release build/release/tests/bench
	@mkdir -p build
	build/release/tests/bench

# Patterns on which lists get long, and a sweep of a thousand configurations.
bench-patterns: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=release fraglab build/release/tests/bench
	@python3 tests/benchmarks/bench_patterns.py build/bench-patterns

# A snapshot of so many gigabytes to measure on: make big-snapshot GIGABYTES=10 FILE=/tmp/big.pickle; FRAMES=0: small entries, so many more
big-snapshot: setup-harness
	+@$(MAKE) --no-print-directory -s -j$(JOBS) MODE=release build/release/tests/make_snapshot
	build/release/tests/make_snapshot "$(or $(GIGABYTES),1)" "$(or $(FILE),build/big.pickle)" $(FRAMES)

# The page of a report in a browser: its size, how long it takes to load, to step, to zoom, to search.
bench-page: setup-test
	+@$(MAKE) --no-print-directory -j$(JOBS) fraglab
	@mkdir -p build
	@python3 tests/report/bench_page.py build/bench-page.json $(EVENTS)

# On a machine with a GPU: docs/real-device.md and the card's description. The script names its variables.
gpu-report: fraglab
	@bash gpu_replay/report.sh build/gpu-report

# The figures of docs/ that are drawn from workloads.
plots: fraglab
	@sh tests/workload/fixes_figure.sh ./fraglab docs/figures/fixes.png

# ---- from a fresh clone to pictures: three recordings, every policy, five kinds of plot, a page
DEMO = build/demo
DEMO_TRACES = $(addprefix traces/samples/,gpt-varlen.pickle.zst resnet-vary.pickle.zst unet.pickle.zst)
demo:
	@CC="$(CC)" sh setup.sh demo
	+@$(MAKE) --no-print-directory -j$(JOBS) fraglab
	@sh demo.sh $(DEMO) $(DEMO_TRACES)

# ---- installing
BINDIR = $(DESTDIR)$(PREFIX)/bin
MANDIR = $(DESTDIR)$(PREFIX)/share/man/man1
COMPLETIONDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
INCLUDEDIR = $(DESTDIR)$(PREFIX)/include/fraglab
# Debian has a folder of libraries for each architecture: LIB=lib/x86_64-linux-gnu. What the program opens stays in lib/fraglab.
LIB ?= lib
LIBDIR = $(DESTDIR)$(PREFIX)/$(LIB)
DATADIR = $(DESTDIR)$(PREFIX)/share/fraglab
MODULEDIR = $(DESTDIR)$(PREFIX)/lib/fraglab
DOCDIR = $(DESTDIR)$(PREFIX)/share/doc/fraglab
# What sim/policy.h reaches: enough to build a policy outside this tree.
POLICY_HEADERS = sim/policy.h sim/device.h sim/device_call.h sim/pool_id.h base/error.h base/memory.h base/bits.h base/bytes.h

# Prints the manual page and completions: another one where this one is built for another machine.
PAGES_FROM ?= ./fraglab
# DRYRUN=no: without the software CUDA. Documentation is installed as it lies here, so that links from one page to another hold.
install: fraglab library $(if $(filter no,$(DRYRUN)),,software-cuda)
	install -d "$(LIBDIR)/pkgconfig"
	install -m 755 $(LIBRARY)/libfraglab.so.0 "$(LIBDIR)/libfraglab.so.0"
	ln -sf libfraglab.so.0 "$(LIBDIR)/libfraglab.so"
	[ "$(STATIC)" = no ] || install -m 644 $(LIBRARY)/libfraglab.a "$(LIBDIR)/libfraglab.a"
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIB@|$(LIB)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIBS)|' api/fraglab.pc.in > "$(LIBDIR)/pkgconfig/fraglab.pc"
	install -d "$(BINDIR)" "$(MANDIR)" "$(COMPLETIONDIR)" "$(ZSHDIR)" "$(FISHDIR)" "$(INCLUDEDIR)/sim" "$(INCLUDEDIR)/base" "$(DATADIR)/plots" "$(DATADIR)/devices" "$(DATADIR)/schemas" "$(DATADIR)/examples" "$(DOCDIR)"
	install -m 755 fraglab "$(BINDIR)/fraglab"
	[ -z "$(gpu_targets)" ] || { install -d "$(MODULEDIR)" && install -m 755 fraglab_cuda.so libfraglab_torch.so "$(MODULEDIR)/" && \
	    install -m 644 gpu_replay/torch/fraglab_torch.py "$(DATADIR)/"; }
	[ -z "$(mpi_targets)" ] || { install -d "$(MODULEDIR)" && install -m 755 fraglab_mpi.so "$(MODULEDIR)/"; }
	[ "$(DRYRUN)" = no ] || for file in site/sitecustomize.py $(patsubst gpu_replay/dryrun/%,%,$(wildcard gpu_replay/dryrun/site/fraglab_dryrun/*.py)) probe.py environments.py; do \
	    install -D -m 644 gpu_replay/dryrun/$$file "$(DATADIR)/dryrun/$$file" || exit 1; done
	[ "$(DRYRUN)" = no ] || { install -D -m 755 gpu_replay/dryrun/tools/nvidia-smi "$(DATADIR)/dryrun/tools/nvidia-smi" && install -d "$(MODULEDIR)/software-cuda" && \
	    install -m 755 $(SOFTWARE)/libcuda.so.1 $(SOFTWARE)/libnvidia-ml.so.1 $(SOFTWARE)/libfraglab-objects.so.1 "$(MODULEDIR)/software-cuda/"; }
	[ "$(DRYRUN)" = no ] || for major in 12 13; do install -d "$(MODULEDIR)/software-cuda/$$major" && cp -P $(SOFTWARE)/$$major/* "$(MODULEDIR)/software-cuda/$$major/" || exit 1; done
	for file in $(notdir $(record_targets)); do install -m 755 $$file "$(MODULEDIR)/" || exit 1; done
	install -m 644 share/fraglab_record.py "$(DATADIR)/"
	$(PAGES_FROM) help --man > "$(MANDIR)/fraglab.1"
	$(PAGES_FROM) help --completion > "$(COMPLETIONDIR)/fraglab"
	$(PAGES_FROM) help --completion zsh > "$(ZSHDIR)/_fraglab"
	$(PAGES_FROM) help --completion fish > "$(FISHDIR)/fraglab.fish"
	install -m 644 include/fraglab.h "$(DESTDIR)$(PREFIX)/include/fraglab.h"
	install -m 644 include/fraglab_policy.h "$(DESTDIR)$(PREFIX)/include/fraglab_policy.h"
	for header in $(POLICY_HEADERS); do install -m 644 $$header "$(INCLUDEDIR)/$$header" || exit 1; done
	install -m 644 $(wildcard examples/*.c) "$(DATADIR)/examples/"
	sed 's|^PREFIX ?=.*|PREFIX ?= $(PREFIX)|' examples/Makefile > "$(DATADIR)/examples/Makefile"
	for file in $(wildcard plots/*.gp plots/*.gnuplot plots/*.plt); do install -m 644 $$file "$(DATADIR)/plots/" || exit 1; done
	for file in $(wildcard devices/*.yaml); do install -m 644 $$file "$(DATADIR)/devices/" || exit 1; done
	for file in $(wildcard schemas/*.json); do install -m 644 $$file "$(DATADIR)/schemas/" || exit 1; done
	for file in README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE CITATION.cff allocators/README.md $(wildcard docs/* docs/*/*); do \
	    [ ! -f $$file ] || install -D -m 644 $$file "$(DOCDIR)/$$file" || exit 1; done

# ---- for Python: a wheel that runs on any Linux with glibc 2.17 or newer, and a source distribution that builds (docs/release.md)
# SOURCES=folder with the source packages of the libraries; without it they are fetched. Compiler and libraries stay in build/wheel.
# TARGET=aarch64-linux-gnu.2.17, or another of packaging/wheel.sh; wheels: all of them.
wheel:
	@MAKE="$(MAKE)" JOBS="$(JOBS)" bash packaging/wheel.sh "$(SOURCES)" $(TARGET)
WHEEL_TARGETS = $(foreach libc,gnu.2.17 musl,x86_64-linux-$(libc) aarch64-linux-$(libc))
wheels:
	@for target in $(WHEEL_TARGETS); do MAKE="$(MAKE)" JOBS="$(JOBS)" bash packaging/wheel.sh "$(SOURCES)" $$target || exit 1; done
sdist:
	@python3 packaging/backend.py build/wheel
# Of the wheel: every Python here, and systems of their own (fetched) where debootstrap can make them.
wheel-test: wheel sdist
	@bash tests/packaging/wheel_test.sh build/wheel $(PYTHONS)

# A wheel for another machine beside this one's: what both print must be the same bytes (qemu, packages of Debian for that machine).
foreign-wheel-test:
	@[ -n "$(TARGET)" ] || { echo "name it: make foreign-wheel-test TARGET=aarch64-linux-gnu.2.17" >&2; exit 2; }
	@MAKE="$(MAKE)" JOBS="$(JOBS)" bash packaging/wheel.sh "$(SOURCES)" $(TARGET)
	@bash tests/packaging/foreign_wheel_test.sh build/wheel $(TARGET)
# The Containerfile, carried out in folders of debootstrap.
container-test:
	@bash tests/packaging/container_test.sh

# Packages for Debian, built from the source distribution in build/deb and checked by lintian; deb-test installs them into a bare Debian (docs/release.md).
deb:
	@JOBS="$(JOBS)" bash packaging/deb.sh build/deb
deb-test: deb
	@bash tests/packaging/deb_test.sh build/deb

uninstall:
	rm -f "$(BINDIR)/fraglab" "$(MANDIR)/fraglab.1" "$(COMPLETIONDIR)/fraglab" "$(ZSHDIR)/_fraglab" "$(FISHDIR)/fraglab.fish"
	rm -f "$(LIBDIR)/libfraglab.so.0" "$(LIBDIR)/libfraglab.so" "$(LIBDIR)/libfraglab.a" "$(LIBDIR)/pkgconfig/fraglab.pc" "$(DESTDIR)$(PREFIX)/include/fraglab.h" "$(DESTDIR)$(PREFIX)/include/fraglab_policy.h"
	rm -rf "$(INCLUDEDIR)" "$(DATADIR)" "$(DOCDIR)" "$(MODULEDIR)"

clean:
	rm -rf build
distclean: clean
	rm -f fraglab fraglab_cuda.so fraglab_mpi.so libfraglab_torch.so libfraglab_record.so libfraglab_cupti.so tags compile_commands.json *.tmp

help:
	@echo 'make            build ./fraglab (installs missing packages on Debian and Ubuntu)'
	@echo 'make demo       replay sample recordings, draw the plots and a page into build/demo/'
	@echo 'make test       run all tests, in every build; WITH=all installs optional packages; FRAG_STRICT=1: a skip is an error'
	@echo 'make check      builds, runs the unit tests that changed since they passed, checks the rules of the tree: under a minute'
	@echo 'make conformance POLICY=./mine.so  does a policy of yours keep the contract? ALIGN=bytes its blocks are multiples of (256)'
	@echo 'make bench      speed of loading and replay, into build/bench.json'
	@echo 'make bench-patterns  long lists, a million live blocks, a sweep of a thousand configurations'
	@echo 'make big-snapshot  a snapshot to measure on, GIGABYTES=10 FILE=build/big.pickle FRAMES=90'
	@echo 'make bench-page  size and speed of the page of a report in a browser, into build/bench-page.json; EVENTS="84000 1000000"'
	@echo 'make predictions FOLDER=...  do recordings in FOLDER predict the other runs of their programs?'
	@echo 'make explain-truth FOLDER=...  did the settings fit that explain says would have?'
	@echo 'make evidence   the policy of our own against others, on the bundled recordings or those in FOLDER=...'
	@echo 'make gpu-report  on a machine with a GPU: measure it, compare simulated with real, into docs/real-device.md'
	@echo 'make record-cost  what the recorder adds to each call of a program'
	@echo 'make fuzz       fuzz every reader for FUZZ_SECONDS (60) each'
	@echo 'make fuzz-policies EVENTS=1e8  every policy with its options over random traces, SEED=1; a failure is made small and kept'
	@echo 'make mutants COUNT=60  do the tests notice operators changed at random, in a copy of the tree? SEED=1, SECONDS=3600, ONLY=path, CHANGE=regex, QUICK=1, AGAIN=log, UNREACHED=1'
	@echo 'make golden     compare with logs of the libraries themselves, DIR=folder of them'
	@echo 'make oracle TORCH=2.9.1  golden logs of that release made anew and compared; SEEDS=first seed, OUT=folder, WHEELS=folder'
	@echo 'make golden-update  pin anew what tests pin, after it was changed on purpose; NAME-golden: one of $(PINNED)'
	@echo 'make torch-dryrun TORCH=2.9.1  dry run: PyTorch on fraglab over software CUDA (downloads its wheel)'
	@echo 'make dryrun-test TORCH=2.9.1,2.15.0  dry runs of many programs, checked (fetches wheels, saying their size)'
	@echo 'make dryrun-bench TORCH=2.9.1  how long dry runs take, and how much host memory, RUNS=3 of each'
	@echo 'make workloads-truth  generated traces against dry runs of the same workloads, request by request'
	@echo 'make published    generated peaks beside those that others measured on real GPUs'
	@echo 'make plan-truth PYTHON=...  plans against dry runs at the capacity that they are for'
	@echo 'make plots      docs/figures/fixes.png: memory over time, before and after each fix'
	@echo 'make claims [PYTHON=...]  docs/claims.md: what guides say of memory, judged by dry runs'
	@echo 'make truth      dry runs against peaks and recordings published of real cards, SERIES=word (fetches wheels, saying their size)'
	@echo 'make leaks-truth PYTHON=python3  programs that leak, and that only look so, as dry runs of a PyTorch that is there'
	@echo 'make regressions-truth  known regressions of PyTorch and packages, found by dry runs of two releases (fetches wheels)'
	@echo 'make foreign-tests PYTHON=...  pytest --fraglab on the tests of another package, timm (fetches them)'
	@echo 'make hostile-calls  wrong arguments to the Python package over the library with sanitizers, CALLS of each function'
	@echo 'make CC=clang MODE=syntax syntax  the warnings of another compiler for all that is not in the program, without objects'
	@echo 'make software-cuda  CUDA libraries that account for memory with no GPU, for tests'
	@echo 'make debug      build/debug/fraglab; also: make asan, make tsan (sanitizers)'
	@echo 'make install    into PREFIX (/usr/local), below DESTDIR; make uninstall takes it away'
	@echo 'make wheel      the wheel for Python into build/wheel, for any Linux with glibc 2.17; make wheels: for other machines, too; make sdist: its source; make wheel-test: in bare environments'
	@echo 'make foreign-wheel-test TARGET=aarch64-linux-gnu.2.17  a wheel for another machine prints the same bytes (qemu)'
	@echo 'make container-test  the Containerfile, in folders of debootstrap'
	@echo 'make deb        packages for Debian into build/deb, checked by lintian; make deb-test: installed into a bare Debian'
	@echo 'make macos-proof  does the program build for macOS (not run)?'
	@echo 'make viewer     a page that opens recordings in a browser, with the library as WebAssembly; make viewer-test: against the command line'
	@echo 'make format     clang-format over the C files; make tidy: clang-tidy; make tags, make compile_commands.json: for editors'
	@echo 'make clean      remove build/; make distclean removes ./fraglab too'
	@echo 'variables: V=1 (show commands)  CC=gcc|clang  CUDA=no|yes|auto  MPI=no|yes|auto  MODE=release|debug|asan|tsan  BUILD=folder  CFLAGS  LDFLAGS'

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
FORCE:
.PHONY: software-cuda all library setup setup-harness setup-test debug asan tsan test-programs fuzz-programs syntax test check format tidy fuzz fuzz-policies mutants golden golden-logs oracle \
        golden-update $(PINNED:%=%-golden) conformance bench bench-patterns big-snapshot bench-page predictions evidence explain-truth plots torch-dryrun dryrun-test dryrun-bench leaks-truth regressions-truth foreign-tests hostile-calls workloads-truth plan-truth published claims truth gpu-report demo wheel wheels sdist wheel-test foreign-wheel-test container-test deb deb-test macos-proof viewer viewer-test install uninstall clean distclean help FORCE
# Objects of tests are kept. Not all targets: one that is secondary and missing is not built where what
# needs it is newer, as when MPI is installed after the program was built.
.SECONDARY: $(patsubst %.c,$(BUILD)/%.o,$(TESTS) $(FUZZERS))
