"""Start an S3 server, and make a bucket in it: that of `s3_server.py`, in an environment of its own, or a versitygw.

versitygw keeps its objects as files. It is a program of Go, which a package index does not have: a variable names it.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from makewhole.stack.ports import free_ports, is_free

_SERVER = "moto[server]==5.1.0"  # pyarrow does not understand how 5.2.1 ends an upload of several parts
_START_SECONDS = 30.0
GATEWAY_VARIABLE = "MAKEWHOLE_TESTS_VERSITYGW"
"""Names the program of versitygw, which is taken then."""
BUCKET = "makewhole"
REGION = "us-east-1"


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """A running S3 server with one bucket, for those who have the access key."""

    process: subprocess.Popen[str]
    port: int
    access_key: str
    secret_key: str

    @classmethod
    def start(cls, folder: Path, access_key: str, secret_key: str) -> "ObjectStore":
        """Start the server. The first time, its environment comes from the package index."""
        if GATEWAY_VARIABLE in os.environ:
            return cls._start_gateway(folder, access_key, secret_key)
        program = ["python", str(Path(__file__).with_name("s3_server.py")), access_key]
        command = [sys.executable, "-m", "uv", "tool", "run", "--from", _SERVER, *program]
        with (folder / "s3.log").open("w") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip().isdigit(), (folder / "s3.log").read_text()
        made = cls(process=process, port=int(line), access_key=access_key, secret_key=secret_key)
        made.client().create_dir(BUCKET)
        return made

    @classmethod
    def _start_gateway(cls, folder: Path, access_key: str, secret_key: str) -> "ObjectStore":
        objects = folder / "s3"
        objects.mkdir()
        [port] = free_ports(1)
        keys = ["--access", access_key, "--secret", secret_key]
        command = [os.environ[GATEWAY_VARIABLE], *keys, "--port", f"127.0.0.1:{port}", "posix", str(objects)]
        with (folder / "s3.log").open("w") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, text=True)
        made = cls(process=process, port=port, access_key=access_key, secret_key=secret_key)
        end = time.monotonic() + _START_SECONDS
        while is_free(port):
            assert process.poll() is None and time.monotonic() < end, (folder / "s3.log").read_text()
            time.sleep(0.1)
        made.client().create_dir(BUCKET)
        return made

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connection(self) -> str:
        """The connection, as Airflow's environment has it."""
        extra = {"endpoint_url": f"http://{self.endpoint}", "region_name": REGION}
        return json.dumps({"conn_type": "aws", "login": self.access_key, "password": self.secret_key, "extra": extra})

    def client(self) -> fs.S3FileSystem:
        """Return a client that may make buckets."""
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            region=REGION,
            scheme="http",
            endpoint_override=self.endpoint,
            allow_bucket_creation=True,
        )

    def stop(self) -> None:
        """End the server; its files were in memory, or in the folder of the test."""
        self.process.terminate()
        self.process.wait(10)
