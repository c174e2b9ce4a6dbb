# lib/local.mk - what a training step is; one list, in alphabetical order

include_HEADERS += %D%/ddp.h

libddp_core_la_SOURCES += \
    %D%/augment.c \
    %D%/build.c \
    %D%/chain.c \
    %D%/context.c \
    %D%/context.h \
    %D%/crc32c.c \
    %D%/crc32c.h \
    %D%/csv.c \
    %D%/csv.h \
    %D%/data.c \
    %D%/data.h \
    %D%/data_callback.c \
    %D%/data_cifar.c \
    %D%/data_csv.c \
    %D%/data_files.c \
    %D%/data_folder.c \
    %D%/data_imagenet.c \
    %D%/data_open.c \
    %D%/engine.c \
    %D%/engine.h \
    %D%/error.c \
    %D%/evaluate.c \
    %D%/file.c \
    %D%/graph.c \
    %D%/graph.h \
    %D%/image.c \
    %D%/image.h \
    %D%/infer.c \
    %D%/inspect.c \
    %D%/inspect.h \
    %D%/internal.h \
    %D%/jpeg.c \
    %D%/layer.c \
    %D%/layers/act.c \
    %D%/layers/batch_norm.c \
    %D%/layers/channel_scale.c \
    %D%/layers/conv.c \
    %D%/layers/dense.c \
    %D%/layers/dropout.c \
    %D%/layers/flatten.c \
    %D%/layers/parallel.c \
    %D%/layers/pool.c \
    %D%/layers/skip.c \
    %D%/loader.c \
    %D%/loader.h \
    %D%/models/mlp.c \
    %D%/models/models.c \
    %D%/models/models.h \
    %D%/models/resnet.c \
    %D%/models/resnet9.c \
    %D%/names.c \
    %D%/optim.c \
    %D%/order.c \
    %D%/params.c \
    %D%/resize.c \
    %D%/safetensors.c \
    %D%/safetensors.h \
    %D%/safetensors_write.c \
    %D%/schedule.c \
    %D%/scheduler.c \
    %D%/scheduler.h \
    %D%/scheduler_names.c \
    %D%/step.c \
    %D%/task_queue.h \
    %D%/train.c \
    %D%/trainer.c \
    %D%/trainer.h \
    %D%/weights.c

if HAVE_PNG
libddp_core_la_SOURCES += %D%/png.c
endif
