# tests/local.mk - test_x.c is a program, app_x.sh runs a program as a user
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# To add a test, add its name to a list.  Its points come out as TAP (tap.h).

# What the tests share.
check_LTLIBRARIES = %D%/libcheck.la
%C%_libcheck_la_SOURCES = \
    %D%/backends.h \
    %D%/check.c \
    %D%/check.h \
    %D%/check_values.c \
    %D%/copy_layer.h \
    %D%/custom_data.h \
    %D%/fuzz.c \
    %D%/fuzz.h \
    %D%/huge_loss.h \
    %D%/judge.c \
    %D%/judge.h \
    %D%/number.h \
    %D%/layer_cases.c \
    %D%/layer_cases.h \
    %D%/op_rows.c \
    %D%/oracle.c \
    %D%/oracle.h \
    %D%/ranks_check.h \
    %D%/ranks_fork.h \
    %D%/pixel_layer.h \
    %D%/random.h \
    %D%/remove_tree.h \
    %D%/same_bits.h \
    %D%/sanitized.h \
    %D%/small_net.h \
    %D%/sums.h \
    %D%/torch_part.c \
    %D%/torch_part.h \
    %D%/watch_layer.h

LDADD = %D%/libcheck.la libddp_core.la

# Programs that measure.
noinst_PROGRAMS =

# Messages between ranks that a test starts, in place of the module of MPI.
check_LTLIBRARIES += %D%/wire/ddp_mpi.la
%C%_wire_ddp_mpi_la_SOURCES = %D%/wire/wire.c
%C%_wire_ddp_mpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
    -rpath /nowhere
EXTRA_%C%_test_host_DEPENDENCIES = %D%/wire/ddp_mpi.la
EXTRA_%C%_test_lost_DEPENDENCIES = %D%/wire/ddp_mpi.la
EXTRA_%C%_test_ranks_DEPENDENCIES = %D%/wire/ddp_mpi.la

# A driver that reports what a test sets; as a module, to be opened.
if HAVE_CUDA
check_LTLIBRARIES += %D%/fake_cuda.la
%C%_fake_cuda_la_SOURCES = %D%/fake_cuda.c
%C%_fake_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
    -rpath /nowhere

# Counts allocations, for LD_PRELOAD.
check_LTLIBRARIES += %D%/count_cuda.la
%C%_count_cuda_la_SOURCES = %D%/count_cuda.c
%C%_count_cuda_la_LDFLAGS = $(%C%_fake_cuda_la_LDFLAGS)

# GPUs made of the processor, for LD_PRELOAD.
check_LTLIBRARIES += %D%/emulated_gpu.la
%C%_emulated_gpu_la_SOURCES = \
    %D%/emulator/blas.c \
    %D%/emulator/dnn.c \
    %D%/emulator/emulator.h \
    %D%/emulator/late.c \
    %D%/emulator/launch.c \
    %D%/emulator/others.c \
    %D%/emulator/runtime.c \
    %D%/emulator/stream.c
%C%_emulated_gpu_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) \
    -I$(top_srcdir)/tests/emulator
%C%_emulated_gpu_la_LDFLAGS = $(%C%_fake_cuda_la_LDFLAGS)
%C%_emulated_gpu_la_LIBADD = -lm -lpthread

if HAVE_MPI
# Counts what they send, for LD_PRELOAD.
check_LTLIBRARIES += %D%/count_mpi.la
%C%_count_mpi_la_SOURCES = %D%/count_mpi.c
%C%_count_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(MPI_CFLAGS)
%C%_count_mpi_la_LDFLAGS = $(%C%_fake_cuda_la_LDFLAGS)
%C%_count_mpi_la_LIBADD = $(MPI_LIBS)
endif

# Kernels against ref, on a GPU.
cuda_programs = %D%/test_ops_cuda
%C%_test_ops_cuda_SOURCES = %D%/test_ops.c %D%/on_gpu.c %D%/on_gpu.h
%C%_test_ops_cuda_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DTEST_CUDA
%C%_test_ops_cuda_LDADD = $(LDADD_CUDA)

# Times of what cuDNN could fuse.
noinst_PROGRAMS += %D%/fusebench
%C%_fusebench_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_fusebench_LDADD = $(LDADD_CUDA)
endif

