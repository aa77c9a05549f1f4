#!/bin/sh
# Build the image and try it: `make image`.
#
# With a Docker engine, by Docker. Without one, by buildah and podman (Debian: buildah, podman, runc,
# debootstrap), from a base made of the distribution's own packages, since no registry of images may
# be within reach. Neither way is part of the tests.
#
#   IMAGE     name of the result (localhost/weald:dev)
#   BASE      another base image, with python3 (3.11 or later) and its venv module
#   WARMUP    kernels to compile, such as "--family gaussian" (those of all families)
#   SKIP_TRY  when not empty, only build
set -eu

cd "$(dirname "$0")/.."
IMAGE="${IMAGE:-localhost/weald:dev}"
OWN_BASE=localhost/weald-base:bookworm

say() { echo "image: $*" >&2; }

# Make a Debian with Python, once; about two minutes.
make_base() {
    if podman image exists "$OWN_BASE"; then return; fi
    mirror="$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' | head -n 1)"
    folder="$(mktemp -d)"
    say "making $OWN_BASE out of Debian packages"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
        bookworm "$folder/root" "$mirror" >"$folder/log" 2>&1 \
        || { tail "$folder/log" >&2; rm -rf "$folder"; exit 1; }
    rm -rf "$folder"/root/var/cache/apt/* "$folder"/root/var/lib/apt/lists/*
    tar -C "$folder/root" -c . | podman import --quiet - "$OWN_BASE" >/dev/null
    rm -rf "$folder"
}

build_with_buildah() {
    for program in buildah podman runc debootstrap; do
        command -v "$program" >/dev/null 2>&1 || {
            say "$program is missing, and no Docker engine answers; on Debian:" \
                "apt-get install buildah podman runc debootstrap"
            exit 1
        }
    done
    if [ -z "${BASE:-}" ]; then make_base; fi
    # A network may inspect TLS and have its own authority among the host's certificates, and pip
    # its own settings: both are lent to the build, and leave no more than an empty file behind.
    set -- --volume /etc/ssl/certs:/etc/ssl/certs:ro
    if [ -f /etc/pip.conf ]; then set -- "$@" --volume /etc/pip.conf:/etc/pip.conf:ro; fi
    buildah bud --isolation=chroot --network=host --layers --format docker "$@" \
        --build-arg BASE="${BASE:-$OWN_BASE}" --build-arg WARMUP="${WARMUP:-}" \
        --file docker/Dockerfile --tag "$IMAGE" .
}

build_with_docker() {
    if [ -n "${BASE:-}" ]; then set -- --build-arg BASE="$BASE"; fi
    docker build "$@" --build-arg WARMUP="${WARMUP:-}" --file docker/Dockerfile --tag "$IMAGE" .
}

if docker info >/dev/null 2>&1; then
    engine=docker
    build_with_docker
else
    engine=podman
    build_with_buildah
fi
say "built $IMAGE"

if [ -z "${SKIP_TRY:-}" ]; then
    make --silent .venv/.dev
    exec env PYTHONPATH=. .venv/bin/python docker/try_image.py --engine "$engine" "$IMAGE"
fi
