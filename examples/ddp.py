# ddp.py - libddp from Python, through its C interface and the module ctypes
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The functions of ddp.h have their names without "ddp_".  A call that fails
# raises Error with the library's message.
import ctypes
import ctypes.util
import os
from ctypes import (POINTER, Structure, byref, c_bool, c_char_p, c_double,
                    c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p,
                    sizeof)

_lib = ctypes.CDLL(os.environ.get("LIBDDP") or
                   ctypes.util.find_library("ddp") or "libddp.so.0")


class Error(Exception):
    pass


class Optimizer(Structure):
    _fields_ = [("kind", c_int), ("lr", c_float), ("momentum", c_float),
                ("beta1", c_float), ("beta2", c_float), ("eps", c_float),
                ("weight_decay", c_float), ("decay_all", c_bool),
                ("clip_norm", c_float), ("clip_value", c_float),
                ("clip_unit", c_float), ("lookahead", c_int),
                ("update", c_void_p), ("update_arg", c_void_p),
                ("update_states", c_int)]


class Schedule(Structure):
    _fields_ = [("kind", c_int), ("numbers", c_double * 7), ("fn", c_void_p),
                ("arg", c_void_p), ("milestones", c_double * 16),
                ("power", c_double), ("stretch", c_double),
                ("patience", c_int), ("cooldown", c_int),
                ("threshold", c_double), ("warmup_steady", c_bool),
                ("warmup_prefix", c_bool), ("warmup_inside", c_bool),
                ("noise", c_double * 4), ("noise_seed", c_uint64)]


class TrainConfig(Structure):
    """The first fields of struct ddp_train_config: struct_size says how many
    there are, and the others have their defaults."""
    _fields_ = [("struct_size", c_size_t), ("loss", c_int),
                ("label_smoothing", c_float), ("loss_fn", c_void_p),
                ("loss_arg", c_void_p), ("optimizer", Optimizer),
                ("schedule", Schedule), ("sub_batch", c_int), ("batch", c_int),
                ("lanes", c_int), ("epochs", c_int64), ("steps", c_int64),
                ("dtype", c_int)]


class Metrics(Structure):
    _fields_ = [("samples", c_int64), ("loss", c_double), ("top1", c_double),
                ("top5", c_double), ("top10", c_double), ("skipped", c_bool)]


def _fail():
    raise Error(_lib.ddp_errmsg().decode())


def _pointer(p, function, args):
    return c_void_p(p) if p else _fail()


def _code(rc, function, args):
    return rc if rc >= 0 else _fail()


def function(name, result, *args):
    f = getattr(_lib, "ddp_" + name)
    f.restype, f.argtypes = result, args
    if result in (c_void_p, c_int):
        f.errcheck = _pointer if result is c_void_p else _code
    return f


function("errmsg", c_char_p)
init = function("init", c_void_p, c_void_p)
finish = function("finish", None, c_void_p)
dataset_csv = function("dataset_csv", c_void_p, c_char_p, c_char_p)
dataset_free = function("dataset_free", None, c_void_p)
dense_new = function("dense_new", c_void_p, c_int, c_int, c_void_p)
act_new = function("act_new", c_void_p, c_int)
chain_of = function("chain_of", c_void_p, c_int, POINTER(c_void_p))
chain_save = function("chain_save", c_int, c_void_p, c_char_p, c_void_p)
chain_free = function("chain_free", None, c_void_p)
adam = function("adam", Optimizer, c_float)
config_init = function("train_config_init_sized", None, c_void_p, c_size_t)
trainer_new = function("trainer_new", c_void_p, c_void_p, c_void_p, c_void_p,
                        c_void_p)
trainer_train = function("trainer_train", c_int, c_void_p)
trainer_evaluate = function("trainer_evaluate", c_int, c_void_p, c_void_p,
                             c_void_p)
trainer_free = function("trainer_free", None, c_void_p)


def chain(*layers):
    return chain_of(len(layers), (c_void_p * len(layers))(*layers))


def train(context, net, data, **settings):
    """Train, and return loss and accuracy on the same data."""
    config, metrics = TrainConfig(), Metrics()
    config_init(byref(config), sizeof(config))
    for name, value in settings.items():
        setattr(config, name, value)
    trainer = trainer_new(context, net, data, byref(config))
    try:
        trainer_train(trainer)
        trainer_evaluate(trainer, data, byref(metrics))
    finally:
        trainer_free(trainer)
    return metrics.loss, metrics.top1