if HAVE_ONEDNN
# Times of CPU workers' kernels and of oneDNN's.
noinst_PROGRAMS += %D%/kernelbench
%C%_kernelbench_SOURCES = %D%/kernelbench.c %D%/dnn_images.c \
    %D%/dnn_images.h %D%/dnn_peer.c %D%/dnn_peer.h %D%/dnn_steps.c \
    %D%/dnn_steps.h
endif

# Others run these in several processes.
EXTRA_PROGRAMS += %D%/ranks_data %D%/ranks_own %D%/ranks_program

if HAVE_MPI
EXTRA_PROGRAMS += %D%/mpi_program
%C%_mpi_program_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
%C%_mpi_program_LDADD = libddp.la $(MPI_LIBS)

# Kills a rank, for LD_PRELOAD.
check_LTLIBRARIES += %D%/die_mpi.la
%C%_die_mpi_la_SOURCES = %D%/die_mpi.c
%C%_die_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
%C%_die_mpi_la_LDFLAGS = $(%C%_wire_ddp_mpi_la_LDFLAGS)
%C%_die_mpi_la_LIBADD = $(MPI_LIBS)
endif

# make check starts tests in this order: those that take long are not the last
# ones, which one core would run alone; then come those that run apart, and those
# that run alone, as others would wait for them.
slow_programs = \
    %D%/fuzz_checkpoint \
    %D%/fuzz_data \
    %D%/fuzz_options \
    %D%/test_checkpoint \
    %D%/test_checkpoint_faults \
    %D%/test_i16_conv \
    %D%/test_models \
    %D%/test_ops \
    %D%/test_ops_avx2 \
    %D%/test_ranks \
    %D%/test_strips \
    %D%/test_torch \
    %D%/test_zoo
usual_programs = \
    %D%/fuzz_image \
    %D%/fuzz_safetensors \
    %D%/fuzz_storage \
    %D%/test_accumulators \
    %D%/test_act \
    %D%/test_amx_pixels \
    %D%/test_aux \
    %D%/test_bad_layers \
    %D%/test_batch \
    %D%/test_bias \
    %D%/test_bn_silu \
    %D%/test_buckets \
    %D%/test_checkpoint_files \
    %D%/test_checkpoint_settings \
    %D%/test_compiled \
    %D%/test_config \
    %D%/test_context \
    %D%/test_convert \
    %D%/test_cpu_plans \
    %D%/test_cgroup \
    %D%/test_crc32c \
    %D%/test_cuda_after \
    %D%/test_cuda_host \
    %D%/test_cuda_places \
    %D%/test_cuda_plans \
    %D%/test_cuda_threads \
    %D%/test_cuda_weights \
    %D%/test_custom \
    %D%/test_data \
    %D%/test_data_bad \
    %D%/test_data_sets \
    %D%/test_dense \
    %D%/test_device \
    %D%/test_disk_cache \
    %D%/test_drop_last \
    %D%/test_dropout \
    %D%/test_defer \
    %D%/test_early \
    %D%/test_ema \
    %D%/test_errmsg \
    %D%/test_extents \
    %D%/test_parts \
    %D%/test_peers \
    %D%/test_finetune \
    %D%/test_evaluate \
    %D%/test_faults \
    %D%/test_fold \
    %D%/test_gpu \
    %D%/test_gpu_facts \
    %D%/test_gpu_train \
    %D%/test_idle \
    %D%/test_loss_scaler \
    %D%/test_lost \
    %D%/test_halves \
    %D%/test_host \
    %D%/test_image \
    %D%/test_image_crops \
    %D%/test_image_formats \
    %D%/test_isa \
    %D%/test_kinds \
    %D%/test_layers \
    %D%/test_memory \
    %D%/test_mix \
    %D%/test_mlflow \
    %D%/test_norm \
    %D%/test_normal \
    %D%/test_one_image \
    %D%/test_onnx \
    %D%/test_operations \
    %D%/test_optim \
    %D%/test_order \
    %D%/test_own_rule \
    %D%/test_part \
    %D%/test_pause \
    %D%/test_pillow \
    %D%/test_pointwise \
    %D%/test_policy \
    %D%/test_printable \
    %D%/test_pullback \
    %D%/test_ref \
    %D%/test_requests \
    %D%/test_roof \
    %D%/test_safetensors \
    %D%/test_scale \
    %D%/test_sched_names \
    %D%/test_schedule \
    %D%/test_segment \
    %D%/test_share \
    %D%/test_shared_pack \
    %D%/test_skinny \
    %D%/test_slice \
    %D%/test_split \
    %D%/test_starpu_env \
    %D%/test_start \
    %D%/test_step \
    %D%/test_sync_bn \
    %D%/test_stream \
    %D%/test_tap \
    %D%/test_taps \
    %D%/test_tars \
    %D%/test_teacher \
    %D%/test_thin \
    %D%/test_toml \
    %D%/test_topology \
    %D%/test_trace \
    %D%/test_tracing \
    %D%/test_update \
    %D%/test_wandb \
    %D%/test_webdataset \
    %D%/test_weights \
    %D%/test_wgrad \
    %D%/test_wino \
    %D%/test_wino_line

