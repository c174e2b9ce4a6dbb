# oracle_board.py DIR - what TensorBoard reads from a folder of event files:
# "TAG STEP VALUE" for each scalar, "set NAME VALUE" for hyperparameters,
# "histogram TAG STEP MIN MAX VALUES SQUARES LIMIT:COUNT,...", "image WxH PIXELS
# TAG" with all bytes of red, green, blue, and "node NAME OP SHAPE INPUT..." as
# the page of graphs gets them
# SPDX-License-Identifier: LGPL-2.1-or-later
import io
import sys

import PIL.Image
from tensorboard.backend.event_processing import event_accumulator
from google.protobuf import text_format
from tensorboard import context
from tensorboard.backend.event_processing import data_provider
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.compat.proto import graph_pb2
from tensorboard.plugins import base_plugin
from tensorboard.plugins.graph import graphs_plugin
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
for tag in board.Tags()["images"]:
    for e in board.Images(tag):
        image = PIL.Image.open(io.BytesIO(e.encoded_image_string))
        assert image.format == "JPEG" and image.size == (e.width, e.height)
        print("image %dx%d" % image.size, image.tobytes().hex(), tag)
for tag, content in board.PluginTagToContent("hparams").items():
    data = plugin_data_pb2.HParamsPluginData.FromString(content)
    for name, value in data.session_start_info.hparams.items():
        print("set", name, value.WhichOneof("kind"),
              value.string_value or value.number_value)
    if data.HasField("session_end_info"):
        print("end", data.session_end_info.status)

runs = plugin_event_multiplexer.EventMultiplexer()
runs.AddRun(sys.argv[1], "run").Reload()
plugin = graphs_plugin.GraphsPlugin(base_plugin.TBContext(
    data_provider=data_provider.MultiplexerDataProvider(runs, sys.argv[1])))
request = context.RequestContext()
if plugin.info_impl(request, "").get("run", {}).get("run_graph"):
    page, _ = plugin.graph_impl(request, "run", None, False, "")
    for node in text_format.Parse(page, graph_pb2.GraphDef()).node:
        shape = node.attr["_output_shapes"].list.shape[0]
        print("node", node.name, node.op,
              ",".join(str(d.size) for d in shape.dim), *node.input)
