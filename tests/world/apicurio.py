"""Run Apicurio's schema registry on this machine: a real one, which others use; its jar comes by the Ivy of pyspark."""

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyspark

from makewhole.stack.maven_jars import cache_root, java
from makewhole.stack.ports import free_ports

_VERSION = "2.6.13.Final"
_SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
_IVY = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tests" module="apicurio"/>
  <dependencies>
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{_VERSION}" transitive="false">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
_RESOLVE_SECONDS, _START_SECONDS = 300, 180


@contextmanager
def apicurio() -> Iterator[str]:
    """Start the registry, with nothing in it; return the address of the API that speaks as Confluent's does."""
    [port] = free_ports(1)
    jar = next(_unpacked().glob("apicurio-registry-app-*-runner.jar"))
    options = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
    command = [java(), *options, f"-Dquarkus.http.port={port}", "-jar", str(jar)]
    process = subprocess.Popen(command, cwd=jar.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        _wait_for(f"{url}/subjects", process)
        yield url
    finally:
        process.kill()
        process.wait(30)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.3)
    raise AssertionError("Apicurio's registry does not start")


def _unpacked() -> Path:
    """Return the folder of the registry, from the cache; it is filled first when it is empty."""
    folder = cache_root() / f"apicurio-{_VERSION}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="resolving-") as work:
            unpacked = Path(work) / "unpacked"
            with tarfile.open(_resolved(Path(work))) as archive:
                archive.extractall(unpacked, filter="data")
            shutil.move(unpacked, folder)
    return folder


def _resolved(work: Path) -> Path:
    description = work / "ivy.xml"
    description.write_text(_IVY)
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    command = [java(), "-jar", str(ivy), "-cache", str(work / "ivy"), "-ivy", str(description)]
    command += ["-retrieve", f"{work}/found/[artifact].[ext]"]
    subprocess.run(command, capture_output=True, timeout=_RESOLVE_SECONDS, check=True)
    [archive] = (work / "found").glob("*.tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert digest == _SHA256, f"{archive.name} has the hash {digest}, which is not the expected one"
    return archive
