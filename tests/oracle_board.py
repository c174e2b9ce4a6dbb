# oracle_board.py DIR - what TensorBoard reads from a folder of event files:
# "TAG STEP VALUE" for each scalar, "set NAME VALUE" for hyperparameters,
# "histogram TAG STEP MIN MAX VALUES SQUARES LIMIT:COUNT,..."
# SPDX-License-Identifier: LGPL-2.1-or-later
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

board = event_accumulator.EventAccumulator(
    sys.argv[1], size_guidance={event_accumulator.SCALARS: 0,
                                event_accumulator.HISTOGRAMS: 0})
board.Reload()
for tag in board.Tags()["scalars"]:
    for e in board.Scalars(tag):
        print(tag, e.step, "%.9g" % e.value)
for tag in board.Tags()["histograms"]:
    for e in board.Histograms(tag):
        h = e.histogram_value
        print("histogram", tag, e.step, "%.9g %.9g %d %.9g" % (
            h.min, h.max, h.num, h.sum_squares), ",".join(
            "%.9g:%d" % b for b in zip(h.bucket_limit, h.bucket)))
for tag, content in board.PluginTagToContent("hparams").items():
    data = plugin_data_pb2.HParamsPluginData.FromString(content)
    for name, value in data.session_start_info.hparams.items():
        print("set", name, value.WhichOneof("kind"),
              value.string_value or value.number_value)
    if data.HasField("session_end_info"):
        print("end", data.session_end_info.status)