# Those that measure time, or keep all cores busy: with make -j, no other test runs
# at the same time.
alone_programs = \
    %D%/test_exchange \
    %D%/test_exchange_parts \
    %D%/test_gather \
    %D%/test_once \
    %D%/test_sched \
    %D%/test_sched_help \
    %D%/test_sched_order \
    %D%/test_sched_owners \
    %D%/test_sched_rates \
    %D%/test_sinks

check_PROGRAMS += $(cuda_programs) $(slow_programs) $(usual_programs) \
    $(alone_programs)

# A new device: its folder, and the list of devices with one row more, which
# takes the place of the library's.
%C%_test_device_SOURCES = \
    %D%/dummy/dummy.c \
    %D%/dummy/dummy.h \
    %D%/test_device.c \
    codelets/runtime/device_list.c
%C%_test_device_CPPFLAGS = -I%D%/dummy -I$(srcdir)/%D% $(AM_CPPFLAGS)

$(%C%_test_device_OBJECTS): %D%/dummy/runtime/device_rows.h
%D%/dummy/runtime/device_rows.h: $(srcdir)/codelets/runtime/device_rows.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	    $(AWK) '/ddp__device_cpu/ { print "DDP__DEVICE(ddp__device_dummy)" } 1' \
	    $(srcdir)/codelets/runtime/device_rows.h >$@
CLEANFILES += %D%/dummy/runtime/device_rows.h

checkpoint_run = \
    %D%/checkpoint_run.c \
    %D%/checkpoint_run.h
%C%_test_checkpoint_SOURCES = %D%/test_checkpoint.c $(checkpoint_run)
%C%_test_checkpoint_settings_SOURCES = \
    %D%/test_checkpoint_settings.c $(checkpoint_run)

# With their own write() and rename(), which are not for other tests.
%C%_test_checkpoint_faults_SOURCES = \
    %D%/crash.c \
    %D%/crash.h \
    %D%/test_checkpoint_faults.c $(checkpoint_run)
%C%_test_checkpoint_files_SOURCES = \
    %D%/crash.c \
    %D%/crash.h \
    %D%/test_checkpoint_files.c $(checkpoint_run)

# Tasks for the scheduler.
sched_jobs = \
    %D%/sched_jobs.c \
    %D%/sched_jobs.h
%C%_test_sched_SOURCES = %D%/test_sched.c $(sched_jobs)
%C%_test_sched_help_SOURCES = %D%/test_sched_help.c $(sched_jobs)
%C%_test_sched_order_SOURCES = %D%/test_sched_order.c $(sched_jobs)
%C%_test_sched_owners_SOURCES = %D%/test_sched_owners.c $(sched_jobs)
%C%_test_sched_rates_SOURCES = %D%/test_sched_rates.c $(sched_jobs)

# A wire between threads.
late_wire = \
    %D%/late_wire.c \
    %D%/late_wire.h
%C%_test_exchange_SOURCES = %D%/test_exchange.c $(late_wire)
%C%_test_exchange_parts_SOURCES = %D%/test_exchange_parts.c $(late_wire)
%C%_test_gather_SOURCES = %D%/test_gather.c $(late_wire)

%C%_test_roof_SOURCES = %D%/test_roof.c apps/bench/roof.c \
    apps/bench/roof.h
%C%_test_roof_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/apps

# Products, pools and activations on processors that have no AVX-512, and
# products on those that have no AVX2.
%C%_test_ops_avx2_SOURCES = %D%/test_ops.c
%C%_test_ops_avx2_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_AVX2
%C%_test_ops_avx2_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ddp__skinny_lanes \
    -Wl,--wrap=ddp__avx512_here -Wl,--wrap=ddp__avx512_bf16_here \
    -Wl,--wrap=ddp__wino_lanes

