# Phaseline's one image: pages, API and commands. Plain Dockerfile syntax, so that any builder takes it.
#
#   docker compose up            (compose.yaml has the settings a server needs)
#   docker run --rm phaseline:local predict --model textbook-8b --hardware textbook-h100

FROM python:3.12-slim AS build
WORKDIR /srv/phaseline

# The packages first: this step is done again only when the lock changes. The environment gets no pip of its own.
COPY requirements.lock ./
RUN python -m venv --without-pip /srv/venv \
 && pip --python /srv/venv/bin/python install --no-cache-dir --no-compile --require-hashes -r requirements.lock

# What .dockerignore lets through: the tree that runs, with templates, static and migrations beside app.
COPY . .
RUN pip --python /srv/venv/bin/python install --no-cache-dir --no-compile --no-deps --no-build-isolation -e . \
 && pip --python /srv/venv/bin/python uninstall --yes --quiet setuptools

# What nothing reads at run time goes: the packages' own tests, sources of compiled parts, type stubs, notebook widgets, and the
# binding of zstandard that only PyPy uses. Bytecode is compiled now, since the running image is read-only, and is unchecked,
# since nothing changes afterwards.
# For a worker with a GPU, TORCH names the version of torch (compose.gpu.yaml does); the server's own image has none.
ARG TORCH=""
RUN find /srv/venv/lib -type d \( -name tests -o -name labextension \) -prune -exec rm -rf {} + \
 && find /srv/venv/lib -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.c' -o -name '*.h' -o -name '*.a' \
      -o -name widgetbundle.js -o -path '*/zstandard/_cffi.*.so' \) -delete \
 && if [ -n "$TORCH" ]; then \
      pip --python /srv/venv/bin/python install --no-cache-dir --no-compile "torch==$TORCH" "nvidia-ml-py>=13.615,<14"; fi \
 && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv/venv/lib /srv/phaseline


FROM python:3.12-slim
LABEL org.opencontainers.image.title="Phaseline" \
      org.opencontainers.image.description="Prefill and decode kept apart: predict, upload, see, compare." \
      org.opencontainers.image.licenses="Apache-2.0"

ENV PATH=/srv/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    PHASELINE_DATA_DIR=/data \
    PHASELINE_HOST=0.0.0.0 \
    PHASELINE_LOCAL_WORKER=0

# Group 0 may write too, so that any user id works where a platform picks one (with group 0, as such platforms do).
RUN install -d -o 10001 -g 0 -m 0770 /data /worker /token
COPY --from=build /srv /srv

WORKDIR /srv/phaseline
USER 10001:10001
VOLUME /data
EXPOSE 8000

# Ready, not merely alive: the database is written and has the right schema. No curl in the image, so Python asks.
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 \
  CMD ["python", "-ISc", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('PHASELINE_PORT') or 8000), timeout=3); c.request('GET', '/readyz'); sys.exit(c.getresponse().status != 200)"]

ENTRYPOINT ["phaseline"]
CMD ["serve"]
