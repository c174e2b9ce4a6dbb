# oracle_wandb.py FILE - what the package wandb reads from the file of a run:
# "row STEP NAME VALUE" for its history, "set NAME VALUE" for its settings,
# "summary NAME VALUE", "run ...", "stats NAME", "exit CODE", "end KIND"
# SPDX-License-Identifier: LGPL-2.1-or-later
import importlib.util
import json
import os
import sys
import types

# The package alone: to import all of it would take its dependencies and a
# second.
package = types.ModuleType("wandb")
package.__path__ = importlib.util.find_spec("wandb").submodule_search_locations
sys.modules["wandb"] = package
path = os.path.join(package.__path__[0], "sdk", "internal", "datastore.py")
spec = importlib.util.spec_from_file_location("datastore", path)
datastore = importlib.util.module_from_spec(spec)
spec.loader.exec_module(datastore)
from wandb.proto import wandb_internal_pb2


def values(items):
    for item in items:
        name = item.key or ".".join(item.nested_key)
        yield name, json.loads(item.value_json)


store = datastore.DataStore()
store.open_for_scan(sys.argv[1])
number = 0
while True:
    try:
        data = store.scan_data()
    except AssertionError: # as its sync: a record that is not whole
        if not store.in_last_block():
            raise
        print("torn")
        break
    if data is None:
        break
    record = wandb_internal_pb2.Record.FromString(data)
    number += 1
    assert record.num == number, (record.num, number)
    kind = record.WhichOneof("record_type")
    if kind == "history":
        row = dict(values(record.history.item))
        assert row["_step"] == record.history.step.num, row
        assert row["_runtime"] >= 0 and row["_timestamp"] > 1e9, row
        for name, v in row.items():
            print("row", row["_step"], name, v)
    elif kind == "run":
        run = record.run
        print("run", run.run_id, run.display_name, run.host != "",
              run.start_time.seconds > 1e9)
        for name, v in values(run.config.update):
            print("set", name, v)
    elif kind == "config":
        for name, v in values(record.config.update):
            print("set", name, v)
    elif kind == "summary":
        for name, v in values(record.summary.update):
            print("summary", name, v)
    elif kind == "stats":
        for name, v in values(record.stats.item):
            print("stats", name, v)
    elif kind == "exit":
        print("exit", record.exit.exit_code)
    else:
        print("end", kind)