# The vectors of other processors, and a rank that describes its as another one.
if HAVE_ONEDNN
%C%_test_skinny_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ddp__skinny_lanes
%C%_test_wino_line_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ddp__wino_lanes
%C%_test_host_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ddp__dnn_isa
endif

# The programs' options.
%C%_test_split_SOURCES = %D%/test_split.c apps/imagenet/split.c \
    apps/imagenet/split.h
%C%_test_split_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/apps
%C%_test_split_LDADD = $(APPS_COMMON) $(LDADD)

%C%_fuzz_options_SOURCES = %D%/fuzz_options.c apps/imagenet/names.c \
    apps/imagenet/foreign.c apps/imagenet/foreign.h \
    apps/imagenet/names.h apps/imagenet/options.c apps/imagenet/options.h \
    apps/imagenet/options_data.c apps/imagenet/options_data.h \
    apps/imagenet/options_optim.c apps/imagenet/options_optim.h \
    apps/imagenet/options_rows.h \
    apps/imagenet/options_run.c apps/imagenet/options_run.h
%C%_fuzz_options_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/apps \
    -I$(top_srcdir)/apps/imagenet
%C%_fuzz_options_LDADD = $(LDADD) $(APPS_COMMON)

# Kernels for GPUs, run on a CPU.
%C%_test_cuda_host_SOURCES = %D%/test_cuda_host.c $(CUDA_TASKS) $(GPU_BODIES)

%C%_test_cuda_plans_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
%C%_test_gpu_facts_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
if HAVE_CUDA
%C%_test_cuda_plans_LDADD = $(LDADD_CUDA)
%C%_test_gpu_facts_LDADD = $(LDADD_CUDA) $(JANSSON_LIBS)

%C%_test_cuda_weights_SOURCES = %D%/test_cuda_weights.c codelets/cuda/weights.c
%C%_test_cuda_weights_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

# Against a cuDNN of its own.
%C%_test_cuda_threads_SOURCES = %D%/test_cuda_threads.c \
    codelets/cuda/dnn_graph.c codelets/cuda/dnn_plan.c codelets/cuda/dnn_tune.c
%C%_test_cuda_threads_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
else
%C%_test_cuda_plans_LDADD = $(LDADD)
%C%_test_gpu_facts_LDADD = $(LDADD)

%C%_test_cuda_weights_SOURCES = %D%/test_cuda_weights.c
%C%_test_cuda_threads_SOURCES = %D%/test_cuda_threads.c
endif

slow_scripts = \
    %D%/app_board.sh \
    %D%/app_infer.sh \
    %D%/app_manual.sh \
    %D%/app_memory.sh \
    %D%/app_record.sh \
    %D%/app_resume.sh \
    %D%/app_srun.sh \
    %D%/app_storage.sh \
    %D%/app_train.sh
usual_scripts = \
    %D%/app_bundle.sh \
    %D%/app_data.sh \
    %D%/app_finetune.sh \
    %D%/app_doctor.sh \
    %D%/app_cuda_libs.sh \
    %D%/app_emulated.sh \
    %D%/app_emulated_lost.sh \
    %D%/app_emulated_ops.sh \
    %D%/app_emulated_tests.sh \
    %D%/app_fusebench.sh \
    %D%/app_kernelbench.sh \
    %D%/app_examples.sh \
    %D%/app_gpu_check.sh \
    %D%/app_iris.sh \
    %D%/app_named.sh \
    %D%/app_options.sh \
    %D%/app_recipes.sh \
    %D%/app_pages.sh \
    %D%/app_predict.sh \
    %D%/app_report.sh \
    %D%/app_shards.sh \
    %D%/app_slurm.sh \
    %D%/app_smpi.sh \
    %D%/app_ddprun.sh \
    %D%/app_synth.sh \
    %D%/app_weights.sh \
    %D%/test_borders.sh \
    %D%/test_commands.sh \
    %D%/test_docs.sh \
    %D%/test_install.sh \
    %D%/test_recipes.sh
# Those whose processes notice how long others are silent: they wait nearly all the
# time, and find a busy machine too slow.  With make -j, only they run at the same
# time.
TESTS_APART = \
    %D%/app_hosts.sh \
    %D%/app_peers.sh \
    %D%/app_joining.sh \
    %D%/app_loops.sh
alone_scripts = \
    %D%/app_bench.sh \
    %D%/app_ranks.sh

dist_check_SCRIPTS = $(slow_scripts) $(usual_scripts) $(TESTS_APART) $(alone_scripts)

