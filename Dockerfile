# An image in which `esper-ab` runs. With GPUs, where torch brings the CUDA libraries, several gigabytes:
#     docker build -t esper-ab .
#     mkdir -p experiments
#     docker run --rm --gpus all --user "$(id -u):$(id -g)" -v "$PWD/experiments:/experiments" \
#         esper-ab launch --groups shaped,simplified --devices cuda
# Without: give the index of torch's CPU build that pytorch.org names.
#     docker build -t esper-ab --build-arg TORCH_INDEX=ADDRESS .
# Neither built nor run so far where this was written: no daemon was at hand; the workflow `image` does both.
FROM python:3.11-slim AS build
ARG TORCH_INDEX=""
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY constraints.txt ./
# First and by itself, so that another state of the code does not fetch it again.
RUN python -m venv /opt/esper-ab \
    && /opt/esper-ab/bin/pip install --no-cache-dir -c constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
COPY . .
RUN /opt/esper-ab/bin/pip install --no-cache-dir -c constraints.txt ".[gymnasium]"

FROM python:3.11-slim
COPY --from=build /opt/esper-ab /opt/esper-ab
# A user of its own, unless --user names the one to whom the mounted folder of experiments belongs: that one has no home.
RUN useradd --create-home esper && mkdir /experiments && chown esper /experiments
USER esper
WORKDIR /
ENV PATH=/opt/esper-ab/bin:$PATH HOME=/tmp
ENTRYPOINT ["esper-ab"]
CMD ["--help"]
