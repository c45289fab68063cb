"""A certificate for 127.0.0.1 that nobody but a test trusts, made by OpenSSL for each test."""

import ssl
import subprocess
from pathlib import Path


def certified(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """The server's context, and the file by which a client trusts it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ("-subj", "/CN=mock", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key), "-out", str(certificate))
    subprocess.run(["openssl", "req", "-x509", "-days", "2", *names, *made], check=True, capture_output=True, timeout=60)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, certificate