TESTS_ALONE = $(alone_programs) $(alone_scripts)

TESTS = $(cuda_programs) $(slow_programs) $(slow_scripts) $(usual_programs) \
    $(usual_scripts) $(TESTS_APART) $(TESTS_ALONE)

EXTRA_DIST += \
    %D%/checkpoint_format_2.json \
    %D%/corpus \
    %D%/hand.h \
    %D%/lsan.supp \
    %D%/image_oracle.h \
    %D%/make_image.h \
    %D%/oracle_airbench.py \
    %D%/oracle_board.py \
    %D%/oracle_file.py \
    %D%/oracle_image.py \
    %D%/oracle_inception_v2.py \
    %D%/oracle_infer.py \
    %D%/oracle_layers.py \
    %D%/oracle_mlflow.py \
    %D%/oracle_models.py \
    %D%/oracle_onnx.py \
    %D%/oracle_optim.py \
    %D%/oracle_resnet.py \
    %D%/oracle_scale.py \
    %D%/oracle_spack.py \
    %D%/oracle_trace.py \
    %D%/oracle_wandb.py \
    %D%/oracle_wandb_sync.py \
    %D%/oracle_weights.py \
    %D%/oracle_zoo.py \
    %D%/s3_server.py \
    %D%/scratch.h \
    %D%/smpi_exchange.c \
    %D%/outside/main.c \
    %D%/run-test \
    %D%/data_files.h \
    %D%/defaults.h \
    %D%/emulated.sh \
    %D%/examples.sh \
    %D%/driver.h \
    %D%/tap.h \
    %D%/ranks.sh \
    %D%/tap.sh \
    %D%/torch_resnet.py \
    %D%/tsan.supp

# Each test runs under run-test, which ends it when it hangs.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER = bash $(srcdir)/%D%/run-test
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(LOG_COMPILER) bash

# Equal everywhere, and nothing written to anyone's home or to another test's.
# hwloc 2.9 leaks in its pci part, which would hide our own leaks.
AM_TESTS_ENVIRONMENT = \
    STARPU_HOME='$(abs_builddir)/%D%/home'/$(@F); export STARPU_HOME; \
    XDG_CACHE_HOME="$$STARPU_HOME"; export XDG_CACHE_HOME; \
    STARPU_NCPU=2; export STARPU_NCPU; \
    STARPU_NCUDA=0; export STARPU_NCUDA; \
    DDP_MODULE_DIR='$(abs_builddir)/.libs'; export DDP_MODULE_DIR; \
    STARPU_SILENT=1; export STARPU_SILENT; \
    OMP_NUM_THREADS=1; export OMP_NUM_THREADS; \
    OMP_WAIT_POLICY=PASSIVE; export OMP_WAIT_POLICY; \
    HWLOC_COMPONENTS=-pci; export HWLOC_COMPONENTS; \
    UBSAN_OPTIONS=print_stacktrace=1; export UBSAN_OPTIONS; \
    LSAN_OPTIONS='suppressions=$(abs_srcdir)/%D%/lsan.supp print_suppressions=0'; \
    export LSAN_OPTIONS; \
    srcdir='$(abs_srcdir)'; export srcdir; \
    builddir='$(abs_builddir)'; export builddir; \
    DDP_TEST_ALONE='$(TESTS_ALONE)'; export DDP_TEST_ALONE; \
    DDP_TEST_APART='$(TESTS_APART)'; export DDP_TEST_APART; \
    DDP_TEST_MAKE='$(MAKE)'; export DDP_TEST_MAKE; \
    DDP_TEST_CC='$(CC) $(SANITIZE_CFLAGS)'; export DDP_TEST_CC; \
    DDP_TEST_BINDIR='$(bindir)'; export DDP_TEST_BINDIR; \
    DDP_TEST_DOCDIR='$(docdir)'; export DDP_TEST_DOCDIR; \
    DDP_TEST_LIBDIR='$(libdir)'; export DDP_TEST_LIBDIR; \
    mkdir -p "$$STARPU_HOME";

# To compile the tests with make -j and yet run them one by one or, as StarPU's
# workers spin, by two.
check-programs: $(check_PROGRAMS) $(check_LTLIBRARIES)
.PHONY: check-programs

# The long ones as well: tests look at DDP_LONG.
check-long:
	DDP_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check
.PHONY: check-long

clean-local:
	rm -rf %D%/home docs/html
