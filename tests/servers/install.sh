#!/bin/sh
# Install from Debian's packages the servers that the tests need and this machine lacks.
# Only root on a machine with apt-get can; elsewhere it says what is missing and changes nothing.
set -eu

present() {
    command -v "$1" >/dev/null 2>&1
}

missing=
present redis-server || missing="$missing redis-server"
if ! present prometheus || ! present promtool; then
    missing="$missing prometheus"
fi
present postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
    missing="$missing postgresql"
present chromium || present google-chrome || missing="$missing chromium fonts-dejavu-core"
present spin || missing="$missing spin"
present cc || missing="$missing gcc libc6-dev"

if ! present java || ! present mvn; then
    echo "servers: Apache Kafka needs java (17 or later) and mvn on the PATH" >&2
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! present apt-get; then
    echo "servers: not on this machine:$missing; the tests that need them will be skipped" >&2
    exit 0
fi

echo "servers: installing$missing" >&2
log=$(mktemp)
policy=/usr/sbin/policy-rc.d
created=
cleanup() {
    rm -f "$log"
    [ -z "$created" ] || rm -f "$policy"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# The tests start servers of their own on free ports, so the packages must not start theirs.
if [ ! -e "$policy" ]; then
    created=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 update &&
        # shellcheck disable=SC2086 # a list of package names
        apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
            install --no-install-recommends $missing
}

if ! install >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    echo "servers: apt-get could not install$missing; the tests that need them will be skipped" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi
if present systemctl; then
    # shellcheck disable=SC2086 # likewise
    systemctl disable --quiet $missing >/dev/null 2>&1 || true
fi
