"""Measuring, one file per kind of job. Each kind runs in a process of its own, told by files and answering in JSON lines.

`python -m app.worker.measure KIND FOLDER` reads FOLDER/job.json (`job.read_job`), writes events to standard output (`reporter`) and
its document to FOLDER/result.json after every point, so that what is done survives the end of the process. Exit codes: 0 done, 2 refused
with the reason in the last log line, 75 the device is lost, anything else failed.
"""
