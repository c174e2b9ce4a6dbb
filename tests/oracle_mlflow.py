# oracle_mlflow.py DIR - what the package mlflow reads from a file store:
# "row STEP NAME VALUE" for each value, "set NAME VALUE" for settings, "tag NAME
# VALUE", "last NAME VALUE", "run NAME STATUS BEGAN_BEFORE_ITS_END"
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import sys

# Its client refuses such stores otherwise, and sends statistics.
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
from mlflow.tracking import MlflowClient

client = MlflowClient(os.path.abspath(sys.argv[1]))
for run in client.search_runs(["0"]):
    info, data = run.info, run.data
    print("run", info.run_name, info.status,
          info.end_time is None or 0 < info.start_time <= info.end_time)
    for name, value in data.params.items():
        print("set", name, value)
    for name, value in data.tags.items():
        print("tag", name, value)
    for name, value in data.metrics.items():
        print("last", name, value)
        for m in client.get_metric_history(info.run_id, name):
            assert info.start_time <= m.timestamp, (m, info)
            print("row", m.step, name, m.value)
